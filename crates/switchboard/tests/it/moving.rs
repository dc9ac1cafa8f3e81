//! Servers that move from clients to the gateway, and the connection of all clients.

use std::{fs, os::unix::fs::PermissionsExt as _, path::PathBuf};

use serde_json::{Value, json};

use crate::support::{self, Done, Gateway, Place};

const CURSOR: &str = r#"{
  // Of mine.
  "mcpServers": {
    "files": { // the first
      "command": "npx", "args": ["-y", "files"],
      "env": { "API_KEY": "abcdef0123456789" }
    },
    // Stays.
    "mine": { "command": "other" },
    "docs": { "url": "https://docs.example/mcp", "headers": { "Authorization": "Bearer abcdef9876543210" } }
  },
  "theme": "dark" // here
}
"#;

/// The servers of Cursor as imported, with the secrets in files, but another `mine`.
fn imported() -> (Place, PathBuf) {
    let place = Place::new();
    let file = place.write("user/.cursor/mcp.json", CURSOR);
    place.write_config(r#"{"mcpServers": {"mine": {"command": "x"}}}"#);
    let done = place.run(&["import", "cursor", "--yes"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    let config = fs::read_to_string(place.config()).unwrap();
    assert!(config.contains("${secret:"), "{config}");
    (place, file)
}

#[track_caller]
fn run(place: &Place, args: &[&str]) -> Done {
    let done = place.run(args);
    assert_eq!(done.code, Some(0), "{done:?}");
    done
}

fn text(file: &PathBuf) -> String {
    fs::read_to_string(file).unwrap()
}

const MOVE: [&str; 4] = ["connect", "cursor", "--move", "--yes"];

#[test]
fn imported_servers_move_and_come_back() {
    let (place, file) = imported();
    let preview = run(&place, &["connect", "cursor", "--move", "--dry-run"]);
    assert_eq!(text(&file), CURSOR);
    let asked = place.run(&["connect", "cursor", "--move"]);
    assert_eq!((asked.code, text(&file).as_str()), (Some(2), CURSOR));
    let done = run(&place, &MOVE);
    assert_eq!(done.out, preview.out);
    for secret in ["abcdef0123456789", "abcdef9876543210"] {
        assert!(!done.out.contains(secret), "{done:?}");
    }
    for line in [
        "note: `mine` stays in Cursor: the gateway's server of this name has another command\n",
        "the gateway has 2 servers of Cursor, to be removed there: files, docs\n",
        "changed DIR/user/.cursor/mcp.json\n",
    ] {
        assert!(done.err.contains(line), "{line}: {done:?}");
    }
    let after = text(&file);
    for kept in ["// Of mine.", "// Stays.", "\"theme\": \"dark\" // here"] {
        assert!(after.contains(kept), "{after}");
    }
    assert!(
        after.contains("switchboard") && !after.contains("files\""),
        "{after}"
    );
    let backups = fs::read_dir(place.home().join("backups")).unwrap();
    for file in backups {
        let mode = file.unwrap().metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    let again = run(&place, &MOVE);
    assert!(
        again.err.contains("there is no server to move"),
        "{again:?}"
    );
    let undone = run(&place, &["connect", "cursor", "--undo"]);
    assert!(
        undone.err.contains("restored DIR/user/.cursor"),
        "{undone:?}"
    );
    assert_eq!(text(&file), CURSOR);
}

#[test]
fn connected_client_only_loses_its_servers() {
    let (place, file) = imported();
    let connected = run(&place, &["connect", "cursor", "--yes"]);
    let warning = "warning: Cursor also starts `docs`, `files`, `mine` without the gateway\n";
    assert!(connected.err.contains(warning), "{connected:?}");
    let before = text(&file);
    let done = run(&place, &MOVE);
    assert!(!done.out.contains("+    \"switchboard\""), "{done:?}");
    assert!(!text(&file).contains("\"files\""));
    // The client has changed its file since.
    fs::write(&file, text(&file).replace("dark", "light")).unwrap();
    let undone = run(&place, &["connect", "cursor", "--undo"]);
    assert!(
        undone.err.contains("put back only `files`, `docs`"),
        "{undone:?}"
    );
    assert!(undone.err.contains("still has the gateway"), "{undone:?}");
    let entries = |text: &str| {
        let plain: String = text
            .lines()
            .map(|line| line.split(" //").next().unwrap())
            .filter(|line| !line.trim_start().starts_with("//"))
            .collect();
        let root: Value = serde_json::from_str(&plain).unwrap();
        root["mcpServers"].clone()
    };
    assert_eq!(entries(&text(&file)), entries(&before));
    assert!(text(&file).contains("light"));
}

#[test]
fn client_over_http_keeps_its_token() {
    let (place, file) = imported();
    run(&place, &["connect", "cursor", "--http", "--yes"]);
    let connected = text(&file);
    let token = connected.split("swb_").nth(1).unwrap();
    let token = token.split('"').next().unwrap();
    let done = run(&place, &MOVE);
    assert!(!done.out.contains(token), "{done:?}");
    assert!(text(&file).contains(token) && !text(&file).contains("\"files\""));
    let undone = run(&place, &["connect", "cursor", "--undo"]);
    assert!(!undone.err.contains("revoked"), "{undone:?}");
    assert_eq!(text(&file), connected);
    run(&place, &["token", "revoke", "cursor"]);
    let done = place.run(&MOVE);
    assert!(
        done.err.contains("the token of Cursor was revoked"),
        "{done:?}"
    );
    assert_eq!((done.code, text(&file)), (Some(1), connected));
}

/// The gateway would not show these servers to the client.
#[test]
fn unavailable_servers_stay_with_the_reason() {
    let place = Place::new();
    let servers = r#"{"mcpServers": {
        "off": {"command": "off"}, "held": {"command": "held"}, "hidden": {"command": "hidden"},
        "secret": {"command": "s", "env": {"KEY": "abcdef0123456789"}}, "new": {"command": "n"},
        "paused": {"command": "p", "disabled": true}, "env": {"command": "e", "env": {"A": "1"}},
        "few": {"command": "f", "disabledTools": ["x"]}, "file": {"command": "f2", "envFile": "e"},
        "broken": {}, "same": {"command": "same"}, "typo": {"command": "t", "args": ["here"]}
    }}"#;
    let file = place.write("user/.cursor/mcp.json", servers);
    place.write_config(
        r#"{"mcpServers": {
            "off": {"command": "off", "enabled": false}, "held": {"command": "held", "hold": true},
            "hidden": {"command": "hidden"}, "secret": {"command": "s", "env": {"KEY": "${secret:gone}"}},
            "paused": {"command": "p"}, "env": {"command": "e", "env": {"A": "2"}}, "few": {"command": "f"},
            "typo": {"command": "t", "args": ["${projct}"]}, "file": {"command": "f2"}, "other-name": {"command": "same", "inheritEnv": ["X"]}
        }, "profiles": {"work": {"servers": ["o*", "held", "secret", "paused"]}}}"#,
    );
    let done = run(&place, &[&MOVE[..], &["--profile", "work"]].concat());
    for (name, why) in [
        (
            "off",
            "it is disabled in the gateway (`switchboard enable off`)",
        ),
        ("held", "the gateway starts it only after you approve it"),
        ("hidden", "the profile `work` does not include it"),
        ("secret", "the secret `gone` does not exist"),
        ("typo", "unknown reference \"${projct}\""),
        ("new", "the gateway does not have it"),
        ("paused", "it is disabled there"),
        (
            "env",
            "the gateway's server of this name has another variable `A`",
        ),
        (
            "few",
            "the gateway's server of this name has another selection of tools",
        ),
        ("file", "its `envFile` is not imported"),
        ("broken", "it has neither `command` nor `url`"),
    ] {
        let line = done
            .err
            .lines()
            .find(|line| line.starts_with(&format!("note: `{name}` stays in Cursor: ")));
        assert!(
            line.is_some_and(|line| line.contains(why)),
            "{name}: {done:?}"
        );
        assert!(text(&file).contains(&format!("\"{name}\"")), "{name}");
    }
    assert!(
        done.err
            .contains("removed there: same (there `other-name`)\n"),
        "{done:?}"
    );
    assert!(!text(&file).contains("\"same\""));
    let hint = "hint: add the servers that the gateway lacks with `switchboard import cursor`";
    assert!(done.err.contains(hint), "{done:?}");
}

