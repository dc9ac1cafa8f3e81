//! Imports, in every format.

use serde_json::{Value, json};
use switchboard_client_configs::{Client, ErrorKind, Found, read, read_file, read_project};

use super::{Machine, entries};

/// Checks the import of a client's usual file.
fn check(client: Client, text: &str, expected: &[(&str, Value)]) -> Vec<String> {
    let machine = Machine::new();
    let file = machine.write(client, text);
    let mut found = read(client, &machine.dirs).unwrap();
    assert_eq!(found.len(), 1);
    let found = &mut found[0];
    found.share_in_projects(&machine.dirs, &|_, _| false);
    assert_eq!((found.client, &found.file), (Some(client), &file));
    let expected: Vec<_> = expected
        .iter()
        .map(|(name, entry)| (*name, entry))
        .collect();
    assert_eq!(entries(found), expected);
    for server in &found.servers {
        let taken = switchboard_config::add_server("{}", &server.name, &server.entry);
        assert!(taken.is_ok(), "{}: {taken:?}", server.name);
    }
    let told = found.servers.iter().flat_map(|server| &server.notes);
    let told = told.chain(&found.notes).cloned();
    told.chain(found.skipped.iter().map(ToString::to_string))
        .collect()
}

#[test]
fn claude_desktop() {
    let notes = check(
        Client::ClaudeDesktop,
        r#"{
          "globalShortcut": "",
          "mcpServers": {
            "files": {"command": "npx", "args": ["-y", "server", "/data"], "env": {"A": "${B}", "N": 1}},
            "plain": {"command": "uvx"},
            "sb": {"command": "/opt/bin/switchboard", "args": ["stdio"]},
            "broken": 7,
            "empty": {}
          }
        }"#,
        &[
            (
                "files",
                json!({"command": "npx", "args": ["-y", "server", "/data"], "env": {"A": "$${B}", "N": "1"}}),
            ),
            ("plain", json!({"command": "uvx"})),
        ],
    );
    assert_eq!(
        notes,
        [
            "`sb` is skipped: it is the gateway itself",
            "`broken` is skipped: it is not an object",
            "`empty` is skipped: it has neither `command` nor `url`",
        ]
    );
}

#[test]
fn settings_of_wrong_type_are_noted() {
    let notes = check(
        Client::ClaudeDesktop,
        r#"{
          "mcpServers": {
            "a": {"command": "a", "args": "--read-only /data", "env": ["A=1"], "includeTools": "x", "cwd": null},
            "b": {"url": "https://x/mcp", "headers": "A: 1", "env_http_headers": 1}
          }
        }"#,
        &[
            ("a", json!({"command": "a"})),
            ("b", json!({"url": "https://x/mcp"})),
        ],
    );
    assert_eq!(
        notes,
        [
            "`args` is not imported, because it is not a list",
            "`env` is not imported, because it is not an object",
            "`includeTools` is not imported, because it is not a list",
            "`headers` is not imported, because it is not an object",
            "`env_http_headers` is not imported, because it is not an object",
        ]
    );
}

#[test]
fn claude_code_with_its_projects() {
    let notes = check(
        Client::ClaudeCode,
        r#"{
          "numStartups": 12,
          "mcpServers": {
            "remote": {"type": "http", "url": "https://x/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}, "timeout": 5000},
            "old": {"type": "sse", "url": "${BASE:-https://x}/sse"}
          },
          "projects": {
            "/a": {"mcpServers": {"db": {"type": "stdio", "command": "db", "args": ["--dir=/a/x", "/ab"], "env": {}}}},
            "/b": {"mcpServers": {
              "db": {"type": "stdio", "command": "db", "args": ["--dir=/b/x", "/ab"], "env": {}},
              "old": {"command": "mine"}
            }},
            "/c": {"allowedTools": []}
          }
        }"#,
        &[
            (
                "remote",
                json!({"url": "https://x/mcp", "headers": {"Authorization": "Bearer ${env:TOKEN}"}, "requestTimeoutMs": 5000}),
            ),
            ("old", json!({"url": "${env:BASE}/sse", "type": "sse"})),
            (
                "db",
                json!({"command": "db", "args": ["--dir=${project}/x", "/ab"], "share": "project"}),
            ),
            ("old-2", json!({"command": "mine", "share": "project"})),
        ],
    );
    assert_eq!(notes.len(), 3, "{notes:?}");
    assert!(notes[0].contains("`https://x`"), "{notes:?}");
    for (note, project) in notes[1..].iter().zip(["/a", "/b"]) {
        let words = format!("it was configured only for the project {project}; ");
        assert!(note.starts_with(&words), "{note}");
    }
}

