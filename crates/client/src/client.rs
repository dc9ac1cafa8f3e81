//! [`Client`]: the handle to one connection.

use std::{borrow::Cow, collections::HashMap, fmt, sync::Arc};

use serde::Serialize;
use switchboard_machine::{
    Call as MachineCall, CallError, CallKind, CounterValues, Session, State,
};
use switchboard_wire::{Era, Raw, method};
use tokio::{
    sync::{oneshot, watch},
    time::timeout,
};

use crate::{
    Call, ClientBuilder, Error, Lossless, Pages,
    call::Request,
    connection::{Change, Handle, Shared},
    driver::Control,
    model::{
        CallToolResult, CompleteResult, CompletionRef, GetPromptResult, LogLevel, Prompt,
        ReadResourceResult, Resource, ResourceTemplate, Root, Tool,
    },
    transport::Connect,
};

/// A connection to one MCP server.
///
/// Clones share the connection. Frames sent through one clone never overtake each other on their way to the
/// transport, but frames of different clones may. (Over HTTP every message is a separate request, and the
/// network does not preserve their order.) The connection stops when the last clone, and the last call made
/// through one, is dropped.
pub struct Client {
    handle: Handle,
}

impl Client {
    /// Connects with the default settings in the background, and returns immediately.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime with its timer enabled.
    pub fn connect(connect: impl Connect) -> Self {
        Self::builder(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION")).connect(connect)
    }

    /// Returns a builder for a client with this `name` and `version`.
    pub fn builder(name: &str, version: &str) -> ClientBuilder {
        ClientBuilder::new(name, version)
    }

    /// Returns the current state of the connection.
    pub fn state(&self) -> State {
        self.handle.shared.state.borrow().clone()
    }

    /// Returns a receiver for the state of the connection. Do not hold a borrow of its value across an
    /// `await`: the connection could not publish its next state. Short states may be skipped, and `changed`
    /// fails after the connection has ended.
    pub fn watch_state(&self) -> watch::Receiver<State> {
        self.handle.shared.state.clone()
    }

    /// Waits for the connection to become ready. Calls do this by themselves; use it to wait explicitly, or
    /// to get the capabilities and instructions of the server. Keeps waiting while the connection is lost and
    /// reopened; fails if the connection has failed permanently or is stopped.
    pub async fn ready(&self) -> Result<Arc<Session>, CallError> {
        self.handle.shared.ready().await
    }

    /// Returns the era of the server while the connection is ready. It can be passed to
    /// [`ClientBuilder::known_era`] later.
    pub fn era(&self) -> Option<Era> {
        self.handle.shared.era()
    }

    /// Returns the counters of the connection.
    pub fn counters(&self) -> CounterValues {
        self.handle.shared.counters.values()
    }

    /// Connects immediately if the connection is in backoff, or has failed. Does nothing otherwise.
    pub fn restart(&self) {
        self.handle.shared.control(Control::Restart);
    }

    /// Stops the connection. Every waiting call ends with [`CallError::Shutdown`], and the server gets time
    /// to exit in the background. Stopping twice has no further effect. A program that is about to exit
    /// should also wait for [`closed`](Self::closed): the background work ends with the runtime, and a server
    /// that has not exited by then is killed.
    pub async fn stop(&self) {
        let (sender, stopped) = oneshot::channel();
        self.handle.shared.control(Control::Stop(sender));
        // An error means that the connection has already ended.
        let _ = stopped.await;
    }

    /// Waits until the connection has ended and its server has exited. A child process gets at most [its
    /// grace period](crate::stdio::Command::grace). The connection itself ends at most 100 ms after a
    /// [`stop`](Self::stop).
    pub async fn closed(&self) {
        let mut state = self.handle.shared.state.clone();
        // The driver task holds the sender of this channel, and drops it when it ends.
        while state.changed().await.is_ok() {}
        self.handle.shared.connect.ended().await;
    }

    /// Sends any request and returns the raw result, including one that asks for input, which the typed calls
    /// pass to the handlers. A tool call whose headers are out of date is repeated with new ones, like a
    /// typed one. Members of `_meta` in `params` are kept, except for the protocol version and the progress
    /// token.
    pub fn request(
        &self,
        method: impl Into<Cow<'static, str>>,
        params: impl IntoParams,
    ) -> Call<Raw> {
        let (method, params) = (method.into(), params.into_params());
        if method != method::TOOLS_CALL {
            return Call::of(&self.handle, method, Ok(params));
        }
        let headers = self.handle.shared.param_headers(params.as_ref());
        let request = headers.map(|headers| Request {
            method,
            params,
            headers,
        });
        Call::new(self.handle.clone(), request)
    }

    /// Sends any notification. Completes when the transport has accepted it.
    pub async fn notify(
        &self,
        method: impl Into<Cow<'static, str>>,
        params: impl IntoParams,
    ) -> Result<(), Error> {
        let call = MachineCall {
            kind: CallKind::Notification,
            method: method.into(),
            params: params.into_params(),
            lane: self.handle.lane,
            timeout: Some(self.handle.shared.request_timeout),
            extend: None,
            progress: false,
            logs: false,
            fail_fast: false,
            log_level: None,
            trace: None,
            headers: Arc::from([]),
        };
        self.handle.shared.submit(call, None, None)?.await?;
        Ok(())
    }

    /// Lists the tools of the server. Over HTTP, tools whose header parameters break the rules of the
    /// protocol are left out, as the protocol requires.
    pub fn tools(&self) -> Pages<Tool> {
        Pages::new(self.handle.clone())
    }

    /// Calls a tool. A tool that ran and failed is not an [`Error`]: see [`CallToolResult::is_error`].
    pub fn call_tool(
        &self,
        name: impl Into<String>,
        arguments: impl Serialize,
    ) -> Call<Lossless<CallToolResult>> {
        let params = named_params(&name.into(), &arguments);
        let request = params.and_then(|params| {
            Ok(Request {
                method: method::TOOLS_CALL.into(),
                headers: self.handle.shared.param_headers(Some(&params))?,
                params: Some(params),
            })
        });
        Call::new(self.handle.clone(), request).asking_back()
    }

    /// Lists the prompts of the server.
    pub fn prompts(&self) -> Pages<Prompt> {
        Pages::new(self.handle.clone())
    }

    /// Renders a prompt. Its arguments are strings.
    pub fn get_prompt(
        &self,
        name: impl Into<String>,
        arguments: impl Serialize,
    ) -> Call<Lossless<GetPromptResult>> {
        let params = named_params(&name.into(), &arguments).map(Some);
        Call::of(&self.handle, method::PROMPTS_GET, params).asking_back()
    }

    /// Lists the resources of the server.
    pub fn resources(&self) -> Pages<Resource> {
        Pages::new(self.handle.clone())
    }

    /// Lists the resource templates of the server.
    pub fn resource_templates(&self) -> Pages<ResourceTemplate> {
        Pages::new(self.handle.clone())
    }

    /// Reads a resource.
    pub fn read_resource(&self, uri: &str) -> Call<Lossless<ReadResourceResult>> {
        let params = Raw::object([("uri", Raw::string(uri))]);
        Call::of(&self.handle, method::RESOURCES_READ, Ok(Some(params))).asking_back()
    }

    /// Completes an argument. `context` contains the arguments that are already known.
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
        let params = to_raw(&params, "the completion request").map(Some);
        Call::of(&self.handle, method::COMPLETE, params)
    }

