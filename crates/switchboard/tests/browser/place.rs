//! A folder of its own for each test, with a gateway and a scripted server, and access to both.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread::{self, JoinHandle},
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use switchboard_test_support::{http::Http, mcp::Client, until};
use tempfile::TempDir;

use crate::{
    browser::Browser,
    http::{self, Answer},
};

const SWITCHBOARD: &str = env!("CARGO_BIN_EXE_switchboard");
const ASKS: &str = include_str!("scripts/asks.py");

/// A gateway with a scripted server. Both end with it.
pub(crate) struct Place {
    dir: TempDir,
    gateway: Child,
    /// `HOST:PORT`.
    pub(crate) address: String,
    /// The sign-in link that the gateway printed.
    pub(crate) link: String,
    /// `NAME:PORT` of the console.
    pub(crate) console: String,
    token: String,
}

impl Place {
    /// Starts a gateway with servers of these names that follow the plan, and these settings.
    pub(crate) fn new(names: &[&str], plan: &Value, settings: &Value) -> Self {
        let place = Self::start(names, &[], plan, settings);
        place.until_known(names.len() * plan["tools"].as_array().unwrap().len());
        place
    }

    /// Starts a gateway with these configured servers, which may fail.
    pub(crate) fn configured(servers: &Value, settings: &Value) -> Self {
        let dir = tempfile::Builder::new().prefix("sb-").tempdir().unwrap();
        fs::create_dir(dir.path().join("home")).unwrap();
        let mut config = json!({ "listen": "127.0.0.1:0", "mcpServers": servers });
        for (key, value) in settings.as_object().unwrap() {
            config[key] = value.clone();
        }
        fs::write(dir.path().join("home/switchboard.json"), config.to_string()).unwrap();
        Self::launch(dir)
    }

    /// Starts a gateway with two such servers: the first is always trusted, the second has to be approved.
    pub(crate) fn hostile([trusted, held]: &[&str; 2], plan: &Value, settings: &Value) -> Self {
        let trust = [(*trusted, "always"), (*held, "ask")];
        let place = Self::start(&[trusted, held], &trust, plan, settings);
        place.until_known(plan["tools"].as_array().unwrap().len() / 2);
        until("tools are held", || {
            let trust = place.get("/api/v1/trust").json();
            trust.to_string().contains("fingerprint")
        });
        place
    }

    /// Starts a gateway with servers of these names, and does not wait for their tools, which may be held.
    pub(crate) fn start(
        names: &[&str],
        trust: &[(&str, &str)],
        plan: &Value,
        settings: &Value,
    ) -> Self {
        let dir = tempfile::Builder::new().prefix("sb-").tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        fs::create_dir(path("home")).unwrap();
        fs::write(path("asks.py"), ASKS).unwrap();
        fs::write(path("plan.json"), plan.to_string()).unwrap();
        let server = json!({
            "command": "python3",
            "args": ["-S", path("asks.py"), path("plan.json"), path("asked.log")],
            "start": "eager",
        });
        let mut servers: Value = names.iter().map(|name| (*name, server.clone())).collect();
        for (name, trust) in trust {
            servers[*name]["trust"] = json!(trust);
        }
        let mut config = json!({ "listen": "127.0.0.1:0", "mcpServers": servers });
        for (key, value) in settings.as_object().unwrap() {
            config[key] = value.clone();
        }
        fs::write(path("home/switchboard.json"), config.to_string()).unwrap();
        Self::launch(dir)
    }

    /// Starts the gateway of a folder.
    fn launch(dir: TempDir) -> Self {
        let path = |name: &str| dir.path().join(name);
        let log = fs::File::create(path("serve.err")).unwrap();
        let mut gateway = Command::new(SWITCHBOARD)
            .arg("--home")
            .arg(path("home"))
            .arg("serve")
            .env_remove("SWITCHBOARD_HOME")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut said = BufReader::new(gateway.stdout.take().unwrap());
        let mut line = |prefix: &str| {
            let mut line = String::new();
            said.read_line(&mut line).unwrap();
            let line = line.trim_end().strip_prefix(prefix);
            line.unwrap_or_else(|| panic!("{}", fs::read_to_string(path("serve.err")).unwrap()))
                .to_owned()
        };
        let address = line("MCP      http://");
        let link = line("Console  ");
        let (console, _) = link.split_once("/#").unwrap();
        let console = console.strip_prefix("http://").unwrap().to_owned();
        line("API ");
        line("Token ");
        let token = fs::read_to_string(path("home/run/token")).unwrap();
        Self {
            gateway,
            address: address.strip_suffix("/mcp").unwrap().to_owned(),
            link,
            console,
            token: token.trim().to_owned(),
            dir,
        }
    }

    /// Stops the gateway, changes its home, and starts it again.
    pub(crate) fn after(mut self, something: impl FnOnce(&Path)) -> Self {
        let gateway = Pid::from_child(&self.gateway);
        kill_process(gateway, Signal::TERM).unwrap();
        self.gateway.wait().unwrap();
        something(&self.path("home"));
        let dir = std::mem::replace(&mut self.dir, TempDir::new().unwrap());
        Self::launch(dir)
    }

