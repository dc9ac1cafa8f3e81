//! Searches for many needles in one pass.
//!
//! Every needle has at least [`LEAST_BYTES`] bytes. A space and a plus sign are equivalent, because web forms
//! write one for the other; letters match regardless of case for needles that allow it. A bit set over the
//! first four bytes rules out most positions of a text, and a table keyed by the first six bytes lists the
//! candidate needles, longest first. An automaton would do the same, but would not find a needle that was cut
//! off at the end of an excerpt, and would be another dependency.

use rustc_hash::FxHashMap;

use crate::{
    decode::ELLIPSIS,
    forms::{Form, LEAST_BYTES},
};

#[derive(Clone, Default)]
pub(crate) struct Index {
    /// A bit for each value of [`mixed`].
    begun: Vec<u64>,
    needles: FxHashMap<[u8; LEAST_BYTES], Vec<Needle>>,
}

#[derive(Clone)]
struct Needle {
    bytes: Box<[u8]>,
    /// Index of the replacement.
    stands_for: usize,
    may_be_cut: bool,
    any_case: bool,
}

impl Needle {
    /// The length of the common prefix of the needle and the text.
    fn same(&self, text: &[u8]) -> usize {
        let is_same = |(one, other): &(&u8, &u8)| {
            one == other
                || is_space(**one) && is_space(**other)
                || self.any_case && one.eq_ignore_ascii_case(other)
        };
        self.bytes.iter().zip(text).take_while(is_same).count()
    }
}

/// A needle found at a position of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hit {
    pub(crate) length: usize,
    pub(crate) stands_for: usize,
}

impl Index {
    pub(crate) fn add(&mut self, form: &Form, stands_for: usize) {
        self.insert(&form.bytes, stands_for, true, form.any_case);
    }

    /// Adds a mark, which is replaced by itself. A cut mark is not matched.
    pub(crate) fn add_mark(&mut self, mark: &str, stands_for: usize) {
        self.insert(mark.as_bytes(), stands_for, false, false);
    }

    fn insert(&mut self, bytes: &[u8], stands_for: usize, may_be_cut: bool, any_case: bool) {
        let Some(key) = key(bytes) else { return };
        if self.begun.is_empty() {
            self.begun = vec![0; 1024];
        }
        let bit = mixed(u32::from_be_bytes([key[0], key[1], key[2], key[3]]));
        self.begun[bit / 64] |= 1 << (bit % 64);
        let needles = self.needles.entry(key).or_default();
        let is_known = |known: &Needle| *known.bytes == *bytes && known.any_case >= any_case;
        if needles.iter().any(is_known) {
            return;
        }
        let longer = needles.partition_point(|known| known.bytes.len() >= bytes.len());
        let needle = Needle {
            bytes: bytes.into(),
            stands_for,
            may_be_cut,
            any_case,
        };
        needles.insert(longer, needle);
    }

    /// The longest needle that begins here, or the beginning of one if the text ends or was cut within it.
    pub(crate) fn at(&self, text: &[u8], at: usize) -> Option<Hit> {
        let rest = &text[at..];
        let needles = self.needles.get(&key(rest)?)?;
        let mut longest: Option<Hit> = None;
        for needle in needles {
            let length = needle.same(rest);
            let hit = Hit {
                length,
                stands_for: needle.stands_for,
            };
            if length == needle.bytes.len() {
                return Some(hit);
            }
            let after = &rest[length..];
            let is_cut = needle.may_be_cut && (after.is_empty() || after.starts_with(ELLIPSIS));
            if is_cut && length >= LEAST_BYTES && longest.is_none_or(|found| found.length < length)
            {
                longest = Some(hit);
            }
        }
        longest
    }

    /// The first position from `at` on at which a needle may begin.
    pub(crate) fn next(&self, text: &[u8], at: usize) -> Option<usize> {
        let text = text.get(at..)?;
        let (first, rest) = text.split_at_checked(3)?;
        if self.begun.is_empty() {
            return None;
        }
        let next = |four: u32, byte: &u8| four << 8 | u32::from(FOLDED[usize::from(*byte)]);
        let mut four = first.iter().fold(0, next);
        let ahead = rest.iter().position(|byte| {
            four = next(four, byte);
            let bit = mixed(four);
            self.begun[bit / 64] & 1 << (bit % 64) != 0
        });
        ahead.map(|ahead| at + ahead)
    }
}

/// The first bytes of a needle or of a text, folded for comparison.
fn key(bytes: &[u8]) -> Option<[u8; LEAST_BYTES]> {
    let first: &[u8; LEAST_BYTES] = bytes.first_chunk()?;
    Some(first.map(|byte| FOLDED[usize::from(byte)]))
}

/// Hashes four bytes to sixteen bits.
fn mixed(four: u32) -> usize {
    (four.wrapping_mul(0x9e37_79b1) >> 16) as usize
}

/// Each byte in its folded form: lower case, and a space for a plus sign.
static FOLDED: [u8; 256] = {
    let mut folded = [0; 256];
    let mut byte: u8 = 0;
    loop {
        folded[byte as usize] = match byte {
            b'+' => b' ',
            byte => byte.to_ascii_lowercase(),
        };
        if byte == u8::MAX {
            break folded;
        }
        byte += 1;
    }
};

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'+')
}
