//! One recall: by words, by vectors and through the graph, combined.
//!
//! Each channel gives a score from 0 to 1 that does not depend on the number of memories: the share of the
//! query's words, the cosine with its vector, the certainty with which its names lead to the memory. Words
//! and vectors count half each. The graph only raises memories that the others miss, so memories without
//! entities lose nothing by it. Ranks alone would discard how certain a channel is: adding ranks (reciprocal
//! rank fusion) found less in measurements.

use crate::{
    columns::Admitted,
    dates,
    graph::ByGraph,
    lexical::{ByWords, Lexical, SUBJECT},
    library::Library,
    limits,
    query::{Hit, Query},
    words,
};

/// The lower bound of the score for a memory that the graph leads to with certainty, regardless of words and
/// vectors. It is not higher because most memories contain the names themselves, so that words have counted
/// them already.
const GRAPH: f32 = 0.35;
/// The least similarity at which a vector alone makes a memory a hit.
const NEAR: f32 = 0.2;
/// The most that the importance of a memory can add or take away.
const IMPORTANCE: f32 = 0.1;
/// The weight of a vector's own similarity; the rest is the mean with its neighbours'.
const OWN: f32 = 0.5;

/// The scores of all channels, by seat.
struct Opinions<'a> {
    words: Option<ByWords>,
    /// NaN where a memory has no vector.
    meanings: Option<Vec<f32>>,
    graph: ByGraph<'a>,
}

impl Library {
    /// Finds the memories that match a query, the best first; of equal scores, the one with the greater row.
    pub fn recall(&self, query: &Query<'_>) -> Vec<Hit> {
        let limit = query.limit.min(limits::HITS);
        let admitted = self.columns.admitted(&query.filter, &self.scopes);
        if limit == 0 || admitted.places.is_empty() {
            return Vec::new();
        }
        let opinions = Opinions {
            words: query
                .channels
                .lexical
                .then(|| self.by_words(query, &admitted))
                .flatten(),
            meanings: query
                .channels
                .vector
                .then(|| self.by_meaning(query, &admitted))
                .flatten(),
            graph: if query.channels.graph {
                self.graph.search(query.text, &admitted)
            } else {
                ByGraph::default()
            },
        };
        let best = self.best(&opinions, &admitted, limit);
        let hits = best.into_iter();
        hits.map(|(score, seat)| self.hit(&opinions, &admitted, score, seat))
            .collect()
    }

    /// Returns the seats of the best memories, with their scores, the best first.
    fn best(
        &self,
        opinions: &Opinions<'_>,
        admitted: &Admitted,
        limit: usize,
    ) -> Vec<(f32, usize)> {
        let order = |one: &(f32, usize), other: &(f32, usize)| {
            let row = |seat: usize| self.columns.row[admitted.places[seat] as usize];
            let of_row = || row(other.1).cmp(&row(one.1));
            other.0.total_cmp(&one.0).then_with(of_row)
        };
        let mut best: Vec<(f32, usize)> = Vec::new();
        // Memories that cannot be among the best are skipped early; that is nearly all of them.
        let mut least = f32::MIN;
        for seat in opinions.seats(admitted.len()) {
            if opinions.most(seat) < least {
                continue;
            }
            let Some(score) = self.score(opinions, seat, admitted.places[seat]) else {
                continue;
            };
            best.push((score, seat));
            if best.len() > 2 * limit {
                best.select_nth_unstable_by(limit - 1, order);
                best.truncate(limit);
                least = best[limit - 1].0;
            }
        }
        best.sort_unstable_by(order);
        best.truncate(limit);
        best
    }

    fn by_words(&self, query: &Query<'_>, admitted: &Admitted) -> Option<ByWords> {
        let sought = words::sought(query.text);
        let dates = dates::dates(query.text, query.filter.now);
        let lexical = Lexical {
            columns: &self.columns,
            lexicon: &self.lexicon,
            written: &self.written,
            admitted,
        };
        (!sought.is_empty()).then(|| lexical.search(sought, &dates))
    }

