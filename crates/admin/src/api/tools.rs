//! The tools of all servers, and calls.

use std::{sync::Arc, time::Duration};

use axum::{
    Extension,
    extract::State,
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use hyper::{
    StatusCode,
    header::{CONTENT_TYPE, HeaderValue},
};
use switchboard_base::{
    audit::Actor,
    backchannel::{Backchannel, Sink},
    caller::{Caller, Guest, Origin, Realm},
    error::cut,
    project::Project,
    view::{Face, View},
};
use switchboard_catalog::{Catalog, Item, Kind};
use switchboard_client::{Raw, Reason};
use switchboard_config::{Argument, shell_word};
use switchboard_core::dispatch::{
    self, ClientRequest,
    menu::{NAME_BYTES, look_up, split},
};
use switchboard_inbound::{admission::CONSOLE, problem::Problem};
use switchboard_outbound::{builtin, memory, supervisor::Upstreams};
use switchboard_rest::tools::{CallTool, Overridden, Tool, Tools, ToolsQuery};
use switchboard_wire::{meta, method};

use super::{
    ask::{Asked, Said, directory, unknown_server},
    config::shown_argument,
    sse,
};
use crate::admin::Admin;

/// The key under which all callers of REST take one turn among the clients of a server. No client has this
/// key.
const KEY: u64 = 0;
/// The name of the caller in rules.
const CLIENT: &str = "api";
/// The same for the room for approval requests.
const HOLDER: u64 = u64::MAX;
/// The longest wait for a server whose tool is requested by name. The caller retries.
const GLANCE: Duration = Duration::from_secs(2);

fn tool(upstreams: &Upstreams, item: Item<'_>) -> Tool {
    let description = item.definition().member("description");
    Tool {
        name: format!("{}:{}", item.server(), item.shown_name()),
        server: item.server().to_string(),
        tool: item.name().to_string(),
        exposed: item.exposed().to_string(),
        description: description.and_then(|text| text.to_text()),
        definition: item.definition().clone(),
        overridden: overridden(upstreams, item),
    }
}

fn overridden(upstreams: &Upstreams, item: Item<'_>) -> Option<Overridden> {
    if !item.is_changed() {
        return None;
    }
    let settings = upstreams.get(&**item.server())?.settings();
    let arguments = &settings.overrides.get(item.name())?.arguments;
    let fixed = arguments
        .iter()
        .filter_map(|(name, argument)| match argument {
            Argument::Fixed(value) => Some((name.as_str(), shown_argument(name, value))),
            Argument::Hidden => None,
        });
    let hidden = arguments.iter().filter(|(_, of)| **of == Argument::Hidden);
    Some(Overridden {
        definition: item.raw().clone(),
        fixed: Raw::object(fixed),
        hidden: hidden.map(|(name, _)| name.clone()).collect(),
    })
}

pub(super) async fn list(
    State(admin): State<Arc<Admin>>,
    Extension(actor): Extension<Actor>,
    Extension(realm): Extension<Realm>,
    Asked(ToolsQuery {
        server,
        name,
        project,
    }): Asked<ToolsQuery>,
) -> Result<Response, Problem> {
    let server = server.filter(|server| !server.is_empty());
    let caller = caller_of(&actor, realm, project).await?;
    if let Some(name) = &name {
        locate(&admin, &caller, name, GLANCE).await?;
    } else if let Some(server) = &server
        && let Some(upstream) = admin.core.upstream(server)
        && upstream.needs_project()
        && caller.project().is_some()
    {
        // If it fails, the server is listed as one whose tools are not known.
        let _ = dispatch::part_within(&admin.core, Some(&caller), server, GLANCE).await;
    }
    let catalog = admin.core.live_catalog.catalog_full();
    let upstreams = admin.core.upstreams();
    if let Some(name) = &server
        && catalog.server(name).is_none()
        && !upstreams.contains_key(name)
    {
        return Err(unknown_server(&admin, name));
    }
    // There may be thousands of definitions, each a page of text, and other requests would wait behind this
    // work.
    let work = tokio::task::spawn_blocking(move || {
        let asked = |name: &str| server.as_deref().is_none_or(|server| server == name);
        let one = name.as_deref().and_then(|name| look_up(&catalog, name));
        let is_it = |tool: &Item<'_>| {
            name.is_none() || one.is_some_and(|one| one.exposed() == tool.exposed())
        };
        let list = Tools {
            tools: catalog
                .tools()
                .filter(|tool| asked(tool.server()) && is_it(tool))
                .map(|item| tool(&upstreams, item))
                .collect(),
            starting: upstreams
                .iter()
                .filter(|_| name.is_none())
                .filter(|(name, upstream)| {
                    asked(name) && upstream.settings().enabled && catalog.server(name).is_none()
                })
                .map(|(name, _)| name.clone())
                .collect(),
        };
        serde_json::to_vec(&list)
    });
    let Ok(Ok(list)) = work.await else {
        let detail = "cannot encode the list of tools";
        return Err(Problem::new(StatusCode::INTERNAL_SERVER_ERROR, detail).hint("try again"));
    };
    Ok(json(list))
}

