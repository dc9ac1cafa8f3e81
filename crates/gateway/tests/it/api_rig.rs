//! A separate gateway for each test, and a client that speaks as much HTTP as the tests need.

use std::{path::Path, sync::Arc};

use serde_json::{Value, json};
use switchboard_config::{Config, Environment, Home};
use switchboard_gateway::{Gateway, Ports};
use switchboard_test_support::until_async;
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader},
    net::{TcpStream, UnixListener, UnixStream},
    time::timeout,
};

use crate::described::{check_answer, check_event};

pub(crate) use switchboard_test_support::PATIENCE;

pub(crate) const TOKEN: &str = "t0ken";

/// A running gateway that listens on TCP and on its socket.
pub(crate) struct Rig {
    folder: TempDir,
    pub(crate) home: Arc<Home>,
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) port: u16,
    /// The host name and port of the console.
    pub(crate) console: String,
}

/// The fixture: the guard, and servers.
pub(crate) fn program() -> &'static str {
    switchboard_test_support::fixture("gateway_fixture")
}

/// The entry of a server that works.
pub(crate) fn fixture() -> Value {
    json!({ "command": program(), "args": ["mcp"] })
}

/// The entry of a fixture that behaves in another way.
pub(crate) fn fixture_as(mode: &str) -> Value {
    json!({ "command": program(), "args": [mode] })
}

impl Rig {
    /// Starts a gateway with these servers.
    pub(crate) async fn with(servers: Value) -> Self {
        Self::configured(json!({ "mcpServers": servers })).await
    }

    pub(crate) async fn configured(config: Value) -> Self {
        Self::prepared(config, |_| {}).await
    }

    /// Starts a gateway after `prepare` has changed its home. The memory is one of the servers only if the
    /// configuration mentions it.
    pub(crate) async fn prepared(mut config: Value, prepare: impl FnOnce(&Home)) -> Self {
        if config.get("memory").is_none() {
            config["memory"] = json!({ "enabled": false });
        }
        let folder = TempDir::new().unwrap();
        let home = Home::locate(Some(folder.path()), None).unwrap();
        home.create().unwrap();
        std::fs::write(home.config_file(), config.to_string()).unwrap();
        prepare(&home);
        Self::start(folder, Arc::new(home)).await
    }

    /// Stops the gateway and starts another one in the same home, with `prepare` run in between.
    pub(crate) async fn restarted(self, prepare: impl FnOnce(&Home)) -> Self {
        timeout(PATIENCE, self.gateway.stop()).await.unwrap();
        let Self { folder, home, .. } = self;
        let _ = std::fs::remove_file(home.socket());
        prepare(&home);
        Self::start(folder, home).await
    }

    async fn start(folder: TempDir, home: Arc<Home>) -> Self {
        let config = Config::load(home.config_file()).unwrap();
        let environment = Environment::current(None);
        let gateway = Gateway::start(
            Arc::clone(&home),
            config,
            environment,
            Some(program().into()),
        )
        .unwrap();
        let doors = gateway.doors(TOKEN);
        let tcp = Ports::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let port = tcp.address().port();
        let socket = UnixListener::bind(home.socket()).unwrap();
        let second = doors.clone();
        tokio::spawn(doors.serve_tcp(tcp));
        tokio::spawn(async move { second.serve_socket(socket).await });
        let link = gateway.console_link().unwrap();
        let (console, _) = link.split_once("/#").unwrap();
        Self {
            folder,
            home,
            port,
            console: console.strip_prefix("http://").unwrap().to_owned(),
            gateway,
        }
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, None).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Answer {
        self.ask("POST", path, Some(&body.to_string())).await
    }

    pub(crate) async fn call(&self, name: &str, arguments: Value) -> Answer {
        let body = json!({ "name": name, "arguments": arguments });
        self.post("/api/v1/tools/call", &body).await
    }

