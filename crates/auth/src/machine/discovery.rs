//! From the server to its authorization server.

use url::Url;

use super::{Action, Found, Goal, Machine, Pending, Request, Response, Step};
use crate::{
    Algorithm, Challenge, Error, ProofKey,
    metadata::{self, ResourceMetadata, ServerMetadata},
};

/// Some authorization servers issue refresh tokens only to clients that ask for this scope.
const OFFLINE: &str = "offline_access";

impl Machine {
    /// Starts a discovery, at the challenge of the server if there is one.
    pub(super) fn discover(&mut self, goal: Goal) -> Action {
        if !self.reach.permits(&self.server) {
            return self.end(Err(Error::Insecure));
        }
        if self.challenge == Challenge::default() {
            self.step = Step::Probe(goal);
            return Action::Send(Request::get(self.server.clone()));
        }
        self.fetch_resource(goal)
    }

    pub(super) fn probed(&mut self, response: &Response<'_>, goal: Goal) -> Action {
        self.challenge = response.challenge.clone();
        self.fetch_resource(goal)
    }

    pub(super) fn fetch_resource(&mut self, goal: Goal) -> Action {
        let named = self.challenge.resource_metadata.as_deref();
        let named = named.and_then(|url| Url::parse(url).ok());
        let addresses = match named.filter(|url| self.reach.permits(url)) {
            Some(url) => vec![url],
            None => metadata::of_resource(&self.server),
        };
        let request = Request::get(addresses[0].clone());
        self.step = Step::Resource {
            left: addresses,
            goal,
        };
        Action::Send(request)
    }

    pub(super) fn found_resource(
        &mut self,
        response: &Response<'_>,
        mut left: Vec<Url>,
        goal: Goal,
    ) -> Result<Action, Error> {
        if response.status == 200 {
            let read = ResourceMetadata::read(response.body, &self.server);
            if matches!(goal, Goal::Renewal) {
                // The server has moved to another authorization server, where the user has to sign in.
                return match read {
                    Ok(read) if self.has_moved(&read) => {
                        Ok(self.forget(Err(Error::SignedOut { said: None })))
                    }
                    _ => self.reload(),
                };
            }
            match read {
                // Some sites answer every path with their home page.
                Err(error) if error.is_no_json() && left.len() > 1 => {}
                read => {
                    let read = read?;
                    let issuer = self.choose_issuer(&read)?;
                    return self.fetch_server(Found::new(read, issuer), goal);
                }
            }
        }
        left.remove(0);
        if let Some(next) = left.first() {
            let request = Request::get(next.clone());
            self.step = Step::Resource { left, goal };
            return Ok(Action::Send(request));
        }
        if matches!(goal, Goal::Renewal) {
            return self.reload();
        }
        is_missing(response).map_err(|reason| Error::Unreachable {
            document: "metadata of the server".into(),
            reason,
        })?;
        // Servers of 2025-03-26 are their own authorization servers.
        let issuer = metadata::origin(&self.server);
        let is_other = self.only_issuer().is_some_and(|only| *only != issuer);
        // Metadata that the user has named is checked when it is read.
        if is_other && self.settings.metadata.is_none() {
            return Err(Error::NoAuthorizationServer);
        }
        let found = Found {
            issuer,
            resource: None,
            scopes: None,
            is_old: true,
            demands_proof: false,
            proof_key: None,
        };
        self.fetch_server(found, goal)
    }

    fn has_moved(&self, metadata: &ResourceMetadata) -> bool {
        if self.settings.metadata.is_some() {
            return false;
        }
        let issuers = &metadata.authorization_servers;
        let known = self.credential.as_ref().map(|known| &known.issuer);
        known.is_some_and(|known| !issuers.is_empty() && !issuers.contains(known))
    }

