//! The doors: loopback TCP and the gateway's own socket, and which way each request goes from there.

use std::{
    convert::Infallible,
    future::Future,
    io,
    pin::pin,
    sync::Arc,
    time::{Duration, SystemTime},
};

use axum::{Router, body::Body as AxumBody};
use hyper::{
    Method, Request, Response, StatusCode,
    body::Incoming,
    header::{CONNECTION, HeaderValue, UPGRADE, WWW_AUTHENTICATE},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
#[cfg(target_os = "linux")]
use socket2::SockRef;
use switchboard_config::McpAuth;
use switchboard_wire::{code, percent};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream, UnixListener},
    sync::Semaphore,
    time::{sleep, timeout},
};
use tower_service::Service;

use crate::{
    api,
    caller::Principal,
    console,
    edge::{
        body::Answer,
        client_key,
        gate::{self, Token, TurnedAway},
        http,
        patience::{Patience, Patient},
        sse,
    },
    gateway::Gateway,
    problem::Problem,
    view::{Face, View},
};

/// The word by which a client on the socket asks for a pipe.
pub const PIPE_UPGRADE: &str = "mcp-pipe";
/// Where it asks; the view comes after it, as in `/pipe/direct` and `/pipe/s/NAME`.
pub const PIPE_PATH: &str = "/pipe/";

/// The header in which it says in which folder its client works, percent-encoded.
pub const PIPE_PROJECT: &str = "switchboard-project";

/// The most connections at a time. Further ones wait to be accepted.
const CONNECTIONS_MAX: usize = 8_192;
/// With so many clients no further pipe is opened.
const PIPES_MAX: usize = 16_384;
/// A client may take so long to send the head of a request.
const HEAD_PATIENCE: Duration = Duration::from_secs(30);
/// When the gateway stops, answers under way are given so long to be read.
const LAST_ANSWERS: Duration = Duration::from_millis(500);
/// So much waits in the system for a client to take it.
#[cfg(target_os = "linux")]
const UNSENT_BYTES: u32 = 256 * 1024;
/// After an error to accept (out of file descriptors, say) the door rests.
const ACCEPT_REST: Duration = Duration::from_millis(100);

/// Serves clients through any number of doors.
#[derive(Debug, Clone)]
pub struct Doors(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    gateway: Arc<Gateway>,
    token: Token,
    router: Router,
    /// A place for each connection, by door: strangers at one do not shut the other.
    tcp: Arc<Semaphore>,
    socket: Arc<Semaphore>,
}

/// Which door a client came through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Door {
    /// Anyone on this machine can knock: they show the token.
    Tcp,
    /// Only this user can reach it.
    Socket,
}

impl Doors {
    /// Doors to this gateway. Who comes over TCP has to show the token.
    pub fn new(gateway: Arc<Gateway>, token: &str) -> Self {
        Self(Arc::new(Inner {
            router: api::router(&gateway),
            gateway,
            token: Token::new(token),
            tcp: Arc::new(Semaphore::new(CONNECTIONS_MAX)),
            socket: Arc::new(Semaphore::new(CONNECTIONS_MAX)),
        }))
    }

    /// Serves clients on this machine until the gateway stops.
    pub async fn serve_tcp(&self, listener: TcpListener) {
        if let Ok(address) = listener.local_addr() {
            self.0.gateway.set_address(address);
        }
        self.accept(Door::Tcp, || async {
            let (stream, _) = listener.accept().await?;
            // Answers are small and awaited: they must not wait for more to come.
            stream.set_nodelay(true)?;
            bound_unsent(&stream);
            Ok(stream)
        })
        .await;
    }

    /// Serves clients of this user until the gateway stops.
    pub async fn serve_socket(&self, listener: UnixListener) {
        self.accept(Door::Socket, || async { Ok(listener.accept().await?.0) })
            .await;
    }

    /// Waits until the last answers are out, bounded.
    pub async fn closed(&self) {
        let all = u32::try_from(CONNECTIONS_MAX).unwrap_or(u32::MAX);
        let closed = async {
            let _tcp = self.0.tcp.acquire_many(all).await;
            let _socket = self.0.socket.acquire_many(all).await;
        };
        let _ = timeout(LAST_ANSWERS, closed).await;
    }

