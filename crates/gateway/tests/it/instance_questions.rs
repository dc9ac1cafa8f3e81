//! Questions of servers whose processes belong to single callers, and the roots of these callers.

use serde_json::{Value, json};
use switchboard_test_support::{Tools, until_async};
use tempfile::TempDir;

use crate::{
    api_rig::Rig,
    instance_rig::{Gate, mirror, of_project, pid, project, rig, roots_in, told, until_in_flight},
    mcp_rig::{LEGACY, MODERN, Pipe, Web, direct, server, text_of, until},
};

const ELICITATION: &str = "elicitation/create";

async fn able(rig: &Rig, revision: &'static str) -> Pipe {
    Pipe::open_able(rig, server("s"), revision, json!({ "elicitation": {} })).await
}

/// The answer of a client.
fn value_of(number: usize) -> Value {
    json!({ "action": "accept", "content": { "name": format!("client {number}") } })
}

/// A client that was asked during a call, and has not answered yet.
struct Asked<'a> {
    client: &'a mut Pipe,
    call: Value,
    arguments: Value,
    /// The request of an older revision, or the result of 2026-07-28.
    question: Value,
}

impl<'a> Asked<'a> {
    async fn wait(client: &'a mut Pipe, revision: &str, call: Value, arguments: Value) -> Self {
        let question = match revision {
            MODERN => client.finish(&call).await.json["result"].clone(),
            _ => client.question().await,
        };
        Self {
            client,
            call,
            arguments,
            question,
        }
    }

    /// Answers with this value, and returns the result of the call.
    async fn answer(self, value: &Value) -> Value {
        let Self {
            client,
            mut call,
            arguments,
            question,
        } = self;
        if let Some(questions) = question["inputRequests"].as_object() {
            assert_eq!(questions.len(), 1, "{question}");
            let answers: serde_json::Map<_, _> = questions
                .keys()
                .map(|key| (key.clone(), value.clone()))
                .collect();
            let again = json!({
                "name": "ask",
                "arguments": arguments,
                "inputResponses": answers,
                "requestState": question["requestState"],
            });
            call = client.send("tools/call", again).await;
        } else {
            let answer = json!({ "jsonrpc": "2.0", "id": question["id"], "result": value });
            client.send_text(&answer.to_string()).await;
        }
        let answer = client.finish(&call).await.json;
        answer["result"]["structuredContent"].clone()
    }
}

/// Has each client ask for its own value. All calls and then all questions are in flight at the same time.
async fn each_asks_for_its_own(rig: &Rig, revision: &str, clients: &mut [Pipe]) {
    let gate = Gate::new();
    let mut calls = Vec::new();
    for (number, client) in clients.iter_mut().enumerate() {
        let arguments = json!({ "message": format!("for {number}"), "gate": gate.path() });
        let call = client.send_call("ask", arguments.clone()).await;
        calls.push((call, arguments));
    }
    until_in_flight(rig, calls.len() as u64).await;
    gate.open();
    let mut all = Vec::new();
    for ((number, client), (call, arguments)) in clients.iter_mut().enumerate().zip(calls) {
        let asked = Asked::wait(client, revision, call, arguments).await;
        let question = asked.question.to_string();
        assert!(question.contains(&format!("for {number}")), "{question}");
        all.push((number, asked));
    }
    for (number, asked) in all.into_iter().rev() {
        let result = asked.answer(&value_of(number)).await;
        assert_eq!(result, value_of(number));
    }
}

/// Clients of this revision call a server of older revisions or of 2026-07-28.
async fn answers_return(revision: &'static str, mode: &str) {
    for share in ["auto", "client"] {
        let rig = rig(mirror(json!({ "args": [mode], "share": share }))).await;
        let mut clients = vec![able(&rig, revision).await];
        // A first question over a pipe splits the process of an older server.
        clients[0].call("ask", json!({ "message": "first" })).await;
        while clients.len() < 5 {
            clients.push(able(&rig, revision).await);
        }
        for _ in 0..2 {
            each_asks_for_its_own(&rig, revision, &mut clients).await;
        }
        let is_shared = share == "auto" && mode == "modern_mirror";
        let shown = rig.get("/api/v1/servers/s").await.json();
        let expected = if is_shared { "all" } else { "client" };
        assert_eq!(shown["sharing"], expected, "{shown}");
        let mut pids = Vec::new();
        for client in &mut clients {
            pids.push(pid(client).await);
        }
        pids.sort_unstable();
        pids.dedup();
        assert_eq!(pids.len(), if is_shared { 1 } else { 5 }, "{share} {mode}");
        rig.stop().await;
    }
}

#[tokio::test]
async fn older_server_gets_answers_of_older_clients() {
    answers_return(LEGACY, "mirror").await;
}

