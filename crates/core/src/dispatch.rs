//! Dispatch: answers every request of a client, independent of its transport.
//!
//! A client sees one of two views: the items of all servers under the gateway's names, or one
//! server with its names unchanged. In the first, tools may be behind a menu.

pub mod extension;
pub mod fit;
pub mod handshake;
mod lookup;
pub mod menu;
mod tasks;

use std::{
    borrow::Cow,
    sync::Arc,
    time::{Duration, Instant},
};

use switchboard_base::{
    apps,
    backchannel::Backchannel,
    caller::{Caller, Guest, Realm, read_level},
    error::{Error, cut},
    view::{Face, View},
};
use switchboard_catalog::{BadCursor, Catalog, Kind, Page, ServerPart, Target};
use switchboard_client::{ErrorObject, Raw};
use switchboard_outbound::{builtin, overrides, upstream::Upstream};
use switchboard_results::Structured;
use switchboard_wire::{Era, Name, RawError, header::ParamHeaders, method};
use tokio::{task::JoinSet, time::timeout};

use crate::{
    call::{self, UpstreamRequest},
    core::Core,
    roots::{self, settle_project},
    scope::{Changes, Scope},
    session::Session,
    tool_result,
    translate::{self, Listing},
};

/// A request as the transports pass it in.
#[derive(Debug)]
pub struct ClientRequest {
    /// The client's description of itself.
    pub guest: Guest,
    /// The session of a client of an older revision, if it has one.
    pub session: Option<Arc<Session>>,
    /// The channel to the client while the request is in flight.
    pub backchannel: Option<Backchannel>,
    /// The method.
    pub method: String,
    /// The parameters.
    pub params: Option<Raw>,
}

/// The longest time to wait for a list that is out of date.
const REFRESH_PATIENCE: Duration = Duration::from_secs(2);
/// The longest time that a change of the log level waits for servers.
const LEVEL_PATIENCE: Duration = Duration::from_secs(2);

/// Answers one request, with errors in the form of the client's era.
pub async fn answer(
    core: &Arc<Core>,
    view: &View,
    caller: &Caller,
    incoming: ClientRequest,
) -> Result<Raw, ErrorObject> {
    let era = incoming.guest.era();
    let is_call = incoming.method == method::TOOLS_CALL;
    let served = serve(core, view, caller, incoming).await;
    served.or_else(|failure| {
        translate::failure(failure, is_call, era, || {
            handshake::info(core, caller.realm, view)
        })
    })
}

/// Answers one request.
pub async fn serve(
    core: &Arc<Core>,
    view: &View,
    caller: &Caller,
    incoming: ClientRequest,
) -> Result<Raw, Error> {
    let ClientRequest {
        guest,
        session,
        backchannel,
        method,
        params,
    } = incoming;
    let era = guest.era();
    let scope = core.scopes.of(caller.realm)?;
    let dispatch = Dispatch {
        core,
        scope,
        view,
        caller,
        guest,
        backchannel,
    };
    match (&*method, era) {
        (method::TOOLS_CALL, _) => dispatch.call_tool(params).await,
        // All but calls are boxed, so that a call need not carry space for them.
        (method::TOOLS_LIST, _) => Box::pin(dispatch.list(Kind::Tool, params)).await,
        (method::PROMPTS_LIST, _) => Box::pin(dispatch.list(Kind::Prompt, params)).await,
        (method::RESOURCES_LIST, _) => Box::pin(dispatch.list(Kind::Resource, params)).await,
        (method::RESOURCE_TEMPLATES_LIST, _) => {
            Box::pin(dispatch.list(Kind::Template, params)).await
        }
        (method::PROMPTS_GET, _) => Box::pin(dispatch.get_prompt(params)).await,
        (method::RESOURCES_READ, _) => Box::pin(dispatch.read_resource(params)).await,
        (method::COMPLETE, _) => Box::pin(dispatch.complete(params)).await,
        (method::DISCOVER, Era::Modern) => handshake::discover(core, caller, view),
        (method::TASKS_GET, _) => Box::pin(dispatch.task(method::TASKS_GET, params)).await,
        (method::TASKS_CANCEL, _) => Box::pin(dispatch.task(method::TASKS_CANCEL, params)).await,
        (method::TASKS_UPDATE, Era::Modern) => {
            Box::pin(dispatch.task(method::TASKS_UPDATE, params)).await
        }
        (method::TASKS_RESULT, Era::Legacy) => {
            Box::pin(dispatch.task(method::TASKS_RESULT, params)).await
        }
        (method::TASKS_LIST, Era::Legacy) => Box::pin(dispatch.list_tasks(params)).await,
        (method::PING, Era::Legacy) => Ok(Raw::empty_object()),
        (method::SET_LEVEL, Era::Legacy) => {
            Box::pin(dispatch.set_level(session.as_deref(), params)).await
        }
        (method::RESOURCES_SUBSCRIBE, Era::Legacy) => {
            Box::pin(dispatch.subscribe(session.as_ref(), params)).await
        }
        (method::RESOURCES_UNSUBSCRIBE, Era::Legacy) => {
            let uri = text(&required(params)?, "uri")?;
            if let Some(session) = session {
                session.stop_watching(&uri);
            }
            Ok(Raw::empty_object())
        }
        _ => Box::pin(dispatch.extension(method, params)).await,
    }
}

