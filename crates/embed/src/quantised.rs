//! A vector with one byte per number.

/// A vector with one byte per number, for storage: a quarter of the size.
///
/// The dot product of two unit vectors is off by a few thousandths at most.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Quantised {
    /// Factor by which the numbers are multiplied to restore the vector.
    pub scale: f32,
    /// The numbers, from -127 to 127.
    pub numbers: Vec<i8>,
}

impl Quantised {
    /// Quantises a vector. A vector with infinite or NaN elements becomes all zeros: it has no
    /// direction.
    pub fn from_vector(vector: &[f32]) -> Self {
        let mut numbers = Vec::with_capacity(vector.len());
        let scale = quantise(vector, |number| numbers.push(number));
        Self { scale, numbers }
    }

    /// Restores the vector.
    pub fn to_vector(&self) -> Vec<f32> {
        let numbers = self.numbers.iter();
        numbers
            .map(|number| self.scale * f32::from(*number))
            .collect()
    }
}

/// Quantises numbers to bytes, and returns the factor that restores them.
pub(crate) fn quantise(vector: &[f32], mut push: impl FnMut(i8)) -> f32 {
    let most = vector.iter().fold(0.0_f32, |most, x| most.max(x.abs()));
    let is_sound = vector.iter().all(|x| x.is_finite());
    let scale = if is_sound { most / 127.0 } else { 0.0 };
    for x in vector {
        // A vector of zeros or tiny numbers, or with an element that is not finite, has the scale 0.
        let number = if scale > 0.0 { x / scale } else { 0.0 };
        #[expect(
            clippy::cast_possible_truncation,
            reason = "the quotient is -127 to 127"
        )]
        push(number.round() as i8);
    }
    scale
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vector_round_trips_within_half_a_step() {
        let vector = [0.5, -0.25, 0.1, 0.0, -0.5];
        let bytes = Quantised::from_vector(&vector);
        assert_eq!(bytes.numbers, [127, -64, 25, 0, -127]);
        for (back, number) in bytes.to_vector().iter().zip(vector) {
            assert!(
                (back - number).abs() <= bytes.scale / 2.0,
                "{back} {number}"
            );
        }
    }

    #[test]
    fn vector_without_direction_becomes_zeros() {
        for vector in [
            [0.0; 3],
            [f32::NAN, 1.0, 0.0],
            [f32::INFINITY, 1.0, 0.0],
            [0.0, f32::NEG_INFINITY, 0.0],
            [f32::from_bits(1), 0.0, 0.0],
        ] {
            let bytes = Quantised::from_vector(&vector);
            assert_eq!(bytes.to_vector(), [0.0; 3], "{vector:?}");
        }
    }
}
