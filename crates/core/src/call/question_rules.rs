//! Rules for the questions of servers. A question is judged once, before the answerer is chosen.

use std::borrow::Cow;

use switchboard_approvals::rules::{Action, Case, Kind};
use switchboard_base::caller::Caller;
use switchboard_client::{ErrorObject, Raw};
use switchboard_config::Route;
use switchboard_outbound::questions::Ruling;
use switchboard_wire::{code, method};

use super::{
    CallContext,
    approval::{overridden, record_denied},
};
use crate::core::Core;

/// Error code: a person or a rule rejected the question.
pub(super) const REJECTED: i64 = -1;

/// The server that asks, and the call that it asks for, as far as known.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asker<'a> {
    pub(crate) server: &'a str,
    pub(crate) tool: Option<&'a str>,
    pub(crate) caller: Option<&'a Caller>,
}

/// Tests if there may be rules about this question.
pub(super) fn is_ruled(core: &Core, asked: &str) -> bool {
    kind_of(asked).is_some_and(|kind| !core.approvals.policy().is_quiet(kind))
}

impl CallContext<'_> {
    /// Tests if a client may answer only what it was asked through the gateway, because a rule or
    /// the route may deny a question of this server or leave it to a person.
    pub(super) fn rules_answers(&self) -> bool {
        let core = self.core;
        let policy = core.approvals.policy();
        let holds_back = |kind| policy.holds_back(kind, &self.upstream.name);
        core.config.load().approvals.route == Route::Human
            || holds_back(Kind::Sampling)
            || holds_back(Kind::Elicitation)
    }
}

/// Judges a question of a server. A denial is recorded, and is an error that names the rule.
pub(crate) async fn judge(
    core: &Core,
    asker: Asker<'_>,
    asked: &str,
    params: Option<&Raw>,
) -> Result<Ruling, ErrorObject> {
    let Some(kind) = kind_of(asked).filter(|_| is_ruled(core, asked)) else {
        return Ok(Ruling::Unruled);
    };
    let approvals = &core.approvals;
    let known = approvals.until_rules_are_known().await;
    known.map_err(|why| ErrorObject::new(code::INTERNAL, why))?;
    let empty = Raw::empty_object();
    let name = asker.tool.unwrap_or_default();
    let client = asker.caller.map_or("", |caller| &*caller.client);
    let (new_name, _) = overridden(core, asker.server, name);
    let case = Case {
        kind,
        new_name: new_name.map(Cow::Owned),
        client,
        session: asker.caller.map(Caller::session).unwrap_or_default(),
        project: asker.caller.and_then(|caller| Some(&**caller.project()?)),
        arguments: Some(params.unwrap_or(&empty)),
        ..Case::tool_call(asker.server, name)
    };
    let verdict = approvals.policy().judge(&case, approvals.now());
    if verdict.action == Action::Deny {
        record_denied(core, asked, (asker.server, name), asker.caller, &verdict);
        return Err(ErrorObject::new(REJECTED, verdict.denial()));
    }
    // Without a rule, `approvals.route` selects the answerer.
    Ok(match (verdict.action, verdict.rule) {
        (_, None) | (Action::Deny, _) => Ruling::Unruled,
        (Action::Ask, Some(rule)) => Ruling::Ask(rule.text.into()),
        (Action::Allow, Some(rule)) => Ruling::Allow(rule.text.into()),
    })
}

/// A denial as it is sent to the server, without the reason, which servers must not read.
pub(crate) fn untold(error: ErrorObject) -> ErrorObject {
    if error.code == REJECTED {
        return ErrorObject::new(REJECTED, "denied by a rule");
    }
    error
}

/// The rule kind of a question; `None` if rules do not apply to it.
fn kind_of(asked: &str) -> Option<Kind> {
    match asked {
        method::SAMPLING => Some(Kind::Sampling),
        method::ELICITATION => Some(Kind::Elicitation),
        _ => None,
    }
}
