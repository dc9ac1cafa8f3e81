//! The search view: a few tools with which an agent finds and calls all others.
//!
//! No tool of this menu approves, adds or changes anything of the gateway. They find, describe,
//! call and read.

use std::sync::{Arc, LazyLock};

use serde::Deserialize;
use switchboard_base::{
    apps::is_for_apps_alone,
    caller::{Caller, Principal},
    error::{Error, cut},
    view::{Face, View},
};
use switchboard_catalog::{Catalog, Item, Kind, Offers, Presented, ServerPart};
use switchboard_client::Raw;
use switchboard_config::Config;
use switchboard_outbound::{builtin, memory, upstream::Upstream};
use switchboard_results::Structured;
use switchboard_schema::{Checker, Fit, ValidationErrors, shape};
use switchboard_search::Found;
use switchboard_wire::method;

use super::{Dispatch, lookup::own_name_of, text};
use crate::{
    core::Core,
    finder::{LANGUAGE, ToolQuery},
    scope::Scope,
    tool_result::{self, Detail},
    translate,
};

pub(crate) const RETRIEVE: &str = "retrieve_tools";
const DESCRIBE: &str = "describe_tool";
const CALL: &str = "call_tool";

/// The menu. Every agent reads these texts in every conversation, so they are short.
const MENU: [&str; 3] = [
    r#"{"name":"retrieve_tools","title":"Find tools","description":"Finds tools among all servers behind this gateway. Describe in plain words what you want to do: name the object and the action. The result lists tools as \"server:tool\", best first, with their parameters (`?` marks optional ones). Then use call_tool.","inputSchema":{"type":"object","properties":{"query":{"type":"string","description":"What you want to do, e.g. \"create an issue in a GitHub repository\""},"limit":{"type":"integer","minimum":1,"maximum":50,"description":"Number of tools to list (default: 5)"},"server":{"type":"string","description":"Only tools of this server"},"read_only":{"type":"boolean","description":"Only tools that declare that they change nothing"},"detail":{"type":"string","enum":["compact","full"],"description":"\"full\" lists complete definitions with their schemas"}},"required":["query"],"additionalProperties":false},"annotations":{"readOnlyHint":true,"openWorldHint":false}}"#,
    r#"{"name":"describe_tool","title":"Describe a tool","description":"Returns the complete definition of one tool: description, input schema, output schema, annotations.","inputSchema":{"type":"object","properties":{"name":{"type":"string","description":"\"server:tool\", as retrieve_tools lists it"}},"required":["name"],"additionalProperties":false},"annotations":{"readOnlyHint":true,"openWorldHint":false}}"#,
    r#"{"name":"call_tool","title":"Call a tool","description":"Calls a tool that retrieve_tools has found and returns its result. The gateway first checks the arguments against the tool's schema; an error says what is wrong and shows the expected shape. A result that is too long is truncated, and says how to read the rest with read_result.","inputSchema":{"type":"object","properties":{"name":{"type":"string","description":"\"server:tool\", as retrieve_tools lists it"},"arguments":{"type":"object","description":"The arguments of the tool"},"max_bytes":{"type":"integer","minimum":1024,"description":"Truncate the result to about this many bytes"}},"required":["name"],"additionalProperties":false},"annotations":{"destructiveHint":true,"openWorldHint":true}}"#,
];

static PART: LazyLock<ServerPart> = LazyLock::new(|| {
    let tools = MENU.into_iter().chain(builtin::TOOLS);
    let offers = Offers {
        tools: tools.filter_map(|tool| Raw::parse(tool).ok()).collect(),
        ..Offers::default()
    };
    ServerPart::prepare(builtin::SERVER, Arc::new(offers), &|_, _, _| {
        Presented::Unchanged
    })
});

/// The instructions of the menu, which an agent receives when it connects.
pub(crate) const INSTRUCTIONS: &str = "This gateway gives access to the tools of many servers through a small menu. Find tools with retrieve_tools, then call them with call_tool.";

/// The definitions of the tools of the menu.
pub fn definitions() -> &'static [Raw] {
    &PART.offers().tools
}

/// The tools of the menu.
pub(super) fn part() -> &'static ServerPart {
    &PART
}

