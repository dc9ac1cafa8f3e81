//! The calls through the gateway, as the store has them.

use std::sync::Arc;

use axum::{Json, extract::State};
use hyper::StatusCode;
use switchboard_base::{error::cut, time};
use switchboard_inbound::problem::Problem;
use switchboard_rest::activity::{Activity, ActivityQuery, Call};
use switchboard_store::{Outcome, OutcomeKind, Query};

use super::{
    approvals::patiently,
    ask::{Asked, number},
};
use crate::admin::Admin;

fn query(asked: ActivityQuery) -> Result<Query, Problem> {
    let said = |text: Option<String>| text.filter(|text| !text.is_empty());
    let outcomes = match said(asked.outcome) {
        None => Vec::new(),
        Some(words) => outcomes(&words)?,
    };
    Ok(Query {
        server: said(asked.server),
        name: said(asked.name),
        outcomes,
        since: number("since", asked.since)?,
        before: number("before", asked.before)?,
        text: said(asked.text),
        limit: number("limit", asked.limit)?.unwrap_or(Query::default().limit),
    })
}

/// Parses a list of outcomes, separated by commas, without duplicates.
fn outcomes(words: &str) -> Result<Vec<OutcomeKind>, Problem> {
    let mut outcomes = Vec::new();
    for word in words.split(',') {
        let kind = OutcomeKind::ALL
            .into_iter()
            .find(|kind| kind.as_str() == word)
            .ok_or_else(|| unknown_outcome(word))?;
        if !outcomes.contains(&kind) {
            outcomes.push(kind);
        }
    }
    Ok(outcomes)
}

fn unknown_outcome(word: &str) -> Problem {
    let words = OutcomeKind::ALL.map(OutcomeKind::as_str).join(", ");
    let detail = format!("there is no outcome `{}`", cut(word));
    Problem::new(StatusCode::BAD_REQUEST, detail).hint(format!("use one of {words}"))
}

fn call(call: &switchboard_store::Activity) -> Call {
    Call {
        id: call.id,
        at: time::shown(call.at),
        server: call.server.to_string(),
        method: call.method.to_string(),
        name: call.name.to_string(),
        client: call.client.to_string(),
        principal: call.principal.to_string(),
        door: call.door.to_string(),
        duration_ms: call.duration.as_secs_f64() * 1_000.0,
        waited_ms: call.waited.as_secs_f64() * 1_000.0,
        outcome: call.outcome.kind().as_str().into(),
        code: match call.outcome {
            Outcome::Error { code } => Some(code),
            _ => None,
        },
        error: call.error.as_deref().map(Into::into),
        request_bytes: call.request_bytes,
        response_bytes: call.response_bytes,
    }
}

pub(super) async fn list(
    State(admin): State<Arc<Admin>>,
    Asked(which): Asked<ActivityQuery>,
) -> Result<Json<Activity>, Problem> {
    let core = &admin.core;
    let calls = core.store.activity(query(which)?);
    let calls = patiently(core, calls).await?;
    let activity = calls.iter().map(call).collect();
    Ok(Json(Activity { activity }))
}
