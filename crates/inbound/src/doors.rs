//! The doors, loopback TCP and the gateway's own socket, and the routing of their requests.

use std::{
    future::{Future as _, poll_fn},
    io::Cursor,
    pin::pin,
    sync::Arc,
    task::Poll,
};

use axum::{Router, body::Body as AxumBody};
use hyper::{
    Method, Request, Response, StatusCode,
    body::Incoming,
    header::{CONNECTION, HeaderValue, UPGRADE},
};
use hyper_util::rt::TokioIo;
use switchboard_base::{
    actor::Door,
    caller::{Principal, ProfileId, Realm},
    project::Project,
    view::{Endpoint, Face, View},
};
use switchboard_text::percent;
use switchboard_wire::{code, with_hint};
use tokio::{
    io::AsyncReadExt,
    net::{UnixListener, UnixStream},
    task::JoinSet,
};
use tower_service::Service;

use crate::{
    admission::{Admitted, Credential, Gate, turn_away},
    connection::{self, Entrance, Knock, Visit},
    edge::{
        auth::{Token, TurnedAway},
        body::Answer,
        http,
        pipe::Hangup,
        request_body, sse,
        stall::StallGuard,
    },
    inbound::{Inbound, NoProfile},
    ports::Ports,
    problem::Problem,
    project,
};

/// The `Upgrade` value with which a client on the socket requests a pipe.
pub const PIPE_UPGRADE: &str = "mcp-pipe";
/// The path of that request. The view follows it, as in `/pipe/direct` and `/pipe/s/NAME`.
pub const PIPE_PATH: &str = "/pipe/";

/// The header with the folder that the client works in, percent-encoded.
pub const PIPE_PROJECT: &str = "switchboard-project";

/// The path of requests that change tokens.
const TOKENS: &str = "/api/v1/tokens";

/// The most clients on pipes. Further ones are rejected.
const PIPES_MAX: usize = 16_384;

