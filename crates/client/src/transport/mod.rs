//! Transports, and the contract that each of them implements.
//!
//! A [`Connect`] opens a [`Transport`] for each attempt; the connection decides when. The
//! connection's own task drives the transport:
//!
//! * [`send`](Transport::send) accepts a frame or reports why it cannot. It never blocks.
//! * [`poll_event`](Transport::poll_event) is polled for one event at a time, and only while the
//!   connection wants one: a server that floods the connection is held by its own pipe.
//!   Polling also drives pending writes.
//! * [`Down`](TransportEvent::Down) is reported once and is the last event.
//! * [`close`](Transport::close) may be called at any time, any number of times, and never blocks.

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
    /// Opens a transport. Dropping the future cancels the attempt.
    fn connect(&self) -> Connecting;

    /// Describes the server for logs, for example as a command or a URL. Must not contain secrets.
    fn describe(&self) -> String;

    /// Waits until everything that was opened has ended, such as child processes. The transport's
    /// own grace periods bound the wait.
    fn ended(&self) -> Ended {
        Box::pin(std::future::ready(()))
    }

    /// Returns `true` if each request has its own headers ([`Outgoing::headers`]), as over HTTP.
    fn carries_headers(&self) -> bool {
        false
    }

    /// Returns `true` if a server behind this transport responds even to unknown requests, as HTTP
    /// requires. If so, no response means a slow server rather than an old one, and the client
    /// waits longer.
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
    /// Accepts a frame, or reports that the buffer is full or the transport has ended.
    fn send(&mut self, outgoing: Outgoing) -> SendOutcome;

    /// Polls for the next event. Also drives pending writes, and the rest of closing.
    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<TransportEvent>;

    /// Called when the handshake has settled on a revision, for transports that depend on it.
    fn negotiated(&mut self, session: &Session) {
        let _ = session;
    }

    /// Closes the transport. Messages that were accepted are still delivered as long as the
    /// transport is polled, then [`TransportEvent::Down`] follows. Dropping the transport ends it
    /// immediately.
    fn close(&mut self);
}

/// An event of a transport.
#[derive(Debug)]
pub enum TransportEvent {
    /// A frame arrived.
    Frame {
        /// The frame.
        frame: Bytes,
        /// The request on whose own stream it arrived, if the transport has such streams: over
        /// Streamable HTTP each request has one.
        via: Option<u64>,
    },
    /// A frame over the limit arrived and was not read.
    FrameTooLarge {
        /// The limit, in bytes.
        limit: usize,
    },
    /// One request could not be delivered; the transport is still up.
    RequestFailed {
        /// The id of the request.
        id: u64,
        /// The cause.
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

/// The end of a transport after which a retry may succeed.
pub(crate) fn closed(message: impl AsRef<str>) -> Down {
    Down {
        kind: DownKind::Closed,
        message: message.as_ref().into(),
        said: None,
    }
}
