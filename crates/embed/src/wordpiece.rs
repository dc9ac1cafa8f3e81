//! Splits texts into the pieces of a vocabulary, as in the training of BERT's uncased models.
//!
//! Control characters and accents are removed, letters are lowercased, and the text is split at white
//! space, at punctuation and around every Chinese character. Each word is then split into the longest
//! pieces in the vocabulary, from the left. Pieces inside a word begin with `##`. A word that cannot be
//! split is unknown.
//!
//! There is one difference from the original: `[CLS]`, `[SEP]` and the like are treated as plain text, so
//! the author of a tool's description cannot end a sentence early.

use std::{
    borrow::Cow,
    hash::{BuildHasher, RandomState},
    ops::ControlFlow,
};

use crate::{
    ModelError,
    characters::{self, Simple},
    limits,
};

/// The prefix of a piece that does not begin a word.
const INSIDE: &str = "##";

/// A vocabulary that splits texts into its pieces.
#[derive(Clone, Debug)]
pub struct WordPiece {
    /// All lines, unchanged.
    text: Cow<'static, str>,
    /// Offset of each line in the text, followed by the offset after the last line.
    starts: Vec<u32>,
    /// Hash table with open addressing: line numbers, or [`EMPTY`]. It takes a tenth of the time of a map
    /// from strings, and needs no copies of them.
    slots: Vec<u32>,
    hasher: RandomState,
    /// Length of the longest line in bytes; no longer piece needs to be looked up.
    longest: usize,
    unknown: Option<u32>,
}

const EMPTY: u32 = u32::MAX;

impl WordPiece {
    /// Creates a vocabulary from one piece per line; the ID of a piece is its line number, from 0.
    pub fn new(lines: impl Into<Cow<'static, str>>) -> Result<Self, ModelError> {
        let text = lines.into();
        let bad = |what: String| Err(ModelError::Vocabulary(what));
        if u32::try_from(text.len()).is_err() {
            return bad(format!("its text of {} bytes is too long", text.len()));
        }
        let body = text.strip_suffix('\n').unwrap_or(&text);
        let count = body.bytes().filter(|byte| *byte == b'\n').count() + 1;
        if body.is_empty() || count > limits::VOCABULARY_LINES {
            let most = limits::VOCABULARY_LINES;
            return bad(format!("it has {count} lines, but 1 to {most} are allowed"));
        }

        let mut starts = Vec::with_capacity(count + 1);
        let mut longest = 0;
        let mut next = 0;
        for line in body.split('\n') {
            starts.push(next);
            next += as_u32(line.len()) + 1;
            longest = longest.max(line.len());
        }
        starts.push(next);
        if longest > limits::VOCABULARY_LINE_BYTES {
            return bad(format!("its line of {longest} bytes is too long"));
        }

        let mut vocabulary = Self {
            text,
            starts,
            slots: vec![EMPTY; (2 * count).next_power_of_two()],
            hasher: RandomState::new(),
            longest,
            unknown: None,
        };
        for id in 0..as_u32(count) {
            let (slot, taken) = vocabulary.find(vocabulary.line(id));
            if let Some(first) = taken {
                return bad(format!("line {} repeats line {}", id + 1, first + 1));
            }
            vocabulary.slots[slot] = id;
        }
        vocabulary.unknown = vocabulary.id("[UNK]");
        Ok(vocabulary)
    }

    /// Returns the number of pieces.
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Always returns `false`: a vocabulary without pieces cannot be created.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the ID of a piece, if the vocabulary has it.
    pub fn id(&self, piece: &str) -> Option<u32> {
        self.find(piece).1
    }

    /// Returns the IDs of up to `max_tokens` pieces of a text, without special pieces at its start and end.
    /// An unknown word becomes `[UNK]`, or is left out if the vocabulary has no such piece. Only the first
    /// [`limits::TEXT_BYTES`] of the text are read.
    pub fn ids(&self, text: &str, max_tokens: usize) -> Vec<u32> {
        let mut ids = Vec::new();
        self.each(text, |id| {
            if ids.len() == max_tokens {
                return ControlFlow::Break(());
            }
            ids.extend(id.or(self.unknown));
            ControlFlow::Continue(())
        });
        ids
    }

