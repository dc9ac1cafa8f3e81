//! What goes into the machine and what comes out of it.

use std::{borrow::Cow, fmt, sync::Arc, time::Duration};

use bytes::Bytes;
use switchboard_wire::{ErrorObject, Id, Notification, Raw, Request, Response};

use crate::{
    error::{CallError, RequestFailure},
    handshake::Session,
};

/// Something that happened.
#[derive(Debug, Clone)]
pub enum Event {
    /// The transport can carry frames.
    TransportUp {
        /// Which transport.
        epoch: u64,
    },
    /// The transport ended, or could not be opened.
    TransportDown {
        /// Which transport.
        epoch: u64,
        /// Why.
        down: Down,
    },
    /// A frame arrived.
    Frame {
        /// Over which transport.
        epoch: u64,
        /// The frame.
        frame: Bytes,
        /// The request on whose own stream it came, where the transport can tell.
        via: Option<u64>,
    },
    /// A frame over the limit arrived and was not read.
    FrameTooLarge {
        /// Over which transport.
        epoch: u64,
        /// The limit, in bytes.
        limit: usize,
    },
    /// The transport took a request and could not carry it through, yet stands.
    RequestFailed {
        /// Over which transport.
        epoch: u64,
        /// Which request.
        id: u64,
        /// Why.
        failure: RequestFailure,
    },
    /// What became of an [`Action::Send`].
    SendResult {
        /// Which one.
        ticket: u64,
        /// What became of it.
        outcome: SendOutcome,
    },
    /// Somebody wants something of the server.
    Call {
        /// The id of the request, drawn from the machine's [`Ids`](crate::Ids). Used once.
        id: u64,
        /// What.
        call: Call,
    },
    /// The caller no longer waits, and will not look at a reply.
    CallerGone {
        /// Which call.
        id: u64,
    },
    /// The caller withdraws the call, and waits for the reply that says so.
    Cancel {
        /// Which call.
        id: u64,
        /// Why, for the server's log.
        reason: Option<Arc<str>>,
    },
    /// The owner answers a request of the server.
    Answer {
        /// Over which transport the request came.
        epoch: u64,
        /// Which request.
        id: Id,
        /// The answer.
        answer: Result<Raw, ErrorObject>,
    },
    /// Time has passed.
    Tick,
    /// Connect again now: the connection had failed, or should not wait any longer.
    Restart,
    /// End.
    Stop,
}

/// Something to do.
#[derive(Debug, Clone)]
pub enum Action {
    /// Open a transport and report [`Event::TransportUp`] or [`Event::TransportDown`].
    Open {
        /// What to call it.
        epoch: u64,
    },
    /// Close the transport without waiting. No event of it is wanted any more, but one that comes
    /// does no harm.
    Close {
        /// Which one.
        epoch: u64,
    },
    /// Offer a frame to the transport and report [`Event::SendResult`] at once.
    Send {
        /// How to report it.
        ticket: u64,
        /// The frame.
        outgoing: Outgoing,
    },
    /// Report the next frame of the transport, one only.
    Arm {
        /// Which transport.
        epoch: u64,
    },
    /// The handshake is done: the transport may want to know the revision.
    Negotiated {
        /// Which transport.
        epoch: u64,
        /// What was agreed on.
        session: Arc<Session>,
    },
    /// The call has ended. Given exactly once for each call, unless the caller is gone.
    Reply {
        /// Which call.
        id: u64,
        /// How.
        outcome: Result<Reply, CallError>,
    },
    /// The server tells how far a call has come.
    Progress {
        /// Which call.
        id: u64,
        /// The parameters of the notification.
        params: Raw,
    },
    /// The server logs something that belongs to a call.
    Log {
        /// Which call.
        id: u64,
        /// The parameters of the notification.
        params: Raw,
    },
    /// The server says or asks something.
    Deliver(Inbound),
    /// Tell whoever watches the state.
    State(State),
    /// Record what happened.
    Emit(Telemetry),
    /// Tell the caller of stop. Always ahead of every other action of a stop.
    Stopped(Stopped),
    /// The connection is over: end the task.
    Exit,
}

/// Something wanted of the server.
#[derive(Debug, Clone)]
pub struct Call {
    /// A request, or a notification, which is answered as soon as the transport has it.
    pub kind: CallKind,
    /// The method.
    pub method: Cow<'static, str>,
    /// The parameters.
    pub params: Option<Raw>,
    /// Who calls. Frames of one caller never overtake each other.
    pub lane: u64,
    /// How long it may take; without end if `None`.
    pub timeout: Option<Duration>,
    /// Progress may move the deadline.
    pub extend: Option<Extend>,
    /// Ask for progress.
    pub progress: bool,
    /// Take the log messages that belong to this request: those on its own stream, and where the
    /// transport has none, those that come while no other request is under way.
    pub logs: bool,
    /// Do not wait for the connection to become ready.
    pub fail_fast: bool,
    /// The log level of this request, where the revision has one for each.
    pub log_level: Option<Raw>,
    /// The W3C trace parent of this request.
    pub trace: Option<Raw>,
    /// HTTP headers that belong to this request.
    pub headers: Headers,
}

/// HTTP header names and values that belong to one request.
pub type Headers = Arc<[(String, String)]>;

/// Whether an answer is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallKind {
    /// It is.
    Request,
    /// It is not.
    Notification,
}

