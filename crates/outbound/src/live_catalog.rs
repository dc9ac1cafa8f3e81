//! The catalogue as it stands, and its snapshots on disk.
//!
//! The tool list of a cold start is the last known one, so what each server offers is kept in a file
//! that is read before anything else and written, in the background, when it changes. What a server offers
//! is judged before it is shown: tools that nobody has approved are held back.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
    path::PathBuf,
    sync::Arc,
};

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use switchboard_base::{error::Error, extensions, uri};
use switchboard_catalog::{
    Catalog, Held, Kind, Offers, Permits, ServerPart, Snapshot, SnapshotError,
};
use switchboard_client::Raw;
use switchboard_config::{Config, Home, Server, Trust};
use switchboard_trust::{ItemKind, Others, Pins, Severity, scan};
use tokio::sync::watch;

use crate::{
    builtin,
    discovery::Lists,
    identity::fingerprint,
    keyed_locks::KeyedLocks,
    memory,
    pins::{Decision, PinStore, Undecided, item_kind},
};

/// The catalogue as it stands.
#[derive(Debug)]
pub struct LiveCatalog {
    catalog: ArcSwap<Catalog>,
    /// What is not shown because nobody has approved it.
    held: ArcSwap<Withheld>,
    /// Held while the catalogue is changed: changes come one after another.
    changing: Mutex<Known>,
    /// The folder of snapshots.
    dir: PathBuf,
    /// Held by server while its offers are judged and its snapshot is written: what is on disk at the end is
    /// what was known last, and no server waits for another.
    turns: KeyedLocks,
    pins: PinStore,
    /// Counts changes, for whoever tells clients of them.
    changes: watch::Sender<u64>,
    /// By server: how often it has announced that a list has changed.
    announced: Mutex<HashMap<String, Announced>>,
    /// Counts changes of what is held back.
    held_changes: watch::Sender<u64>,
    problems: Vec<String>,
}

#[derive(Debug)]
struct Known {
    /// What each server offered last.
    remembered: Snapshots,
    /// The servers that are supervised, as they are configured. Of others nothing is taken in: what they
    /// said was on its way when they were removed.
    expected: HashMap<String, Arc<Server>>,
}

/// How often each list was announced to have changed.
pub(crate) type Announced = [u64; Kind::ALL.len()];

/// What each server offered last.
type Snapshots = HashMap<String, Remembered>;

#[derive(Debug, Clone)]
struct Remembered {
    snapshot: Snapshot,
    /// Whether this process has judged it.
    judged: bool,
}

/// By server: what is held back. Servers of which nothing is are not in it.
type Withheld = HashMap<Arc<str>, Withhold>;

#[derive(Debug, Clone, PartialEq, Eq)]
struct Withhold {
    held: Held,
    /// The held resources, in one spelling for all of a URI.
    resources: HashSet<String>,
    /// The schemes of the held templates; `None` is any.
    schemes: HashSet<Option<String>>,
    /// Whether also what was never seen is held back.
    unseen: bool,
}

impl LiveCatalog {
    /// Reads what is known from before. A damaged file costs what is in it and nothing else.
    pub fn open(home: &Arc<Home>, config: &Config) -> Self {
        let dir = home.catalog();
        let (snapshots, damaged) = switchboard_catalog::load_all(&dir);
        let problems = damaged
            .into_iter()
            .map(|(path, error)| format!("{}: {error}", path.display()))
            .collect();
        let mut remembered: Snapshots = snapshots
            .into_iter()
            .map(|snapshot| {
                let name = snapshot.server.clone();
                let judged = false;
                (name, Remembered { snapshot, judged })
            })
            .collect();
        if let Some(memory) = memory::snapshot(config, fingerprint) {
            let judged = true;
            let snapshot = memory;
            remembered.insert(snapshot.server.clone(), Remembered { snapshot, judged });
        }
        let parts = prepare_all(config, &remembered);
        let parts = parts.into_iter().chain([builtin::part()]).map(Arc::new);
        let catalog = Catalog::from_parts(parts);
        Self {
            catalog: ArcSwap::from_pointee(catalog),
            held: ArcSwap::default(),
            changing: Mutex::new(Known {
                remembered,
                expected: HashMap::new(),
            }),
            dir,
            turns: KeyedLocks::default(),
            pins: PinStore::new(Arc::clone(home)),
            changes: watch::Sender::new(0),
            announced: Mutex::default(),
            held_changes: watch::Sender::new(0),
            problems,
        }
    }