    async fn accept<S, F>(&self, door: Door, mut next: impl FnMut() -> F)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
        F: Future<Output = io::Result<S>>,
    {
        let mut stopped = pin!(until(&self.0.gateway, door));
        loop {
            let places = Arc::clone(match door {
                Door::Tcp => &self.0.tcp,
                Door::Socket => &self.0.socket,
            });
            let next = async {
                // The semaphore is never closed.
                let place = places.acquire_owned().await.ok();
                (place, next().await)
            };
            let (place, stream) = tokio::select! {
                next = next => next,
                () = &mut stopped => return,
            };
            match stream {
                Ok(stream) => {
                    let connection = connection(Arc::clone(&self.0), door, stream);
                    tokio::spawn(async move {
                        connection.await;
                        drop(place);
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "Cannot accept a connection.");
                    sleep(ACCEPT_REST).await;
                }
            }
        }
    }
}

/// Keeps the system from taking megabytes for a client that does not read: what it cannot take is kept
/// once for all, here.
fn bound_unsent(stream: &TcpStream) {
    #[cfg(target_os = "linux")]
    if let Err(error) = SockRef::from(stream).set_tcp_notsent_lowat(UNSENT_BYTES) {
        tracing::debug!(%error, "Cannot bound what waits to be sent.");
    }
    #[cfg(not(target_os = "linux"))]
    let _ = stream;
}

/// How long a door serves: strangers until the gateway stops; its owner can watch it stop.
async fn until(gateway: &Gateway, door: Door) {
    match door {
        Door::Tcp => gateway.stopped().await,
        Door::Socket => gateway.ended().await,
    }
}

async fn connection<S>(inner: Arc<Inner>, door: Door, stream: S)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let key = client_key();
    let patience = Patience::default();
    let stream = Patient::new(stream, patience.clone());
    let service = service_fn(|request| {
        let (inner, patience) = (Arc::clone(&inner), &patience);
        async move { Ok::<_, Infallible>(route(&inner, door, key, patience, request).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_PATIENCE)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    let mut connection = pin!(connection);
    let ended = tokio::select! {
        ended = &mut connection => Some(ended),
        () = until(&inner.gateway, door) => None,
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

async fn route(
    inner: &Arc<Inner>,
    door: Door,
    key: u64,
    patience: &Patience,
    request: Request<Incoming>,
) -> Response<Answer> {
    let path = request.uri().path();
    let mcp = under(path, "/mcp").map(|rest| (Transport::Streamable, rest));
    let mcp = mcp.or_else(|| under(path, "/sse").map(|rest| (Transport::Sse, rest)));
    let principal = match door {
        Door::Socket => Principal::Owner,
        Door::Tcp => match admit(inner, mcp.is_some(), &request) {
            Ok(principal) => principal,
            Err(away) => return turn_away(away, mcp.is_some()),
        },
    };
    match mcp {
        None => {}
        Some((Transport::Sse, _)) if path.starts_with(sse::MESSAGES) => {
            let name = path[sse::MESSAGES.len()..].to_owned();
            return sse_message(&inner.gateway, &name, principal, request).await;
        }
        Some((transport, rest)) => {
            let Some(view) = view(rest) else {
                let message = "there is no such MCP address; try /mcp, /mcp/search, /mcp/direct or /mcp/s/NAME";
                return http::refuse(StatusCode::NOT_FOUND, code::INVALID_REQUEST, message);
            };
            return match transport {
                Transport::Streamable => {
                    http::serve(&inner.gateway, view, key, principal, request).await
                }
                Transport::Sse => open_sse(&inner.gateway, view, principal, &request),
            };
        }
    }
    if door == Door::Socket && path.starts_with(PIPE_PATH) {
        return pipe(inner, request);
    }
    let mut router = inner.router.clone();
    let mut request = request.map(AxumBody::new);
    request.extensions_mut().insert(door);
    request.extensions_mut().insert(patience.clone());
    let Ok(response) = router.call(request).await;
    response.map(Answer::Page)
}

/// Which of the two HTTP transports an address is for.
#[derive(Debug, Clone, Copy)]
enum Transport {
    Streamable,
    /// The one of 2024-11-05.
    Sse,
}

fn open_sse(
    gateway: &Arc<Gateway>,
    view: View,
    principal: Principal,
    request: &Request<Incoming>,
) -> Response<Answer> {
    if *request.method() != Method::GET {
        // Newer clients try to POST first, and take this as the word to use GET.
        return http::status(StatusCode::METHOD_NOT_ALLOWED);
    }
    sse::open(gateway, view, principal)
}

async fn sse_message(
    gateway: &Gateway,
    name: &str,
    principal: Principal,
    request: Request<Incoming>,
) -> Response<Answer> {
    if *request.method() != Method::POST {
        return http::status(StatusCode::METHOD_NOT_ALLOWED);
    }
    let (parts, body) = request.into_parts();
    match http::read(body).await {
        Ok(body) => sse::message(gateway, name, principal, &parts.headers, body).await,
        Err(response) => *response,
    }
}

/// Whether a request may come in, and whose it is.
fn admit(
    inner: &Inner,
    is_mcp: bool,
    request: &Request<Incoming>,
) -> Result<Principal, TurnedAway> {
    gate::check_origin(request.uri(), request.headers())?;
    let open = api::is_open(request.uri().path())
        || (is_mcp && inner.gateway.context().config.load().auth.mcp == McpAuth::None);
    match gate::check_token(&inner.token, request.headers()) {
        Ok(()) => Ok(Principal::Owner),
        Err(_) if open => Ok(Principal::Anyone),
        // The console looks and decides; it is no client of MCP.
        Err(_) if !is_mcp && has_session(inner, request) => {
            gate::check_own_page(request.headers()).map(|()| Principal::Owner)
        }
        Err(away) => Err(away),
    }
}

/// Whether a session of the console is shown.
fn has_session(inner: &Inner, request: &Request<Incoming>) -> bool {
    let seal = &inner.gateway.context().lasting_seal;
    gate::bearer(request.headers())
        .is_some_and(|shown| console::is_session(seal, shown, SystemTime::now()))
}

fn turn_away(away: TurnedAway, is_mcp: bool) -> Response<Answer> {
    let (status, message) = match away {
        TurnedAway::Host => (
            StatusCode::FORBIDDEN,
            "this gateway serves its own machine only: the Host header has to be a loopback address",
        ),
        TurnedAway::Origin => (
            StatusCode::FORBIDDEN,
            "this gateway does not serve foreign web pages: the Origin header has to be a loopback address",
        ),
        TurnedAway::Page => (
            StatusCode::FORBIDDEN,
            "a session of the console is for the console's own page: the Origin header has to be this gateway's own address",
        ),
        TurnedAway::Token => (
            StatusCode::UNAUTHORIZED,
            "a token is wanted: send `Authorization: Bearer TOKEN` with the token that is in run/token of the gateway's home",
        ),
    };
    let mut response = if is_mcp {
        http::refuse(status, code::INVALID_REQUEST, message)
    } else {
        Problem::new(status, message).into_answer()
    };
    if away == TurnedAway::Token {
        let challenge = HeaderValue::from_static("Bearer realm=\"switchboard\"");
        response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
    }
    response
}

/// What comes after this in an MCP address; `None` for any other path.
fn under<'a>(path: &'a str, root: &str) -> Option<&'a str> {
    let rest = path.strip_prefix(root)?;
    match rest.strip_prefix('/') {
        Some(rest) => Some(rest),
        None => rest.is_empty().then_some(rest),
    }
}

/// The view that such a path names: the configured one, `search`, `direct`, or `s/NAME`.
fn view(path: &str) -> Option<View> {
    match path.trim_end_matches('/') {
        "" => Some(View::All(Face::Configured)),
        "direct" => Some(View::All(Face::Direct)),
        "search" => Some(View::All(Face::Search)),
        path => {
            let name = percent::decode(path.strip_prefix("s/")?)?;
            (!name.is_empty()).then(|| View::Server((&*name).into()))
        }
    }
}

/// Turns a connection on the socket into a pipe.
fn pipe(inner: &Arc<Inner>, mut request: Request<Incoming>) -> Response<Answer> {
    let asked = request.headers().get(UPGRADE).is_some_and(|what| {
        what.as_bytes()
            .eq_ignore_ascii_case(PIPE_UPGRADE.as_bytes())
    });
    if !asked {
        let message = "this address opens a pipe: ask with `Upgrade: mcp-pipe`";
        return Problem::new(StatusCode::UPGRADE_REQUIRED, message).into_answer();
    }
    let path = request.uri().path();
    let Some(view) = view(path.strip_prefix(PIPE_PATH).unwrap_or_default()) else {
        let message = "there is no such view; try `search`, `direct` or `s/NAME`";
        return Problem::new(StatusCode::NOT_FOUND, message).into_answer();
    };
    let gateway = Arc::clone(&inner.gateway);
    if gateway.is_stopping() {
        let message = "the gateway is stopping; the next one takes you in";
        return Problem::new(StatusCode::SERVICE_UNAVAILABLE, message).into_answer();
    }
    if gateway.clients() >= PIPES_MAX {
        let message = "too many clients are there already; try again later";
        return Problem::new(StatusCode::SERVICE_UNAVAILABLE, message).into_answer();
    }
    let project = request.headers().get(PIPE_PROJECT);
    let project = project.and_then(|said| Some(percent::decode(said.to_str().ok()?)?.into_owned()));
    let project = project.map(Arc::from);
    let upgrade = hyper::upgrade::on(&mut request);
    tokio::spawn(async move {
        let Ok(upgraded) = upgrade.await else { return };
        let (reader, writer) = tokio::io::split(TokioIo::new(upgraded));
        if let Err(error) = gateway.serve_pipe(view, project, reader, writer).await {
            tracing::debug!(%error, "A pipe ended early.");
        }
    });
    let mut response = Response::new(Answer::empty());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(UPGRADE, HeaderValue::from_static(PIPE_UPGRADE));
    headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_name_views() {
        let view = |path| under(path, "/mcp").map(view);
        let server = |name: &str| Some(Some(View::Server(name.into())));
        let all = |face| Some(Some(View::All(face)));
        for (path, face) in [
            ("/mcp", Face::Configured),
            ("/mcp/", Face::Configured),
            ("/mcp/direct", Face::Direct),
            ("/mcp/direct/", Face::Direct),
            ("/mcp/search", Face::Search),
        ] {
            assert_eq!(view(path), all(face), "{path}");
        }
        assert_eq!(view("/mcp/s/files"), server("files"));
        assert_eq!(view("/mcp/s/My%20Server"), server("My Server"));
        for wrong in [
            "/mcp/s/",
            "/mcp/s/%ff",
            "/mcp/s/%4",
            "/mcp/s/a%+5",
            "/mcp/other",
        ] {
            assert_eq!(view(wrong), Some(None), "{wrong}");
        }
        assert_eq!(view("/mcpx"), None);
        assert_eq!(view("/api/v1/status"), None);
    }
}
