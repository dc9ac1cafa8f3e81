//! The sign-in to one server, as a state machine.

mod authorization;
mod device;
mod discovery;
mod registration;
mod tokens;
mod unattended;

use serde::{Deserialize, Serialize};
use url::Url;

use crate::{
    Challenge, Credential, Error, Grant, ProofKey, Secret, Settings, Unsigned,
    address::Reach,
    metadata::{ResourceMetadata, ServerMetadata},
};

/// The sign-in to one server, for one party.
///
/// The caller passes in the time and [`Event`]s, and carries out the [`Action`]s. There is at most one request in
/// flight; see the [table of states](crate#states).
#[derive(Debug)]
pub struct Machine {
    /// The server that tokens are for.
    server: Url,
    settings: Settings,
    /// The hosts that the server may refer to.
    reach: Reach,
    credential: Option<Credential>,
    /// The last challenge of the server, which the next sign-in starts with.
    challenge: Challenge,
    /// The challenge for more scopes that was not met yet.
    step_up: Option<Challenge>,
    step: Step,
    /// The request in flight, if it has a proof: it is sent again with the nonce that its receiver demands.
    proven: Option<Request>,
    /// The nonce that the authorization server has sent last.
    nonce: Option<String>,
    /// The authorization request that the user has to finish. Tokens can be renewed meanwhile.
    awaiting: Option<Authorization>,
    /// The authorizations in a row for scopes that were requested before.
    step_ups: u32,
    /// The tokens in a row that were issued because the server refused one, and have not helped so far.
    useless: u32,
    /// The credential lost its tokens for this reason.
    signed_out: Option<Error>,
}

/// The most authorizations in a row for scopes that were requested before.
const STEP_UPS: u32 = 1;

/// The most tokens in a row that are issued because the server refuses them.
const USELESS: u32 = 2;

/// After that, a refused token is renewed once it has this age, in seconds.
const REST: u64 = 60;

/// The longest nonce, in bytes.
const LONGEST_NONCE: usize = 1024;

/// The time that a user has to finish in the browser, in seconds, unless the authorization server says otherwise.
const PATIENCE: u64 = 600;

/// Something that happened.
#[derive(Debug)]
pub enum Event<'a> {
    /// The server refused a request for the lack of a valid token, or of scopes.
    Refused(Challenge),
    /// The server accepted a request that it had refused before.
    Accepted,
    /// A user wants to sign in.
    SignIn(SignIn),
    /// It is time to renew the tokens.
    Renew,
    /// A user wants to sign out.
    SignOut,
    /// The response to the request in flight.
    Response(Response<'a>),
    /// The request in flight got no response, for this reason.
    Failed(String),
    /// A new key.
    Key(ProofKey),
    /// The assertion of the client, or the ID token for its identity provider.
    Assertion(Secret),
    /// The request in flight cannot be sent, or the assertion cannot be read, for this reason.
    Unable(Error),
    /// The browser was redirected to this URL, or the user pasted it.
    Callback(&'a str),
    /// The credential was saved.
    Saved,
    /// The credential as it is stored, which another process may have changed.
    Loaded(Option<Box<Credential>>),
    /// Instead of loading the credential, the caller had another process renew and save it.
    Renewed(Renewed),
    /// Time has passed.
    Tick,
    /// The user cancelled the sign-in.
    Cancel,
}

/// The start of a sign-in by a user.
#[derive(Debug)]
pub struct SignIn {
    /// The address that the browser is redirected to at the end.
    pub redirect_uri: String,
    /// Unpredictable bytes.
    pub random: [u8; 64],
}

/// The outcome of a renewal by another process.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct Renewed {
    /// The credential as it is now. It contains secrets.
    pub credential: Option<Box<Credential>>,
    /// The reason why there are no new tokens.
    pub outcome: Result<(), Error>,
    /// The reason why the credential is not saved as it is.
    pub unsaved: Option<String>,
}

/// A response over HTTP.
#[derive(Debug)]
pub struct Response<'a> {
    /// The status code.
    pub status: u16,
    /// The challenge in its headers.
    pub challenge: Challenge,
    /// The header `DPoP-Nonce`.
    pub nonce: Option<String>,
    /// The body, which the caller has bounded.
    pub body: &'a [u8],
}

