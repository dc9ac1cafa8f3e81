//! A server whose behaviour a test controls while it runs.

use std::{fs, path::PathBuf};

use serde_json::{Value, json};
use switchboard_test_support::until_async;
use tempfile::TempDir;
use tokio::{io::AsyncWriteExt, net::UnixStream};

use crate::{
    api_rig::{Rig, program},
    mcp_rig::LIST_CHANGED,
};

/// A server that reads its behaviour from a directory.
pub(crate) struct Stage {
    folder: TempDir,
}

/// A tool with an unconstrained schema.
pub(crate) fn tool(name: &str, description: &str) -> Value {
    json!({ "name": name, "description": description, "inputSchema": { "type": "object" } })
}

/// `count` tools, each with a unique word.
pub(crate) fn many_tools(count: usize) -> Vec<Value> {
    (0..count)
        .map(|n| tool(&format!("tool_{n}"), &format!("Does the work number{n}.")))
        .collect()
}

impl Stage {
    pub(crate) fn new(tools: &[Value]) -> Self {
        let stage = Self {
            folder: TempDir::new().unwrap(),
        };
        for folder in ["results", "answers"] {
            fs::create_dir(stage.path(folder)).unwrap();
        }
        stage.set_tools(tools);
        stage
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Its entry in a configuration. It runs all the time.
    pub(crate) fn entry(&self) -> Value {
        let folder = self.folder.path();
        json!({ "command": program(), "args": ["stage", folder], "start": "eager" })
    }

    /// The same, with additional settings.
    pub(crate) fn entry_with(&self, settings: &Value) -> Value {
        let mut entry = self.entry();
        for (name, value) in settings.as_object().unwrap() {
            entry[name] = value.clone();
        }
        entry
    }

    /// The same as a server of 2026-07-28.
    pub(crate) fn modern_entry(&self) -> Value {
        let folder = self.folder.path();
        self.entry_with(&json!({ "args": ["stage", folder, "modern"] }))
    }

    /// The same as a server of both eras.
    pub(crate) fn entry_of_both(&self) -> Value {
        let folder = self.folder.path();
        self.entry_with(&json!({ "args": ["stage", folder, "both"] }))
    }

    /// The same, started on first use.
    pub(crate) fn lazy_entry(&self) -> Value {
        self.entry_with(&json!({ "start": "lazy" }))
    }

    /// Sets the tools that it offers from now on, without a notification.
    pub(crate) fn set_tools(&self, tools: &[Value]) {
        self.set("tools.json", &Value::from(tools).to_string());
    }

    pub(crate) fn set_tools_text(&self, tools: &str) {
        self.set("tools.json", tools);
    }

    pub(crate) fn set_prompts(&self, prompts: &Value) {
        self.set("prompts.json", &prompts.to_string());
    }

    pub(crate) fn set_resources(&self, resources: &Value) {
        self.set("resources.json", &resources.to_string());
    }

    pub(crate) fn set_templates(&self, templates: &Value) {
        self.set("resourceTemplates.json", &templates.to_string());
    }

    /// Makes it hold its response to requests for this list (`tools`), until it is released.
    pub(crate) fn hold_list(&self, what: &str) {
        self.set(&format!("{what}.hold"), "");
    }

    pub(crate) fn release_list(&self, what: &str) {
        self.release(&format!("{what}.hold"));
    }

    /// Removes a file.
    pub(crate) fn release(&self, name: &str) {
        fs::remove_file(self.path(name)).unwrap();
    }

    /// Makes it respond with an error to requests for this list.
    pub(crate) fn fail_list(&self, what: &str) {
        self.set(&format!("{what}.fail"), "");
    }

    pub(crate) fn mend_list(&self, what: &str) {
        fs::remove_file(self.path(&format!("{what}.fail"))).unwrap();
    }

    pub(crate) fn set_instructions(&self, text: &str) {
        self.set("instructions.txt", text);
    }

    /// Sets its server info, verbatim.
    pub(crate) fn set_info(&self, info: &str) {
        self.set("info.json", info);
    }

    /// Sets the result of a tool, verbatim. It has to be on one line.
    pub(crate) fn set_result(&self, tool: &str, result: &str) {
        self.set(&format!("results/{tool}.json"), result);
    }

    /// Makes it hold its responses to calls of a tool, until it is released.
    pub(crate) fn hold_calls(&self, tool: &str) {
        self.set(&format!("results/{tool}.hold"), "");
    }

    pub(crate) fn release_calls(&self, tool: &str) {
        self.release(&format!("results/{tool}.hold"));
    }

    /// Sets a question that a tool asks without waiting for the answer: the question and the result of the
    /// call go out in one write.
    pub(crate) fn set_unawaited(&self, tool: &str, id: &str, params: &Value) {
        let method = "elicitation/create";
        let line = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.set(&format!("results/{tool}.before"), &line.to_string());
    }

    /// Sets the `"result":…` or `"error":…` with which it responds to a method, verbatim.
    pub(crate) fn set_answer(&self, method: &str, answer: &str) {
        let file = format!("answers/{}.json", method.replace('/', "."));
        self.set(&file, answer);
    }

    /// Writes a file for it.
    pub(crate) fn set(&self, name: &str, text: &str) {
        // The server never reads a partial file.
        let new = self.path("new");
        fs::write(&new, text).unwrap();
        fs::rename(new, self.path(name)).unwrap();
    }

    /// Makes the server announce that its tools have changed.
    pub(crate) async fn tell_changed(&self) {
        self.tell(LIST_CHANGED).await;
    }

    /// Makes the server send a notification.
    pub(crate) async fn tell(&self, method: &str) {
        self.tell_with(method, json!({})).await;
    }

    /// The same with parameters.
    pub(crate) async fn tell_with(&self, method: &str, params: Value) {
        self.send(json!({ "jsonrpc": "2.0", "method": method, "params": params }))
            .await;
    }

    /// Makes the server send a request.
    pub(crate) async fn request(&self, id: u64, method: &str) {
        self.send(json!({ "jsonrpc": "2.0", "id": id, "method": method }))
            .await;
    }

    /// The same with parameters.
    pub(crate) async fn request_with(&self, id: u64, method: &str, params: Value) {
        self.send(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
            .await;
    }

    async fn send(&self, line: Value) {
        let mut control = UnixStream::connect(self.path("control")).await.unwrap();
        control
            .write_all(format!("{line}\n").as_bytes())
            .await
            .unwrap();
    }

    /// Ends the server, as a crash would.
    pub(crate) async fn die(&self) {
        let mut control = UnixStream::connect(self.path("control")).await.unwrap();
        control.write_all(b"die\n").await.unwrap();
    }

    /// The calls of a tool that arrived, as the server read them.
    pub(crate) fn calls_of(&self, tool: &str) -> Vec<Value> {
        let asked = self.asked();
        let calls = asked
            .iter()
            .filter_map(|line| line.strip_prefix("tools/call "));
        let calls = calls.map(|params| serde_json::from_str::<Value>(params).unwrap());
        calls.filter(|params| params["name"] == tool).collect()
    }

    /// Offers these tools from now on, and announces the change.
    pub(crate) async fn change_tools(&self, tools: &[Value]) {
        self.set_tools(tools);
        self.tell_changed().await;
    }

    /// The requests that it has received.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked_in("asked")
    }

    /// The same in one era (`older`, `newer`), of a server of both.
    pub(crate) fn asked_in(&self, era: &str) -> Vec<String> {
        let log = fs::read_to_string(self.path(&format!("{era}.log"))).unwrap_or_default();
        log.lines().map(str::to_owned).collect()
    }

    /// Tests if its process in this era is running.
    pub(crate) fn is_up_in(&self, era: &str) -> bool {
        let control = self.path(&format!("{era}.control"));
        std::os::unix::net::UnixStream::connect(control).is_ok()
    }

    /// Ends its process in this era, as a crash would.
    pub(crate) async fn die_in(&self, era: &str) {
        let control = self.path(&format!("{era}.control"));
        let mut control = UnixStream::connect(control).await.unwrap();
        control.write_all(b"die\n").await.unwrap();
    }

    /// Makes its process in this era send a notification.
    pub(crate) async fn tell_in(&self, era: &str, method: &str, params: Value) {
        let control = self.path(&format!("{era}.control"));
        let mut control = UnixStream::connect(control).await.unwrap();
        let line = json!({ "jsonrpc": "2.0", "method": method, "params": params });
        let line = format!("{line}\n");
        control.write_all(line.as_bytes()).await.unwrap();
    }

    /// The number of calls to its tools.
    pub(crate) fn calls(&self) -> usize {
        let asked = self.asked();
        let calls = asked.iter().filter(|line| line.starts_with("tools/call "));
        calls.count()
    }

    /// Waits until it receives a message that contains this text.
    pub(crate) async fn until_asked(&self, what: &str) -> String {
        let find = async || self.asked().into_iter().find(|line| line.contains(what));
        until_async(what, find).await
    }
}

impl Rig {
    /// Waits until `count` tools of a server are shown.
    pub(crate) async fn until_tools(&self, server: &str, count: usize) {
        let path = format!("/api/v1/servers/{server}");
        self.until(&path, |server| server["tools"] == count).await;
    }

    /// The trust status of a server.
    pub(crate) async fn trust(&self, server: &str) -> Value {
        let path = format!("/api/v1/trust?server={server}");
        self.get(&path).await.json()["servers"][0].clone()
    }

    /// Waits until an item of a server is held, and returns it.
    pub(crate) async fn until_held(&self, server: &str, tool: &str) -> Value {
        let path = format!("/api/v1/trust?server={server}");
        let held = |trust: &Value| {
            let held = trust["servers"][0]["held"].as_array().unwrap().iter();
            held.clone().find(|held| held["tool"] == tool).cloned()
        };
        let trust = self.until(&path, |trust| held(trust).is_some()).await;
        held(&trust).unwrap()
    }
}
