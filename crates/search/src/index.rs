//! [`Index`]: the tools of all servers, searchable by words.

use std::{collections::HashMap, sync::Arc};

use crate::{
    document::Field,
    language::Concept,
    query::{Filter, Match},
    segment::{Entry, FIELDS, Posting, Segment, index_of},
    vectors::Vectors,
};

/// The searchable tools of all servers. Immutable: [`with`](Self::with) makes a new index, which
/// shares every other server's segment.
#[derive(Debug, Default, Clone)]
pub struct Index {
    /// Sorted by server name.
    parts: Vec<Part>,
    directory: Arc<Directory>,
    tools: usize,
    /// The average number of words of each field per tool.
    averages: [f32; FIELDS],
}

/// The part of one server. Tools are numbered across all parts.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    pub(crate) segment: Arc<Segment>,
    /// The vectors of its tools, once they are computed.
    pub(crate) vectors: Option<Arc<Vectors>>,
    /// The number of its first tool.
    pub(crate) start: usize,
}

/// The parts that contain each word, so that a query need not visit all of them.
#[derive(Debug, Default)]
struct Directory(HashMap<Box<str>, Entries>);

#[derive(Debug, Default)]
struct Entries {
    /// The number of tools with the word.
    tools: usize,
    parts: Vec<u32>,
}

/// The weight of a word in each field.
const FIELD_WEIGHTS: [f32; FIELDS] = [2.5, 1.0, 2.0, 1.0, 0.6, 0.3];
/// The strength of the length normalization of each field.
const LENGTH_SHARES: [f32; FIELDS] = [0.3, 0.3, 0.5, 0.4, 0.5, 0.6];
/// The saturation of repeated words: the higher, the longer repetitions count.
const SATURATION: f32 = 1.5;

impl Index {
    /// An index of these segments, one per server.
    pub fn from_segments(segments: impl IntoIterator<Item = Arc<Segment>>) -> Self {
        let part = |segment| (segment, None);
        Self::from_parts(segments.into_iter().map(part).collect())
    }

    /// This index with the segment of one server replaced, added, or (with `None`) removed.
    #[must_use]
    pub fn with(&self, server: &str, segment: Option<Arc<Segment>>) -> Self {
        let change = |name: &str| name == server;
        self.with_all(change, segment.map(|segment| (segment, None)))
    }

    /// This index with the segments of changed servers replaced by these.
    #[must_use]
    pub fn with_all(
        &self,
        has_changed: impl Fn(&str) -> bool,
        fresh: impl IntoIterator<Item = (Arc<Segment>, Option<Arc<Vectors>>)>,
    ) -> Self {
        let others = self.parts.iter();
        let others = others.filter(|other| !has_changed(other.segment.server()));
        let others = others.map(|other| (Arc::clone(&other.segment), other.vectors.clone()));
        Self::from_parts(others.chain(fresh).collect())
    }

    /// This index with vectors for the tools of this very segment. If the segment has been replaced
    /// in the meantime, the vectors are dropped.
    #[must_use]
    pub fn with_vectors(&self, segment: &Arc<Segment>, vectors: Vectors) -> Self {
        let mut index = self.clone();
        let mut parts = index.parts.iter_mut();
        if let Some(part) = parts.find(|part| Arc::ptr_eq(&part.segment, segment)) {
            part.vectors = Some(Arc::new(vectors));
        }
        index
    }

    /// This index with this very segment replaced by another one of the same tools. Vectors stay.
    #[must_use]
    pub fn replaced(&self, old: &Arc<Segment>, new: &Arc<Segment>) -> Self {
        let mut index = self.clone();
        let mut parts = index.parts.iter_mut();
        if let Some(part) = parts.find(|part| Arc::ptr_eq(&part.segment, old)) {
            part.segment = Arc::clone(new);
        }
        index
    }

    fn from_parts(mut parts: Vec<(Arc<Segment>, Option<Arc<Vectors>>)>) -> Self {
        parts.sort_by(|(one, _), (other, _)| one.server().cmp(other.server()));
        let mut directory = Directory::default();
        let mut start = 0;
        let mut totals = [0_u64; FIELDS];
        let part = |(at, (segment, vectors)): (u32, (Arc<Segment>, Option<Arc<Vectors>>))| {
            for (stem, tools) in segment.terms() {
                directory.enter(stem, at, tools);
            }
            for (total, more) in totals.iter_mut().zip(segment.totals()) {
                *total += more;
            }
            let part = Part {
                segment,
                vectors,
                start,
            };
            start += part.segment.tools().len();
            part
        };
        let parts: Vec<Part> = (0..).zip(parts).map(part).collect();
        let averages = totals.map(|total| (total as f32 / start.max(1) as f32).max(1.0));
        Self {
            parts,
            directory: Arc::new(directory),
            tools: start,
            averages,
        }
    }

