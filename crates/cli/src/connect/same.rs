//! The comparison of a client's servers with those of the gateway, by what starts or reaches them.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    path::{Path, PathBuf},
};

use switchboard_client_configs::Imported;
use switchboard_config::{
    CommandLine, Config, Home, Occasion, Remote, RemoteKind, ResolveError, Server, Transport,
    check_server,
};
use switchboard_terminal::error::Error;

use crate::{import::alone, launching};

/// The servers of the gateway, with their secrets in place: a client has the same values in plain text.
pub(super) struct Known {
    pub(super) config: Config,
    servers: BTreeMap<String, Result<Server, ResolveError>>,
    secrets: PathBuf,
}

/// The server of the gateway that matches one of a client.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Match {
    /// These start or reach the same. The one with the same name comes first.
    Same(Vec<String>),
    /// The one with the same name does not, for this reason.
    Other(String),
    /// There is none.
    Missing,
}

impl Known {
    pub(super) fn read(home: &Home) -> Result<Self, Error> {
        let config = Config::load(home.config_file())?;
        let secrets = home.secrets();
        let resolved = |(name, server): (&String, &Server)| {
            let resolved = resolved(name, server, &secrets);
            (name.clone(), resolved)
        };
        Ok(Self {
            servers: config.servers.iter().map(resolved).collect(),
            config,
            secrets,
        })
    }

    /// Finds a server of a client.
    pub(super) fn find(&self, server: &Imported) -> Match {
        let name = &server.name;
        let namesake = self.servers.get(name);
        let other = |why: String| namesake.map_or(Match::Missing, |_| Match::Other(why));
        if let Err(error) = check_server(name, &server.entry) {
            return other(error.to_string());
        }
        let config = alone(name, &server.entry);
        let Some(written) = config.servers.get(name) else {
            return other("its entry is invalid".to_owned());
        };
        let own = match resolved(name, written, &self.secrets) {
            Ok(own) => own,
            Err(error) => return other(error.to_string()),
        };
        let difference =
            |known: &Server| difference(&own, known).or_else(|| in_directory(written, known));
        let is_same = |known: &Result<Server, ResolveError>| {
            known
                .as_ref()
                .is_ok_and(|known| difference(known).is_none())
        };
        let same = self.servers.iter().filter(|(_, known)| is_same(known));
        let mut same: Vec<_> = same.map(|(known, _)| known.clone()).collect();
        same.sort_by_key(|known| known != name);
        if !same.is_empty() {
            return Match::Same(same);
        }
        match namesake {
            None => Match::Missing,
            Some(Err(error)) => Match::Other(error.to_string()),
            Some(Ok(known)) => {
                let difference = difference(known).unwrap_or_default();
                Match::Other(format!(
                    "the gateway's server of this name has {difference}"
                ))
            }
        }
    }
}

/// The server with its secrets in place. Variables are compared by name: the gateway may have other values, and so
/// is the project.
fn resolved(name: &str, server: &Server, secrets: &Path) -> Result<Server, ResolveError> {
    // No text of an entry contains U+0000, so a literal text is never taken for a variable.
    let variable = |name: &str| Some(OsString::from(format!("\0{name}\0")));
    let occasion = Occasion {
        project: Some("/\0project".into()),
        client: Some("client".into()),
    };
    let resolved = server.resolve(name, &occasion, secrets, &variable)?;
    Ok(resolved.value)
}

/// The first difference in what starts or reaches two servers. Values may be secrets, so it contains none.
fn difference(own: &Server, known: &Server) -> Option<String> {
    let plain = |text: &str| Some(text.to_owned());
    if let Some(found) = match (&own.transport, &known.transport) {
        (Transport::Command(own), Transport::Command(known)) => in_command(own, known),
        (Transport::Remote(own), Transport::Remote(known)) => in_address(own, known),
        _ => plain("another transport"),
    } {
        return Some(found);
    }
    // A client that hides tools must not get them back behind the gateway.
    let is_filtered = own.tools != Server::new(Transport::BuiltIn).tools;
    (is_filtered && own.tools != known.tools).then(|| "another selection of tools".to_owned())
}

fn in_command(own: &CommandLine, known: &CommandLine) -> Option<String> {
    let place = if own.command != known.command {
        "another command".to_owned()
    } else if own.args != known.args {
        "other arguments".to_owned()
    } else if own.cwd != known.cwd {
        "another directory".to_owned()
    } else {
        format!("another variable `{}`", in_map(&own.env, &known.env)?)
    };
    Some(place)
}

/// The client starts a program in the directory that it works in itself, and the gateway may not.
fn in_directory(own: &Server, known: &Server) -> Option<String> {
    let Transport::Command(line) = &own.transport else {
        return None;
    };
    let has_relative = launching::relative_place(line).is_some()
        || launching::relative_argument(line).is_some() && !known.runs_in_project();
    has_relative.then(|| "another directory for its relative paths".to_owned())
}

fn in_address(own: &Remote, known: &Remote) -> Option<String> {
    let in_lower_case = |headers: &BTreeMap<String, String>| {
        let headers = headers.iter();
        headers
            .map(|(name, value)| (name.to_lowercase(), value.clone()))
            .collect::<BTreeMap<_, _>>()
    };
    if own.url != known.url {
        return Some("another address".to_owned());
    }
    // `Auto` tries both transports.
    if own.kind != known.kind && known.kind != RemoteKind::Auto {
        return Some("another transport".to_owned());
    }
    let [own, known] = [&own.headers, &known.headers].map(in_lower_case);
    in_map(&own, &known).map(|name| format!("another header `{name}`"))
}

/// The first name with different values.
fn in_map<'a>(
    own: &'a BTreeMap<String, String>,
    known: &'a BTreeMap<String, String>,
) -> Option<&'a str> {
    let mut names = own.keys().chain(known.keys());
    let differs = |name: &&String| own.get(*name) != known.get(*name);
    names.find(differs).map(String::as_str)
}
