//! `switchboard connect`: adds the gateway to the configurations of clients, and removes it again.

mod all;
mod http;
mod list;
mod moving;
mod same;
mod undo;

use std::{
    env, fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use clap::{ArgGroup, Args};
use switchboard_client_configs::{
    Applied, Client, Connection, Dirs, GatewayEntry, HttpEntry, Plan, Reach, apply, plan_connect,
    plan_unchanged, state,
};
use switchboard_config::{Config, Home};
use switchboard_host::stdio;
use switchboard_terminal::{error::Error, print};

use self::moving::{Moving, warn_of_doubles};
use crate::{agree::CHANGE, backups, difference::difference, place::Place, token};

/// Add the gateway to a client's configuration.
///
/// Shows the change and asks first. The rest of the file stays exactly as it is; a backup is kept, and --undo
/// reverts the change. Without a client, lists all clients, their connections and the number of their own servers.
///
/// Clients: claude-desktop, claude-code, cursor, vscode, windsurf, zed, opencode, codex, gemini.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("which").args(["client", "all"]))]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an option of its own"
)]
pub struct Connect {
    /// Name of the client
    client: Option<String>,
    /// Connect every client that is installed here and not connected yet. Asks once. A client that cannot be
    /// connected is reported, and the others are connected
    #[arg(long)]
    all: bool,
    /// Do not ask for confirmation
    #[arg(long, short, requires = "which")]
    yes: bool,
    /// Show the change without making it
    #[arg(long, conflicts_with = "undo", requires = "which")]
    dry_run: bool,
    /// Undo the last change, or remove the gateway's entry. With --all, undo the last change of each client
    #[arg(long, requires = "which")]
    undo: bool,
    /// Remove the servers from the client that the gateway has, so that agents do not see their tools twice.
    /// Servers that differ, are disabled or belong to a project stay. --undo brings the others back
    #[arg(long = "move", conflicts_with = "undo", requires = "which")]
    moves: bool,
    /// Name of the gateway in the client
    #[arg(long, default_value = "switchboard")]
    name: String,
    /// Profile that the client is held to: it sees and calls only what the profile includes. Without this option,
    /// a client keeps its profile; to remove it, undo the connection first
    #[arg(
        long,
        value_name = "PROFILE",
        conflicts_with = "undo",
        requires = "which"
    )]
    profile: Option<String>,
    /// Connect over HTTP, with a token of its own for the client, in place of starting `switchboard stdio`. The
    /// gateway has to run: `switchboard serve`. --undo revokes the token
    #[arg(long, conflicts_with = "undo", requires = "which")]
    http: bool,
    /// Print the list of clients as JSON
    #[arg(long, conflicts_with = "which")]
    json: bool,
}

/// The work of one command.
struct Task<'a> {
    home: &'a Home,
    dirs: &'a Dirs,
    gateway: &'a GatewayEntry,
    args: &'a Connect,
}

/// Runs the command.
pub fn run(home: &Home, place: &Place, args: &Connect) -> Result<(), Error> {
    let dirs = Dirs::current()?;
    let mut words = place.to_args(home);
    if let Some(profile) = &args.profile {
        stdio::check_profile(&Config::load(home.config_file())?, profile)?;
        words.extend(["--profile".to_owned(), profile.clone()]);
    }
    let gateway = GatewayEntry {
        args: words,
        ..GatewayEntry::new(args.name.as_str(), own_program()?)
    };
    let task = Task {
        home,
        dirs: &dirs,
        gateway: &gateway,
        args,
    };
    match &args.client {
        Some(client) if args.undo => undo::one(&task, client.parse()?),
        Some(client) => one(&task, client.parse()?),
        None if args.undo => undo::all(&task),
        None if args.all => all::connect(&task),
        None => list::run(&task),
    }
}

/// Connects one client.
fn one(task: &Task<'_>, client: Client) -> Result<(), Error> {
    let mut change = Change::prepare(task, client)?;
    change.show()?;
    if change.plan.changed && !task.args.dry_run {
        let question = format!("Change {}?", change.plan.file.display());
        CHANGE.agree(task.args.yes, &question)?;
        change.carry_out(task)?;
        change.warn(task);
        if change.http.is_some() {
            print::hint("keep the gateway running with `switchboard serve`");
        }
        print::hint(&format!(
            "restart {} to use the gateway; to revert the change, run `switchboard connect {client} --undo`",
            client.title()
        ));
    }
    change.advise();
    Ok(())
}

/// The change of one client's file.
struct Change {
    plan: Plan,
    http: Option<HttpEntry>,
    moving: Option<Moving>,
}

