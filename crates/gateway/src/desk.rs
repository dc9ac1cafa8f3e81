//! Where every request of a client is answered, whichever way it came in.
//!
//! A client sees one of two views: everything of every server under names of the gateway's making, or
//! one server with its names as they are.

use std::{sync::Arc, time::Instant};

use switchboard_catalog::{BadCursor, Catalogue, Kind, Page, ServerPart};
use switchboard_client::{ErrorObject, Raw, Revision};
use switchboard_wire::{Era, code, meta, method};

use crate::{
    builtin,
    call::{self, Caller, Errand, Progress},
    failure::{Failure, cut},
    gateway::Gateway,
    upstream::Upstream,
};

/// What a client sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum View {
    /// Every tool of every server as `server__tool`; prompts and resources alike.
    Direct,
    /// One server, names untouched.
    Server(Arc<str>),
}

/// A request, as the edges hand it in.
pub(crate) struct Inquiry {
    pub(crate) era: Era,
    pub(crate) method: String,
    pub(crate) params: Option<Raw>,
    /// Where progress goes, if the client asked for it.
    pub(crate) progress: Option<Progress>,
}

/// How long a client may keep a list before asking again (2026-07-28). It is told of changes only if
/// it listens, so not for long.
const LIST_TTL_MS: u64 = 5_000;

/// Answers one request, in the way of the client's era.
pub(crate) async fn answer(
    gateway: &Gateway,
    view: &View,
    caller: &Caller,
    inquiry: Inquiry,
) -> Result<Raw, ErrorObject> {
    let era = inquiry.era;
    let is_call = inquiry.method == method::TOOLS_CALL;
    let result = match serve(gateway, view, caller, inquiry).await {
        Ok(result) => Ok(result),
        Err(failure) if is_call && era == Era::Modern => failure.into_tool_result(),
        Err(failure) => Err(failure.into_error(era)),
    };
    match era {
        Era::Legacy => result,
        Era::Modern => result.map(modern),
    }
}

/// Answers one request, or says what became of it.
pub(crate) async fn serve(
    gateway: &Gateway,
    view: &View,
    caller: &Caller,
    inquiry: Inquiry,
) -> Result<Raw, Failure> {
    let Inquiry {
        era,
        method,
        params,
        progress,
    } = inquiry;
    let room = Room {
        gateway,
        view,
        caller,
        era,
    };
    match &*method {
        method::TOOLS_CALL => room.call_tool(params, progress).await,
        // All but calls are boxed, so that a call need not carry room for them.
        method::TOOLS_LIST => Box::pin(room.list(Kind::Tool, params.as_ref())).await,
        method::PROMPTS_LIST => Box::pin(room.list(Kind::Prompt, params.as_ref())).await,
        method::RESOURCES_LIST => Box::pin(room.list(Kind::Resource, params.as_ref())).await,
        method::RESOURCE_TEMPLATES_LIST => {
            Box::pin(room.list(Kind::Template, params.as_ref())).await
        }
        method::PROMPTS_GET => Box::pin(room.get_prompt(params, progress)).await,
        method::RESOURCES_READ => {
            let read = Box::pin(room.read_resource(params, progress)).await?;
            Ok(match era {
                Era::Legacy => read,
                Era::Modern => with_cache_hints(read),
            })
        }
        method::COMPLETE => Box::pin(room.complete(params)).await,
        method::DISCOVER => room.discover(),
        method::PING if era == Era::Legacy => Ok(Raw::empty_object()),
        // The gateway sends no log messages of its own, so that every level is honoured.
        method::SET_LEVEL if era == Era::Legacy => Ok(Raw::empty_object()),
        other => Err(Failure::method_not_found(other)),
    }
}

/// One request in its view.
struct Room<'a> {
    gateway: &'a Gateway,
    view: &'a View,
    caller: &'a Caller,
    era: Era,
}

