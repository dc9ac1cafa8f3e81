//! Results that ask back: how a server of 2026-07-28 gets input in the middle of a request.

use std::time::Duration;

use switchboard_wire::{Name, Raw};

use crate::{
    Error,
    handlers::{Asked, Handlers},
    join::join_all,
};

/// The first and the longest pause before repeating a request whose server only asked for one.
const PAUSE: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// What kind of result it is.
#[derive(Debug)]
pub(crate) enum ResultKind {
    /// The end of the call.
    Complete,
    /// A question.
    InputRequired(InputRequired),
    /// Something that this client did not ask for and cannot read.
    Unknown(String),
}

/// A result that asks for input: what [`Client::request`](crate::Client::request) may hand back, and the
/// typed calls have answered by the handlers.
#[derive(Debug)]
pub struct InputRequired {
    requests: Vec<(String, Raw)>,
    state: Option<Raw>,
}

impl ResultKind {
    pub(crate) fn of(result: &Raw) -> Self {
        // Most results do not say, and many are large: a search is far cheaper than a parse.
        static RESULT_TYPE: Name = Name::new("resultType");
        if !result.may_name(&RESULT_TYPE) {
            return Self::Complete;
        }
        let kind = result.member("resultType").and_then(|kind| kind.to_text());
        match kind.as_deref() {
            None | Some("complete") => Self::Complete,
            Some("input_required") => Self::InputRequired(InputRequired {
                requests: result
                    .member("inputRequests")
                    .and_then(|requests| requests.members())
                    .unwrap_or_default(),
                state: result
                    .member("requestState")
                    .filter(|state| state.as_str() != "null"),
            }),
            Some(other) => Self::Unknown(other.to_owned()),
        }
    }
}

impl InputRequired {
    /// How often a server may ask questions in one call.
    pub const ROUNDS_MAX: u32 = 10;
    /// How often a server may ask for a pause in one call. The deadline of the call is there, too.
    pub const PAUSES_MAX: u32 = 100;
    /// The most questions at a time.
    pub const QUESTIONS_MAX: usize = 64;

    /// The questions in this result, if it is one that asks.
    pub fn of(result: &Raw) -> Option<Self> {
        match ResultKind::of(result) {
            ResultKind::InputRequired(asked) => Some(asked),
            ResultKind::Complete | ResultKind::Unknown(_) => None,
        }
    }

    /// What is asked, each under its key: a method and its parameters.
    pub fn questions(&self) -> &[(String, Raw)] {
        &self.requests
    }

    /// How long to wait before a request is repeated whose server only asked for that, the `n`th time.
    pub fn pause(n: u32) -> Duration {
        PAUSE.saturating_mul(2_u32.saturating_pow(n)).min(PAUSE_MAX)
    }

    /// Whether the server has no question, and only wants to be asked again later.
    pub fn is_pause(&self) -> bool {
        self.requests.is_empty()
    }

    /// Asks the handlers, all questions at a time, and gives the answers by their keys.
    pub(crate) async fn gather(
        &self,
        asked_by: &str,
        tag: Option<u64>,
        handlers: &Handlers,
    ) -> Result<Raw, Error> {
        let refused = |reason: String| Error::InputRefused {
            method: asked_by.to_owned(),
            reason,
        };
        if self.requests.len() > Self::QUESTIONS_MAX {
            return Err(refused(format!(
                "more than {} questions at a time",
                Self::QUESTIONS_MAX
            )));
        }
        let questions = self.requests.iter().map(|(key, request)| async move {
            let method = request.member("method").and_then(|name| name.to_text());
            let asked = Asked {
                method: method.unwrap_or_default(),
                params: request.member("params"),
                tag,
                of_request: true,
                name: Some(key.clone()),
            };
            let method = asked.method.clone();
            let answer = handlers.answer(asked).await;
            answer
                .map(|answer| (key.as_str(), answer))
                .map_err(|error| refused(format!("`{method}`: {error}")))
        });
        let answers: Result<Vec<_>, _> = join_all(questions).await.into_iter().collect();
        Ok(Raw::object(answers?))
    }

    /// The parameters of the call, with these answers and the state that belongs to them.
    pub fn answered(&self, params: Option<&Raw>, answers: &Raw) -> Result<Raw, Error> {
        let set = |params: Raw, name: &str, value: &Raw| {
            params
                .with_member(name, value)
                .map_err(|source| Error::InvalidArgument {
                    what: "the parameters",
                    source,
                })
        };
        let mut params = params.cloned().unwrap_or_else(Raw::empty_object);
        if !self.is_pause() {
            params = set(params, "inputResponses", answers)?;
        }
        match &self.state {
            Some(state) => set(params, "requestState", state),
            None => Ok(params),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escaped_result_type_is_read() {
        let result = r#"{"result\u0054ype":"input_required","inputRequests":{"a":{}}}"#;
        let input = InputRequired::of(&Raw::parse(result).unwrap()).unwrap();
        assert_eq!(input.questions().len(), 1);
    }
}
