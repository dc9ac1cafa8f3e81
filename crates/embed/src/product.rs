//! The product of two matrices. The one place in this crate with `unsafe`.

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
    /// A matrix whose rows lie one after the other.
    pub(crate) fn rows(data: &'a [f32], rows: usize, columns: usize) -> Self {
        Self {
            data,
            rows,
            columns,
            row_step: columns,
            column_step: 1,
        }
    }

    /// The same numbers with rows and columns exchanged.
    pub(crate) fn turned(self) -> Self {
        Self {
            rows: self.columns,
            columns: self.rows,
            row_step: self.column_step,
            column_step: self.row_step,
            ..self
        }
    }

    /// Whether every element is inside the slice.
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
/// Panics if a matrix reaches out of its slice or their sizes do not match: the shapes are checked when a
/// model is opened, so that would be a mistake in this crate.
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
    // A slice has at most isize::MAX bytes, and the steps of more than one row or column stay inside of it.
    let step = |step: usize| isize::try_from(step).unwrap_or(0);
    // SAFETY: `fits` has shown for each of the three that the element in the last row and column, which has
    // the highest index as no step is negative, lies inside its slice, so every access is in bounds. `onto`
    // is borrowed mutably, so it overlaps neither input, and as its rows begin at least `columns` apart no two of
    // its elements are the same. f32 has no invalid bit patterns, and the slices are aligned for it.
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

/// Whether a matrix of so many rows and columns, so far apart, lies inside a slice of that length.
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
    fn adds_the_product_and_leaves_the_gaps_alone() {
        let a = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        let b = [1.0, 0.0, 2.0, 0.0, 1.0, 3.0];
        let mut onto = [0.0, 100.0, -7.0, 0.0, 0.0];
        // a is 2 by 3, b is 2 by 3 and turned.
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
    #[should_panic(expected = "reaches out of its slice")]
    fn a_matrix_that_is_too_short_is_refused() {
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
    fn a_product_that_is_too_short_is_refused() {
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
