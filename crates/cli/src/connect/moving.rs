//! `--move`: removes the servers that the gateway has from the file of a client.

use switchboard_client_configs::{
    Client, Connection, Dirs, Found, Imported, Plan, read, read_project,
};
use switchboard_config::{Home, shell_word};
use switchboard_terminal::{error::Error, print, visible::visible_line};
use switchboard_tokens::Right;

use super::{
    Task,
    same::{Known, Match},
};
use crate::{list::short_path, projects, token, words};

/// The servers that are removed from a client, and the ones that stay.
#[derive(Default)]
pub(super) struct Moving {
    client: &'static str,
    /// Their names in the client, with those in the gateway if they differ.
    removed: Vec<String>,
    /// One line for each server that stays.
    notes: Vec<String>,
    /// `true` if the gateway lacks one.
    is_lacking: bool,
}

impl Moving {
    /// Adds the removal of servers to a plan. The profile is that of a token that is not created yet.
    pub(super) fn add(task: &Task<'_>, plan: &mut Plan) -> Result<Self, Error> {
        let client = plan.client;
        let known = Known::read(task.home)?;
        let mut found = plan.servers(task.dirs)?;
        projects::share(&mut found, task.dirs);
        let mut moving = Self {
            client: client.title(),
            ..Self::default()
        };
        let scope = Scope::of(task, plan, &known)?;
        let mut chosen = Vec::new();
        for server in &found.servers {
            match decide(server, &found, &known, &scope) {
                Ok(name) => chosen.push((server, name)),
                Err(why) => {
                    moving.is_lacking |= why == LACKING;
                    moving.stays(&server.name, &why);
                }
            }
        }
        let servers: Vec<&Imported> = chosen.iter().map(|(server, _)| *server).collect();
        let doubled = plan.remove(&servers)?;
        for (Imported { name, .. }, known) in chosen {
            if doubled.contains(name) {
                moving.stays(name, "its name occurs twice in the file");
            } else if *name == known {
                moving.removed.push(name.clone());
            } else {
                moving.removed.push(format!("{name} (there `{known}`)"));
            }
        }
        for entry in found.skipped.iter().filter(|entry| !entry.is_gateway) {
            moving.stays(&entry.name, &entry.why);
        }
        moving.look_elsewhere(client, task.dirs, plan, &known);
        Ok(moving)
    }

    fn stays(&mut self, name: &str, why: &str) {
        self.notes
            .push(format!("`{name}` stays in {}: {why}", self.client));
    }

    /// Names the servers that the client starts because of other files.
    fn look_elsewhere(&mut self, client: Client, dirs: &Dirs, plan: &Plan, known: &Known) {
        // A damaged file there has no part in this change.
        let others = read(client, dirs).unwrap_or_default();
        let others = others.into_iter().filter(|found| found.file != plan.file);
        let of_projects = read_project(client, dirs).unwrap_or_default();
        for mut found in others.chain(of_projects) {
            projects::share(&mut found, dirs);
            let servers = found.servers.iter();
            for server in servers.filter(|server| known.find(server) != Match::Missing) {
                self.notes.push(format!(
                    "`{}` stays in {}: {}",
                    server.name,
                    short_path(&found.file.display().to_string()),
                    if found.is_project {
                        IN_PROJECT
                    } else {
                        "`connect` changes one file of a client"
                    }
                ));
            }
        }
    }

    /// Shows the servers that are removed, and the ones that stay.
    pub(super) fn show(&self) {
        // A name from the file must not look like a line of this program.
        for note in &self.notes {
            print::say(&format!("note: {}", visible_line(note)));
        }
        if self.removed.is_empty() {
            print::say(&format!(
                "there is no server to move from {} to the gateway",
                self.client
            ));
            return;
        }
        let count = words::count(self.removed.len() as u64, "server", "servers");
        let names = visible_line(&self.removed.join(", "));
        print::say(&format!(
            "the gateway has {count} of {}, to be removed there: {names}",
            self.client
        ));
    }

    /// Prints the hint on servers that the gateway lacks.
    pub(super) fn advise(&self, client: Client) {
        if self.is_lacking {
            print::hint(&format!(
                "add the servers that the gateway lacks with `switchboard import {client}`, then move them"
            ));
        }
    }
}

const LACKING: &str = "the gateway does not have it";
const IN_PROJECT: &str = "the file belongs to a project, which others may use";

