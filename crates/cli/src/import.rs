//! `switchboard import`: imports servers from the configurations of clients.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    env,
    path::Path,
};

use clap::Args;
use serde_json::{Value, json};
use switchboard_client_configs::{
    self as client_configs, Client, Dirs, Found, Imported, read, read_file, read_project,
};
use switchboard_config::{
    Config, EditError, Home, Memory, Place, Reference, Server, Transport, add_servers,
    check_server, remove_server, secret_parts,
};
use switchboard_terminal::visible::{escaped, folded, spelled, visible_line};
use switchboard_terminal::{
    error::Error,
    print::{self, shell_word},
};
use switchboard_wire::with_hint;

use super::{
    agree::CHANGE,
    backups::{self, ImportNote},
    config_file::ConfigFile,
    difference::difference,
    launching, learning, list, projects,
    secret::{
        Store,
        moving::{self, Mover, Secrets},
    },
    servers::{REPLACES_MEMORY, warn_of_plain_http},
    words,
};
use crate::{link::Link, place};

/// Import servers from a client's configuration.
///
/// Without an argument, reads your user-level configuration of every known client. Shows the changes to
/// switchboard.json and asks first. Servers whose names are taken are skipped. Values in these files that
/// look like secrets are moved to private files (see `switchboard secret`); on a terminal, the command asks
/// first. Each server is started once, so that its tools are known to the first client that connects. A
/// backup of switchboard.json is kept, and --undo reverts the import.
///
/// Clients: claude-desktop, claude-code, cursor, vscode, windsurf, zed, opencode, codex, gemini.
#[derive(Debug, Args)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an option of its own"
)]
pub struct Import {
    /// Client, or a file in the format of a client; a file in a repository implies --project
    #[arg(value_name = "CLIENT|FILE")]
    from: Option<String>,
    /// Include servers from the client files of the project in the current directory.
    ///
    /// Asks about each server; agents see its tools only after you approve them. Values are shown in full and
    /// are not moved. A reference to the secret NAME becomes ${secret:SERVER.NAME}. With --yes, skips servers
    /// that would receive a variable that looks like a secret.
    #[arg(long)]
    project: bool,
    /// Treatment of values in your own files that look like secrets
    #[arg(long, value_name = "HOW")]
    secrets: Option<Secrets>,
    /// Do not ask for confirmation
    #[arg(long, short)]
    yes: bool,
    /// Show the changes without making them
    #[arg(long)]
    dry_run: bool,
    /// Do not wait for the servers to start; their tools are listed later
    #[arg(long, alias = "no-start")]
    no_wait: bool,
    /// Undo the last import
    #[arg(long, conflicts_with_all = ["from", "dry_run", "project", "secrets"])]
    undo: bool,
}

/// Runs the command.
pub fn run(home: &Home, place: &place::Place, args: &Import) -> Result<(), Error> {
    if args.undo {
        return undo(home);
    }
    let mut found = find(args.from.as_deref(), args.project)?;
    let is_any = !found.is_empty();
    let store = Store::new(home);
    let file = ConfigFile::read(home)?;
    let known = file.config()?;
    keep_names_from(&mut found, &known);
    for found in found.iter_mut().filter(|found| found.is_project) {
        keep_secrets_from(found, &store);
        if args.yes {
            keep_variables_from(found);
        }
    }
    if !args.dry_run {
        agree_to_projects(&mut found, args.yes)?;
    }
    let mut merge = Merge::default();
    for found in &found {
        merge.take(found, &known)?;
    }
    let tell_notes = || {
        for note in &merge.notes {
            // A name from the file must not look like a line of this program.
            print::say(&format!("note: {}", visible_line(note)));
        }
    };
    if merge.added.is_empty() {
        tell_notes();
        return tell_nothing(is_any);
    }
    // Rejects a text that is too large before it is searched for secrets.
    let mut text = merge.added_to(file.text())?;
    let own = merge.added.iter().filter(|server| !server.is_foreign);
    let secrets = own.map(|server| moving::count(&server.entry)).sum();
    show(&file, &text, &merge)?;
    // Notes come right before the question, where a long diff does not push them off the screen.
    tell_notes();
    if secrets > 0 {
        let values = words::count(
            secrets as u64,
            "value looks like a secret; --secrets controls whether it is",
            "values look like secrets; --secrets controls whether they are",
        );
        print::say(&format!("{values} moved to a private file"));
    }
    if args.dry_run {
        return Ok(());
    }
    let names: Vec<_> = merge
        .added
        .iter()
        .map(|server| server.name.clone())
        .collect();
    CHANGE.agree(args.yes, &format!("Add {}?", count(names.len())))?;
    let mut mover = Mover::new(store.clone());
    if moving::decide(args.secrets, args.yes, secrets)? == Secrets::Move {
        let moved = merge.move_secrets(&mut mover);
        let moved = moved.and_then(|()| merge.added_to(file.text()));
        text = moved.inspect_err(|_| mover.take_back())?;
    }
    let note = ImportNote {
        file: file.path.clone(),
        backup: None,
        after: text.clone(),
        added: names.clone(),
        stored: stamps(&store, &mover.created),
    };
    // The note comes first: an import without one could not be undone.
    let kept = backups::keep(home, file.text.as_deref(), note)
        .and_then(|kept| {
            let written = file.write(&text).inspect_err(|_| kept.discard());
            written.map(|()| kept)
        })
        .inspect_err(|_| mover.take_back())?;
    for note in &mover.notes {
        print::say(note);
    }
    for server in &merge.added {
        warn_of_plain_http(&server.name, &server.entry);
    }
    print::say(&format!(
        "added {}: {}",
        count(names.len()),
        names.join(", ")
    ));
    if let Some(backup) = kept.backup {
        print::say(&format!("a backup of the file is in {}", backup.display()));
    }
    reload(home)?;
    let learnt = if args.no_wait {
        Ok(())
    } else {
        learning::learn(home, place, &names)
    };
    print::hint(
        "connect a client with `switchboard connect CLIENT --move`, which also removes these servers from its own \
         configuration",
    );
    learnt
}

