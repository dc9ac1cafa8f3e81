//! [`ServerPart`]: the part of one server in the catalog.

use std::{
    collections::{HashMap, HashSet},
    fmt,
    sync::Arc,
};

use switchboard_wire::Raw;

use crate::{
    BadCursor, Kind, Offers, Page,
    digest::Digest,
    item::{Entry, Item, ItemError},
    limits, names, nearest,
    page::{Sheets, Source},
    parallel,
    presented::{Present, PresentItem, Presented},
    uris,
};

/// The part of one server in the catalog: its lists parsed, checked and named, once.
///
/// A client that connects to this server alone sees exactly this: names and definitions verbatim,
/// without the items that the filter hides and without broken items.
pub struct ServerPart {
    name: Arc<str>,
    offers: Arc<Offers>,
    lists: [Arc<List>; 4],
    problems: Problems,
    /// The tools that merged views list in place of all.
    compact: Option<Arc<List>>,
    has_apps: bool,
}

/// The items that were left out of a server's lists, and other problems with them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problems {
    /// The number of problems.
    pub count: usize,
    /// The first problems, one sentence each.
    pub messages: Vec<String>,
}

impl ServerPart {
    /// Prepares the offers of a server. `present` decides how each item is shown.
    pub fn prepare(server: &str, offers: Arc<Offers>, present: &Present<'_>) -> Self {
        let mut problems = Problems::default();
        let lists = Kind::ALL.map(|kind| {
            let present = |key: &str, raw: &Raw| present(kind, key, raw);
            Arc::new(List::read(server, kind, &offers, &present, &mut problems))
        });
        let mut tools = offers.tools.iter().take(limits::ITEMS);
        let has_apps = tools.any(|tool| !uris::pages(tool).is_empty());
        Self {
            name: server.into(),
            offers,
            lists,
            problems,
            compact: None,
            has_apps,
        }
    }

    /// Lists these definitions in merged views, in place of all tools. Every tool can still be
    /// found by its name, with the definition of the server. A definition that belongs to no tool,
    /// or whose name is not clean, is left out.
    #[must_use]
    pub fn listing(mut self, tools: &[Raw]) -> Self {
        let offers = Offers {
            tools: tools.to_vec(),
            ..Offers::default()
        };
        let all = &self.list(Kind::Tool).index;
        let present = |name: &str, _: &Raw| {
            let is_clean = || names::clean(&self.name, name).is_some();
            Presented::unchanged_if(all.contains_key(name) && is_clean())
        };
        let mut problems = Problems::default();
        let list = List::read(&self.name, Kind::Tool, &offers, &present, &mut problems);
        self.compact = Some(Arc::new(list));
        self
    }

    /// Adds problems with its items.
    #[must_use]
    pub fn noting(mut self, problems: Vec<String>) -> Self {
        for problem in problems {
            self.problems.note(|| problem);
        }
        self
    }

    /// This part with its items as `present` shows them; `None` if it changes nothing. Shares the definitions of
    /// unchanged items.
    pub(crate) fn presented(&self, present: &Present<'_>) -> Option<Self> {
        let presented = |kind: Kind, list: &Arc<List>| {
            list.presented(&self.name, kind, &|key, raw| present(kind, key, raw))
        };
        let lists = Kind::ALL.map(|kind| presented(kind, self.list(kind)));
        let mut both = lists.iter().zip(&self.lists);
        if both.all(|(now, before)| Arc::ptr_eq(now, before)) {
            return None;
        }
        let compact = self.compact.as_ref();
        let mut tools = lists[Kind::Tool.index()].entries.iter();
        Some(Self {
            name: Arc::clone(&self.name),
            offers: Arc::clone(&self.offers),
            has_apps: tools.any(|tool| !uris::pages(tool.definition()).is_empty()),
            lists,
            problems: Problems::default(),
            compact: compact.map(|compact| presented(Kind::Tool, compact)),
        })
    }

