//! Approval requests, and the decisions about them.

use std::sync::Arc;

use axum::{
    Json,
    extract::{FromRequestParts, Path, State},
    http::request::Parts,
};
use hyper::StatusCode;
use switchboard_approvals::{Action, Ask, Decision, DecisionError, Kind, Record, Remember, Status};
use switchboard_base::{audit::Actor, error::cut};
use switchboard_catalog as catalog;
use switchboard_client::Raw;
use switchboard_core::{approvals::shown, core::Core, scope::Scope};
use switchboard_inbound::problem::Problem;
use switchboard_rest::approvals::{Approval, Approvals, ApprovalsQuery, Approve, Reject, Respond};
use switchboard_store::{ROWS_PER_ANSWER, StoreError, Which};
use switchboard_tokens::{Right, Rights};
use tokio::time::timeout;

use super::{
    ask::{Asked, MaySay, Within, number},
    lacks,
};
use crate::admin::Admin;

/// The most pages of the store that are searched for requests in a scope.
const PAGES_MAX: usize = 10;
/// The longest note and the longest reason, in bytes.
const NOTE_BYTES: usize = 100;
const REASON_BYTES: usize = 2_000;

pub(super) async fn list(
    State(admin): State<Arc<Admin>>,
    Within(scope): Within,
    Asked(wanted): Asked<ApprovalsQuery>,
) -> Result<Json<Approvals>, Problem> {
    let said = |text: Option<String>| text.filter(|text| !text.is_empty());
    let kind = match said(wanted.kind) {
        None => None,
        Some(word) => Some(kind(&word)?),
    };
    let limit = number("limit", wanted.limit)?.unwrap_or(Which::default().limit);
    let limit = limit.min(ROWS_PER_ANSWER);
    let mut which = Which {
        statuses: match said(wanted.status) {
            None => Vec::new(),
            Some(word) => statuses(&word)?,
        },
        open: None,
        kind: kind.map(|kind| kind.as_str().into()),
        server: said(wanted.server).map(Into::into),
        before: said(wanted.before).map(Into::into),
        limit: if scope.is_everything() {
            limit
        } else {
            ROWS_PER_ANSWER
        },
    };
    let core = &admin.core;
    let mut approvals = Vec::new();
    if let Some(before) = which.before.as_deref().filter(|_| !scope.is_everything())
        && find(core, &scope, before).await.is_err()
    {
        // A request outside the scope is as unknown as one that does not exist.
        return Ok(Json(Approvals { approvals }));
    }
    for _ in 0..PAGES_MAX {
        let rows = patiently(core, core.store.approvals(which.clone())).await?;
        let seen = rows.iter().filter_map(|row| {
            // A record that cannot be parsed was written by another version, and is skipped.
            let record: Record = serde_json::from_str(&row.body).ok()?;
            is_within(&scope, &record).then(|| shown::listed(&record))
        });
        let missing = limit.saturating_sub(approvals.len());
        approvals.extend(seen.take(missing));
        let is_last = rows.len() < which.limit || approvals.len() >= limit;
        match rows.last() {
            Some(last) if !is_last && !scope.is_everything() => {
                which.before = Some(Arc::clone(&last.id));
            }
            _ => break,
        }
    }
    Ok(Json(Approvals { approvals }))
}

/// Tests if a request is about something that the scope permits.
fn is_within(scope: &Scope, record: &Record) -> bool {
    let Ask {
        kind,
        server,
        tool,
        request,
        ..
    } = &record.ask;
    match (kind, tool) {
        // A review is about all tools of a server.
        (Kind::Trust, _) => scope.permits_server(server) && !scope.selects_tools(),
        (Kind::Resource, name) => {
            let name = name.as_deref().unwrap_or_default();
            scope.permits(catalog::Kind::Resource, server, name)
        }
        (Kind::Prompt, name) => {
            let name = name.as_deref().unwrap_or_default();
            scope.permits(catalog::Kind::Prompt, server, name)
        }
        // A question of a server may belong to a call of any tool.
        (_, None) => scope.permits_server(server) && !scope.selects_tools(),
        (_, Some(tool)) => {
            scope.permits(catalog::Kind::Tool, server, tool)
                && scope.permits_arguments(server, request.member("arguments").as_ref())
        }
    }
}

fn kind(word: &str) -> Result<Kind, Problem> {
    Kind::ALL
        .into_iter()
        .find(|kind| kind.as_str() == word)
        .ok_or_else(|| {
            let words = Kind::ALL.map(Kind::as_str).join(", ");
            let detail = format!("there is no kind `{}`", cut(word));
            Problem::new(StatusCode::BAD_REQUEST, detail).hint(format!("use one of {words}"))
        })
}

