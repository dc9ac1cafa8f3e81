//! Profiles, as their clients see them.

use std::sync::Arc;

use axum::{
    Json,
    extract::{Path, State},
};
use hyper::StatusCode;
use switchboard_base::{
    caller::{Caller, Principal, ProfileId, Realm},
    error::cut,
    view::{Face, View},
};
use switchboard_catalog::{Catalog, Item, Kind};
use switchboard_core::dispatch::menu::{self, Choice, choose};
use switchboard_inbound::problem::Problem;
use switchboard_outbound::builtin;
use switchboard_rest::profiles::{ProfileSummary, ProfileView, Profiles};

use crate::admin::Admin;

pub(super) async fn list(State(admin): State<Arc<Admin>>) -> Json<Profiles> {
    let config = admin.core.config.load_full();
    let seen = config.profiles.keys();
    let seen = seen.filter_map(|name| Some(summary(&admin, name)?.0));
    Json(Profiles {
        profiles: seen.collect(),
    })
}

pub(super) async fn show(
    State(admin): State<Arc<Admin>>,
    Path(name): Path<String>,
) -> Result<Json<ProfileView>, Problem> {
    let missing = || {
        let detail = format!("there is no profile `{}`", cut(&name));
        let hint = "`profiles` in switchboard.json lists the profiles";
        Problem::new(StatusCode::NOT_FOUND, detail).hint(hint)
    };
    let (profile, catalog, choice) = summary(&admin, &name).ok_or_else(missing)?;
    let of = |kind: Kind| {
        let items = catalog.items(kind);
        items.map(|item| item.exposed_raw()).collect()
    };
    let menu = if choice.is_menu {
        menu::definitions().to_vec()
    } else {
        Vec::new()
    };
    Ok(Json(ProfileView {
        profile,
        menu,
        tool_definitions: of(Kind::Tool),
        prompts: of(Kind::Prompt),
        resources: of(Kind::Resource),
        resource_templates: of(Kind::Template),
    }))
}

/// A profile, the catalog of its clients, and the tools that they are shown.
fn summary(admin: &Admin, name: &str) -> Option<(ProfileSummary, Arc<Catalog>, Choice)> {
    let core = &admin.core;
    let realm = Realm {
        principal: Principal::Owner,
        profile: Some(ProfileId::of(name)),
    };
    let scope = core.scopes.of(realm).ok()?;
    let catalog = Arc::clone(&scope.catalog(&core.live_catalog));
    let anyone = Caller::new(0, "".into(), realm);
    let view = View::All(Face::Configured);
    let choice = choose(core, &scope, &view, &anyone);
    let servers = core.upstreams();
    let servers = servers.keys().filter(|server| scope.permits_server(server));
    let is_own = |tool: &Item<'_>| **tool.server() == *builtin::SERVER;
    let profile = ProfileSummary {
        name: name.to_owned(),
        servers: servers.cloned().collect(),
        tools: catalog.tools().filter(|tool| !is_own(tool)).count() as u64,
        shows: choice.shows().into(),
        why: choice.why.to_owned(),
    };
    Some((profile, catalog, choice))
}
