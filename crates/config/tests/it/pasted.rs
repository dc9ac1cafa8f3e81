//! Configurations of other programs, pasted unchanged.

use std::time::Duration;

use switchboard_config::{RemoteKind, Transport};

use super::{config, server};

fn kind(entry: &str) -> RemoteKind {
    match server(entry).transport {
        Transport::Remote(remote) => remote.kind,
        other => panic!("{other:?}"),
    }
}

#[test]
fn documented_example_is_parsed() {
    let config = config(
        r#"{
  "$schema": "https://example.com/schema.json",
  "listen": "127.0.0.1:7777",
  "view": "auto",                            // what /mcp and stdio show
  "mcpServers": {
    "files":  { "command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "/data"], "env": {"A": "${env:A}"}, "cwd": "/data" },
    "remote": { "url": "https://example.com/mcp", "headers": {"Authorization": "Bearer ${secret:remote}"} },
    "old":    { "url": "http://127.0.0.1:9/sse", "type": "sse" },
    "boxed":  { "image": "mcp/time", "args": [] }
    // each may have: enabled
  },
  "approvals": { "shortTimeoutMs": 30000, "longTimeoutMs": 270000, "route": "auto", "rules": [] },
  "sampling":  { "provider": { "kind": "openai", "baseUrl": "…", "model": "…", "apiKey": "${env:KEY}" }, "review": false },
  "memory":    { "enabled": true },
  "search":    { "embeddings": "auto" },
  "auth":      { "mcp": "token" },           // "token" (default), "none" (loopback only)
  "shutdown":  { "totalTimeoutMs": 45000 }
}"#,
    );
    let names: Vec<_> = config.servers.keys().collect();
    assert_eq!(names, ["boxed", "files", "old", "remote"]);
    let Transport::Command(line) = &config.servers["files"].transport else {
        panic!("not a command")
    };
    assert_eq!(line.command, "npx");
    assert_eq!(line.args.len(), 3);
    assert_eq!(line.env["A"], "${env:A}");
    assert_eq!(line.cwd.as_deref(), Some("/data"));
    let Transport::Remote(remote) = &config.servers["remote"].transport else {
        panic!("not an address")
    };
    assert_eq!(remote.headers["Authorization"], "Bearer ${secret:remote}");
    assert!(
        matches!(&config.servers["boxed"].transport, Transport::Container(boxed) if boxed.image == "mcp/time")
    );
}

#[test]
fn all_spellings_of_the_transport_are_parsed() {
    for entry in [
        r#"{"url": "http://a/mcp"}"#,
        r#"{"url": "http://a/mcp", "type": "http"}"#,
        r#"{"url": "http://a/mcp", "type": "streamable-http"}"#,
        r#"{"url": "http://a/mcp", "type": "streamableHttp", "disabled": false}"#,
        r#"{"url": "http://a/mcp", "transport": "streamable_http"}"#,
        r#"{"url": "http://a/mcp", "type": "remote", "transport": "http"}"#,
        r#"{"serverUrl": "http://a/mcp"}"#,
        r#"{"httpUrl": "http://a/mcp"}"#,
        r#"{"url": "${env:ADDRESS}"}"#,
        r#"{"url": "HTTPS://user@[::1]:80?x"}"#,
    ] {
        assert_eq!(kind(entry), RemoteKind::Auto, "{entry}");
    }
    assert_eq!(
        kind(r#"{"url": "http://a", "type": "sse"}"#),
        RemoteKind::Sse
    );
    assert_eq!(
        kind(r#"{"url": "http://a", "transport": "sse"}"#),
        RemoteKind::Sse
    );
    assert_eq!(
        kind(r#"{"url": "http://a", "type": "http-only"}"#),
        RemoteKind::Http
    );
    let plain = server(r#"{"command": "npx"}"#);
    assert_eq!(server(r#"{"type": "stdio", "command": "npx"}"#), plain);
    assert_eq!(
        server(r#"{"type": "local", "command": "npx", "transport": "stdio"}"#),
        plain
    );
}

#[test]
fn foreign_and_empty_keys_change_nothing() {
    let plain = server(r#"{"command": "npx"}"#);
    assert_eq!(
        server(
            r#"{"command": "npx", "description": "d", "name": "n", "autoApprove": ["a"], "alwaysAllow": [],
                "trust": true, "icon": "i", "gallery": true, "version": "1",
                "headers": {}, "env": {}, "args": [], "cwd": ""}"#
        ),
        plain
    );
    let remote = server(r#"{"url": "http://a"}"#);
    assert_eq!(
        server(r#"{"url": "http://a", "env": {}, "args": [], "isolation": {}}"#),
        remote
    );
}

#[test]
fn disabled_is_the_opposite_of_enabled() {
    assert!(!server(r#"{"command": "a", "disabled": true}"#).enabled);
    assert!(server(r#"{"command": "a", "disabled": false}"#).enabled);
    assert!(!server(r#"{"command": "a", "enabled": false, "disabled": true}"#).enabled);
    assert!(!server(r#"{"command": "a", "enabled": false}"#).enabled);
    assert!(server(r#"{"command": "a"}"#).enabled);
}

#[test]
fn unit_of_timeout_depends_on_its_size() {
    let timeout = |text: &str| server(&format!(r#"{{"command": "a", {text}}}"#)).request_timeout;
    assert_eq!(timeout(r#""timeout": 60"#), Duration::from_mins(1));
    assert_eq!(timeout(r#""timeout": 999"#), Duration::from_secs(999));
    assert_eq!(timeout(r#""timeout": 3601"#), Duration::from_millis(3601));
    assert_eq!(timeout(r#""timeout": 600000"#), Duration::from_mins(10));
    assert_eq!(
        timeout(r#""timeout": 2000, "requestTimeoutMs": 5"#),
        Duration::from_millis(5)
    );
}

#[test]
fn lists_of_tools() {
    let tools = |text: &str| server(&format!(r#"{{"command": "a", {text}}}"#)).tools;
    assert!(tools(r#""tools": ["*"]"#).permits("x", None));
    assert!(!tools(r#""tools": ["a*"]"#).permits("x", None));
    assert!(!tools(r#""includeTools": ["a"]"#).permits("b", None));
    let both = tools(r#""excludeTools": ["a"], "disabledTools": ["b"], "tools": {"deny": ["c"]}"#);
    assert!(both.permits("d", None));
    for hidden in ["a", "b", "c"] {
        assert!(!both.permits(hidden, None), "{hidden}");
    }
}
