//! Secrets: stored, listed, removed, and moved out of added and imported servers.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path};

use serde_json::Value;

use crate::{
    support::{Place, json},
    terminal,
};

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn entry(place: &Place, server: &str) -> Value {
    let text = fs::read_to_string(place.config()).unwrap();
    let config: Value = serde_json::from_str(&text).unwrap();
    config["mcpServers"][server].clone()
}

fn stored(place: &Place) -> Vec<(String, String)> {
    let mut all: Vec<_> = fs::read_dir(place.home().join("secrets"))
        .into_iter()
        .flatten()
        .map(|entry| {
            let path = entry.unwrap().path();
            assert_eq!(mode(&path), 0o600);
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            (name, fs::read_to_string(&path).unwrap())
        })
        .collect();
    all.sort();
    all
}

#[test]
fn value_as_the_name_is_refused() {
    let place = Place::new();
    let key = "sk-ant-api03-AbCdEfGhIjKlMnOp0123";
    let done = place.run_with_input(&["secret", "set", key], "x\n");
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(done.err.contains("choose a name") && !done.err.contains(key));
    assert_eq!(stored(&place), []);
}

#[test]
fn secret_is_set_listed_and_removed() {
    let place = Place::new();
    place.write_config(
        r#"{"mcpServers": {"a": {"command": "x", "env": {"K": "${secret:key}", "L": "${secret:gone}"}}}}"#,
    );
    let done = place.run_with_input(&["secret", "set", "key"], "swordfish\n");
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(!done.err.contains("swordfish"), "{done:?}");
    assert_eq!(stored(&place), [("key".into(), "swordfish".into())]);
    assert_eq!(mode(&place.home().join("secrets")), 0o700);
    place.check(
        &["secret", "list"],
        0,
        "NAME  MODE     USED BY\nkey   600      a\ngone  missing  a\n",
        "",
    );
    let listed = json(&place, &["secret", "list", "--json"]);
    assert_eq!(listed["secrets"][0]["usedBy"][0], "a");
    place.check(
        &["secret", "rm", "key"],
        1,
        "",
        "error: the secret `key` is used by `a`\nhint: remove it there first, or use --force\n",
    );
    let done = place.run(&["secret", "rm", "key", "--force"]);
    assert_eq!((done.code, stored(&place).len()), (Some(0), 0), "{done:?}");
    assert_eq!(place.run(&["secret", "rm", "key"]).code, Some(1));
}

