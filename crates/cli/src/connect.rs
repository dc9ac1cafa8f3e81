//! `switchboard connect`: adds the gateway to a client's configuration, and removes it again.

use std::{
    env, fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use clap::Args;
use switchboard_client_configs::{
    self as client_configs, Client, Dirs, GatewayEntry, Plan, Which, apply, plan_connect,
    plan_disconnect, undo,
};
use switchboard_config::{Config, Home};
use switchboard_host::stdio;
use switchboard_terminal::{
    error::Error,
    print::{self, Cell, Colour, Table},
};

use super::{agree::CHANGE, backups, difference::difference, list::short_path};
use crate::place::Place;

/// Add the gateway to a client's configuration.
///
/// Shows the change and asks first. The rest of the file stays exactly as it is; a backup is kept, and --undo
/// reverts the change. Without a client, lists all clients and which of them use the gateway.
///
/// Clients: claude-desktop, claude-code, cursor, vscode, windsurf, zed, opencode, codex, gemini.
#[derive(Debug, Args)]
pub struct Connect {
    /// Name of the client
    client: Option<String>,
    /// Do not ask for confirmation
    #[arg(long, short, requires = "client")]
    yes: bool,
    /// Show the change without making it
    #[arg(long, conflicts_with = "undo", requires = "client")]
    dry_run: bool,
    /// Undo the last change, or remove the gateway's entry
    #[arg(long, requires = "client")]
    undo: bool,
    /// Name of the gateway in the client
    #[arg(long, default_value = "switchboard")]
    name: String,
    /// Profile that the client is held to: it sees and calls only what the profile includes. Without this option,
    /// a client keeps its profile; to remove it, undo the connection first
    #[arg(
        long,
        value_name = "PROFILE",
        conflicts_with = "undo",
        requires = "client"
    )]
    profile: Option<String>,
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
    let Some(client) = &args.client else {
        return list(&dirs, &gateway);
    };
    let client: Client = client.parse()?;
    if args.undo {
        return disconnect(home, client, &dirs, &gateway, args);
    }
    let plan = plan_connect(client, &dirs, &gateway)?;
    if !plan.changed {
        notes(&plan);
        print::say(&format!(
            "{} already has the gateway in {}",
            client.title(),
            plan.file.display()
        ));
        return Ok(());
    }
    if carry_out(home, &plan, args)? {
        warn_of_doubles(home, client, &dirs);
        print::hint(&format!(
            "restart {} to use the gateway; to revert the change, run `switchboard connect {client} --undo`",
            client.title()
        ));
    }
    Ok(())
}

/// Lists all clients, and which of them use the gateway.
fn list(dirs: &Dirs, gateway: &GatewayEntry) -> Result<(), Error> {
    let mut table = Table::new(&["CLIENT", "STATE", "FILE"]).cut_path(2);
    for client in Client::ALL {
        // A client is connected if it has an entry to remove, with any view and profile.
        let (state, colour, file) = match plan_disconnect(client, dirs, gateway) {
            Ok(plan) if plan.changed => ("connected", Some(Colour::Green), plan.file),
            Ok(plan) if plan.file.exists() => ("not connected", None, plan.file),
            Ok(plan) => ("not found", Some(Colour::Dim), plan.file),
            Err(_) => {
                let files = client.config_files(dirs);
                let file = files.into_iter().next().unwrap_or_default();
                ("unreadable", Some(Colour::Red), file)
            }
        };
        table.row([
            client.name().to_owned().into(),
            Cell::coloured(state, colour),
            short_path(&file.display().to_string()).into(),
        ]);
    }
    table.print()?;
    print::hint("add the gateway to a client with `switchboard connect CLIENT`");
    Ok(())
}

/// Warns about servers that the client would have twice: its own, and the same ones behind the gateway.
fn warn_of_doubles(home: &Home, client: Client, dirs: &Dirs) {
    let Ok(config) = Config::load(home.config_file()) else {
        return;
    };
    let found = switchboard_client_configs::read(client, dirs).unwrap_or_default();
    let mut doubles: Vec<_> = found
        .iter()
        .flat_map(|found| &found.servers)
        .filter(|server| config.servers.contains_key(&server.name))
        .map(|server| format!("`{}`", server.name))
        .collect();
    doubles.sort();
    doubles.dedup();
    if !doubles.is_empty() {
        print::warn(&format!(
            "{} also starts {} without the gateway; remove {} there",
            client.title(),
            doubles.join(", "),
            if doubles.len() == 1 { "it" } else { "them" }
        ));
    }
}

fn disconnect(
    home: &Home,
    client: Client,
    dirs: &Dirs,
    gateway: &GatewayEntry,
    args: &Connect,
) -> Result<(), Error> {
    match undo(Which::Client(client), &backups::folder(home)) {
        Ok(undone) => {
            print::say(&undone.how.message(&undone.file));
            print::say(&format!("restart {}", client.title()));
            return Ok(());
        }
        // The user may have added the entry by hand.
        Err(client_configs::Error::NothingToUndo { .. }) => {}
        Err(error) => return Err(error.into()),
    }
    let plan = plan_disconnect(client, dirs, gateway)?;
    if !plan.changed {
        return Err(Error::new(format!(
            "there is nothing to undo: {} has no entry `{}`",
            plan.file.display(),
            args.name
        ))
        .hint("if the entry has another name, pass it with --name"));
    }
    if carry_out(home, &plan, args)? {
        print::say(&format!("restart {}", client.title()));
    }
    Ok(())
}

/// Shows the plan, asks, and carries it out. Returns `true` if it was carried out.
fn carry_out(home: &Home, plan: &Plan, args: &Connect) -> Result<bool, Error> {
    let before = plan.before.as_deref();
    let diff = difference(&plan.file, before, &plan.after, &|_| false)?;
    print::difference(&diff)?;
    notes(plan);
    if args.dry_run {
        return Ok(false);
    }
    CHANGE.agree(args.yes, &format!("Change {}?", plan.file.display()))?;
    let applied = apply(plan, &backups::folder(home))?;
    if let Some(file) = applied.written {
        print::say(&format!("changed {}", file.display()));
    }
    if let Some(backup) = applied.backup {
        print::say(&format!("a backup of the file is in {}", backup.display()));
    }
    Ok(true)
}

fn notes(plan: &Plan) {
    for note in &plan.notes {
        print::warn(note);
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
