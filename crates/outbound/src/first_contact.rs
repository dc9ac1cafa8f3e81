//! Servers that have never been learnt: which of them have delayed a list, and which have failed.
//!
//! The first list may wait a moment for a server that stands in the configuration and has not been seen yet: once in the
//! life of each server, so it is remembered on disk. When the last client leaves, servers that have not been learnt are
//! waited for until they are, or have failed.

use std::{
    collections::{BTreeMap, HashMap},
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use switchboard_config::{Config, Server};
use switchboard_files::{Links, write_private};

use crate::identity::fingerprint;

/// How long the first list waits for servers that have never been learnt.
const LIST_DELAY: Duration = Duration::from_secs(1);
/// The file has a line for each server that has not been learnt, and no more.
const FILE_BYTES: u64 = 1024 * 1024;

/// The attempts to learn servers for the first time.
#[derive(Debug)]
pub struct FirstContact {
    path: PathBuf,
    state: Mutex<State>,
    /// Held while the file is written: what is on disk at the end is what was known last.
    saving: Mutex<()>,
}

#[derive(Debug, Default)]
struct State {
    /// By name.
    attempts: BTreeMap<String, Attempt>,
    /// Until when lists of this run wait for a server.
    waits: HashMap<String, Instant>,
    /// Whether the file is out of date.
    changed: bool,
}

/// The attempts to learn one server.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Attempt {
    /// A server that is configured otherwise is another one.
    fingerprint: String,
    /// Whether a list has waited for it.
    #[serde(default)]
    delayed: bool,
    /// Whether it has failed.
    #[serde(default)]
    failed: bool,
    /// Whether a gateway has stopped while it was being learnt.
    #[serde(default)]
    interrupted: bool,
}

impl FirstContact {
    /// Reads what is known from before. A file that cannot be read costs a second once more.
    pub fn open(path: PathBuf) -> Self {
        let text = switchboard_files::read(&path, FILE_BYTES, Links::Refuse).unwrap_or_default();
        let state = State {
            attempts: serde_json::from_slice(&text).unwrap_or_default(),
            ..State::default()
        };
        Self {
            path,
            state: Mutex::new(state),
            saving: Mutex::default(),
        }
    }

    /// Until when a list may wait for this server, which has never been learnt; `None` if one has waited before.
    pub(crate) fn list_waits(&self, name: &str, server: &Server, now: Instant) -> Option<Instant> {
        let mut state = self.state.lock();
        // Looked at first: what was known of another server is forgotten by that.
        let attempt = state.attempt(name, server);
        if std::mem::replace(&mut attempt.delayed, true) {
            let until = state.waits.get(name).copied();
            return until.filter(|until| *until > now);
        }
        let until = now + LIST_DELAY;
        state.waits.insert(name.to_owned(), until);
        state.changed = true;
        Some(until)
    }

    /// The server has failed before it could be learnt.
    pub(crate) fn fail(&self, name: &str, server: &Server) {
        self.note(name, server, |attempt| &mut attempt.failed);
    }

    /// The gateway stops before the server could be learnt.
    pub(crate) fn interrupt(&self, name: &str, server: &Server) {
        self.note(name, server, |attempt| &mut attempt.interrupted);
    }

    fn note(&self, name: &str, server: &Server, what: fn(&mut Attempt) -> &mut bool) {
        let mut state = self.state.lock();
        let attempt = state.attempt(name, server);
        if !std::mem::replace(what(attempt), true) {
            state.changed = true;
        }
    }

    /// The server has been learnt: what was tried before does not matter any more.
    pub(crate) fn succeed(&self, name: &str) {
        let mut state = self.state.lock();
        state.changed |= state.attempts.remove(name).is_some();
        state.waits.remove(name);
    }

    /// Whether the server has failed before, in this run or an earlier one.
    pub(crate) fn has_failed(&self, name: &str, server: &Server) -> bool {
        self.known(name, server).is_some_and(|known| known.failed)
    }