/// Something to do.
#[derive(Debug, PartialEq, Eq)]
pub enum Action {
    /// Nothing, until the next event.
    Wait,
    /// Send a request, and report its response.
    Send(Request),
    /// Let the user open this URL, and report the one that the browser is redirected to.
    Open {
        /// The URL, which is not secret.
        url: Url,
        /// The code that the user enters there. The browser is not redirected then: report [`Event::Tick`] in time.
        code: Option<UserCode>,
        /// The time at which the sign-in ends without a result, in seconds since 1970.
        until: u64,
    },
    /// Save [`Machine::credential`], and report [`Event::Saved`]. The former credential must stay valid until then.
    Save,
    /// Make a key on the curve P-256, and report [`Event::Key`].
    MakeKey,
    /// Read the assertion again, and report [`Event::Assertion`] or [`Event::Unable`].
    ReadAssertion,
    /// Load the credential again, and report [`Event::Loaded`]. If its tokens are to be renewed, another process may do
    /// that: report [`Event::Renewed`] then.
    Load,
    /// The callback was not meant for this sign-in, which continues.
    Ignore(Error),
    /// The work has ended.
    Done(Result<(), Error>),
}

/// The code that a user enters on the page of the authorization server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserCode {
    /// The code: letters, digits and hyphens.
    pub text: String,
    /// The address of the page that knows the code already. The user checks that it shows the same code.
    pub complete: Option<Url>,
    /// The host of the authorization server. The page has to name the same provider: a hostile server can pass on a code
    /// of another one, and so get a token of it.
    pub provider: String,
    /// The host of the page, if it is another one.
    pub other_host: Option<String>,
}

/// A request over HTTP. Redirects are not followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The address.
    pub url: Url,
    /// The value of the `Authorization` header.
    pub authorization: Option<Secret>,
    /// The body; `None` for a GET.
    pub body: Option<Body>,
    /// The proof of the client's key, to be signed and sent in the header `DPoP`.
    pub proof: Option<Box<Unsigned>>,
    /// The token with which the client authenticates itself, to be signed and passed to [`Request::authenticate`].
    pub assertion: Option<Box<Unsigned>>,
}

/// The body of a POST.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    /// `application/x-www-form-urlencoded`
    Form(Secret),
    /// `application/json`
    Json(Secret),
}

/// The state, as users see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// Nothing is known: the server may need no sign-in.
    Unknown,
    /// The server needs a sign-in.
    NeedsSignIn,
    /// The metadata of the server and of the authorization server are fetched.
    Discovering,
    /// The client registers itself, or asks for the code that the user enters.
    Registering,
    /// The user has to finish in the browser.
    AwaitingUser {
        /// The time at which the sign-in ends without a result, in seconds since 1970.
        until: u64,
    },
    /// The code of the browser, or the client's own secret, is exchanged for tokens.
    Exchanging,
    /// There is a token.
    SignedIn {
        /// The time at which it expires, in seconds since 1970, if it is known.
        expires: Option<u64>,
    },
    /// The tokens are renewed.
    Refreshing,
    /// There was a token, which is no longer valid.
    SignedOut {
        /// The cause.
        reason: Error,
    },
}

/// The current work.
#[derive(Debug)]
enum Step {
    Rest,
    /// The server is asked for its challenge.
    Probe(Goal),
    /// The metadata of the server is fetched from the first address; the others are next.
    Resource {
        left: Vec<Url>,
        goal: Goal,
    },
    /// The metadata of the authorization server is fetched.
    Server {
        left: Vec<Url>,
        found: Found,
        goal: Goal,
    },
    /// A key is made that tokens will be bound to.
    Key {
        found: Found,
        server: ServerMetadata,
        goal: Goal,
    },
    Registration(Registration),
    /// The client asks for the code that the user enters.
    Code(Credential),
    /// The client asks for tokens, in case that the user has entered the code.
    Poll,
    /// The assertion is read.
    Assertion(Credential),
    /// The identity provider exchanges an ID token for an assertion.
    Vouching(Credential),
    Exchange(Credential),
    /// The stored credential is loaded before the refresh token is used: another process may have used it.
    Reload {
        retried: bool,
    },
    /// `retried`: the refresh token was refused once.
    Refresh {
        retried: bool,
    },
    Revocation {
        left: Vec<Secret>,
    },
    Save(Credential),
    /// The tokens are saved as gone.
    Forget(Result<(), Error>),
}

