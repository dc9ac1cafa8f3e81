//! One search: by words, by meaning and by what was learnt, brought together.
//!
//! Each way of searching gives every tool a number; the numbers are brought to the same scale (the best tool
//! of a way has 1) and added. Ranks alone would throw away how sure a way is of its first: adding them
//! (reciprocal rank fusion) finds less, measured.

use crate::{
    index::Index,
    language::Language,
    learnt::Learnt,
    query::{Hit, Query, Why},
    segment::Segment,
};

/// The meaning of a query, in the vectors of one model.
#[derive(Debug, Clone, Copy)]
pub struct Meaning<'a> {
    /// The model, by its fingerprint: only vectors of the same are compared.
    pub model: &'a str,
    /// The query's vector.
    pub vector: &'a [f32],
    /// How much the words count beside the meaning. The better the model, the less.
    pub words: f32,
}

/// How much the words of a query count beside its meaning in the eyes of the built-in table, and in those
/// of a sentence model. Measured on several sets of queries; both are flat around their best.
pub const WORDS_BESIDE_TABLE: f32 = 1.0;
/// See [`WORDS_BESIDE_TABLE`].
pub const WORDS_BESIDE_SENTENCES: f32 = 0.6;

/// What was found.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Found {
    /// The best, the best first.
    pub hits: Vec<Hit>,
    /// Whether vectors had a say.
    pub by_meaning: bool,
}

/// How much of a score what was learnt can be, beside the meaning.
const LEARNT: f32 = 0.5;
/// Tools that have no word of the query are shown if their meaning is this near.
const NEAR: f32 = 0.25;

struct Candidate<'a> {
    segment: &'a Segment,
    tool: u32,
    words: f32,
    meaning: Option<f32>,
    learnt: f32,
    score: f32,
}

impl Index {
    /// Finds the tools that fit a query best.
    pub fn search(
        &self,
        language: &Language,
        learnt: &Learnt,
        meaning: Option<Meaning<'_>>,
        query: &Query<'_>,
    ) -> Found {
        let concepts = language.concepts(query.text);
        let words = self.by_words(&concepts, &query.filter);
        let mut candidates = Vec::new();
        for (part, words) in self.parts().iter().zip(words) {
            let segment = &part.segment;
            if !query.filter.admits_server(segment.server()) {
                continue;
            }
            let meanings = meaning.zip(part.vectors.as_ref());
            let meanings = meanings.and_then(|(meaning, vectors)| vectors.nearness(&meaning));
            let entries = (0..).zip(segment.tools()).zip(words);
            candidates.extend(
                entries
                    .filter(|((_, entry), _)| query.filter.admits(entry))
                    .map(|((tool, _), words)| Candidate {
                        segment,
                        tool,
                        words,
                        meaning: meanings.as_ref().map(|near| near[tool as usize]),
                        learnt: 0.0,
                        score: 0.0,
                    }),
            );
        }
        let lessons = learnt.recall(&concepts);
        if !lessons.is_empty() {
            for candidate in &mut candidates {
                let name = &candidate.segment.tools()[candidate.tool as usize].name;
                let lesson = lessons.get(&(&**candidate.segment.server(), &**name));
                candidate.learnt = lesson.copied().unwrap_or_default();
            }
        }
        let by_meaning = weigh(
            &mut candidates,
            meaning.map_or(1.0, |meaning| meaning.words),
        );
        candidates.retain(|candidate| candidate.score > 0.0);
        let limit = query.limit.min(candidates.len());
        if limit > 0 && limit < candidates.len() {
            candidates.select_nth_unstable_by(limit - 1, Candidate::best_first);
        }
        candidates.truncate(limit);
        candidates.sort_unstable_by(Candidate::best_first);
        let hit = |candidate: Candidate<'_>| {
            let why = || Why {
                words: candidate.words,
                meaning: candidate.meaning,
                learnt: candidate.learnt,
                matches: self.matches(&concepts, candidate.segment, candidate.tool),
            };
            Hit {
                server: candidate.segment.server().clone(),
                name: candidate.segment.tools()[candidate.tool as usize]
                    .name
                    .clone(),
                score: candidate.score.min(1.0),
                why: query.explain.then(why),
            }
        };
        Found {
            hits: candidates.into_iter().map(hit).collect(),
            by_meaning,
        }
    }
}

/// Brings what each way of searching says to one scale, and adds it up. Tells whether vectors had a say.
fn weigh(candidates: &mut [Candidate<'_>], words_beside_meaning: f32) -> bool {
    let most_words = candidates.iter().map(|one| one.words).fold(0.0, f32::max);
    let meanings = || candidates.iter().filter_map(|one| one.meaning);
    let (count, sum) = meanings().fold((0.0_f32, 0.0), |(n, sum), near| (n + 1.0, sum + near));
    let nearest = meanings().fold(0.0, f32::max);
    let usual = sum / count.max(1.0);
    // Of a query that means nothing to the model, what happens to be nearest is nothing.
    let by_meaning = count > 0.0 && nearest >= NEAR;
    let spread = (nearest - usual).max(f32::EPSILON);
    for candidate in candidates {
        if most_words > 0.0 {
            candidate.words /= most_words;
        }
        let near = candidate.meaning.unwrap_or(usual);
        let meaning = by_meaning.then(|| ((near - usual) / spread).max(0.0));
        candidate.score = match meaning {
            // A single tool is as near as it is usual.
            Some(meaning) if count > 1.0 => {
                let relevant = candidate.words > 0.0 || near >= NEAR || candidate.learnt > 0.0;
                let score = meaning + words_beside_meaning * candidate.words;
                let score = (score + LEARNT * candidate.learnt) / (1.0 + words_beside_meaning);
                if relevant { score } else { 0.0 }
            }
            Some(_) if candidate.words == 0.0 => near,
            _ => candidate.words + LEARNT * candidate.learnt,
        };
        candidate.meaning = candidate.meaning.filter(|_| by_meaning);
    }
    by_meaning
}

impl Candidate<'_> {
    /// By score; among equals by name, so that the same question has the same answer.
    fn best_first(&self, other: &Self) -> std::cmp::Ordering {
        let name = |one: &Self| {
            let entry = &one.segment.tools()[one.tool as usize];
            (one.segment.server().clone(), entry.name.clone())
        };
        other
            .score
            .total_cmp(&self.score)
            .then_with(|| name(self).cmp(&name(other)))
    }
}
