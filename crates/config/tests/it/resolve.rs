//! Resolution of references, and the messages if it fails.

use std::collections::BTreeMap;
use std::error::Error as _;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use switchboard_config::{
    CommandLine, Grant, Inherit, OAuth, Occasion, ResolveError, ResourceParameter, Server,
    Transport,
};
use switchboard_test_support::left_out::{Lack, lacks};

use super::{config, server};

fn secret(folder: &Path, name: &str, content: impl AsRef<[u8]>, mode: u32) {
    let path = folder.join(name);
    fs::write(&path, content).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn env(name: &str) -> Option<OsString> {
    match name {
        "A" => Some("alpha".into()),
        "EMPTY" => Some("".into()),
        "BYTES" => {
            use std::os::unix::ffi::OsStringExt as _;
            Some(OsString::from_vec(vec![0xff]))
        }
        _ => None,
    }
}

fn resolve(server: &Server, secrets: &Path) -> Result<Server, ResolveError> {
    let resolved = server.resolve("s", &Occasion::default(), secrets, &env)?;
    Ok(resolved.value)
}

#[test]
fn a_command() {
    let folder = tempfile::tempdir().unwrap();
    secret(folder.path(), "key", "  s3cret\r\n", 0o600);
    let text = r#"{"command": "${env:A}/x", "args": ["$HOME $${HOME} $$", "${secret:key}${env:EMPTY}"],
        "env": {"K": "<${secret:key}>"}, "inheritEnv": ["TZ"], "cwd": "/${env:A}", "maxQueued": 3}"#;
    let original = server(text);
    let resolved = resolve(&original, folder.path()).unwrap();
    assert_eq!(original, server(text), "the original keeps its references");
    assert_eq!(resolved.max_queued, 3);
    assert_eq!(
        resolved.transport,
        Transport::Command(CommandLine {
            command: "alpha/x".to_owned(),
            args: vec!["$HOME ${HOME} $$".to_owned(), "s3cret".to_owned()],
            env: BTreeMap::from([("K".to_owned(), "<s3cret>".to_owned())]),
            inherit_env: Inherit::Names(vec!["TZ".to_owned()]),
            cwd: Some("/alpha".to_owned()),
        })
    );
}

#[test]
fn an_address() {
    let folder = tempfile::tempdir().unwrap();
    secret(folder.path(), "key", "s3cret", 0o400);
    let original = server(
        r#"{"url": "https://${env:A}/mcp", "headers": {"Authorization": "Bearer ${secret:key}"}}"#,
    );
    let Transport::Remote(remote) = resolve(&original, folder.path()).unwrap().transport else {
        panic!("not an address")
    };
    assert_eq!(remote.url, "https://alpha/mcp");
    assert_eq!(remote.headers["Authorization"], "Bearer s3cret");
}

