//! A vector with each number in a byte.

/// A vector with each number in a byte, to be kept: a quarter of its size.
///
/// The product of two unit vectors is off by a few thousandths at most.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Quantised {
    /// The factor that makes the vector of the numbers again.
    pub scale: f32,
    /// The numbers, from -127 to 127.
    pub numbers: Vec<i8>,
}

impl Quantised {
    /// The vector in bytes. One in which something is infinite or no number becomes all zeros: it has no
    /// direction.
    pub fn from_vector(vector: &[f32]) -> Self {
        let mut numbers = Vec::with_capacity(vector.len());
        let scale = quantise(vector, |number| numbers.push(number));
        Self { scale, numbers }
    }

    /// The vector again.
    pub fn to_vector(&self) -> Vec<f32> {
        let numbers = self.numbers.iter();
        numbers
            .map(|number| self.scale * f32::from(*number))
            .collect()
    }
}

/// Makes bytes of numbers, and gives the factor that makes numbers of them again.
pub(crate) fn quantise(vector: &[f32], mut push: impl FnMut(i8)) -> f32 {
    let most = vector.iter().fold(0.0_f32, |most, x| most.max(x.abs()));
    let is_sound = vector.iter().all(|x| x.is_finite());
    let scale = if is_sound { most / 127.0 } else { 0.0 };
    for x in vector {
        // Nothing but zeros has the scale 0, and what is no number becomes 0: the conversion saturates.
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
    fn a_vector_comes_back_but_for_half_a_step() {
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
    fn what_has_no_direction_becomes_zeros() {
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
