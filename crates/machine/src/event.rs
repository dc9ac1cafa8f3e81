//! The input and output of the machine.

use std::{borrow::Cow, fmt, sync::Arc, time::Duration};

use bytes::Bytes;
use switchboard_wire::{ErrorObject, Id, Notification, Raw, Request, Response};

use crate::{
    error::{CallError, RequestFailure},
    handshake::Session,
};

/// An input of the machine: something that happened.
#[derive(Debug, Clone)]
pub enum Event {
    /// The transport can carry frames.
    TransportUp {
        /// The transport.
        epoch: u64,
    },
    /// The transport ended, or could not be opened.
    TransportDown {
        /// The transport.
        epoch: u64,
        /// The cause.
        down: Down,
    },
    /// A frame arrived.
    Frame {
        /// The transport over which it arrived.
        epoch: u64,
        /// The frame.
        frame: Bytes,
        /// The request on whose own stream it arrived, if the transport can tell.
        via: Option<u64>,
    },
    /// A frame over the limit arrived and was not read.
    FrameTooLarge {
        /// The transport over which it arrived.
        epoch: u64,
        /// The limit, in bytes.
        limit: usize,
    },
    /// The transport accepted a request but could not deliver it. The transport is still up.
    RequestFailed {
        /// The transport.
        epoch: u64,
        /// The request.
        id: u64,
        /// The cause.
        failure: RequestFailure,
    },
    /// The result of an [`Action::Send`].
    SendResult {
        /// The ticket of the action.
        ticket: u64,
        /// The result.
        outcome: SendOutcome,
    },
    /// A caller makes a call.
    Call {
        /// The id of the request, drawn from the machine's [`Ids`](crate::Ids). Must not be reused.
        id: u64,
        /// The call.
        call: Call,
    },
    /// The caller no longer waits, and will not receive a reply.
    CallerGone {
        /// The call.
        id: u64,
    },
    /// The caller cancels the call, and waits for the reply that confirms it.
    Cancel {
        /// The call.
        id: u64,
        /// The reason, for the server's log.
        reason: Option<Arc<str>>,
    },
    /// The owner of the connection responds to a request of the server.
    Answer {
        /// The transport over which the request arrived.
        epoch: u64,
        /// The id of the request.
        id: Id,
        /// The result or the error.
        answer: Result<Raw, ErrorObject>,
    },
    /// Time has passed.
    Tick,
    /// Connect again now, after the connection has failed or during backoff.
    Restart,
    /// Shut down the connection.
    Stop,
}

/// An output of the machine: something to do.
#[derive(Debug, Clone)]
pub enum Action {
    /// Open a transport and report [`Event::TransportUp`] or [`Event::TransportDown`].
    Open {
        /// The epoch that identifies the transport.
        epoch: u64,
    },
    /// Close the transport without waiting. Its later events are not needed, but they do no harm.
    Close {
        /// The transport.
        epoch: u64,
    },
    /// Offer a frame to the transport and report [`Event::SendResult`] at once.
    Send {
        /// The ticket to report the result with.
        ticket: u64,
        /// The frame.
        outgoing: Outgoing,
    },
    /// Report the next frame of the transport, but only one.
    Arm {
        /// The transport.
        epoch: u64,
    },
    /// The handshake is done. The transport may need to know the revision.
    Negotiated {
        /// The transport.
        epoch: u64,
        /// The session that was negotiated.
        session: Arc<Session>,
    },
    /// A call has ended. Emitted exactly once for each call, unless the caller is gone.
    Reply {
        /// The call.
        id: u64,
        /// The outcome.
        outcome: Result<Reply, CallError>,
    },
    /// The server reports the progress of a call.
    Progress {
        /// The call.
        id: u64,
        /// The parameters of the notification.
        params: Raw,
    },
    /// The server sent a log message that belongs to a call.
    Log {
        /// The call.
        id: u64,
        /// The parameters of the notification.
        params: Raw,
        /// It came on the stream of the call. Otherwise, the call was the only one in flight.
        is_named: bool,
    },
    /// A notification or request of the server to handle.
    Deliver(Inbound),
    /// Publish the new state.
    State(State),
    /// Record an event.
    Emit(Telemetry),
    /// Notify the caller that requested the stop. Precedes all other actions of a stop.
    Stopped(Stopped),
    /// The connection has ended; end its task.
    Exit,
}

