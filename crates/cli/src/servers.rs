//! `add`, `remove`, `enable`, `disable` and `restart`: one server, changed through the running gateway or, if
//! none runs, in the configuration file. The output is the same either way.

use std::{fs, path::PathBuf};

use clap::{Args, ValueEnum};
use serde_json::{Map, Value, json};
use switchboard_config::{
    Config, EditError, Home, Memory, Server, add_server, remove_server, set_enabled,
};
use switchboard_terminal::{error::Error, print};

use super::{
    config_file::ConfigFile,
    launching, learning,
    secret::{
        Store,
        moving::{self, Mover, Secrets},
    },
    words,
};
use crate::{
    link::{Link, no_gateway},
    place::Place,
};

/// Add a server.
///
/// Writes the server to switchboard.json; a running gateway picks it up at once. The server is started once,
/// so that its tools are known to the first client that connects. Values may contain ${env:NAME} (a variable
/// of the gateway's environment) and ${secret:NAME} (a secret stored with `switchboard secret`), so that
/// secrets stay out of the file. Values that look like secrets are moved to such secrets; on a terminal, the
/// command asks first.
#[derive(Debug, Args)]
#[command(
    override_usage = "switchboard add [OPTIONS] NAME -- COMMAND [ARG]...\n       \
                      switchboard add [OPTIONS] NAME URL\n       \
                      switchboard add [OPTIONS] NAME --image IMAGE [-- ARG...]"
)]
#[command(group = clap::ArgGroup::new("way").required(true).multiple(true).args(["url", "command", "image"]))]
pub struct Add {
    /// Name of the server
    name: String,
    /// URL of a remote server
    #[arg(conflicts_with_all = ["command", "image"])]
    url: Option<String>,
    /// Program to start, with its arguments; with --image, arguments for the container
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
    /// Container image to run
    #[arg(long, value_name = "IMAGE")]
    image: Option<String>,
    /// Environment variable for the program; can be repeated
    #[arg(long = "env", short = 'e', value_name = "KEY=VALUE", value_parser = pair, conflicts_with = "url")]
    env: Vec<(String, String)>,
    /// HTTP header for every request; can be repeated
    #[arg(long = "header", short = 'H', value_name = "KEY=VALUE", value_parser = header, requires = "url")]
    headers: Vec<(String, String)>,
    /// Variable to pass on from the gateway's environment; can be repeated
    #[arg(long, value_name = "NAME", conflicts_with_all = ["url", "image"])]
    inherit_env: Vec<String>,
    /// Working directory of the program; a private one, empty at first, if omitted
    #[arg(long, value_name = "DIR", conflicts_with_all = ["url", "image"])]
    cwd: Option<String>,
    /// Transport; detected if omitted
    #[arg(long = "type", value_name = "TYPE", requires = "url")]
    kind: Option<Kind>,
    /// When to start the server: on first use (lazy) or with the gateway (eager)
    #[arg(long, value_name = "WHEN")]
    start: Option<Start>,
    /// Callers that share an instance of the server
    #[arg(long, value_name = "CALLERS")]
    share: Option<Share>,
    /// When to show its tools to agents; see `switchboard trust`
    #[arg(long, value_name = "WHEN")]
    trust: Option<Trust>,
    /// Add the server as disabled
    #[arg(long)]
    disabled: bool,
    /// Do not wait for the server to start; its tools are listed later
    #[arg(long, alias = "no-start")]
    no_wait: bool,
    /// Treatment of values that look like secrets
    #[arg(long, value_name = "HOW")]
    secrets: Option<Secrets>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Trust {
    /// When first seen; after a change, when you approve it
    First,
    /// When you approve them
    Ask,
    /// Always, even after a change
    Always,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Kind {
    /// Streamable HTTP, or HTTP+SSE if the server refuses it
    Http,
    /// Streamable HTTP only
    HttpOnly,
    /// HTTP+SSE, for older servers
    Sse,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Start {
    Lazy,
    Eager,
}

/// The server to start.
#[derive(Debug, Args)]
pub struct Started {
    /// Name of the server, as shown by `switchboard list`
    name: String,
    /// Do not wait for the server to start
    #[arg(long)]
    no_wait: bool,
}

/// The server or instance to restart.
#[derive(Debug, Args)]
pub struct Restarted {
    /// Name of the server, as shown by `switchboard list`; NAME/NUMBER for one of its instances
    name: String,
    /// Do not wait for the server to start
    #[arg(long)]
    no_wait: bool,
}

/// The server to change.
#[derive(Debug, Args)]
pub struct Named {
    /// Name of the server, as shown by `switchboard list`
    name: String,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Share {
    /// As its entry and the known servers suggest
    Auto,
    /// All of them
    All,
    /// The ones that work in one directory
    Project,
    /// None: each client has its own
    Client,
}

/// The note on a server that has the name of the built-in memory.
pub(super) const REPLACES_MEMORY: &str = "it replaces the built-in memory, whose memories are kept; to use both, choose \
                                          another name";

/// Adds a server.
pub fn add(home: &Home, place: &Place, args: &Add) -> Result<(), Error> {
    let mut entry = entry(args)?;
    let name = &args.name;
    // Reports errors in the entry in the same way with and without a gateway.
    let alone = add_server("", name, &entry)?;
    let mut mover = Mover::new(Store::new(home));
    if moving::decide(args.secrets, false, moving::count(&entry))? == Secrets::Move {
        mover
            .take(name, &mut entry)
            .inspect_err(|_| mover.take_back())?;
    }
    let added = write_added(home, name, &entry);
    added.inspect_err(|_| mover.take_back())?;
    for note in &mover.notes {
        print::say(note);
    }
    warn_of_plain_http(name, &entry);
    let off = if args.disabled { " (disabled)" } else { "" };
    print::say(&format!("added `{name}`{off}"));
    for hint in launching::hints(&alone, name) {
        print::hint(&hint);
    }
    if cfg!(feature = "memory") && name == Memory::NAME {
        print::hint(REPLACES_MEMORY);
    }
    if args.no_wait || args.disabled {
        return Ok(());
    }
    learning::learn(home, place, std::slice::from_ref(name))
}

fn write_added(home: &Home, name: &str, entry: &Value) -> Result<(), Error> {
    if let Some(link) = Link::find_staying(home)? {
        let body = json!({"name": name, "server": entry});
        link.post("/api/v1/servers", Some(&body))?;
    } else {
        ConfigFile::edit(home, |text| add_server(text, name, entry))?;
    }
    Ok(())
}

/// Warns if the credentials of a server would be sent in plain text.
pub(super) fn warn_of_plain_http(name: &str, entry: &Value) {
    let text = json!({"mcpServers": {name: entry}}).to_string();
    let config = switchboard_config::parse(&text, "").unwrap_or_default();
    if config
        .servers
        .values()
        .any(Server::sends_credentials_in_clear)
    {
        print::warn(&format!(
            "the credentials of `{name}` are sent over plain http://, so others on the network can read them"
        ));
        print::hint("use https://");
    }
}

/// Removes a server.
pub fn remove(home: &Home, args: &Named) -> Result<(), Error> {
    let name = &args.name;
    spare_built_in(home, "remove", name)?;
    if let Some(link) = Link::find_staying(home)? {
        link.delete(&address(name))?;
    } else {
        ConfigFile::edit(home, |text| remove_server(text, name))?;
    }
    print::say(&format!("removed `{name}`"));
    let holds_something =
        |dir: &PathBuf| fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_some());
    for dir in home
        .server_dirs(name)
        .iter()
        .filter(|dir| holds_something(dir))
    {
        let dir = print::shell_word(&dir.to_string_lossy());
        print::hint(&format!("the files of `{name}` are kept in {dir}"));
    }
    Ok(())
}

/// Enables a server.
pub fn enable(home: &Home, place: &Place, args: &Started) -> Result<(), Error> {
    switch(home, &args.name, Switch::On)?;
    if args.no_wait {
        return Ok(());
    }
    learning::learn(home, place, std::slice::from_ref(&args.name))
}

/// Disables a server.
pub fn disable(home: &Home, args: &Named) -> Result<(), Error> {
    switch(home, &args.name, Switch::Off)
}

/// Restarts a server.
pub fn restart(home: &Home, place: &Place, args: &Restarted) -> Result<(), Error> {
    let (name, instance) = parts(&args.name)?;
    let Some(link) = Link::find_staying(home)? else {
        if instance.is_some() || args.no_wait {
            return Err(no_gateway(home).hint("start one with `switchboard serve`"));
        }
        return try_start(home, place, &args.name);
    };
    let query = instance.map(|number| format!("?instance={number}"));
    let query = query.unwrap_or_default();
    link.post(&format!("{}/restart{query}", address(name)), None)?;
    let server: switchboard_rest::servers::Server = link.get(&address(name))?;
    if instance.is_some() {
        print::say(&format!("restarted `{}`", args.name));
        return Ok(());
    }
    // One that is down does not start again when it is used.
    if server.sharing != "all" && !words::is_down(&server) {
        print::say(&format!(
            "stopped the instances of `{name}`; each starts again when it is used"
        ));
        return Ok(());
    }
    let name = &args.name;
    if args.no_wait {
        print::say(&format!("restarting `{name}`"));
        return Ok(());
    }
    learning::restarted(home, &link, name)
}

/// Without a gateway there is nothing to restart, but the command can check that the server starts.
fn try_start(home: &Home, place: &Place, name: &String) -> Result<(), Error> {
    let config = ConfigFile::read(home)?.config()?;
    match config.servers.get(name) {
        Some(server) if server.enabled => learning::start_alone(home, place, name),
        Some(_) => {
            let name = print::shell_word(name);
            let hint = format!("enable it with `switchboard enable {name}`");
            Err(Error::new(format!("`{name}` is disabled")).hint(hint))
        }
        None => {
            let known = config.servers.keys().map(String::as_str);
            Err(EditError::missing(name, known).into())
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Switch {
    On,
    Off,
}

/// Fails for the built-in memory, which is not one of the servers in the file and has its own setting.
fn spare_built_in(home: &Home, verb: &str, name: &str) -> Result<(), Error> {
    let is_configured = || {
        let config = Config::load(home.config_file()).ok();
        config.is_none_or(|config| config.servers.contains_key(name))
    };
    if !cfg!(feature = "memory") || name != Memory::NAME || is_configured() {
        return Ok(());
    }
    Err(Error::new(format!(
        "cannot {verb} `{name}`: it is built in and has no entry in `mcpServers`"
    ))
    .hint("`\"memory\": {\"enabled\": false}` in switchboard.json disables it"))
}

fn switch(home: &Home, name: &str, to: Switch) -> Result<(), Error> {
    let (verb, done) = match to {
        Switch::On => ("enable", "enabled"),
        Switch::Off => ("disable", "disabled"),
    };
    spare_built_in(home, verb, name)?;
    let on = to == Switch::On;
    let changed = if let Some(link) = Link::find_staying(home)? {
        let before: switchboard_rest::servers::Server = link.get(&address(name))?;
        link.post(&format!("{}/{verb}", address(name)), None)?;
        before.enabled != on
    } else {
        ConfigFile::edit(home, |text| set_enabled(text, name, on))?
    };
    print::say(&if changed {
        format!("{done} `{name}`")
    } else {
        format!("`{name}` is already {done}")
    });
    Ok(())
}

/// The server and the number of `NAME` or `NAME/NUMBER`. A name has no slash.
pub(super) fn parts(name: &str) -> Result<(&str, Option<u64>), Error> {
    let Some((server, number)) = name.split_once('/') else {
        return Ok((name, None));
    };
    let number = number.parse().map_err(|_| {
        Error::usage(format!("`{number}` is not the number of an instance"))
            .hint("`switchboard list` shows the instances as NAME/NUMBER")
    })?;
    Ok((server, Some(number)))
}

pub(super) fn address(name: &str) -> String {
    format!("/api/v1/servers/{}", switchboard_catalog::escape(name))
}

/// Makes the entry for `mcpServers`.
fn entry(args: &Add) -> Result<Value, Error> {
    let mut entry = Map::new();
    let mut put = |key: &str, value: Value| entry.insert(key.to_owned(), value);
    let mut command = args.command.iter();
    if let Some(url) = &args.url {
        if !url.contains("://") && !url.starts_with("${") {
            return Err(Error::usage(format!("`{url}` is not a URL")).hint(format!(
                "to start a program, put `--` before it: switchboard add {} -- {url} …",
                args.name
            )));
        }
        put("url", url.as_str().into());
        if let Some(kind) = args.kind {
            let kind = match kind {
                Kind::Http => "http",
                Kind::HttpOnly => "http-only",
                Kind::Sse => "sse",
            };
            put("type", kind.into());
        }
    } else if let Some(image) = &args.image {
        put("image", image.as_str().into());
    } else if let Some(program) = command.next() {
        let program = match &args.cwd {
            Some(_) => program.clone(),
            None => launching::program(program),
        };
        put("command", program.into());
    }
    let rest: Vec<&str> = command.map(String::as_str).collect();
    if !rest.is_empty() {
        put("args", rest.into());
    }
    for (key, pairs) in [("env", &args.env), ("headers", &args.headers)] {
        let pairs = pairs
            .iter()
            .map(|(key, value)| (key.clone(), value.clone().into()));
        let map: Map<String, Value> = pairs.collect();
        if !map.is_empty() {
            put(key, map.into());
        }
    }
    if !args.inherit_env.is_empty() {
        put("inheritEnv", args.inherit_env.clone().into());
    }
    if let Some(cwd) = &args.cwd {
        put("cwd", launching::absolute(cwd).into());
    }
    if let Some(start) = args.start {
        let start = match start {
            Start::Lazy => "lazy",
            Start::Eager => "eager",
        };
        put("start", start.into());
    }
    if let Some(share) = args.share {
        let share = match share {
            Share::Auto => "auto",
            Share::All => "all",
            Share::Project => "project",
            Share::Client => "client",
        };
        put("share", share.into());
    }
    if let Some(trust) = args.trust {
        let trust = match trust {
            Trust::First => "first",
            Trust::Ask => "ask",
            Trust::Always => "always",
        };
        put("trust", trust.into());
    }
    if args.disabled {
        put("enabled", false.into());
    }
    Ok(entry.into())
}

fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("expected KEY=VALUE".to_owned()),
    }
}

/// Also accepts `KEY: VALUE`, the notation of curl and others.
fn header(text: &str) -> Result<(String, String), String> {
    match text.split_once(['=', ':']) {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.trim().to_owned())),
        _ => Err("expected KEY=VALUE".to_owned()),
    }
}