/// Serves clients through any number of doors.
#[derive(Debug, Clone)]
pub struct Doors(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    inbound: Arc<Inbound>,
    gate: Gate,
    /// Routes for every path except those of MCP.
    router: Router,
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
        let entrance = Arc::new(Entrance::new(Arc::clone(&inbound)));
        let gate = Gate {
            inbound: Arc::clone(&inbound),
            entrance: Arc::clone(&entrance),
            token: Token::new(token),
            is_open,
        };
        Self(Arc::new(Inner {
            inbound,
            gate,
            router,
            entrance,
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
    let admitted = match inner.gate.admit(&visit, mcp.is_some(), &request).await {
        Ok(admitted) => admitted,
        Err(away) => return turn_away(&away, mcp.is_some()),
    };
    let Some((transport, rest)) = mcp else {
        return outside_mcp(&inner, visit, admitted, request).await;
    };
    let endpoint = endpoint(rest);
    let grant = match &admitted.credential {
        Credential::Token(grant) => Some(grant.clone()),
        Credential::Owner | Credential::Session(_) | Credential::None => None,
    };
    // Pinned where it is created, and once for both cases: it is large, and each move would be a copy.
    let mut answering = pin!(to_mcp(
        &inner,
        &visit,
        &admitted,
        (transport, endpoint),
        request
    ));
    let Some(grant) = grant else {
        return answering.await;
    };
    let mut ended = pin!(grant.clone().ended());
    let answered = poll_fn(|cx| match answering.as_mut().poll(cx) {
        // The end of the token also ends the request in other ways.
        Poll::Ready(response) => Poll::Ready(grant.end().map_or(Ok(response), Err)),
        Poll::Pending => ended.as_mut().poll(cx).map(Err),
    });
    match answered.await {
        Ok(response) => response.map(|body| body.until(grant.ended())),
        Err(why) => turn_away(&TurnedAway::from(why).into(), true),
    }
}

/// Answers a request to an MCP address.
async fn to_mcp(
    inner: &Inner,
    visit: &Visit,
    admitted: &Admitted,
    (transport, endpoint): (Transport, Option<Endpoint>),
    request: Request<Incoming>,
) -> Response<Answer> {
    let principal = admitted.principal;
    if matches!(transport, Transport::Sse)
        && let Some(name) = request.uri().path().strip_prefix(sse::MESSAGES)
    {
        let name = name.to_owned();
        return sse_message(&inner.inbound, &name, principal, request).await;
    }
    let Some(endpoint) = endpoint else {
        let message = "there is no such MCP endpoint; try /mcp, /mcp/search, /mcp/direct, /mcp/s/NAME or /mcp/p/PROFILE";
        return http::refuse(StatusCode::NOT_FOUND, code::INVALID_REQUEST, message);
    };
    let held_to = admitted.credential.held_to();
    let realm = match inner.inbound.realm(principal, held_to, &endpoint) {
        Ok(realm) => realm,
        Err(error) => {
            let message = with_hint(&error, Some(NoProfile::HINT));
            return http::refuse(StatusCode::NOT_FOUND, code::INVALID_REQUEST, &message);
        }
    };
    let view = endpoint.view;
    match transport {
        Transport::Streamable => {
            http::serve(
                &inner.inbound,
                view,
                (visit.key, visit.door),
                realm,
                admitted.credential.projects(),
                request,
            )
            .await
        }
        Transport::Sse => {
            let named = project::of_request(request.uri(), admitted.credential.projects()).await;
            match named {
                Ok(project) => {
                    open_sse(&inner.inbound, view, (realm, visit.door), project, &request)
                }
                Err(refused) => http::outside(&refused),
            }
        }
    }
}

/// Answers a request to REST or the console, or opens a pipe.
async fn outside_mcp(
    inner: &Arc<Inner>,
    visit: Arc<Visit>,
    admitted: Admitted,
    request: Request<Incoming>,
) -> Response<Answer> {
    if visit.door == Door::Socket && request.uri().path().starts_with(PIPE_PATH) {
        return pipe(inner, &visit, request);
    }
    let Admitted {
        principal,
        rights,
        actor,
        credential,
    } = admitted;
    let mut router = inner.router.clone();
    let mut request = request.map(AxumBody::new);
    let extensions = request.extensions_mut();
    extensions.insert(Realm {
        principal,
        profile: credential.held_to().map(|name| ProfileId::of(name)),
    });
    extensions.insert(rights);
    extensions.insert(actor);
    extensions.insert(Knock {
        entrance: Arc::clone(&inner.entrance),
        visit,
    });
    if let Credential::Session(session) = &credential {
        extensions.insert(session.clone());
    }
    // A request that ends its own session or token is answered.
    let is_about_tokens = request.uri().path().starts_with(TOKENS);
    let routed = router.call(request);
    let Ok(response) = match &credential {
        Credential::Token(grant) if !is_about_tokens => tokio::select! {
            biased;
            why = grant.clone().ended() => return turn_away(&TurnedAway::from(why).into(), false),
            response = routed => response,
        },
        _ => routed.await,
    };
    let response = response.map(Answer::Page);
    match credential {
        Credential::Session(session) => response.map(|body| body.until(session.ended())),
        Credential::Token(grant) => response.map(|body| body.until(grant.ended())),
        Credential::Owner | Credential::None => response,
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
    (realm, door): (Realm, Door),
    project: Project,
    request: &Request<Incoming>,
) -> Response<Answer> {
    if *request.method() != Method::GET {
        // Newer clients try POST first, and use GET after this status.
        return http::status(StatusCode::METHOD_NOT_ALLOWED);
    }
    sse::open(inbound, view, realm, door, project)
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
    match request_body::read(body, principal).await {
        Ok(body) => sse::message(inbound, name, principal, &parts.headers, body).await,
        Err((status, message)) => http::refuse(status, code::INVALID_REQUEST, &message),
    }
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
    let realm = match inbound.realm(Principal::Owner, None, &endpoint) {
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
