//! `switchboard token`, with a gateway and without one.

use std::{fs, os::unix::fs::PermissionsExt as _};

use crate::support::{Gateway, Place, json};

/// Runs a command whose output is a token alone.
fn issued(place: &Place, args: &[&str]) -> String {
    let done = place.run(args);
    assert_eq!(done.code, Some(0), "{done:?}");
    let token = done.out.strip_suffix('\n').unwrap().to_owned();
    assert!(token.starts_with("swb_") && token.len() == 53, "{done:?}");
    assert!(!done.err.contains(&token), "{done:?}");
    token
}

/// Creates, lists, rotates and revokes a token.
fn round(place: &Place) {
    let nothing = "there are no tokens\nhint: `switchboard token create NAME` creates one\n";
    place.check(&["token", "list"], 0, "", nothing);
    let create = [
        "token",
        "create",
        "ci",
        "--profile",
        "work",
        "--server",
        "files",
    ];
    let first = issued(place, &create);
    let again = place.run(&create);
    assert_eq!(again.code, Some(1), "{again:?}");
    assert!(
        again.err.contains("there is already a token `ci`"),
        "{again:?}"
    );
    assert!(
        again.err.contains("switchboard token rotate ci"),
        "{again:?}"
    );
    let listed = json(place, &["token", "list", "--json"]);
    let token = &listed["tokens"][0];
    assert_eq!(token["rights"], serde_json::json!(["call"]), "{token}");
    assert_eq!(
        (&token["profile"], &token["servers"][0]),
        (&"work".into(), &"files".into())
    );
    let table = place.run(&["token", "list"]).out;
    assert!(table.contains("profile work; server files"), "{table}");
    let second = issued(place, &["token", "rotate", "ci"]);
    assert_ne!(first, second);
    let path = place.home().join("tokens.json");
    let stored = fs::read_to_string(&path).unwrap();
    for token in [first, second] {
        let (_, secret) = token.rsplit_once('_').unwrap();
        assert!(!stored.contains(secret), "only hashes are stored");
    }
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o600
    );
    place.check(
        &["token", "revoke", "ci"],
        0,
        "",
        "revoked the token `ci`\n",
    );
    let missing =
        "error: there is no token `ci`\nhint: `switchboard token list` lists the tokens\n";
    place.check(&["token", "revoke", "ci"], 1, "", missing);
    place.check(&["token", "rotate", "ci"], 1, "", missing);
    for (args, told) in [
        (["--profile", "wrk"], "did you mean `work`?"),
        (["--server", "file"], "did you mean `files`?"),
        (["--right", "root"], "'root'"),
        (["--expires", "soon"], "expected a duration"),
    ] {
        let done = place.run(&["token", "create", "x", args[0], args[1]]);
        assert!(done.code != Some(0) && done.err.contains(told), "{done:?}");
        assert_eq!(done.out, "", "{done:?}");
    }
    let log = place.run(&["audit", "list"]).out;
    for what in ["token-created", "token-rotated", "token-revoked"] {
        assert!(log.contains(what), "{log}");
    }
}

fn place() -> Place {
    let place = Place::new();
    place.write_config(
        r#"{"mcpServers": {"files": {"command": "x"}}, "profiles": {"work": {"servers": ["files"]}}}"#,
    );
    place
}

#[test]
fn tokens_are_managed_without_a_gateway() {
    round(&place());
}

#[test]
fn tokens_are_managed_with_a_gateway() {
    let place = place();
    let gateway = Gateway::start(&place, &[]);
    round(&place);
    drop(gateway);
}

#[test]
fn name_that_looks_like_a_token_is_refused() {
    let place = place();
    let token = format!("swb_{}_{}", "0".repeat(16), "1".repeat(32));
    let done = place.run(&["token", "create", &token]);
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(done.err.contains("a token's name"), "{done:?}");
}
