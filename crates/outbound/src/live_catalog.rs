//! The live catalogue, and its snapshots on disk.
//!
//! The tool list of a cold start is the last known one. So the offers of each server are kept in a file that
//! is read before anything else and written in the background when they change. Offers are judged before they
//! are shown: tools that the user has not approved are held.

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
    Catalog, Held, Kind, Offers, Present, Presented, ServerPart, Snapshot, SnapshotError,
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
    memory, overrides,
    pins::{Decision, PinStore, Undecided, item_kind},
};

/// The live catalogue.
#[derive(Debug)]
pub struct LiveCatalog {
    catalog: ArcSwap<Catalog>,
    /// Items that are not shown because they are not approved.
    held: ArcSwap<Withheld>,
    /// Held while the catalogue changes, so that changes are serialized.
    changing: Mutex<Known>,
    /// The folder of snapshots.
    dir: PathBuf,
    /// Held per server while its offers are judged and its snapshot is written, so that the last state
    /// written is the latest one, and no server waits for another.
    turns: KeyedLocks,
    pins: PinStore,
    /// Counts changes, for the notifier of clients.
    changes: watch::Sender<u64>,
    /// By server: the number of changes that it announced for each list.
    announced: Mutex<HashMap<String, Announced>>,
    /// Counts changes of the held items.
    held_changes: watch::Sender<u64>,
    problems: Vec<String>,
}

#[derive(Debug)]
struct Known {
    /// The last known offers of each server.
    remembered: Snapshots,
    /// The supervised servers with their configuration. Messages of other servers are ignored: they were in
    /// transit when the server was removed.
    expected: HashMap<String, Arc<Server>>,
}

/// The number of changes that were announced for each list.
pub(crate) type Announced = [u64; Kind::ALL.len()];

/// The last known offers of each server.
type Snapshots = HashMap<String, Remembered>;

#[derive(Debug, Clone)]
struct Remembered {
    snapshot: Snapshot,
    /// This process has judged it.
    judged: bool,
}

/// The held items, by server. Servers without held items are not in it.
type Withheld = HashMap<Arc<str>, Withhold>;

#[derive(Debug, Clone, PartialEq, Eq)]
struct Withhold {
    held: Held,
    /// The held resources, each with its URI in normalized spelling.
    resources: HashSet<String>,
    /// The schemes of the held templates; `None` matches any.
    schemes: HashSet<Option<String>>,
    /// Items that were never seen are held, too.
    unseen: bool,
}

impl LiveCatalog {
    /// Reads the stored snapshots. A damaged file loses only its own content.
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

    /// The problems with files that could not be read at the start.
    pub fn problems(&self) -> &[String] {
        &self.problems
    }

    /// The current catalogue, for short use.
    pub fn catalog(&self) -> arc_swap::Guard<Arc<Catalog>> {
        self.catalog.load()
    }

    /// The current catalogue, for longer use.
    pub fn catalog_full(&self) -> Arc<Catalog> {
        self.catalog.load_full()
    }

    /// Counts changes of the catalogue.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// The pins of a server, which record its approved and held definitions. Waits until a judgement in
    /// progress has taken effect, so that no item is reported as held while it is still shown. Reads a file.
    pub fn pins(&self, name: &str, server: &Server) -> Pins {
        let turn = self.turns.of(name);
        let _turn = turn.lock();
        self.pins.read(name, server)
    }

    /// Counts changes of the held items.
    pub fn held_changes(&self) -> watch::Receiver<u64> {
        self.held_changes.subscribe()
    }

    /// Has approvers asked again about held items, with the current servers.
    pub fn ask_again(&self) {
        self.held_changes.send_modify(|changes| *changes += 1);
    }

    /// Tests if an item of this server is held.
    pub fn holds_something(&self, server: &str) -> bool {
        let held = self.held.load();
        held.get(server).is_some_and(|of| !of.held.is_nothing())
    }

    /// The number of held items of all servers.
    pub fn held_count(&self) -> usize {
        let held = self.held.load();
        let count = |held: &Held| held.items.len() + held.apart.len();
        held.values().map(|of| count(&of.held)).sum()
    }

