//! Many needles, looked for in one pass.
//!
//! Every needle has at least [`LEAST_BYTES`] bytes. A bit for each pair of first bytes turns most
//! places of a text away; a table by the first six bytes leads to the needles that may stand there,
//! the longest first. An automaton would do the same, but not find a needle that was cut off at the
//! end of an excerpt, and would be another dependency.

use rustc_hash::FxHashMap;

use crate::known::LEAST_BYTES;

/// Stands at the end of text that was cut.
const ELLIPSIS: &[u8] = "…".as_bytes();

#[derive(Clone, Default)]
pub(crate) struct Index {
    pairs: Vec<u64>,
    needles: FxHashMap<[u8; LEAST_BYTES], Vec<Needle>>,
}

#[derive(Clone)]
struct Needle {
    bytes: Box<[u8]>,
    /// The number of the replacement.
    stands_for: usize,
    may_be_cut: bool,
    /// Whether it can be taken out of a JSON string without damage to the rest.
    in_json: bool,
}

/// A needle at a place in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hit {
    pub(crate) length: usize,
    pub(crate) stands_for: usize,
}

impl Index {
    pub(crate) fn add(&mut self, needle: &str, stands_for: usize) {
        self.insert(needle, stands_for, true);
    }

    /// A text that stands for itself. The beginning of one says nothing.
    pub(crate) fn add_mark(&mut self, mark: &str, stands_for: usize) {
        self.insert(mark, stands_for, false);
    }

    fn insert(&mut self, needle: &str, stands_for: usize, may_be_cut: bool) {
        let bytes = needle.as_bytes();
        let Some(key) = key(bytes) else { return };
        if self.pairs.is_empty() {
            self.pairs = vec![0; 1024];
        }
        let pair = usize::from(bytes[0]) << 8 | usize::from(bytes[1]);
        self.pairs[pair / 64] |= 1 << (pair % 64);
        let needles = self.needles.entry(key).or_default();
        if needles.iter().any(|known| *known.bytes == *bytes) {
            return;
        }
        let longer = needles.partition_point(|known| known.bytes.len() >= bytes.len());
        let needle = Needle {
            bytes: bytes.into(),
            stands_for,
            may_be_cut,
            in_json: is_json_inside(bytes),
        };
        needles.insert(longer, needle);
    }

    /// The longest needle that begins here, or the part of one that is all there is before the end.
    pub(crate) fn at(&self, text: &[u8], at: usize, in_json: bool) -> Option<Hit> {
        let rest = &text[at..];
        let key = key(rest)?;
        let pair = usize::from(key[0]) << 8 | usize::from(key[1]);
        if self.pairs.get(pair / 64)? & 1 << (pair % 64) == 0 {
            return None;
        }
        let needles = self.needles.get(&key)?;
        let usable = || needles.iter().filter(|needle| needle.in_json || !in_json);
        let whole = usable().find(|needle| rest.starts_with(&needle.bytes));
        if let Some(needle) = whole {
            return Some(Hit {
                length: needle.bytes.len(),
                stands_for: needle.stands_for,
            });
        }
        usable()
            .filter(|needle| needle.may_be_cut)
            .filter_map(|needle| {
                let same = needle.bytes.iter().zip(rest);
                let length = same.take_while(|(one, other)| one == other).count();
                let after = &rest[length..];
                let is_cut = after.is_empty() || after.starts_with(ELLIPSIS);
                is_cut.then_some(Hit {
                    length,
                    stands_for: needle.stands_for,
                })
            })
            .max_by_key(|hit| hit.length)
    }

    /// The first place from `at` on where a needle may begin.
    pub(crate) fn next(&self, text: &[u8], at: usize) -> Option<usize> {
        if self.pairs.is_empty() {
            return None;
        }
        let pairs = text.get(at..)?.windows(2);
        let found = pairs.enumerate().find(|(_, pair)| {
            let pair = usize::from(pair[0]) << 8 | usize::from(pair[1]);
            self.pairs[pair / 64] & 1 << (pair % 64) != 0
        });
        found.map(|(ahead, _)| at + ahead)
    }
}

fn key(bytes: &[u8]) -> Option<[u8; LEAST_BYTES]> {
    bytes.first_chunk().copied()
}

/// Whether these bytes are whole characters and escapes of a JSON string.
fn is_json_inside(bytes: &[u8]) -> bool {
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        at += match byte {
            b'"' | 0..0x20 => return false,
            b'\\' => match bytes.get(at + 1) {
                Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => 2,
                Some(b'u') if at + 6 <= bytes.len() => 6,
                _ => return false,
            },
            _ => 1,
        };
    }
    true
}
