//! Startup: responses come first, and nothing starts that is not needed.

use std::{
    fs,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use switchboard_test_support::{
    Home, eager,
    mcp::{Client, Events},
    pipe::Pipe,
    server, until, with,
};

/// Starts a gateway once, so that the offers of its servers are known.
fn acquaint(home: &Home, servers: &[&str]) {
    let serve = home.serve();
    for name in servers {
        serve.until_known(name);
    }
    serve.stop();
}

#[test]
fn known_tools_are_listed_without_a_start() {
    let home = Home::new(json!({}));
    let starts = home.text("starts");
    let slow = server(&["--init-delay", "500", "--tools", "50", "--starts", &starts]);
    home.set_config(json!({ "view": "direct", "mcpServers": { "slow": slow } }));
    acquaint(&home, &["slow"]);
    assert_eq!(home.lines("starts").len(), 1);

    let serve = home.serve();
    let mut client = serve.client();
    let tools = client.tools();
    assert!(tools.contains(&"slow__t49".to_owned()), "{tools:?}");
    assert!(tools.contains(&"slow__echo".to_owned()), "{tools:?}");
    assert_eq!(serve.state("slow"), "idle");
    assert_eq!(home.people(), [], "nobody asked for a server");
    serve.stop();
    assert_eq!(home.lines("starts").len(), 1);

    // Over stdio it is the same.
    let mut pipe = Pipe::open(&home);
    let answer = pipe.request("tools/list", json!({}));
    let tools = answer["result"]["tools"].as_array().unwrap();
    assert!(tools.iter().any(|tool| tool["name"] == "slow__t49"));
    assert_eq!(home.people(), []);
    pipe.leave();
    assert!(pipe.ended().success());
    assert_eq!(home.lines("starts").len(), 1);
}

#[test]
fn call_waits_for_a_starting_server() {
    let home = Home::new(json!({ "slow": server(&["--init-delay", "1500"]) }));
    acquaint(&home, &["slow"]);
    let serve = home.serve();
    let mut client = serve.client();
    let began = Instant::now();
    let answer = client.call("slow__echo", json!({ "text": "x" }));
    assert_eq!(answer, Ok("x".to_owned()));
    assert!(began.elapsed() >= Duration::from_millis(1_500));
    serve.stop();
}

#[test]
fn first_call_waits_and_reports_the_start() {
    let home = Home::new(json!({}));
    // Far longer than `waitTimeoutMs`.
    let slow = server(&["--init-delay", "2500"]);
    let config = json!({ "waitTimeoutMs": 200, "mcpServers": { "slow": slow } });
    home.set_config(config);
    acquaint(&home, &["slow"]);
    let mut pipe = Pipe::open(&home);
    let params = json!({
        "name": "slow__echo",
        "arguments": { "text": "x" },
        "_meta": { "progressToken": "mine" },
    });
    let id = pipe.begin("tools/call", params);
    let told = pipe.until_told("notifications/progress");
    assert_eq!(told["params"]["progressToken"], "mine", "{told}");
    assert_eq!(told["params"]["message"], "starting slow", "{told}");
    let answer = pipe.finish(&id);
    assert_eq!(answer["result"]["content"][0]["text"], "x", "{answer}");
}

#[test]
fn call_waits_for_start_until_its_deadline() {
    let mute = with(
        server(&["--mute"]),
        json!({ "requestTimeoutMs": 1_500, "closeTimeoutMs": 200 }),
    );
    let home = Home::new(json!({ "mute": mute }));
    let serve = home.serve();
    let began = Instant::now();
    let mut at = Client::try_open_at(serve.http(), "/mcp/s/mute").unwrap();
    let error = at.call("echo", json!({ "text": "x" })).unwrap_err();
    let took = began.elapsed();
    assert_eq!(error["code"], -32002, "{error}");
    assert_eq!(error["data"]["part"], "mute", "{error}");
    assert!(error["data"]["retryAfterMs"].as_u64() > Some(0), "{error}");
    assert!(took >= Duration::from_millis(1_500), "it took {took:?}");
    serve.stop();
}

#[test]
fn failed_start_fails_call_with_the_reason() {
    let script = "sleep 0.5; echo 'Error: no key' >&2; exit 3";
    let home = Home::new(json!({ "bad": { "command": "sh", "args": ["-c", script] } }));
    let serve = home.serve();
    let mut at = Client::try_open_at(serve.http(), "/mcp/s/bad").unwrap();
    let error = at.call("echo", json!({ "text": "x" })).unwrap_err();
    assert_eq!(error["code"], -32003, "{error}");
    assert!(error["data"]["retryAfterMs"].as_u64() > Some(0), "{error}");
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("exit status: 3"), "{message}");
    assert!(!message.contains("no key"), "{message}");
    assert!(serve.reason("bad").contains("Error: no key"));
    serve.stop();
}

