//! A home that another user has tampered with, or that was changed by mistake.

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
};

use crate::support::{Gateway, Place};

fn serve(place: &Place) -> (Option<i32>, String) {
    let done = place.run(&["serve", "--listen", "127.0.0.1:0"]);
    (done.code, done.err)
}

#[test]
fn linked_files_of_run_are_refused() {
    for name in ["lock", "token", "switchboard.sock"] {
        let place = Place::new();
        let victim = place.write("victim", "precious");
        fs::create_dir_all(place.home().join("run")).unwrap();
        symlink(&victim, place.home().join("run").join(name)).unwrap();
        let (code, err) = serve(&place);
        assert_eq!(code, Some(1), "{name}: {err}");
        assert!(err.contains("symbolic link"), "{name}: {err}");
        assert_eq!(fs::read_to_string(&victim).unwrap(), "precious", "{name}");
    }
}

#[test]
fn linked_run_folder_is_refused() {
    let place = Place::new();
    let elsewhere = place.user().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    fs::create_dir_all(place.home()).unwrap();
    symlink(&elsewhere, place.home().join("run")).unwrap();
    let (code, err) = serve(&place);
    assert_eq!(code, Some(1), "{err}");
    assert!(err.contains("symbolic link"), "{err}");
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
}

#[test]
fn world_writable_configuration_starts_nothing() {
    let place = Place::new();
    let ran = place.user().join("ran");
    let command = format!("touch {}", ran.display());
    place.write_config(&format!(
        r#"{{"mcpServers": {{"a": {{"command": "sh", "args": ["-c", "{command}"], "start": "eager"}}}}}}"#
    ));
    fs::set_permissions(place.config(), fs::Permissions::from_mode(0o666)).unwrap();
    let (code, err) = serve(&place);
    assert_eq!(code, Some(1), "{err}");
    assert!(
        err.contains("every user can change it") && err.contains("chmod go-w"),
        "{err}"
    );
    let done = place.run(&["doctor"]);
    assert!(done.out.contains("every user can change it"), "{done:?}");
    assert!(!ran.exists());
}

#[test]
fn edits_do_not_adopt_what_others_wrote() {
    let place = Place::new();
    place.write_config("{}");
    let open = || {
        let planted = r#"{"mcpServers": {"planted": {"command": "x"}}}"#;
        place.write_config(planted);
        fs::set_permissions(place.config(), fs::Permissions::from_mode(0o666)).unwrap();
    };
    let refused = |args: &[&str]| {
        let done = place.run(args);
        assert_eq!(done.code, Some(1), "{args:?}: {done:?}");
        assert!(done.err.contains("every user can change it"), "{done:?}");
        assert!(
            !fs::read_to_string(place.config())
                .unwrap()
                .contains("later")
        );
    };
    let gateway = Gateway::start(&place, &[]);
    open();
    refused(&["add", "later", "--", "y"]);
    let listed = place.run(&["list"]);
    assert!(!listed.out.contains("planted"), "{listed:?}");
    drop(gateway);
    refused(&["add", "later", "--", "y"]);
    refused(&["disable", "planted"]);
}

#[test]
fn advice_about_clear_secrets_fits_the_mode() {
    let place = Place::new();
    place.write_config(
        r#"{"mcpServers": {"a": {"command": "sh", "env": {"API_KEY": "swordfish"}}}}"#,
    );
    for (mode, advised) in [(0o600, false), (0o644, true)] {
        fs::set_permissions(place.config(), fs::Permissions::from_mode(mode)).unwrap();
        let done = place.run(&["doctor"]);
        assert!(done.out.contains("1 secret in plain text"), "{done:?}");
        assert_eq!(
            done.out.contains("chmod 600"),
            advised,
            "{mode:o}: {done:?}"
        );
    }
}

