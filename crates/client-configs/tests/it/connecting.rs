//! Adding and removing the gateway, with everything else unchanged.

use serde_json::json;
use switchboard_client_configs::{
    Client, Error, ErrorKind, GatewayEntry, HttpEntry, plan_connect, plan_disconnect, state,
};

use super::{Machine, gateway, text};

/// Connects and checks the text, that a second connect changes nothing, and that a disconnect restores
/// the text, or gives `back`.
fn check(client: Client, before: &str, after: &str, back: Option<&str>) {
    let machine = Machine::new();
    let file = machine.write(client, before);
    let plan = machine.connect(client);
    assert_eq!(plan.after, after);
    assert_eq!(plan.file, file);
    assert!(plan.changed);
    assert_eq!(text(&file), before, "planning writes nothing");
    machine.apply(&plan);
    assert_eq!(text(&file), after);

    let again = machine.connect(client);
    assert!(!again.changed && again.diff.is_empty(), "{}", again.diff);
    assert_eq!(machine.apply(&again).written, None);

    machine.apply(&machine.disconnect(client));
    assert_eq!(text(&file), back.unwrap_or(before));
    assert!(!machine.disconnect(client).changed);
}

#[test]
fn claude_desktop_beside_other_servers() {
    check(
        Client::ClaudeDesktop,
        r#"{
    "mcpServers": {
        "files": {
            "command": "npx"
        }
    },
    "theme": "dark"
}
"#,
        r#"{
    "mcpServers": {
        "files": {
            "command": "npx"
        },
        "switchboard": {
            "command": "/opt/bin/switchboard",
            "args": ["stdio", "--home", "/data/home of mine"]
        }
    },
    "theme": "dark"
}
"#,
        None,
    );
}

#[test]
fn claude_code_without_servers_yet() {
    check(
        Client::ClaudeCode,
        "{\n  \"numStartups\": 1\n}",
        r#"{
  "numStartups": 1,
  "mcpServers": {
    "switchboard": {
      "type": "stdio",
      "command": "/opt/bin/switchboard",
      "args": ["stdio", "--home", "/data/home of mine"],
      "timeout": 3600000
    }
  }
}"#,
        Some("{\n  \"numStartups\": 1,\n  \"mcpServers\": {}\n}"),
    );
}

#[test]
fn cursor_on_one_line() {
    check(
        Client::Cursor,
        r#"{"mcpServers": {"a": {"command": "a"}}}"#,
        r#"{"mcpServers": {"a": {"command": "a"}, "switchboard": {"command": "/opt/bin/switchboard", "args": ["stdio", "--home", "/data/home of mine"]}}}"#,
        None,
    );
    check(
        Client::Cursor,
        r#"{"mcpServers": {}}"#,
        r#"{"mcpServers": {"switchboard": {"command": "/opt/bin/switchboard", "args": ["stdio", "--home", "/data/home of mine"]}}}"#,
        None,
    );
}

#[test]
fn vscode_with_tabs_comments_and_trailing_commas() {
    check(
        Client::VsCode,
        "// top\n{\n\t\"servers\": {\n\t\t\"a\": { \"command\": \"a\" }, // the first\n\t\t/* below */\n\t},\n\t\"inputs\": [],\n}\n",
        "// top\n{\n\t\"servers\": {\n\t\t\"a\": { \"command\": \"a\" }, // the first\n\t\t\"switchboard\": {\n\t\t\t\"type\": \"stdio\",\n\t\t\t\"command\": \"/opt/bin/switchboard\",\n\t\t\t\"args\": [\"stdio\", \"--home\", \"/data/home of mine\"]\n\t\t},\n\t\t/* below */\n\t},\n\t\"inputs\": [],\n}\n",
        None,
    );
}

