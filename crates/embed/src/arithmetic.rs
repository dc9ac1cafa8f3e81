//! Arithmetic on vectors, written so that the compiler makes vector code of it.

/// Sums are kept in so many lanes, because the compiler may not change the order of additions by itself.
const LANES: usize = 8;

/// Scales the vector to length 1, unless it has no direction.
pub(crate) fn to_unit(vector: &mut [f32]) -> bool {
    let length = sum(vector, |x| x * x).sqrt();
    let sound = length.is_finite() && length > 0.0;
    if sound {
        for x in vector {
            *x /= length;
        }
    }
    sound
}

/// The sum of the results of a function.
pub(crate) fn sum(values: &[f32], of: impl Fn(f32) -> f32) -> f32 {
    let (chunks, rest) = values.as_chunks::<LANES>();
    let mut lanes = [0.0; LANES];
    for chunk in chunks {
        for (lane, x) in lanes.iter_mut().zip(chunk) {
            *lane += of(*x);
        }
    }
    lanes.iter().sum::<f32>() + rest.iter().map(|x| of(*x)).sum::<f32>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vector_without_direction_stays_as_it_is() {
        assert!(!to_unit(&mut [0.0; 3]));
        assert!(!to_unit(&mut [f32::NAN, 1.0]));
        let mut vector = [3.0, 4.0];
        assert!(to_unit(&mut vector));
        assert!((vector[0] - 0.6).abs() < 1e-6 && (vector[1] - 0.8).abs() < 1e-6);
    }
}
