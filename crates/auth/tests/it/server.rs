//! An authorization server in memory, and a driver that carries out the actions of the machine.

use std::collections::{BTreeMap, BTreeSet};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use switchboard_auth::{
    Action, Body, Challenge, Credential, Error, Event, Machine, ProofKey, Request, Response,
    Secret, Settings, SignIn, Unsigned,
};
use url::{Url, form_urlencoded};

pub(crate) const SERVER: &str = "https://mcp.example/mcp";
pub(crate) const ISSUER: &str = "https://auth.example/tenant";
pub(crate) const REDIRECT: &str = "http://127.0.0.1:4321/callback";
pub(crate) const NOW: u64 = 1_800_000_000;

/// A response of the server: the status and the body.
pub(crate) type Answer = (u16, String);

/// An honest authorization server with one MCP server. A test changes what it publishes.
pub(crate) struct Place {
    /// The documents, by address.
    pub(crate) documents: BTreeMap<String, Value>,
    /// The scope in the challenge of the MCP server.
    pub(crate) challenge: Challenge,
    /// The body of successful token responses.
    pub(crate) tokens: Value,
    /// Fails requests to the token endpoint with this error, as often as this.
    pub(crate) refusals: Vec<&'static str>,
    /// The authorization server refuses registrations that name scopes.
    pub(crate) refuses_scopes: bool,
    /// The registration that is issued.
    pub(crate) registration: Answer,
    /// The requests so far, with the parameters of their forms.
    pub(crate) requests: Vec<(String, BTreeMap<String, String>)>,
    /// The `Authorization` headers so far.
    pub(crate) headers: Vec<String>,
    /// The refresh tokens that were used.
    pub(crate) used: BTreeSet<String>,
    issued: u64,
    /// The status of documents that are not there.
    pub(crate) missing: u16,
    /// The response of the identity provider, if there is one.
    pub(crate) vouched: Option<(u16, Value)>,
    /// The nonce that proofs have to contain.
    pub(crate) nonce: Option<&'static str>,
    /// The header and the claims of the proofs so far.
    pub(crate) proofs: Vec<(Value, Value)>,
    /// The home page, in place of these documents.
    pub(crate) pages: Vec<&'static str>,
    /// The response to the request for a code that the user enters.
    pub(crate) codes: (u16, Value),
}

impl Place {
    pub(crate) fn new() -> Self {
        let documents = [
            (
                "https://mcp.example/.well-known/oauth-protected-resource/mcp",
                json!({ "resource": SERVER, "authorization_servers": [ISSUER] }),
            ),
            (
                "https://auth.example/.well-known/oauth-authorization-server/tenant",
                json!({
                    "issuer": ISSUER,
                    "authorization_endpoint": "https://auth.example/authorize?prompt=consent",
                    "device_authorization_endpoint": "https://auth.example/device",
                    "token_endpoint": "https://auth.example/token",
                    "registration_endpoint": "https://auth.example/register",
                    "revocation_endpoint": "https://auth.example/revoke",
                    "code_challenge_methods_supported": ["plain", "S256"],
                    "token_endpoint_auth_methods_supported": ["none", "client_secret_basic"],
                    "authorization_response_iss_parameter_supported": true,
                }),
            ),
        ];
        Self {
            documents: documents
                .map(|(at, document)| (at.to_owned(), document))
                .into(),
            challenge: Challenge {
                resource_metadata: None,
                demands_proof: false,
                scope: None,
                error: Some("invalid_token".to_owned()),
            },
            tokens: json!({ "token_type": "bearer", "expires_in": 3600 }),
            refusals: Vec::new(),
            refuses_scopes: false,
            registration: (201, json!({ "client_id": "registered" }).to_string()),
            requests: Vec::new(),
            headers: Vec::new(),
            used: BTreeSet::new(),
            issued: 0,
            missing: 404,
            vouched: None,
            nonce: None,
            proofs: Vec::new(),
            pages: Vec::new(),
            codes: (200, codes()),
        }
    }

    /// The metadata of the authorization server.
    pub(crate) fn server(&mut self) -> &mut Value {
        let address = "https://auth.example/.well-known/oauth-authorization-server/tenant";
        self.documents.get_mut(address).unwrap()
    }

    /// The metadata of the MCP server.
    pub(crate) fn resource(&mut self) -> &mut Value {
        let address = "https://mcp.example/.well-known/oauth-protected-resource/mcp";
        self.documents.get_mut(address).unwrap()
    }

