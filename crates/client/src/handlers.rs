//! The handlers for the requests of the server: one set for both ways of requesting input.

use std::{
    fmt,
    future::{Future, poll_fn},
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::Arc,
    task::Poll,
};

use parking_lot::RwLock;
use switchboard_wire::{ErrorObject, Notification, Raw, code, method};

use crate::model::{Lossless, Root};

/// The future of a handler.
pub(crate) type Answering = Pin<Box<dyn Future<Output = Result<Raw, ErrorObject>> + Send>>;
pub(crate) type RequestHandler = Box<dyn Fn(Option<Raw>) -> Answering + Send + Sync>;
type OtherHandler = Box<dyn Fn(String, Option<Raw>) -> Answering + Send + Sync>;
type AskedHandler = Box<dyn Fn(Asked) -> Answering + Send + Sync>;
type NotificationHandler = Box<dyn Fn(Notification) + Send + Sync>;
type ViolationHandler = Box<dyn Fn(&Violation<'_>) + Send + Sync>;

/// A log message of a call.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct LogMessage {
    /// The parameters of the notification, as they arrived.
    pub params: Raw,
    /// It arrived on the call's own stream. Otherwise, the call was the only one in flight, but the message may be about
    /// an earlier one.
    pub is_named: bool,
}

/// A request of the server, as it arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Asked {
    /// The method.
    pub method: String,
    /// The parameters.
    pub params: Option<Raw>,
    /// The [tag](crate::Call::tag) of the call that the request belongs to, if the transport can tell which
    /// one it is, and the call is in flight.
    pub tag: Option<u64>,
    /// The request arrived on the stream of a call, or in its result. If it did and there is no tag, that
    /// call has none or has ended; if it did not, the call that it belongs to is unknown.
    pub of_request: bool,
    /// The server's name for the request: its id, or its key among the input requests, if that is a string.
    pub name: Option<String>,
}

/// A report of protocol violations by the server. Reports are sent at a limited rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Violation<'a> {
    /// One violation.
    #[non_exhaustive]
    Frame {
        /// The violation.
        reason: &'a str,
        /// The frame, if it cannot be parsed as JSON-RPC.
        frame: Option<&'a [u8]>,
    },
    /// Violations since the last report that were only counted.
    #[non_exhaustive]
    More {
        /// Number of violations.
        count: u64,
        /// Size of their frames, in bytes.
        bytes: u64,
    },
}

#[derive(Default)]
pub(crate) struct Handlers {
    /// Takes precedence over all others.
    pub(crate) asked: Option<AskedHandler>,
    pub(crate) sampling: Option<RequestHandler>,
    pub(crate) elicitation: Option<RequestHandler>,
    pub(crate) url_elicitation: Option<RequestHandler>,
    pub(crate) other: Option<OtherHandler>,
    pub(crate) notification: Option<NotificationHandler>,
    pub(crate) violation: Option<ViolationHandler>,
    pub(crate) roots: Option<RwLock<Vec<Root>>>,
}

impl Handlers {
    /// Responds to a request of the server, whichever way it arrived. A handler that panics responds with an
    /// error, and does not affect anything else.
    pub(crate) async fn answer(&self, asked: Asked) -> Result<Raw, ErrorObject> {
        calmly(self.begin(asked)?).await
    }

