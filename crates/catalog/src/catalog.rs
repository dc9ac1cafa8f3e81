//! [`Catalog`]: what all servers offer, together.

use std::{collections::HashMap, fmt, sync::Arc};

use crate::{
    BadCursor, Item, Kind, Page, ServerPart,
    digest::Digest,
    names, nearest,
    page::{Sheets, Source},
    uris,
};

/// What all servers offer, together. It never changes: [`with`](Self::with) makes the next one.
///
/// Servers come in the order of their names, and what a server offers in the order in which it
/// lists it. Nothing depends on who came first.
pub struct Catalog {
    /// In the order of their names.
    parts: Vec<Arc<ServerPart>>,
    lists: [Merged; 4],
}

/// Who an exposed name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target<'a> {
    /// The server.
    pub server: &'a Arc<str>,
    /// What the server calls it.
    pub name: &'a str,
}

impl Catalog {
    /// Merges these parts. Of two parts of one name the last counts.
    pub fn from_parts(parts: impl IntoIterator<Item = Arc<ServerPart>>) -> Self {
        let mut parts: Vec<_> = parts.into_iter().collect();
        // The sort is stable, so the last of a name is the last of its run.
        parts.sort_by(|a, b| a.name().cmp(b.name()));
        parts.reverse();
        parts.dedup_by(|later, earlier| later.name() == earlier.name());
        parts.reverse();
        Self::merge(parts)
    }

    /// This catalogue with one server's part replaced, added, or (with `None`) removed. Every other
    /// part is shared with this one; the cost is in the number of servers and of names that are not
    /// clean, not in what the servers offer.
    #[must_use]
    pub fn with(&self, server: &str, part: Option<Arc<ServerPart>>) -> Self {
        let others = self.parts.iter().filter(|other| **other.name() != *server);
        Self::from_parts(others.cloned().chain(part))
    }

    /// The parts, in the order of their names.
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

    /// Everything of one kind.
    pub fn items(&self, kind: Kind) -> impl Iterator<Item = Item<'_>> {
        self.parts
            .iter()
            .enumerate()
            .flat_map(move |(part, server)| {
                (0..server.count(kind)).filter_map(move |at| self.item_of(kind, part, at))
            })
    }

    /// How many items of a kind merged views list.
    pub fn count(&self, kind: Kind) -> usize {
        self.list(kind).starts.last().copied().unwrap_or_default()
    }

    /// One page of the direct view, from the start or from where a cursor points to.
    pub fn page(&self, kind: Kind, cursor: Option<&str>) -> Result<Page<'_>, BadCursor> {
        Source::Direct(self, kind).page(cursor)
    }

    /// Whose tool this is. Two look-ups and no allocation: every call comes through here.
    pub fn tool(&self, exposed: &str) -> Option<Target<'_>> {
        self.named(Kind::Tool, exposed).map(Target::from)
    }

    /// Whose prompt this is.
    pub fn prompt(&self, exposed: &str) -> Option<Target<'_>> {
        self.named(Kind::Prompt, exposed).map(Target::from)
    }

    /// The tool or prompt of this exposed name, definition and all.
    pub fn find(&self, kind: Kind, exposed: &str) -> Option<Item<'_>> {
        if kind.is_named() {
            return self.named(kind, exposed);
        }
        let Target { server, name } = self.resource(exposed)?;
        self.server(server)?.find(kind, name)
    }

    /// Whose resource this is: any URI that begins with the prefix of a server we know, listed or
    /// not, because templates make URIs that are not listed.
    pub fn resource<'a>(&'a self, uri: &'a str) -> Option<Target<'a>> {
        let (server, name) = uris::split(uri)?;
        let part = self.server(&server)?;
        Some(Target {
            server: part.name(),
            name,
        })
    }

    /// Whose resource template this is.
    pub fn template<'a>(&'a self, uri_template: &'a str) -> Option<Target<'a>> {
        self.resource(uri_template)
    }

    /// The tool whose exposed name is nearest to a wrong one.
    pub fn suggest_tool(&self, wrong: &str) -> Option<&str> {
        let names = self.tools().map(|tool| (tool.exposed(), tool.name()));
        nearest::nearest(wrong, names)
    }

    /// Three numbers that differ when the tools of the direct view, its prompts, or its resources with their templates do.
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

    /// The first of an item's hashed names that nobody has.
    fn free_name(&self, kind: Kind, merged: &Merged, place: Place, first: &Arc<str>) -> Arc<str> {
        let part = &self.parts[place.part];
        let key = &part.list(kind).entries[place.item].key;
        let mut name = first.clone();
        let mut round = 0;
        while merged.hashed.contains_key(&name) || self.clean(kind, &name).is_some() {
            round += 1;
            name = names::hashed(part.name(), key, round).into();
        }
        name
    }

    fn named(&self, kind: Kind, exposed: &str) -> Option<Item<'_>> {
        self.clean(kind, exposed).or_else(|| {
            let place = self.list(kind).hashed.get(exposed)?;
            self.item_of(kind, place.part, place.item)
        })
    }

    /// The item that has this as its clean name.
    fn clean(&self, kind: Kind, exposed: &str) -> Option<Item<'_>> {
        let (server, name) = names::split(exposed)?;
        let item = self.server(server)?.find(kind, name)?;
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
        // A clean name is never changed. Of any other, the place is the same in the list of all.
        if found.entry.clean {
            return Some(found);
        }
        Some(self.renamed(found, Place { part, item }))
    }

    /// Where the server begins whose item is at a position.
    pub(crate) fn first_of_server(&self, kind: Kind, at: usize) -> usize {
        let starts = &self.list(kind).starts;
        let part = starts.partition_point(|start| *start <= at);
        starts[..part].last().copied().unwrap_or_default()
    }

    /// Where a server begins, or would.
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
    /// Where each part begins, and at last where the list ends.
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
