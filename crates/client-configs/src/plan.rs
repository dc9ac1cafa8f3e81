//! Plans the changes to a client's file.

use std::fmt;
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
    /// The address and the token, if the client connects over HTTP and starts no program.
    pub http: Option<HttpEntry>,
}

/// The address of the gateway, and the token for a client.
#[derive(Clone, PartialEq, Eq)]
pub struct HttpEntry {
    /// The address, such as `http://127.0.0.1:7777/mcp`.
    pub url: String,
    /// The token.
    pub token: String,
}

/// Without the token.
impl fmt::Debug for HttpEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpEntry")
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}

impl GatewayEntry {
    /// An entry without further arguments.
    pub fn new(name: impl Into<String>, program: impl Into<PathBuf>) -> Self {
        Self {
            name: name.into(),
            program: program.into(),
            args: Vec::new(),
            http: None,
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

    /// The members of its entry for a client.
    fn members(&self, client: Client) -> Result<Vec<(&'static str, Value)>, Error> {
        let (program, args) = self.words()?;
        match &self.http {
            None => Ok(client.entry(program, &args)),
            Some(http) => client
                .http_entry(&http.url, &http.token)
                .ok_or(Error::NoHttp { client }),
        }
    }

    /// Tests if an entry is this gateway, possibly with other arguments or from another location.
    pub(crate) fn is(&self, imported: &Imported) -> bool {
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
    /// The ID of the token that was created for the entry. It is recorded for [`undo`](crate::undo).
    pub token: Option<String>,
    pub(crate) action: Action,
    pub(crate) gateway: GatewayEntry,
    /// The places of the servers that are removed.
    pub(crate) moved: Vec<Vec<String>>,
}

/// The purpose of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Action {
    Connect,
    Disconnect,
    /// Servers are removed from a client that has the gateway's entry.
    Move,
}

/// Plans how to add the gateway to a client's configuration. In an existing entry, the program and the
/// arguments are updated, and a timeout for tools is added if it has none.
pub fn plan_connect(client: Client, dirs: &Dirs, gateway: &GatewayEntry) -> Result<Plan, Error> {
    let mut missing = gateway.members(client)?;
    let file = target(client, dirs);
    let before = files::read(&file)?;
    let text = before.as_deref().unwrap_or("");
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
        let over_http = imported.as_ref().is_ok_and(|known| known.token().is_some());
        if over_http != gateway.http.is_some() {
            return Err(Error::OtherTransport { client, over_http });
        }
        let known = imported.ok().and_then(|imported| profile_of(&imported));
        if let Some(profile) = known.filter(|_| !gateway.args.iter().any(|arg| arg == PROFILE)) {
            // A client does not get more to see by accident.
            notes.push(format!("the profile `{profile}` is kept"));
            let mut kept = gateway.clone();
            kept.args.extend([PROFILE.to_owned(), profile]);
            missing = kept.members(client)?;
        }
        // A client keeps its token.
        let is_token = |key: &str| over_http && key.ends_with("headers");
        missing.retain(|(key, wanted)| !is_token(key) && !is_settled(key, wanted, &value));
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
    let place = client.place(file, text, &name)?;
    client.remove(file, text, &place).map(Some)
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
        let mut plan = Self {
            client,
            file,
            before,
            after: String::new(),
            diff: String::new(),
            changed: false,
            notes: Vec::new(),
            token: None,
            action,
            gateway: gateway.clone(),
            moved: Vec::new(),
        };
        plan.write(after);
        plan
    }

    /// Replaces the new text.
    fn write(&mut self, after: String) {
        let before = self.before.as_deref();
        self.changed = after != before.unwrap_or("");
        self.diff = if self.changed {
            diff::unified(&self.file, before, &after)
        } else {
            String::new()
        };
        self.after = after;
    }

    /// Adds the removal of servers, which [`servers`](Self::servers) has returned. Returns the names of the servers that
    /// have to stay, because the removal of their text would change other entries: their name occurs twice.
    pub fn remove(&mut self, servers: &[&Imported]) -> Result<Vec<String>, Error> {
        let mut stay = Vec::new();
        let mut text = self.after.clone();
        let entries = |text: &str| self.client.entries(&self.file, text);
        let mut moved = Vec::new();
        for server in servers {
            let mut after = text.clone();
            let mut expected = entries(&text)?;
            expected.retain(|(place, _)| !server.places.contains(place));
            for place in &server.places {
                after = self.client.remove(&self.file, &after, place)?;
            }
            if entries(&after)? == expected {
                text = after;
                moved.extend(server.places.iter().cloned());
            } else {
                stay.push(server.name.clone());
            }
        }
        if !self.changed {
            self.action = Action::Move;
        }
        self.moved.extend(moved);
        self.write(text);
        Ok(stay)
    }
}

/// Plans no change yet, for a client that has the gateway's entry.
pub fn plan_unchanged(client: Client, dirs: &Dirs, gateway: &GatewayEntry) -> Result<Plan, Error> {
    let file = target(client, dirs);
    let before = files::read(&file)?;
    let after = before.clone().unwrap_or_default();
    Ok(Plan::new(
        client,
        file,
        before,
        after,
        Action::Move,
        gateway,
    ))
}

/// The option that holds a client to a profile.
const PROFILE: &str = "--profile";

/// The profile in the arguments of an entry.
fn profile_of(imported: &Imported) -> Option<String> {
    let (_, args) = imported.command()?;
    option(&args, PROFILE).map(str::to_owned)
}

/// The value of an option in arguments, as `NAME VALUE` or `NAME=VALUE`.
pub(crate) fn option<'a>(args: &'a [impl AsRef<str>], name: &str) -> Option<&'a str> {
    args.iter()
        .enumerate()
        .find_map(|(at, arg)| match arg.as_ref().strip_prefix(name)? {
            "" => args.get(at + 1).map(AsRef::as_ref),
            rest => rest.strip_prefix('='),
        })
}

/// Tests if a member needs no change. The user may have disabled the entry; that choice is kept.
fn is_settled(key: &str, wanted: &Value, entry: &Value) -> bool {
    if let Some(known) = entry.get(key) {
        return known == wanted || key == "enabled";
    }
    let reach = ["command", "args", "url", "httpUrl", "serverUrl"];
    !reach.contains(&key) && reach.iter().any(|known| entry.get(known).is_some())
}

/// The user's own file: the first that exists, or else the first whose directory exists.
pub(crate) fn target(client: Client, dirs: &Dirs) -> PathBuf {
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
