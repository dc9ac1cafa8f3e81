//! The connected clients.

use std::{collections::HashSet, sync::Arc, time::SystemTime};

use axum::{Json, extract::State};
use switchboard_base::{
    caller::Caller,
    time,
    view::{Endpoint, View},
};
use switchboard_client::Revision;
use switchboard_core::{dispatch::menu::choose, visitors::Visitor};
use switchboard_rest::status::{Client, Clients};

use crate::admin::Admin;

/// The most clients in one response.
const LISTED_MAX: usize = 1_000;

/// A client, as it is listed.
struct Seen<'a> {
    caller: &'a Caller,
    view: &'a View,
    revision: Revision,
    since: SystemTime,
    in_flight: usize,
}

impl Seen<'_> {
    fn describe(&self, admin: &Admin) -> Client {
        let caller = self.caller;
        let scopes = &admin.core.scopes;
        let endpoint = Endpoint {
            profile: caller
                .realm
                .profile
                .map(|profile| scopes.name(profile).unwrap_or_else(|| "(removed)".into())),
            view: self.view.clone(),
        };
        let scope = scopes.of(caller.realm);
        let choice = scope.map(|scope| choose(&admin.core, &scope, self.view, caller));
        Client {
            shows: choice
                .as_ref()
                .map_or("nothing", |choice| choice.shows())
                .into(),
            why: match choice {
                Ok(choice) => choice.why.to_owned(),
                Err(gone) => gone.message().to_string(),
            },
            name: caller.shown().to_string(),
            principal: admin.core.tokens.title(caller.realm.principal).to_string(),
            view: endpoint.place(),
            revision: self.revision.as_str().to_owned(),
            transport: if caller.holder.is_web {
                "http"
            } else {
                "stdio"
            }
            .into(),
            connected_at: time::shown(self.since),
            folder: caller.project().map(|project| (&**project).into()),
            in_flight: self.in_flight as u64,
        }
    }
}

pub(super) async fn list(State(admin): State<Arc<Admin>>) -> Json<Clients> {
    let silent = admin.inbound.silent();
    let is_silent: HashSet<_> = silent.iter().map(Arc::as_ptr).collect();
    let mut sessions = admin.core.audience.members();
    sessions.retain(|session| !is_silent.contains(&Arc::as_ptr(session)));
    let visitors = admin.core.visitors.list();
    let older = sessions.iter().map(|session| Seen {
        caller: &session.caller,
        view: &session.view,
        revision: session.about().revision,
        since: session.opened,
        in_flight: session.in_flight(),
    });
    let modern = visitors.iter().map(|visitor| Seen {
        caller: &visitor.caller,
        view: &visitor.view,
        revision: Revision::LATEST,
        since: visitor.since,
        in_flight: visitor.in_flight,
    });
    let mut all: Vec<_> = older.chain(modern).collect();
    all.sort_by_key(|seen| seen.since);
    let beyond = all.len().saturating_sub(LISTED_MAX);
    all.truncate(LISTED_MAX);
    // Clients on pipes that have not sent a request yet have no name. Clients of 2026-07-28 over HTTP have no
    // connection that is counted.
    let is_counted = |visitor: &&Visitor| !visitor.caller.holder.is_web;
    let named = sessions.len() + visitors.iter().filter(is_counted).count();
    let unnamed = admin.inbound.clients().saturating_sub(named);
    Json(Clients {
        clients: all.iter().map(|seen| seen.describe(&admin)).collect(),
        others: (unnamed + beyond) as u64,
        silent: silent.len() as u64,
    })
}