/// The tools that a client is shown, and the reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choice {
    /// It is shown the menu rather than every tool.
    pub is_menu: bool,
    /// The reason, as a clause.
    pub why: &'static str,
}

impl Choice {
    /// The view that it is, in the words of the configuration.
    pub const fn shows(self) -> &'static str {
        if self.is_menu { "search" } else { "direct" }
    }
}

/// Decides if a client of this view is shown the menu rather than every tool. Under `auto` it is,
/// once all tools together are more than an agent should carry in its context, unless the client
/// searches the list itself.
pub fn choose(core: &Core, scope: &Scope, view: &View, caller: &Caller) -> Choice {
    let choice = |is_menu, why| Choice { is_menu, why };
    let face = match view {
        View::Server(_) => return choice(false, "its address names one server"),
        View::All(face) => face,
    };
    match face {
        Face::Direct => return choice(false, "its address names this view"),
        Face::Search => return choice(true, "its address names this view"),
        Face::Configured => {}
    }
    let config = core.config.load();
    let (set, why) = if let Some(view) = scope.view() {
        (view, "its profile sets this view")
    } else if let Some(view) = config.client_view(&caller.client) {
        (view, "`clients` in the configuration sets this view for it")
    } else {
        (config.view, "`view` in the configuration sets this view")
    };
    match set {
        switchboard_config::View::Direct => choice(false, why),
        switchboard_config::View::Search => choice(true, why),
        switchboard_config::View::Auto => {
            let is_large = is_large(&config, &scope.catalog(&core.live_catalog));
            match (is_large, caller.searches_tools) {
                (false, _) => choice(false, "the list of tools is short"),
                (true, true) => choice(false, "it searches the list of tools itself"),
                (true, false) => choice(true, "the list of tools is long"),
            }
        }
    }
}

/// Up to here every tool is shown under `auto`. A menu costs fewer tokens than the list from about
/// nine tools (8 to 15 KB) on, if five tools are used (`cargo xtask bench tokens`). If ten are
/// used, it does from about 24 KB on, and each search is a turn of the model that a list saves.
const FEW_TOOLS: usize = 40;
const FEW_BYTES: usize = 24 * 1024;

/// Tests if servers have many tools together. The gateway's own and the memory do not count, so that a user who
/// adds a first server sees its tools.
fn is_large(config: &Config, catalog: &Catalog) -> bool {
    let memory = memory::among(config);
    let others = catalog.servers();
    let is_own = |name: &str| name == builtin::SERVER || memory == Some(name);
    let others = others.filter(|part| !is_own(part.name()));
    let (tools, bytes) = others.fold((0, 0), |(tools, bytes), part| {
        (tools + part.count(Kind::Tool), bytes + part.tools_bytes())
    });
    tools > FEW_TOOLS || bytes > FEW_BYTES
}

/// The number of tools to list by default, and at most.
const LIMIT: usize = 5;
const LIMIT_MAX: usize = 50;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Retrieve {
    query: String,
    #[serde(default)]
    limit: Option<u64>,
    #[serde(default)]
    server: Option<String>,
    #[serde(default)]
    read_only: Option<bool>,
    #[serde(default)]
    detail: Option<Detail>,
}