    /// The segments, sorted by server name.
    pub fn segments(&self) -> impl ExactSizeIterator<Item = &Arc<Segment>> {
        self.parts.iter().map(|part| &part.segment)
    }

    /// The segment of a server, and the vectors of its tools once they are computed.
    pub fn server(&self, name: &str) -> Option<(&Arc<Segment>, Option<&Arc<Vectors>>)> {
        let parts = &self.parts;
        let at = parts.binary_search_by(|part| (**part.segment.server()).cmp(name));
        let part = parts.get(at.ok()?)?;
        Some((&part.segment, part.vectors.as_ref()))
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

    /// The part that contains the tool with this number.
    pub(crate) fn part_of(&self, tool: usize) -> Option<&Part> {
        let after = self.parts.partition_point(|part| part.start <= tool);
        self.parts.get(after.checked_sub(1)?)
    }

    /// The number of tools.
    pub fn len(&self) -> usize {
        self.tools
    }

    /// Returns `true` if there are no tools.
    pub fn is_empty(&self) -> bool {
        self.tools == 0
    }

    /// The score of each tool by the words of a query.
    pub(crate) fn by_words(&self, query: &[Concept], filter: &Filter<'_>) -> Vec<f32> {
        let mut scores = vec![0.0; self.tools];
        // Of several synonyms, only the best counts.
        let mut best = vec![0.0_f32; self.tools];
        let mut touched = Vec::new();
        for concept in query {
            for (stem, worth, parts) in self.sought(concept) {
                let parts = parts.iter().filter_map(|at| self.parts.get(*at as usize));
                for part in parts.filter(|part| filter.admits_server(part.segment.server())) {
                    let places = part.segment.postings(stem);
                    for run in places.chunk_by(|one, other| one.tool == other.tool) {
                        let tool = part.start + run[0].tool as usize;
                        let score = worth * self.share(&part.segment, run);
                        if best[tool] == 0.0 {
                            touched.push(tool);
                        }
                        best[tool] = best[tool].max(score);
                    }
                }
            }
            for tool in touched.drain(..) {
                scores[tool] += std::mem::take(&mut best[tool]);
            }
        }
        scores
    }

    /// The highest possible score of a query's words: one tool has all of them and no other has
    /// any.
    pub(crate) fn worth(&self, query: &[Concept]) -> f32 {
        let rarest = rarity(1, self.tools.max(1));
        query.iter().map(|concept| concept.weight * rarest).sum()
    }

    /// The stems for a word of the query that are in the index, with their values and parts.
    fn sought<'c>(
        &'c self,
        concept: &'c Concept,
    ) -> impl Iterator<Item = (&'c str, f32, &'c [u32])> {
        concept.stems.iter().filter_map(|(stem, standing)| {
            let entries = self.directory.0.get(stem.as_str())?;
            let worth = standing * concept.weight * rarity(entries.tools, self.tools);
            Some((stem.as_str(), worth, &*entries.parts))
        })
    }

    /// The share of a word's value that a tool gets for these occurrences.
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

    /// The words of a query that one tool matches.
    pub(crate) fn matches(&self, query: &[Concept], segment: &Segment, tool: usize) -> Vec<Match> {
        let mut matches: Vec<Match> = query
            .iter()
            .filter_map(|concept| {
                let found = self.sought(concept).filter_map(|(stem, worth, _)| {
                    let places = segment.places(stem, index_of(tool));
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

impl Directory {
    fn enter(&mut self, stem: &str, part: u32, tools: usize) {
        // Most words are known already, and need no copy.
        if !self.0.contains_key(stem) {
            self.0.insert(stem.into(), Entries::default());
        }
        if let Some(entries) = self.0.get_mut(stem) {
            entries.tools += tools;
            entries.parts.push(part);
        }
    }
}

/// The value of a word by the number of tools that have it (inverse document frequency).
fn rarity(tools: usize, of: usize) -> f32 {
    let (tools, of) = (tools as f32, of as f32);
    ((of - tools + 0.5) / (tools + 0.5) + 1.0).ln()
}
