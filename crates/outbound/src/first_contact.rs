//! Servers that have never been listed: the attempts to fetch their lists for the first time.
//!
//! The first list for a client may wait briefly for a configured server whose tools are not known yet. That
//! happens once in the life of each server, so it is recorded on disk. When the last client leaves, the
//! gateway waits until the remaining servers have been listed or have failed.

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

/// Time for which the first list waits for servers that have never been listed.
const LIST_DELAY: Duration = Duration::from_secs(1);
/// The largest file that is read. It has one entry for each server that has not been listed.
const FILE_BYTES: u64 = 1024 * 1024;

/// The attempts to list servers for the first time.
#[derive(Debug)]
pub struct FirstContact {
    path: PathBuf,
    state: Mutex<State>,
    /// Held while the file is written, so that the last state written is the latest one.
    saving: Mutex<()>,
}

#[derive(Debug, Default)]
struct State {
    /// By server name.
    attempts: BTreeMap<String, Attempt>,
    /// The time until which lists of this run wait for a server.
    waits: HashMap<String, Instant>,
    /// The file is out of date.
    changed: bool,
}

/// The attempts to list one server.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Attempt {
    /// Identifies the configuration: a server that is configured differently is another server.
    fingerprint: String,
    /// A list has waited for it.
    #[serde(default)]
    delayed: bool,
    /// It has failed.
    #[serde(default)]
    failed: bool,
    /// The gateway stopped before it was listed.
    #[serde(default)]
    interrupted: bool,
}

impl FirstContact {
    /// Reads the recorded attempts. If the file cannot be read, lists wait once more.
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

    /// The time until which a list may wait for this server, which has never been listed; `None` if a list
    /// has waited before.
    pub(crate) fn list_waits(&self, name: &str, server: &Server, now: Instant) -> Option<Instant> {
        let mut state = self.state.lock();
        // Called first, because it discards the state of a server that was configured differently.
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

    /// Records that the server failed before it was listed.
    pub(crate) fn fail(&self, name: &str, server: &Server) {
        self.note(name, server, |attempt| &mut attempt.failed);
    }

    /// Records that the gateway stops before the server was listed.
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

    /// Records that the server was listed, which makes earlier attempts irrelevant.
    pub(crate) fn succeed(&self, name: &str) {
        let mut state = self.state.lock();
        state.changed |= state.attempts.remove(name).is_some();
        state.waits.remove(name);
    }

    /// Tests if the server has failed before, in this run or an earlier one.
    pub(crate) fn has_failed(&self, name: &str, server: &Server) -> bool {
        self.known(name, server).is_some_and(|known| known.failed)
    }

    /// Tests if the server was started before, in this run or an earlier one, and was not listed.
    pub(crate) fn was_tried(&self, name: &str, server: &Server) -> bool {
        let known = self.known(name, server);
        known.is_some_and(|known| known.failed || known.interrupted)
    }

    fn known(&self, name: &str, server: &Server) -> Option<Attempt> {
        let state = self.state.lock();
        let known = state.attempts.get(name)?;
        (known.fingerprint == fingerprint(server)).then(|| known.clone())
    }

    /// Writes the changes for the servers of this configuration to disk.
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
            tracing::warn!(%error, path = %self.path.display(), "Cannot save the list of servers that were tried.");
        }
    }

    /// Does the same in the background.
    pub(crate) fn save_soon(self: &Arc<Self>, config: Arc<Config>) {
        if self.state.lock().changed {
            let contact = Arc::clone(self);
            tokio::task::spawn_blocking(move || contact.save(&config));
        }
    }
}

impl State {
    /// The attempts to list a server as it is configured now.
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
        // Lists that are requested meanwhile wait until the same time, and later ones not at all.
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
        // Another server of the same name starts from scratch.
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
