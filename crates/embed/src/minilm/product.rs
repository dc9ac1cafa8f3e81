//! The product of two matrices. This is the only module in this crate with `unsafe`.

/// A matrix inside a slice: the element in row `r` and column `c` is at `r * row_step + c * column_step`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View<'a> {
    pub(crate) data: &'a [f32],
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    pub(crate) row_step: usize,
    pub(crate) column_step: usize,
}

impl<'a> View<'a> {
    /// A matrix whose rows are contiguous.
    pub(crate) fn rows(data: &'a [f32], rows: usize, columns: usize) -> Self {
        Self {
            data,
            rows,
            columns,
            row_step: columns,
            column_step: 1,
        }
    }

    /// Returns the transposed matrix.
    pub(crate) fn turned(self) -> Self {
        Self {
            rows: self.columns,
            columns: self.rows,
            row_step: self.column_step,
            column_step: self.row_step,
            ..self
        }
    }

    /// Returns `true` if every element is inside the slice.
    fn fits(&self) -> bool {
        fits(
            self.data.len(),
            (self.rows, self.row_step),
            (self.columns, self.column_step),
        )
    }
}

/// Adds the product of two matrices to a matrix whose rows begin every `row_step` numbers in `onto`.
///
/// Panics if a matrix exceeds its slice or the sizes do not match: shapes are checked when a model is
/// opened, so either would be a bug in this crate.
#[expect(
    unsafe_code,
    reason = "matrixmultiply takes pointers; every bound is checked here"
)]
pub(crate) fn multiply(left: View<'_>, right: View<'_>, onto: &mut [f32], row_step: usize) {
    let (rows, shared, columns) = (left.rows, left.columns, right.columns);
    assert_eq!(shared, right.rows, "the matrices do not match");
    assert!(
        left.fits() && right.fits(),
        "a matrix reaches out of its slice"
    );
    assert!(
        row_step >= columns && fits(onto.len(), (rows, row_step), (columns, 1)),
        "the product reaches out of its slice"
    );
    if rows == 0 || columns == 0 {
        return;
    }
    #[cfg(target_arch = "x86_64")]
    if rows <= FEW_ROWS
        && left.column_step == 1
        && right.column_step == 1
        && columns >= WIDE
        && std::is_x86_feature_detected!("avx2")
        && std::is_x86_feature_detected!("fma")
    {
        // SAFETY: the processor has the features that the function was compiled for.
        unsafe { multiply_few_rows(left, right, onto, row_step) };
        return;
    }
    // A slice has at most isize::MAX bytes, and the steps of more than one row or column stay inside it.
    let step = |step: usize| isize::try_from(step).unwrap_or(0);
    // SAFETY: `fits` has shown for each of the three that the element in the last row and column, which has
    // the highest index because no step is negative, is inside its slice, so every access is in bounds.
    // `onto` is borrowed mutably, so it overlaps neither input, and because its rows begin at least
    // `columns` apart, no two of its elements are the same. f32 has no invalid bit patterns, and the slices
    // are aligned for it.
    unsafe {
        matrixmultiply::sgemm(
            rows,
            shared,
            columns,
            1.0,
            left.data.as_ptr(),
            step(left.row_step),
            step(left.column_step),
            right.data.as_ptr(),
            step(right.row_step),
            step(right.column_step),
            1.0,
            onto.as_mut_ptr(),
            step(row_step),
            1,
        );
    }
}

/// The most rows for which the other matrix is read in place. With more rows, rearranging it first, as
/// matrixmultiply does, is faster.
#[cfg(any(target_arch = "x86_64", test))]
const FEW_ROWS: usize = 16;

/// The fewest columns that make a row long enough for a loop along it.
#[cfg(target_arch = "x86_64")]
const WIDE: usize = 64;

