//! Requests to the endpoints of an authorization server.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use url::{Url, form_urlencoded};

use crate::{Authentication, Body, Client, Credential, Request};

/// A request to the token endpoint, which authenticates the client.
pub(crate) fn to_token_endpoint(
    credential: &Credential,
    parameters: &[(&str, &str)],
) -> Option<Request> {
    post(&credential.token_endpoint, &credential.client, parameters)
}

/// A form with these parameters, which authenticates the client. `None` if the address is not a URL.
pub(crate) fn post(address: &str, client: &Client, parameters: &[(&str, &str)]) -> Option<Request> {
    let url = Url::parse(address).ok()?;
    let mut form = form_urlencoded::Serializer::new(String::new());
    form.extend_pairs(parameters);
    let secret = client.secret.as_ref().map(crate::Secret::expose);
    let authorization = match (client.authentication, secret) {
        (Authentication::ClientSecretBasic, Some(secret)) => Some(basic(&client.id, secret)),
        (Authentication::ClientSecretPost, Some(secret)) => {
            form.append_pair("client_id", &client.id);
            form.append_pair("client_secret", secret);
            None
        }
        (_, _) => {
            form.append_pair("client_id", &client.id);
            None
        }
    };
    Some(Request {
        url,
        authorization: authorization.map(Into::into),
        body: Some(Body::Form(form.finish().into())),
    })
}

fn basic(id: &str, secret: &str) -> String {
    let encode = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
    let pair = format!("{}:{}", encode(id), encode(secret));
    format!("Basic {}", STANDARD.encode(pair))
}