    /// Accepts a request of the server that has just been read, before the next frame is read. The `asked`
    /// handler is called here, so that it sees the calls in flight at this point; the other handlers are
    /// called when the future is first polled.
    pub(crate) fn take_in(self: &Arc<Self>, asked: Asked) -> Answering {
        let handlers = Arc::clone(self);
        if self.asked.is_none() {
            return Box::pin(async move { handlers.answer(asked).await });
        }
        match self.begin(asked) {
            Ok(answering) => Box::pin(calmly(answering)),
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    }

    /// Reports a violation. A handler that panics does not affect anything else.
    pub(crate) fn violated(&self, what: &Violation<'_>) {
        if let Some(handler) = &self.violation
            && catch_unwind(AssertUnwindSafe(|| handler(what))).is_err()
        {
            tracing::error!(target: "switchboard::handler", "A violation handler panicked.");
        }
    }

    /// Finds the handler and calls it.
    fn begin(&self, asked: Asked) -> Result<Answering, ErrorObject> {
        if let Some(handler) = &self.asked {
            return calm(|| handler(asked));
        }
        let Asked { method, params, .. } = asked;
        let typed = match method.as_str() {
            method::SAMPLING => self.sampling.as_ref(),
            method::ELICITATION if asks_for_url(params.as_ref()) => self.url_elicitation.as_ref(),
            method::ELICITATION => self.elicitation.as_ref(),
            _ => None,
        };
        match (typed, &self.roots, &self.other) {
            (Some(handler), ..) => calm(|| handler(params)),
            (None, Some(roots), _) if method == method::ROOTS_LIST => {
                let roots = roots.read();
                let answer = to_raw(&serde_json::json!({ "roots": *roots }));
                Ok(Box::pin(std::future::ready(answer)))
            }
            (None, _, Some(handler)) => calm(|| handler(method, params)),
            (None, _, None) => {
                let message = format!("this client does not support `{method}`");
                Err(ErrorObject::new(code::METHOD_NOT_FOUND, message))
            }
        }
    }

    /// Returns the capabilities of these handlers, in the format of the older revisions.
    pub(crate) fn legacy_capabilities(&self) -> Raw {
        let changes = || Raw::object([("listChanged", Raw::from(true))]);
        let roots = self.roots.is_some().then(|| ("roots", changes()));
        Raw::object(self.asking_capabilities().chain(roots))
    }

    /// Returns the capabilities of these handlers, in the format of 2026-07-28.
    pub(crate) fn modern_capabilities(&self) -> Raw {
        let roots = self.roots.is_some().then(|| ("roots", Raw::empty_object()));
        Raw::object(self.asking_capabilities().chain(roots))
    }

    fn asking_capabilities(&self) -> impl Iterator<Item = (&'static str, Raw)> {
        let sampling = self
            .sampling
            .is_some()
            .then(|| ("sampling", Raw::empty_object()));
        let forms = self.elicitation.is_some().then_some("form");
        let urls = self.url_elicitation.is_some().then_some("url");
        let kinds = forms.into_iter().chain(urls);
        let elicitation = Raw::object(kinds.map(|kind| (kind, Raw::empty_object())));
        let elicitation = (elicitation.as_str() != "{}").then_some(("elicitation", elicitation));
        sampling.into_iter().chain(elicitation)
    }
}

impl fmt::Debug for Handlers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Handlers")
    }
}

/// Makes a raw JSON handler of a typed async function.
pub(crate) fn typed<Q, A, F, Fut>(handler: F) -> RequestHandler
where
    Q: serde::de::DeserializeOwned + Send + 'static,
    A: serde::Serialize,
    F: Fn(Lossless<Q>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<A, ErrorObject>> + Send + 'static,
{
    let handler = Arc::new(handler);
    Box::new(move |params| {
        let question = Lossless::read(params.unwrap_or_else(Raw::empty_object));
        let handler = Arc::clone(&handler);
        Box::pin(async move {
            let question = question.map_err(|error| {
                ErrorObject::new(code::INVALID_PARAMS, format!("invalid parameters: {error}"))
            })?;
            to_raw(&handler(question).await?)
        })
    })
}

/// Returns `true` if an elicitation asks to open a URL, not to fill in a form.
fn asks_for_url(params: Option<&Raw>) -> bool {
    let mode = params.and_then(|params| params.member("mode")?.to_text());
    mode.as_deref() == Some("url")
}

fn to_raw(value: &impl serde::Serialize) -> Result<Raw, ErrorObject> {
    Raw::from_value(value).map_err(|error| ErrorObject::new(code::INTERNAL, error.to_string()))
}

/// Awaits a handler. A panic becomes an error.
async fn calmly(mut answering: Answering) -> Result<Raw, ErrorObject> {
    poll_fn(|cx| {
        calm(|| answering.as_mut().poll(cx)).unwrap_or_else(|error| Poll::Ready(Err(error)))
    })
    .await
}

fn calm<T>(run: impl FnOnce() -> T) -> Result<T, ErrorObject> {
    catch_unwind(AssertUnwindSafe(run)).map_err(|_| {
        tracing::error!(target: "switchboard::handler", "A request handler panicked.");
        ErrorObject::new(code::INTERNAL, "the client failed to respond")
    })
}
