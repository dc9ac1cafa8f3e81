//! The vectors of many texts, each number in a byte.

use crate::ModelError;

/// Vectors of the same length, one in each row, and the comparison of one with all of them.
///
/// A row keeps its numbers as bytes and one factor, so the product of two unit vectors is off by a few
/// thousandths at most: enough to find the nearest, and a quarter of the memory.
#[derive(Clone, Debug)]
pub struct Matrix {
    dimensions: usize,
    numbers: Vec<i8>,
    scales: Vec<f32>,
}

impl Matrix {
    /// A matrix without rows, for vectors of that many numbers.
    pub fn new(dimensions: usize) -> Self {
        Self {
            dimensions,
            numbers: Vec::new(),
            scales: Vec::new(),
        }
    }

    /// Adds a row, and gives its number.
    pub fn push(&mut self, vector: &[f32]) -> Result<usize, ModelError> {
        self.check(vector)?;
        let scale = quantise(vector, |number| self.numbers.push(number));
        self.scales.push(scale);
        Ok(self.scales.len() - 1)
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.scales.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.scales.is_empty()
    }

    /// How many numbers a row has.
    pub fn dimensions(&self) -> usize {
        self.dimensions
    }

    /// The product of a vector with every row, in their order, in place of what was in `products`.
    pub fn dot_all(&self, vector: &[f32], products: &mut Vec<f32>) -> Result<(), ModelError> {
        let query = self.query(vector)?;
        products.clear();
        products.extend((0..self.len()).map(|row| self.product(row, &query)));
        Ok(())
    }

    fn product(&self, row: usize, query: &Query) -> f32 {
        let start = row * self.dimensions;
        let numbers = &self.numbers[start..start + self.dimensions];
        // 127 × 127 × the longest vector is far below 2^31.
        let sum: i32 = numbers
            .iter()
            .zip(&query.numbers)
            .map(|(a, b)| i32::from(*a) * i32::from(*b))
            .sum();
        #[expect(
            clippy::cast_precision_loss,
            reason = "the bytes have cost more precision"
        )]
        let sum = sum as f32;
        sum * self.scales[row] * query.scale
    }

    fn query(&self, vector: &[f32]) -> Result<Query, ModelError> {
        self.check(vector)?;
        let mut numbers = Vec::with_capacity(vector.len());
        let scale = quantise(vector, |number| numbers.push(i16::from(number)));
        Ok(Query { scale, numbers })
    }

    fn check(&self, vector: &[f32]) -> Result<(), ModelError> {
        if vector.len() == self.dimensions {
            Ok(())
        } else {
            Err(ModelError::Dimensions {
                expected: self.dimensions,
                found: vector.len(),
            })
        }
    }
}

/// A vector to compare with, in the width of the products: that saves half of the conversions.
struct Query {
    scale: f32,
    numbers: Vec<i16>,
}

/// Makes bytes of numbers, and gives the factor that makes numbers of them again.
fn quantise(vector: &[f32], mut push: impl FnMut(i8)) -> f32 {
    let most = vector.iter().fold(0.0_f32, |most, x| most.max(x.abs()));
    let scale = most / 127.0;
    for x in vector {
        // What is no number becomes 0: the conversion saturates.
        #[expect(
            clippy::cast_possible_truncation,
            reason = "the quotient is -127 to 127"
        )]
        push((x / scale).round() as i8);
    }
    scale
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_are_those_of_the_vectors_but_for_a_few_thousandths() {
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
    fn odd_vectors_do_no_harm() {
        let mut matrix = Matrix::new(3);
        matrix.push(&[0.0; 3]).unwrap();
        matrix.push(&[f32::NAN, f32::INFINITY, 1.0]).unwrap();
        matrix.push(&[0.0, 1.0, 0.0]).unwrap();
        let mut products = Vec::new();
        matrix.dot_all(&[0.0, 1.0, 0.0], &mut products).unwrap();
        assert_eq!(products.len(), 3);
        assert!(products[0].abs() < 1e-9 && (products[2] - 1.0).abs() < 0.02);
        assert!(matches!(
            matrix.push(&[1.0]),
            Err(ModelError::Dimensions {
                expected: 3,
                found: 1
            })
        ));
        assert!(matrix.dot_all(&[1.0; 4], &mut products).is_err());
    }
}
