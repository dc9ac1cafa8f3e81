//! Starts servers: as children of the client, or on a port.

use std::{
    ffi::{OsStr, OsString},
    net::TcpListener,
    path::{Path, PathBuf},
    process::Stdio as StdStdio,
};

use switchboard_client::stdio::{Command, Stdio};
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, BufReader},
    process::Child,
    time::timeout,
};

use super::{Marked, PATIENCE, Record};

/// A server program.
#[derive(Clone)]
pub(crate) struct Program {
    executable: PathBuf,
    args: Vec<OsString>,
    env: Vec<(String, OsString)>,
    /// Its standard error and, if that does not carry messages, its standard output.
    pub(crate) said: Record<String>,
    pub(crate) mark: Marked,
}

impl Program {
    pub(crate) fn new(executable: PathBuf) -> Self {
        let mark = Marked::new();
        Self {
            executable,
            args: Vec::new(),
            env: vec![(Marked::VARIABLE.to_owned(), mark.value().into())],
            said: Record::default(),
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

    pub(crate) fn executable(&self) -> &Path {
        &self.executable
    }

    pub(crate) fn args(&self) -> &[OsString] {
        &self.args
    }

    /// The server as a child of the client.
    pub(crate) fn stdio(&self) -> Stdio {
        let said = self.said.clone();
        let command = Command::new(&self.executable).args(&self.args);
        let command = self
            .env
            .iter()
            .fold(command, |command, (name, value)| command.env(name, value));
        Stdio::new(command.on_stderr(move |line| said.push(line.to_owned())))
    }

    /// Starts the server on a port of its own choice, which it prints after `ready`.
    pub(crate) async fn listen(self, ready: &str) -> Server {
        let server = self.start();
        let line = server.said.wait_line(ready).await;
        let rest = line.split_once(ready).expect("the line was found by it").1;
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        let port = digits.parse().expect("a port follows");
        Server { port, ..server }
    }

    /// Starts the server on the port in its variable `PORT`: this one, or a free one.
    pub(crate) async fn listen_on(self, port: Option<u16>, ready: &str) -> Server {
        // Another process may take the port before the server does.
        for _ in 0..3 {
            let port = port.unwrap_or_else(free_port);
            let said = Record::default();
            let program = Self {
                said,
                ..self.clone()
            }
            .env("PORT", port.to_string());
            let mut server = program.start();
            let is_up = tokio::select! {
                _ = server.said.wait_line(ready) => true,
                _ = server.child.wait() => false,
            };
            if is_up {
                return Server { port, ..server };
            }
        }
        panic!("the server does not start");
    }

    fn start(self) -> Server {
        let mut child = tokio::process::Command::new(&self.executable)
            .args(&self.args)
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .stdin(StdStdio::null())
            .stdout(StdStdio::piped())
            .stderr(StdStdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("the server starts");
        let stdout = child.stdout.take().expect("it has a standard output");
        let stderr = child.stderr.take().expect("it has a standard error");
        tokio::spawn(write_down(stdout, self.said.clone()));
        tokio::spawn(write_down(stderr, self.said.clone()));
        Server {
            child,
            port: 0,
            said: self.said,
        }
    }
}

async fn write_down(output: impl AsyncRead + Unpin, said: Record<String>) {
    let mut lines = BufReader::new(output).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        said.push(line);
    }
}

/// A server on a port. Killed when dropped.
pub(crate) struct Server {
    child: Child,
    pub(crate) port: u16,
    /// Its output.
    pub(crate) said: Record<String>,
}

impl Server {
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// Kills it.
    pub(crate) async fn kill(&mut self) {
        let killed = timeout(PATIENCE, self.child.kill()).await;
        killed.expect("it dies").expect("it is ours");
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
    listener.local_addr().expect("it has an address").port()
}
