//! Decisions of approvers, and their effect on requests.

use std::{borrow::Cow, sync::Arc};

use switchboard_wire::Raw;

use crate::{
    form::{FieldError, Form},
    record::{Action, Decided, Kind, Record, Remember, Scope, Source, Status},
};

/// A decision about a request.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// The action.
    pub action: Action,
    /// The approver, as identified by the gateway.
    pub by: Arc<str>,
    /// The entrance through which the decision came, and the process that sent it.
    pub from: Option<Source>,
    /// Free text of the sender. It does not identify the sender.
    pub note: Option<Arc<str>>,
    /// The approver's explanation.
    pub reason: Option<Arc<str>>,
    /// Changes: members of the request, or the `text` of a draft.
    pub edits: Option<Raw>,
    /// The content of a form.
    pub content: Option<Raw>,
    /// The approver's own answer, in place of the model's.
    pub text: Option<String>,
    /// The scope and duration for which it is remembered, if it applies more than once.
    pub remember: Option<Remember>,
    /// The status that the approver saw. The decision is refused if the request has moved on since.
    pub seen: Option<Status>,
}

impl Decision {
    /// A decision with only an action.
    pub fn new(action: Action, by: impl Into<Arc<str>>) -> Self {
        Self {
            action,
            by: by.into(),
            from: None,
            note: None,
            reason: None,
            edits: None,
            content: None,
            text: None,
            remember: None,
            seen: None,
        }
    }
}

/// The reason why a decision is refused.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum DecisionError {
    /// The request does not exist.
    #[error("there is no such request")]
    Unknown,
    /// Another decision came first, or the request timed out. The record shows the result.
    #[error("the request is already decided")]
    Late(Box<Record>),
    /// The decision does not fit the request.
    #[error("{message}")]
    Unfit {
        /// The problem.
        message: String,
        /// Advice for the user.
        hint: Option<Cow<'static, str>>,
    },
    /// The content does not fit the form.
    #[error("the content does not match the form")]
    Content(Vec<FieldError>),
    /// The decision could not be stored.
    #[error("cannot save the decision: {0}")]
    Unavailable(Arc<str>),
    /// Too many decisions about the same request are waiting.
    #[error("too many decisions about this request are in progress")]
    Busy,
}

/// Applies a decision to a request that waits for one.
pub(crate) fn decide(
    record: &Record,
    decision: &Decision,
    can_generate: bool,
    now: u64,
) -> Result<Record, DecisionError> {
    let is_draft = |status| status == Status::Reviewing;
    let is_other = |seen| is_draft(seen) != is_draft(record.status);
    if !record.status.waits() || decision.seen.is_some_and(is_other) {
        return Err(DecisionError::Late(Box::new(record.clone())));
    }
    let mut next = record.clone();
    let mut action = decision.action;
    match record.ask.kind {
        Kind::Sampling => sampling(&mut next, decision, can_generate)?,
        Kind::Elicitation => action = elicitation(&mut next, decision)?,
        Kind::ToolCall => tool_call(&mut next, decision)?,
        Kind::Resource | Kind::Prompt | Kind::Trust => verdict(&mut next, decision, &[])?,
    }
    check_remember(record, decision)?;
    if record.status == Status::Reviewing {
        // The first approval stays on record.
        next.agreed.clone_from(&record.decided);
    }
    next.decided = Some(decided(decision, action, now));
    Ok(next)
}

/// The scopes for which a decision about this request can be remembered.
pub fn rememberable(record: &Record) -> Vec<Scope> {
    let all = [Scope::Session, Scope::Project, Scope::Always];
    let can = |scope: &Scope| check_scope(record, *scope).is_ok();
    all.into_iter().filter(can).collect()
}

fn check_remember(record: &Record, decision: &Decision) -> Result<(), DecisionError> {
    match &decision.remember {
        Some(remember) => check_scope(record, remember.scope),
        None => Ok(()),
    }
}