    /// What could not be read at the start.
    pub fn problems(&self) -> &[String] {
        &self.problems
    }

    /// The catalogue that is shown, for a moment.
    pub fn catalog(&self) -> arc_swap::Guard<Arc<Catalog>> {
        self.catalog.load()
    }

    /// The catalogue that is shown, to be kept for longer.
    pub fn catalog_full(&self) -> Arc<Catalog> {
        self.catalog.load_full()
    }

    /// Counts changes of what is shown.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// The pins of a server, which say what is approved and what is held. They are read when a judgement that is under way
    /// has taken effect, so that nothing is reported as held and still shown. It reads a file.
    pub fn pins(&self, name: &str, server: &Server) -> Pins {
        let turn = self.turns.of(name);
        let _turn = turn.lock();
        self.pins.read(name, server)
    }

    /// Counts changes of what is held back.
    pub fn held_changes(&self) -> watch::Receiver<u64> {
        self.held_changes.subscribe()
    }

    /// Has people asked about what is held, with the servers as they are now.
    pub fn ask_again(&self) {
        self.held_changes.send_modify(|changes| *changes += 1);
    }

    /// Whether something of this server is held back.
    pub fn holds_something(&self, server: &str) -> bool {
        let held = self.held.load();
        held.get(server).is_some_and(|of| !of.held.is_nothing())
    }

    /// How many things are held back, all servers together.
    pub fn held_count(&self) -> usize {
        let held = self.held.load();
        held.values().map(|of| of.held.items.len()).sum()
    }