    /// Whether the server has been started before, in this run or an earlier one, and was not learnt.
    pub(crate) fn was_tried(&self, name: &str, server: &Server) -> bool {
        let known = self.known(name, server);
        known.is_some_and(|known| known.failed || known.interrupted)
    }

    fn known(&self, name: &str, server: &Server) -> Option<Attempt> {
        let state = self.state.lock();
        let known = state.attempts.get(name)?;
        (known.fingerprint == fingerprint(server)).then(|| known.clone())
    }

    /// Writes down what is new, of the servers of this configuration. It writes a file.
    pub fn save(&self, config: &Config) {
        let _saving = self.saving.lock();
        let attempts = {
            let mut state = self.state.lock();
            if !std::mem::take(&mut state.changed) {
                return;
            }
            state
                .attempts
                .retain(|name, _| config.servers.contains_key(name));
            state.attempts.clone()
        };
        let written = serde_json::to_vec(&attempts).map_err(std::io::Error::other);
        let written = written.and_then(|text| write_private(&self.path, &text));
        if let Err(error) = written {
            tracing::warn!(%error, path = %self.path.display(), "Cannot note which servers were tried.");
        }
    }

    /// The same in the background.
    pub(crate) fn save_soon(self: &Arc<Self>, config: Arc<Config>) {
        if self.state.lock().changed {
            let contact = Arc::clone(self);
            tokio::task::spawn_blocking(move || contact.save(&config));
        }
    }
}

impl State {
    /// The attempts to learn a server as it is configured now.
    fn attempt(&mut self, name: &str, server: &Server) -> &mut Attempt {
        let fingerprint = fingerprint(server);
        let fresh = Attempt {
            fingerprint,
            delayed: false,
            failed: false,
            interrupted: false,
        };
        let attempt = self
            .attempts
            .entry(name.to_owned())
            .or_insert_with(|| fresh.clone());
        if attempt.fingerprint != fresh.fingerprint {
            *attempt = fresh;
            self.waits.remove(name);
        }
        attempt
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(command: &str) -> Config {
        let text = format!(r#"{{"mcpServers": {{"a": {{"command": "{command}"}}}}}}"#);
        switchboard_config::parse(&text, "it").unwrap()
    }

    #[test]
    fn server_delays_lists_once_in_its_life() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("first-contact.json");
        let config_of_a = config("x");
        let server = &config_of_a.servers["a"];
        let now = Instant::now();
        let contact = FirstContact::open(path.clone());
        let until = contact.list_waits("a", server, now).unwrap();
        assert_eq!(until, now + LIST_DELAY);
        // Lists that are asked for meanwhile wait as long, and later ones not at all.
        let soon = now + LIST_DELAY / 2;
        assert_eq!(contact.list_waits("a", server, soon), Some(until));
        assert_eq!(contact.list_waits("a", server, until), None);
        contact.save(&config_of_a);
        let contact = FirstContact::open(path.clone());
        assert_eq!(contact.list_waits("a", server, now), None);
        assert!(!contact.has_failed("a", server));
        contact.interrupt("a", server);
        contact.save(&config_of_a);
        let contact = FirstContact::open(path.clone());
        assert!(contact.was_tried("a", server) && !contact.has_failed("a", server));
        contact.fail("a", server);
        contact.save(&config_of_a);
        let contact = FirstContact::open(path.clone());
        assert!(contact.has_failed("a", server));
        contact.succeed("a");
        assert!(!contact.was_tried("a", server));
        contact.fail("a", server);
        // Another server of the same name has a life of its own.
        for command in ["y", "z"] {
            let other = config(command);
            let server = &other.servers["a"];
            assert!(!contact.has_failed("a", server));
            assert!(contact.list_waits("a", server, now).is_some());
        }
        contact.save(&Config::default());
        assert_eq!(std::fs::read(&path).unwrap(), b"{}");
    }
}
