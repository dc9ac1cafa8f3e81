//! Vector arithmetic, written so that the compiler emits SIMD code.

/// The number of partial sums, because the compiler may not reorder additions on its own.
const LANES: usize = 8;

/// Scales the vector to length 1. Returns `false` and leaves it unchanged if it has no direction.
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

/// Returns the sum of a function over all values.
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
    fn vector_without_direction_is_not_scaled() {
        assert!(!to_unit(&mut [0.0; 3]));
        assert!(!to_unit(&mut [f32::NAN, 1.0]));
        let mut vector = [3.0, 4.0];
        assert!(to_unit(&mut vector));
        assert!((vector[0] - 0.6).abs() < 1e-6 && (vector[1] - 0.8).abs() < 1e-6);
    }
}
