//! The expected content: everything that was acknowledged, and each call in flight either as a whole or not
//! at all.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use serde_json::{Value, json};
use switchboard_test_support::pipe::Pipe;

use super::{Dice, call};

/// A memory as expected.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Kept {
    pub(super) namespace: String,
    pub(super) content: String,
    /// The word that only this content contains.
    pub(super) token: String,
    pub(super) version: u64,
    /// `true` if it was invalidated.
    pub(super) ended: bool,
}

/// A call that was in flight when the program was killed.
#[derive(Debug, Clone)]
pub(super) enum Doubt {
    /// A new memory whose ID is not known, by its content.
    Stored(Kept),
    /// New memories: all or none.
    Imported(Vec<(String, Kept)>),
    /// Changed memories: all or none.
    Changed(Vec<(String, Kept)>),
    Deleted(String),
    /// An entity, by name.
    Entity(String),
    Relation(String, String),
    /// A call that changes nothing.
    Nothing,
}

/// The whole content of the store, as the program exports it.
pub(super) struct Snapshot {
    memories: BTreeMap<String, Value>,
    entities: BTreeSet<String>,
    relations: BTreeSet<(String, String)>,
}

#[derive(Debug, Default)]
pub(super) struct Ledger {
    kept: BTreeMap<String, Kept>,
    /// The tokens of contents that were deleted or replaced.
    gone: Vec<String>,
    entities: BTreeSet<String>,
    relations: BTreeSet<(String, String)>,
    doubts: Vec<Doubt>,
    made: u64,
    not_made: u64,
}

impl Snapshot {
    pub(super) fn take(pipe: &mut Pipe) -> Self {
        let mut snapshot = Self {
            memories: BTreeMap::new(),
            entities: BTreeSet::new(),
            relations: BTreeSet::new(),
        };
        let mut arguments = json!({ "limit": 1_000 });
        loop {
            let page = call(pipe, "export_memory", arguments.clone());
            for line in page["data"].as_str().unwrap().lines() {
                snapshot.add(serde_json::from_str(line).unwrap());
            }
            match page.get("next_cursor") {
                Some(cursor) => arguments["cursor"] = cursor.clone(),
                None => return snapshot,
            }
        }
    }

    fn add(&mut self, line: Value) {
        let text = |member: &str| line[member].as_str().unwrap().to_owned();
        match &*text("type") {
            "memory" => {
                let before = self.memories.insert(text("id"), line.clone());
                assert!(before.is_none(), "exported twice: {line}");
            }
            "entity" => {
                self.entities.insert(text("name"));
            }
            _ => {
                self.relations.insert((text("from"), text("to")));
            }
        }
    }
}

/// Tests if an exported memory is this one.
fn is(line: &Value, kept: &Kept) -> bool {
    line["content"] == *kept.content
        && line["version"] == kept.version
        && line["namespace"] == *kept.namespace
        && line.get("valid_until").is_some() == kept.ended
}

impl Ledger {
    pub(super) fn len(&self) -> usize {
        self.kept.len()
    }

    pub(super) fn get(&self, id: &str) -> Option<&Kept> {
        self.kept.get(id)
    }

    /// The IDs of the expected memories.
    pub(super) fn ids(&self) -> Vec<&String> {
        self.kept.keys().collect()
    }

    pub(super) fn entities(&self) -> Vec<&String> {
        self.entities.iter().collect()
    }

    /// Records a call that has happened, or is assumed to have.
    pub(super) fn done(&mut self, doubt: Doubt) {
        match doubt {
            // Only the response contains its ID.
            Doubt::Stored(_) | Doubt::Nothing => {}
            Doubt::Imported(memories) | Doubt::Changed(memories) => {
                for (id, kept) in memories {
                    self.put(id, kept);
                }
            }
            Doubt::Deleted(id) => {
                let kept = self.kept.remove(&id).expect("it was there");
                self.gone.push(kept.token);
            }
            Doubt::Entity(name) => {
                self.entities.insert(name);
            }
            Doubt::Relation(from, to) => {
                self.relations.insert((from, to));
            }
        }
    }

    pub(super) fn put(&mut self, id: String, kept: Kept) {
        let token = kept.token.clone();
        if let Some(before) = self.kept.insert(id, kept)
            && before.token != token
        {
            self.gone.push(before.token);
        }
    }

    /// Records a call that may or may not have happened.
    pub(super) fn doubt(&mut self, doubt: Doubt) {
        self.doubts.push(doubt);
    }

    /// Finds out which calls in doubt were carried out, and checks that everything else is as expected.
    pub(super) fn settle(&mut self, snapshot: &Snapshot) {
        for doubt in std::mem::take(&mut self.doubts) {
            let was_done = match &doubt {
                Doubt::Stored(kept) => {
                    let found = snapshot.memories.iter().find(|(_, line)| is(line, kept));
                    if let Some((id, _)) = found {
                        self.put(id.clone(), kept.clone());
                    }
                    found.is_some()
                }
                Doubt::Imported(memories) | Doubt::Changed(memories) => {
                    let made = |(id, kept): &&(String, Kept)| {
                        snapshot.memories.get(id).is_some_and(|line| is(line, kept))
                    };
                    let count = memories.iter().filter(made).count();
                    assert!(
                        count == 0 || count == memories.len(),
                        "{count} of all or none: {memories:#?}"
                    );
                    count > 0
                }
                Doubt::Deleted(id) => !snapshot.memories.contains_key(id),
                Doubt::Entity(name) => snapshot.entities.contains(name),
                Doubt::Relation(from, to) => {
                    snapshot.relations.contains(&(from.clone(), to.clone()))
                }
                Doubt::Nothing => continue,
            };
            if was_done {
                self.made += 1;
                self.done(doubt);
            } else {
                self.not_made += 1;
            }
        }
        for (id, kept) in &self.kept {
            let line = snapshot.memories.get(id);
            let line = line.unwrap_or_else(|| panic!("{id} is lost: {kept:#?}"));
            assert!(is(line, kept), "{id} should be {kept:#?}, and is {line:#}");
        }
        for (id, line) in &snapshot.memories {
            assert!(self.kept.contains_key(id), "nobody has made {line}");
        }
        for name in &self.entities {
            assert!(snapshot.entities.contains(name), "entity {name} is lost");
        }
        for relation in &self.relations {
            assert!(
                snapshot.relations.contains(relation),
                "{relation:?} is lost"
            );
        }
    }

    pub(super) fn sample(&self, dice: &mut Dice, count: usize) -> Vec<(String, Kept)> {
        let all: Vec<_> = self.kept.iter().collect();
        let count = count.min(all.len());
        let picked = (0..count).map(|_| all[dice.pick(all.len())]);
        picked
            .map(|(id, kept)| (id.clone(), kept.clone()))
            .collect()
    }

    /// Tokens of contents that are gone, including the latest.
    pub(super) fn sample_of_gone(&self, dice: &mut Dice, count: usize) -> Vec<String> {
        let latest = self.gone.iter().rev().take(count / 2).cloned();
        let others = self.gone.len().min(count / 2);
        let others = (0..others).map(|_| self.gone[dice.pick(self.gone.len())].clone());
        latest.chain(others).collect()
    }
}

impl fmt::Display for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            kept,
            gone,
            entities,
            relations,
            made,
            not_made,
            ..
        } = self;
        let (kept, gone) = (kept.len(), gone.len());
        let (entities, relations) = (entities.len(), relations.len());
        write!(
            f,
            "{kept} memories kept, {gone} contents gone, {entities} entities, {relations} relations; of what \
             was under way {made} were made and {not_made} not"
        )
    }
}
