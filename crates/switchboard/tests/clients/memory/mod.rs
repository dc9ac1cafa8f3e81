//! The built-in memory, as clients on the SDKs see it: on its own over a pipe and over HTTP, and among other
//! servers.
//!
//! The SDKs check every result against the output schema of the tool and fail a call that does not match, so
//! every call here tests that, too.

mod asking;
mod refusals;
mod shared;
mod texts;
mod times;
mod tour;

use serde_json::{Value, json};

use crate::support::{Client, Kind, Place};

/// The way a client reaches the memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    /// `switchboard memory serve`.
    Serve,
    /// `switchboard stdio --view server:memory`, which is equivalent.
    Stdio,
    /// `/mcp/s/memory`.
    Alone,
    /// `/mcp/direct`, where names include the server.
    Direct,
}

impl At {
    const ALL: [Self; 4] = [Self::Serve, Self::Stdio, Self::Alone, Self::Direct];

    fn way(self, place: &Place) -> Value {
        let url = |path: &str| {
            let url = format!("{}{path}", place.url());
            json!({ "url": url, "token": place.token() })
        };
        match self {
            Self::Serve => json!({ "command": place.words(&["memory", "serve"]) }),
            Self::Stdio => json!({ "command": place.stdio(&["--view", "server:memory"]) }),
            Self::Alone => url("/s/memory"),
            Self::Direct => url("/direct"),
        }
    }

    /// The prefix of tool and prompt names, and the prefix of URIs.
    const fn prefixes(self) -> (&'static str, &'static str) {
        match self {
            Self::Direct => ("memory__", "switchboard://memory/"),
            Self::Serve | Self::Stdio | Self::Alone => ("", ""),
        }
    }
}

/// A scripted client of the memory.
struct Agent {
    client: Client,
    at: At,
    name: String,
}

impl Agent {
    /// Connects, and makes the SDK read the list of tools, so that it knows their schemas.
    #[track_caller]
    fn start(place: &Place, kind: Kind, modern: bool, at: At) -> Self {
        Self::start_with(place, kind, modern, at, json!({}))
    }

    /// Starts a client that gives these answers to questions, one after the other.
    #[track_caller]
    fn answering(place: &Place, kind: Kind, modern: bool, at: At, answers: &[Value]) -> Self {
        Self::start_with(place, kind, modern, at, json!({ "elicits": answers }))
    }

    #[track_caller]
    fn start_with(place: &Place, kind: Kind, modern: bool, at: At, more: Value) -> Self {
        let how = json!({ "prefix": "", "modern": modern, "parts": ["obey"] });
        let client = Client::start_with(place, kind, &[at.way(place), how, more]);
        let name = match at {
            At::Serve | At::Stdio | At::Alone => "switchboard-memory",
            At::Direct => "switchboard",
        };
        let revision = if modern { "2026-07-28" } else { "2025-11-25" };
        let connected = json!({ "server": name, "revision": revision });
        client.says("connected", &connected);
        let name = format!("{kind:?} modern:{modern} {at:?}");
        let mut agent = Self { client, at, name };
        agent.tools();
        agent
    }

    /// Runs a step and returns its outcome.
    #[track_caller]
    fn tries(&mut self, wish: &Value) -> Value {
        self.client.tell(&wish.to_string());
        self.client.next()
    }

    /// Runs a step that has to succeed.
    #[track_caller]
    fn does(&mut self, wish: &Value) -> Value {
        let mut line = self.tries(wish);
        assert_eq!(line["step"], "did", "{} {wish}: {line}", self.name);
        line["result"].take()
    }

    /// The SDK's message for a step that fails with a protocol error.
    #[track_caller]
    fn fails(&mut self, wish: &Value) -> String {
        let line = self.tries(wish);
        assert_eq!(line["step"], "failed", "{} {wish}: {line}", self.name);
        line["error"].as_str().expect("what is wrong").to_owned()
    }