#[test]
fn server_bound_to_its_project_keeps_the_path() {
    let machine = Machine::new();
    machine.write(
        Client::ClaudeCode,
        r#"{"projects": {
            "/a": {"mcpServers": {
                "db": {"command": "/a/bin/db", "args": ["/a"]},
                "dir": {"command": "${CLAUDE_PROJECT_DIR}/bin/dir"},
                "free": {"command": "free", "args": ["/a"]}
            }},
            "/b": {"mcpServers": {"db": {"command": "/b/bin/db", "args": ["/b"]}, "free": {"command": "free", "args": ["/b"]}}}
        }}"#,
    );
    let mut found = read(Client::ClaudeCode, &machine.dirs).unwrap().remove(0);
    found.share_in_projects(&machine.dirs, &|project, entry| {
        assert!(["/a", "/b"].contains(&project), "{project}");
        let command = entry["command"].as_str().unwrap();
        command.starts_with("${project}/")
    });
    let expected = [
        ("db", json!({"command": "/a/bin/db", "args": ["/a"]})),
        ("dir", json!({"command": "/a/bin/dir"})),
        (
            "free",
            json!({"command": "free", "args": ["${project}"], "share": "project"}),
        ),
        ("db-2", json!({"command": "/b/bin/db", "args": ["/b"]})),
    ];
    let expected: Vec<_> = expected
        .iter()
        .map(|(name, entry)| (*name, entry))
        .collect();
    assert_eq!(entries(&found), expected);
    for (server, project) in found.servers.iter().zip(["/a", "/a", "", "/b"]) {
        let gap = server.gap.as_deref().unwrap_or_default();
        assert_eq!(gap.is_empty(), project.is_empty(), "{gap}");
        assert!(gap.contains(project), "{gap}");
    }
}

#[cfg(unix)]
#[test]
fn home_and_directories_above_are_no_projects() {
    let machine = Machine::new();
    let home = machine.dirs.home.to_str().unwrap();
    let link = machine.folder.path().join("link");
    std::os::unix::fs::symlink(home, &link).unwrap();
    for (project, command, is_inside) in [
        (home, format!("{home}/.local/bin/x"), true),
        (
            link.to_str().unwrap(),
            format!("{}/x", link.display()),
            true,
        ),
        (
            machine.folder.path().to_str().unwrap(),
            format!("{home}/x"),
            true,
        ),
        ("/", "/usr/bin/x".to_owned(), true),
        (home, "npx".to_owned(), false),
    ] {
        let server = json!({"mcpServers": {"x": {"command": command}}});
        let text = json!({"projects": {project: server}}).to_string();
        machine.write(Client::ClaudeCode, &text);
        let mut found = read(Client::ClaudeCode, &machine.dirs).unwrap().remove(0);
        found.share_in_projects(&machine.dirs, &|_, _| false);
        assert_eq!(entries(&found), [("x", &json!({"command": command}))]);
        let server = &found.servers[0];
        assert_eq!(server.gap.is_some(), is_inside, "{server:?}");
        assert!(server.notes[0].contains("is no project"), "{server:?}");
    }
}