/// A request or notification to send to the server.
#[derive(Debug, Clone)]
pub struct Call {
    /// The kind of call. A notification is complete as soon as the transport has accepted it.
    pub kind: CallKind,
    /// The method.
    pub method: Cow<'static, str>,
    /// The parameters.
    pub params: Option<Raw>,
    /// The caller. Frames of one caller never overtake each other.
    pub lane: u64,
    /// The time limit; unlimited if `None`.
    pub timeout: Option<Duration>,
    /// Lets progress notifications move the deadline.
    pub extend: Option<Extend>,
    /// Request progress notifications.
    pub progress: bool,
    /// Receive the log messages that belong to this request: the ones on its own stream, or, if the transport
    /// has no such streams, the ones that arrive while no other request is in flight.
    pub logs: bool,
    /// Fail instead of waiting for the connection to become ready.
    pub fail_fast: bool,
    /// The log level of this request, for revisions that set it per request.
    pub log_level: Option<Raw>,
    /// The W3C trace parent of this request.
    pub trace: Option<Raw>,
    /// HTTP headers for this request.
    pub headers: Headers,
}

/// HTTP header names and values for one request.
pub type Headers = Arc<[(String, String)]>;

/// The kind of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallKind {
    /// A message that expects a response.
    Request,
    /// A message that expects no response.
    Notification,
}

/// The way in which progress notifications move a deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extend {
    /// The new deadline, measured from the progress notification.
    pub by: Duration,
    /// The latest possible deadline, measured from the start of the call.
    pub cap: Duration,
}

/// The success of a call.
#[derive(Debug, Clone)]
pub enum Reply {
    /// The server responded, with a result or an error.
    Answered(Response),
    /// The transport has accepted the notification.
    Sent,
}

/// A frame to send, with the metadata that transports need.
#[derive(Debug, Clone)]
pub struct Outgoing {
    /// The message, without a line end.
    pub frame: Bytes,
    /// The kind of message.
    pub kind: OutgoingKind,
    /// HTTP headers for this frame.
    pub headers: Headers,
}

/// The kind of a frame to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OutgoingKind {
    /// A request.
    Request {
        /// The id of the request.
        id: u64,
        /// The method of the request.
        method: Cow<'static, str>,
    },
    /// A notification.
    Notification {
        /// The method of the notification.
        method: Cow<'static, str>,
    },
    /// The notification that cancels a request. A transport with another way to cancel a request uses that.
    Cancel {
        /// The id of the request.
        id: u64,
    },
    /// A response to a request of the server.
    Answer,
}

/// The result of offering a frame to a transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendOutcome {
    /// The frame will be sent.
    Accepted,
    /// The buffer is full; offer the frame again later.
    Busy,
    /// The transport has ended.
    Closed,
}

/// The end of a transport.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Down {
    /// The kind of end.
    pub kind: DownKind,
    /// Description of the cause, without text from the server.
    pub message: Arc<str>,
    /// Text from the server, for the user only. It may contain anything, including secrets.
    pub said: Option<Arc<str>>,
}

/// Includes the server's message.
impl fmt::Display for Down {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.said {
            Some(said) => write!(f, ": {said}"),
            None => Ok(()),
        }
    }
}

/// The kind of a transport's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DownKind {
    /// The server was reachable and disconnected. An older one may do so when it is probed.
    Closed,
    /// The server could not be reached.
    Unreachable,
    /// A retry will not help, for example because the command does not exist or the credentials are rejected.
    Permanent,
}