    /// Decides if something of a server is approved: this item, or with `None` anything at all.
    pub fn permits(&self, server: &str, item: Option<(Kind, &str)>) -> Result<(), Error> {
        let held = self.held.load();
        let Some(of) = held.get(server) else {
            return Ok(());
        };
        let unapproved = |item: Option<Cow<'_, str>>| Error::Unapproved {
            server: server.into(),
            item: item.map(Into::into),
        };
        if of.held.all {
            return Err(unapproved(None));
        }
        let Some((kind, name)) = item else {
            return Ok(());
        };
        let key = item_kind(kind).key(name);
        let is_held = of.held.items.contains(&*key)
            || kind == Kind::Resource && self.may_be_held(server, of, name);
        let is_named = matches!(kind, Kind::Tool | Kind::Prompt);
        if is_held || of.unseen && is_named && !self.lists(server, kind, name) {
            return Err(unapproved(Some(key)));
        }
        Ok(())
    }

    /// Whether the catalogue has this item.
    pub fn lists(&self, server: &str, kind: Kind, name: &str) -> bool {
        let catalog = self.catalog();
        let part = catalog.server(server);
        part.is_some_and(|part| part.find(kind, name).is_some())
    }

    /// The names of items that the server offers under this name, but for letter case and whatever is no letter or digit; also
    /// of those that are held back or hidden.
    pub fn offered_as(&self, server: &str, kind: Kind, name: &str) -> Vec<String> {
        let Some(offers) = self.offers(server) else {
            return Vec::new();
        };
        let called = |item: &Raw| item.member(kind.key_member())?.to_text();
        let names = offers.list(kind).iter().filter_map(called);
        let letters = |name: &str| -> String {
            let letters = name.chars().filter(|c| c.is_alphanumeric());
            letters.flat_map(char::to_lowercase).collect()
        };
        let name = letters(name);
        names.filter(|known| letters(known) == name).collect()
    }

    /// Whether a URI that is not listed may lead to something that is held back: another spelling of a held
    /// resource does, and so may, unless an approved template makes it, any URI of the scheme of a held
    /// template. A server decides itself which spellings are the same.
    fn may_be_held(&self, server: &str, of: &Withhold, uri: &str) -> bool {
        if of.resources.is_empty() && of.schemes.is_empty() {
            return false;
        }
        let is_spelled = of.resources.contains(&uri::plain(uri));
        let scheme = uri::scheme(uri);
        let is_made = of.schemes.contains(&None)
            || of.schemes.contains(&scheme)
            || scheme.is_none() && !of.schemes.is_empty();
        if !is_spelled && !is_made {
            return false;
        }
        let catalog = self.catalog();
        let Some(part) = catalog.server(server) else {
            return true;
        };
        let mut shown = part.items(Kind::Template);
        part.find(Kind::Resource, uri).is_none()
            && (is_spelled || !shown.any(|template| uri::matches(template.name(), uri)))
    }

    /// Tests if a server has declared an extension, in what is shown of it.
    pub fn declares_extension(&self, server: &str) -> bool {
        let catalog = self.catalog.load();
        let offers = catalog.server(server).map(|part| part.offers());
        let said = offers.and_then(|offers| offers.capabilities.as_ref());
        said.is_some_and(extensions::declares)
    }

    /// What this server is known to offer, also what is held back.
    pub fn offers(&self, name: &str) -> Option<Arc<Offers>> {
        Some(Arc::clone(
            &self.changing.lock().remembered.get(name)?.snapshot.offers,
        ))
    }

    /// The server is about to be supervised: what is remembered of it goes into the catalogue, if it
    /// is the same server still.
    pub(crate) fn expect(&self, name: &str, server: &Arc<Server>) -> Option<Arc<Offers>> {
        let mut all = self.changing.lock();
        let fingerprint = fingerprint(server);
        let known = all.remembered.remove(name);
        let known = known.filter(|known| known.snapshot.fingerprint == fingerprint);
        all.expected.insert(name.to_owned(), Arc::clone(server));
        let Some(known) = known else {
            self.withhold(name, server, &nothing_seen(server), None);
            self.place(name, None);
            return None;
        };
        let snapshot = known.snapshot.clone();
        all.remembered.insert(name.to_owned(), known);
        self.withhold(name, server, &snapshot.held, Some(&snapshot.offers));
        let catalog = self.catalog.load();
        let placed = catalog.server(name).map(|part| part.offers());
        let is_placed = placed.is_some_and(|placed| Arc::ptr_eq(placed, &snapshot.offers));
        if !(server.enabled && is_placed) {
            self.place(
                name,
                server.enabled.then(|| prepare(name, server, &snapshot)),
            );
        }
        Some(snapshot.offers)
    }

    /// The server said what it offers: it is judged, kept, and what is approved is shown. What it did not
    /// say again is as it is known. `false` if it could not be judged: then nothing has changed.
    pub(crate) async fn put(
        self: &Arc<Self>,
        name: &str,
        merge: impl FnOnce(Option<&Offers>) -> Offers + Send + 'static,
    ) -> bool {
        let (live_catalog, name) = (Arc::clone(self), name.to_owned());
        in_background(move || live_catalog.take_in(&name, Some(merge))).await
    }

    /// The server shows other tools than before, or is switched on or off.
    pub(crate) async fn refilter(self: &Arc<Self>, name: &str, server: &Arc<Server>) {
        {
            let mut all = self.changing.lock();
            all.expected.insert(name.to_owned(), Arc::clone(server));
            if !all.remembered.contains_key(name) {
                return self.withhold(name, server, &nothing_seen(server), None);
            }
        }
        let (live_catalog, name) = (Arc::clone(self), name.to_owned());
        in_background(move || live_catalog.judge_again(&name)).await;
    }

    /// Judges what is remembered of every server, which the start has shown as it was judged before. It
    /// reads and writes files.
    pub fn judge_all(&self) {
        let names: Vec<String> = {
            let all = self.changing.lock();
            let remembered = all.remembered.iter();
            let unjudged = remembered.filter(|(_, known)| !known.judged);
            unjudged.map(|(name, _)| name.clone()).collect()
        };
        for name in names {
            self.judge_again(&name);
        }
    }

    /// Carries out what a person has decided about tools that are held back, and returns what was decided by that.
    pub async fn decide(
        self: &Arc<Self>,
        name: &str,
        server: &Arc<Server>,
        decision: Decision,
    ) -> Result<Vec<String>, Undecided> {
        let live_catalog = Arc::clone(self);
        let (name, server) = (name.to_owned(), Arc::clone(server));
        let deciding = tokio::task::spawn_blocking(move || {
            let decided = live_catalog.pins.decide(&name, &server, &decision)?;
            live_catalog.judge_again(&name);
            Ok(decided)
        });
        // An error means that the runtime ends.
        deciding.await.unwrap_or_else(|_| Ok(Vec::new()))
    }

    /// The server is no longer configured.
    pub(crate) fn remove(self: &Arc<Self>, name: &str) {
        {
            let mut all = self.changing.lock();
            all.remembered.remove(name);
            all.expected.remove(name);
            self.place(name, None);
        }
        self.held.rcu(|held| without(held, name));
        self.announced.lock().remove(name);
        let (live_catalog, name) = (Arc::clone(self), name.to_owned());
        tokio::task::spawn_blocking(move || {
            let turn = live_catalog.turns.of(&name);
            let _turn = turn.lock();
            // It may have come back meanwhile.
            if !live_catalog.changing.lock().expected.contains_key(&name) {
                live_catalog.pins.remove(&name);
                note(switchboard_catalog::remove(&live_catalog.dir, &name), &name);
            }
        });
    }

    /// Judges what is known of a server once more. It reads and writes files.
    fn judge_again(&self, name: &str) -> bool {
        self.take_in(name, None::<fn(Option<&Offers>) -> Offers>)
    }

    /// Judges what a server offers, shows what is approved of it, and keeps it for the next start. `news` makes
    /// what it offers of what was known; without it that is judged again. `false` if there is nothing to judge, or
    /// the server is not supervised any more. It reads and writes files.
    fn take_in(&self, name: &str, news: Option<impl FnOnce(Option<&Offers>) -> Offers>) -> bool {
        // One after another, from what was known to what is kept: no news are lost, and none come late.
        let turn = self.turns.of(name);
        let _turn = turn.lock();
        let (server, known) = {
            let all = self.changing.lock();
            let Some(server) = all.expected.get(name) else {
                return false;
            };
            (Arc::clone(server), all.remembered.get(name).cloned())
        };
        let before = known.as_ref().map(|known| &known.snapshot.offers);
        let offers = match (news, before) {
            (Some(merge), before) => {
                let offers = merge(before.map(|offers| &**offers));
                let same = before.filter(|before| ***before == offers).cloned();
                same.unwrap_or_else(|| Arc::new(offers))
            }
            (None, Some(before)) => Arc::clone(before),
            (None, None) => return false,
        };
        let snapshot = Snapshot {
            server: name.to_owned(),
            fingerprint: fingerprint(&server),
            held: self.pins.judge(name, &server, &offers),
            offers,
        };
        let is_news = known.is_none_or(|known| known.snapshot != snapshot);
        let part = server.enabled.then(|| prepare(name, &server, &snapshot));
        {
            let mut all = self.changing.lock();
            let is_expected = all.expected.get(name);
            if is_expected.is_none_or(|now| fingerprint(now) != snapshot.fingerprint) {
                return false;
            }
            // Held back first, shown later: nobody calls what is to be neither.
            self.withhold(name, &server, &snapshot.held, Some(&snapshot.offers));
            if self.is_shown_otherwise(name, part.as_ref()) {
                self.place(name, part);
            }
            let known = Remembered {
                snapshot: snapshot.clone(),
                judged: true,
            };
            all.remembered.insert(name.to_owned(), known);
        }
        if is_news {
            note(switchboard_catalog::write(&self.dir, &snapshot), name);
            self.tell_mended(name);
        }
        true
    }

    /// Says how much of what a server offers is not shown as it was sent.
    fn tell_mended(&self, name: &str) {
        let catalog = self.catalog.load();
        let mended = catalog.server(name).map_or(0, |part| part.mended().count());
        if mended > 0 {
            tracing::info!(
                server = %name,
                mended,
                "Mended definitions that clients would reject; the view of the server alone has them as they were sent."
            );
        }
    }

    /// Whether clients see something else of a server than this.
    fn is_shown_otherwise(&self, name: &str, part: Option<&ServerPart>) -> bool {
        let catalog = self.catalog.load();
        match (catalog.server(name), part) {
            (None, None) => false,
            (Some(shown), Some(part)) => {
                let seen = |part: &ServerPart| {
                    let lists = (part.hashes(), part.listed_tools_hash());
                    // Whatever is no list is told in handshakes.
                    let about = Offers {
                        tools: Vec::new(),
                        prompts: Vec::new(),
                        resources: Vec::new(),
                        templates: Vec::new(),
                        ..Offers::clone(part.offers())
                    };
                    (lists, about)
                };
                seen(shown) != seen(part)
            }
            _ => true,
        }
    }

    /// Clients are to look again, whatever has changed.
    pub(crate) fn touch(&self) {
        self.changes.send_modify(|changes| *changes += 1);
    }

    /// The server has announced that these lists have changed. Its clients hear of it when they are to look again, also
    /// if the lists are the same.
    pub(crate) fn announce(&self, name: &str, lists: Lists) {
        if lists == Lists::NONE || self.permits(name, None).is_err() {
            return;
        }
        let mut announced = self.announced.lock();
        let counts = announced.entry(name.to_owned()).or_default();
        for kind in lists.kinds() {
            counts[kind as usize] += 1;
        }
    }

    /// How often the server has announced changes.
    pub fn announced(&self, name: &str) -> Announced {
        self.announced.lock().get(name).copied().unwrap_or_default()
    }

    fn withhold(&self, name: &str, server: &Server, held: &Held, offers: Option<&Offers>) {
        let unseen = server.trust == Trust::Ask;
        if held.is_nothing() && !unseen {
            if self.held.load().contains_key(name) {
                self.held.rcu(|held| without(held, name));
                self.held_changes.send_modify(|changes| *changes += 1);
            }
            return;
        }
        let held_uris = |kind| held_uris(held, offers, kind);
        let of = Withhold {
            resources: held_uris(Kind::Resource)
                .map(|uri| uri::plain(&uri))
                .collect(),
            schemes: held_uris(Kind::Template)
                .map(|uri| uri::scheme(&uri))
                .collect(),
            held: held.clone(),
            unseen,
        };
        self.held.rcu(|held| {
            let mut held = Withheld::clone(held);
            held.insert(name.into(), of.clone());
            held
        });
        // A tool that was rejected is held back as before, and is asked about no more.
        self.held_changes.send_modify(|changes| *changes += 1);
    }

    /// Called with the lock held, so that no change is lost.
    fn place(&self, name: &str, part: Option<ServerPart>) {
        let old = self.catalog.load_full();
        if part.is_none() && old.server(name).is_none() {
            return;
        }
        let part = part.map(Arc::new);
        self.catalog.store(Arc::new(old.with(name, part)));
        self.changes.send_modify(|changes| *changes += 1);
    }
}

