//! Results that ask for input: the way in which a server of 2026-07-28 gets input during a request.

use std::{collections::HashSet, time::Duration};

use switchboard_wire::{Name, Raw, RawError};

use crate::{
    Error,
    handlers::{Asked, Handlers},
    join::join_all,
};

/// The first and the longest pause before repeating a request whose server only asked for a pause.
const PAUSE: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// The kind of a result.
#[derive(Debug)]
pub(crate) enum ResultKind {
    /// The final result of the call.
    Complete,
    /// A request for input.
    InputRequired(InputRequired),
    /// A kind that this client did not ask for and cannot interpret.
    Unknown(String),
}

/// A result that asks for input. [`Client::request`](crate::Client::request) may return one; the typed calls
/// pass it to the handlers.
#[derive(Debug)]
pub struct InputRequired {
    requests: Vec<(String, Raw)>,
    state: Option<Raw>,
}

/// A result that may ask for input, but is ambiguous: programs would interpret it in different ways.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UnclearInput {
    /// A member occurs twice, or in another letter case.
    #[error("its input requests are ambiguous: {0}")]
    Ambiguous(#[from] RawError),
    /// There are more than [`InputRequired::QUESTIONS_MAX`] input requests.
    #[error("it has more than {} input requests", InputRequired::QUESTIONS_MAX)]
    TooMany,
    /// A member does not have the type that the protocol requires.
    #[error("its input requests are invalid: {what} must be {kind}")]
    Shape {
        /// The member.
        what: &'static str,
        /// The type that it must have.
        kind: &'static str,
    },
}

/// The members with which a result asks for input.
const MEMBERS: [&str; 3] = ["resultType", "inputRequests", "requestState"];

impl ResultKind {
    /// Reads the kind of a result, and its input requests.
    pub(crate) fn of(result: &Raw) -> Result<Self, UnclearInput> {
        // Most results have no kind, and many are large: a search is far cheaper than parsing.
        static RESULT_TYPE: Name = Name::new("resultType");
        let names_requests = InputRequired::may_be_in(result);
        if !names_requests && !result.may_name(&RESULT_TYPE) {
            return Ok(Self::Complete);
        }
        let requests = if names_requests {
            requests_in(result)?
        } else {
            Vec::new()
        };
        let kind = result.member("resultType").and_then(|kind| kind.to_text());
        Ok(match kind.as_deref() {
            None | Some("complete") => Self::Complete,
            Some("input_required") => Self::InputRequired(InputRequired {
                requests,
                state: result
                    .distinct_member(&["requestState"])?
                    .filter(|state| state.as_str() != "null"),
            }),
            Some(other) => Self::Unknown(other.to_owned()),
        })
    }
}

/// Returns the input requests in a result, each with its key: a method and its parameters.
fn requests_in(result: &Raw) -> Result<Vec<(String, Raw)>, UnclearInput> {
    let shape = |what, kind| UnclearInput::Shape { what, kind };
    let [kind, requests, state] = MEMBERS;
    let said = |value: &Raw| value.as_bytes() != b"null";
    let kind = result.distinct_member(&[kind, requests, state])?;
    if kind.filter(said).is_some_and(|kind| !is_string(&kind)) {
        return Err(shape("`resultType`", "a string"));
    }
    let Some(requests) = result.member(requests).filter(said) else {
        return Ok(Vec::new());
    };
    let requests = requests.members();
    let requests = requests.ok_or_else(|| shape("`inputRequests`", "an object"))?;
    if requests.len() > InputRequired::QUESTIONS_MAX {
        return Err(UnclearInput::TooMany);
    }
    let mut keys = HashSet::with_capacity(requests.len());
    for (key, request) in &requests {
        if !keys.insert(key) {
            return Err(shape("an input request", "under a key of its own"));
        }
        if !request.is_object() {
            return Err(shape("an input request", "an object"));
        }
        let method = request.distinct_member(&["method", "params"])?;
        if !method.is_some_and(|method| is_string(&method)) {
            return Err(shape("the `method` of an input request", "a string"));
        }
        let params = request.member("params").filter(said);
        if params.is_some_and(|params| !params.is_object()) {
            return Err(shape("the `params` of an input request", "an object"));
        }
    }
    Ok(requests)
}

fn is_string(value: &Raw) -> bool {
    value.as_bytes().first() == Some(&b'"')
}

impl InputRequired {
    /// The most rounds of input that a server may request in one call.
    pub const ROUNDS_MAX: u32 = 10;
    /// The most pauses that a server may request in one call. The deadline of the call applies as well.
    pub const PAUSES_MAX: u32 = 100;
    /// The most input requests in one result.
    pub const QUESTIONS_MAX: usize = 64;

    /// Returns the input requests of this result, if it waits for input.
    pub fn of(result: &Raw) -> Result<Option<Self>, UnclearInput> {
        Ok(match ResultKind::of(result)? {
            ResultKind::InputRequired(asked) => Some(asked),
            ResultKind::Complete | ResultKind::Unknown(_) => None,
        })
    }

