//! Processes of a server that callers do not share.

use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    api_rig::Rig,
    instance_rig::{
        instances, is_alive, mirror, of_project, open_in, pid, project, rig, roots_in, told,
        until_instances,
    },
    mcp_rig::{LEGACY, MODERN, Pipe, Web, direct, refusal_of, server, text_of, until},
    stage_rig::{Stage, tool},
};

/// The number of instances in the metrics.
async fn counted(rig: &Rig, server: &str) -> String {
    let metrics = rig.get("/metrics").await.body;
    let name = format!("switchboard_instances{{server=\"{server}\"}} ");
    let value = metrics.lines().find_map(|line| line.strip_prefix(&name));
    value
        .unwrap_or_else(|| panic!("{name} in\n{metrics}"))
        .to_owned()
}

#[tokio::test]
async fn each_client_has_its_own_process() {
    let rig = rig(mirror(json!({ "share": "client" }))).await;
    let mut clients = Vec::new();
    for _ in 0..3 {
        clients.push(Pipe::open(&rig, server("s")).await);
    }
    let mut pids = Vec::new();
    for round in 1..=3 {
        for (client, number) in clients.iter_mut().zip(0..) {
            let told = told(client, "count").await;
            assert_eq!(told["count"], round);
            if round == 1 {
                pids.push(told["pid"].as_u64().unwrap());
            }
            assert_eq!(told["pid"], pids[number]);
        }
    }
    assert!(pids[0] != pids[1] && pids[1] != pids[2] && pids[0] != pids[2]);
    let shown = instances(&rig).await;
    assert_eq!(shown.len(), 3, "{shown:?}");
    assert!(
        shown
            .iter()
            .all(|one| one["client"] == "it" && one["state"] == "ready")
    );
    assert_eq!(counted(&rig, "s").await, "3");
    assert_eq!(counted(&rig, "other").await, "0");
    // A client that leaves takes its process along, and no other.
    drop(clients.remove(1));
    until_instances(&rig, 2).await;
    assert_eq!(counted(&rig, "s").await, "2");
    until("its process has ended", async || !is_alive(pids[1])).await;
    assert!(is_alive(pids[0]) && is_alive(pids[2]));
    rig.stop().await;
}

#[tokio::test]
async fn clients_in_one_project_share_a_process() {
    let dirs = TempDir::new().unwrap();
    let (a, b) = (project(&dirs, "a"), project(&dirs, "b"));
    let rig = rig(of_project()).await;
    let mut first = open_in(&rig, &a).await;
    let mut second = open_in(&rig, &a).await;
    let mut third = open_in(&rig, &b).await;
    let (one, two, three) = (
        pid(&mut first).await,
        pid(&mut second).await,
        pid(&mut third).await,
    );
    assert_eq!(one, two);
    assert_ne!(one, three);
    let told = told(&mut third, "whoami").await;
    assert_eq!(told["args"], json!([format!("--root={}", b.display())]));
    assert_eq!(told["project"], "b");
    // The directory may contain the code of others, so the program does not run in it.
    assert_ne!(told["cwd"], b.to_str().unwrap());
    assert_ne!(told["cwd"], told_of(&mut first).await["cwd"]);
    // It stays if one of its clients leaves.
    drop(first);
    assert_eq!(pid(&mut second).await, one);
    rig.stop().await;
}

async fn told_of(pipe: &mut Pipe) -> Value {
    told(pipe, "whoami").await
}

#[tokio::test]
async fn missing_project_fails_for_that_server_alone() {
    let dirs = TempDir::new().unwrap();
    let rig = rig(of_project()).await;
    let mut nowhere = Pipe::open_able(&rig, server("s"), LEGACY, json!({})).await;
    let refusal = nowhere.refusal("whoami", json!({})).await;
    assert!(
        refusal.contains("server `s` needs a project directory"),
        "{refusal}"
    );
    let mut other = Pipe::open(&rig, server("other")).await;
    other.call("whoami", json!({})).await;
    // A directory that vanishes is reported with its path, and may come back.
    let a = project(&dirs, "a");
    let mut client = open_in(&rig, &a).await;
    std::fs::remove_dir(&a).unwrap();
    let refusal = client.refusal("whoami", json!({})).await;
    assert!(refusal.contains("does not exist"), "{refusal}");
    std::fs::create_dir(&a).unwrap();
    until("it works again", async || {
        let answer = client.ask("tools/call", json!({ "name": "whoami" })).await;
        answer.json["result"]["isError"].is_null() && answer.json["error"].is_null()
    })
    .await;
    rig.stop().await;
}