pub(super) async fn call(
    State(admin): State<Arc<Admin>>,
    Extension(actor): Extension<Actor>,
    Extension(realm): Extension<Realm>,
    Said(CallTool {
        name,
        arguments,
        project,
        page,
        progress,
    }): Said<CallTool>,
) -> Result<Response, Problem> {
    let arguments = arguments.unwrap_or_else(Raw::empty_object);
    if !arguments.is_object() {
        let detail = "`arguments` must be an object with the arguments of the tool";
        return Err(Problem::new(StatusCode::BAD_REQUEST, detail));
    }
    let mut caller = caller_of(&actor, realm, project).await?;
    let (view, tool) = locate(&admin, &caller, &name, Duration::MAX).await?;
    caller.origin = match actor.door {
        CONSOLE if page && reads_memory(&admin, &name, &arguments) => Origin::Page,
        CONSOLE => Origin::Rest("console"),
        _ if actor.is_at_socket() => Origin::Rest("command line"),
        _ => Origin::Rest("REST API"),
    };
    let incoming = ClientRequest {
        guest: Guest::stranger(),
        session: None,
        backchannel: None,
        method: method::TOOLS_CALL.to_owned(),
        params: Some(Raw::object([
            ("name", Raw::string(&tool)),
            ("arguments", arguments),
        ])),
    };
    if progress {
        return Ok(accompanied(admin, view, caller, incoming));
    }
    let result = dispatch::serve(&admin.core, &view, &caller, incoming).await?;
    Ok(json(result.bytes()))
}

/// The caller of a tool, who works in this directory.
async fn caller_of(
    actor: &Actor,
    realm: Realm,
    project: Option<String>,
) -> Result<Caller, Problem> {
    let mut caller = Caller::new(KEY, CLIENT.into(), realm).over_http(actor.door);
    caller.holder.client = HOLDER;
    if let Some(project) = project {
        caller.project = Project::known(directory(project).await?.into());
    }
    Ok(caller)
}

/// Streams the progress of a call, and its result. The call is cancelled when the reader disconnects.
fn accompanied(
    admin: Arc<Admin>,
    view: View,
    caller: Caller,
    mut incoming: ClientRequest,
) -> Response {
    let (sender, response) = sse::stream();
    let sender = Arc::new(sender);
    let progress = Arc::new(Progress(Arc::clone(&sender)));
    incoming.backchannel = Some(Backchannel::new(progress, None, Reason::default()));
    let token = Raw::object([(meta::PROGRESS_TOKEN, Raw::number(0_u64))]);
    incoming.params = incoming
        .params
        .map(|params| params.with_member(meta::META, &token).unwrap_or(params));
    tokio::spawn(async move {
        let ended = tokio::select! {
            ended = dispatch::serve(&admin.core, &view, &caller, incoming) => ended,
            () = sender.closed() => return,
        };
        let (kind, text) = match ended {
            Ok(result) => ("result", result.as_str().to_owned()),
            Err(failure) => {
                let problem = serde_json::to_string(Problem::from(failure).body());
                ("problem", problem.unwrap_or_default())
            }
        };
        // A reader that has disconnected needs no result.
        let _ = sender.line(kind, &text).await;
    });
    response
}

/// Forwards the progress of a call. A reader that is too slow misses notifications: neither the tool nor its
/// time limits wait for it.
struct Progress(Arc<sse::Sender>);

impl Sink for Progress {
    fn put(&self, message: Bytes) -> bool {
        let message = Raw::parse(message).ok();
        let said = message.and_then(|message| {
            let is_progress = message.member("method")?.to_text()? == method::PROGRESS;
            message.member("params").filter(|_| is_progress)
        });
        said.is_some_and(|said| self.0.offer("progress", said.as_str()))
    }
}

/// Tests if this call of a tool of the built-in memory server changes nothing.
fn reads_memory(admin: &Admin, name: &str, arguments: &Raw) -> bool {
    let catalog = admin.core.live_catalog.catalog_full();
    look_up(&catalog, name).is_some_and(|tool| {
        let upstream = admin.core.upstream(tool.server());
        let is_memory = upstream.is_some_and(|upstream| memory::is_built_in(&upstream.settings()));
        let annotations = tool.raw().member("annotations");
        let reads = annotations.and_then(|annotations| annotations.member("readOnlyHint"));
        let reads = reads.is_some_and(|reads| reads.as_bytes() == b"true");
        // Without a plan to apply, it only makes one.
        let plans = tool.name() == "consolidate_memory"
            && matches!(arguments.distinct_member(&["apply"]), Ok(None));
        is_memory && (reads || plans)
    })
}