#[test]
fn a_sign_in() {
    let folder = tempfile::tempdir().unwrap();
    secret(folder.path(), "app", "s3cret-of-app", 0o600);
    let original = server(
        r#"{"url": "https://a/mcp", "oauth": {"clientId": "${env:A}", "clientSecret": "${secret:app}",
            "issuer": "https://${env:A}", "redirectUri": "http://127.0.0.1:8123/${env:A}", "scopes": ["a", "b"],
            "resource": false, "metadataUrl": "https://${env:A}/metadata", "assumePkce": true,
            "authorizationParameters": {"prompt": "consent"}, "grant": "client_credentials"}}"#,
    );
    let resolved = original.resolve("s", &Occasion::default(), folder.path(), &env);
    let resolved = resolved.unwrap();
    let is_known = |secret: &switchboard_redact::Secret| secret.value() == "s3cret-of-app";
    assert!(resolved.secrets.iter().any(is_known), "it is not redacted");
    let Transport::Remote(remote) = resolved.value.transport else {
        panic!("not an address")
    };
    let scopes = ["a", "b"].map(str::to_owned).to_vec();
    assert_eq!(
        remote.oauth,
        OAuth {
            client_id: Some("alpha".to_owned()),
            client_secret: Some("s3cret-of-app".to_owned()),
            private_key: None,
            key_id: None,
            issuer: Some("https://alpha".to_owned()),
            client_metadata_url: None,
            redirect_uri: Some("http://127.0.0.1:8123/alpha".to_owned()),
            scopes: Some(scopes),
            resource: ResourceParameter::Omitted,
            metadata_url: Some("https://alpha/metadata".to_owned()),
            assume_pkce: true,
            authorization_parameters: [("prompt".to_owned(), "consent".to_owned())].into(),
            grant: Grant::ClientCredentials,
            assertion_file: None,
            identity_provider: None,
        }
    );
    assert!(!format!("{remote:?}").contains("s3cret"), "{remote:?}");
    let keyed = server(
        r#"{"url": "https://a/mcp", "oauth": {"clientId": "a", "privateKey": "${secret:app}", "keyId": "${env:A}"}}"#,
    );
    let resolved = keyed.resolve("s", &Occasion::default(), folder.path(), &env);
    let resolved = resolved.unwrap();
    assert!(resolved.secrets.iter().any(is_known), "it is not redacted");
    let Transport::Remote(remote) = resolved.value.transport else {
        panic!("not an address")
    };
    assert_eq!(remote.oauth.private_key.as_deref(), Some("s3cret-of-app"));
    assert_eq!(remote.oauth.key_id.as_deref(), Some("alpha"));
    assert!(!format!("{remote:?}").contains("s3cret"), "{remote:?}");
    let vouched = server(
        r#"{"url": "https://a/mcp", "oauth": {"clientId": "a", "identityProvider": {"tokenUrl": "https://${env:A}/token",
            "clientId": "${env:A}", "clientSecret": "${secret:app}", "idTokenFile": "${env:A}/id"}}}"#,
    );
    let resolved = vouched.resolve("s", &Occasion::default(), folder.path(), &env);
    let resolved = resolved.unwrap();
    assert!(resolved.secrets.iter().any(is_known), "it is not redacted");
    let Transport::Remote(remote) = resolved.value.transport else {
        panic!("not an address")
    };
    assert_eq!(remote.oauth.grant, Grant::JwtBearer);
    let provider = remote.oauth.identity_provider.as_ref().unwrap();
    assert_eq!(provider.token_url, "https://alpha/token");
    assert_eq!(
        [&*provider.client_id, &provider.id_token_file],
        ["alpha", "alpha/id"]
    );
    assert_eq!(provider.client_secret.as_deref(), Some("s3cret-of-app"));
    assert!(!format!("{remote:?}").contains("s3cret"), "{remote:?}");
    let other = server(r#"{"url": "https://a/mcp", "oauth": {"resource": "api://a"}}"#);
    let Transport::Remote(remote) = other.transport else {
        panic!("not an address")
    };
    let fixed = ResourceParameter::Fixed("api://a".to_owned());
    assert_eq!(remote.oauth.resource, fixed);
}

#[test]
fn a_container() {
    let original = server(
        r#"{"image": "${env:A}/x", "args": ["${env:A}1"], "env": {"K": "${env:A}2"},
            "isolation": {"mounts": ["/${env:A}:/x"], "runArgs": ["-l=${env:A}"], "memory": "1g"}}"#,
    );
    let Transport::Container(container) = resolve(&original, Path::new("/none")).unwrap().transport
    else {
        panic!("not a container")
    };
    assert_eq!(container.image, "alpha/x");
    assert_eq!(container.args, ["alpha1"]);
    assert_eq!(container.env["K"], "alpha2");
    assert_eq!(container.mounts, ["/alpha:/x"]);
    assert_eq!(container.run_args, ["-l=alpha"]);
    assert_eq!(container.memory.as_deref(), Some("1g"));
}

#[test]
fn a_provider() {
    let config = config(
        r#"{"sampling": {"provider": {"kind": "openai", "model": "m", "baseUrl": "http://${env:A}", "apiKey": "${env:NONE}"}}}"#,
    );
    let mut provider = config.sampling.provider.unwrap();
    assert_eq!(
        told(&provider.resolve(Path::new("/none"), &env).unwrap_err()),
        "sampling.provider.apiKey: the variable NONE is not set; set it in the environment of the gateway"
    );
    provider.api_key = Some("${env:A}".to_owned());
    let resolved = provider.resolve(Path::new("/none"), &env).unwrap().value;
    assert_eq!(resolved.base_url.as_deref(), Some("http://alpha"));
    assert_eq!(resolved.api_key.as_deref(), Some("alpha"));
}

