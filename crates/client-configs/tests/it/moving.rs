//! Removal of a client's own servers, and their return.

use switchboard_client_configs::{
    Client, How, Imported, Plan, Reach, Which, plan_connect, plan_unchanged, state, undo,
};

use super::{Machine, gateway, text};

/// Plans to connect a client and to remove the servers with these names.
fn moved(machine: &Machine, client: Client, names: &[&str]) -> Plan {
    let mut plan = plan_connect(client, &machine.dirs, &gateway()).unwrap();
    let stay = remove(machine, &mut plan, names);
    assert!(stay.is_empty(), "{stay:?}");
    plan
}

fn remove(machine: &Machine, plan: &mut Plan, names: &[&str]) -> Vec<String> {
    let mut found = plan.servers(&machine.dirs).unwrap();
    found.share_in_projects(&machine.dirs, &|_, _| false);
    let servers = found.servers.iter();
    let servers: Vec<&Imported> = servers
        .filter(|server| names.contains(&server.name.as_str()))
        .collect();
    assert_eq!(servers.len(), names.len(), "{found:?}");
    plan.remove(&servers).unwrap()
}

const ENTRY: &str = "\"switchboard\": {\n      \"command\": \"/opt/bin/switchboard\",\n      \"args\": [\"stdio\", \"--home\", \"/data/home of mine\"]\n    }";

const JSON: &str = r#"{
  // Of mine.
  "theme": "dark",
  "mcpServers": {
    "files": { // the first
      "command": "npx", /* odd */
      "env": { "API_KEY": "precious" }
    },
    // Stays.
    "other": { "command": "other" }, // too
    "last": { "url": "https://x/mcp" }
  }
}
"#;

#[test]
fn servers_are_removed_beside_comments() {
    let machine = Machine::new();
    let file = machine.write(Client::Cursor, JSON);
    let plan = moved(&machine, Client::Cursor, &["files", "last"]);
    let expected = format!(
        "{{\n  // Of mine.\n  \"theme\": \"dark\",\n  \"mcpServers\": {{\n    // Stays.\n    \"other\": {{ \"command\": \"other\" }}, // too\n    {ENTRY}\n  }}\n}}\n"
    );
    assert_eq!(plan.after, expected);
    machine.apply(&plan);
    let after = state(Client::Cursor, &machine.dirs, &gateway()).unwrap();
    assert_eq!((after.servers, after.connection.is_some()), (1, true));
    let undone = undo(Which::Last, &machine.backups()).unwrap();
    assert_eq!(undone.how, How::Restored);
    assert_eq!(text(&file), JSON);
}

const TOML: &str = "\
# The model.
model = \"x\"

# Files of mine.
[mcp_servers.files]
command = \"npx\" # odd
args = [
  \"-y\", # yes
  \"files\",
]

[mcp_servers.files.env]
API_KEY = \"precious\"

# Stays.
[mcp_servers.other]
command = \"other\"
env.A = \"1\"

[ui]
dark = true
";

#[test]
fn toml_keeps_comments_of_removed_servers() {
    let machine = Machine::new();
    let file = machine.write(Client::Codex, TOML);
    let mut plan = moved(&machine, Client::Codex, &["files"]);
    let entry = plan
        .after
        .split_once("\n[mcp_servers.switchboard]")
        .unwrap();
    assert_eq!(
        entry.0,
        "# The model.\nmodel = \"x\"\n\n# Files of mine.\n\n# Stays.\n[mcp_servers.other]\ncommand = \"other\"\nenv.A = \"1\"\n\n[ui]\ndark = true\n"
    );
    assert_eq!(remove(&machine, &mut plan, &["other"]).len(), 0);
    assert!(!plan.after.contains("env.A"), "{}", plan.after);
    machine.apply(&plan);
    undo(Which::Last, &machine.backups()).unwrap();
    assert_eq!(text(&file), TOML);
}

