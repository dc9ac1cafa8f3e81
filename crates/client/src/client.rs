//! [`Client`]: the handle to one connection.

use std::{
    borrow::Cow,
    collections::HashMap,
    fmt,
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use serde::Serialize;
use switchboard_machine::{
    Call as MachineCall, CallError, CallKind, CounterValues, Counters, Headers, Ids, Session, State,
};
use switchboard_wire::{Era, Raw, header::ParamHeaders, method};
use tokio::{
    sync::{mpsc, oneshot, watch},
    time::timeout,
};

use crate::{
    Call, ClientBuilder, Error, Lossless, Pages,
    call::Request,
    driver::{Caller, Control, Submission, Told},
    handlers::Handlers,
    keeper::Wish,
    lists::AskedFor,
    model::{
        CallToolResult, CompleteResult, CompletionRef, GetPromptResult, LogLevel, Prompt,
        ReadResourceResult, Resource, ResourceTemplate, Root, Tool,
    },
    pending::Pending,
    throttle::Limited,
    transport::Connect,
};

/// A connection to one MCP server.
///
/// Clones share the connection. Frames sent through one clone never overtake each other on their way
/// to the transport; those of different clones may. (Over HTTP every message is a request of its
/// own, and the network keeps no order.) When the last clone is dropped, and the last call made
/// through one, the connection stops.
pub struct Client {
    shared: Arc<Shared>,
    lane: u64,
    /// Held by what belongs to a user, so that the connection ends with the last of them.
    user: Option<Arc<User>>,
}

/// What users hold. The library's own tasks do not.
struct User(mpsc::UnboundedSender<Control>);

impl Drop for User {
    fn drop(&mut self) {
        // An error means that the connection is over already.
        let _ = self.0.send(Control::Abandoned);
    }
}

/// What all clones of a client share.
pub(crate) struct Shared {
    pub(crate) calls: mpsc::Sender<Submission>,
    pub(crate) control: mpsc::UnboundedSender<Control>,
    pub(crate) state: watch::Receiver<State>,
    pub(crate) wishes: mpsc::Sender<Wish>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) handlers: Arc<Handlers>,
    pub(crate) ids: Ids,
    pub(crate) request_timeout: Duration,
    pub(crate) connect: Arc<dyn Connect>,
    /// Which arguments of which tool travel as headers, too: known from the list of tools.
    pub(crate) param_headers: RwLock<HashMap<String, ParamHeaders>>,
    /// Which lists somebody may hold.
    pub(crate) asked_for: AskedFor,
    /// The level for revisions that want it with each request.
    pub(crate) log_level: RwLock<Option<Raw>>,
    /// Tells of items of lists that cannot be used.
    pub(crate) left_out: Limited,
}

static LANES: AtomicU64 = AtomicU64::new(0);

/// The most tools whose header parameters are remembered.
const PARAM_HEADERS_MAX: usize = 10_000;

impl Client {
    /// Connects with the defaults, in the background, and returns at once.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime with its timer enabled.
    pub fn connect(connect: impl Connect) -> Self {
        Self::builder(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION")).connect(connect)
    }

    /// A client that calls itself `name` of this `version`.
    pub fn builder(name: &str, version: &str) -> ClientBuilder {
        ClientBuilder::new(name, version)
    }

    /// A client for a user.
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        let user = Arc::new(User(shared.control.clone()));
        Self {
            user: Some(user),
            ..Self::internal(shared)
        }
    }

