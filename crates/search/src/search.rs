//! One search: combines words, meaning and feedback.
//!
//! Each search method scores every tool. The scores are scaled so that the best tool of each method
//! has 1, and added. Ranks alone (reciprocal rank fusion) would discard how far ahead the first
//! tool is, and find less, as measured.

use std::collections::HashMap;

use crate::{
    index::Index,
    language::{Concept, Language},
    learnt::Learnt,
    query::{Hit, Query, Why},
    vectors::{Meaning, NEAREST},
};

/// The weight of a query's words relative to its meaning by the built-in table. Measured on several
/// sets of queries; the optimum is flat.
pub const WORDS_BESIDE_TABLE: f32 = 1.0;
/// The same relative to the meaning by a sentence model; see [`WORDS_BESIDE_TABLE`].
pub const WORDS_BESIDE_SENTENCES: f32 = 0.6;

/// The result of a search.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Found {
    /// The best tools, best first.
    pub hits: Vec<Hit>,
    /// `true` if vectors were used.
    pub by_meaning: bool,
}

/// The largest weight of feedback relative to the meaning.
const LEARNT: f32 = 0.5;
/// A tool with at least this nearness, or this share of the words' highest score, is certain to
/// fit.
const VERY_NEAR: f32 = 0.75;
const WELL_FOUND: f32 = 0.5;
/// The lowest certainty of a result, so that every hit has a score.
const LEAST_SURE: f32 = 0.05;
/// The least nearness at which tools without a word of the query are shown.
const NEAR: f32 = 0.25;

/// The scores of all tools by each search method.
struct Opinions {
    words: Vec<f32>,
    /// NaN where it is unknown.
    meanings: Option<Vec<f32>>,
    /// By the number of the tool.
    learnt: HashMap<usize, f32>,
}

impl Index {
    /// Finds the best tools for a query.
    pub fn search(
        &self,
        language: &Language,
        learnt: &Learnt,
        meaning: Option<Meaning<'_>>,
        query: &Query<'_>,
    ) -> Found {
        let concepts = language.concepts(query.text);
        if concepts.is_empty() {
            return Found::default();
        }
        let opinions = Opinions {
            words: self.by_words(&concepts, &query.filter),
            meanings: meaning.and_then(|meaning| self.by_meaning(&meaning)),
            learnt: self.by_lessons(learnt, &concepts),
        };
        let beside = meaning.map_or(1.0, |meaning| meaning.words);
        let mut scale = self.scale(&opinions, query, beside);
        scale.sure = scale.sureness(self.worth(&concepts));
        let best = self.best(&opinions, &scale, query);
        let hit = |(score, tool): (f32, usize)| {
            let part = self.part_of(tool)?;
            let own = tool - part.start;
            let why = || Why {
                words: scale.words(opinions.words[tool]),
                meaning: opinions
                    .meaning(tool)
                    .filter(|_| scale.by_meaning)
                    .map(|near| (near / NEAREST).clamp(0.0, 1.0)),
                learnt: opinions.learnt(tool),
                matches: self.matches(&concepts, &part.segment, own),
            };
            Some(Hit {
                server: part.segment.server().clone(),
                name: part.segment.tools().get(own)?.name.clone(),
                score: (scale.sure * score).min(1.0),
                why: query.explain.then(why),
            })
        };
        Found {
            hits: best.into_iter().filter_map(hit).collect(),
            by_meaning: scale.by_meaning,
        }
    }

    /// The nearness of each tool to the meaning of the query; `None` if no tool has comparable
    /// vectors.
    fn by_meaning(&self, meaning: &Meaning<'_>) -> Option<Vec<f32>> {
        let mut all = Vec::with_capacity(self.len());
        let mut is_known = false;
        for part in self.parts() {
            let near = part.vectors.as_ref();
            let near = near.and_then(|vectors| vectors.nearness(meaning));
            is_known |= near.is_some();
            all.extend(near.unwrap_or_default());
            all.resize(part.start + part.segment.tools().len(), f32::NAN);
        }
        is_known.then_some(all)
    }

    fn by_lessons(&self, learnt: &Learnt, concepts: &[Concept]) -> HashMap<usize, f32> {
        let recalled = learnt.recall(concepts).into_iter();
        let known = recalled.filter_map(|((server, tool), score)| {
            let at = self
                .parts()
                .binary_search_by(|part| (**part.segment.server()).cmp(server));
            let part = &self.parts()[at.ok()?];
            Some((part.start + part.segment.find(tool)?, score))
        });
        known.collect()
    }

