//! `switchboard import`: takes servers over from the configurations of clients.

use std::path::Path;

use clap::Args;
use serde_json::Value;
use switchboard_clients::{Client, Dirs, Error, Found, read, read_file, read_project};
use switchboard_config::{EditError, Home, add_server, remove_server};

use super::{
    agree::CHANGE,
    backups::{self, ImportNote},
    config_file::{ConfigFile, cannot},
    launching,
    secret::{
        Store,
        moving::{self, Mover, Secrets},
    },
    servers::warn_of_plain_http,
    shapes,
};
use crate::{failure::Failure, link::Link, print};

/// Take servers over from a client's configuration.
///
/// Without an argument, looks through your own configurations of all known clients. Shows what would
/// change in switchboard.json and asks first. Names that are taken are skipped. Values that look like
/// secrets are moved to `switchboard secret`; on a terminal you are asked first. A copy of
/// switchboard.json is kept, and --undo takes the import back.
///
/// Clients: claude-desktop, claude-code, cursor, vscode, windsurf, zed, opencode, codex, gemini.
#[derive(Debug, Args)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an option of its own"
)]
pub(crate) struct Import {
    /// A client, or a file in the form of any of them
    #[arg(value_name = "CLIENT|FILE")]
    from: Option<String>,
    /// Also take servers from the files of the current folder, which come with its repository; asks
    /// for each, and nothing of them is shown to agents before you approve it
    #[arg(long)]
    project: bool,
    /// Treatment of values that look like secrets
    #[arg(long, value_name = "HOW")]
    secrets: Option<Secrets>,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
    /// Show what would change, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Take the last import back
    #[arg(long, conflicts_with_all = ["from", "dry_run", "project", "secrets"])]
    undo: bool,
}

pub(crate) fn run(home: &Home, args: &Import) -> Result<(), Failure> {
    if args.undo {
        return undo(home);
    }
    let mut found = find(args.from.as_deref(), args.project)?;
    if !args.dry_run {
        agree_to_projects(&mut found, args.yes)?;
    }
    is_the_gateways(home)?;
    let file = ConfigFile::read(home)?;
    let known = file.config()?;
    let mut merge = Merge::of(file.text());
    for found in &found {
        merge.take(found, &|name| known.servers.contains_key(name))?;
    }
    for note in &merge.notes {
        print::say(&format!("note: {note}"));
    }
    if merge.added.is_empty() {
        print::say("there is nothing new to take over");
        return Ok(());
    }
    let secrets = merge
        .added
        .iter()
        .map(|(_, entry)| moving::count(entry))
        .sum();
    show(&file, &merge.text)?;
    if secrets > 0 {
        print::say(&format!("{} like secrets", values(secrets)));
    }
    if args.dry_run {
        return Ok(());
    }
    let names: Vec<_> = merge.added.iter().map(|(name, _)| name.clone()).collect();
    CHANGE.agree(args.yes, &format!("Add {}?", count(names.len())))?;
    let mut mover = Mover::new(Store::new(home));
    if moving::decide(args.secrets, args.yes, secrets)? == Secrets::Move {
        let moved = merge.move_secrets(file.text(), &mut mover);
        moved.inspect_err(|_| mover.take_back())?;
    }
    let note = ImportNote {
        file: file.path.clone(),
        backup: None,
        after: merge.text.clone(),
        added: names.clone(),
        secrets: mover.created.clone(),
    };
    let backup = backups::keep(home, file.text.as_deref(), note)
        .and_then(|backup| file.write(&merge.text).map(|()| backup))
        .inspect_err(|_| mover.take_back())?;
    for note in &mover.notes {
        print::say(note);
    }
    for (name, entry) in &merge.added {
        warn_of_plain_http(name, entry);
    }
    print::say(&format!(
        "added {}: {}",
        count(names.len()),
        names.join(", ")
    ));
    if let Some(backup) = backup {
        print::say(&format!("what the file was is in {}", backup.display()));
    }
    reload(home)?;
    print::hint("`switchboard connect CLIENT` puts the gateway into a client");
    Ok(())
}

/// A file with servers to take over.
struct Source {
    found: Found,
    /// It comes with the repository in the current folder.
    is_project: bool,
}

