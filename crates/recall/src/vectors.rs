//! The vectors of memories, of one model or, while it is being changed, of two.

use switchboard_embed::{Matrix, Quantised};

/// The vectors of one model.
#[derive(Debug)]
pub(crate) struct Model {
    pub(crate) fingerprint: Box<str>,
    /// A row for the place of each memory.
    pub(crate) matrix: Matrix,
}

impl Model {
    pub(crate) fn new(fingerprint: &str, dimensions: usize) -> Self {
        Self {
            fingerprint: fingerprint.into(),
            matrix: Matrix::new(dimensions),
        }
    }

    /// Sets the vector of a memory; one of another length is ignored.
    pub(crate) fn set(&mut self, at: usize, vector: &Quantised) {
        let _ = self.matrix.set(at, vector);
    }
}
