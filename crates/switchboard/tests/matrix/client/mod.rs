//! A client of any revision over any transport, made of JSON text and sockets: an independent judge of the
//! gateway, which shares none of its libraries.

pub(crate) mod arrival;
pub(crate) mod door;
pub(crate) mod person;
mod setup;
pub(crate) mod web;

use std::{
    collections::HashMap,
    io,
    sync::mpsc::{self, Receiver},
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use self::door::Door;
pub(crate) use self::{
    arrival::Arrival,
    door::{COMMON, Headers, Place},
    person::Person,
    setup::Setup,
};
use crate::revision::{Revision, Side, Way};

/// Far more time than anything that works takes on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

/// The reason why a check failed.
pub(crate) type Reason = String;

/// Returns an error with a reason unless a condition holds.
macro_rules! check {
    ($holds:expr, $($why:tt)+) => {
        if !$holds {
            return Err(format!($($why)+));
        }
    };
}
pub(crate) use check;

/// A request in flight.
#[derive(Debug, Clone)]
pub(crate) struct Sent {
    pub(crate) id: Value,
    pub(crate) stream: u64,
}

/// A client of one revision over one transport.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) setup: Setup,
    /// The server behind the gateway.
    pub(crate) server: Side,
    pub(crate) place: Place,
    pub(crate) door: Door,
    inbox: Receiver<Arrival>,
    /// Everything that arrived, in order.
    pub(crate) seen: Vec<Arrival>,
    /// The index in `seen` of the response to each request.
    answers: HashMap<String, usize>,
    /// The requests that the server made of the client.
    pub(crate) asked: Vec<(String, Value)>,
    /// The person who answers them.
    pub(crate) person: Person,
    /// The result of `initialize` or `server/discover`.
    pub(crate) greeting: Value,
    next_id: u64,
    /// Streams on which responses to the server were posted.
    replies: Vec<u64>,
}

impl Client {
    /// Connects, and opens the session or discovers the server as the revision does.
    pub(crate) fn open(place: &Place, server: Side, setup: Setup) -> Result<Self, Reason> {
        let mut client = Self::knock(place, server, setup)?;
        client.greet()?;
        Ok(client)
    }

    /// Connects without sending anything yet.
    pub(crate) fn knock(place: &Place, server: Side, setup: Setup) -> Result<Self, Reason> {
        let (sender, inbox) = mpsc::channel();
        let side = setup.side;
        let door = Door::open(place, side.revision, side.way, sender).map_err(told("no way in"))?;
        Ok(Self {
            setup,
            server,
            place: place.clone(),
            door,
            inbox,
            seen: Vec::new(),
            answers: HashMap::new(),
            asked: Vec::new(),
            person: Person::Kind,
            greeting: Value::Null,
            next_id: 0,
            replies: Vec::new(),
        })
    }

    /// Another client at the same place.
    pub(crate) fn another(&self, setup: Setup) -> Result<Self, Reason> {
        Self::open(&self.place, self.server, setup)
    }

    pub(crate) fn revision(&self) -> Revision {
        self.setup.side.revision
    }

    pub(crate) fn is_modern(&self) -> bool {
        self.revision().is_modern()
    }

    pub(crate) fn way(&self) -> Way {
        self.setup.side.way
    }

    fn greet(&mut self) -> Result<(), Reason> {
        if self.is_modern() {
            self.greeting = self.result("server/discover", json!({}))?;
            return Ok(());
        }
        let params = json!({
            "protocolVersion": self.revision().as_str(),
            "capabilities": self.setup.capabilities,
            "clientInfo": self.info(),
        });
        let sent = self.send("initialize", params)?;
        let answer = self.wait(&sent)?;
        let session = self
            .answer_to(&sent)
            .and_then(|found| found.session.clone());
        self.greeting = answer["result"].clone();
        check!(self.greeting.is_object(), "initialize: {answer}");
        if let Some(http) = self.door.http() {
            http.session = session;
            check!(
                http.session.is_some(),
                "initialize gave no session: {answer}"
            );
        }
        self.tell("notifications/initialized", json!({}))?;
        if let Some(http) = self.door.http() {
            http.listen().map_err(told("the GET stream"))?;
        }
        if let Some(level) = self.setup.log_level {
            self.result("logging/setLevel", json!({ "level": level }))?;
        }
        Ok(())
    }