/// One request in its view.
struct Dispatch<'a> {
    core: &'a Arc<Core>,
    scope: Arc<Scope>,
    view: &'a View,
    caller: &'a Caller,
    guest: Guest,
    backchannel: Option<Backchannel>,
}

/// Resolves an exposed name to a server and its own name.
type Find = for<'a> fn(&'a Catalog, &'a str) -> Option<Target<'a>>;

impl Dispatch<'_> {
    /// The catalog of this caller.
    fn catalog(&self) -> arc_swap::Guard<Arc<Catalog>> {
        self.scope.catalog(&self.core.live_catalog)
    }

    /// The server with this name, if the caller sees it.
    fn upstream(&self, name: &str) -> Result<Arc<Upstream>, Error> {
        self.core.upstream_in(&self.scope, name)
    }

    /// The catalog part of one server, as the caller sees it. Waits for a server that was never
    /// listed, up to the time limit of a call.
    async fn part(&self, name: &str) -> Result<Arc<ServerPart>, Error> {
        let upstream = self.upstream(name)?;
        if self.core.live_catalog.catalog().server(name).is_none() {
            self.settle_project(&upstream).await;
        }
        let whole = part(self.core, self.caller, name).await?;
        if self.scope.is_everything() {
            return Ok(whole);
        }
        let part = self.catalog().server(name).cloned();
        // Removed meanwhile.
        part.ok_or_else(|| Error::invalid_params(format!("there is no server `{}`", cut(name))))
    }

    /// Determines the project of this caller, if the server needs one.
    async fn settle_project(&self, upstream: &Upstream) {
        if self.caller.project.is_open() {
            let backchannel = self.backchannel.as_ref();
            let settling = settle_project(upstream, self.caller, &self.guest, backchannel);
            // Boxed, because few calls get here.
            Box::pin(settling).await;
        }
    }

    async fn list(&self, kind: Kind, params: Option<Raw>) -> Result<Raw, Error> {
        let cursor = params
            .as_ref()
            .and_then(|params| params.member("cursor"))
            .filter(|cursor| cursor.as_bytes() != b"null");
        let cursor = match &cursor {
            None => None,
            Some(cursor) => Some(cursor.to_text().ok_or_else(bad_cursor)?),
        };
        let cursor = cursor.as_deref();
        let is_menu = || kind == Kind::Tool && self.choice().is_menu;
        if cursor.is_none() && matches!(self.view, View::All(_)) && !is_menu() {
            let sees = |server: &str| self.scope.permits_server(server);
            self.core.servers.delay_list(self.caller, sees).await;
        }
        match self.view {
            View::All(_) if is_menu() => {
                self.refresh_all(kind);
                self.core.finder.wake();
                let page = menu::part().page(kind, cursor).map_err(bad_page)?;
                Ok(self.encode(kind, page, None, params.as_ref()))
            }
            View::All(_) => {
                self.refresh_all(kind);
                let catalog = self.catalog();
                let page = catalog.page(kind, cursor).map_err(bad_page)?;
                let hints = self.all_hints(kind);
                Ok(self.encode(kind, page, hints, params.as_ref()))
            }
            View::Server(name) => {
                let upstream = self.upstream(name)?;
                if cursor.is_none() && upstream.is_stale(kind) {
                    // An outdated list is better than none.
                    let refreshing = upstream.refresh(kind);
                    let _ = timeout(REFRESH_PATIENCE, refreshing).await;
                }
                let part = self.part(name).await?;
                let page = part.page(kind, cursor).map_err(bad_page)?;
                let hints = upstream.freshness().of(kind).map(|fresh| fresh.hints());
                Ok(self.encode(kind, page, hints, params.as_ref()))
            }
        }
    }

    /// Refreshes outdated lists in the background, for later requests.
    fn refresh_all(&self, kind: Kind) {
        for upstream in self.core.upstreams().values() {
            if upstream.is_stale(kind) && self.scope.permits_server(&upstream.name) {
                let upstream = Arc::clone(upstream);
                tokio::spawn(async move { upstream.refresh(kind).await });
            }
        }
    }

    /// The caching hints of all lists together: the TTL, and `true` if they are public. `None` if
    /// there are no servers, or for an older client.
    fn all_hints(&self, kind: Kind) -> Option<(Duration, bool)> {
        if self.guest.era() == Era::Legacy {
            return None;
        }
        let hints = self.core.upstreams();
        let seen = |upstream: &&Arc<Upstream>| self.scope.permits_server(&upstream.name);
        let hints = hints.values().filter(seen).map(|upstream| {
            let fresh = upstream.freshness().of(kind);
            fresh.map_or((translate::LIST_TTL, false), |fresh| fresh.hints())
        });
        hints.reduce(|(one, all), (other, public)| (one.min(other), all && public))
    }

    fn encode(
        &self,
        kind: Kind,
        page: Page<'_>,
        hints: Option<(Duration, bool)>,
        params: Option<&Raw>,
    ) -> Raw {
        let listing = Listing {
            kind,
            with_tasks: matches!(self.view, View::Server(_)),
            hints,
            info: &|| handshake::info(self.core, self.caller.realm, self.view),
        };
        let list = translate::list(page, self.guest.era(), &listing);
        match (self.view, kind) {
            (View::All(_), Kind::Tool) => apps::list_for(list, || self.guest.capabilities(params)),
            _ => list,
        }
    }

    async fn call_tool(&self, params: Option<Raw>) -> Result<Raw, Error> {
        let params = required(params)?;
        let exposed = distinct_text(&params, &["name", "arguments"])?;
        match self.view {
            View::All(face) => {
                // The menu is served wherever it can have been shown, because the choice of `auto`
                // may change.
                if *face != Face::Direct
                    && let Some(result) = self.call_menu(&exposed, &params).await
                {
                    return result;
                }
                let (server, name) = match self.find_tool(&exposed, &params) {
                    Ok(found) => found,
                    Err(unknown) => Box::pin(self.learn_of(&exposed, &params, unknown)).await?,
                };
                if &*server == builtin::SERVER {
                    return Box::pin(self.own_tool(&name, &params)).await;
                }
                let params = Params {
                    raw: params,
                    naming: Naming::Listed,
                };
                let result = self
                    .outgoing(&server, method::TOOLS_CALL, name, params)
                    .await?;
                self.deliver(&server, result, None, Structured::Keep).await
            }
            View::Server(server) => {
                let name = self.own_name(server, &exposed).await?;
                let naming = if *name == *exposed {
                    Naming::Own
                } else {
                    Naming::Exposed
                };
                let params = Params {
                    raw: params,
                    naming,
                };
                let result = self
                    .outgoing(server, method::TOOLS_CALL, name, params)
                    .await?;
                self.deliver(server, result, None, Structured::Keep).await
            }
        }
    }

    async fn own_tool(&self, name: &str, params: &Raw) -> Result<Raw, Error> {
        let result = match name {
            builtin::GET_STATUS => self.get_status(),
            builtin::READ_RESULT => self.read_result(params).await?,
            _ => return Err(Error::invalid_params("there is no such tool")),
        };
        Ok(translate::own_result(self.guest.era(), result))
    }

    fn get_status(&self) -> Raw {
        let status = self.core.status_for_agents(&self.scope);
        let choice = self.choice();
        let view = Raw::object([
            ("shows", Raw::string(choice.shows())),
            ("why", Raw::string(choice.why)),
        ]);
        let status = status.with_member("view", &view).unwrap_or(status);
        tool_result::result(status.as_str(), status.clone())
    }

    async fn get_prompt(&self, params: Option<Raw>) -> Result<Raw, Error> {
        let find: Find = |catalog, name| catalog.prompt(name);
        let (server, result) = self
            .named(method::PROMPTS_GET, "name", params, find)
            .await?;
        Ok(match server {
            Some(server) => switchboard_catalog::expose_content(&server, &result),
            None => result,
        })
    }

    async fn read_resource(&self, params: Option<Raw>) -> Result<Raw, Error> {
        let find: Find = |catalog, uri| catalog.resource(uri);
        let (server, result) = self
            .named(method::RESOURCES_READ, "uri", params, find)
            .await?;
        Ok(match server {
            Some(server) => switchboard_catalog::expose_read_result(&server, &result),
            None => result,
        })
    }

    /// Forwards a request to the server of the item that `member` names. Returns the server where
    /// names are the gateway's.
    async fn named(
        &self,
        method: &'static str,
        member: &str,
        params: Option<Raw>,
        find: Find,
    ) -> Result<(Option<Arc<str>>, Raw), Error> {
        let params = required(params)?;
        let exposed = distinct_text(&params, &[member, "arguments"])?;
        let View::Server(server) = self.view else {
            let (server, own) = {
                let catalog = self.catalog();
                let target = find(&catalog, &exposed)
                    .ok_or_else(|| unknown(self.guest.era(), member, &exposed))?;
                (Arc::clone(target.server), Arc::<str>::from(target.name))
            };
            let params = renamed(&params, member, &own)?;
            let result = self.outgoing(&server, method, own, params).await?;
            return Ok((Some(server), result));
        };
        let name = exposed.as_str().into();
        Ok((None, self.outgoing(server, method, name, params).await?))
    }

    async fn complete(&self, params: Option<Raw>) -> Result<Raw, Error> {
        let params = required(params)?;
        let of = params
            .distinct_member(&["ref", "argument", "context"])
            .map_err(|error| Error::invalid_params(error.to_string()))?
            .ok_or_else(|| Error::invalid_params("`ref` is missing"))?;
        call::completion::check(&params)?;
        let member = match of.member("type").and_then(|kind| kind.to_text()).as_deref() {
            Some("ref/prompt") => "name",
            Some("ref/resource") => "uri",
            _ => {
                let message = "`ref.type` must be \"ref/prompt\" or \"ref/resource\"";
                return Err(Error::invalid_params(message));
            }
        };
        let others = ["type", "name", "uri"];
        let exposed = distinct_text(&of, &[&[member][..], &others].concat())?;
        let View::Server(server) = self.view else {
            return self.complete_direct(params, &of, member, &exposed).await;
        };
        let name = exposed.as_str().into();
        self.outgoing(server, method::COMPLETE, name, params).await
    }

    async fn complete_direct(
        &self,
        params: Raw,
        of: &Raw,
        member: &str,
        exposed: &str,
    ) -> Result<Raw, Error> {
        let (server, name) = {
            let catalog = self.catalog();
            let target = match member {
                "name" => catalog.prompt(exposed),
                _ => catalog.template(exposed),
            };
            let target = target.ok_or_else(|| {
                Error::invalid_params(format!(
                    "there is no prompt or resource template `{}`",
                    cut(exposed)
                ))
            })?;
            (Arc::clone(target.server), Arc::<str>::from(target.name))
        };
        let of = renamed(of, member, &name)?;
        let params = params
            .with_member("ref", &of)
            .map_err(|error| Error::invalid_params(error.to_string()))?;
        self.outgoing(&server, method::COMPLETE, name, params).await
    }

    async fn subscribe(
        &self,
        session: Option<&Arc<Session>>,
        params: Option<Raw>,
    ) -> Result<Raw, Error> {
        let uri = distinct_text(&required(params)?, &["uri"])?;
        let Some(session) = session else {
            let message = "only a session can subscribe";
            return Err(Error::advised(message, "open a session with `initialize`"));
        };
        let (upstream, own) = locate_resource(self.core, self.caller.realm, self.view, &uri)?;
        if !session.is_watching(&uri) {
            let exposed = matches!(self.view, View::All(_));
            let core = self.core;
            call::approval::may_watch(core, self.caller, &upstream.name, &own).await?;
            self.settle_project(&upstream).await;
            let instance = upstream.instance(self.caller)?;
            roots::offer(
                &instance,
                self.caller,
                &self.guest,
                self.backchannel.as_ref(),
            );
            let watching = instance.watch(self.caller, &own, &session.notifications, exposed);
            if !session.keep_watching(&uri, watching.await?) {
                let message = "this session has too many subscriptions";
                return Err(Error::invalid_params(message));
            }
        }
        Ok(Raw::empty_object())
    }

    async fn set_level(
        &self,
        session: Option<&Session>,
        params: Option<Raw>,
    ) -> Result<Raw, Error> {
        let level = required(params)?.member("level");
        let level = level.and_then(|level| read_level(&level)).ok_or_else(|| {
            Error::invalid_params("`level` must be one of debug, info, notice, warning, error, critical, alert, emergency")
        })?;
        let Some(session) = session else {
            return Ok(Raw::empty_object());
        };
        session.set_level(level);
        let mut telling = JoinSet::new();
        for (name, upstream) in self.core.upstreams().iter() {
            if self.view.sees(name) && self.scope.permits_server(name) {
                let upstream = Arc::clone(upstream);
                telling.spawn(async move { upstream.want_level(level).await });
            }
        }
        // Slow servers receive it as well, a little later.
        let _ = timeout(LEVEL_PATIENCE, async {
            while telling.join_next().await.is_some() {}
        })
        .await;
        telling.detach_all();
        Ok(Raw::empty_object())
    }

    async fn outgoing(
        &self,
        server: &str,
        method: impl Into<Cow<'static, str>>,
        name: Arc<str>,
        params: impl Into<Params>,
    ) -> Result<Raw, Error> {
        let upstream = self.upstream(server)?;
        self.settle_project(&upstream).await;
        let (method, params) = (method.into(), params.into());
        let changes = match &*method {
            method::TOOLS_CALL => self.scope.changes_to(&upstream, &name),
            _ => Changes::default(),
        };
        let mut outgoing = UpstreamRequest {
            guest: &self.guest,
            backchannel: self.backchannel.as_ref(),
            view: self.view,
            method,
            name,
            params: Some(params.raw.clone()),
            changes,
            permitted: (Arc::clone(&self.scope), upstream.settings()),
            ask_signal: None,
            returns: false,
        };
        let items = outgoing.items();
        if items.iter().all(Option::is_none) {
            self.core.may_use(&self.scope, &upstream, None)?;
        }
        for (kind, name) in items.iter().flatten() {
            let selects = || {
                let has_overrides = !upstream.settings().overrides.is_empty();
                has_overrides || self.scope.selects_tools() || self.scope.is_confined_in(server)
            };
            let is_known = || params.naming == Naming::Listed || self.lists(server, name);
            if *kind == Kind::Tool && selects() && !is_known() {
                Box::pin(self.will_list(&upstream, name)).await?;
            }
            if *kind != Kind::Tool && !self.scope.permits(*kind, server, name) {
                return Err(unknown(self.guest.era(), kind.key_member(), name));
            }
            // The scope permits the tools that it lists, or else all tools of a server that it permits.
            self.core.is_shown(&upstream, Some((*kind, name)))?;
        }
        // After the checks above: an error about an argument would tell a hidden tool from a missing one.
        let params = params.finish(&outgoing.name, &outgoing.changes)?;
        outgoing.params = Some(params);
        let carrying = call::carry(self.core, self.caller, &upstream, outgoing);
        let result = carrying.await?;
        Ok(match self.view {
            View::All(_) => translate::as_own(result),
            View::Server(_) => result,
        })
    }
}