impl Room<'_> {
    async fn list(&self, kind: Kind, params: Option<&Raw>) -> Result<Raw, Failure> {
        let cursor = params
            .and_then(|params| params.member("cursor"))
            .filter(|cursor| cursor.as_bytes() != b"null");
        let cursor = match &cursor {
            None => None,
            Some(cursor) => Some(cursor.to_text().ok_or_else(bad_cursor)?),
        };
        let cursor = cursor.as_deref();
        match self.view {
            View::Direct => {
                let catalogue = self.gateway.context().shelf.catalogue();
                Ok(self.encode(catalogue.page(kind, cursor).map_err(bad_page)?))
            }
            View::Server(name) => {
                let part = part(self.gateway, name).await?;
                Ok(self.encode(part.page(kind, cursor).map_err(bad_page)?))
            }
        }
    }

    fn encode(&self, page: Page<'_>) -> Raw {
        match self.era {
            Era::Legacy => page.encoded(&[]),
            Era::Modern => page.encoded(&[
                ("ttlMs", Raw::number(LIST_TTL_MS)),
                ("cacheScope", Raw::string("private")),
            ]),
        }
    }

    fn upstream(&self, name: &str) -> Result<Arc<Upstream>, Failure> {
        upstream(self.gateway, name)
    }

    async fn call_tool(
        &self,
        params: Option<Raw>,
        progress: Option<Progress>,
    ) -> Result<Raw, Failure> {
        let params = required(params)?;
        let exposed = text(&params, "name")?;
        match self.view {
            View::Direct => {
                let (server, name) = match self.find_tool(&exposed) {
                    Ok(found) => found,
                    Err(unknown) => {
                        Box::pin(self.learn_of(&exposed, unknown)).await?;
                        self.find_tool(&exposed)?
                    }
                };
                if &*server == builtin::SERVER {
                    return self.own_tool(&name);
                }
                let params = renamed(&params, "name", &name)?;
                let result = self
                    .errand(&server, method::TOOLS_CALL, name, params, progress)
                    .await?;
                Ok(switchboard_catalog::expose_content(&server, &result))
            }
            View::Server(server) => {
                let upstream = self.upstream(server)?;
                if !upstream.settings().tools.permits(&exposed) {
                    let message = format!("there is no tool '{}'", cut(&exposed));
                    return Err(Failure::invalid_params(message));
                }
                let name = exposed.as_str().into();
                self.errand(server, method::TOOLS_CALL, name, params, progress)
                    .await
            }
        }
    }

    /// Whose tool it is, and what that server calls it.
    fn find_tool(&self, exposed: &str) -> Result<(Arc<str>, Arc<str>), Failure> {
        let catalogue = self.gateway.context().shelf.catalogue();
        let target = catalogue
            .tool(exposed)
            .ok_or_else(|| unknown_tool(&catalogue, exposed))?;
        Ok((Arc::clone(target.server), target.name.into()))
    }

    /// A tool that nobody knows may be one of a server that has not been seen yet, which is waited for.
    async fn learn_of(&self, exposed: &str, unknown: Failure) -> Result<(), Failure> {
        let server = exposed
            .split_once("__")
            .map(|(server, _)| Arc::from(server));
        let server: Arc<str> = server
            .filter(|server: &Arc<str>| self.gateway.upstream(server).is_some())
            .ok_or_else(|| unknown.clone())?;
        if self
            .gateway
            .context()
            .shelf
            .catalogue()
            .server(&server)
            .is_some()
        {
            return Err(unknown);
        }
        part(self.gateway, &server).await.map(drop)
    }

    fn own_tool(&self, name: &str) -> Result<Raw, Failure> {
        if name != builtin::GET_STATUS {
            return Err(Failure::invalid_params("there is no such tool"));
        }
        let status = self.gateway.status();
        let raw = Raw::from_value(&status).unwrap_or_else(|_| Raw::empty_object());
        let text = Raw::object([
            ("type", Raw::string("text")),
            ("text", Raw::string(raw.as_str())),
        ]);
        Ok(Raw::object([
            ("content", crate::failure::array([text])),
            ("structuredContent", raw),
        ]))
    }

    async fn get_prompt(
        &self,
        params: Option<Raw>,
        progress: Option<Progress>,
    ) -> Result<Raw, Failure> {
        let params = required(params)?;
        let exposed = text(&params, "name")?;
        match self.view {
            View::Direct => {
                let (server, name) = {
                    let catalogue = self.gateway.context().shelf.catalogue();
                    let target = catalogue.prompt(&exposed).ok_or_else(|| {
                        let message = format!("there is no prompt '{}'", cut(&exposed));
                        Failure::invalid_params(message)
                    })?;
                    (Arc::clone(target.server), Arc::<str>::from(target.name))
                };
                let params = renamed(&params, "name", &name)?;
                let result = self
                    .errand(&server, method::PROMPTS_GET, name, params, progress)
                    .await?;
                Ok(switchboard_catalog::expose_content(&server, &result))
            }
            View::Server(server) => {
                let name = exposed.as_str().into();
                self.errand(server, method::PROMPTS_GET, name, params, progress)
                    .await
            }
        }
    }

    async fn read_resource(
        &self,
        params: Option<Raw>,
        progress: Option<Progress>,
    ) -> Result<Raw, Failure> {
        let params = required(params)?;
        let exposed = text(&params, "uri")?;
        match self.view {
            View::Direct => {
                let (server, uri) = {
                    let catalogue = self.gateway.context().shelf.catalogue();
                    let target = catalogue
                        .resource(&exposed)
                        .ok_or_else(|| unknown_resource(self.era, &exposed))?;
                    (Arc::clone(target.server), Arc::<str>::from(target.name))
                };
                let params = renamed(&params, "uri", &uri)?;
                let result = self
                    .errand(&server, method::RESOURCES_READ, uri, params, progress)
                    .await?;
                Ok(switchboard_catalog::expose_read_result(&server, &result))
            }
            View::Server(server) => {
                let uri = exposed.as_str().into();
                self.errand(server, method::RESOURCES_READ, uri, params, progress)
                    .await
            }
        }
    }

    async fn complete(&self, params: Option<Raw>) -> Result<Raw, Failure> {
        let params = required(params)?;
        let View::Server(server) = self.view else {
            return self.complete_direct(params).await;
        };
        let name = "".into();
        self.errand(server, method::COMPLETE, name, params, None)
            .await
    }

    async fn complete_direct(&self, params: Raw) -> Result<Raw, Failure> {
        let of = params
            .member("ref")
            .ok_or_else(|| Failure::invalid_params("`ref` is missing"))?;
        let member = match of.member("type").and_then(|kind| kind.to_text()).as_deref() {
            Some("ref/prompt") => "name",
            Some("ref/resource") => "uri",
            _ => {
                let message = "`ref.type` has to be \"ref/prompt\" or \"ref/resource\"";
                return Err(Failure::invalid_params(message));
            }
        };
        let exposed = text(&of, member)?;
        let (server, name) = {
            let catalogue = self.gateway.context().shelf.catalogue();
            let target = match member {
                "name" => catalogue.prompt(&exposed),
                _ => catalogue.template(&exposed),
            };
            let target = target.ok_or_else(|| {
                Failure::invalid_params(format!("there is nothing called '{}'", cut(&exposed)))
            })?;
            (Arc::clone(target.server), Arc::<str>::from(target.name))
        };
        let of = renamed(&of, member, &name)?;
        let params = params
            .with_member("ref", &of)
            .map_err(|error| Failure::invalid_params(error.to_string()))?;
        self.errand(&server, method::COMPLETE, name, params, None)
            .await
    }

    async fn errand(
        &self,
        server: &str,
        method: &'static str,
        name: Arc<str>,
        params: Raw,
        progress: Option<Progress>,
    ) -> Result<Raw, Failure> {
        let upstream = self.upstream(server)?;
        let errand = Errand {
            method,
            name,
            params: Some(params),
            progress,
        };
        call::carry(self.gateway.context(), self.caller, &upstream, errand).await
    }

    fn discover(&self) -> Result<Raw, Failure> {
        if self.era == Era::Legacy {
            return Err(Failure::method_not_found(method::DISCOVER));
        }
        let introduction = introduce(self.gateway, self.view, Era::Modern)?;
        let versions = Revision::ALL.map(|revision| Raw::string(revision.as_str()));
        let mut members = vec![
            ("supportedVersions", crate::failure::array(versions)),
            ("capabilities", introduction.capabilities),
            ("ttlMs", Raw::number(LIST_TTL_MS)),
            ("cacheScope", Raw::string("private")),
        ];
        members.extend(introduction.instructions.map(|text| ("instructions", text)));
        Ok(Raw::object(members))
    }
}

