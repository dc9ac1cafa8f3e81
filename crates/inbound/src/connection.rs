//! Connections: accepted, limited in number, and served until they end.

use std::{convert::Infallible, future::Future, io, pin::pin, sync::Arc, time::Duration};

use futures_util::stream::{FuturesUnordered, StreamExt as _};
use hyper::{
    Request, Response, StatusCode, body::Incoming, server::conn::http1, service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use parking_lot::Mutex;
#[cfg(target_os = "linux")]
use socket2::SockRef;
use switchboard_base::{
    actor::Door,
    audit::{Actor, Event, PeerProcess},
};
use switchboard_contain::Ticks;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream, UnixListener},
    sync::OnceCell,
    time::{sleep, timeout},
};

use crate::{
    edge::{
        body::Answer,
        client_key,
        connection_slots::{ConnectionSlot, ConnectionSlots, LogThrottle},
        stall::{StallGuard, StallPolicy},
    },
    inbound::Inbound,
    lookups::Lookups,
    peer::{Ends, Peer, Stranger},
    problem::Problem,
};

/// The longest time that a client may take to send the head of a request.
const HEAD_PATIENCE: Duration = Duration::from_secs(30);
/// The most bytes of the head of a request. A longer one is answered with 431.
const HEAD_BYTES: usize = 32 * 1024;
/// The time that clients have to read their last responses when the gateway stops.
pub(crate) const LAST_ANSWERS: Duration = Duration::from_millis(500);
/// The most unsent bytes that the system buffers per connection.
#[cfg(target_os = "linux")]
const UNSENT_BYTES: u32 = 256 * 1024;
/// Pause after an error of `accept`, such as a lack of file descriptors.
const ACCEPT_REST: Duration = Duration::from_millis(100);

/// The doors of the gateway and the connections through them.
#[derive(Debug)]
pub(crate) struct Entrance {
    pub(crate) inbound: Arc<Inbound>,
    /// Each door has its own capacity, so clients at one do not wait for clients at the other.
    tcp: Arc<ConnectionSlots>,
    socket: Arc<ConnectionSlots>,
    lookups: Lookups,
    refusals: Mutex<LogThrottle>,
}

/// The far end of a connection, as the system identifies it.
#[derive(Debug, Clone, Copy)]
enum FarEnd {
    Tcp(Ends),
    Socket {
        uid: u32,
        pid: Option<i32>,
        accepted: Ticks,
    },
}

/// One open connection.
#[derive(Debug)]
pub(crate) struct Visit {
    pub(crate) door: Door,
    /// Distinguishes the connection from others.
    pub(crate) key: u64,
    pub(crate) patience: StallPolicy,
    place: ConnectionSlot,
    far_end: FarEnd,
    peer: OnceCell<Peer>,
}

impl Entrance {
    pub(crate) fn new(inbound: Arc<Inbound>) -> Self {
        let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
        Self {
            tcp: ConnectionSlots::for_open_files(limit),
            socket: ConnectionSlots::for_open_files(limit),
            lookups: Lookups::new(inbound.core.deps().containment.clone()),
            inbound,
            refusals: Mutex::default(),
        }
    }

    /// Waits until the last responses are sent, for a bounded time.
    pub(crate) async fn closed(&self) {
        let closed = async {
            self.tcp.empty().await;
            self.socket.empty().await;
        };
        let _ = timeout(LAST_ANSWERS, closed).await;
    }

    fn slots(&self, door: Door) -> &Arc<ConnectionSlots> {
        match door {
            Door::Tcp => &self.tcp,
            Door::Socket => &self.socket,
        }
    }

    /// The process at the other end, looked up once per connection.
    pub(crate) async fn peer<'a>(&self, visit: &'a Visit) -> &'a Peer {
        visit
            .peer
            .get_or_init(|| async {
                let peer = match visit.far_end {
                    FarEnd::Tcp(ends) => self.lookups.on_tcp(ends).await,
                    FarEnd::Socket { uid, pid, accepted } => {
                        self.lookups.on_socket(uid, pid, accepted).await
                    }
                };
                if let Peer::Refused(stranger) = &peer {
                    self.record(visit.door, stranger);
                }
                peer
            })
            .await
    }

    fn record(&self, door: Door, stranger: &Stranger) {
        let peer: Option<PeerProcess> = match stranger {
            Stranger::Server(process) => Some(process.clone()),
            Stranger::User(_) | Stranger::Elsewhere | Stranger::Unknown => None,
        };
        let uid = match stranger {
            Stranger::User(uid) => Some(*uid),
            Stranger::Server(_) | Stranger::Elsewhere | Stranger::Unknown => None,
        };
        let times = self.refusals.lock().count();
        if let Some(times) = times {
            tracing::warn!(
                door = door.as_str(),
                why = stranger.why(),
                ?peer,
                times,
                "Refused a connection."
            );
        }
        self.inbound.core.audit.record(Event {
            what: "peer-refused",
            subject: door.as_str().into(),
            actor: Some(Actor {
                principal: None,
                door: door.as_str(),
                peer,
            }),
            details: serde_json::json!({ "why": stranger.why(), "uid": uid }),
        });
    }
}

/// The connection of a request, for routes that look up the peer only once they know that it
/// matters.
#[derive(Debug, Clone)]
pub struct Knock {
    pub(crate) entrance: Arc<Entrance>,
    pub(crate) visit: Arc<Visit>,
}

