//! Clients of every transport. Over HTTP, a client sends all its requests on one connection, because the gateway
//! looks up the process behind each new one.

use std::collections::VecDeque;

use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
    time::timeout,
};

use super::*;
use crate::{
    api_rig::{Events, PATIENCE, head, open_stream},
    mcp_rig::dressed,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transport {
    Pipe,
    Http,
    Sse,
}

pub(super) const TRANSPORTS: [Transport; 3] = [Transport::Pipe, Transport::Http, Transport::Sse];

/// The capabilities of each client.
fn capabilities() -> Value {
    json!({
        "elicitation": { "form": {}, "url": {} },
        "extensions": { "io.modelcontextprotocol/tasks": {} },
    })
}

/// A connection that carries one request after another.
struct Line(BufReader<TcpStream>);

impl Line {
    async fn open(port: u16) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        Self(BufReader::new(stream))
    }

    async fn send(&mut self, method: &str, path: &str, headers: &str, body: &str) {
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n{headers}\r\n{body}"
        );
        self.0.write_all(request.as_bytes()).await.unwrap();
    }

    async fn exchange(&mut self, method: &str, path: &str, headers: &str, body: &str) -> Answer {
        self.send(method, path, headers, body).await;
        timeout(PATIENCE, self.read()).await.unwrap()
    }

    async fn read(&mut self) -> Answer {
        let (status, headers) = head(&mut self.0).await;
        let length = headers
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "));
        let mut body = Vec::new();
        if let Some(length) = length {
            body = vec![0; length.parse().unwrap()];
            self.0.read_exact(&mut body).await.unwrap();
        } else if headers.contains("transfer-encoding: chunked") {
            loop {
                let mut line = String::new();
                self.0.read_line(&mut line).await.unwrap();
                let length = usize::from_str_radix(line.trim(), 16).unwrap();
                let start = body.len();
                body.resize(start + length + 2, 0);
                self.0.read_exact(&mut body[start..]).await.unwrap();
                body.truncate(start + length);
                if length == 0 {
                    break;
                }
            }
        }
        let body = String::from_utf8(body).unwrap();
        Answer {
            status,
            headers,
            body,
        }
    }
}

/// The messages in the body of an HTTP response.
fn messages(answer: &Answer) -> Vec<Value> {
    let parse = |text: &str| {
        let said: Option<Value> = serde_json::from_str(text).ok();
        said.unwrap_or_else(|| panic!("{answer:?}"))
    };
    if answer.headers.contains("text/event-stream") {
        let events = answer.body.lines();
        let events = events.filter_map(|line| line.strip_prefix("data: "));
        return events.filter(|data| !data.is_empty()).map(parse).collect();
    }
    vec![parse(&answer.body)]
}

/// The response in the body of an HTTP response, and its status.
pub(super) fn response(answer: &Answer) -> Value {
    let said = messages(answer).pop();
    let mut json = said.unwrap_or_else(|| panic!("{answer:?}"));
    json["status"] = json!(answer.status);
    json
}

/// A client of Streamable HTTP.
pub(super) struct Web {
    port: u16,
    line: Line,
    token: String,
    path: String,
    revision: &'static str,
    session: Option<String>,
    last: u64,
    heard: VecDeque<Value>,
}

impl Web {
    /// A client that has not introduced itself.
    pub(super) async fn new(rig: &Rig, token: &str, path: &str, revision: &'static str) -> Self {
        Self {
            port: rig.port,
            line: Line::open(rig.port).await,
            token: token.to_owned(),
            path: path.to_owned(),
            revision,
            session: None,
            last: 0,
            heard: VecDeque::new(),
        }
    }

    /// Introduces itself at an address, which it uses from now on.
    pub(super) async fn greet(&mut self, path: &str, revision: &'static str) -> Answer {
        path.clone_into(&mut self.path);
        self.revision = revision;
        self.session = None;
        let (method, params) = opening(revision);
        let answer = self.post(method, params).await;
        let mut headers = answer.headers.lines();
        let session = headers.find_map(|line| line.strip_prefix("mcp-session-id: "));
        self.session = session.map(str::to_owned);
        answer
    }

    fn headers(&self) -> String {
        let token = &self.token;
        let mut headers = format!(
            "Authorization: Bearer {token}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
        );
        if let Some(session) = &self.session {
            headers = format!("{headers}Mcp-Session-Id: {session}\r\n");
        }
        headers
    }