#[test]
fn disabled_gateway_takes_no_server() {
    let (place, file) = imported();
    run(&place, &["connect", "cursor", "--yes"]);
    let off = text(&file).replace(
        "\"switchboard\": {",
        "\"switchboard\": { \"disabled\": true,",
    );
    fs::write(&file, &off).unwrap();
    let done = run(&place, &MOVE);
    let why = "`files` stays in Cursor: the gateway's entry `switchboard` is disabled there";
    assert!(done.err.contains(why), "{done:?}");
    assert_eq!(text(&file), off);
}

/// The client starts them in the project, and the gateway does not.
#[test]
fn servers_with_relative_paths_stay() {
    let place = Place::new();
    place.write("user/tools/mcp.js", "");
    let servers = r#""dot": {"command": "npx", "args": ["fs-server", "."]},
        "file": {"command": "node", "args": ["tools/mcp.js"]},
        "gone": {"command": "node", "args": ["./gone.js"]},
        "program": {"command": "./mcp"},
        "folder": {"command": "mcp-server", "cwd": "./tools"},
        "fixed": {"command": "npx", "args": ["fs-server", "."], "cwd": "/srv"},
        "plain": {"command": "npx", "args": ["fs-server", "/srv"]}"#;
    let shared = r#""shared": {"command": "mcp-server", "args": ["."]"#;
    let file = place.write(
        "user/.cursor/mcp.json",
        &format!("{{\"mcpServers\": {{{servers}, {shared}}}}}}}"),
    );
    place.write_config(&format!(
        "{{\"mcpServers\": {{{servers}, {shared}, \"share\": \"project\"}}}}}}"
    ));
    let done = run(&place, &MOVE);
    let removed =
        "the gateway has 3 servers of Cursor, to be removed there: fixed, plain, shared\n";
    assert!(done.err.contains(removed), "{done:?}");
    for name in ["dot", "file", "gone", "program", "folder"] {
        let why = format!(
            "note: `{name}` stays in Cursor: the gateway's server of this name has another directory for its relative \
             paths\n"
        );
        assert!(done.err.contains(&why), "{name}: {done:?}");
        assert!(text(&file).contains(&format!("\"{name}\"")), "{name}");
    }
}

