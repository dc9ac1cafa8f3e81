//! [`Page`]: a section of a list, encoded once and cached.

use std::{ops::Range, sync::OnceLock};

use switchboard_wire::Raw;

use crate::{
    BadCursor, Catalog, Item, Kind, ServerPart,
    cursor::{Cursor, Scope},
    digest::Digest,
    limits,
    part::List,
};

/// One page of a list.
#[derive(Clone, Copy, Debug)]
pub struct Page<'a> {
    source: Source<'a>,
    /// The first position. The page extends to the end of the sheet.
    start: usize,
    /// The sheet that the page is, or is the rest of. `None` if the page begins after the end of
    /// the list.
    sheet: Option<&'a Sheet>,
}

impl<'a> Page<'a> {
    /// The items of the page.
    pub fn items(&self) -> impl Iterator<Item = Item<'a>> + use<'a> {
        let source = self.source;
        self.range().filter_map(move |at| source.item(at))
    }

    /// The cursor for the next page.
    pub fn next_cursor(&self) -> Option<&'a str> {
        self.sheet?.next_cursor.as_deref()
    }

    /// The result of the list request, `{"tools":[…],"nextCursor":"…"}`, with these members added
    /// (newer revisions require some in every result).
    ///
    /// Each page is encoded once without added members, and once with the first members that are
    /// requested; after that, it costs a reference count.
    pub fn encoded(&self, members: &[(&str, Raw)]) -> Raw {
        let Some(sheet) = self.sheet.filter(|sheet| sheet.range.start == self.start) else {
            return self.spell(members);
        };
        if members.is_empty() {
            return sheet.plain.get_or_init(|| self.spell(&[])).clone();
        }
        let stamped = sheet.stamped.get_or_init(|| Stamped {
            members: members
                .iter()
                .map(|(name, value)| ((*name).into(), value.clone()))
                .collect(),
            encoded: self.spell(members),
        });
        if stamped.has(members) {
            stamped.encoded.clone()
        } else {
            self.spell(members)
        }
    }

    fn range(&self) -> Range<usize> {
        self.start..self.sheet.map_or(self.start, |sheet| sheet.range.end)
    }

    fn spell(&self, members: &[(&str, Raw)]) -> Raw {
        let size: usize = self.range().map(|at| self.source.size(at) + 1).sum();
        let mut out = Vec::with_capacity(size + 256);
        out.extend_from_slice(b"{\"");
        out.extend_from_slice(self.source.kind().list_member().as_bytes());
        out.extend_from_slice(b"\":[");
        for at in self.range() {
            if at > self.start {
                out.push(b',');
            }
            self.source.write(at, &mut out);
        }
        out.push(b']');
        let cursor = self
            .next_cursor()
            .map(|cursor| ("nextCursor", Raw::string(cursor)));
        for (name, value) in cursor.iter().chain(members) {
            out.push(b',');
            out.extend_from_slice(Raw::string(name).as_bytes());
            out.push(b':');
            out.extend_from_slice(value.as_bytes());
        }
        out.push(b'}');
        // Made of valid JSON, so the default is never used.
        Raw::parse(out).unwrap_or_else(|_| Raw::empty_object())
    }
}

/// The pages of a list, created on first use.
#[derive(Default)]
pub(crate) struct Sheets(OnceLock<Box<[Sheet]>>);

#[derive(Debug)]
struct Sheet {
    range: Range<usize>,
    next_cursor: Option<String>,
    plain: OnceLock<Raw>,
    stamped: OnceLock<Stamped>,
}

/// An encoded page with members added.
#[derive(Debug)]
struct Stamped {
    members: Vec<(Box<str>, Raw)>,
    encoded: Raw,
}

impl Stamped {
    fn has(&self, members: &[(&str, Raw)]) -> bool {
        let known = self.members.iter().map(|(name, value)| (&**name, value));
        known.eq(members.iter().map(|(name, value)| (*name, value)))
    }
}