    /// Chooses the authorization server: the one that has signed the user in before, or that the configured client is
    /// registered with, or the first.
    fn choose_issuer(&self, metadata: &ResourceMetadata) -> Result<String, Error> {
        if let Some(address) = &self.settings.metadata {
            // The document there names it.
            return Ok(address.clone());
        }
        let usable = |issuer: &&String| {
            let url = Url::parse(issuer);
            url.is_ok_and(|url| self.reach.permits(&url) && url.query().is_none())
        };
        let mut issuers = metadata.authorization_servers.iter().filter(usable);
        let known = self.credential.as_ref().map(|known| &known.issuer);
        let only = self.only_issuer();
        let wanted = only.or(known);
        let found = issuers.clone().find(|issuer| Some(*issuer) == wanted);
        let chosen = match only {
            Some(_) => found,
            None => found.or_else(|| issuers.next()),
        };
        chosen.cloned().ok_or(Error::NoAuthorizationServer)
    }

    /// The issuer of the configured client. The server must not name another receiver for its secret.
    fn only_issuer(&self) -> Option<&String> {
        let known = self.credential.as_ref().map(|known| &known.issuer);
        self.settings.client.as_ref()?.issuer.as_ref().or(known)
    }

    fn fetch_server(&mut self, found: Found, goal: Goal) -> Result<Action, Error> {
        let url = |text: &str| Url::parse(text).map_err(|_| Error::NoAuthorizationServer);
        let left = match &self.settings.metadata {
            Some(address) => vec![url(address)?],
            None => metadata::of_issuer(&url(&found.issuer)?),
        };
        if !self.reach.permits(&left[0]) {
            return Err(Error::NoAuthorizationServer);
        }
        let request = Request::get(left[0].clone());
        self.step = Step::Server { left, found, goal };
        Ok(Action::Send(request))
    }

    pub(super) fn found_server(
        &mut self,
        now: u64,
        response: &Response<'_>,
        mut left: Vec<Url>,
        mut found: Found,
        goal: Goal,
    ) -> Result<Action, Error> {
        let is_named = self.settings.metadata.is_some();
        let client = self.settings.client.as_ref();
        let expected = if is_named {
            // The client's secret is for its own issuer.
            client.and_then(|client| client.issuer.as_deref())
        } else {
            Some(&*found.issuer)
        };
        let read = ServerMetadata::read(response.body, expected);
        // Some sites answer every path with their home page.
        let is_page = left.len() > 1 && read.as_ref().is_err_and(Error::is_no_json);
        let server = if response.status == 200 && !is_page {
            read?
        } else {
            left.remove(0);
            if let Some(next) = left.first() {
                let request = Request::get(next.clone());
                self.step = Step::Server { left, found, goal };
                return Ok(Action::Send(request));
            }
            let missing = is_missing(response).and_then(|()| {
                let has_none = Err(format!("HTTP {}", response.status));
                if found.is_old && !is_named {
                    Ok(())
                } else {
                    has_none
                }
            });
            missing.map_err(|reason| Error::Unreachable {
                document: "metadata of the authorization server".into(),
                reason,
            })?;
            ServerMetadata::of_origin(&found.issuer)
        };
        found.issuer.clone_from(&server.issuer);
        self.with_server(now, found, server, goal)
    }

    /// Continues with the metadata of the authorization server.
    fn with_server(
        &mut self,
        now: u64,
        mut found: Found,
        server: ServerMetadata,
        goal: Goal,
    ) -> Result<Action, Error> {
        let demands_proof = found.demands_proof || self.challenge.demands_proof;
        if demands_proof && found.proof_key.is_none() && !matches!(goal, Goal::Renewal) {
            let algorithms = server.dpop_signing_alg_values_supported.as_ref();
            let is_known = |name: &String| name == Algorithm::Es256.as_str();
            if algorithms.is_some_and(|algorithms| !algorithms.iter().any(is_known)) {
                return Err(Error::NoProof {
                    issuer: found.issuer,
                });
            }
            let known = self.credential.as_ref();
            let known = known.filter(|known| known.issuer == found.issuer);
            found.proof_key = known.and_then(|known| known.proof_key.clone());
            if found.proof_key.is_none() {
                self.step = Step::Key {
                    found,
                    server,
                    goal,
                };
                return Ok(Action::MakeKey);
            }
        }
        match goal {
            Goal::User(sign_in) => self.register(now, found, server, sign_in),
            Goal::Client => self.request_for_client(now, &found, &server),
            Goal::Renewal => self.reload(),
        }
    }

