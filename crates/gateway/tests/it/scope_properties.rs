//! Scopes of any shape: nothing outside the scope of a caller is seen, called or inferred.
//!
//! Each seed makes a gateway with random servers, overrides, profiles and tokens. Every name and text in it is a
//! word that occurs nowhere else, so a word in a response tells what the response is about. The rules for what a
//! caller may see are written down here a second time.
//!
//! The seeds are the same in every run, and the tests count what they have reached with them. `PROPTEST_RNG_SEED` set
//! to another number draws other worlds; what these reach is up to chance, and is not checked.

mod client;
mod coverage;
mod made;
mod session;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use self::{
    client::{Client, Ear, Transport, Web, response},
    coverage::Coverage,
    made::{Change, Dice, Filter, Server, Tool, matches},
};
use crate::{
    api_rig::{Answer, Rig, TOKEN},
    mcp_rig::{
        LIST_CHANGED, MODERN, Pipe, REVISIONS, configured, direct, names_of, search, server,
        text_of, under, until,
    },
    stage_rig::{Stage, tool},
};

const SERVER_LETTERS: usize = 8;
const ITEM_LETTERS: usize = 16;
const LOG: &str = "notifications/message";

/// The longest result. Only those of some calls are longer.
const RESULT_BYTES: usize = 50_000;

/// The seed for which the tests check what they reach.
const USUAL: u64 = 20_260_728;

/// The seed from the environment, from which those of all worlds are made.
fn seed() -> u64 {
    let set = std::env::var("PROPTEST_RNG_SEED").ok();
    set.map_or(USUAL, |set| set.parse().expect("a number"))
}

/// The seeds of some worlds.
fn seeds(worlds: std::ops::Range<u64>) -> impl Iterator<Item = u64> {
    worlds.map(|number| seed().wrapping_mul(1_000).wrapping_add(number))
}

/// An entry of `profiles`.
#[derive(Clone)]
struct Profile {
    name: String,
    servers: Option<Vec<String>>,
    tools: Filter,
    view: Option<&'static str>,
    namespace: Option<String>,
    /// It has been removed from the configuration.
    is_gone: bool,
}

const MEMORY: &str = "memory";
/// The tools of the memory that merged views list.
const COMPACT: [&str; 5] = [
    "store_memory",
    "recall",
    "get_memory",
    "update_memory",
    "delete_memory",
];

impl Profile {
    fn new(dice: &mut Dice, servers: &[Server]) -> Self {
        let listed = dice.percent(75).then(|| some_servers(dice, servers));
        let allow = dice.percent(40).then(|| {
            let count = 2 + dice.below(4);
            let mut patterns: Vec<_> = (0..count).map(|_| pattern(dice, servers)).collect();
            patterns.extend(dice.percent(50).then(|| format!("{MEMORY}:*")));
            patterns
        });
        let count = dice.below(4);
        let deny = (0..count).map(|_| pattern(dice, servers)).collect();
        Self {
            name: dice.word(SERVER_LETTERS),
            servers: listed,
            tools: Filter { allow, deny },
            view: *dice.pick(&[None, Some("auto"), Some("search"), Some("direct")]),
            namespace: dice.percent(50).then(|| dice.word(ITEM_LETTERS)),
            is_gone: false,
        }
    }

    fn entry(&self) -> Value {
        let mut entry = json!({ "tools": self.tools.entry() });
        if let Some(servers) = &self.servers {
            entry["servers"] = json!(servers);
        }
        if let Some(view) = self.view {
            entry["view"] = json!(view);
        }
        if let Some(namespace) = &self.namespace {
            entry["memory"] = json!({ "namespace": namespace });
        }
        entry
    }
}

/// One to three patterns for servers.
fn some_servers(dice: &mut Dice, servers: &[Server]) -> Vec<String> {
    let count = 1 + dice.below(2);
    let mut some: Vec<_> = (0..count)
        .map(|_| {
            let name = &dice.pick(servers).name;
            match dice.below(3) {
                0 => format!("{}*", &name[..3]),
                _ => name.clone(),
            }
        })
        .collect();
    if dice.percent(50) {
        some.push(MEMORY.to_owned());
    }
    some
}