#[test]
fn handshake_timeout_names_the_configuration_key() {
    let mute = with(
        server(&["--mute"]),
        json!({ "initTimeoutMs": 300, "closeTimeoutMs": 100 }),
    );
    let home = Home::new(json!({ "mute": mute }));
    let serve = home.serve();
    let reason = serve.reason("mute");
    assert!(reason.contains("no handshake within 300.0ms"), "{reason}");
    let server = serve.server("mute");
    let action = server["action"].as_str().unwrap_or_default();
    assert!(action.contains("raise `initTimeoutMs`"), "{server}");
    serve.stop();
}

#[test]
fn missing_command_parks_its_server() {
    let home = Home::new(json!({
        "gone": { "command": "no-such-program-anywhere", "args": [] },
        "good": server(&[]),
    }));
    let serve = home.serve();
    serve.until_state("gone", "parked");
    serve.until_known("good");
    let mut client = serve.client();
    let mut at = Client::try_open_at(serve.http(), "/mcp/s/gone").unwrap();
    let error = at.call("anything", json!({})).unwrap_err();
    assert_eq!(error["code"], -32003, "{error}");
    assert_eq!(error["data"]["part"], "gone", "{error}");
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("no-such-program-anywhere"), "{message}");
    assert_eq!(
        client.call("good__echo", json!({ "text": "x" })),
        Ok("x".to_owned())
    );
    serve.stop();
}

#[test]
fn damaged_snapshot_affects_only_its_server() {
    let home = Home::new(json!({ "a": server(&[]), "b": server(&[]) }));
    acquaint(&home, &["a", "b"]);
    fs::write(home.path("catalog/a.json"), b"{\"server\": \"a\", \xff").unwrap();
    let serve = home.serve();
    let mut client = serve.client();
    let tools = client.tools();
    assert!(tools.contains(&"b__echo".to_owned()), "{tools:?}");
    assert_eq!(serve.state("b"), "idle");
    // The other server is listed again.
    until("a is known again", || {
        client.tools().contains(&"a__echo".to_owned()).then_some(())
    });
    assert_eq!(
        client.call("a__echo", json!({ "text": "x" })),
        Ok("x".to_owned())
    );
    let status = serve.status();
    let parts = status["parts"].as_array().unwrap();
    let catalog = parts.iter().find(|part| part["name"] == "catalog").unwrap();
    assert!(
        catalog["note"].as_str().unwrap().contains("a.json"),
        "{catalog}"
    );
    serve.stop();
}

#[test]
fn idle_server_is_stopped_and_restarted() {
    let home = Home::new(json!({
        "a": with(server(&[]), json!({ "idleStopSeconds": 1 })),
        "eager": with(eager(server(&[])), json!({ "idleStopSeconds": 1 })),
    }));
    acquaint(&home, &["a", "eager"]);
    let serve = home.serve();
    let mut client = serve.client();
    let used = Instant::now();
    let pid = client.call("a__pid", json!({})).unwrap();
    let kept = client.call("eager__pid", json!({})).unwrap();
    serve.until_state("a", "idle");
    assert!(used.elapsed() >= Duration::from_secs(1), "too early");
    until("the process is gone", || {
        let pid = pid.parse().unwrap();
        (!switchboard_test_support::processes::is_alive(pid)).then_some(())
    });
    assert!(client.tools().contains(&"a__echo".to_owned()));
    assert_ne!(client.call("a__pid", json!({})).unwrap(), pid);
    assert_eq!(client.call("eager__pid", json!({})).unwrap(), kept);
    serve.stop();
}

#[test]
fn server_with_a_call_is_not_idle() {
    let home = Home::new(json!({
        "a": with(server(&[]), json!({ "idleStopSeconds": 1 })),
    }));
    let serve = home.serve();
    serve.until_known("a");
    let mut client = serve.client();
    let answer = client.call("a__echo", json!({ "text": "x", "ms": 2_500 }));
    assert_eq!(answer, Ok("x".to_owned()));
    serve.stop();
}