#[test]
fn toml_of_every_form_loses_one_server() {
    for (before, after) in [
        (
            "mcp_servers = { a = { command = \"a\" }, b = { command = \"b\" } }\n",
            "mcp_servers = { b = { command = \"b\" } }\n",
        ),
        (
            "[mcp_servers]\na.command = \"a\"\nb.command = \"b\"\n",
            "[mcp_servers]\nb.command = \"b\"\n",
        ),
        (
            "[mcp_servers.a]\ncommand = \"a\"\n\n[z]\ny = 1\n\n[mcp_servers.a.env]\nA = \"1\"",
            "[z]\ny = 1\n",
        ),
        (
            "x = 1\r\n\r\n[mcp_servers.a]\r\ncommand = '''\r\na'''\r\n\r\n[z]\r\n",
            "x = 1\r\n\r\n[z]\r\n",
        ),
        (
            "[mcp_servers.a.env]\nA = \"1\"\n[mcp_servers.a]\ncommand = \"a\"\n[z]\n",
            "[z]\n",
        ),
    ] {
        let machine = Machine::new();
        machine.write(Client::Codex, before);
        let mut plan = plan_unchanged(Client::Codex, &machine.dirs, &gateway()).unwrap();
        assert_eq!(remove(&machine, &mut plan, &["a"]).len(), 0);
        assert_eq!(plan.after, after);
    }
}

#[test]
fn servers_of_projects_are_removed_everywhere() {
    let machine = Machine::new();
    machine.write(
        Client::ClaudeCode,
        r#"{"projects": {"/a": {"mcpServers": {"x": {"command": "x"}}, "n": 1}, "/b": {"mcpServers": {"x": {"command": "x"}, "y": {"command": "y"}}}}}"#,
    );
    let mut plan = plan_unchanged(Client::ClaudeCode, &machine.dirs, &gateway()).unwrap();
    assert_eq!(remove(&machine, &mut plan, &["x"]).len(), 0);
    assert_eq!(
        plan.after,
        r#"{"projects": {"/a": {"mcpServers": {}, "n": 1}, "/b": {"mcpServers": {"y": {"command": "y"}}}}}"#
    );
}

#[test]
fn name_that_occurs_twice_stays() {
    let machine = Machine::new();
    let before = r#"{"mcpServers": {"a": {"command": "shadowed"}, "a": {"command": "a"}, "b": {"command": "b"}}}"#;
    machine.write(Client::Cursor, before);
    let mut plan = plan_unchanged(Client::Cursor, &machine.dirs, &gateway()).unwrap();
    assert_eq!(remove(&machine, &mut plan, &["a", "b"]), ["a"]);
    assert_eq!(
        plan.after,
        r#"{"mcpServers": {"a": {"command": "shadowed"}, "a": {"command": "a"}}}"#
    );
}

/// The client has written its file since, as Claude Code often does.
#[test]
fn undo_puts_servers_back_beside_other_changes() {
    for (client, before, change) in [
        (Client::Cursor, JSON, ("\"dark\"", "\"light\"")),
        (Client::Codex, TOML, ("dark = true", "dark = false")),
    ] {
        let machine = Machine::new();
        let file = machine.write(client, before);
        machine.apply(&moved(&machine, client, &["files"]));
        let changed = text(&file).replace(change.0, change.1);
        std::fs::write(&file, &changed).unwrap();
        let undone = undo(Which::Last, &machine.backups()).unwrap();
        let How::Edited { copy, servers, .. } = &undone.how else {
            panic!("{:?}", undone.how);
        };
        assert_eq!((text(copy), servers.len()), (changed, 1));
        let after = text(&file);
        assert!(
            after.contains(change.1) && after.contains("precious"),
            "{after}"
        );
        let now = state(client, &machine.dirs, &gateway()).unwrap();
        let plan = plan_unchanged(client, &machine.dirs, &gateway()).unwrap();
        assert_eq!(now.connection, None);
        let mut found = plan.servers(&machine.dirs).unwrap().servers;
        let earlier = machine.found(file.file_name().unwrap().to_str().unwrap(), before);
        found.sort_by(|one, other| one.name.cmp(&other.name));
        let entries: Vec<_> = found.iter().map(|server| &server.entry).collect();
        let mut expected = earlier.servers;
        expected.sort_by(|one, other| one.name.cmp(&other.name));
        let expected: Vec<_> = expected.iter().map(|server| &server.entry).collect();
        assert_eq!(entries, expected, "{after}");
    }
}

