//! Secrets in every place of the configuration, servers that fail with them in every way, and a search of
//! everything that the gateway wrote or responded.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpListener},
    os::unix::fs::PermissionsExt as _,
    path::Path,
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use switchboard_test_support::{Home, PATIENCE, Serve, until};

/// The names of the secrets: each value has characters that every encoding writes differently.
const NAMES: [&str; 16] = [
    "path", "query", "user", "header", "env", "args", "command", "cwd", "mount", "answer", "model",
    "hook", "hookurl", "stdout", "host", "quote",
];

/// A key as a literal in the configuration, recognized by the name of its variable.
const LITERAL: &str = "lit3ral-of-the-file";

fn secret(name: &str) -> String {
    if name == "quote" {
        return "quote/K3y+Zx59wQ-and-more".to_owned();
    }
    format!("{name}-k3y-Zx{}9wQ", name.len())
}

/// A server that puts its secrets into its errors.
const TALKER: &str = r#"
import json, os, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    method, params = asked["method"], asked.get("params") or {}
    answer = {"jsonrpc": "2.0", "id": asked["id"]}
    if method == "initialize":
        answer["result"] = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                            "serverInfo": {"name": "talker", "version": "1"}}
    elif method == "tools/list":
        answer["result"] = {"tools": [{"name": "say", "inputSchema": {"type": "object"}},
                                      {"name": "ask", "inputSchema": {"type": "object"}},
                                      {"name": "die", "inputSchema": {"type": "object"}}]}
    elif params.get("name") == "ask":
        text = {"type": "text", "text": "how are you?"}
        print(json.dumps({"jsonrpc": "2.0", "id": "model", "method": "sampling/createMessage",
                          "params": {"maxTokens": 10, "messages": [{"role": "user", "content": text}]}}), flush=True)
        while json.loads(sys.stdin.readline()).get("id") != "model":
            pass
        answer["result"] = {"content": [text]}
    elif params.get("name") == "die":
        print("dying with", os.environ["KEY"], file=sys.stderr, flush=True)
        sys.exit(3)
    else:
        answer["error"] = {"code": -32000, "message": "bad key " + os.environ["KEY"]}
    print(json.dumps(answer), flush=True)
"#;

/// A server that prints its key as Python encodes it, before it crashes.
const QUOTER: &str = "import os, sys, urllib.parse; key = os.environ['KEY']; \
    print('quoted', urllib.parse.quote(key), key.encode().hex(), file=sys.stderr); sys.exit(1)";

/// A server over HTTP that answers every request with an error that repeats the request, and the requests it
/// received.
fn parrot() -> (SocketAddr, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let all = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&all);
    thread::spawn(move || {
        for stream in listener.incoming().take(500) {
            let Ok(mut stream) = stream else { return };
            let _ = stream.set_read_timeout(Some(Duration::from_secs(2)));
            let mut heard = vec![0; 8192];
            let read = stream.read(&mut heard).unwrap_or(0);
            let text = String::from_utf8_lossy(&heard[..read]).into_owned();
            let text = text.replace("HTTP/1.1", "");
            let key = text.lines().find(|line| line.starts_with("authorization"));
            // Of a model's error, only the message in JSON is repeated.
            let body = match key {
                Some(key) if text.starts_with("POST /v1/") => {
                    json!({ "error": { "message": key } }).to_string()
                }
                _ => text.clone(),
            };
            kept.lock().unwrap().push(text);
            let body = &body[..body.floor_char_boundary(150)];
            let _ = write!(
                stream,
                "HTTP/1.1 500 No\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                body.len()
            );
        }
    });
    (address, all)
}

