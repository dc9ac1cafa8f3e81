//! Entities, their relations, and the memories that mention them.
//!
//! The nodes are keys: the same name in several scopes is one node. Every step is checked: entities and
//! relations by their scopes, memories by the filter.

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
    /// Rows of the entities with a key, sorted.
    by_key: HashMap<Box<str>, Vec<u64>>,
    relations: FxHashMap<u64, Relation>,
    /// Relations and mentions by the row of an entity, which need not be known yet.
    ends: FxHashMap<u64, End>,
}

/// An entity in one scope.
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
    /// Rows of its relations, sorted.
    relations: Vec<u64>,
    /// Places of the memories that mention it.
    mentions: Vec<u32>,
}

/// The memories that the names in a query lead to.
#[derive(Debug, Default)]
pub(crate) struct ByGraph<'a> {
    /// Scores by seat.
    pub(crate) scores: Sums,
    /// For each name in the query, the keys that it leads to, itself first.
    paths: Vec<Vec<&'a str>>,
}

/// The share of the score that is passed on over a relation.
const STEP: f32 = 0.7;
/// The most relations in a row that are followed.
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
        // A weight that is not a number counts as 0.
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

    /// Records the entities that the memory in the next place mentions.
    pub(crate) fn mention(&mut self, at: u32, entities: &[u64]) {
        for entity in entities {
            let mentions = &mut self.ends.entry(*entity).or_default().mentions;
            if mentions.last() != Some(&at) {
                mentions.push(at);
            }
        }
    }

    /// Keeps only the mentions by these places, and renumbers places and scopes.
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

    /// Returns the memories that the names in a text lead to.
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
                // Entities behind relations of weight 0 are not reached.
                for seat in seats.into_iter().filter(|_| score > 0.0) {
                    room.put(seat, score);
                }
            }
            // Scores of several names combine like independent probabilities: they add up, but never
            // exceed 1.
            room.collect(|seat, score| {
                let more = |sum: f32| sum + (1.0 - sum) * score;
                found.scores.change(seat, more);
            });
            let path = reached.into_iter().map(|(key, _)| key);
            found.paths.push(path.collect());
        }
        found
    }

    /// Returns the names through which a memory was found: names in the query, and names that they lead
    /// to.
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

    /// Returns the places that mention the admitted entities of a key: one sorted list for each entity.
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

    /// Returns the keys of known entities that occur in a text; of overlapping ones, the longest.
    fn names_in(&self, text: &str, admitted: &Admitted) -> Vec<&str> {
        let text = extract::key(&text[..text.floor_char_boundary(limits::QUERY_BYTES)]);
        let mut names: Vec<&str> = Vec::new();
        // Positions at which words begin and end; a script without spaces is examined by character.
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

    /// Returns the keys that relations lead to, each with its score; the starting key comes first.
    fn reached<'a>(&'a self, seed: &'a str, admitted: &Admitted) -> Vec<(&'a str, f32)> {
        let mut reached: Vec<(&str, f32)> = vec![(seed, 1.0)];
        let mut done = 0;
        for _ in 0..STEPS {
            let last = reached.len();
            for at in done..last {
                let (key, reach) = reached[at];
                let next = self.related(key, admitted);
                // The score is divided among many relations: an entity related to everything says little
                // about any other.
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

    /// Returns the keys related to a key, each once.
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

    /// Returns the entities that the most admitted memories mention, the most mentioned first; entities
    /// without mentions come last.
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

    /// Returns the spelling of an admitted entity's name.
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

/// Returns `true` if a name may begin with `c` after `before`.
fn is_start(before: char, c: char) -> bool {
    !c.is_whitespace() && (!before.is_alphanumeric() || is_unspaced(c))
}

/// Returns `true` if a name may end between `before` and `c`.
fn is_end(before: char, c: char) -> bool {
    !before.is_whitespace()
        && (!c.is_alphanumeric() || is_unspaced(before) || !before.is_alphanumeric())
}

/// Returns `true` if a character belongs to a script without spaces between words.
fn is_unspaced(c: char) -> bool {
    matches!(c, '\u{0e00}'..='\u{0eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}'
        | '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}'
        | '\u{ac00}'..='\u{d7af}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{323af}')
}
