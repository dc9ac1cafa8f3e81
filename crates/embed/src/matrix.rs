//! The vectors of many texts, with one byte per number.

use crate::{ModelError, Quantised, quantised::quantise};

/// Vectors of the same length, at most one in each row, to compare with another vector.
///
/// A row stores its numbers as bytes and one factor, so the dot product of two unit vectors is off by a
/// few thousandths at most: accurate enough to find the nearest, in a quarter of the memory.
#[derive(Clone, Debug)]
pub struct Matrix {
    dimensions: usize,
    numbers: Vec<i8>,
    /// Factor of each row; [`NOTHING`] for a row without a vector.
    scales: Vec<f32>,
}

const NOTHING: f32 = f32::NAN;

/// A vector to compare with the rows of a [`Matrix`], widened to 16 bits in advance, which saves half of
/// the conversions.
#[derive(Clone, Debug)]
pub struct Prepared {
    scale: f32,
    numbers: Vec<i16>,
}

impl Matrix {
    /// Creates a matrix without rows, for vectors of this length.
    pub fn new(dimensions: usize) -> Self {
        Self {
            dimensions,
            numbers: Vec::new(),
            scales: Vec::new(),
        }
    }

    /// Adds a row, and returns its number.
    pub fn push(&mut self, vector: &[f32]) -> Result<usize, ModelError> {
        self.check(vector.len())?;
        let scale = quantise(vector, |number| self.numbers.push(number));
        self.scales.push(scale);
        Ok(self.scales.len() - 1)
    }

    /// Sets the vector of a row, replacing the one there. Missing rows before it are created without
    /// vectors, but take memory all the same.
    ///
    /// A vector whose factor is not finite cannot be compared: its row counts as empty.
    pub fn set(&mut self, row: usize, vector: &Quantised) -> Result<(), ModelError> {
        self.check(vector.numbers.len())?;
        if row >= self.len() {
            self.scales.resize(row + 1, NOTHING);
            self.numbers.resize((row + 1) * self.dimensions, 0);
        }
        let start = row * self.dimensions;
        self.numbers[start..start + self.dimensions].copy_from_slice(&vector.numbers);
        self.scales[row] = vector.scale;
        Ok(())
    }

    /// Creates a matrix of some of these rows, in this order; `None` is a row without a vector.
    #[must_use]
    pub fn select(&self, rows: impl IntoIterator<Item = Option<usize>>) -> Self {
        let mut selected = Self::new(self.dimensions);
        for row in rows {
            let (numbers, scale) = row.and_then(|row| self.row(row)).unzip();
            let end = selected.numbers.len() + self.dimensions;
            selected
                .numbers
                .extend_from_slice(numbers.unwrap_or_default());
            selected.numbers.resize(end, 0);
            selected.scales.push(scale.unwrap_or(NOTHING));
        }
        selected
    }

    /// Removes the vector of a row.
    pub fn clear(&mut self, row: usize) {
        if let Some(scale) = self.scales.get_mut(row) {
            *scale = NOTHING;
        }
    }

    /// Returns `true` if a row has a vector.
    pub fn has(&self, row: usize) -> bool {
        self.scales.get(row).is_some_and(|scale| scale.is_finite())
    }

    /// Returns the number of rows, with or without vectors.
    pub fn len(&self) -> usize {
        self.scales.len()
    }

    /// Returns `true` if there are no rows.
    pub fn is_empty(&self) -> bool {
        self.scales.is_empty()
    }

    /// Returns the length of the vectors.
    pub fn dimensions(&self) -> usize {
        self.dimensions
    }

    /// Returns the approximate memory use in bytes.
    pub fn bytes(&self) -> usize {
        self.numbers.capacity() + self.scales.capacity() * size_of::<f32>()
    }

