//! The doors, loopback TCP and the gateway's own socket, and the routing of their requests.

use std::{io::Cursor, sync::Arc, time::SystemTime};

use axum::{Router, body::Body as AxumBody};
use hyper::{
    Method, Request, Response, StatusCode,
    body::Incoming,
    header::{CONNECTION, HeaderValue, UPGRADE, WWW_AUTHENTICATE},
};
use hyper_util::rt::TokioIo;
use switchboard_base::{
    actor::Door,
    audit::Actor,
    caller::{Principal, Realm},
    view::{Endpoint, Face, View},
};
use switchboard_config::McpAuth;
use switchboard_text::percent;
use switchboard_wire::{code, with_hint};
use tokio::{
    io::AsyncReadExt,
    net::{UnixListener, UnixStream},
    task::JoinSet,
};
use tower_service::Service;

use crate::{
    connection::{self, Entrance, Knock, Visit},
    console_auth::Signed,
    edge::{
        auth::{self, Token, TurnedAway},
        body::{Answer, until},
        http,
        pipe::Hangup,
        sse,
        stall::StallGuard,
    },
    inbound::{Inbound, NoProfile},
    peer::{Peer, Stranger},
    ports::Ports,
    problem::Problem,
};

/// The `Upgrade` value with which a client on the socket requests a pipe.
pub const PIPE_UPGRADE: &str = "mcp-pipe";
/// The path of that request. The view follows it, as in `/pipe/direct` and `/pipe/s/NAME`.
pub const PIPE_PATH: &str = "/pipe/";

/// The header with the folder that the client works in, percent-encoded.
pub const PIPE_PROJECT: &str = "switchboard-project";

/// The most clients on pipes. Further ones are rejected.
const PIPES_MAX: usize = 16_384;

/// Serves clients through any number of doors.
#[derive(Debug, Clone)]
pub struct Doors(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    inbound: Arc<Inbound>,
    token: Token,
    /// Routes for every path except those of MCP.
    router: Router,
    /// Tests if a path of `router` needs no authentication.
    is_open: fn(&str) -> bool,
    entrance: Arc<Entrance>,
}

impl Doors {
    /// Doors to this gateway. Clients over TCP have to present the token.
    pub fn new(
        inbound: Arc<Inbound>,
        token: &str,
        router: Router,
        is_open: fn(&str) -> bool,
    ) -> Self {
        Self(Arc::new(Inner {
            router,
            is_open,
            entrance: Arc::new(Entrance::new(Arc::clone(&inbound))),
            inbound,
            token: Token::new(token),
        }))
    }

    /// Serves clients on this machine until the gateway stops. The address is known to the gateway
    /// as soon as this returns its future.
    pub fn serve_tcp(&self, ports: Ports) -> impl Future<Output = ()> + Send + use<> {
        self.0.inbound.listens(&ports);
        let inner = Arc::clone(&self.0);
        async move {
            let mut accepting = JoinSet::new();
            for listener in ports.listeners {
                let inner = Arc::clone(&inner);
                accepting.spawn(async move {
                    let entrance = Arc::clone(&inner.entrance);
                    let route = move |visit, request| route(Arc::clone(&inner), visit, request);
                    connection::accept_tcp(&entrance, listener, route).await;
                });
            }
            // A task that is cancelled with the runtime has ended as well.
            while accepting.join_next().await.is_some() {}
        }
    }

    /// Serves clients of this user until the gateway stops.
    pub async fn serve_socket(&self, listener: UnixListener) {
        let inner = Arc::clone(&self.0);
        let route = move |visit, request| route(Arc::clone(&inner), visit, request);
        connection::accept_socket(&self.0.entrance, listener, route).await;
    }

    /// Waits until the last responses are sent, for a bounded time.
    pub async fn closed(&self) {
        self.0.entrance.closed().await;
    }
}