/// A pattern for tools, by their own names or their new ones.
fn pattern(dice: &mut Dice, servers: &[Server]) -> String {
    let server = dice.pick(servers);
    let tool = dice.pick(&server.tools);
    let name = match &tool.new_name {
        Some(new) if dice.percent(50) => new,
        _ => &tool.own,
    };
    match dice.below(6) {
        0 => format!("{}:*", server.name),
        5 => format!("*:{}", server.method()),
        1 => format!("*:{}*", &name[..1]),
        2 => format!("*:*{}*", &name[4..6]),
        3 => format!("*:{name}"),
        _ => format!("{}:{name}", server.name),
    }
}

/// The owner under a profile, or a token.
#[derive(Clone)]
struct Caller {
    profile: Option<usize>,
    /// The servers that its token is held to.
    servers: Option<Vec<String>>,
    token: Option<String>,
    /// The token is held to the profile.
    is_held: bool,
    /// The profile is in its address.
    is_addressed: bool,
}

impl Caller {
    fn everything(token: Option<String>) -> Self {
        Self {
            profile: None,
            servers: None,
            token,
            is_held: false,
            is_addressed: false,
        }
    }

    /// A caller that sees nothing, such as one with a revoked token.
    fn nothing() -> Self {
        Self {
            servers: Some(Vec::new()),
            ..Self::everything(None)
        }
    }

    fn under(profile: usize) -> Self {
        Self {
            profile: Some(profile),
            servers: None,
            token: None,
            is_held: false,
            is_addressed: true,
        }
    }
}

/// A view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Look {
    Configured,
    Search,
    Direct,
    One(usize),
}

impl Look {
    fn name(self) -> &'static str {
        match self {
            Look::Configured => "configured",
            Look::Search => "search",
            Look::Direct => "direct",
            Look::One(_) => "one",
        }
    }

    /// Tests if clients may call the tools of the menu.
    fn has_menu(self) -> bool {
        matches!(self, Look::Search | Look::Configured)
    }
}

struct World {
    seed: u64,
    rig: Rig,
    servers: Vec<Server>,
    profiles: Vec<Profile>,
    /// The tools of the memory, with `true` for the ones that take a namespace.
    memory_tools: BTreeMap<String, bool>,
}

fn config(servers: &[Server], profiles: &[Profile]) -> Value {
    let entries = servers
        .iter()
        .map(|server| (&*server.name, server.entry()))
        .collect::<BTreeMap<_, _>>();
    let profiles = profiles
        .iter()
        .filter(|profile| !profile.is_gone)
        .map(|profile| (&*profile.name, profile.entry()))
        .collect::<BTreeMap<_, _>>();
    json!({
        "mcpServers": entries,
        "profiles": profiles,
        "memory": { "enabled": true },
        "approvals": { "notify": "off" },
        "results": { "maxBytes": RESULT_BYTES },
        // A search waits for the index, which takes time in a program that is not optimised.
        "waitTimeoutMs": 60_000,
    })
}

/// Creates a token.
async fn token(rig: &Rig, name: &str, profile: Option<&str>, servers: &[String]) -> String {
    let mut about = json!({ "name": name, "servers": servers, "rights": ["call"] });
    if let Some(profile) = profile {
        about["profile"] = json!(profile);
    }
    let answer = rig.post("/api/v1/tokens", &about).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    answer.json()["token"].as_str().unwrap().to_owned()
}

/// Waits until all servers run with their tools.
async fn ready(rig: &Rig, servers: &[Server]) {
    for server in servers {
        let shown = server.tools.iter().filter(|tool| server.offers(tool));
        let (shown, path) = (shown.count(), format!("/api/v1/servers/{}", server.name));
        rig.until(&path, |it| it["state"] == "ready" && it["tools"] == shown)
            .await;
    }
}

impl World {
    /// A world in which the scan may hold tools, or not.
    async fn new(seed: u64, dice: &mut Dice, holds: bool) -> Self {
        let is_long = dice.percent(50);
        let mut servers = vec![Server::new(dice, None, is_long)];
        for _ in 0..2 {
            let shared = dice.percent(60).then(|| servers[0].tools[0].own.clone());
            servers.push(Server::new(dice, shared.as_deref(), false));
        }
        for tool in servers.iter_mut().flat_map(|server| &mut server.tools) {
            tool.is_held &= holds;
        }
        servers.iter().for_each(Server::set_tools);
        let profiles = (0..3).map(|_| Profile::new(dice, &servers)).collect();
        Self::of(seed, servers, profiles).await
    }

