//! The words of all memories: which stem stands in which of them, and how often.

use std::collections::HashMap;

use rustc_hash::FxHashMap;
use switchboard_search::words;

use crate::limits;

/// A stem stands in the memory of this place so often.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Posting {
    pub(crate) at: u32,
    pub(crate) count: u8,
}

/// Stems by number, where each stands, and which of them each memory has.
#[derive(Debug, Default)]
pub(crate) struct Lexicon {
    stems: HashMap<Box<str>, u32>,
    postings: Vec<Vec<Posting>>,
    /// The stems of every memory, in the order of its text, one memory after the other.
    texts: Vec<u32>,
    /// Where the text of each memory begins, and behind the last one where the next will.
    starts: Vec<usize>,
    /// The stems of words that were seen before.
    seen: HashMap<Box<str>, Box<[u32]>>,
}

/// So many words are remembered with their stems; then this begins anew.
const SEEN: usize = 1 << 16;
/// Longer stretches of a text rarely come again.
const SEEN_BYTES: usize = 32;

impl Lexicon {
    /// Adds the text of the memory in the next place.
    pub(crate) fn push(&mut self, text: &str) {
        let text = &text[..text.floor_char_boundary(limits::TEXT_BYTES)];
        let at = u32::try_from(self.starts.len().saturating_sub(1)).unwrap_or(u32::MAX);
        if self.starts.is_empty() {
            self.starts.push(0);
        }
        let start = self.texts.len();
        for piece in words::pieces(text) {
            if let Some(stems) = self.seen.get(piece) {
                self.texts.extend_from_slice(stems);
                continue;
            }
            let stems: Box<[u32]> = words::terms(piece)
                .into_iter()
                .map(|term| self.enter(term.stem))
                .collect();
            self.texts.extend_from_slice(&stems);
            if piece.len() <= SEEN_BYTES {
                if self.seen.len() >= SEEN {
                    self.seen.clear();
                }
                self.seen.insert(piece.into(), stems);
            }
        }
        self.starts.push(self.texts.len());
        for stem in &self.texts[start..] {
            let postings = &mut self.postings[*stem as usize];
            match postings.last_mut() {
                Some(last) if last.at == at => last.count = last.count.saturating_add(1),
                _ => postings.push(Posting { at, count: 1 }),
            }
        }
    }

    fn enter(&mut self, stem: String) -> u32 {
        let next = u32::try_from(self.postings.len()).unwrap_or(u32::MAX);
        *self.stems.entry(stem.into_boxed_str()).or_insert_with(|| {
            self.postings.push(Vec::new());
            next
        })
    }

    /// The number of a stem, if any memory has it.
    pub(crate) fn stem(&self, stem: &str) -> Option<u32> {
        self.stems.get(stem).copied()
    }

    pub(crate) fn postings(&self, stem: u32) -> &[Posting] {
        &self.postings[stem as usize]
    }

    /// The stems of a memory, in the order of its text.
    pub(crate) fn text(&self, at: usize) -> &[u32] {
        &self.texts[self.starts[at]..self.starts[at + 1]]
    }

    pub(crate) fn bytes(&self) -> usize {
        let postings: usize = self
            .postings
            .iter()
            .map(|list| list.capacity() * 8 + 24)
            .sum();
        let stems: usize = self.stems.keys().map(|stem| stem.len() + 32).sum();
        let seen: usize = self
            .seen
            .iter()
            .map(|(word, stems)| word.len() + 4 * stems.len() + 48)
            .sum();
        postings + stems + seen + self.texts.capacity() * 4 + self.starts.capacity() * 8
    }
}

/// The rows and their places.
pub(crate) type Places = FxHashMap<u64, u32>;
