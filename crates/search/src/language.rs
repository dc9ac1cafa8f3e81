//! Knowledge of English beyond the tools at hand: the frequency of words, the parts of compounds,
//! and synonyms.

use std::collections::HashMap;

use switchboard_embed::{StaticTable, WordPiece};

use crate::{
    glossary,
    stem::stem,
    synonyms,
    words::{self, Term},
};

/// Knowledge of the language.
#[derive(Debug)]
pub struct Language {
    /// Words by frequency, most common first: the vocabulary of the built-in vectors.
    words: &'static WordPiece,
    /// The ID of the first word; characters come before it.
    first: u32,
    /// Synonyms, stem by stem.
    synonyms: HashMap<String, Vec<String>>,
}

/// A word of a query, with its synonyms.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Concept {
    pub(crate) word: String,
    pub(crate) weight: f32,
    /// Stems, each with its weight relative to the word; the first is its own.
    pub(crate) stems: Vec<(String, f32)>,
}

/// The most different words of a query that are searched. The rarest are chosen.
const CONCEPTS: usize = 48;
/// The most bytes of a query that are read.
const QUERY_BYTES: usize = 16 * 1024;
/// The weight of a synonym relative to the word itself.
const SYNONYM: f32 = 0.45;
/// The lengths of unknown words that are tried as compounds.
const COMPOUND: std::ops::RangeInclusive<usize> = 6..=48;
/// The shortest part of a compound.
const COMPOUND_PART: usize = 3;

impl Language {
    /// The built-in knowledge.
    pub fn built_in() -> Self {
        let words = StaticTable::built_in().vocabulary();
        Self {
            words,
            first: words.id("the").unwrap_or_default(),
            synonyms: synonyms::table(),
        }
    }

    /// The number of more common words; `None` if the word is unknown.
    fn rank(&self, word: &str) -> Option<u32> {
        Some(self.words.id(word)?.saturating_sub(self.first))
    }

    /// The terms of a name, including the parts of compounds in it.
    pub(crate) fn name_terms(&self, name: &str) -> Vec<Term> {
        let mut terms = words::terms(name);
        let compounds: Vec<Term> = terms
            .iter()
            .filter(|term| COMPOUND.contains(&term.word.len()))
            .flat_map(|term| self.split(&term.word))
            .map(|part| Term {
                stem: stem(part),
                word: part.to_owned(),
            })
            .collect();
        terms.extend(compounds);
        terms
    }

    /// Splits an unknown word into known ones, if it is a compound.
    fn split<'w>(&self, word: &'w str) -> Vec<&'w str> {
        if self.rank(word).is_some() || !word.bytes().all(|byte| byte.is_ascii_lowercase()) {
            return Vec::new();
        }
        // The cheapest split up to each position. Rare words cost more, and so do letters outside
        // of words.
        let mut best: Vec<(f32, usize)> = vec![(0.0, 0)];
        for end in 1..=word.len() {
            let ways = (0..end).map(|start| {
                let piece = &word[start..end];
                let known = (piece.len() >= COMPOUND_PART).then(|| self.rank(piece));
                let cost = match known.flatten() {
                    Some(rank) => 6.0 + cost(rank),
                    None => 13.0 * f32::from(u16::try_from(piece.len()).unwrap_or(u16::MAX)),
                };
                (best[start].0 + cost, start)
            });
            let way = ways.min_by(|one, other| one.0.total_cmp(&other.0));
            best.push(way.unwrap_or((f32::MAX, 0)));
        }
        let mut parts = Vec::new();
        let mut end = word.len();
        while end > 0 {
            let start = best[end].1;
            let piece = &word[start..end];
            if piece.len() >= COMPOUND_PART && self.rank(piece).is_some() {
                parts.push(piece);
            }
            end = start;
        }
        parts
    }

    /// The weight of a word, up to 1. The more common it is in the language, the lower.
    fn weight(&self, word: &str) -> f32 {
        match self.rank(word) {
            Some(rank) => (0.25 + 0.1 * cost(rank)).min(1.0),
            None => 1.0,
        }
    }

    /// A query with English words for its parts in other scripts, for a model.
    pub fn spell(&self, query: &str) -> String {
        let query = &query[..query.floor_char_boundary(QUERY_BYTES)];
        let foreign = glossary::english(query);
        if foreign.is_empty() {
            return query.to_owned();
        }
        format!("{} {query}", foreign.join(" "))
    }

    /// The words of a query to search for.
    pub(crate) fn concepts(&self, query: &str) -> Vec<Concept> {
        let query = &query[..query.floor_char_boundary(QUERY_BYTES)];
        let mut concepts: Vec<Concept> = Vec::new();
        let foreign = glossary::english(query).join(" ");
        for term in words::terms(query)
            .into_iter()
            .chain(words::terms(&foreign))
        {
            if synonyms::is_empty_word(&term.word)
                || concepts.iter().any(|known| known.stems[0].0 == term.stem)
            {
                continue;
            }
            let others = self.synonyms.get(&term.stem).into_iter().flatten();
            let own = (term.stem.clone(), 1.0);
            let stems = std::iter::once(own).chain(others.map(|other| (other.clone(), SYNONYM)));
            concepts.push(Concept {
                weight: self.weight(&term.word),
                stems: stems.collect(),
                word: term.word,
            });
            if concepts.len() >= 16 * CONCEPTS {
                break;
            }
        }
        if concepts.len() > CONCEPTS {
            concepts.sort_by(|one, other| other.weight.total_cmp(&one.weight));
            concepts.truncate(CONCEPTS);
        }
        concepts
    }
}

fn cost(rank: u32) -> f32 {
    (rank as f32 + 10.0).ln()
}
