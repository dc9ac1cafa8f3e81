//! [`Index`]: the tools of all servers, searched by words.

use std::sync::Arc;

use crate::{
    document::Field,
    language::Concept,
    query::Filter,
    segment::{Entry, FIELDS, Posting, Segment},
    vectors::Vectors,
};

/// The tools of all servers, ready to be searched. It never changes: [`with`](Self::with) makes the next
/// one, which shares every other server's segment.
#[derive(Debug, Default, Clone)]
pub struct Index {
    /// In the order of the servers' names.
    parts: Vec<Part>,
    tools: usize,
    /// How many words each field has in a tool, on average.
    averages: [f32; FIELDS],
}

/// The share of one server.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    pub(crate) segment: Arc<Segment>,
    /// What its tools mean, once that is known.
    pub(crate) vectors: Option<Arc<Vectors>>,
}

/// How much a word counts in each field.
const FIELD_WEIGHTS: [f32; FIELDS] = [2.5, 1.0, 2.0, 1.0, 0.6, 0.3];
/// How much the length of each field is held against it.
const LENGTH_SHARES: [f32; FIELDS] = [0.3, 0.3, 0.5, 0.4, 0.5, 0.6];
/// How late more of the same stops to count.
const SATURATION: f32 = 1.5;

/// What speaks for a tool: a word of the query, where it stands, and what that is worth.
#[derive(Debug, Clone, PartialEq)]
pub struct Match {
    /// The word of the query.
    pub word: String,
    /// The stem that was found: the word's own, or that of another word for the same thing.
    pub stem: String,
    /// Where it stands.
    pub fields: Vec<Field>,
    /// What it adds to the score.
    pub score: f32,
}

impl Index {
    /// This index with the segment of one server replaced, added, or (with `None`) removed.
    #[must_use]
    pub fn with(&self, server: &str, segment: Option<Arc<Segment>>) -> Self {
        let others = self.parts.iter();
        let others = others.filter(|other| **other.segment.server() != *server);
        let part = segment.map(|segment| Part {
            segment,
            vectors: None,
        });
        Self::from_parts(others.cloned().chain(part).collect())
    }

    /// This index, with vectors for the tools of this very segment. If it has been replaced meanwhile,
    /// they are for nothing.
    #[must_use]
    pub fn with_vectors(&self, segment: &Arc<Segment>, vectors: Vectors) -> Self {
        let mut index = self.clone();
        let part = index
            .parts
            .iter_mut()
            .find(|part| Arc::ptr_eq(&part.segment, segment));
        if let Some(part) = part {
            part.vectors = Some(Arc::new(vectors));
        }
        index
    }

    /// An index of these segments, one a server.
    pub fn from_segments(segments: impl IntoIterator<Item = Arc<Segment>>) -> Self {
        let part = |segment| Part {
            segment,
            vectors: None,
        };
        Self::from_parts(segments.into_iter().map(part).collect())
    }

    fn from_parts(mut parts: Vec<Part>) -> Self {
        parts.sort_by(|one, other| one.segment.server().cmp(other.segment.server()));
        let segments = || parts.iter().map(|part| &part.segment);
        let tools: usize = segments().map(|segment| segment.tools().len()).sum();
        let averages = std::array::from_fn(|field| {
            let total: u64 = segments().map(|segment| segment.totals()[field]).sum();
            (total as f32 / tools.max(1) as f32).max(1.0)
        });
        Self {
            parts,
            tools,
            averages,
        }
    }

    /// The segments, in the order of their servers' names.
    pub fn segments(&self) -> impl ExactSizeIterator<Item = &Arc<Segment>> {
        self.parts.iter().map(|part| &part.segment)
    }

    /// The segments that have no vectors of this model yet.
    pub fn without_vectors(&self, model: &str) -> impl Iterator<Item = &Arc<Segment>> {
        let lacks = move |part: &&Part| {
            let vectors = part.vectors.as_ref();
            vectors.is_none_or(|vectors| vectors.model() != model)
        };
        self.parts.iter().filter(lacks).map(|part| &part.segment)
    }