    /// Continues with the key that tokens will be bound to.
    pub(super) fn with_key(&mut self, now: u64, key: ProofKey) -> Result<Action, Error> {
        match self.take_step() {
            Step::Key {
                mut found,
                server,
                goal,
            } => {
                found.proof_key = Some(key);
                self.with_server(now, found, server, goal)
            }
            other => {
                self.step = other;
                Ok(Action::Wait)
            }
        }
    }

    /// An endpoint of the authorization server, if it may be used.
    pub(super) fn endpoint(
        &self,
        issuer: &str,
        address: Option<&String>,
        endpoint: &'static str,
    ) -> Result<Url, Error> {
        let url = address.and_then(|address| Url::parse(address).ok());
        url.filter(|url| self.reach.permits(url))
            .ok_or_else(|| Error::NoEndpoint {
                issuer: issuer.to_owned(),
                endpoint: endpoint.into(),
            })
    }

    /// The scopes to ask for: the configured ones or the server's, in addition to the ones that were requested before.
    pub(super) fn scopes(&self, found: &Found, server: &ServerMetadata) -> Vec<String> {
        let mut scopes = Vec::new();
        let mut add = |scope: &str| {
            if !scope.is_empty() && !scopes.iter().any(|known| known == scope) {
                scopes.push(scope.to_owned());
            }
        };
        if self.challenge.needs_scope()
            && let Some(known) = &self.credential
            && known.issuer == found.issuer
        {
            for scope in &known.scopes {
                add(scope);
            }
        }
        if let Some(configured) = &self.settings.scopes {
            for scope in configured {
                add(scope);
            }
        }
        let configured = self.settings.scopes.as_ref();
        let configured = configured.filter(|_| !self.challenge.needs_scope());
        match (configured, &self.challenge.scope, &found.scopes) {
            (Some(_), _, _) => {}
            (None, Some(challenged), _) => challenged.split_ascii_whitespace().for_each(add),
            (None, None, Some(published)) => published.iter().for_each(|scope| add(scope)),
            (None, None, None) => {}
        }
        let is_new = !scopes.iter().any(|scope| scope == OFFLINE);
        if !scopes.is_empty() && is_new && self.wants_refresh() && server.offers_scope(OFFLINE) {
            scopes.push(OFFLINE.to_owned());
        }
        scopes
    }

    /// The value of the `resource` parameter.
    pub(super) fn resource(&self, found: &Found) -> Option<String> {
        match &self.settings.resource {
            crate::ResourceParameter::Published => {
                let own = || {
                    let mut own = self.server.clone();
                    own.set_fragment(None);
                    own.set_query(None);
                    own.to_string()
                };
                Some(found.resource.clone().unwrap_or_else(own))
            }
            crate::ResourceParameter::Fixed(resource) => Some(resource.clone()),
            crate::ResourceParameter::Omitted => None,
        }
    }

    fn wants_refresh(&self) -> bool {
        !self.settings.grant.is_unattended()
    }
}

/// Tests if a document is not there. A server that has a fault for the moment may have it.
fn is_missing(response: &Response<'_>) -> Result<(), String> {
    match response.status {
        408 | 425 | 429 => Err(format!("HTTP {}", response.status)),
        400..500 => Ok(()),
        status => Err(format!("HTTP {status}")),
    }
}

impl Request {
    pub(super) fn get(url: Url) -> Self {
        Self {
            url,
            authorization: None,
            body: None,
            assertion: None,
            proof: None,
        }
    }
}

impl Pending {
    /// Derives the secrets of a sign-in from unpredictable bytes.
    pub(super) fn new(start: super::SignIn) -> Self {
        let (verifier, state) = start.random.split_at(32);
        Self {
            redirect_uri: start.redirect_uri,
            verifier: crate::pkce::encode(verifier).into(),
            state: crate::pkce::encode(state).into(),
        }
    }
}
