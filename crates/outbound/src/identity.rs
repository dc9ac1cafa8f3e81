//! The identity of a server: the fields of its entry that determine what is started or reached, defined in
//! one place. Fingerprints, the question to the approver and the audit log are derived from this list.

use std::{collections::BTreeMap, path::Path};

use serde::Serialize;
use sha2::{Digest as _, Sha256};
use switchboard_config::{
    CommandLine, Container, Grant, IdentityProvider, Inherit, Network, OAuth, Remote, RemoteKind,
    ResourceParameter, Server, Transport,
};
use switchboard_text::hex;

/// One field, under its key in the configuration.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Field<'a> {
    pub(crate) key: &'static str,
    pub(crate) value: Value<'a>,
    #[serde(skip)]
    pub(crate) part: Part,
}

/// The role of a field in the identity of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// The command line, the URL, or the image with its arguments.
    Program,
    /// The environment of the program, in which the same command line can mean something else.
    Surroundings,
    /// Keys, tokens and limits. They change over time and do not make it another server.
    Setting,
}

/// The value of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub(crate) enum Value<'a> {
    Absent,
    Flag(bool),
    Number(u32),
    Text(&'a str),
    /// It is never shown.
    Secret(&'a str),
    List(&'a [String]),
    /// Values may be secrets.
    Map(&'a BTreeMap<String, String>),
}

impl<'a> Value<'a> {
    fn optional(text: Option<&'a str>) -> Self {
        text.map_or(Self::Absent, Self::Text)
    }

    fn secret(text: Option<&'a str>) -> Self {
        text.map_or(Self::Absent, Self::Secret)
    }

    /// Tests if leaving the field out would mean the same.
    fn is_default(self) -> bool {
        match self {
            Self::Absent | Self::Flag(false) => true,
            Self::Flag(true) | Self::Number(_) | Self::Text(_) | Self::Secret(_) => false,
            Self::List(list) => list.is_empty(),
            Self::Map(map) => map.is_empty(),
        }
    }
}

/// The fields that determine what is started or reached, without the ones that are not set.
pub(crate) fn fields(transport: &Transport) -> Vec<Field<'_>> {
    use Part::{Program, Setting, Surroundings};
    // Destructured, so that a new field has to be considered here.
    let all = match transport {
        Transport::BuiltIn => Vec::new(),
        Transport::Command(CommandLine {
            command,
            args,
            env,
            inherit_env,
            cwd,
        }) => vec![
            (Program, "command", Value::Text(command)),
            (Program, "args", Value::List(args)),
            (Surroundings, "cwd", Value::optional(cwd.as_deref())),
            (Setting, "env", Value::Map(env)),
            (
                Setting,
                "inheritEnv",
                match inherit_env {
                    Inherit::All => Value::Flag(true),
                    Inherit::Names(names) => Value::List(names),
                },
            ),
        ],
        Transport::Remote(remote) => of_remote(remote),
        Transport::Container(Container {
            image,
            args,
            env,
            engine,
            network,
            memory,
            cpus,
            pids,
            mounts,
            read_only,
            run_args,
        }) => vec![
            (Program, "image", Value::Text(image)),
            (Program, "args", Value::List(args)),
            (Surroundings, "engine", Value::List(engine)),
            (
                Surroundings,
                "network",
                match network {
                    Network::None => Value::Flag(false),
                    Network::Default => Value::Flag(true),
                    Network::Named(name) => Value::Text(name),
                },
            ),
            (Surroundings, "mounts", Value::List(mounts)),
            (Surroundings, "runArgs", Value::List(run_args)),
            (Setting, "env", Value::Map(env)),
            (Setting, "memory", Value::optional(memory.as_deref())),
            (Setting, "cpus", Value::optional(cpus.as_deref())),
            (Setting, "pids", pids.map_or(Value::Absent, Value::Number)),
            (Setting, "readOnly", Value::Flag(*read_only)),
        ],
    };
    let given = all.into_iter().filter(|(_, _, value)| !value.is_default());
    given
        .map(|(part, key, value)| Field { key, value, part })
        .collect()
}

/// The fields of a server at an address.
fn of_remote(remote: &Remote) -> Vec<(Part, &'static str, Value<'_>)> {
    use Part::{Program, Setting};
    let Remote {
        url,
        headers,
        kind,
        oauth,
    } = remote;
    let mut fields = vec![
        (Program, "url", Value::Text(url)),
        (Setting, "headers", Value::Map(headers)),
        (
            Setting,
            "type",
            match kind {
                RemoteKind::Auto => Value::Absent,
                RemoteKind::Http => Value::Text("http-only"),
                RemoteKind::Sse => Value::Text("sse"),
            },
        ),
    ];
    let of_oauth = of_oauth(oauth).into_iter();
    fields.extend(of_oauth.map(|(name, value)| (Setting, name, value)));
    fields
}

/// The fields of a sign-in.
fn of_oauth(oauth: &OAuth) -> Vec<(&'static str, Value<'_>)> {
    let OAuth {
        client_id,
        client_secret,
        private_key,
        key_id,
        issuer,
        client_metadata_url,
        redirect_uri,
        scopes,
        resource,
        metadata_url,
        assume_pkce,
        authorization_parameters,
        grant,
        assertion_file,
        identity_provider,
    } = oauth;
    let provider = |text: fn(&IdentityProvider) -> Option<&str>| {
        Value::optional(identity_provider.as_ref().and_then(text))
    };
    vec![
        ("clientId", Value::optional(client_id.as_deref())),
        ("clientSecret", Value::secret(client_secret.as_deref())),
        ("privateKey", Value::secret(private_key.as_deref())),
        ("keyId", Value::optional(key_id.as_deref())),
        ("issuer", Value::optional(issuer.as_deref())),
        (
            "clientMetadataUrl",
            Value::optional(client_metadata_url.as_deref()),
        ),
        ("redirectUri", Value::optional(redirect_uri.as_deref())),
        (
            "scopes",
            scopes.as_deref().map_or(Value::Absent, Value::List),
        ),
        (
            "resource",
            match resource {
                ResourceParameter::Published => Value::Absent,
                ResourceParameter::Fixed(resource) => Value::Text(resource),
                ResourceParameter::Omitted => Value::Text("false"),
            },
        ),
        ("metadataUrl", Value::optional(metadata_url.as_deref())),
        ("assumePkce", Value::Flag(*assume_pkce)),
        (
            "authorizationParameters",
            Value::Map(authorization_parameters),
        ),
        (
            "grant",
            match grant {
                Grant::AuthorizationCode => Value::Absent,
                Grant::DeviceCode => Value::Text("device_code"),
                Grant::ClientCredentials => Value::Text("client_credentials"),
                Grant::JwtBearer => Value::Text("jwt_bearer"),
            },
        ),
        ("assertionFile", Value::optional(assertion_file.as_deref())),
        ("tokenUrl", provider(|it| Some(&it.token_url))),
        ("idpClientId", provider(|it| Some(&it.client_id))),
        (
            "idpClientSecret",
            Value::secret(
                identity_provider
                    .as_ref()
                    .and_then(|it| it.client_secret.as_deref()),
            ),
        ),
        ("idTokenFile", provider(|it| Some(&it.id_token_file))),
    ]
}

/// The words of the command line, the URL, or the image with its arguments.
pub(crate) fn words<'a>(fields: &[Field<'a>]) -> Vec<&'a str> {
    let program = fields.iter().filter(|field| field.part == Part::Program);
    let mut words = Vec::new();
    for field in program {
        match field.value {
            Value::Text(word) => words.push(word),
            Value::List(list) => words.extend(list.iter().map(String::as_str)),
            Value::Absent
            | Value::Flag(_)
            | Value::Number(_)
            | Value::Secret(_)
            | Value::Map(_) => {}
        }
    }
    words
}