/// In other projects, the same paths lead to the code of others.
#[test]
fn servers_bound_to_one_project_stay_literal() {
    let place = Place::new();
    for name in ["bin/mcp", "tools/mcp.js", "tools/mcp.sh", "data/notes.db"] {
        place.write(&format!("user/shop/{name}"), "");
    }
    let home = place.user().canonicalize().unwrap();
    let home = home.to_str().unwrap();
    let shop = &format!("{home}/shop");
    let bound = json!({
        "program": {"command": format!("{shop}/bin/mcp")},
        "variable": {"command": "${CLAUDE_PROJECT_DIR}/bin/mcp"},
        "relative": {"command": "./bin/mcp"},
        "script": {"command": "node", "args": [format!("{shop}/tools/mcp.js")]},
        "option": {"command": "node", "args": [format!("--import={shop}/tools/mcp.js"), "mcp"]},
        "shell": {"command": "bash", "args": ["tools/mcp.sh"]},
        "line": {"command": "sh", "args": ["-c", format!("{shop}/bin/mcp --stdio")]},
        "env": {"command": "env", "args": ["A=1", format!("{shop}/bin/mcp")]},
        "nested": {"command": "npx", "args": ["-y", "tsx", shop]},
        "local": {"command": "npx", "args": ["-y", shop]},
        "folder": {"command": "uv", "args": ["--directory", shop, "run", "mcp"]},
        "directory": {"command": "npx", "args": ["-y", "mcp-server"], "cwd": shop},
        "path": {"command": "mcp-server", "env": {"PYTHONPATH": format!("{shop}/tools")}},
        "database": {"command": "mcp-server", "args": [format!("{shop}/data/notes.db")]},
    });
    let free = json!({
        "files": {"command": "npx", "args": ["-y", "server-files", shop]},
        "git": {"command": "mcp-git", "args": [format!("--repository={shop}/data")]},
        "plain": {"command": "npx", "args": ["-y", "mcp-server"]},
    });
    let mut servers = bound.clone();
    servers
        .as_object_mut()
        .unwrap()
        .extend(free.as_object().unwrap().clone());
    let client = json!({"projects": {
        shop: {"mcpServers": servers},
        home: {"mcpServers": {"own": {"command": format!("{home}/.local/bin/x")}}},
        "/": {"mcpServers": {"root": {"command": "/usr/bin/x"}}},
    }});
    let file = place.write("user/.claude.json", &client.to_string());
    run(&place, &["import", "claude-code", "--yes"]);
    let config: Value = serde_json::from_str(&text(&place.config())).unwrap();
    let imported = &config["mcpServers"];
    for (name, entry) in bound.as_object().unwrap() {
        let literal = entry.to_string().replace("${CLAUDE_PROJECT_DIR}", shop);
        let literal: Value = serde_json::from_str(&literal).unwrap();
        assert_eq!(imported[name], literal, "{name}");
    }
    for (name, args) in [
        ("files", json!(["-y", "server-files", "${project}"])),
        ("git", json!(["--repository=${project}/data"])),
        ("plain", json!(["-y", "mcp-server"])),
    ] {
        let entry = &imported[name];
        assert_eq!(
            (&entry["args"], &entry["share"]),
            (&args, &json!("project"))
        );
    }
    assert_eq!(
        imported["own"],
        json!({"command": format!("{home}/.local/bin/x")})
    );
    assert_eq!(imported["root"], json!({"command": "/usr/bin/x"}));

    let done = run(&place, &["connect", "claude-code", "--move", "--yes"]);
    let removed = "to be removed there: files, git, plain\n";
    assert!(done.err.contains(removed), "{done:?}");
    let after: Value = serde_json::from_str(&text(&file)).unwrap();
    assert_eq!(after["projects"][shop]["mcpServers"], bound);
    for name in ["program", "own", "root"] {
        let why = format!("note: `{name}` stays in Claude Code: it was configured only for ");
        assert!(done.err.contains(&why), "{name}: {done:?}");
    }
}