    /// Prepares a vector for comparison. A vector of the wrong length has no product with any row.
    pub fn prepare(&self, vector: &[f32]) -> Prepared {
        let mut numbers = Vec::with_capacity(vector.len());
        let scale = quantise(vector, |number| numbers.push(i16::from(number)));
        Prepared { scale, numbers }
    }

    /// Prepares the vector of a row for comparison with others.
    pub fn prepare_row(&self, row: usize) -> Option<Prepared> {
        let (numbers, scale) = self.row(row)?;
        Some(Prepared {
            scale,
            numbers: numbers.iter().map(|number| i16::from(*number)).collect(),
        })
    }

    /// Returns the dot product of a vector and a row, if the row has a vector.
    pub fn product(&self, row: usize, with: &Prepared) -> Option<f32> {
        let (numbers, scale) = self.row(row)?;
        if with.numbers.len() != self.dimensions {
            return None;
        }
        let product = dot(numbers, &with.numbers) * scale * with.scale;
        product.is_finite().then_some(product)
    }

    /// Replaces the contents of `products` with the dot product of a vector and each row, in order. It is
    /// 0 for a row without a vector.
    pub fn dot_all(&self, vector: &[f32], products: &mut Vec<f32>) -> Result<(), ModelError> {
        self.check(vector.len())?;
        let with = self.prepare(vector);
        products.clear();
        products.extend((0..self.len()).map(|row| self.product(row, &with).unwrap_or(0.0)));
        Ok(())
    }

    fn row(&self, row: usize) -> Option<(&[i8], f32)> {
        let scale = *self.scales.get(row).filter(|scale| scale.is_finite())?;
        let start = row * self.dimensions;
        Some((&self.numbers[start..start + self.dimensions], scale))
    }

    fn check(&self, length: usize) -> Result<(), ModelError> {
        if length == self.dimensions {
            Ok(())
        } else {
            Err(ModelError::Dimensions {
                expected: self.dimensions,
                found: length,
            })
        }
    }
}

/// Computes a dot product. Chunks of this length compile to SIMD code that is about as fast as the memory;
/// one long sum takes a third longer.
fn dot(row: &[i8], with: &[i16]) -> f32 {
    const PIECE: usize = 32;

    let (pieces, rest) = row.as_chunks::<PIECE>();
    let (with_pieces, with_rest) = with.as_chunks::<PIECE>();
    let whole = pieces.iter().zip(with_pieces);
    // 128 × 128 × the longest vector is far below 2^31.
    let sum = whole.map(|(row, with)| sum(row, with)).sum::<i32>() + sum(rest, with_rest);
    #[expect(
        clippy::cast_precision_loss,
        reason = "the bytes have cost more precision"
    )]
    let sum = sum as f32;
    sum
}