    pub(crate) fn answer(&mut self, request: &Request) -> Answer {
        let address = request.url.as_str();
        let form = match &request.body {
            Some(Body::Form(form)) => form_urlencoded::parse(form.expose().as_bytes())
                .map(|(name, value)| (name.into_owned(), value.into_owned()))
                .collect(),
            Some(Body::Json(text)) => [("json".to_owned(), text.expose().to_owned())].into(),
            None => BTreeMap::new(),
        };
        self.requests.push((address.to_owned(), form.clone()));
        let header = request.authorization.as_ref();
        self.headers
            .extend(header.map(|header| header.expose().to_owned()));
        match address {
            SERVER => (401, String::new()),
            "https://auth.example/register"
                if self.refuses_scopes && form["json"].contains("scope") =>
            {
                let refusal = json!({ "error": "invalid_client_metadata" });
                (400, refusal.to_string())
            }
            "https://auth.example/register" => self.registration.clone(),
            "https://10.0.0.1/token" => {
                let (status, body) = self.vouched.clone().unwrap();
                (status, body.to_string())
            }
            "https://auth.example/device" => (self.codes.0, self.codes.1.to_string()),
            "https://auth.example/revoke" => (200, String::new()),
            "https://auth.example/token" => {
                if let Some(proof) = &request.proof {
                    let text = proof.text([0; 16]);
                    self.proofs.push(read(&text));
                }
                let proof = self.proofs.last().filter(|_| request.proof.is_some());
                let nonce = proof.map(|(_, claims)| claims["nonce"].as_str());
                if nonce.is_some_and(|nonce| nonce != self.nonce) {
                    return (400, json!({ "error": "use_dpop_nonce" }).to_string());
                }
                self.token(&form)
            }
            _ if self.pages.contains(&address) => (200, "<!doctype html>".to_owned()),
            _ => match self.documents.get(address) {
                Some(document) => (200, document.to_string()),
                None => (self.missing, "{}".to_owned()),
            },
        }
    }

    fn token(&mut self, form: &BTreeMap<String, String>) -> Answer {
        if let Some(refusal) = self.refusals.pop() {
            return (400, json!({ "error": refusal }).to_string());
        }
        if let Some(refresh) = form.get("refresh_token")
            && !self.used.insert(refresh.clone())
        {
            return (400, json!({ "error": "invalid_grant" }).to_string());
        }
        self.issued += 1;
        let mut tokens = self.tokens.clone();
        for kind in ["access", "refresh"] {
            let name = format!("{kind}_token");
            if tokens.get(&name).is_none() {
                tokens[name] = format!("{kind}-{}", self.issued).into();
            }
        }
        (200, tokens.to_string())
    }

    /// The addresses of the requests so far.
    pub(crate) fn addresses(&self) -> Vec<&str> {
        self.requests
            .iter()
            .map(|(address, _)| address.as_str())
            .collect()
    }

    /// The form of the last request.
    pub(crate) fn last_form(&self) -> &BTreeMap<String, String> {
        &self.requests.last().unwrap().1
    }
}

/// The codes of an honest authorization server.
fn codes() -> Value {
    json!({
        "device_code": "device-5ecret",
        "user_code": "WDJB-MJHT",
        "verification_uri": "https://auth.example/enter",
        "verification_uri_complete": "https://auth.example/enter?code=WDJB-MJHT",
        "expires_in": 300,
        "interval": 7,
    })
}

/// Reads the header and the claims of a token.
pub(crate) fn read(token: &str) -> (Value, Value) {
    let read = |part: Option<&str>| {
        let bytes = URL_SAFE_NO_PAD.decode(part.unwrap()).unwrap();
        serde_json::from_slice(&bytes).unwrap()
    };
    let mut parts = token.split('.');
    (read(parts.next()), read(parts.next()))
}

/// A key that is none, which is all that matters here.
pub(crate) fn key(seed: u8) -> ProofKey {
    ProofKey::new(&[seed; 8], &[&[4], &[seed; 64][..]].concat()).unwrap()
}