#[tokio::test]
async fn only_idle_processes_make_room() {
    let rig = rig(mirror(json!({ "share": "client", "maxInstances": 1 }))).await;
    let mut first = Pipe::open(&rig, server("s")).await;
    let mut second = Pipe::open(&rig, server("s")).await;
    let old = pid(&mut first).await;
    let call = first.send_call("sleep", json!({ "ms": 1_500 })).await;
    until("the call is in flight", async || {
        instances(&rig).await.iter().any(|one| one["inFlight"] == 1)
    })
    .await;
    let params = json!({ "name": "whoami", "arguments": {} });
    let refused = second.ask("tools/call", params).await.json;
    assert_eq!(refused["error"]["code"], -32006, "{refused}");
    assert!(
        refusal_of(&refused).contains("may have one instance"),
        "{refused}"
    );
    let answer = first.finish(&call).await.json;
    assert_eq!(answer["result"]["structuredContent"]["pid"], old);
    let new = pid(&mut second).await;
    assert_ne!(new, old);
    assert!(
        !is_alive(old),
        "the new process was started before the old one had ended"
    );
    rig.stop().await;
}

#[tokio::test]
async fn question_of_each_process_reaches_its_own_client() {
    for revision in [LEGACY, MODERN] {
        let rig = rig(mirror(json!({}))).await;
        let able = json!({ "elicitation": {} });
        let mut first = Pipe::open_able(&rig, server("s"), revision, able.clone()).await;
        let before = pid(&mut first).await;
        // From its first question on, each client has a process. The one that was asked keeps the present one.
        first.call("ask", json!({ "message": "first" })).await;
        assert_eq!(pid(&mut first).await, before);
        let mut clients = vec![first];
        for _ in 0..4 {
            clients.push(Pipe::open_able(&rig, server("s"), revision, able.clone()).await);
        }
        let mut calls = Vec::new();
        for (client, number) in clients.iter_mut().zip(0..) {
            let arguments = json!({ "message": format!("for {number}"), "ms": 200 });
            calls.push(client.send_call("ask", arguments).await);
        }
        for ((client, call), number) in clients.iter_mut().zip(&calls).zip(0..) {
            let asked = match revision {
                MODERN => client.finish(call).await.json["result"]["inputRequests"].clone(),
                _ => client.question().await,
            };
            assert!(
                asked.to_string().contains(&format!("for {number}")),
                "{asked}"
            );
        }
        let shown = rig.get("/api/v1/servers/s").await.json();
        assert_eq!(shown["sharing"], "client");
        assert_eq!(shown["instances"].as_array().unwrap().len(), 4, "{shown}");
        // The state of a client ends with it.
        drop(clients);
        until("its process has ended", async || !is_alive(before)).await;
        // That is known after a restart, too.
        let rig = rig.restarted(|_| ()).await;
        assert_eq!(
            rig.get("/api/v1/servers/s").await.json()["sharing"],
            "client"
        );
        rig.stop().await;
    }
}

#[tokio::test]
async fn shared_process_is_not_left_to_one_client() {
    let rig = rig(mirror(json!({}))).await;
    let able = json!({ "elicitation": {} });
    let mut first = Pipe::open_able(&rig, server("s"), LEGACY, able.clone()).await;
    let mut second = Pipe::open_able(&rig, server("s"), LEGACY, able).await;
    let shared = pid(&mut first).await;
    assert_eq!(pid(&mut second).await, shared);
    // Both have state in it, so neither gets it, and neither can have it stopped.
    second.call("ask", json!({ "message": "?" })).await;
    assert_ne!(pid(&mut first).await, shared);
    assert_ne!(pid(&mut second).await, shared);
    assert_ne!(pid(&mut first).await, pid(&mut second).await);
    rig.stop().await;
}

