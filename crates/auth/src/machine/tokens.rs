//! Tokens: the first ones, new ones, and their end.

use super::{Action, Machine, Renewed, Request, Response, Step};
use crate::{
    Authentication, Challenge, Credential, Error, PrivateKey, ProofKey, Secret, Tokens, Unsigned,
    form, tokens,
};

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
    /// A request to the token endpoint, which authenticates the client.
    pub(super) fn to_token_endpoint(
        &self,
        now: u64,
        credential: &Credential,
        parameters: &[(&str, &str)],
    ) -> Result<Request, Error> {
        let request = form::post(&credential.token_endpoint, &credential.client, parameters);
        let mut request = request.ok_or_else(|| Error::NoEndpoint {
            issuer: credential.issuer.clone(),
            endpoint: "token endpoint".into(),
        })?;
        let nonce = self.nonce.as_deref();
        let proof = |key: &ProofKey| Box::new(key.proof("POST", &request.url, now, None, nonce));
        request.proof = credential.proof_key.as_ref().map(proof);
        self.with_assertion(now, credential, request)
    }

    /// Adds what a client with a key has to sign.
    pub(super) fn with_assertion(
        &self,
        now: u64,
        credential: &Credential,
        request: Request,
    ) -> Result<Request, Error> {
        let client = &credential.client;
        if client.authentication != Authentication::PrivateKeyJwt {
            return Ok(request);
        }
        let key = self.private_key()?;
        let configured = self.settings.client.as_ref();
        let id = configured.and_then(|configured| configured.key_id.as_deref());
        let assertion = Unsigned::assertion(key, id, &client.id, &credential.issuer, now);
        Ok(Request {
            assertion: Some(Box::new(assertion)),
            ..request
        })
    }

    /// The key of the configured client.
    pub(super) fn private_key(&self) -> Result<PrivateKey, Error> {
        let configured = self.settings.client.as_ref();
        let pem = configured.and_then(|configured| configured.private_key.as_ref());
        let bad = |reason: &str| Error::BadKey {
            reason: reason.to_owned(),
        };
        let pem = pem.ok_or_else(|| bad("it is no longer configured"))?;
        PrivateKey::read(pem.expose()).map_err(bad)
    }

    /// Exchanges a code or a secret for tokens.
    pub(super) fn send_exchange(&mut self, credential: Credential, request: Request) -> Action {
        self.step = Step::Exchange(credential);
        self.send_proven(request)
    }

    /// Sends a request, which is sent again if its receiver demands another nonce.
    pub(super) fn send_proven(&mut self, request: Request) -> Action {
        self.proven = request.proof.is_some().then(|| request.clone());
        Action::Send(request)
    }

    pub(super) fn exchanged(
        &mut self,
        now: u64,
        response: &Response<'_>,
        credential: Credential,
    ) -> Result<Action, Error> {
        let issued = tokens::read(now, response, None, &credential);
        let issued = issued.inspect_err(|error| self.note_refusal(error))?;
        Ok(self.keep(credential, issued))
    }

    /// Has a client registered again that the authorization server does not accept.
    pub(super) fn note_refusal(&mut self, error: &Error) {
        if matches!(error, Error::Refused { code, .. } if CLIENT_REFUSED.contains(&&**code)) {
            self.forget_client();
        }
    }

    /// Saves the first tokens of a sign-in.
    pub(super) fn keep(&mut self, mut credential: Credential, issued: Tokens) -> Action {
        credential.tokens = Some(issued);
        self.challenge = Challenge::default();
        self.step_up = None;
        self.step = Step::Save(credential);
        Action::Save
    }

    /// Renews the tokens.
    pub(super) fn renew(&mut self) -> Result<Action, Error> {
        if !self.is_at_rest() {
            return Ok(Action::Wait);
        }
        if self.settings.grant.is_unattended() {
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

    fn send_refresh(&mut self, now: u64, retried: bool) -> Result<Action, Error> {
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
        let request = self.to_token_endpoint(now, credential, &parameters)?;
        self.step = Step::Refresh { retried };
        Ok(self.send_proven(request))
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
        match tokens::read(now, response, former, &credential) {
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
            (Some(_), Some(retried)) => self.send_refresh(now, retried),
            (None, Some(_)) => Err(Error::SignedOut { said: None }),
            (_, None) => Ok(Action::Wait),
        }
    }

    /// Takes the result of another process, in place of the stored credential.
    pub(super) fn renewed_elsewhere(&mut self, renewed: Renewed) -> Action {
        if !matches!(self.step, Step::Reload { .. }) {
            return Action::Wait;
        }
        self.adopt(renewed.credential.map(|credential| *credential));
        match &renewed.outcome {
            Ok(()) => {
                self.challenge = Challenge::default();
                self.signed_out = None;
            }
            Err(error @ Error::SignedOut { .. }) => self.signed_out = Some(error.clone()),
            Err(_) => {}
        }
        self.end(renewed.outcome)
    }

    /// Revokes the tokens, and forgets them.
    pub(super) fn sign_out(&mut self, now: u64) -> Action {
        self.awaiting = None;
        self.proven = None;
        let tokens = self.tokens().cloned();
        let secrets = tokens.map(
            |Tokens {
                 access, refresh, ..
             }| {
                // Revoking the refresh token revokes the others at most servers, and should come first.
                refresh.into_iter().chain([access]).collect()
            },
        );
        self.revoke(now, secrets.unwrap_or_default())
    }

    pub(super) fn revoke(&mut self, now: u64, mut left: Vec<Secret>) -> Action {
        let endpoint = self.credential.as_ref().and_then(|known| {
            let address = known.revocation_endpoint.as_ref()?;
            let token = left.first()?;
            let request = form::post(address, &known.client, &[("token", token.expose())])?;
            self.with_assertion(now, known, request).ok()
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