/// What one server offers. One that has never been seen is waited for, bounded: a list that is
/// empty only because nobody has looked would mislead.
pub(crate) async fn part(gateway: &Gateway, name: &str) -> Result<Arc<ServerPart>, Failure> {
    let context = gateway.context();
    let upstream = upstream(gateway, name)?;
    let until = Instant::now() + context.wait();
    let mut changes = context.shelf.changes();
    loop {
        changes.borrow_and_update();
        if let Some(part) = context.shelf.catalogue().server(name) {
            return Ok(Arc::clone(part));
        }
        upstream.ready(until, None).await?;
        let changed = tokio::time::timeout_at(until.into(), changes.changed()).await;
        if changed.is_err() {
            return Err(upstream.initializing());
        }
    }
}

fn upstream(gateway: &Gateway, name: &str) -> Result<Arc<Upstream>, Failure> {
    gateway
        .upstream(name)
        .ok_or_else(|| Failure::invalid_params(format!("there is no server '{}'", cut(name))))
}

/// What a view says of itself in a handshake.
pub(crate) struct Introduction {
    pub(crate) capabilities: Raw,
    pub(crate) server_info: Raw,
    pub(crate) instructions: Option<Raw>,
}

/// Says it at once, from what is known.
pub(crate) fn introduce(gateway: &Gateway, view: &View, era: Era) -> Result<Introduction, Failure> {
    let part = match view {
        View::Direct => None,
        View::Server(name) => {
            if gateway.upstream(name).is_none() {
                let message = format!("there is no server '{}'", cut(name));
                return Err(Failure::invalid_params(message));
            }
            gateway.context().shelf.catalogue().server(name).cloned()
        }
    };
    let offers = part.as_ref().map(|part| part.offers());
    // A client of 2026-07-28 would have to listen for changes, which is not served.
    let listing = || match era {
        Era::Legacy => Raw::object([("listChanged", Raw::from(true))]),
        Era::Modern => Raw::empty_object(),
    };
    let known = offers.and_then(|offers| offers.capabilities.as_ref());
    let has = |what: &str| known.is_none_or(|known| known.member(what).is_some());
    let mut capabilities = Vec::new();
    for what in ["tools", "prompts", "resources"] {
        if has(what) {
            capabilities.push((what, listing()));
        }
    }
    for what in ["completions", "logging"] {
        if has(what) {
            capabilities.push((what, Raw::empty_object()));
        }
    }
    Ok(Introduction {
        capabilities: Raw::object(capabilities),
        server_info: offers
            .and_then(|offers| offers.server_info.clone())
            .unwrap_or_else(own_info),
        instructions: offers
            .and_then(|offers| offers.instructions.as_deref())
            .map(Raw::string),
    })
}