    pub(crate) fn info(&self) -> Value {
        json!({ "name": self.setup.name, "version": "1.2.3" })
    }

    /// The `_meta` of every request.
    pub(crate) fn meta(&self) -> Value {
        if !self.is_modern() {
            return json!({});
        }
        let mut meta = json!({
            "io.modelcontextprotocol/protocolVersion": self.revision().as_str(),
            "io.modelcontextprotocol/clientCapabilities": self.setup.capabilities,
            "io.modelcontextprotocol/clientInfo": self.info(),
        });
        if let Some(level) = self.setup.log_level {
            meta["io.modelcontextprotocol/logLevel"] = json!(level);
        }
        meta
    }

    /// Sends a request; a modern one identifies the client.
    pub(crate) fn send(&mut self, method: &str, params: Value) -> Result<Sent, Reason> {
        let params = self.dressed(params);
        let headers = self.headers(method, &params);
        self.send_text(method, &params.to_string(), headers)
    }

    /// The parameters with the `_meta` that every request of the revision has.
    pub(crate) fn dressed(&self, mut params: Value) -> Value {
        if let (true, Value::Object(mut meta)) = (self.is_modern(), self.meta()) {
            if let Some(Value::Object(own)) = params.get_mut("_meta").map(Value::take) {
                meta.extend(own);
            }
            params["_meta"] = Value::Object(meta);
        }
        params
    }

    /// The headers that a modern request must have.
    pub(crate) fn headers(&self, method: &str, params: &Value) -> Headers {
        if !self.is_modern() {
            return Vec::new();
        }
        let mut headers = vec![
            (
                "MCP-Protocol-Version".to_owned(),
                self.revision().to_string(),
            ),
            ("Mcp-Method".to_owned(), method.to_owned()),
        ];
        let name = match method {
            "tools/call" | "prompts/get" => &params["name"],
            "resources/read" => &params["uri"],
            "tasks/get" | "tasks/update" | "tasks/cancel" => &params["taskId"],
            _ => &Value::Null,
        };
        if let Some(name) = name.as_str() {
            headers.push(("Mcp-Name".to_owned(), name.to_owned()));
        }
        headers
    }

    /// Sends a request whose parameters are already encoded.
    pub(crate) fn send_text(
        &mut self,
        method: &str,
        params: &str,
        headers: Headers,
    ) -> Result<Sent, Reason> {
        self.next_id += 1;
        let id = json!(self.next_id);
        let text =
            format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#);
        let stream = self.door.send(&text, headers).map_err(told(method))?;
        Ok(Sent { id, stream })
    }

    /// Sends a notification, and returns when it has been accepted.
    pub(crate) fn tell(&mut self, method: &str, params: Value) -> Result<(), Reason> {
        let params = self.dressed(params);
        let headers = self.headers(method, &params);
        let text = json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string();
        let stream = self.door.send(&text, headers).map_err(told(method))?;
        if self.way() != Way::Http {
            return Ok(());
        }
        let end = self.until(0, method, |arrival| {
            arrival.stream == stream && arrival.is_end
        })?;
        let status = self.seen[end].status;
        check!(status == 202, "{method} was answered {status}");
        Ok(())
    }

    /// Waits for the response to a request, and returns the whole message.
    pub(crate) fn wait(&mut self, sent: &Sent) -> Result<Value, Reason> {
        let deadline = Instant::now() + PATIENCE;
        let id = sent.id.to_string();
        loop {
            if let Some(index) = self.answers.get(&id) {
                return Ok(self.seen[*index].message.clone());
            }
            // The end of another stream does not matter, unless the response is resumed there.
            let ended = self
                .seen
                .iter()
                .rev()
                .take(1)
                .any(|last| last.is_end && last.stream == sent.stream && last.status != 200);
            if ended {
                let said = self.on_stream(sent.stream);
                return Err(format!("no answer: {said}"));
            }
            self.take_in(deadline, &format!("the answer to {id}"))?;
        }
    }