async fn route(
    inner: Arc<Inner>,
    visit: Arc<Visit>,
    request: Request<Incoming>,
) -> Response<Answer> {
    let path = request.uri().path();
    if is_well_known(path) {
        return http::status(StatusCode::NOT_FOUND);
    }
    let mcp = under(path, "/mcp").map(|rest| (Transport::Streamable, rest));
    let mcp = mcp.or_else(|| under(path, "/sse").map(|rest| (Transport::Sse, rest)));
    let Admitted {
        principal,
        actor,
        session,
    } = match admit(&inner, &visit, mcp.is_some(), &request).await {
        Ok(admitted) => admitted,
        Err(away) => return turn_away(&away, mcp.is_some()),
    };
    match mcp {
        None => {}
        Some((Transport::Sse, _)) if path.starts_with(sse::MESSAGES) => {
            let name = path[sse::MESSAGES.len()..].to_owned();
            return sse_message(&inner.inbound, &name, principal, request).await;
        }
        Some((transport, rest)) => {
            let Some(endpoint) = endpoint(rest) else {
                let message = "there is no such MCP endpoint; try /mcp, /mcp/search, /mcp/direct, /mcp/s/NAME or /mcp/p/PROFILE";
                return http::refuse(StatusCode::NOT_FOUND, code::INVALID_REQUEST, message);
            };
            let realm = match inner.inbound.realm(principal, &endpoint) {
                Ok(realm) => realm,
                Err(error) => {
                    let message = with_hint(&error, Some(NoProfile::HINT));
                    return http::refuse(StatusCode::NOT_FOUND, code::INVALID_REQUEST, &message);
                }
            };
            let view = endpoint.view;
            return match transport {
                Transport::Streamable => {
                    http::serve(&inner.inbound, view, visit.key, realm, request).await
                }
                Transport::Sse => open_sse(&inner.inbound, view, realm, &request),
            };
        }
    }
    if visit.door == Door::Socket && path.starts_with(PIPE_PATH) {
        return pipe(&inner, &visit, request);
    }
    let mut router = inner.router.clone();
    let mut request = request.map(AxumBody::new);
    let extensions = request.extensions_mut();
    extensions.insert(principal);
    extensions.insert(actor);
    extensions.insert(Knock {
        entrance: Arc::clone(&inner.entrance),
        visit,
    });
    if let Some(session) = &session {
        extensions.insert(session.clone());
    }
    let Ok(response) = router.call(request).await;
    match session {
        Some(session) => response.map(|body| Answer::Page(until(body, session.ended()))),
        None => response.map(Answer::Page),
    }
}

/// The two HTTP transports.
#[derive(Debug, Clone, Copy)]
enum Transport {
    Streamable,
    /// HTTP+SSE of 2024-11-05.
    Sse,
}

fn open_sse(
    inbound: &Arc<Inbound>,
    view: View,
    realm: Realm,
    request: &Request<Incoming>,
) -> Response<Answer> {
    if *request.method() != Method::GET {
        // Newer clients try POST first, and use GET after this status.
        return http::status(StatusCode::METHOD_NOT_ALLOWED);
    }
    sse::open(inbound, view, realm)
}

async fn sse_message(
    inbound: &Inbound,
    name: &str,
    principal: Principal,
    request: Request<Incoming>,
) -> Response<Answer> {
    if *request.method() != Method::POST {
        return http::status(StatusCode::METHOD_NOT_ALLOWED);
    }
    let (parts, body) = request.into_parts();
    match http::read(body, principal).await {
        Ok(body) => sse::message(inbound, name, principal, &parts.headers, body).await,
        Err(response) => *response,
    }
}

/// An admitted request, and its sender.
struct Admitted {
    principal: Principal,
    actor: Actor,
    session: Option<Signed>,
}

/// Checks that a request may come in.
async fn admit(
    inner: &Inner,
    visit: &Visit,
    is_mcp: bool,
    request: &Request<Incoming>,
) -> Result<Admitted, Away> {
    let (principal, session) = match visit.door {
        Door::Socket => (Principal::Owner, None),
        Door::Tcp => admit_tcp(inner, is_mcp, request)?,
    };
    let door = session.as_ref().map_or(visit.door.as_str(), |_| CONSOLE);
    let mut admitted = Admitted {
        principal,
        actor: Actor { door, peer: None },
        session,
    };
    if principal == Principal::Anyone && !is_mcp {
        // An address that any process may use checks the peer itself before it reveals anything.
        return Ok(admitted);
    }
    // Looking up a peer on TCP takes milliseconds, which a client that connects for each call would
    // pay each time. MCP permits only calls, which the rules cover; decisions and changes go over
    // REST.
    if visit.door == Door::Socket || !is_mcp {
        match inner.entrance.peer(visit).await {
            Peer::Welcome(process) => admitted.actor.peer.clone_from(process),
            Peer::Refused(stranger) => return Err(Away::Peer(stranger.clone())),
        }
    }
    // An anonymous client has not authenticated, so it takes no slot from clients that have.
    if principal == Principal::Owner && !visit.know() {
        return Err(Away::Crowd);
    }
    Ok(admitted)
}