    /// A client for the library's own use, which does not keep the connection from ending.
    pub(crate) fn internal(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            lane: LANES.fetch_add(1, Relaxed),
            user: None,
        }
    }

    /// The same handle again: what it sends keeps its order with what this one sends.
    pub(crate) fn same_lane(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            lane: self.lane,
            user: self.user.clone(),
        }
    }

    /// Where the connection stands.
    pub fn state(&self) -> State {
        self.shared.state.borrow().clone()
    }

    /// A watch on where the connection stands. Do not hold on to what it lends across an `await`: the
    /// connection could not tell its next state.
    pub fn watch_state(&self) -> watch::Receiver<State> {
        self.shared.state.clone()
    }

    /// Waits for the connection to be ready. Calls do that by themselves; this is for those who
    /// want to know, or need what the server said of itself. Waits through losses and attempts;
    /// fails when the connection has failed for good or is stopped.
    pub async fn ready(&self) -> Result<Arc<Session>, CallError> {
        let mut state = self.shared.state.clone();
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

    /// Which kind of server it is, while the connection is ready: worth keeping for
    /// [`ClientBuilder::known_era`].
    pub fn era(&self) -> Option<Era> {
        match &*self.shared.state.borrow() {
            State::Ready(session) => Some(session.revision.era()),
            _ => None,
        }
    }

    /// What happened so far, in numbers.
    pub fn counters(&self) -> CounterValues {
        self.shared.counters.values()
    }

    /// Connects at once if the connection waits to, or has failed. Does nothing otherwise.
    pub fn restart(&self) {
        self.shared.control(Control::Restart);
    }

    /// Ends the connection. Every waiting call gets [`CallError::Shutdown`]; the server is given
    /// time to leave, in the background. Stopping twice is the same as stopping once. A program that
    /// is about to exit waits for [`closed`](Self::closed), too: with the runtime goes the background,
    /// and a server that has not left by then is ended.
    pub async fn stop(&self) {
        let (sender, stopped) = oneshot::channel();
        self.shared.control(Control::Stop(sender));
        // An error means that it has ended already.
        let _ = stopped.await;
    }

    /// Waits until the connection is over and its server has left: a child process at most as long as
    /// [its grace](crate::stdio::Command::grace). The connection itself is over at most 100 ms after a
    /// [`stop`](Self::stop).
    pub async fn closed(&self) {
        let mut state = self.shared.state.clone();
        // The task holds the other end of the watch, and lets go of it when it ends.
        while state.changed().await.is_ok() {}
        self.shared.connect.ended().await;
    }

    /// Sends any request, and hands back the raw result: also one that asks for input, which the
    /// typed calls have the handlers answer. A tool call whose headers are out of date is repeated
    /// with new ones, as a typed one is. Members of `_meta` that are given here stand, but for the
    /// protocol version and the progress token.
    pub fn request(
        &self,
        method: impl Into<Cow<'static, str>>,
        params: impl IntoParams,
    ) -> Call<Raw> {
        let (method, params) = (method.into(), params.into_params());
        if method != method::TOOLS_CALL {
            self.shared.asked_for.note(&method);
            return self.call(method, Ok(params));
        }
        let headers = self.param_headers(params.as_ref());
        let request = headers.map(|headers| Request {
            method,
            params,
            headers,
        });
        Call::new(self.same_lane(), request)
    }

    /// Sends any notification. Done when the transport has it.
    pub async fn notify(
        &self,
        method: impl Into<Cow<'static, str>>,
        params: impl IntoParams,
    ) -> Result<(), Error> {
        let call = MachineCall {
            kind: CallKind::Notification,
            method: method.into(),
            params: params.into_params(),
            lane: self.lane,
            timeout: Some(self.shared.request_timeout),
            extend: None,
            progress: false,
            logs: false,
            fail_fast: false,
            log_level: None,
            trace: None,
            headers: Arc::from([]),
        };
        self.shared.submit(call, None, None)?.await?;
        Ok(())
    }

    /// The tools of the server. Over HTTP, tools whose header parameters break the rules of the
    /// protocol are left out, as it demands.
    pub fn tools(&self) -> Pages<Tool> {
        Pages::new(self.same_lane())
    }

    /// Calls a tool. A tool that ran and failed is no [`Error`]: see [`CallToolResult::is_error`].
    pub fn call_tool(
        &self,
        name: impl Into<String>,
        arguments: impl Serialize,
    ) -> Call<Lossless<CallToolResult>> {
        let params = named_params(&name.into(), &arguments);
        let request = params.and_then(|params| {
            Ok(Request {
                method: method::TOOLS_CALL.into(),
                headers: self.param_headers(Some(&params))?,
                params: Some(params),
            })
        });
        Call::new(self.same_lane(), request).asking_back()
    }

    /// The prompts of the server.
    pub fn prompts(&self) -> Pages<Prompt> {
        Pages::new(self.same_lane())
    }

    /// Fills in a prompt. Its arguments are strings.
    pub fn get_prompt(
        &self,
        name: impl Into<String>,
        arguments: impl Serialize,
    ) -> Call<Lossless<GetPromptResult>> {
        let params = named_params(&name.into(), &arguments).map(Some);
        self.call(method::PROMPTS_GET, params).asking_back()
    }

    /// The resources of the server.
    pub fn resources(&self) -> Pages<Resource> {
        Pages::new(self.same_lane())
    }

    /// The families of resources of the server.
    pub fn resource_templates(&self) -> Pages<ResourceTemplate> {
        Pages::new(self.same_lane())
    }

    /// Reads a resource.
    pub fn read_resource(&self, uri: &str) -> Call<Lossless<ReadResourceResult>> {
        let params = Raw::object([("uri", Raw::string(uri))]);
        self.call(method::RESOURCES_READ, Ok(Some(params)))
            .asking_back()
    }

    /// Asks how an argument could go on. `context` holds the arguments that are already filled in.
    pub fn complete(
        &self,
        of: &CompletionRef,
        argument: &str,
        value: &str,
        context: &HashMap<String, String>,
    ) -> Call<Lossless<CompleteResult>> {
        let mut params = serde_json::json!({
            "ref": of,
            "argument": { "name": argument, "value": value },
        });
        if !context.is_empty() {
            params["context"] = serde_json::json!({ "arguments": context });
        }
        self.call(
            method::COMPLETE,
            to_raw(&params, "the completion request").map(Some),
        )
    }

    /// Asks for `notifications/resources/updated` whenever this resource changes, now and after
    /// every reconnect.
    pub async fn subscribe(&self, uri: &str) -> Result<(), Error> {
        let uri = uri.to_owned();
        self.wish(|reply| Wish::Subscribe { uri, reply }).await
    }

    /// Takes that back.
    pub async fn unsubscribe(&self, uri: &str) -> Result<(), Error> {
        let uri = uri.to_owned();
        self.wish(|reply| Wish::Unsubscribe { uri, reply }).await
    }

    /// Asks for log messages of this level and above, now and after every reconnect.
    pub async fn set_log_level(&self, level: LogLevel) -> Result<(), Error> {
        self.wish(|reply| Wish::Level { level, reply }).await
    }

    /// Changes the roots, and tells a server that wants to know. Only for a client that was
    /// [built with roots](ClientBuilder::roots).
    pub async fn set_roots(&self, roots: impl IntoIterator<Item = Root>) -> Result<(), Error> {
        let Some(own) = &self.shared.handlers.roots else {
            return Err(Error::NotOffered {
                what: "roots to a client that was built without them".to_owned(),
            });
        };
        *own.write().unwrap_or_else(PoisonError::into_inner) = roots.into_iter().collect();
        match self.ready().await?.revision.era() {
            Era::Legacy => self.notify(method::ROOTS_CHANGED, None).await,
            // A server of 2026-07-28 asks when it needs them.
            Era::Modern => Ok(()),
        }
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    pub(crate) fn lane(&self) -> u64 {
        self.lane
    }

    /// Remembers which arguments of a tool travel as headers. Whether the tool can be used.
    pub(crate) fn learn_param_headers(&self, tool: &Lossless<Tool>) -> bool {
        // Only where requests have headers, and only since the revision that gives them a meaning.
        if !self.shared.connect.carries_headers() || self.era() != Some(Era::Modern) {
            return true;
        }
        match ParamHeaders::from_schema(tool.input_schema.as_str()) {
            Ok(headers) => {
                let mut known = self
                    .shared
                    .param_headers
                    .write()
                    .unwrap_or_else(PoisonError::into_inner);
                if headers.is_empty() {
                    known.remove(&tool.name);
                } else if known.len() < PARAM_HEADERS_MAX {
                    known.insert(tool.name.clone(), headers);
                }
                true
            }
            Err(error) => {
                self.shared.left_out.report(|missed| {
                    tracing::warn!(target: "switchboard::list", tool = tool.name, %error, missed, "left out a tool");
                });
                false
            }
        }
    }

    /// Tells of items of lists that cannot be used, at a bounded rate.
    pub(crate) fn left_out(&self) -> &Limited {
        &self.shared.left_out
    }

    /// The headers that a call of a tool with these parameters carries.
    pub(crate) fn param_headers(&self, params: Option<&Raw>) -> Result<Headers, Error> {
        let known = self
            .shared
            .param_headers
            .read()
            .unwrap_or_else(PoisonError::into_inner);
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

    fn call<T>(
        &self,
        method: impl Into<Cow<'static, str>>,
        params: Result<Option<Raw>, Error>,
    ) -> Call<T> {
        let request = params.map(|params| Request {
            method: method.into(),
            params,
            headers: Arc::from([]),
        });
        Call::new(self.same_lane(), request)
    }

    async fn wish(
        &self,
        wish: impl FnOnce(oneshot::Sender<Result<(), Error>>) -> Wish,
    ) -> Result<(), Error> {
        let (reply, granted) = oneshot::channel();
        // The keeper ends only with the connection.
        let stopped = || Error::from(CallError::Shutdown { sent: true });
        let granting = async {
            self.shared
                .wishes
                .send(wish(reply))
                .await
                .map_err(|_| stopped())?;
            granted.await.map_err(|_| stopped())?
        };
        let after = self.shared.request_timeout;
        let overdue = CallError::Timeout {
            after,
            sent: false,
            reason: None,
        };
        timeout(after, granting)
            .await
            .unwrap_or(Err(overdue.into()))
    }
}

/// What the parameters of a raw request can be given as: JSON as it is to be sent, a
/// [`Value`](serde_json::Value), or `None`.
pub trait IntoParams {
    /// The parameters as JSON.
    fn into_params(self) -> Option<Raw>;
}

impl IntoParams for Raw {
    fn into_params(self) -> Option<Raw> {
        Some(self)
    }
}

impl IntoParams for Option<Raw> {
    fn into_params(self) -> Option<Raw> {
        self
    }
}

impl IntoParams for serde_json::Value {
    fn into_params(self) -> Option<Raw> {
        // A value has only names that are strings, so that it can always be written.
        Raw::from_value(&self).ok()
    }
}

impl Shared {
    pub(crate) fn submit(
        &self,
        call: MachineCall,
        told: Option<mpsc::Sender<Told>>,
        tag: Option<u64>,
    ) -> Result<Pending, CallError> {
        // JSON-RPC would allow an array; MCP has objects only, and some servers answer nothing else.
        if call
            .params
            .as_ref()
            .is_some_and(|params| !params.is_object())
        {
            let reason = "expected a JSON object".into();
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
        // An error means that the connection is over, and with it everything to be controlled.
        let _ = self.control.send(control);
    }

    pub(crate) fn log_level(&self) -> Option<Raw> {
        self.log_level
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

impl Clone for Client {
    fn clone(&self) -> Self {
        Self {
            user: self.user.clone(),
            ..Self::internal(Arc::clone(&self.shared))
        }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("state", &self.state())
            .finish_non_exhaustive()
    }
}

/// `{"name": …, "arguments": …}`, without arguments if there are none.
fn named_params(name: &str, arguments: &impl Serialize) -> Result<Raw, Error> {
    let name = ("name", Raw::string(name));
    let arguments = to_raw(arguments, "the arguments")?;
    if arguments.as_str() == "null" {
        return Ok(Raw::object([name]));
    }
    if !arguments.is_object() {
        let reason = "the arguments are not a JSON object".into();
        return Err(CallError::InvalidParams { reason }.into());
    }
    Ok(Raw::object([name, ("arguments", arguments)]))
}

fn to_raw(value: &impl Serialize, what: &'static str) -> Result<Raw, Error> {
    Raw::from_value(value).map_err(|source| Error::InvalidArgument { what, source })
}