    /// The headers and the body of a request.
    fn request(&mut self, method: &str, params: Value) -> (String, String) {
        self.last += 1;
        let params = dressed(self.revision, &capabilities(), params);
        let mut headers = self.headers();
        if self.revision == MODERN {
            headers =
                format!("{headers}MCP-Protocol-Version: {MODERN}\r\nMcp-Method: {method}\r\n");
            let mut names = ["name", "uri", "taskId"].iter();
            if let Some(name) = names.find_map(|name| params[name].as_str()) {
                headers = format!("{headers}Mcp-Name: {name}\r\n");
            }
        }
        let id = self.last;
        let body = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        (headers, body.to_string())
    }

    pub(super) async fn post(&mut self, method: &str, params: Value) -> Answer {
        let (headers, body) = self.request(method, params);
        let path = &self.path;
        self.line.exchange("POST", path, &headers, &body).await
    }

    /// Opens the stream of its session, or the one that it gets for this request.
    async fn stream(&mut self, listen: Option<Value>) -> Events {
        let (method, (headers, body)) = match listen {
            None => ("GET", (self.headers(), String::new())),
            Some(params) => ("POST", self.request(LISTEN, params)),
        };
        open_stream(self.port, method, &self.path, &headers, &body).await
    }
}

const LISTEN: &str = "subscriptions/listen";

/// The first request of a client.
fn opening(revision: &str) -> (&'static str, Value) {
    if revision == MODERN {
        return ("server/discover", json!({}));
    }
    let info = json!({ "name": "it", "version": "1" });
    let about =
        json!({ "protocolVersion": revision, "capabilities": capabilities(), "clientInfo": info });
    ("initialize", about)
}

/// A client of HTTP+SSE.
pub(super) struct Sse {
    events: Events,
    line: Line,
    headers: String,
    path: String,
    revision: &'static str,
    last: u64,
    heard: VecDeque<Value>,
}

impl Sse {
    async fn open(rig: &Rig, token: &str, path: &str, revision: &'static str) -> Self {
        let mut events = rig.follow_as(token, path, "").await;
        let path = events.next().await.unwrap().data;
        let headers =
            format!("Authorization: Bearer {token}\r\nContent-Type: application/json\r\n");
        Self {
            events,
            line: Line::open(rig.port).await,
            headers,
            path,
            revision,
            last: 0,
            heard: VecDeque::new(),
        }
    }

    async fn post(&mut self, mut message: Value, params: Value) {
        message["params"] = dressed(self.revision, &capabilities(), params);
        self.answer(message).await;
    }

    /// Sends a message without parameters.
    async fn answer(&mut self, mut message: Value) {
        message["jsonrpc"] = json!("2.0");
        let (path, headers) = (&self.path, &self.headers);
        let message = message.to_string();
        let answer = self.line.exchange("POST", path, headers, &message).await;
        assert_eq!(answer.status, 202, "{answer:?}");
    }

    async fn send(&mut self, method: &str, params: Value) -> u64 {
        self.last += 1;
        self.post(json!({ "id": self.last, "method": method }), params)
            .await;
        self.last
    }

    async fn next(&mut self) -> Value {
        let event = self.events.next().await.expect("an open stream");
        serde_json::from_str(&event.data).unwrap()
    }

    async fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params).await;
        loop {
            let said = self.next().await;
            if said["id"] == id {
                return said;
            }
            self.heard.push_back(said);
        }
    }
}

/// A client that has introduced itself.
pub(super) enum Client {
    Pipe(Box<Pipe>),
    Web(Box<Web>),
    Sse(Box<Sse>),
}

/// The place and the manner of a connection. The owner needs no token.
pub(super) struct Door<'a> {
    pub(super) transport: Transport,
    pub(super) token: Option<&'a str>,
    pub(super) profile: Option<&'a str>,
    pub(super) look: Look,
    /// The server, in the view of one.
    pub(super) one: Option<&'a str>,
    pub(super) revision: &'static str,
}

impl Door<'_> {
    fn path(&self, root: &str) -> String {
        let profile = self.profile.map(|name| format!("/p/{name}"));
        let root = format!("{root}{}", profile.unwrap_or_default());
        match (self.one, self.look) {
            (Some(server), _) => format!("{root}/s/{server}"),
            (None, Look::Search) => format!("{root}/search"),
            (None, Look::Direct) => format!("{root}/direct"),
            (None, _) => root,
        }
    }
}