/// Checks Host, Origin and token, or a session of the console, which it returns.
fn admit_tcp(
    inner: &Inner,
    is_mcp: bool,
    request: &Request<Incoming>,
) -> Result<(Principal, Option<Signed>), TurnedAway> {
    let console = inner.inbound.console_host();
    auth::check_origin(console, request.uri(), request.headers())?;
    let Err(away) = auth::check_token(&inner.token, request.headers()) else {
        return Ok((Principal::Owner, None));
    };
    // The console reads and decides; it is not an MCP client.
    if let Some(session) = session(inner, request).filter(|_| !is_mcp) {
        auth::check_own_page(console, request.headers())?;
        return Ok((Principal::Owner, Some(session)));
    }
    let is_open = (inner.is_open)(request.uri().path())
        || (is_mcp && inner.inbound.core.config.load().auth.mcp == McpAuth::None);
    if is_open {
        return Ok((Principal::Anyone, None));
    }
    Err(away)
}

/// The door of a client with a session of the console.
pub const CONSOLE: &str = "console";

/// The session of the console that the request presents.
fn session(inner: &Inner, request: &Request<Incoming>) -> Option<Signed> {
    let console = &inner.inbound.console;
    let shown = auth::bearer(request.headers())?;
    console.session(shown, SystemTime::now())
}

/// The reason why a request is rejected before it is handled.
enum Away {
    Gate(TurnedAway),
    Peer(Stranger),
    Crowd,
}

impl From<TurnedAway> for Away {
    fn from(away: TurnedAway) -> Self {
        Self::Gate(away)
    }
}

fn turn_away(away: &Away, is_mcp: bool) -> Response<Answer> {
    let hint = match away {
        Away::Gate(_) => None,
        Away::Peer(stranger) => Some(stranger.hint()),
        Away::Crowd => Some("close some connections, or try again later"),
    };
    let (status, message) = match away {
        Away::Gate(TurnedAway::Host) => (
            StatusCode::FORBIDDEN,
            "this gateway serves only its own machine: the Host header must be a loopback address, or the host name in the link that `switchboard console` prints, which changes at each start",
        ),
        Away::Gate(TurnedAway::Origin) => (
            StatusCode::FORBIDDEN,
            "this gateway refuses requests from other web sites: the Origin header must be a loopback address",
        ),
        Away::Gate(TurnedAway::Page) => (
            StatusCode::FORBIDDEN,
            "a console session works only on the console's own page: Host and Origin must be the address in the link that `switchboard console` prints",
        ),
        Away::Gate(TurnedAway::Token) => (
            StatusCode::UNAUTHORIZED,
            "the token is missing or wrong: send `Authorization: Bearer TOKEN` with the token from `run/token` in the gateway's home",
        ),
        Away::Peer(stranger) => (StatusCode::FORBIDDEN, stranger.message()),
        Away::Crowd => (
            StatusCode::SERVICE_UNAVAILABLE,
            "too many connections are open",
        ),
    };
    let mut response = if is_mcp {
        let message = with_hint(message, hint);
        http::refuse(status, code::INVALID_REQUEST, &message)
    } else {
        let problem = Problem::new(status, message);
        problem.maybe_hint(hint.map(Into::into)).into_answer()
    };
    if matches!(away, Away::Gate(TurnedAway::Token)) {
        let challenge = HeaderValue::from_static("Bearer realm=\"switchboard\"");
        response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
    }
    if matches!(away, Away::Peer(_) | Away::Crowd) {
        let close = HeaderValue::from_static("close");
        response.headers_mut().insert(CONNECTION, close);
    }
    response
}

/// The rest of an MCP path after `root`; `None` for any other path.
fn under<'a>(path: &'a str, root: &str) -> Option<&'a str> {
    let rest = path.strip_prefix(root)?;
    match rest.strip_prefix('/') {
        Some(rest) => Some(rest),
        None => rest.is_empty().then_some(rest),
    }
}

