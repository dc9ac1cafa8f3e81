//! The authorization request, and the response that arrives through the browser.

use subtle::ConstantTimeEq as _;
use url::Url;

use super::{Action, Authorization, Machine, Pending, Way};
use crate::{Credential, Error, pkce, tokens::excerpt};

/// The parameters of the response that matter.
#[derive(Default)]
struct Callback {
    code: Option<String>,
    state: Option<String>,
    issuer: Option<String>,
    error: Option<String>,
    description: Option<String>,
}

/// Adds the parameters of the authorization request to the address of the endpoint, and the further ones of the user.
/// Parameters that the address has already are replaced.
pub(super) fn complete(
    url: &mut Url,
    credential: &Credential,
    sign_in: &Pending,
    further: &[(String, String)],
) {
    let challenge = pkce::challenge(sign_in.verifier.expose());
    let scope = credential.scopes.join(" ");
    let mut parameters = vec![
        ("response_type", "code"),
        ("client_id", &credential.client.id),
        ("redirect_uri", &sign_in.redirect_uri),
        ("state", sign_in.state.expose()),
        ("code_challenge", &challenge),
        ("code_challenge_method", "S256"),
    ];
    if !scope.is_empty() {
        parameters.push(("scope", &scope));
    }
    // The address may name a resource, even if the parameter is not to be sent.
    let replaces =
        |name: &str| name == "resource" || parameters.iter().any(|(replaced, _)| *replaced == name);
    let is_further = |name: &str| further.iter().any(|(further, _)| further == name);
    let kept: Vec<(String, String)> = url
        .query_pairs()
        .filter(|(name, _)| !replaces(name) && !is_further(name))
        .map(|(name, value)| (name.into_owned(), value.into_owned()))
        .collect();
    let further = further.iter().filter(|(name, _)| !replaces(name));
    let further: Vec<_> = further.collect();
    if let Some(resource) = &credential.resource {
        parameters.push(("resource", resource));
    }
    url.query_pairs_mut()
        .clear()
        .extend_pairs(kept)
        .extend_pairs(further)
        .extend_pairs(parameters);
    url.set_fragment(None);
}

impl Machine {
    /// Handles the URL that the browser was redirected to. A forged one must not end the sign-in.
    pub(super) fn callback(&mut self, now: u64, url: &str) -> Action {
        let awaited = self.awaiting.as_ref().filter(|_| !self.is_committed());
        let Some(Way::Browser { sign_in, .. }) = awaited.map(|it| &it.way) else {
            return Action::Ignore(Error::WrongState);
        };
        let callback = Callback::read(url);
        let state = callback.state.as_deref().unwrap_or_default();
        let expected = sign_in.state.expose();
        if !bool::from(state.as_bytes().ct_eq(expected.as_bytes())) {
            return Action::Ignore(Error::WrongState);
        }
        let Some(Authorization {
            way: Way::Browser {
                sign_in,
                names_issuer,
            },
            credential,
            ..
        }) = self.awaiting.take()
        else {
            return Action::Wait;
        };
        match callback.code(&credential.issuer, names_issuer) {
            Ok(code) => self.exchange(now, &sign_in, credential, &code),
            Err(error) => self.end(Err(error)),
        }
    }

    fn exchange(
        &mut self,
        now: u64,
        sign_in: &Pending,
        credential: Credential,
        code: &str,
    ) -> Action {
        let mut parameters = vec![
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", &sign_in.redirect_uri),
            ("code_verifier", sign_in.verifier.expose()),
        ];
        if let Some(resource) = &credential.resource {
            parameters.push(("resource", resource));
        }
        let request = self.to_token_endpoint(now, &credential, &parameters);
        match request {
            Ok(request) => self.send_exchange(credential, request),
            Err(error) => self.end(Err(error)),
        }
    }
}

impl Callback {
    /// The code of the response, if it is from the authorization server that was asked.
    fn code(self, asked: &str, names_issuer: bool) -> Result<String, Error> {
        let is_right = match &self.issuer {
            // Compared as text: a normalised comparison would accept other issuers.
            Some(issuer) => issuer == asked,
            None => !names_issuer,
        };
        // Nothing of a response from somewhere else is shown.
        if !is_right {
            return Err(Error::WrongIssuer {
                expected: asked.to_owned(),
            });
        }
        if let Some(code) = self.error {
            let said = self.description.as_deref().and_then(excerpt);
            return Err(match &*code {
                "access_denied" => Error::Denied { said },
                _ => Error::Refused {
                    request: "the sign-in".into(),
                    code,
                    status: None,
                    said,
                },
            });
        }
        self.code.ok_or(Error::NoCode)
    }

    /// Reads the query of a URL, or a query alone. A parameter that is repeated counts as forged.
    fn read(text: &str) -> Self {
        let text = text.trim();
        let text = text.split('#').next().unwrap_or_default();
        let query = text.split_once('?').map_or(text, |(_, query)| query);
        let mut read = Self::default();
        for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
            let field = match &*name {
                "code" => &mut read.code,
                "state" => &mut read.state,
                "iss" => &mut read.issuer,
                "error" => &mut read.error,
                "error_description" => &mut read.description,
                _ => continue,
            };
            if field.is_some() {
                return Self::default();
            }
            *field = Some(value.into_owned());
        }
        read
    }
}
