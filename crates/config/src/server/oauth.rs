//! Converts `oauth` of an entry.

use std::collections::BTreeMap;

use crate::{
    diagnostic::Problems,
    json::Json,
    model::{Grant, IdentityProvider, OAuth, ResourceParameter},
    read::{Block, references},
};

/// The texts that may have references.
const TEXTS: [&str; 10] = [
    "clientId",
    "clientSecret",
    "privateKey",
    "keyId",
    "issuer",
    "clientMetadataUrl",
    "redirectUri",
    "resource",
    "metadataUrl",
    "assertionFile",
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

/// Those of `identityProvider`.
const OF_PROVIDER: [&str; 4] = ["tokenUrl", "clientId", "clientSecret", "idTokenFile"];

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
    check_texts(block, &TEXTS, problems, malformed);
    let identity_provider = block
        .block("identityProvider")
        .map(|block| provider(block, problems, malformed));
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
            Some("device_code") => Grant::DeviceCode,
            Some("client_credentials") => Grant::ClientCredentials,
            Some("jwt_bearer") => Grant::JwtBearer,
            Some(_) => Grant::AuthorizationCode,
            // Only this grant has one.
            None if identity_provider.is_some() => Grant::JwtBearer,
            None => Grant::AuthorizationCode,
        },
        assertion_file: text("assertionFile"),
        identity_provider,
    };
    check_assertion(block, &oauth, problems);
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
    if oauth.redirect_uri.is_some() && oauth.grant == Grant::DeviceCode {
        problems.add_with_hint(
            block.at("redirectUri"),
            "\"redirectUri\" has no effect with \"grant\": \"device_code\"",
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
        check_url(block, key, problems);
    }
    oauth
}

/// Reads `identityProvider`.
fn provider(
    block: Block<'_, '_>,
    problems: &mut Problems,
    malformed: &mut Problems,
) -> IdentityProvider {
    check_texts(block, &OF_PROVIDER, problems, malformed);
    for key in ["tokenUrl", "clientId", "idTokenFile"] {
        if block.text(key).is_none() {
            problems.add(
                block.0.start,
                format!("\"identityProvider\" needs \"{key}\""),
            );
        }
    }
    let text = |key| block.text(key).map(str::to_owned);
    let read = IdentityProvider {
        token_url: text("tokenUrl").unwrap_or_default(),
        client_id: text("clientId").unwrap_or_default(),
        client_secret: text("clientSecret"),
        id_token_file: text("idTokenFile").unwrap_or_default(),
    };
    check_url(block, "tokenUrl", problems);
    check_file(block, "idTokenFile", problems);
    read
}

/// Checks that a client that presents an assertion has one, and no other does.
fn check_assertion(block: Block<'_, '_>, oauth: &OAuth, problems: &mut Problems) {
    let sources = [
        ("assertionFile", oauth.assertion_file.is_some()),
        ("identityProvider", oauth.identity_provider.is_some()),
    ];
    if oauth.grant != Grant::JwtBearer {
        for (key, _) in sources.into_iter().filter(|(_, is_set)| *is_set) {
            problems.add_with_hint(
                block.at(key),
                format!("\"{key}\" has no effect without \"grant\": \"jwt_bearer\""),
                "set this grant, or remove the key",
            );
        }
        return;
    }
    check_file(block, "assertionFile", problems);
    let at = if block.text("grant").is_some() {
        "grant"
    } else {
        "identityProvider"
    };
    if oauth.client_id.is_none() {
        problems.add_with_hint(
            block.at(at),
            "a client that presents an assertion needs \"clientId\"",
            "add it, or remove \"grant\"",
        );
    }
    let set = sources.iter().filter(|(_, is_set)| *is_set).count();
    if set != 1 {
        problems.add_with_hint(
            block.at(at),
            "the assertion comes from either \"assertionFile\" or \"identityProvider\"",
            if set == 0 {
                "add one of them"
            } else {
                "remove one of them"
            },
        );
    }
}

fn check_texts(
    block: Block<'_, '_>,
    keys: &[&'static str],
    problems: &mut Problems,
    malformed: &mut Problems,
) {
    references(block, keys, malformed);
    for key in keys {
        if block.text(key).is_some_and(|text| text.trim().is_empty()) {
            problems.add(block.at(key), format!("\"{key}\" is empty"));
        }
    }
}

fn check_url(block: Block<'_, '_>, key: &str, problems: &mut Problems) {
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

fn check_file(block: Block<'_, '_>, key: &str, problems: &mut Problems) {
    let is_absolute = |text: &str| text.starts_with('/') || text.starts_with("${");
    if block.text(key).is_some_and(|text| !is_absolute(text)) {
        problems.add_with_hint(
            block.at(key),
            format!("\"{key}\" is not the path of a file"),
            "write the whole path, which begins with /",
        );
    }
}