#[test]
fn cursor() {
    let notes = check(
        Client::Cursor,
        r#"{"mcpServers": {
            "a": {"command": "${userHome}/bin/a", "args": ["${workspaceFolder}"], "envFile": ".env", "autoApprove": ["x"]},
            "b": {"url": "https://b/mcp", "headers": {"K": "${env:KEY}"}, "auth": {"CLIENT_ID": "1"}}
        }}"#,
        &[
            (
                "a",
                json!({"command": "${env:HOME}/bin/a", "args": ["${project}"]}),
            ),
            (
                "b",
                json!({"url": "https://b/mcp", "headers": {"K": "${env:KEY}"}}),
            ),
        ],
    );
    assert_eq!(notes.len(), 3, "{notes:?}");
    assert!(notes.contains(&"skipped the unsupported key `autoApprove`".to_owned()));
}

#[test]
fn vscode_with_inputs() {
    let notes = check(
        Client::VsCode,
        r#"// mine
        {
          "inputs": [{"type": "promptString", "id": "api-key", "password": true}],
          "servers": {
            "gh": {"type": "http", "url": "https://gh/mcp", "headers": {"X": "${input:api-key}"},},
            "loc": {"type": "stdio", "command": "node", "args": ["s.js"], "cwd": "/w"},
          },
        }"#,
        &[
            (
                "gh",
                json!({"url": "https://gh/mcp", "headers": {"X": "${secret:api-key}"}}),
            ),
            (
                "loc",
                json!({"command": "node", "args": ["s.js"], "cwd": "/w"}),
            ),
        ],
    );
    assert_eq!(
        notes,
        [
            "`${input:api-key}` becomes ${secret:api-key}; store it with `switchboard secret set api-key`"
        ]
    );
}

#[test]
fn windsurf() {
    let notes = check(
        Client::Windsurf,
        r#"{"mcpServers": {
            "r": {"serverUrl": "https://r/mcp", "disabledTools": ["rm"]},
            "off": {"command": "x", "disabled": true}
        }}"#,
        &[
            (
                "r",
                json!({"url": "https://r/mcp", "tools": {"deny": ["rm"]}}),
            ),
            ("off", json!({"command": "x", "enabled": false})),
        ],
    );
    assert!(notes.is_empty(), "{notes:?}");
}

#[test]
fn zed_in_both_formats() {
    let notes = check(
        Client::Zed,
        r#"{
          // settings of Zed
          "theme": "One Dark",
          "context_servers": {
            "new": {"source": "custom", "enabled": true, "command": "uv", "args": ["run"], "env": {"A": "1"}, "timeout": 30},
            "old": {"command": {"path": "/bin/old", "args": ["-x"], "env": {"B": "2"}}, "settings": {}},
            "far": {"url": "https://z/mcp", "headers": {"Authorization": "Bearer t"}},
            "ext": {"source": "extension", "settings": {"k": 1}}
          }
        }"#,
        &[
            (
                "new",
                json!({"command": "uv", "args": ["run"], "env": {"A": "1"}, "requestTimeoutMs": 30000}),
            ),
            (
                "old",
                json!({"command": "/bin/old", "args": ["-x"], "env": {"B": "2"}}),
            ),
            (
                "far",
                json!({"url": "https://z/mcp", "headers": {"Authorization": "Bearer t"}}),
            ),
        ],
    );
    assert_eq!(notes[0], "skipped the unsupported key `settings`");
    assert!(notes[1].contains("`ext` is skipped: an extension of the editor starts it"));
}