    /// Prepares the offers of many servers in parallel.
    pub fn prepare_all(servers: &[(&str, Arc<Offers>, &Present<'_>)]) -> Vec<Self> {
        parallel::map(servers, |(server, offers, present)| {
            Self::prepare(server, Arc::clone(offers), present)
        })
    }

    /// The server's name.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// The offers that this was made of.
    pub fn offers(&self) -> &Arc<Offers> {
        &self.offers
    }

    /// The items that were left out, and other problems.
    pub fn problems(&self) -> &Problems {
        &self.problems
    }

    /// The items whose definition clients would reject.
    pub fn mended(&self) -> impl Iterator<Item = Item<'_>> {
        let items = Kind::ALL.into_iter().flat_map(move |kind| self.items(kind));
        items.filter(Item::is_mended)
    }

    /// Returns `true` if a tool of the server has a page to show, including tools that the filter
    /// hides.
    pub fn has_apps(&self) -> bool {
        self.has_apps
    }

    /// The number of items of a kind.
    pub fn count(&self, kind: Kind) -> usize {
        self.list(kind).entries.len()
    }

    /// The total length of the definitions of its tools.
    pub fn tools_bytes(&self) -> usize {
        self.list(Kind::Tool).bytes
    }

    /// The items of a kind, in the server's order.
    pub fn items(&self, kind: Kind) -> impl Iterator<Item = Item<'_>> {
        (0..self.count(kind)).filter_map(move |at| self.item(kind, at))
    }

    /// The item with this name at the server.
    ///
    /// [`Item::exposed`] is the preferred name in the direct view; only the [`Catalog`] knows if
    /// another server has taken it.
    ///
    /// [`Catalog`]: crate::Catalog
    pub fn find(&self, kind: Kind, name: &str) -> Option<Item<'_>> {
        let at = self.list(kind).index.get(name)?;
        self.item(kind, *at)
    }

    /// The item that clients of the server's view see under this name.
    pub fn find_shown(&self, kind: Kind, name: &str) -> Option<Item<'_>> {
        let list = self.list(kind);
        if let Some(at) = list.renamed.get(name) {
            return self.item(kind, *at);
        }
        self.find(kind, name)
            .filter(|item| item.shown_name() == name)
    }

    /// One page of a list, from the start or from a cursor.
    pub fn page(&self, kind: Kind, cursor: Option<&str>) -> Result<Page<'_>, BadCursor> {
        Source::Server(self, kind).page(cursor)
    }

    /// The name of a tool that is closest to a wrong one.
    pub fn suggest_tool(&self, wrong: &str) -> Option<&str> {
        let names = self
            .items(Kind::Tool)
            .map(|tool| (tool.shown_name(), tool.shown_name()));
        nearest::nearest(wrong, names)
    }

    /// Three hashes: of the tools, of the prompts, and of the resources with their templates.
    pub fn hashes(&self) -> [u64; 3] {
        let of = |kind| self.list(kind).hash;
        let resources = Digest::new()
            .add_number(of(Kind::Resource))
            .add_number(of(Kind::Template));
        [of(Kind::Tool), of(Kind::Prompt), resources.finish()]
    }

    /// A hash of the tools that merged views list.
    pub fn listed_tools_hash(&self) -> u64 {
        self.listed(Kind::Tool).hash
    }

    pub(crate) fn list(&self, kind: Kind) -> &Arc<List> {
        &self.lists[kind.index()]
    }

    /// The items that merged views list.
    pub(crate) fn listed(&self, kind: Kind) -> &Arc<List> {
        match (&self.compact, kind) {
            (Some(compact), Kind::Tool) => compact,
            _ => self.list(kind),
        }
    }

    pub(crate) fn item(&self, kind: Kind, at: usize) -> Option<Item<'_>> {
        Some(self.item_of(kind, self.list(kind).entries.get(at)?))
    }

    /// The item at a position of the list for merged views.
    pub(crate) fn listed_item(&self, kind: Kind, at: usize) -> Option<Item<'_>> {
        Some(self.item_of(kind, self.listed(kind).entries.get(at)?))
    }

    fn item_of<'a>(&'a self, kind: Kind, entry: &'a Entry) -> Item<'a> {
        Item {
            kind,
            server: &self.name,
            exposed: &entry.exposed,
            entry,
        }
    }
}

impl fmt::Debug for ServerPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("ServerPart");
        out.field("name", &self.name);
        for kind in Kind::ALL {
            out.field(kind.list_member(), &self.count(kind));
        }
        out.field("problems", &self.problems.count)
            .finish_non_exhaustive()
    }
}

impl Problems {
    fn note(&mut self, message: impl FnOnce() -> String) {
        self.count += 1;
        if self.messages.len() < limits::PROBLEMS {
            self.messages.push(message());
        }
    }
}

