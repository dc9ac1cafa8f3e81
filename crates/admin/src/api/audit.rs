//! The audit log, entry by entry.

use std::{sync::Arc, time::SystemTime};

use axum::{Json, extract::State};
use serde::{Deserialize, Serialize};
use switchboard_base::time;
use switchboard_client::Raw;
use switchboard_inbound::problem::Problem;
use switchboard_text::hex;

use super::{
    approvals::patiently,
    ask::{Asked, number},
};
use crate::admin::Admin;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Which {
    since: Option<String>,
    limit: Option<String>,
}

#[derive(Serialize)]
pub(super) struct List {
    entries: Vec<Entry>,
}

#[derive(Serialize)]
struct Entry {
    seq: u64,
    #[serde(serialize_with = "time::rfc3339")]
    at: SystemTime,
    what: Arc<str>,
    subject: Arc<str>,
    body: Raw,
    hash: String,
}

/// So many entries, if nothing else is said.
const LIMIT: usize = 100;

pub(super) async fn list(
    State(admin): State<Arc<Admin>>,
    Asked(which): Asked<Which>,
) -> Result<Json<List>, Problem> {
    let since = number("since", which.since)?.unwrap_or(0);
    let limit = number("limit", which.limit)?.unwrap_or(LIMIT);
    let core = &admin.core;
    let entries = patiently(core, core.store.audit(since, limit)).await?;
    let entries = entries.into_iter().map(|audited| Entry {
        seq: audited.seq,
        at: audited.entry.at,
        what: audited.entry.what,
        subject: audited.entry.subject,
        body: Raw::parse(audited.entry.body.to_string()).unwrap_or_else(|_| Raw::empty_object()),
        hash: hex::encode(&audited.hash),
    });
    Ok(Json(List {
        entries: entries.collect(),
    }))
}
