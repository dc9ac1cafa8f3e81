//! By words: which share of what a query says a memory has.
//!
//! The score is BM25 with what it could be at most as its measure: every word of the query weighs as much as it is
//! rare, and a memory has the share of the whole weight that its words make. A share means the same among
//! ten memories as among a hundred thousand.
//!
//! A memory also has, by half, the words of those that were learned just before and after it: an answer is
//! found by the words of the question before it. A date in the query is a word as well, which every memory
//! has that is from then or names it.

use crate::{
    columns::{Admitted, Columns},
    dates::{When, Written},
    lexicon::Lexicon,
    room::{Room, Sums},
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
pub(crate) const SUBJECT: f32 = 0.15;

/// Where it is looked for.
pub(crate) struct Lexical<'a> {
    pub(crate) columns: &'a Columns,
    pub(crate) lexicon: &'a Lexicon,
    pub(crate) written: &'a Written,
    pub(crate) admitted: &'a Admitted,
}

/// Scores by seat, and what they are made of.
pub(crate) struct ByWords {
    /// The weight of the words that were found, in a memory or next to it.
    pub(crate) sums: Sums,
    /// The weight of all words.
    total: f32,
    /// The words that are known, with the numbers of their stems.
    pub(crate) found: Vec<(u32, String)>,
}

impl ByWords {
    /// The share that the memory in a seat has of the whole weight, 0 if it has none. It may be above 1 a little.
    pub(crate) fn share(&self, seat: usize) -> f32 {
        match self.sums.get(seat) {
            sum if sum > 0.0 => sum / self.total,
            _ => 0.0,
        }
    }
}

impl Lexical<'_> {
    pub(crate) fn search(&self, sought: Vec<Sought>, dates: &[When]) -> ByWords {
        let mut scores = Sums::new(self.admitted.len());
        let mut room = Room::new(self.admitted.len());
        let mut total = 0.0;
        let mut found = Vec::new();
        let mean = self.mean_length();
        for word in sought {
            let number = self.lexicon.number(&word.stem);
            let have = number.map_or(0, |number| self.gather(number, mean, &mut room));
            let weight = self.weight(have, word.common);
            total += weight;
            room.collect(|seat, worth| scores.change(seat, |sum| sum + weight * worth));
            if let Some(number) = number {
                found.push((number, word.word));
            }
        }
        for date in dates {
            let have = self.gather_date(*date, &mut room);
            let weight = self.weight(have, 0.0);
            total += weight;
            room.collect(|seat, worth| scores.change(seat, |sum| sum + weight * worth));
        }
        ByWords {
            sums: scores,
            total,
            found,
        }
    }

    /// What a word is worth for the memories that have it and, in part, for their neighbours; and how many have
    /// it.
    fn gather(&self, number: u32, mean: f32, room: &mut Room) -> u32 {
        let mut have = 0;
        for posting in self.lexicon.postings(number) {
            let Some(seat) = self.admitted.seat(posting.at) else {
                continue;
            };
            have += 1;
            let length = f32::from(self.lexicon.length(posting.at as usize)) / mean;
            let often = f32::from(posting.count);
            let worth = (1.0 + SATURATION) * often
                / (often + SATURATION * (1.0 - LENGTH + LENGTH * length));
            room.put(seat, worth);
            self.columns
                .each_neighbour(posting.at, self.admitted, |near, share| {
                    room.put(near, share * worth);
                });
        }
        have
    }

    /// The same for a date: those from then have it, and those that name it.
    fn gather_date(&self, date: When, room: &mut Room) -> u32 {
        let mut have = 0;
        for (seat, at) in self.admitted.places.iter().enumerate() {
            let moment = date.share(self.columns.moment(*at as usize));
            let written = self
                .written
                .get(at)
                .is_some_and(|dates| date.is_among(dates));
            let share = if written { 1.0 } else { moment };
            if share > 0.0 {
                have += u32::from(share >= 1.0);
                room.put(seat, share);
            }
        }
        have
    }

    /// How much a word weighs that so many memories have, of those that pass.
    fn weight(&self, have: u32, common: f32) -> f32 {
        rarity(have as f32 + ORDINARY * common, self.admitted.len())
    }

    fn mean_length(&self) -> f32 {
        let places = self.admitted.places.iter();
        let lengths = places.map(|at| u64::from(self.lexicon.length(*at as usize)));
        let total: u64 = lengths.sum();
        (total as f32 / self.admitted.len().max(1) as f32).max(1.0)
    }
}

/// How rare something is that so many of so many memories have, with the ordinary ones besides.
pub(crate) fn rarity(have: f32, of: usize) -> f32 {
    let of = of as f32 + ORDINARY;
    ((of - have + 0.5).max(0.0) / (have + 0.5) + 1.0).ln()
}
