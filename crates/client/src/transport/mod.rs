//! How frames travel: the small contract that every transport keeps.
//!
//! A [`Connect`] opens a [`Transport`], once for every attempt; the connection decides when. A
//! transport is driven by the connection's own task:
//!
//! * [`send`](Transport::send) takes a frame or says why not. It never blocks.
//! * [`poll_event`](Transport::poll_event) is polled for one event at a time, and only while the
//!   connection wants one: a server that floods is held back by its own pipe. It also carries
//!   writing forward.
//! * [`Down`](TransportEvent::Down) is reported once and is the last event.
//! * [`close`](Transport::close) may be called at any time, again and again, and never blocks.

#[cfg(feature = "http")]
pub mod http;
pub mod memory;
#[cfg(feature = "http")]
pub mod sse;
pub mod stdio;

use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
pub use switchboard_machine::{
    Down, DownKind, Outgoing, OutgoingKind, RequestFailure, SendOutcome, Session,
};

/// Opens transports to one server.
pub trait Connect: Send + Sync + 'static {
    /// Opens one. Dropping the future gives up.
    fn connect(&self) -> Connecting;

    /// What this connects to, for logs: a command, an address. No secrets.
    fn describe(&self) -> String;

    /// Waits until everything that was opened here has ended, such as child processes. Bounded by
    /// the transport's own rules for ending it.
    fn ended(&self) -> Ended {
        Box::pin(std::future::ready(()))
    }

    /// Whether requests travel with headers of their own ([`Outgoing::headers`]), as over HTTP.
    fn carries_headers(&self) -> bool {
        false
    }

    /// Whether a server behind this transport answers even what it does not know, as HTTP makes it
    /// do. If so, silence means a slow server rather than an old one, and is given more time.
    fn answers_everything(&self) -> bool {
        false
    }
}

/// The end of everything that was opened.
pub type Ended = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A transport being opened.
pub type Connecting = Pin<Box<dyn Future<Output = Result<Box<dyn Transport>, Down>> + Send>>;

/// Carries frames to one server and back.
pub trait Transport: Send {
    /// Takes a frame, or says that the buffer is full or the transport gone.
    fn send(&mut self, outgoing: Outgoing) -> SendOutcome;

    /// The next event. Also carries writing forward, and the rest of closing.
    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<TransportEvent>;

    /// The handshake has settled on a revision. For transports that behave by it.
    fn negotiated(&mut self, session: &Session) {
        let _ = session;
    }

    /// Ends the transport. What was sent is still carried out as long as the transport is polled,
    /// then [`TransportEvent::Down`] follows; dropping it ends it on the spot.
    fn close(&mut self);
}

/// What a transport reports.
#[derive(Debug)]
pub enum TransportEvent {
    /// A frame arrived.
    Frame {
        /// The frame.
        frame: Bytes,
        /// The request on whose own stream it came, where there is such a thing: over Streamable
        /// HTTP each request has one.
        via: Option<u64>,
    },
    /// A frame over the limit arrived and was not read.
    FrameTooLarge {
        /// The limit, in bytes.
        limit: usize,
    },
    /// One request could not be carried through; the transport stands.
    RequestFailed {
        /// Its id.
        id: u64,
        /// Why.
        failure: RequestFailure,
    },
    /// The transport has ended.
    Down(Down),
}

impl fmt::Debug for dyn Connect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Connect({})", self.describe())
    }
}

/// The end of a transport that another attempt may mend.
pub(crate) fn closed(message: impl AsRef<str>) -> Down {
    Down {
        kind: DownKind::Closed,
        message: message.as_ref().into(),
        said: None,
    }
}
