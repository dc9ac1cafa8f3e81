//! Plans the changes to a client's file.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::client::Client;
use crate::error::Error;
use crate::import::{Imported, import};
use crate::locations::{self, Dirs};
use crate::{diff, files};

/// The gateway's entry: a program that serves on its standard input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatewayEntry {
    /// The name of the entry.
    pub name: String,
    /// Absolute path of the program, since clients start it from any directory.
    pub program: PathBuf,
    /// Arguments after `stdio`, such as `--home`.
    pub args: Vec<String>,
}

impl GatewayEntry {
    /// An entry without further arguments.
    pub fn new(name: impl Into<String>, program: impl Into<PathBuf>) -> Self {
        Self {
            name: name.into(),
            program: program.into(),
            args: Vec::new(),
        }
    }

    /// The program and its arguments as text, if they can be written to a file.
    fn words(&self) -> Result<(&str, Vec<String>), Error> {
        let refuse = |why: &str| {
            Err(Error::Gateway {
                why: why.to_owned(),
            })
        };
        let Some(program) = self.program.to_str() else {
            return refuse("the path of the program is not UTF-8 text");
        };
        if !self.program.is_absolute() {
            return refuse("the path of the program must be absolute");
        }
        if self.name.is_empty() || self.name.len() > 64 {
            return refuse("its name must have 1 to 64 characters");
        }
        let allowed = |letter: char| letter.is_ascii_alphanumeric() || "_-.".contains(letter);
        if !self.name.chars().all(allowed) {
            return refuse("its name may contain only letters, digits, `_`, `-` and `.`");
        }
        let stdio = std::iter::once("stdio".to_owned());
        Ok((program, stdio.chain(self.args.iter().cloned()).collect()))
    }

    /// Tests if an entry is this gateway, possibly with other arguments or from another location.
    fn is(&self, imported: &Imported) -> bool {
        imported.is_gateway()
            || imported.command().is_some_and(|(program, args)| {
                Path::new(program) == self.program && args.contains(&"stdio")
            })
    }
}

/// The changes that [`apply`](crate::apply) makes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The client that the file belongs to.
    pub client: Client,
    /// The file.
    pub file: PathBuf,
    /// The current text; `None` if the file does not exist.
    pub before: Option<String>,
    /// The new text.
    pub after: String,
    /// The unified diff. Its context lines are copied from the file and may contain keys.
    pub diff: String,
    /// `true` if there is anything to do.
    pub changed: bool,
    /// Notes for the user.
    pub notes: Vec<String>,
    pub(crate) action: Action,
    pub(crate) gateway: GatewayEntry,
}

/// The purpose of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Action {
    Connect,
    Disconnect,
}

/// Plans how to add the gateway to a client's configuration. In an existing entry, the program and the
/// arguments are updated, and a timeout for tools is added if it has none.
pub fn plan_connect(client: Client, dirs: &Dirs, gateway: &GatewayEntry) -> Result<Plan, Error> {
    let (program, mut args) = gateway.words()?;
    let file = target(client, dirs);
    let before = files::read(&file)?;
    let text = before.as_deref().unwrap_or("");
    let mut missing = client.entry(program, &args);
    let timeout = client.tool_timeout(&file, text)?;
    let mut notes = Vec::new();
    let mut has_timeout = false;
    for (name, value) in client.servers(&file, text)? {
        let imported = import(Some(client), None, &name, &value);
        let is_gateway = imported.as_ref().is_ok_and(|imported| gateway.is(imported));
        if name != gateway.name {
            if is_gateway {
                notes.push(format!("the gateway is also configured as `{name}`"));
            }
            continue;
        }
        if !is_gateway {
            return Err(taken(&file, name, imported.ok().as_ref()));
        }
        let known = imported.ok().and_then(|imported| profile_of(&imported));
        if let Some(profile) = known.filter(|_| !args.iter().any(|arg| arg == PROFILE)) {
            // A client does not get more to see by accident.
            notes.push(format!("the profile `{profile}` is kept"));
            args.extend([PROFILE.to_owned(), profile]);
            missing = client.entry(program, &args);
        }
        missing.retain(|(key, wanted)| !is_settled(key, wanted, &value));
        // An existing timeout belongs to the user.
        has_timeout = (timeout.iter()).any(|(key, _)| value.get(key).is_some());
    }
    missing.extend(timeout.filter(|_| !has_timeout));
    let after = if missing.is_empty() {
        text.to_owned()
    } else {
        client.set(&file, text, &gateway.name, &missing)?
    };
    let plan = Plan::new(client, file, before, after, Action::Connect, gateway);
    Ok(Plan { notes, ..plan })
}

