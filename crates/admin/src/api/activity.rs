//! The calls that went through the gateway, as the store has them.

use std::{sync::Arc, time::SystemTime};

use axum::{Json, extract::State};
use hyper::StatusCode;
use serde::{Deserialize, Serialize};
use switchboard_base::{error::cut, time};
use switchboard_inbound::problem::Problem;
use switchboard_store::{Activity, Outcome, OutcomeKind, Query};

use super::{
    approvals::patiently,
    ask::{Asked, number},
};
use crate::admin::Admin;

/// What is asked for, as it stands in the address.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Which {
    server: Option<String>,
    name: Option<String>,
    outcome: Option<String>,
    since: Option<String>,
    before: Option<String>,
    text: Option<String>,
    limit: Option<String>,
}

impl TryFrom<Which> for Query {
    type Error = Problem;

    fn try_from(asked: Which) -> Result<Self, Problem> {
        let said = |text: Option<String>| text.filter(|text| !text.is_empty());
        let outcomes = match said(asked.outcome) {
            None => Vec::new(),
            Some(words) => outcomes(&words)?,
        };
        Ok(Self {
            server: said(asked.server),
            name: said(asked.name),
            outcomes,
            since: number("since", asked.since)?,
            before: number("before", asked.before)?,
            text: said(asked.text),
            limit: number("limit", asked.limit)?.unwrap_or(Self::default().limit),
        })
    }
}

/// Reads words with commas between them. Each kind is in the result once.
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
    let detail = format!("there is no outcome {:?}", cut(word));
    Problem::new(StatusCode::BAD_REQUEST, detail).hint(format!("it is one of {words}"))
}

#[derive(Serialize)]
pub(super) struct Answer {
    activity: Vec<Call>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Call {
    id: u64,
    #[serde(serialize_with = "time::rfc3339")]
    at: SystemTime,
    server: Arc<str>,
    method: Arc<str>,
    name: Arc<str>,
    client: Arc<str>,
    duration_ms: f64,
    waited_ms: f64,
    outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Arc<str>>,
    request_bytes: u64,
    response_bytes: u64,
}

impl From<Activity> for Call {
    fn from(call: Activity) -> Self {
        Self {
            id: call.id,
            at: call.at,
            server: call.server,
            method: call.method,
            name: call.name,
            client: call.client,
            duration_ms: call.duration.as_secs_f64() * 1_000.0,
            waited_ms: call.waited.as_secs_f64() * 1_000.0,
            outcome: call.outcome.kind().as_str(),
            code: match call.outcome {
                Outcome::Error { code } => Some(code),
                _ => None,
            },
            error: call.error,
            request_bytes: call.request_bytes,
            response_bytes: call.response_bytes,
        }
    }
}

pub(super) async fn list(
    State(admin): State<Arc<Admin>>,
    Asked(which): Asked<Which>,
) -> Result<Json<Answer>, Problem> {
    let core = &admin.core;
    let calls = core.store.activity(which.try_into()?);
    let calls = patiently(core, calls).await?;
    let activity = calls.into_iter().map(Call::from).collect();
    Ok(Json(Answer { activity }))
}