    /// Decides if an item of a server is approved or, with `None`, if the server has anything approved at
    /// all.
    pub fn permits(&self, server: &str, item: Option<(Kind, &str)>) -> Result<(), Error> {
        let held = self.held.load();
        let Some(of) = held.get(server) else {
            return Ok(());
        };
        let unapproved = |item: Option<Cow<'_, str>>| Error::Unapproved {
            server: server.into(),
            item: item.map(Into::into),
            new_name: None,
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

    /// Tests if the definition that a single process has of this item is held. The item itself is approved.
    pub(crate) fn holds_apart(&self, server: &str, (kind, name): (Kind, &str)) -> bool {
        let held = self.held.load();
        let of = held.get(server);
        of.is_some_and(|of| of.held.apart.contains(&*item_kind(kind).key(name)))
    }

    /// Tests if the catalogue contains this item.
    pub fn lists(&self, server: &str, kind: Kind, name: &str) -> bool {
        let catalog = self.catalog();
        let part = catalog.server(server);
        part.is_some_and(|part| part.find(kind, name).is_some())
    }

    /// The names of items that match this name, ignoring case and all characters other than letters and
    /// digits. Includes held and hidden items.
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

    /// Tests if a URI that is not listed may lead to a held item. Another spelling of a held resource does.
    /// So may any URI with the scheme of a held template, unless an approved template produces it. The server
    /// decides which spellings are equivalent.
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

    /// Tests if the shown capabilities of a server declare an extension.
    pub fn declares_extension(&self, server: &str) -> bool {
        let catalog = self.catalog.load();
        let offers = catalog.server(server).map(|part| part.offers());
        let said = offers.and_then(|offers| offers.capabilities.as_ref());
        said.is_some_and(extensions::declares)
    }

    /// All known offers of this server, including held items.
    pub fn offers(&self, name: &str) -> Option<Arc<Offers>> {
        Some(Arc::clone(
            &self.changing.lock().remembered.get(name)?.snapshot.offers,
        ))
    }

    /// Prepares for a server that is about to be supervised: its stored offers go into the catalogue, if it
    /// is still the same server.
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

    /// Takes in the offers that a server sent: judges and stores them, and shows the approved ones. Lists
    /// that it did not send stay as they are. Returns `false` if they could not be judged; then nothing has
    /// changed.
    pub(crate) async fn put(
        self: &Arc<Self>,
        name: &str,
        merge: impl FnOnce(Option<&Offers>) -> Offers + Send + 'static,
    ) -> bool {
        let (live_catalog, name) = (Arc::clone(self), name.to_owned());
        in_background(move || live_catalog.take_in(&name, Some(merge))).await
    }

    /// Applies a change of the server's tool filter or of `enabled`.
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

    /// Judges the stored offers of all servers, which the start has shown with their earlier judgement. Reads
    /// and writes files.
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

    /// Applies an approver's decision about held items, and returns the items that it decided.
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
        // An error means that the runtime is shutting down.
        deciding.await.unwrap_or_else(|_| Ok(Vec::new()))
    }

    /// Removes a server that is no longer configured.
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
            // It may have been added again meanwhile.
            if !live_catalog.changing.lock().expected.contains_key(&name) {
                live_catalog.pins.remove(&name);
                note(switchboard_catalog::remove(&live_catalog.dir, &name), &name);
            }
        });
    }

    /// Judges the known offers of a server again. Reads and writes files.
    fn judge_again(&self, name: &str) -> bool {
        self.take_in(name, None::<fn(Option<&Offers>) -> Offers>)
    }

    /// Judges the offers of a server, shows the approved ones, and stores them for the next start. `news`
    /// derives the new offers from the known ones; without it, the known ones are judged again. Returns
    /// `false` if there is nothing to judge, or the server is no longer supervised. Reads and writes files.
    fn take_in(&self, name: &str, news: Option<impl FnOnce(Option<&Offers>) -> Offers>) -> bool {
        // Serialized from reading the known offers to storing the new ones, so that no update is lost or
        // applied late.
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
            // Hold back first and show later, so that no client can call an item that is in neither state.
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

    /// Logs the number of definitions that are not shown as they were sent.
    fn tell_mended(&self, name: &str) {
        let catalog = self.catalog.load();
        let mended = catalog.server(name).map_or(0, |part| part.mended().count());
        if mended > 0 {
            tracing::info!(
                server = %name,
                mended,
                "Corrected definitions that clients would reject; /mcp/s/NAME lists them unchanged."
            );
        }
    }

    /// Tests if clients see something different from this part.
    fn is_shown_otherwise(&self, name: &str, part: Option<&ServerPart>) -> bool {
        let catalog = self.catalog.load();
        match (catalog.server(name), part) {
            (None, None) => false,
            (Some(shown), Some(part)) => {
                let seen = |part: &ServerPart| {
                    let lists = (part.hashes(), part.listed_tools_hash());
                    // Everything that is not a list is sent in handshakes.
                    let about = Offers {
                        tools: Vec::new(),
                        prompts: Vec::new(),
                        resources: Vec::new(),
                        templates: Vec::new(),
                        asks_back: false,
                        directories: Vec::new(),
                        apart: Vec::new(),
                        ..Offers::clone(part.offers())
                    };
                    (lists, about, part.problems().clone())
                };
                seen(shown) != seen(part)
            }
            _ => true,
        }
    }

    /// Makes clients fetch their lists again, even if nothing has changed.
    pub fn touch(&self) {
        self.changes.send_modify(|changes| *changes += 1);
    }

    /// Records that the server announced changes of these lists. Its clients are notified when they are to
    /// fetch lists again, even if the lists are the same.
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

    /// The number of changes that the server announced.
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
        // Sent even if the same items are held: a rejected tool stays held, but is no longer asked about.
        self.held_changes.send_modify(|changes| *changes += 1);
    }

    /// Replaces the part of a server. Called with the lock held, so that no change is lost.
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

