//! Users who enter a code on any device, while the client asks for the tokens (RFC 8628).

use serde::Deserialize;
use serde_json::Value;
use url::Url;

use super::{Action, Authorization, Found, Machine, Response, Step, UserCode, Way};
use crate::{
    Client, Credential, Error, Secret, error::CODE_ENDPOINT, form, metadata::ServerMetadata, shown,
    tokens,
};

/// The grant type.
pub(super) const GRANT: &str = "urn:ietf:params:oauth:grant-type:device_code";

/// The pause between two requests for tokens if the authorization server names none, in seconds.
const INTERVAL: u64 = 5;
/// The shortest pause, and the longest one after failures.
const SHORTEST: u64 = 1;
const LONGEST: u64 = 60;
/// The authorization server wants the pause to be this much longer.
const SLOW_DOWN: u64 = 5;
/// The longest time that a user has.
const LONGEST_PATIENCE: u64 = 30 * 60;
/// The last request is sent this long before the end, in case that the next one would come too late.
const MARGIN: u64 = 5;

/// The longest code that a user can be expected to enter, in characters.
const LONGEST_CODE: usize = 32;
/// The longest secret code, and the longest address of a page, in bytes.
const LONGEST_SECRET: usize = 8 * 1024;
const LONGEST_ADDRESS: usize = 2 * 1024;

/// The parameters that the user cannot add.
const OWN: [&str; 6] = [
    "client_id",
    "client_secret",
    "client_assertion",
    "client_assertion_type",
    "scope",
    "resource",
];

/// The requests for tokens while a user enters the code.
#[derive(Debug)]
pub(super) struct Polls {
    /// The secret that stands for the sign-in.
    code: Secret,
    interval: u64,
    /// The failures in a row double the pause.
    pause: u64,
    /// The time of the next one, in seconds since 1970.
    pub(super) next: u64,
    /// The cause of the last one's failure: the user may have finished without the client being told.
    failure: Option<Error>,
}

/// The codes of a sign-in.
#[derive(Deserialize)]
struct Codes {
    device_code: Option<Secret>,
    user_code: Option<String>,
    verification_uri: Option<String>,
    /// The name in the drafts of the specification.
    verification_url: Option<String>,
    // The others may be malformed, and have defaults.
    #[serde(default)]
    verification_uri_complete: Value,
    #[serde(default)]
    expires_in: Value,
    #[serde(default)]
    interval: Value,
}

impl Machine {
    /// The endpoint that issues codes.
    pub(super) fn code_endpoint(
        &self,
        issuer: &str,
        server: &ServerMetadata,
    ) -> Result<Url, Error> {
        let address = server.device_authorization_endpoint.as_ref();
        self.endpoint(issuer, address, CODE_ENDPOINT)
    }

    /// Asks for the code that the user enters.
    pub(super) fn request_code(
        &mut self,
        now: u64,
        found: &Found,
        server: &ServerMetadata,
        client: Client,
    ) -> Result<Action, Error> {
        let url = self.code_endpoint(&found.issuer, server)?;
        let credential = self.new_credential(found, server, client)?;
        let scope = credential.scopes.join(" ");
        let further = self.settings.parameters.iter();
        let further = further.filter(|(name, _)| !OWN.contains(&&**name));
        let mut parameters: Vec<_> = further
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        if !scope.is_empty() {
            parameters.push(("scope", &scope));
        }
        if let Some(resource) = &credential.resource {
            parameters.push(("resource", resource));
        }
        let request = form::post_to(url, &credential.client, &parameters);
        let request = self.with_assertion(now, &credential, request)?;
        self.step = Step::Code(credential);
        Ok(Action::Send(request))
    }

