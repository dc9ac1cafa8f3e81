//! By words: which share of what a query says a memory has.
//!
//! The score is BM25 with what it could be at most as its measure: every word of the query weighs as much as it is
//! rare, and a memory has the share of the whole weight that its words make. A share means the same among
//! ten memories as among a hundred thousand.
//!
//! A memory also has, by half, the words of those that were learned just before and after it: an answer is
//! found by the words of the question before it. A date in the query is a word as well, which every memory
//! has that is from then.

use crate::{
    columns::{Admitted, Columns},
    dates::When,
    lexicon::Lexicon,
    room::Room,
    words::Sought,
};

/// How late more of the same word stops to count, and how much the length of a text is held against it. Both
/// are small for texts of a sentence or two.
const SATURATION: f32 = 0.6;
const LENGTH: f32 = 0.3;
/// Words are weighed as if there were so many ordinary texts besides, so that a library of three memories
/// does not take every word for a common one.
const ORDINARY: f32 = 100.0;
/// What a memory begins with is mostly who or what it is about. If the query names that, it counts so much.
const SUBJECT: f32 = 0.15;

/// What is looked for, with its weight.
pub(crate) struct Lexical<'a> {
    pub(crate) columns: &'a Columns,
    pub(crate) lexicon: &'a Lexicon,
    pub(crate) admitted: &'a Admitted,
}

/// Scores by place, and what they are made of.
pub(crate) struct ByWords {
    /// Above 0 where a word was found, in a memory or next to it. It may be above 1 a little.
    pub(crate) scores: Vec<f32>,
    /// The words that are known, with the numbers of their stems.
    pub(crate) found: Vec<(u32, String)>,
}

impl Lexical<'_> {
    pub(crate) fn search(&self, sought: Vec<Sought>, dates: &[When]) -> ByWords {
        let mut scores = vec![0.0_f32; self.columns.len()];
        let mut room = Room::new(self.columns.len());
        let mean = self.mean_length();
        let mut total = 0.0;
        let mut found = Vec::new();
        for word in sought {
            let number = self.lexicon.number(&word.stem);
            let mut have = 0_u32;
            for posting in number
                .map(|number| self.lexicon.postings(number))
                .unwrap_or_default()
            {
                if self.admitted.open[posting.at as usize] {
                    have += 1;
                    let length = f32::from(self.lexicon.length(posting.at as usize)) / mean;
                    let often = f32::from(posting.count);
                    let worth = (1.0 + SATURATION) * often
                        / (often + SATURATION * (1.0 - LENGTH + LENGTH * length));
                    self.lend(posting.at, worth, &mut room);
                }
            }
            let weight = self.weight(have, word.common);
            total += weight;
            room.collect(|at, worth| scores[at as usize] += weight * worth);
            if let Some(number) = number {
                found.push((number, word.word));
            }
        }
        for date in dates {
            let mut have = 0;
            for at in &self.admitted.places {
                let share = date.share(self.columns.moment(*at as usize));
                if share > 0.0 {
                    have += u32::from(share >= 1.0);
                    room.put(*at, share);
                }
            }
            let weight = self.weight(have, 0.0);
            total += weight;
            room.collect(|at, worth| scores[at as usize] += weight * worth);
        }
        if total > 0.0 {
            for at in &self.admitted.places {
                let score = &mut scores[*at as usize];
                if *score > 0.0 {
                    *score /= total;
                    let first = self.lexicon.first(*at as usize);
                    if found.iter().any(|(number, _)| *number == first) {
                        *score += SUBJECT;
                    }
                }
            }
        }
        ByWords { scores, found }
    }

    /// Gives a word's worth to the memory that has it, and a share to its neighbours.
    fn lend(&self, at: u32, worth: f32, room: &mut Room) {
        room.put(at, worth);
        self.columns
            .each_neighbour(at, self.admitted, |near, share| {
                room.put(near, share * worth);
            });
    }

    /// How much a word weighs that so many memories have, of those that pass.
    fn weight(&self, have: u32, common: f32) -> f32 {
        rarity(have as f32 + ORDINARY * common, self.admitted.places.len())
    }

    fn mean_length(&self) -> f32 {
        let places = self.admitted.places.iter();
        let lengths = places.map(|at| u64::from(self.lexicon.length(*at as usize)));
        let total: u64 = lengths.sum();
        (total as f32 / self.admitted.places.len().max(1) as f32).max(1.0)
    }
}

/// How rare something is that so many of so many memories have, with the ordinary ones besides.
pub(crate) fn rarity(have: f32, of: usize) -> f32 {
    let of = of as f32 + ORDINARY;
    ((of - have + 0.5).max(0.0) / (have + 0.5) + 1.0).ln()
}
