//! Requests to the endpoints of an authorization server.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use url::{Url, form_urlencoded};

use crate::{Authentication, Body, Client, Request, Secret};

/// The kind of assertion with which a client authenticates itself.
const ASSERTION: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/// A form with these parameters, which authenticates the client, except for the assertion of one that has a key. `None`
/// if the address is not a URL.
pub(crate) fn post(address: &str, client: &Client, parameters: &[(&str, &str)]) -> Option<Request> {
    let url = Url::parse(address).ok()?;
    Some(post_to(url, client, parameters))
}

/// The same for a URL.
pub(crate) fn post_to(url: Url, client: &Client, parameters: &[(&str, &str)]) -> Request {
    let mut form = form_urlencoded::Serializer::new(String::new());
    form.extend_pairs(parameters);
    let secret = client.secret.as_ref().map(Secret::expose);
    let authorization = match (client.authentication, secret) {
        (Authentication::ClientSecretBasic, Some(secret)) => Some(basic(&client.id, secret)),
        (Authentication::ClientSecretPost, Some(secret)) => {
            form.append_pair("client_id", &client.id);
            form.append_pair("client_secret", secret);
            None
        }
        (Authentication::PrivateKeyJwt, _) => {
            form.append_pair("client_id", &client.id);
            form.append_pair("client_assertion_type", ASSERTION);
            None
        }
        (_, _) => {
            form.append_pair("client_id", &client.id);
            None
        }
    };
    Request {
        url,
        authorization: authorization.map(Into::into),
        body: Some(Body::Form(form.finish().into())),
        assertion: None,
        proof: None,
    }
}

impl Request {
    /// The same request, with this nonce in its proof.
    pub(crate) fn with_nonce(mut self, nonce: &str) -> Self {
        if let Some(proof) = &mut self.proof {
            proof.set_nonce(nonce);
        }
        self
    }

    /// Adds the signed [assertion](Self::assertion) to the form.
    pub fn authenticate(&mut self, assertion: &Secret) {
        if let Some(Body::Form(form)) = &mut self.body {
            // A token has only characters that stand for themselves.
            let added = format!("{}&client_assertion={}", form.expose(), assertion.expose());
            *form = added.into();
        }
        self.assertion = None;
    }
}

fn basic(id: &str, secret: &str) -> String {
    let encode = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
    let pair = format!("{}:{}", encode(id), encode(secret));
    format!("Basic {}", STANDARD.encode(pair))
}