/// A registration in flight.
#[derive(Debug)]
struct Registration {
    found: Found,
    server: ServerMetadata,
    sign_in: Pending,
    /// It names the scopes that will be asked for.
    names_scopes: bool,
}

/// The purpose of a discovery.
#[derive(Debug)]
enum Goal {
    /// The user signs in.
    User(Pending),
    /// The client signs in for itself.
    Client,
    /// The server refused a token: if its issuer is still the same, the token is renewed.
    Renewal,
}

/// A sign-in that waits for the discovery.
#[derive(Debug)]
struct Pending {
    redirect_uri: String,
    verifier: Secret,
    state: Secret,
}

/// The result of the first part of the discovery.
#[derive(Debug)]
struct Found {
    issuer: String,
    resource: Option<String>,
    scopes: Option<Vec<String>>,
    /// The server publishes no metadata, as in 2025-03-26: the authorization server may have none, either.
    is_old: bool,
    /// The server demands tokens that are bound to a key.
    demands_proof: bool,
    /// That key.
    proof_key: Option<ProofKey>,
}

/// An authorization request that the user has to finish.
#[derive(Debug)]
struct Authorization {
    way: Way,
    /// The sign-in without its tokens.
    credential: Credential,
    until: u64,
}

/// The way from the user back to the client.
#[derive(Debug)]
enum Way {
    /// The browser is redirected.
    Browser {
        sign_in: Pending,
        /// The response has to name the issuer.
        names_issuer: bool,
    },
    /// The user enters a code, and the client asks for tokens until then.
    Device(device::Polls),
}

impl Machine {
    /// The sign-in to the server at this URL, with the credential that was saved for it.
    pub fn new(server: Url, settings: Settings, credential: Option<Credential>) -> Self {
        let reach = Reach::of(&server);
        let mut machine = Self {
            server,
            settings,
            reach,
            credential: None,
            challenge: Challenge::default(),
            step_up: None,
            step: Step::Rest,
            proven: None,
            nonce: None,
            awaiting: None,
            step_ups: 0,
            useless: 0,
            signed_out: None,
        };
        machine.adopt(credential);
        machine
    }

    /// Takes a stored credential. One for another server, whose URL was configured before, is not used.
    fn adopt(&mut self, credential: Option<Credential>) {
        self.credential = credential.filter(|known| known.server == self.server.as_str());
        if let Some(known) = &mut self.credential {
            if let Some(client) = &self.settings.client {
                known.follow(client);
            }
            let reach = known.reach;
            self.widen(reach);
        }
    }

    /// The credential to save and to use.
    pub fn credential(&self) -> Option<&Credential> {
        match &self.step {
            Step::Save(credential) => Some(credential),
            _ => self.credential.as_ref(),
        }
    }

    /// Lets the server refer to hosts of this kind: its address turned out to be one of them.
    pub fn widen(&mut self, reach: Reach) {
        if reach.includes(self.reach) {
            self.reach = reach;
        }
    }

    /// Forgets the registration of the client, which the authorization server no longer accepts.
    fn forget_client(&mut self) {
        if let Some(known) = &mut self.credential {
            known.client.secret_expires = Some(0);
        }
    }

    /// Tests if [`Event::Accepted`] would make a difference.
    pub fn is_unproven(&self) -> bool {
        self.useless > 0 || (self.signed_out.is_some() && self.tokens().is_some())
    }

    /// The hosts that requests may be sent to.
    pub fn reach(&self) -> Reach {
        self.reach
    }

    /// The token for requests. There is none for a server that is not reached over TLS.
    pub fn token(&self) -> Option<&Secret> {
        if !self.reach.permits(&self.server) {
            return None;
        }
        let tokens = self.credential.as_ref()?.tokens.as_ref()?;
        Some(&tokens.access)
    }