/// The same for a few rows. The time of a one-line query is mostly spent reading all weights from memory, so
/// they are read once, in order. Four rows of weights at a time are added to two rows of the product.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn multiply_few_rows(left: View<'_>, right: View<'_>, onto: &mut [f32], row_step: usize) {
    let columns = right.columns;
    let weights = |index: usize| {
        let start = index * right.row_step;
        &right.data[start..start + columns]
    };
    let whole = left.columns / 4 * 4;
    for first in (0..whole).step_by(4) {
        let [w0, w1, w2, w3] = [0, 1, 2, 3].map(|next| weights(first + next));
        let factors = |row: usize| {
            let start = row * left.row_step + first;
            [0, 1, 2, 3].map(|next| left.data[start + next])
        };
        // The terms are written out: with arrays, the compiler emits code that is a fifth slower.
        for (row, sums) in (0..left.rows).step_by(2).zip(onto.chunks_mut(2 * row_step)) {
            let [u0, u1, u2, u3] = factors(row);
            if row + 1 < left.rows {
                let [l0, l1, l2, l3] = factors(row + 1);
                let (upper, lower) = sums.split_at_mut(row_step);
                let sums = upper[..columns].iter_mut().zip(&mut lower[..columns]);
                for (((((upper, lower), w0), w1), w2), w3) in sums.zip(w0).zip(w1).zip(w2).zip(w3) {
                    *upper = u1.mul_add(*w1, u0.mul_add(*w0, *upper));
                    *upper = u3.mul_add(*w3, u2.mul_add(*w2, *upper));
                    *lower = l1.mul_add(*w1, l0.mul_add(*w0, *lower));
                    *lower = l3.mul_add(*w3, l2.mul_add(*w2, *lower));
                }
            } else {
                let sums = sums[..columns].iter_mut();
                for ((((sum, w0), w1), w2), w3) in sums.zip(w0).zip(w1).zip(w2).zip(w3) {
                    *sum = u1.mul_add(*w1, u0.mul_add(*w0, *sum));
                    *sum = u3.mul_add(*w3, u2.mul_add(*w2, *sum));
                }
            }
        }
    }
    for index in whole..left.columns {
        for row in 0..left.rows {
            let factor = left.data[row * left.row_step + index];
            let start = row * row_step;
            for (sum, weight) in onto[start..start + columns].iter_mut().zip(weights(index)) {
                *sum = factor.mul_add(*weight, *sum);
            }
        }
    }
}

/// Returns `true` if a matrix with these numbers of rows and columns, and these steps between them, is
/// inside a slice of this length.
fn fits(length: usize, (rows, row_step): (usize, usize), columns: (usize, usize)) -> bool {
    let (columns, column_step) = columns;
    if rows == 0 || columns == 0 {
        return true;
    }
    let last_row = (rows - 1).checked_mul(row_step);
    let last_column = (columns - 1).checked_mul(column_step);
    last_row
        .zip(last_column)
        .and_then(|(row, column)| row.checked_add(column))
        .is_some_and(|last| last < length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn product_is_added_and_gaps_are_untouched() {
        let a = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        let b = [1.0, 0.0, 2.0, 0.0, 1.0, 3.0];
        let mut onto = [0.0, 100.0, -7.0, 0.0, 0.0];
        // a is 2 by 3; b is 2 by 3, transposed.
        multiply(
            View::rows(&a, 2, 3),
            View::rows(&b, 2, 3).turned(),
            &mut onto,
            3,
        );
        for (found, expected) in onto.iter().zip([7.0, 111.0, -7.0, 16.0, 23.0]) {
            assert!((found - expected).abs() < 1e-6, "{onto:?}");
        }
    }

    #[test]
    fn every_shape_agrees_with_the_naive_product() {
        let numbers: Vec<f32> = (0..4000_u16).map(|i| f32::from(i % 97) - 48.0).collect();
        for rows in 1..=FEW_ROWS + 3 {
            for (shared, columns) in [(8, 64), (7, 70), (3, 100), (12, 5)] {
                let (left, right) = (&numbers[5..], &numbers[100..]);
                let step = columns + 3;
                // The last row ends where its last column does.
                let mut onto = vec![1.0; (rows - 1) * step + columns];
                let left = View {
                    row_step: shared + 1,
                    ..View::rows(left, rows, shared)
                };
                let right = View {
                    row_step: columns + 2,
                    ..View::rows(right, shared, columns)
                };
                multiply(left, right, &mut onto, step);
                for (index, found) in onto.iter().enumerate() {
                    let (row, column) = (index / step, index % step);
                    let mut expected = 1.0;
                    for i in 0..if column < columns { shared } else { 0 } {
                        expected += left.data[row * left.row_step + i]
                            * right.data[i * right.row_step + column];
                    }
                    // The sums are integers below 2^24, so they are exact.
                    assert!(
                        (found - expected).abs() < 0.5,
                        "{rows} {shared} {columns}: {index}"
                    );
                }
            }
        }
    }

    #[test]
    #[should_panic(expected = "reaches out of its slice")]
    fn matrix_that_is_too_short_is_refused() {
        let mut onto = [0.0; 4];
        multiply(
            View::rows(&[0.0; 5], 2, 3),
            View::rows(&[0.0; 6], 3, 2),
            &mut onto,
            2,
        );
    }

    #[test]
    #[should_panic(expected = "the product reaches out of its slice")]
    fn product_that_is_too_short_is_refused() {
        let mut onto = [0.0; 3];
        multiply(
            View::rows(&[0.0; 6], 2, 3),
            View::rows(&[0.0; 6], 3, 2),
            &mut onto,
            2,
        );
    }

    #[test]
    #[should_panic(expected = "reaches out of its slice")]
    fn steps_that_overflow_are_refused() {
        let wild = View {
            data: &[0.0; 4],
            rows: 3,
            columns: 2,
            row_step: usize::MAX,
            column_step: 1,
        };
        multiply(wild, View::rows(&[0.0; 4], 2, 2), &mut [0.0; 6], 2);
    }
}