#[tokio::test]
async fn numbers_are_not_used_again() {
    let rig = rig(mirror(json!({ "share": "client" }))).await;
    let mut client = Pipe::open(&rig, server("s")).await;
    pid(&mut client).await;
    assert_eq!(instances(&rig).await[0]["number"], 1);
    let other = mirror(json!({ "share": "client", "env": { "EXTRA": "x" } }));
    rig.reconfigure(&json!({ "mcpServers": { "s": other } }))
        .await;
    until("another process serves the client", async || {
        pid(&mut client).await;
        instances(&rig).await.iter().any(|one| one["number"] == 2)
    })
    .await;
    rig.stop().await;
}

#[tokio::test]
async fn project_known_later_keeps_the_process() {
    let dirs = TempDir::new().unwrap();
    let a = project(&dirs, "a");
    let rig = Rig::with(json!({
        "s": of_project(),
        "other": mirror(json!({ "share": "client" })),
    }))
    .await;
    rig.until_tools("other", 7).await;
    pid(&mut open_in(&rig, &a).await).await;
    let able = json!({ "roots": {} });
    let mut client = Pipe::open_able(&rig, direct(), LEGACY, able).await;
    let before = told(&mut client, "other__whoami").await;
    // The other server needs a project, so the client is asked for its roots.
    let call = client.send_call("s__whoami", json!({})).await;
    let asked = client.question().await;
    assert_eq!(asked["method"], "roots/list");
    let roots = json!({ "roots": [{ "uri": format!("file://{}", a.display()) }] });
    let answer = json!({ "jsonrpc": "2.0", "id": asked["id"], "result": roots });
    client.send_text(&answer.to_string()).await;
    let of_project = client.finish(&call).await.json;
    assert_eq!(of_project["result"]["structuredContent"]["project"], "a");
    assert_eq!(told(&mut client, "other__whoami").await, before);
    rig.stop().await;
}

#[tokio::test]
async fn look_without_a_project_parks_nothing() {
    let dirs = TempDir::new().unwrap();
    let a = project(&dirs, "a");
    let rig = rig(of_project()).await;
    let without = rig.get("/api/v1/tools?name=s:whoami").await;
    assert!(without.problem(409).contains("needs a project directory"));
    let shown = rig.get("/api/v1/servers/s").await.json();
    assert_eq!(shown["state"], "idle", "{shown}");
    let list = format!("/api/v1/tools?server=s&project={}", a.display());
    let found = rig.get(&list).await.json();
    assert_eq!(found["tools"].as_array().unwrap().len(), 8, "{found}");
    let path = format!("/api/v1/tools?name=s:whoami&project={}", a.display());
    let found = rig.get(&path).await.json();
    assert_eq!(found["tools"][0]["name"], "s:whoami", "{found}");
    rig.stop().await;
}

#[tokio::test]
async fn project_is_the_root_without_client_roots() {
    let dirs = TempDir::new().unwrap();
    let a = project(&dirs, "a b");
    let rig = rig(of_project()).await;
    let mut plain = open_in(&rig, &a).await;
    let roots = told(&mut plain, "roots").await;
    let uri = format!("file://{}", a.to_str().unwrap().replace(' ', "%20"));
    assert_eq!(roots, json!({ "roots": [{ "uri": uri, "name": "a b" }] }));
    let able = json!({ "roots": {} });
    let mut able = Pipe::open_in(&rig, server("s"), Some(&a), LEGACY, able).await;
    // The test's client has none.
    assert_eq!(told(&mut able, "roots").await, json!({ "roots": [] }));
    // A client that could be asked can leave as well.
    able.leave().await;
    rig.stop().await;
}

#[tokio::test]
async fn processes_are_called_for_their_own_tools() {
    let dirs = TempDir::new().unwrap();
    let (a, b) = (project(&dirs, "a"), project(&dirs, "b"));
    let rig = rig(of_project()).await;
    let mut first = open_in(&rig, &a).await;
    first.call("in_a", json!({})).await;
    let mut second = open_in(&rig, &b).await;
    second.call("in_b", json!({})).await;
    let tools = second.tools().await;
    assert!(
        tools.contains(&"in_a".to_owned()) && tools.contains(&"in_b".to_owned()),
        "{tools:?}"
    );
    let refusal = second.refusal("in_a", json!({})).await;
    assert_eq!(refusal, "server `s` offers no tool `in_a` to this client");
    // The descriptions name the directories of both, which is no change that has to be approved.
    first.call("whoami", json!({})).await;
    assert_eq!(rig.get("/api/v1/status").await.json()["held"], 0);
    let rig = rig.restarted(|_| ()).await;
    assert_eq!(rig.get("/api/v1/status").await.json()["held"], 0);
    rig.stop().await;
}

