//! Results that ask back: how a server of 2026-07-28 gets input in the middle of a request.

use std::time::Duration;

use switchboard_wire::{Raw, method};

use crate::{Error, handlers::Handlers};

/// How often a server may ask back in one call.
pub(crate) const ROUNDS_MAX: usize = 10;

/// The most questions at a time.
const QUESTIONS_MAX: usize = 64;

/// How long to wait before repeating a request whose server only asked for a pause.
const PAUSE: Duration = Duration::from_millis(100);

/// Whether a server may answer this method with a question.
pub(crate) fn may_ask_back(name: &str) -> bool {
    matches!(
        name,
        method::TOOLS_CALL | method::PROMPTS_GET | method::RESOURCES_READ
    )
}

/// A result that asks for input.
#[derive(Debug)]
pub(crate) struct InputRequired {
    requests: Vec<(String, Raw)>,
    state: Option<Raw>,
}

impl InputRequired {
    /// The question in this result, if it is one.
    pub(crate) fn read(result: &Raw) -> Option<Self> {
        // Most results are no questions, and many are large: a search is far cheaper than a parse.
        memchr::memmem::find(result.as_bytes(), b"input_required")?;
        if result.member("resultType")?.to_text()? != "input_required" {
            return None;
        }
        let requests = result
            .member("inputRequests")
            .and_then(|requests| requests.members());
        Some(Self {
            requests: requests.unwrap_or_default(),
            state: result.member("requestState"),
        })
    }

    /// Asks the handlers, all questions at a time, and gives the answers by their keys.
    pub(crate) async fn gather(&self, asked_by: &str, handlers: &Handlers) -> Result<Raw, Error> {
        let refused = |reason: String| Error::InputRefused {
            method: asked_by.to_owned(),
            reason,
        };
        if self.requests.len() > QUESTIONS_MAX {
            return Err(refused(format!(
                "more than {QUESTIONS_MAX} questions at a time"
            )));
        }
        if self.requests.is_empty() {
            tokio::time::sleep(PAUSE).await;
        }
        let questions = self.requests.iter().map(|(key, request)| async move {
            let name = request
                .member("method")
                .and_then(|name| name.to_text())
                .unwrap_or_default();
            let answer = handlers.answer(&name, request.member("params")).await;
            answer
                .map(|answer| (key.as_str(), answer))
                .map_err(|error| refused(format!("`{name}`: {error}")))
        });
        let answers = join_all(questions).await?;
        Ok(Raw::object(answers))
    }

    /// The parameters of the request, with these answers and the state that belongs to them.
    pub(crate) fn answered(&self, params: Option<&Raw>, responses: &Raw) -> Result<Raw, Error> {
        let set = |params: Raw, name: &str, value: &Raw| {
            params
                .with_member(name, value)
                .map_err(|source| Error::InvalidArgument {
                    what: "the parameters",
                    source,
                })
        };
        let mut params = params.cloned().unwrap_or_else(Raw::empty_object);
        if !self.requests.is_empty() {
            params = set(params, "inputResponses", responses)?;
        }
        match &self.state {
            Some(state) => set(params, "requestState", state),
            None => Ok(params),
        }
    }
}

/// Waits for all of them, side by side; the first error ends it.
async fn join_all<T, E>(
    futures: impl Iterator<Item = impl Future<Output = Result<T, E>>>,
) -> Result<Vec<T>, E> {
    let mut running: Vec<_> = futures.map(|future| (Box::pin(future), None)).collect();
    std::future::poll_fn(|cx| {
        let mut pending = false;
        for (future, done) in &mut running {
            if done.is_none() {
                match future.as_mut().poll(cx) {
                    std::task::Poll::Ready(Ok(value)) => *done = Some(value),
                    std::task::Poll::Ready(Err(error)) => {
                        return std::task::Poll::Ready(Err(error));
                    }
                    std::task::Poll::Pending => pending = true,
                }
            }
        }
        if pending {
            return std::task::Poll::Pending;
        }
        std::task::Poll::Ready(Ok(running
            .iter_mut()
            .filter_map(|(_, done)| done.take())
            .collect()))
    })
    .await
}