/// The parameters of a request to a server, as the client sent them.
struct Params {
    raw: Raw,
    naming: Naming,
}

/// The name of the item in the parameters of a request.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Naming {
    /// That of the server.
    Own,
    /// That under which the client knows it.
    Exposed,
    /// The same, and the tool has just been found in the catalog of the caller.
    Listed,
}

impl From<Raw> for Params {
    fn from(raw: Raw) -> Self {
        let naming = Naming::Own;
        Self { raw, naming }
    }
}

impl Params {
    /// The parameters as the server gets them: with its own name for the tool, and the arguments that changes fix.
    fn finish(self, name: &str, changes: &Changes) -> Result<Raw, Error> {
        let Self { raw, naming } = self;
        let fixing = changes.iter().filter(|it| !it.arguments.is_empty());
        let mut fixing = fixing.peekable();
        if fixing.peek().is_none() {
            return match naming {
                Naming::Own => Ok(raw),
                Naming::Exposed | Naming::Listed => renamed(&raw, "name", name),
            };
        }
        // One edit, because each searches the parameters.
        let edited = raw.with_members(["name", "arguments"], |[_, mut arguments]| {
            for changes in fixing {
                arguments = Some(overrides::complete(changes, arguments).map_err(Edit)?);
            }
            let arguments = arguments.unwrap_or_else(Raw::empty_object);
            Ok::<_, Edit>([Raw::string(name), arguments])
        });
        edited.map_err(|Edit(error)| error)
    }
}

