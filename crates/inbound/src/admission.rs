//! The admission of requests: the principal behind each, its rights, and the response to one that is not admitted.

use std::{sync::Arc, time::SystemTime};

use hyper::{
    Request, Response, StatusCode,
    body::Incoming,
    header::{CONNECTION, HeaderValue, WWW_AUTHENTICATE},
};
use switchboard_base::{actor::Door, audit::Actor, caller::Principal};
use switchboard_config::McpAuth;
use switchboard_core::tokens::Grant;
use switchboard_tokens::{Right, Rights};
use switchboard_wire::{code, with_hint};

use crate::{
    connection::{Entrance, Visit},
    console_auth::Signed,
    edge::{
        auth::{self, Token, TurnedAway},
        body::Answer,
        http,
    },
    inbound::Inbound,
    peer::{Peer, Stranger},
    problem::Problem,
    project::Choice,
};

/// The door of a client with a session of the console.
pub const CONSOLE: &str = "console";

/// An admitted request, and its sender.
pub(crate) struct Admitted {
    pub(crate) principal: Principal,
    pub(crate) rights: Rights,
    pub(crate) actor: Actor,
    pub(crate) credential: Credential,
}

/// The credential of a request.
#[derive(Clone)]
pub(crate) enum Credential {
    /// The gateway's own token, or the socket.
    Owner,
    /// A session of the console.
    Session(Signed),
    /// A token that the owner created.
    Token(Grant),
    /// Nothing.
    None,
}

impl Credential {
    fn principal(&self) -> Principal {
        match self {
            Self::Owner | Self::Session(_) => Principal::Owner,
            Self::Token(grant) => grant.principal(),
            Self::None => Principal::Anyone,
        }
    }

    /// The directories that its requests may name as their project.
    pub(crate) fn projects(&self) -> Choice<'_> {
        match self {
            Self::Owner | Self::Session(_) => Choice::Any,
            Self::Token(grant) => grant.project().map_or(Choice::OfToken, Choice::Within),
            Self::None => Choice::OfAnyone,
        }
    }

    /// The name of the profile that it is held to.
    pub(crate) fn held_to(&self) -> Option<&Arc<str>> {
        match self {
            Self::Token(grant) => grant.profile(),
            Self::Owner | Self::Session(_) | Self::None => None,
        }
    }
}

/// The parties that can come in, and the addresses that anyone may use.
#[derive(Debug)]
pub(crate) struct Gate {
    pub(crate) inbound: Arc<Inbound>,
    pub(crate) entrance: Arc<Entrance>,
    /// The gateway's own token.
    pub(crate) token: Token,
    /// Tests if a path outside MCP needs no authentication.
    pub(crate) is_open: fn(&str) -> bool,
}

impl Gate {
    /// Checks that a request may come in.
    pub(crate) async fn admit(
        &self,
        visit: &Visit,
        is_mcp: bool,
        request: &Request<Incoming>,
    ) -> Result<Admitted, Away> {
        let credential = match visit.door {
            Door::Socket => Credential::Owner,
            Door::Tcp => self.authenticate(is_mcp, request)?,
        };
        let principal = credential.principal();
        let rights = match &credential {
            Credential::Owner | Credential::Session(_) => Rights::ALL,
            Credential::Token(grant) => grant.rights(),
            Credential::None if is_mcp => Rights::from_iter([Right::Call]),
            Credential::None => Rights::NONE,
        };
        if is_mcp && !rights.has(Right::Call) {
            return Err(TurnedAway::Right.into());
        }
        let mut admitted = Admitted {
            principal,
            rights,
            actor: Actor {
                principal: Some(match &credential {
                    Credential::Token(grant) => Arc::clone(grant.title()),
                    _ => self.inbound.core.tokens.title(principal),
                }),
                door: match credential {
                    Credential::Session(_) => CONSOLE,
                    _ => visit.door.as_str(),
                },
                peer: None,
            },
            credential,
        };
        if principal == Principal::Anyone && !is_mcp {
            // An address that any process may use checks the peer itself before it reveals anything.
            return Ok(admitted);
        }
        match self.entrance.peer(visit).await {
            Peer::Welcome(process) => admitted.actor.peer.clone_from(process),
            Peer::Refused(stranger) => return Err(Away::Peer(stranger.clone())),
        }
        // An anonymous client has not authenticated, so it takes no slot from clients that have.
        let has_token = matches!(principal, Principal::Token(_));
        if principal != Principal::Anyone && !visit.know(has_token) {
            return Err(Away::Crowd);
        }
        Ok(admitted)
    }

    /// Checks Host, Origin, and the credential.
    fn authenticate(
        &self,
        is_mcp: bool,
        request: &Request<Incoming>,
    ) -> Result<Credential, TurnedAway> {
        let console = self.inbound.console_host();
        let headers = request.headers();
        auth::check_origin(console, request.uri(), headers)?;
        let shown = auth::bearer(headers);
        if shown.is_some_and(|shown| self.token.is(shown)) {
            return Ok(Credential::Owner);
        }
        let now = SystemTime::now();
        let is_token = shown.filter(|shown| shown.starts_with(switchboard_tokens::PREFIX));
        let is_open = (self.is_open)(request.uri().path());
        if let Some(shown) = is_token {
            return match self.inbound.core.tokens.check(shown, now) {
                Ok(grant) => Ok(Credential::Token(grant)),
                Err(_) if is_open => Ok(Credential::None),
                Err(rejected) => Err(rejected.into()),
            };
        }
        // The console reads and decides; it is not an MCP client.
        let session = shown.and_then(|shown| self.inbound.console.session(shown, now));
        if let Some(session) = session.filter(|_| !is_mcp) {
            auth::check_own_page(console, headers)?;
            return Ok(Credential::Session(session));
        }
        if is_open || (is_mcp && self.inbound.core.config.load().auth.mcp == McpAuth::None) {
            return Ok(Credential::None);
        }
        Err(TurnedAway::Token)
    }
}

/// The reason why a request is rejected before it is handled.
pub(crate) enum Away {
    Gate(TurnedAway),
    Peer(Stranger),
    Crowd,
}

impl From<TurnedAway> for Away {
    fn from(away: TurnedAway) -> Self {
        Self::Gate(away)
    }
}

/// The response to a request that may not come in.
pub(crate) fn turn_away(away: &Away, is_mcp: bool) -> Response<Answer> {
    let hint = match away {
        Away::Gate(TurnedAway::Expired) => Some("renew it with `switchboard token rotate NAME`"),
        Away::Gate(TurnedAway::Right) => {
            Some("create one with `switchboard token create NAME`, which has the right `call`")
        }
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
            "the token is missing, wrong or revoked: send `Authorization: Bearer TOKEN` with a token of `switchboard token create`, or with the one from `run/token` in the gateway's home",
        ),
        Away::Gate(TurnedAway::Expired) => (StatusCode::UNAUTHORIZED, "the token has expired"),
        Away::Gate(TurnedAway::Right) => {
            (StatusCode::FORBIDDEN, "this token lacks the right `call`")
        }
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
    if status == StatusCode::UNAUTHORIZED {
        let challenge = HeaderValue::from_static("Bearer realm=\"switchboard\"");
        response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
    }
    if matches!(away, Away::Peer(_) | Away::Crowd) {
        let close = HeaderValue::from_static("close");
        response.headers_mut().insert(CONNECTION, close);
    }
    response
}
