//! The catalogue as it stands, and its snapshots on disk.
//!
//! The tool list of a cold start is the last known one, so what each server offers is kept in a file
//! that is read before anything else and written, in the background, when it changes.

use std::{
    collections::HashMap,
    fmt::Write,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use arc_swap::ArcSwap;
use sha2::{Digest, Sha256};
use switchboard_catalog::{Catalogue, Offers, Permits, ServerPart, Snapshot};
use switchboard_config::{Config, Server, Transport};
use tokio::sync::watch;

use crate::builtin;

#[derive(Debug)]
pub(crate) struct Shelf {
    catalogue: ArcSwap<Catalogue>,
    /// Held while the catalogue is changed: changes come one after another.
    changing: Arc<Mutex<Snapshots>>,
    disk: Arc<Disk>,
    /// Counts changes, for whoever tells clients of them.
    changes: watch::Sender<u64>,
    problems: Vec<String>,
}

/// What each server offered last.
type Snapshots = HashMap<String, Snapshot>;

/// The folder of snapshots. Held while it is written: what is on disk at the end is what was known last.
#[derive(Debug)]
struct Disk(Mutex<PathBuf>);

impl Shelf {
    /// Reads what is known from before. A damaged file costs what is in it and nothing else.
    pub(crate) fn open(dir: PathBuf, config: &Config) -> Self {
        let (snapshots, damaged) = switchboard_catalog::load_all(&dir);
        let problems = damaged
            .into_iter()
            .map(|(path, error)| format!("{}: {error}", path.display()))
            .collect();
        let remembered: Snapshots = snapshots
            .into_iter()
            .map(|snapshot| (snapshot.server.clone(), snapshot))
            .collect();
        let parts = prepare_all(config, &remembered);
        let parts = parts.into_iter().chain([builtin::part()]).map(Arc::new);
        let catalogue = Catalogue::from_parts(parts);
        Self {
            catalogue: ArcSwap::from_pointee(catalogue),
            changing: Arc::new(Mutex::new(remembered)),
            disk: Arc::new(Disk(Mutex::new(dir))),
            changes: watch::Sender::new(0),
            problems,
        }
    }

    /// What could not be read at the start.
    pub(crate) fn problems(&self) -> &[String] {
        &self.problems
    }

    pub(crate) fn catalogue(&self) -> arc_swap::Guard<Arc<Catalogue>> {
        self.catalogue.load()
    }

    pub(crate) fn catalogue_full(&self) -> Arc<Catalogue> {
        self.catalogue.load_full()
    }

    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// What this server is known to offer.
    pub(crate) fn offers(&self, name: &str) -> Option<Arc<Offers>> {
        let catalogue = self.catalogue.load();
        Some(Arc::clone(catalogue.server(name)?.offers()))
    }

    /// The server is about to be supervised: what is remembered of it goes into the catalogue, if it
    /// is the same server still.
    pub(crate) fn expect(&self, name: &str, server: &Server) -> Option<Arc<Offers>> {
        let mut remembered = self.lock();
        let snapshot = remembered.remove(name)?;
        if snapshot.fingerprint != fingerprint(server) {
            self.place(name, None);
            return None;
        }
        let offers = Arc::clone(&snapshot.offers);
        remembered.insert(name.to_owned(), snapshot);
        let catalogue = self.catalogue.load();
        let placed = catalogue.server(name).map(|part| part.offers());
        if !(server.enabled && placed.is_some_and(|placed| Arc::ptr_eq(placed, &offers))) {
            self.place(name, server.enabled.then(|| prepare(name, server, &offers)));
        }
        Some(offers)
    }

    /// The server said what it offers.
    pub(crate) fn put(&self, name: &str, server: &Server, offers: Offers) {
        let mut remembered = self.lock();
        let fingerprint = fingerprint(server);
        let known = remembered
            .get(name)
            .is_some_and(|known| known.fingerprint == fingerprint && *known.offers == offers);
        let shown = self.catalogue.load().server(name).is_some();
        if known && shown {
            return;
        }
        let offers = Arc::new(offers);
        let snapshot = Snapshot {
            server: name.to_owned(),
            fingerprint,
            offers: Arc::clone(&offers),
        };
        remembered.insert(name.to_owned(), snapshot);
        self.place(name, Some(prepare(name, server, &offers)));
        drop(remembered);
        self.keep(name);
    }

    /// The server shows other tools than before, or is switched on or off.
    pub(crate) fn refilter(&self, name: &str, server: &Server) {
        let remembered = self.lock();
        if let Some(snapshot) = remembered.get(name) {
            let offers = Arc::clone(&snapshot.offers);
            self.place(name, server.enabled.then(|| prepare(name, server, &offers)));
        }
    }

    /// The server is no longer configured.
    pub(crate) fn remove(&self, name: &str) {
        let mut remembered = self.lock();
        remembered.remove(name);
        self.place(name, None);
        drop(remembered);
        self.keep(name);
    }

    /// Brings the file of this server in line with what is known of it, in the background.
    fn keep(&self, name: &str) {
        let (disk, snapshots) = (Arc::clone(&self.disk), Arc::clone(&self.changing));
        let name = name.to_owned();
        tokio::task::spawn_blocking(move || {
            let dir = disk.0.lock().unwrap_or_else(PoisonError::into_inner);
            let current = {
                let snapshots = snapshots.lock().unwrap_or_else(PoisonError::into_inner);
                snapshots.get(&name).cloned()
            };
            let kept = match &current {
                Some(snapshot) => switchboard_catalog::write(&dir, snapshot),
                None => switchboard_catalog::remove(&dir, &name),
            };
            if let Err(error) = kept {
                tracing::warn!(%error, server = %name, "Cannot keep what a server offers for the next start.");
            }
        });
    }

    /// Called with the lock held, so that no change is lost.
    fn place(&self, name: &str, part: Option<ServerPart>) {
        let old = self.catalogue.load_full();
        if part.is_none() && old.server(name).is_none() {
            return;
        }
        let part = part.map(Arc::new);
        self.catalogue.store(Arc::new(old.with(name, part)));
        self.changes.send_modify(|changes| *changes += 1);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Snapshot>> {
        self.changing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the servers of a configuration are known to offer.
fn prepare_all(config: &Config, remembered: &Snapshots) -> Vec<ServerPart> {
    let known: Vec<_> = config
        .servers
        .iter()
        .filter(|(_, server)| server.enabled)
        .filter_map(|(name, server)| {
            let snapshot = remembered.get(name)?;
            let permits = |tool: &str| server.tools.permits(tool);
            (snapshot.fingerprint == fingerprint(server)).then_some((name, snapshot, permits))
        })
        .collect();
    let known: Vec<_> = known
        .iter()
        .map(|(name, snapshot, permits)| {
            let permits: &Permits<'_> = permits;
            (name.as_str(), Arc::clone(&snapshot.offers), permits)
        })
        .collect();
    ServerPart::prepare_all(&known)
}

fn prepare(name: &str, server: &Server, offers: &Arc<Offers>) -> ServerPart {
    ServerPart::prepare(name, Arc::clone(offers), &|tool| server.tools.permits(tool))
}

/// Tells whether a snapshot was made of the same server: by how it is started or reached. Secrets
/// are in it as the configuration spells them, and only as a hash.
fn fingerprint(server: &Server) -> String {
    let mut hash = Sha256::new();
    let mut put = |text: &str| {
        hash.update((text.len() as u64).to_le_bytes());
        hash.update(text);
    };
    // How many there are of each keeps one list from being taken for the next.
    let count = |n: usize| n.to_string();
    match &server.transport {
        Transport::Command(line) => {
            put("command");
            put(&line.command);
            put(&count(line.args.len()));
            line.args.iter().for_each(|arg| put(arg));
            line.env.iter().for_each(|(name, value)| {
                put(name);
                put(value);
            });
            put(line.cwd.as_deref().unwrap_or_default());
        }
        Transport::Remote(remote) => {
            put("remote");
            put(&remote.url);
            remote.headers.iter().for_each(|(name, value)| {
                put(name);
                put(value);
            });
        }
        Transport::Container(container) => {
            put("container");
            put(&container.image);
            put(&count(container.args.len()));
            container.args.iter().for_each(|arg| put(arg));
            put(&count(container.env.len()));
            container.env.iter().for_each(|(name, value)| {
                put(name);
                put(value);
            });
            container.mounts.iter().for_each(|mount| put(mount));
        }
    }
    let hash = hash.finalize();
    hash[..16].iter().fold(String::new(), |mut text, byte| {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
