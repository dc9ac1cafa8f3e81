//! Questions on the streams of a server over HTTP: each belongs to the call on whose stream it arrives.

use std::{collections::HashMap, sync::Arc};

use serde_json::{Value, json};
use switchboard_test_support::PATIENCE;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream, tcp::OwnedReadHalf},
    sync::watch,
    time::timeout,
};

use crate::{
    api_rig::Rig,
    mcp_rig::{Pipe, Web, server, text_of},
    stage_rig::tool,
};

/// A server of 2025-11-25 over Streamable HTTP, in this process.
///
/// | tool | behaviour |
/// |---|---|
/// | `slow` | answers when `slow` is released |
/// | `pay` | a task; logs and asks on the stream of its creation, which ends when `pay` is released |
/// | `late` | answers, and asks on the same stream when `late` is released |
struct Bank {
    url: String,
    state: Arc<watch::Sender<Bench>>,
}

/// The messages that the server has received, and its permissions to proceed.
#[derive(Default)]
struct Bench {
    /// Answers to its questions, by id.
    answers: HashMap<String, Value>,
    asked: Vec<Value>,
    released: Vec<&'static str>,
}

impl Bank {
    async fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let state = Arc::new(watch::Sender::new(Bench::default()));
        let bench = Arc::clone(&state);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let bench = Arc::clone(&bench);
                tokio::spawn(async move { serve(stream, &bench).await });
            }
        });
        Self { url, state }
    }

    async fn rig(&self, mut config: Value) -> Rig {
        config["mcpServers"] = json!({ "bank": { "url": self.url, "start": "eager" } });
        config["auth"] = json!({ "mcp": "none" });
        config["approvals"]["notify"] = json!("off");
        let rig = Rig::configured(config).await;
        rig.until_tools("bank", 3).await;
        rig
    }

    fn release(&self, what: &'static str) {
        self.state.send_modify(|bench| bench.released.push(what));
    }

    /// The answer to a question of the server.
    async fn answer(&self, question: &str) -> Value {
        until(&self.state, |bench| bench.answers.get(question).cloned()).await
    }

    /// Waits until the server receives this method for a tool, a task or a resource.
    async fn until_asked(&self, method: &str, of: &str) {
        until(&self.state, |bench| {
            let params = |asked: &Value| asked["params"].to_string();
            let mut asked = bench.asked.iter();
            asked
                .any(|asked| asked["method"] == method && params(asked).contains(of))
                .then_some(())
        })
        .await;
    }
}

async fn until<T>(state: &watch::Sender<Bench>, found: impl Fn(&Bench) -> Option<T>) -> T {
    let mut changes = state.subscribe();
    let waiting = changes.wait_for(|bench| found(bench).is_some());
    let bench = timeout(PATIENCE, waiting).await.expect("in time").unwrap();
    found(&bench).unwrap()
}

/// The first line of a request, and its body.
pub(crate) async fn read(reader: OwnedReadHalf) -> Option<(String, Vec<u8>)> {
    let mut reader = BufReader::new(reader);
    let (mut first, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).await.unwrap_or(0) == 0 {
            return None;
        }
        let lower = line.to_ascii_lowercase();
        if let Some(said) = lower.strip_prefix("content-length:") {
            length = said.trim().parse().unwrap();
        }
        if line == "\r\n" {
            break;
        }
        if first.is_empty() {
            first = line;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).await.unwrap();
    Some((first, body))
}

