//! Clients that speak MCP by hand: over a pipe, and over HTTP.

use std::{
    collections::HashMap,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};
use switchboard_gateway::{Endpoint, Face, View};
use tokio::{
    io::{
        AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader,
        DuplexStream,
    },
    time::timeout,
};

pub(crate) use switchboard_test_support::until_async as until;

use crate::api_rig::{Answer, PATIENCE, Rig, TOKEN};

pub(crate) const REVISIONS: [&str; 5] = [
    "2024-11-05",
    "2025-03-26",
    "2025-06-18",
    "2025-11-25",
    MODERN,
];
pub(crate) const LEGACY: &str = "2025-06-18";
pub(crate) const MODERN: &str = "2026-07-28";
pub(crate) const LIST_CHANGED: &str = "notifications/tools/list_changed";

pub(crate) fn search() -> View {
    View::All(Face::Search)
}

pub(crate) fn direct() -> View {
    View::All(Face::Direct)
}

pub(crate) fn configured() -> View {
    View::All(Face::Configured)
}

pub(crate) fn server(name: &str) -> View {
    View::Server(name.into())
}

/// A view under a profile.
pub(crate) fn under(profile: &str, view: View) -> Endpoint {
    Endpoint {
        profile: Some(profile.into()),
        view,
    }
}

/// A message as received.
#[derive(Debug, Clone)]
pub(crate) struct Said {
    pub(crate) text: String,
    pub(crate) json: Value,
}

/// The result in a response, verbatim.
pub(crate) fn result_text(answer: &str) -> &str {
    #[derive(Deserialize)]
    struct Whole<'a> {
        #[serde(borrow)]
        result: &'a RawValue,
    }
    let whole: Whole<'_> =
        serde_json::from_str(answer).unwrap_or_else(|error| panic!("{error}: {answer}"));
    whole.result.get()
}

/// All texts of a result.
pub(crate) fn text_of(result: &Value) -> String {
    let blocks = result["content"].as_array();
    let blocks = blocks.unwrap_or_else(|| panic!("no content: {result}"));
    let texts = blocks.iter().filter_map(|block| block["text"].as_str());
    texts.collect::<Vec<_>>().join("\n")
}

/// The names in an answer of `retrieve_tools`, best first.
pub(crate) fn names_of(result: &Value) -> Vec<String> {
    let tools = result["structuredContent"]["tools"].as_array();
    let tools = tools.unwrap_or_else(|| panic!("no tools: {result}"));
    let names = tools.iter().map(|tool| tool["name"].as_str().unwrap());
    names.map(str::to_owned).collect()
}

/// The names in a list of tools.
pub(crate) fn listed(list: &Value) -> Vec<String> {
    let tools = list["tools"].as_array();
    let tools = tools.unwrap_or_else(|| panic!("no tools: {list}"));
    let names = tools.iter().map(|tool| tool["name"].as_str().unwrap());
    names.map(str::to_owned).collect()
}

/// The parameters of a request, with the description of the client that 2026-07-28 requires.
pub(crate) fn dressed(revision: &str, capabilities: &Value, mut params: Value) -> Value {
    if revision == MODERN {
        let mut meta = json!({
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientCapabilities": capabilities,
            "io.modelcontextprotocol/clientInfo": { "name": "it", "version": "1" },
            "io.modelcontextprotocol/logLevel": "debug",
        });
        if let Some(Value::Object(own)) = params.get_mut("_meta").map(Value::take) {
            meta.as_object_mut().unwrap().extend(own);
        }
        params["_meta"] = meta;
    }
    params
}

/// The capabilities of a client, unless a test sets others.
fn capabilities() -> Value {
    json!({ "elicitation": {}, "sampling": {}, "roots": {} })
}