#[test]
fn new_server_is_listed_and_stopped() {
    let home = Home::new(json!({ "new": with(server(&[]), json!({ "idleStopSeconds": 1 })) }));
    let serve = home.serve();
    let mut client = serve.client();
    until("its tools are there", || {
        client
            .tools()
            .contains(&"new__echo".to_owned())
            .then_some(())
    });
    serve.until_state("new", "idle");
    until("nobody is left", || home.people().is_empty().then_some(()));
    assert!(client.tools().contains(&"new__echo".to_owned()));
    serve.stop();
}

const CHANGED: &str = "notifications/tools/list_changed";

#[test]
fn clients_of_both_kinds_get_new_tools() {
    let home = Home::new(json!({ "a": server(&[]) }));
    let serve = home.serve();
    serve.until_known("a");
    let mut client = serve.client();
    let mut events = client.listen();
    let mut pipe = Pipe::open(&home);
    pipe.request("tools/list", json!({}));
    pipe.forget_news();
    client
        .call("a__add_tool", json!({ "name": "fresh" }))
        .unwrap();
    events.until(CHANGED);
    pipe.until_told(CHANGED);
    assert!(client.tools().contains(&"a__fresh".to_owned()));
    let listed = pipe.request("tools/list", json!({}));
    assert!(listed.to_string().contains("a__fresh"));
    assert_eq!(
        client.call("a__fresh", json!({})),
        Ok("fresh was called".to_owned())
    );
    serve.stop();
}

#[test]
fn call_to_an_unlisted_server_waits() {
    let home = Home::new(json!({
        "new": server(&["--init-delay", "1000"]),
        "wrong": { "command": "no-such-command" },
    }));
    let serve = home.serve();
    let mut client = serve.client();
    assert_eq!(
        client.call("new__echo", json!({ "text": "hi" })),
        Ok("hi".to_owned())
    );
    let params = json!({ "name": "wrong__echo", "arguments": {} });
    let answer = client.request("tools/call", params);
    assert_eq!(answer["error"]["code"], -32003, "{answer}");
    let params = json!({ "name": "nobody__echo", "arguments": {} });
    let answer = client.request("tools/call", params);
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    serve.stop();
}

#[test]
fn exit_reason_includes_the_last_output() {
    let says = "echo 'no API key' >&2; exit 3";
    let home = Home::new(json!({ "a": { "command": "sh", "args": ["-c", says] } }));
    let serve = home.serve();
    let reason = serve.reason("a");
    assert!(reason.contains("exit status: 3"), "{reason}");
    assert!(reason.contains("no API key"), "{reason}");
    serve.stop();
}

#[test]
fn simultaneous_list_changes_are_both_read() {
    let home = Home::new(json!({ "a": server(&["--prompts"]) }));
    let serve = home.serve();
    serve.until_known("a");
    let mut client = serve.client();
    for n in 0..3 {
        let name = format!("fresh{n}");
        let added = client.call("a__add_tool", json!({ "name": name }));
        assert_eq!(added, Ok("changed".to_owned()));
        let exposed = format!("a__{name}");
        until("both lists", || {
            let prompts = client.request("prompts/list", json!({})).to_string();
            (client.tools().contains(&exposed) && prompts.contains(&exposed)).then_some(())
        });
    }
    serve.stop();
}

#[test]
fn endless_list_changes_are_throttled() {
    let home = Home::new(json!({}));
    let asked = home.path("asked");
    let restless = server(&["--restless", &asked.display().to_string()]);
    home.set_servers(json!({ "a": eager(restless) }));
    let serve = home.serve();
    serve.until_known("a");
    let mut client = serve.client();
    // Calls continue, and the list requests become rarer.
    for _ in 0..20 {
        assert_eq!(
            client.call("a__sleep", json!({ "ms": 100 })),
            Ok("slept".to_owned())
        );
    }
    let asked = home.lines("asked").len();
    assert!(
        // The first few list requests have no pause between them. Later, a call that waits for a changed list
        // may request it; no more than that.
        (2..=35).contains(&asked),
        "asked {asked} times in two seconds"
    );
    serve.stop();
}