fn home() -> (Home, Arc<Mutex<Vec<String>>>) {
    let home = Home::new(json!({}));
    fs::create_dir(home.path("secrets")).unwrap();
    for name in NAMES {
        let file = home.path(&format!("secrets/{name}"));
        fs::write(&file, secret(name)).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    }
    fs::write(home.path("talker.py"), TALKER).unwrap();
    let engine = home.path("engine");
    fs::write(&engine, "#!/bin/sh\necho \"cannot run $*\" >&2\nexit 1\n").unwrap();
    fs::set_permissions(&engine, fs::Permissions::from_mode(0o755)).unwrap();
    let (parrot, heard) = parrot();
    let crash = |text: &str| json!(["-c", format!("echo \"bad key {text}\" >&2; exit 1"), "x"]);
    let mut with_args = crash("$1");
    with_args
        .as_array_mut()
        .unwrap()
        .push("${secret:args}".into());
    home.set_config(json!({
        "mcpServers": {
            "path": { "url": format!("http://{parrot}/s/${{secret:path}}/mcp") },
            "query": { "url": format!("http://{parrot}/mcp?key=${{secret:query}}") },
            "user": { "url": format!("http://ann:${{secret:user}}@{parrot}/mcp") },
            "gone": { "url": "http://127.0.0.1:9/s/${secret:path}/mcp", "type": "sse" },
            "header": { "url": format!("http://{parrot}/mcp"),
                        "headers": { "Authorization": "Bearer ${secret:header}" } },
            "env": { "command": "/bin/sh", "args": crash("$KEY"), "env": { "KEY": "${secret:env}" } },
            // An excerpt of standard output has 60 bytes and ends shortly before the key does.
            "stdout": { "command": "/bin/sh", "args": ["-c", "printf 'hello%040d%s\\n' 0 \"$KEY\"; exit 1"],
                        "env": { "KEY": "${secret:stdout}" } },
            "host": { "url": format!("http://${{secret:host}}.localhost:{}/mcp", parrot.port()) },
            "quote": { "command": "python3", "args": ["-S", "-c", QUOTER], "env": { "KEY": "${secret:quote}" } },
            "literal": { "command": "/bin/sh", "args": crash("$API_KEY"), "env": { "API_KEY": LITERAL } },
            "args": { "command": "/bin/sh", "args": with_args },
            "command": { "command": "/nowhere/${secret:command}/server" },
            "cwd": { "command": "/bin/sh", "cwd": "/nowhere/${secret:cwd}" },
            "container": { "image": "x", "env": { "KEY": "${secret:env}" }, "args": ["${secret:args}"],
                           "isolation": { "engine": [engine], "mounts": ["/nowhere/${secret:mount}:/in"] } },
            "talker": { "command": "python3", "args": ["-S", home.text("talker.py")],
                        "env": { "KEY": "${secret:answer}" } },
        },
        "sampling": { "provider": { "kind": "openai", "model": "m", "apiKey": "${secret:model}",
                                    "baseUrl": format!("http://{parrot}/v1") } },
        "approvals": { "webhook": { "url": format!("http://{parrot}/${{secret:hookurl}}"),
                                    "secret": "${secret:hook}",
                                    "on": ["created", "changed", "decided", "delivered", "withdrawn"] },
                       "notify": "off", "rules": ["allow sampling talker"] },
    }));
    (home, heard)
}

/// Every encoding of every secret. Almost all of a secret is as bad as all of it.
fn needles() -> Vec<(String, String)> {
    let mut needles = Vec::new();
    let all = NAMES.iter().map(|name| ((*name).to_owned(), secret(name)));
    for (name, value) in all.chain([("literal".to_owned(), LITERAL.to_owned())]) {
        let encoded = STANDARD.encode(&value);
        let percent = value
            .bytes()
            .fold(String::new(), |all, byte| format!("{all}%{byte:02X}"));
        needles.push((name.clone(), encoded.trim_end_matches('=').to_owned()));
        needles.push((name.clone(), percent));
        let most = &value[..value.len() - 3];
        let hex = most
            .bytes()
            .fold(String::new(), |all, byte| format!("{all}{byte:02x}"));
        needles.push((name.clone(), hex));
        needles.push((name.clone(), most.to_lowercase()));
        needles.push((name.clone(), most.replace('+', "%2B")));
        needles.push((name, most.to_owned()));
    }
    needles
}

fn search(place: &str, text: &[u8], hits: &mut Vec<String>) {
    for (name, needle) in needles() {
        if let Some(at) = memchr::memmem::find(text, needle.as_bytes()) {
            let from = at.saturating_sub(60);
            let around = String::from_utf8_lossy(&text[from..at + needle.len()]).into_owned();
            hits.push(format!("{place}: {name}: …{around}"));
        }
    }
}

fn search_files(folder: &Path, hits: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if path.is_dir() {
            if name != "secrets" {
                search_files(&path, hits);
            }
        } else if name != "switchboard.json" && path.is_file() {
            let bytes = fs::read(&path).unwrap_or_default();
            search(&format!("file {name}"), &bytes, hits);
        }
    }
}

/// Makes all servers fail, and searches the failures as agents and as people see them.
fn fail_all(serve: &Serve<'_>, hits: &mut Vec<String>) {
    let mut client = serve.client();
    for name in [
        "path",
        "env",
        "args",
        "command",
        "cwd",
        "container",
        "literal",
        "stdout",
    ] {
        let outcome = client.call(&format!("{name}__any"), json!({}));
        search(
            &format!("call {name}"),
            format!("{outcome:?}").as_bytes(),
            hits,
        );
    }
    // The error is the server's own response to its caller; only the stored copy is the gateway's.
    let _ = client.call("talker__say", json!({}));
    let died = client.call("talker__die", json!({}));
    search("call talker__die", format!("{died:?}").as_bytes(), hits);
    let status = client.call("switchboard__get_status", json!({}));
    let status = format!("{status:?}");
    assert!(status.contains("the user can read the details"), "{status}");
    assert!(
        !status.contains("bad key") && !status.contains("hello0"),
        "last words reach agents: {status}"
    );
    search("get_status", status.as_bytes(), hits);
}