/// A message of the server.
#[derive(Debug, Clone)]
pub enum Inbound {
    /// A notification.
    Notification {
        /// The notification.
        notification: Notification,
        /// The request on whose own stream it arrived, if the transport can tell.
        via: Option<u64>,
    },
    /// A request. Respond with [`Event::Answer`].
    Request {
        /// The transport over which it arrived.
        epoch: u64,
        /// The request.
        request: Request,
        /// The request on whose own stream it arrived, if the transport can tell.
        via: Option<u64>,
    },
    /// The server no longer needs the response to a request, or the connection has ended.
    RequestCancelled {
        /// The id of the request.
        id: Id,
    },
}

/// The state of a connection.
#[derive(Debug, Clone)]
pub enum State {
    /// The transport is being opened.
    Starting,
    /// The handshake is in progress.
    Initializing,
    /// Calls are sent.
    Ready(Arc<Session>),
    /// Waiting before the next attempt.
    Backoff {
        /// Number of consecutive failed attempts.
        failures: u32,
        /// The delay before the next attempt.
        delay: Duration,
        /// Description of the last failure, without text from the server.
        reason: Arc<str>,
        /// Text from the server: the reason for its refusal, output that is not JSON-RPC, or its last lines on
        /// standard error. It may contain anything, including secrets.
        wrote: Option<Arc<str>>,
    },
    /// Failed until a restart, because a retry would not help.
    Failed {
        /// Description of the failure, without text from the server.
        reason: Arc<str>,
        /// Text from the server: the reason for its refusal, output that is not JSON-RPC, or its last lines on
        /// standard error. It may contain anything, including secrets.
        wrote: Option<Arc<str>>,
    },
    /// Shutting down or shut down.
    Closing,
}

impl State {
    /// Returns the name of the state.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Initializing => "initializing",
            Self::Ready(_) => "ready",
            Self::Backoff { .. } => "backoff",
            Self::Failed { .. } => "failed",
            Self::Closing => "closing",
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        match self {
            Self::Backoff { reason, wrote, .. } | Self::Failed { reason, wrote } => {
                write!(f, " ({reason}")?;
                if let Some(wrote) = wrote {
                    write!(f, "; the server said: {wrote}")?;
                }
                f.write_str(")")
            }
            _ => Ok(()),
        }
    }
}

/// The result of a stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stopped {
    /// The connection is shutting down now.
    Ok,
    /// The connection was already shutting down.
    AlreadyClosing,
}

/// An event to record.
#[derive(Debug, Clone)]
pub enum Telemetry {
    /// The state changed.
    Transition {
        /// The previous state.
        from: &'static str,
        /// The new state.
        to: &'static str,
        /// The cause.
        reason: Arc<str>,
    },
    /// A caller made a call.
    CallStarted {
        /// The id of the call.
        id: u64,
        /// The method of the call.
        method: Cow<'static, str>,
    },
    /// The server responded to a call, or the transport accepted a notification.
    CallAnswered {
        /// The id of the call.
        id: u64,
        /// The duration of the call.
        after: Duration,
    },
    /// A call ended without a response.
    CallFailed {
        /// The id of the call.
        id: u64,
        /// The duration of the call.
        after: Duration,
        /// The error.
        error: CallError,
    },
    /// A response arrived for a call that had already ended.
    LateResponse {
        /// The id of the response.
        id: Id,
    },
    /// A response arrived for a call that was never made, or without a readable id.
    UnknownResponse {
        /// The id of the response, if it has one.
        id: Option<Id>,
    },
    /// The transport was busy.
    Busy {
        /// Number of times that the frame has been offered.
        attempts: u32,
    },
    /// The peer violated the protocol. The connection continues or ends, depending on the violation.
    Violation {
        /// The violation.
        reason: Arc<str>,
        /// The frame, if it cannot be parsed as JSON-RPC.
        frame: Option<Bytes>,
    },
    /// A notification arrived.
    Notification {
        /// The method of the notification.
        method: String,
    },
}
