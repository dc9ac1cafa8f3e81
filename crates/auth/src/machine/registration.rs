//! The client at the authorization server.

use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    Action, Authorization, Body, Found, Machine, Pending, Registration, Request, Response, Step,
    Way,
};
use crate::{
    Authentication, Client, Credential, Error, Secret, metadata::ServerMetadata, tokens::refusal,
};

/// The errors of authorization servers that do not accept the scopes of a registration.
const SCOPES_REFUSED: [&str; 2] = ["invalid_client_metadata", "invalid_scope"];

/// The response to a registration.
#[derive(Deserialize)]
struct Registered {
    client_id: String,
    client_secret: Option<Secret>,
    token_endpoint_auth_method: Option<String>,
    /// Some servers send `null` in place of zero, which means never.
    #[serde(default)]
    client_secret_expires_at: Value,
}

impl Machine {
    /// Finds the client to sign in with, or registers one: a configured client, a client ID metadata document, the one
    /// of the last sign-in, or a new one.
    pub(super) fn register(
        &mut self,
        now: u64,
        found: Found,
        server: ServerMetadata,
        sign_in: Pending,
    ) -> Result<Action, Error> {
        let is_silent = server.code_challenge_methods_supported.is_none();
        let is_safe = server.supports_s256() || is_silent && self.settings.assumes_pkce;
        if self.settings.grant.has_redirect() && !is_safe {
            return Err(Error::NoPkce {
                issuer: found.issuer,
            });
        }
        if !self.settings.grant.has_redirect() {
            // A client that could not ask for a code would be registered in vain.
            self.code_endpoint(&found.issuer, &server)?;
        }
        if let Some(client) = self.known_client(now, &found, &server, &sign_in) {
            return self.authorize(now, &found, &server, sign_in, client);
        }
        let names_scopes = !self.scopes(&found, &server).is_empty();
        self.send_registration(Registration {
            found,
            server,
            sign_in,
            names_scopes,
        })
    }

    fn send_registration(&mut self, registration: Registration) -> Result<Action, Error> {
        let issuer = &registration.found.issuer;
        let Some(address) = &registration.server.registration_endpoint else {
            return Err(Error::NoRegistration {
                issuer: issuer.clone(),
            });
        };
        let url = self.endpoint(issuer, Some(address), "registration endpoint")?;
        let body = self.registration(&registration);
        self.step = Step::Registration(registration);
        Ok(Action::Send(Request {
            url,
            authorization: None,
            body: Some(Body::Json(body.into())),
            assertion: None,
            proof: None,
        }))
    }

    fn known_client(
        &self,
        now: u64,
        found: &Found,
        server: &ServerMetadata,
        sign_in: &Pending,
    ) -> Option<Client> {
        let methods = server.token_endpoint_auth_methods_supported.as_deref();
        if let Some(client) = self.configured_client(methods) {
            return Some(client);
        }
        if server.client_id_metadata_document_supported
            && let Some(document) = &self.settings.client_document
        {
            return Some(Client {
                id: document.clone(),
                secret: None,
                authentication: Authentication::None,
                redirect_uri: None,
                secret_expires: None,
            });
        }
        // Credentials of one issuer are never sent to another.
        let known = self.credential.as_ref()?;
        let client = &known.client;
        let is_valid = client.secret_expires.is_none_or(|expires| now < expires);
        let fits = client.redirect_uri.as_deref() == Some(&sign_in.redirect_uri);
        (known.issuer == found.issuer && is_valid && fits).then(|| client.clone())
    }

    pub(super) fn configured_client(&self, methods: Option<&[String]>) -> Option<Client> {
        let configured = self.settings.client.as_ref()?;
        Some(Client {
            id: configured.id.clone(),
            secret: configured.secret.clone(),
            authentication: Authentication::of(configured, methods),
            redirect_uri: None,
            secret_expires: None,
        })
    }

    /// The body of a registration.
    fn registration(&self, registration: &Registration) -> String {
        let Registration {
            found,
            server,
            sign_in,
            names_scopes,
        } = registration;
        let supported = server.token_endpoint_auth_methods_supported.as_deref();
        let is_supported = |method: &&str| {
            supported.is_some_and(|supported| supported.iter().any(|name| name == method))
        };
        let method = ["none", "client_secret_basic", "client_secret_post"]
            .into_iter()
            .find(is_supported)
            // Without a list, only this one is supported.
            .unwrap_or("client_secret_basic");
        let mut body = json!({
            "client_name": self.settings.client_name,
            "token_endpoint_auth_method": method,
        });
        if self.settings.grant.has_redirect() {
            let redirect_uri = &sign_in.redirect_uri;
            body["redirect_uris"] = json!([redirect_uri]);
            body["grant_types"] = json!(["authorization_code", "refresh_token"]);
            body["response_types"] = json!(["code"]);
            let is_native = is_loopback(redirect_uri);
            body["application_type"] = if is_native { "native" } else { "web" }.into();
        } else {
            body["grant_types"] = json!([super::device::GRANT, "refresh_token"]);
            // Without the member, it would be `code`.
            body["response_types"] = json!([]);
            body["application_type"] = "native".into();
        }
        if *names_scopes {
            body["scope"] = self.scopes(found, server).join(" ").into();
        }
        body.to_string()
    }

