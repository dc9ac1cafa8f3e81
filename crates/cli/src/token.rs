//! `switchboard token`: credentials for clients over HTTP and for scripts.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use clap::{Args, Subcommand, builder::PossibleValuesParser};
use serde_json::json;
use switchboard_base::{
    audit::{Actor, Audit, Event},
    project::project_dir,
    tokens::{details, shown},
};
use switchboard_config::{Config, Home, shell_word};
use switchboard_host::runtime::{self, Lock};
use switchboard_rest::tokens::{IssuedToken, NewToken, Tokens};
use switchboard_store::Store;
use switchboard_terminal::{
    error::Error,
    print::{self, Table},
    visible::visible_line,
};
use switchboard_tokens::{self as tokens, New, Right, Rights, TokenError};
use switchboard_wire::Raw;
use tokio::time::timeout;

use super::times::{local, seconds, span};
use crate::link::Link;

/// Create, list, revoke and rotate tokens for clients over HTTP.
///
/// A token gives access to the gateway's address, with the rights and within the profile and the servers that you
/// choose. It is shown once: the gateway stores only a hash.
#[derive(Debug, Args)]
pub struct Token {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    #[command(after_long_help = "\
Examples:
  switchboard token create laptop                          call tools of all servers
  switchboard token create ci --profile review --expires 30d
  switchboard token create bot --server files --server github
  switchboard token create web --project ~/src/shop        servers see this directory as the project
  switchboard token create phone --right approve           decide requests, call nothing")]
    Create(Create),
    /// List the tokens, with their last use
    #[command(after_long_help = "\
Examples:
  switchboard token list
  switchboard token list --json")]
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Revoke a token and disconnect its clients
    #[command(
        visible_alias = "rm",
        after_long_help = "\
Example:
  switchboard token revoke ci"
    )]
    Revoke {
        /// Name of the token
        name: String,
    },
    /// Replace the secret of a token, disconnect its clients, and print the new token
    #[command(after_long_help = "\
Example:
  switchboard token rotate ci")]
    Rotate {
        /// Name of the token
        name: String,
    },
}

/// Create a token and print it.
///
/// Standard output is the token alone. Clients send it as `Authorization: Bearer TOKEN`.
#[derive(Debug, Args)]
struct Create {
    /// Name of the token
    name: String,
    /// Profile that it is held to, at every address
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    /// Server that it may use (repeatable) [default: all]
    #[arg(long = "server", value_name = "NAME")]
    servers: Vec<String>,
    /// Directory that its clients work in, for servers whose entry has `${project}` or `"share": "project"`
    #[arg(long, value_name = "DIR")]
    project: Option<PathBuf>,
    /// Right that it gives (repeatable): `call` tools over MCP, `approve` requests, `admin` everything else
    /// [default: call]
    #[arg(
        long = "right",
        value_name = "RIGHT",
        value_parser = PossibleValuesParser::new(Right::ALL.map(Right::as_str)),
        hide_possible_values = true
    )]
    rights: Vec<String>,
    /// Time after which it is rejected, such as 12h or 30d [default: never]
    #[arg(long, value_name = "DURATION", value_parser = seconds)]
    expires: Option<u64>,
}

const TOKENS: &str = "/api/v1/tokens";

/// Runs the command.
pub fn run(home: &Home, args: &Token) -> Result<(), Error> {
    match &args.what {
        What::Create(new) => create(home, new),
        What::List { json } => list(home, *json),
        What::Revoke { name } => revoke(home, name),
        What::Rotate { name } => rotate(home, name),
    }
}

fn create(home: &Home, args: &Create) -> Result<(), Error> {
    let rights = args.rights.iter().filter_map(|word| Right::parse(word));
    let new = New {
        name: args.name.clone(),
        rights: if args.rights.is_empty() {
            Rights::from_iter([Right::Call])
        } else {
            rights.collect()
        },
        profile: args.profile.clone(),
        servers: args.servers.clone(),
        project: args.project.as_deref().map(project).transpose()?,
        lifetime: args.expires.map(Duration::from_secs),
    };
    let token = issue(home, new)?;
    print::data(&format!("{token}\n"))?;
    if let Some(seconds) = args.expires {
        let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
        print::say(&format!("the token expires in {}", span(seconds)));
    }
    print::hint(&format!(
        "this is the only time that it is shown; `switchboard token revoke {}` revokes it",
        shell_word(&args.name)
    ));
    Ok(())
}