/// Files are read and written away from those who answer. `false` if the work broke off.
async fn in_background(work: impl FnOnce() -> bool + Send + 'static) -> bool {
    tokio::task::spawn_blocking(work).await.unwrap_or(false)
}

fn note(kept: Result<(), SnapshotError>, name: &str) {
    if let Err(error) = kept {
        tracing::warn!(%error, server = %name, "Cannot keep what a server offers for the next start.");
    }
}

fn without(held: &Withheld, name: &str) -> Withheld {
    let mut held = held.clone();
    held.remove(name);
    held
}

/// What is held back of a server before it has been seen.
fn nothing_seen(server: &Server) -> Held {
    Held {
        all: server.trust == Trust::Ask,
        ..Held::default()
    }
}

/// What the servers of a configuration are known to offer.
fn prepare_all(config: &Config, remembered: &Snapshots) -> Vec<ServerPart> {
    let known: Vec<_> = config
        .servers
        .iter()
        .filter(|(_, server)| server.enabled)
        .filter_map(|(name, server)| {
            let snapshot = &remembered.get(name)?.snapshot;
            let held = &snapshot.held;
            let permits = |kind: Kind, name: &str| is_shown(server, held, kind, name);
            let is_same = snapshot.fingerprint == fingerprint(server);
            is_same.then_some((name, shown(server, snapshot), permits))
        })
        .collect();
    let known: Vec<_> = known
        .iter()
        .map(|(name, offers, permits)| {
            let permits: &Permits<'_> = permits;
            (name.as_str(), Arc::clone(offers), permits)
        })
        .collect();
    let parts = ServerPart::prepare_all(&known).into_iter();
    let of = |part: &ServerPart| config.servers.get(&**part.name());
    parts
        .map(|part| match of(&part) {
            Some(server) => listing(part, server),
            None => part,
        })
        .collect()
}