impl Dispatch<'_> {
    /// The tools that the client is shown.
    pub(super) fn choice(&self) -> Choice {
        choose(self.core, &self.scope, self.view, self.caller)
    }

    /// Calls a tool of the menu; `None` if it has no tool with this name.
    pub(super) async fn call_menu(&self, name: &str, params: &Raw) -> Option<Result<Raw, Error>> {
        let result = match name {
            RETRIEVE => self.retrieve(params).await,
            DESCRIBE => self.describe(params),
            CALL => return Some(Box::pin(self.call_found(params)).await),
            builtin::READ_RESULT => self.read_result(params).await,
            builtin::GET_STATUS => Ok(self.get_status()),
            _ => return None,
        };
        Some(result.map(|result| translate::own_result(self.guest.era(), result)))
    }

    async fn retrieve(&self, params: &Raw) -> Result<Raw, Error> {
        let arguments = own_arguments(params);
        if let Some(wrong) = check(MENU_CHECKS[0].as_ref(), RETRIEVE, &arguments) {
            return Ok(wrong);
        }
        let Ok(asked) = arguments.read_owned::<Retrieve>() else {
            return Ok(tool_result::error(
                "`query` must be a string that says what you want to do",
            ));
        };
        if asked.query.trim().is_empty() {
            return Ok(tool_result::error(
                "`query` is empty: say what you want to do",
            ));
        }
        let limit = asked.limit.and_then(|limit| usize::try_from(limit).ok());
        let limit = limit.unwrap_or(LIMIT).clamp(1, LIMIT_MAX);
        let core = self.core;
        if let Some(server) = &asked.server
            && self.upstream(server).is_err()
        {
            return Ok(self.no_server(server));
        }
        if let Some(server) = &asked.server
            && let Err(unapproved) = core.live_catalog.permits(server, None)
        {
            return Ok(tool_result::failed(unapproved));
        }
        let wish = ToolQuery {
            text: asked.query.clone(),
            limit,
            server: asked.server,
            read_only: asked.read_only.unwrap_or_default(),
            within: (!self.scope.is_everything()).then(|| Arc::clone(&self.catalog())),
            ..ToolQuery::default()
        };
        let found: Found = core.finder.find(wish).await?;
        if core.config.load().search.learn {
            let feedback = &core.finder.feedback;
            feedback.asked(self.caller.person, &asked.query, &found.hits);
        }
        let catalog = Arc::clone(&self.catalog());
        let detail = asked.detail.unwrap_or_default();
        // Schemas may be long, and there may be fifty of them.
        let writing = move || tool_result::found(&catalog, &found, limit, detail);
        let written = tokio::task::spawn_blocking(writing).await;
        written.map_err(|_| Error::SearchClosed)
    }

    fn describe(&self, params: &Raw) -> Result<Raw, Error> {
        let arguments = own_arguments(params);
        if let Some(wrong) = check(MENU_CHECKS[1].as_ref(), DESCRIBE, &arguments) {
            return Ok(wrong);
        }
        let name = text(&arguments, "name")?;
        let catalog = self.catalog();
        if let Some(tool) = for_models(&catalog, &name) {
            return Ok(tool_result::described(&catalog, &tool));
        }
        let named = self.split(&name);
        let held = named.and_then(|(upstream, tool)| {
            let own = own_name_of(&upstream, tool)?;
            self.held(&upstream, &own)
        });
        Ok(held.map_or_else(|| no_tool(&catalog, &name), tool_result::failed))
    }

    /// Calls the tool that the arguments name, and forwards its result.
    async fn call_found(&self, params: &Raw) -> Result<Raw, Error> {
        let outer = own_arguments(params);
        if let Some(wrong) = check(MENU_CHECKS[2].as_ref(), CALL, &outer) {
            return Ok(translate::own_result(self.guest.era(), wrong));
        }
        let called = text(&outer, "name")?;
        let arguments = outer.member("arguments").unwrap_or_else(Raw::empty_object);
        let Named {
            server,
            tool,
            shown_name,
        } = match self.find_named(&called).await {
            Ok(found) => found,
            Err(wrong) => return Ok(translate::own_result(self.guest.era(), wrong)),
        };
        if *server == *builtin::SERVER {
            let inner = params
                .with_member("arguments", &arguments)
                .map_err(|error| Error::invalid_params(error.to_string()))?;
            return self.own_tool(&tool, &inner).await;
        }
        // Rules judge, and people see, exactly the arguments that are sent.
        let fit = match self.fit_arguments(&server, &shown_name, arguments).await {
            Ok(fit) => fit,
            Err(wrong) => return Ok(translate::own_result(self.guest.era(), wrong)),
        };
        let inner = params
            .with_member("name", &Raw::string(&tool))
            .and_then(|params| params.with_member("arguments", &fit.arguments))
            .map_err(|error| Error::invalid_params(error.to_string()))?;
        let question = {
            let feedback = &self.core.finder.feedback;
            feedback.question(self.caller.person, &server, &shown_name)
        };
        let result = self
            .outgoing(&server, method::TOOLS_CALL, Arc::clone(&tool), inner)
            .await?;
        // All callers find tools by what was learned, so only the owner's clients teach.
        let is_owners = self.caller.realm.principal == Principal::Owner;
        if let Some(question) = question.filter(|_| is_owners && went_well(&result)) {
            self.teach(question, &server, &shown_name);
        }
        let own_limit = outer
            .member("max_bytes")
            .and_then(|most| most.read_owned().ok());
        let result = self.deliver(&server, result, own_limit, Structured::MayGo);
        Ok(tool_result::noted(result.await?, &remarks(&fit)))
    }

    /// Records that a call after a search succeeded.
    fn teach(&self, question: Arc<str>, server: &Arc<str>, tool: &Arc<str>) {
        let core = Arc::clone(self.core);
        let (server, tool) = (Arc::clone(server), Arc::clone(tool));
        tokio::task::spawn_blocking(move || {
            let feedback = &core.finder.feedback;
            feedback.learn(&LANGUAGE, &question, &server, &tool);
        });
    }

    /// Resolves the name of a tool. Waits, for a bounded time, for a server that was never listed.
    async fn find_named(&self, name: &str) -> Result<Named, Raw> {
        let known = for_models(&self.catalog(), name).map(Named::from);
        if let Some(known) = known {
            return Ok(known);
        }
        if let Some((upstream, tool)) = self.split(name)
            && let Err(failure) = self.seek(&upstream, tool).await
        {
            return Err(tool_result::failed(failure));
        }
        let catalog = self.catalog();
        match for_models(&catalog, name) {
            Some(tool) => Ok(tool.into()),
            None => Err(no_tool(&catalog, name)),
        }
    }

    /// Adapts arguments to the schema that the tool is shown with; the error says what is wrong with them. If the
    /// schema cannot be used, the server decides.
    async fn fit_arguments(&self, server: &str, tool: &str, arguments: Raw) -> Result<Fit, Raw> {
        let schema = {
            let catalog = self.catalog();
            let part = catalog.server(server);
            let tool = part.and_then(|part| part.find_shown(Kind::Tool, tool));
            tool.and_then(|tool| tool.definition().member("inputSchema"))
        };
        let as_it_is = |arguments: &Raw| Fit {
            arguments: arguments.clone(),
            notes: Vec::new(),
            doubts: None,
        };
        let Some(schema) = schema else {
            return Ok(as_it_is(&arguments));
        };
        let is_quick = schema.as_bytes().len() + arguments.as_bytes().len() <= QUICK_BYTES;
        if is_quick && Checker::compile(&schema).is_ok_and(|it| it.allows(&arguments)) {
            return Ok(as_it_is(&arguments));
        }
        let (name, sent) = (format!("{server}:{tool}"), as_it_is(&arguments));
        let fitting = tokio::task::spawn_blocking(move || match Checker::compile(&schema) {
            Ok(checker) => checker
                .fit(&arguments)
                .map_err(|wrong| misfit(&name, &schema, &wrong)),
            Err(_) => Ok(as_it_is(&arguments)),
        });
        // An error means that the runtime shuts down.
        fitting.await.unwrap_or(Ok(sent))
    }

    /// Splits the name of a tool into its server, if the caller sees it, and its own name.
    fn split<'a>(&self, name: &'a str) -> Option<(Arc<Upstream>, &'a str)> {
        let (server, tool) = split(name, |server| self.upstream(server).is_ok())?;
        Some((self.upstream(server).ok()?, tool))
    }

    fn no_server(&self, name: &str) -> Raw {
        let servers = self.core.upstreams();
        let names = servers.keys().map(String::as_str);
        let names = names.filter(|name| self.scope.permits_server(name));
        let names: Vec<&str> = names.take(50).collect();
        tool_result::error(&format!(
            "There is no server `{}`. The servers are: {}.",
            cut(name),
            names.join(", ")
        ))
    }
}