/// A machine, with the storage and the browser that it needs.
pub(crate) struct Rig {
    pub(crate) place: Place,
    pub(crate) machine: Machine,
    pub(crate) stored: Option<Credential>,
    /// The URLs that the browser opened.
    pub(crate) opened: Vec<Url>,
    pub(crate) now: u64,
    /// Requests that need a signature cannot be sent, for this reason.
    pub(crate) unable: Option<Error>,
    /// The assertion, or the reason why it cannot be read.
    pub(crate) assertion: Result<String, Error>,
    /// The keys that were made.
    pub(crate) keys: u8,
    signatures: u8,
}

impl Rig {
    pub(crate) fn new(settings: Settings) -> Self {
        Self::at(Place::new(), settings)
    }

    pub(crate) fn at(place: Place, settings: Settings) -> Self {
        Self {
            place,
            machine: Machine::new(SERVER.parse().unwrap(), settings, None),
            stored: None,
            opened: Vec::new(),
            now: NOW,
            unable: None,
            assertion: Ok(String::new()),
            keys: 0,
            signatures: 0,
        }
    }

    /// Handles an event and carries out the actions, until the machine waits or has ended.
    pub(crate) fn handle(&mut self, event: Event<'_>) -> Action {
        let mut action = self.machine.handle(self.now, event);
        loop {
            action = match action {
                Action::Send(mut request) => {
                    if let Some(unsigned) = &request.assertion {
                        if let Some(error) = self.unable.clone() {
                            action = self.machine.handle(self.now, Event::Unable(error));
                            continue;
                        }
                        let token = self.sign(unsigned);
                        request.authenticate(&token);
                    }
                    let (status, body) = self.place.answer(&request);
                    let response = Response {
                        status,
                        nonce: self.place.nonce.map(str::to_owned),
                        challenge: if status == 401 {
                            self.place.challenge.clone()
                        } else {
                            Challenge::default()
                        },
                        body: body.as_bytes(),
                    };
                    self.machine.handle(self.now, Event::Response(response))
                }
                Action::Save => {
                    self.stored = self.machine.credential().cloned();
                    self.machine.handle(self.now, Event::Saved)
                }
                Action::MakeKey => {
                    self.keys += 1;
                    self.machine.handle(self.now, Event::Key(key(self.keys)))
                }
                Action::ReadAssertion => {
                    let event = match self.assertion.clone() {
                        Ok(text) => Event::Assertion(text.into()),
                        Err(error) => Event::Unable(error),
                    };
                    self.machine.handle(self.now, event)
                }
                Action::Load => {
                    let stored = self.stored.clone();
                    self.machine
                        .handle(self.now, Event::Loaded(stored.map(Box::new)))
                }
                Action::Open { ref url, .. } => {
                    self.opened.push(url.clone());
                    return action;
                }
                Action::Wait | Action::Ignore(_) | Action::Done(_) => return action,
            }
        }
    }

    /// Signs as no one does. The IDs are not repeated.
    fn sign(&mut self, unsigned: &Unsigned) -> Secret {
        self.signatures += 1;
        let text = unsigned.text([self.signatures; 16]);
        Unsigned::token(&text, b"signature")
    }

    /// Starts a sign-in, up to the page for the user.
    pub(crate) fn begin(&mut self, redirect_uri: &str) -> Action {
        let random = std::array::from_fn(|at| u8::try_from(at).unwrap());
        self.handle(Event::SignIn(SignIn {
            redirect_uri: redirect_uri.to_owned(),
            random,
        }))
    }

    /// Starts a sign-in, up to the browser.
    pub(crate) fn start(&mut self) -> Result<BTreeMap<String, String>, Error> {
        match self.begin(REDIRECT) {
            Action::Open { url, .. } => Ok(url.query_pairs().into_owned().collect()),
            Action::Done(Err(error)) => Err(error),
            other => panic!("{other:?}"),
        }
    }

    /// Has the browser come back with these parameters.
    pub(crate) fn come_back(&mut self, parameters: &[(&str, &str)]) -> Action {
        let mut url: Url = REDIRECT.parse().unwrap();
        url.query_pairs_mut().extend_pairs(parameters);
        self.handle(Event::Callback(url.as_str()))
    }

    /// Signs in, as an honest user does.
    pub(crate) fn sign_in(&mut self) -> Result<(), Error> {
        let asked = self.start()?;
        let action = self.come_back(&[
            ("code", "c0de"),
            ("state", &asked["state"]),
            ("iss", ISSUER),
        ]);
        match action {
            Action::Done(outcome) => outcome,
            other => panic!("{other:?}"),
        }
    }
}