#[test]
fn windsurf_with_trailing_comment_and_windows_lines() {
    check(
        Client::Windsurf,
        "\u{feff}{\r\n  \"mcpServers\": {\r\n    \"a\": {\"command\": \"a\"} // last, so far\r\n  }\r\n}\r\n",
        "\u{feff}{\r\n  \"mcpServers\": {\r\n    \"a\": {\"command\": \"a\"}, // last, so far\r\n    \"switchboard\": {\r\n      \"command\": \"/opt/bin/switchboard\",\r\n      \"args\": [\"stdio\", \"--home\", \"/data/home of mine\"]\r\n    }\r\n  }\r\n}\r\n",
        None,
    );
}

#[test]
fn zed_with_nothing_but_comments_inside() {
    check(
        Client::Zed,
        "{\n  \"context_servers\": {\n    // none yet, {},\n  }\n}\n",
        "{\n  \"context_servers\": {\n    // none yet, {},\n    \"switchboard\": {\n      \"command\": \"/opt/bin/switchboard\",\n      \"args\": [\"stdio\", \"--home\", \"/data/home of mine\"]\n    }\n  }\n}\n",
        None,
    );
}

#[test]
fn opencode_in_both_versions() {
    check(
        Client::OpenCode,
        "{\n  \"mcp\": {\n    \"a\": {\"type\": \"local\", \"command\": [\"a\"]}\n  }\n}\n",
        "{\n  \"mcp\": {\n    \"a\": {\"type\": \"local\", \"command\": [\"a\"]},\n    \"switchboard\": {\n      \"type\": \"local\",\n      \"command\": [\"/opt/bin/switchboard\", \"stdio\", \"--home\", \"/data/home of mine\"],\n      \"enabled\": true,\n      \"timeout\": 3600000\n    }\n  }\n}\n",
        None,
    );
    check(
        Client::OpenCode,
        "{\"mcp\": {\"servers\": {}}}",
        "{\"mcp\": {\"servers\": {\"switchboard\": {\"type\": \"local\", \"command\": [\"/opt/bin/switchboard\", \"stdio\", \"--home\", \"/data/home of mine\"], \"enabled\": true, \"timeout\": {\"request\":3600000}}}}}",
        None,
    );
}

#[test]
fn codex_with_comments_and_order_kept() {
    let table = "[mcp_servers.switchboard]\ncommand = \"/opt/bin/switchboard\"\nargs = [\"stdio\", \"--home\", \"/data/home of mine\"]\ntool_timeout_sec = 3600\n";
    let before = "# mine\nmodel   =  'gpt' # odd spacing\n\n[mcp_servers.b]\ncommand = \"b\"\n\n[a]\nz = 1\n";
    check(Client::Codex, before, &format!("{before}\n{table}"), None);
    let lines = before.replace('\n', "\r\n");
    let after = format!("{before}\n{table}").replace('\n', "\r\n");
    check(Client::Codex, &lines, &after, None);
    check(
        Client::Codex,
        "mcp_servers = { b = { command = \"b\" } } # inline\n",
        "mcp_servers = { b = { command = \"b\" } , switchboard = { command = \"/opt/bin/switchboard\", args = [\"stdio\", \"--home\", \"/data/home of mine\"], tool_timeout_sec = 3600 } } # inline\n",
        Some("mcp_servers = { b = { command = \"b\" } } # inline\n"),
    );
}

#[test]
fn gemini_with_null_where_the_servers_belong() {
    check(
        Client::GeminiCli,
        "{\n  \"mcpServers\": null,\n  \"ui\": {}\n}\n",
        "{\n  \"mcpServers\": {\n    \"switchboard\": {\n      \"command\": \"/opt/bin/switchboard\",\n      \"args\": [\"stdio\", \"--home\", \"/data/home of mine\"],\n      \"timeout\": 3600000\n    }\n  },\n  \"ui\": {}\n}\n",
        Some("{\n  \"mcpServers\": {},\n  \"ui\": {}\n}\n"),
    );
}

