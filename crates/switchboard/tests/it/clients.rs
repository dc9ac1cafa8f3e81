//! Imports of servers from clients, and the connection of clients to the gateway.

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    os::unix::net::UnixListener,
    thread,
};

use crate::support::{Gateway, Place, json};

const CURSOR: &str = r#"{
  "mcpServers": {
    "files": { "command": "npx", "args": ["-y", "files"], "autoApprove": [] },
    "mine": { "command": "other" }
  }
}
"#;

const OWN: &str =
    "{\n  // mine\n  \"mcpServers\": {\n    \"mine\": { \"command\": \"x\" }\n  }\n}\n";

fn with_cursor() -> Place {
    let place = Place::new();
    place.write("user/.cursor/mcp.json", CURSOR);
    place.write_config(OWN);
    place
}

const NOTES: &str = "\
note: `files` is from DIR/user/.cursor/mcp.json
note: Cursor: `files`: skipped the unsupported key `autoApprove`
note: skipped `mine` from Cursor: a server with this name already exists
";

const DIFF: &str = r#"--- DIR/home/switchboard.json
+++ DIR/home/switchboard.json
@@ -1,6 +1,10 @@
 {
   // mine
   "mcpServers": {
-    "mine": { "command": "x" }
+    "mine": { "command": "x" },
+    "files": {
+      "command": "npx",
+      "args": ["-y", "files"]
+    }
   }
 }
"#;

#[test]
fn import_is_shown_first_and_undone() {
    let place = with_cursor();
    let config = || fs::read_to_string(place.config()).unwrap();
    place.check(&["import", "--dry-run"], 0, DIFF, NOTES);
    let err = format!(
        "{NOTES}error: nothing was changed: cannot ask for confirmation, because standard input is not a terminal\nhint: use --yes to confirm, or --dry-run to preview the changes\n"
    );
    place.check(&["import", "cursor"], 2, DIFF, &err);
    assert_eq!(config(), OWN);

    let done = place.run(&["import", "cursor", "--yes"]);
    assert_eq!((done.code, done.out.as_str()), (Some(0), DIFF), "{done:?}");
    assert!(done.err.contains("\nadded 1 server: files\n"), "{done:?}");
    assert!(
        done.err
            .contains("\na backup of the file is in DIR/home/backups/"),
        "{done:?}"
    );
    assert!(config().contains("\"files\""));
    let done = place.run(&["import", "--yes"]);
    assert_eq!(done.code, Some(0));
    assert!(
        done.err.ends_with("there are no new servers to import\n"),
        "{done:?}"
    );

    place.check(
        &["import", "--undo"],
        0,
        "",
        "restored DIR/home/switchboard.json to its state before the import\n",
    );
    assert_eq!(config(), OWN);
    place.check(
        &["import", "--undo"],
        1,
        "",
        "error: there is no import to undo\n",
    );
}

#[test]
fn undo_keeps_later_changes() {
    let place = with_cursor();
    assert_eq!(place.run(&["import", "--yes"]).code, Some(0));
    assert_eq!(place.run(&["add", "later", "--", "y"]).code, Some(0));
    place.check(
        &["import", "--undo"],
        0,
        "",
        "DIR/home/switchboard.json was changed since the import; removed only the imported servers: files\n",
    );
    let config = fs::read_to_string(place.config()).unwrap();
    assert!(
        config.contains("\"later\"") && !config.contains("\"files\""),
        "{config}"
    );
}