#[test]
fn a_webhook() {
    let folder = tempfile::tempdir().unwrap();
    secret(folder.path(), "hook", "whsec_c2VjcmV0\n", 0o600);
    let config = config(
        r#"{"approvals": {"webhook": {"url": "https://${env:A}/x", "secret": "${secret:hook}"}}}"#,
    );
    let webhook = config.approvals.webhook.unwrap();
    let resolved = webhook.resolve(folder.path(), &env).unwrap().value;
    assert_eq!(resolved.url, "https://alpha/x");
    assert_eq!(resolved.secret, "whsec_c2VjcmV0");
    assert_eq!(resolved.on, ["escalated"]);
    let missing = webhook.resolve(Path::new("/none"), &env).unwrap_err();
    assert_eq!(
        told(&missing),
        "approvals.webhook.secret: the secret `hook` does not exist; store it with `switchboard secret set hook`"
    );
}

/// Resolves an entry for a caller in this directory.
fn resolve_in(project: &str, entry: &str) -> Result<Transport, ResolveError> {
    let occasion = Occasion {
        project: Some(project.into()),
        client: None,
    };
    let resolved = server(entry).resolve("s", &occasion, Path::new("/none"), &env)?;
    Ok(resolved.value.transport)
}

#[test]
fn placeholders_are_percent_encoded_for_remote_servers() {
    let entry = r#"{"url": "https://a/?in=${project}",
        "headers": {"X-Project": "${project}", "X-Name": "${project.name}", "X-Plain": "ü ${env:A}"}}"#;
    let Transport::Remote(remote) = resolve_in("/src/-ü b", entry).unwrap() else {
        panic!("not an address")
    };
    assert_eq!(remote.url, "https://a/?in=/src/-%C3%BC%20b");
    assert_eq!(remote.headers["X-Project"], "/src/-%C3%BC%20b");
    assert_eq!(remote.headers["X-Name"], "-%C3%BC%20b");
    assert_eq!(remote.headers["X-Plain"], "ü alpha");
}

#[test]
fn project_is_not_run_as_code() {
    for entry in [
        r#"{"command": "sh", "args": ["-ce", "ls ${project}"]}"#,
        r#"{"command": "${env:A}/sh", "args": ["-c", "ls ${project}"]}"#,
        r#"{"image": "x", "args": ["sh", "-c", "ls ${project}"]}"#,
        r#"{"image": "docker.io/library/node:20", "args": ["-e", "${project}"]}"#,
        r#"{"image": "x", "args": ["-c", "${project}"], "isolation": {"runArgs": ["--entrypoint", "/bin/sh"]}}"#,
        r#"{"image": "x", "args": ["-c", "${project}"], "isolation": {"runArgs": ["--entrypoint=sh"]}}"#,
    ] {
        let error = resolve_in("/src/$(x)", entry).unwrap_err();
        assert!(
            error.to_string().ends_with("would be run as code"),
            "{entry}: {error}"
        );
    }
    for entry in [
        r#"{"command": "python", "args": ["-m", "server", "-c", "${project}/cfg"]}"#,
        r#"{"image": "x", "args": ["-c", "${project}"]}"#,
    ] {
        resolve_in("/src/$(x)", entry).unwrap();
    }
}