#[test]
fn every_client_reads_back_its_new_file() {
    for client in Client::ALL {
        for before in [None, Some(""), Some(" \n")] {
            let machine = Machine::new();
            if let Some(before) = before {
                machine.write(client, before);
            }
            let plan = machine.connect(client);
            assert_eq!(plan.before.as_deref(), before);
            machine.apply(&plan);
            let found = &switchboard_client_configs::read(client, &machine.dirs).unwrap()[0];
            assert!(found.servers.is_empty());
            let skipped: Vec<_> = found.skipped.iter().map(ToString::to_string).collect();
            assert_eq!(
                skipped,
                ["`switchboard` is skipped: it is the gateway itself"],
                "{client}"
            );
            assert!(!machine.connect(client).changed, "{client}");
        }
    }
}

#[test]
fn diff_is_unified() {
    let machine = Machine::new();
    let file = machine.write(Client::Cursor, "{\n  \"mcpServers\": {\n  }\n}\n");
    let name = file.display();
    assert_eq!(
        machine.connect(Client::Cursor).diff,
        format!(
            "--- {name}\n+++ {name}\n@@ -1,4 +1,8 @@\n {{\n   \"mcpServers\": {{\n+    \"switchboard\": {{\n+      \"command\": \"/opt/bin/switchboard\",\n+      \"args\": [\"stdio\", \"--home\", \"/data/home of mine\"]\n+    }}\n   }}\n }}\n"
        )
    );
}

#[test]
fn older_entry_is_updated_and_keeps_additions() {
    let machine = Machine::new();
    for (client, before, after) in [
        (
            Client::Cursor,
            "{\n  \"mcpServers\": {\n    \"switchboard\": {\n      // mine\n      \"command\": \"/old/switchboard\",\n      \"args\": [\"stdio\"], // short\n      \"env\": {\"A\": \"1\"}\n    }\n  }\n}\n",
            "{\n  \"mcpServers\": {\n    \"switchboard\": {\n      // mine\n      \"command\": \"/opt/bin/switchboard\",\n      \"args\": [\"stdio\", \"--home\", \"/data/home of mine\"], // short\n      \"env\": {\"A\": \"1\"}\n    }\n  }\n}\n",
        ),
        (
            Client::Codex,
            "[mcp_servers.switchboard]\ncommand = \"/old/switchboard\" # mine\nargs = [\"stdio\"]\nstartup_timeout_sec = 9\n\n[z]\n",
            "[mcp_servers.switchboard]\ncommand = \"/opt/bin/switchboard\" # mine\nargs = [\"stdio\", \"--home\", \"/data/home of mine\"]\nstartup_timeout_sec = 9\ntool_timeout_sec = 3600\n\n[z]\n",
        ),
        (
            Client::OpenCode,
            "{\"mcp\": {\"switchboard\": {\"type\": \"local\", \"command\": [\"switchboard\", \"stdio\"], \"enabled\": false}}}",
            "{\"mcp\": {\"switchboard\": {\"type\": \"local\", \"command\": [\"/opt/bin/switchboard\", \"stdio\", \"--home\", \"/data/home of mine\"], \"enabled\": false, \"timeout\": 3600000}}}",
        ),
    ] {
        machine.write(client, before);
        let plan = machine.connect(client);
        assert_eq!(plan.after, after);
        machine.apply(&plan);
        assert!(!machine.connect(client).changed);
    }
}

