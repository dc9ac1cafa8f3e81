//! Entities, how they are related, and which memories mention them.

use rustc_hash::FxHashMap;

use crate::extract;

/// An entity of one scope.
#[derive(Debug)]
struct Entity {
    key: Box<str>,
    name: Box<str>,
    scope: u32,
    relations: Vec<u64>,
}

#[derive(Debug)]
struct Relation {
    from: u64,
    to: u64,
    weight: f32,
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Graph {
    entities: FxHashMap<u64, Entity>,
    by_key: std::collections::HashMap<Box<str>, Vec<u64>>,
    relations: FxHashMap<u64, Relation>,
    /// Which memories mention an entity.
    mentions: FxHashMap<u64, Vec<u32>>,
}

impl Graph {
    pub(crate) fn put_entity(&mut self, row: u64, scope: u32, name: &str) {
        self.remove_entity(row);
        let key: Box<str> = extract::key(name).into();
        self.by_key.entry(key.clone()).or_default().push(row);
        let entity = Entity {
            key,
            name: name.into(),
            scope,
            relations: Vec::new(),
        };
        self.entities.insert(row, entity);
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
        self.relations.insert(row, Relation { from, to, weight });
        for end in [from, to] {
            if let Some(entity) = self.entities.get_mut(&end) {
                entity.relations.push(row);
            }
        }
    }

    pub(crate) fn remove_relation(&mut self, row: u64) {
        let Some(relation) = self.relations.remove(&row) else {
            return;
        };
        for end in [relation.from, relation.to] {
            if let Some(entity) = self.entities.get_mut(&end) {
                entity.relations.retain(|other| *other != row);
            }
        }
    }

    pub(crate) fn mention(&mut self, at: u32, entities: &[u64]) {
        for entity in entities {
            self.mentions.entry(*entity).or_default().push(at);
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        let entities: usize = self
            .entities
            .values()
            .map(|one| one.name.len() * 2 + 120)
            .sum();
        let mentions: usize = self
            .mentions
            .values()
            .map(|list| list.capacity() * 4 + 40)
            .sum();
        entities + mentions + self.relations.len() * 40
    }

    /// What is mentioned under these names: memories, how well, and the name.
    pub(crate) fn found(&self, text: &str, admits: impl Fn(u32) -> bool) -> Vec<(u32, f32, &str)> {
        let mut found = Vec::new();
        let key = extract::key(text);
        let words: Vec<&str> = key.split(|c: char| !c.is_alphanumeric()).collect();
        for word in words {
            for row in self.by_key.get(word).into_iter().flatten() {
                let Some(entity) = self.entities.get(row).filter(|one| admits(one.scope)) else {
                    continue;
                };
                for (row, share) in self.near(*row) {
                    for at in self.mentions.get(&row).into_iter().flatten() {
                        found.push((*at, share, &*entity.name));
                    }
                }
            }
        }
        found
    }

    fn near(&self, row: u64) -> Vec<(u64, f32)> {
        let mut near = vec![(row, 1.0)];
        for relation in self
            .entities
            .get(&row)
            .map(|one| &*one.relations)
            .unwrap_or_default()
        {
            if let Some(relation) = self.relations.get(relation) {
                let other = if relation.from == row {
                    relation.to
                } else {
                    relation.from
                };
                near.push((other, 0.5 * relation.weight.clamp(0.0, 1.0)));
            }
        }
        near
    }
}
