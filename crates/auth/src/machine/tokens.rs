//! Tokens: the first ones, new ones, and their end.

use super::{Action, Found, Machine, Request, Response, Step};
use crate::{Challenge, Credential, Error, Secret, Tokens, form, metadata::ServerMetadata, tokens};

/// The errors that say that a refresh token is no longer valid. Only the first one is in the specification.
const REFRESH_REFUSED: [&str; 4] = [
    "invalid_grant",
    "bad_refresh_token",
    "invalid_token",
    "expired_token",
];

/// The errors that say that the client is not registered any more, or must not have tokens.
const CLIENT_REFUSED: [&str; 2] = ["invalid_client", "unauthorized_client"];

impl Machine {
    /// Signs the configured client in.
    pub(super) fn request_for_client(
        &mut self,
        found: &Found,
        server: &ServerMetadata,
    ) -> Result<Action, Error> {
        let methods = server.token_endpoint_auth_methods_supported.as_deref();
        let client = self.configured_client(methods).ok_or(Error::NoClient)?;
        let credential = self.new_credential(found, server, client)?;
        let scope = credential.scopes.join(" ");
        let mut parameters = vec![("grant_type", "client_credentials")];
        if !scope.is_empty() {
            parameters.push(("scope", &scope));
        }
        if let Some(resource) = &credential.resource {
            parameters.push(("resource", resource));
        }
        let request = form::to_token_endpoint(&credential, &parameters);
        Ok(self.send_exchange(credential, request))
    }

    /// Exchanges a code or a secret for tokens.
    pub(super) fn send_exchange(
        &mut self,
        credential: Credential,
        request: Option<Request>,
    ) -> Action {
        let Some(request) = request else {
            let issuer = credential.issuer;
            return self.end(Err(Error::no_token_endpoint(issuer)));
        };
        self.step = Step::Exchange(credential);
        Action::Send(request)
    }

    pub(super) fn exchanged(
        &mut self,
        now: u64,
        response: &Response<'_>,
        mut credential: Credential,
    ) -> Result<Action, Error> {
        let issued =
            tokens::read(now, response, None, &credential.scopes).inspect_err(|error| {
                if matches!(error, Error::Refused { code, .. } if CLIENT_REFUSED.contains(&&**code))
                {
                    self.forget_client();
                }
            })?;
        credential.tokens = Some(issued);
        self.challenge = Challenge::default();
        self.step_up = None;
        self.step = Step::Save(credential);
        Ok(Action::Save)
    }

    /// Renews the tokens.
    pub(super) fn renew(&mut self) -> Result<Action, Error> {
        if !self.is_at_rest() {
            return Ok(Action::Wait);
        }
        if self.settings.grant == crate::Grant::ClientCredentials {
            return Ok(self.discover(super::Goal::Client));
        }
        self.reload()
    }

    /// Loads the stored credential, to refresh its tokens.
    pub(super) fn reload(&mut self) -> Result<Action, Error> {
        if self.tokens().is_none_or(|tokens| tokens.refresh.is_none()) {
            return Err(Error::SignedOut { said: None });
        }
        self.step = Step::Reload { retried: false };
        Ok(Action::Load)
    }

    fn send_refresh(&mut self, retried: bool) -> Result<Action, Error> {
        let Some(credential) = &self.credential else {
            return Err(Error::SignedOut { said: None });
        };
        let tokens = credential.tokens.as_ref();
        let Some(refresh) = tokens.and_then(|tokens| tokens.refresh.as_ref()) else {
            return Err(Error::SignedOut { said: None });
        };
        let mut parameters = vec![
            ("grant_type", "refresh_token"),
            ("refresh_token", refresh.expose()),
        ];
        if let Some(resource) = &credential.resource {
            parameters.push(("resource", resource));
        }
        let request = form::to_token_endpoint(credential, &parameters);
        let Some(request) = request else {
            return Err(Error::no_token_endpoint(credential.issuer.clone()));
        };
        self.step = Step::Refresh { retried };
        Ok(Action::Send(request))
    }

    pub(super) fn refreshed(
        &mut self,
        now: u64,
        response: &Response<'_>,
        retried: bool,
    ) -> Result<Action, Error> {
        let Some(mut credential) = self.credential.clone() else {
            return Err(Error::SignedOut { said: None });
        };
        let former = credential.tokens.as_ref();
        match tokens::read(now, response, former, &credential.scopes) {
            Ok(issued) => {
                credential.tokens = Some(issued);
                self.challenge = Challenge::default();
                self.step = Step::Save(credential);
                Ok(Action::Save)
            }
            Err(Error::Refused { code, said, .. }) if REFRESH_REFUSED.contains(&&*code) => {
                if retried {
                    return Ok(self.forget(Err(Error::SignedOut { said })));
                }
                // Another process may have renewed the tokens.
                self.step = Step::Reload { retried: true };
                Ok(Action::Load)
            }
            Err(Error::Refused { code, said, .. }) if CLIENT_REFUSED.contains(&&*code) => {
                self.forget_client();
                Ok(self.forget(Err(Error::SignedOut { said })))
            }
            Err(error) => Err(error),
        }
    }

    pub(super) fn loaded(
        &mut self,
        now: u64,
        credential: Option<Credential>,
    ) -> Result<Action, Error> {
        let retried = match self.step {
            Step::Reload { retried } => Some(retried),
            Step::Rest => None,
            _ => return Ok(Action::Wait),
        };
        self.step = Step::Rest;
        let before = self.credential.take();
        self.adopt(credential);
        let is_new = self.credential != before;
        if is_new {
            self.signed_out = None;
        }
        let is_valid = |tokens: &Tokens| !tokens.has_expired(now);
        match (self.tokens(), retried) {
            (Some(tokens), _) if is_new && is_valid(tokens) => Ok(self.end(Ok(()))),
            (Some(_), Some(retried)) => self.send_refresh(retried),
            (None, Some(_)) => Err(Error::SignedOut { said: None }),
            (_, None) => Ok(Action::Wait),
        }
    }

    /// Revokes the tokens, and forgets them.
    pub(super) fn sign_out(&mut self) -> Action {
        self.awaiting = None;
        let tokens = self.tokens().cloned();
        let secrets = tokens.map(
            |Tokens {
                 access, refresh, ..
             }| {
                // Revoking the refresh token revokes the others at most servers, and should come first.
                refresh.into_iter().chain([access]).collect()
            },
        );
        self.revoke(secrets.unwrap_or_default())
    }

    pub(super) fn revoke(&mut self, mut left: Vec<Secret>) -> Action {
        let endpoint = self.credential.as_ref().and_then(|known| {
            let address = known.revocation_endpoint.as_ref()?;
            let token = left.first()?;
            form::post(address, &known.client, &[("token", token.expose())])
        });
        let Some(request) = endpoint else {
            return self.forget(Ok(()));
        };
        left.remove(0);
        self.step = Step::Revocation { left };
        Action::Send(request)
    }

    /// Removes the tokens. The registration of the client is kept.
    pub(super) fn forget(&mut self, outcome: Result<(), Error>) -> Action {
        self.signed_out = outcome.as_ref().err().cloned();
        if let Some(credential) = &mut self.credential {
            credential.tokens = None;
        }
        self.step = Step::Forget(outcome);
        Action::Save
    }
}