/// A tool that was called by name.
struct Named {
    server: Arc<str>,
    /// The server's own name for it.
    tool: Arc<str>,
    /// Its name in the server's view.
    shown_name: Arc<str>,
}

impl From<Item<'_>> for Named {
    fn from(tool: Item<'_>) -> Self {
        Self {
            server: Arc::clone(tool.server()),
            tool: tool.name().into(),
            shown_name: tool.shown_name().into(),
        }
    }
}

/// Longer schemas and arguments are checked on a blocking thread, so that other tasks do not wait.
const QUICK_BYTES: usize = 16 * 1024;

/// The error for arguments that do not fit the tool.
fn misfit(name: &str, schema: &Raw, wrong: &ValidationErrors) -> Raw {
    let shape = shape(schema, SHAPE_BYTES);
    let text = format!(
        "The arguments of {name} are invalid, so it was not called.\n{wrong}\nThe expected shape of `arguments`:\n{}",
        shape.text
    );
    tool_result::error(&text)
}

/// Remarks for the agent about its arguments: replaced values, and members that the server may not
/// know.
fn remarks(fit: &Fit) -> Vec<String> {
    let replaced = (!fit.notes.is_empty()).then(|| fit.notes.join("; "));
    let doubts = fit.doubts.as_ref().map(ToString::to_string);
    replaced.into_iter().chain(doubts).collect()
}