#[test]
fn pasted_value_is_not_shown() {
    let folder = tempfile::tempdir().unwrap();
    let key = "sk-ant-api03-AbCdEfGhIjKlMnOp0123";
    for kind in ["env", "secret"] {
        let text = format!(r#"{{"command": "x", "env": {{"K": "${{{kind}:{key}}}"}}}}"#);
        for content in [None, Some((0o600, "")), Some((0o644, "x"))] {
            if let Some((mode, content)) = content {
                secret(folder.path(), key, content, mode);
            }
            let error = resolve(&server(&text), folder.path()).unwrap_err();
            let told = format!("{error} {error:?}");
            assert!(!told.contains("AbCdEf"), "{told}");
            assert!(
                told.contains("env.K: ") && told.contains("[redacted]"),
                "{told}"
            );
        }
        let _ = fs::remove_file(folder.path().join(key));
    }
}

#[test]
fn failed_references_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    secret(path, "open", "s3cret", 0o640);
    secret(path, "empty", " \n", 0o600);
    secret(path, "bytes", [0xff], 0o600);
    secret(path, "zero", "a\0b", 0o600);
    secret(path, "long", "x".repeat(64 * 1024 + 1), 0o600);
    fs::create_dir(path.join("folder")).unwrap();
    std::os::unix::fs::symlink("link", path.join("link")).unwrap();
    let shown = path.display();
    for (entry, expected) in [
        (
            r#"{"command": "a", "env": {"TOKEN": "${env:NONE}"}}"#,
            "server `s`, env.TOKEN: the variable NONE is not set; set it in the environment of the gateway".to_owned(),
        ),
        (
            r#"{"command": "a", "args": ["x", "${env:BYTES}"]}"#,
            "server `s`, args[1]: the variable BYTES is not UTF-8 text; set it to UTF-8 text".to_owned(),
        ),
        (
            r#"{"url": "http://a", "headers": {"X-Key": "${secret:none}"}}"#,
            "server `s`, headers.X-Key: the secret `none` does not exist; store it with `switchboard secret set none`".to_owned(),
        ),
        (
            r#"{"url": "http://a/${secret:open}"}"#,
            format!("server `s`, url: other users can read the secret `open` (mode 640); run `chmod 600 {shown}/open`"),
        ),
        (
            r#"{"command": "a", "cwd": "${secret:empty}"}"#,
            format!("server `s`, cwd: the secret `empty` is empty; write the secret to {shown}/empty again"),
        ),
        (
            r#"{"command": "${secret:bytes}"}"#,
            format!("server `s`, command: the secret `bytes` is not UTF-8 text; write the secret to {shown}/bytes again"),
        ),
        (
            r#"{"image": "${secret:zero}"}"#,
            format!("server `s`, image: the secret `zero` contains a NUL byte; write the secret to {shown}/zero again"),
        ),
        (
            r#"{"image": "${secret:long}"}"#,
            format!("server `s`, image: the secret `long` is longer than 64 KiB; write the secret to {shown}/long again"),
        ),
        (
            r#"{"image": "a", "isolation": {"mounts": ["${secret:folder}:/x"]}}"#,
            format!("server `s`, isolation.mounts[0]: the secret `folder` is not a regular file; write the secret to {shown}/folder again"),
        ),
        (
            r#"{"command": "${secret:link}"}"#,
            format!("server `s`, command: cannot read the secret `link`; check that {shown}/link is a file that you can read"),
        ),
    ] {
        let error = resolve(&server(entry), path).unwrap_err();
        assert_eq!(told(&error), expected);
        assert_eq!(error.source().is_some(), entry.contains(":link"), "{error:?}");
    }
}

#[test]
fn secret_of_another_user_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    secret(folder.path(), "key", "s3cret", 0o600);
    // Only root can change the owner of a file, and still read it.
    let given = std::os::unix::fs::chown(folder.path().join("key"), Some(65_534), None);
    if let Err(error) = given {
        return lacks(Lack::Root, &error.to_string());
    }
    let error = resolve(&server(r#"{"command": "${secret:key}"}"#), folder.path()).unwrap_err();
    assert!(
        error.to_string().contains("belongs to another user"),
        "{error}"
    );
}

#[test]
fn malformed_entry_is_not_resolved() {
    let made = server(r#"{"command": "a", "env": {"A": "${secret:none}", "B": "${projct}"}}"#);
    assert_eq!(
        told(&resolve(&made, Path::new("/none")).unwrap_err()),
        "switchboard.json:1:75: unknown reference \"${projct}\"; did you mean ${project}?"
    );
}

#[test]
fn unparsed_reference_is_checked() {
    let mut made = server(r#"{"command": "a"}"#);
    let Transport::Command(line) = &mut made.transport else {
        panic!("not a command")
    };
    line.args.push("${secret:../../token}".to_owned());
    assert_eq!(
        told(&resolve(&made, Path::new("/none")).unwrap_err()),
        "server `s`, args[0]: \"../../token\" is not a valid name for a secret; use up to 128 letters, digits, _, - and dots, with no dot at the start"
    );
}

/// The message and the hint, which every error here has.
fn told(error: &ResolveError) -> String {
    format!("{error}; {}", error.hint().unwrap())
}