impl Change {
    fn prepare(task: &Task<'_>, client: Client) -> Result<Self, Error> {
        let Task {
            home, dirs, args, ..
        } = *task;
        let mut gateway = task.gateway.clone();
        let known = state(client, dirs, &gateway)?.connection;
        let mut plan = if is_kept(task, client, known.as_ref())? {
            plan_unchanged(client, dirs, &gateway)?
        } else {
            if args.http {
                let address = http::address(home)?;
                gateway.http = Some(http::placeholder(address, client, dirs));
            }
            plan_connect(client, dirs, &gateway)?
        };
        let has_token = |http: &HttpEntry| !plan.after.contains(&http.token);
        if gateway.http.as_ref().is_some_and(has_token) {
            let token = known.as_ref().and_then(Connection::token);
            http::check_token(home, client, token, args.profile.as_deref())?;
        }
        let moving = args
            .moves
            .then(|| Moving::add(task, &mut plan))
            .transpose()?;
        Ok(Self {
            plan,
            http: gateway.http,
            moving,
        })
    }

    /// Shows the difference, without secrets, and what the user has to know about it.
    fn show(&self) -> Result<(), Error> {
        let plan = &self.plan;
        if plan.changed {
            let before = plan.before.as_deref();
            let diff = difference(&plan.file, before, &plan.after, &|_| false)?;
            print::difference(&diff)?;
        }
        for note in &plan.notes {
            print::warn(note);
        }
        if !plan.changed {
            print::say(&format!(
                "{} already has the gateway in {}",
                plan.client.title(),
                plan.file.display()
            ));
        }
        if let Some(moving) = &self.moving {
            moving.show();
        }
        Ok(())
    }

    /// Changes the file.
    fn carry_out(&mut self, task: &Task<'_>) -> Result<(), Error> {
        let (home, plan) = (task.home, &mut self.plan);
        let new = self.http.as_ref().map(|http| &*http.token);
        let new = new.filter(|placeholder| plan.after.contains(placeholder));
        let profile = task.args.profile.as_deref();
        let issue = |_| token::issue_for(home, plan.client.name(), profile);
        let issued = new.map(issue).transpose()?;
        let (name, token) = issued.unzip();
        let applied = write(home, plan, new.zip(token.as_deref())).inspect_err(|_| {
            // The first error is the one to report.
            let _ = name.as_ref().map(|name| token::revoke(home, name));
        })?;
        if let Some(name) = name {
            print::say(&format!("created the token `{name}`"));
        }
        if let Some(file) = applied.written {
            print::say(&format!("changed {}", file.display()));
        }
        if let Some(backup) = applied.backup {
            print::say(&format!("a backup of the file is in {}", backup.display()));
        }
        Ok(())
    }

    /// Warns about the client after its file was changed.
    fn warn(&self, task: &Task<'_>) {
        if self.moving.is_none() {
            warn_of_doubles(task.home, self.plan.client, task.dirs);
        }
        if self.http.is_some() {
            http::warn_of_readers(&self.plan);
        }
    }

    fn advise(&self) {
        if let Some(moving) = &self.moving {
            moving.advise(self.plan.client);
        }
    }
}

/// Changes a file, with a new token in place of a text.
fn write(home: &Home, plan: &mut Plan, token: Option<(&str, &str)>) -> Result<Applied, Error> {
    if let Some((placeholder, token)) = token {
        plan.after = plan.after.replace(placeholder, token);
        let all = token::read(home)?;
        plan.token = token::find(&all, token).map(|token| token.id().to_string());
    }
    Ok(apply(plan, &backups::folder(home))?)
}

/// Tests if the entry of a client stays as it is: `--move` alone only removes servers.
fn is_kept(
    task: &Task<'_>,
    client: Client,
    connection: Option<&Connection>,
) -> Result<bool, Error> {
    let args = task.args;
    let Some(connection) =
        connection.filter(|_| args.moves && !args.http && args.profile.is_none())
    else {
        return Ok(false);
    };
    match connection.reach {
        Reach::Http(_) => {
            http::check_token(task.home, client, connection.token(), None)?;
            Ok(true)
        }
        Reach::Stdio(_) if connection.has_place_of(task.gateway) => Ok(true),
        Reach::Stdio(_) if args.all => {
            let message = "it is connected to another gateway";
            let hint = format!("to use this gateway, run `switchboard connect {client}`");
            Err(Error::new(message).hint(hint))
        }
        Reach::Stdio(_) => Ok(false),
    }
}

/// The stable path of this program: the one found in PATH, not the target of a link there, because an update
/// moves the target.
fn own_program() -> Result<PathBuf, Error> {
    let real = env::current_exe()
        .map_err(|error| Error::new(format!("cannot find the path of this program: {error}")))?;
    let Some(called) = env::args_os().next().map(PathBuf::from) else {
        return Ok(real);
    };
    let candidates: Vec<PathBuf> = if called.components().count() > 1 {
        vec![called]
    } else {
        let path = env::var_os("PATH").unwrap_or_default();
        env::split_paths(&path)
            .map(|dir| dir.join(&called))
            .collect()
    };
    let same = candidates
        .into_iter()
        .filter_map(|candidate| std::path::absolute(candidate).ok())
        .find(|candidate| is_same_file(candidate, &real));
    Ok(same.unwrap_or(real))
}

fn is_same_file(one: &Path, other: &Path) -> bool {
    let identity = |path: &Path| fs::metadata(path).map(|data| (data.dev(), data.ino()));
    matches!((identity(one), identity(other)), (Ok(one), Ok(other)) if one == other)
}