#[tokio::test]
async fn older_server_gets_answers_of_newer_clients() {
    answers_return(MODERN, "mirror").await;
}

#[tokio::test]
async fn newer_server_gets_answers_of_older_clients() {
    answers_return(LEGACY, "modern_mirror").await;
}

#[tokio::test]
async fn newer_server_gets_answers_of_newer_clients() {
    answers_return(MODERN, "modern_mirror").await;
}

/// Three clients with calls in flight in the process that they share. It asks two of them, for the first time.
struct Crowd {
    rig: Rig,
    clients: Vec<Pipe>,
    calls: Vec<Value>,
    /// That of the calls that ask, and that of the third call, so that the questions could be for any of the three.
    gates: [Gate; 2],
    shared: u64,
}

impl Crowd {
    async fn gather(approvals: Value) -> Self {
        let config = json!({ "mcpServers": { "s": mirror(json!({})) }, "approvals": approvals });
        let rig = Rig::configured(config).await;
        let mut clients = Vec::new();
        for revision in [LEGACY, MODERN, LEGACY] {
            clients.push(able(&rig, revision).await);
        }
        let shared = pid(&mut clients[0]).await;
        let gates = [Gate::new(), Gate::new()];
        let mut calls = Vec::new();
        for (number, client) in clients.iter_mut().enumerate() {
            client.set_answer(ELICITATION, value_of(number));
            let (tool, gate) = match number {
                2 => ("sleep", &gates[1]),
                _ => ("ask", &gates[0]),
            };
            let arguments = json!({ "message": format!("for {number}"), "gate": gate.path() });
            calls.push(client.send_call(tool, arguments).await);
        }
        until_in_flight(&rig, 3).await;
        gates[0].open();
        Self {
            rig,
            clients,
            calls,
            gates,
            shared,
        }
    }

    /// The result of one of the calls.
    async fn result(&mut self, number: usize) -> Value {
        let answer = self.clients[number].finish(&self.calls[number]).await.json;
        answer["result"]["structuredContent"].clone()
    }

    /// Checks that no client has been asked, and that each of them has its own process from now on.
    async fn is_split(&mut self) {
        for (number, client) in self.clients.iter_mut().enumerate() {
            assert!(client.answered.is_empty(), "{:?}", client.answered);
            let result = client.call("ask", json!({ "message": "again" })).await;
            assert_eq!(result["structuredContent"], value_of(number));
            assert_eq!(client.answered.len(), 1);
            assert_ne!(pid(client).await, self.shared);
            client.answered.clear();
        }
    }
}

#[tokio::test]
async fn first_question_among_clients_goes_to_the_user() {
    let mut crowd = Crowd::gather(json!({ "notify": "off" })).await;
    let asked = crowd.rig.until_waiting(2).await;
    crowd.is_split().await;
    for question in asked {
        let number = usize::from(question.to_string().contains("for 1"));
        let value = value_of(10 + number);
        crowd
            .rig
            .decided(&question["id"], "respond", value.clone())
            .await;
        assert_eq!(crowd.result(number).await, value);
    }
    crowd.gates[1].open();
    assert_eq!(crowd.result(2).await["pid"], crowd.shared);
    crowd.is_split().await;
    crowd.rig.stop().await;
}

#[tokio::test]
async fn first_question_among_clients_fails_without_user() {
    let mut crowd = Crowd::gather(json!({ "route": "client" })).await;
    for number in 0..2 {
        // The error that the server gets, as the fixture tells it.
        let told = crowd.result(number).await["message"].clone();
        assert!(
            told.to_string().contains("several clients use this server"),
            "{told}"
        );
    }
    crowd.is_split().await;
    crowd.gates[1].open();
    assert_eq!(crowd.result(2).await["pid"], crowd.shared);
    crowd.is_split().await;
    crowd.rig.stop().await;
}

#[tokio::test]
async fn roots_of_each_client_reach_its_process() {
    let dirs = TempDir::new().unwrap();
    let rig = rig(of_project()).await;
    let able = json!({ "roots": { "listChanged": true } });
    let mut clients = Vec::new();
    for name in ["a", "b"] {
        let first = roots_in(&project(&dirs, name));
        let second = roots_in(&project(&dirs, &format!("{name}2")));
        let roots = json!({ "roots": [first["roots"][0], second["roots"][0]] });
        let mut client = Pipe::open_able(&rig, server("s"), LEGACY, able.clone()).await;
        client.set_answer("roots/list", roots.clone());
        clients.push((client, name, roots));
    }
    for (client, name, roots) in &mut clients {
        let who = told(client, "whoami").await;
        assert_eq!(
            (&who["project"], &who["rootsChanged"]),
            (&json!(*name), &json!(0))
        );
        assert_eq!(told(client, "roots").await, *roots);
    }
    let asked_before = clients[1].0.answered.len();
    // The process of the client that reports a change lists its roots again.
    let (first, _, roots) = &mut clients[0];
    roots["roots"].as_array_mut().unwrap().pop();
    first.set_answer("roots/list", roots.clone());
    first
        .tell("notifications/roots/list_changed", json!({}))
        .await;
    until("the process knows the roots", async || {
        told(first, "whoami").await["roots"] == *roots
    })
    .await;
    assert_eq!(told(first, "whoami").await["rootsChanged"], 1);
    let (second, name, roots) = &mut clients[1];
    let who = told(second, "whoami").await;
    assert_eq!(who["project"], *name);
    assert_eq!(
        (&who["rootsChanged"], &who["roots"]),
        (&json!(0), &Value::Null)
    );
    assert_eq!(second.answered.len(), asked_before);
    assert_eq!(told(second, "roots").await, *roots);
    rig.stop().await;
}