/// How progress moves a deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extend {
    /// The new deadline is this long after the progress.
    pub by: Duration,
    /// But never later than this long after the call.
    pub cap: Duration,
}

/// How a call ended well.
#[derive(Debug, Clone)]
pub enum Reply {
    /// The server answered, with a result or an error.
    Answered(Response),
    /// The transport has the notification.
    Sent,
}

/// A frame to send, and what a transport may need to know of it.
#[derive(Debug, Clone)]
pub struct Outgoing {
    /// The message, without a line end.
    pub frame: Bytes,
    /// What it is.
    pub kind: OutgoingKind,
    /// HTTP headers that belong to it.
    pub headers: Headers,
}

/// What a frame to send is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OutgoingKind {
    /// A request.
    Request {
        /// Its id.
        id: u64,
        /// Its method.
        method: Cow<'static, str>,
    },
    /// A notification.
    Notification {
        /// Its method.
        method: Cow<'static, str>,
    },
    /// The notification that withdraws a request. A transport with another way to say so uses that.
    Cancel {
        /// The request.
        id: u64,
    },
    /// An answer to a request of the server.
    Answer,
}

/// What became of a frame that was offered to a transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendOutcome {
    /// It will be sent.
    Accepted,
    /// The buffer is full; offer it again later.
    Busy,
    /// The transport is gone.
    Closed,
}

/// Why a transport ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Down {
    /// What to make of it.
    pub kind: DownKind,
    /// What happened, in words of our own.
    pub message: Arc<str>,
    /// The beginning of what the server said, for people only. It may hold anything, also secrets.
    pub said: Option<Arc<str>>,
}

/// With what the server said.
impl fmt::Display for Down {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.said {
            Some(said) => write!(f, ": {said}"),
            None => Ok(()),
        }
    }
}

/// What to make of the end of a transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DownKind {
    /// The server was there and left: an older one does so when it is probed.
    Closed,
    /// The server could not be reached.
    Unreachable,
    /// Trying again will not help: the command does not exist, the credentials are refused.
    Permanent,
}

/// What the server says or asks.
#[derive(Debug, Clone)]
pub enum Inbound {
    /// It tells something.
    Notification {
        /// What.
        notification: Notification,
        /// The request on whose own stream it came, where the transport can tell.
        via: Option<u64>,
    },
    /// It asks something; answer with [`Event::Answer`].
    Request {
        /// Over which transport.
        epoch: u64,
        /// What.
        request: Request,
        /// The request on whose own stream it came, where the transport can tell.
        via: Option<u64>,
    },
    /// It no longer wants the answer to that.
    RequestCancelled {
        /// The request.
        id: Id,
    },
}

/// The state of a connection, for whoever watches it.
#[derive(Debug, Clone)]
pub enum State {
    /// The transport is being opened.
    Starting,
    /// The handshake is under way.
    Initializing,
    /// Calls go through.
    Ready(Arc<Session>),
    /// Waiting before the next attempt.
    Backoff {
        /// How many attempts have failed in a row.
        failures: u32,
        /// How long it waits.
        delay: Duration,
        /// Why the last one failed, in words of our own.
        reason: Arc<str>,
        /// The beginning of what the server said: why it refused, or text in place of JSON-RPC. It may hold
        /// anything, also secrets.
        wrote: Option<Arc<str>>,
    },
    /// Given up until a restart, because trying again would not help.
    Failed {
        /// Why, in words of our own.
        reason: Arc<str>,
        /// The beginning of what the server said: why it refused, or text in place of JSON-RPC. It may hold
        /// anything, also secrets.
        wrote: Option<Arc<str>>,
    },
    /// Stopping or stopped.
    Closing,
}

impl State {
    /// The name of the state.
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

/// What the caller of stop is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stopped {
    /// The connection ends now.
    Ok,
    /// It was ending already.
    AlreadyClosing,
}

/// Something worth recording.
#[derive(Debug, Clone)]
pub enum Telemetry {
    /// The state changed.
    Transition {
        /// From this state,
        from: &'static str,
        /// to this one,
        to: &'static str,
        /// because of this.
        reason: Arc<str>,
    },
    /// A call was taken in.
    CallStarted {
        /// Its id.
        id: u64,
        /// Its method.
        method: Cow<'static, str>,
    },
    /// The server answered a call.
    CallAnswered {
        /// Its id.
        id: u64,
        /// How long it took.
        after: Duration,
    },
    /// A call ended without an answer.
    CallFailed {
        /// Its id.
        id: u64,
        /// How long it took.
        after: Duration,
        /// How it ended.
        error: CallError,
    },
    /// An answer came for a call that had ended.
    LateResponse {
        /// The id.
        id: Id,
    },
    /// An answer came for a call that was never made, or to a request without a readable id.
    UnknownResponse {
        /// The id, if there was one.
        id: Option<Id>,
    },
    /// The transport was busy.
    Busy {
        /// How often the frame has been offered.
        attempts: u32,
    },
    /// The peer broke the protocol, and the connection goes on or ends as the reason says.
    Violation {
        /// What it did.
        reason: Arc<str>,
        /// The frame, if it cannot be read as JSON-RPC.
        frame: Option<Bytes>,
    },
    /// A notification came.
    Notification {
        /// Its method.
        method: String,
    },
}