fn prepare(name: &str, server: &Server, snapshot: &Snapshot) -> ServerPart {
    let part = ServerPart::prepare(name, shown(server, snapshot), &|kind, name| {
        is_shown(server, &snapshot.held, kind, name)
    });
    listing(part, server)
}

/// The part with a compact list for merged views, if the server has one.
fn listing(part: ServerPart, server: &Server) -> ServerPart {
    match memory::compact(server) {
        Some(tools) => part.listing(tools),
        None => part,
    }
}

fn is_shown(server: &Server, held: &Held, kind: Kind, name: &str) -> bool {
    (kind != Kind::Tool || server.tools.permits(name))
        && (held.items.is_empty() || !held.items.contains(&*item_kind(kind).key(name)))
}

/// The URIs, or URI templates, that are held back.
fn held_uris(held: &Held, offers: Option<&Offers>, kind: Kind) -> impl Iterator<Item = String> {
    let is_one = |key: &String| ItemKind::of_key(key) == item_kind(kind);
    let offers = offers.filter(|_| held.items.iter().any(is_one));
    let items = offers.into_iter().flat_map(move |offers| offers.list(kind));
    let uris = items.filter_map(move |raw| raw.member(kind.key_member())?.to_text());
    uris.filter(move |uri| held.items.contains(&*item_kind(kind).key(uri)))
}