    /// The world of these servers and profiles.
    async fn of(seed: u64, servers: Vec<Server>, profiles: Vec<Profile>) -> Self {
        let rig = Rig::configured(config(&servers, &profiles)).await;
        ready(&rig, &servers).await;
        let mut owner = Pipe::open(&rig, search()).await;
        for server in &servers {
            if let Some(tool) = server.tools.iter().rfind(|tool| server.offers(tool)) {
                let name = format!("{}:{}", server.name, tool.shown());
                let about = tool.shown_about();
                let is_found = async || owner.retrieve(about).await.contains(&name);
                until("the tools are found", is_found).await;
            }
        }
        let mut owner = Pipe::open(&rig, server(MEMORY)).await;
        let list = owner.result("tools/list", json!({})).await;
        let tools = list["tools"].as_array().unwrap().iter().map(|tool| {
            let takes = tool["inputSchema"]["properties"]["namespace"].is_object();
            (tool["name"].as_str().unwrap().to_owned(), takes)
        });
        Self {
            seed,
            rig,
            servers,
            profiles,
            memory_tools: tools.collect(),
        }
    }

    /// A token that is held to a profile, servers, or both.
    async fn token_caller(&self, dice: &mut Dice, number: usize) -> Caller {
        let is_held = dice.percent(60);
        let with_profile = is_held || dice.percent(50);
        let profile = with_profile.then(|| dice.below(self.profiles.len()));
        let mut servers = Vec::new();
        if !with_profile || dice.percent(60) {
            let mut names: Vec<_> = self.servers.iter().map(|server| &server.name).collect();
            names.swap_remove(dice.below(3));
            names.truncate(1 + dice.below(2));
            servers = names.into_iter().cloned().collect();
            servers.extend(dice.percent(30).then(|| MEMORY.to_owned()));
        }
        let is_there = |profile: &usize| is_held || self.shares_server(*profile, &servers);
        let profile = profile.filter(is_there);
        let held = profile.filter(|_| is_held);
        let held = held.map(|profile| &*self.profiles[profile].name);
        let token = token(&self.rig, &format!("t{number}"), held, &servers).await;
        Caller {
            profile,
            servers: (!servers.is_empty()).then_some(servers),
            token: Some(token),
            is_held,
            is_addressed: !is_held || dice.percent(50),
        }
    }

    /// Tests if a profile includes one of some servers. If they are none, a token is held to none.
    fn shares_server(&self, profile: usize, servers: &[String]) -> bool {
        let included = self.profiles[profile].servers.as_ref();
        let is_included = |name: &String| {
            included.is_none_or(|all| all.iter().any(|pattern| matches(pattern, name)))
        };
        servers.is_empty() || servers.iter().any(is_included)
    }

    fn profile(&self, caller: &Caller) -> Option<&Profile> {
        caller.profile.map(|profile| &self.profiles[profile])
    }

    /// The address of the caller's configured view.
    fn address(&self, caller: &Caller) -> String {
        let profile = self.profile(caller).filter(|_| caller.is_addressed);
        profile.map_or("/mcp".to_owned(), |profile| {
            format!("/mcp/p/{}", profile.name)
        })
    }

    /// Tests if a caller's profile exists for it.
    fn has_profile(&self, caller: &Caller) -> bool {
        let none = Vec::new();
        let servers = caller.servers.as_ref().unwrap_or(&none);
        let is_there = |at: usize| caller.is_held || self.shares_server(at, servers);
        caller
            .profile
            .is_none_or(|at| !self.profiles[at].is_gone && is_there(at))
    }

    fn sees_server(&self, caller: &Caller, server: &str) -> bool {
        if !self.has_profile(caller) {
            return false;
        }
        let by_profile = match self.profile(caller).and_then(|one| one.servers.as_ref()) {
            None => true,
            Some(patterns) => patterns.iter().any(|pattern| matches(pattern, server)),
        };
        let by_token = match &caller.servers {
            None => true,
            Some(servers) => servers.iter().any(|name| name == server),
        };
        by_profile && by_token
    }