    /// The key that the token is bound to. Each request with the token needs a proof.
    pub fn proof_key(&self) -> Option<&ProofKey> {
        let credential = self.credential.as_ref()?;
        let is_bound = credential.tokens.as_ref()?.is_bound;
        credential.proof_key.as_ref().filter(|_| is_bound)
    }

    /// The state, as users see it.
    pub fn state(&self) -> State {
        match &self.step {
            Step::Probe(_) | Step::Resource { .. } | Step::Server { .. } | Step::Key { .. } => {
                State::Discovering
            }
            Step::Registration(_) | Step::Code(_) => State::Registering,
            Step::Assertion(_) | Step::Vouching(_) | Step::Exchange(_) | Step::Save(_) => {
                State::Exchanging
            }
            Step::Refresh { .. } | Step::Reload { .. } => State::Refreshing,
            Step::Rest | Step::Poll | Step::Revocation { .. } | Step::Forget(_) => self.resting(),
        }
    }

    /// The time at which [`Event::Tick`] is due, in seconds since 1970.
    pub fn tick_at(&self) -> Option<u64> {
        let awaited = self.awaiting.as_ref().filter(|_| self.is_at_rest())?;
        Some(match &awaited.way {
            Way::Browser { .. } => awaited.until,
            Way::Device(polls) => awaited.until.min(polls.next),
        })
    }

    /// Tests if the present work must not be interrupted: tokens could be lost.
    pub fn is_committed(&self) -> bool {
        match &self.step {
            Step::Rest
            | Step::Probe(_)
            | Step::Resource { .. }
            | Step::Server { .. }
            | Step::Key { .. }
            | Step::Registration(_)
            | Step::Code(_)
            // Tokens of a sign-in that ends early are of no use.
            | Step::Poll
            | Step::Assertion(_)
            | Step::Vouching(_) => false,
            Step::Exchange(_)
            | Step::Reload { .. }
            | Step::Refresh { .. }
            | Step::Revocation { .. }
            | Step::Save(_)
            | Step::Forget(_) => true,
        }
    }

    fn resting(&self) -> State {
        if let Some(authorization) = &self.awaiting {
            return State::AwaitingUser {
                until: authorization.until,
            };
        }
        if let Some(reason) = &self.signed_out {
            let reason = reason.clone();
            return State::SignedOut { reason };
        }
        let tokens = self
            .credential
            .as_ref()
            .and_then(|known| known.tokens.as_ref());
        match tokens {
            Some(tokens) => State::SignedIn {
                expires: tokens.expires,
            },
            None if self.challenge == Challenge::default() && self.step_up.is_none() => {
                State::Unknown
            }
            None => State::NeedsSignIn,
        }
    }

    /// Handles an event at this time, in seconds since 1970. Events that do not fit the state are ignored.
    pub fn handle(&mut self, now: u64, event: Event<'_>) -> Action {
        let outcome = match event {
            Event::Refused(challenge) => self.refused(now, challenge),
            Event::Accepted => {
                self.useless = 0;
                if self.tokens().is_some() {
                    self.signed_out = None;
                }
                Ok(Action::Wait)
            }
            Event::SignIn(start) => self.sign_in(start),
            Event::Renew => self.renew(),
            Event::SignOut => Ok(self.sign_out(now)),
            Event::Response(response) => self.response(now, &response),
            Event::Failed(reason) => self.failed(now, reason),
            Event::Key(key) => self.with_key(now, key),
            Event::Assertion(assertion) => self.asserted(now, &assertion),
            Event::Unable(error) => Ok(self.unable(now, error)),
            Event::Callback(url) => return self.callback(now, url),
            Event::Saved => Ok(self.saved()),
            Event::Loaded(credential) => self.loaded(now, credential.map(|credential| *credential)),
            Event::Renewed(renewed) => Ok(self.renewed_elsewhere(renewed)),
            Event::Tick => self.tick(now),
            Event::Cancel => self.cancel(),
        };
        outcome.unwrap_or_else(|error| self.end(Err(error)))
    }

    fn is_at_rest(&self) -> bool {
        matches!(self.step, Step::Rest)
    }

    fn take_step(&mut self) -> Step {
        std::mem::replace(&mut self.step, Step::Rest)
    }

