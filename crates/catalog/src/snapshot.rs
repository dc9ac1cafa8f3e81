//! [`Snapshot`]: the offers of a server, stored for the next start.
//!
//! The file is one JSON document that a person can read. Its layout spares a program from parsing
//! all of it: the first line holds a checksum of the rest and the length of every item, then the
//! items follow, one after the other. So each byte is read twice, once for the checksum and once to
//! validate the JSON, and the items are slices of the file.
//!
//! ```text
//! {"version":1,"checksum":"8d0e…","head":{"server":"math",…,"tools":[31,40]},"body":[
//! {"name":"add","inputSchema":{}},
//! {"name":"subtract","inputSchema":{}}
//! ]}
//! ```

use std::{collections::BTreeSet, fmt, io, path::PathBuf, sync::Arc};

use bytes::Bytes;
use serde::{
    Deserialize, Serialize,
    de::{Deserializer, SeqAccess, Visitor},
};
use switchboard_wire::{Era, Raw, RawError, Revision};

use crate::{Offers, digest::Digest, limits};

const VERSION: u64 = 1;
const OPEN: &str = "{\"version\":";
const CHECKSUM: &str = ",\"checksum\":\"";
const CHECKSUM_DIGITS: usize = 16;
const HEAD: &str = "\",\"head\":";
const BODY: &str = ",\"body\":[";
const BETWEEN: &[u8] = b",\n";
const CLOSE: &[u8] = b"]}\n";

/// The offers of a server, stored for the next start.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    /// The server's name.
    pub server: String,
    /// The fingerprint of the configuration under which it was listed. The reader compares it.
    pub fingerprint: String,
    /// The server's offers.
    pub offers: Arc<Offers>,
    /// The offers that were held.
    pub held: Held,
}

/// The offers of a server that are not approved.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Held {
    /// All offers are held, since no part of the server was approved.
    pub all: bool,
    /// The keys of held items: the names of tools, and other kinds as the pins spell them.
    #[serde(alias = "tools")]
    pub items: BTreeSet<String>,
    /// The keys of items that are approved as the lists define them, and held as a single process does. They are not
    /// stored: no process runs at the next start.
    #[serde(skip)]
    pub apart: BTreeSet<String>,
}

impl Held {
    /// Returns `true` if nothing is held.
    pub fn is_nothing(&self) -> bool {
        !self.all && self.items.is_empty() && self.apart.is_empty()
    }
}