async fn serve(stream: TcpStream, state: &watch::Sender<Bench>) {
    let (reader, mut writer) = stream.into_split();
    let Some((first, body)) = read(reader).await else {
        return;
    };
    let mut say = async |text: String| drop(writer.write_all(text.as_bytes()).await);
    if !first.starts_with("POST") {
        say("HTTP/1.1 405 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".into()).await;
        return;
    }
    let message: Value = serde_json::from_slice(&body).unwrap();
    let Some(id) = message.get("id").filter(|_| message["method"].is_string()) else {
        state.send_modify(|bench| match message["id"].as_str() {
            Some(id) => drop(bench.answers.insert(id.to_owned(), message.clone())),
            None => bench.asked.push(message.clone()),
        });
        say("HTTP/1.1 202 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".into()).await;
        return;
    };
    state.send_modify(|bench| bench.asked.push(message.clone()));
    say("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n".into())
        .await;
    let mut send = async |message: Value| say(format!("data: {message}\n\n")).await;
    let result = |result: Value| json!({ "jsonrpc": "2.0", "id": id, "result": result });
    let text = |text: String| json!({ "content": [{ "type": "text", "text": text }] });
    let released = |what: &'static str| {
        until(state, move |bench| {
            bench.released.contains(&what).then_some(())
        })
    };
    let answered =
        |question: &'static str| until(state, move |bench| bench.answers.get(question).cloned());
    let named = message["params"]["name"].as_str().unwrap_or_default();
    match (message["method"].as_str().unwrap(), named) {
        ("initialize", _) => {
            let capabilities = json!({
                "tools": {}, "logging": {}, "resources": { "subscribe": true },
                "tasks": { "list": {}, "cancel": {}, "requests": { "tools": { "call": {} } } },
            });
            let info = json!({ "name": "bank", "version": "1" });
            send(result(json!({
                "protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": info,
            })))
            .await;
        }
        ("tools/list", _) => {
            let mut pay = tool("pay", "Pays.");
            pay["execution"] = json!({ "taskSupport": "required" });
            let tools = [tool("slow", "Waits."), pay, tool("late", "Asks late.")];
            send(result(json!({ "tools": tools }))).await;
        }
        ("resources/list", _) => {
            let account = json!({ "uri": "bank:account", "name": "account" });
            send(result(json!({ "resources": [account] }))).await;
        }
        ("tools/call", "slow") => {
            released("slow").await;
            send(result(text("slow".into()))).await;
        }
        ("tools/call", "pay") => {
            let said = json!({ "level": "warning", "data": "paying" });
            send(json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": said }))
                .await;
            send(question("q-pay")).await;
            answered("q-pay").await;
            released("pay").await;
            send(result(
                json!({ "task": { "taskId": "t1", "status": "working" } }),
            ))
            .await;
        }
        ("tools/call", "late") => {
            send(result(text("done".into()))).await;
            released("late").await;
            send(question("q-late")).await;
            answered("q-late").await;
        }
        ("resources/subscribe", _) => {
            send(question("q-subscribe")).await;
            answered("q-subscribe").await;
            send(result(json!({}))).await;
        }
        ("tasks/result", _) => send(result(text("paid".into()))).await,
        _ => send(result(json!({}))).await,
    }
}

fn question(id: &str) -> Value {
    let schema = json!({ "type": "object", "properties": { "who": { "type": "string" } } });
    let params = json!({ "message": "Who?", "requestedSchema": schema });
    json!({ "jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": params })
}

/// A server asks before it has named the task that a call has become.
#[tokio::test]
async fn question_before_a_task_reaches_its_client() {
    let bank = Bank::open().await;
    let rig = bank.rig(json!({})).await;
    let stranger = Web::anyone(&rig, "/mcp/s/bank").await;
    let params = json!({ "name": "slow", "arguments": {} });
    let calling = stranger.ask_whatever("tools/call", params);
    let paying = async {
        bank.until_asked("tools/call", "slow").await;
        let mut owner = Pipe::open(&rig, server("bank")).await;
        bank.release("pay");
        let paid = timeout(PATIENCE, owner.call("pay", json!({}))).await;
        bank.release("slow");
        let paid = paid.expect("the owner of the call is asked");
        assert_eq!(text_of(&paid), "paid");
        let told = owner.told();
        let is_log = |said: &&&Value| said["params"]["data"] == "paying";
        assert_eq!(told.iter().filter(is_log).count(), 1, "{told:?}");
    };
    let (answer, ()) = tokio::join!(calling, paying);
    assert!(!answer.body.contains("elicitation"), "{answer:?}");
    let answer = bank.answer("q-pay").await;
    assert_eq!(answer["result"]["content"]["who"], "Ada", "{answer}");
    rig.stop().await;
}