/// The view that has this tool, and the tool's name in that view. A server that was never listed is waited
/// for, up to `patience`, since it may have the tool.
async fn locate(
    admin: &Admin,
    caller: &Caller,
    name: &str,
    patience: Duration,
) -> Result<(View, String), Problem> {
    let live_catalog = &admin.core.live_catalog;
    let catalog = live_catalog.catalog_full();
    if let Some(found) = look_up(&catalog, name) {
        return Ok(view(found.server(), found.shown_name()));
    }
    let Some((server, tool)) = split(name, |server| admin.core.upstream(server).is_some()) else {
        return Err(unknown_tool(admin, &catalog, name));
    };
    let settings = admin
        .core
        .upstream(server)
        .map(|upstream| upstream.settings());
    let own = settings
        .as_ref()
        .and_then(|of| of.overrides.renamed_to(tool));
    let item = Some((Kind::Tool, own.unwrap_or(tool)));
    live_catalog.permits(server, item)?;
    let part = dispatch::part_within(&admin.core, Some(caller), server, patience).await?;
    let catalog = live_catalog.catalog_full();
    if let Some(found) = look_up(&catalog, name) {
        return Ok(view(found.server(), found.shown_name()));
    }
    let changed = settings.as_ref().and_then(|of| of.overrides.get(tool));
    if let Some(changed) = changed.filter(|changed| changed.hidden || changed.name.is_some()) {
        let offers = live_catalog.offers(server).unwrap_or_default();
        let is_it =
            |own: &Raw| own.member("name").and_then(|own| own.to_text()).as_deref() == Some(tool);
        if !offers.tools.iter().any(is_it) {
            return Err(overridden_in_vain(server, tool));
        }
        return Err(overridden_away(server, tool, changed.name.as_deref()));
    }
    if let Some(near) = part.suggest_tool(tool) {
        return Err(no_tool(name, Some(&format!("{server}:{near}"))));
    }
    let upstream = admin.core.upstream(server);
    match upstream.and_then(|upstream| upstream.lacks(Kind::Tool)) {
        Some(lacks) => Err(lacks.into()),
        None => Err(no_tool(name, None)),
    }
}

/// A server's own view returns its results verbatim. The gateway's own tools have no such view.
fn view(server: &Arc<str>, tool: &str) -> (View, String) {
    if **server == *builtin::SERVER {
        (View::All(Face::Direct), format!("{server}__{tool}"))
    } else {
        (View::Server(Arc::clone(server)), tool.to_owned())
    }
}

fn unknown_tool(admin: &Admin, catalog: &Catalog, name: &str) -> Problem {
    if admin.core.upstream(name).is_some() {
        let detail = format!("`{}` is a server, not a tool", cut(name));
        let next = format!(
            "`switchboard tools {}` lists its tools",
            shell_word(cut(name))
        );
        return Problem::new(StatusCode::NOT_FOUND, detail).hint(next);
    }
    let near = catalog
        .suggest_tool(name)
        .and_then(|exposed| catalog.find(Kind::Tool, exposed))
        .map(|near| format!("{}:{}", near.server(), near.shown_name()));
    let pair = name.split_once(':').filter(|_| name.len() <= NAME_BYTES);
    match (near, pair) {
        (None, Some((server, _))) => unknown_server(admin, server),
        (near, _) => no_tool(name, near.as_deref()),
    }
}

/// The problem of a tool that an override renames or hides.
fn overridden_away(server: &str, tool: &str, new_name: Option<&str>) -> Problem {
    let own = format!("{server}:{tool}");
    let (detail, next) = match new_name {
        Some(new_name) => (
            format!("there is no tool `{own}`: an override renames it"),
            format!("use `{server}:{new_name}`"),
        ),
        None => (
            format!("there is no tool `{own}`: an override hides it"),
            format!(
                "`switchboard trust show {}` shows its definition",
                shell_word(&own)
            ),
        ),
    };
    Problem::new(StatusCode::NOT_FOUND, detail).hint(next)
}

/// The problem of an override whose tool the server does not have.
fn overridden_in_vain(server: &str, tool: &str) -> Problem {
    let detail = format!("server `{server}` has no tool `{tool}`, so its override has no effect");
    let next = format!("`switchboard tools {}` lists its tools", shell_word(server));
    Problem::new(StatusCode::NOT_FOUND, detail).hint(next)
}

fn no_tool(name: &str, near: Option<&str>) -> Problem {
    let next = match near {
        Some(near) => format!("did you mean `{near}`?"),
        None => "`switchboard tools` lists all tools".to_owned(),
    };
    let detail = format!("there is no tool `{}`", cut(name));
    Problem::new(StatusCode::NOT_FOUND, detail).hint(next)
}

fn json(body: impl Into<Bytes>) -> Response {
    let kind = HeaderValue::from_static("application/json");
    ([(CONTENT_TYPE, kind)], body.into()).into_response()
}