/// The answer to `initialize`.
pub(crate) fn initialize(
    gateway: &Gateway,
    view: &View,
    revision: Revision,
) -> Result<Raw, ErrorObject> {
    let introduction =
        introduce(gateway, view, Era::Legacy).map_err(|failure| failure.into_error(Era::Legacy))?;
    let mut members = vec![
        ("protocolVersion", Raw::string(revision.as_str())),
        ("capabilities", introduction.capabilities),
        ("serverInfo", introduction.server_info),
    ];
    members.extend(introduction.instructions.map(|text| ("instructions", text)));
    Ok(Raw::object(members))
}

/// The revision to answer `initialize` with: the one that was asked for, if it opens that way.
pub(crate) fn negotiate(params: Option<&Raw>) -> Revision {
    params
        .and_then(|params| params.member("protocolVersion"))
        .and_then(|asked| Revision::parse(&asked.to_text()?))
        .filter(|revision| revision.era() == Era::Legacy)
        .unwrap_or(Revision::LATEST_LEGACY)
}

/// What a client calls itself, from the parameters of `initialize` or from `_meta`.
pub(crate) fn client_name(info: Option<Raw>) -> Arc<str> {
    let name = info
        .and_then(|info| info.member("name"))
        .and_then(|name| name.to_text());
    match name {
        Some(name) if !name.is_empty() => cut(&name).into(),
        _ => "unknown".into(),
    }
}

