//! From the server to its authorization server.

use url::Url;

use super::{Action, Found, Goal, Machine, Pending, Request, Response, Step};
use crate::{
    Challenge, Error,
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
        if response.status != 200 {
            left.remove(0);
            if let Some(next) = left.first() {
                let request = Request::get(next.clone());
                self.step = Step::Resource { left, goal };
                return Ok(Action::Send(request));
            }
            // Servers of 2025-03-26 are their own authorization servers.
            let found = Found {
                issuer: metadata::origin(&self.server),
                resource: None,
                scopes: None,
                is_old: true,
            };
            return self.fetch_server(found, goal);
        }
        let read = ResourceMetadata::read(response.body, &self.server)?;
        let issuer = self.choose_issuer(&read)?;
        self.fetch_server(Found::new(read, issuer), goal)
    }

    /// Chooses the authorization server: the one that has signed the user in before, or that the configured client is
    /// registered with, or the first.
    fn choose_issuer(&self, metadata: &ResourceMetadata) -> Result<String, Error> {
        let usable = |issuer: &&String| {
            let url = Url::parse(issuer);
            url.is_ok_and(|url| self.reach.permits(&url) && url.query().is_none())
        };
        let mut issuers = metadata.authorization_servers.iter().filter(usable);
        let configured = self.settings.client.as_ref();
        let wanted = match configured.and_then(|client| client.issuer.as_ref()) {
            Some(issuer) => {
                return issuers
                    .find(|usable| *usable == issuer)
                    .cloned()
                    .ok_or(Error::NoAuthorizationServer);
            }
            None => self.credential.as_ref().map(|known| &known.issuer),
        };
        let known = issuers.clone().find(|issuer| Some(*issuer) == wanted);
        known
            .or_else(|| issuers.next())
            .cloned()
            .ok_or(Error::NoAuthorizationServer)
    }

    fn fetch_server(&mut self, found: Found, goal: Goal) -> Result<Action, Error> {
        let issuer = Url::parse(&found.issuer).map_err(|_| Error::NoAuthorizationServer)?;
        let left = metadata::of_issuer(&issuer);
        let request = Request::get(left[0].clone());
        self.step = Step::Server { left, found, goal };
        Ok(Action::Send(request))
    }

    pub(super) fn found_server(
        &mut self,
        now: u64,
        response: &Response<'_>,
        mut left: Vec<Url>,
        found: Found,
        goal: Goal,
    ) -> Result<Action, Error> {
        let server = if response.status == 200 {
            ServerMetadata::read(response.body, &found.issuer)?
        } else {
            left.remove(0);
            if let Some(next) = left.first() {
                let request = Request::get(next.clone());
                self.step = Step::Server { left, found, goal };
                return Ok(Action::Send(request));
            }
            if !found.is_old {
                return Err(Error::Unreachable {
                    document: "metadata of the authorization server",
                    reason: format!("HTTP {}", response.status),
                });
            }
            ServerMetadata::of_origin(&found.issuer)
        };
        match goal {
            Goal::User(sign_in) => self.register(now, found, server, sign_in),
            Goal::Client => self.request_for_client(&found, &server),
            Goal::Renewal if self.issuer() == Some(&found.issuer) => self.renew(),
            // The server has moved to another authorization server, where the user has to sign in.
            Goal::Renewal => Ok(self.forget(Err(Error::SignedOut { said: None }))),
        }
    }

    fn issuer(&self) -> Option<&String> {
        self.credential.as_ref().map(|known| &known.issuer)
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
                endpoint,
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
            known.scopes.iter().for_each(|scope| add(scope));
        }
        match (&self.settings.scopes, &self.challenge.scope, &found.scopes) {
            (Some(configured), _, _) => configured.iter().for_each(|scope| add(scope)),
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
        self.settings.grant == crate::Grant::AuthorizationCode
    }
}

impl Request {
    pub(super) fn get(url: Url) -> Self {
        Self {
            url,
            authorization: None,
            body: None,
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
