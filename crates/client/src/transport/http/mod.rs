//! Streamable HTTP, for both generations of the protocol.
//!
//! There is no connection to open: every message is a separate POST, and the response is JSON or an
//! event stream. The generations differ:
//!
//! | | older revisions | 2026-07-28 |
//! |---|---|---|
//! | context of a message | a session, named in a header after `initialize` | the `_meta` of the message, repeated in headers |
//! | unsolicited messages of the server | a stream opened with GET | none (`subscriptions/listen` is a request) |
//! | a broken stream | is resumed where it broke, if the server numbers its events | is lost |
//! | cancelling a request | a notification | closing its stream |
//! | ending the session | DELETE | nothing |
//!
//! The message itself shows which generation it belongs to, so that both can share one transport
//! while a server is being probed. A server that rejects `initialize` may use the deprecated
//! HTTP+SSE transport: if its URL responds to a GET that way, the transport continues as
//! [`Sse`](super::sse::Sse).
//!
//! Each POST is a separate task, and all report into one bounded queue: a connection that does not
//! poll holds back every stream.

mod body;
mod endpoint;
mod error_reply;
mod failure;
mod headers;
mod listen;
mod peer;
mod post;
mod session;

use std::{fmt, future, sync::Arc};

pub use endpoint::{HttpConfigError, tls};

pub(crate) use body::{Body, read_body};
pub(crate) use endpoint::{client_builder, server_url};
pub(crate) use failure::cause;

pub(super) use body::{EventStream, Next, content_type, is_event_stream, message, read_refusal};
pub(super) use endpoint::{Endpoint, RequestError};
pub(super) use failure::said;
pub(super) use headers::Standing;

use super::{Connect, Connecting, Transport};
use crate::auth::OAuth;
use session::HttpTransport;

/// The most requests in flight. The limit is higher than that of calls, because a request that was
/// answered still counts while the rest of its stream is read.
const IN_FLIGHT: usize = 2_048;

/// Connects to a server over Streamable HTTP.
///
/// ```
/// use switchboard_client::http::Http;
///
/// # fn main() -> Result<(), switchboard_client::http::HttpConfigError> {
/// let server = Http::new("https://mcp.example.com/mcp")?.header("authorization", "Bearer …")?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Http {
    endpoint: Endpoint,
    in_flight: usize,
}

impl Http {
    /// Connects to the server at this URL, `http` or `https`.
    pub fn new(url: &str) -> Result<Self, HttpConfigError> {
        Ok(Self {
            endpoint: Endpoint::new(url)?,
            in_flight: IN_FLIGHT,
        })
    }

    /// Adds a header to all requests. The value is treated as a secret: it is not printed, and not
    /// sent to any other origin. Headers that the protocol sets itself are rejected.
    pub fn header(mut self, name: &str, value: &str) -> Result<Self, HttpConfigError> {
        self.endpoint.add_header(name, value)?;
        Ok(self)
    }

    /// Adds the tokens of this sign-in to all requests. It has to be for a server of the same origin.
    pub fn oauth(mut self, oauth: &OAuth) -> Result<Self, HttpConfigError> {
        self.endpoint.set_oauth(oauth)?;
        Ok(self)
    }

    /// Sets the largest message to accept, in bytes. 16 MiB by default.
    #[must_use]
    pub fn frame_limit(mut self, bytes: usize) -> Self {
        self.endpoint.limit = bytes;
        self
    }

    /// Sets the most requests in flight; beyond that the transport is busy. 2,048 by default.
    #[must_use]
    pub fn in_flight_limit(mut self, requests: usize) -> Self {
        self.in_flight = requests;
        self
    }
}

impl Connect for Http {
    fn connect(&self) -> Connecting {
        let transport = HttpTransport::new(Arc::new(self.endpoint.clone()), self.in_flight);
        Box::pin(future::ready(Ok(Box::new(transport) as Box<dyn Transport>)))
    }

    fn describe(&self) -> String {
        self.endpoint.address()
    }

    fn carries_headers(&self) -> bool {
        true
    }

    fn answers_everything(&self) -> bool {
        true
    }
}

impl fmt::Debug for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Http({:?})", self.endpoint)
    }
}