/// A client on a pipe.
pub(crate) struct Pipe {
    revision: &'static str,
    capabilities: Value,
    reader: BufReader<Box<dyn AsyncRead + Unpin + Send>>,
    writer: Box<dyn AsyncWrite + Unpin + Send>,
    /// Messages that arrived while another one was awaited.
    aside: Vec<Said>,
    /// The questions of servers that were answered.
    pub(crate) answered: Vec<Value>,
    /// The answers to questions, by method, if they differ from the usual ones.
    answers: HashMap<&'static str, Value>,
    next: u64,
    /// The result of `initialize` or `server/discover`.
    pub(crate) greeting: Value,
}

impl Pipe {
    /// Opens a session of 2025-06-18.
    pub(crate) async fn open(rig: &Rig, endpoint: impl Into<Endpoint>) -> Self {
        Self::open_as(rig, endpoint, LEGACY).await
    }

    pub(crate) async fn open_as(
        rig: &Rig,
        endpoint: impl Into<Endpoint>,
        revision: &'static str,
    ) -> Self {
        Self::open_able(rig, endpoint, revision, capabilities()).await
    }

    /// A client with these capabilities and no others.
    pub(crate) async fn open_able(
        rig: &Rig,
        endpoint: impl Into<Endpoint>,
        revision: &'static str,
        capabilities: Value,
    ) -> Self {
        Self::open_in(rig, endpoint, None, revision, capabilities).await
    }

    /// The same in a directory.
    pub(crate) async fn open_in(
        rig: &Rig,
        endpoint: impl Into<Endpoint>,
        project: Option<&std::path::Path>,
        revision: &'static str,
        capabilities: Value,
    ) -> Self {
        let stream = connect(rig, endpoint, project);
        Self::over_able(stream, "it", revision, capabilities).await
    }

    /// A client that gives itself this name.
    pub(crate) async fn open_named(rig: &Rig, endpoint: impl Into<Endpoint>, name: &str) -> Self {
        let stream = connect(rig, endpoint, None);
        Self::over_able(stream, name, LEGACY, capabilities()).await
    }

    /// Opens a session over an existing stream.
    pub(crate) async fn over(
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        revision: &'static str,
    ) -> Self {
        Self::over_able(stream, "it", revision, capabilities()).await
    }

    async fn over_able(
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        name: &str,
        revision: &'static str,
        capabilities: Value,
    ) -> Self {
        let (reader, writer) = tokio::io::split(stream);
        let mut pipe = Self {
            revision,
            capabilities: capabilities.clone(),
            reader: BufReader::new(Box::new(reader)),
            writer: Box::new(writer),
            aside: Vec::new(),
            answered: Vec::new(),
            answers: HashMap::new(),
            next: 0,
            greeting: Value::Null,
        };
        pipe.greeting = if revision == MODERN {
            pipe.result("server/discover", json!({})).await
        } else {
            let params = json!({
                "protocolVersion": revision,
                "capabilities": capabilities,
                "clientInfo": { "name": name, "version": "1" },
            });
            let greeting = pipe.result("initialize", params).await;
            pipe.tell("notifications/initialized", json!({})).await;
            greeting
        };
        pipe
    }

    /// Closes the client's side, and waits until the gateway closes its own. Returns the lines that were left.
    pub(crate) async fn leave(mut self) -> String {
        self.writer.shutdown().await.unwrap();
        let mut rest = String::new();
        let reading = self.reader.read_to_string(&mut rest);
        timeout(PATIENCE, reading).await.unwrap().unwrap();
        rest
    }

    async fn write(&mut self, message: &Value) {
        let line = format!("{message}\n");
        self.writer.write_all(line.as_bytes()).await.unwrap();
    }

    pub(crate) async fn tell(&mut self, method: &str, params: Value) {
        let params = dressed(self.revision, &self.capabilities, params);
        let message = json!({ "jsonrpc": "2.0", "method": method, "params": params });
        self.write(&message).await;
    }

    /// Sends a request, and returns its id.
    pub(crate) async fn send(&mut self, method: &str, params: Value) -> Value {
        self.next += 1;
        let id = json!(self.next);
        let params = dressed(self.revision, &self.capabilities, params);
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.write(&message).await;
        id
    }