/// The identity that approved definitions and remembered decisions are bound to: the program and its
/// surroundings. Keys and tokens change over time and do not make it another server.
pub(crate) fn identity(server: &Server) -> String {
    #[derive(Serialize)]
    #[serde(untagged)]
    enum Piece<'a> {
        Word(&'a str),
        Surroundings(BTreeMap<&'static str, Value<'a>>),
    }
    let kind = match server.transport {
        Transport::BuiltIn => "built-in",
        Transport::Command(_) => "command",
        Transport::Remote(_) => "remote",
        Transport::Container(_) => "container",
    };
    let fields = fields(&server.transport);
    let words = std::iter::once(kind).chain(words(&fields));
    let mut pieces: Vec<_> = words.map(Piece::Word).collect();
    let surroundings = fields
        .iter()
        .filter(|field| field.part == Part::Surroundings);
    let surroundings: BTreeMap<_, _> = surroundings.map(|field| (field.key, field.value)).collect();
    // Left out if empty, so that pins from before surroundings were part of the identity stay valid.
    if !surroundings.is_empty() {
        pieces.push(Piece::Surroundings(surroundings));
    }
    // JSON, so that two different lists never have the same spelling: a word is a string, and the
    // surroundings are an object.
    serde_json::to_string(&pieces).unwrap_or_default()
}

