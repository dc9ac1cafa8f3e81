//! The servers: their status, and changes to them.
//!
//! A change is written to the configuration file, so that it outlives this process; the supervisor applies
//! it.

use std::sync::Arc;

use axum::{
    Json,
    extract::{Extension, State},
    response::IntoResponse,
};
use hyper::{
    StatusCode,
    header::{HeaderValue, LOCATION},
};
use switchboard_base::{
    audit::{Actor, Event},
    error::Error,
};
use switchboard_config::EditError;
use switchboard_inbound::problem::{Problem, refuse_if_stopping};
use switchboard_outbound::upstream::Upstream;
use switchboard_rest::servers::{
    Introduction, NewServer, RestartQuery, Server, ServerDetail, Servers,
};

use super::ask::{Asked, Named, Said, find, number};
use crate::admin::Admin;

pub(super) async fn list(State(admin): State<Arc<Admin>>) -> Json<Servers> {
    let servers = admin
        .core
        .upstreams()
        .values()
        .map(|upstream| admin.server_status(upstream))
        .collect();
    Json(Servers { servers })
}

pub(super) async fn show(
    State(admin): State<Arc<Admin>>,
    Named(upstream): Named,
) -> Json<ServerDetail> {
    let offers = admin.core.live_catalog.offers(&upstream.name);
    Json(ServerDetail {
        server: admin.server_status(&upstream),
        offers: offers.as_deref().map(|offers| Introduction {
            server_info: offers.server_info.clone(),
            instructions: offers.instructions.clone(),
            capabilities: offers.capabilities.clone(),
        }),
    })
}

pub(super) async fn add(
    State(admin): State<Arc<Admin>>,
    Extension(actor): Extension<Actor>,
    Said(NewServer { name, mut server }): Said<NewServer>,
) -> Result<impl IntoResponse, Problem> {
    // A client of the socket can write the file anyway. Servers that other clients add need approval: the
    // approver sees the command that would be started, but none of these keys.
    if !actor.is_at_socket()
        && let Some(entry) = server.as_object_mut()
    {
        for key in ["approve", "approvedFile"] {
            entry.remove(key);
        }
        entry.insert("trust".to_owned(), "ask".into());
        entry.insert("hold".to_owned(), true.into());
    }
    let added = name.clone();
    change(&admin, actor, move |text| {
        switchboard_config::add_server(text, &added, &server)
    })
    .await?;
    let status = admin.server_status(&*find(&admin, &name)?);
    let mut response = (StatusCode::CREATED, Json(status)).into_response();
    if let Ok(place) = HeaderValue::from_str(&format!(
        "/api/v1/servers/{}",
        switchboard_catalog::escape(&name)
    )) {
        response.headers_mut().insert(LOCATION, place);
    }
    Ok(response)
}

pub(super) async fn remove(
    State(admin): State<Arc<Admin>>,
    Extension(actor): Extension<Actor>,
    Named(upstream): Named,
) -> Result<StatusCode, Problem> {
    let name = Arc::clone(&upstream.name);
    change(&admin, actor, move |text| {
        switchboard_config::remove_server(text, &name)
    })
    .await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn enable(
    State(admin): State<Arc<Admin>>,
    Extension(actor): Extension<Actor>,
    Named(upstream): Named,
) -> Result<Json<Server>, Problem> {
    switch(&admin, actor, &upstream, Switch::On).await
}

pub(super) async fn disable(
    State(admin): State<Arc<Admin>>,
    Extension(actor): Extension<Actor>,
    Named(upstream): Named,
) -> Result<Json<Server>, Problem> {
    switch(&admin, actor, &upstream, Switch::Off).await
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Switch {
    On,
    Off,
}

async fn switch(
    admin: &Admin,
    actor: Actor,
    upstream: &Upstream,
    to: Switch,
) -> Result<Json<Server>, Problem> {
    let name = Arc::clone(&upstream.name);
    change(admin, actor, move |text| {
        switchboard_config::set_enabled(text, &name, to == Switch::On)
    })
    .await?;
    let upstream = find(admin, &upstream.name)?;
    Ok(Json(admin.server_status(&upstream)))
}

pub(super) async fn restart(
    State(admin): State<Arc<Admin>>,
    Extension(actor): Extension<Actor>,
    Named(upstream): Named,
    Asked(RestartQuery { instance }): Asked<RestartQuery>,
) -> Result<Json<Server>, Problem> {
    let number: Option<u64> = number("instance", instance)?;
    refuse_if_stopping(&admin.core)?;
    if !upstream.settings().enabled {
        let server = Arc::clone(&upstream.name);
        return Err(Error::Disabled { server }.into());
    }
    let room = admin.core.audit.room().await?;
    // Looked up after the wait, in which it may end.
    let one = number.map(|number| {
        let found = upstream.numbered(number);
        found.ok_or_else(|| no_instance(&upstream.name, number))
    });
    let one = one.transpose()?;
    room.record([Event {
        what: "server-restarted",
        subject: Arc::clone(&upstream.name),
        actor: Some(actor),
        details: match number {
            None => serde_json::json!({}),
            Some(number) => serde_json::json!({ "instance": number }),
        },
    }]);
    match one {
        None => upstream.restart().await,
        Some(instance) => instance.restart().await,
    }
    Ok(Json(admin.server_status(&upstream)))
}

/// The problem for a number that no instance of the server has.
pub(super) fn no_instance(server: &str, number: u64) -> Problem {
    let detail = format!("server `{server}` has no instance {number}");
    Problem::new(StatusCode::NOT_FOUND, detail).hint("`switchboard list` shows the instances")
}

async fn change(
    admin: &Admin,
    actor: Actor,
    edit: impl FnOnce(&str) -> Result<String, EditError> + Send + 'static,
) -> Result<(), Problem> {
    refuse_if_stopping(&admin.core)?;
    Ok(admin.core.change_config_as(Some(actor), edit).await?)
}
