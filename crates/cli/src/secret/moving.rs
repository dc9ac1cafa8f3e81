//! Moves values that look like secrets from an entry to files of their own.

use std::io::{self, IsTerminal as _};

use clap::ValueEnum;
use serde_json::{Map, Value};
use switchboard_config::{Place, secret_parts};
use switchboard_terminal::{error::Error, print};

use super::store::Store;

/// The treatment of values that look like secrets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in super::super) enum Secrets {
    /// Store each in a file of its own and write ${secret:NAME} in its place
    Move,
    /// Leave them in switchboard.json, which then only you can read
    Keep,
}

/// Moves values, and records the files that it created, so that they can be removed again.
#[derive(Debug)]
pub(in super::super) struct Mover {
    store: Store,
    /// The secrets that were stored.
    pub(in super::super) created: Vec<String>,
    /// One line for each value that was moved.
    pub(in super::super) notes: Vec<String>,
}

impl Mover {
    pub(in super::super) fn new(store: Store) -> Self {
        Self {
            store,
            created: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Moves the values of one server.
    pub(in super::super) fn take(&mut self, server: &str, entry: &mut Value) -> Result<(), Error> {
        let Some(entry) = entry.as_object_mut() else {
            return Ok(());
        };
        let mut failed = None;
        each(entry, &mut |name, text| {
            let value = text.replace("$${", "${");
            // A value that contains references stays where it is.
            if failed.is_some() || text.replace("$${", "").contains("${") || value.trim() != value {
                return None;
            }
            match self.store.put(&format!("{server}-{name}"), &value) {
                Ok((secret, created)) => {
                    self.notes.push(format!(
                        "`{server}`: moved {name} ({}) to the secret `{secret}`",
                        masked(&value)
                    ));
                    if created {
                        self.created.push(secret.clone());
                    }
                    Some(format!("${{secret:{secret}}}"))
                }
                Err(error) => {
                    failed = Some(error);
                    None
                }
            }
        });
        failed.map_or(Ok(()), Err)
    }

    /// Removes the files that were created, because the change they were created for did not happen.
    pub(in super::super) fn take_back(&self) {
        for name in &self.created {
            // The first failure is the one to report; a leftover secret is still private.
            let _ = self.store.remove(name);
        }
    }
}

/// The number of values in an entry that look like secrets.
pub(in super::super) fn count(entry: &Value) -> usize {
    let mut found = 0;
    if let Some(entry) = entry.as_object() {
        each(&mut entry.clone(), &mut |_, _| {
            found += 1;
            None
        });
    }
    found
}

/// Decides on values that look like secrets: by the option, else by asking the user on a terminal, else they
/// are moved.
pub(in super::super) fn decide(
    option: Option<Secrets>,
    yes: bool,
    found: usize,
) -> Result<Secrets, Error> {
    if let Some(option) = option {
        return Ok(option);
    }
    if found == 0 || yes || !io::stdin().is_terminal() {
        return Ok(Secrets::Move);
    }
    let question = match found {
        1 => "Move 1 value that looks like a secret to a private file?".to_owned(),
        many => format!("Move {many} values that look like secrets to private files?"),
    };
    let agreed = print::confirm_unless_no(&question)
        .map_err(|error| Error::new(format!("cannot ask on the terminal: {error}")))?;
    Ok(if agreed { Secrets::Move } else { Secrets::Keep })
}

/// A secret in a form that may be printed.
pub(in super::super) fn masked(value: &str) -> String {
    match value.chars().count() {
        length @ 20.. => {
            let start: String = value.chars().take(4).collect();
            format!("{start}…, {length} characters")
        }
        length => format!("{length} characters"),
    }
}

/// Calls `replacement` with the name and the text of each value that looks like a secret, and stores what it
/// returns.
fn each(entry: &mut Map<String, Value>, replacement: &mut dyn FnMut(&str, &str) -> Option<String>) {
    let mut replace = |place: Place<'_>, text: &mut Value| {
        let Some(before) = text.as_str() else {
            return;
        };
        let mut after = before.to_owned();
        // From the end, so that earlier positions stay valid.
        for part in secret_parts(place, before).into_iter().rev() {
            let name = name_of(place, &before[..part.start]);
            if let Some(new) = replacement(name, &before[part.clone()]) {
                after.replace_range(part, &new);
            }
        }
        *text = after.into();
    };
    for section in ["env", "headers"] {
        let Some(Value::Object(pairs)) = entry.get_mut(section) else {
            continue;
        };
        for (name, text) in pairs {
            let place = match section {
                "env" => Place::Variable(name),
                _ => Place::Header(name),
            };
            replace(place, text);
        }
    }
    if let Some(url) = entry.get_mut("url") {
        replace(Place::Address, url);
    }
    let mut before = String::new();
    let args = entry.get_mut("args").and_then(Value::as_array_mut);
    for arg in args.into_iter().flatten() {
        let given = arg.as_str().unwrap_or_default().to_owned();
        replace(Place::Argument(&before), arg);
        before = given;
    }
}

/// The name for a secret, given the text before it.
fn name_of<'a>(place: Place<'a>, start: &'a str) -> &'a str {
    match place {
        Place::Variable(name) | Place::Header(name) => name,
        Place::Address => "url",
        Place::Argument(before) => {
            let name = start.strip_suffix('=').unwrap_or(before);
            match name.trim_start_matches('-') {
                "" => "arg",
                name => name,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn swapped(mut entry: Value) -> Value {
        each(entry.as_object_mut().unwrap(), &mut |name, text| {
            Some(format!("<{name}:{}>", text.len()))
        });
        entry
    }

    #[test]
    fn secrets_are_found_in_every_place() {
        let entry = json!({
            "command": "x",
            "args": ["--api-key=abcdef", "--token", "abcdef", "-y", "ghp_0123456789abcdef0123", "/data"],
            "env": {"API_KEY": "abcdef", "TZ": "UTC", "TOKEN": "${env:TOKEN}"},
            "headers": {"Authorization": "Bearer abcdef"},
            "url": "https://a/?key=abcdef",
        });
        assert_eq!(
            swapped(entry),
            json!({
                "command": "x",
                "args": ["--api-key=<api-key:6>", "--token", "<token:6>", "-y", "<y:24>", "/data"],
                "env": {"API_KEY": "<API_KEY:6>", "TZ": "UTC", "TOKEN": "${env:TOKEN}"},
                "headers": {"Authorization": "Bearer <Authorization:6>"},
                "url": "https://a/?key=<url:6>",
            })
        );
    }
}