/// The path of an existing directory, without symbolic links.
fn project(path: &Path) -> Result<String, Error> {
    let found = project_dir(&std::path::absolute(path).unwrap_or(path.into()));
    found.ok_or_else(|| {
        let what = format!(
            "`{}` is not a directory that can be a project",
            path.display()
        );
        Error::new(what)
            .hint("name an existing directory, other than the home directory and those above it")
    })
}

/// Creates a token for a client, held to a profile if there is one. Returns its name and the token.
pub(super) fn issue_for(
    home: &Home,
    client: &str,
    profile: Option<&str>,
) -> Result<(String, String), Error> {
    let all = read(home)?;
    let is_free = |name: &String| all.iter().all(|token| token.name != *name);
    let numbered = (2..).map(|number: u32| format!("{client}-{number}"));
    let mut names = std::iter::once(client.to_owned()).chain(numbered);
    // The number of tokens is limited, so one of the names is free.
    let name = names.find(is_free).unwrap_or_default();
    let new = New {
        profile: profile.map(str::to_owned),
        ..New::named(&name)
    };
    let token = issue(home, new)?;
    Ok((name, token))
}

/// The entry of a token; `None` if it is not one of this gateway.
pub(super) fn find<'a>(all: &'a tokens::Tokens, token: &str) -> Option<&'a tokens::Token> {
    // An expired token is still one of this gateway.
    tokens::check(token, |id| all.get(id), SystemTime::UNIX_EPOCH).ok()
}

/// Creates a token, and returns it.
fn issue(home: &Home, new: New) -> Result<String, Error> {
    if let Some(link) = Link::find_staying(home)? {
        let body = NewToken {
            rights: Some(new.rights.iter().map(|right| right.to_string()).collect()),
            profile: new.profile,
            servers: Some(new.servers),
            project: new.project,
            expires_in_seconds: new.lifetime.map(|life| life.as_secs()),
            name: new.name,
        };
        let body = serde_json::to_string(&body).map_err(|error| Error::new(error.to_string()))?;
        let issued: IssuedToken = link.send(TOKENS, &body)?;
        return Ok(issued.token);
    }
    let config = config(home)?;
    let profiles = config.profiles.keys().map(String::as_str);
    let servers = config.servers.keys().map(String::as_str);
    new.check_scope(profiles, servers)
        .map_err(|error| failure(&error))?;
    let details = details(&new);
    let (name, now) = (new.name.clone(), SystemTime::now());
    let change = |tokens: &mut tokens::Tokens| tokens.create(new, now);
    without_gateway(home, ("token-created", &name, details), change)
}

fn list(home: &Home, as_json: bool) -> Result<(), Error> {
    let answer = if let Some(link) = Link::find(home)? {
        link.get::<Raw>(TOKENS)?
    } else {
        let tokens = read(home)?;
        let tokens = tokens.iter().map(shown).collect();
        Raw::from_value(&Tokens { tokens }).map_err(|error| Error::new(error.to_string()))?
    };
    if as_json {
        return print::json_raw(&answer);
    }
    let Tokens { tokens } = answer
        .read_owned()
        .map_err(|error| Error::new(format!("cannot parse the gateway's response: {error}")))?;
    if tokens.is_empty() {
        print::say("there are no tokens");
        print::hint("`switchboard token create NAME` creates one");
        return Ok(());
    }
    let mut table = Table::new(&[
        "NAME",
        "RIGHTS",
        "HELD TO",
        "EXPIRES",
        "LAST USED",
        "CLIENT",
    ]);
    for token in tokens {
        let rights: Vec<_> = token.rights.iter().map(|right| &**right).collect();
        let profile = token.profile.map(|profile| format!("profile {profile}"));
        let servers = match &*token.servers {
            [] => None,
            [server] => Some(format!("server {server}")),
            servers => Some(format!("servers {}", servers.join(", "))),
        };
        let project = token.project.map(|project| format!("project {project}"));
        let held: Vec<_> = profile.into_iter().chain(servers).chain(project).collect();
        let expires = match &token.expires_at {
            Some(_) if token.is_expired => "expired".to_owned(),
            Some(time) => local(time),
            None => "never".to_owned(),
        };
        table.row([
            token.name,
            rights.join(", "),
            if held.is_empty() {
                "–".to_owned()
            } else {
                visible_line(&held.join("; "))
            },
            expires,
            token
                .used_at
                .map_or_else(|| "never".to_owned(), |time| local(&time)),
            token
                .client
                .map_or_else(|| "–".to_owned(), |client| visible_line(&client)),
        ]);
    }
    table.print()
}