/// Tests if a path asks for metadata of the gateway, of which there is none.
///
/// A client that was rejected for lack of a token looks for it there, without a token. If that were
/// rejected, too, the client would take the gateway for an authorization server.
fn is_well_known(path: &str) -> bool {
    path == "/.well-known" || path.contains("/.well-known/")
}

/// The endpoint that such a path names: a view, alone or after `p/PROFILE`.
fn endpoint(path: &str) -> Option<Endpoint> {
    let Some(rest) = path.strip_prefix("p/") else {
        return view(path).map(Endpoint::from);
    };
    let (profile, rest) = rest.split_once('/').unwrap_or((rest, ""));
    let profile = percent::decode(profile)?;
    (!profile.is_empty()).then_some(())?;
    Some(Endpoint {
        profile: Some((&*profile).into()),
        view: view(rest)?,
    })
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
fn pipe(inner: &Inner, visit: &Visit, mut request: Request<Incoming>) -> Response<Answer> {
    let asked = request.headers().get(UPGRADE).is_some_and(|what| {
        what.as_bytes()
            .eq_ignore_ascii_case(PIPE_UPGRADE.as_bytes())
    });
    if !asked {
        let message = "this address opens a pipe: send the header `Upgrade: mcp-pipe`";
        return Problem::new(StatusCode::UPGRADE_REQUIRED, message).into_answer();
    }
    let path = request.uri().path();
    let Some(endpoint) = endpoint(path.strip_prefix(PIPE_PATH).unwrap_or_default()) else {
        return Problem::new(StatusCode::NOT_FOUND, "there is no such view")
            .hint("try `search`, `direct` or `s/NAME`")
            .into_answer();
    };
    let inbound = Arc::clone(&inner.inbound);
    // The socket is only for the user who runs the gateway.
    let realm = match inbound.realm(Principal::Owner, &endpoint) {
        Ok(realm) => realm,
        Err(error) => {
            return Problem::new(StatusCode::NOT_FOUND, error.to_string())
                .hint(NoProfile::HINT)
                .into_answer();
        }
    };
    if inbound.core.lifecycle.is_stopping() {
        let message = "the gateway is stopping; reconnect to the next instance";
        return Problem::new(StatusCode::SERVICE_UNAVAILABLE, message).into_answer();
    }
    if inbound.pipes() >= PIPES_MAX {
        let message = "too many clients are connected";
        return Problem::new(StatusCode::SERVICE_UNAVAILABLE, message)
            .hint("try again later")
            .into_answer();
    }
    let project = request.headers().get(PIPE_PROJECT);
    let project = project.and_then(|said| Some(percent::decode(said.to_str().ok()?)?.into_owned()));
    let project = project.map(Arc::from);
    // A user may suspend a client on a pipe for any length of time.
    visit.patience.keep();
    let upgrade = hyper::upgrade::on(&mut request);
    tokio::spawn(async move {
        let Ok(upgraded) = upgrade.await else { return };
        // The type that the socket's door accepts.
        let Ok(parts) = upgraded.downcast::<TokioIo<StallGuard<UnixStream>>>() else {
            return;
        };
        let stream = parts.io.into_inner();
        let hangup = Hangup::of(&stream);
        let (reader, writer) = tokio::io::split(stream);
        let pipe = (Cursor::new(parts.read_buf).chain(reader), writer);
        let is_gone = || hangup.is_there();
        let served = inbound.serve_pipe(realm, endpoint.view, project, pipe, is_gone);
        if let Err(error) = served.await {
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
        let endpoint = |path| under(path, "/mcp").and_then(endpoint);
        for (path, profile, of) in [
            ("/mcp/p/work", "work", View::All(Face::Configured)),
            ("/mcp/p/a%2Fb/", "a/b", View::All(Face::Configured)),
            ("/mcp/p/work/direct", "work", View::All(Face::Direct)),
            ("/mcp/p/work/s/files", "work", View::Server("files".into())),
        ] {
            let named = endpoint(path).unwrap();
            assert_eq!(named.profile.as_deref(), Some(profile), "{path}");
            assert_eq!(named.view, of, "{path}");
        }
        for wrong in ["/mcp/p", "/mcp/p/", "/mcp/p//direct", "/mcp/p/work/p/work"] {
            assert_eq!(endpoint(wrong), None, "{wrong}");
        }
        assert_eq!(view("/mcpx"), None);
        assert_eq!(view("/api/v1/status"), None);
    }
}