/// The error of an edit of parameters.
struct Edit(Error);

impl From<RawError> for Edit {
    fn from(error: RawError) -> Self {
        Self(Error::invalid_params(error.to_string()))
    }
}

/// The arguments of a tool that are sent as headers, too; `None` if there are none.
pub fn param_headers(core: &Core, realm: Realm, view: &View, tool: &str) -> Option<ParamHeaders> {
    let catalog = core.scopes.of(realm).ok()?.catalog(&core.live_catalog);
    let tool = match view {
        View::All(_) => catalog.find(Kind::Tool, tool),
        View::Server(name) => catalog.server(name)?.find_shown(Kind::Tool, tool),
    };
    headers_of(tool?.definition())
}

/// The arguments that are sent as headers, by the tool's definition.
fn headers_of(tool: &Raw) -> Option<ParamHeaders> {
    static KEYWORD: Name = Name::new("x-mcp-header");
    if !tool.may_name(&KEYWORD) {
        return None;
    }
    ParamHeaders::from_schema(tool.member("inputSchema")?.as_str()).ok()
}

/// The server of a resource, and its URI there.
pub fn locate_resource(
    core: &Core,
    realm: Realm,
    view: &View,
    uri: &str,
) -> Result<(Arc<Upstream>, String), Error> {
    let scope = core.scopes.of(realm)?;
    let (upstream, own) = match view {
        View::Server(server) => (core.upstream_in(&scope, server)?, uri.to_owned()),
        View::All(_) => {
            let catalog = scope.catalog(&core.live_catalog);
            let target = catalog
                .resource(uri)
                .ok_or_else(|| unknown(Era::Legacy, "uri", uri))?;
            let upstream = core.upstream_in(&scope, target.server)?;
            (upstream, target.name.to_owned())
        }
    };
    let item = Some((Kind::Resource, own.as_str()));
    core.may_use(&scope, &upstream, item)?;
    Ok((upstream, own))
}

