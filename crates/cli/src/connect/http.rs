//! Connections over HTTP, with a token for the client.

use std::{
    fs,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    os::unix::fs::MetadataExt as _,
    path::Path,
    time::SystemTime,
};

use switchboard_client_configs::{Client, Dirs, HttpEntry, Plan};
use switchboard_config::{Config, Home, shell_word};
use switchboard_rest::status::Status;
use switchboard_terminal::{error::Error, print};

use crate::{link::Link, token};

/// The address of the gateway: of the one that runs, or else the configured one.
pub(super) fn address(home: &Home) -> Result<SocketAddr, Error> {
    let configured = Config::load(home.config_file())?.listen_address();
    if configured.port() == 0 {
        let message = "`listen` is port 0, so the gateway has another address at each start";
        return Err(Error::new(message).hint("set `listen` to a fixed port"));
    }
    let running = match Link::find(home)? {
        Some(link) => link.get::<Status>("/api/v1/status")?.listen,
        None => None,
    };
    let running = running.and_then(|address| address.parse::<SocketAddr>().ok());
    let mut address = running.unwrap_or(configured);
    if address.ip().is_unspecified() {
        address.set_ip(match address {
            SocketAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        });
    }
    Ok(address)
}

/// The entry with a text in place of the token, which is created once the user has agreed. The text is in none of the
/// client's files, so that nothing else is replaced.
pub(super) fn placeholder(address: SocketAddr, client: Client, dirs: &Dirs) -> HttpEntry {
    let files = client.config_files(dirs);
    let texts: Vec<_> = files
        .iter()
        .filter_map(|file| fs::read_to_string(file).ok())
        .collect();
    let is_free = |token: &String| !texts.iter().any(|text| text.contains(token));
    let mut tokens = (0_u64..).map(|number| format!("swb_new-token-{number}"));
    HttpEntry {
        url: format!("http://{address}/mcp"),
        // A file is finite, so one of the texts is not in it.
        token: tokens.find(is_free).unwrap_or_default(),
    }
}

/// Checks that the token of a connected client is valid and held to the profile, if one is named.
pub(super) fn check_token(
    home: &Home,
    client: Client,
    token: Option<&str>,
    profile: Option<&str>,
) -> Result<(), Error> {
    let all = token::read(home)?;
    let token = token.and_then(|token| token::find(&all, token));
    let title = client.title();
    let message = match token {
        None => {
            format!("the token of {title} was revoked or rotated, or belongs to another gateway")
        }
        Some(token) if token.is_expired(SystemTime::now()) => {
            format!("the token of {title} has expired")
        }
        Some(token) if profile.is_some() && token.profile.as_deref() != profile => {
            match &token.profile {
                Some(other) => format!("the token of {title} is held to the profile `{other}`"),
                None => format!("the token of {title} is held to no profile"),
            }
        }
        Some(_) => return Ok(()),
    };
    let next = format!("run `switchboard connect {client} --undo`, then this command again");
    Err(Error::new(message).hint(next))
}

/// Warns if other users can read the file with the token.
pub(super) fn warn_of_readers(plan: &Plan) {
    let readable = |data: fs::Metadata| data.mode() & 0o077 != 0;
    if fs::metadata(&plan.file).is_ok_and(readable) {
        let file = shell_word(&plan.file.display().to_string());
        print::warn(&format!(
            "other users of this machine may read the token; to prevent that, run `chmod 600 {file}`"
        ));
    }
}

/// Revokes the token that a client had, if it is one of this gateway and no longer in the client's file.
pub(super) fn revoke(home: &Home, token: Option<&str>, file: &Path) -> Result<(), Error> {
    let Some(token) = token else { return Ok(()) };
    let all = token::read(home)?;
    let id = token::find(&all, token).map(|token| token.id().to_string());
    revoke_id(home, id.as_deref(), file)
}

/// Revokes the token with this ID, if it is no longer in the client's file.
pub(super) fn revoke_id(home: &Home, id: Option<&str>, file: &Path) -> Result<(), Error> {
    let Some(id) = id else { return Ok(()) };
    let all = token::read(home)?;
    let Some(token) = all.iter().find(|token| token.id().to_string() == id) else {
        return Ok(());
    };
    let text = fs::read_to_string(file).unwrap_or_default();
    if text.contains(&format!("{}{id}_", switchboard_tokens::PREFIX)) {
        return Ok(());
    }
    token::revoke(home, &token.name)
}