#[tokio::test]
async fn directories_in_descriptions_are_no_changes() {
    let dirs = TempDir::new().unwrap();
    let (a, b) = (project(&dirs, "a"), project(&dirs, "b"));
    // The second process defines the tool of the first one differently.
    let entry = mirror(json!({
        "args": ["mirror", "${project}"], "cwd": "${project}", "env": { "EXTRA": "x" }
    }));
    let rig = rig(entry).await;
    let mut first = open_in(&rig, &a).await;
    first.call("x", json!({})).await;
    // A directory below that of the first counts as another one: the description differs beyond it.
    let below = b.join("sub");
    std::fs::create_dir(&below).unwrap();
    let mut second = open_in(&rig, &below).await;
    second.call("x", json!({})).await;
    assert_eq!(rig.get("/api/v1/status").await.json()["held"], 0);
    rig.stop().await;
}

#[tokio::test]
async fn messages_reach_only_the_callers_of_their_process() {
    let dirs = TempDir::new().unwrap();
    let (a, b) = (project(&dirs, "a"), project(&dirs, "b"));
    let rig = rig(of_project()).await;
    let mut first = open_in(&rig, &a).await;
    let mut second = open_in(&rig, &b).await;
    for (client, text) in [(&mut first, "for a"), (&mut second, "for b")] {
        client
            .result("logging/setLevel", json!({ "level": "debug" }))
            .await;
        client.call("tell", json!({ "text": text })).await;
        let news = client.until_told("notifications/message").await;
        assert_eq!(news["data"], text);
    }
    for client in [&mut first, &mut second] {
        client.call("whoami", json!({})).await;
        assert!(
            client
                .told()
                .iter()
                .all(|said| said["method"] != "notifications/message")
        );
    }
    rig.stop().await;
}

#[tokio::test]
async fn project_over_http_is_limited_by_the_token() {
    let dirs = TempDir::new().unwrap();
    let (a, b) = (project(&dirs, "a"), project(&dirs, "b"));
    let rig = rig(of_project()).await;
    let at = |dir: &Path| format!("/mcp/s/s?project={}", dir.display());
    for revision in [LEGACY, MODERN] {
        let owner = Web::open(&rig, &at(&a), revision).await;
        let told = owner.call("whoami", json!({})).await;
        assert_eq!(told["structuredContent"]["project"], "a", "{revision}");
    }
    let create = async |name: &str, project: Value| {
        let body = json!({ "name": name, "project": project });
        let made = rig.post("/api/v1/tokens", &body).await;
        assert_eq!(made.status, 201, "{made:?}");
        made.json()["token"].as_str().unwrap().to_owned()
    };
    let free = create("free", Value::Null).await;
    let bound = create("bound", json!(a)).await;
    let params = json!({ "name": "whoami", "arguments": {} });
    // A token without a directory cannot choose one, and one with a directory no other.
    for (token, path, expected) in [
        (&free, at(&a), 403),
        (&bound, at(&b), 403),
        (&bound, at(&a), 200),
    ] {
        let web = Web::with_token(&rig, "/mcp/s/s", MODERN, token)
            .await
            .at(&path);
        let answer = web.ask_whatever("tools/call", params.clone()).await;
        assert_eq!(answer.status, expected, "{path}: {answer:?}");
    }
    let web = Web::with_token(&rig, "/mcp/s/s", LEGACY, &bound).await;
    let told = web.call("whoami", json!({})).await;
    assert_eq!(told["structuredContent"]["project"], "a");
    let web = Web::with_token(&rig, "/mcp/s/s", LEGACY, &free).await;
    let refused = web.ask("tools/call", params).await.json;
    assert!(
        refusal_of(&refused).contains("needs a project directory"),
        "{refused}"
    );
    let body = json!({ "name": "x", "project": "/no/such/place" });
    let wrong = rig.post("/api/v1/tokens", &body).await;
    assert!(
        wrong
            .problem(422)
            .contains("is not a directory that can be a project")
    );
    rig.stop().await;
}

