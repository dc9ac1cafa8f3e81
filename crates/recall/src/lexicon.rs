//! The inverted index: the memories in which each stem occurs, and its frequency in them.

use std::collections::HashMap;

use switchboard_search::words;

use crate::{limits, words::is_empty};

/// An occurrence of a stem in the memory at a place, with its frequency.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Posting {
    pub(crate) at: u32,
    pub(crate) count: u8,
}

/// The indexed text at one place.
#[derive(Debug, Clone, Copy)]
struct Text {
    /// Index of its first stem.
    start: u32,
    /// Number of its distinct stems, without stop words.
    stems: u16,
    /// First stem that is not a stop word; [`NOTHING`] if there is none.
    first: u32,
}

/// Numbered stems, their occurrences, and the stems of each memory. The texts themselves are not kept.
#[derive(Debug, Default)]
pub(crate) struct Lexicon {
    numbers: HashMap<Box<str>, u32>,
    terms: Vec<Term>,
    /// Texts by place.
    texts: Vec<Text>,
    /// Number of words by place.
    lengths: Vec<u16>,
    /// Stems of all texts, one text after the other; of each text sorted, without duplicates and stop words.
    stems: Vec<u32>,
    /// Cache of the stems of words seen before, so that each word is analysed once.
    seen: HashMap<Box<str>, Box<[u32]>>,
    /// Buffer for the stems of one text.
    scratch: Vec<u32>,
}

#[derive(Debug)]
struct Term {
    is_empty: bool,
    /// Sorted by place.
    postings: Vec<Posting>,
}

/// The number that stands for no stem.
const NOTHING: u32 = u32::MAX;
/// The most words in the cache, which is cleared when it is full.
const SEEN: usize = 1 << 16;
/// The longest word that is cached, in bytes; longer ones rarely occur again.
const SEEN_BYTES: usize = 32;

impl Lexicon {
    /// Indexes the text at the next place.
    pub(crate) fn push(&mut self, text: &str) {
        let text = &text[..text.floor_char_boundary(limits::TEXT_BYTES)];
        let mut stems = std::mem::take(&mut self.scratch);
        stems.clear();
        for piece in words::pieces(text) {
            if let Some(known) = self.seen.get(piece) {
                stems.extend_from_slice(known);
            } else {
                self.analyse(piece, &mut stems);
            }
        }
        let at = index(self.texts.len());
        let start = index(self.stems.len());
        let says = |stem: &u32| !self.terms[*stem as usize].is_empty;
        let first = stems.iter().copied().find(says).unwrap_or(NOTHING);
        let length = u16::try_from(stems.len()).unwrap_or(u16::MAX);
        stems.sort_unstable();
        for run in stems.chunk_by(|one, other| one == other) {
            let term = &mut self.terms[run[0] as usize];
            let count = u8::try_from(run.len()).unwrap_or(u8::MAX);
            term.postings.push(Posting { at, count });
            if !term.is_empty {
                self.stems.push(run[0]);
            }
        }
        let different = self.stems.len() - start as usize;
        self.texts.push(Text {
            start,
            stems: u16::try_from(different).unwrap_or(u16::MAX),
            first,
        });
        self.lengths.push(length);
        self.scratch = stems;
    }

    /// Analyses a piece of a text, and caches the result.
    fn analyse(&mut self, piece: &str, stems: &mut Vec<u32>) {
        let known: Box<[u32]> = words::terms(piece)
            .into_iter()
            .map(|term| self.enter(term.stem))
            .collect();
        stems.extend_from_slice(&known);
        if piece.len() <= SEEN_BYTES {
            if self.seen.len() >= SEEN {
                self.seen.clear();
            }
            self.seen.insert(piece.into(), known);
        }
    }