/// All that there is to take over.
fn find(from: Option<&str>, project: bool) -> Result<Vec<Source>, Failure> {
    let mine = |found: Vec<Found>| {
        found.into_iter().map(|found| Source {
            found,
            is_project: false,
        })
    };
    let theirs = |found: Vec<Found>| {
        found.into_iter().map(|found| Source {
            found,
            is_project: true,
        })
    };
    if let Some(from) = from {
        let unknown = match from.parse::<Client>() {
            Ok(client) => return of_client(client, project),
            Err(error) => error,
        };
        let path = Path::new(from);
        if path.exists() || from.contains(['/', '.']) {
            return Ok(mine(vec![read_file(path)?]).collect());
        }
        return Err(unknown.into());
    }
    let dirs = Dirs::current()?;
    let mut all = Vec::new();
    for client in Client::ALL {
        // One client's broken file is no reason to leave out the others.
        let left_out = |error| {
            let failure = Failure::from(error);
            print::warn(&format!("{} is left out: {failure}", client.title()));
        };
        match read(client, &dirs) {
            Ok(found) => all.extend(mine(found)),
            Err(Error::NotConfigured { .. }) => {}
            Err(error) => left_out(error),
        }
        if !project {
            continue;
        }
        match read_project(client, &dirs) {
            Ok(found) => all.extend(theirs(found)),
            Err(Error::NotConfigured { .. }) => {}
            Err(error) => left_out(error),
        }
    }
    Ok(all)
}

/// The files of one client.
fn of_client(client: Client, project: bool) -> Result<Vec<Source>, Failure> {
    let dirs = Dirs::current()?;
    let of_project = match read_project(client, &dirs) {
        Ok(found) => found,
        Err(Error::NotConfigured { .. }) => Vec::new(),
        Err(error) if project => return Err(error.into()),
        Err(_) => Vec::new(),
    };
    let mut all = Vec::new();
    match read(client, &dirs) {
        Ok(found) => all.extend(found.into_iter().map(|found| Source {
            found,
            is_project: false,
        })),
        Err(Error::NotConfigured { .. }) if project && !of_project.is_empty() => {}
        Err(error @ Error::NotConfigured { .. }) if !of_project.is_empty() => {
            let failure = Failure::new(error.to_string());
            return Err(failure.hint("this folder has one; --project takes its servers over"));
        }
        Err(error) => return Err(error.into()),
    }
    if project {
        all.extend(of_project.into_iter().map(|found| Source {
            found,
            is_project: true,
        }));
    }
    Ok(all)
}

/// Asks for each server of a repository, and leaves out those that are not wanted. The others are
/// added so that nothing of them is shown before it is approved.
fn agree_to_projects(sources: &mut [Source], yes: bool) -> Result<(), Failure> {
    for source in sources.iter_mut().filter(|source| source.is_project) {
        let file = source.found.file.display().to_string();
        let mut kept = Vec::new();
        for server in source.found.servers.drain(..) {
            print::say(&format!(
                "`{}` comes with this repository ({file}): {}",
                server.name,
                started(&server.name, &server.entry)
            ));
            CHANGE.check(yes)?;
            let is_wanted = yes
                || print::confirm(&format!("Take `{}` over?", server.name)).map_err(|error| {
                    Failure::new(format!("cannot ask on the terminal: {error}"))
                })?;
            if is_wanted {
                kept.push(server);
            }
        }
        source.found.servers = kept;
    }
    Ok(())
}

/// The program or address of an entry in one line, without secrets.
fn started(name: &str, entry: &Value) -> String {
    let text = |key: &str| entry.get(key).and_then(Value::as_str).unwrap_or_default();
    let args = entry.get("args").and_then(Value::as_array);
    let args = args.into_iter().flatten().filter_map(Value::as_str);
    let words = [text("command"), text("url")].into_iter().chain(args);
    let words: Vec<_> = words.filter(|word| !word.is_empty()).collect();
    let text = serde_json::json!({"mcpServers": {name: entry}}).to_string();
    let config = switchboard_config::parse(&text, "").unwrap_or_default();
    moving::hidden(&words.join(" "), &config.clear_secrets())
}

/// Shows what would change, without secrets.
fn show(file: &ConfigFile, after: &str) -> Result<(), Failure> {
    let diff = switchboard_clients::unified(&file.path, file.text.as_deref(), after);
    let config = switchboard_config::parse(after, "").unwrap_or_default();
    print::difference(&moving::hidden(&diff, &config.clear_secrets()))
}

/// The servers of several files on their way into one.
struct Merge {
    text: String,
    added: Vec<(String, Value)>,
    notes: Vec<String>,
}