/// Reports that there is nothing to import, and which files were searched.
fn tell_nothing(is_any: bool) -> Result<(), Error> {
    if is_any {
        print::say("there are no new servers to import");
        return Ok(());
    }
    print::say("no client has servers to import");
    let dirs = Dirs::current()?;
    let files = Client::ALL
        .iter()
        .flat_map(|client| client.config_files(&dirs));
    let files: Vec<_> = files
        .map(|file| list::short_path(&file.display().to_string()))
        .collect();
    print::hint(&format!(
        "import a file with `switchboard import FILE`, or add a server with `switchboard add`; these files were searched:\n  {}",
        files.join("\n  ")
    ));
    Ok(())
}

/// Finds all servers to import, adapted to the gateway.
fn find(from: Option<&str>, project: bool) -> Result<Vec<Found>, Error> {
    let dirs = Dirs::current()?;
    let mut found = read_files(from, &dirs, project)?;
    for found in &mut found {
        projects::share(found, &dirs);
    }
    Ok(found)
}

/// Reads the servers in the files that the user means.
fn read_files(from: Option<&str>, dirs: &Dirs, project: bool) -> Result<Vec<Found>, Error> {
    if let Some(from) = from {
        let unknown = match from.parse::<Client>() {
            Ok(client) => return of_client(client, dirs, project),
            Err(error) => error,
        };
        let path = Path::new(from);
        if path.exists() || from.contains(['/', '.']) {
            return Ok(vec![read_file(path, dirs)?]);
        }
        return Err(unknown.into());
    }
    // The user's own servers come first: a repository must not take the name of one.
    let (mut all, mut projects) = (Vec::new(), Vec::new());
    for client in Client::ALL {
        let add = |all: &mut Vec<Found>, found| match found {
            Ok(found) => all.extend(found),
            Err(client_configs::Error::NotConfigured { .. }) => {}
            // A broken file of one client does not affect the others.
            Err(error) => {
                let failure = Error::from(error);
                print::warn(&format!("skipped {}: {failure}", client.title()));
            }
        };
        add(&mut all, read(client, dirs));
        if project {
            add(&mut projects, read_project(client, dirs));
        }
    }
    all.append(&mut projects);
    Ok(all)
}

/// Reads the files of one client.
fn of_client(client: Client, dirs: &Dirs, project: bool) -> Result<Vec<Found>, Error> {
    let of_project = match read_project(client, dirs) {
        Ok(found) => found,
        Err(client_configs::Error::NotConfigured { .. }) => Vec::new(),
        Err(error) if project => return Err(error.into()),
        Err(_) => Vec::new(),
    };
    let mut all = match read(client, dirs) {
        Ok(found) => found,
        Err(client_configs::Error::NotConfigured { .. }) if project && !of_project.is_empty() => {
            Vec::new()
        }
        Err(error @ client_configs::Error::NotConfigured { .. }) if !of_project.is_empty() => {
            let failure = Error::new(with_hint(&error, error.hint()));
            return Err(failure.hint("use --project to import the servers of this directory"));
        }
        Err(error) => return Err(error.into()),
    };
    if project {
        all.extend(of_project);
    }
    Ok(all)
}