/// A client of its own directory, which states it as its only root.
async fn rooted(rig: &Rig, dirs: &TempDir, name: &str) -> (Pipe, Value) {
    let able = json!({ "roots": { "listChanged": true } });
    let mut client = Pipe::open_able(rig, direct(), LEGACY, able).await;
    let roots = roots_in(&project(dirs, name));
    client.set_answer("roots/list", roots.clone());
    (client, roots)
}

async fn who(client: &mut Pipe) -> Value {
    told(client, "s__whoami").await
}

async fn announce(client: &mut Pipe) {
    client
        .tell("notifications/roots/list_changed", json!({}))
        .await;
}

/// Waits until the process of a client has listed roots after a change, or when it started.
async fn listed(client: &mut Pipe) -> Value {
    until_async("the process has listed roots", async || {
        let roots = who(client).await["roots"].take();
        (!roots.is_null()).then_some(roots)
    })
    .await
}

async fn sharing(rig: &Rig) -> Value {
    rig.get("/api/v1/servers/s").await.json()["sharing"].take()
}

#[tokio::test]
async fn announced_roots_stay_with_their_only_user() {
    let dirs = TempDir::new().unwrap();
    let rig = rig(mirror(json!({ "env": { "LISTS_ROOTS": "1" } }))).await;
    rig.until_tools("s", 7).await;
    let (mut first, roots) = rooted(&rig, &dirs, "a").await;
    let (mut second, other) = rooted(&rig, &dirs, "b").await;
    // It listed roots when it started, and there was no client to ask.
    assert!(listed(&mut first).await["code"].is_number());
    assert_eq!(sharing(&rig).await, "all");
    let shared = who(&mut first).await["pid"].take();
    announce(&mut first).await;
    until("the process knows the roots", async || {
        who(&mut first).await["roots"] == roots
    })
    .await;
    assert_eq!(who(&mut first).await["pid"], shared);
    assert_eq!(sharing(&rig).await, "client");
    assert_eq!(listed(&mut second).await, other);
    assert_ne!(who(&mut second).await["pid"], shared);
    assert_eq!(who(&mut first).await["roots"], roots);
    // A client that names none has a process without any.
    let mut third = Pipe::open_able(&rig, direct(), LEGACY, json!({})).await;
    assert!(listed(&mut third).await["code"].is_number());
    rig.stop().await;
}

#[tokio::test]
async fn announced_roots_do_not_reach_a_shared_process() {
    let dirs = TempDir::new().unwrap();
    let rig = rig(mirror(json!({}))).await;
    let (mut first, roots) = rooted(&rig, &dirs, "a").await;
    let (mut second, _) = rooted(&rig, &dirs, "b").await;
    let shared = who(&mut first).await["pid"].take();
    // Its call in the shared process is in flight all the time.
    let gate = Gate::new();
    let call = second
        .send_call("s__sleep", json!({ "gate": gate.path() }))
        .await;
    until_in_flight(&rig, 1).await;
    announce(&mut first).await;
    rig.until("/api/v1/servers/s", |server| server["sharing"] == "client")
        .await;
    let again = second.send_call("s__whoami", json!({})).await;
    let again = second.finish(&again).await.json["result"]["structuredContent"].take();
    assert_ne!(again["pid"], shared);
    gate.open();
    let slept = second.finish(&call).await.json;
    assert_eq!(slept["result"]["structuredContent"]["pid"], shared);
    assert!(first.answered.is_empty() && second.answered.is_empty());
    assert_ne!(who(&mut first).await["pid"], shared);
    assert_eq!(told(&mut first, "s__roots").await, roots);
    rig.stop().await;
}