#[test]
fn opencode_in_both_versions() {
    let servers = r#"{
        "l": {"type": "local", "command": ["bun", "x", "s"], "environment": {"K": "{env:KEY}"}, "enabled": true},
        "r": {"type": "remote", "url": "https://o/mcp", "enabled": false, "headers": {"A": "{file:~/.token}"}, "oauth": {}}
    }"#;
    let expected = [
        (
            "l",
            json!({"command": "bun", "args": ["x", "s"], "env": {"K": "${env:KEY}"}}),
        ),
        (
            "r",
            json!({"url": "https://o/mcp", "headers": {"A": "${secret:token}"}, "enabled": false}),
        ),
    ];
    for text in [
        format!(r#"{{"$schema": "s", "mcp": {servers}}}"#),
        format!(r#"{{"mcp": {{"servers": {servers}}}}}"#),
    ] {
        let notes = check(Client::OpenCode, &text, &expected);
        assert_eq!(notes.len(), 2, "{notes:?}");
    }
}

#[test]
fn codex() {
    let notes = check(
        Client::Codex,
        r#"
model = "gpt"

[mcp_servers.local]
command = "npx"
args = ["-y", "s"] # why not
env = { "A" = "1" }
env_vars = ["TOKEN"]
startup_timeout_sec = 20
tool_timeout_sec = 1.5
enabled_tools = ["a"]

[mcp_servers.local.env2]
x = 1

[mcp_servers."far away"]
url = "https://c/mcp"
bearer_token_env_var = "C_TOKEN"
http_headers = { "X-A" = "b" }
env_http_headers = { "X-B" = "B_VAR" }
enabled = false
"#,
        &[
            (
                "local",
                json!({
                    "command": "npx", "args": ["-y", "s"], "env": {"A": "1", "TOKEN": "${env:TOKEN}"},
                    "initTimeoutMs": 20000, "requestTimeoutMs": 1500, "tools": {"allow": ["a"]}
                }),
            ),
            (
                "far away",
                json!({
                    "url": "https://c/mcp", "enabled": false,
                    "headers": {"Authorization": "Bearer ${env:C_TOKEN}", "X-A": "b", "X-B": "${env:B_VAR}"}
                }),
            ),
        ],
    );
    assert_eq!(notes, ["skipped the unsupported key `env2`"]);
}

#[test]
fn gemini() {
    let notes = check(
        Client::GeminiCli,
        r#"{
          "mcp": {"excluded": ["shy"]},
          "mcpServers": {
            "a": {"command": "p", "args": ["$HOME/x"], "env": {"K": "$KEY"}, "cwd": "./d", "timeout": 15000, "trust": true, "includeTools": ["t"]},
            "sse": {"url": "http://g/sse"},
            "http": {"httpUrl": "http://g/mcp"},
            "typed": {"url": "http://g/mcp", "type": "http"},
            "shy": {"command": "s"}
          }
        }"#,
        &[
            (
                "a",
                json!({
                    "command": "p", "args": ["${env:HOME}/x"], "env": {"K": "${env:KEY}"}, "cwd": "./d",
                    "requestTimeoutMs": 15000, "tools": {"allow": ["t"]}
                }),
            ),
            ("sse", json!({"url": "http://g/sse", "type": "sse"})),
            ("http", json!({"url": "http://g/mcp"})),
            ("typed", json!({"url": "http://g/mcp"})),
            ("shy", json!({"command": "s", "enabled": false})),
        ],
    );
    assert_eq!(notes, ["skipped the unsupported key `trust`"]);
}

#[test]
fn invalid_names_are_changed_with_a_note() {
    let notes = check(
        Client::Cursor,
        r#"{"mcpServers": {
            "github.com/x/y": {"command": "a"},
            "github.com-x-y": {"command": "b"},
            "..": {"command": "c"},
            " ": {"command": "d"}
        }}"#,
        &[
            ("github.com-x-y", json!({"command": "a"})),
            ("github.com-x-y-2", json!({"command": "b"})),
            ("unnamed", json!({"command": "c"})),
            ("unnamed-2", json!({"command": "d"})),
        ],
    );
    assert_eq!(notes.len(), 3, "{notes:?}");
}