/// Skips servers of a repository that have the name of one of the user's servers, or of a built-in one:
/// clients and rules would mistake them for it. Names that differ only in case count as equal.
fn keep_names_from(found: &mut [Found], known: &Config) {
    let mut own: HashMap<String, (String, Option<Value>)> = HashMap::new();
    let mut names = known.clone();
    if cfg!(feature = "memory") {
        names = names.with_memory();
    }
    for name in names.servers.into_keys() {
        own.insert(name.to_lowercase(), (name, None));
    }
    for found in found.iter().filter(|found| !found.is_project) {
        for server in &found.servers {
            let of_client = (server.name.clone(), Some(server.entry.clone()));
            own.entry(server.name.to_lowercase()).or_insert(of_client);
        }
    }
    for found in found.iter_mut().filter(|found| found.is_project) {
        let notes = &mut found.notes;
        found.servers.retain(|server| {
            let name = &server.name;
            let Some((taken, entry)) = own.get(&name.to_lowercase()) else {
                return true;
            };
            if entry.as_ref() != Some(&server.entry) {
                let whose = if known.servers.contains_key(taken) || entry.is_some() {
                    "your server"
                } else {
                    "the built-in server"
                };
                notes.push(format!(
                    "skipped `{name}`: it has the name of {whose} `{taken}`; to use both, add it under another name \
                     with `switchboard add`"
                ));
            }
            false
        });
    }
}

/// Skips servers of a repository that would get an environment variable that looks like a secret: the user
/// has to agree to that.
fn keep_variables_from(found: &mut Found) {
    let notes = &mut found.notes;
    found.servers.retain(|server| {
        let variables = secret_variables(&alone(&server.name, &server.entry));
        if let Some(name) = variables.first() {
            notes.push(format!(
                "skipped `{}`: it would get the variable `{name}` of the gateway's environment, which looks like a \
                 secret; import it without --yes to decide",
                server.name
            ));
        }
        variables.is_empty()
    });
}

/// The environment variables that a server would get and that look like secrets, by name or by value.
fn secret_variables(config: &Config) -> Vec<String> {
    let is_secret =
        |name: &str, value: &str| !secret_parts(Place::Variable(name), value).is_empty();
    let references = config.servers.values().flat_map(Server::references);
    let names = references.filter_map(|reference| match reference {
        Reference::Variable(name) => Some(name),
        Reference::Secret(_) => None,
    });
    let secret = names.filter(|name| {
        is_secret(name, "a value") || env::var(name).is_ok_and(|value| is_secret(name, &value))
    });
    secret.map(str::to_owned).collect()
}

/// Skips servers of a repository that would get a secret that is already stored: it was stored for another
/// server.
fn keep_secrets_from(found: &mut Found, store: &Store) {
    let notes = &mut found.notes;
    found.servers.retain(|server| {
        let config = alone(&server.name, &server.entry);
        let references = config.servers.values().flat_map(Server::references);
        let known = references.into_iter().find_map(|reference| match reference {
            Reference::Secret(name) if store.has(name) => Some(name),
            _ => None,
        });
        if let Some(known) = known {
            notes.push(format!(
                "skipped `{}`: it would get the secret `{known}`, which is already stored; to allow that, add it \
                 with `switchboard add`",
                server.name
            ));
        }
        known.is_none()
    });
}

/// Asks for each server of a repository, and skips the ones that the user does not want. The others are added
/// such that nothing of them is shown before it is approved.
fn agree_to_projects(found: &mut [Found], yes: bool) -> Result<(), Error> {
    for found in found.iter_mut().filter(|found| found.is_project) {
        let file = found.file.display().to_string();
        let mut kept = Vec::new();
        for mut server in found.servers.drain(..) {
            describe(&mut server, &file);
            CHANGE.check(yes)?;
            let is_wanted = yes
                || print::confirm(&format!("Import `{}`?", server.name))
                    .map_err(|error| Error::new(format!("cannot ask on the terminal: {error}")))?;
            if is_wanted {
                kept.push(server);
            }
        }
        found.servers = kept;
    }
    Ok(())
}

