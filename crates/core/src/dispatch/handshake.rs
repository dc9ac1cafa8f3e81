//! The gateway's handshake responses, made at once from what is known.

use std::sync::Arc;

use switchboard_base::{
    apps,
    caller::{Caller, Realm, negotiate},
    error::Error,
    tasks,
    view::View,
};
use switchboard_catalog::{Offers, ServerPart};
use switchboard_client::{ErrorObject, Raw, Revision};
use switchboard_outbound::builtin;
use switchboard_wire::{Era, code, meta};

use super::menu;
use crate::{
    core::Core,
    translate::{self, own_info},
};

/// A view's description of itself in a handshake.
struct Introduction {
    capabilities: Raw,
    server_info: Raw,
    instructions: Option<Raw>,
    /// The `_meta` of the server's own handshake response.
    meta: Option<Raw>,
}

/// The most bytes of each server's instructions to forward, and of all together.
const INSTRUCTIONS_EACH: usize = 2 * 1024;
const INSTRUCTIONS_ALL: usize = 8 * 1024;
/// The most bytes of the instructions for the menu.
const MENU_INSTRUCTIONS: usize = 1_024;

/// The most bytes of `clientInfo` and `capabilities` in `initialize`. They are kept with the
/// session.
pub const SAID_BYTES: usize = 64 * 1024;

/// The response to `initialize`.
pub fn initialize(
    core: &Core,
    caller: &Caller,
    view: &View,
    params: Option<&Raw>,
) -> Result<Raw, ErrorObject> {
    let said = |name: &str| {
        let said = params.and_then(|params| params.member(name));
        said.map_or(0, |said| said.as_bytes().len())
    };
    if said("clientInfo") + said("capabilities") > SAID_BYTES {
        let message = format!(
            "`clientInfo` and `capabilities` are larger than {} KiB; send less",
            SAID_BYTES / 1024
        );
        return Err(ErrorObject::new(code::INVALID_PARAMS, message));
    }
    let revision = negotiate(params);
    let mut caller = caller.clone();
    caller.introduce(
        params
            .and_then(|params| params.member("clientInfo"))
            .as_ref(),
    );
    let introduction = introduce(core, &caller, view, revision)
        .map_err(|failure| failure.into_error(Era::Legacy))?;
    let mut members = vec![
        ("protocolVersion", Raw::string(revision.as_str())),
        ("capabilities", introduction.capabilities),
        ("serverInfo", introduction.server_info),
    ];
    members.extend(introduction.instructions.map(|text| ("instructions", text)));
    members.extend(introduction.meta.map(|said| (meta::META, said)));
    Ok(Raw::object(members))
}

/// The response to `server/discover`.
pub(crate) fn discover(core: &Core, caller: &Caller, view: &View) -> Result<Raw, Error> {
    let introduction = introduce(core, caller, view, Revision::LATEST)?;
    let versions = Revision::ALL.map(|revision| Raw::string(revision.as_str()));
    let mut members = vec![
        ("supportedVersions", Raw::array(versions)),
        ("capabilities", introduction.capabilities),
        (
            "ttlMs",
            Raw::number(translate::coarse_millis(translate::LIST_TTL)),
        ),
        ("cacheScope", Raw::string("private")),
    ];
    members.extend(introduction.instructions.map(|text| ("instructions", text)));
    members.extend(introduction.meta.map(|said| (meta::META, said)));
    let info = introduction.server_info;
    Ok(translate::modern(Raw::object(members), || info))
}

/// The server info in results of this view: the server's own in a view of one server, if known,
/// else the gateway's.
pub(crate) fn info(core: &Core, realm: Realm, view: &View) -> Raw {
    let of_server = |name: &str| {
        let catalog = core.scopes.of(realm).ok()?.catalog(&core.live_catalog);
        catalog.server(name)?.offers().server_info.clone()
    };
    match view {
        View::Server(name) => of_server(name).unwrap_or_else(own_info),
        View::All(_) => own_info(),
    }
}

fn introduce(
    core: &Core,
    caller: &Caller,
    view: &View,
    client: Revision,
) -> Result<Introduction, Error> {
    let scope = core.scopes.of(caller.realm)?;
    let catalog = scope.catalog(&core.live_catalog);
    let View::Server(name) = view else {
        let parts: Vec<_> = catalog.servers().collect();
        let instructions = if menu::choose(core, &scope, view, caller).is_menu {
            Some(menu_instructions(&parts))
        } else {
            all_instructions(&parts)
        };
        return Ok(Introduction {
            capabilities: all_capabilities(&parts, client),
            server_info: own_info(),
            instructions,
            meta: None,
        });
    };
    core.upstream_in(&scope, name)?;
    let offers = catalog.server(name).map(|part| Arc::clone(part.offers()));
    let offers = offers.as_deref();
    Ok(Introduction {
        capabilities: capabilities(offers, client),
        server_info: info(core, caller.realm, view),
        meta: offers.and_then(|offers| offers.meta.clone()),
        instructions: offers
            .and_then(|offers| offers.instructions.as_deref())
            .map(Raw::string),
    })
}