/// The whole catalog part of one server. Waits for a server that was never listed, up to the time limit
/// of a call.
async fn part(core: &Core, caller: &Caller, name: &str) -> Result<Arc<ServerPart>, Error> {
    part_within(core, Some(caller), name, Duration::MAX).await
}

/// The same, with an upper bound on the wait.
pub async fn part_within(
    core: &Core,
    caller: Option<&Caller>,
    name: &str,
    patience: Duration,
) -> Result<Arc<ServerPart>, Error> {
    let upstream = core.upstream_in(&Scope::default(), name)?;
    let until = Instant::now() + upstream.request_timeout().min(patience);
    upstream.offered(caller, until, None).await
}

fn required(params: Option<Raw>) -> Result<Raw, Error> {
    params
        .filter(Raw::is_object)
        .ok_or_else(|| Error::invalid_params("`params` must be an object"))
}

fn text(params: &Raw, member: &str) -> Result<String, Error> {
    params
        .member(member)
        .and_then(|name| name.to_text())
        .ok_or_else(|| Error::invalid_params(format!("`{member}` must be a string")))
}

/// The text of the first of these members. Rejects duplicates and names that differ only in letter
/// case, because a server might read the other member.
fn distinct_text(params: &Raw, names: &[&str]) -> Result<String, Error> {
    let member = params
        .distinct_member(names)
        .map_err(|error| Error::invalid_params(error.to_string()))?;
    let text = member.and_then(|text| text.to_text());
    text.ok_or_else(|| {
        let name = names.first().unwrap_or(&"");
        Error::invalid_params(format!("`{name}` must be a string"))
    })
}

fn renamed(params: &Raw, member: &str, name: &str) -> Result<Raw, Error> {
    params
        .with_member(member, &Raw::string(name))
        .map_err(|error| Error::invalid_params(error.to_string()))
}

fn bad_cursor() -> Error {
    Error::advised(BadCursor.to_string(), BadCursor::HINT)
}

fn bad_page(_: BadCursor) -> Error {
    bad_cursor()
}

/// The error for an unknown name.
fn unknown(era: Era, member: &str, name: &str) -> Error {
    if member == "uri" {
        return Error::Refused(translate::no_resource(era, name));
    }
    Error::invalid_params(format!("there is no prompt `{}`", cut(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(json: &'static str) -> Raw {
        Raw::parse(json).unwrap()
    }

    #[test]
    fn escaped_header_keyword_makes_headers() {
        let tool = raw(
            r#"{"inputSchema":{"type":"object","properties":{"a":{"type":"string","x-mcp-\u0068eader":"A"}}}}"#,
        );
        assert!(!headers_of(&tool).unwrap().is_empty());
    }
}
