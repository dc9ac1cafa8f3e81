//! Who is connected.

use std::{collections::HashSet, sync::Arc, time::SystemTime};

use axum::{Json, extract::State};
use serde::Serialize;
use switchboard_base::time;
use switchboard_core::session::Session;

use crate::admin::Admin;

/// The most clients that one answer lists.
const LISTED_MAX: usize = 1_000;

#[derive(Serialize)]
pub(super) struct Answer {
    /// Those that have said who they are, the first to come first.
    clients: Vec<Client>,
    /// All others: clients of 2026-07-28 say it with each request, and not when they connect; and those for which
    /// there is no room in the list.
    others: usize,
    /// Those that have said nothing for a while, and may have left.
    silent: usize,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Client {
    name: Arc<str>,
    /// What comes after `/mcp/` in the address of what it sees.
    view: String,
    revision: &'static str,
    transport: &'static str,
    #[serde(serialize_with = "time::rfc3339")]
    connected_at: SystemTime,
    #[serde(skip_serializing_if = "Option::is_none")]
    folder: Option<Arc<str>>,
    in_flight: usize,
}

impl From<&Session> for Client {
    fn from(session: &Session) -> Self {
        let caller = &session.caller;
        Self {
            name: caller.shown(),
            view: session.view.place().into_owned(),
            revision: session.about().revision.as_str(),
            transport: if caller.holder.is_web {
                "http"
            } else {
                "stdio"
            },
            connected_at: session.opened,
            folder: caller.project.clone(),
            in_flight: session.in_flight(),
        }
    }
}

pub(super) async fn list(State(admin): State<Arc<Admin>>) -> Json<Answer> {
    let silent = admin.inbound.silent();
    let is_silent: HashSet<_> = silent.iter().map(Arc::as_ptr).collect();
    let mut sessions = admin.core.audience.members();
    sessions.retain(|session| !is_silent.contains(&Arc::as_ptr(session)));
    sessions.sort_by_key(|session| session.opened);
    sessions.truncate(LISTED_MAX);
    let others = admin.inbound.clients().saturating_sub(sessions.len());
    let clients = sessions.iter();
    Json(Answer {
        clients: clients.map(|session| Client::from(&**session)).collect(),
        others,
        silent: silent.len(),
    })
}