    /// Sends the user to the page with the code.
    pub(super) fn received_code(
        &mut self,
        now: u64,
        response: &Response<'_>,
        credential: Credential,
    ) -> Result<Action, Error> {
        let refused = tokens::check("the request for a code", response);
        refused.inspect_err(|error| self.note_refusal(error))?;
        let bad = |reason: &'static str| Error::BadCode {
            reason: reason.into(),
        };
        let codes: Codes = serde_json::from_slice(response.body)
            .map_err(|_| bad("the response cannot be read"))?;
        let is_secret = |code: &Secret| (1..=LONGEST_SECRET).contains(&code.expose().len());
        let code = codes.device_code.filter(is_secret);
        let code = code.ok_or_else(|| bad("the response has no code for the client"))?;
        let text = codes.user_code.filter(|text| can_be_entered(text));
        let text = text.ok_or_else(|| {
            bad("it is missing, too long, or has other characters than letters, digits and hyphens")
        })?;
        let page = codes.verification_uri.or(codes.verification_url);
        let page = page.and_then(|page| self.page(&page));
        let url =
            page.ok_or_else(|| bad("the address of its page is missing or must not be used"))?;
        let complete = codes.verification_uri_complete.as_str();
        // The user opens the page that is shown, or one of the same party.
        let complete = complete
            .and_then(|page| self.page(page))
            .filter(|page| page.origin() == url.origin());
        let host = |url: &Url| url.host_str().map(str::to_owned);
        let issuer = Url::parse(&credential.issuer).ok().as_ref().and_then(host);
        let provider = issuer.unwrap_or_else(|| shown(&credential.issuer));
        let other_host = host(&url).filter(|host| *host != provider);
        let code_for_user = UserCode {
            text,
            complete,
            provider,
            other_host,
        };
        let lifetime = tokens::seconds(&codes.expires_in).filter(|&it| it > 0);
        let until = now + lifetime.unwrap_or(super::PATIENCE).min(LONGEST_PATIENCE);
        let interval = tokens::seconds(&codes.interval).unwrap_or(INTERVAL);
        // A longer one means the same: nothing is asked before the end.
        let interval = interval.clamp(SHORTEST, LONGEST_PATIENCE);
        let mut polls = Polls {
            code,
            interval,
            pause: interval,
            next: now,
            failure: None,
        };
        polls.plan(now, until);
        self.awaiting = Some(Authorization {
            way: Way::Device(polls),
            credential,
            until,
        });
        Ok(Action::Open {
            url,
            code: Some(code_for_user),
            until,
        })
    }

    /// The address of a page for the user, if it may be opened.
    fn page(&self, address: &str) -> Option<Url> {
        let url = Url::parse(address).ok()?;
        let is_usable = url.as_str().len() <= LONGEST_ADDRESS && self.reach.permits(&url);
        is_usable.then_some(url)
    }

    /// Asks for tokens, in case that the user has entered the code.
    pub(super) fn poll(&mut self, now: u64) -> Result<Action, Error> {
        let Some(Authorization {
            way: Way::Device(polls),
            credential,
            ..
        }) = &self.awaiting
        else {
            return Ok(Action::Wait);
        };
        let parameters = [("grant_type", GRANT), ("device_code", polls.code.expose())];
        let mut parameters = parameters.to_vec();
        if let Some(resource) = &credential.resource {
            parameters.push(("resource", resource));
        }
        let request = self.to_token_endpoint(now, credential, &parameters);
        let request = request.inspect_err(|_| self.awaiting = None)?;
        self.step = Step::Poll;
        Ok(self.send_proven(request))
    }

    pub(super) fn polled(&mut self, now: u64, response: &Response<'_>) -> Result<Action, Error> {
        let Some(Authorization {
            way: Way::Device(mut polls),
            credential,
            until,
        }) = self.awaiting.take()
        else {
            return Ok(Action::Wait);
        };
        let refusal = match tokens::read(now, response, None, &credential) {
            // Tokens that arrive late are used as well: the user has finished in time.
            Ok(issued) => return Ok(self.keep(credential, issued)),
            Err(error) => error,
        };
        let code = match &refusal {
            Error::Refused { code, .. } => code.clone(),
            _ => String::new(),
        };
        let refusal = tokens::without_secret(refusal, response, &polls.code);
        match &*code {
            "authorization_pending" => polls.wait(0),
            "slow_down" => polls.wait(SLOW_DOWN),
            "access_denied" => {
                let said = refusal.said().map(str::to_owned);
                return Err(Error::Denied { said });
            }
            "expired_token" => return Err(Error::Expired),
            _ if refusal.is_temporary() => polls.back_off(refusal),
            _ => {
                self.note_refusal(&refusal);
                return Err(refusal);
            }
        }
        polls.plan(now, until);
        self.awaiting = Some(Authorization {
            way: Way::Device(polls),
            credential,
            until,
        });
        Ok(Action::Wait)
    }

    /// There was no response: the next request is sent later.
    pub(super) fn poll_failed(&mut self, now: u64, reason: String) -> Action {
        if let Some(Authorization {
            way: Way::Device(polls),
            until,
            ..
        }) = &mut self.awaiting
        {
            let document = "token".into();
            polls.back_off(Error::Unreachable { document, reason });
            polls.plan(now, *until);
        }
        Action::Wait
    }
}

impl Polls {
    /// The authorization server has answered that the user has not finished, and wants the pause to be this much longer.
    fn wait(&mut self, longer: u64) {
        self.interval = (self.interval + longer).min(LONGEST_PATIENCE);
        self.pause = self.interval;
        self.failure = None;
    }

    fn back_off(&mut self, failure: Error) {
        self.pause = (self.pause * 2).min(LONGEST.max(self.interval));
        self.failure = Some(failure);
    }

    /// Sets the time of the next request. One that would come too late is brought forward, if that is not too early.
    fn plan(&mut self, now: u64, until: u64) {
        let last = until.saturating_sub(MARGIN);
        self.next = after(now, self.pause);
        if self.next >= until && after(now, self.interval) <= last {
            self.next = last;
        }
    }

    /// Follows a clock that was set back.
    pub(super) fn follow(&mut self, now: u64) {
        self.next = self.next.min(after(now, self.pause));
    }

    /// The reason why the time of the user has passed.
    pub(super) fn end(self) -> Error {
        self.failure.unwrap_or(Error::Expired)
    }
}

/// The time after a pause. The present second may have passed almost.
fn after(now: u64, pause: u64) -> u64 {
    now + pause + 1
}

/// Tests if a user can read and enter a code. It is shown on terminals, too.
fn can_be_entered(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    (1..=LONGEST_CODE).contains(&text.len()) && text.bytes().all(is_plain)
}