    /// Subscribes to a resource: the server sends `notifications/resources/updated` whenever it changes. The
    /// subscription is renewed after every reconnect.
    pub async fn subscribe(&self, uri: &str) -> Result<(), Error> {
        self.change(Change::Subscribe(uri.to_owned())).await
    }

    /// Cancels a subscription.
    pub async fn unsubscribe(&self, uri: &str) -> Result<(), Error> {
        self.change(Change::Unsubscribe(uri.to_owned())).await
    }

    /// Sets the lowest level of log messages to receive, now and after every reconnect.
    pub async fn set_log_level(&self, level: LogLevel) -> Result<(), Error> {
        self.change(Change::Level(level)).await
    }

    /// Replaces the roots, and notifies the server if it needs that. Only for a client that was [built with
    /// roots](ClientBuilder::roots).
    pub async fn set_roots(&self, roots: impl IntoIterator<Item = Root>) -> Result<(), Error> {
        let Some(own) = &self.handle.shared.handlers.roots else {
            return Err(Error::NotDeclared { what: "roots" });
        };
        *own.write() = roots.into_iter().collect();
        match self.ready().await?.revision.era() {
            Era::Legacy => self.notify(method::ROOTS_CHANGED, None).await,
            // A server of 2026-07-28 requests the roots when it needs them.
            Era::Modern => Ok(()),
        }
    }

    /// Creates a client for a user of the library.
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self {
            handle: Handle::new(shared),
        }
    }

    async fn change(&self, change: Change) -> Result<(), Error> {
        let (sender, done) = oneshot::channel();
        // The subscriptions task ends only with the connection.
        let stopped = || Error::from(CallError::Shutdown { sent: true });
        let changing = async {
            self.handle
                .shared
                .changes
                .send((change, sender))
                .await
                .map_err(|_| stopped())?;
            done.await.map_err(|_| stopped())?
        };
        let after = self.handle.shared.request_timeout;
        let overdue = CallError::Timeout {
            after,
            sent: false,
            reason: None,
        };
        timeout(after, changing)
            .await
            .unwrap_or(Err(overdue.into()))
    }
}

/// A type that can be used as the parameters of a raw request: JSON text, a [`Value`](serde_json::Value), or
/// `None`.
pub trait IntoParams {
    /// Converts the value to JSON.
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
        // All keys of a `Value` are strings, so it can always be serialized.
        Raw::from_value(&self).ok()
    }
}

impl Clone for Client {
    fn clone(&self) -> Self {
        Self {
            handle: self.handle.new_lane(),
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

/// Returns `{"name": …, "arguments": …}`, or only the name if there are no arguments.
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