    /// The memory's tools under their own names, with their definitions.
    #[track_caller]
    fn tools(&mut self) -> Vec<(String, Value)> {
        let listed = self.does(&json!({ "do": "tools" }));
        let (prefix, _) = self.at.prefixes();
        let tools = listed["tools"].as_array().expect("tools");
        tools
            .iter()
            .filter_map(|tool| {
                let name = tool["name"].as_str()?.strip_prefix(prefix)?;
                Some((name.to_owned(), tool.clone()))
            })
            .collect()
    }

    fn call(&self, tool: &str, args: Value) -> Value {
        let (prefix, _) = self.at.prefixes();
        let mut call = json!({ "do": "call", "name": format!("{prefix}{tool}") });
        call["args"] = args;
        call
    }

    /// The result of a tool, which is the same as structured content and as text.
    #[track_caller]
    fn gives(&mut self, tool: &str, args: Value) -> Value {
        let call = self.call(tool, args);
        let result = self.does(&call);
        self.given(&result)
    }

    #[track_caller]
    fn given(&self, result: &Value) -> Value {
        assert_ne!(result["isError"], true, "{}: {result}", self.name);
        let given = result["structuredContent"].clone();
        let text = result["content"][0]["text"].as_str().expect("text");
        let told: Value = serde_json::from_str(text).expect("JSON");
        assert_eq!(as_floats(&given), as_floats(&told), "{}", self.name);
        given
    }

    /// The message of a tool that reports an error: the call itself succeeds, with the SDK's checks.
    #[track_caller]
    fn refuses(&mut self, tool: &str, args: Value) -> String {
        let call = self.call(tool, args);
        let result = self.does(&call);
        self.refused(&call, &result)
    }

    #[track_caller]
    fn refused(&self, call: &Value, result: &Value) -> String {
        assert_eq!(result["isError"], true, "{} {call}: {result}", self.name);
        let text = result["content"][0]["text"].as_str().expect("text");
        assert!(!text.is_empty(), "{} {call}", self.name);
        text.to_owned()
    }

    /// The text of a resource of the memory.
    #[track_caller]
    fn reads(&mut self, uri: &str) -> String {
        let (_, prefix) = self.at.prefixes();
        let uri = format!("{prefix}{uri}");
        let read = self.does(&json!({ "do": "read", "uri": uri }));
        let contents = &read["contents"][0];
        assert_eq!(contents["uri"], uri, "{}", self.name);
        assert_eq!(contents["mimeType"], "text/markdown", "{}", self.name);
        contents["text"].as_str().expect("text").to_owned()
    }

    /// The text of the memory's prompt.
    #[track_caller]
    fn prompt(&mut self, args: Value) -> String {
        let (prefix, _) = self.at.prefixes();
        let name = format!("{prefix}memory_digest");
        let mut wish = json!({ "do": "prompt", "name": name });
        wish["args"] = args;
        let prompt = self.does(&wish);
        let message = &prompt["messages"][0];
        assert_eq!(message["role"], "user", "{}", self.name);
        message["content"]["text"]
            .as_str()
            .expect("text")
            .to_owned()
    }

    /// Stores a memory, and returns its ID.
    #[track_caller]
    fn stores(&mut self, args: Value) -> String {
        let stored = self.gives("store_memory", args);
        stored["id"].as_str().expect("an id").to_owned()
    }

    #[track_caller]
    fn leaves(mut self) {
        self.client.let_go();
        self.client.leaves();
    }
}

/// The contents of the memories in a result.
#[track_caller]
fn contents(given: &Value) -> Vec<&str> {
    let memories = given["memories"].as_array().expect("memories");
    let contents = memories.iter().map(|memory| memory["content"].as_str());
    contents.map(|content| content.expect("content")).collect()
}

/// The value with every number as a float: not every language distinguishes 1 from 1.0.
fn as_floats(value: &Value) -> Value {
    match value {
        Value::Number(number) => json!(number.as_f64()),
        Value::Array(values) => values.iter().map(as_floats).collect(),
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| (name.clone(), as_floats(value)))
            .collect(),
        other => other.clone(),
    }
}
