//! Servers that are not started until a person agrees: those that were added over TCP.
//!
//! The hold is a key of the server's entry (`"hold": true`), written together with the entry, so that a restart
//! does not start the server either.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering::Relaxed},
};

use serde::Serialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use switchboard_config::{Server, Transport};

use crate::{audit::Actor, gateway::Gateway, reload::ChangeError, seal::hex};

/// The reason why such a server does not run.
pub(crate) const REASON: &str = "waiting for approval to start";

/// What would be started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Waiting {
    /// The command line, the address or the image.
    pub(crate) program: String,
    /// Tells this entry from another one under the same name.
    pub(crate) fingerprint: String,
    /// Names of variables or headers, and further settings of the entry.
    #[serde(skip)]
    pub(crate) more: Value,
}

/// What a server that is held would start; `None` if it is not held.
pub(crate) fn waiting(server: &Server) -> Option<Waiting> {
    if !server.hold {
        return None;
    }
    let (program, more) = match &server.transport {
        Transport::BuiltIn => return None,
        Transport::Command(line) => {
            let words = std::iter::once(&line.command).chain(&line.args);
            let words: Vec<&str> = words.map(String::as_str).collect();
            let env: Vec<_> = line.env.keys().collect();
            (words.join(" "), json!({ "env": env, "cwd": line.cwd }))
        }
        Transport::Remote(remote) => {
            let headers: Vec<_> = remote.headers.keys().collect();
            let (_, address) = crate::status::describe(server);
            (address, json!({ "headers": headers }))
        }
        Transport::Container(container) => {
            let words = std::iter::once(&container.image).chain(&container.args);
            let words: Vec<&str> = words.map(String::as_str).collect();
            let env: Vec<_> = container.env.keys().collect();
            let more = json!({ "env": env, "mounts": format!("{:?}", container.mounts), "runArgs": container.run_args });
            (words.join(" "), more)
        }
    };
    let digest = Sha256::digest(format!("{:?}", server.transport));
    Some(Waiting {
        program,
        fingerprint: hex(&digest[..16]),
        more,
    })
}

impl Gateway {
    /// Starts a server that is held, if its entry is still the one of this fingerprint; says whether it was.
    pub(crate) async fn release(
        &self,
        name: &str,
        fingerprint: &str,
        actor: Option<Actor>,
    ) -> Result<bool, ChangeError> {
        let (name, fingerprint) = (name.to_owned(), fingerprint.to_owned());
        let released = Arc::new(AtomicBool::new(false));
        let done = Arc::clone(&released);
        self.change_config_as(actor, move |text| {
            let config = switchboard_config::parse(text, "switchboard.json").ok();
            let server = config.as_ref().and_then(|config| config.servers.get(&name));
            let same = server
                .and_then(waiting)
                .is_some_and(|waiting| waiting.fingerprint == fingerprint);
            if !same {
                return Ok(text.to_owned());
            }
            done.store(true, Relaxed);
            switchboard_config::release_server(text, &name)
        })
        .await?;
        Ok(released.load(Relaxed))
    }
}
