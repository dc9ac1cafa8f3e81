//! One recall: by words, by meaning and through the graph, brought together.
//!
//! Every way gives a number from 0 to 1 that means the same at every size: the share of the query's words, the
//! cosine with its vector, how surely its names lead somewhere. Words and meaning count half each. The
//! graph only lifts what they do not see, so memories without entities lose nothing by it.
//! Ranks alone would throw away how sure a way is: adding them (reciprocal rank fusion) finds less, measured.

use crate::{
    columns::Admitted,
    dates,
    graph::ByGraph,
    lexical::{ByWords, Lexical},
    library::Library,
    limits,
    query::{Hit, Query},
    words,
};

/// What the graph leads to counts so much at least, whatever words and meaning say. It is no more because most
/// memories say the names themselves, so words have counted them.
const GRAPH: f32 = 0.35;
/// What nothing but its vector speaks for is a hit if that is so near.
const NEAR: f32 = 0.2;
/// How much the importance of a memory can add or take away, from the middle.
const IMPORTANCE: f32 = 0.1;
/// How much of a vector's nearness is its own; the rest is the mean with its neighbours'.
const OWN: f32 = 0.5;

/// What every way says, by place.
struct Opinions<'a> {
    words: Option<ByWords>,
    /// Not a number where it is not known.
    meanings: Option<Vec<f32>>,
    graph: ByGraph<'a>,
}

impl Library {
    /// Finds the memories that fit a query best, the best first. Among equals the one that was learned last.
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
        let mut best: Vec<(f32, u32)> = admitted
            .places
            .iter()
            .filter_map(|at| Some((self.score(&opinions, *at)?, *at)))
            .collect();
        let order = |one: &(f32, u32), other: &(f32, u32)| {
            let row = |at: u32| self.columns.row[at as usize];
            other
                .0
                .total_cmp(&one.0)
                .then_with(|| row(other.1).cmp(&row(one.1)))
        };
        if best.len() > limit {
            best.select_nth_unstable_by(limit, order);
            best.truncate(limit);
        }
        best.sort_unstable_by(order);
        best.into_iter()
            .map(|(score, at)| self.hit(&opinions, &admitted, score, at))
            .collect()
    }

    fn by_words(&self, query: &Query<'_>, admitted: &Admitted) -> Option<ByWords> {
        let sought = words::sought(query.text);
        let dates = dates::dates(query.text, query.filter.now);
        let lexical = Lexical {
            columns: &self.columns,
            lexicon: &self.lexicon,
            admitted,
        };
        (!sought.is_empty()).then(|| lexical.search(sought, &dates))
    }

    /// How near every memory that passes is to what is meant.
    fn by_meaning(&self, query: &Query<'_>, admitted: &Admitted) -> Option<Vec<f32>> {
        let (fingerprint, vector) = query.meaning?;
        let mut models = self.models.iter();
        let model = models.find(|model| *model.fingerprint == *fingerprint)?;
        // All vectors of a model are equally long, most of them 1.
        let length: f32 = vector.iter().map(|number| number * number).sum();
        if !length.is_normal() {
            return None;
        }
        let with = model.prepare(vector);
        let mut near = vec![f32::NAN; self.columns.len()];
        for at in &admitted.places {
            if let Some(product) = model.product(*at, &with) {
                near[*at as usize] = (product / length).clamp(0.0, 1.0);
            }
        }
        let mut meanings = vec![f32::NAN; self.columns.len()];
        for at in &admitted.places {
            let own = near[*at as usize];
            let (mut sum, mut count) = (own, 1.0);
            self.columns.each_neighbour(*at, admitted, |other, share| {
                let other = near[other as usize];
                if other.is_finite() {
                    sum += share * other;
                    count += share;
                }
            });
            meanings[*at as usize] = OWN * own + (1.0 - OWN) * sum / count;
        }
        Some(meanings)
    }

    /// How well a memory fits; it may be above 1 a little. `None` if nothing speaks for it.
    fn score(&self, opinions: &Opinions<'_>, at: u32) -> Option<f32> {
        let lexical = opinions.lexical(at).unwrap_or(0.0);
        let vector = opinions.vector(at).unwrap_or(0.0);
        let graph = opinions.graph(at).unwrap_or(0.0);
        // Where words were not asked, whoever asks wants what is nearest, however near that is.
        let near = if opinions.words.is_some() {
            NEAR
        } else {
            f32::MIN_POSITIVE
        };
        if lexical <= 0.0 && graph <= 0.0 && vector < near {
            return None;
        }
        let base = match (&opinions.words, &opinions.meanings) {
            (Some(_), Some(_)) => f32::midpoint(lexical, vector),
            _ => lexical + vector,
        };
        let score = base.max(GRAPH * graph);
        let importance = self.columns.importance[at as usize];
        let importance = if importance.is_finite() {
            importance.clamp(0.0, 1.0)
        } else {
            0.5
        };
        Some(score * (1.0 + 2.0 * IMPORTANCE * (importance - 0.5)))
    }

    fn hit(&self, opinions: &Opinions<'_>, admitted: &Admitted, score: f32, at: u32) -> Hit {
        let found = opinions.words.iter().flat_map(|words| &words.found);
        Hit {
            row: self.columns.row[at as usize],
            score: score.clamp(0.0, 1.0),
            lexical: opinions.lexical(at).map(|score| score.min(1.0)),
            vector: opinions.vector(at),
            graph: opinions.graph(at),
            words: found
                .filter(|(number, _)| self.lexicon.has(*number, at))
                .map(|(_, word)| word.clone())
                .collect(),
            entities: self.graph.names(&opinions.graph, at, admitted),
        }
    }
}

impl Opinions<'_> {
    fn lexical(&self, at: u32) -> Option<f32> {
        let score = self.words.as_ref()?.scores[at as usize];
        (score > 0.0).then_some(score)
    }

    fn graph(&self, at: u32) -> Option<f32> {
        let score = *self.graph.scores.get(at as usize)?;
        (score > 0.0).then_some(score)
    }

    fn vector(&self, at: u32) -> Option<f32> {
        let score = self.meanings.as_ref()?[at as usize];
        score.is_finite().then_some(score)
    }
}