#[test]
fn program_of_the_repository_is_not_called_startable() {
    let place = Place::new();
    let program = place.write("user/repo/bin/sb-tool", "#!/bin/sh\n");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    fs::create_dir(place.user().join("repo/.git")).unwrap();
    place.write_config(r#"{"mcpServers": {"a": {"command": "sb-tool"}}}"#);
    let repo = place.user().join("repo");
    let output = place
        .command(&["doctor"])
        .current_dir(&repo)
        .env(
            "PATH",
            format!("{}:/usr/bin:/bin", repo.join("bin").display()),
        )
        .output()
        .unwrap();
    let out = String::from_utf8(output.stdout).unwrap();
    assert!(out.contains("`sb-tool` is only in"), "{out}");
}

#[test]
fn dropped_entries_of_path_are_logged() {
    let place = Place::new();
    let project = place.user().join("project");
    fs::create_dir(&project).unwrap();
    let output = place
        .command(&["stdio"])
        .current_dir(&project)
        .env("PATH", format!("{}:/usr/bin:/bin", project.display()))
        .output()
        .unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    let named = format!("[\"{}\"]", project.display());
    assert_eq!(err.matches(&named).count(), 1, "{err}");
}

#[test]
fn token_that_others_could_read_is_replaced() {
    let place = Place::new();
    let known = "0123456789abcdef".repeat(4);
    let token = place.write("home/run/token", &known);
    for (mode, kept) in [(0o644, false), (0o600, true)] {
        fs::write(&token, &known).unwrap();
        fs::set_permissions(&token, fs::Permissions::from_mode(mode)).unwrap();
        drop(Gateway::start(&place, &[]));
        let text = fs::read_to_string(&token).unwrap();
        assert_eq!(text.trim() == known, kept, "{mode:o}");
        let mode = fs::metadata(&token).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600);
    }
}

#[test]
fn doctor_does_not_advise_changing_link_targets() {
    let place = Place::new();
    place.write_config("{}");
    let target = place.write("elsewhere", "x");
    fs::set_permissions(&target, fs::Permissions::from_mode(0o644)).unwrap();
    fs::create_dir_all(place.home().join("secrets")).unwrap();
    symlink(&target, place.home().join("secrets/link")).unwrap();
    let done = place.run(&["doctor"]);
    assert!(done.out.contains("is a symbolic link"), "{done:?}");
    assert!(!done.out.contains("secrets/link'"), "{done:?}");
}

#[test]
fn short_token_is_replaced() {
    let place = Place::new();
    let token = place.write("home/run/token", "x\n");
    fs::set_permissions(&token, fs::Permissions::from_mode(0o600)).unwrap();
    let _gateway = Gateway::start(&place, &[]);
    let text = fs::read_to_string(token).unwrap();
    assert_eq!(text.trim().len(), 64, "{text}");
    assert!(
        Gateway::log(&place).contains("shorter than 32"),
        "{}",
        Gateway::log(&place)
    );
}

#[test]
fn doctor_checks_modes_and_exposed_secrets() {
    let place = Place::new();
    place.write_config(
        r#"{"mcpServers": {
            "args": {"command": "sh", "args": ["--key", "${secret:key}"]},
            "far": {"url": "http://192.0.2.1/mcp", "headers": {"Authorization": "Bearer ${secret:key}"}},
            "clear": {"command": "sh", "env": {"API_KEY": "swordfish"}}
        }}"#,
    );
    place.write_secret("key", "value-of-key");
    let open = place.write("home/secrets/open", "x");
    for (path, mode) in [(place.config(), 0o664), (open, 0o644)] {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }
    let done = place
        .command(&["doctor"])
        .env("http_proxy", "http://127.0.0.1:9")
        .output()
        .unwrap();
    let out = String::from_utf8(done.stdout).unwrap();
    for expected in [
        "the group can change",
        "contains 1 secret in plain text, and other users can read it (mode 664)",
        "secrets/open (mode 644)",
        "`args`, which every user of this machine can read",
        "over plain http://",
    ] {
        assert!(out.contains(expected), "{expected}: {out}");
    }
    assert!(!out.contains("swordfish"), "{out}");
}