    /// Calls `found` with the ID of every piece, or with `None` for an unknown word, until it breaks.
    pub(crate) fn each(&self, text: &str, mut found: impl FnMut(Option<u32>) -> ControlFlow<()>) {
        let _ = self.try_each(text, &mut found);
    }

    fn try_each(
        &self,
        text: &str,
        found: &mut impl FnMut(Option<u32>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let text = &text[..text.floor_char_boundary(limits::TEXT_BYTES)];
        let mut word = Word::default();
        let mut simple = Vec::new();
        for original in text.chars() {
            characters::simplify(original, &mut simple);
            for character in simple.drain(..) {
                match character {
                    Simple::Space => self.cut(&mut word, found)?,
                    Simple::Alone(alone) => {
                        self.cut(&mut word, found)?;
                        word.push(alone);
                        self.cut(&mut word, found)?;
                    }
                    Simple::Letter(letter) => word.push(letter),
                }
            }
        }
        self.cut(&mut word, found)
    }

    /// Splits a word into pieces, and clears it.
    fn cut(
        &self,
        word: &mut Word,
        found: &mut impl FnMut(Option<u32>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        if word.characters == 0 {
            return ControlFlow::Continue(());
        }
        let known = self.pieces(word);
        word.text.clear();
        word.characters = 0;
        if !known {
            return found(None);
        }
        word.pieces.drain(..).map(Some).try_for_each(found)
    }

    /// Finds the pieces of a word: the longest from the left, and again from where it ended.
    fn pieces(&self, word: &mut Word) -> bool {
        word.pieces.clear();
        if word.characters > limits::WORD_CHARACTERS {
            return false;
        }
        let mut rest = word.text.as_str();
        while !rest.is_empty() {
            let prefix = if word.pieces.is_empty() { "" } else { INSIDE };
            let longest = rest.floor_char_boundary(self.longest.saturating_sub(prefix.len()));
            word.candidate.clear();
            word.candidate.push_str(prefix);
            word.candidate.push_str(&rest[..longest]);
            let id = loop {
                if word.candidate.len() == prefix.len() {
                    return false;
                }
                if let Some(id) = self.id(&word.candidate) {
                    break id;
                }
                word.candidate.pop();
            };
            word.pieces.push(id);
            rest = &rest[word.candidate.len() - prefix.len()..];
        }
        true
    }

    /// All lines, unchanged.
    #[cfg(feature = "minilm")]
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    fn line(&self, id: u32) -> &str {
        let id = id as usize;
        &self.text[self.starts[id] as usize..self.starts[id + 1] as usize - 1]
    }

    /// Returns the slot of a piece, and its ID if present. At least half of the slots are empty, so the
    /// search terminates.
    fn find(&self, piece: &str) -> (usize, Option<u32>) {
        let mask = self.slots.len() - 1;
        #[expect(
            clippy::cast_possible_truncation,
            reason = "any bits of a hash will do"
        )]
        let mut slot = self.hasher.hash_one(piece.as_bytes()) as usize & mask;
        loop {
            match self.slots[slot] {
                EMPTY => return (slot, None),
                id if self.line(id) == piece => return (slot, Some(id)),
                _ => slot = (slot + 1) & mask,
            }
        }
    }
}

/// The word being read, and buffers for splitting it.
#[derive(Default)]
struct Word {
    text: String,
    characters: usize,
    candidate: String,
    pieces: Vec<u32>,
}

impl Word {
    /// Appends a character. Beyond the length limit, characters are only counted.
    fn push(&mut self, character: char) {
        self.characters += 1;
        if self.characters <= limits::WORD_CHARACTERS {
            self.text.push(character);
        }
    }
}

/// Vocabularies are far below 4 GiB, which is checked first.
fn as_u32(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}