    /// Sends a line verbatim.
    pub(crate) async fn send_text(&mut self, line: &str) {
        let line = format!("{line}\n");
        self.writer.write_all(line.as_bytes()).await.unwrap();
    }

    pub(crate) async fn send_call(&mut self, tool: &str, arguments: Value) -> Value {
        let params = json!({ "name": tool, "arguments": arguments });
        self.send("tools/call", params).await
    }

    /// Sets the answer to questions of servers.
    pub(crate) fn set_answer(&mut self, question: &'static str, answer: Value) {
        self.answers.insert(question, answer);
    }

    fn answer_to(&mut self, question: &Value) -> Value {
        self.answered.push(question.clone());
        let method = question["method"].as_str().unwrap();
        let known = self.answers.get(method).cloned();
        known.unwrap_or_else(|| kind_answer(method))
    }

    /// The next message; questions of servers are answered.
    async fn read(&mut self) -> Said {
        loop {
            let mut text = String::new();
            let reading = self.reader.read_line(&mut text);
            let count = timeout(PATIENCE, reading).await.unwrap().unwrap();
            assert!(count > 0, "the gateway has closed the pipe");
            let json: Value = serde_json::from_str(&text).unwrap();
            if json.get("id").is_some() && json.get("method").is_some() {
                let result = self.answer_to(&json);
                let answer = json!({ "jsonrpc": "2.0", "id": json["id"], "result": result });
                self.write(&answer).await;
                continue;
            }
            let text = text.trim_end().to_owned();
            return Said { text, json };
        }
    }

    /// The next question of a server, which is not answered.
    pub(crate) async fn question(&mut self) -> Value {
        loop {
            let mut text = String::new();
            let reading = self.reader.read_line(&mut text);
            let count = timeout(PATIENCE, reading).await.unwrap().unwrap();
            assert!(count > 0, "the gateway has closed the pipe");
            let json: Value = serde_json::from_str(&text).unwrap();
            assert!(json.get("result").is_none(), "it has ended: {json}");
            if json.get("id").is_some() {
                return json;
            }
        }
    }

    /// The next message of any kind.
    pub(crate) async fn next_line(&mut self) -> Value {
        self.read().await.json
    }

    async fn until(&mut self, is_it: impl Fn(&Value) -> bool) -> Said {
        if let Some(at) = self.aside.iter().position(|said| is_it(&said.json)) {
            return self.aside.remove(at);
        }
        loop {
            let said = self.read().await;
            if is_it(&said.json) {
                return said;
            }
            self.aside.push(said);
        }
    }

    /// Waits for the response to a request.
    pub(crate) async fn finish(&mut self, id: &Value) -> Said {
        self.until(|said| said["id"] == *id && said.get("method").is_none())
            .await
    }

    /// Waits for a notification, and returns its parameters.
    pub(crate) async fn until_told(&mut self, method: &str) -> Value {
        let said = self.until(|said| said["method"] == method).await;
        said.json["params"].clone()
    }

    /// Messages besides responses so far.
    pub(crate) fn told(&self) -> Vec<&Value> {
        self.aside.iter().map(|said| &said.json).collect()
    }

    /// Discards messages besides responses so far.
    pub(crate) fn forget(&mut self) {
        self.aside.clear();
    }

    /// The final response to a request, after all rounds of questions.
    pub(crate) async fn ask(&mut self, method: &str, params: Value) -> Said {
        let mut asked = params.clone();
        loop {
            let id = self.send(method, asked).await;
            let answer = self.finish(&id).await;
            let result = &answer.json["result"];
            if result["resultType"] != "input_required" {
                return answer;
            }
            assert_eq!(self.revision, MODERN, "an older client got {answer:?}");
            asked = params.clone();
            let questions = result["inputRequests"].as_object().unwrap();
            let answers = questions
                .iter()
                .map(|(key, question)| (key.clone(), self.answer_to(question)));
            asked["inputResponses"] = Value::Object(answers.collect());
            asked["requestState"] = result["requestState"].clone();
        }
    }

