//! A naive model of a library's contents, and libraries built from it.

use std::collections::BTreeMap;

use proptest::prelude::*;
use switchboard_embed::Quantised;
use switchboard_recall::{Channels, Document, Filter, Hit, Library, Query, Scope};

pub(crate) const MODEL: &str = "model";
pub(crate) const DIMENSIONS: usize = 4;

/// A version of a memory.
#[derive(Debug, Clone)]
pub(crate) struct Memory {
    pub(crate) scope: [Option<&'static str>; 4],
    pub(crate) kind: &'static str,
    pub(crate) content: String,
    pub(crate) valid: (Option<i64>, Option<i64>),
    pub(crate) learned_at: i64,
    pub(crate) learned_until: Option<i64>,
    pub(crate) mentions: Vec<u64>,
    pub(crate) vector: Option<Vec<f32>>,
}

/// All objects, by row.
#[derive(Debug, Clone, Default)]
pub(crate) struct World {
    pub(crate) memories: BTreeMap<u64, Memory>,
    pub(crate) entities: BTreeMap<u64, ([Option<&'static str>; 4], &'static str)>,
    pub(crate) relations: BTreeMap<u64, (u64, u64, f32)>,
}

/// A change of the world.
#[derive(Debug, Clone)]
pub(crate) enum Change {
    Add(u64, Memory),
    Close(u64, i64),
    Remove(u64),
    Vector(u64, Vec<f32>),
    PutEntity(u64, [Option<&'static str>; 4], &'static str),
    RemoveEntity(u64),
    PutRelation(u64, u64, u64, f32),
    RemoveRelation(u64),
}

impl World {
    pub(crate) fn apply(&mut self, change: &Change) {
        match change.clone() {
            Change::Add(row, memory) => {
                self.memories.insert(row, memory);
            }
            Change::Close(row, until) => {
                if let Some(memory) = self.memories.get_mut(&row) {
                    memory.learned_until = Some(until);
                }
            }
            Change::Remove(row) => {
                self.memories.remove(&row);
            }
            Change::Vector(row, vector) => {
                if let Some(memory) = self.memories.get_mut(&row) {
                    memory.vector = Some(vector);
                }
            }
            Change::PutEntity(row, scope, name) => {
                self.entities.insert(row, (scope, name));
            }
            Change::RemoveEntity(row) => {
                self.entities.remove(&row);
            }
            Change::PutRelation(row, from, to, weight) => {
                self.relations.insert(row, (from, to, weight));
            }
            Change::RemoveRelation(row) => {
                self.relations.remove(&row);
            }
        }
    }

    /// Builds a library from the world, in row order.
    pub(crate) fn library(&self) -> Library {
        let mut library = Library::default();
        library.add_model(MODEL, DIMENSIONS);
        for (row, memory) in &self.memories {
            add(&mut library, *row, memory);
        }
        for (row, (scope, name)) in &self.entities {
            library.put_entity(*row, *scope, name);
        }
        for (row, (from, to, weight)) in &self.relations {
            library.put_relation(*row, *from, *to, *weight);
        }
        library
    }

    /// Returns the rows that pass a filter, in ascending order.
    pub(crate) fn admitted(&self, filter: &Filter<'_>) -> Vec<u64> {
        let passes = |memory: &Memory| {
            let known = match filter.known_at {
                None => memory.learned_until.is_none(),
                Some(then) => {
                    memory.learned_at <= then
                        && memory.learned_until.is_none_or(|until| then < until)
                }
            };
            let (from, until) = memory.valid;
            let valid = match filter.as_of {
                None => filter.ended || until.is_none_or(|until| filter.now < until),
                Some(then) => {
                    from.is_none_or(|from| from <= then) && until.is_none_or(|until| then < until)
                }
            };
            is_inside(&memory.scope, &filter.scope)
                && filter.kind.is_none_or(|kind| kind == memory.kind)
                && known
                && valid
        };
        let memories = self.memories.iter();
        memories
            .filter(|(_, memory)| passes(memory))
            .map(|(row, _)| *row)
            .collect()
    }

