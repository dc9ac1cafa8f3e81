//! A minimal client over pipes, with a clock.

use std::{
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use switchboard_wire::Era;

use crate::{
    Result,
    gateway::{Watchdog, process},
    stats::percentile,
};

/// The revision of a client that opens a session.
const LEGACY: &str = "2025-11-25";
const MODERN: &str = "2026-07-28";

/// A server and its client.
pub(super) struct Client {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    era: Era,
    next: u64,
    line: Vec<u8>,
    /// Kills the server if the session takes too long.
    watchdog: Option<Watchdog>,
}

impl Client {
    /// Starts the server and initializes the session. The server is killed after `at_most`.
    pub(super) fn open(mut command: Command, era: Era, at_most: Duration) -> Result<Self> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let watchdog = Some(Watchdog::new(&child, at_most));
        let input = child.stdin.take();
        let output = child.stdout.take().ok_or("no pipe from the process")?;
        let mut client = Self {
            child,
            input,
            output: BufReader::with_capacity(1 << 20, output),
            era,
            next: 0,
            line: Vec::new(),
            watchdog,
        };
        if era == Era::Legacy {
            let info = json!({"name": "bench", "version": "0"});
            let params = json!({"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": info});
            client.request("initialize", params)?;
            client.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))?;
        }
        Ok(client)
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    fn say(&mut self, message: &Value) -> Result<()> {
        let mut line = serde_json::to_vec(message)?;
        line.push(b'\n');
        let input = self.input.as_mut().ok_or("the input is already closed")?;
        input.write_all(&line)?;
        Ok(())
    }

    /// Sends a request. Returns the response, and the time until its last byte arrived.
    pub(super) fn request(&mut self, method: &str, mut params: Value) -> Result<(Value, Duration)> {
        self.next += 1;
        if self.era == Era::Modern {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": MODERN,
                "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "0"},
                "io.modelcontextprotocol/clientCapabilities": {},
            });
        }
        let request =
            json!({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params});
        let begin = Instant::now();
        self.say(&request)?;
        loop {
            self.line.clear();
            if self.output.read_until(b'\n', &mut self.line)? == 0 {
                return Err("the process exited without a response".into());
            }
            let took = begin.elapsed();
            let answer: Value = serde_json::from_slice(&self.line)?;
            if answer["id"] == self.next && answer.get("method").is_none() {
                return Ok((answer, took));
            }
        }
    }

    /// Calls a tool, and returns the response, which may be an error.
    pub(super) fn try_call(&mut self, tool: &str, arguments: Value) -> Result<(Value, Duration)> {
        let mut params = json!({ "name": tool });
        params["arguments"] = arguments;
        self.request("tools/call", params)
    }

    /// Calls a tool, and returns its structured result.
    pub(super) fn call(&mut self, tool: &str, arguments: Value) -> Result<(Value, Duration)> {
        let (mut answer, took) = self.try_call(tool, arguments)?;
        let failed = answer.get("error").is_some() || answer["result"]["isError"] == true;
        if failed {
            return Err(format!("{tool}: {answer}").into());
        }
        Ok((answer["result"]["structuredContent"].take(), took))
    }

    /// The same, with the elapsed time and the CPU time of the server recorded.
    pub(super) fn timed(
        &mut self,
        times: &mut Times,
        tool: &str,
        arguments: Value,
    ) -> Result<Value> {
        let before = process::cpu_time(self.pid())?;
        let (answer, took) = self.call(tool, arguments)?;
        let after = process::cpu_time(self.pid())?;
        times.add(took);
        times.add_cpu(after.saturating_sub(before));
        Ok(answer)
    }

    /// Disconnects, and waits until the server has exited.
    pub(super) fn leave(mut self) -> Result<()> {
        self.input = None;
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        if self.input.take().is_some() {
            // This is needed only after a failure, which is being reported.
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
        drop(self.watchdog.take());
    }
}

/// Durations of many repetitions, in milliseconds.
#[derive(Debug, Clone, Default)]
pub(super) struct Times {
    taken: Vec<f64>,
    /// CPU times of the server, which do not depend on other load.
    cpu: Vec<f64>,
}

impl Times {
    pub(super) fn add(&mut self, took: Duration) {
        self.taken.push(took.as_secs_f64() * 1e3);
    }

    pub(super) fn add_cpu(&mut self, used: Duration) {
        self.cpu.push(used.as_secs_f64() * 1e3);
    }

    pub(super) const fn count(&self) -> usize {
        self.taken.len()
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.taken.is_empty()
    }

    /// A percentile of the durations.
    pub(super) fn at(&self, percent: usize) -> f64 {
        of_sorted(&self.taken, percent)
    }

    /// The median of the CPU times, if they were measured.
    pub(super) fn cpu(&self) -> Option<f64> {
        (!self.cpu.is_empty()).then(|| of_sorted(&self.cpu, 50))
    }
}

fn of_sorted(times: &[f64], percent: usize) -> f64 {
    let mut sorted = times.to_vec();
    sorted.sort_by(f64::total_cmp);
    percentile(&sorted, percent)
}