    /// Sends a request over TCP, with the token.
    pub(crate) async fn ask(&self, method: &str, path: &str, body: Option<&str>) -> Answer {
        let token = format!("Authorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\n");
        self.ask_with(method, path, &token, body.unwrap_or_default())
            .await
    }

    /// Sends a request over TCP, with these headers.
    pub(crate) async fn ask_with(
        &self,
        method: &str,
        path: &str,
        headers: &str,
        body: &str,
    ) -> Answer {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).await.unwrap();
        send(&mut stream, method, path, headers, body).await;
        let answer = Answer::read(stream).await;
        check_answer(method, path, &answer);
        answer
    }

    /// Sends a request over the socket, which requires no token.
    pub(crate) async fn ask_socket(&self, method: &str, path: &str) -> Answer {
        let mut stream = UnixStream::connect(self.home.socket()).await.unwrap();
        send(&mut stream, method, path, "", "").await;
        let answer = Answer::read(stream).await;
        check_answer(method, path, &answer);
        answer
    }

    /// Sends a request over the socket with a body; `None` if the gateway no longer serves it.
    pub(crate) async fn try_ask_socket(
        &self,
        method: &str,
        path: &str,
        body: &str,
    ) -> Option<Answer> {
        let mut stream = UnixStream::connect(self.home.socket()).await.ok()?;
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).await.ok()?;
        stream.write_all(body.as_bytes()).await.ok()?;
        let mut answer = Vec::new();
        timeout(PATIENCE, stream.read_to_end(&mut answer))
            .await
            .unwrap()
            .ok()?;
        if answer.is_empty() {
            return None;
        }
        Some(Answer::read(&*answer).await)
    }

    /// Opens a stream of events.
    pub(crate) async fn follow(&self, path: &str) -> Events {
        self.follow_with(path, "").await
    }

    /// The same, with additional headers.
    pub(crate) async fn follow_with(&self, path: &str, headers: &str) -> Events {
        self.follow_as(TOKEN, path, headers).await
    }

    /// The same with another token.
    pub(crate) async fn follow_as(&self, token: &str, path: &str, headers: &str) -> Events {
        let headers = format!("Authorization: Bearer {token}\r\n{headers}");
        open_stream(self.port, "GET", path, &headers, "").await
    }

    /// Polls a path until its answer meets the condition.
    pub(crate) async fn until(&self, path: &str, so: impl Fn(&Value) -> bool) -> Value {
        until_async(path, async || Some(self.get(path).await.json()).filter(&so)).await
    }

    /// Waits for the tools of a server.
    pub(crate) async fn until_known(&self, server: &str) {
        let path = format!("/api/v1/servers/{server}");
        self.until(&path, |server| server["tools"] == 5).await;
    }

    /// Writes another configuration, and applies it.
    pub(crate) async fn reconfigure(&self, config: &Value) {
        let mut config = config.clone();
        if config.get("memory").is_none() {
            config["memory"] = json!({ "enabled": false });
        }
        std::fs::write(self.config_file(), config.to_string()).unwrap();
        self.reload().await;
    }

    /// Applies the configuration file as it is.
    pub(crate) async fn reload(&self) {
        let answer = self.ask("POST", "/api/v1/config/reload", None).await;
        assert_eq!(answer.status, 200, "{answer:?}");
    }

    /// A connection to the socket.
    pub(crate) async fn knock(&self) -> UnixStream {
        UnixStream::connect(self.home.socket()).await.unwrap()
    }

    pub(crate) fn config_file(&self) -> &Path {
        self.home.config_file()
    }

    /// Stops the gateway and everything it started.
    pub(crate) async fn stop(self) {
        timeout(PATIENCE, self.gateway.stop()).await.unwrap();
    }
}

/// The stream that a request opens.
pub(crate) async fn open_stream(
    port: u16,
    method: &str,
    path: &str,
    headers: &str,
    body: &str,
) -> Events {
    let opened = try_open_stream(port, method, path, headers, body).await;
    opened.unwrap_or_else(|status| panic!("{status}: {path}"))
}

