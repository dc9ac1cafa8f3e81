//! The bare pipes: lines in, lines out, without parsing. The lower bound for the cost of a call.

use std::{io::Write, process::Stdio, sync::Arc};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    process::{Child, ChildStdin, ChildStdout, Command},
};

use super::{
    SERVE,
    load::{Load, MESSAGE, METHOD, TOOL},
};
use crate::Result;

pub(super) struct Bare {
    pub(super) stdin: ChildStdin,
    pub(super) stdout: ChildStdout,
    /// Killed when this is dropped.
    _child: Child,
}

impl Bare {
    pub(super) fn open() -> Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .arg(SERVE)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        Ok(Self {
            stdin: child.stdin.take().ok_or("no pipe to the child")?,
            stdout: child.stdout.take().ok_or("no pipe from the child")?,
            _child: child,
        })
    }

    /// Keeps up the load, and returns the number of calls.
    pub(super) async fn run(mut self, load: Arc<Load>) -> Result<(Self, u32)> {
        let mut line = Vec::new();
        write_line(&mut line, 123_456);
        let burst = line.repeat(load.in_flight);
        let mut buffer = Vec::with_capacity(64 * 1024);
        let mut calls = 0;
        let mut waiting = 0;
        let mut answered = load.in_flight;
        loop {
            let next = (0..answered).take_while(|_| load.more()).count();
            self.stdin.write_all(&burst[..next * line.len()]).await?;
            waiting += next;
            if waiting == 0 {
                return Ok((self, calls));
            }
            buffer.clear();
            if self.stdout.read_buf(&mut buffer).await? == 0 {
                return Err("the child exited".into());
            }
            answered = memchr::memchr_iter(b'\n', &buffer).count();
            waiting -= answered;
            calls += u32::try_from(answered)?;
        }
    }
}

/// Writes the same line that the library sends.
pub(super) fn write_line(out: &mut Vec<u8>, id: u64) {
    // A write to memory does not fail.
    let _ = writeln!(
        out,
        "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{METHOD}\",\"params\":{{\"name\":\"{TOOL}\",\"arguments\":{{\"message\":\"{MESSAGE}\"}}}}}}"
    );
}