/// The most bytes of an error for the expected shape of the arguments.
const SHAPE_BYTES: usize = 1_500;

static MENU_CHECKS: LazyLock<[Option<(Raw, Checker)>; 3]> = LazyLock::new(|| {
    MENU.map(|tool| {
        let schema = Raw::parse(tool).ok()?.member("inputSchema")?;
        let checker = Checker::compile(&schema).ok()?;
        Some((schema, checker))
    })
});

/// Checks the arguments of a tool of the menu. Returns the error, if there is one.
fn check(with: Option<&(Raw, Checker)>, tool: &str, arguments: &Raw) -> Option<Raw> {
    let (schema, checker) = with?;
    let wrong = checker.check(arguments).err()?;
    let shape = shape(schema, SHAPE_BYTES);
    Some(tool_result::error(&format!(
        "The arguments of {tool} are invalid.\n{wrong}\nThe expected shape:\n{}",
        shape.text
    )))
}

fn no_tool(catalog: &Catalog, name: &str) -> Raw {
    let near = catalog
        .suggest_tool(name)
        .and_then(|exposed| for_models(catalog, exposed))
        .map(|tool| format!("did you mean `{}:{}`? ", tool.server(), tool.shown_name()));
    tool_result::error(&format!(
        "There is no tool `{}`; {}retrieve_tools finds tools by what they do.",
        cut(name),
        near.unwrap_or_default()
    ))
}

fn own_arguments(params: &Raw) -> Raw {
    let arguments = params.member("arguments");
    arguments
        .filter(Raw::is_object)
        .unwrap_or_else(Raw::empty_object)
}

fn went_well(result: &Raw) -> bool {
    let failed = result.member("isError");
    failed.is_none_or(|failed| failed.as_bytes() == b"false")
}

/// The longest name that is looked up.
pub const NAME_BYTES: usize = 2_048;

/// The tool with this name, as `server:tool` or as it is exposed. Both parts may contain colons.
pub fn look_up<'a>(catalog: &'a Catalog, name: &str) -> Option<Item<'a>> {
    if name.len() > NAME_BYTES {
        return None;
    }
    let as_pair = name.match_indices(':').find_map(|(at, _)| {
        let part = catalog.server(&name[..at])?;
        part.find_shown(Kind::Tool, &name[at + 1..])
    });
    as_pair.or_else(|| catalog.find(Kind::Tool, name))
}

/// The same, without tools that are for apps alone.
fn for_models<'a>(catalog: &'a Catalog, name: &str) -> Option<Item<'a>> {
    look_up(catalog, name).filter(|tool| !is_for_apps_alone(tool.raw()))
}

/// Splits the name of a tool, in either spelling, into a server and the rest.
pub fn split(name: &str, is_server: impl Fn(&str) -> bool) -> Option<(&str, &str)> {
    if name.len() > NAME_BYTES {
        return None;
    }
    [":", "__"].into_iter().find_map(|between| {
        name.match_indices(between)
            .map(|(at, _)| (&name[..at], &name[at + between.len()..]))
            .find(|(server, _)| is_server(server))
    })
}