    pub(super) fn registered(
        &mut self,
        now: u64,
        response: &Response<'_>,
        registration: Registration,
    ) -> Result<Action, Error> {
        if !matches!(response.status, 200 | 201) {
            let refused = refusal("the registration of the client", response);
            // The server's scopes need not be known to the authorization server as its own.
            let is_about_scopes = matches!(&refused, Error::Refused { code, .. } if SCOPES_REFUSED.contains(&&**code));
            if registration.names_scopes && is_about_scopes {
                return self.send_registration(Registration {
                    names_scopes: false,
                    ..registration
                });
            }
            return Err(refused);
        }
        let Registration {
            found,
            server,
            sign_in,
            ..
        } = registration;
        let read: Registered =
            serde_json::from_slice(response.body).map_err(|_| Error::Refused {
                request: "the registration of the client".into(),
                code: "no client ID in the response".to_owned(),
                status: Some(response.status),
                said: None,
            })?;
        let methods = server.token_endpoint_auth_methods_supported.as_deref();
        let named = read.token_endpoint_auth_method.as_deref();
        let authentication = named
            .and_then(Authentication::read)
            .unwrap_or_else(|| Authentication::choose(read.client_secret.is_some(), methods));
        let client = Client {
            id: read.client_id,
            secret: read.client_secret,
            authentication,
            redirect_uri: Some(sign_in.redirect_uri.clone()),
            secret_expires: read
                .client_secret_expires_at
                .as_u64()
                .filter(|&expires| expires != 0),
        };
        self.authorize(now, &found, &server, sign_in, client)
    }

    /// Sends the user to the authorization server.
    fn authorize(
        &mut self,
        now: u64,
        found: &Found,
        server: &ServerMetadata,
        sign_in: Pending,
        client: Client,
    ) -> Result<Action, Error> {
        if !self.settings.grant.has_redirect() {
            return self.request_code(now, found, server, client);
        }
        let issuer = &found.issuer;
        let endpoint = server.authorization_endpoint.as_ref();
        let mut url = self.endpoint(issuer, endpoint, "authorization endpoint")?;
        let credential = self.new_credential(found, server, client)?;
        let parameters = &self.settings.parameters;
        super::authorization::complete(&mut url, &credential, &sign_in, parameters);
        let until = now + super::PATIENCE;
        let action = Action::Open {
            url: url.clone(),
            code: None,
            until,
        };
        self.step = Step::Rest;
        self.awaiting = Some(Authorization {
            way: Way::Browser {
                sign_in,
                names_issuer: server.authorization_response_iss_parameter_supported,
            },
            credential,
            until,
        });
        Ok(action)
    }

    /// A credential without tokens.
    pub(super) fn new_credential(
        &self,
        found: &Found,
        server: &ServerMetadata,
        client: Client,
    ) -> Result<Credential, Error> {
        let issuer = &found.issuer;
        if client.authentication == Authentication::PrivateKeyJwt {
            let algorithm = self.private_key()?.algorithm();
            let accepted = server
                .token_endpoint_auth_signing_alg_values_supported
                .as_ref();
            if accepted.is_some_and(|it| it.iter().all(|name| name != algorithm.as_str())) {
                return Err(Error::KeyNotAccepted {
                    issuer: issuer.clone(),
                    algorithm,
                });
            }
        }
        let token_endpoint =
            self.endpoint(issuer, server.token_endpoint.as_ref(), "token endpoint")?;
        let revocation = server.revocation_endpoint.as_ref();
        let revocation = self
            .endpoint(issuer, revocation, "revocation endpoint")
            .ok();
        Ok(Credential {
            server: self.server.as_str().to_owned(),
            reach: self.reach,
            issuer: issuer.clone(),
            client,
            token_endpoint: token_endpoint.into(),
            revocation_endpoint: revocation.map(Into::into),
            resource: self.resource(found),
            scopes: self.scopes(found, server),
            proof_key: found.proof_key.clone(),
            tokens: None,
        })
    }
}

fn is_loopback(redirect_uri: &str) -> bool {
    let url = url::Url::parse(redirect_uri);
    // An application may also have a scheme of its own.
    url.is_ok_and(|url| {
        !matches!(url.scheme(), "http" | "https") || crate::Reach::of(&url) == crate::Reach::Local
    })
}