#[test]
fn timeout_of_the_user_is_kept() {
    let machine = Machine::new();
    for (client, before) in [
        (
            Client::Codex,
            "[mcp_servers.switchboard]\ncommand = \"/opt/bin/switchboard\"\nargs = [\"stdio\", \"--home\", \"/data/home of mine\"]\ntool_timeout_sec = 7.5\n",
        ),
        (
            Client::GeminiCli,
            "{\"mcpServers\": {\"switchboard\": {\"command\": \"/opt/bin/switchboard\", \"args\": [\"stdio\", \"--home\", \"/data/home of mine\"], \"timeout\": 1000}}}",
        ),
        (
            Client::OpenCode,
            "{\"mcp\": {\"switchboard\": {\"type\": \"local\", \"command\": [\"/opt/bin/switchboard\", \"stdio\", \"--home\", \"/data/home of mine\"], \"timeout\": 1000}}}",
        ),
        (
            Client::ClaudeCode,
            "{\"mcpServers\": {\"switchboard\": {\"type\": \"stdio\", \"command\": \"/opt/bin/switchboard\", \"args\": [\"stdio\", \"--home\", \"/data/home of mine\"], \"timeout\": 1000}}}",
        ),
    ] {
        machine.write(client, before);
        let plan = machine.connect(client);
        assert!(!plan.changed, "{client}: {}", plan.diff);
    }
}

#[test]
fn name_of_another_server_is_refused() {
    let machine = Machine::new();
    let before = r#"{"mcpServers": {"switchboard": {"url": "https://x/mcp?key=1"}}}"#;
    let file = machine.write(Client::Cursor, before);
    for error in [
        plan_connect(Client::Cursor, &machine.dirs, &gateway()).unwrap_err(),
        plan_disconnect(Client::Cursor, &machine.dirs, &gateway()).unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::Conflict);
        let message = error.to_string();
        assert!(
            message.contains("it connects to https://x/mcp)"),
            "{message}"
        );
    }
    assert_eq!(text(&file), before);
}

#[test]
fn gateway_under_another_name_is_noted() {
    let machine = Machine::new();
    machine.write(
        Client::Cursor,
        r#"{"mcpServers": {"sb": {"command": "/opt/bin/switchboard", "args": ["stdio"]}}}"#,
    );
    let plan = machine.connect(Client::Cursor);
    assert!(plan.changed);
    assert_eq!(plan.notes, ["the gateway is also configured as `sb`"]);
}

#[test]
fn renamed_program_is_recognised_by_its_path() {
    let machine = Machine::new();
    let gateway = GatewayEntry::new("hub", "/opt/bin/sb-2");
    let plan = plan_connect(Client::Zed, &machine.dirs, &gateway).unwrap();
    machine.apply(&plan);
    let plan = plan_disconnect(Client::Zed, &machine.dirs, &gateway).unwrap();
    assert!(plan.changed);
    let root: serde_json::Value = serde_json::from_str(&plan.after).unwrap();
    assert_eq!(root, json!({"context_servers": {}}));
}

#[test]
fn existing_file_of_the_user_is_changed() {
    let machine = Machine::new();
    let second = &Client::OpenCode.config_files(&machine.dirs)[1];
    super::write(second, "{\n  // mine\n}\n");
    assert_eq!(machine.connect(Client::OpenCode).file, *second);
    // The file of a project is shared by its users, so it is never changed.
    let project = machine.dirs.cwd.join(".cursor/mcp.json");
    super::write(&project, "{}");
    assert_eq!(
        machine.connect(Client::Cursor).file,
        machine.file(Client::Cursor)
    );
    let insiders = &Client::VsCode.config_files(&machine.dirs)[1];
    std::fs::create_dir_all(insiders.parent().unwrap()).unwrap();
    assert_eq!(machine.connect(Client::VsCode).file, *insiders);
}

#[test]
fn invalid_gateway_entry_is_refused() {
    let machine = Machine::new();
    for gateway in [
        GatewayEntry::new("", "/bin/x"),
        GatewayEntry::new("a b", "/bin/x"),
        GatewayEntry::new("x".repeat(65), "/bin/x"),
        GatewayEntry::new("sb", "bin/x"),
    ] {
        let error = plan_connect(Client::Cursor, &machine.dirs, &gateway).unwrap_err();
        assert!(matches!(error, Error::Gateway { .. }), "{error}");
    }
}

