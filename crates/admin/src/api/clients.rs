//! The connected clients.

use std::{collections::HashSet, sync::Arc};

use axum::{Json, extract::State};
use switchboard_base::{time, view::Endpoint};
use switchboard_core::session::Session;
use switchboard_rest::status::{Client, Clients};

use crate::admin::Admin;

/// The most clients in one response.
const LISTED_MAX: usize = 1_000;

fn client(admin: &Admin, session: &Session) -> Client {
    let caller = &session.caller;
    let scopes = &admin.core.scopes;
    let endpoint = Endpoint {
        profile: caller
            .realm
            .profile
            .map(|profile| scopes.name(profile).unwrap_or_else(|| "(removed)".into())),
        view: session.view.clone(),
    };
    Client {
        name: caller.shown().to_string(),
        principal: admin.core.tokens.title(caller.realm.principal).to_string(),
        view: endpoint.place(),
        revision: session.about().revision.as_str().to_owned(),
        transport: if caller.holder.is_web {
            "http"
        } else {
            "stdio"
        }
        .into(),
        connected_at: time::shown(session.opened),
        folder: caller.project.as_deref().map(Into::into),
        in_flight: session.in_flight() as u64,
    }
}

pub(super) async fn list(State(admin): State<Arc<Admin>>) -> Json<Clients> {
    let silent = admin.inbound.silent();
    let is_silent: HashSet<_> = silent.iter().map(Arc::as_ptr).collect();
    let mut sessions = admin.core.audience.members();
    sessions.retain(|session| !is_silent.contains(&Arc::as_ptr(session)));
    sessions.sort_by_key(|session| session.opened);
    sessions.truncate(LISTED_MAX);
    let others = admin.inbound.clients().saturating_sub(sessions.len());
    Json(Clients {
        clients: sessions
            .iter()
            .map(|session| client(&admin, session))
            .collect(),
        others: others as u64,
        silent: silent.len() as u64,
    })
}
