//! Entities, how they are related, and which memories mention them.
//!
//! The nodes are keys: the same name in several scopes is one node. Every step is checked: an entity and a
//! relation by their scopes, a memory by whether it passes the filter.

use std::collections::HashMap;

use rustc_hash::FxHashMap;

use crate::{
    columns::Admitted,
    extract,
    lexical::rarity,
    limits,
    room::{Room, Sums},
    scopes::{NONE, Renumbered},
};

/// All entities, relations and mentions.
#[derive(Debug, Default)]
pub(crate) struct Graph {
    entities: FxHashMap<u64, Entity>,
    /// The rows of the entities that have a key, in their order.
    by_key: HashMap<Box<str>, Vec<u64>>,
    relations: FxHashMap<u64, Relation>,
    /// By the row of an entity, whether that is known yet or not: what hangs on to it.
    ends: FxHashMap<u64, End>,
}

/// An entity of one scope.
#[derive(Debug)]
struct Entity {
    key: Box<str>,
    name: Box<str>,
    scope: u32,
}

#[derive(Debug, Clone, Copy)]
struct Relation {
    from: u64,
    to: u64,
    weight: f32,
}

#[derive(Debug, Default)]
struct End {
    /// The rows of its relations, in their order.
    relations: Vec<u64>,
    /// The places of memories that mention it.
    mentions: Vec<u32>,
}

/// Where the names of a query lead.
#[derive(Debug, Default)]
pub(crate) struct ByGraph<'a> {
    /// By seat.
    pub(crate) scores: Sums,
    /// For each name in the query the keys that it leads to, itself first.
    paths: Vec<Vec<&'a str>>,
}

/// A relation leads on with so much of what led to it.
const STEP: f32 = 0.7;
/// And so far.
const STEPS: usize = 2;

impl Graph {
    pub(crate) fn put_entity(&mut self, row: u64, scope: u32, name: &str) {
        self.remove_entity(row);
        let key: Box<str> = extract::key(name).into();
        let rows = self.by_key.entry(key.clone()).or_default();
        insert(rows, row);
        let name = name.into();
        self.entities.insert(row, Entity { key, name, scope });
    }

    pub(crate) fn remove_entity(&mut self, row: u64) {
        let Some(entity) = self.entities.remove(&row) else {
            return;
        };
        if let Some(rows) = self.by_key.get_mut(&entity.key) {
            rows.retain(|other| *other != row);
            if rows.is_empty() {
                self.by_key.remove(&entity.key);
            }
        }
    }

    pub(crate) fn put_relation(&mut self, row: u64, from: u64, to: u64, weight: f32) {
        self.remove_relation(row);
        // What is no number says nothing.
        let weight = if weight.is_finite() {
            weight.clamp(0.0, 1.0)
        } else {
            0.0
        };
        self.relations.insert(row, Relation { from, to, weight });
        for end in [from, to] {
            insert(&mut self.ends.entry(end).or_default().relations, row);
        }
    }

    pub(crate) fn remove_relation(&mut self, row: u64) {
        let Some(relation) = self.relations.remove(&row) else {
            return;
        };
        for row_of_end in [relation.from, relation.to] {
            if let Some(end) = self.ends.get_mut(&row_of_end) {
                end.relations.retain(|other| *other != row);
                if end.relations.is_empty() && end.mentions.is_empty() {
                    self.ends.remove(&row_of_end);
                }
            }
        }
    }

    /// The memory in the next place mentions these entities.
    pub(crate) fn mention(&mut self, at: u32, entities: &[u64]) {
        for entity in entities {
            let mentions = &mut self.ends.entry(*entity).or_default().mentions;
            if mentions.last() != Some(&at) {
                mentions.push(at);
            }
        }
    }

    /// Keeps only the mentions by these places, which are numbered anew, and numbers scopes anew.
    pub(crate) fn keep(&mut self, places: &[u32], len: usize, renumbered: &Renumbered) {
        let mut moved = vec![NONE; len];
        for (new, old) in (0..).zip(places) {
            moved[*old as usize] = new;
        }
        self.ends.retain(|_, end| {
            end.mentions.retain_mut(|at| {
                *at = moved[*at as usize];
                *at != NONE
            });
            end.mentions.sort_unstable();
            !end.mentions.is_empty() || !end.relations.is_empty()
        });
        for entity in self.entities.values_mut() {
            entity.scope = renumbered.scopes[entity.scope as usize];
        }
    }

    /// Marks the scopes of all entities.
    pub(crate) fn mark_scopes(&self, used: &mut [bool]) {
        for entity in self.entities.values() {
            used[entity.scope as usize] = true;
        }
    }

