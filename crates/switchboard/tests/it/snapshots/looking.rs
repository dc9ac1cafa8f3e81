//! Commands that show the state of things, without a gateway, with an empty one, and with servers in every
//! state.

use serde_json::json;
use switchboard_test_support::until;

use super::{
    golden::Book,
    rich::{LONG, LONG_TOOL, Rich, offer},
    stage::Stage,
};
use crate::instances;

pub(super) const FILES: &[&str] = &[
    "activity", "call", "clients", "console", "describe", "doctor", "list", "logs", "search",
    "status", "tools",
];

super::at_both_widths!();

/// The log of a server. The last output of a real server depends on how fast it exits.
const LOG: &str = "\
2026-01-01T09:30:00Z [switchboard] started as process 4711
2026-01-01T09:30:00Z serving /data, which holds the exports of the data warehouse and the results of all quarters
2026-01-01T09:31:07Z cannot read /data/exports: Permission denied
2026-01-01T09:40:00Z [switchboard] exited (exit status: 1)
";

const SERVERS: &str = r#"{
  "listen": "127.0.0.1:0",
  "mcpServers": {
    "files": { "command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "/srv/notes"] },
    "github": { "command": "/opt/homebrew/Cellar/github-mcp-server/0.20.1/bin/github-mcp-server", "args": ["stdio"] },
    "issues": { "url": "https://mcp.example.com/v1/projects/issues/mcp" },
    "time": { "image": "mcp/time", "enabled": false }
  }
}
"#;

fn record(book: &mut Book) {
    alone(book);
    empty(book);
    rich(book);
    divided(book);
    overridden(book);
}

/// Clients have instances of their own.
fn divided(book: &mut Book) {
    book.scene("instances");
    let stage = Stage::new(book.columns);
    stage.write_config(&instances::config(&stage.place));
    let _gateway = stage.gateway();
    let _clients = instances::clients(&stage.place);
    book.run("list", &stage, &[&["list"]]);
    book.run("status", &stage, &[&["status"]]);
    book.run("logs", &stage, &[&["logs", "own/x"], &["logs", "own/99"]]);
}

