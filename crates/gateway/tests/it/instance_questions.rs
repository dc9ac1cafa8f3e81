//! Questions of servers whose processes belong to single callers, and the roots of these callers.

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    api_rig::Rig,
    instance_rig::{Gate, mirror, of_project, pid, project, rig, roots_in, told, until_in_flight},
    mcp_rig::{LEGACY, MODERN, Pipe, server, until},
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