#[test]
fn servers_of_projects_stay() {
    let (place, file) = imported();
    let own = r#"{"mcpServers": {"files": {"command": "npx", "args": ["-y", "files"], "env": {"API_KEY": "abcdef0123456789"}}}}"#;
    let project = place.write("user/repo/.cursor/mcp.json", own);
    let mut command = place.command(&MOVE);
    let output = command
        .current_dir(place.user().join("repo"))
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    let why = "`files` stays in ~/repo/.cursor/mcp.json: the file belongs to a project";
    assert!(said.contains(why), "{said}");
    assert_eq!(text(&project), own);
    assert!(!text(&file).contains("\"files\""));
}

#[test]
fn damaged_configuration_moves_nothing() {
    let (place, file) = imported();
    place.write_config("{ damaged");
    let done = place.run(&MOVE);
    assert_eq!((done.code, text(&file).as_str()), (Some(1), CURSOR));
    assert!(done.err.contains("switchboard.json:1:"), "{done:?}");
}

const CODEX: &str = "\
# Mine.
model = \"x\"

# Files.
[mcp_servers.files]
command = \"npx\" # odd
args = [\"-y\", \"files\"]

[mcp_servers.files.env]
API_KEY = \"abcdef0123456789\"

[mcp_servers.own]
command = \"own\"
";

#[test]
fn all_clients_are_connected_despite_one_failure() {
    let (place, cursor) = imported();
    let codex = place.write("user/.codex/config.toml", CODEX);
    let zed = place.write("user/.config/zed/settings.json", "{ damaged");
    fs::create_dir(place.user().join(".gemini")).unwrap();
    let gemini = place.user().join(".gemini/settings.json");
    run(&place, &["connect", "cursor", "--yes"]);
    let connected = text(&cursor);

    let all = ["connect", "--all", "--move"];
    let done = place.run(&[&all[..], &["--dry-run"]].concat());
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(done.out.contains("-[mcp_servers.files]\n"), "{done:?}");
    assert_eq!(
        (text(&codex).as_str(), text(&cursor)),
        (CODEX, connected.clone())
    );

    let done = place.run(&[&all[..], &["--yes"]].concat());
    assert_eq!(done.code, Some(1), "{done:?}");
    let failure =
        "error: cannot connect Zed: cannot parse DIR/user/.config/zed/settings.json:1:3: ";
    assert_eq!(done.err.matches(failure).count(), 1, "{done:?}");
    assert!(
        done.err
            .contains("restart Cursor, Codex, Gemini CLI to use"),
        "{done:?}"
    );
    assert!(!done.out.contains("abcdef0123456789"), "{done:?}");
    assert!(!text(&cursor).contains("\"files\""));
    let toml = text(&codex);
    assert!(
        toml.starts_with("# Mine.\nmodel = \"x\"\n\n# Files.\n\n[mcp_servers.own]\n"),
        "{toml}"
    );
    assert!(text(&gemini).contains("switchboard"));

    let done = run(&place, &["connect", "--all", "--undo"]);
    assert!(
        done.err.contains("deleted DIR/user/.gemini/settings.json"),
        "{done:?}"
    );
    assert_eq!((text(&codex).as_str(), text(&cursor)), (CODEX, connected));
    assert!(!gemini.exists());
    assert_eq!(text(&zed), "{ damaged");
    run(&place, &["connect", "--all", "--undo"]);
    assert_eq!(text(&cursor), CURSOR);
    let nothing = "error: there is nothing to undo\n";
    place.check(&["connect", "--all", "--undo"], 1, "", nothing);
}

#[test]
fn all_skips_connected_and_unable_clients() {
    let (place, cursor) = imported();
    let desktop = place.write("user/.config/Claude/claude_desktop_config.json", "{}");
    place.write("user/.codex/config.toml", "");
    run(&place, &["connect", "cursor", "--yes"]);
    let connected = text(&cursor);
    let _gateway = Gateway::start(&place, &[]);
    let done = run(
        &place,
        &["connect", "--all", "--http", "--name", "gw", "--yes"],
    );
    assert!(
        done.err.contains("Cursor is connected already\n"),
        "{done:?}"
    );
    let reason = "warning: skipped Claude Desktop: Claude Desktop has no servers over HTTP";
    assert!(done.err.contains(reason), "{done:?}");
    assert_eq!(
        (text(&cursor), text(&desktop)),
        (connected, "{}".to_owned())
    );
    assert!(text(&place.user().join(".codex/config.toml")).contains("[mcp_servers.gw]"));
    let tokens = support::json(&place, &["token", "list", "--json"]);
    assert_eq!(tokens["tokens"][0]["name"], "codex");
    let done = run(&place, &["connect", "--all", "--undo"]);
    assert!(done.err.contains("revoked the token `codex`"), "{done:?}");
}

#[test]
fn all_without_clients_changes_nothing() {
    let place = Place::new();
    let done = run(&place, &["connect", "--all", "--yes"]);
    assert!(
        done.err.starts_with("no client is installed here\n"),
        "{done:?}"
    );
    let wrong = place.run(&["connect", "cursor", "--all"]);
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
}

#[test]
fn list_names_connection_and_own_servers() {
    let (place, _) = imported();
    place.write("user/.codex/config.toml", CODEX);
    place.write("user/.gemini/settings.json", "[]");
    let profiles = r#"{"profiles": {"work": {"servers": []}}}"#;
    place.write_config(profiles);
    run(
        &place,
        &["connect", "cursor", "--http", "--profile", "work", "--yes"],
    );
    run(
        &place,
        &[
            "connect",
            "codex",
            "--profile",
            "work",
            "--name",
            "gw",
            "--yes",
        ],
    );
    let list = support::json(&place, &["connect", "--json"]);
    let client = |name: &str| {
        let mut all = list["clients"].as_array().unwrap().iter();
        let mut one = all.find(|client| client["client"] == name).unwrap().clone();
        one.as_object_mut().unwrap().remove("file");
        one
    };
    let expected = json!({
        "client": "cursor", "title": "Cursor", "state": "connected", "name": "switchboard",
        "transport": "http", "profile": "work", "servers": 3,
    });
    assert_eq!(client("cursor"), expected);
    let expected = json!({
        "client": "codex", "title": "Codex", "state": "connected", "name": "gw",
        "transport": "stdio", "profile": "work", "servers": 2,
    });
    assert_eq!(client("codex"), expected);
    assert_eq!(client("zed")["state"], "not found");
    assert_eq!(client("gemini")["state"], "unreadable");
    assert!(
        client("gemini")["error"]
            .as_str()
            .unwrap()
            .contains("not an object")
    );
    let table = run(&place, &["connect"]).out;
    let row = table
        .lines()
        .find(|line| line.starts_with("cursor"))
        .unwrap();
    let row: Vec<_> = row.split_whitespace().collect();
    assert_eq!(
        row,
        [
            "cursor",
            "connected",
            "(http,",
            "profile",
            "work)",
            "3",
            "~/.cursor/mcp.json"
        ]
    );
}
