//! [`Item`]: one item of a server, with both of its names.

use std::{fmt, ops::Range, sync::Arc};

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;
use switchboard_wire::Raw;

use crate::{
    Kind, limits,
    mend::mend,
    names,
    presented::{PresentItem, Presented},
    uris,
};

/// One item of a server, with both of its names.
#[derive(Clone, Copy, Debug)]
pub struct Item<'a> {
    pub(crate) kind: Kind,
    pub(crate) server: &'a Arc<str>,
    pub(crate) entry: &'a Entry,
    pub(crate) exposed: &'a str,
}

impl<'a> Item<'a> {
    /// The server.
    pub fn server(&self) -> &'a Arc<str> {
        self.server
    }

    /// The item's key at the server: the name, the URI, or the URI template.
    pub fn name(&self) -> &'a str {
        &self.entry.key
    }

    /// The name in the server's view. It differs from the server's own if the owner has changed it.
    pub fn shown_name(&self) -> &'a str {
        &self.entry.shown_name
    }

    /// The name in the direct view.
    pub fn exposed(&self) -> &'a str {
        self.exposed
    }

    /// The definition as the server sent it.
    pub fn raw(&self) -> &'a Raw {
        &self.entry.raw
    }

    /// The definition as clients see it in the server's view: as the server sent it, unless the
    /// owner has changed it.
    pub fn definition(&self) -> &'a Raw {
        self.entry.definition()
    }

    /// Returns `true` if the owner has changed the definition.
    pub fn is_changed(&self) -> bool {
        self.entry.changed.is_some()
    }

    /// The definition as shown together with definitions of other servers: as
    /// [`definition`](Self::definition), unless clients would reject that.
    pub fn shown(&self) -> &'a Raw {
        self.entry.shown()
    }

    /// Returns `true` if [`shown`](Self::shown) differs from the definition.
    pub fn is_mended(&self) -> bool {
        self.entry.mended.is_some()
    }

    /// The definition for the direct view: as [`shown`](Self::shown), but with exposed names in
    /// place of the server's own name and of the addresses of a tool's pages.
    pub fn exposed_raw(&self) -> Raw {
        let mut out = Vec::with_capacity(self.exposed_len());
        self.write_exposed(&mut out);
        // One string in valid JSON was replaced by another, so the default is never used.
        Raw::parse(out).unwrap_or_else(|_| self.entry.shown().clone())
    }

    /// The length of [`exposed_raw`](Self::exposed_raw).
    pub(crate) fn exposed_len(&self) -> usize {
        let whole = self.entry.shown().as_bytes().len();
        if self.kind.is_named() {
            let pages: usize = self.entry.pages.iter().map(|(_, add)| add.len()).sum();
            whole - self.entry.span.len() + self.exposed.len() + 2 + pages
        } else {
            whole + self.exposed.len() - self.entry.shown_name.len()
        }
    }

    pub(crate) fn write_exposed(&self, out: &mut Vec<u8>) {
        let raw = self.entry.shown().as_bytes();
        let Range { start, end } = self.entry.span;
        if self.kind.is_named() {
            let pages = &self.entry.pages;
            let (before, after) = pages.split_at(pages.partition_point(|(at, _)| *at < start));
            write_with(out, raw, 0..start, before);
            out.push(b'"');
            // Exposed names contain no characters that JSON would escape.
            out.extend_from_slice(self.exposed.as_bytes());
            out.push(b'"');
            write_with(out, raw, end..raw.len(), after);
        } else {
            // The URI keeps its spelling, including escapes, after the prefix.
            let prefix = self.exposed.len() - self.entry.shown_name.len();
            out.extend_from_slice(&raw[..=start]);
            out.extend_from_slice(&self.exposed.as_bytes()[..prefix]);
            out.extend_from_slice(&raw[start + 1..]);
        }
    }
}

/// Writes a part of a text, with insertions.
fn write_with(out: &mut Vec<u8>, text: &[u8], part: Range<usize>, add: &[(usize, String)]) {
    let mut done = part.start;
    for (at, add) in add {
        out.extend_from_slice(&text[done..*at]);
        out.extend_from_slice(add.as_bytes());
        done = *at;
    }
    out.extend_from_slice(&text[done..part.end]);
}

/// The stored form of an item.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    raw: Raw,
    /// The definition as the owner has changed it.
    changed: Option<Raw>,
    /// The replacement to show, if clients would reject the definition.
    mended: Option<Raw>,
    /// The name, URI or template at the server.
    pub(crate) key: Arc<str>,
    /// The same as clients see it in the server's view.
    pub(crate) shown_name: Arc<str>,
    /// The preferred name in the direct view.
    pub(crate) exposed: Arc<str>,
    /// `exposed` is a clean name, so no other item can have it.
    pub(crate) clean: bool,
    /// The position of the key in the shown definition, including quotes.
    span: Range<usize>,
    /// The positions of page addresses in the shown definition of a tool, and the prefix that the
    /// direct view inserts at each.
    pages: Vec<(usize, String)>,
}

impl Entry {
    pub(crate) fn definition(&self) -> &Raw {
        self.changed.as_ref().unwrap_or(&self.raw)
    }

    fn shown(&self) -> &Raw {
        self.mended.as_ref().unwrap_or_else(|| self.definition())
    }

