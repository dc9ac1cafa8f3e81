//! Who answers when the server asks: one set of handlers for both ways of asking.

use std::{
    fmt,
    future::{Future, poll_fn},
    panic::{AssertUnwindSafe, catch_unwind},
    pin::{Pin, pin},
    sync::{Arc, PoisonError, RwLock},
    task::Poll,
};

use switchboard_wire::{ErrorObject, Notification, Raw, code, method};

use crate::model::{
    ElicitationAnswer, ElicitationRequest, Lossless, Root, SamplingRequest, SamplingResult,
};

/// What a handler gives, some time later.
pub(crate) type Answering = Pin<Box<dyn Future<Output = Result<Raw, ErrorObject>> + Send>>;
pub(crate) type RequestHandler = Box<dyn Fn(Option<Raw>) -> Answering + Send + Sync>;
type OtherHandler = Box<dyn Fn(String, Option<Raw>) -> Answering + Send + Sync>;
type NotificationHandler = Box<dyn Fn(Notification) + Send + Sync>;

#[derive(Default)]
pub(crate) struct Handlers {
    pub(crate) sampling: Option<RequestHandler>,
    pub(crate) elicitation: Option<RequestHandler>,
    pub(crate) other: Option<OtherHandler>,
    pub(crate) notification: Option<NotificationHandler>,
    pub(crate) roots: Option<RwLock<Vec<Root>>>,
}

impl Handlers {
    /// Answers a request of the server, in whichever way it came. A handler that panics answers
    /// with an error, and harms nobody else.
    pub(crate) async fn answer(
        &self,
        method: &str,
        params: Option<Raw>,
    ) -> Result<Raw, ErrorObject> {
        let answering = match (
            method,
            &self.sampling,
            &self.elicitation,
            &self.roots,
            &self.other,
        ) {
            (method::SAMPLING, Some(handler), ..) => calm(|| handler(params)),
            (method::ELICITATION, _, Some(handler), ..) => calm(|| handler(params)),
            (method::ROOTS_LIST, _, _, Some(roots), _) => {
                let roots = roots.read().unwrap_or_else(PoisonError::into_inner);
                return to_raw(&serde_json::json!({ "roots": *roots }));
            }
            (_, _, _, _, Some(handler)) => calm(|| handler(method.to_owned(), params)),
            _ => {
                let message = format!("this client does not answer `{method}`");
                return Err(ErrorObject::new(code::METHOD_NOT_FOUND, message));
            }
        };
        let mut answering = pin!(answering?);
        poll_fn(|cx| {
            calm(|| answering.as_mut().poll(cx)).unwrap_or_else(|error| Poll::Ready(Err(error)))
        })
        .await
    }

    /// What these handlers can do, as the older revisions spell it.
    pub(crate) fn legacy_capabilities(&self) -> Raw {
        let roots = self
            .roots
            .is_some()
            .then(|| ("roots", literal(r#"{"listChanged":true}"#)));
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
        let elicitation = literal(r#"{"form":{},"url":{}}"#);
        let elicitation = self
            .elicitation
            .is_some()
            .then_some(("elicitation", elicitation));
        sampling.into_iter().chain(elicitation)
    }
}

impl fmt::Debug for Handlers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Handlers")
    }
}

/// A handler for sampling from an ordinary async function.
pub(crate) fn sampling<F, Fut>(handler: F) -> RequestHandler
where
    F: Fn(Lossless<SamplingRequest>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<SamplingResult, ErrorObject>> + Send + 'static,
{
    typed(handler)
}

/// A handler for elicitation from an ordinary async function.
pub(crate) fn elicitation<F, Fut>(handler: F) -> RequestHandler
where
    F: Fn(Lossless<ElicitationRequest>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<ElicitationAnswer, ErrorObject>> + Send + 'static,
{
    typed(handler)
}

fn typed<Q, A, F, Fut>(handler: F) -> RequestHandler
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

fn to_raw(value: &impl serde::Serialize) -> Result<Raw, ErrorObject> {
    Raw::from_value(value).map_err(|error| ErrorObject::new(code::INTERNAL, error.to_string()))
}

fn calm<T>(run: impl FnOnce() -> T) -> Result<T, ErrorObject> {
    catch_unwind(AssertUnwindSafe(run)).map_err(|_| {
        tracing::error!(target: "switchboard::handler", "a request handler panicked");
        ErrorObject::new(code::INTERNAL, "the client failed to answer")
    })
}

fn literal(json: &'static str) -> Raw {
    // Only called with the literals above, which are JSON.
    Raw::parse(json).unwrap_or_else(|_| Raw::empty_object())
}