#[test]
fn secret_is_kept_while_the_configuration_is_broken() {
    let place = Place::new();
    place.write_secret("key", "swordfish");
    place.write_config(r#"{"mcpServers": {"a": {"comand": "x", "env": {"K": "${secret:key}"}}}}"#);
    let done = place.run(&["secret", "rm", "key"]);
    assert_eq!((done.code, stored(&place).len()), (Some(1), 1), "{done:?}");
    assert!(done.err.contains("--force"), "{done:?}");
    let done = place.run(&["secret", "rm", "key", "--force"]);
    assert_eq!((done.code, stored(&place).len()), (Some(0), 0), "{done:?}");
}

#[test]
fn undo_keeps_a_secret_that_was_replaced() {
    let place = Place::new();
    place.write("user/.cursor/mcp.json", CURSOR);
    assert_eq!(place.run(&["import", "--yes"]).code, Some(0));
    let done = place.run_with_input(&["secret", "set", "git-token"], "a-newer-one");
    assert_eq!(done.code, Some(0), "{done:?}");
    assert_eq!(place.run(&["import", "--undo"]).code, Some(0));
    assert_eq!(stored(&place), [("git-token".into(), "a-newer-one".into())]);
}

#[test]
fn arrow_keys_are_no_part_of_a_secret() {
    let place = Place::new();
    let mut session = terminal::Session::start(&place, &["secret", "set", "key"], &[]);
    session.wait_for("(not shown)");
    session.type_in("swordfish\u{1b}[D\r");
    let (code, seen) = session.end();
    assert_eq!(code, Some(1), "{seen}");
    assert_eq!(stored(&place), []);
    // A private key has several lines.
    let done = place.run_with_input(&["secret", "set", "key"], "line one\n\tline two\n");
    assert_eq!(done.code, Some(0), "{done:?}");
}

#[test]
fn unfit_secrets_are_refused() {
    let place = Place::new();
    for (name, value) in [
        ("../key", "x"),
        (".key", "x"),
        ("key", ""),
        ("key", "\n"),
        ("key", " x"),
        ("key", "a\0b"),
    ] {
        let done = place.run_with_input(&["secret", "set", name], value);
        assert_ne!(done.code, Some(0), "{name:?} {value:?}");
    }
    let long = "x".repeat(65 * 1024);
    let done = place.run_with_input(&["secret", "set", "key"], &long);
    assert_eq!(done.code, Some(1));
    assert_eq!(stored(&place), []);
}

#[test]
fn typed_secret_is_not_shown() {
    let place = Place::new();
    let mut session = terminal::Session::start(&place, &["secret", "set", "key"], &[]);
    session.wait_for("(not shown)");
    session.type_in("swordfisx\u{7f}h\r");
    let (code, seen) = session.end();
    assert_eq!(code, Some(0), "{seen}");
    assert!(!seen.contains("swordf"), "{seen}");
    assert_eq!(stored(&place), [("key".into(), "swordfish".into())]);
    let mut session = terminal::Session::start(&place, &["secret", "set", "other"], &[]);
    session.wait_for("(not shown)");
    session.type_in("half\u{3}");
    assert_eq!(session.end().0, Some(1));
    assert_eq!(stored(&place).len(), 1);
}

#[test]
fn add_moves_secrets_by_default() {
    let place = Place::new();
    place.write_config("{}");
    fs::set_permissions(place.config(), fs::Permissions::from_mode(0o644)).unwrap();
    let add = [
        "add",
        "git",
        "--env",
        "API_KEY=swordfish",
        "--env",
        "TZ=UTC",
        "--",
        "x",
    ];
    let done = place.run(&add);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(!done.err.contains("swordfish"), "{done:?}");
    assert_eq!(
        entry(&place, "git")["env"]["API_KEY"],
        "${secret:git-api_key}"
    );
    assert_eq!(entry(&place, "git")["env"]["TZ"], "UTC");
    assert_eq!(stored(&place), [("git-api_key".into(), "swordfish".into())]);
    assert_eq!(mode(&place.config()), 0o644, "it holds no secret");

    // Another value gets another name; a failed `add` leaves nothing behind.
    assert_eq!(place.run(&["remove", "git"]).code, Some(0));
    let add = ["add", "git", "--env", "API_KEY=trout-and-salmon", "--", "x"];
    assert_eq!(place.run(&add).code, Some(0));
    assert_eq!(
        entry(&place, "git")["env"]["API_KEY"],
        "${secret:git-api_key-2}"
    );
    assert_eq!(
        place
            .run(&["add", "git", "--env", "API_KEY=third-one", "--", "x"])
            .code,
        Some(1)
    );
    assert_eq!(stored(&place).len(), 2);

    let add = [
        "add",
        "far",
        "https://example.com/mcp",
        "--header",
        "Authorization=Bearer abcdefgh",
        "--secrets",
        "keep",
    ];
    let done = place.run(&add);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(
        done.err.contains("now only you can read it (mode 600)"),
        "{done:?}"
    );
    assert_eq!(
        entry(&place, "far")["headers"]["Authorization"],
        "Bearer abcdefgh"
    );
    assert_eq!(mode(&place.config()), 0o600);
}

#[test]
fn user_is_asked_before_secrets_move() {
    for (typed, expected) in [("\n", "${secret:a-api_key}"), ("n\n", "swordfish")] {
        let place = Place::new();
        let add = ["add", "a", "--env", "API_KEY=swordfish", "--", "x"];
        let (code, seen) = terminal::run(&place, &add, typed, &[]);
        assert_eq!(code, Some(0), "{seen}");
        assert!(
            seen.contains("looks like a secret to a private file? [Y/n]"),
            "{seen}"
        );
        assert_eq!(entry(&place, "a")["env"]["API_KEY"], expected);
    }
}

#[test]
fn plain_http_with_credentials_is_warned_of() {
    let place = Place::new();
    let header = "Authorization=Bearer ${secret:a}";
    let done = place.run(&["add", "far", "http://example.com/mcp", "--header", header]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(
        done.err
            .contains("warning: the credentials of `far` are sent over plain http://"),
        "{done:?}"
    );
    let done = place.run(&["add", "near", "http://127.0.0.1:9/mcp", "--header", header]);
    assert!(!done.err.contains("warning"), "{done:?}");
}

const CURSOR: &str = r#"{"mcpServers": {"git": {
    "command": "npx", "args": ["-y", "git", "--token=abcdefghij"],
    "env": {"GITHUB_TOKEN": "ghp_0123456789abcdef0123", "LOG": "debug"}
}}}"#;