    /// Tests if a result, or a value in it, may contain input requests, in any spelling that some parser
    /// accepts. `false` is certain, and costs one search over the bytes.
    pub fn may_be_in(result: &Raw) -> bool {
        static INPUT_REQUESTS: Name = Name::any_case("inputRequests");
        result.may_name(&INPUT_REQUESTS)
    }

    /// Returns the input requests in a result of any kind. The result of a task may contain some, although it
    /// does not wait for input.
    pub fn requests_in(result: &Raw) -> Result<Vec<(String, Raw)>, UnclearInput> {
        if Self::may_be_in(result) {
            requests_in(result)
        } else {
            Ok(Vec::new())
        }
    }

    /// Returns the input requests, each with its key: a method and its parameters.
    pub fn questions(&self) -> &[(String, Raw)] {
        &self.requests
    }

    /// Returns the delay before the `n`th repetition of a request whose server only asked for a pause.
    pub fn pause(n: u32) -> Duration {
        PAUSE.saturating_mul(2_u32.saturating_pow(n)).min(PAUSE_MAX)
    }

    /// Returns `true` if the server asks for no input, and only wants the request to be repeated later.
    pub fn is_pause(&self) -> bool {
        self.requests.is_empty()
    }

    /// Passes all input requests to the handlers concurrently, and returns their responses by key.
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

    /// Returns the parameters of the call with these responses and the state that belongs to them.
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

    fn of(result: &str) -> Result<Option<InputRequired>, UnclearInput> {
        InputRequired::of(&Raw::parse(result.to_owned()).unwrap())
    }

    #[test]
    fn escaped_result_type_is_read() {
        let result =
            r#"{"result\u0054ype":"input_required","inputRequests":{"a":{"method":"roots/list"}}}"#;
        let input = of(result).unwrap().unwrap();
        assert_eq!(input.questions().len(), 1);
        let pause = of(r#"{"resultType":"input_required","requestState":"s"}"#);
        assert!(pause.unwrap().unwrap().is_pause());
        assert!(of(r#"{"resultType":"complete"}"#).unwrap().is_none());
        assert!(of("{}").unwrap().is_none());
        assert!(of(r#"{"inputRequests":null}"#).unwrap().is_none());
        // Only members of the result itself count.
        let inner = r#"{"structuredContent":{"inputRequests":[]},"resultType":"complete"}"#;
        assert!(of(inner).unwrap().is_none());
    }

    /// Parsers differ in which of two members they use, and some ignore letter case.
    #[test]
    fn ambiguous_input_requests_are_rejected() {
        let asks = r#"{"method":"sampling/createMessage","params":{}}"#;
        let other = r#"{"method":"roots/list"}"#;
        for members in [
            format!(r#""inputRequests":{{}},"inputRequests":{{"a":{asks}}}"#),
            format!(r#""inputRequests":{{"a":{asks}}},"inputRequests":{{}}"#),
            format!(r#""InputRequests":{{"a":{asks}}}"#),
            format!(r#""input\u0072equests":{{"a":{asks}}}"#),
            format!("\"inputReque\u{17F}ts\":{{\"a\":{asks}}}"),
            format!(r#""inputReque\u017fts":{{"a":{asks}}}"#),
            format!(r#""inputRequests":[{asks}]"#),
            format!(r#""inputRequests":{{"a":[{asks}]}}"#),
            r#""inputRequests":{"a":["sampling/createMessage",{}]}"#.to_owned(),
            format!(r#""inputRequests":{{"a":{other},"a":{asks}}}"#),
            format!(r#""inputRequests":{{"a":{asks},"\u0061":{other}}}"#),
            r#""inputRequests":{"a":{"method":"roots/list","method":"sampling/createMessage"}}"#
                .to_owned(),
            r#""inputRequests":{"a":{"Method":"sampling/createMessage"}}"#.to_owned(),
            r#""inputRequests":{"a":{"method":["sampling/createMessage"]}}"#.to_owned(),
            r#""inputRequests":{"a":{"method":"elicitation/create","params":{},"Params":{}}}"#
                .to_owned(),
            r#""inputRequests":{"a":{"method":"elicitation/create","params":[]}}"#.to_owned(),
            format!(r#""inputRequests":{{"a":{asks}}},"resultType":"complete""#),
            format!(r#""inputRequests":{{"a":{asks}}},"ResultType":"complete""#),
            format!(r#""inputRequests":{{"a":{asks}}},"requestState":"a","RequestState":"b""#),
            r#""requestState":"a","requestState":"b""#.to_owned(),
        ] {
            let result = format!(r#"{{"resultType":"input_required",{members}}}"#);
            assert!(of(&result).is_err(), "{result}");
        }
        for kind in [
            "",
            r#""resultType":"complete","#,
            r#""ResultType":"input_required","#,
        ] {
            let result = format!(r#"{{{kind}"inputRequests":[{asks}]}}"#);
            assert!(of(&result).is_err(), "{result}");
        }
    }
}
