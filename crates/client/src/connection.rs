//! The handles to one connection, and the state that they share.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use parking_lot::RwLock;
use switchboard_machine::{Call, CallError, Counters, Headers, Ids, Session, State};
use switchboard_wire::{Era, Raw, header::ParamHeaders};
use tokio::sync::{mpsc, oneshot, watch};

use crate::{
    Error,
    driver::{Caller, Control, Submission, Told},
    handlers::Handlers,
    lists::AskedFor,
    model::LogLevel,
    pending::Pending,
    throttle::Limited,
    transport::Connect,
};

/// A handle to the connection. Frames sent through one handle and its clones keep their order.
#[derive(Clone)]
pub(crate) struct Handle {
    pub(crate) shared: Arc<Shared>,
    pub(crate) lane: u64,
    /// Held by the handles of the library's users, so that the connection ends with the last of them.
    user: Option<Arc<User>>,
}

/// Keeps the connection open for the users of the library. The library's own tasks have none.
struct User(mpsc::UnboundedSender<Control>);

impl Drop for User {
    fn drop(&mut self) {
        // An error means that the connection has already ended.
        let _ = self.0.send(Control::Abandoned);
    }
}

/// A change to the subscriptions or the log level, which are restored after every reconnect.
pub(crate) enum Change {
    Subscribe(String),
    Unsubscribe(String),
    Level(LogLevel),
}

/// Reports the result of a [`Change`] to its caller.
pub(crate) type Done = oneshot::Sender<Result<(), Error>>;

/// The state that all handles share.
pub(crate) struct Shared {
    pub(crate) calls: mpsc::Sender<Submission>,
    pub(crate) control: mpsc::UnboundedSender<Control>,
    pub(crate) state: watch::Receiver<State>,
    pub(crate) changes: mpsc::Sender<(Change, Done)>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) handlers: Arc<Handlers>,
    pub(crate) ids: Ids,
    pub(crate) request_timeout: Duration,
    pub(crate) connect: Arc<dyn Connect>,
    /// The arguments of each tool that are also sent as headers, known from the list of tools.
    pub(crate) param_headers: RwLock<HashMap<String, ParamHeaders>>,
    /// The lists that were requested.
    pub(crate) asked_for: AskedFor,
    /// The log level, for revisions that send it with each request.
    pub(crate) log_level: RwLock<Option<Raw>>,
    /// Limits the warnings about list items that cannot be used.
    pub(crate) left_out: Limited,
}

static LANES: AtomicU64 = AtomicU64::new(0);

/// The most tools whose header parameters are remembered.
const PARAM_HEADERS_MAX: usize = 10_000;

impl Handle {
    /// Creates a handle for a user of the library.
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        let user = Arc::new(User(shared.control.clone()));
        Self {
            user: Some(user),
            ..Self::internal(shared)
        }
    }

    /// Creates a handle for internal use, which does not keep the connection open.
    pub(crate) fn internal(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            lane: LANES.fetch_add(1, Relaxed),
            user: None,
        }
    }

    /// Creates another handle of the same user, with its own order of frames.
    pub(crate) fn new_lane(&self) -> Self {
        Self {
            user: self.user.clone(),
            ..Self::internal(Arc::clone(&self.shared))
        }
    }
}

impl Shared {
    pub(crate) fn submit(
        &self,
        call: Call,
        told: Option<mpsc::Sender<Told>>,
        tag: Option<u64>,
    ) -> Result<Pending, CallError> {
        // JSON-RPC allows an array, but MCP uses only objects, and some servers do not respond to others.
        if call
            .params
            .as_ref()
            .is_some_and(|params| !params.is_object())
        {
            let reason = "they are not a JSON object".into();
            return Err(CallError::InvalidParams { reason });
        }
        let id = self.ids.draw();
        let (reply, receiver) = oneshot::channel();
        let caller = Caller { reply, told, tag };
        let submission = Submission { id, call, caller };
        self.calls
            .try_send(submission)
            .map_err(|error| match error {
                mpsc::error::TrySendError::Full(_) => CallError::Backpressure { attempts: 0 },
                mpsc::error::TrySendError::Closed(_) => CallError::Shutdown { sent: false },
            })?;
        Ok(Pending::new(id, receiver, self.control.clone()))
    }

    pub(crate) fn control(&self, control: Control) {
        // An error means that the connection has ended, and there is nothing left to control.
        let _ = self.control.send(control);
    }

    pub(crate) fn log_level(&self) -> Option<Raw> {
        self.log_level.read().clone()
    }

    /// Waits for the connection to become ready, through losses and reconnects.
    pub(crate) async fn ready(&self) -> Result<Arc<Session>, CallError> {
        let mut state = self.state.clone();
        let settled = |state: &State| {
            matches!(
                state,
                State::Ready(_) | State::Failed { .. } | State::Closing
            )
        };
        let Ok(state) = state.wait_for(settled).await else {
            return Err(CallError::Shutdown { sent: false });
        };
        match &*state {
            State::Ready(session) => Ok(Arc::clone(session)),
            State::Failed { reason, .. } => Err(CallError::Failed {
                reason: Arc::clone(reason),
            }),
            _ => Err(CallError::Shutdown { sent: false }),
        }
    }

    /// Returns the session, if the connection is ready.
    pub(crate) fn session(&self) -> Option<Arc<Session>> {
        match &*self.state.borrow() {
            State::Ready(session) => Some(Arc::clone(session)),
            _ => None,
        }
    }

    /// Returns the era of the server, if the connection is ready.
    pub(crate) fn era(&self) -> Option<Era> {
        self.session().map(|session| session.revision.era())
    }

    /// Remembers the arguments of a tool that are sent as headers. Returns `false` for a tool that cannot be
    /// used.
    pub(crate) fn learn_param_headers(&self, tool: &str, schema: &Raw) -> bool {
        // Only transports with headers need this, and only revisions that define these headers.
        if !self.connect.carries_headers() || self.era() != Some(Era::Modern) {
            return true;
        }
        match ParamHeaders::from_schema(schema.as_str()) {
            Ok(headers) => {
                let mut known = self.param_headers.write();
                if headers.is_empty() {
                    known.remove(tool);
                } else if known.len() < PARAM_HEADERS_MAX {
                    known.insert(tool.to_owned(), headers);
                }
                true
            }
            Err(error) => {
                self.left_out.report(|missed| {
                    tracing::warn!(target: "switchboard::list", tool, %error, missed, "Ignored a tool with invalid header annotations.");
                });
                false
            }
        }
    }

    /// Returns the headers of a tool call with these parameters.
    pub(crate) fn param_headers(&self, params: Option<&Raw>) -> Result<Headers, Error> {
        let known = self.param_headers.read();
        if known.is_empty() {
            return Ok(Arc::from([]));
        }
        let name = params.and_then(|params| params.member("name")?.to_text());
        let Some(headers) = name.and_then(|name| known.get(&name)) else {
            return Ok(Arc::from([]));
        };
        let arguments = params.and_then(|params| params.member("arguments"));
        headers
            .render(arguments.as_ref().map(Raw::as_str))
            .map(Arc::from)
            .map_err(|error| {
                let reason = error.to_string().into();
                CallError::InvalidParams { reason }.into()
            })
    }
}
