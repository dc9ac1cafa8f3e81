//! Clients that sign in without a user.

use url::Url;

use super::{Action, Found, Machine, Response, Step};
use crate::{
    Authentication, Client, Credential, Error, Grant, Reach, Secret, form,
    metadata::ServerMetadata, tokens,
};

const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const TOKEN_EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
/// The kinds of tokens that are exchanged at an identity provider.
const ID_TOKEN: &str = "urn:ietf:params:oauth:token-type:id_token";
const ID_JAG: &str = "urn:ietf:params:oauth:token-type:id-jag";

/// The longest assertion, in bytes.
const LONGEST: usize = 32 * 1024;

impl Machine {
    /// Signs the configured client in.
    pub(super) fn request_for_client(
        &mut self,
        now: u64,
        found: &Found,
        server: &ServerMetadata,
    ) -> Result<Action, Error> {
        let methods = server.token_endpoint_auth_methods_supported.as_deref();
        let client = self.configured_client(methods).ok_or(Error::NoClient)?;
        let credential = self.new_credential(found, server, client)?;
        if self.settings.grant == Grant::JwtBearer {
            self.step = Step::Assertion(credential);
            return Ok(Action::ReadAssertion);
        }
        self.request_with(now, credential, &[("grant_type", "client_credentials")])
    }

    /// Requests tokens with these parameters, for the scopes and the resource of the credential.
    fn request_with(
        &mut self,
        now: u64,
        credential: Credential,
        grant: &[(&str, &str)],
    ) -> Result<Action, Error> {
        let scope = credential.scopes.join(" ");
        let mut parameters = grant.to_vec();
        if !scope.is_empty() {
            parameters.push(("scope", &scope));
        }
        if let Some(resource) = &credential.resource {
            parameters.push(("resource", resource));
        }
        let request = self.to_token_endpoint(now, &credential, &parameters)?;
        Ok(self.send_exchange(credential, request))
    }

    /// Continues with the assertion, or with the ID token that the identity provider exchanges for one.
    pub(super) fn asserted(&mut self, now: u64, read: &Secret) -> Result<Action, Error> {
        let credential = match self.take_step() {
            Step::Assertion(credential) => credential,
            other => {
                self.step = other;
                return Ok(Action::Wait);
            }
        };
        // Anything else could be a file that was named by mistake, and is not sent.
        if !is_token(read.expose()) {
            return Err(Error::NoAssertion {
                reason: "the file has no JSON Web Token".to_owned(),
            });
        }
        let Some(provider) = &self.settings.identity_provider else {
            return self.send_assertion(now, credential, read);
        };
        let url = Url::parse(&provider.token_url).ok();
        let is_safe = |url: &Url| Reach::Local.permits(url);
        let no_endpoint = || Error::NoEndpoint {
            issuer: provider.token_url.clone(),
            endpoint: "token endpoint".into(),
        };
        let url = url.filter(is_safe).ok_or_else(no_endpoint)?;
        let client = Client {
            id: provider.client_id.clone(),
            secret: provider.client_secret.clone(),
            authentication: Authentication::choose(provider.client_secret.is_some(), None),
            redirect_uri: None,
            secret_expires: None,
        };
        let scope = credential.scopes.join(" ");
        let mut parameters = vec![
            ("grant_type", TOKEN_EXCHANGE),
            ("requested_token_type", ID_JAG),
            ("subject_token", read.expose()),
            ("subject_token_type", ID_TOKEN),
            ("audience", &credential.issuer),
        ];
        if !scope.is_empty() {
            parameters.push(("scope", &scope));
        }
        if let Some(resource) = &credential.resource {
            parameters.push(("resource", resource));
        }
        let request = form::post(url.as_str(), &client, &parameters).ok_or_else(no_endpoint)?;
        self.step = Step::Vouching(credential);
        Ok(Action::Send(request))
    }

    /// Continues with the assertion of the identity provider.
    pub(super) fn vouched(
        &mut self,
        now: u64,
        response: &Response<'_>,
        credential: Credential,
    ) -> Result<Action, Error> {
        let assertion = tokens::read_vouched(response)?;
        if !is_token(assertion.expose()) {
            return Err(Error::NotVouched {
                code: "its response has no JSON Web Token".to_owned(),
                status: response.status,
                said: None,
            });
        }
        self.send_assertion(now, credential, &assertion)
    }

    fn send_assertion(
        &mut self,
        now: u64,
        credential: Credential,
        assertion: &Secret,
    ) -> Result<Action, Error> {
        let grant = [
            ("grant_type", JWT_BEARER),
            ("assertion", assertion.expose()),
        ];
        self.request_with(now, credential, &grant)
    }
}

/// Tests if a text has the form of a signed JSON Web Token.
fn is_token(text: &str) -> bool {
    let is_part = |part: &str| {
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        !part.is_empty() && part.bytes().all(is_allowed)
    };
    text.len() <= LONGEST && text.split('.').count() == 3 && text.split('.').all(is_part)
}
