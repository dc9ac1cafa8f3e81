//! The entries of the audit log.

use std::sync::Arc;

use axum::{Json, extract::State};
use switchboard_base::time;
use switchboard_client::Raw;
use switchboard_inbound::problem::Problem;
use switchboard_rest::activity::{Audit, AuditQuery, Entry};
use switchboard_text::hex;

use super::{
    approvals::patiently,
    ask::{Asked, number},
};
use crate::admin::Admin;

/// The number of entries, if the query does not set it.
const LIMIT: usize = 100;

pub(super) async fn list(
    State(admin): State<Arc<Admin>>,
    Asked(which): Asked<AuditQuery>,
) -> Result<Json<Audit>, Problem> {
    let since = number("since", which.since)?.unwrap_or(0);
    let limit = number("limit", which.limit)?.unwrap_or(LIMIT);
    let core = &admin.core;
    let entries = patiently(core, core.store.audit(since, limit)).await?;
    let entries = entries.into_iter().map(|audited| Entry {
        seq: audited.seq,
        at: time::shown(audited.entry.at),
        what: audited.entry.what.to_string(),
        subject: audited.entry.subject.to_string(),
        body: Raw::parse(audited.entry.body.to_string()).unwrap_or_else(|_| Raw::empty_object()),
        hash: hex::encode(&audited.hash),
    });
    Ok(Json(Audit {
        entries: entries.collect(),
    }))
}
