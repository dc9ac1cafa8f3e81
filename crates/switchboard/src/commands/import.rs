//! `switchboard import`: takes servers over from the configurations of clients.

use std::path::Path;

use clap::Args;
use serde_json::Value;
use switchboard_clients::{Client, Dirs, Error, Found, read, read_file};
use switchboard_config::{EditError, Home, add_server, remove_server};

use super::{
    agree::CHANGE,
    backups::{self, ImportNote},
    config_file::{ConfigFile, cannot},
    launching,
};
use crate::{failure::Failure, link::Link, print};

/// Take servers over from a client's configuration.
///
/// Without an argument, looks through the configurations of all known clients. Shows what would
/// change in switchboard.json and asks first. Names that are taken are skipped. A copy of
/// switchboard.json is kept, and --undo takes the import back.
///
/// Clients: claude-desktop, claude-code, cursor, vscode, windsurf, zed, opencode, codex, gemini.
#[derive(Debug, Args)]
pub(crate) struct Import {
    /// A client, or a file in the form of any of them
    #[arg(value_name = "CLIENT|FILE")]
    from: Option<String>,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
    /// Show what would change, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Take the last import back
    #[arg(long, conflicts_with_all = ["from", "dry_run"])]
    undo: bool,
}

pub(crate) fn run(home: &Home, args: &Import) -> Result<(), Failure> {
    if args.undo {
        return undo(home);
    }
    let found = find(args.from.as_deref())?;
    is_the_gateways(home)?;
    let file = ConfigFile::read(home)?;
    let known = file.config()?;
    let mut merge = Merge {
        text: file.text().to_owned(),
        added: Vec::new(),
        notes: Vec::new(),
    };
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
    print::difference(&switchboard_clients::unified(
        &file.path,
        file.text.as_deref(),
        &merge.text,
    ))?;
    if args.dry_run {
        return Ok(());
    }
    let names: Vec<_> = merge.added.iter().map(|(name, _)| name.clone()).collect();
    CHANGE.agree(args.yes, &format!("Add {}?", count(names.len())))?;
    let note = ImportNote {
        file: file.path.clone(),
        backup: None,
        after: merge.text.clone(),
        added: names.clone(),
    };
    let backup = backups::keep(home, file.text.as_deref(), note)?;
    file.write(&merge.text)?;
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

/// All that there is to take over.
fn find(from: Option<&str>) -> Result<Vec<Found>, Failure> {
    if let Some(from) = from {
        let unknown = match from.parse::<Client>() {
            Ok(client) => return Ok(read(client, &Dirs::current()?)?),
            Err(error) => error,
        };
        let path = Path::new(from);
        if path.exists() || from.contains(['/', '.']) {
            return Ok(vec![read_file(path)?]);
        }
        return Err(unknown.into());
    }
    let dirs = Dirs::current()?;
    let mut all = Vec::new();
    for client in Client::ALL {
        match read(client, &dirs) {
            Ok(mut found) => all.append(&mut found),
            Err(Error::NotConfigured { .. }) => {}
            // One client's broken file is no reason to leave out the others.
            Err(error) => {
                let failure = Failure::from(error);
                print::warn(&format!("{} is left out: {failure}", client.title()));
            }
        }
    }
    Ok(all)
}

/// The servers of several files on their way into one.
struct Merge {
    text: String,
    added: Vec<(String, Value)>,
    notes: Vec<String>,
}

impl Merge {
    fn take(&mut self, found: &Found, is_known: &dyn Fn(&str) -> bool) -> Result<(), Failure> {
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
            match add_server(&self.text, name, &server.entry) {
                Ok(text) => self.text = text,
                Err(error @ (EditError::Name(_) | EditError::Entry { .. })) => {
                    self.notes
                        .push(format!("{owner}: `{name}` is left out: {error}"));
                    continue;
                }
                Err(error) => return Err(error.into()),
            }
            self.added.push((name.clone(), server.entry.clone()));
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
        file.edit(|text| {
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
    backups::done(&path)?;
    reload(home)
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

fn count(servers: usize) -> String {
    match servers {
        1 => "1 server".to_owned(),
        many => format!("{many} servers"),
    }
}