/// Plans how to remove the gateway from a client's configuration.
pub fn plan_disconnect(client: Client, dirs: &Dirs, gateway: &GatewayEntry) -> Result<Plan, Error> {
    let file = target(client, dirs);
    let before = files::read(&file)?;
    let text = before.as_deref().unwrap_or("");
    let after = without_gateway(client, &file, text, gateway)?.unwrap_or_else(|| text.to_owned());
    Ok(Plan::new(
        client,
        file,
        before,
        after,
        Action::Disconnect,
        gateway,
    ))
}

/// Removes the gateway's entry from a text; `None` if it has none.
pub(crate) fn without_gateway(
    client: Client,
    file: &Path,
    text: &str,
    gateway: &GatewayEntry,
) -> Result<Option<String>, Error> {
    let servers = client.servers(file, text)?;
    let Some((name, value)) = servers.into_iter().find(|(name, _)| *name == gateway.name) else {
        return Ok(None);
    };
    let imported = import(Some(client), None, &name, &value).ok();
    if !imported
        .as_ref()
        .is_some_and(|imported| gateway.is(imported))
    {
        return Err(taken(file, name, imported.as_ref()));
    }
    client.remove(file, text, &name).map(Some)
}

impl Plan {
    fn new(
        client: Client,
        file: PathBuf,
        before: Option<String>,
        after: String,
        action: Action,
        gateway: &GatewayEntry,
    ) -> Self {
        let changed = after != before.as_deref().unwrap_or("");
        let diff = if changed {
            diff::unified(&file, before.as_deref(), &after)
        } else {
            String::new()
        };
        Self {
            client,
            file,
            before,
            after,
            diff,
            changed,
            notes: Vec::new(),
            action,
            gateway: gateway.clone(),
        }
    }
}

/// The option that holds a client to a profile.
const PROFILE: &str = "--profile";

/// The profile in the arguments of an entry.
fn profile_of(imported: &Imported) -> Option<String> {
    let (_, args) = imported.command()?;
    args.iter().enumerate().find_map(|(at, arg)| {
        let profile = match arg.strip_prefix(PROFILE)? {
            "" => args.get(at + 1)?,
            rest => rest.strip_prefix('=')?,
        };
        Some(profile.to_owned())
    })
}

/// Tests if a member needs no change. The user may have disabled the entry; that choice is kept.
fn is_settled(key: &str, wanted: &Value, entry: &Value) -> bool {
    match entry.get(key) {
        Some(known) => known == wanted || key == "enabled",
        None => key != "command" && key != "args" && entry.get("command").is_some(),
    }
}

/// The user's own file: the first that exists, or else the first whose directory exists.
fn target(client: Client, dirs: &Dirs) -> PathBuf {
    let candidates = locations::of_the_user(client, dirs);
    let has_folder = |file: &&PathBuf| file.parent().is_some_and(Path::is_dir);
    let best = candidates
        .iter()
        .find(|file| file.symlink_metadata().is_ok())
        .or_else(|| candidates.iter().find(has_folder))
        .or_else(|| candidates.first());
    best.cloned().unwrap_or_default()
}

fn taken(file: &Path, name: String, holder: Option<&Imported>) -> Error {
    let holder = match holder {
        None => "its entry is invalid".to_owned(),
        Some(holder) => match (holder.command(), holder.entry.get("url")) {
            (Some((program, _)), _) => format!("it starts {program}"),
            (None, Some(url)) => {
                // The part after the path may contain a key.
                let url = url.as_str().unwrap_or_default();
                format!(
                    "it connects to {}",
                    url.split(['?', '#']).next().unwrap_or_default()
                )
            }
            (None, None) => "it has neither `command` nor `url`".to_owned(),
        },
    };
    Error::NameTaken {
        file: file.to_owned(),
        name,
        holder,
    }
}
