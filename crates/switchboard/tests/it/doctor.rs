//! The findings of the doctor, and its advice.

use std::{fs, net::TcpListener, os::unix::fs::PermissionsExt as _, process::Command};

use serde_json::{Value, json};
use switchboard_test_support::until;

use crate::support::{Gateway, Place};

/// The findings of one check.
fn findings(place: &Place, check: &str) -> Vec<(String, String, String)> {
    let done = place.run(&["doctor", "--json"]);
    let report: Value = serde_json::from_str(&done.out).unwrap();
    let problems = report["problems"].as_u64().unwrap();
    assert_eq!(done.code, Some(i32::from(problems > 0)));
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let checks = report["checks"].as_array().unwrap().iter();
    checks
        .filter(|finding| finding["check"] == check)
        .map(|finding| {
            (
                text(&finding["state"]),
                text(&finding["message"]),
                text(&finding["fix"]),
            )
        })
        .collect()
}

#[track_caller]
fn check(place: &Place, check: &str, state: &str, message: &str, fix: &str) {
    let found = findings(place, check);
    let is_it =
        |(s, m, f): &(String, String, String)| s == state && m.contains(message) && f.contains(fix);
    assert!(found.iter().any(is_it), "{check}: {found:#?}");
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

#[test]
fn new_home_has_no_problems() {
    let place = Place::new();
    place.write_config(r#"{"listen": "127.0.0.1:0", "mcpServers": {"a": {"command": "sh"}, "off": {"command": "nonesuch", "enabled": false}}}"#);
    let done = place.run(&["doctor"]);
    assert_eq!(
        (done.code, done.err.as_str()),
        (Some(0), "no problems\n"),
        "{done:?}"
    );
    assert!(
        done.out.contains("ok       server:a: it can be started\n"),
        "{done:?}"
    );
    assert!(!done.out.contains("off"), "{done:?}");
}

#[test]
fn invalid_configuration_is_found() {
    let place = Place::new();
    place.write_config("{\n  \"lisen\": 1\n}");
    check(
        &place,
        "config",
        "problem",
        "switchboard.json:2:3: unknown key \"lisen\"",
        "\"listen\"",
    );
}

#[test]
fn occupied_port_is_found() {
    let place = Place::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    place.write_config(&format!(r#"{{"listen": "127.0.0.1:{port}"}}"#));
    check(
        &place,
        "port",
        "problem",
        &format!("another program listens on 127.0.0.1:{port}"),
        "`listen`",
    );
    drop(taken);
    check(&place, "port", "ok", "is free", "");
}

#[test]
fn servers_that_cannot_start_are_found() {
    let place = Place::new();
    let port = free_port();
    place.write_config(&format!(
        r#"{{"mcpServers": {{
            "none": {{"command": "nonesuch"}},
            "path": {{"command": "/nonesuch/x"}},
            "uv": {{"command": "uvx", "env": {{"PATH": "/nonesuch"}}}},
            "npx": {{"command": "npx", "env": {{"PATH": "/nonesuch"}}}},
            "words": {{"command": "npx -y foo"}},
            "cwd": {{"command": "sh", "cwd": "/nonesuch"}},
            "env": {{"command": "sh", "env": {{"A": "${{env:NONESUCH_VARIABLE}}"}}}},
            "secret": {{"url": "http://127.0.0.1:{port}", "headers": {{"A": "${{secret:key}}"}}}},
            "far": {{"url": "http://127.0.0.1:{port}/mcp"}},
            "box": {{"image": "x", "isolation": {{"engine": "nonesuch-engine"}}}},
            "dead": {{"image": "x", "isolation": {{"engine": "false"}}}}
        }}}}"#
    ));
    for (name, message, fix) in [
        (
            "none",
            "the program `nonesuch` is not in PATH",
            "the full path",
        ),
        (
            "path",
            "`/nonesuch/x` does not exist or cannot be run",
            "check the path",
        ),
        ("uv", "`uvx` is not in PATH", "https://docs.astral.sh/uv"),
        ("npx", "`npx` is not in PATH", "Node.js 20"),
        (
            "words",
            "`npx -y foo` is not in PATH",
            "move `-y foo` to `args`",
        ),
        (
            "cwd",
            "its working directory /nonesuch does not exist",
            "`cwd`",
        ),
        (
            "env",
            "env.A: the variable NONESUCH_VARIABLE is not set",
            "set it in the environment of the gateway",
        ),
        (
            "secret",
            "headers.A: the secret `key` does not exist",
            "switchboard secret set key",
        ),
        ("far", "cannot be reached: ", "check the address"),
        (
            "box",
            "the container engine `nonesuch-engine` was not found",
            "nonesuch-engine",
        ),
        ("dead", "`false version` failed", "start it"),
    ] {
        check(&place, &format!("server:{name}"), "problem", message, fix);
    }
}

