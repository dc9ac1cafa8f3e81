//! Who answers when the server asks: one set of handlers for both ways of asking.

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

/// What a handler gives, some time later.
pub(crate) type Answering = Pin<Box<dyn Future<Output = Result<Raw, ErrorObject>> + Send>>;
pub(crate) type RequestHandler = Box<dyn Fn(Option<Raw>) -> Answering + Send + Sync>;
type OtherHandler = Box<dyn Fn(String, Option<Raw>) -> Answering + Send + Sync>;
type AskedHandler = Box<dyn Fn(Asked) -> Answering + Send + Sync>;
type NotificationHandler = Box<dyn Fn(Notification) + Send + Sync>;
type ViolationHandler = Box<dyn Fn(&Violation<'_>) + Send + Sync>;

/// Something that the server asks, as it came.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Asked {
    /// The method.
    pub method: String,
    /// The parameters.
    pub params: Option<Raw>,
    /// The [tag](crate::Call::tag) of the call on which the server asks, if the transport can tell
    /// which one that is, and the call is under way.
    pub tag: Option<u64>,
    /// It came on the stream of a request, or in its result. If so and there is no tag, that request has none or
    /// is over; if not, nothing says to which request it belongs.
    pub of_request: bool,
    /// What the server calls the question: its id, or the key that it asks under, if that is a string.
    pub name: Option<String>,
}

/// A report about a server that breaks the protocol. Reports come at a bounded rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Violation<'a> {
    /// One violation.
    #[non_exhaustive]
    Frame {
        /// What the server did.
        reason: &'a str,
        /// The frame, if it cannot be read as JSON-RPC.
        frame: Option<&'a [u8]>,
    },
    /// Violations since the last report that were only counted.
    #[non_exhaustive]
    More {
        /// Their number.
        count: u64,
        /// The size of their frames.
        bytes: u64,
    },
}

#[derive(Default)]
pub(crate) struct Handlers {
    /// Goes ahead of all others.
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
    /// Answers a request of the server, in whichever way it came. A handler that panics answers
    /// with an error, and harms nobody else.
    pub(crate) async fn answer(&self, asked: Asked) -> Result<Raw, ErrorObject> {
        calmly(self.begin(asked)?).await
    }

    /// Takes in a request of the server that has just been read: the next frame is read after this. The handler of
    /// everything is called here, so that it sees what is under way at this point; the others when the answer is
    /// first polled.
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

    /// Tells of a violation. A handler that panics harms nobody else.
    pub(crate) fn violated(&self, what: &Violation<'_>) {
        if let Some(handler) = &self.violation
            && catch_unwind(AssertUnwindSafe(|| handler(what))).is_err()
        {
            tracing::error!(target: "switchboard::handler", "a handler of violations panicked");
        }
    }

    /// Finds whoever answers, and has it begin.
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
                let message = format!("this client does not answer `{method}`");
                Err(ErrorObject::new(code::METHOD_NOT_FOUND, message))
            }
        }
    }

    /// What these handlers can do, as the older revisions spell it.
    pub(crate) fn legacy_capabilities(&self) -> Raw {
        let changes = || Raw::object([("listChanged", Raw::from(true))]);
        let roots = self.roots.is_some().then(|| ("roots", changes()));
        Raw::object(self.asking_capabilities().chain(roots))
    }

    /// What these handlers can do, as 2026-07-28 spells it.
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

/// A handler in raw JSON from an ordinary async function.
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
                ErrorObject::new(code::INVALID_PARAMS, format!("cannot be read: {error}"))
            })?;
            to_raw(&handler(question).await?)
        })
    })
}

/// Whether a question to a person is one about an address, not a form.
fn asks_for_url(params: Option<&Raw>) -> bool {
    let mode = params.and_then(|params| params.member("mode")?.to_text());
    mode.as_deref() == Some("url")
}

fn to_raw(value: &impl serde::Serialize) -> Result<Raw, ErrorObject> {
    Raw::from_value(value).map_err(|error| ErrorObject::new(code::INTERNAL, error.to_string()))
}

/// Awaits an answer. A panic is an error.
async fn calmly(mut answering: Answering) -> Result<Raw, ErrorObject> {
    poll_fn(|cx| {
        calm(|| answering.as_mut().poll(cx)).unwrap_or_else(|error| Poll::Ready(Err(error)))
    })
    .await
}

fn calm<T>(run: impl FnOnce() -> T) -> Result<T, ErrorObject> {
    catch_unwind(AssertUnwindSafe(run)).map_err(|_| {
        tracing::error!(target: "switchboard::handler", "a request handler panicked");
        ErrorObject::new(code::INTERNAL, "the client failed to answer")
    })
}
