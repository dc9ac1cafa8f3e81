//! [`Catalog`]: the merged offers of all servers.

use std::{collections::HashMap, fmt, sync::Arc};

use switchboard_wire::Raw;

use crate::{
    BadCursor, Item, Kind, Page, Presented, ServerPart,
    digest::Digest,
    names, nearest,
    page::{Sheets, Source},
    uris,
};

/// The merged offers of all servers. Immutable: [`with`](Self::with) makes a new one.
///
/// Servers are sorted by name, and the items of a server keep the order in which it lists them. The
/// result does not depend on the order in which servers were added.
pub struct Catalog {
    /// Sorted by name.
    parts: Vec<Arc<ServerPart>>,
    lists: [Merged; 4],
}

/// The target of an exposed name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target<'a> {
    /// The server.
    pub server: &'a Arc<str>,
    /// The item's name at the server.
    pub name: &'a str,
}

impl Catalog {
    /// Merges these parts. If two parts have the same name, the last one wins.
    pub fn from_parts(parts: impl IntoIterator<Item = Arc<ServerPart>>) -> Self {
        let mut parts: Vec<_> = parts.into_iter().collect();
        // The sort is stable, so the last part of a name is the last of its run.
        parts.sort_by(|a, b| a.name().cmp(b.name()));
        parts.reverse();
        parts.dedup_by(|later, earlier| later.name() == earlier.name());
        parts.reverse();
        Self::merge(parts)
    }

    /// This catalog with the part of one server replaced, added, or (with `None`) removed. All
    /// other parts are shared with this one. The cost depends on the number of servers and of names
    /// that are not clean, not on the number of items.
    #[must_use]
    pub fn with(&self, server: &str, part: Option<Arc<ServerPart>>) -> Self {
        let others = self.parts.iter().filter(|other| **other.name() != *server);
        Self::from_parts(others.cloned().chain(part))
    }

    /// This catalog without the servers that `permits` rejects, and with the items as `present` shows them, which gets
    /// the server first. Parts and lists in which nothing changes are shared with this one.
    #[must_use]
    pub fn presented(
        &self,
        permits: &dyn Fn(&str) -> bool,
        present: &(dyn Fn(&str, Kind, &str, &Raw) -> Presented + Sync),
    ) -> Self {
        let parts = self.parts.iter().filter(|part| permits(part.name()));
        let parts = parts.map(|part| {
            let present = |kind: Kind, name: &str, raw: &Raw| present(part.name(), kind, name, raw);
            let changed = part.presented(&present);
            changed.map_or_else(|| Arc::clone(part), Arc::new)
        });
        Self::merge(parts.collect())
    }

    /// The parts, sorted by name.
    pub fn servers(&self) -> impl ExactSizeIterator<Item = &Arc<ServerPart>> {
        self.parts.iter()
    }

    /// The part of one server.
    pub fn server(&self, name: &str) -> Option<&Arc<ServerPart>> {
        let at = self
            .parts
            .binary_search_by(|part| (**part.name()).cmp(name));
        self.parts.get(at.ok()?)
    }

