//! A sentence model combined with the built-in table.

use std::sync::Arc;

use crate::{Embedder, MiniLm, ModelError, Role, StaticTable};

/// A sentence model combined with the built-in table.
///
/// The model understands a text, the table only its words; each finds matches that the other misses. The
/// two vectors are concatenated, so that the dot product of two of them is the sum of both scores. If the
/// table knows a word, the vector is longer than 1, so products tell which of several texts is nearer, but
/// not how near it is.
#[derive(Debug)]
pub struct Joined {
    sentences: Arc<MiniLm>,
    words: &'static StaticTable,
    name: String,
    fingerprint: String,
}

/// The length of the table's part of a vector, relative to the model's with length 1. Found by measurement.
const WORDS: f32 = 0.4;

impl Joined {
    /// Combines a model with the built-in table.
    pub fn new(sentences: MiniLm) -> Self {
        let words = StaticTable::built_in();
        Self {
            name: sentences.name().to_owned(),
            fingerprint: format!("{}-{}", sentences.fingerprint(), words.fingerprint()),
            sentences: Arc::new(sentences),
            words,
        }
    }

    /// Returns the model alone. Its weights are in memory only once, regardless of the number of
    /// references.
    pub fn sentences(&self) -> &Arc<MiniLm> {
        &self.sentences
    }

    fn join(&self, sentence: Option<Vec<f32>>, words: Option<Vec<f32>>) -> Option<Vec<f32>> {
        let mut joined = sentence?;
        match words {
            Some(words) => joined.extend(words.iter().map(|number| WORDS * number)),
            None => joined.resize(self.dimensions(), 0.0),
        }
        Some(joined)
    }
}

impl Embedder for Joined {
    fn name(&self) -> &str {
        &self.name
    }

    fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    fn dimensions(&self) -> usize {
        self.sentences.dimensions() + self.words.dimensions()
    }

    fn embed(&self, role: Role, text: &str) -> Result<Option<Vec<f32>>, ModelError> {
        Ok(self.join(self.sentences.embed(role, text)?, self.words.vector(text)))
    }

    fn embed_all(&self, role: Role, texts: &[&str]) -> Result<Vec<Option<Vec<f32>>>, ModelError> {
        let sentences = self.sentences.embed_all(role, texts)?;
        let joined = sentences.into_iter().zip(texts);
        let joined = joined.map(|(sentence, text)| self.join(sentence, self.words.vector(text)));
        Ok(joined.collect())
    }
}