#[test]
fn project_files_are_read_on_demand_only() {
    let machine = Machine::new();
    machine.write(Client::Cursor, r#"{"mcpServers": {"a": {"command": "a"}}}"#);
    let project = machine.dirs.cwd.join(".cursor/mcp.json");
    super::write(&project, r#"{"mcpServers": {"b": {"command": "b"}}}"#);
    let files = |found: Vec<Found>| {
        found
            .into_iter()
            .map(|found| found.file)
            .collect::<Vec<_>>()
    };
    let found = read(Client::Cursor, &machine.dirs).unwrap();
    assert_eq!(files(found), [machine.file(Client::Cursor)]);
    let found = read_project(Client::Cursor, &machine.dirs).unwrap();
    assert_eq!(files(found), [project]);
    let mut at_home = machine.dirs.clone();
    at_home.cwd = at_home.home.clone();
    assert!(read_project(Client::Cursor, &at_home).is_err());
}

#[test]
fn client_without_a_file_lists_the_locations() {
    let machine = Machine::new();
    let error = read(Client::Codex, &machine.dirs).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert_eq!(error.to_string(), "Codex has no configuration");
    let hint = error.hint().unwrap();
    assert!(hint.contains(".codex/config.toml"), "{hint}");
}

#[test]
fn format_is_detected_from_the_content() {
    let machine = Machine::new();
    let entry = r#"{"a": {"command": "x"}}"#;
    for (name, text, client) in [
        ("some.json", format!(r#"{{"mcpServers": {entry}}}"#), None),
        ("bare.json", entry.to_owned(), None),
        (
            "settings.json",
            format!(r#"{{"mcp": {{"servers": {entry}}}}}"#),
            None,
        ),
        (
            "claude_desktop_config.json",
            format!(r#"{{"mcpServers": {entry}}}"#),
            Some(Client::ClaudeDesktop),
        ),
        (
            ".mcp.json",
            format!(r#"{{"mcpServers": {entry}}}"#),
            Some(Client::ClaudeCode),
        ),
        (
            ".cursor/mcp.json",
            format!(r#"{{"mcpServers": {entry}}}"#),
            Some(Client::Cursor),
        ),
        (
            "mcp.json",
            format!(r#"{{"servers": {entry}}}"#),
            Some(Client::VsCode),
        ),
        (
            "mcp_config.json",
            format!(r#"{{"mcpServers": {entry}}}"#),
            Some(Client::Windsurf),
        ),
        (
            "s.json",
            format!(r#"{{"context_servers": {entry}}}"#),
            Some(Client::Zed),
        ),
        (
            "o.jsonc",
            r#"{"mcp": {"a": {"type": "local", "command": ["x"]}}}"#.to_owned(),
            Some(Client::OpenCode),
        ),
        (
            "o2.json",
            r#"{"mcp": {"servers": {"a": {"type": "local", "command": ["x"]}}}}"#.to_owned(),
            Some(Client::OpenCode),
        ),
        (
            "c.toml",
            "[mcp_servers.a]\ncommand = 'x'".to_owned(),
            Some(Client::Codex),
        ),
        (
            "c.txt",
            "[mcp_servers.a]\ncommand = 'x'".to_owned(),
            Some(Client::Codex),
        ),
        (
            "g.json",
            r#"{"mcpServers": {"a": {"command": "x"}, "b": {"httpUrl": "http://g"}}}"#.to_owned(),
            Some(Client::GeminiCli),
        ),
    ] {
        let found = machine.found(name, &text);
        assert_eq!(found.client, client, "{name}");
        assert_eq!(found.servers[0].name, "a", "{name}");
        let entry = &found.servers[0].entry;
        assert_eq!(entry["command"], "x", "{name}");
        let is_of_project = entry["share"] == "project";
        assert_eq!(is_of_project, found.is_project, "{name}");
    }
}

#[test]
fn files_without_servers_name_the_reason() {
    let machine = Machine::new();
    let file = machine.folder.path().join("x.json");
    for (text, message) in [
        ("", "is empty"),
        ("  \n", "is empty"),
        ("{}", "has no servers under a known key"),
        (r#"{"a": 1}"#, "has no servers under a known key"),
        ("// only a comment\n", "has no servers under a known key"),
    ] {
        std::fs::write(&file, text).unwrap();
        let error = read_file(&file, &machine.dirs).unwrap_err().to_string();
        assert!(error.contains(message), "{text:?}: {error}");
    }
    let missing = read_file(&machine.folder.path().join("none.json"), &machine.dirs).unwrap_err();
    assert!(
        missing.to_string().ends_with("none.json does not exist"),
        "{missing}"
    );
}