    fn enter(&mut self, stem: String) -> u32 {
        let next = index(self.terms.len());
        let is_empty = is_empty(&stem);
        *self
            .numbers
            .entry(stem.into_boxed_str())
            .or_insert_with(|| {
                self.terms.push(Term {
                    is_empty,
                    postings: Vec::new(),
                });
                next
            })
    }

    /// Returns the number of a stem, if any memory has it.
    pub(crate) fn number(&self, stem: &str) -> Option<u32> {
        self.numbers.get(stem).copied()
    }

    /// Returns the occurrences of a stem, sorted by place.
    pub(crate) fn postings(&self, number: u32) -> &[Posting] {
        &self.terms[number as usize].postings
    }

    /// Returns `true` if a stem occurs in the text at this place.
    pub(crate) fn has(&self, number: u32, at: u32) -> bool {
        let postings = self.postings(number);
        postings
            .binary_search_by_key(&at, |posting| posting.at)
            .is_ok()
    }

    /// Returns the stems of a text, sorted, without duplicates and stop words.
    pub(crate) fn stems(&self, at: usize) -> &[u32] {
        let text = self.texts[at];
        let start = text.start as usize;
        &self.stems[start..start + usize::from(text.stems)]
    }

    /// Returns the first stem of a text that is not a stop word.
    pub(crate) fn first(&self, at: usize) -> u32 {
        self.texts[at].first
    }

    /// Returns the number of words in a text.
    pub(crate) fn length(&self, at: usize) -> u16 {
        self.lengths[at]
    }

    /// Keeps only these places and renumbers them in this order.
    pub(crate) fn keep(&mut self, places: &[u32]) {
        let mut moved = vec![NOTHING; self.texts.len()];
        for (new, old) in (0..).zip(places) {
            moved[*old as usize] = new;
        }
        // Stems without occurrences are dropped as well, so that the words of removed memories do not stay
        // for ever.
        let mut renumbered = vec![NOTHING; self.terms.len()];
        let mut terms = Vec::new();
        for (number, mut term) in std::mem::take(&mut self.terms).into_iter().enumerate() {
            term.postings.retain_mut(|posting| {
                posting.at = moved[posting.at as usize];
                posting.at != NOTHING
            });
            if term.postings.is_empty() {
                continue;
            }
            term.postings.sort_unstable_by_key(|posting| posting.at);
            term.postings.shrink_to_fit();
            renumbered[number] = index(terms.len());
            terms.push(term);
        }
        self.numbers.retain(|_, number| {
            *number = renumbered[*number as usize];
            *number != NOTHING
        });
        let mut stems = Vec::new();
        let mut texts = Vec::with_capacity(places.len());
        for old in places {
            let mut text = self.texts[*old as usize];
            let own = self.stems(*old as usize).iter();
            text.start = index(stems.len());
            // The remaining stems keep their order.
            stems.extend(own.map(|stem| renumbered[*stem as usize]));
            if text.first != NOTHING {
                text.first = renumbered[text.first as usize];
            }
            texts.push(text);
        }
        self.terms = terms;
        self.lengths = places
            .iter()
            .map(|old| self.lengths[*old as usize])
            .collect();
        self.texts = texts;
        self.stems = stems;
        self.seen = HashMap::new();
    }

    pub(crate) fn bytes(&self) -> usize {
        let postings: usize = self
            .terms
            .iter()
            .map(|term| term.postings.capacity() * size_of::<Posting>() + size_of::<Term>())
            .sum();
        let numbers: usize = self.numbers.keys().map(|stem| stem.len() + 32).sum();
        let seen = self.seen.iter();
        let seen: usize = seen
            .map(|(word, stems)| word.len() + 4 * stems.len() + 40)
            .sum();
        postings
            + numbers
            + seen
            + self.stems.capacity() * size_of::<u32>()
            + self.texts.capacity() * (size_of::<Text>() + size_of::<u16>())
    }
}

/// Indexes are stored in 32 bits, which is far more than needed.
fn index(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(NOTHING)
}