    /// The result of a request that succeeds.
    pub(crate) async fn result(&mut self, method: &str, params: Value) -> Value {
        let answer = self.ask(method, params).await;
        let result = answer.json.get("result").cloned();
        result.unwrap_or_else(|| panic!("{method}: {answer:?}"))
    }

    /// The result of a tool, which may be an error.
    pub(crate) async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let params = json!({ "name": tool, "arguments": arguments });
        self.result("tools/call", params).await
    }

    /// The message of a call that fails, as an error or as a result.
    pub(crate) async fn refusal(&mut self, tool: &str, arguments: Value) -> String {
        let params = json!({ "name": tool, "arguments": arguments });
        let answer = self.ask("tools/call", params).await.json;
        refusal_of(&answer)
    }

    /// The names of all tools.
    pub(crate) async fn tools(&mut self) -> Vec<String> {
        let mut names = Vec::new();
        let mut params = json!({});
        loop {
            let list = self.result("tools/list", params).await;
            names.extend(listed(&list));
            if list["nextCursor"].is_null() {
                return names;
            }
            params = json!({ "cursor": list["nextCursor"] });
        }
    }

    /// The names that a search finds, best first.
    pub(crate) async fn retrieve(&mut self, query: &str) -> Vec<String> {
        let found = self.call("retrieve_tools", json!({ "query": query })).await;
        names_of(&found)
    }

    /// Calls a tool over the menu.
    pub(crate) async fn call_found(&mut self, tool: &str, arguments: Value) -> Value {
        let arguments = json!({ "name": tool, "arguments": arguments });
        self.call("call_tool", arguments).await
    }
}

/// The client's end of a pipe to the gateway.
fn connect(
    rig: &Rig,
    endpoint: impl Into<Endpoint>,
    project: Option<&std::path::Path>,
) -> DuplexStream {
    let endpoint = endpoint.into();
    let (ours, theirs) = tokio::io::duplex(1024 * 1024);
    let gateway = std::sync::Arc::clone(&rig.gateway);
    let (reader, writer) = tokio::io::split(theirs);
    let project = project.map(|path| path.to_str().unwrap().into());
    tokio::spawn(async move { gateway.serve_pipe(endpoint, project, reader, writer).await });
    ours
}

/// The message of a call that fails, as an error or as a result.
pub(crate) fn refusal_of(answer: &Value) -> String {
    if let Some(message) = answer["error"]["message"].as_str() {
        return message.to_owned();
    }
    assert_eq!(answer["result"]["isError"], true, "no refusal: {answer}");
    text_of(&answer["result"])
}

fn kind_answer(method: &str) -> Value {
    match method {
        "elicitation/create" => json!({ "action": "accept", "content": { "who": "Ada" } }),
        "sampling/createMessage" => {
            json!({ "role": "assistant", "model": "m", "content": { "type": "text", "text": "Ah." } })
        }
        "roots/list" => json!({ "roots": [] }),
        other => panic!("asked {other}"),
    }
}

/// A client over HTTP. Each request uses its own connection.
pub(crate) struct Web<'a> {
    rig: &'a Rig,
    path: String,
    revision: &'static str,
    token: Option<String>,
    capabilities: Value,
    pub(crate) session: Option<String>,
}

impl<'a> Web<'a> {
    pub(crate) async fn open(rig: &'a Rig, path: &str, revision: &'static str) -> Self {
        Self::open_with(rig, path, revision, true).await
    }

    /// A client without a token.
    pub(crate) async fn anyone(rig: &'a Rig, path: &str) -> Self {
        Self::open_with(rig, path, LEGACY, false).await
    }

