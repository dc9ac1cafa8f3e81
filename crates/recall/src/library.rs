//! [`Library`]: the search index of memories, and the changes it follows.

use rustc_hash::FxHashMap;
use switchboard_embed::Quantised;

use crate::{
    Document, Filter, Scope,
    columns::{Columns, PLACES},
    dates::{self, Written},
    graph::Graph,
    lexicon::Lexicon,
    limits,
    scopes::Scopes,
    vectors::Model,
};

/// The search index of memories.
#[derive(Debug, Default)]
pub struct Library {
    /// Place of every row.
    pub(crate) places: FxHashMap<u64, u32>,
    pub(crate) scopes: Scopes,
    pub(crate) columns: Columns,
    pub(crate) lexicon: Lexicon,
    pub(crate) written: Written,
    pub(crate) graph: Graph,
    /// The first model is the one in use.
    pub(crate) models: Vec<Model>,
}

impl Library {
    /// Adds a version of a memory, replacing one with the same row.
    pub fn add(&mut self, document: &Document<'_>) {
        self.remove(document.row);
        if self.columns.len() >= PLACES {
            return;
        }
        let at = u32::try_from(self.columns.len()).unwrap_or_default();
        self.places.insert(document.row, at);
        self.columns.push(document, &mut self.scopes);
        self.lexicon.push(document.content);
        let dates = dates::written_in(document.content);
        if !dates.is_empty() {
            self.written.insert(at, dates.into());
        }
        self.graph.mention(at, document.mentions);
    }

    /// Marks a version as replaced at a time.
    pub fn close(&mut self, row: u64, learned_until: i64) {
        if let Some(at) = self.places.get(&row) {
            self.columns.close(*at as usize, learned_until);
        }
    }

    /// Removes a version, its mentions and its vectors.
    pub fn remove(&mut self, row: u64) {
        let Some(at) = self.places.remove(&row) else {
            return;
        };
        self.columns.remove(at as usize);
        self.written.remove(&at);
        for model in &mut self.models {
            model.clear(at);
        }
        let removed = self.columns.len() - self.places.len();
        if removed >= limits::REMOVED && removed > self.places.len() / 4 {
            self.tidy();
        }
    }

    /// Compacts the index. The words, mentions and scopes of removed versions are still present until
    /// then.
    fn tidy(&mut self) {
        let all = self.columns.len();
        let mut places: Vec<u32> = self.places.values().copied().collect();
        places.sort_unstable_by_key(|at| self.columns.row[*at as usize]);
        let mut scopes = vec![false; self.scopes.len()];
        let mut kinds = Vec::new();
        self.graph.mark_scopes(&mut scopes);
        for at in &places {
            scopes[self.columns.scope[*at as usize] as usize] = true;
            let kind = self.columns.kind[*at as usize] as usize;
            if kinds.len() <= kind {
                kinds.resize(kind + 1, false);
            }
            kinds[kind] = true;
        }
        let renumbered = self.scopes.keep(&scopes, kinds);
        self.columns.keep(&places, &renumbered);
        self.lexicon.keep(&places);
        let written = (0..).zip(&places);
        let written = written.filter_map(|(new, old)| Some((new, self.written.remove(old)?)));
        self.written = written.collect();
        self.graph.keep(&places, all, &renumbered);
        for model in &mut self.models {
            model.keep(&places);
        }
        self.places = self.columns.row.iter().copied().zip(0..).collect();
    }

    /// Adds an entity, or renames it.
    pub fn put_entity(&mut self, row: u64, scope: Scope<'_>, name: &str) {
        let scope = self.scopes.enter(scope);
        self.graph.put_entity(row, scope, name);
    }

    /// Removes an entity.
    pub fn remove_entity(&mut self, row: u64) {
        self.graph.remove_entity(row);
    }

    /// Adds a relation between two entities, given by their rows, or changes its weight.
    pub fn put_relation(&mut self, row: u64, from: u64, to: u64, weight: f32) {
        self.graph.put_relation(row, from, to, weight);
    }

    /// Removes a relation.
    pub fn remove_relation(&mut self, row: u64) {
        self.graph.remove_relation(row);
    }

    /// Adds a model. The first one is in use; a later one replaces it on
    /// [`use_model`](Self::use_model).
    pub fn add_model(&mut self, fingerprint: &str, dimensions: usize) {
        let is_known = |model: &Model| *model.fingerprint == *fingerprint;
        if !self.models.iter().any(is_known) {
            self.models.push(Model::new(fingerprint, dimensions));
        }
    }

    /// Sets the vector of a version. It is ignored if the version or the model is unknown, or if the
    /// number of dimensions is wrong.
    pub fn set_vector(&mut self, fingerprint: &str, row: u64, vector: &Quantised) {
        let Some(at) = self.places.get(&row) else {
            return;
        };
        let mut models = self.models.iter_mut();
        if let Some(model) = models.find(|model| *model.fingerprint == *fingerprint) {
            model.set(*at, vector);
        }
    }

    /// Switches to this model and drops all others.
    pub fn use_model(&mut self, fingerprint: &str) {
        self.models
            .retain(|model| *model.fingerprint == *fingerprint);
    }

    /// Removes everything except the models, which lose their vectors.
    pub fn clear(&mut self) {
        let models = self.models.drain(..).map(Model::emptied).collect();
        *self = Self {
            models,
            ..Self::default()
        };
    }

    /// Returns the rows of the entities that the most memories passing the filter mention, the most
    /// mentioned first.
    pub fn most_mentioned(&self, filter: &Filter<'_>, limit: usize) -> Vec<u64> {
        let admitted = self.columns.admitted(filter, &self.scopes);
        self.graph.most_mentioned(&admitted, limit)
    }

    /// Returns the model in use.
    pub fn model(&self) -> Option<&str> {
        self.models.first().map(|model| &*model.fingerprint)
    }

    /// Returns `true` if there is a version with this row.
    pub fn has(&self, row: u64) -> bool {
        self.places.contains_key(&row)
    }

    /// Returns the number of versions.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Returns `true` if there are no versions.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Returns the approximate memory use in bytes.
    pub fn bytes(&self) -> usize {
        let models: usize = self.models.iter().map(Model::bytes).sum();
        self.places.capacity() * 24
            + self.scopes.bytes()
            + self.columns.bytes()
            + self.lexicon.bytes()
            + self.written.len() * 64
            + self.graph.bytes()
            + models
    }
}