#[tokio::test]
async fn one_process_is_restarted_and_its_log_shown() {
    let rig = rig(mirror(json!({ "share": "client" }))).await;
    let mut first = Pipe::open(&rig, server("s")).await;
    let mut second = Pipe::open(&rig, server("s")).await;
    let (one, two) = (pid(&mut first).await, pid(&mut second).await);
    let number = instances(&rig).await[0]["number"].as_u64().unwrap();
    let path = format!("/api/v1/servers/s/restart?instance={number}");
    assert_eq!(rig.post(&path, &json!({})).await.status, 200);
    assert_ne!(pid(&mut first).await, one);
    assert_eq!(pid(&mut second).await, two);
    let lines = rig
        .get(&format!("/api/v1/servers/s/logs?instance={number}"))
        .await
        .json();
    let lines = lines["lines"].as_array().unwrap();
    let mark = format!(" [{number}] ");
    assert!(
        !lines.is_empty()
            && lines
                .iter()
                .all(|line| line.as_str().unwrap().contains(&mark))
    );
    let unknown = rig
        .post("/api/v1/servers/s/restart?instance=99", &json!({}))
        .await;
    assert!(
        unknown
            .problem(404)
            .contains("server `s` has no instance 99")
    );
    // The queue of the audit log is in order.
    let name = json!({ "name": "after", "rights": ["call"] });
    assert_eq!(rig.post("/api/v1/tokens", &name).await.status, 201);
    let audit = rig
        .until("/api/v1/audit", |audit| {
            audit.to_string().contains("token-created")
        })
        .await;
    let restarts = audit.to_string().matches("server-restarted").count();
    assert_eq!(restarts, 1, "{audit}");
    let unknown = rig.get("/api/v1/servers/s/logs?instance=99").await;
    assert!(unknown.problem(404).contains("has no instance 99"));
    // Without a number, all of them end, and start again when they are used.
    assert_eq!(
        rig.post("/api/v1/servers/s/restart", &json!({}))
            .await
            .status,
        200
    );
    assert_eq!(instances(&rig).await.len(), 0);
    assert_ne!(pid(&mut second).await, two);
    rig.stop().await;
}

#[tokio::test]
async fn crash_of_one_process_spares_the_others() {
    let rig = rig(mirror(json!({ "share": "client" }))).await;
    let mut first = Pipe::open(&rig, server("s")).await;
    let mut second = Pipe::open(&rig, server("s")).await;
    let (one, two) = (pid(&mut first).await, pid(&mut second).await);
    let lost = first.refusal("die", json!({})).await;
    assert!(lost.contains("lost"), "{lost}");
    assert_eq!(pid(&mut second).await, two);
    until("it is back", async || {
        let answer = first
            .ask("tools/call", json!({ "name": "whoami" }))
            .await
            .json;
        answer["result"]["structuredContent"]["pid"]
            .as_u64()
            .is_some_and(|pid| pid != one)
    })
    .await;
    rig.stop().await;
}