fn alone(book: &mut Book) {
    book.scene("no gateway");
    let stage = Stage::new(book.columns);
    book.run("status", &stage, &[&["status"], &["status", "extra"]]);
    book.run("list", &stage, &[&["list"], &["list", "extra"]]);
    book.run("tools", &stage, &[&["tools"], &["tools", "a", "b"]]);
    book.run(
        "describe",
        &stage,
        &[&["describe", "files:read_file"], &["describe"]],
    );
    book.run(
        "search",
        &stage,
        &[
            &["search", "weather"],
            &["search"],
            &["search", "x", "--limit", "many"],
        ],
    );
    book.run("call", &stage, &[&["call", "files:read_file"], &["call"]]);
    book.run("clients", &stage, &[&["clients"], &["clients", "extra"]]);
    book.run(
        "activity",
        &stage,
        &[&["activity"], &["activity", "-n", "0"]],
    );
    book.run("logs", &stage, &[&["logs", "files"], &["logs"]]);
    stage.place.write("home/logs/files.log", LOG);
    book.run(
        "logs",
        &stage,
        &[&["logs", "files"], &["logs", "files", "-n", "1"]],
    );
    book.run("console", &stage, &[&["console"], &["console", "extra"]]);
    stage.write_config(r#"{"listen": "127.0.0.1:0"}"#);
    book.run("doctor", &stage, &[&["doctor"], &["doctor", "extra"]]);

    book.scene("no gateway, and servers in the configuration");
    stage.write_config(SERVERS);
    book.run("list", &stage, &[&["list"]]);

    book.scene("no gateway, and a configuration with a mistake");
    stage.write_config("{\n  \"mcpServers\": {\n    \"files\": { \"comand\": \"npx\" }\n  }\n}\n");
    book.run("list", &stage, &[&["list"]]);
    book.run("doctor", &stage, &[&["doctor"]]);

    book.scene("no gateway, and a server with a misspelt reference");
    stage.write_config(&SERVERS.replace("/srv/notes", "${projct}"));
    book.run("list", &stage, &[&["list"]]);
}

fn empty(book: &mut Book) {
    book.scene("a gateway without servers");
    let stage = Stage::new(book.columns);
    let config = r#"{"listen": "127.0.0.1:0", "memory": {"enabled": false}}"#;
    stage.write_config(config);
    let _gateway = stage.gateway();
    book.run("status", &stage, &[&["status"]]);
    book.run("list", &stage, &[&["list"]]);
    book.run("tools", &stage, &[&["tools"]]);
    book.run("describe", &stage, &[&["describe", "files:read_file"]]);
    book.run("search", &stage, &[&["search", "weather"]]);
    book.run("call", &stage, &[&["call", "files:read_file"]]);
    book.run("clients", &stage, &[&["clients"]]);
    book.run("activity", &stage, &[&["activity"]]);
    book.run("logs", &stage, &[&["logs", "files"]]);
    book.run("doctor", &stage, &[&["doctor"]]);
}

fn rich(book: &mut Book) {
    book.scene("servers in every state");
    let rich = Rich::new(Stage::new(book.columns));
    let stage = &rich.stage;
    book.run("status", stage, &[&["status"]]);
    book.run("list", stage, &[&["list"]]);
    book.run(
        "tools",
        stage,
        &[
            &["tools"],
            &["tools", "notes"],
            &["tools", "missing"],
            &["tools", "issues"],
            &["tools", LONG],
            &["tools", "fils"],
        ],
    );
    book.run(
        "describe",
        stage,
        &[
            &["describe", "files:read_file"],
            &["describe", "notes:now"],
            &["describe", LONG_TOOL],
            &["describe", "sky:forecast"],
            &["describe", "missing:anything"],
            &["describe", "files:raed_file"],
            &["describe", "files"],
        ],
    );
    book.run(
        "search",
        stage,
        &[
            &["search", "read a text file"],
            &[
                "search",
                "delete",
                "a",
                "directory",
                "--limit",
                "1",
                "--explain",
            ],
            &["search", "zzyzx"],
            &["search", "file", "--server", "nothing"],
            &["search", "--forget"],
        ],
    );
    book.run(
        "call",
        stage,
        &[
            &["call", "files:read_file", "path=notes.txt"],
            &["call", "files:read_file", r#"{"path": "notes.txt"}"#],
            &["call", "files:read_file"],
            &[
                "call",
                "files:read_file",
                "path=a",
                "first=none",
                "encoding=ascii",
            ],
            &["call", "files:read_file", "{nonsense"],
            &["call", "files:write_file", "path=a", "text=b"],
            &["call", "files:raed_file"],
            &["call", "sky:forecast", "city=Berlin"],
            &["call", "missing:anything"],
            &["call", "issues:anything"],
            &["call", "nothing:anything"],
            &["call", "files"],
        ],
    );
    look_back(book, stage);
}

/// A tool as its owner has changed it, and overrides of missing tools.
fn overridden(book: &mut Book) {
    book.scene("a server with overrides");
    let stage = Stage::new(book.columns);
    offer(&stage, false);
    let [command, args @ ..] = stage.place.shifty("files.json");
    let read_file = json!({
        "name": "read_note",
        "description": "Reads one of your notes.\nFails for drawings.",
        "annotations": { "readOnlyHint": true },
        "arguments": { "encoding": { "value": "utf-8" }, "first": { "hidden": true } },
    });
    let missing = json!({ "hidden": true });
    let overrides = json!({ "read_file": read_file, "raed_file": missing, "gone": missing });
    let server = json!({
        "command": command, "args": args, "start": "eager", "overrides": overrides,
    });
    let config = json!({
        "listen": "127.0.0.1:0", "memory": { "enabled": false },
        "mcpServers": { "files": server },
    });
    stage.write_config(&config.to_string());
    let _gateway = stage.gateway();
    until("the tools are known", || {
        stage.json(&["list", "--json"])["servers"][0]["tools"] == 3
    });
    book.run("list", &stage, &[&["list"]]);
    book.run("tools", &stage, &[&["tools", "files"]]);
    book.run(
        "describe",
        &stage,
        &[
            &["describe", "files:read_note"],
            &["describe", "files:read_file"],
        ],
    );
    book.run("doctor", &stage, &[&["doctor"]]);
}

fn look_back(book: &mut Book, stage: &Stage) {
    book.run("clients", stage, &[&["clients"]]);
    book.run(
        "activity",
        stage,
        &[
            &["activity"],
            &["activity", "files:read_file", "-n", "1"],
            &["activity", "--failed"],
            &["activity", "nothing"],
        ],
    );
    book.run(
        "logs",
        stage,
        &[
            &["logs", "files", "-n", "1"],
            &["logs", "missing"],
            &["logs", "nothing"],
            &["logs", "files", "-n", "few"],
        ],
    );
    book.run(
        "console",
        stage,
        &[
            &["console"],
            &["console", "--open"],
            &["console", "--sessions"],
            &["console", "--sign-out-all"],
        ],
    );
    book.run("doctor", stage, &[&["doctor"]]);
}