    /// Every tool.
    pub fn tools(&self) -> impl Iterator<Item = Item<'_>> {
        self.items(Kind::Tool)
    }

    /// Every prompt.
    pub fn prompts(&self) -> impl Iterator<Item = Item<'_>> {
        self.items(Kind::Prompt)
    }

    /// Every resource that is listed.
    pub fn resources(&self) -> impl Iterator<Item = Item<'_>> {
        self.items(Kind::Resource)
    }

    /// Every resource template.
    pub fn templates(&self) -> impl Iterator<Item = Item<'_>> {
        self.items(Kind::Template)
    }

    /// Every item of one kind.
    pub fn items(&self, kind: Kind) -> impl Iterator<Item = Item<'_>> {
        self.parts
            .iter()
            .enumerate()
            .flat_map(move |(part, server)| {
                (0..server.count(kind)).filter_map(move |at| self.item_of(kind, part, at))
            })
    }

    /// The number of items of a kind that merged views list.
    pub fn count(&self, kind: Kind) -> usize {
        self.list(kind).starts.last().copied().unwrap_or_default()
    }

    /// One page of the direct view, from the start or from a cursor.
    pub fn page(&self, kind: Kind, cursor: Option<&str>) -> Result<Page<'_>, BadCursor> {
        Source::Direct(self, kind).page(cursor)
    }

    /// The target of a tool's exposed name. Two lookups and no allocation, because every call comes
    /// through here.
    pub fn tool(&self, exposed: &str) -> Option<Target<'_>> {
        self.named(Kind::Tool, exposed).map(Target::from)
    }

    /// The target of a prompt's exposed name.
    pub fn prompt(&self, exposed: &str) -> Option<Target<'_>> {
        self.named(Kind::Prompt, exposed).map(Target::from)
    }

    /// The item with this exposed name or URI, with its definition.
    pub fn find(&self, kind: Kind, exposed: &str) -> Option<Item<'_>> {
        if kind.is_named() {
            return self.named(kind, exposed);
        }
        let Target { server, name } = self.resource(exposed)?;
        self.server(server)?.find(kind, name)
    }

    /// The target of a resource: any URI that begins with the prefix of a known server. It need not
    /// be listed, because templates make URIs that are not.
    pub fn resource<'a>(&'a self, uri: &'a str) -> Option<Target<'a>> {
        let (server, name) = uris::split(uri)?;
        let part = self.server(&server)?;
        Some(Target {
            server: part.name(),
            name,
        })
    }

    /// The target of a resource template.
    pub fn template<'a>(&'a self, uri_template: &'a str) -> Option<Target<'a>> {
        self.resource(uri_template)
    }

    /// The exposed name of a tool that is closest to a wrong one.
    pub fn suggest_tool(&self, wrong: &str) -> Option<&str> {
        let names = self.tools();
        let names = names.map(|tool| (tool.exposed(), tool.shown_name()));
        nearest::nearest(wrong, names)
    }

    /// Three hashes: of the tools of the direct view, of its prompts, and of its resources with
    /// their templates.
    pub fn hashes(&self) -> [u64; 3] {
        let of = |kind| self.list(kind).hash;
        let resources = Digest::new()
            .add_number(of(Kind::Resource))
            .add_number(of(Kind::Template));
        [of(Kind::Tool), of(Kind::Prompt), resources.finish()]
    }

    fn merge(parts: Vec<Arc<ServerPart>>) -> Self {
        let mut catalog = Self {
            parts,
            lists: Default::default(),
        };
        for kind in Kind::ALL {
            catalog.lists[kind.index()] = catalog.merge_list(kind);
        }
        catalog
    }

    fn merge_list(&self, kind: Kind) -> Merged {
        let mut merged = Merged::default();
        let mut end = 0;
        let mut hash = Digest::new();
        merged.starts.push(end);
        for (at, part) in self.parts.iter().enumerate() {
            let listed = part.listed(kind);
            end += listed.entries.len();
            merged.starts.push(end);
            if !listed.entries.is_empty() {
                hash = hash.add(part.name().as_bytes()).add_number(listed.hash);
            }
            let list = part.list(kind);
            for &item in &list.hashed {
                let place = Place { part: at, item };
                let first = list.entries[item].exposed.clone();
                let name = self.free_name(kind, &merged, place, &first);
                if name != first {
                    hash = hash.add(name.as_bytes());
                    merged.renamed.insert(place, name.clone());
                }
                merged.hashed.insert(name, place);
            }
        }
        merged.hash = hash.finish();
        merged
    }

    /// The first of an item's hashed names that is free.
    fn free_name(&self, kind: Kind, merged: &Merged, place: Place, first: &Arc<str>) -> Arc<str> {
        let part = &self.parts[place.part];
        let shown_name = &part.list(kind).entries[place.item].shown_name;
        let mut name = first.clone();
        let mut round = 0;
        while merged.hashed.contains_key(&name) || self.clean(kind, &name).is_some() {
            round += 1;
            name = names::hashed(part.name(), shown_name, round).into();
        }
        name
    }

    fn named(&self, kind: Kind, exposed: &str) -> Option<Item<'_>> {
        self.clean(kind, exposed).or_else(|| {
            let place = self.list(kind).hashed.get(exposed)?;
            self.item_of(kind, place.part, place.item)
        })
    }

    /// The item with this clean name.
    fn clean(&self, kind: Kind, exposed: &str) -> Option<Item<'_>> {
        let (server, name) = names::split(exposed)?;
        let item = self.server(server)?.find_shown(kind, name)?;
        (item.entry.clean && item.exposed == exposed).then_some(item)
    }

    fn item_of(&self, kind: Kind, part: usize, item: usize) -> Option<Item<'_>> {
        let found = self.parts.get(part)?.item(kind, item)?;
        Some(self.renamed(found, Place { part, item }))
    }

    fn renamed<'a>(&'a self, found: Item<'a>, place: Place) -> Item<'a> {
        let renamed = self.list(found.kind).renamed.get(&place);
        Item {
            exposed: renamed.map_or(found.exposed, |name| name),
            ..found
        }
    }

    fn list(&self, kind: Kind) -> &Merged {
        &self.lists[kind.index()]
    }

    /// The item at a position of the direct view.
    pub(crate) fn item(&self, kind: Kind, at: usize) -> Option<Item<'_>> {
        let starts = &self.list(kind).starts;
        let part = starts
            .partition_point(|start| *start <= at)
            .checked_sub(1)?;
        let item = at - starts[part];
        let found = self.parts.get(part)?.listed_item(kind, item)?;
        // A clean name is never changed. For any other, the position in the list of all items is
        // the same.
        if found.entry.clean {
            return Some(found);
        }
        Some(self.renamed(found, Place { part, item }))
    }

    /// The first position of the server whose item is at a position.
    pub(crate) fn first_of_server(&self, kind: Kind, at: usize) -> usize {
        let starts = &self.list(kind).starts;
        let part = starts.partition_point(|start| *start <= at);
        starts[..part].last().copied().unwrap_or_default()
    }

    /// The first position of a server, or the position where it would be inserted.
    pub(crate) fn place_of_server(&self, kind: Kind, name: &str) -> (usize, Option<&ServerPart>) {
        let found = self
            .parts
            .binary_search_by(|part| (**part.name()).cmp(name));
        let (Ok(at) | Err(at)) = found;
        let start = self.list(kind).starts.get(at).copied().unwrap_or_default();
        (start, found.ok().map(|at| &*self.parts[at]))
    }

    pub(crate) fn sheets(&self, kind: Kind) -> &Sheets {
        &self.list(kind).sheets
    }
}

impl Default for Catalog {
    /// No servers.
    fn default() -> Self {
        Self::merge(Vec::new())
    }
}

impl fmt::Debug for Catalog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.parts).finish()
    }
}

impl<'a> From<Item<'a>> for Target<'a> {
    fn from(item: Item<'a>) -> Self {
        Self {
            server: item.server(),
            name: item.name(),
        }
    }
}

/// The lists of all servers for one kind, one after the other.
#[derive(Default)]
struct Merged {
    /// The first position of each part, and the length of the list.
    starts: Vec<usize>,
    /// The names that are not clean.
    hashed: HashMap<Arc<str>, Place>,
    /// The items whose first hashed name was taken.
    renamed: HashMap<Place, Arc<str>>,
    hash: u64,
    sheets: Sheets,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Place {
    part: usize,
    item: usize,
}
