//! The clients' side of the gateway: connected clients, and the addresses that the gateway listens
//! on.

use std::{
    net::SocketAddr,
    sync::{Arc, OnceLock, Weak},
    time::SystemTime,
};

use switchboard_base::{
    caller::{Principal, Realm},
    error::cut,
    view::{Endpoint, View},
};
use switchboard_core::{core::Core, session::Session, tokens::Clients};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::watch,
};

use crate::{
    console_auth::{Console, Signed, no_console},
    edge::{
        pipe,
        sessions::{Sessions, sweep_pause},
        sse,
    },
    ports::Ports,
    project,
};

/// The clients, and the doors that they come in by.
#[derive(Debug)]
pub struct Inbound {
    /// The layer below.
    pub core: Arc<Core>,
    pub(crate) sessions: Sessions,
    pub(crate) sse: sse::Streams,
    /// The sessions of the console.
    pub console: Console,
    /// The number of clients on pipes.
    pipes: watch::Sender<usize>,
    listening: OnceLock<Listening>,
}

/// There is no profile with this name.
#[derive(Debug, thiserror::Error)]
#[error("there is no profile `{}`", cut(.0))]
pub struct NoProfile(Arc<str>);

impl NoProfile {
    /// Advice for the user, apart from the message.
    pub const HINT: &str = "`profiles` in the configuration lists the profiles";
}

/// The address for HTTP.
#[derive(Debug)]
struct Listening {
    address: SocketAddr,
    /// The name and port of the console, or the address at which another program has the port.
    console: Result<Box<str>, SocketAddr>,
}

impl Inbound {
    /// `None` if the system provides no random numbers.
    pub fn new(core: Arc<Core>) -> Option<Arc<Self>> {
        let inbound = Arc::new(Self {
            sessions: Sessions::new({
                let core = Arc::clone(&core);
                move |caller| core.client_left(caller)
            }),
            core,
            sse: sse::Streams::default(),
            console: Console::new()?,
            pipes: watch::Sender::new(0),
            listening: OnceLock::new(),
        });
        let clients = Arc::downgrade(&inbound);
        inbound.core.tokens.set_clients(clients);
        tokio::spawn(sweep_sessions(Arc::downgrade(&inbound)));
        Some(inbound)
    }

    /// The realm of a principal at an endpoint. `held_to` is the profile that it is held to, which needs no mention.
    pub fn realm(
        &self,
        principal: Principal,
        held_to: Option<&Arc<str>>,
        endpoint: &Endpoint,
    ) -> Result<Realm, NoProfile> {
        let find = |name: &Arc<str>| {
            let profile = self.core.scopes.profile(principal, name);
            profile.ok_or_else(|| NoProfile(Arc::clone(name)))
        };
        let name = endpoint.profile.as_ref().or(held_to);
        let profile = name.map(find).transpose()?;
        Ok(Realm { principal, profile })
    }

    /// Serves a client on a pipe until it leaves, or `is_gone` returns `true`, which is noticed
    /// even if nothing is read. `project` is the folder that it works in, if known.
    pub async fn serve_pipe(
        &self,
        realm: Realm,
        view: View,
        project: Option<Arc<str>>,
        (reader, writer): (
            impl AsyncRead + Unpin + Send,
            impl AsyncWrite + Unpin + Send + 'static,
        ),
        is_gone: impl Fn() -> bool + Send,
    ) -> std::io::Result<()> {
        let _present = Present::new(self);
        let core = Arc::clone(&self.core);
        let project = project::of_process(project).await;
        pipe::serve(core, realm, view, project, reader, writer, is_gone).await
    }

    /// Counts a client as connected until the future completes.
    pub(crate) async fn attend(&self, client: impl Future<Output = ()>) {
        let _present = Present::new(self);
        client.await;
    }

    /// The number of connected clients, without silent ones that may have left.
    pub fn clients(&self) -> usize {
        let sessions = self.sessions.count();
        sessions.saturating_sub(self.silent().len()) + self.pipes()
    }

    /// The clients that have been silent for a while and may have left.
    pub fn silent(&self) -> Vec<Arc<Session>> {
        self.sessions.silent()
    }

    /// The number of clients with a pipe or a stream of their own.
    pub(crate) fn pipes(&self) -> usize {
        *self.pipes.borrow()
    }

    /// Subscribes to the number of those clients.
    pub fn watch_pipes(&self) -> watch::Receiver<usize> {
        self.pipes.subscribe()
    }

    /// Records the address that the gateway listens on, the first time.
    pub(crate) fn listens(&self, ports: &Ports) {
        let console = match ports.taken {
            Some(taken) => {
                tracing::warn!("The console is not available: {}.", no_console(taken));
                Err(taken)
            }
            None => Ok(self.console.host(ports.address.port())),
        };
        let _ = self.listening.set(Listening {
            address: ports.address,
            console,
        });
    }

    /// The address for HTTP.
    pub fn address(&self) -> Option<SocketAddr> {
        self.listening.get().map(|listening| listening.address)
    }

    /// The name and port of the console, as a browser sends them.
    pub fn console_host(&self) -> Option<&str> {
        self.listening.get()?.console.as_deref().ok()
    }

    /// The address at which another program has the port, so that there is no console.
    pub fn console_taken(&self) -> Option<SocketAddr> {
        self.listening.get()?.console.as_ref().err().copied()
    }

    /// A one-time link to the console, which ends with `session` if that is given; `None` if there
    /// is no console, or the system provides no random numbers.
    pub fn console_link(&self, session: Option<&Signed>) -> Option<String> {
        let host = self.console_host()?;
        let key = self.console.key(session, SystemTime::now())?;
        Some(format!("http://{host}/#sign-in={key}"))
    }
}

impl Clients for Inbound {
    fn expel(&self, principal: Principal) {
        self.sessions.end_of(principal);
        self.sse.end_of(principal);
        self.core.drop_calls_of(principal);
        self.core.audience.prune();
    }
}

/// Ends idle sessions, and removes expired results, at intervals.
async fn sweep_sessions(inbound: Weak<Inbound>) {
    loop {
        let idle = || Some(inbound.upgrade()?.core.config.load().sessions.idle);
        let Some(pause) = idle().map(sweep_pause) else {
            return;
        };
        tokio::time::sleep(pause).await;
        let (Some(inbound), Some(idle)) = (inbound.upgrade(), idle()) else {
            return;
        };
        let ended = inbound.sessions.sweep(idle);
        let core = Arc::clone(&inbound.core);
        if ended > 0 {
            tracing::debug!(ended, "Ended idle sessions.");
            // Entries of ended sessions would keep their memory.
            core.audience.prune();
        }
        tokio::task::spawn_blocking(move || core.results.sweep(&core.config.load()));
    }
}

/// A client on a pipe.
struct Present<'a>(&'a Inbound);

impl<'a> Present<'a> {
    fn new(inbound: &'a Inbound) -> Self {
        inbound.pipes.send_modify(|pipes| *pipes += 1);
        Self(inbound)
    }
}

impl Drop for Present<'_> {
    fn drop(&mut self) {
        self.0.pipes.send_modify(|pipes| *pipes -= 1);
    }
}