#[test]
fn import_creates_the_file_and_undo_removes_it() {
    let place = Place::new();
    let file = place.write("some.json", CURSOR);
    let done = place.run(&["import", file.to_str().unwrap(), "--yes"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(
        done.out
            .starts_with("--- /dev/null\n+++ DIR/home/switchboard.json\n"),
        "{done:?}"
    );
    assert!(place.config().exists());
    assert_eq!(place.run(&["import", "--undo"]).code, Some(0));
    assert!(!place.config().exists());
}

#[test]
fn clients_and_their_state_are_listed() {
    let place = Place::new();
    assert_eq!(place.run(&["connect", "cursor", "--yes"]).code, Some(0));
    let done = place.run(&["connect"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    let row = |client: &str| {
        let mut lines = done.out.lines();
        let line = lines.find(|line| line.starts_with(client)).unwrap();
        line.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(
        row("cursor "),
        "cursor connected (stdio) 0 ~/.cursor/mcp.json"
    );
    assert_eq!(row("codex "), "codex not found – ~/.codex/config.toml");
}

#[test]
fn failed_imports_are_reported() {
    let place = Place::new();
    let done = place.run(&["import"]);
    assert!(
        done.err.starts_with("no client has servers to import\n"),
        "{done:?}"
    );
    assert!(done.err.contains("\n  ~/.cursor/mcp.json\n"), "{done:?}");
    let done = place.run(&["import", "cursr"]);
    assert_eq!(
        (done.code, done.err.as_str()),
        (
            Some(2),
            "error: there is no client `cursr`\nhint: did you mean `cursor`?\n"
        )
    );
    let done = place.run(&["import", "cursor"]);
    assert_eq!(done.code, Some(1));
    assert!(
        done.err
            .starts_with("error: Cursor has no configuration\nhint: looked for "),
        "{done:?}"
    );
    place.write("user/.cursor/mcp.json", "{ broken");
    let done = place.run(&["import"]);
    assert_eq!(done.code, Some(0));
    assert!(
        done.err
            .starts_with("warning: skipped Cursor: cannot parse DIR/user/.cursor/mcp.json:1:"),
        "{done:?}"
    );
    assert_eq!(place.run(&["import", "cursor"]).code, Some(1));
}

#[test]
fn client_is_connected_and_disconnected() {
    let place = with_cursor();
    let file = place.user().join(".cursor/mcp.json");
    let client = || fs::read_to_string(&file).unwrap();
    let done = place.run(&["connect", "cursor", "--dry-run"]);
    assert_eq!((done.code, done.err.as_str()), (Some(0), ""), "{done:?}");
    assert!(
        done.out.starts_with("--- DIR/user/.cursor/mcp.json\n"),
        "{done:?}"
    );
    assert!(done.out.contains("+    \"switchboard\": {\n"), "{done:?}");
    assert_eq!(place.run(&["connect", "cursor"]).code, Some(2));
    assert_eq!(client(), CURSOR);

    let done = place.run(&["connect", "cursor", "--yes"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(
        done.err.contains("restart Cursor to use the gateway"),
        "{done:?}"
    );
    let entry: serde_json::Value = serde_json::from_str(&client()).unwrap();
    let entry = &entry["mcpServers"]["switchboard"];
    assert_eq!(entry["command"], env!("CARGO_BIN_EXE_switchboard"));
    let home = place.home();
    assert_eq!(entry["args"], serde_json::json!(["stdio", "--home", home]));
    let done = place.run(&["connect", "cursor", "--yes"]);
    assert_eq!(done.code, Some(0));
    assert!(
        done.err.starts_with("Cursor already has the gateway"),
        "{done:?}"
    );

    let done = place.run(&["connect", "cursor", "--undo"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert_eq!(client(), CURSOR);
    let done = place.run(&["connect", "cursor", "--undo"]);
    assert_eq!(done.code, Some(1));
    assert!(
        done.err.starts_with("error: there is nothing to undo: "),
        "{done:?}"
    );
}

#[test]
fn client_is_connected_under_a_profile() {
    let place = with_cursor();
    place.write_config("{ \"profiles\": { \"work\": { \"servers\": [] } } }\n");
    let unknown = "error: there is no profile `wrk`\nhint: did you mean `work`?\n";
    let connect = |profile| ["connect", "cursor", "--yes", "--profile", profile];
    place.check(&connect("wrk"), 1, "", unknown);
    assert_eq!(place.run(&connect("work")).code, Some(0));
    let file = place.user().join(".cursor/mcp.json");
    let entry: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    let args = &entry["mcpServers"]["switchboard"]["args"];
    let home = place.home();
    let expected = serde_json::json!(["stdio", "--home", home, "--profile", "work"]);
    assert_eq!(*args, expected);
    let again = place.run(&["connect", "cursor", "--yes"]);
    assert!(
        again.err.contains("the profile `work` is kept"),
        "{again:?}"
    );
    assert!(again.err.contains("already has the gateway"), "{again:?}");
    // As a user may have written it.
    let by_hand = CURSOR.replace("\"mine\": { \"command\": \"other\" }", "\"switchboard\": { \"command\": \"switchboard\", \"args\": [\"stdio\", \"--profile=work\"] }");
    place.write("user/.cursor/mcp.json", &by_hand);
    let again = place.run(&["connect", "cursor", "--yes"]);
    assert!(
        again.err.contains("the profile `work` is kept"),
        "{again:?}"
    );
    let listed = place.run(&["connect"]).out;
    let row = listed.lines().find(|line| line.starts_with("cursor"));
    assert!(
        row.is_some_and(|row| row.contains(" connected ")),
        "{listed}"
    );
}

#[test]
fn unknown_profile_is_explained_by_stdio() {
    let place = Place::without_memory();
    let unknown = "error: there is no profile `none`\nhint: `profiles` in switchboard.json lists the profiles\n";
    let stdio = ["stdio", "--log-level", "off", "--profile", "none"];
    place.check(&stdio, 1, "", unknown);
    let _gateway = Gateway::start(&place, &[]);
    place.check(&stdio, 1, "", unknown);
}

#[test]
fn undo_removes_a_gateway_added_by_hand() {
    let place = Place::new();
    let text = "{\n  \"mcpServers\": {\n    \"switchboard\": { \"command\": \"switchboard\", \"args\": [\"stdio\"] }\n  }\n}\n";
    let file = place.write("user/.cursor/mcp.json", text);
    let done = place.run(&["connect", "cursor", "--undo", "--yes"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.out.contains("\n-    \"switchboard\""), "{done:?}");
    assert!(!fs::read_to_string(file).unwrap().contains("switchboard"));
}

#[test]
fn variables_that_an_added_server_misses_are_named() {
    let place = Place::new();
    place.write("user/run.sh", "");
    let add = |args: &[&str]| {
        let output = place
            .command(args)
            .env("KUBECONFIG", "/k")
            .output()
            .unwrap();
        String::from_utf8(output.stderr).unwrap()
    };
    let said = add(&["add", "a", "--", "./bin/kubernetes-mcp-server", "run.sh"]);
    assert!(said.contains("\"inheritEnv\": [\"KUBECONFIG\"]"), "{said}");
    assert!(said.contains("`run.sh` is a relative path"), "{said}");
    let given = [
        "add",
        "b",
        "--inherit-env",
        "KUBECONFIG",
        "--cwd",
        "d",
        "--",
        "./kubernetes",
    ];
    let said = add(&given);
    assert!(!said.contains("inheritEnv"), "{said}");
    let config: serde_json::Value =
        serde_json::from_slice(&fs::read(place.config()).unwrap()).unwrap();
    let servers = &config["mcpServers"];
    let user = place.user();
    let user = user.to_str().unwrap();
    assert_eq!(
        servers["a"]["command"],
        format!("{user}/bin/kubernetes-mcp-server")
    );
    assert_eq!(servers["b"]["command"], "./kubernetes");
    assert_eq!(servers["b"]["cwd"], format!("{user}/d"));
    assert_eq!(
        servers["b"]["inheritEnv"],
        serde_json::json!(["KUBECONFIG"])
    );

    let server = r#"{"mcpServers": {"k8s": {"command": "bin/kubernetes"}}}"#;
    place.write("user/.cursor/mcp.json", server);
    let said = add(&["import", "cursor", "--dry-run"]);
    assert!(
        said.contains("Cursor: `k8s`: KUBECONFIG is set here"),
        "{said}"
    );
    assert!(
        said.contains("`bin/kubernetes` is resolved from the directory of switchboard.json"),
        "{said}"
    );
}

#[test]
fn connect_shows_no_neighbouring_key() {
    let place = Place::new();
    let key = "precious-key";
    let json = format!(
        "{{\n  \"mcpServers\": {{\n    \"a\": {{\n      \"command\": \"x\",\n      \"env\": {{\"API_KEY\": \"{key}\"}}\n    }}\n  }}\n}}\n"
    );
    place.write("user/.cursor/mcp.json", &json);
    let toml = format!("[mcp_servers.a]\ncommand = \"x\"\nenv = {{ API_KEY = \"{key}\" }}\n");
    place.write("user/.codex/config.toml", &toml);
    for client in ["cursor", "codex"] {
        for option in ["--dry-run", "--yes"] {
            let done = place.run(&["connect", client, option]);
            assert_eq!(done.code, Some(0), "{done:?}");
            assert!(done.out.contains("\"(12 characters)\""), "{done:?}");
            assert!(!done.out.contains(key), "{done:?}");
        }
    }
    let file = fs::read_to_string(place.user().join(".cursor/mcp.json")).unwrap();
    assert!(file.contains(key) && file.contains("switchboard"), "{file}");
}

#[test]
fn client_is_connected_over_http() {
    let place = with_cursor();
    place.write_config("{ \"profiles\": { \"work\": { \"servers\": [] } } }\n");
    let file = place.user().join(".cursor/mcp.json");
    let client = || fs::read_to_string(&file).unwrap();
    let names = || {
        let tokens = json(&place, &["token", "list", "--json"]);
        let tokens = tokens["tokens"].as_array().unwrap().clone();
        let names = tokens.iter().map(|token| token["name"].clone());
        names.collect::<Vec<_>>()
    };

    let done = place.run(&["connect", "cursor", "--http", "--dry-run"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.out.contains("http://127.0.0.1:7777/mcp"), "{done:?}");
    assert!(!done.out.contains("swb_"), "{done:?}");
    assert_eq!((client().as_str(), names().len()), (CURSOR, 0));

    let connect = ["connect", "cursor", "--http", "--profile", "work", "--yes"];
    let done = place.run(&connect);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(!done.out.contains("swb_"), "{done:?}");
    assert!(
        done.err.contains("created the token `cursor`\n"),
        "{done:?}"
    );
    let entry: serde_json::Value = serde_json::from_str(&client()).unwrap();
    let entry = &entry["mcpServers"]["switchboard"];
    assert_eq!(entry["url"], "http://127.0.0.1:7777/mcp");
    let bearer = entry["headers"]["Authorization"].as_str().unwrap();
    assert!(bearer.starts_with("Bearer swb_"), "{entry}");
    let tokens = json(&place, &["token", "list", "--json"]);
    let token = &tokens["tokens"][0];
    assert_eq!(
        (&token["name"], &token["profile"], &token["rights"]),
        (&"cursor".into(), &"work".into(), &["call"][..].into())
    );

    let done = place.run(&connect);
    assert!(
        done.err.starts_with("Cursor already has the gateway"),
        "{done:?}"
    );
    let listed = place.run(&["connect"]).out;
    assert!(listed.contains("cursor          connected"), "{listed}");
    let pipe = "error: Cursor is connected over HTTP already\nhint: run `switchboard connect cursor --undo` first\n";
    place.check(&["connect", "cursor", "--yes"], 1, "", pipe);
    // The gateway does not import itself.
    place.run(&["import", "cursor", "--yes"]);
    let config = fs::read_to_string(place.config()).unwrap();
    assert!(!config.contains("7777"), "{config}");

    let done = place.run(&["connect", "cursor", "--undo"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(
        done.err.contains("revoked the token `cursor`\n"),
        "{done:?}"
    );
    assert_eq!((client().as_str(), names().len()), (CURSOR, 0));
    let desktop = "error: Claude Desktop has no servers over HTTP in its configuration\nhint: connect it without --http\n";
    place.check(
        &["connect", "claude-desktop", "--http", "--yes"],
        2,
        "",
        desktop,
    );
}

#[test]
fn revoked_token_of_a_client_is_reported() {
    let place = with_cursor();
    let connect = ["connect", "cursor", "--http", "--yes"];
    assert_eq!(place.run(&connect).code, Some(0));
    let again = "hint: run `switchboard connect cursor --undo`, then this command again\n";
    place.write_config("{ \"profiles\": { \"work\": { \"servers\": [] } } }\n");
    let other = format!("error: the token of Cursor is held to no profile\n{again}");
    let under = ["connect", "cursor", "--http", "--yes", "--profile", "work"];
    place.check(&under, 1, "", &other);
    assert_eq!(place.run(&["token", "revoke", "cursor"]).code, Some(0));
    let gone = format!(
        "error: the token of Cursor was revoked or rotated, or belongs to another gateway\n{again}"
    );
    place.check(&connect, 1, "", &gone);
    assert_eq!(place.run(&["connect", "cursor", "--undo"]).code, Some(0));
    assert_eq!(place.run(&connect).code, Some(0));
}

#[test]
fn changed_connection_keeps_its_token() {
    let place = with_cursor();
    let connect = ["connect", "cursor", "--http", "--yes"];
    assert_eq!(place.run(&connect).code, Some(0));
    place.write_config(
        "{ \"listen\": \"127.0.0.1:7778\", \"profiles\": { \"work\": { \"servers\": [] } } }\n",
    );
    // The address differs, but the token is not held to the profile.
    let other = "error: the token of Cursor is held to no profile\nhint: run `switchboard connect cursor --undo`, then this command again\n";
    let under = ["connect", "cursor", "--http", "--yes", "--profile", "work"];
    place.check(&under, 1, "", other);
    assert_eq!(place.run(&connect).code, Some(0));
    let file = place.user().join(".cursor/mcp.json");
    let text = || fs::read_to_string(&file).unwrap();
    assert!(text().contains("127.0.0.1:7778"), "{}", text());
    let undo = ["connect", "cursor", "--undo"];
    let done = place.run(&undo);
    assert!(text().contains("127.0.0.1:7777"), "{}", text());
    assert!(
        done.err.contains("Cursor still has the gateway"),
        "{done:?}"
    );
    assert!(!done.err.contains("revoked"), "{done:?}");
    let done = place.run(&undo);
    assert_eq!(text(), CURSOR);
    assert!(
        done.err.contains("revoked the token `cursor`\n"),
        "{done:?}"
    );
}

#[test]
fn token_goes_into_the_own_entry_alone() {
    let place = with_cursor();
    let other = "{\"mcpServers\":{\"other\":{\"url\":\"https://x.example/mcp\",\"headers\":{\"X\":\"swb_new-token-0\"}}}}";
    place.write("user/.cursor/mcp.json", other);
    let name = ["connect", "cursor", "--http", "--yes", "--name", "gw"];
    assert_eq!(place.run(&name).code, Some(0));
    let file = place.user().join(".cursor/mcp.json");
    let text: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(
        text["mcpServers"]["other"]["headers"]["X"],
        "swb_new-token-0"
    );
    // The manifest knows the token, although the name differs.
    let done = place.run(&["connect", "cursor", "--undo"]);
    assert!(done.err.contains("revoked the token"), "{done:?}");
    assert_eq!(fs::read_to_string(&file).unwrap(), other);
}

/// The gateway has created the token, and the file of tokens cannot be read then.
#[test]
fn failed_connection_revokes_its_token() {
    let place = with_cursor();
    let tokens = place.home().join("tokens.json");
    let socket = place.home().join("run/switchboard.sock");
    fs::create_dir_all(socket.parent().unwrap()).unwrap();
    let listener = UnixListener::bind(socket).unwrap();
    let gateway = thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = BufReader::new(stream.unwrap());
            let mut line = String::new();
            stream.read_line(&mut line).unwrap();
            let body = if line.starts_with("GET /api/v1/status ") {
                "{\"state\": \"running\"}"
            } else if line.starts_with("POST /api/v1/tokens ") {
                fs::write(&tokens, "damaged").unwrap();
                "{\"token\": \"swb_1_x\", \"about\": {\"name\": \"cursor\"}}"
            } else {
                ""
            };
            let answer = format!("HTTP/1.1 200 OK\r\n\r\n{body}");
            let _ = stream.get_mut().write_all(answer.as_bytes());
            if line.starts_with("DELETE ") {
                return line;
            }
        }
        unreachable!("the listener never ends")
    });
    let done = place.run(&["connect", "cursor", "--http", "--yes"]);
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(done.err.contains("revoked the token `cursor`"), "{done:?}");
    let revoked = gateway.join().unwrap();
    assert_eq!(revoked, "DELETE /api/v1/tokens/cursor HTTP/1.1\r\n");
}