/// The most bytes of what a server says of itself, and of each capability that is handed on as it says it.
const SAID_BYTES: usize = 16 * 1024;
/// The capabilities that are handed on as the server says them.
const SAID: [&str; 3] = ["experimental", "extensions", "tasks"];

/// What of a server's offers is shown, but for single items. What it says of itself and of its capabilities is not
/// pinned, as every new version of a server says something else; it is left out with the instructions, and if its
/// text is what a definition would be held for, or is too long. Capabilities that clients act on are shown without
/// the instructions, too.
fn shown(server: &Server, snapshot: &Snapshot) -> Arc<Offers> {
    let Snapshot { offers, held, .. } = snapshot;
    if held.all {
        return Arc::new(Offers {
            era: offers.era,
            revision: offers.revision,
            ..Offers::default()
        });
    }
    let untold = held.items.contains(&*ItemKind::Instructions.key(""));
    let is_odd = |said: &Raw| {
        said.as_bytes().len() > SAID_BYTES || server.trust != Trust::Always && is_dangerous(said)
    };
    // Pictures are for programs, and long.
    let is_odd_info = |info: &Raw| untold || is_odd(&info.without(&["icons"]));
    let info = offers.server_info.as_ref();
    let unnamed = info.is_some_and(is_odd_info);
    let is_odd_meta = |said: &Raw| untold || is_odd(said);
    let without_meta = offers.meta.as_ref().is_some_and(is_odd_meta);
    let capabilities = offers.capabilities.as_ref();
    let is_unsaid = |name: &&str| {
        let said = capabilities.and_then(|all| all.member(name));
        said.is_some_and(|said| untold && *name == "experimental" || is_odd(&said))
    };
    let unsaid: Vec<&str> = SAID.into_iter().filter(is_unsaid).collect();
    if !untold && !unnamed && !without_meta && unsaid.is_empty() {
        return Arc::clone(offers);
    }
    Arc::new(Offers {
        server_info: offers.server_info.clone().filter(|_| !unnamed),
        meta: offers.meta.clone().filter(|_| !without_meta),
        capabilities: capabilities.map(|all| all.without(&unsaid)),
        instructions: offers.instructions.clone().filter(|_| !untold),
        ..Offers::clone(offers)
    })
}

/// Whether there is text in it that no honest definition has.
fn is_dangerous(info: &Raw) -> bool {
    let findings = scan(info, &Others::default());
    findings
        .first()
        .is_some_and(|worst| worst.severity >= Severity::Danger)
}