    /// Returns the similarity of each admitted memory to the query's vector.
    fn by_meaning(&self, query: &Query<'_>, admitted: &Admitted) -> Option<Vec<f32>> {
        let (fingerprint, vector) = query.meaning?;
        let mut models = self.models.iter();
        let model = models.find(|model| *model.fingerprint == *fingerprint)?;
        // All vectors of a model have the same length, for most models 1.
        let length: f32 = vector.iter().map(|number| number * number).sum();
        if !length.is_normal() {
            return None;
        }
        let with = model.prepare(vector);
        let near: Vec<f32> = admitted
            .places
            .iter()
            .map(|at| match model.product(*at, &with) {
                Some(product) => (product / length).clamp(0.0, 1.0),
                None => f32::NAN,
            })
            .collect();
        let with_neighbours = |(own, at): (&f32, &u32)| {
            let (mut sum, mut count) = (*own, 1.0);
            self.columns.each_neighbour(*at, admitted, |seat, share| {
                if near[seat].is_finite() {
                    sum += share * near[seat];
                    count += share;
                }
            });
            OWN * own + (1.0 - OWN) * sum / count
        };
        Some(
            near.iter()
                .zip(&admitted.places)
                .map(with_neighbours)
                .collect(),
        )
    }

    /// Returns the score of a memory, which may be slightly above 1. `None` if no channel matches.
    fn score(&self, opinions: &Opinions<'_>, seat: usize, at: u32) -> Option<f32> {
        let score = opinions.score(seat, self.by_own_words(opinions, seat, at))?;
        let importance = self.columns.importance[at as usize];
        let importance = if importance.is_finite() {
            importance.clamp(0.0, 1.0)
        } else {
            0.5
        };
        Some(score * (1.0 + 2.0 * IMPORTANCE * (importance - 0.5)))
    }

    /// Returns the lexical score of a memory, with a bonus if the query names its first word.
    fn by_own_words(&self, opinions: &Opinions<'_>, seat: usize, at: u32) -> f32 {
        let share = opinions.lexical(seat);
        let first = self.lexicon.first(at as usize);
        let mut found = opinions.words.iter().flat_map(|words| &words.found);
        if share > 0.0 && found.any(|(number, _)| *number == first) {
            share + SUBJECT
        } else {
            share
        }
    }

    fn hit(&self, opinions: &Opinions<'_>, admitted: &Admitted, score: f32, seat: usize) -> Hit {
        let at = admitted.places[seat];
        let lexical = self.by_own_words(opinions, seat, at);
        let found = opinions.words.iter().flat_map(|words| &words.found);
        Hit {
            row: self.columns.row[at as usize],
            score: score.clamp(0.0, 1.0),
            lexical: (lexical > 0.0).then_some(lexical.min(1.0)),
            vector: opinions.vector(seat),
            graph: opinions.graph(seat),
            words: found
                .filter(|(number, _)| self.lexicon.has(*number, at))
                .map(|(_, word)| word.clone())
                .collect(),
            entities: self.graph.names(&opinions.graph, at, admitted),
        }
    }
}

impl Opinions<'_> {
    /// Returns the seats, out of `all`, that have any score.
    fn seats(&self, all: usize) -> Box<dyn Iterator<Item = usize> + '_> {
        if self.meanings.is_some() {
            return Box::new(0..all);
        }
        let by_words = self.words.iter().flat_map(|words| words.sums.seats());
        let by_graph = self.graph.scores.seats();
        let only_by_graph = by_graph.filter(|seat| self.lexical(*seat) <= 0.0);
        Box::new(by_words.chain(only_by_graph))
    }

    /// Combines all channels, with this lexical score. `None` if no channel matches.
    fn score(&self, seat: usize, lexical: f32) -> Option<f32> {
        let vector = self.vector(seat).unwrap_or(0.0);
        let graph = self.graph.scores.get(seat);
        // Without the lexical channel, the caller wants the nearest memories, however far they are.
        let near = match self.words {
            Some(_) => NEAR,
            None => f32::MIN_POSITIVE,
        };
        if lexical <= 0.0 && graph <= 0.0 && vector < near {
            return None;
        }
        let base = match (&self.words, &self.meanings) {
            (Some(_), Some(_)) => f32::midpoint(lexical, vector),
            _ => lexical + vector,
        };
        Some(base.max(GRAPH * graph))
    }

    /// Upper bound of the score.
    fn most(&self, seat: usize) -> f32 {
        let score = self.score(seat, self.lexical(seat) + SUBJECT);
        score.unwrap_or(0.0) * (1.0 + IMPORTANCE)
    }

    fn lexical(&self, seat: usize) -> f32 {
        let words = self.words.as_ref();
        words.map_or(0.0, |words| words.share(seat))
    }

    fn graph(&self, seat: usize) -> Option<f32> {
        let score = self.graph.scores.get(seat);
        (score > 0.0).then_some(score)
    }

    fn vector(&self, seat: usize) -> Option<f32> {
        let score = *self.meanings.as_ref()?.get(seat)?;
        score.is_finite().then_some(score)
    }
}
