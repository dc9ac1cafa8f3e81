//! Runs a fixture in this process: over pipes, like a child process, or on a port.

use std::{
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll},
    time::Duration,
};

use hyper::server::conn::http1;
use hyper_util::{rt::TokioIo, service::TowerToHyperService};
use rmcp::{
    ServiceExt,
    transport::streamable_http_server::{
        SessionManager, StreamableHttpServerConfig, StreamableHttpService,
        session::local::LocalSessionManager,
    },
};
use switchboard_client::stdio::{Process, ProcessGuard, Spawn, Spawning};
use tokio::{
    net::TcpListener,
    task::{AbortHandle, JoinHandle, JoinSet},
};

use super::Fixture;

/// Starts the fixture as if it were a child process.
#[derive(Clone)]
pub(crate) struct OverPipes {
    fixture: Fixture,
    running: Arc<Mutex<Option<AbortHandle>>>,
}

impl OverPipes {
    pub(crate) fn new(fixture: &Fixture) -> Self {
        Self {
            fixture: fixture.clone(),
            running: Arc::default(),
        }
    }

    pub(crate) fn fixture(&self) -> &Fixture {
        &self.fixture
    }

    /// Kills the running fixture.
    pub(crate) fn kill(&self) {
        let running = self.running.lock().expect("sound").take();
        running.expect("there is one").abort();
    }
}

/// The capacity of a pipe.
const PIPE: usize = 64 * 1024;

impl Spawn for OverPipes {
    fn spawn(&self) -> Spawning {
        let (stdin, input) = tokio::io::duplex(PIPE);
        let (output, stdout) = tokio::io::duplex(PIPE);
        let fixture = self.fixture.clone();
        let task = tokio::spawn(async move {
            if let Ok(running) = fixture.serve((input, output)).await {
                let _ = running.waiting().await;
            }
        });
        *self.running.lock().expect("sound") = Some(task.abort_handle());
        let process = Process {
            stdin: Box::new(stdin),
            stdout: Box::new(stdout),
            guard: Box::new(Guard(task)),
        };
        Box::pin(std::future::ready(Ok(process)))
    }

    fn describe(&self) -> String {
        "a fixture".to_owned()
    }
}

// Dropping it does nothing: its input has ended by then, and the fixture exits.
struct Guard(JoinHandle<()>);

impl ProcessGuard for Guard {
    fn poll_exit(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        Pin::new(&mut self.0).poll(cx).map(|_| ())
    }

    fn explain(&self) -> String {
        "the fixture ended".to_owned()
    }
}

/// The fixture on a port, for the duration of the test.
pub(crate) struct OnPort {
    port: u16,
    sessions: Arc<LocalSessionManager>,
}

impl OnPort {
    /// Serves with sessions for the older revisions, and streams.
    pub(crate) async fn listen(fixture: &Fixture) -> Self {
        // Clients should reconnect soon after they lose a stream.
        let retry = Some(Duration::from_millis(50));
        let config = StreamableHttpServerConfig::default().with_sse_retry(retry);
        Self::configured(fixture, config).await
    }

    /// Serves without sessions, and with plain JSON where possible.
    pub(crate) async fn listen_plainly(fixture: &Fixture) -> Self {
        let config = StreamableHttpServerConfig::default();
        let config = config
            .with_legacy_session_mode(false)
            .with_json_response(true);
        Self::configured(fixture, config).await
    }

    async fn configured(fixture: &Fixture, config: StreamableHttpServerConfig) -> Self {
        let fixture = fixture.clone();
        let sessions = Arc::new(LocalSessionManager::default());
        let manager = Arc::clone(&sessions);
        let service = StreamableHttpService::new(move || Ok(fixture.clone()), manager, config);
        let listener = TcpListener::bind("127.0.0.1:0")
            .await
            .expect("there is a free port");
        let port = listener.local_addr().expect("it has an address").port();
        tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let service = TowerToHyperService::new(service.clone());
                connections.spawn(async move {
                    let stream = TokioIo::new(stream);
                    let _ = http1::Builder::new()
                        .serve_connection(stream, service)
                        .await;
                });
            }
        });
        Self { port, sessions }
    }

    /// Drops every session.
    pub(crate) async fn forget(&self) {
        let sessions: Vec<_> = self
            .sessions
            .sessions
            .read()
            .await
            .keys()
            .cloned()
            .collect();
        assert!(!sessions.is_empty(), "there is nothing to forget");
        for session in sessions {
            self.sessions
                .close_session(&session)
                .await
                .expect("it is there");
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/mcp", self.port)
    }
}