    /// Everything that came on a stream, for error messages.
    fn on_stream(&self, stream: u64) -> String {
        let of_it = self.seen.iter().filter(|arrival| arrival.stream == stream);
        let said: Vec<_> = of_it
            .map(|arrival| format!("{} {}", arrival.status, arrival.text))
            .collect();
        said.join(" | ")
    }

    /// The arrival with the response to a request, if it has come.
    pub(crate) fn answer_to(&self, sent: &Sent) -> Option<&Arrival> {
        self.seen.get(*self.answers.get(&sent.id.to_string())?)
    }

    /// Sends a request and waits for its response, success or error.
    pub(crate) fn ask(&mut self, method: &str, params: Value) -> Result<Value, Reason> {
        let sent = self.send(method, params)?;
        self.wait(&sent)
    }

    /// The result of a request. A modern client answers questions and repeats the request.
    pub(crate) fn result(&mut self, method: &str, params: Value) -> Result<Value, Reason> {
        let answer = self.settled(method, params)?;
        match answer.get("result") {
            Some(result) => Ok(result.clone()),
            None => Err(format!("{method}: {answer}")),
        }
    }

    /// The error of a request that has to fail.
    pub(crate) fn error(&mut self, method: &str, params: Value) -> Result<Value, Reason> {
        let answer = self.settled(method, params)?;
        match answer.get("error") {
            Some(error) => Ok(error.clone()),
            None => Err(format!("{method} did not fail: {answer}")),
        }
    }

    /// The last response to a request, after all rounds of questions.
    pub(crate) fn settled(&mut self, method: &str, params: Value) -> Result<Value, Reason> {
        let mut answer = self.ask(method, params.clone())?;
        for _ in 0..10 {
            if answer["result"]["resultType"] != "input_required" {
                return Ok(answer);
            }
            check!(self.is_modern(), "an older client got {answer}");
            let again = self.retry(&params, &answer["result"]);
            answer = self.ask(method, again)?;
        }
        Err(format!("{method} never stops asking: {answer}"))
    }

    /// The parameters of the next round: the same ones, with the answers and the unchanged state.
    pub(crate) fn retry(&mut self, params: &Value, required: &Value) -> Value {
        let mut params = params.clone();
        let questions = required["inputRequests"].as_object().cloned();
        let mut responses = serde_json::Map::new();
        for (key, question) in questions.unwrap_or_default() {
            let method = question["method"].as_str().unwrap_or_default().to_owned();
            let said = question["params"].clone();
            let answer = self.person.answer(&method, &said);
            self.asked.push((method, said));
            if let Some(Ok(answer)) = answer {
                responses.insert(key, answer);
            }
        }
        params["inputResponses"] = Value::Object(responses);
        if let Some(state) = required.get("requestState") {
            params["requestState"] = state.clone();
        }
        params
    }

    /// The result of a tool, which must not be an error.
    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> Result<Value, Reason> {
        let result = self.result("tools/call", call_of(tool, arguments))?;
        check!(result["isError"] != true, "{tool}: {result}");
        Ok(result)
    }

    /// The text of a tool's result.
    pub(crate) fn text(&mut self, tool: &str, arguments: Value) -> Result<String, Reason> {
        let result = self.call(tool, arguments)?;
        match text_of(&result) {
            Some(text) => Ok(text.to_owned()),
            None => Err(format!("{tool}: no text in {result}")),
        }
    }

    /// The text of a tool's result, parsed as JSON.
    pub(crate) fn told_by(&mut self, tool: &str) -> Result<Value, Reason> {
        let text = self.text(tool, json!({}))?;
        serde_json::from_str(&text).map_err(|error| format!("{tool}: {error} in {text}"))
    }

    /// The current position in the arrivals, to search from.
    pub(crate) fn now(&self) -> usize {
        self.seen.len()
    }

