//! Starting servers: as children of the client, or on a port.

use std::{
    ffi::{OsStr, OsString},
    net::TcpListener,
    path::{Path, PathBuf},
    process::Stdio as StdStdio,
};

use switchboard_client::stdio::{Command, Stdio};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::Child,
    time::timeout,
};

use super::{Marked, Record, SOON};

/// A program that is a server.
#[derive(Clone)]
pub(crate) struct Program {
    program: PathBuf,
    args: Vec<OsString>,
    env: Vec<(String, OsString)>,
    /// What it says on standard error.
    pub(crate) stderr: Record<String>,
    pub(crate) mark: Marked,
}

impl Program {
    pub(crate) fn new(program: PathBuf) -> Self {
        let mark = Marked::new();
        Self {
            program,
            args: Vec::new(),
            env: vec![(Marked::VARIABLE.to_owned(), mark.value().into())],
            stderr: Record::default(),
            mark,
        }
    }

    pub(crate) fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.args.push(arg.as_ref().to_owned());
        self
    }

    pub(crate) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.env.push((name.to_owned(), value.as_ref().to_owned()));
        self
    }

    pub(crate) fn program(&self) -> &Path {
        &self.program
    }

    pub(crate) fn args(&self) -> &[OsString] {
        &self.args
    }

    /// The server as a child of the client.
    pub(crate) fn stdio(&self) -> Stdio {
        let stderr = self.stderr.clone();
        let command = Command::new(&self.program).args(&self.args);
        let command = self
            .env
            .iter()
            .fold(command, |command, (name, value)| command.env(name, value));
        Stdio::new(command.on_stderr(move |line| stderr.push(line.to_owned())))
    }

    /// Starts the server on a port of its own choice, which it names after `ready`.
    pub(crate) async fn listen(self, ready: &str) -> Server {
        let server = self.start();
        let line = server.stderr.wait_line(ready).await;
        let rest = line.split_once(ready).expect("the line was found by it").1;
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        let port = digits.parse().expect("a port follows");
        Server { port, ..server }
    }

    /// Starts the server on a free port, given in `PORT`, and waits for it to say `ready`.
    pub(crate) async fn listen_on_free_port(self, ready: &str) -> Server {
        // Between finding a port and the server taking it, somebody else may.
        for _ in 0..3 {
            let port = free_port();
            let program = Self { stderr: Record::default(), ..self.clone() };
            let mut server = program.env("PORT", port.to_string()).start();
            let is_up = tokio::select! {
                _ = server.stderr.wait_line(ready) => true,
                _ = server.child.wait() => false,
            };
            if is_up {
                return Server { port, ..server };
            }
        }
        panic!("the server does not start");
    }

    fn start(self) -> Server {
        let mut child = tokio::process::Command::new(&self.program)
            .args(&self.args)
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .stdin(StdStdio::null())
            .stdout(StdStdio::null())
            .stderr(StdStdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("the server starts");
        let stderr = child.stderr.take().expect("it has a standard error");
        let record = self.stderr.clone();
        tokio::spawn(async move {
            let mut lines = BufReader::new(stderr).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                record.push(line);
            }
        });
        Server { child, port: 0, stderr: self.stderr }
    }
}

/// A server on a port. Killed when dropped.
pub(crate) struct Server {
    child: Child,
    pub(crate) port: u16,
    /// What it says on standard error.
    pub(crate) stderr: Record<String>,
}

impl Server {
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// Kills it, without warning.
    pub(crate) async fn kill(&mut self) {
        let killed = timeout(SOON, self.child.kill()).await;
        killed.expect("it dies").expect("it is ours");
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
    listener.local_addr().expect("it has an address").port()
}