#[test]
fn import_moves_secrets_and_undo_removes_them() {
    let place = Place::new();
    place.write("user/.cursor/mcp.json", CURSOR);
    place.write_secret("git-token", "another");
    let done = place.run(&["import", "--dry-run"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.err.contains("2 values look like secrets"), "{done:?}");
    let said = format!("{}{}", done.out, done.err);
    assert!(
        !said.contains("ghp_0123456789") && !said.contains("abcdefghij"),
        "{said}"
    );
    assert_eq!(stored(&place).len(), 1);

    let done = place.run(&["import", "--yes"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    let said = format!("{}{}", done.out, done.err);
    assert!(
        !said.contains("ghp_0123456789") && !said.contains("abcdefghij"),
        "{said}"
    );
    assert!(
        said.contains("`git` is from DIR/user/.cursor/mcp.json"),
        "{said}"
    );
    let git = entry(&place, "git");
    assert_eq!(git["args"][2], "--token=${secret:git-token-2}");
    assert_eq!(git["env"]["GITHUB_TOKEN"], "${secret:git-github_token}");
    assert_eq!(git["env"]["LOG"], "debug");
    let text = fs::read_to_string(place.config()).unwrap();
    assert!(
        !text.contains("ghp_") && !text.contains("abcdefghij"),
        "{text}"
    );
    assert_eq!(stored(&place).len(), 3);

    let done = place.run(&["import", "--undo"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert_eq!(stored(&place), [("git-token".into(), "another".into())]);
}

#[test]
fn kept_secrets_make_the_file_private() {
    let place = Place::new();
    place.write("user/.cursor/mcp.json", CURSOR);
    place.write_config("{}");
    fs::set_permissions(place.config(), fs::Permissions::from_mode(0o644)).unwrap();
    let done = place.run(&["import", "--yes", "--secrets", "keep"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    let said = format!("{}{}", done.out, done.err);
    assert!(
        !said.contains("ghp_0123456789") && !said.contains("abcdefghij"),
        "{said}"
    );
    assert_eq!(
        entry(&place, "git")["env"]["GITHUB_TOKEN"],
        "ghp_0123456789abcdef0123"
    );
    assert_eq!(mode(&place.config()), 0o600);
    assert_eq!(stored(&place), []);
}

#[test]
fn project_servers_are_asked_for_one_by_one() {
    let place = Place::new();
    place.write(
        "user/repo/.mcp.json",
        r#"{"mcpServers": {"evil": {"command": "evil"}, "good": {"command": "good"}}}"#,
    );
    let repo = place.user().join("repo");
    let import = |args: &[&str]| {
        let output = place.command(args).current_dir(&repo).output().unwrap();
        (
            output.status.code(),
            String::from_utf8(output.stderr).unwrap(),
        )
    };
    let (code, err) = import(&["import", "--yes"]);
    assert_eq!(code, Some(0), "{err}");
    assert!(err.contains("no client has servers to import"), "{err}");
    let (code, err) = import(&["import", "claude-code", "--yes"]);
    assert_eq!(code, Some(1), "{err}");
    assert!(err.contains("--project"), "{err}");
    let (code, err) = import(&["import", "--project"]);
    assert_eq!(code, Some(2), "{err}");
    assert!(err.contains("`evil` comes with this repository"), "{err}");
    assert!(!place.config().exists());
    let (code, err) = import(&["import", "--project", "--yes"]);
    assert_eq!(code, Some(0), "{err}");
    for name in ["evil", "good"] {
        assert_eq!(entry(&place, name)["trust"], "ask");
    }
}
