//! The vectors of memories, of one model or, during a change of models, of two.

use switchboard_embed::{Matrix, Prepared, Quantised};

/// The vectors of one model.
#[derive(Debug)]
pub(crate) struct Model {
    pub(crate) fingerprint: Box<str>,
    matrix: Matrix,
    /// Matrix row of the vector of each place, or [`NONE`].
    rows: Vec<u32>,
    /// Matrix rows of removed memories.
    free: Vec<u32>,
}

const NONE: u32 = u32::MAX;

impl Model {
    pub(crate) fn new(fingerprint: &str, dimensions: usize) -> Self {
        Self {
            fingerprint: fingerprint.into(),
            matrix: Matrix::new(dimensions),
            rows: Vec::new(),
            free: Vec::new(),
        }
    }

    /// The same model without vectors.
    pub(crate) fn emptied(self) -> Self {
        Self::new(&self.fingerprint, self.matrix.dimensions())
    }

    /// Sets the vector of a place; a vector with the wrong number of dimensions is ignored.
    pub(crate) fn set(&mut self, at: u32, vector: &Quantised) {
        if vector.numbers.len() != self.matrix.dimensions() {
            return;
        }
        let place = at as usize;
        if place >= self.rows.len() {
            self.rows.resize(place + 1, NONE);
        }
        let row = match self.rows[place] {
            NONE => self.free.pop(),
            row => Some(row),
        };
        let row = row.unwrap_or_else(|| u32::try_from(self.matrix.len()).unwrap_or(NONE));
        if row != NONE && self.matrix.set(row as usize, vector).is_ok() {
            self.rows[place] = row;
        }
    }

    /// Removes the vector of a place.
    pub(crate) fn clear(&mut self, at: u32) {
        if let Some(row) = self.rows.get_mut(at as usize)
            && *row != NONE
        {
            self.matrix.clear(*row as usize);
            self.free.push(*row);
            *row = NONE;
        }
    }

    /// Keeps only these places and renumbers them in this order. All others have no vectors already.
    pub(crate) fn keep(&mut self, places: &[u32]) {
        let row = |at: &u32| self.rows.get(*at as usize).copied().unwrap_or(NONE);
        self.rows = places.iter().map(row).collect();
    }

    /// Prepares a vector for comparison with the stored ones.
    pub(crate) fn prepare(&self, vector: &[f32]) -> Prepared {
        self.matrix.prepare(vector)
    }

    /// Prepares the vector of a place for comparison with others.
    pub(crate) fn prepare_place(&self, at: u32) -> Option<Prepared> {
        self.matrix.prepare_row(self.row(at)?)
    }

    /// Returns the dot product with the vector of a place, if it has one.
    pub(crate) fn product(&self, at: u32, with: &Prepared) -> Option<f32> {
        self.matrix.product(self.row(at)?, with)
    }

    fn row(&self, at: u32) -> Option<usize> {
        let row = *self.rows.get(at as usize)?;
        (row != NONE).then_some(row as usize)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.matrix.bytes() + (self.rows.capacity() + self.free.capacity()) * size_of::<u32>()
    }
}