impl Client {
    /// Opens a connection. Also returns the greeting of the gateway.
    pub(super) async fn open(rig: &Rig, door: &Door<'_>) -> (Self, String) {
        let revision = door.revision;
        let token = door.token.unwrap_or(TOKEN);
        match door.transport {
            Transport::Pipe => {
                assert_eq!(door.token, None, "a pipe takes no token");
                let view = match (door.one, door.look) {
                    (Some(name), _) => server(name),
                    (None, Look::Search) => search(),
                    (None, Look::Direct) => direct(),
                    (None, _) => configured(),
                };
                let endpoint = match door.profile {
                    Some(profile) => under(profile, view),
                    None => view.into(),
                };
                let pipe = Pipe::open_able(rig, endpoint, revision, capabilities()).await;
                let greeting = pipe.greeting.to_string();
                (Client::Pipe(Box::new(pipe)), greeting)
            }
            Transport::Http => {
                let path = door.path("/mcp");
                let mut web = Web::new(rig, token, &path, revision).await;
                let answer = web.greet(&path, revision).await;
                assert_eq!(answer.status, 200, "{answer:?}");
                (Client::Web(Box::new(web)), answer.body)
            }
            Transport::Sse => {
                let mut sse = Sse::open(rig, token, &door.path("/sse"), revision).await;
                let (method, params) = opening(revision);
                let greeting = sse.ask(method, params).await.to_string();
                if revision != MODERN {
                    let told = json!({ "method": "notifications/initialized" });
                    sse.post(told, json!({})).await;
                }
                (Client::Sse(Box::new(sse)), greeting)
            }
        }
    }

    /// The response to a request without its ID.
    pub(super) async fn ask(&mut self, method: &str, params: Value) -> Value {
        let mut answer = match self {
            Client::Pipe(pipe) => pipe.ask(method, params).await.json,
            Client::Web(web) => {
                let answer = web.post(method, params).await;
                let told = messages(&answer);
                let is_told = |said: &Value| said.get("id").is_none() && said["method"].is_string();
                web.heard.extend(told.into_iter().filter(is_told));
                response(&answer)
            }
            Client::Sse(sse) => sse.ask(method, params).await,
        };
        answer.as_object_mut().unwrap().remove("id");
        answer
    }

    /// The response with a name replaced, to compare it with that for another name.
    pub(super) async fn answer(&mut self, method: &str, params: &Value, name: &str) -> Value {
        let params = params.to_string().replace("NAME", name);
        let params = serde_json::from_str(&params).unwrap();
        let answer = self.ask(method, params).await;
        serde_json::from_str(&answer.to_string().replace(name, "NAME")).unwrap()
    }

    /// The messages besides responses that arrived since the last time.
    pub(super) fn heard(&mut self) -> Vec<Value> {
        match self {
            Client::Pipe(pipe) => {
                let told = pipe.told().into_iter().cloned().collect();
                pipe.forget();
                told
            }
            Client::Web(web) => web.heard.drain(..).collect(),
            Client::Sse(sse) => sse.heard.drain(..).collect(),
        }
    }

    /// Checks that its token no longer counts, and that its connection ends. Returns all that it still heard.
    pub(super) async fn end(self) -> String {
        let mut last = String::new();
        let answer = match self {
            Client::Pipe(_) => unreachable!("a pipe takes no token"),
            Client::Web(mut web) => web.post("tools/list", json!({})).await,
            Client::Sse(mut sse) => {
                while let Some(event) = sse.events.next().await {
                    last.push_str(&event.data);
                }
                let list = json!({ "jsonrpc": "2.0", "id": 0, "method": "tools/list" });
                let (path, headers, list) = (&sse.path, &sse.headers, list.to_string());
                sse.line.exchange("POST", path, headers, &list).await
            }
        };
        assert_eq!(answer.status, 401, "{answer:?}");
        last + &answer.body
    }