/// The same, or the status of a response that is no stream.
pub(crate) async fn try_open_stream(
    port: u16,
    method: &str,
    path: &str,
    headers: &str,
    body: &str,
) -> Result<Events, u16> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    send(&mut stream, method, path, headers, body).await;
    let mut reader = BufReader::new(stream);
    let (status, headers) = head(&mut reader).await;
    if status != 200 {
        return Err(status);
    }
    assert!(
        headers.contains("content-type: text/event-stream"),
        "{headers}"
    );
    let is_described = path.starts_with("/api/v1/events");
    Ok(Events {
        reader,
        is_described,
    })
}

async fn send(
    stream: &mut (impl AsyncWrite + Unpin),
    method: &str,
    path: &str,
    headers: &str,
    body: &str,
) {
    let host = if headers.to_ascii_lowercase().contains("host:") {
        ""
    } else {
        "Host: localhost\r\n"
    };
    let length = body.len();
    let head = format!(
        "{method} {path} HTTP/1.1\r\n{host}Connection: close\r\nContent-Length: {length}\r\n{headers}\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    // A server that refuses a long body does not read it to its end.
    let _ = stream.write_all(body.as_bytes()).await;
}

/// A response, read to its end.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// In lower case.
    pub(crate) headers: String,
    pub(crate) body: String,
}

impl Answer {
    async fn read(stream: impl AsyncRead + Unpin) -> Self {
        let mut reader = BufReader::new(stream);
        let read = async {
            let (status, headers) = head(&mut reader).await;
            let mut body = Vec::new();
            // A server that refuses a request before its end disconnects after the response.
            let _ = reader.read_to_end(&mut body).await;
            Self {
                status,
                headers,
                body: String::from_utf8(body).unwrap(),
            }
        };
        timeout(PATIENCE, read).await.unwrap()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Checks that this is a problem with this status, and returns its detail.
    #[track_caller]
    pub(crate) fn problem(&self, status: u16) -> String {
        assert_eq!(self.status, status, "{self:?}");
        assert!(
            self.headers
                .contains("content-type: application/problem+json"),
            "{self:?}"
        );
        let problem = self.json();
        assert_eq!(problem["type"], "about:blank");
        assert_eq!(problem["status"], status);
        assert!(problem["title"].is_string(), "{problem}");
        let detail = problem["detail"].as_str().unwrap();
        match problem.get("hint") {
            Some(hint) => format!("{detail}; {}", hint.as_str().unwrap()),
            None => detail.to_owned(),
        }
    }
}

pub(crate) async fn head(reader: &mut (impl AsyncBufReadExt + Unpin)) -> (u16, String) {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert!(reader.read_line(&mut head).await.unwrap() > 0, "{head}");
    }
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, head.to_ascii_lowercase())
}

/// A stream of events.
pub(crate) struct Events {
    reader: BufReader<TcpStream>,
    /// These are events of the gateway, not of MCP, a log or a call.
    is_described: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Event {
    pub(crate) kind: String,
    pub(crate) id: String,
    pub(crate) data: String,
}

impl Events {
    /// The next event; `None` at the end.
    pub(crate) async fn next(&mut self) -> Option<Event> {
        timeout(PATIENCE, self.read()).await.unwrap()
    }

    async fn read(&mut self) -> Option<Event> {
        let mut event = Event::default();
        loop {
            let mut line = String::new();
            if self.reader.read_line(&mut line).await.unwrap() == 0 {
                return None;
            }
            // Lines that frame the chunks of the body are skipped.
            let line = line.trim_end_matches(['\r', '\n']);
            match line.split_once(": ") {
                Some(("event", kind)) => kind.clone_into(&mut event.kind),
                Some(("id", id)) => id.clone_into(&mut event.id),
                Some(("data", data)) => {
                    data.clone_into(&mut event.data);
                    if self.is_described {
                        check_event(&event);
                    }
                    return Some(event);
                }
                _ => {}
            }
        }
    }
}