/// Creates a token, and returns it.
async fn token(rig: &Rig, name: &str, project: Option<&Path>) -> String {
    let body = json!({ "name": name, "project": project });
    let made = rig.post("/api/v1/tokens", &body).await;
    assert_eq!(made.status, 201, "{made:?}");
    made.json()["token"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn client_with_a_token_has_no_other_roots() {
    let dirs = TempDir::new().unwrap();
    let a = project(&dirs, "a");
    let rig = rig(of_project()).await;
    let bound = token(&rig, "bound", Some(&a)).await;
    let free = token(&rig, "free", None).await;
    for revision in [LEGACY, MODERN] {
        for (path, token, roots) in [
            ("/mcp/s/s", &bound, roots_in(&a)),
            ("/mcp/s/other", &bound, roots_in(&a)),
            ("/mcp/s/other", &free, json!({ "roots": [] })),
        ] {
            let web = Web::with_token(&rig, path, revision, token).await;
            let told = web.call("roots", json!({})).await;
            assert_eq!(told["structuredContent"], roots, "{revision} {path} {told}");
        }
    }
    rig.stop().await;
}

#[tokio::test]
async fn newer_server_gets_no_other_roots() {
    let dirs = TempDir::new().unwrap();
    let a = project(&dirs, "a");
    let stage = Stage::new(&[tool("ask", "Asks.")]);
    let rig = Rig::with(json!({ "s": stage.modern_entry() })).await;
    rig.until_tools("s", 1).await;
    let bound = token(&rig, "bound", Some(&a)).await;
    let asking = json!({ "method": "roots/list", "params": {} });
    let arguments = json!({ "questions": { "r": asking } });
    let only_roots = json!({ "name": "ask", "arguments": arguments });
    let answers = |result: &Value| -> Value { serde_json::from_str(&text_of(result)).unwrap() };
    for revision in [LEGACY, MODERN] {
        let web = Web::with_token(&rig, "/mcp/s/s", revision, &bound).await;
        let result = web.result("tools/call", only_roots.clone()).await;
        assert_eq!(answers(&result)["r"], roots_in(&a), "{revision} {result}");
    }
    // The client answers the other questions, and cannot answer this one as well.
    let web = Web::with_token(&rig, "/mcp/s/s", MODERN, &bound).await;
    let form = json!({ "method": "elicitation/create", "params": { "message": "Who?", "requestedSchema": { "type": "object", "properties": {} } } });
    let both = json!({ "questions": { "r": asking, "e": form } });
    let both = json!({ "name": "ask", "arguments": both });
    let result = web.result("tools/call", both.clone()).await;
    let asked = result["inputRequests"].as_object().unwrap();
    assert_eq!(asked.keys().collect::<Vec<_>>(), ["e"], "{result}");
    let home = json!({ "roots": [{ "uri": "file:///home" }] });
    let accepted = json!({ "action": "accept", "content": {} });
    let mut again = both;
    again["requestState"] = result["requestState"].clone();
    again["inputResponses"] = json!({ "r": home, "e": accepted });
    let said = answers(&web.result("tools/call", again).await);
    assert_eq!(said, json!({ "r": roots_in(&a), "e": accepted }));
    // A client may also answer questions that it was never asked.
    for home in [home, json!({ "Roots": [] }), json!([[]])] {
        let mut unasked = only_roots.clone();
        unasked["inputResponses"] = json!({ "r": home, "e": accepted });
        let said = answers(&web.result("tools/call", unasked).await);
        assert_eq!(said, json!({ "r": roots_in(&a), "e": accepted }));
    }
    rig.stop().await;
}

#[tokio::test]
async fn project_that_became_a_link_is_refused() {
    let dirs = TempDir::new().unwrap();
    let (a, b) = (project(&dirs, "a"), project(&dirs, "b"));
    let sub = a.join("sub");
    std::fs::create_dir(&sub).unwrap();
    let rig = rig(of_project()).await;
    let mut client = open_in(&rig, &sub).await;
    std::fs::remove_dir(&sub).unwrap();
    std::os::unix::fs::symlink(&b, &sub).unwrap();
    let refusal = client.refusal("whoami", json!({})).await;
    assert!(refusal.contains("through a symbolic link"), "{refusal}");
    rig.stop().await;
}

#[tokio::test]
async fn client_is_asked_once_for_its_project() {
    let dirs = TempDir::new().unwrap();
    let a = project(&dirs, "a");
    let rig = rig(of_project()).await;
    let able = json!({ "roots": { "listChanged": true } });
    let mut client = Pipe::open_able(&rig, server("s"), LEGACY, able).await;
    let read = json!({ "uri": "x://y" });
    client.send("resources/read", read.clone()).await;
    let asked = client.question().await;
    assert_eq!(asked["method"], "roots/list", "{asked}");
    client.send("resources/read", read.clone()).await;
    let answer = |asked: &Value, roots: &Value| {
        json!({ "jsonrpc": "2.0", "id": asked["id"], "result": roots }).to_string()
    };
    let none = answer(&asked, &json!({ "roots": [] }));
    client.send_text(&none).await;
    client.send("resources/read", read.clone()).await;
    for _ in 0..3 {
        let answer = client.question().await;
        let refusal = refusal_of(&answer);
        assert!(refusal.contains("needs a project directory"), "{answer}");
    }
    client
        .tell("notifications/roots/list_changed", json!({}))
        .await;
    client.send("resources/read", read).await;
    let asked = client.question().await;
    assert_eq!(asked["method"], "roots/list", "{asked}");
    client.send_text(&answer(&asked, &roots_in(&a))).await;
    assert_eq!(told(&mut client, "whoami").await["project"], "a");
    rig.stop().await;
}