    /// The numbers of the tools that pass the filter.
    fn admitted<'a>(&'a self, query: &'a Query<'_>) -> impl Iterator<Item = usize> + 'a {
        let parts = self.parts().iter();
        let parts = parts.filter(|part| query.filter.admits_server(part.segment.server()));
        parts.flat_map(move |part| {
            let tools = part.segment.tools().iter().enumerate();
            let tools = tools.filter(move |(_, tool)| query.filter.admits(tool));
            tools.map(|(at, _)| part.start + at)
        })
    }

    /// The scale for the scores of each search method.
    fn scale(&self, opinions: &Opinions, query: &Query<'_>, beside: f32) -> Scale {
        let (mut most, mut nearest, mut sum, mut count) = (0.0_f32, 0.0_f32, 0.0, 0.0_f32);
        for tool in self.admitted(query) {
            most = most.max(opinions.words[tool]);
            if let Some(near) = opinions.meaning(tool) {
                nearest = nearest.max(near);
                sum += near;
                count += 1.0;
            }
        }
        let usual = sum / count.max(1.0);
        Scale {
            most_words: most,
            usual,
            // With a single tool, the nearest equals the average.
            spread: (nearest - usual).max(0.05),
            // If the query means nothing to the model, the nearest tool is a coincidence.
            by_meaning: count > 0.0 && nearest >= NEAR,
            nearest,
            beside,
            sure: 1.0,
        }
    }

    /// The best tools, best first. Equal scores are sorted by name, so that the same query has the
    /// same result.
    fn best(&self, opinions: &Opinions, scale: &Scale, query: &Query<'_>) -> Vec<(f32, usize)> {
        let mut best: Vec<(f32, usize)> =
            Vec::with_capacity(query.limit.saturating_add(1).min(1_024));
        for tool in self.admitted(query) {
            let score = scale.score(opinions, tool);
            let is_in = score > 0.0
                && (best.len() < query.limit || best.last().is_some_and(|last| score > last.0));
            if is_in {
                let at = best.partition_point(|other| other.0 >= score);
                best.insert(at, (score, tool));
                best.truncate(query.limit);
            }
        }
        best
    }
}

impl Opinions {
    fn meaning(&self, tool: usize) -> Option<f32> {
        let near = *self.meanings.as_ref()?.get(tool)?;
        (!near.is_nan()).then_some(near)
    }

    fn learnt(&self, tool: usize) -> f32 {
        self.learnt.get(&tool).copied().unwrap_or_default()
    }
}

/// Scales the scores of each search method, so that its best tool has 1.
struct Scale {
    most_words: f32,
    /// The average nearness of tools to the query.
    usual: f32,
    /// The difference between the nearest and the average.
    spread: f32,
    by_meaning: bool,
    nearest: f32,
    /// The weight of the words relative to the meaning.
    beside: f32,
    /// The certainty that the best tool fits: it is the best of the available tools, and none may
    /// fit.
    sure: f32,
}

impl Scale {
    /// The share of a query that was found, by its words or by its meaning. `worth` is the highest
    /// possible score of its words.
    fn sureness(&self, worth: f32) -> f32 {
        let words = self.most_words / (WELL_FOUND * worth.max(f32::EPSILON));
        let meaning = if self.by_meaning {
            (self.nearest - NEAR) / (VERY_NEAR - NEAR)
        } else {
            0.0
        };
        words.max(meaning).clamp(LEAST_SURE, 1.0)
    }

    fn words(&self, words: f32) -> f32 {
        if self.most_words > 0.0 {
            words / self.most_words
        } else {
            0.0
        }
    }

    fn score(&self, opinions: &Opinions, tool: usize) -> f32 {
        let words = self.words(opinions.words[tool]);
        let learnt = if opinions.learnt.is_empty() {
            0.0
        } else {
            LEARNT * opinions.learnt(tool)
        };
        if !self.by_meaning {
            return words + learnt;
        }
        let near = opinions.meaning(tool).unwrap_or(self.usual);
        if words == 0.0 && learnt == 0.0 && near < NEAR {
            return 0.0;
        }
        let meaning = ((near - self.usual) / self.spread).max(0.0);
        (meaning + self.beside * words + learnt) / (1.0 + self.beside)
    }
}