impl Knock {
    /// The process at the other end, if the system identifies it; an error if it must not connect.
    pub async fn peer(&self) -> Result<Option<PeerProcess>, Problem> {
        match self.entrance.peer(&self.visit).await {
            Peer::Welcome(process) => Ok(process.clone()),
            Peer::Refused(stranger) => {
                Err(Problem::new(StatusCode::FORBIDDEN, stranger.message()).hint(stranger.hint()))
            }
        }
    }
}

impl Visit {
    /// Marks the client as authenticated. Returns `false` if there are too many such connections.
    pub(crate) fn know(&self, has_token: bool) -> bool {
        self.place.know(has_token)
    }
}

/// Accepts clients over TCP until the gateway stops.
pub(crate) async fn accept_tcp<R, F>(entrance: &Arc<Entrance>, listener: TcpListener, route: R)
where
    R: Fn(Arc<Visit>, Request<Incoming>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response<Answer>> + Send,
{
    let next = || async {
        let (stream, theirs) = listener.accept().await?;
        let ours = stream.local_addr()?;
        // Responses are small and awaited, so they must not wait for more data.
        stream.set_nodelay(true)?;
        bound_unsent(&stream);
        let inode = rustix::fs::fstat(&stream).map_err(io::Error::from)?.st_ino;
        let ends = Ends {
            theirs,
            ours,
            inode,
        };
        Ok((stream, FarEnd::Tcp(ends)))
    };
    accept(entrance, Door::Tcp, next, route).await;
}

/// Accepts clients on the gateway's own socket until the gateway has stopped.
pub(crate) async fn accept_socket<R, F>(entrance: &Arc<Entrance>, listener: UnixListener, route: R)
where
    R: Fn(Arc<Visit>, Request<Incoming>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response<Answer>> + Send,
{
    let next = || async {
        let (stream, _) = listener.accept().await?;
        let cred = stream.peer_cred()?;
        let far_end = FarEnd::Socket {
            uid: cred.uid(),
            pid: cred.pid(),
            accepted: Ticks::now(),
        };
        Ok((stream, far_end))
    };
    accept(entrance, Door::Socket, next, route).await;
}

async fn accept<S, N, R, F>(
    entrance: &Arc<Entrance>,
    door: Door,
    mut next: impl FnMut() -> N,
    route: R,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    N: Future<Output = io::Result<(S, FarEnd)>>,
    R: Fn(Arc<Visit>, Request<Incoming>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response<Answer>> + Send,
{
    let mut stopped = pin!(until(&entrance.inbound, door));
    let mut errors = LogThrottle::default();
    loop {
        let accepted = tokio::select! {
            accepted = next() => accepted,
            () = &mut stopped => return,
        };
        match accepted {
            Ok((stream, far_end)) => {
                let (served, route) = (Arc::clone(entrance), route.clone());
                entrance.slots(door).spawn(|place| async move {
                    let visit = Visit {
                        door,
                        key: client_key(),
                        patience: StallPolicy::default(),
                        place,
                        far_end,
                        peer: OnceCell::new(),
                    };
                    serve(&served, Arc::new(visit), stream, route).await;
                });
            }
            Err(error) => {
                if let Some(times) = errors.count() {
                    tracing::warn!(%error, times, door = door.as_str(), "Cannot accept connections.");
                }
                // File descriptors may have run out, and unauthenticated clients hold some of them.
                entrance.tcp.evict();
                sleep(ACCEPT_REST).await;
            }
        }
    }
}

/// Keeps the system from buffering megabytes for a client that does not read. The gateway keeps
/// unsent messages itself, once for all clients.
fn bound_unsent(stream: &TcpStream) {
    #[cfg(target_os = "linux")]
    if let Err(error) = SockRef::from(stream).set_tcp_notsent_lowat(UNSENT_BYTES) {
        tracing::debug!(%error, "Cannot limit the unsent bytes of a connection.");
    }
    #[cfg(not(target_os = "linux"))]
    let _ = stream;
}

/// Waits for the end of a door: TCP closes when the gateway begins to stop; the socket stays open,
/// so that the owner can watch the gateway stop.
async fn until(inbound: &Inbound, door: Door) {
    match door {
        Door::Tcp => inbound.core.lifecycle.stopped().await,
        Door::Socket => inbound.core.lifecycle.ended().await,
    }
}

async fn serve<S, R, F>(entrance: &Entrance, visit: Arc<Visit>, stream: S, route: R)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    R: Fn(Arc<Visit>, Request<Incoming>) -> F,
    F: Future<Output = Response<Answer>> + Send,
{
    let stream = StallGuard::new(stream, visit.patience.clone());
    let service = service_fn(|request| {
        let (visit, route) = (Arc::clone(&visit), &route);
        // Created where it is awaited, because a future of this size is costly to move.
        async move { Ok::<_, Infallible>(route(visit, request).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_PATIENCE)
        .max_buf_size(HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    let mut connection = pin!(connection);
    // Polled only when it is woken, not whenever the connection is.
    let mut stopped = FuturesUnordered::from_iter([until(&entrance.inbound, visit.door)]);
    let ended = tokio::select! {
        biased;
        ended = &mut connection => Some(ended),
        _ = stopped.next() => None,
    };
    let ended = if let Some(ended) = ended {
        ended
    } else {
        connection.as_mut().graceful_shutdown();
        timeout(LAST_ANSWERS, connection).await.unwrap_or(Ok(()))
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "A connection ended early.");
    }
}
