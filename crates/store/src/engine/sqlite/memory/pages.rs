//! Reads the rows on the pages of a file, without knowing which table they belong to.
//!
//! If an interior page is damaged, the pages below it may be intact although the engine no longer finds
//! them. This module reads every page by itself, and the contents of a row tell its table. The log
//! beside the file is not read.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use rusqlite::types::Value;

use crate::types::limits::{PAGE_BYTES, SALVAGE_ROW_BYTES};

/// The type of a table page that has rows.
const TABLE_LEAF: u8 = 0x0d;
/// The types of pages of an index, or of a table stored as one: both have rows.
const INDEX_LEAF: u8 = 0x0a;
const INDEX_INTERIOR: u8 = 0x02;

/// The file, page by page.
#[derive(Debug)]
pub(super) struct Pages {
    file: File,
    count: u32,
    /// Pages that the file lists as free.
    free: HashSet<u32>,
}

/// The place where a row was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// In a table, with this row number.
    Row(i64),
    /// In an index.
    Entry,
}

impl Pages {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let count = file.metadata()?.len() / PAGE_BYTES as u64;
        let mut pages = Self {
            file,
            count: u32::try_from(count).unwrap_or(u32::MAX),
            free: HashSet::new(),
        };
        pages.free = pages.find_free();
        Ok(pages)
    }

    /// Passes every row of every page to `each`.
    pub(super) fn rows(&mut self, each: &mut dyn FnMut(Found, &[Value])) {
        for number in 1..=self.count {
            if self.free.contains(&number) {
                continue;
            }
            if let Some(page) = self.page(number) {
                self.rows_on(number, &page, each);
            }
        }
    }

    fn rows_on(&mut self, number: u32, page: &[u8], each: &mut dyn FnMut(Found, &[Value])) {
        let start = if number == 1 { 100 } else { 0 };
        let kind = page.get(start).copied();
        let (pointers, child) = match kind {
            Some(TABLE_LEAF | INDEX_LEAF) => (start + 8, 0),
            Some(INDEX_INTERIOR) => (start + 12, 4),
            _ => return,
        };
        let cells = usize::from(number_at(page, start + 3).unwrap_or(0));
        for cell in 0..cells {
            let Some(place) = number_at(page, pointers + 2 * cell) else {
                return;
            };
            let Some(mut rest) = page.get(usize::from(place) + child..) else {
                continue;
            };
            let row = || -> Option<_> {
                let length = usize::try_from(varint(&mut rest)?).ok()?;
                let found = if kind == Some(TABLE_LEAF) {
                    Found::Row(varint(&mut rest)?)
                } else {
                    Found::Entry
                };
                let payload = self.payload(rest, length, found)?;
                Some((found, record(&payload)?))
            };
            if let Some((found, values)) = { row }() {
                each(found, &values);
            }
        }
    }

    /// Returns the bytes of a row: the first of them are on this page, the others on overflow pages.
    fn payload(&mut self, here: &[u8], length: usize, found: Found) -> Option<Vec<u8>> {
        if length > SALVAGE_ROW_BYTES {
            return None;
        }
        let usable = PAGE_BYTES;
        let most = match found {
            Found::Row(_) => usable - 35,
            Found::Entry => (usable - 12) * 64 / 255 - 23,
        };
        if length <= most {
            return here.get(..length).map(<[u8]>::to_vec);
        }
        let least = (usable - 12) * 32 / 255 - 23;
        let even = least + (length - least) % (usable - 4);
        let local = if even <= most { even } else { least };
        let mut payload = here.get(..local)?.to_vec();
        let mut next = page_number(here.get(local..)?)?;
        while payload.len() < length {
            let page = self.page(next)?;
            next = page_number(&page)?;
            let left = (length - payload.len()).min(usable - 4);
            payload.extend_from_slice(page.get(4..4 + left)?);
        }
        Some(payload)
    }

    fn page(&mut self, number: u32) -> Option<Vec<u8>> {
        if number == 0 || number > self.count {
            return None;
        }
        let place = u64::from(number - 1) * PAGE_BYTES as u64;
        let mut page = vec![0; PAGE_BYTES];
        self.file.seek(SeekFrom::Start(place)).ok()?;
        self.file.read_exact(&mut page).ok()?;
        Some(page)
    }

    /// Returns the pages that the file lists as free: a chain of pages that list others.
    fn find_free(&mut self) -> HashSet<u32> {
        let mut free = HashSet::new();
        let mut follow = || -> Option<()> {
            let mut next = page_number(self.page(1)?.get(32..)?)?;
            // Stop at a chain that loops.
            while next != 0 && free.insert(next) {
                let page = self.page(next)?;
                let count = usize::try_from(page_number(page.get(4..)?)?).ok()?;
                let listed = page.get(8..)?.chunks_exact(4).take(count);
                free.extend(listed.filter_map(page_number));
                next = page_number(&page)?;
            }
            Some(())
        };
        // If the chain breaks off, the remaining pages are not known to be free.
        follow();
        free
    }
}