    /// Waits for an arrival from a position on, and returns its index.
    pub(crate) fn until(
        &mut self,
        from: usize,
        what: &str,
        is_it: impl Fn(&Arrival) -> bool,
    ) -> Result<usize, Reason> {
        let deadline = Instant::now() + PATIENCE;
        let mut next = from;
        loop {
            while next < self.seen.len() {
                if is_it(&self.seen[next]) {
                    return Ok(next);
                }
                next += 1;
            }
            self.take_in(deadline, what)?;
        }
    }

    /// Waits for a notification, and returns its parameters.
    pub(crate) fn until_told(&mut self, from: usize, method: &str) -> Result<Value, Reason> {
        let found = self.until(from, method, |arrival| arrival.is_notification(method))?;
        Ok(self.seen[found].params().clone())
    }

    /// Waits for a notification on one stream, and returns its index.
    pub(crate) fn until_told_on(
        &mut self,
        from: usize,
        method: &str,
        stream: u64,
    ) -> Result<usize, Reason> {
        self.until(from, method, |arrival| {
            arrival.stream == stream && (arrival.is_notification(method) || arrival.is_end)
        })
    }

    /// Receives the next arrival, and answers it if it is a question.
    fn take_in(&mut self, deadline: Instant, what: &str) -> Result<(), Reason> {
        let left = deadline.saturating_duration_since(Instant::now());
        let arrival = self.inbox.recv_timeout(left).map_err(|_| {
            let last = self.seen.iter().rev().take(3);
            let last: Vec<_> = last.map(|seen| shortened(&seen.text)).collect();
            format!("not within {PATIENCE:?}: {what}; the last that came: {last:?}")
        })?;
        if self.replies.contains(&arrival.stream) && arrival.is_end {
            let status = arrival.status;
            check!(
                status == 202,
                "an answer to the server was refused with {status}"
            );
        }
        if self.way() != Way::Http {
            check!(!arrival.is_end, "the conversation ended before: {what}");
        }
        for arrival in arrival.apart() {
            if let Some(id) = arrival.answers() {
                self.answers.insert(id, self.seen.len());
            }
            let question = arrival.message.clone();
            self.seen.push(arrival);
            if let (Some(id), Some(method)) = (question.get("id"), question["method"].as_str()) {
                self.reply(id, method, &question["params"])?;
            }
        }
        Ok(())
    }

    fn reply(&mut self, id: &Value, method: &str, params: &Value) -> Result<(), Reason> {
        check!(
            !self.is_modern(),
            "a modern client got the request {method}"
        );
        self.asked.push((method.to_owned(), params.clone()));
        let answer = match self.person.answer(method, params) {
            None => return Ok(()),
            Some(Ok(result)) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
            Some(Err(error)) => json!({ "jsonrpc": "2.0", "id": id, "error": error }),
        };
        let stream = self
            .door
            .send(&answer.to_string(), Vec::new())
            .map_err(told("an answer to the server"))?;
        if stream != COMMON {
            self.replies.push(stream);
        }
        Ok(())
    }

    /// Cancels a request as the revision and the transport do.
    pub(crate) fn cancel(&mut self, sent: &Sent) -> Result<(), Reason> {
        if self.is_modern() && self.way() == Way::Http {
            self.door.cut(sent.stream);
            return Ok(());
        }
        let params = json!({ "requestId": sent.id, "reason": "the test has seen enough" });
        self.tell("notifications/cancelled", params)
    }
}

pub(crate) fn call_of(tool: &str, arguments: Value) -> Value {
    json!({ "name": tool, "arguments": arguments })
}

/// The parameters with a progress token.
pub(crate) fn with_progress(mut params: Value, token: &Value) -> Value {
    params["_meta"] = json!({ "progressToken": token });
    params
}

pub(crate) fn text_of(result: &Value) -> Option<&str> {
    result["content"][0]["text"].as_str()
}

/// The beginning of a text, enough to recognize it.
pub(crate) fn shortened(text: &str) -> String {
    text.chars().take(400).collect()
}

fn told(what: &str) -> impl Fn(io::Error) -> Reason {
    let what = what.to_owned();
    move |error| format!("{what}: {error}")
}