#[test]
fn last_of_duplicate_keys_counts() {
    check(
        Client::Cursor,
        "{\n  \"mcpServers\": {\n    \"lost\": {}\n  },\n  \"mcpServers\": {\n    \"a\": {}\n  }\n}\n",
        "{\n  \"mcpServers\": {\n    \"lost\": {}\n  },\n  \"mcpServers\": {\n    \"a\": {},\n    \"switchboard\": {\n      \"command\": \"/opt/bin/switchboard\",\n      \"args\": [\"stdio\", \"--home\", \"/data/home of mine\"]\n    }\n  }\n}\n",
        None,
    );
}

#[test]
fn disconnect_keeps_comments_and_braces() {
    let entry = r#""switchboard": {"command": "/opt/bin/switchboard", "args": ["stdio"]}"#;
    for (before, after) in [
        (
            "{\"mcpServers\": {\n\"a\": 1, // x\n ENTRY}}",
            "{\"mcpServers\": {\n\"a\": 1 // x\n}}",
        ),
        (
            "{\"mcpServers\": {\n\"a\": 1,\n ENTRY}}",
            "{\"mcpServers\": {\n\"a\": 1}}",
        ),
        (
            "{\"mcpServers\": {\n ENTRY, // mine\n \"a\": 1\n}}",
            "{\"mcpServers\": {\n // mine\n \"a\": 1\n}}",
        ),
        (
            "{\"mcpServers\": { ENTRY , \"a\": 1 }}",
            "{\"mcpServers\": { \"a\": 1 }}",
        ),
        ("{\"mcpServers\": {\n ENTRY,\n}}", "{\"mcpServers\": {}}"),
        (
            "{\"mcpServers\": {/* a */ ENTRY /* b */}}",
            "{\"mcpServers\": {/* a */ /* b */}}",
        ),
    ] {
        let machine = Machine::new();
        machine.write(Client::Cursor, &before.replace("ENTRY", entry));
        assert_eq!(machine.disconnect(Client::Cursor).after, after);
    }
}

#[test]
fn every_client_but_one_connects_over_http() {
    let url = "http://127.0.0.1:7777/mcp";
    let http = Some(HttpEntry {
        url: url.to_owned(),
        token: "swb_0_secret".to_owned(),
    });
    let entry = GatewayEntry { http, ..gateway() };
    for client in Client::ALL {
        let machine = Machine::new();
        let before = if client == Client::Codex { "" } else { "{}\n" };
        machine.write(client, before);
        let plan = match plan_connect(client, &machine.dirs, &entry) {
            Ok(plan) => plan,
            Err(error) => {
                assert_eq!(client, Client::ClaudeDesktop, "{error}");
                continue;
            }
        };
        assert!(plan.after.contains(url), "{client}: {}", plan.after);
        assert!(!format!("{plan:?}").contains("args: [\"stdio\""));
        machine.apply(&plan);
        let state = state(client, &machine.dirs, &entry).unwrap();
        let connection = state.connection.unwrap();
        assert_eq!(connection.token(), Some("swb_0_secret"), "{}", plan.after);
        assert!(!format!("{connection:?}").contains("swb_"));

        // A client keeps the token that it has.
        let other = GatewayEntry {
            http: Some(HttpEntry {
                url: url.to_owned(),
                token: "swb_1_other".to_owned(),
            }),
            ..gateway()
        };
        let again = plan_connect(client, &machine.dirs, &other).unwrap();
        assert!(!again.changed, "{client}: {}", again.diff);
        let pipe = plan_connect(client, &machine.dirs, &gateway()).unwrap_err();
        assert_eq!(pipe.kind(), ErrorKind::Conflict, "{client}: {pipe}");
        let back = plan_disconnect(client, &machine.dirs, &gateway()).unwrap();
        assert!(back.changed && !back.after.contains("swb_"), "{client}");
    }
}
