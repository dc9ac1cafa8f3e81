//! A client like that of an agent: over stdio, one request at a time.

use std::{
    io::{BufRead, BufReader, Lines, Write},
    path::Path,
    process::{Child, ChildStdout, Command, Stdio},
    time::Duration,
};

use serde_json::{Value, json};

use super::Result;

pub(super) struct Agent {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    asked: u64,
    /// Bytes of requests and responses so far.
    pub(super) wire: usize,
    pub(super) instructions: String,
}

impl Agent {
    /// Starts the program as a client of a view, and initializes the session.
    pub(super) fn start(program: &Path, home: &Path, view: &str) -> Result<Self> {
        let mut command = Command::new(program);
        command.arg("--home").arg(home);
        command.args(["stdio", "--view", view]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn()?;
        let mut agent = Self {
            lines: BufReader::new(child.stdout.take().ok_or("no pipe")?).lines(),
            child,
            asked: 0,
            wire: 0,
            instructions: String::new(),
        };
        let own = json!({"name": "eval", "version": "0"});
        let opening =
            json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": own});
        let opened = agent.ask("initialize", &opening)?;
        let said = opened["instructions"].as_str().map(str::to_owned);
        agent.instructions = said.unwrap_or_default();
        agent.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))?;
        Ok(agent)
    }

    /// Sends a request and returns its result. Retries while the server is not ready.
    pub(super) fn ask(&mut self, method: &str, params: &Value) -> Result<Value> {
        self.asked += 1;
        let before = self.wire;
        self.send(
            &json!({"jsonrpc": "2.0", "id": self.asked, "method": method, "params": params}),
        )?;
        loop {
            let line = self.lines.next().ok_or("the program exited")??;
            let mut message: Value = serde_json::from_str(&line)?;
            if message["id"] != self.asked {
                continue;
            }
            if let Some(wait) = message["error"]["data"]["retryAfterMs"].as_u64() {
                std::thread::sleep(Duration::from_millis(wait));
                self.wire = before;
                return self.ask(method, params);
            }
            self.wire += line.len();
            return match message["result"].take() {
                Value::Null => Err(format!("{method} {params}: {message}").into()),
                result => Ok(result),
            };
        }
    }

    fn send(&mut self, message: &Value) -> Result<()> {
        let line = format!("{message}\n");
        self.wire += line.len();
        self.child
            .stdin
            .as_mut()
            .ok_or("no pipe")?
            .write_all(line.as_bytes())?;
        Ok(())
    }

    /// All tools, page by page.
    pub(super) fn list(&mut self) -> Result<Vec<Value>> {
        let (mut all, mut params) = (Vec::new(), json!({}));
        loop {
            let mut page = self.ask("tools/list", &params)?;
            all.extend(
                page["tools"]
                    .as_array_mut()
                    .map(std::mem::take)
                    .unwrap_or_default(),
            );
            match page["nextCursor"].take() {
                Value::Null => return Ok(all),
                cursor => params = json!({"cursor": cursor}),
            }
        }
    }

    /// Ends the session, and waits for the program to exit.
    pub(super) fn leave(mut self) -> Result<()> {
        drop(self.child.stdin.take());
        self.child.wait()?;
        Ok(())
    }
}
