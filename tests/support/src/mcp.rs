//! MCP over HTTP, as a client of 2025-06-18 speaks it.

use std::io;

use serde_json::{Value, json};

use crate::http::Http;

/// A client with a session.
pub struct Client {
    pub http: Http,
    pub session: String,
    path: String,
    next_id: u64,
}

/// The outcome of a call: the text of the result, or the error.
pub type Outcome = Result<String, Value>;

impl Client {
    /// Opens a session at the default address.
    pub fn open(http: Http) -> Self {
        Self::try_open_at(http, "/mcp").unwrap()
    }

    pub fn try_open_at(http: Http, path: &str) -> io::Result<Self> {
        Self::try_open_as(http, path, "e2e")
    }

    /// Opens a session as a client with this name.
    pub fn try_open_as(mut http: Http, path: &str, name: &str) -> io::Result<Self> {
        let params = json!({
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": { "name": name, "version": "1.0" },
        });
        let body = request(&json!(0), "initialize", params);
        http.send("POST", path, &[], body.as_bytes())?;
        let answer = http.answer()?;
        let session = answer.header("mcp-session-id").map(str::to_owned);
        let session = session.ok_or_else(|| io::Error::other(answer.text()))?;
        let client = Self {
            http,
            session,
            path: path.to_owned(),
            next_id: 1,
        };
        client.try_tell("notifications/initialized", json!({}))?;
        Ok(client)
    }

    /// Sends a request and returns the complete response, result or error.
    pub fn request(&mut self, method: &str, params: Value) -> Value {
        self.next_id += 1;
        let id = json!(self.next_id);
        self.request_as(&id, method, params)
    }

    pub fn request_as(&mut self, id: &Value, method: &str, params: Value) -> Value {
        self.send(id, method, params).unwrap();
        let answer = self.http.answer().unwrap();
        assert_eq!(answer.status, 200, "{}", answer.text());
        let answer = answer.json();
        assert_eq!(answer["id"], *id, "the answer is another's: {answer}");
        answer
    }

    /// Sends a request without waiting for the response.
    pub fn send(&mut self, id: &Value, method: &str, params: Value) -> io::Result<()> {
        let body = request(id, method, params);
        let headers = [("Mcp-Session-Id", &*self.session)];
        self.http
            .send("POST", &self.path, &headers, body.as_bytes())
    }

    /// Begins a call of a tool.
    pub fn begin(&mut self, id: &Value, tool: &str, arguments: Value) {
        let params = json!({ "name": tool, "arguments": arguments });
        self.send(id, "tools/call", params).unwrap();
    }

    /// Waits for the end of a call that was begun.
    pub fn finish(&mut self) -> Outcome {
        outcome(&self.http.answer().unwrap().json())
    }

    /// Calls a tool.
    pub fn call(&mut self, tool: &str, arguments: Value) -> Outcome {
        let params = json!({ "name": tool, "arguments": arguments });
        outcome(&self.request("tools/call", params))
    }

    /// Calls a tool of a gateway that may be killed meanwhile.
    pub fn try_call(&mut self, tool: &str, arguments: Value) -> io::Result<Outcome> {
        self.next_id += 1;
        let params = json!({ "name": tool, "arguments": arguments });
        self.send(&json!(self.next_id), "tools/call", params)?;
        Ok(outcome(&self.http.answer()?.json()))
    }

    /// The names of all tools.
    pub fn tools(&mut self) -> Vec<String> {
        let mut names = Vec::new();
        let mut cursor = Value::Null;
        loop {
            let params = match &cursor {
                Value::Null => json!({}),
                cursor => json!({ "cursor": cursor }),
            };
            let answer = self.request("tools/list", params);
            let result = &answer["result"];
            for tool in result["tools"].as_array().unwrap() {
                names.push(tool["name"].as_str().unwrap().to_owned());
            }
            cursor = result["nextCursor"].clone();
            if cursor.is_null() {
                return names;
            }
        }
    }

    /// Sends a notification over its own connection: the session's may be waiting for a response.
    pub fn tell(&mut self, method: &str, params: Value) {
        self.try_tell(method, params).unwrap();
    }

    fn try_tell(&self, method: &str, params: Value) -> io::Result<()> {
        let body = json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string();
        let headers = [("Mcp-Session-Id", &*self.session)];
        let mut http = self.http.try_again()?;
        http.send("POST", &self.path, &headers, body.as_bytes())?;
        let answer = http.answer()?;
        assert_eq!(answer.status, 202, "{}", answer.text());
        Ok(())
    }

    /// Ends the session.
    pub fn end(mut self) {
        let headers = [("Mcp-Session-Id", &*self.session)];
        let answer = self.http.ask("DELETE", &self.path, &headers, b"");
        assert!(answer.status < 300, "{}", answer.text());
    }

    /// Opens the stream of messages that belong to no request.
    pub fn listen(&self) -> Events {
        let mut http = self.http.again();
        let headers = [
            ("Mcp-Session-Id", &*self.session),
            ("Accept", "text/event-stream"),
        ];
        http.send("GET", &self.path, &headers, b"").unwrap();
        let head = http.head().unwrap();
        assert_eq!(head.status, 200);
        Events {
            http,
            text: String::new(),
        }
    }

    /// A client in the same session, over another connection.
    pub fn beside(&self) -> Self {
        Self {
            http: self.http.again(),
            session: self.session.clone(),
            path: self.path.clone(),
            next_id: self.next_id + 1_000_000,
        }
    }
}

/// A stream of events.
pub struct Events {
    http: Http,
    text: String,
}

impl Events {
    /// The events of this connection, whose head has been read.
    pub fn of(http: Http) -> Self {
        let text = String::new();
        Self { http, text }
    }

    /// The next message; `None` at the end of the stream.
    pub fn next(&mut self) -> Option<Value> {
        loop {
            if let Some((event, rest)) = self.text.split_once("\n\n") {
                let data = event.lines().find_map(|line| line.strip_prefix("data:"));
                let message = data.map(|data| serde_json::from_str(data).unwrap());
                self.text = rest.to_owned();
                match message {
                    Some(message) => return Some(message),
                    None => continue,
                }
            }
            let chunk = self.http.chunk().unwrap()?;
            self.text.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }

    /// Waits for a notification of this method.
    #[track_caller]
    pub fn until(&mut self, method: &str) {
        loop {
            let message = self.next().expect("the stream ended");
            if message["method"] == method {
                return;
            }
        }
    }
}

pub fn request(id: &Value, method: &str, params: Value) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
}

/// The text of a result, or the error.
pub fn outcome(answer: &Value) -> Outcome {
    if let Some(error) = answer.get("error") {
        return Err(error.clone());
    }
    let text = &answer["result"]["content"][0]["text"];
    Ok(text.as_str().unwrap_or_default().to_owned())
}