fn check_scope(record: &Record, scope: Scope) -> Result<(), DecisionError> {
    if matches!(record.ask.kind, Kind::Elicitation | Kind::Trust) {
        return Err(unfit(
            "only decisions about tool calls, resources, prompts and sampling can be remembered",
        ));
    }
    if scope == Scope::Project && record.ask.project.is_none() {
        return Err(advised(
            "the client's project directory is unknown",
            "remember the decision for the session, or always",
        ));
    }
    if scope == Scope::Session && record.ask.session.is_none() {
        return Err(advised(
            "the caller has no session",
            "remember the decision always, with or without a time limit",
        ));
    }
    Ok(())
}

fn decided(decision: &Decision, action: Action, now: u64) -> Decided {
    Decided {
        action,
        by: Arc::clone(&decision.by),
        from: decision.from.clone(),
        note: decision.note.clone(),
        at: now,
        reason: decision.reason.clone(),
        edits: decision.edits.clone(),
        remember: decision.remember.clone(),
    }
}

fn unfit(message: impl Into<String>) -> DecisionError {
    DecisionError::Unfit {
        message: message.into(),
        hint: None,
    }
}

fn advised(message: impl Into<String>, hint: impl Into<Cow<'static, str>>) -> DecisionError {
    DecisionError::Unfit {
        message: message.into(),
        hint: Some(hint.into()),
    }
}

/// Approves or rejects the request, with changes to these members at most.
fn verdict(next: &mut Record, decision: &Decision, editable: &[&str]) -> Result<(), DecisionError> {
    match decision.action {
        Action::Approve => {
            check_edits(decision.edits.as_ref(), editable)?;
            next.status = Status::Approved;
            Ok(())
        }
        Action::Reject | Action::Decline | Action::Cancel => {
            next.status = Status::Rejected;
            Ok(())
        }
        Action::Accept | Action::Respond => {
            Err(unfit("this request can only be approved or rejected"))
        }
    }
}

fn tool_call(next: &mut Record, decision: &Decision) -> Result<(), DecisionError> {
    verdict(next, decision, &["arguments"])?;
    let arguments = decision
        .edits
        .as_ref()
        .and_then(|edits| edits.member("arguments"));
    if let Some(arguments) = arguments {
        if !arguments.is_object() {
            return Err(unfit("`arguments` must be an object"));
        }
        next.answer = Some(Raw::object([("arguments", arguments)]));
    }
    Ok(())
}

fn sampling(
    next: &mut Record,
    decision: &Decision,
    can_generate: bool,
) -> Result<(), DecisionError> {
    const EDITABLE: [&str; 6] = [
        "messages",
        "systemPrompt",
        "model",
        "maxTokens",
        "temperature",
        "stopSequences",
    ];
    match (decision.action, next.status) {
        (Action::Respond, _) => {
            let text = decision.text.as_deref();
            let text = text.ok_or_else(|| unfit("`text`, the answer to send, is missing"))?;
            next.draft = None;
            next.answer = Some(own_words(text));
            next.status = Status::Approved;
        }
        (Action::Approve, Status::Reviewing) => {
            check_edits(decision.edits.as_ref(), &["text"])?;
            let draft = next.draft.take().unwrap_or_else(Raw::empty_object);
            let text = decision
                .edits
                .as_ref()
                .and_then(|edits| edits.member("text"));
            let text = text.map(|text| {
                text.to_text()
                    .ok_or_else(|| unfit("`text` must be a string"))
            });
            next.answer = Some(match text.transpose()? {
                Some(text) => with_text(&draft, &text),
                None => draft,
            });
            next.status = Status::Approved;
        }
        (Action::Approve, _) => {
            check_edits(decision.edits.as_ref(), &EDITABLE)?;
            check_sampling(decision.edits.as_ref())?;
            if !can_generate {
                return Err(advised(
                    "no model is configured to answer this request",
                    "answer yourself with `respond`, or set `sampling.provider` in the configuration",
                ));
            }
            next.status = Status::Generating;
        }
        (Action::Reject | Action::Decline | Action::Cancel, _) => {
            next.draft = None;
            next.status = Status::Rejected;
        }
        (Action::Accept, _) => {
            return Err(unfit(
                "this request can only be approved, rejected, or answered with `respond`",
            ));
        }
    }
    Ok(())
}