/// The list that is paged.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Source<'a> {
    Direct(&'a Catalog, Kind),
    Server(&'a ServerPart, Kind),
}

impl<'a> Source<'a> {
    pub(crate) fn page(self, cursor: Option<&str>) -> Result<Page<'a>, BadCursor> {
        let start = match cursor {
            None => 0,
            Some(cursor) => self.find(cursor)?,
        };
        let sheets = self.sheets().0.get_or_init(|| self.cut());
        // If the list has changed since the cursor was issued, the page may begin within a sheet.
        // It is the rest of that sheet then, and the following pages are whole sheets again.
        let sheet = sheets.get(sheets.partition_point(|sheet| sheet.range.end <= start));
        Ok(Page {
            source: self,
            start,
            sheet: sheet.or(if start == 0 { sheets.first() } else { None }),
        })
    }

    fn cut(self) -> Box<[Sheet]> {
        let mut sheets = Vec::new();
        let mut start = 0;
        let mut bytes = 0;
        let end = self.count();
        for at in 0..end {
            let size = self.size(at);
            if at > start && (at - start == limits::PAGE_ITEMS || bytes + size > limits::PAGE_BYTES)
            {
                sheets.push(Sheet::new(start..at, Some(self.cursor_after(at - 1))));
                (start, bytes) = (at, 0);
            }
            bytes += size;
        }
        sheets.push(Sheet::new(start..end, None));
        sheets.into()
    }

    fn kind(self) -> Kind {
        match self {
            Self::Direct(_, kind) | Self::Server(_, kind) => kind,
        }
    }

    fn scope(self) -> Scope {
        match self {
            Self::Direct(..) => Scope::Direct,
            Self::Server(..) => Scope::Server,
        }
    }

    fn sheets(self) -> &'a Sheets {
        match self {
            Self::Direct(catalog, kind) => catalog.sheets(kind),
            Self::Server(part, kind) => &part.list(kind).sheets,
        }
    }

    fn count(self) -> usize {
        match self {
            Self::Direct(catalog, kind) => catalog.count(kind),
            Self::Server(part, kind) => part.count(kind),
        }
    }

    fn item(self, at: usize) -> Option<Item<'a>> {
        match self {
            Self::Direct(catalog, kind) => catalog.item(kind, at),
            Self::Server(part, kind) => part.item(kind, at),
        }
    }

    fn size(self, at: usize) -> usize {
        self.item(at).map_or(0, |item| match self {
            Self::Direct(..) => item.exposed_len(),
            Self::Server(..) => item.definition().as_bytes().len(),
        })
    }

    fn write(self, at: usize, out: &mut Vec<u8>) {
        let Some(item) = self.item(at) else { return };
        match self {
            Self::Direct(..) => item.write_exposed(out),
            Self::Server(..) => out.extend_from_slice(item.definition().as_bytes()),
        }
    }

    fn cursor_after(self, at: usize) -> String {
        let Some(item) = self.item(at) else {
            return String::new();
        };
        let first = match self {
            Self::Direct(catalog, kind) => catalog.first_of_server(kind, at),
            Self::Server(..) => 0,
        };
        let cursor = Cursor {
            server: item.server(),
            at: at - first,
            key: Digest::of(item.name().as_bytes()),
        };
        cursor.encode(self.scope(), self.kind())
    }

    /// The position at which the page of a cursor begins.
    fn find(self, text: &str) -> Result<usize, BadCursor> {
        Cursor::decode(text, self.scope(), self.kind(), |cursor| match self {
            Self::Direct(catalog, kind) => Ok(match catalog.place_of_server(kind, cursor.server) {
                (first, Some(part)) => first + after(part.listed(kind), &cursor),
                (first, None) => first,
            }),
            Self::Server(part, _) if **part.name() != *cursor.server => Err(BadCursor),
            Self::Server(part, kind) => Ok(after(part.list(kind), &cursor)),
        })
    }
}

impl Sheet {
    fn new(range: Range<usize>, next_cursor: Option<String>) -> Self {
        Self {
            range,
            next_cursor,
            plain: OnceLock::new(),
            stamped: OnceLock::new(),
        }
    }
}

/// The position in a server's list after the item that a cursor names.
fn after(list: &List, cursor: &Cursor<'_>) -> usize {
    let is_it = |at: usize| {
        let entry = list.entries.get(at);
        entry.is_some_and(|entry| Digest::of(entry.key.as_bytes()) == cursor.key)
    };
    if is_it(cursor.at) {
        return cursor.at + 1;
    }
    match (0..list.entries.len()).find(|at| is_it(*at)) {
        Some(at) => at + 1,
        None => cursor.at.min(list.entries.len()),
    }
}