/// Reads and writes files off the async threads. Returns `false` if the work panicked.
async fn in_background(work: impl FnOnce() -> bool + Send + 'static) -> bool {
    tokio::task::spawn_blocking(work).await.unwrap_or(false)
}

fn note(kept: Result<(), SnapshotError>, name: &str) {
    if let Err(error) = kept {
        tracing::warn!(%error, server = %name, "Cannot save the lists of a server for the next start.");
    }
}

fn without(held: &Withheld, name: &str) -> Withheld {
    let mut held = held.clone();
    held.remove(name);
    held
}

/// The held items of a server that has not been seen yet.
fn nothing_seen(server: &Server) -> Held {
    Held {
        all: server.trust == Trust::Ask,
        ..Held::default()
    }
}

/// The known offers of the servers of a configuration.
fn prepare_all(config: &Config, remembered: &Snapshots) -> Vec<ServerPart> {
    let known: Vec<_> = config
        .servers
        .iter()
        .filter(|(_, server)| server.enabled)
        .filter_map(|(name, server)| {
            let snapshot = &remembered.get(name)?.snapshot;
            let held = &snapshot.held;
            let present =
                |kind: Kind, name: &str, raw: &Raw| present(server, held, kind, name, raw);
            let is_same = snapshot.fingerprint == fingerprint(server);
            is_same.then_some((name, shown(server, snapshot), present))
        })
        .collect();
    let known: Vec<_> = known
        .iter()
        .map(|(name, offers, present)| {
            let present: &Present<'_> = present;
            (name.as_str(), Arc::clone(offers), present)
        })
        .collect();
    let parts = ServerPart::prepare_all(&known).into_iter();
    let of = |part: &ServerPart| config.servers.get(&**part.name());
    parts
        .map(|part| match of(&part) {
            Some(server) => finished(part, server),
            None => part,
        })
        .collect()
}

fn prepare(name: &str, server: &Server, snapshot: &Snapshot) -> ServerPart {
    let held = &snapshot.held;
    let present = |kind: Kind, name: &str, raw: &Raw| present(server, held, kind, name, raw);
    let part = ServerPart::prepare(name, shown(server, snapshot), &present);
    finished(part, server)
}

/// The part with the problems of its overrides, and with a compact list for merged views if the server has one.
fn finished(part: ServerPart, server: &Server) -> ServerPart {
    let problems = overrides::problems(&server.overrides, part.offers());
    let part = part.noting(problems);
    match memory::compact(server) {
        Some(tools) => part.listing(tools),
        None => part,
    }
}

fn present(server: &Server, held: &Held, kind: Kind, name: &str, raw: &Raw) -> Presented {
    let is_shown = (kind != Kind::Tool || server.shows_tool(name))
        && (held.items.is_empty() || !held.items.contains(&*item_kind(kind).key(name)));
    match server.overrides.get(name) {
        Some(changes) if is_shown && kind == Kind::Tool => overrides::present(changes, raw),
        _ => Presented::unchanged_if(is_shown),
    }
}

/// The held URIs or URI templates.
fn held_uris(held: &Held, offers: Option<&Offers>, kind: Kind) -> impl Iterator<Item = String> {
    let is_one = |key: &String| ItemKind::of_key(key) == item_kind(kind);
    let offers = offers.filter(|_| held.items.iter().any(is_one));
    let items = offers.into_iter().flat_map(move |offers| offers.list(kind));
    let uris = items.filter_map(move |raw| raw.member(kind.key_member())?.to_text());
    uris.filter(move |uri| held.items.contains(&*item_kind(kind).key(uri)))
}

/// The most bytes of a server's self-description, and of each capability that is forwarded verbatim.
const SAID_BYTES: usize = 16 * 1024;
/// The capabilities that are forwarded verbatim.
const SAID: [&str; 3] = ["experimental", "extensions", "tasks"];

/// The shown part of a server's offers, apart from single items. The self-description and capabilities of a
/// server are not pinned, because every new version of a server changes them. They are left out together with
/// the instructions, and also if their text is too long or would cause a definition to be held. Capabilities
/// that clients act on are shown even without the instructions.
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
    // Icons are for programs, and long.
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

/// Tests if a value contains text that no honest definition contains.
fn is_dangerous(info: &Raw) -> bool {
    let findings = scan(info, &Others::default());
    findings
        .first()
        .is_some_and(|worst| worst.severity >= Severity::Danger)
}

#[cfg(test)]
mod tests;