/// Rules match the tool that asks, not one that is called at the same time.
#[tokio::test]
async fn question_before_a_task_matches_its_tool() {
    let bank = Bank::open().await;
    let rules = json!({ "rules": ["deny elicitation bank:pay*"] });
    let rig = bank.rig(json!({ "approvals": rules })).await;
    let mut client = Pipe::open(&rig, server("bank")).await;
    let slow = client.send_call("slow", json!({})).await;
    bank.until_asked("tools/call", "slow").await;
    bank.release("pay");
    let pay = client.send_call("pay", json!({})).await;
    client.finish(&pay).await;
    let answer = bank.answer("q-pay").await;
    assert_eq!(answer["error"]["code"], -1, "{answer}");
    // Servers must not see the user's rules.
    let said = answer["error"]["message"].as_str().unwrap();
    assert!(!said.contains("pay*") && !said.contains("deny "), "{said}");
    bank.release("slow");
    client.finish(&slow).await;
    rig.stop().await;
}

/// A stream that has had its response belongs to no call, and its question must not reach another client.
#[tokio::test]
async fn late_question_reaches_no_other_client() {
    let bank = Bank::open().await;
    let route = json!({ "route": "client" });
    let rig = bank.rig(json!({ "approvals": route })).await;
    let mut other = Pipe::open(&rig, server("bank")).await;
    let mut client = Pipe::open(&rig, server("bank")).await;
    client.call("late", json!({})).await;
    let slow = other.send_call("slow", json!({})).await;
    bank.until_asked("tools/call", "slow").await;
    bank.release("late");
    let answering = async {
        let answer = bank.answer("q-late").await;
        bank.release("slow");
        answer
    };
    let (answer, _) = tokio::join!(answering, other.finish(&slow));
    assert!(answer["error"].is_object(), "{answer}");
    rig.stop().await;
}

#[tokio::test]
async fn subscription_question_reaches_no_other_client() {
    let bank = Bank::open().await;
    let route = json!({ "route": "client" });
    let rig = bank.rig(json!({ "approvals": route })).await;
    let mut other = Pipe::open(&rig, server("bank")).await;
    let mut client = Pipe::open(&rig, server("bank")).await;
    let slow = other.send_call("slow", json!({})).await;
    bank.until_asked("tools/call", "slow").await;
    let uri = json!({ "uri": "bank:account" });
    let subscribing = client.send("resources/subscribe", uri).await;
    let answering = async {
        let answer = bank.answer("q-subscribe").await;
        bank.release("slow");
        answer
    };
    let (answer, ..) = tokio::join!(answering, other.finish(&slow), client.finish(&subscribing));
    assert!(answer["error"].is_object(), "{answer}");
    rig.stop().await;
}

/// It may be the question of any client.
#[tokio::test]
async fn rules_about_clients_apply_to_late_questions() {
    let bank = Bank::open().await;
    let rules = json!({ "rules": ["allow elicitation bank", "deny elicitation bank @cursor*"] });
    let rig = bank.rig(json!({ "approvals": rules })).await;
    let mut client = Pipe::open(&rig, server("bank")).await;
    client.call("late", json!({})).await;
    bank.release("late");
    let answer = bank.answer("q-late").await;
    assert_eq!(answer["error"]["code"], -1, "{answer}");
    rig.stop().await;
}

#[tokio::test]
async fn task_whose_client_left_early_is_cancelled() {
    let bank = Bank::open().await;
    let rig = bank.rig(json!({})).await;
    let mut client = Pipe::open(&rig, server("bank")).await;
    let pay = client.send_call("pay", json!({})).await;
    bank.until_asked("tools/call", "pay").await;
    let cancelled = json!({ "requestId": pay });
    client.tell("notifications/cancelled", cancelled).await;
    // The cancellation has no effect on a task, and is not sent for one.
    bank.state
        .send_modify(|bench| drop(bench.answers.insert("q-pay".into(), json!({}))));
    bank.release("pay");
    bank.until_asked("tasks/cancel", "t1").await;
    rig.stop().await;
}