    /// The memories to which the names in a text lead.
    pub(crate) fn search(&self, text: &str, admitted: &Admitted) -> ByGraph<'_> {
        let mut found = ByGraph::default();
        let all = admitted.len();
        let seeds = self.names_in(text, admitted);
        if seeds.is_empty() {
            return found;
        }
        found.scores = Sums::new(all);
        let mut room = Room::new(all);
        for seed in seeds {
            let reached = self.reached(seed, admitted);
            for (key, reach) in &reached {
                let mentions = self.mentions(key, admitted).flatten();
                let mut seats: Vec<usize> = mentions.filter_map(|at| admitted.seat(*at)).collect();
                seats.sort_unstable();
                seats.dedup();
                // A name that half of all memories have says next to nothing.
                let score = reach * rarity(seats.len() as f32, all) / rarity(0.0, all);
                // What is reached over relations that weigh nothing is not reached.
                for seat in seats.into_iter().filter(|_| score > 0.0) {
                    room.put(seat, score);
                }
            }
            // Several names are better than one, and all together no better than certain.
            room.collect(|seat, score| {
                let more = |sum: f32| sum + (1.0 - sum) * score;
                found.scores.change(seat, more);
            });
            let path = reached.into_iter().map(|(key, _)| key);
            found.paths.push(path.collect());
        }
        found
    }

    /// The names through which a memory was found: those of the query, and those to which they led.
    pub(crate) fn names(&self, found: &ByGraph<'_>, at: u32, admitted: &Admitted) -> Vec<String> {
        let mut names: Vec<&str> = Vec::new();
        for path in &found.paths {
            let mentioned = path.iter().find(|key| {
                let mut mentions = self.mentions(key, admitted);
                mentions.any(|places| places.binary_search(&at).is_ok())
            });
            for key in mentioned.iter().flat_map(|key| [path[0], *key]) {
                let name = self.name(key, admitted);
                if !names.contains(&name) {
                    names.push(name);
                }
            }
        }
        names.into_iter().map(str::to_owned).collect()
    }

    /// The places that mention the entities of a key that pass, each entity's in order.
    fn mentions<'a>(
        &'a self,
        key: &'a str,
        admitted: &'a Admitted,
    ) -> impl Iterator<Item = &'a Vec<u32>> {
        let rows = self.rows(key);
        rows.filter(|(_, entity)| admitted.scopes[entity.scope as usize])
            .filter_map(|(row, _)| self.ends.get(&row))
            .map(|end| &end.mentions)
    }

    /// The keys of known entities that stand in a text; where one is part of another, the longer.
    fn names_in(&self, text: &str, admitted: &Admitted) -> Vec<&str> {
        let text = extract::key(&text[..text.floor_char_boundary(limits::QUERY_BYTES)]);
        let mut names: Vec<&str> = Vec::new();
        // Where each word begins and ends; a script without spaces is looked at by character.
        let mut starts: Vec<usize> = Vec::new();
        let mut ends: Vec<usize> = Vec::new();
        let mut before = ' ';
        for (at, c) in text.char_indices() {
            if is_start(before, c) {
                starts.push(at);
            }
            if is_end(before, c) {
                ends.push(at);
            }
            before = c;
        }
        ends.push(text.len());
        let mut from = 0;
        for start in starts.into_iter().take(limits::QUERY_STARTS) {
            if start < from {
                continue;
            }
            let first = ends.partition_point(|end| *end <= start);
            let ends = &ends[first..];
            let ends = &ends[..ends.len().min(limits::NAME_WORDS)];
            let longest = ends.iter().rev().find_map(|end| {
                let (key, _) = self.by_key.get_key_value(&text[start..*end])?;
                self.is_known(key, admitted).then_some((&**key, *end))
            });
            if let Some((key, end)) = longest {
                from = end;
                if !names.contains(&key) {
                    names.push(key);
                }
            }
        }
        names
    }

    /// The keys that relations lead to, and how well each is reached; first the one to start from.
    fn reached<'a>(&'a self, seed: &'a str, admitted: &Admitted) -> Vec<(&'a str, f32)> {
        let mut reached: Vec<(&str, f32)> = vec![(seed, 1.0)];
        let mut done = 0;
        for _ in 0..STEPS {
            let last = reached.len();
            for at in done..last {
                let (key, reach) = reached[at];
                let next = self.related(key, admitted);
                // Who knows everybody leads to nobody in particular.
                let share = STEP / (next.len().max(1) as f32).sqrt();
                for (other, weight) in next {
                    let reach = reach * share * weight;
                    let known = reached.iter_mut().find(|(known, _)| *known == other);
                    if let Some((_, known)) = known {
                        *known = known.max(reach);
                    } else if reached.len() < limits::REACHED {
                        reached.push((other, reach));
                    }
                }
            }
            done = last;
        }
        reached
    }

    /// The keys that are related to one, each once.
    fn related(&self, key: &str, admitted: &Admitted) -> Vec<(&str, f32)> {
        let mut related: Vec<(&str, f32)> = Vec::new();
        let relations = self
            .rows(key)
            .filter(|(_, entity)| admitted.scopes[entity.scope as usize])
            .filter_map(|(row, _)| Some((row, self.ends.get(&row)?)))
            .flat_map(|(row, end)| end.relations.iter().map(move |relation| (row, relation)));
        for (row, relation) in relations.take(limits::RELATIONS) {
            let Some(relation) = self.relations.get(relation) else {
                continue;
            };
            let ends = (
                self.entities.get(&relation.from),
                self.entities.get(&relation.to),
            );
            let (Some(from), Some(to)) = ends else {
                continue;
            };
            if !admitted.scopes[from.scope as usize] || !admitted.scopes[to.scope as usize] {
                continue;
            }
            let other = if relation.from == row { to } else { from };
            match related.iter_mut().find(|(known, _)| *known == &*other.key) {
                Some((_, weight)) => *weight = weight.max(relation.weight),
                None => related.push((&other.key, relation.weight)),
            }
        }
        related
    }

    /// The entities that most memories that pass mention, the most mentioned first; those that nobody
    /// mentions come last.
    pub(crate) fn most_mentioned(&self, admitted: &Admitted, limit: usize) -> Vec<u64> {
        let passing = self.entities.iter();
        let passing = passing.filter(|(_, entity)| admitted.scopes[entity.scope as usize]);
        let mut counted: Vec<(usize, u64)> = passing
            .map(|(row, _)| {
                let mentions = self.ends.get(row).map_or(&[][..], |end| &end.mentions);
                let open = mentions.iter().filter(|at| admitted.seat(**at).is_some());
                (open.count(), *row)
            })
            .collect();
        let order = |one: &(usize, u64), other: &(usize, u64)| {
            other.0.cmp(&one.0).then(one.1.cmp(&other.1))
        };
        if counted.len() > limit {
            counted.select_nth_unstable_by(limit, order);
            counted.truncate(limit);
        }
        counted.sort_unstable_by(order);
        counted.into_iter().map(|(_, row)| row).collect()
    }

    fn rows(&self, key: &str) -> impl Iterator<Item = (u64, &Entity)> {
        let rows = self.by_key.get(key).into_iter().flatten();
        rows.filter_map(|row| Some((*row, self.entities.get(row)?)))
    }

    fn is_known(&self, key: &str, admitted: &Admitted) -> bool {
        let mut rows = self.rows(key);
        rows.any(|(_, entity)| admitted.scopes[entity.scope as usize])
    }

    /// How an entity that passes is written.
    fn name<'a>(&'a self, key: &'a str, admitted: &Admitted) -> &'a str {
        let mut rows = self.rows(key);
        rows.find(|(_, entity)| admitted.scopes[entity.scope as usize])
            .map_or(key, |(_, entity)| &*entity.name)
    }

    pub(crate) fn bytes(&self) -> usize {
        let entities = self.entities.values();
        let entities: usize = entities
            .map(|one| one.name.len() + 2 * one.key.len() + 160)
            .sum();
        let ends = self.ends.values();
        let ends: usize = ends
            .map(|end| 8 * end.relations.capacity() + 4 * end.mentions.capacity() + 72)
            .sum();
        entities + ends + self.relations.len() * 48
    }
}

fn insert(rows: &mut Vec<u64>, row: u64) {
    if let Err(at) = rows.binary_search(&row) {
        rows.insert(at, row);
    }
}

/// Whether a name may begin with a character that follows another.
fn is_start(before: char, c: char) -> bool {
    !c.is_whitespace() && (!before.is_alphanumeric() || is_unspaced(c))
}

/// Whether a name may end before a character that follows another.
fn is_end(before: char, c: char) -> bool {
    !before.is_whitespace()
        && (!c.is_alphanumeric() || is_unspaced(before) || !before.is_alphanumeric())
}

/// Whether a character belongs to a script that has no spaces between words.
fn is_unspaced(c: char) -> bool {
    matches!(c, '\u{0e00}'..='\u{0eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}'
        | '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}'
        | '\u{ac00}'..='\u{d7af}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{323af}')
}