    /// Listens to messages that belong to no request. `listen` has the parameters of a listen stream.
    pub(super) async fn into_ear(mut self, listen: Option<Value>) -> Ear {
        let heard = self.heard().into();
        let mut stream = None;
        match (&mut self, listen) {
            (Client::Web(web), listen) => stream = Some(web.stream(listen).await),
            (Client::Pipe(pipe), Some(listen)) => drop(pipe.send(LISTEN, listen).await),
            (Client::Sse(sse), Some(listen)) => drop(sse.send(LISTEN, listen).await),
            (_, None) => {}
        }
        Ear {
            client: self,
            stream,
            heard,
        }
    }
}

impl Client {
    /// Sends a request without waiting for the response. Returns its ID.
    pub(super) async fn begin(&mut self, method: &str, params: Value) -> Value {
        match self {
            Client::Pipe(pipe) => pipe.send(method, params).await,
            Client::Sse(sse) => json!(sse.send(method, params).await),
            Client::Web(web) => {
                let (headers, body) = web.request(method, params);
                web.line.send("POST", &web.path, &headers, &body).await;
                json!(web.last)
            }
        }
    }

    /// Takes a request back.
    pub(super) async fn cancel(&mut self, id: &Value) {
        let method = "notifications/cancelled";
        let params = json!({ "requestId": id });
        match self {
            Client::Pipe(pipe) => pipe.tell(method, params).await,
            Client::Sse(sse) => sse.post(json!({ "method": method }), params).await,
            Client::Web(web) => {
                let mut line = Line::open(web.port).await;
                if web.revision != MODERN {
                    let headers = web.headers();
                    let body = json!({ "jsonrpc": "2.0", "method": method, "params": params });
                    let body = body.to_string();
                    let answer = line.exchange("POST", &web.path, &headers, &body).await;
                    assert_eq!(answer.status, 202, "{answer:?}");
                }
                // The end of the connection takes back a request of 2026-07-28.
                web.line = line;
            }
        }
    }

    /// Waits for the response to a request. Returns it after the messages that arrived before it. Questions are
    /// answered.
    pub(super) async fn finish(&mut self, id: &Value) -> Vec<Value> {
        let mut heard = Vec::new();
        let is_it = |said: &Value| said["id"] == *id && said.get("method").is_none();
        match self {
            Client::Pipe(pipe) => {
                let answer = pipe.finish(id).await.json;
                heard.append(&mut pipe.answered);
                heard.extend(self.heard());
                heard.push(answer);
            }
            Client::Sse(sse) => loop {
                let said = sse.next().await;
                if said["method"].is_string() && said.get("id").is_some() {
                    let answer = json!({ "id": said["id"], "result": { "action": "decline" } });
                    sse.answer(answer).await;
                }
                heard.push(said);
                if is_it(heard.last().unwrap()) {
                    break;
                }
            },
            Client::Web(web) => {
                let answer = timeout(PATIENCE, web.line.read()).await.unwrap();
                heard = messages(&answer);
            }
        }
        heard
    }
}

/// A client that waits for messages.
pub(super) struct Ear {
    pub(super) client: Client,
    stream: Option<Events>,
    heard: VecDeque<Value>,
}

impl Ear {
    /// The next message.
    pub(super) async fn next(&mut self) -> Value {
        if let Some(said) = self.heard.pop_front() {
            return said;
        }
        match (&mut self.client, &mut self.stream) {
            (_, Some(stream)) => loop {
                let event = stream.next().await.expect("an open stream");
                // The first event of a stream may only name it.
                if !event.data.is_empty() {
                    return serde_json::from_str(&event.data).unwrap();
                }
            },
            (Client::Pipe(pipe), None) => pipe.next_line().await,
            (Client::Sse(sse), None) => sse.next().await,
            (Client::Web(_), None) => unreachable!("it has a stream"),
        }
    }

    /// Waits for the end of its stream. Returns the messages before it.
    pub(super) async fn end(self) -> Vec<Value> {
        let mut heard = Vec::from(self.heard);
        let mut stream = match (self.client, self.stream) {
            (_, Some(stream)) => stream,
            (Client::Sse(sse), None) => sse.events,
            (Client::Web(_), None) => unreachable!("it has a stream"),
            (Client::Pipe(pipe), None) => {
                let rest = pipe.leave().await;
                heard.extend(rest.lines().map(|line| serde_json::from_str(line).unwrap()));
                return heard;
            }
        };
        while let Some(event) = stream.next().await {
            if !event.data.is_empty() {
                heard.push(serde_json::from_str(&event.data).unwrap());
            }
        }
        heard
    }
}
