//! The questions in a result that asks its client for input.

use std::sync::Arc;

use switchboard_base::{error::Error, view::View};
use switchboard_client::{InputRequired, Raw, UnclearInput};
use switchboard_wire::method;

use super::CallContext;

/// The error for a result that programs would read in different ways.
pub(super) fn unclear(context: &CallContext<'_>, error: &UnclearInput) -> Error {
    Error::Input {
        server: Arc::clone(&context.upstream.name),
        reason: error.to_string().into(),
    }
}

/// The method and the parameters of a question.
pub(super) fn read(question: &Raw) -> (String, Option<Raw>) {
    let asked = question.member("method").and_then(|name| name.to_text());
    (asked.unwrap_or_default(), question.member("params"))
}

/// Rewrites the links in a sampling request so that they lead to the server that asks, as in its
/// results, where the view uses the gateway's names.
pub(super) fn with_links(context: &CallContext<'_>, asked: &str, params: &Raw) -> Raw {
    match context.outgoing.view {
        View::All(_) if asked == method::SAMPLING => {
            switchboard_catalog::expose_content(&context.upstream.name, params)
        }
        View::All(_) | View::Server(_) => params.clone(),
    }
}

/// The same for the questions in a result.
pub(super) fn with_result_links(context: &CallContext<'_>, result: Raw) -> Raw {
    if matches!(context.outgoing.view, View::Server(_)) || !InputRequired::may_be_in(&result) {
        return result;
    }
    let questions = result.member("inputRequests");
    let questions = questions.and_then(|questions| questions.members());
    let mut is_same = true;
    let mut exposed = Vec::new();
    for (key, question) in questions.unwrap_or_default() {
        let (asked, params) = read(&question);
        let linked = params
            .as_ref()
            .map(|params| with_links(context, &asked, params));
        let question = match linked.filter(|linked| Some(linked) != params.as_ref()) {
            Some(linked) => {
                is_same = false;
                question.with_member("params", &linked).unwrap_or(question)
            }
            None => question,
        };
        exposed.push((key, question));
    }
    if is_same {
        return result;
    }
    let exposed = exposed.iter().map(|(key, one)| (&**key, one.clone()));
    let exposed = result.with_member("inputRequests", &Raw::object(exposed));
    exposed.unwrap_or(result)
}
