//! Transitions of a single request.

use std::sync::Arc;

use switchboard_wire::Raw;

use crate::{
    broker::{Change, Decider, KEEP, Outcome},
    decision::{Decision, DecisionError, decide},
    record::{Action, Ask, Kind, Record, Status, Usage},
};

/// Settings of the model: whether one is configured, and whether a person reviews its responses.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Model {
    pub(crate) can_generate: bool,
    pub(crate) review: bool,
}

/// An event that happens to one request.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    Create,
    /// An equal request is made again, and its asker waits.
    Attach(Box<Ask>),
    Leave,
    /// The subject of the request no longer exists.
    Withdraw,
    /// A person decides and awaits the result, or a rule decides and does not.
    Decide(Option<Decider>, Box<Decision>),
    Generated(Result<(Raw, Usage), Arc<str>>),
    Orphan,
    Time,
}

/// The result of an event.
pub(crate) enum Step {
    Nothing,
    Refuse(Option<Decider>, Box<DecisionError>),
    Write(Box<Record>, Change),
}

/// Computes the result of an event. `waits` is `true` if an asker waits for the answer.
pub(crate) fn step(record: &Record, waits: bool, event: &Event, now: u64, model: Model) -> Step {
    let write = |next: Record, why| Step::Write(Box::new(next), why);
    let with = |status| Record {
        status,
        ..record.clone()
    };
    match event {
        Event::Create => write(record.clone(), Change::Created),
        // The new asker may have disconnected in the meantime.
        Event::Attach(_) if !waits => Step::Nothing,
        Event::Attach(ask) => match record.status {
            Status::Orphaned | Status::Reviewing => {
                let mut next = record.clone();
                if record.status == Status::Orphaned {
                    next.status = Status::Pending;
                }
                // Rules and scope of the earlier asker may no longer apply.
                next.ask.rule.clone_from(&ask.rule);
                next.ask.allowed_by.clone_from(&ask.allowed_by);
                next.ask.session = ask.session;
                next.ask.project.clone_from(&ask.project);
                write(next, Change::Resumed)
            }
            _ if record.kept.is_some() => {
                let mut next = record.clone();
                next.kept = None;
                next.delivered = Some(now);
                write(next, Change::Delivered)
            }
            _ => Step::Nothing,
        },
        Event::Leave => match record.status {
            Status::Pending | Status::Generating | Status::Reviewing => {
                write(with(Status::Withdrawn), Change::Withdrawn)
            }
            _ => Step::Nothing,
        },
        Event::Withdraw => match record.status {
            Status::Pending | Status::Orphaned if !waits => {
                write(with(Status::Withdrawn), Change::Withdrawn)
            }
            _ => Step::Nothing,
        },
        // It has timed out, even if that could not be stored yet.
        Event::Decide(decider, _) if record.status.waits() && record.is_late(now) => {
            let over = Box::new(with(Status::TimedOut));
            Step::Refuse(*decider, Box::new(DecisionError::Late(over)))
        }
        Event::Decide(decider, decision) => match decide(record, decision, model.can_generate, now)
        {
            Ok(mut next) => {
                if !next.status.is_open() {
                    conclude(&mut next, waits, now);
                }
                write(next, Change::Decided)
            }
            Err(refusal) => Step::Refuse(*decider, Box::new(refusal)),
        },
        Event::Generated(_) if record.status != Status::Generating => Step::Nothing,
        Event::Generated(Ok((answer, usage))) => {
            let mut next = record.clone();
            next.usage = Some(usage.clone());
            if model.review {
                next.status = Status::Reviewing;
                next.escalated = None;
                next.draft = Some(answer.clone());
                let long = record.ask.patience.map(|patience| patience.long);
                // The review of the response has its own time limit.
                next.expires = long.map(|long| now.saturating_add(long));
            } else {
                next.status = Status::Approved;
                next.answer = Some(answer.clone());
                conclude(&mut next, waits, now);
            }
            write(next, Change::Generated)
        }
        Event::Generated(Err(reason)) => {
            let mut next = with(Status::Failed);
            next.error = Some(Arc::clone(reason));
            next.delivered = waits.then_some(now);
            write(next, Change::Generated)
        }
        Event::Orphan => match record.status {
            // The model may have been called, so it is not called again.
            Status::Generating => {
                let mut next = with(Status::Failed);
                next.error = Some("the gateway stopped while the model was answering".into());
                write(next, Change::Generated)
            }
            Status::Pending => write(with(Status::Orphaned), Change::Orphaned),
            _ => Step::Nothing,
        },
        Event::Time => time(record, waits, now),
    }
}

