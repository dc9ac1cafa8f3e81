//! Servers that have never been learnt: which of them have delayed a list, and which have failed.
//!
//! The first list may wait a moment for a server that stands in the configuration and has not been seen yet: once in the
//! life of each server, so it is remembered on disk. When the last client leaves, servers that have not been learnt are
//! waited for until they are, or have failed.

use std::{
    collections::{BTreeMap, HashMap},
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize};
use switchboard_config::{Config, Server};
use switchboard_files::{Links, write_private};
use tokio::{
    sync::watch,
    time::{timeout, timeout_at},
};

use crate::{gateway::Gateway, identity::fingerprint, pace::Pace, upstream::Upstream};

/// How long the first list waits for servers that have never been learnt.
const LIST_DELAY: Duration = Duration::from_secs(1);
/// How long servers that were never learnt are still started when the last client has left.
const LAST_STARTS: Duration = Duration::from_secs(10);
/// How long those that have been started are waited for after that. Each has a limit of its own.
const LAST_LESSONS: Duration = Duration::from_mins(2);
/// The file has a line for each server that has not been learnt, and no more.
const FILE_BYTES: u64 = 1024 * 1024;

#[derive(Debug)]
pub(crate) struct FirstContact {
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
    pub(crate) fn open(path: PathBuf) -> Self {
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
        let mut state = self.lock();
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
    fn interrupt(&self, name: &str, server: &Server) {
        self.note(name, server, |attempt| &mut attempt.interrupted);
    }

    fn note(&self, name: &str, server: &Server, what: fn(&mut Attempt) -> &mut bool) {
        let mut state = self.lock();
        let attempt = state.attempt(name, server);
        if !std::mem::replace(what(attempt), true) {
            state.changed = true;
        }
    }

    /// The server has been learnt: what was tried before does not matter any more.
    pub(crate) fn succeed(&self, name: &str) {
        let mut state = self.lock();
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
        let state = self.lock();
        let known = state.attempts.get(name)?;
        (known.fingerprint == fingerprint(server)).then(|| known.clone())
    }

    /// Writes down what is new, of the servers of this configuration. It writes a file.
    pub(crate) fn save(&self, config: &Config) {
        let _saving = self.saving.lock().unwrap_or_else(PoisonError::into_inner);
        let attempts = {
            let mut state = self.lock();
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
        if self.lock().changed {
            let contact = Arc::clone(self);
            tokio::task::spawn_blocking(move || contact.save(&config));
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
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

/// Waits for servers that have never been learnt: for a moment, and once for each.
pub(crate) async fn delay_list(gateway: &Gateway) {
    let upstreams = gateway.upstreams();
    let context = gateway.context();
    let now = Instant::now();
    let new = upstreams.values().filter(|upstream| upstream.is_new());
    let waits = new.filter_map(|upstream| {
        let contact = &context.first_contact;
        let until = contact.list_waits(&upstream.name, &upstream.settings(), now)?;
        Some((upstream, until))
    });
    let waits: Vec<_> = waits.collect();
    if waits.is_empty() {
        return;
    }
    context.first_contact.save_soon(context.config.load_full());
    context.pace.hurry();
    for (upstream, until) in waits {
        // One that takes longer is told of by a changed list.
        let _ = timeout_at(until.into(), upstream.met()).await;
    }
}

/// Waits until there is no client, and the last lessons are over that no client and no new configuration interrupts. No
/// server is started from then on.
pub(crate) async fn until_deserted<Lessons: Future<Output = ()>>(
    mut clients: watch::Receiver<usize>,
    mut applied: watch::Receiver<()>,
    pace: &Pace,
    last_lessons: impl Fn() -> Lessons,
) {
    loop {
        // An error means that the gateway is gone.
        let _ = clients.wait_for(|clients| *clients == 0).await;
        applied.mark_unchanged();
        tokio::select! {
            biased;
            _ = clients.wait_for(|clients| *clients > 0) => {}
            _ = applied.changed() => {}
            () = last_lessons() => return,
        }
        pace.resume();
    }
}

/// The last client has left. Waits for servers that were never learnt and have not failed: for a while for all of
/// them, and longer for those that have been started by then. The [pace](crate::pace) is paused afterwards.
pub(crate) async fn last_lessons(gateway: &Gateway) {
    let context = gateway.context();
    let contact = &context.first_contact;
    let upstreams = gateway.upstreams();
    let new = upstreams.values().filter(|upstream| {
        upstream.is_new() && !contact.has_failed(&upstream.name, &upstream.settings())
    });
    let new: Vec<_> = new.collect();
    if new.is_empty() {
        return context.pace.pause();
    }
    let servers = new.len();
    tracing::info!(
        servers,
        "The last client has left; learning new servers first."
    );
    context.pace.hurry();
    let _ = timeout(LAST_STARTS, all_met(&new)).await;
    context.pace.pause();
    let begun = new.into_iter().filter(|upstream| upstream.is_being_met());
    let begun: Vec<_> = begun.collect();
    if timeout(LAST_LESSONS, all_met(&begun)).await.is_ok() {
        return;
    }
    for upstream in begun.iter().filter(|upstream| upstream.is_new()) {
        contact.fail(&upstream.name, &upstream.settings());
    }
}

/// The gateway stops. Servers that were started to be learnt, and are not, come after the others next time: a few that
/// are slow do not keep clients that never stay from seeing the rest.
pub(crate) fn cut_off(gateway: &Gateway) {
    let context = gateway.context();
    let contact = &context.first_contact;
    for upstream in gateway.upstreams().values() {
        if upstream.is_being_met() {
            contact.interrupt(&upstream.name, &upstream.settings());
        }
    }
    contact.save_soon(context.config.load_full());
}

async fn all_met(upstreams: &[&Arc<Upstream>]) {
    for upstream in upstreams {
        upstream.met().await;
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

    #[tokio::test(start_paused = true)]
    async fn client_or_configuration_that_comes_late_has_servers_started_again() {
        let pace = Pace::new();
        let (clients, applied) = (watch::Sender::new(1), watch::Sender::new(()));
        let lessons = std::cell::Cell::new(0);
        let last_lessons = || {
            lessons.set(lessons.get() + 1);
            pace.pause();
            tokio::time::sleep(LAST_LESSONS)
        };
        let (heard, told) = (clients.subscribe(), applied.subscribe());
        let deserted = until_deserted(heard, told, &pace, last_lessons);
        let mut deserted = std::pin::pin!(deserted);
        let mut is_over = async || timeout(LAST_STARTS, &mut deserted).await.is_ok();
        let is_paused = async || timeout(LAST_STARTS, pace.open(|| ())).await.is_err();
        applied.send_replace(());
        assert!(!is_over().await && lessons.get() == 0);
        clients.send_replace(0);
        assert!(!is_over().await && is_paused().await);
        clients.send_replace(1);
        assert!(!is_over().await && !is_paused().await);
        clients.send_replace(0);
        assert!(!is_over().await && is_paused().await && lessons.get() == 2);
        applied.send_replace(());
        assert!(!is_over().await && lessons.get() == 3);
        deserted.await;
        assert!(is_paused().await);
    }
}