    fn end(&mut self, outcome: Result<(), Error>) -> Action {
        self.step = Step::Rest;
        self.proven = None;
        Action::Done(outcome)
    }

    /// The server refused a request. Only the user can sign in, but a token can be renewed, and the client sign itself in.
    fn refused(&mut self, now: u64, challenge: Challenge) -> Result<Action, Error> {
        let needs_scope = challenge.needs_scope();
        if needs_scope {
            self.step_up = Some(challenge);
        } else {
            self.challenge = challenge;
        }
        if !self.is_at_rest() {
            return Ok(Action::Wait);
        }
        // A token that is not bound to a key cannot be renewed as one that is.
        let demands_proof = self.challenge.demands_proof;
        let can_renew = |tokens: &crate::Tokens| {
            tokens.refresh.is_some() && (tokens.is_bound || !demands_proof)
        };
        let has_refresh = self.tokens().is_some_and(can_renew);
        let goal = match self.settings.grant {
            Grant::ClientCredentials | Grant::JwtBearer => Goal::Client,
            // New tokens have the same scopes.
            Grant::AuthorizationCode | Grant::DeviceCode if needs_scope => {
                if self.asks_again() && self.step_ups >= STEP_UPS {
                    return Err(self.too_many_step_ups());
                }
                return Ok(Action::Wait);
            }
            Grant::AuthorizationCode | Grant::DeviceCode if has_refresh => Goal::Renewal,
            Grant::AuthorizationCode | Grant::DeviceCode => {
                if self.tokens().is_some() {
                    // It is kept, in case that the server is at fault and accepts it again.
                    self.signed_out = Some(Error::SignedOut { said: None });
                }
                return Ok(Action::Wait);
            }
        };
        let is_new = |tokens: &crate::Tokens| now < tokens.issued.saturating_add(REST);
        if self.useless >= USELESS && self.tokens().is_some_and(is_new) {
            return Err(Error::StillRefused);
        }
        self.useless += 1;
        Ok(self.discover(goal))
    }

    fn too_many_step_ups(&self) -> Error {
        let scopes = self.step_up.as_ref().and_then(|it| it.scope.clone());
        Error::TooManyStepUps {
            scopes: scopes.unwrap_or_default(),
        }
    }

    /// Tests if the challenge names only scopes that were requested before.
    fn asks_again(&self) -> bool {
        let known = self.credential.as_ref().map(|known| &known.scopes);
        let step_up = self.step_up.as_ref();
        let asked = step_up.and_then(|challenge| challenge.scope.as_deref());
        let mut asked = asked.unwrap_or_default().split_ascii_whitespace();
        asked.all(|scope| known.is_some_and(|known| known.iter().any(|known| known == scope)))
    }

    fn tokens(&self) -> Option<&crate::Tokens> {
        self.credential.as_ref()?.tokens.as_ref()
    }

    /// Starts a sign-in by a user. One in progress is replaced.
    fn sign_in(&mut self, start: SignIn) -> Result<Action, Error> {
        if self.is_committed() {
            return Ok(Action::Wait);
        }
        self.awaiting = None;
        self.proven = None;
        if let Some(step_up) = &self.step_up {
            self.challenge = step_up.clone();
            if !self.asks_again() {
                self.step_ups = 0;
            } else if self.step_ups >= STEP_UPS {
                // A user who tries again all the same is let through.
                self.step_ups = 0;
                return Err(self.too_many_step_ups());
            } else {
                self.step_ups += 1;
            }
        }
        let pending = Pending::new(start);
        Ok(match self.settings.grant {
            Grant::AuthorizationCode | Grant::DeviceCode => self.discover(Goal::User(pending)),
            Grant::ClientCredentials | Grant::JwtBearer => self.discover(Goal::Client),
        })
    }