    /// Tests if the patterns of the caller's profile let a tool through.
    fn passes(&self, caller: &Caller, server: &str, names: &[&str]) -> bool {
        let names = names.iter().map(|name| format!("{server}:{name}"));
        let names: Vec<_> = names.collect();
        let profile = self.profile(caller);
        profile.is_none_or(|profile| profile.tools.passes(&names))
    }

    fn sees_tool(&self, caller: &Caller, server: &Server, tool: &Tool) -> bool {
        !tool.is_held && self.would_see_tool(caller, server, tool)
    }

    /// Tests if a caller sees a tool once it is approved.
    fn would_see_tool(&self, caller: &Caller, server: &Server, tool: &Tool) -> bool {
        server.shows(tool)
            && self.sees_server(caller, &server.name)
            && self.passes(caller, &server.name, &[&tool.own, tool.shown()])
    }

    /// Tests if a caller may use the method of a server's extension at the server's address.
    fn sees_method(&self, caller: &Caller, server: &Server) -> bool {
        server.shows_method()
            && self.sees_server(caller, &server.name)
            && self.passes(caller, &server.name, &[&server.method()])
    }

    /// Tests if a caller has one namespace of the memory only.
    fn is_confined(&self, caller: &Caller) -> bool {
        let profile = self.profile(caller);
        profile.is_some_and(|profile| profile.namespace.is_some())
    }

    /// The tools of the memory that a caller sees.
    fn memory_of(&self, caller: &Caller) -> Vec<&str> {
        let is_confined = self.is_confined(caller);
        let tools = self.memory_tools.iter().filter(|(name, takes)| {
            self.sees_server(caller, MEMORY)
                && self.passes(caller, MEMORY, &[name])
                && (!is_confined || **takes)
        });
        tools.map(|(name, _)| name.as_str()).collect()
    }

    /// Tests if a caller sees the memory's prompts and resources.
    fn sees_memory_items(&self, caller: &Caller) -> bool {
        self.sees_server(caller, MEMORY) && !self.is_confined(caller)
    }

    /// Tests if a view has the menu in place of tools. Under `auto`, only tools that the caller sees count.
    fn is_menu(&self, caller: &Caller, look: Look) -> bool {
        let view = self.profile(caller).and_then(|profile| profile.view);
        match (look, view) {
            (Look::Search, _) | (Look::Configured, Some("search")) => true,
            (Look::Direct | Look::One(_), _) | (Look::Configured, Some("direct")) => false,
            (Look::Configured, _) => self.shown_tools(caller, look).len() > 40,
        }
    }

    /// The servers with something in this view.
    fn shown_servers(&self, caller: &Caller, look: Look) -> Vec<usize> {
        let all = 0..self.servers.len();
        let in_view = |at: &usize| !matches!(look, Look::One(one) if one != *at);
        all.filter(in_view)
            .filter(|at| self.sees_server(caller, &self.servers[*at].name))
            .collect()
    }

    /// The tools in this view, by server and position.
    fn shown_tools(&self, caller: &Caller, look: Look) -> Vec<(&Server, &Tool)> {
        let servers = self.shown_servers(caller, look);
        let servers = servers.into_iter().map(|at| &self.servers[at]);
        servers
            .flat_map(|server| server.tools.iter().map(move |tool| (server, tool)))
            .filter(|(server, tool)| self.sees_tool(caller, server, tool))
            .collect()
    }

    /// The words that no response in this view may contain.
    fn forbidden(&self, caller: &Caller, look: Look) -> BTreeSet<&str> {
        let mut words = BTreeSet::new();
        for server in &self.servers {
            words.extend(server.words());
            words.extend(server.tools.iter().flat_map(Tool::words));
            words.extend(server.extra.iter().map(String::as_str));
        }
        words.extend(self.profiles.iter().map(|profile| &*profile.name));
        let namespaces = self.profiles.iter();
        words.extend(namespaces.filter_map(|profile| profile.namespace.as_deref()));
        for at in self.shown_servers(caller, look) {
            for word in self.servers[at].words() {
                words.remove(word);
            }
        }
        if let Look::One(at) = look
            && self.sees_method(caller, &self.servers[at])
        {
            words.remove(&*self.servers[at].extra[1]);
        }
        for (_, tool) in self.shown_tools(caller, look) {
            for word in tool.seen_words() {
                words.remove(word);
            }
        }
        words
    }
}