/// Revokes a token.
pub(super) fn revoke(home: &Home, name: &str) -> Result<(), Error> {
    if let Some(link) = Link::find_staying(home)? {
        link.delete(&address(name))?;
    } else {
        let change = |tokens: &mut tokens::Tokens| tokens.revoke(name).map(drop);
        without_gateway(home, ("token-revoked", name, json!({})), change)?;
    }
    print::say(&format!("revoked the token `{}`", visible_line(name)));
    Ok(())
}

fn rotate(home: &Home, name: &str) -> Result<(), Error> {
    let token = if let Some(link) = Link::find_staying(home)? {
        let issued: IssuedToken = link.send(&format!("{}/rotate", address(name)), "")?;
        issued.token
    } else {
        let now = SystemTime::now();
        let change = |tokens: &mut tokens::Tokens| tokens.rotate(name, now);
        without_gateway(home, ("token-rotated", name, json!({})), change)?
    };
    print::data(&format!("{token}\n"))?;
    print::hint(
        "the old token is rejected from now on; give the new one to its client, or run `switchboard connect CLIENT --undo` and connect it again",
    );
    Ok(())
}

fn address(name: &str) -> String {
    format!("{TOKENS}/{}", switchboard_catalog::escape(name))
}

/// Changes the tokens without a gateway, and records the change.
fn without_gateway<T>(
    home: &Home,
    (what, name, details): (&'static str, &str, serde_json::Value),
    change: impl FnOnce(&mut tokens::Tokens) -> Result<T, TokenError>,
) -> Result<T, Error> {
    home.create()?;
    let Ok(lock) = Lock::take(home)? else {
        return Err(Error::new("a gateway is just starting").hint("run the command again"));
    };
    let path = home.tokens();
    let mut all = read(home)?;
    let done = change(&mut all).map_err(|error| failure(&error))?;
    tokens::write(&path, &all)
        .map_err(|error| Error::from_error(&error, Some(error.hint().into())))?;
    let event = Event {
        what,
        subject: name.into(),
        actor: Some(Actor {
            principal: Some(Arc::from("owner")),
            door: "file",
            peer: None,
        }),
        details,
    };
    runtime::block_on(async {
        let store = Store::open(home.database());
        let audit = Audit::start(store.clone());
        audit.record(event);
        audit.flush().await;
        store.close();
        let _ = timeout(CLOSE, store.closed()).await;
    })?;
    drop(lock);
    Ok(done)
}

/// Reads the file of tokens.
pub(crate) fn read(home: &Home) -> Result<tokens::Tokens, Error> {
    tokens::read(&home.tokens())
        .map_err(|error| Error::from_error(&error, Some(error.hint().into())))
}

/// The longest time that the store may take to close.
const CLOSE: Duration = Duration::from_secs(5);

fn config(home: &Home) -> Result<Config, Error> {
    let config = Config::load(home.config_file())?;
    Ok(if cfg!(feature = "memory") {
        config.with_memory()
    } else {
        config
    })
}

fn failure(error: &TokenError) -> Error {
    Error::from_error(error, error.hint())
}