/// The name of a server in the gateway, or the reason why it stays in the client.
fn decide(
    server: &Imported,
    found: &Found,
    known: &Known,
    scope: &Scope,
) -> Result<String, String> {
    let names = match known.find(server) {
        Match::Same(names) => names,
        Match::Other(why) => return Err(why),
        Match::Missing => return Err(LACKING.to_owned()),
    };
    if found.is_project {
        return Err(IN_PROJECT.to_owned());
    }
    if !server.is_enabled() {
        return Err("it is disabled there".to_owned());
    }
    if let Some(gap) = &server.gap {
        return Err(gap.clone());
    }
    let mut why = String::new();
    for name in names {
        match scope.obstacle(&name, known) {
            None => return Ok(name),
            Some(obstacle) if why.is_empty() => why = obstacle,
            Some(_) => {}
        }
    }
    Err(why)
}

/// The servers that the gateway shows to a client.
struct Scope {
    /// The reason why it shows none.
    nothing: Option<String>,
    profiles: Vec<String>,
    /// The lists of servers to which the entry or the token is limited.
    servers: Vec<Vec<String>>,
}

impl Scope {
    fn of(task: &Task<'_>, plan: &Plan, known: &Known) -> Result<Self, Error> {
        let title = plan.client.title();
        let connection = plan.connection()?;
        let mut scope = Self {
            nothing: None,
            profiles: Vec::new(),
            servers: Vec::new(),
        };
        let Some(connection) = connection else {
            scope.nothing = Some(format!("{title} does not use the gateway"));
            return Ok(scope);
        };
        if !connection.is_enabled {
            let name = &connection.name;
            scope.nothing = Some(format!("the gateway's entry `{name}` is disabled there"));
        }
        scope
            .profiles
            .extend(connection.profile().map(str::to_owned));
        let server = connection.server().map(str::to_owned);
        scope.servers.extend(server.map(|server| vec![server]));
        scope.limit_to_token(task, &connection)?;
        let missing = |profile: &&String| !known.config.profiles.contains_key(*profile);
        if let Some(profile) = scope.profiles.iter().find(missing) {
            scope.nothing = Some(format!("there is no profile `{profile}`"));
        }
        Ok(scope)
    }

    fn limit_to_token(&mut self, task: &Task<'_>, connection: &Connection) -> Result<(), Error> {
        let Some(token) = connection.token() else {
            return Ok(());
        };
        let all = token::read(task.home)?;
        let Some(token) = token::find(&all, token) else {
            // It is created after the user has agreed.
            self.profiles.extend(task.args.profile.clone());
            return Ok(());
        };
        self.profiles.extend(token.profile.clone());
        self.servers
            .extend(Some(token.servers.clone()).filter(|servers| !servers.is_empty()));
        if !token.rights.has(Right::Call) {
            self.nothing = Some("the token there does not permit calls".to_owned());
        }
        Ok(())
    }

    /// The reason why the client cannot use a server of the gateway.
    fn obstacle(&self, name: &str, known: &Known) -> Option<String> {
        if self.nothing.is_some() {
            return self.nothing.clone();
        }
        let server = known.config.servers.get(name)?;
        if !server.enabled {
            return Some(format!(
                "it is disabled in the gateway (`switchboard enable {}`)",
                shell_word(name)
            ));
        }
        if server.hold {
            return Some(
                "the gateway starts it only after you approve it (`switchboard trust`)".to_owned(),
            );
        }
        let profiles = self.profiles.iter();
        let mut profiles = profiles.filter(|profile| {
            let profile = known.config.profiles.get(*profile);
            profile.is_none_or(|profile| !profile.permits_server(name))
        });
        if let Some(profile) = profiles.next() {
            return Some(format!("the profile `{profile}` does not include it"));
        }
        let is_left_out = |servers: &&Vec<String>| !servers.iter().any(|server| server == name);
        let servers = self.servers.iter().find(is_left_out)?;
        Some(format!("the gateway shows it only: {}", servers.join(", ")))
    }
}

/// Warns about servers that the client would have twice: its own, and the same ones behind the gateway.
pub(super) fn warn_of_doubles(home: &Home, client: Client, dirs: &Dirs) {
    let Ok(known) = Known::read(home) else {
        return;
    };
    let mut found = read(client, dirs).unwrap_or_default();
    for found in &mut found {
        projects::share(found, dirs);
    }
    let servers = found.iter().flat_map(|found| &found.servers);
    let servers = servers.filter(|server| known.find(server) != Match::Missing);
    let mut doubles: Vec<_> = servers.map(|server| format!("`{}`", server.name)).collect();
    doubles.sort();
    doubles.dedup();
    if !doubles.is_empty() {
        print::warn(&format!(
            "{} also starts {} without the gateway",
            client.title(),
            visible_line(&doubles.join(", ")),
        ));
        print::hint(&format!(
            "`switchboard connect {client} --move` removes the servers there that the gateway has"
        ));
    }
}