/// The reason why a snapshot cannot be read or written. The server then has to be asked again;
/// nothing else is lost.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotError {
    /// The file is something else.
    #[error("the file is not a snapshot of a server's tools, so it is ignored")]
    NotASnapshot,
    /// The file was written by another version of this program.
    #[error(
        "the snapshot has version {0}, which this program cannot read, so the gateway lists the server's tools again"
    )]
    Version(u64),
    /// The file was truncated or changed.
    #[error("the snapshot is damaged, so the gateway lists the server's tools again")]
    Damaged,
    /// The checksum is right, but the first line is not one that this program writes.
    #[error("the header of the snapshot is invalid, so the gateway lists the server's tools again")]
    Head(#[source] serde_json::Error),
    /// The checksum is right, but an item is not JSON.
    #[error("an item of the snapshot is invalid, so the gateway lists the server's tools again")]
    Item(#[source] RawError),
    /// The snapshot has more than [`limits::SNAPSHOT_BYTES`].
    #[error("the snapshot has {0} bytes, but at most {max} are allowed", max = limits::SNAPSHOT_BYTES)]
    TooLarge(u64),
    /// The file has the name of another server's snapshot.
    #[error("the snapshot of {server:?} must be in a file named {expected:?}, so it is ignored")]
    Misplaced {
        /// The server of the snapshot.
        server: String,
        /// The expected name of its file.
        expected: String,
    },
    /// The file or folder cannot be read or written.
    #[error("cannot {what} {path:?}")]
    Io {
        /// The operation that failed.
        what: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
}

impl Snapshot {
    /// Encodes the snapshot as a file, with at most [`limits::ITEMS`] items of each kind.
    pub fn encode(&self) -> Vec<u8> {
        let offers = &*self.offers;
        let kept = |list: &[Raw]| Lengths(lengths(list));
        let head = Head {
            server: self.server.clone(),
            fingerprint: self.fingerprint.clone(),
            era: offers.era.map(|era| era_name(era).to_owned()),
            revision: offers.revision.map(|revision| revision.as_str().to_owned()),
            instructions: offers.instructions.clone(),
            capabilities: offers.capabilities.as_ref().map(length),
            server_info: offers.server_info.as_ref().map(length),
            meta: offers.meta.as_ref().map(length),
            tools: kept(&offers.tools),
            prompts: kept(&offers.prompts),
            resources: kept(&offers.resources),
            templates: kept(&offers.templates),
            held: self.held.clone(),
            unlisted: offers.unlisted,
            asks_back: offers.asks_back,
            directories: offers.directories.clone(),
        };
        let lists = [
            &offers.tools,
            &offers.prompts,
            &offers.resources,
            &offers.templates,
        ];
        let about = [&offers.capabilities, &offers.server_info, &offers.meta];
        let items = about.into_iter().flatten().chain(
            lists
                .into_iter()
                .flat_map(|list| list.iter().take(limits::ITEMS)),
        );

        let mut out = HEAD.as_bytes().to_vec();
        // A struct of strings and numbers always serializes to a vector.
        let _ = serde_json::to_writer(&mut out, &head);
        out.extend_from_slice(BODY.as_bytes());
        for (at, item) in items.enumerate() {
            out.extend_from_slice(if at == 0 { b"\n" } else { BETWEEN });
            out.extend_from_slice(item.as_bytes());
        }
        out.push(b'\n');
        out.extend_from_slice(CLOSE);
        Self::seal(&out)
    }

    /// Builds a file with these bytes after a checksum that matches them.
    pub fn seal(rest: &[u8]) -> Vec<u8> {
        let start = format!("{OPEN}{VERSION}{CHECKSUM}{:016x}", Digest::of(rest));
        [start.as_bytes(), rest].concat()
    }

    /// Decodes a file. The items are slices of it.
    pub fn decode(file: impl Into<Bytes>) -> Result<Self, SnapshotError> {
        let file: Bytes = file.into();
        if file.len() > limits::SNAPSHOT_BYTES {
            return Err(SnapshotError::TooLarge(file.len() as u64));
        }
        let rest = checked(&file)?;
        let rest = rest
            .strip_prefix(HEAD.as_bytes())
            .ok_or(SnapshotError::Damaged)?;
        let line = memchr::memchr(b'\n', rest).ok_or(SnapshotError::Damaged)?;
        let (head, body) = rest.split_at(line);
        let head = head
            .strip_suffix(BODY.as_bytes())
            .ok_or(SnapshotError::Damaged)?;
        let head: Head = serde_json::from_slice(head).map_err(SnapshotError::Head)?;

        let mut items = Items {
            start: file.len() - body.len(),
            first: true,
            file,
        };
        let capabilities = items.optional(head.capabilities)?;
        let server_info = items.optional(head.server_info)?;
        let meta = items.optional(head.meta)?;
        let offers = Offers {
            capabilities,
            server_info,
            meta,
            tools: items.list(&head.tools)?,
            prompts: items.list(&head.prompts)?,
            resources: items.list(&head.resources)?,
            templates: items.list(&head.templates)?,
            instructions: head.instructions,
            era: head.era.as_deref().and_then(era_named),
            revision: head.revision.as_deref().and_then(Revision::parse),
            unlisted: head.unlisted,
            asks_back: head.asks_back,
            directories: head.directories,
            apart: Vec::new(),
        };
        items.end()?;
        Ok(Self {
            server: head.server,
            fingerprint: head.fingerprint,
            offers: Arc::new(offers),
            held: head.held,
        })
    }
}

/// The bytes after the checksum, if they match it.
fn checked(file: &[u8]) -> Result<&[u8], SnapshotError> {
    let rest = file
        .strip_prefix(OPEN.as_bytes())
        .ok_or(SnapshotError::NotASnapshot)?;
    let digits = rest
        .iter()
        .take(20)
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    let (version, rest) = rest.split_at(digits);
    let version = number(version, 10).ok_or(SnapshotError::NotASnapshot)?;
    if version != VERSION {
        return Err(SnapshotError::Version(version));
    }
    let rest = rest
        .strip_prefix(CHECKSUM.as_bytes())
        .ok_or(SnapshotError::NotASnapshot)?;
    let (checksum, rest) = rest
        .split_at_checked(CHECKSUM_DIGITS)
        .ok_or(SnapshotError::Damaged)?;
    if number(checksum, 16) != Some(Digest::of(rest)) {
        return Err(SnapshotError::Damaged);
    }
    Ok(rest)
}

fn number(digits: &[u8], radix: u32) -> Option<u64> {
    u64::from_str_radix(std::str::from_utf8(digits).ok()?, radix).ok()
}

/// The items of the body, read one after the other.
struct Items {
    file: Bytes,
    start: usize,
    first: bool,
}

impl Items {
    fn optional(&mut self, length: Option<usize>) -> Result<Option<Raw>, SnapshotError> {
        length.map(|length| self.next(length)).transpose()
    }

    fn list(&mut self, lengths: &Lengths) -> Result<Vec<Raw>, SnapshotError> {
        lengths.0.iter().map(|length| self.next(*length)).collect()
    }

    fn next(&mut self, length: usize) -> Result<Raw, SnapshotError> {
        self.expect(if self.first { b"\n" } else { BETWEEN })?;
        self.first = false;
        let end = self
            .start
            .checked_add(length)
            .filter(|end| *end <= self.file.len());
        let end = end.ok_or(SnapshotError::Damaged)?;
        let item = Raw::parse(self.file.slice(self.start..end)).map_err(SnapshotError::Item)?;
        if item.as_bytes().len() != length {
            return Err(SnapshotError::Damaged);
        }
        self.start = end;
        Ok(item)
    }

    fn end(&mut self) -> Result<(), SnapshotError> {
        self.expect(b"\n")?;
        self.expect(CLOSE)?;
        if self.start == self.file.len() {
            Ok(())
        } else {
            Err(SnapshotError::Damaged)
        }
    }

    fn expect(&mut self, text: &[u8]) -> Result<(), SnapshotError> {
        if !self.file[self.start..].starts_with(text) {
            return Err(SnapshotError::Damaged);
        }
        self.start += text.len();
        Ok(())
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Head {
    server: String,
    fingerprint: String,
    era: Option<String>,
    revision: Option<String>,
    instructions: Option<String>,
    capabilities: Option<usize>,
    server_info: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    meta: Option<usize>,
    tools: Lengths,
    prompts: Lengths,
    resources: Lengths,
    templates: Lengths,
    #[serde(default, skip_serializing_if = "Held::is_nothing")]
    held: Held,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    unlisted: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    asks_back: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    directories: Vec<String>,
}

/// The lengths of the items of one list.
#[derive(Serialize)]
struct Lengths(Vec<usize>);

impl<'de> Deserialize<'de> for Lengths {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Bounded;
        impl<'de> Visitor<'de> for Bounded {
            type Value = Lengths;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "at most {} lengths", limits::ITEMS)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Lengths, A::Error> {
                let mut lengths = Vec::new();
                while let Some(length) = seq.next_element()? {
                    if lengths.len() == limits::ITEMS {
                        return Err(serde::de::Error::invalid_length(lengths.len() + 1, &self));
                    }
                    lengths.push(length);
                }
                Ok(Lengths(lengths))
            }
        }
        deserializer.deserialize_seq(Bounded)
    }
}

fn lengths(list: &[Raw]) -> Vec<usize> {
    list.iter().take(limits::ITEMS).map(length).collect()
}

fn length(raw: &Raw) -> usize {
    raw.as_bytes().len()
}

fn era_name(era: Era) -> &'static str {
    match era {
        Era::Legacy => "legacy",
        Era::Modern => "modern",
    }
}

fn era_named(name: &str) -> Option<Era> {
    [Era::Legacy, Era::Modern]
        .into_iter()
        .find(|era| era_name(*era) == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sealed(rest: &str) -> Vec<u8> {
        Snapshot::seal(rest.as_bytes())
    }

    fn head(tools: &str) -> String {
        format!(
            r#"","head":{{"server":"s","fingerprint":"f","era":null,"revision":null,"instructions":null,"capabilities":null,"serverInfo":null,"tools":{tools},"prompts":[],"resources":[],"templates":[]}},"body":["#
        )
    }

    #[test]
    fn wrong_content_fails_despite_correct_checksum() {
        let good = sealed(&format!("{}\n[1]\n]}}\n", head("[3]")));
        assert_eq!(
            Snapshot::decode(good).unwrap().offers.tools[0].as_str(),
            "[1]"
        );
        for rest in [
            String::new(),
            head("[]"),
            format!("{}\n]}}\nx", head("[]")),
            format!("{}\n[1]\n]}}\n", head("[]")),
            format!("{}\n[1]\n]}}\n", head("[2]")),
            format!("{}\n[1]\n]}}\n", head("[4]")),
            format!("{}\n[1]\n]}}\n", head("[3,3]")),
            format!("{}\n[1]\n]}}\n", head("[18446744073709551615]")),
            format!("{}\n[1]\n]}}\n", head("[-3]")),
            format!("{}\n[1]\n]}}\n", head("null")),
            format!("{}\n[x]\n]}}\n", head("[3]")),
            format!("{}\n[1] \n]}}\n", head("[4]")),
            format!("{}\n1]}}\n", head("[1]")),
        ] {
            assert!(Snapshot::decode(sealed(&rest)).is_err(), "{rest}");
        }
        let many = head(&format!("[{}1]", "1,".repeat(limits::ITEMS)));
        let body = format!("{}1", "1,\n".repeat(limits::ITEMS));
        assert!(matches!(
            Snapshot::decode(sealed(&format!("{many}\n{body}\n]}}\n"))),
            Err(SnapshotError::Head(_))
        ));
    }

    #[test]
    fn unknown_revision_is_ignored() {
        let rest = head("[]").replace(r#""revision":null"#, r#""revision":"2030-01-01""#);
        let read = Snapshot::decode(sealed(&format!("{rest}\n]}}\n"))).unwrap();
        assert_eq!(read.offers.revision, None);
    }
}