/// The statuses that a word of the query stands for.
fn statuses(word: &str) -> Result<Vec<Arc<str>>, Problem> {
    let all = |is_it: fn(Status) -> bool| {
        let statuses = Status::ALL.into_iter().filter(|status| is_it(*status));
        statuses.map(|status| status.as_str().into()).collect()
    };
    Ok(match word {
        "pending" => all(Status::waits),
        "open" => all(Status::is_open),
        "closed" => all(|status| !status.is_open()),
        word => {
            if !Status::ALL.iter().any(|status| status.as_str() == word) {
                let words = Status::ALL.map(Status::as_str).join(", ");
                let detail = format!("there is no status `{}`", cut(word));
                return Err(Problem::new(StatusCode::BAD_REQUEST, detail)
                    .hint(format!("use open, closed, or one of {words}")));
            }
            vec![word.into()]
        }
    })
}

pub(super) async fn show(
    State(admin): State<Arc<Admin>>,
    Within(scope): Within,
    Path(id): Path<String>,
) -> Result<Json<Approval>, Problem> {
    let record = find(&admin.core, &scope, &id).await?;
    Ok(Json(shown::whole(&record)))
}

/// The request with this ID in a scope, as it was last stored.
async fn find(core: &Core, scope: &Scope, id: &str) -> Result<Record, Problem> {
    let row = patiently(core, core.store.approval(id)).await?;
    let record = row.and_then(|row| serde_json::from_str(&row.body).ok());
    record
        .filter(|record| is_within(scope, record))
        .ok_or_else(|| unknown(id))
}

fn unknown(id: &str) -> Problem {
    let detail = format!("there is no request `{}`", cut(id));
    Problem::new(StatusCode::NOT_FOUND, detail)
        .hint("`switchboard approvals list --all` lists all requests")
}

/// Waits for the store, for as long as a call waits for a part.
pub(super) async fn patiently<T>(
    core: &Core,
    asking: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, Problem> {
    let patience = core.wait();
    let Ok(answer) = timeout(patience, asking).await else {
        let detail = format!("initializing: the store did not respond within {patience:?}");
        return Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail)
            .hint("try again, and check the part `store` with `switchboard status`")
            .retry_after(patience));
    };
    Ok(answer?)
}

pub(super) async fn approve(
    State(admin): State<Arc<Admin>>,
    from: From,
    Path(id): Path<String>,
    MaySay(said): MaySay<Approve>,
) -> Result<Json<Approval>, Problem> {
    let mut decision = decision(Action::Approve, &from, said.note, said.seen)?;
    decision.edits = said.edits;
    decision.remember = from.may_remember(said.remember)?;
    decide(&admin, &from.scope, &id, decision).await
}

pub(super) async fn reject(
    State(admin): State<Arc<Admin>>,
    from: From,
    Path(id): Path<String>,
    MaySay(said): MaySay<Reject>,
) -> Result<Json<Approval>, Problem> {
    let mut decision = decision(Action::Reject, &from, said.note, said.seen)?;
    let reason = said.reason.filter(|reason| !reason.trim().is_empty());
    if reason
        .as_ref()
        .is_some_and(|reason| reason.len() > REASON_BYTES)
    {
        let detail = format!("`reason` is longer than {REASON_BYTES} bytes");
        return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail));
    }
    decision.reason = reason.map(Into::into);
    decision.remember = from.may_remember(said.remember)?;
    decide(&admin, &from.scope, &id, decision).await
}

pub(super) async fn respond(
    State(admin): State<Arc<Admin>>,
    from: From,
    Path(id): Path<String>,
    MaySay(said): MaySay<Respond>,
) -> Result<Json<Approval>, Problem> {
    let unfit = |detail: &str| Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail);
    let action = match (said.action.as_deref(), &said.text) {
        (Some("accept"), None) => Action::Accept,
        (Some("decline"), None) => Action::Decline,
        (Some("cancel"), None) => Action::Cancel,
        (None, Some(_)) => Action::Respond,
        _ => {
            return Err(unfit(
                "expected either `action` (accept, decline or cancel) or `text`, which answers in place of a model",
            ));
        }
    };
    if said.content.is_some() && action != Action::Accept {
        return Err(unfit("`content` is allowed only with the action accept"));
    }
    let mut decision = decision(action, &from, said.note, said.seen)?;
    decision.content = said.content;
    decision.text = said.text;
    decide(&admin, &from.scope, &id, decision).await
}