#[test]
fn old_node_is_found() {
    let place = Place::new();
    for (version, state, message) in [
        ("v16.20.0", "problem", "Node.js v16.20.0 is too old"),
        ("v18.19.0", "warning", "Node.js v18.19.0 is old"),
        ("v22.0.0", "ok", "it can be started"),
    ] {
        for (name, text) in [
            ("node", format!("#!/bin/sh\necho {version}\n")),
            ("npx", "#!/bin/sh\n".to_owned()),
        ] {
            let file = place.write(&format!("bin/{name}"), &text);
            fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        }
        let bin = place.user().with_file_name("bin");
        let npx =
            serde_json::json!({"mcpServers": {"a": {"command": "npx", "env": {"PATH": bin}}}});
        place.write_config(&npx.to_string());
        check(
            &place,
            "server:a",
            state,
            message,
            if state == "ok" { "" } else { "Node.js 20" },
        );
    }
}

#[test]
fn files_open_to_others_are_found() {
    let place = Place::new();
    let open = |path: &str, mode| {
        let path = place.home().join(path);
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    place.write("home/run/token", "secret");
    open("", 0o700);
    open("run", 0o700);
    open("run/token", 0o644);
    check(
        &place,
        "token",
        "problem",
        "other users can read",
        "chmod 600",
    );
    open("run/token", 0o600);
    check(&place, "token", "ok", "is private", "");
    check(&place, "home", "ok", "is writable and private", "");
    open("run", 0o755);
    check(
        &place,
        "home",
        "problem",
        "other users can access",
        "chmod 700",
    );
}

#[test]
fn leftovers_of_a_killed_gateway_are_found() {
    let place = Place::new();
    let mut child = Command::new("true").spawn().unwrap();
    let pid = child.id();
    child.wait().unwrap();
    let record = serde_json::json!({"name": "files", "guard": {"pid": pid, "started": 1}});
    place.write("home/run/groups/x.json", &record.to_string());
    check(
        &place,
        "leftovers",
        "problem",
        "the guard of `files` was killed",
        "`switchboard serve`",
    );
    let record =
        serde_json::json!({"name": "files", "guard": {"pid": std::process::id(), "started": 1}});
    place.write("home/run/groups/x.json", &record.to_string());
    check(
        &place,
        "leftovers",
        "warning",
        "the guard of `files` is still running",
        "check again",
    );
}

#[test]
fn unreadable_snapshot_is_found() {
    let place = Place::new();
    place.write("home/catalog/a.json", "not a snapshot");
    check(
        &place,
        "catalog",
        "warning",
        "home/catalog/a.json",
        "lists the server again",
    );
}

#[test]
fn variables_that_a_server_misses_are_named() {
    let place = Place::new();
    let entry = |more: &str| {
        let server = format!(r#"{{"command": "sh", "args": ["kubernetes-mcp-server"]{more}}}"#);
        place.write_config(&format!(
            r#"{{"listen": "127.0.0.1:0", "mcpServers": {{"a": {server}}}}}"#
        ));
        let done = place
            .command(&["doctor"])
            .env("KUBECONFIG", "/k")
            .output()
            .unwrap();
        String::from_utf8(done.stdout).unwrap()
    };
    let said = entry("");
    assert!(
        said.contains("KUBECONFIG is set here but not passed to the server"),
        "{said}"
    );
    assert!(said.contains(r#""inheritEnv": ["KUBECONFIG"]"#), "{said}");
    let said = entry(r#", "inheritEnv": ["KUBECONFIG", "NOT_SET_ANYWHERE"]"#);
    assert!(!said.contains("KUBECONFIG"), "{said}");
    assert!(
        said.contains("the variable NOT_SET_ANYWHERE of `inheritEnv` is not set here"),
        "{said}"
    );
}

#[test]
fn held_server_runs_nothing_in_doctor() {
    let place = Place::new();
    let trace = place.home().join("trace");
    let engine = place.write("engine", &format!("echo > '{}'", trace.display()));
    let server = json!({"image": "i", "isolation": {"engine": ["sh", engine]}, "hold": true});
    let config = json!({"mcpServers": {"sky": server}, "memory": {"enabled": false}});
    place.write_config(&config.to_string());
    let said = "it is held until you approve it";
    check(
        &place,
        "server:sky",
        "warning",
        said,
        "`switchboard trust show sky`",
    );
    assert!(!trace.exists());
}

#[test]
fn unapproved_file_does_not_run_in_doctor() {
    let place = Place::new();
    tracing_program(&place, "bin/engine", "trace");
    tracing_program(&place, "bin/node", "trace");
    let bin = place.user().with_file_name("bin");
    let image =
        json!({"image": "i", "isolation": {"engine": bin.join("engine")}, "approvedFile": "/a"});
    let command = json!({"command": bin.join("node"), "approvedFile": "/a"});
    for server in [image, command] {
        let config = json!({"mcpServers": {"sky": server}, "memory": {"enabled": false}});
        place.write_config(&config.to_string());
        let said = "its program is not the file that you approved";
        check(
            &place,
            "server:sky",
            "warning",
            said,
            "`switchboard trust show sky`",
        );
        assert!(!place.user().join("trace").exists());
    }
}

/// A program that writes its environment to the file with this name.
fn tracing_program(place: &Place, file: &str, trace: &str) {
    let trace = place.user().join(trace);
    let script = format!("#!/bin/sh\n/usr/bin/env > '{}'\n", trace.display());
    let file = place.write(file, &script);
    fs::set_permissions(file, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn doctor_runs_no_program_of_the_repository() {
    let place = Place::new();
    let repo = place.user().join("repo");
    fs::create_dir_all(repo.join(".git")).unwrap();
    for file in ["node_modules/.bin/docker", "bin/docker", "tools/engine"] {
        tracing_program(&place, &format!("user/repo/{file}"), "foreign");
    }
    tracing_program(&place, "bin/docker", "found");
    tracing_program(&place, "home/tools/engine", "named");
    let path = [
        "./node_modules/.bin".into(),
        repo.join("bin"),
        place.user().with_file_name("bin"),
    ];
    for (isolation, trace) in [
        (json!({}), "found"),
        (json!({"engine": "tools/engine"}), "named"),
    ] {
        let server = json!({"image": "mcp/time", "isolation": isolation});
        place.write_config(&json!({"mcpServers": {"b": server}}).to_string());
        let done = place
            .command(&["doctor"])
            .current_dir(&repo)
            .env("PATH", std::env::join_paths(&path).unwrap())
            .env("MY_TOKEN", "precious")
            .output()
            .unwrap();
        let given = fs::read_to_string(place.user().join(trace));
        let given = given.unwrap_or_else(|_| panic!("{trace} was not asked: {done:?}"));
        assert!(!given.contains("precious"), "{given}");
        assert!(given.contains("PWD=/\n"), "{given}");
    }
    assert!(!place.user().join("foreign").exists());
}

/// A server that has tools but cannot list them.
const BROKEN: &str = r#"
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    answer = {"error": {"code": -32603, "message": "no database"}}
    if asked["method"] == "initialize":
        answer = {"result": {"protocolVersion": asked["params"]["protocolVersion"], "capabilities": {"tools": {}},
                             "serverInfo": {"name": "broken", "version": "1"}}}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **answer}), flush=True)
"#;

#[test]
fn failed_list_is_found() {
    let place = Place::new();
    let script = place.write("broken.py", BROKEN);
    let server = json!({"command": "python3", "args": [script], "start": "eager"});
    let config = json!({"listen": "127.0.0.1:0", "memory": {"enabled": false}, "mcpServers": {"broken": server}});
    place.write_config(&config.to_string());
    let _gateway = Gateway::start(&place, &[]);
    until("its list fails", || {
        let listed = crate::support::json(&place, &["list", "--json"]);
        listed["servers"][0]["failedLists"].is_array()
    });
    let failed =
        "tools/list failed: the server responded with error -32603; its last message: no database";
    let fix = "switchboard logs broken";
    check(&place, "server:broken", "problem", failed, fix);
    for command in ["list", "status"] {
        let done = place.run(&[command]);
        let words: Vec<_> = done.out.split_whitespace().collect();
        assert!(words.join(" ").contains("tools/list failed"), "{done:?}");
    }
    let log = place.run(&["logs", "broken"]).out;
    assert_eq!(log.matches(failed).count(), 1, "{log}");
}

#[test]
fn tokens_that_cannot_be_used_are_named() {
    let place = Place::new();
    let config = r#"{"listen": "127.0.0.1:0", "mcpServers": {"a": {"command": "sh"}}, "profiles": {"work": {}}}"#;
    place.write_config(config);
    for (name, option, value) in [("p", "--profile", "work"), ("s", "--server", "a")] {
        let done = place.run(&["token", "create", name, option, value]);
        assert_eq!(done.code, Some(0), "{done:?}");
    }
    assert_eq!(findings(&place, "tokens"), []);
    place.write_config(r#"{"listen": "127.0.0.1:0"}"#);
    let revoke = "switchboard token revoke";
    check(
        &place,
        "tokens",
        "warning",
        "the token `p` is held to the profile `work`",
        revoke,
    );
    check(
        &place,
        "tokens",
        "warning",
        "the token `s` is held to the server `a`",
        revoke,
    );
    place.write("home/tokens.json", "{");
    check(&place, "tokens", "problem", "tokens.json", "from a backup");
}

#[test]
fn patterns_of_profiles_that_match_nothing_are_named() {
    let place = Place::new();
    place.write_config(
        r#"{"listen": "127.0.0.1:0", "profiles": {"work": {"tools": {"allow": ["memory:*", "flies:*"], "deny": ["memory:delete_memry"]}}}}"#,
    );
    let no_server =
        "`flies:*` in `profiles.work.tools.allow` has no effect: there is no such server";
    check(
        &place,
        "profiles",
        "warning",
        no_server,
        "switchboard tools",
    );
    assert_eq!(findings(&place, "profiles").len(), 1, "tools are not known");
    let _gateway = Gateway::start(&place, &[]);
    until("the tools are known", || {
        (findings(&place, "profiles").len() == 2).then_some(())
    });
    let no_tool = "`memory:delete_memry` in `profiles.work.tools.deny` has no effect: clients see no such tool";
    check(
        &place,
        "profiles",
        "warning",
        no_tool,
        "did you mean `memory:delete_memory`?",
    );
}

#[test]
fn overrides_of_missing_tools_are_named() {
    let place = Place::new();
    let overrides = json!({ "ecko": { "hidden": true }, "extra": { "name": "more" } });
    let fixture = switchboard_test_support::fixture("mcp_fixture");
    let server = json!({ "command": fixture, "trust": "always", "overrides": overrides });
    let config =
        json!({"listen": "127.0.0.1:0", "memory": {"enabled": false}, "mcpServers": {"a": server}});
    place.write_config(&config.to_string());
    let _gateway = Gateway::start(&place, &[]);
    let change = |verb: &str| {
        let done = place.run(&["call", &format!("a:{verb}_tool"), "name=extra"]);
        assert_eq!(done.code, Some(0), "{done:?}");
    };
    let misspelled =
        "the override of `ecko` has no effect: the server has no such tool; did you mean `echo`?";
    let gone = "the override of `extra` has no effect: the server has no such tool";
    let more = "1 more problem: `switchboard doctor` lists all";
    let is_shown = |problem: &str| {
        let list = place.run(&["list"]).out;
        let words: Vec<_> = list.split_whitespace().collect();
        words.join(" ").contains(problem)
    };
    // The server gets the tool and loses it again while it runs.
    for (verb, count) in [("add", 1), ("remove", 2), ("add", 1)] {
        change(verb);
        until("the change is noticed", || {
            findings(&place, "server:a").len() == count
        });
        let fix = "`overrides` in switchboard.json";
        check(&place, "server:a", "warning", misspelled, fix);
        assert!(is_shown(misspelled), "{verb}");
        assert_eq!(is_shown(more), count == 2, "{verb}");
        if count == 2 {
            check(&place, "server:a", "warning", gone, fix);
        }
    }
}