    /// Changes the plan that the servers follow.
    pub(crate) fn plan(&self, plan: &Value) {
        fs::write(self.path("plan.json"), plan.to_string()).unwrap();
    }

    /// Runs a command of the program in the home of the gateway, and returns its output.
    pub(crate) fn command(&self, words: &[&str]) -> String {
        let output = Command::new(SWITCHBOARD)
            .arg("--home")
            .arg(self.path("home"))
            .args(words)
            .env_remove("SWITCHBOARD_HOME")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// The result of a tool of the built-in memory.
    #[track_caller]
    pub(crate) fn memory(&self, tool: &str, arguments: &Value) -> Value {
        let call = json!({ "name": format!("memory:{tool}"), "arguments": arguments });
        let mut answer = self.post("/api/v1/tools/call", &call).json();
        assert!(
            answer["structuredContent"].is_object() && answer["isError"] != true,
            "{tool}: {answer}"
        );
        answer["structuredContent"].take()
    }

    fn until_known(&self, tools: usize) {
        until("the tools are known", || {
            let known = self.get("/api/v1/tools").json();
            let known = known["tools"].as_array().unwrap().iter();
            // The built-in memory and the gateway's own tools are always known.
            let is_built_in =
                |tool: &&Value| tool["server"] == "memory" || tool["server"] == "switchboard";
            known.filter(|tool| !is_built_in(tool)).count() >= tools
        });
    }

    pub(crate) fn url(&self, page: &str) -> String {
        format!("http://{}/#{page}", self.console)
    }

    /// Opens the console in a browser, signed in.
    pub(crate) fn open(&self, browser: &Browser) {
        browser.go(&self.link);
        browser.until("!document.getElementById('shell').hidden");
        browser.until_reads("Live");
    }

    fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> Answer {
        let token = format!("Authorization: Bearer {}\r\n", self.token);
        http::ask(&self.address, method, path, &token, body)
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, None)
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Answer {
        self.ask("POST", path, Some(body))
    }

    /// Opens a session of an MCP client with this name, which works in this directory.
    pub(crate) fn client_in(&self, name: &str, project: &Path) -> Client {
        let path = format!("/mcp/direct?project={}", project.display());
        let http = Http::connect(self.address.parse().unwrap(), &self.token);
        Client::try_open_as(http, &path, name).unwrap()
    }

    /// Calls a tool over MCP as a client with this name, without waiting. The result is null if the gateway
    /// did not respond.
    pub(crate) fn call(&self, client: &str, tool: &str, arguments: Value) -> JoinHandle<Value> {
        let (address, token) = (self.address.clone(), self.token.clone());
        let (client, tool) = (client.to_owned(), tool.to_owned());
        thread::spawn(move || {
            let headers = format!(
                "Authorization: Bearer {token}\r\nAccept: application/json, text/event-stream\r\n"
            );
            let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
                "protocolVersion": "2025-06-18", "capabilities": {},
                "clientInfo": { "name": client, "version": "1" } } });
            let answer = http::ask(&address, "POST", "/mcp/direct", &headers, Some(&hello));
            let session = answer.header("mcp-session-id").unwrap();
            let headers = format!("{headers}Mcp-Session-Id: {session}\r\n");
            let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
                "name": tool, "arguments": arguments } });
            let answer = http::ask(&address, "POST", "/mcp/direct", &headers, Some(&call));
            let lines = answer.body.lines();
            let mut said = lines.filter_map(|line| {
                let line = line.strip_prefix("data: ").unwrap_or(line);
                serde_json::from_str::<Value>(line)
                    .ok()
                    .filter(|said| said["id"] == 1)
            });
            // Null, if the gateway is gone.
            said.next().unwrap_or_default()
        })
    }

    /// Calls a tool by its name in the direct view, and waits for it.
    pub(crate) fn call_and_wait(&self, client: &str, tool: &str) -> Value {
        self.call(client, &self.shown_name(tool), json!({}))
            .join()
            .unwrap()
    }

    /// The name that clients see for a tool of the first server.
    pub(crate) fn shown_name(&self, tool: &str) -> String {
        let known = self.get("/api/v1/tools").json();
        let known = known["tools"].as_array().unwrap();
        let found = known.iter().find(|known| known["tool"] == tool);
        let found = found.unwrap_or_else(|| panic!("{tool} is not in {known:?}"));
        found["exposed"]
            .as_str()
            .unwrap_or_else(|| panic!("{found}"))
            .to_owned()
    }

    /// The messages that the server has received so far.
    pub(crate) fn heard(&self) -> Vec<Value> {
        let log = fs::read_to_string(self.path("asked.log")).unwrap_or_default();
        let lines = log.lines();
        lines
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// The pending requests.
    pub(crate) fn waiting(&self) -> Vec<Value> {
        let said = self
            .get("/api/v1/approvals?status=pending&limit=200")
            .json();
        said["approvals"].as_array().unwrap().clone()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if thread::panicking()
            && let Ok(log) = fs::read_to_string(self.path("serve.err"))
        {
            println!("the gateway said:\n{log}");
        }
        let _ = self.gateway.kill();
        let _ = self.gateway.wait();
    }
}