/// The items of one kind.
pub(crate) struct List {
    pub(crate) entries: Vec<Entry>,
    /// The items without a clean name, sorted by key, which is the order in which they get names.
    pub(crate) hashed: Vec<usize>,
    pub(crate) hash: u64,
    pub(crate) bytes: usize,
    pub(crate) sheets: Sheets,
    // The server chooses the keys, so this needs a hasher that resists collision attacks.
    index: HashMap<Arc<str>, usize>,
    /// The items whose names the owner has changed, by their new names.
    renamed: HashMap<Arc<str>, usize>,
}

impl List {
    fn read(
        server: &str,
        kind: Kind,
        offers: &Offers,
        present: &PresentItem<'_>,
        problems: &mut Problems,
    ) -> Self {
        let offered = offers.list(kind);
        let taken = &offered[..offered.len().min(limits::ITEMS)];
        let mut entries: Vec<Entry> = Vec::with_capacity(taken.len());
        let mut known = HashSet::with_capacity(taken.len());
        for (position, raw) in taken.iter().enumerate() {
            let entry = Entry::read(server, kind, raw, present).and_then(|entry| match entry {
                Some(entry) if !known.insert(Arc::clone(&entry.key)) => {
                    Err(ItemError::Taken(entry.key))
                }
                entry => Ok(entry),
            });
            match entry {
                Ok(entry) => entries.extend(entry),
                Err(fault) => problems
                    .note(|| format!("{}[{position}] is ignored: it {fault}", kind.list_member())),
            }
        }
        if offered.len() > taken.len() {
            let member = kind.list_member();
            problems.note(|| {
                format!(
                    "{member} are truncated to the first {} items",
                    limits::ITEMS
                )
            });
            problems.count += offered.len() - taken.len() - 1;
        }
        Self::of(entries, &mut |entry| {
            let (member, fault) = (kind.list_member(), ItemError::Replaced(entry.shown_name));
            problems.note(|| format!("an item of {member} is ignored: it {fault}"));
        })
    }

    /// These items, without any whose name the owner has given to another one.
    fn of(mut entries: Vec<Entry>, left_out: &mut dyn FnMut(Entry)) -> Self {
        let is_renamed = |entry: &Entry| entry.shown_name != entry.key;
        // The first item with a new name has it.
        let mut renamed = HashMap::new();
        for entry in entries.iter().filter(|entry| is_renamed(entry)) {
            let key = Arc::clone(&entry.key);
            renamed.entry(Arc::clone(&entry.shown_name)).or_insert(key);
        }
        if !renamed.is_empty() {
            let is_taken = |entry: &mut Entry| {
                let of = renamed.get(&entry.shown_name);
                of.is_some_and(|key| *key != entry.key)
            };
            entries.extract_if(.., is_taken).for_each(left_out);
        }
        let index: HashMap<_, _> = entries
            .iter()
            .map(|entry| Arc::clone(&entry.key))
            .zip(0..)
            .collect();
        let renamed = renamed
            .into_iter()
            .filter_map(|(name, key)| Some((name, *index.get(&key)?)))
            .collect();
        let mut hashed: Vec<_> = (0..entries.len())
            .filter(|at| entries.get(*at).is_some_and(|entry: &Entry| !entry.clean))
            .collect();
        hashed.sort_by(|a, b| entries[*a].key.cmp(&entries[*b].key));
        let definitions = || entries.iter().map(|entry| entry.definition().as_bytes());
        let hash = definitions().fold(Digest::new(), Digest::add).finish();
        let bytes = definitions().map(<[u8]>::len).sum();
        Self {
            hashed,
            hash,
            bytes,
            sheets: Sheets::default(),
            index,
            renamed,
            entries,
        }
    }

    /// This list with its items as `present` shows them. It is the same list if none changes.
    fn presented(
        self: &Arc<Self>,
        server: &str,
        kind: Kind,
        present: &PresentItem<'_>,
    ) -> Arc<Self> {
        let is_unchanged = |entry: &Entry| {
            let presented = present(&entry.key, entry.definition());
            matches!(presented, Presented::Unchanged)
        };
        if self.entries.iter().all(is_unchanged) {
            return Arc::clone(self);
        }
        let entries = self.entries.iter();
        let entries = entries.filter_map(|entry| entry.presented(server, kind, present));
        Arc::new(Self::of(entries.collect(), &mut |_| {}))
    }
}