    /// Returns only the objects in scopes that a filter admits.
    pub(crate) fn within(&self, scope: &Scope<'_>) -> Self {
        let mut world = self.clone();
        world
            .memories
            .retain(|_, memory| is_inside(&memory.scope, scope));
        world.entities.retain(|_, (own, _)| is_inside(own, scope));
        world
    }
}

pub(crate) fn change(library: &mut Library, change: &Change) {
    match change {
        Change::Add(row, memory) => add(library, *row, memory),
        Change::Close(row, until) => library.close(*row, *until),
        Change::Remove(row) => library.remove(*row),
        Change::Vector(row, vector) => {
            library.set_vector(MODEL, *row, &Quantised::from_vector(vector));
        }
        Change::PutEntity(row, scope, name) => library.put_entity(*row, *scope, name),
        Change::RemoveEntity(row) => library.remove_entity(*row),
        Change::PutRelation(row, from, to, weight) => {
            library.put_relation(*row, *from, *to, *weight);
        }
        Change::RemoveRelation(row) => library.remove_relation(*row),
    }
}

pub(crate) fn add(library: &mut Library, row: u64, memory: &Memory) {
    library.add(&Document {
        row,
        scope: memory.scope,
        kind: memory.kind,
        content: &memory.content,
        importance: 0.5,
        valid_from: memory.valid.0,
        valid_until: memory.valid.1,
        learned_at: memory.learned_at,
        learned_until: memory.learned_until,
        mentions: &memory.mentions,
    });
    if let Some(vector) = &memory.vector {
        library.set_vector(MODEL, row, &Quantised::from_vector(vector));
    }
}

fn is_inside(scope: &[Option<&str>; 4], wanted: &Scope<'_>) -> bool {
    let mut pairs = scope.iter().zip(wanted);
    pairs.all(|(has, wanted)| wanted.is_none() || has == wanted)
}

/// A memory with this content and otherwise default values.
pub(crate) fn memory(content: &str) -> Memory {
    Memory {
        scope: [None; 4],
        kind: "semantic",
        content: content.to_owned(),
        valid: (None, None),
        learned_at: 0,
        learned_until: None,
        mentions: Vec::new(),
        vector: None,
    }
}

/// A query by text alone, over all channels and with a high limit.
pub(crate) fn ask<'a>(text: &'a str, filter: Filter<'a>) -> Query<'a> {
    Query {
        text,
        meaning: None,
        filter,
        limit: 1000,
        channels: Channels::default(),
    }
}

pub(crate) fn rows(hits: &[Hit]) -> Vec<u64> {
    hits.iter().map(|hit| hit.row).collect()
}

const WORDS: [&str; 12] = [
    "river",
    "Anna",
    "lamp",
    "Bob",
    "the",
    "stone",
    "Carl",
    "2023-05-08",
    "music",
    "green",
    "walks",
    "天气预报",
];
pub(crate) const NAMES: [&str; 5] = ["Anna", "Bob", "Carl", "Anna Stone", "天气"];
const HOUR: i64 = 3_600_000_000;

fn scope() -> impl Strategy<Value = [Option<&'static str>; 4]> {
    let part = || prop_oneof![Just(None), Just(Some("a")), Just(Some("b"))];
    (part(), part()).prop_map(|(namespace, user)| [namespace, user, None, user])
}

fn time() -> impl Strategy<Value = i64> {
    (-4_i64..8).prop_map(|halves| halves * HOUR / 2)
}

fn text() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(&WORDS[..]), 0..6).prop_map(|words| words.join(" "))
}

fn vector() -> impl Strategy<Value = Vec<f32>> {
    prop::collection::vec(-10_i8..=10, DIMENSIONS).prop_map(|numbers| {
        let length = numbers
            .iter()
            .map(|n| f32::from(*n).powi(2))
            .sum::<f32>()
            .sqrt();
        numbers
            .iter()
            .map(|n| f32::from(*n) / length.max(1.0))
            .collect()
    })
}

fn any_memory() -> impl Strategy<Value = Memory> {
    let kind = prop_oneof![Just("semantic"), Just("episodic")];
    let times = (prop::option::of(time()), prop::option::of(time()), time());
    let mentions = prop::collection::vec(1_u64..8, 0..3);
    (
        scope(),
        kind,
        text(),
        times,
        mentions,
        prop::option::of(vector()),
    )
        .prop_map(
            |(scope, kind, content, (from, until, learned_at), mentions, vector)| Memory {
                scope,
                kind,
                content,
                valid: (from, until),
                learned_at,
                learned_until: None,
                mentions,
                vector,
            },
        )
}

pub(crate) fn any_change() -> impl Strategy<Value = Change> {
    let row = 1_u64..30;
    prop_oneof![
        8 => (row.clone(), any_memory()).prop_map(|(row, memory)| Change::Add(row, memory)),
        2 => (row.clone(), time()).prop_map(|(row, until)| Change::Close(row, until)),
        2 => row.clone().prop_map(Change::Remove),
        2 => (row, vector()).prop_map(|(row, vector)| Change::Vector(row, vector)),
        3 => (1_u64..8, scope(), prop::sample::select(&NAMES[..]))
            .prop_map(|(row, scope, name)| Change::PutEntity(row, scope, name)),
        1 => (1_u64..8).prop_map(Change::RemoveEntity),
        3 => (1_u64..8, 1_u64..8, 1_u64..8, 0_u8..=10)
            .prop_map(|(row, from, to, tenths)| Change::PutRelation(row, from, to, f32::from(tenths) / 10.0)),
        1 => (1_u64..8).prop_map(Change::RemoveRelation),
    ]
}

/// A query, with owned parts.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) text: String,
    pub(crate) vector: Vec<f32>,
    pub(crate) filter: Filter<'static>,
    pub(crate) channels: Channels,
}

impl Asked {
    pub(crate) fn query(&self) -> Query<'_> {
        Query {
            text: &self.text,
            meaning: Some((MODEL, &self.vector)),
            filter: self.filter,
            limit: 1000,
            channels: self.channels,
        }
    }
}

pub(crate) fn any_question() -> impl Strategy<Value = Asked> {
    let kind = prop_oneof![3 => Just(None), 1 => Just(Some("semantic"))];
    let maybe = || prop_oneof![2 => Just(None), 1 => time().prop_map(Some)];
    let filter = (scope(), kind, maybe(), maybe(), time(), any::<bool>());
    (text(), vector(), filter, any::<[bool; 3]>()).prop_map(
        |(text, vector, (scope, kind, as_of, known_at, now, ended), [lexical, vectors, graph])| {
            Asked {
                text,
                vector,
                filter: Filter {
                    scope,
                    kind,
                    as_of,
                    known_at,
                    now,
                    ended,
                },
                channels: Channels {
                    lexical,
                    vector: vectors,
                    graph,
                },
            }
        },
    )
}