    fn response(&mut self, now: u64, response: &Response<'_>) -> Result<Action, Error> {
        if let Some(request) = self.proven.take()
            && let Some(nonce) = response
                .nonce
                .as_deref()
                .filter(|it| it.len() <= LONGEST_NONCE)
        {
            self.nonce = Some(nonce.to_owned());
            if crate::tokens::demands_nonce(response) {
                return Ok(Action::Send(request.with_nonce(nonce)));
            }
        }
        match self.take_step() {
            Step::Probe(goal) => Ok(self.probed(response, goal)),
            Step::Resource { left, goal } => self.found_resource(response, left, goal),
            Step::Server { left, found, goal } => {
                self.found_server(now, response, left, found, goal)
            }
            Step::Registration(registration) => self.registered(now, response, registration),
            Step::Code(credential) => self.received_code(now, response, credential),
            Step::Poll => self.polled(now, response),
            Step::Vouching(credential) => self.vouched(now, response, credential),
            Step::Exchange(credential) => self.exchanged(now, response, credential),
            Step::Refresh { retried } => self.refreshed(now, response, retried),
            Step::Revocation { left } => Ok(self.revoke(now, left)),
            // No request is in flight.
            other => {
                self.step = other;
                Ok(Action::Wait)
            }
        }
    }

    /// The request in flight, or the loading of the credential, failed.
    fn failed(&mut self, now: u64, reason: String) -> Result<Action, Error> {
        self.proven = None;
        let document = match self.take_step() {
            // The well-known addresses work without a challenge.
            Step::Probe(goal) => return Ok(self.fetch_resource(goal)),
            // The issuer of the token can still renew it.
            Step::Resource {
                goal: Goal::Renewal,
                ..
            } => return self.reload(),
            Step::Resource { .. } => "metadata of the server",
            Step::Server { .. } => "metadata of the authorization server",
            Step::Registration(_) => "registration of the client",
            Step::Code(_) => "code for the user",
            // The user may finish all the same.
            Step::Poll => return Ok(self.poll_failed(now, reason)),
            Step::Vouching(_) => "assertion of the identity provider",
            Step::Exchange(_) | Step::Refresh { .. } => "token",
            Step::Reload { .. } => "stored sign-in",
            Step::Revocation { left } => return Ok(self.revoke(now, left)),
            other => {
                self.step = other;
                return Ok(Action::Wait);
            }
        };
        let document = document.into();
        Err(Error::Unreachable { document, reason })
    }

    /// The request in flight cannot be sent.
    fn unable(&mut self, now: u64, error: Error) -> Action {
        self.proven = None;
        match self.take_step() {
            Step::Revocation { left } => self.revoke(now, left),
            Step::Poll => {
                self.awaiting = None;
                self.end(Err(error))
            }
            Step::Key { .. }
            | Step::Code(_)
            | Step::Assertion(_)
            | Step::Exchange(_)
            | Step::Refresh { .. } => self.end(Err(error)),
            // Other requests have nothing that could be missing.
            other => {
                self.step = other;
                Action::Wait
            }
        }
    }

    fn saved(&mut self) -> Action {
        match self.take_step() {
            Step::Save(credential) => {
                self.credential = Some(credential);
                self.signed_out = None;
                self.end(Ok(()))
            }
            Step::Forget(outcome) => self.end(outcome),
            other => {
                self.step = other;
                Action::Wait
            }
        }
    }

    fn tick(&mut self, now: u64) -> Result<Action, Error> {
        if let Some(Way::Device(polls)) = self.awaiting.as_mut().map(|it| &mut it.way) {
            polls.follow(now);
        }
        if self.tick_at().is_none_or(|at| now < at) {
            return Ok(Action::Wait);
        }
        match self.awaiting.take_if(|it| now >= it.until) {
            Some(Authorization {
                way: Way::Device(polls),
                ..
            }) => Err(polls.end()),
            Some(_) => Err(Error::Expired),
            None => self.poll(now),
        }
    }

    fn cancel(&mut self) -> Result<Action, Error> {
        // Committed work finishes in any case: the tokens that it produces must not be lost.
        if self.is_committed() {
            return Ok(Action::Wait);
        }
        match self.awaiting.take() {
            None if self.is_at_rest() => Ok(Action::Wait),
            _ => Err(Error::Cancelled),
        }
    }
}

impl Found {
    fn new(metadata: ResourceMetadata, issuer: String) -> Self {
        Self {
            issuer,
            resource: Some(metadata.resource),
            scopes: metadata.scopes_supported,
            is_old: false,
            demands_proof: metadata.dpop_bound_access_tokens_required,
            proof_key: None,
        }
    }
}