fn sum(row: &[i8], with: &[i16]) -> i32 {
    let numbers = row.iter().zip(with);
    numbers.map(|(a, b)| i32::from(*a) * i32::from(*b)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_are_accurate_to_a_few_thousandths() {
        let vector = |seed: u16| {
            let mut vector: Vec<f32> = (0..384_u16)
                .map(|i| (f32::from(i * 7 + seed * 131) * 0.37).sin())
                .collect();
            assert!(crate::arithmetic::to_unit(&mut vector));
            vector
        };
        let mut matrix = Matrix::new(384);
        for row in 0..50 {
            assert_eq!(matrix.push(&vector(row)).unwrap(), usize::from(row));
        }
        let query = vector(3);
        let mut products = vec![9.0];
        matrix.dot_all(&query, &mut products).unwrap();
        assert_eq!(products.len(), 50);
        for (row, product) in (0..50).zip(&products) {
            let exact: f32 = vector(row).iter().zip(&query).map(|(a, b)| a * b).sum();
            assert!((product - exact).abs() < 0.004, "{row}: {product}, {exact}");
        }
        assert!((products[3] - 1.0).abs() < 0.004);
    }

    #[test]
    fn every_length_is_summed_completely() {
        for length in [1_u16, 31, 32, 33, 64, 70, 384] {
            let mut matrix = Matrix::new(length.into());
            let ones = Quantised {
                scale: 1.0,
                numbers: vec![1; length.into()],
            };
            matrix.set(0, &ones).unwrap();
            let row = matrix.prepare_row(0).unwrap();
            assert_eq!(matrix.product(0, &row), Some(length.into()));
        }
    }

    #[test]
    fn extreme_vectors_do_no_harm() {
        let mut matrix = Matrix::new(3);
        matrix.push(&[0.0; 3]).unwrap();
        matrix.push(&[f32::NAN, f32::INFINITY, 1.0]).unwrap();
        matrix.push(&[0.0, 1.0, 0.0]).unwrap();
        let mut products = Vec::new();
        matrix.dot_all(&[0.0, 1.0, 0.0], &mut products).unwrap();
        assert_eq!(products.len(), 3);
        assert!(products[..2].iter().all(|product| product.abs() < 1e-9));
        assert!((products[2] - 1.0).abs() < 0.02);
        assert!(matches!(
            matrix.push(&[1.0]),
            Err(ModelError::Dimensions {
                expected: 3,
                found: 1
            })
        ));
        assert!(matrix.dot_all(&[1.0; 4], &mut products).is_err());
    }

    #[test]
    fn rows_are_set_and_cleared_in_any_order() {
        let mut matrix = Matrix::new(2);
        let up = Quantised::from_vector(&[0.0, 1.0]);
        let right = Quantised::from_vector(&[1.0, 0.0]);
        matrix.set(4, &up).unwrap();
        matrix.set(1, &right).unwrap();
        assert_eq!(matrix.len(), 5);
        let filled: Vec<usize> = (0..9).filter(|row| matrix.has(*row)).collect();
        assert_eq!(filled, [1, 4]);

        let with = matrix.prepare(&[0.6, 0.8]);
        let near = |product: Option<f32>, expected: f32| {
            product.is_some_and(|product| (product - expected).abs() < 0.01)
        };
        assert!(near(matrix.product(1, &with), 0.6));
        assert!(near(matrix.product(4, &with), 0.8));
        for row in [0, 2, 5, usize::MAX] {
            assert_eq!(matrix.product(row, &with), None);
            assert!(matrix.prepare_row(row).is_none());
        }
        let row = matrix.prepare_row(4).unwrap();
        assert!(near(matrix.product(4, &row), 1.0) && near(matrix.product(1, &row), 0.0));

        matrix.set(4, &right).unwrap();
        assert!(near(matrix.product(4, &with), 0.6));
        matrix.clear(4);
        matrix.clear(99);
        assert!(!matrix.has(4) && matrix.len() == 5);
        assert_eq!(matrix.product(4, &with), None);
        let mut products = Vec::new();
        matrix.dot_all(&[1.0, 0.0], &mut products).unwrap();
        assert!(near(products.get(1).copied(), 1.0) && products[4] == 0.0);
    }

    #[test]
    fn invalid_quantised_vectors_do_no_harm() {
        let mut matrix = Matrix::new(2);
        let odd = |scale, numbers: &[i8]| Quantised {
            scale,
            numbers: numbers.to_vec(),
        };
        assert!(matrix.set(3, &odd(1.0, &[1, 2, 3])).is_err());
        assert!(matrix.is_empty());
        for scale in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            matrix.set(0, &odd(scale, &[1, 2])).unwrap();
            assert!(!matrix.has(0) && matrix.prepare_row(0).is_none());
        }
        matrix.set(0, &odd(f32::MAX, &[-128, -128])).unwrap();
        let row = matrix.prepare_row(0).unwrap();
        assert_eq!(matrix.product(0, &row), None);
        let longer = matrix.prepare(&[1.0; 3]);
        assert_eq!(matrix.product(0, &longer), None);
    }
}