/// The sender of a decision.
pub(super) struct From {
    actor: Actor,
    rights: Rights,
    scope: Arc<Scope>,
}

impl FromRequestParts<Arc<Admin>> for From {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, admin: &Arc<Admin>) -> Result<Self, Problem> {
        let Within(scope) = Within::from_request_parts(parts, admin).await?;
        let extensions = &parts.extensions;
        let (Some(actor), Some(rights)) = (extensions.get::<Actor>(), extensions.get()) else {
            // The door adds both to every request.
            return Err(lacks(Right::Approve, &[Right::Approve]));
        };
        Ok(Self {
            actor: actor.clone(),
            rights: *rights,
            scope,
        })
    }
}

impl From {
    /// A remembered decision is a rule, and rules are for administrators.
    fn may_remember(&self, remember: Option<Remember>) -> Result<Option<Remember>, Problem> {
        if remember.is_some() && !self.rights.has(Right::Admin) {
            return Err(lacks(Right::Admin, &[Right::Approve, Right::Admin]));
        }
        Ok(remember)
    }
}

fn decision(
    action: Action,
    From { actor, .. }: &From,
    note: Option<String>,
    seen: Option<Status>,
) -> Result<Decision, Problem> {
    let note = note.filter(|note| !note.trim().is_empty());
    if note.as_ref().is_some_and(|note| note.len() > NOTE_BYTES) {
        let detail = format!("`note` is longer than {NOTE_BYTES} bytes");
        return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail));
    }
    Ok(Decision {
        from: Some(actor.source()),
        note: note.map(Into::into),
        seen,
        ..Decision::new(action, actor.to_string())
    })
}

async fn decide(
    admin: &Admin,
    scope: &Scope,
    id: &str,
    decision: Decision,
) -> Result<Json<Approval>, Problem> {
    let core = &admin.core;
    if !scope.is_everything() {
        find(core, scope, id).await?;
    }
    let deciding = core.approvals.decide(id.into(), decision);
    let refusal = match deciding.await {
        Ok(record) => return Ok(Json(shown::whole(&record))),
        Err(refusal) => refusal,
    };
    Err(match refusal {
        // The broker does not know requests that are closed.
        DecisionError::Unknown => late(&find(core, scope, id).await?),
        DecisionError::Late(record) => late(&record),
        DecisionError::Unfit { message, hint } => {
            Problem::new(StatusCode::UNPROCESSABLE_ENTITY, message).maybe_hint(hint)
        }
        DecisionError::Content(problems) => {
            let list: Vec<_> = problems
                .iter()
                .map(|problem| format!("{} {}", problem.path, problem.message))
                .collect();
            let detail = format!("the content does not match the form: {}", list.join("; "));
            // Plain data always serializes.
            let problems = Raw::from_value(&problems).unwrap_or_else(|_| Raw::empty_object());
            Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail)
                .with(|body| body.problems = Some(problems))
        }
        DecisionError::Unavailable(why) => {
            let detail = format!("cannot save the decision, so nothing has changed: {why}");
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail)
        }
        DecisionError::Busy => {
            let detail = "too many decisions about this request are in progress";
            Problem::new(StatusCode::TOO_MANY_REQUESTS, detail)
                .hint("check the status of the request, then try again")
        }
    })
}

/// Another decision came first, or the request timed out.
fn late(record: &Record) -> Problem {
    let (id, what) = (&record.id, record.status.as_str().replace('_', " "));
    let detail = match &record.decided {
        Some(decided) if record.status == Status::Generating => {
            format!(
                "request `{id}` was already approved by {}, and the model is answering",
                decided.by
            )
        }
        Some(decided) if record.status == Status::Reviewing => format!(
            "request `{id}` was already approved by {}, and the model has answered",
            decided.by
        ),
        Some(decided) => format!("request `{id}` was already {what} by {}", decided.by),
        None => format!("request `{id}` is already {what}"),
    };
    let problem = Problem::new(StatusCode::CONFLICT, detail).with(|body| {
        body.approval = Some(record.id.to_string());
        body.was = Some(record.status.as_str().into());
        body.decision = record.decided.as_ref().map(shown::decision);
    });
    if record.status == Status::Reviewing {
        problem.hint(format!(
            "review the answer first; `switchboard approvals show {id}` shows it"
        ))
    } else {
        problem
    }
}