    pub(crate) fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// How many tools there are.
    pub fn len(&self) -> usize {
        self.tools
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.tools == 0
    }

    /// What the words of a query are worth for each tool, segment by segment.
    pub(crate) fn by_words(&self, query: &[Concept], filter: &Filter<'_>) -> Vec<Vec<f32>> {
        let mut scores: Vec<Vec<f32>> = self
            .segments()
            .map(|segment| vec![0.0; segment.tools().len()])
            .collect();
        for concept in query {
            self.add(concept, filter, &mut scores);
        }
        scores
    }

    /// Adds what one word is worth for each tool.
    fn add(&self, concept: &Concept, filter: &Filter<'_>, scores: &mut [Vec<f32>]) {
        let mut best: Vec<(u32, f32)> = Vec::new();
        let sought = self.sought(concept);
        for (segment, scores) in self.segments().zip(scores) {
            if !filter.admits_server(segment.server()) {
                continue;
            }
            best.clear();
            for (stem, worth) in &sought {
                for run in segment
                    .postings(stem)
                    .chunk_by(|one, other| one.tool == other.tool)
                {
                    best.push((run[0].tool, worth * self.share(segment, run)));
                }
            }
            if sought.len() > 1 {
                // Of several words for one thing the best counts, and no two of them.
                best.sort_by(|one, other| one.0.cmp(&other.0).then(other.1.total_cmp(&one.1)));
                best.dedup_by_key(|(tool, _)| *tool);
            }
            for (tool, score) in &best {
                scores[*tool as usize] += score;
            }
        }
    }

    /// The stems that stand for a word of the query and are there, and what each is worth.
    fn sought<'c>(&self, concept: &'c Concept) -> Vec<(&'c str, f32)> {
        let worth = |(stem, standing): &'c (String, f32)| {
            let tools: usize = self
                .segments()
                .map(|segment| segment.tools_with(stem))
                .sum();
            (tools > 0).then(|| {
                let rarity = rarity(tools, self.tools);
                (stem.as_str(), standing * concept.weight * rarity)
            })
        };
        concept.stems.iter().filter_map(worth).collect()
    }

    /// How much of a word's worth a tool gets for having it in these places.
    fn share(&self, segment: &Segment, places: &[Posting]) -> f32 {
        let entry = &segment.tools()[places[0].tool as usize];
        let often: f32 = places.iter().map(|place| self.often(*place, entry)).sum();
        often / (SATURATION + often)
    }

    fn often(&self, place: Posting, entry: &Entry) -> f32 {
        let field = usize::from(place.field);
        let share = LENGTH_SHARES[field];
        let length = f32::from(entry.lengths[field]) / self.averages[field];
        FIELD_WEIGHTS[field] * f32::from(place.count) / (1.0 - share + share * length)
    }

    /// Which words of a query speak for one tool.
    pub(crate) fn matches(&self, query: &[Concept], segment: &Segment, tool: u32) -> Vec<Match> {
        let mut matches: Vec<Match> = query
            .iter()
            .filter_map(|concept| {
                let found = self
                    .sought(concept)
                    .into_iter()
                    .filter_map(|(stem, worth)| {
                        let places = segment.places(stem, tool);
                        (!places.is_empty()).then(|| Match {
                            word: concept.word.clone(),
                            stem: stem.to_owned(),
                            fields: places
                                .iter()
                                .map(|place| Field::ALL[usize::from(place.field)])
                                .collect(),
                            score: worth * self.share(segment, places),
                        })
                    });
                found.max_by(|one, other| one.score.total_cmp(&other.score))
            })
            .collect();
        matches.sort_by(|one, other| other.score.total_cmp(&one.score));
        matches
    }
}

/// What a word is worth that so many tools have.
fn rarity(tools: usize, of: usize) -> f32 {
    let (tools, of) = (tools as f32, of as f32);
    ((of - tools + 0.5) / (tools + 0.5) + 1.0).ln()
}
