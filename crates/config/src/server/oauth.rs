//! Converts `oauth` of an entry.

use std::collections::BTreeMap;

use crate::{
    diagnostic::Problems,
    json::Json,
    model::{Grant, OAuth, ResourceParameter},
    read::{Block, references},
};

/// The texts that may have references.
const TEXTS: [&str; 9] = [
    "clientId",
    "clientSecret",
    "privateKey",
    "keyId",
    "issuer",
    "clientMetadataUrl",
    "redirectUri",
    "resource",
    "metadataUrl",
];

/// The parameters of an authorization request that the gateway sets.
const RESERVED: [&str; 8] = [
    "response_type",
    "client_id",
    "redirect_uri",
    "state",
    "code_challenge",
    "code_challenge_method",
    "scope",
    "resource",
];

pub(super) fn read(
    entry: Block<'_, '_>,
    headers: &BTreeMap<String, String>,
    problems: &mut Problems,
    malformed: &mut Problems,
) -> OAuth {
    let Some(block) = entry.block("oauth") else {
        return OAuth::default();
    };
    let mut names = headers.keys();
    if names.any(|name| name.eq_ignore_ascii_case("authorization")) {
        problems.add_with_hint(
            entry.at("oauth"),
            "\"oauth\" has no effect beside the header \"Authorization\"",
            "remove one of them",
        );
    }
    references(block, &TEXTS, malformed);
    for key in TEXTS {
        if block.text(key).is_some_and(|text| text.trim().is_empty()) {
            problems.add(block.at(key), format!("\"{key}\" is empty"));
        }
    }
    let text = |key| block.text(key).map(str::to_owned);
    let oauth = OAuth {
        client_id: text("clientId"),
        client_secret: text("clientSecret"),
        private_key: text("privateKey"),
        key_id: text("keyId"),
        issuer: text("issuer"),
        client_metadata_url: text("clientMetadataUrl"),
        redirect_uri: text("redirectUri"),
        scopes: block.texts("scopes"),
        resource: match block.value("resource") {
            Some(Json::Bool(false)) => ResourceParameter::Omitted,
            Some(Json::Text(text)) => ResourceParameter::Fixed(text.clone().into_owned()),
            _ => ResourceParameter::Published,
        },
        metadata_url: text("metadataUrl"),
        assume_pkce: block.flag("assumePkce").unwrap_or_default(),
        authorization_parameters: block.map("authorizationParameters").unwrap_or_default(),
        grant: match block.text("grant") {
            Some("client_credentials") => Grant::ClientCredentials,
            _ => Grant::AuthorizationCode,
        },
    };
    if oauth.client_id.is_none() {
        for key in ["clientSecret", "privateKey", "issuer"] {
            if block.text(key).is_some() {
                problems.add_with_hint(
                    block.at(key),
                    format!("\"{key}\" has no effect without \"clientId\""),
                    "add \"clientId\", the ID of the client that you have registered",
                );
            }
        }
    }
    if oauth.private_key.is_some() && oauth.client_secret.is_some() {
        problems.add_with_hint(
            block.at("privateKey"),
            "\"privateKey\" replaces \"clientSecret\"",
            "remove one of them",
        );
    }
    if oauth.key_id.is_some() && oauth.private_key.is_none() {
        problems.add_with_hint(
            block.at("keyId"),
            "\"keyId\" has no effect without \"privateKey\"",
            "add the key, or remove its ID",
        );
    }
    let can_prove = oauth.client_secret.is_some() || oauth.private_key.is_some();
    if oauth.grant == Grant::ClientCredentials && (oauth.client_id.is_none() || !can_prove) {
        problems.add_with_hint(
            block.at("grant"),
            "a client that signs in for itself needs \"clientId\", and \"clientSecret\" or \"privateKey\"",
            "add them, or remove \"grant\"",
        );
    }
    for name in oauth.authorization_parameters.keys() {
        if RESERVED.contains(&name.as_str()) {
            problems.add_with_hint(
                block.at("authorizationParameters"),
                format!("the gateway sets the parameter \"{name}\" itself"),
                "remove it; \"clientId\", \"redirectUri\", \"scopes\" and \"resource\" have keys of their own",
            );
        }
    }
    for key in ["issuer", "clientMetadataUrl", "metadataUrl"] {
        let is_url = |text: &str| text.starts_with("https://") || text.contains("${");
        // Authorization servers on this machine are reached over HTTP.
        let is_plain = |text: &str| key != "clientMetadataUrl" && text.starts_with("http://");
        if let Some(text) = block.text(key)
            && !is_url(text)
            && !is_plain(text)
        {
            problems.add_with_hint(
                block.at(key),
                format!("\"{key}\" is not an https:// URL"),
                "copy it from the documentation of the provider",
            );
        }
    }
    oauth
}
