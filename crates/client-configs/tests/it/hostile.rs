//! Malformed and hostile files.

use proptest::prelude::*;
use switchboard_client_configs::{Client, Error, ErrorKind, plan_connect, read, read_file, state};

use super::{Machine, gateway, text};

#[test]
fn syntax_errors_have_positions_and_nothing_is_written() {
    for (client, broken, place) in [
        (
            Client::Cursor,
            "{\n  \"a\": 1\n  \"b\": 2\n}",
            ":2:9: expected comma",
        ),
        (Client::Cursor, "{\n  \"mcpServers\": {\n", ":2:17: "),
        (Client::Cursor, "{\"ä\": tru}", ":1:7: "),
        (Client::Cursor, "{} {}", ":1:4: "),
        (Client::Cursor, "[]", ":1:1: this is not an object"),
        (
            Client::Cursor,
            "{\n \"mcpServers\": []}",
            ":2:16: `mcpServers` is not an object",
        ),
        (Client::VsCode, "{'servers': {}}", ":1:2: "),
        (Client::Codex, "a = 1\nb = = 2\n", ":2:5: "),
        (
            Client::Codex,
            "a = 1\nmcp_servers = 1\n",
            ":2:15: `mcp_servers` is not a table",
        ),
        (Client::Codex, "\u{1}", ":1:2: "),
    ] {
        let machine = Machine::new();
        let file = machine.write(client, broken);
        for error in [
            plan_connect(client, &machine.dirs, &gateway())
                .map(drop)
                .unwrap_err(),
            read(client, &machine.dirs).map(drop).unwrap_err(),
        ] {
            assert_eq!(error.kind(), ErrorKind::Malformed);
            let message = error.to_string();
            let start = format!("cannot parse {}:", file.display());
            assert!(message.starts_with(&start), "{message}");
            assert!(message.contains(place), "{broken:?}: {message}");
        }
        assert_eq!(text(&file), broken);
    }
}

#[test]
fn oversized_and_binary_files_are_refused() {
    let machine = Machine::new();
    let file = machine.write(Client::Cursor, "");
    let check = |expected: &str| {
        for error in [
            plan_connect(Client::Cursor, &machine.dirs, &gateway())
                .map(drop)
                .unwrap_err(),
            read_file(&file, &machine.dirs).map(drop).unwrap_err(),
        ] {
            assert!(error.to_string().contains(expected), "{error}");
        }
    };
    std::fs::write(&file, " ".repeat(8 * 1024 * 1024 + 1)).unwrap();
    check("is larger than 8 MiB");
    std::fs::write(&file, b"{\"a\": \"\xff\"}").unwrap();
    check("is not UTF-8 text");
    std::fs::remove_file(&file).unwrap();
    std::fs::create_dir(&file).unwrap();
    check("is not a file");
}

#[cfg(unix)]
#[test]
fn devices_and_link_loops_are_refused() {
    let machine = Machine::new();
    let file = machine.file(Client::Cursor);
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink("/dev/zero", &file).unwrap();
    let error = plan_connect(Client::Cursor, &machine.dirs, &gateway()).unwrap_err();
    assert!(matches!(error, Error::Unfit { .. }), "{error}");
    std::fs::remove_file(&file).unwrap();
    std::os::unix::fs::symlink(&file, &file).unwrap();
    let error = plan_connect(Client::Cursor, &machine.dirs, &gateway()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::System);
}

#[test]
fn depth_and_number_are_bounded() {
    let machine = Machine::new();
    let deep = format!(
        "{{\"mcpServers\": {}{}}}",
        "[".repeat(100_000),
        "]".repeat(100_000)
    );
    let file = machine.write(Client::Cursor, &deep);
    let error = read_file(&file, &machine.dirs).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Malformed);
    let toml = machine.write(Client::Codex, &format!("a = {}", "[".repeat(100_000)));
    assert_eq!(
        read_file(&toml, &machine.dirs).unwrap_err().kind(),
        ErrorKind::Malformed
    );

    let many: Vec<_> = (0..100_000)
        .map(|n| format!("\"s{n}\": {{\"command\": \"x\"}}"))
        .collect();
    let many = format!("{{\"mcpServers\": {{{}}}}}", many.join(","));
    let file = machine.write(Client::Cursor, &many);
    let found = read_file(&file, &machine.dirs).unwrap();
    assert_eq!(found.servers.len(), 1000);
    assert_eq!(found.notes, ["only the first 1000 servers are imported"]);
}

#[test]
fn odd_entries_are_skipped_with_a_note() {
    let machine = Machine::new();
    let found = machine.found(
        "odd.json",
        r#"{"mcpServers": {
            "a": {"command": ""}, "b": {"command": []}, "c": {"command": {"path": 1}}, "d": {"command": 7},
            "e": {"url": 5}, "f": {"type": "ws", "url": "ws://x"}, "g": null, "h": [],
            "ok": {"command": "x", "args": "not a list", "env": [], "cwd": 3, "timeout": 1e999, "tools": {"": null}}
        }}"#,
    );
    assert_eq!(found.skipped.len(), 8, "{:?}", found.skipped);
    assert_eq!(found.servers.len(), 1);
    assert_eq!(found.servers[0].entry, serde_json::json!({"command": "x"}));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// No file content causes a panic.
    #[test]
    fn no_text_causes_a_panic(
        pieces in prop::collection::vec(prop::sample::select(vec![
            "{", "}", "[", "]", ":", ",", "\"", "\"a\"", "\"mcpServers\"", "\"mcp\"", "\"servers\"",
            "\"switchboard\"", "\"command\"", "\"args\"", "null", "1", "//", "/*", "*/", "\n", "\r\n",
            " ", "\t", "ä", "\u{feff}", "\u{a0}", "=", "[mcp_servers.a]", "command='x'", "$", "${", "\\",
        ]), 0..40),
    ) {
        let machine = Machine::new();
        let text = pieces.concat();
        for client in [Client::Cursor, Client::OpenCode, Client::Codex] {
            machine.write(client, &text);
            let _ = read(client, &machine.dirs);
            let _ = state(client, &machine.dirs, &gateway());
            if let Ok(mut plan) = plan_connect(client, &machine.dirs, &gateway()) {
                let found = plan.servers(&machine.dirs).unwrap();
                plan.remove(&found.servers.iter().collect::<Vec<_>>()).unwrap();
            }
            let _ = read_file(&machine.file(client), &machine.dirs);
        }
    }
}