    /// Reads an item of a list, with the changes that `present` makes; `None` if it hides the item.
    pub(crate) fn read(
        server: &str,
        kind: Kind,
        raw: &Raw,
        present: &PresentItem<'_>,
    ) -> Result<Option<Self>, ItemError> {
        // Errors refer to what the server sent, so the definition is changed only if it is valid.
        let (key, span) = read_key(kind, raw)?;
        match present(&key, raw) {
            Presented::Unchanged => Self::new(server, kind, raw, key.into(), span, None).map(Some),
            Presented::Hidden => Ok(None),
            Presented::Changed(changed) => {
                let changed = Some(changed);
                Self::new(server, kind, raw, key.into(), span, changed).map(Some)
            }
        }
    }

    /// This item with the changes that `present` makes to its current definition; `None` if it
    /// hides the item.
    pub(crate) fn presented(
        &self,
        server: &str,
        kind: Kind,
        present: &PresentItem<'_>,
    ) -> Option<Self> {
        match present(&self.key, self.definition()) {
            Presented::Unchanged => Some(self.clone()),
            Presented::Hidden => None,
            Presented::Changed(changed) => {
                let key = Arc::clone(&self.key);
                let span = self.span.clone();
                Self::new(server, kind, &self.raw, key, span, Some(changed)).ok()
            }
        }
    }

    fn new(
        server: &str,
        kind: Kind,
        raw: &Raw,
        key: Arc<str>,
        mut span: Range<usize>,
        changed: Option<Raw>,
    ) -> Result<Self, ItemError> {
        let mut shown_name = Arc::clone(&key);
        if let Some(changed) = &changed {
            let (name, place) = read_key(kind, changed)?;
            (shown_name, span) = (name.into(), place);
        }
        let definition = changed.as_ref().unwrap_or(raw);
        let mended = mend(kind, definition);
        if let Some(mended) = &mended {
            span = place(mended, find_key(mended, kind.key_member())?);
        }
        let (exposed, clean) = if !kind.is_named() {
            (uris::expose_uri(server, &shown_name), true)
        } else if let Some(exposed) = names::clean(server, &shown_name) {
            (exposed, true)
        } else {
            (names::hashed(server, &shown_name, 0), false)
        };
        let shown = mended.as_ref().unwrap_or(definition);
        let pages = match kind {
            Kind::Tool => uris::pages(shown),
            Kind::Prompt | Kind::Resource | Kind::Template => Vec::new(),
        };
        let mut pages: Vec<_> = pages
            .iter()
            .map(|page| uris::insertion(server, shown, page))
            .collect();
        pages.sort_unstable();
        Ok(Self {
            pages,
            raw: raw.clone(),
            changed,
            mended,
            key,
            shown_name,
            exposed: exposed.into(),
            clean,
            span,
        })
    }
}

/// The reason why an item is left out. The message follows "it".
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum ItemError {
    #[error("is not a valid object")]
    NotAnObject,
    #[error("has no name")]
    NoKey,
    #[error("has more than one name")]
    TwoKeys,
    #[error("has a name that is not a string")]
    NotText,
    #[error("has a name longer than {} bytes", limits::KEY_BYTES)]
    TooLong,
    #[error("has the same name as an earlier one, {}", quoted(.0))]
    Taken(Arc<str>),
    #[error("has the name that an override gives to another one, {}", quoted(.0))]
    Replaced(Arc<str>),
}

/// A name for a message to a person.
fn quoted(name: &str) -> String {
    let start: String = name.chars().take(80).collect();
    let more = if start.len() < name.len() { "…" } else { "" };
    format!("{start:?}{more}")
}

/// The value of the member that names an item, verbatim.
fn find_key<'a>(raw: &'a Raw, member: &str) -> Result<&'a str, ItemError> {
    let mut json = serde_json::Deserializer::from_slice(raw.as_bytes());
    let (value, count) = json
        .deserialize_map(Find(member))
        .map_err(|_| ItemError::NotAnObject)?;
    match (value, count) {
        (Some(value), 1) => Ok(value.get()),
        (_, 0) => Err(ItemError::NoKey),
        _ => Err(ItemError::TwoKeys),
    }
}

/// The name, URI or template of an item, and its position in the definition.
fn read_key(kind: Kind, raw: &Raw) -> Result<(String, Range<usize>), ItemError> {
    let spelled = find_key(raw, kind.key_member())?;
    let key: String = serde_json::from_str(spelled).map_err(|_| ItemError::NotText)?;
    if key.len() > limits::KEY_BYTES {
        return Err(ItemError::TooLong);
    }
    Ok((key, place(raw, spelled)))
}

/// The position of a part of a definition.
fn place(raw: &Raw, part: &str) -> Range<usize> {
    let start = part.as_ptr() as usize - raw.as_bytes().as_ptr() as usize;
    start..start + part.len()
}

struct Find<'m>(&'m str);

impl<'de> Visitor<'de> for Find<'_> {
    type Value = (Option<&'de RawValue>, usize);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = None;
        let mut count = 0;
        while let Some(matches) = map.next_key_seed(Is(self.0))? {
            if matches {
                found = Some(map.next_value()?);
                count += 1;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok((found, count))
    }
}

/// Compares a key without storing it.
struct Is<'m>(&'m str);

impl<'de> DeserializeSeed<'de> for Is<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Is<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E>(self, key: &str) -> Result<bool, E> {
        Ok(key == self.0)
    }
}