/// Escalates, times out or forgets a request.
fn time(record: &Record, waits: bool, now: u64) -> Step {
    let write = |next: Record, why| Step::Write(Box::new(next), why);
    let mut next = record.clone();
    let waits_for_person = record.status.waits();
    if waits_for_person && record.is_late(now) {
        next.status = Status::TimedOut;
        next.draft = None;
        let after = now.saturating_sub(record.created);
        next.error = Some(format!("no approver answered within {} s", after / 1000).into());
        next.delivered = waits.then_some(now);
        return write(next, Change::Expired);
    }
    let quiet = waits_for_person && record.escalated.is_none();
    if quiet && record.escalates().is_some_and(|at| at <= now) {
        next.escalated = Some(now);
        return write(next, Change::Escalated);
    }
    if record.kept.is_some_and(|until| until <= now) {
        next.kept = None;
        return write(next, Change::Forgotten);
    }
    Step::Nothing
}

/// Delivers a decision, or keeps it for a later asker.
fn conclude(next: &mut Record, waits: bool, now: u64) {
    if waits {
        next.delivered = Some(now);
    } else {
        next.kept = Some(now.saturating_add(KEEP));
    }
}

/// The outcome for the asker of a request, if it is closed and not kept.
pub(crate) fn outcome(record: &Record) -> Option<Outcome> {
    record.delivered?;
    Some(match record.status {
        Status::Approved | Status::Accepted => Outcome::Answer(record.answer.clone()),
        Status::Declined | Status::Cancelled if record.ask.kind == Kind::Elicitation => {
            Outcome::Answer(record.answer.clone())
        }
        Status::Rejected | Status::Declined | Status::Cancelled => {
            let reason = record
                .decided
                .as_ref()
                .and_then(|decided| decided.reason.clone());
            Outcome::Rejected(reason)
        }
        Status::TimedOut => {
            let until = record.expires.unwrap_or(record.created);
            Outcome::TimedOut(until.saturating_sub(record.created))
        }
        Status::Failed => Outcome::Failed(record.error.clone().unwrap_or_default()),
        Status::Pending
        | Status::Orphaned
        | Status::Generating
        | Status::Reviewing
        | Status::Withdrawn => return None,
    })
}

/// The decision of the rule that allows a request which has just started to wait for a person.
pub(crate) fn by_rule(record: &Record, why: Change) -> Option<Decision> {
    let waits =
        record.status == Status::Pending && matches!(why, Change::Created | Change::Resumed);
    let rule = record.ask.allowed_by.as_ref().filter(|_| waits)?;
    Some(Decision::new(Action::Approve, format!("rule: {rule}")))
}

/// The change that leads from one state of a request to the other.
pub(crate) fn became(was: &Record, is: &Record) -> Change {
    match is.status {
        Status::Pending | Status::Orphaned | Status::Reviewing
            if is.escalated.is_some() && was.escalated.is_none() =>
        {
            Change::Escalated
        }
        Status::Pending => Change::Resumed,
        Status::Reviewing if was.status == Status::Reviewing => Change::Resumed,
        Status::Orphaned => Change::Orphaned,
        Status::TimedOut => Change::Expired,
        Status::Withdrawn => Change::Withdrawn,
        Status::Reviewing | Status::Failed => Change::Generated,
        status if status == was.status && is.delivered.is_some() => Change::Delivered,
        status if status == was.status => Change::Forgotten,
        _ if was.status == Status::Generating => Change::Generated,
        _ => Change::Decided,
    }
}