#[test]
fn new_server_is_announced_once_listed() {
    let home = Home::new(json!({}));
    let serve = home.serve();
    let mut client = serve.client();
    let own = ["switchboard__read_result", "switchboard__get_status"];
    assert_eq!(client.tools(), own);
    let mut events = client.listen();
    let mut pipe = Pipe::open(&home);
    home.set_servers(json!({ "late": server(&[]) }));
    events.until(CHANGED);
    pipe.until_told(CHANGED);
    assert!(client.tools().contains(&"late__echo".to_owned()));
    serve.stop();
}

#[test]
fn progress_reaches_the_client_under_its_own_token() {
    let home = Home::new(json!({ "a": server(&[]) }));
    let serve = home.serve();
    serve.until_known("a");
    let mut client = serve.client();
    let params = json!({
        "name": "a__progress",
        "arguments": { "n": 5 },
        "_meta": { "progressToken": "mine" },
    });
    client.send(&json!(1), "tools/call", params).unwrap();
    let head = client.http.head().unwrap();
    assert_eq!(head.header("content-type"), Some("text/event-stream"));
    let mut events = Events::of(client.http);
    for n in 1..=5 {
        let progress = events.next().unwrap();
        assert_eq!(progress["params"]["progressToken"], "mine", "{progress}");
        assert_eq!(progress["params"]["progress"], n, "{progress}");
    }
    assert_eq!(events.next().unwrap()["id"], 1);
    assert_eq!(events.next(), None);
    serve.stop();
}

#[test]
fn status_is_the_same_on_every_surface() {
    let home = Home::new(json!({
        "a": eager(server(&[])),
        "off": with(server(&[]), json!({ "enabled": false })),
    }));
    let serve = home.serve();
    serve.until_state("a", "ready");
    serve.until_known("a");
    let text = serve
        .client()
        .call("switchboard__get_status", json!({}))
        .unwrap();
    let by_tool: Value = serde_json::from_str(&text).unwrap();
    let by_api = serve.status();
    let by_command = home.run(&["status", "--json"]);
    assert!(by_command.status.success(), "{by_command:?}");
    let by_command: Value = serde_json::from_slice(&by_command.stdout).unwrap();
    for status in [&by_tool, &by_api, &by_command] {
        assert_eq!(status["state"], "running", "{status}");
        assert_eq!(status["pid"], serve.pid(), "{status}");
        let states: Vec<_> = status["servers"]
            .as_array()
            .unwrap()
            .iter()
            .map(|server| {
                (
                    server["name"].clone(),
                    server["state"].clone(),
                    server["since"].is_string(),
                )
            })
            .collect();
        let expected = [
            (json!("a"), json!("ready"), true),
            (json!("off"), json!("disabled"), true),
        ];
        assert_eq!(states, expected, "{status}");
        let parts = status["parts"].as_array().unwrap();
        for name in ["catalog", "store", "server:a"] {
            assert!(parts.iter().any(|part| part["name"] == name), "{status}");
        }
    }
    serve.stop();
}

#[test]
fn concurrent_listings_are_limited_to_the_cores() {
    let cores = std::thread::available_parallelism().map_or(2, |cores| cores.get().max(2));
    let many = 2 * cores + 2;
    let home = Home::new(json!({}));
    let starts = home.text("starts");
    let names: Vec<_> = (0..many).map(|n| format!("s{n}")).collect();
    let entry = server(&["--init-delay", "300", "--starts", &starts]);
    let servers: Value = names
        .iter()
        .map(|name| (name.clone(), entry.clone()))
        .collect();
    home.set_servers(servers);
    let serve = home.serve();
    let known = || {
        let files = names
            .iter()
            .map(|name| home.path(&format!("catalog/{name}.json")));
        files.filter(|file| file.exists()).count()
    };
    until("all are known", || {
        let started = home.lines("starts").len();
        let known = known();
        assert!(started <= known + cores, "{started} started, {known} known");
        (known == many).then_some(())
    });
    serve.stop();
}

#[test]
fn hanging_servers_give_up_their_places() {
    let cores = std::thread::available_parallelism().map_or(2, |cores| cores.get().max(2));
    let mute = with(
        eager(server(&["--mute"])),
        json!({ "initTimeoutMs": 600_000, "closeTimeoutMs": 100 }),
    );
    let mut servers: serde_json::Map<_, _> = (0..cores)
        .map(|n| (format!("a{n}"), mute.clone()))
        .collect();
    servers.insert("z".to_owned(), server(&[]));
    let home = Home::new(servers.into());
    let serve = home.serve();
    serve.until_known("z");
    serve.stop();
}
