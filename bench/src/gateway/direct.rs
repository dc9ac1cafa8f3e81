//! No gateway: the load writes directly to the echo server's pipe.

use std::{
    collections::HashMap,
    process::Stdio,
    time::{Duration, Instant},
};

use memchr::memchr_iter;
use serde::Deserialize;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    process::{Child, ChildStdin, ChildStdout, Command},
};

use crate::Result;

/// The echo server and its pipes.
pub(super) struct Pipe {
    input: ChildStdin,
    output: ChildStdout,
    unread: Vec<u8>,
    calls: u64,
    _child: Child,
}

#[derive(Deserialize)]
struct Answer {
    id: u64,
}

impl Pipe {
    pub(super) async fn open(server: &[String]) -> Result<Self> {
        let (program, arguments) = server.split_first().ok_or("no server")?;
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let input = child.stdin.take().ok_or("no pipe to the server")?;
        let output = child.stdout.take().ok_or("no pipe from the server")?;
        let mut pipe = Self {
            input,
            output,
            unread: Vec::new(),
            calls: 0,
            _child: child,
        };
        // The server requires no handshake, so calls can come first.
        pipe.run(1, 1).await?;
        Ok(pipe)
    }

    /// Makes `calls` calls, at most `in_flight` at a time. Returns the duration of each.
    pub(super) async fn run(&mut self, in_flight: usize, calls: usize) -> Result<Vec<Duration>> {
        let mut taken = Vec::with_capacity(calls);
        let mut waiting = HashMap::new();
        let mut lines = Vec::new();
        let mut asked = 0;
        while taken.len() < calls {
            lines.clear();
            let now = Instant::now();
            while waiting.len() < in_flight && asked < calls {
                asked += 1;
                self.calls += 1;
                let id = self.calls;
                let line = format!(
                    "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/call\",\"params\":{{\"name\":\"echo\",\"arguments\":{{\"text\":\"the pipe says the quick brown fox {id}\"}}}}}}\n"
                );
                lines.extend_from_slice(line.as_bytes());
                waiting.insert(id, now);
            }
            self.input.write_all(&lines).await?;
            if self.output.read_buf(&mut self.unread).await? == 0 {
                return Err("the server exited".into());
            }
            let mut done = 0;
            for end in memchr_iter(b'\n', &self.unread) {
                let answer: Answer = serde_json::from_slice(&self.unread[done..end])?;
                done = end + 1;
                let begin = waiting.remove(&answer.id);
                taken.push(begin.ok_or("unexpected response")?.elapsed());
            }
            self.unread.drain(..done);
        }
        Ok(taken)
    }
}