/// A hash of the identity.
pub fn identity_hash(server: &Server) -> String {
    hex::encode(&Sha256::digest(identity(server)))
}

/// A hash of every field, with the values of variables and headers as spelled in the configuration. It
/// identifies an entry that was approved, or whose offers are known.
pub(crate) fn fingerprint(server: &Server) -> String {
    let fields = serde_json::to_string(&fields(&server.transport)).unwrap_or_default();
    hex::encode(&Sha256::digest(fields)[..HASH_BYTES])
}

/// The fingerprint of a start: that of the entry, and the file that its command resolves to.
pub(crate) fn start_fingerprint(server: &Server, file: Option<&Path>) -> String {
    let mut both = Sha256::new();
    both.update(fingerprint(server));
    // A path need not be valid text.
    if let Some(file) = file {
        both.update(b"\0");
        both.update(file.as_os_str().as_encoded_bytes());
    }
    hex::encode(&both.finalize()[..HASH_BYTES])
}

/// The length of a hash, in bytes. It is long enough that a second entry with the same hash cannot be found.
pub(crate) const HASH_BYTES: usize = 16;

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn server(entry: &Value) -> Server {
        let text = json!({ "mcpServers": { "a": entry } }).to_string();
        let config = switchboard_config::parse(&text, "switchboard.json").unwrap();
        config.servers["a"].clone()
    }

    fn changed(entry: &Value, pointer: &str, value: Value) -> Server {
        let mut entry = entry.clone();
        *entry.pointer_mut(pointer).unwrap() = value;
        server(&entry)
    }

    fn command() -> Value {
        json!({
            "command": "npx", "args": ["-y", "x"], "env": { "A": "b" }, "inheritEnv": ["C"], "cwd": "/d",
        })
    }

    fn remote() -> Value {
        json!({
            "url": "https://a/mcp", "headers": { "A": "b" }, "type": "sse",
            "oauth": {
                "clientId": "c", "clientSecret": "d", "issuer": "https://e", "clientMetadataUrl": "https://f",
                "redirectUri": "http://127.0.0.1/", "scopes": ["g"], "resource": "h",
                "grant": "authorization_code", "metadataUrl": "https://i", "assumePkce": false,
                "authorizationParameters": { "j": "k" },
            },
        })
    }

    fn vouched(url: &str, id: &str, secret: &str, file: &str) -> Value {
        json!({
            "clientId": "c",
            "identityProvider": { "tokenUrl": url, "clientId": id, "clientSecret": secret, "idTokenFile": file },
        })
    }

    #[test]
    fn fingerprint_covers_the_identity_provider() {
        let fingerprint_of = |oauth| fingerprint(&changed(&remote(), "/oauth", oauth));
        let base = fingerprint_of(vouched("https://a", "b", "c", "/d"));
        for other in [
            vouched("https://x", "b", "c", "/d"),
            vouched("https://a", "x", "c", "/d"),
            vouched("https://a", "b", "x", "/d"),
            vouched("https://a", "b", "c", "/x"),
        ] {
            assert_ne!(fingerprint_of(other.clone()), base, "{other}");
        }
    }

    fn container() -> Value {
        json!({
            "image": "i", "args": ["x"], "env": { "A": "b" },
            "isolation": {
                "engine": "podman", "network": "web", "memory": "1g", "cpus": "1", "pids": 9,
                "mounts": ["/a:/a"], "readOnly": true, "runArgs": ["-q"],
            },
        })
    }

    #[test]
    fn identity_without_surroundings_is_unchanged() {
        for (entry, identity) in [
            (
                json!({ "command": "npx", "args": ["-y", "x"] }),
                r#"["command","npx","-y","x"]"#,
            ),
            (
                json!({ "url": "https://a/mcp" }),
                r#"["remote","https://a/mcp"]"#,
            ),
            (
                json!({ "image": "i", "args": ["x"], "isolation": { "network": false } }),
                r#"["container","i","x"]"#,
            ),
        ] {
            assert_eq!(super::identity(&server(&entry)), identity);
        }
    }

    #[test]
    fn every_field_counts_in_the_fingerprint() {
        let (one, two, three) = (command(), remote(), container());
        for (entry, pointer, value) in [
            (&one, "/command", json!("uvx")),
            (&one, "/args/1", json!("y")),
            (&one, "/env/A", json!("c")),
            (&one, "/inheritEnv/0", json!("D")),
            (&one, "/inheritEnv", json!(true)),
            (&one, "/cwd", json!("/e")),
            (&two, "/url", json!("https://a/other")),
            (&two, "/headers/A", json!("c")),
            (&two, "/type", json!("http-only")),
            (&two, "/oauth/clientId", json!("x")),
            (&two, "/oauth/clientSecret", json!("x")),
            (
                &two,
                "/oauth",
                json!({ "clientId": "c", "privateKey": "x" }),
            ),
            (
                &two,
                "/oauth",
                json!({ "clientId": "c", "privateKey": "d", "keyId": "x" }),
            ),
            (
                &two,
                "/oauth",
                json!({ "clientId": "c", "grant": "jwt_bearer", "assertionFile": "/x" }),
            ),
            (&two, "/oauth", vouched("https://x", "c", "d", "/e")),
            (&two, "/oauth/issuer", json!("https://x")),
            (&two, "/oauth/clientMetadataUrl", json!("https://x")),
            (&two, "/oauth/redirectUri", json!("x")),
            (&two, "/oauth/scopes/0", json!("x")),
            (&two, "/oauth/resource", json!(false)),
            (&two, "/oauth/grant", json!("client_credentials")),
            (
                &two,
                "/oauth",
                json!({ "clientId": "c", "grant": "device_code" }),
            ),
            (&two, "/oauth/metadataUrl", json!("https://x")),
            (&two, "/oauth/assumePkce", json!(true)),
            (&two, "/oauth/authorizationParameters/j", json!("x")),
            (&three, "/image", json!("j")),
            (&three, "/args/0", json!("y")),
            (&three, "/env/A", json!("c")),
            (&three, "/isolation/engine", json!("docker")),
            (&three, "/isolation/network", json!(true)),
            (&three, "/isolation/memory", json!("2g")),
            (&three, "/isolation/cpus", json!("2")),
            (&three, "/isolation/pids", json!(8)),
            (&three, "/isolation/mounts/0", json!("/b:/a")),
            (&three, "/isolation/readOnly", json!(false)),
            (&three, "/isolation/runArgs/0", json!("-v")),
        ] {
            let other = changed(entry, pointer, value);
            assert_ne!(
                fingerprint(&other),
                fingerprint(&server(entry)),
                "{pointer}"
            );
        }
    }

    #[test]
    fn surroundings_count_in_the_identity() {
        let (one, three) = (command(), container());
        for (entry, pointer, value, is_same) in [
            (&one, "/cwd", json!("/e"), false),
            (&one, "/env/A", json!("c"), true),
            (&one, "/inheritEnv", json!(true), true),
            (&three, "/isolation/engine", json!("docker"), false),
            (&three, "/isolation/network", json!(false), false),
            (&three, "/isolation/mounts", json!([]), false),
            (&three, "/isolation/runArgs/0", json!("-v"), false),
            (&three, "/isolation/memory", json!("2g"), true),
        ] {
            let other = changed(entry, pointer, value);
            let same = identity_hash(&other) == identity_hash(&server(entry));
            assert_eq!(same, is_same, "{pointer}");
        }
    }

    #[test]
    fn fields_are_not_confused_with_each_other() {
        let with_env = json!({ "command": "x", "env": { "a": "b" } });
        let with_cwd = json!({ "command": "x", "cwd": "a", "inheritEnv": ["b"] });
        assert_ne!(
            fingerprint(&server(&with_env)),
            fingerprint(&server(&with_cwd))
        );
        let in_args = json!({ "command": "x", "args": [r#"{"cwd":"a"}"#] });
        let in_cwd = json!({ "command": "x", "cwd": "a" });
        assert_ne!(identity(&server(&in_args)), identity(&server(&in_cwd)));
    }
}