/// A model and a webhook that fail with their keys in the response.
fn ask_model(serve: &Serve<'_>, heard: &Mutex<Vec<String>>, hits: &mut Vec<String>) {
    let _ = serve.client().call("talker__ask", json!({}));
    let has = |begins: &str, part: &str| {
        let heard = heard.lock().unwrap();
        let found = heard.iter().find(|text| text.starts_with(begins));
        found.filter(|text| text.contains(part)).cloned()
    };
    let key = format!("Bearer {}", secret("model"));
    until("the model was asked", || {
        has("POST /v1/chat/completions", &key)
    });
    let hook = until("the webhook was told", || {
        has(
            &format!("POST /{} ", secret("hookurl")),
            "webhook-signature",
        )
    });
    // The receiver knows its own address; only the body matters.
    let body = hook.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    search("webhook", body.as_bytes(), hits);
    let requests = serve.http().get("/api/v1/approvals?status=failed").text();
    // The key that the model repeats is removed when the response is read.
    assert!(requests.contains("Bearer (key)"), "{requests}");
    let config: Value = serve.http().get("/api/v1/config").json();
    let config = &config["config"];
    assert_eq!(config["approvals"]["webhook"]["url"], "(hidden)");
    let shown = config["sampling"]["provider"]["baseUrl"].as_str();
    let shown = shown.unwrap_or_default();
    assert!(
        shown.starts_with("http://127.0.0.1:") && shown.ends_with("/(hidden)"),
        "{shown}"
    );
}

fn events(serve: &Serve<'_>) -> Vec<u8> {
    let mut http = serve.http();
    let token = serve.token();
    let stream = http.raw();
    stream
        .set_read_timeout(Some(Duration::from_millis(200)))
        .unwrap();
    write!(
        stream,
        "GET /api/v1/events HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {token}\r\n\r\n"
    )
    .unwrap();
    let mut heard = Vec::new();
    let until = Instant::now() + PATIENCE;
    let mut asked = false;
    while Instant::now() < until {
        let mut part = [0; 8192];
        if let Ok(read) = stream.read(&mut part) {
            heard.extend_from_slice(&part[..read]);
        }
        if !asked && !heard.is_empty() {
            asked = true;
            let path = "/api/v1/servers/env/restart";
            serve.http().ask("POST", path, &[], b"");
        }
        if memchr::memmem::find(&heard, b"its last message").is_some() {
            return heard;
        }
    }
    panic!(
        "no event about a failure: {}",
        String::from_utf8_lossy(&heard)
    );
}

#[test]
fn no_secret_is_in_anything_the_gateway_writes() {
    let (home, heard) = home();
    let mut hits = Vec::new();
    let serve = home.serve();
    serve.until_known("talker");
    let failing = [
        "path",
        "query",
        "user",
        "gone",
        "header",
        "env",
        "literal",
        "args",
        "command",
        "cwd",
        "container",
        "stdout",
        "host",
        "quote",
    ];
    until("every server has failed", || {
        let status = serve.status();
        let servers = status["servers"].as_array().unwrap();
        let failed = |name: &&str| {
            let server = servers.iter().find(|server| server["name"] == **name);
            server.is_some_and(|server| server["reason"].is_string())
        };
        failing.iter().all(failed).then_some(())
    });
    fail_all(&serve, &mut hits);
    ask_model(&serve, &heard, &mut hits);
    search("events", &events(&serve), &mut hits);
    let spec: Value = serve.http().get("/api/v1/openapi.json").json();
    for (path, methods) in spec["paths"].as_object().unwrap() {
        if methods.get("get").is_none() || path.ends_with("/events") || path.contains("{id}") {
            continue;
        }
        for name in ["path", "env", "talker", "stdout"] {
            let path = path.replace("{name}", name);
            let path = path.replace("/search", "/search?q=say");
            let answer = serve.http().get(&path);
            let mut body = answer.text();
            if path.ends_with("/config") {
                // The file itself, shown to its owner.
                body = body.replace(LITERAL, "");
            }
            search(&path, body.as_bytes(), &mut hits);
        }
    }
    let people = ["env", "stdout", "quote"].map(|name| serve.reason(name));
    for args in [
        &["status"][..],
        &["status", "--json"],
        &["list"],
        &["list", "--json"],
        &["doctor"],
        &["doctor", "--json"],
        &["logs", "env"],
        &["logs", "path"],
        &["logs", "talker"],
        &["logs", "stdout"],
        &["logs", "quote"],
        &["logs", "host"],
        &["audit", "export"],
    ] {
        let output = home.run(args);
        let place = args.join(" ");
        search(&place, &output.stdout, &mut hits);
        search(&place, &output.stderr, &mut hits);
    }
    serve.stop();
    for args in [&["list"][..], &["doctor"]] {
        let output = home.run(args);
        search(&format!("alone: {args:?}"), &output.stdout, &mut hits);
        search(&format!("alone: {args:?}"), &output.stderr, &mut hits);
    }
    search_files(&home.path(""), &mut hits);
    assert!(hits.is_empty(), "{} hits:\n{}", hits.len(), hits.join("\n"));
    let [env, stdout, quote] = people;
    assert!(
        quote.contains("quoted [secret quote] [secret quote]"),
        "{quote}"
    );
    assert!(
        env.contains("its last message: bad key [secret env]"),
        "{env}"
    );
    assert!(stdout.contains("its last message: hello0"), "{stdout}");
}
