//! Requests and decisions in words that are safe to print.

use jiff::Timestamp;
use switchboard_rest::approvals::{Approval, Decision};
use switchboard_terminal::visible::visible_line;
use switchboard_wire::Raw;

use crate::times::{local, since, span};

pub(super) fn kind(approval: &Approval) -> String {
    visible_line(&approval.kind)
}

/// The kind of a request in a sentence, such as `a tool call`.
pub(super) fn described(approval: &Approval) -> String {
    match &*approval.kind {
        "tool_call" => "a tool call".to_owned(),
        "resource" => "a request for a resource".to_owned(),
        "prompt" => "a request for a prompt".to_owned(),
        "sampling" if approval.is_review() => "the review of a model's answer".to_owned(),
        "sampling" => "a sampling request".to_owned(),
        "elicitation" => "a question".to_owned(),
        other => format!("a request of the kind `{}`", visible_line(other)),
    }
}

pub(super) fn status(approval: &Approval) -> String {
    visible_line(&approval.status).replace('_', " ")
}

/// The server that asks, or the tool that is called.
pub(super) fn place(approval: &Approval) -> String {
    let server = server(approval);
    match &approval.tool {
        Some(tool) => format!("{server}:{}", visible_line(tool)),
        None => server,
    }
}

/// The server that asks, or that is called.
pub(super) fn server(approval: &Approval) -> String {
    visible_line(&approval.server)
}

/// The client that made the call.
pub(super) fn client(approval: &Approval) -> String {
    let client = approval.client.as_deref();
    client.map(visible_line).unwrap_or_default()
}

pub(super) fn summary(approval: &Approval) -> String {
    visible_line(&approval.summary)
}

pub(super) fn warnings(approval: &Approval) -> impl Iterator<Item = String> {
    approval
        .warnings
        .iter()
        .map(|warning| visible_line(warning))
}

/// The request itself; an empty object if it was left out.
pub(super) fn request(approval: &Approval) -> Raw {
    approval.request.clone().unwrap_or_else(Raw::empty_object)
}

/// The arguments of a call as the client wrote them.
pub(super) fn arguments(approval: &Approval) -> Option<Raw> {
    let text = approval.arguments_text.clone()?;
    Raw::parse(text).ok()
}

pub(super) fn age(approval: &Approval, now: Timestamp) -> String {
    since(&approval.created_at, now).map_or_else(String::new, span)
}

/// The time that is left for a decision.
pub(super) fn left(approval: &Approval, now: Timestamp) -> String {
    if !approval.is_open() {
        return String::new();
    }
    let Some(expires) = &approval.expires_at else {
        return "no limit".to_owned();
    };
    since(expires, now).map_or_else(String::new, |gone| span(-gone))
}

/// A decision in one line: the action, the decider, the time and the reason.
pub(super) fn decision(decision: &Decision) -> String {
    let done = match &*decision.action {
        "approve" => "approved",
        "reject" => "rejected",
        "accept" => "accepted",
        "decline" => "declined",
        "cancel" => "cancelled",
        "respond" => "answered",
        other => other,
    };
    let (done, by) = (visible_line(done), visible_line(&decision.by));
    let mut said = format!("{done} by {by} at {}", local(&decision.at));
    if let Some(reason) = &decision.reason {
        said.push_str(": ");
        said.push_str(&visible_line(reason));
    }
    if let Some(note) = &decision.note {
        said.push_str(" (note: ");
        said.push_str(&visible_line(note));
        said.push(')');
    }
    said
}
