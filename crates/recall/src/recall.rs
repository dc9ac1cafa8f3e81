//! One recall: by words, by meaning and through the graph, brought together.

use rustc_hash::FxHashMap;
use switchboard_search::words;

use crate::{
    library::Library,
    limits,
    query::{Hit, Query},
};

const SATURATION: f32 = 1.2;

impl Library {
    /// Finds the memories that fit a query best, the best first.
    pub fn recall(&self, query: &Query<'_>) -> Vec<Hit> {
        let gate = self.columns.gate(&query.filter, &self.scopes);
        let mut found: FxHashMap<u32, Hit> = FxHashMap::default();
        let hit = |at: u32| Hit {
            row: self.columns.row[at as usize],
            score: 0.0,
            lexical: None,
            vector: None,
            graph: None,
            words: Vec::new(),
            entities: Vec::new(),
        };
        let text = &query.text[..query.text.floor_char_boundary(limits::QUERY_BYTES)];
        if query.channels.lexical {
            let all = (0..self.columns.len())
                .filter(|at| gate.admits(*at))
                .count() as f32;
            let mut sought: Vec<(words::Term, Vec<(u32, u8)>)> = Vec::new();
            for term in words::terms(text) {
                if sought.len() == limits::QUERY_WORDS
                    || sought.iter().any(|(known, _)| known.stem == term.stem)
                {
                    continue;
                }
                let stem = self.lexicon.stem(&term.stem);
                let postings = stem
                    .map(|stem| self.lexicon.postings(stem))
                    .unwrap_or_default();
                let admitted = postings
                    .iter()
                    .filter(|place| gate.admits(place.at as usize));
                let places = admitted.map(|place| (place.at, place.count)).collect();
                sought.push((term, places));
            }
            let weigh = |places: &[(u32, u8)]| {
                let have = places.len() as f32;
                ((all - have + 0.5) / (have + 0.5) + 1.0).ln()
            };
            let total: f32 = sought.iter().map(|(_, places)| weigh(places)).sum();
            for (term, places) in &sought {
                let weight = weigh(places) / total;
                for (at, count) in places {
                    let hit = found.entry(*at).or_insert_with(|| hit(*at));
                    let often = f32::from(*count);
                    *hit.lexical.get_or_insert(0.0) += weight * often * (1.0 + SATURATION)
                        / (often + SATURATION)
                        / (1.0 + SATURATION);
                    hit.words.push(term.word.clone());
                }
            }
        }
        if let (true, Some((fingerprint, vector))) = (query.channels.vector, query.meaning) {
            let mut models = self.models.iter();
            if let Some(model) = models.find(|model| {
                *model.fingerprint == *fingerprint && model.matrix.dimensions() == vector.len()
            }) {
                let prepared = model.matrix.prepare(vector);
                for at in (0_u32..)
                    .take(self.columns.len())
                    .filter(|at| gate.admits(*at as usize))
                {
                    if let Some(product) = model.matrix.product(at as usize, &prepared) {
                        found.entry(at).or_insert_with(|| hit(at)).vector =
                            Some(product.clamp(0.0, 1.0));
                    }
                }
            }
        }
        if query.channels.graph {
            let scopes = |scope: u32| gate.scopes[scope as usize];
            for (at, share, name) in self.graph.found(text, scopes) {
                if gate.admits(at as usize) {
                    let hit = found.entry(at).or_insert_with(|| hit(at));
                    hit.graph = Some(hit.graph.unwrap_or(0.0).max(share));
                    if !hit.entities.iter().any(|known| known == name) {
                        hit.entities.push(name.to_owned());
                    }
                }
            }
        }
        let mut hits: Vec<Hit> = found.into_values().collect();
        for hit in &mut hits {
            let parts = [(hit.lexical, 0.5), (hit.vector, 0.4), (hit.graph, 0.1)];
            let sum: f32 = parts
                .iter()
                .map(|(score, weight)| score.unwrap_or(0.0) * weight)
                .sum();
            hit.score = sum.clamp(0.0, 1.0);
        }
        hits.sort_by(|one, other| {
            other
                .score
                .total_cmp(&one.score)
                .then(one.row.cmp(&other.row))
        });
        hits.truncate(query.limit.min(limits::HITS));
        hits
    }

    /// Versions that say the same as this one: current, not ended, of exactly the same scope, and at least
    /// so similar; the most similar first.
    pub fn alike(&self, row: u64, least: f32, limit: usize) -> Vec<(u64, f32)> {
        let Some(at) = self.places.get(&row) else {
            return Vec::new();
        };
        let mut own = self.lexicon.text(*at as usize).to_vec();
        own.sort_unstable();
        own.dedup();
        let mut shared: FxHashMap<u32, usize> = FxHashMap::default();
        let scope = self.columns.scope[*at as usize];
        for stem in &own {
            for place in self.lexicon.postings(*stem) {
                let other = place.at as usize;
                if place.at != *at
                    && self.columns.scope[other] == scope
                    && self.columns.learned_until[other] == i64::MAX
                    && self.columns.valid_until[other] == i64::MAX
                {
                    *shared.entry(place.at).or_default() += 1;
                }
            }
        }
        let mut alike: Vec<(u64, f32)> = shared
            .into_iter()
            .map(|(other, shared)| {
                let mut text = self.lexicon.text(other as usize).to_vec();
                text.sort_unstable();
                text.dedup();
                let all = own.len() + text.len() - shared;
                (self.columns.row[other as usize], shared as f32 / all as f32)
            })
            .filter(|(_, similarity)| *similarity >= least)
            .collect();
        alike.sort_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
        alike.truncate(limit);
        alike
    }
}
