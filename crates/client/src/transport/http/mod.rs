//! Streamable HTTP, of both worlds.
//!
//! There is no connection to open: every message is a POST of its own, and the answer comes back as
//! JSON or as a stream of events. What differs between the worlds:
//!
//! | | older revisions | 2026-07-28 |
//! |---|---|---|
//! | who asks | a session, named by a header once `initialize` has been answered | the message, in its `_meta`, repeated in headers |
//! | what the server says unasked | a stream opened with GET | nothing (`subscriptions/listen` is a request) |
//! | a stream that breaks | is taken up again where it broke, if the server numbers its events | is lost |
//! | withdrawing a request | a notification | closing its stream |
//! | the end | DELETE | nothing |
//!
//! Whether a message belongs to the newer world is read from the message itself, so that both can
//! share one transport while a server is being probed. A server that turns `initialize` away may
//! be one of the deprecated HTTP+SSE transport: if its address answers a GET that way, the transport
//! goes on as [`Sse`](super::sse::Sse).
//!
//! Each POST is a task of its own, and all report into one bounded queue: a connection that does
//! not poll holds back every stream.

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

pub(super) use body::{EventStream, Next, content_type, is_event_stream, message, read_refusal};
pub(super) use endpoint::{Endpoint, RequestError};
pub(super) use failure::said;
pub(super) use headers::Standing;

use super::{Connect, Connecting, Transport};
use session::HttpTransport;

/// The most requests under way at a time. More than a connection has calls: one that is answered
/// still counts while the rest of its stream is read.
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
    /// Connects to the server at this address, `http` or `https`.
    pub fn new(url: &str) -> Result<Self, HttpConfigError> {
        Ok(Self {
            endpoint: Endpoint::new(url)?,
            in_flight: IN_FLIGHT,
        })
    }

    /// Sends this header with everything. The value is a secret: it is not printed, and does not
    /// leave the origin of the address. Headers that the protocol sets itself are refused.
    pub fn header(mut self, name: &str, value: &str) -> Result<Self, HttpConfigError> {
        self.endpoint.add_header(name, value)?;
        Ok(self)
    }

    /// The largest message to accept, in bytes. 16 MiB by default.
    #[must_use]
    pub fn frame_limit(mut self, bytes: usize) -> Self {
        self.endpoint.limit = bytes;
        self
    }

    /// The most requests under way at a time, past which the transport is busy. 2,048 by default.
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
