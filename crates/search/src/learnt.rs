//! [`Learnt`]: the tools that were called after each query.
//!
//! A lesson is a query, as its words, and the tool that was called successfully after it was among
//! the results. A query that shares words with earlier ones raises the tools that were called then.
//! The number of lessons is limited; the least recently used are dropped first.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};

use crate::language::{Concept, Language};

/// The most lessons.
const LESSONS: usize = 4_096;
/// The most words of a query.
const WORDS: usize = 16;
/// The least similarity of two queries that count as alike.
const ALIKE: f32 = 0.25;
/// The number of repetitions after which a lesson has its full weight.
const SURE: f32 = 3.0;

/// The tools that were called after each query.
#[derive(Debug, Clone, Default)]
pub struct Learnt {
    lessons: BTreeMap<Lesson, Practice>,
    /// The lessons that contain each word, as indices into `by_place`.
    by_word: HashMap<String, Vec<u32>>,
    by_place: Vec<Lesson>,
    turn: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Lesson {
    server: String,
    tool: String,
    /// Stems, sorted.
    words: Vec<String>,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Practice {
    times: u32,
    /// Time of the last use, counted in lessons.
    turn: u64,
}

/// The error of a file that cannot be decoded.
#[derive(Debug, thiserror::Error)]
#[error("the feedback from earlier searches cannot be read, so it starts empty")]
pub struct BadLessons(#[from] serde_json::Error);

/// The content of the file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    version: u32,
    lessons: Vec<(Lesson, Practice)>,
}

const VERSION: u32 = 1;

impl Learnt {
    /// Records that a tool was called successfully after this query had found it.
    pub fn learn(&mut self, language: &Language, question: &str, server: &str, tool: &str) {
        let mut words: Vec<String> = language
            .concepts(question)
            .into_iter()
            .take(WORDS)
            .filter_map(|concept| concept.stems.into_iter().next())
            .map(|(stem, _)| stem)
            .collect();
        if words.is_empty() {
            return;
        }
        words.sort_unstable();
        let lesson = Lesson {
            server: server.to_owned(),
            tool: tool.to_owned(),
            words,
        };
        self.turn += 1;
        let turn = self.turn;
        if let Some(practice) = self.lessons.get_mut(&lesson) {
            practice.times = practice.times.saturating_add(1);
            practice.turn = turn;
            return;
        }
        self.file(lesson.clone());
        self.lessons.insert(lesson, Practice { times: 1, turn });
        self.forget_beyond(LESSONS);
    }

    /// The tools that were called after similar queries, with their weights from 0 to 1.
    pub(crate) fn recall(&self, question: &[Concept]) -> HashMap<(&str, &str), f32> {
        let mut shared: HashMap<u32, f32> = HashMap::new();
        let mut all = 0.0;
        for concept in question {
            let stem = &concept.stems[0].0;
            let places = self.by_word.get(stem).map_or(&[][..], Vec::as_slice);
            // A word of many lessons is not significant.
            let weight = concept.weight / (1.0 + places.len() as f32).ln().max(1.0);
            all += weight * weight;
            for place in places {
                *shared.entry(*place).or_default() += weight * weight;
            }
        }
        let mut recalled: HashMap<(&str, &str), f32> = HashMap::new();
        for (place, shared) in shared {
            let lesson = &self.by_place[place as usize];
            let words = lesson.words.len() as f32;
            let known = question.len() as f32;
            // Two long queries that share only one word are not alike.
            let alike = (shared / all.max(f32::EPSILON)) * (known.min(words) / known.max(words));
            if alike < ALIKE {
                continue;
            }
            let times = self
                .lessons
                .get(lesson)
                .map_or(0, |practice| practice.times);
            let sure = (times as f32 / SURE).min(1.0);
            let of_tool = recalled.entry((&lesson.server, &lesson.tool)).or_default();
            *of_tool = (*of_tool + alike * (0.5 + 0.5 * sure)).min(1.0);
        }
        recalled
    }

    /// The number of lessons.
    pub fn len(&self) -> usize {
        self.lessons.len()
    }

    /// Returns `true` if there are no lessons.
    pub fn is_empty(&self) -> bool {
        self.lessons.is_empty()
    }

    /// Encodes the lessons as a file.
    pub fn encode(&self) -> Vec<u8> {
        let lessons = self.lessons.iter();
        let written = Written {
            version: VERSION,
            lessons: lessons
                .map(|(one, practice)| (one.clone(), *practice))
                .collect(),
        };
        // Strings and numbers always serialize to a vector.
        serde_json::to_vec(&written).unwrap_or_default()
    }

    /// Decodes a file.
    pub fn decode(file: &[u8]) -> Result<Self, BadLessons> {
        let written: Written = serde_json::from_slice(file)?;
        let mut learnt = Self {
            turn: written
                .lessons
                .iter()
                .map(|(_, practice)| practice.turn)
                .max()
                .unwrap_or(0),
            lessons: written.lessons.into_iter().collect(),
            ..Self::default()
        };
        learnt.forget_beyond(LESSONS);
        learnt.file_all();
        Ok(learnt)
    }

    /// Drops the least recently used lessons, an eighth at a time, so that this is rare.
    fn forget_beyond(&mut self, most: usize) {
        if self.lessons.len() <= most {
            return;
        }
        let mut turns: Vec<u64> = self.lessons.values().map(|one| one.turn).collect();
        let oldest = turns.len() - most + most / 8;
        let (_, last, _) = turns.select_nth_unstable(oldest);
        let last = *last;
        self.lessons.retain(|_, practice| practice.turn > last);
        self.file_all();
    }

    fn file_all(&mut self) {
        self.by_word.clear();
        self.by_place.clear();
        let lessons: Vec<Lesson> = self.lessons.keys().cloned().collect();
        for lesson in lessons {
            self.file(lesson);
        }
    }

    fn file(&mut self, lesson: Lesson) {
        let place = u32::try_from(self.by_place.len()).unwrap_or(u32::MAX);
        for word in &lesson.words {
            self.by_word.entry(word.clone()).or_default().push(place);
        }
        self.by_place.push(lesson);
    }
}