/// The capabilities of one server through the gateway. A server that was never seen may have all of
/// them.
fn capabilities(offers: Option<&Offers>, client: Revision) -> Raw {
    let known = offers.and_then(|offers| offers.capabilities.as_ref());
    let said = |what: &str| known.and_then(|known| known.member(what));
    let has = |what: &str| known.is_none() || said(what).is_some();
    let mut members = Vec::new();
    for what in ["tools", "prompts"].into_iter().filter(|what| has(what)) {
        members.push((what, Raw::object([("listChanged", Raw::from(true))])));
    }
    if has("resources") {
        let subscribe = said("resources").and_then(|said| said.member("subscribe"));
        let subscribe = known.is_none() || subscribe.is_some_and(|says| says.as_str() == "true");
        members.push(("resources", resources(subscribe)));
    }
    for what in ["completions", "logging"]
        .into_iter()
        .filter(|what| has(what))
    {
        members.push((what, Raw::empty_object()));
    }
    members.extend(said("experimental").map(|said| ("experimental", said)));
    // Features of one era are offered only if client and server both have that era. Extensions
    // belong to no era, except for tasks, which 2025-11-25 has in another form.
    let of = offers.and_then(|offers| offers.revision);
    let is_modern = client.era() == Era::Modern && of.is_some_and(|of| of.era() == Era::Modern);
    let extensions = said("extensions").filter(Raw::is_object);
    let carried = extensions.map(|said| {
        if is_modern {
            said
        } else {
            said.without(&[tasks::EXTENSION])
        }
    });
    let carried = carried.filter(|carried| carried.as_str() != "{}");
    members.extend(carried.map(|carried| ("extensions", carried)));
    if client.facts().core_tasks && of.is_some_and(|of| of.facts().core_tasks) {
        members.extend(said("tasks").map(|said| ("tasks", said)));
    }
    Raw::object(members)
}

fn resources(subscribe: bool) -> Raw {
    let subscribe = subscribe.then(|| ("subscribe", Raw::from(true)));
    let changed = ("listChanged", Raw::from(true));
    Raw::object([changed].into_iter().chain(subscribe))
}

/// The capabilities of all servers together.
fn all_capabilities(parts: &[&Arc<ServerPart>], client: Revision) -> Raw {
    let changed = || Raw::object([("listChanged", Raw::from(true))]);
    let mut members = vec![
        ("tools", changed()),
        ("prompts", changed()),
        ("resources", resources(true)),
        ("completions", Raw::empty_object()),
        ("logging", Raw::empty_object()),
    ];
    let has = |name: &str| {
        parts.iter().any(|part| {
            let known = part.offers().capabilities.as_ref();
            let extensions = known.and_then(|known| known.member("extensions"));
            extensions.is_some_and(|extensions| extensions.member(name).is_some())
        })
    };
    // Only the extensions that work where servers are combined.
    let tasks = client.era() == Era::Modern && has(tasks::EXTENSION);
    let tasks = tasks.then(|| (tasks::EXTENSION, Raw::empty_object()));
    let apps = has(apps::EXTENSION).then(|| (apps::EXTENSION, apps::capability()));
    let extensions: Vec<_> = tasks.into_iter().chain(apps).collect();
    if !extensions.is_empty() {
        members.push(("extensions", Raw::object(extensions)));
    }
    Raw::object(members)
}

/// The instructions for the menu: its use, and the servers behind it. Each server's own
/// instructions come with the description of its tools.
fn menu_instructions(parts: &[&Arc<ServerPart>]) -> Raw {
    let mut text = menu::INSTRUCTIONS.to_owned();
    let names = parts.iter().map(|part| &**part.name());
    let names = names.filter(|name| *name != builtin::SERVER);
    for (at, name) in names.enumerate() {
        if text.len() + name.len() > MENU_INSTRUCTIONS {
            text.push_str(", and more");
            break;
        }
        text.push_str(if at == 0 { " Servers: " } else { ", " });
        text.push_str(name);
    }
    Raw::string(&text)
}

/// The instructions of all servers, each under the server's name.
fn all_instructions(parts: &[&Arc<ServerPart>]) -> Option<Raw> {
    let mut all = String::new();
    for part in parts {
        let Some(text) = part.offers().instructions.as_deref() else {
            continue;
        };
        let text = &text[..text.floor_char_boundary(INSTRUCTIONS_EACH)];
        if all.len() + text.len() > INSTRUCTIONS_ALL {
            break;
        }
        all.push_str("# ");
        all.push_str(part.name());
        all.push('\n');
        all.push_str(text.trim_end());
        all.push_str("\n\n");
    }
    (!all.is_empty()).then(|| Raw::string(all.trim_end()))
}
