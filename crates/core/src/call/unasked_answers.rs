//! Answers to questions that a client was not asked through the gateway.

use std::sync::Arc;

use switchboard_base::error::{Error, cut};
use switchboard_client::{InputRequired, Raw};
use switchboard_config::Route;
use switchboard_outbound::live::Live;
use switchboard_wire::{RawError, method};

use super::{
    CallContext,
    approval::{Pass, until_rules_are_known},
    in_flight::without_progress_token,
    input_requests::unclear,
    question_rules::is_ruled,
    rounds::{judge, leave_to_client},
};
use crate::translate;

/// The member of a request that holds the client's answers.
const ANSWERS: &str = "inputResponses";

/// Rejects answers to questions that the client was not asked through the gateway, where that
/// matters: such an answer would replace that of a person, or be one that a rule denies.
pub(super) async fn check(
    context: &CallContext<'_>,
    live: &Live,
    pass: &Pass,
) -> Result<(), Error> {
    let params = context.outgoing.params.as_ref();
    let (Some(params), false) = (params, pass.returned || !may_be_ruled(context)) else {
        return Ok(());
    };
    let unclear = |error: RawError| Error::invalid_params(error.to_string());
    let Some(given) = params.distinct_member(&[ANSWERS]).map_err(unclear)? else {
        return Ok(());
    };
    let (server, name) = (&context.upstream.name, &context.outgoing.name);
    until_rules_are_known(context.core, server, name, context.verb()).await?;
    if !context.rules_answers() {
        return Ok(());
    }
    if context.outgoing.method == method::TASKS_UPDATE {
        return Box::pin(check_update(context, live, params, &given)).await;
    }
    Err(Error::advised(
        "`inputResponses` answers no open question, and a rule or `approvals.route` may leave such answers to an approver",
        "call again without it",
    ))
}

/// Tests if there may be rules about questions, or a route that leaves them to a person.
fn may_be_ruled(context: &CallContext<'_>) -> bool {
    let is_ruled = |asked| is_ruled(context.core, asked);
    context.core.config.load().approvals.route == Route::Human
        || is_ruled(method::SAMPLING)
        || is_ruled(method::ELICITATION)
}

/// Rejects answers to a task that the client must not give. The questions are the task's current
/// ones.
async fn check_update(
    context: &CallContext<'_>,
    live: &Live,
    params: &Raw,
    given: &Raw,
) -> Result<(), Error> {
    let refused = |reason: String| Error::Input {
        server: Arc::clone(&context.upstream.name),
        reason: reason.into(),
    };
    let params = translate::request(
        Some(params.without(&[ANSWERS])),
        context.outgoing.guest,
        live.era(),
        context.has_person(),
    );
    let params = params.map(without_progress_token);
    let asking = live.client().request(method::TASKS_GET, params);
    let asking = asking
        .timeout(context.upstream.request_timeout())
        .fail_fast();
    let state = super::outcome(context.upstream, asking.await).map_err(|failed| failed.failure)?;
    let questions = InputRequired::requests_in(&state).map_err(|error| unclear(context, &error))?;
    let given = given
        .members()
        .ok_or_else(|| Error::invalid_params("`inputResponses` must be an object"))?;
    for (key, _) in given {
        let question = questions.iter().find(|(asked, _)| *asked == key);
        let (_, question) = question.ok_or_else(|| {
            let message = format!("the task has no open question `{}`", cut(&key));
            Error::invalid_params(message)
        })?;
        let judged = judge(context, question).await.map_err(refused)?;
        leave_to_client(context, &judged).map_err(refused)?;
    }
    Ok(())
}