/// What 2026-07-28 wants to know of a result that could be kept, if its server does not say: that it is
/// not to be.
fn with_cache_hints(result: Raw) -> Raw {
    let hints = [
        ("ttlMs", Raw::number(0)),
        ("cacheScope", Raw::string("private")),
    ];
    hints.into_iter().fold(result, |result, (name, value)| {
        if result.member(name).is_some() {
            return result;
        }
        result.with_member(name, &value).unwrap_or(result)
    })
}

/// Stamps a result with what 2026-07-28 wants on every one.
fn modern(result: Raw) -> Raw {
    let result = match result.member("resultType") {
        Some(_) => Ok(result),
        None => result.with_member("resultType", &Raw::string("complete")),
    };
    let stamped = result.and_then(|result| {
        let own = result.member(meta::META).filter(Raw::is_object);
        if own.is_some_and(|own| own.member(meta::SERVER_INFO).is_some()) {
            return Ok(result);
        }
        meta::stamp(Some(&result), &[(meta::SERVER_INFO, own_info())])
    });
    // Only what is no object cannot be stamped, and no result of a known method is that.
    stamped.unwrap_or_else(|_| Raw::empty_object())
}

fn own_info() -> Raw {
    Raw::object([
        ("name", Raw::string("switchboard")),
        ("title", Raw::string("Switchboard")),
        ("version", Raw::string(env!("CARGO_PKG_VERSION"))),
    ])
}

fn required(params: Option<Raw>) -> Result<Raw, Failure> {
    params
        .filter(Raw::is_object)
        .ok_or_else(|| Failure::invalid_params("`params` has to be an object"))
}

fn text(params: &Raw, member: &str) -> Result<String, Failure> {
    params
        .member(member)
        .and_then(|name| name.to_text())
        .ok_or_else(|| Failure::invalid_params(format!("`{member}` has to be a string")))
}

fn renamed(params: &Raw, member: &str, name: &str) -> Result<Raw, Failure> {
    params
        .with_member(member, &Raw::string(name))
        .map_err(|error| Failure::invalid_params(error.to_string()))
}

fn bad_cursor() -> Failure {
    Failure::invalid_params("the cursor is none of this list; ask for its first page without one")
}

fn bad_page(_: BadCursor) -> Failure {
    bad_cursor()
}

fn unknown_tool(catalogue: &Catalogue, exposed: &str) -> Failure {
    let mut message = format!("there is no tool '{}'", cut(exposed));
    if let Some(near) = catalogue.suggest_tool(exposed) {
        message = format!("{message}; did you mean '{near}'?");
    }
    Failure::invalid_params(message)
}

fn unknown_resource(era: Era, uri: &str) -> Failure {
    let code = match era {
        Era::Legacy => code::RESOURCE_NOT_FOUND,
        Era::Modern => code::INVALID_PARAMS,
    };
    let message = format!("there is no resource '{}'", cut(uri));
    let data = Raw::object([("uri", Raw::string(uri))]);
    Failure::Refused(ErrorObject::new(code, message).with_data(data))
}