#[test]
fn undo_of_a_move_keeps_the_gateway() {
    let machine = Machine::new();
    let file = machine.write(Client::Cursor, JSON);
    machine.apply(&machine.connect(Client::Cursor));
    let connected = text(&file);
    let mut plan = plan_unchanged(Client::Cursor, &machine.dirs, &gateway()).unwrap();
    remove(&machine, &mut plan, &["files"]);
    machine.apply(&plan);
    let changed = text(&file).replace("dark", "light");
    std::fs::write(&file, changed).unwrap();
    let undone = undo(Which::Last, &machine.backups()).unwrap();
    let message = undone.how.message(&undone.file);
    assert!(
        message.starts_with("put back only `files` in "),
        "{message}"
    );
    assert!(text(&file).contains("switchboard"));

    machine.write(Client::Cursor, &connected);
    undo(Which::Last, &machine.backups()).unwrap();
    assert_eq!(text(&file), JSON);
}

#[test]
fn server_added_again_survives_the_undo() {
    let machine = Machine::new();
    let file = machine.write(Client::Cursor, JSON);
    machine.apply(&moved(&machine, Client::Cursor, &["files"]));
    let again = r#"{"mcpServers": {"files": {"command": "newer"}}}"#;
    std::fs::write(&file, again).unwrap();
    let undone = undo(Which::Last, &machine.backups()).unwrap();
    assert_eq!(undone.how, How::AlreadyGone);
    assert_eq!(text(&file), again);
}

#[test]
fn deleted_file_keeps_its_undo() {
    let machine = Machine::new();
    let file = machine.write(Client::Cursor, JSON);
    machine.apply(&moved(&machine, Client::Cursor, &["files"]));
    let after = text(&file);
    std::fs::remove_file(&file).unwrap();
    let error = undo(Which::Last, &machine.backups()).unwrap_err();
    assert!(
        error.hint().unwrap().contains("previous content"),
        "{error}"
    );
    std::fs::write(&file, after).unwrap();
    undo(Which::Last, &machine.backups()).unwrap();
    assert_eq!(text(&file), JSON);
}

#[test]
fn state_names_connection_and_servers() {
    let machine = Machine::new();
    let now = state(Client::GeminiCli, &machine.dirs, &gateway()).unwrap();
    assert!(!now.is_installed && now.connection.is_none());
    let file = machine.file(Client::GeminiCli);
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    let state = || state(Client::GeminiCli, &machine.dirs, &gateway()).unwrap();
    assert!(state().is_installed);
    let entry = r#"{"mcp": {"allowed": ["a"]}, "mcpServers": {"a": {"command": "a"}, "broken": {}, "sb": {"command": "switchboard", "args": ["stdio", "--profile=work", "--view", "server:a"]}}}"#;
    machine.write(Client::GeminiCli, entry);
    let now = state();
    let connection = now.connection.unwrap();
    assert_eq!((now.servers, connection.name.as_str()), (2, "sb"));
    assert_eq!(connection.profile(), Some("work"));
    assert_eq!(connection.server(), Some("a"));
    assert!(!connection.is_enabled && !connection.has_place_of(&gateway()));
    assert!(matches!(connection.reach, Reach::Stdio(_)));
    machine.write(Client::GeminiCli, "{}");
    machine.apply(&machine.connect(Client::GeminiCli));
    let connection = state().connection.unwrap();
    assert!(connection.is_enabled && connection.has_place_of(&gateway()));
}

#[test]
fn parts_without_counterpart_are_named() {
    let machine = Machine::new();
    for (entry, gap) in [
        (r#"{"command": "a", "envFile": ".env"}"#, Some("envFile")),
        (r#"{"command": "${file}/a"}"#, Some("file")),
        (
            r#"{"url": "https://a/", "oauth": {"x": 1}}"#,
            Some("authentication"),
        ),
        (r#"{"command": "a", "args": [{}]}"#, Some("args")),
        (r#"{"command": "a", "autoApprove": ["x"]}"#, None),
    ] {
        let found = machine.found("mcp.json", &format!(r#"{{"servers": {{"a": {entry}}}}}"#));
        let found = found.servers[0].gap.as_deref();
        assert_eq!(found.is_some(), gap.is_some(), "{entry}: {found:?}");
        assert!(found.unwrap_or("").contains(gap.unwrap_or("")), "{found:?}");
    }
}
