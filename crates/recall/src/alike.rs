//! Finds versions with nearly the same content.

use rustc_hash::FxHashSet;

use crate::library::Library;

impl Library {
    /// Returns versions similar to this one: current, not ended by `now`, in exactly the same scope, and
    /// with a similarity (0 to 1) of at least `least`; the most similar first.
    ///
    /// The similarity of two versions is the share of their words that both contain; if both have vectors,
    /// the mean of that share and the similarity of the vectors. They have at least one word in common.
    pub fn alike(&self, row: u64, now: i64, least: f32, limit: usize) -> Vec<(u64, f32)> {
        let Some(at) = self.places.get(&row).copied() else {
            return Vec::new();
        };
        let model = self.models.first();
        let vector = model.and_then(|model| model.prepare_place(at));
        let own = self.lexicon.stems(at as usize);
        let mut alike = Vec::new();
        for other in self.candidates(at, now, least, vector.is_some()) {
            let stems = self.lexicon.stems(other as usize);
            let both = shared(own, stems);
            let words = both as f32 / (own.len() + stems.len() - both).max(1) as f32;
            let near = vector.as_ref().zip(model);
            let near = near.and_then(|(vector, model)| {
                let length = model.product(at, vector)?;
                Some(model.product(other, vector)? / length.max(f32::MIN_POSITIVE))
            });
            let similarity = near.map_or(words, |near| f32::midpoint(words, near.clamp(0.0, 1.0)));
            if similarity >= least {
                alike.push((self.columns.row[other as usize], similarity));
            }
        }
        alike.sort_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
        alike.truncate(limit);
        alike
    }

    /// Returns the places that may be similar enough, each once.
    ///
    /// A text that shares at least `must` of n words contains at least one of any n − `must` + 1 of them. So
    /// only the rarest words are looked up.
    fn candidates(&self, at: u32, now: i64, least: f32, has_vectors: bool) -> FxHashSet<u32> {
        let mut stems = self.lexicon.stems(at as usize).to_vec();
        stems.sort_by_key(|stem| (self.lexicon.postings(*stem).len(), *stem));
        let of_words = if has_vectors {
            2.0 * least - 1.0
        } else {
            least
        };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share of the length, 0 to 1"
        )]
        let must = (of_words.clamp(0.0, 1.0) * stems.len() as f32 - 0.001).ceil() as usize;
        stems.truncate(stems.len() + 1 - must.clamp(1, stems.len().max(1)));
        let scope = self.columns.scope[at as usize];
        let postings = stems.iter().flat_map(|stem| self.lexicon.postings(*stem));
        let others = postings.map(|posting| posting.at).filter(|other| {
            let place = *other as usize;
            *other != at
                && self.columns.scope[place] == scope
                && self.columns.is_current(place)
                && !self.columns.has_ended(place, now)
        });
        others.collect()
    }
}

/// Returns the number of elements in both slices, which are sorted and free of duplicates.
fn shared(mut one: &[u32], mut other: &[u32]) -> usize {
    let mut both = 0;
    while let (Some(first), Some(second)) = (one.first(), other.first()) {
        both += usize::from(first == second);
        if first <= second {
            one = &one[1..];
        }
        if second <= first {
            other = &other[1..];
        }
    }
    both
}