    async fn open_with(rig: &'a Rig, path: &str, revision: &'static str, token: bool) -> Self {
        Self::open_able(rig, path, revision, token, capabilities()).await
    }

    /// A client with another token than the gateway's own.
    pub(crate) async fn with_token(
        rig: &'a Rig,
        path: &str,
        revision: &'static str,
        token: &str,
    ) -> Self {
        let token = Some(token.to_owned());
        Self::open_by(rig, path, revision, token, capabilities()).await
    }

    /// A client with these capabilities and no others.
    pub(crate) async fn open_able(
        rig: &'a Rig,
        path: &str,
        revision: &'static str,
        token: bool,
        capabilities: Value,
    ) -> Self {
        let token = token.then(|| TOKEN.to_owned());
        Self::open_by(rig, path, revision, token, capabilities).await
    }

    async fn open_by(
        rig: &'a Rig,
        path: &str,
        revision: &'static str,
        token: Option<String>,
        capabilities: Value,
    ) -> Self {
        let mut web = Self {
            rig,
            path: path.to_owned(),
            revision,
            token,
            capabilities,
            session: None,
        };
        if revision != MODERN {
            let params = json!({
                "protocolVersion": revision,
                "capabilities": web.capabilities,
                "clientInfo": { "name": "it", "version": "1" },
            });
            let answer = web.post("initialize", params).await;
            let session = answer
                .headers
                .lines()
                .find_map(|line| line.strip_prefix("mcp-session-id: "));
            web.session = Some(session.unwrap_or_else(|| panic!("{answer:?}")).to_owned());
        }
        web
    }

    /// The same client at another address.
    pub(crate) fn at(self, path: &str) -> Self {
        Self {
            path: path.to_owned(),
            ..self
        }
    }

    async fn post(&self, method: &str, params: Value) -> Answer {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let params = dressed(self.revision, &self.capabilities, params);
        let mut headers = String::from("Content-Type: application/json\r\n");
        headers.push_str("Accept: application/json, text/event-stream\r\n");
        if let Some(token) = &self.token {
            headers = format!("{headers}Authorization: Bearer {token}\r\n");
        }
        if let Some(session) = &self.session {
            headers = format!("{headers}Mcp-Session-Id: {session}\r\n");
        }
        if self.revision == MODERN {
            headers =
                format!("{headers}MCP-Protocol-Version: {MODERN}\r\nMcp-Method: {method}\r\n");
            if let Some(name) = params["name"].as_str() {
                headers = format!("{headers}Mcp-Name: {name}\r\n");
            }
        }
        let id = NEXT.fetch_add(1, Relaxed);
        let body = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        let rig = self.rig;
        rig.ask_with("POST", &self.path, &headers, &body.to_string())
            .await
    }

    /// The complete response to a request, verbatim.
    pub(crate) async fn ask(&self, method: &str, params: Value) -> Said {
        let answer = self.post(method, params).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let text = if answer.headers.contains("text/event-stream") {
            let mut events = answer.body.lines().filter_map(|line| {
                let data = line.strip_prefix("data: ")?;
                data.contains("\"id\"").then_some(data)
            });
            events.next_back().unwrap().to_owned()
        } else {
            answer.body
        };
        let json = serde_json::from_str(&text).unwrap();
        Said { text, json }
    }

    /// Sends a request, and returns the HTTP response.
    pub(crate) async fn ask_whatever(&self, method: &str, params: Value) -> Answer {
        self.post(method, params).await
    }

    pub(crate) async fn result(&self, method: &str, params: Value) -> Value {
        let answer = self.ask(method, params).await;
        let result = answer.json.get("result").cloned();
        result.unwrap_or_else(|| panic!("{method}: {answer:?}"))
    }

    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Value {
        let params = json!({ "name": tool, "arguments": arguments });
        self.result("tools/call", params).await
    }

    pub(crate) async fn tools(&self) -> Vec<String> {
        listed(&self.result("tools/list", json!({})).await)
    }
}