impl Merge {
    fn of(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            added: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Begins again with the text from before, and adds the servers without their secrets.
    fn move_secrets(&mut self, before: &str, mover: &mut Mover) -> Result<(), Failure> {
        before.clone_into(&mut self.text);
        for (name, entry) in &mut self.added {
            mover.take(name, entry)?;
            self.text = add_server(&self.text, name, entry)?;
        }
        Ok(())
    }

    fn take(&mut self, source: &Source, is_known: &dyn Fn(&str) -> bool) -> Result<(), Failure> {
        let Source { found, is_project } = source;
        let owner = found.client.map_or_else(
            || found.file.display().to_string(),
            |client| client.title().to_owned(),
        );
        for note in &found.notes {
            self.notes.push(format!("{owner}: {note}"));
        }
        for server in &found.servers {
            let name = &server.name;
            if is_known(name) {
                self.notes.push(format!(
                    "{owner}: `{name}` is skipped, there is a server of that name"
                ));
                continue;
            }
            if let Some((_, entry)) = self.added.iter().find(|(added, _)| added == name) {
                if *entry != server.entry {
                    self.notes.push(format!(
                        "{owner}: `{name}` is skipped, another client has a different one of that name"
                    ));
                }
                continue;
            }
            let mut entry = server.entry.clone();
            if *is_project && let Some(entry) = entry.as_object_mut() {
                entry.insert("trust".to_owned(), "ask".into());
            }
            match add_server(&self.text, name, &entry) {
                Ok(text) => self.text = text,
                Err(error @ (EditError::Name(_) | EditError::Entry { .. })) => {
                    self.notes
                        .push(format!("{owner}: `{name}` is left out: {error}"));
                    continue;
                }
                Err(error) => return Err(error.into()),
            }
            self.added.push((name.clone(), entry));
            self.notes
                .push(format!("`{name}` is from {}", found.file.display()));
            let hints = launching::import_notes(&self.text, name);
            self.notes
                .extend(hints.map(|hint| format!("{owner}: `{name}`: {hint}")));
            for note in &server.notes {
                self.notes.push(format!("{owner}: `{name}`: {note}"));
            }
        }
        Ok(())
    }
}

fn undo(home: &Home) -> Result<(), Failure> {
    let Some((path, note)) = backups::last_import(home)? else {
        return Err(Failure::new("there is no import to undo"));
    };
    let file = ConfigFile::read(home)?;
    if file.path != note.file {
        return Err(
            Failure::new(format!("the last import went into {}", note.file.display()))
                .hint("give that file with --config"),
        );
    }
    if file.text.as_deref() == Some(note.after.as_str()) {
        match backups::text_before(home, &note)? {
            Some(before) => file.write(&before)?,
            None => {
                std::fs::remove_file(&file.path)
                    .map_err(|error| cannot("remove", &file.path, &error))?;
            }
        }
        print::say(&format!(
            "{} is as it was before the import",
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
            "{} has other changes since; only what was added was removed: {}",
            file.path.display(),
            if removed.is_empty() {
                "nothing is left of it".to_owned()
            } else {
                removed.join(", ")
            }
        ));
    }
    remove_unused(home, &note.secrets)?;
    backups::done(&path)?;
    reload(home)
}

/// Removes the secrets that an import stored and that nothing uses any more.
fn remove_unused(home: &Home, secrets: &[String]) -> Result<(), Failure> {
    let used = ConfigFile::read(home)?.config()?.secrets_used();
    let store = Store::new(home);
    for name in secrets.iter().filter(|name| !used.contains_key(*name)) {
        if store.remove(name)? {
            print::say(&format!("removed the secret `{name}`"));
        }
    }
    Ok(())
}

/// Refuses to change a file that the running gateway does not read.
fn is_the_gateways(home: &Home) -> Result<(), Failure> {
    let Some(link) = Link::find(home)? else {
        return Ok(());
    };
    let shown: Value = link.get("/api/v1/config")?;
    match shown.get("file").and_then(Value::as_str) {
        Some(file) if Path::new(file) != home.config_file() => Err(Failure::new(format!(
            "the running gateway does not read {} but {file}",
            home.config_file().display()
        ))
        .hint(format!("give --config {file}"))),
        _ => Ok(()),
    }
}

/// A running gateway sees the change by itself, but a person wants to know now whether it likes it.
fn reload(home: &Home) -> Result<(), Failure> {
    if let Some(link) = Link::find(home)? {
        link.post("/api/v1/config/reload", None)?;
    }
    Ok(())
}

fn values(count: usize) -> String {
    match count {
        1 => "1 value looks".to_owned(),
        many => format!("{many} values look"),
    }
}

fn count(servers: usize) -> String {
    shapes::count(servers as u64, "server", "servers")
}