#[tokio::test]
async fn roots_in_a_call_split_the_server() {
    let dirs = TempDir::new().unwrap();
    let rig = rig(mirror(json!({}))).await;
    let mut clients = Vec::new();
    for name in ["a", "b"] {
        clients.push(rooted(&rig, &dirs, name).await);
    }
    let mut pids = Vec::new();
    for (client, _) in &mut clients {
        pids.push(who(client).await["pid"].take());
    }
    assert_eq!(pids[0], pids[1]);
    // Both have used the process, so neither is asked.
    let (first, _) = &mut clients[0];
    assert!(told(first, "s__roots").await["code"].is_number());
    assert!(first.answered.is_empty());
    for (client, roots) in &mut clients {
        assert_eq!(told(client, "s__roots").await, *roots);
        assert_ne!(who(client).await["pid"], pids[0]);
    }
    rig.stop().await;
}

#[tokio::test]
async fn process_for_all_never_gets_roots() {
    let dirs = TempDir::new().unwrap();
    let rig = rig(mirror(json!({ "share": "all" }))).await;
    let (mut client, _) = rooted(&rig, &dirs, "a").await;
    who(&mut client).await;
    announce(&mut client).await;
    assert!(listed(&mut client).await["code"].is_number());
    assert!(told(&mut client, "s__roots").await["code"].is_number());
    assert!(client.answered.is_empty());
    assert_eq!(sharing(&rig).await, "all");
    rig.stop().await;
}

/// The token has a directory, in which no other client may work.
#[tokio::test]
async fn root_of_a_token_reaches_no_other_client() {
    let dirs = TempDir::new().unwrap();
    let rig = rig(mirror(json!({}))).await;
    let dir = project(&dirs, "b");
    let token = rig.token(json!({ "name": "bound", "project": dir })).await;
    let web = Web::with_token(&rig, "/mcp/s/s", LEGACY, &token).await;
    let answer = |result: Value| result["structuredContent"].clone();
    assert_eq!(answer(web.call("roots", json!({})).await), roots_in(&dir));
    let its = answer(web.call("whoami", json!({})).await);
    let (mut own, roots) = rooted(&rig, &dirs, "a").await;
    assert_ne!(who(&mut own).await["pid"], its["pid"]);
    assert_eq!(told(&mut own, "s__roots").await, roots);
    assert_eq!(answer(web.call("whoami", json!({})).await), its);
    rig.stop().await;
}

#[tokio::test]
async fn token_ends_no_process_of_the_owner() {
    let s = mirror(json!({}));
    let config = json!({ "mcpServers": { "s": s }, "approvals": { "route": "client" } });
    let rig = Rig::configured(config).await;
    let mut own = Pipe::open(&rig, direct()).await;
    let shared = who(&mut own).await["pid"].take();
    let token = rig.token(json!({ "name": "guest" })).await;
    let web = Web::with_token(&rig, "/mcp/s/s", LEGACY, &token).await;
    for (tool, arguments) in [("roots", json!({})), ("ask", json!({ "message": "it" }))] {
        web.call(tool, arguments).await;
        assert_eq!(sharing(&rig).await, "all", "{tool}");
    }
    assert_eq!(who(&mut own).await["pid"], shared);
    rig.stop().await;
}

#[tokio::test]
async fn files_in_roots_are_for_their_client_alone() {
    const SERVER: &str = "peers/node_modules/@modelcontextprotocol/server-filesystem/dist/index.js";
    let Some(tools) = Tools::need(&["node/bin/node", SERVER]) else {
        return;
    };
    let dirs = TempDir::new().unwrap();
    let common = project(&dirs, "common");
    let args = [tools.path(SERVER), common.clone()];
    let rig = rig(json!({ "command": tools.node(), "args": args })).await;
    rig.until("/api/v1/servers/s", |server| {
        server["tools"].as_u64() > Some(0)
    })
    .await;
    let (mut first, _) = rooted(&rig, &dirs, "a").await;
    let (mut second, _) = rooted(&rig, &dirs, "b").await;
    let mut plain = Pipe::open_able(&rig, direct(), LEGACY, json!({})).await;
    let dir = |name: &str| dirs.path().canonicalize().unwrap().join(name);
    for name in ["common", "a", "b"] {
        std::fs::write(dir(name).join("notes"), name).unwrap();
    }
    let read = async |client: &mut Pipe, name: &str| {
        let path = json!({ "path": dir(name).join("notes") });
        text_of(&client.call("s__read_text_file", path).await) == name
    };
    for client in [&mut first, &mut second, &mut plain] {
        assert!(read(client, "common").await && !read(client, "a").await);
    }
    announce(&mut first).await;
    until("the client can read in its root", async || {
        read(&mut first, "a").await
    })
    .await;
    assert!(!read(&mut first, "common").await && !read(&mut first, "b").await);
    until("another client can read in its own", async || {
        read(&mut second, "b").await
    })
    .await;
    assert!(!read(&mut second, "a").await);
    assert!(read(&mut plain, "common").await && !read(&mut plain, "a").await);
    rig.stop().await;
}