/// Prints everything that a server of a repository starts, reaches and gets. None of it is a secret of the
/// user, and a masked value could hide code. The notes of the server are printed here, and not again.
fn describe(server: &mut Imported, file: &str) {
    let Imported {
        name, entry, notes, ..
    } = server;
    let config = alone(name, entry);
    // A line of the file must not look like a line of this program.
    let say = |text: String| print::say(&folded(&visible_line(&text)));
    say(format!(
        "`{name}` comes with this repository ({file}): {}",
        started(entry)
    ));
    if let Some(folder) = entry.get("cwd").and_then(Value::as_str) {
        say(format!("  cwd: {}", shell_word(folder)));
    }
    let remotes = config
        .servers
        .values()
        .filter_map(|server| match &server.transport {
            Transport::Remote(remote) => remote.disguised_host(),
            _ => None,
        });
    for host in remotes {
        say(format!("  host: {host}"));
    }
    for section in ["env", "headers"] {
        let pairs = entry.get(section).and_then(Value::as_object);
        for (n, (name, value)) in pairs.into_iter().flatten().enumerate() {
            if n == 0 {
                print::say(&format!("  {section}:"));
            }
            let value = value.as_str().unwrap_or_default();
            print::say(&format!("    {}: {}", spelled(name), spelled(value)));
        }
    }
    let references = config.servers.values().flat_map(Server::references);
    let references: Vec<_> = references.map(|reference| reference.to_string()).collect();
    if !references.is_empty() {
        say(format!("  uses: {}", references.join(", ")));
    }
    for name in secret_variables(&config) {
        say(format!(
            "  the variable `{name}` of the gateway's environment looks like a secret"
        ));
    }
    for note in notes.drain(..) {
        say(format!("  {note}"));
    }
}

/// The command line of an entry, quoted for a shell, or its URL.
fn started(entry: &Value) -> String {
    let text = |key: &str| entry.get(key).and_then(Value::as_str);
    let args = entry.get("args").and_then(Value::as_array);
    let args = args.into_iter().flatten().filter_map(Value::as_str);
    let words = text("command").into_iter().chain(args).map(shell_word);
    let words = text("url").map(str::to_owned).into_iter().chain(words);
    words.collect::<Vec<_>>().join(" ")
}

/// A configuration with this server only; empty if the entry is invalid.
pub(super) fn alone(name: &str, entry: &Value) -> Config {
    let text = json!({"mcpServers": {name: entry}}).to_string();
    switchboard_config::parse(&text, "").unwrap_or_default()
}

/// Shows the changes, without the user's secrets. Nothing in it is invisible or pushed off the screen.
fn show(file: &ConfigFile, after: &str, merge: &Merge) -> Result<(), Error> {
    let foreign: HashSet<_> = (merge.added.iter())
        .filter(|server| server.is_foreign)
        .map(|server| server.name.as_str())
        .collect();
    let before = file.text.as_deref();
    let is_foreign = |server: &str| foreign.contains(server);
    let diff = difference(&file.path, before, after, &is_foreign)?;
    let lines = diff.lines().map(|line| folded(&escaped(line)) + "\n");
    print::difference(&lines.collect::<String>())
}

/// The servers of several files, merged into one.
#[derive(Default)]
struct Merge {
    added: Vec<Added>,
    notes: Vec<String>,
}

struct Added {
    name: String,
    entry: Value,
    /// `true` if it comes with a repository.
    is_foreign: bool,
}

impl Merge {
    /// The text of a configuration, with the servers added.
    fn added_to(&self, text: &str) -> Result<String, Error> {
        let added = self.added.iter();
        let added = added.map(|server| (server.name.as_str(), &server.entry));
        Ok(add_servers(text, added)?)
    }

    /// Moves the secrets of the user's own servers. A value of a repository is public, and moving it to a
    /// file would hide it from readers of the configuration.
    fn move_secrets(&mut self, mover: &mut Mover) -> Result<(), Error> {
        for server in self.added.iter_mut().filter(|server| !server.is_foreign) {
            mover.take(&server.name, &mut server.entry)?;
        }
        Ok(())
    }