fn elicitation(next: &mut Record, decision: &Decision) -> Result<Action, DecisionError> {
    if decision.edits.is_some() {
        return Err(advised(
            "a question cannot be edited",
            "answer it with `content`",
        ));
    }
    let plain = |action: &str| Raw::object([("action", Raw::string(action))]);
    Ok(match decision.action {
        Action::Approve | Action::Accept => {
            let form = Form::read(&next.ask.request);
            let content = form
                .check(decision.content.as_ref())
                .map_err(DecisionError::Content)?;
            let action = ("action", Raw::string("accept"));
            // Opening an address gives no content.
            let content = (!form.is_url()).then_some(("content", content));
            next.answer = Some(Raw::object([action].into_iter().chain(content)));
            next.status = Status::Accepted;
            Action::Accept
        }
        Action::Reject | Action::Decline => {
            next.answer = Some(plain("decline"));
            next.status = Status::Declined;
            Action::Decline
        }
        Action::Cancel => {
            next.answer = Some(plain("cancel"));
            next.status = Status::Cancelled;
            Action::Cancel
        }
        Action::Respond => {
            return Err(unfit(
                "a question can only be accepted, declined or cancelled",
            ));
        }
    })
}

fn check_edits(edits: Option<&Raw>, editable: &[&str]) -> Result<(), DecisionError> {
    let Some(edits) = edits else { return Ok(()) };
    let members = edits
        .members()
        .ok_or_else(|| unfit("`edits` must be an object"))?;
    match members
        .iter()
        .find(|(name, _)| !editable.contains(&&**name))
    {
        None => Ok(()),
        Some(_) if editable.is_empty() => Err(unfit("this request cannot be edited")),
        Some((name, _)) => {
            let name = &name[..name.floor_char_boundary(60)];
            let editable = editable.join("`, `");
            Err(advised(
                format!("`{name}` cannot be edited"),
                format!("edit only `{editable}`"),
            ))
        }
    }
}

fn check_sampling(edits: Option<&Raw>) -> Result<(), DecisionError> {
    let edited = |name: &str| edits.and_then(|edits| edits.member(name));
    if edited("messages")
        .is_some_and(|messages| messages.elements().is_none_or(|all| all.is_empty()))
    {
        return Err(unfit("`messages` must be a list with at least one message"));
    }
    if edited("maxTokens").is_some_and(|most| !most.read::<u64>().is_ok_and(|most| most > 0)) {
        return Err(unfit("`maxTokens` must be a whole number above 0"));
    }
    if edited("temperature").is_some_and(|heat| heat.read::<f64>().is_err()) {
        return Err(unfit("`temperature` must be a number"));
    }
    for name in ["model", "systemPrompt"] {
        if edited(name).is_some_and(|text| text.to_text().is_none()) {
            return Err(unfit(format!("`{name}` must be a string")));
        }
    }
    if edited("stopSequences")
        .is_some_and(|all| all.read::<Vec<&str>>().is_err() && all.read::<Vec<String>>().is_err())
    {
        return Err(unfit("`stopSequences` must be a list of strings"));
    }
    Ok(())
}

/// The approver's own text, in the form of a model's response.
fn own_words(text: &str) -> Raw {
    Raw::object([
        ("role", Raw::string("assistant")),
        ("content", text_block(text)),
        ("model", Raw::string("human")),
        ("stopReason", Raw::string("endTurn")),
    ])
}

fn text_block(text: &str) -> Raw {
    Raw::object([("type", Raw::string("text")), ("text", Raw::string(text))])
}

/// A model's response with its text replaced: the other blocks stay, after the new text.
fn with_text(draft: &Raw, text: &str) -> Raw {
    let is_text = |block: &Raw| {
        let kind = block.member("type").and_then(|kind| kind.to_text());
        kind.as_deref() == Some("text")
    };
    let content = match draft
        .member("content")
        .and_then(|content| content.elements())
    {
        Some(blocks) => {
            let others = blocks.into_iter().filter(|block| !is_text(block));
            Raw::array(std::iter::once(text_block(text)).chain(others))
        }
        None => text_block(text),
    };
    draft
        .with_member("content", &content)
        .unwrap_or_else(|_| own_words(text))
}
