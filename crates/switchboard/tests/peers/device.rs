//! Signing in to a server with a code that the user enters in a browser on another device. The authorization server is
//! `oidc-provider`.

use std::{fs, os::unix::fs::PermissionsExt as _};

use serde_json::{Value, json};
use switchboard_test_support::{
    Home, Tools,
    provider::{Provider, enter},
    until,
};

use crate::login::{LOGIN, Login, Opener, add, assert_no_token, text};

/// Starts an MCP server whose users enter a code to sign in, and adds it to the configuration as `notes`.
fn provider(tools: &Tools, home: &Home) -> Provider {
    let provider = Provider::start(tools, 3_600);
    let oauth = json!({ "grant": "device_code" });
    home.set_servers(json!({ "notes": { "url": provider.url(), "oauth": oauth } }));
    provider
}

#[test]
fn user_enters_the_code_of_the_command() {
    let Some(tools) = Tools::peers() else { return };
    let home = Home::new(json!({}));
    let provider = provider(&tools, &home);
    let serve = home.serve();
    serve.until_state("notes", "needs sign-in");
    let mut login = Login::start(&home);
    assert_eq!(login.url, format!("{}/oidc/device", provider.origin()));
    let code = login.line();
    assert!(
        code.len() == 9 && code.as_bytes()[4] == b'-',
        "no code: {code:?}"
    );
    let seen = enter(&tools, &login.url, &code, "yes");
    assert!(seen.status.success(), "{seen:?}");
    let done = login.finish();
    assert!(done.is_ok, "{}", done.told);
    let page = "open this page in a browser on any device, and enter this code:";
    assert!(done.told.contains(page), "{}", done.told);
    let at = format!("signed in to `notes` at {}/oidc", provider.origin());
    assert!(done.told.contains(&at), "{}", done.told);
    let from = "the code is valid for ";
    assert!(done.told.contains(from), "{}", done.told);
    let names = "agree only if the page names `127.0.0.1`";
    assert!(done.told.contains(names), "{}", done.told);
    assert!(!done.told.contains("another host"), "{}", done.told);
    // Nothing is to be pasted.
    assert!(!done.told.contains("paste"), "{}", done.told);
    assert_eq!(text(&add(&home).stdout), "3 for ada\n");
    // After a restart, and with a new token, the user need not do anything.
    serve.stop();
    provider.expire();
    let serve = home.serve();
    assert_eq!(text(&add(&home).stdout), "3 for ada\n");
    let book = provider.book();
    assert_eq!([&book["devices"], &book["codes"]], [1, 0], "{book}");
    assert_eq!([&book["refreshes"], &book["reused"]], [1, 0], "{book}");
    assert_no_token(&home, &provider, serve.pid());
}

#[test]
fn user_who_denies_the_code_is_told() {
    let Some(tools) = Tools::peers() else { return };
    let home = Home::new(json!({}));
    let _provider = provider(&tools, &home);
    let serve = home.serve();
    let mut login = Login::start(&home);
    let code = login.line();
    enter(&tools, &login.url, &code, "no");
    let done = login.finish();
    assert!(!done.is_ok, "{}", done.told);
    assert!(done.told.contains("access was denied"), "{}", done.told);
    serve.until_state("notes", "needs sign-in");
}

#[test]
fn browser_gets_the_page_with_the_code() {
    let Some(tools) = Tools::peers() else { return };
    let home = Home::new(json!({}));
    let provider = provider(&tools, &home);
    let _serve = home.serve();
    let bin = home.path("bin");
    fs::create_dir_all(&bin).unwrap();
    let opened = bin.join("opened");
    let opener = bin.join("xdg-open");
    let script = format!("#!/bin/sh\necho \"$1\" > {}\n", opened.display());
    fs::write(&opener, script).unwrap();
    fs::set_permissions(&opener, fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = home.command(&LOGIN[..2]);
    command
        .env("PATH", format!("{}:/usr/bin:/bin", bin.display()))
        .env("DISPLAY", ":0")
        .env_remove("SSH_CONNECTION")
        .env_remove("SSH_TTY");
    let mut login = Login::with(command);
    let code = login.line();
    let url = until("the browser is opened", || {
        let url = fs::read_to_string(&opened).unwrap_or_default();
        (!url.is_empty()).then(|| url.trim().to_owned())
    });
    let expected = format!("{}/oidc/device?user_code={code}", provider.origin());
    assert_eq!(url, expected);
    // The page knows the code.
    let seen = enter(&tools, &url, "none", "yes");
    assert!(seen.status.success(), "{seen:?}");
    let done = login.finish();
    assert!(done.is_ok, "{}", done.told);
    assert!(done.told.contains("with this code"), "{}", done.told);
}

#[test]
fn client_of_2025_shows_the_code() {
    client_shows_the_code("sdk");
}

#[test]
fn client_of_2026_shows_the_code() {
    client_shows_the_code("client");
}

/// A client that can have pages opened gets the page with the code, and shows the code to its user.
#[track_caller]
fn client_shows_the_code(sdk: &str) {
    let Some(tools) = Tools::peers() else { return };
    let home = Home::new(json!({}));
    let _provider = provider(&tools, &home);
    let serve = home.serve();
    become_known(&tools, &home);
    serve.until_state("notes", "needs sign-in");
    let mut owner = Opener::start(&tools, sdk, &serve, &serve.token());
    let asked = owner.next();
    let url = asked["url"].as_str().unwrap_or_else(|| panic!("{asked}"));
    let (_, code) = url.split_once("user_code=").unwrap();
    let message = asked["message"].as_str().unwrap();
    let expected = format!("Sign in to notes with the code {code}");
    assert!(message.contains(&expected), "{asked}");
    let names = "Agree only if the page names 127.0.0.1, and the application";
    assert!(message.contains(names), "{asked}");
    let seen = enter(&tools, url, "none", "yes");
    assert!(seen.status.success(), "{seen:?}");
    assert_eq!(owner.next(), json!({ "text": "3 for ada" }));
}

/// Signs in and out, so that the tools of the server are known.
fn become_known(tools: &Tools, home: &Home) {
    let mut login = Login::start(home);
    let code = login.line();
    assert!(enter(tools, &login.url, &code, "yes").status.success());
    let done = login.finish();
    assert!(done.is_ok, "{}", done.told);
    assert!(home.run(&["logout", "notes"]).status.success());
}

#[test]
fn console_gets_page_and_code() {
    let Some(tools) = Tools::peers() else { return };
    let home = Home::new(json!({}));
    let provider = provider(&tools, &home);
    let serve = home.serve();
    let started = serve
        .http()
        .ask("POST", "/api/v1/servers/notes/login", &[], b"");
    let page: Value = started.json();
    let code = page["code"].as_str().unwrap_or_else(|| panic!("{page}"));
    let url = format!("{}/oidc/device", provider.origin());
    assert_eq!(page["url"], url);
    assert_eq!(
        [&page["provider"], &page["otherHost"]],
        [&json!("127.0.0.1"), &Value::Null]
    );
    assert_eq!(page["completeUrl"], format!("{url}?user_code={code}"));
    assert!(page["expiresAt"].is_string(), "{page}");
}
