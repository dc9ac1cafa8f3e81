//! The vectors of memories, of one model or, while it is being changed, of two.

use rustc_hash::FxHashMap;

/// A vector, each number in a byte.
#[derive(Debug, Clone, PartialEq)]
pub struct Quantised {
    /// What makes numbers of the bytes again.
    pub scale: f32,
    /// The bytes.
    pub numbers: Vec<i8>,
}

/// The vectors of one model.
#[derive(Debug)]
pub(crate) struct Model {
    pub(crate) fingerprint: Box<str>,
    pub(crate) dimensions: usize,
    rows: FxHashMap<u32, Quantised>,
}

impl Model {
    pub(crate) fn new(fingerprint: &str, dimensions: usize) -> Self {
        Self {
            fingerprint: fingerprint.into(),
            dimensions,
            rows: FxHashMap::default(),
        }
    }

    pub(crate) fn set(&mut self, at: u32, vector: &Quantised) {
        if vector.numbers.len() == self.dimensions && vector.scale.is_finite() {
            self.rows.insert(at, vector.clone());
        }
    }

    pub(crate) fn clear(&mut self, at: u32) {
        self.rows.remove(&at);
    }

    /// The cosine with the vector in this place.
    pub(crate) fn product(&self, at: u32, vector: &[f32]) -> Option<f32> {
        let row = self.rows.get(&at)?;
        let pairs = row.numbers.iter().zip(vector);
        Some(row.scale * pairs.map(|(a, b)| f32::from(*a) * b).sum::<f32>())
    }

    pub(crate) fn bytes(&self) -> usize {
        self.rows.len() * (self.dimensions + 40)
    }
}