#[cfg(test)]
mod tests {
    use std::{sync::mpsc, time::Duration};

    use tokio::time::timeout;

    use super::*;

    const SOON: Duration = Duration::from_secs(20);

    /// A live catalogue that expects these servers, and the folder that it is in.
    fn live_catalog(names: &[&str]) -> (Arc<LiveCatalog>, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let servers: serde_json::Map<_, _> = names
            .iter()
            .map(|name| ((*name).to_owned(), serde_json::json!({ "command": "x" })))
            .collect();
        let config = serde_json::json!({ "mcpServers": servers }).to_string();
        let config = switchboard_config::parse(&config, "it").unwrap();
        let home = Home::locate(Some(folder.path()), None).unwrap();
        let live_catalog = Arc::new(LiveCatalog::open(&Arc::new(home), &config));
        for name in names {
            live_catalog.expect(name, &Arc::new(config.servers[*name].clone()));
        }
        (live_catalog, folder)
    }

    fn offers(tool: &str) -> Offers {
        let tool = Raw::object([("name", Raw::string(tool))]);
        Offers {
            tools: vec![tool],
            ..Offers::default()
        }
    }

    #[tokio::test]
    async fn a_busy_server_does_not_hold_up_another() {
        let (live_catalog, _folder) = live_catalog(&["busy", "other"]);
        let (go, waiting) = mpsc::channel::<()>();
        let (began, begun) = tokio::sync::oneshot::channel();
        let busy = tokio::spawn({
            let live_catalog = Arc::clone(&live_catalog);
            let slow = move |_: Option<&Offers>| {
                began.send(()).unwrap();
                waiting.recv().unwrap();
                offers("late")
            };
            async move { live_catalog.put("busy", slow).await }
        });
        begun.await.unwrap();
        let put = timeout(SOON, live_catalog.put("other", |_| offers("early"))).await;
        go.send(()).unwrap();
        assert_eq!(put, Ok(true));
        assert!(live_catalog.lists("other", Kind::Tool, "early"));
        assert!(busy.await.unwrap());
        assert!(live_catalog.lists("busy", Kind::Tool, "late"));
    }

    #[tokio::test]
    async fn held_definitions_are_not_shown() {
        let (live_catalog, _folder) = live_catalog(&["a"]);
        assert!(live_catalog.put("a", |_| offers("x")).await);
        let server = Arc::clone(&live_catalog.changing.lock().expected["a"]);
        let (begin, begun) = mpsc::channel();
        let (go, going) = mpsc::channel();
        let changed = move |_: Option<&Offers>| {
            begin.send(()).unwrap();
            going.recv().unwrap();
            let definition = [("name", "x"), ("description", "changed")];
            let definition = definition.map(|(name, text)| (name, Raw::string(text)));
            Offers {
                tools: vec![Raw::object(definition)],
                ..Offers::default()
            }
        };
        let (seen, sees) = mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(|| live_catalog.take_in("a", Some(changed)));
            begun.recv_timeout(SOON).unwrap();
            // The judgement is written down, and cannot take effect yet.
            let changing = live_catalog.changing.lock();
            go.send(()).unwrap();
            while live_catalog.pins.read("a", &server).held().next().is_none() {
                std::thread::yield_now();
            }
            scope.spawn(|| {
                let is_held = live_catalog.pins("a", &server).held().next().is_some();
                let is_shown = live_catalog.lists("a", Kind::Tool, "x");
                seen.send((is_held, is_shown)).unwrap();
            });
            // A reader that does not wait has answered by then.
            let early = sees.recv_timeout(Duration::from_millis(300)).ok();
            drop(changing);
            let seen = early.unwrap_or_else(|| sees.recv_timeout(SOON).unwrap());
            assert_eq!(seen, (true, false));
        });
    }

    #[tokio::test]
    async fn offers_that_cannot_be_judged_are_not_taken_in() {
        let (live_catalog, _folder) = live_catalog(&["a"]);
        assert!(!live_catalog.put("a", |_| panic!("on purpose")).await);
        assert!(!live_catalog.put("unknown", |_| offers("x")).await);
        assert!(live_catalog.put("a", |_| offers("x")).await);
        assert!(live_catalog.lists("a", Kind::Tool, "x"));
    }
}