/// Decodes the values of a row.
fn record(payload: &[u8]) -> Option<Vec<Value>> {
    let mut header = payload;
    let length = usize::try_from(varint(&mut header)?).ok()?;
    let read = payload.len() - header.len();
    let mut header = header.get(..length.checked_sub(read)?)?;
    let mut body = payload.get(length..)?;
    let mut values = Vec::new();
    while !header.is_empty() {
        let kind = varint(&mut header)?;
        values.push(value(kind, &mut body)?);
    }
    Some(values)
}

fn value(kind: i64, body: &mut &[u8]) -> Option<Value> {
    let length = match kind {
        0 | 8 | 9 => 0,
        1..=4 => usize::try_from(kind).ok()?,
        5 => 6,
        6 | 7 => 8,
        12.. => usize::try_from((kind - 12) / 2).ok()?,
        _ => return None,
    };
    let (bytes, rest) = body.split_at_checked(length)?;
    *body = rest;
    Some(match kind {
        0 => Value::Null,
        1..=6 => Value::Integer(integer(bytes)),
        7 => Value::Real(f64::from_be_bytes(bytes.try_into().ok()?)),
        8 => Value::Integer(0),
        9 => Value::Integer(1),
        kind if kind % 2 == 0 => Value::Blob(bytes.to_vec()),
        _ => Value::Text(String::from_utf8(bytes.to_vec()).ok()?),
    })
}

/// Decodes a signed big-endian integer.
fn integer(bytes: &[u8]) -> i64 {
    let negative = bytes.first().is_some_and(|first| first & 0x80 != 0);
    let start = if negative { -1 } else { 0 };
    let add = |number: i64, byte: &u8| (number << 8) | i64::from(*byte);
    bytes.iter().fold(start, add)
}

/// Decodes the variable-length integer at the front.
fn varint(bytes: &mut &[u8]) -> Option<i64> {
    let mut number = 0_u64;
    for index in 0..9 {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        if index == 8 {
            number = (number << 8) | u64::from(*byte);
            break;
        }
        number = (number << 7) | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            break;
        }
    }
    Some(number.cast_signed())
}

fn number_at(page: &[u8], place: usize) -> Option<u16> {
    let bytes = page.get(place..place + 2)?;
    Some(u16::from_be_bytes(bytes.try_into().ok()?))
}

fn page_number(bytes: &[u8]) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(..4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Reading any page terminates.
        #[test]
        fn arbitrary_pages_are_read_without_failure(page in proptest::collection::vec(any::<u8>(), PAGE_BYTES), kind in 0..3_usize) {
            let folder = tempfile::TempDir::new().unwrap();
            let file = folder.path().join("file");
            let mut bytes = [page.as_slice(), page.as_slice()].concat();
            bytes[PAGE_BYTES] = [TABLE_LEAF, INDEX_LEAF, INDEX_INTERIOR][kind];
            std::fs::write(&file, bytes).unwrap();
            let mut rows = 0_u32;
            Pages::open(&file).unwrap().rows(&mut |_, _| rows += 1);
            // Two pages cannot hold more rows than this.
            prop_assert!(rows <= 131_072);
        }
    }

    #[test]
    fn integers_are_decoded() {
        for (bytes, number) in [
            (&[0x00][..], 0),
            (&[0x7f], 127),
            (&[0x81, 0x00], 128),
            (&[0xff; 9], -1),
            (&[0x80, 0x80, 0x01], 1),
        ] {
            let mut rest = bytes;
            assert_eq!(varint(&mut rest), Some(number), "{bytes:?}");
            assert!(rest.is_empty());
        }
        assert_eq!(varint(&mut &[0x81][..]), None);
        assert_eq!(integer(&[0xff, 0xfe]), -2);
        assert_eq!(integer(&[0x01, 0x00]), 256);
    }
}
