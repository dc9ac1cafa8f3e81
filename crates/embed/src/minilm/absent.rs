//! The sentence model in a build without it: a type without values.

use std::path::Path;

use crate::{Embedder, ModelError, Role};

/// A sentence model. This build has none, so the type has no values.
#[derive(Debug)]
pub enum MiniLm {}

impl MiniLm {
    /// Fails: this build has no sentence model.
    pub fn open(folder: &Path) -> Result<Self, ModelError> {
        Err(ModelError::Unsupported {
            path: folder.to_owned(),
            what: "this build has no sentence model".to_owned(),
        })
    }
}

impl Embedder for MiniLm {
    fn name(&self) -> &str {
        match *self {}
    }

    fn fingerprint(&self) -> &str {
        match *self {}
    }

    fn dimensions(&self) -> usize {
        match *self {}
    }

    fn embed(&self, _: Role, _: &str) -> Result<Option<Vec<f32>>, ModelError> {
        match *self {}
    }

    fn embed_all(&self, _: Role, _: &[&str]) -> Result<Vec<Option<Vec<f32>>>, ModelError> {
        match *self {}
    }
}