    fn take(&mut self, found: &Found, known: &Config) -> Result<(), Error> {
        let owner = found.client.map_or_else(
            || found.file.display().to_string(),
            |client| client.title().to_owned(),
        );
        let skipped = found.skipped.iter().map(ToString::to_string);
        for note in skipped.chain(found.notes.iter().cloned()) {
            self.notes.push(format!("{owner}: {note}"));
        }
        for server in &found.servers {
            let name = &server.name;
            if known.servers.contains_key(name) {
                self.notes.push(format!(
                    "skipped `{name}` from {owner}: a server with this name already exists"
                ));
                continue;
            }
            let mut entry = server.entry.clone();
            if found.is_project
                && let Some(entry) = entry.as_object_mut()
            {
                entry.insert("trust".to_owned(), "ask".into());
            }
            if let Some(added) = self.added.iter().find(|added| added.name == *name) {
                if without_trust(&added.entry) != without_trust(&entry) {
                    self.notes.push(format!(
                        "skipped `{name}` from {owner}: another client has a different server with this name"
                    ));
                }
                continue;
            }
            match check_server(name, &entry) {
                Ok(()) => {}
                Err(error @ (EditError::Name(_) | EditError::Entry { .. })) => {
                    let why = with_hint(&error, error.hint());
                    self.notes
                        .push(format!("skipped `{name}` from {owner}: {why}"));
                    continue;
                }
                Err(error) => return Err(error.into()),
            }
            self.notes
                .push(format!("`{name}` is from {}", found.file.display()));
            for server in alone(name, &entry).servers.values() {
                let hints = launching::import_notes(server);
                self.notes
                    .extend(hints.map(|hint| format!("{owner}: `{name}`: {hint}")));
            }
            self.added.push(Added {
                name: name.clone(),
                entry,
                is_foreign: found.is_project,
            });
            if name == Memory::NAME && cfg!(feature = "memory") && known.memory.enabled {
                self.notes
                    .push(format!("{owner}: `{name}`: {REPLACES_MEMORY}"));
            }
            for note in &server.notes {
                self.notes.push(format!("{owner}: `{name}`: {note}"));
            }
        }
        Ok(())
    }
}

/// The entry as its file has it, without the `trust` that the import adds.
fn without_trust(entry: &Value) -> Value {
    let mut entry = entry.clone();
    if let Some(members) = entry.as_object_mut() {
        members.remove("trust");
    }
    entry
}

fn undo(home: &Home) -> Result<(), Error> {
    let Some((path, note)) = backups::last_import(home)? else {
        return Err(Error::new("there is no import to undo"));
    };
    let file = ConfigFile::read(home)?;
    if file.path != note.file {
        return Err(
            Error::new(format!("the last import changed {}", note.file.display()))
                .hint("name that file with --config"),
        );
    }
    if file.text.as_deref() == Some(note.after.as_str()) {
        match backups::text_before(home, &note)? {
            Some(before) => file.write(&before)?,
            None => file.remove()?,
        }
        print::say(&format!(
            "restored {} to its state before the import",
            file.path.display()
        ));
    } else {
        let mut removed = Vec::new();
        ConfigFile::edit(home, |text| {
            let mut text = text.to_owned();
            for name in &note.added {
                match remove_server(&text, name) {
                    Ok(without) => text = without,
                    Err(EditError::Missing { .. }) => continue,
                    Err(error) => return Err(error),
                }
                removed.push(name.as_str());
            }
            Ok(text)
        })?;
        print::say(&format!(
            "{} was changed since the import; removed only the imported servers: {}",
            file.path.display(),
            if removed.is_empty() {
                "none are left".to_owned()
            } else {
                removed.join(", ")
            }
        ));
    }
    remove_unused(home, &note.stored)?;
    backups::done(&path)?;
    reload(home)
}

fn stamps(store: &Store, names: &[String]) -> BTreeMap<String, String> {
    let stamp = |name: &String| Some((name.clone(), store.stamp(name)?));
    names.iter().filter_map(stamp).collect()
}

/// Removes the secrets that an import stored, if no server uses them any more and they are unchanged.
fn remove_unused(home: &Home, stored: &BTreeMap<String, String>) -> Result<(), Error> {
    let used = ConfigFile::read(home)?.config()?.secrets_used();
    let store = Store::new(home);
    for (name, stamp) in stored.iter().filter(|(name, _)| !used.contains_key(*name)) {
        if store.stamp(name).as_ref() == Some(stamp) && store.remove(name)? {
            print::say(&format!("removed the secret `{name}`"));
        }
    }
    Ok(())
}

/// Reloads the configuration. A running gateway would see the change by itself, but the user wants to know
/// now if it is accepted.
fn reload(home: &Home) -> Result<(), Error> {
    if let Some(link) = Link::find_staying(home)? {
        link.post("/api/v1/config/reload", None)?;
    }
    Ok(())
}

fn count(servers: usize) -> String {
    words::count(servers as u64, "server", "servers")
}
