//! Lexical search: the share of the query's words that a memory has.
//!
//! The score is BM25, divided by its maximum: each word of the query has a weight that grows with its
//! rarity, and the score of a memory is the share of the total weight that its words make up. A share means
//! the same among ten memories as among a hundred thousand.
//!
//! A memory also has, at reduced weight, the words of the memories that were learned just before and after
//! it: an answer is found by the words of the question before it. A date in the query also counts as a word;
//! the memories that are from that time or name that date have it.

use crate::{
    columns::{Admitted, Columns},
    dates::{When, Written},
    lexicon::Lexicon,
    room::{Room, Sums},
    words::Sought,
};

/// BM25's k1 (saturation by repeated words) and b (penalty for long texts). Both are small, for texts of a
/// sentence or two.
const SATURATION: f32 = 0.6;
const LENGTH: f32 = 0.3;
/// The number of ordinary texts that are assumed to exist besides the memories, so that a library of three
/// memories does not treat every word as common.
const ORDINARY: f32 = 100.0;
/// The bonus if the query names the first word of a memory, which is usually its subject.
pub(crate) const SUBJECT: f32 = 0.15;

/// The data that a lexical search reads.
pub(crate) struct Lexical<'a> {
    pub(crate) columns: &'a Columns,
    pub(crate) lexicon: &'a Lexicon,
    pub(crate) written: &'a Written,
    pub(crate) admitted: &'a Admitted,
}

/// Scores by seat, and the words behind them.
pub(crate) struct ByWords {
    /// Weight of the words found in a memory or in its neighbours.
    pub(crate) sums: Sums,
    /// Weight of all words.
    total: f32,
    /// Words that some memory has, with the numbers of their stems.
    pub(crate) found: Vec<(u32, String)>,
}

impl ByWords {
    /// Returns the memory's share of the total weight, or 0 if it has none. It may be slightly above 1.
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

    /// Computes the value of a word for the memories that have it and, in part, for their neighbours.
    /// Returns the number of memories that have it.
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

    /// The same for a date: memories from that time and memories that name it have it.
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

    /// Returns the weight of a word that `have` of the admitted memories contain.
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

/// Returns the rarity of a feature that `have` out of `of` memories share, with the assumed ordinary texts
/// included.
pub(crate) fn rarity(have: f32, of: usize) -> f32 {
    let of = of as f32 + ORDINARY;
    ((of - have + 0.5).max(0.0) / (have + 0.5) + 1.0).ln()
}
