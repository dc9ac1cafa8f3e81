//! The steps of the network other than products, written so that the compiler emits SIMD code.

use crate::arithmetic::sum;

/// Normalises every row to mean 0 and variance 1, then scales and shifts it.
pub(crate) fn normalise_rows(rows: &mut [f32], scale: &[f32], shift: &[f32], epsilon: f32) {
    for row in rows.chunks_exact_mut(scale.len()) {
        let length = count(row.len());
        let mean = sum(row, |x| x) / length;
        let variance = sum(row, |x| (x - mean) * (x - mean)) / length;
        let factor = 1.0 / (variance + epsilon).sqrt();
        for ((x, scale), shift) in row.iter_mut().zip(scale).zip(shift) {
            *x = (*x - mean) * factor * scale + shift;
        }
    }
}

/// Replaces every row with the softmax of its numbers times the factor.
pub(crate) fn soften_rows(rows: &mut [f32], width: usize, factor: f32) {
    for row in rows.chunks_exact_mut(width) {
        let most = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        for x in row.iter_mut() {
            *x = exp((*x - most) * factor);
        }
        let total = sum(row, |x| x);
        for x in row.iter_mut() {
            *x /= total;
        }
    }
}

/// Applies the activation of the inner layers, GELU in its exact form: x times the normal distribution
/// function at x.
pub(crate) fn gelu(values: &mut [f32]) {
    for x in values {
        *x = 0.5 * *x * (1.0 + erf(*x * std::f32::consts::FRAC_1_SQRT_2));
    }
}

/// The error function, as a quotient of polynomials that is accurate to 1e-6 everywhere (a test measures
/// it).
fn erf(x: f32) -> f32 {
    let x = x.clamp(-4.0, 4.0);
    let square = x * x;
    let above = [
        2.770_681_4e-8,
        -2.101_024e-6,
        -5.692_506_4e-5,
        -7.349_906_3e-4,
        -2.954_6e-3,
        -1.609_603_3e-2,
    ]
    .into_iter()
    .fold(-2.726_142_3e-10, |sum: f32, c| sum * square + c);
    let below = [
        -2.133_740_6e-4,
        -1.682_827e-3,
        -7.373_329_3e-3,
        -1.426_473_9e-2,
    ]
    .into_iter()
    .fold(-1.456_607_2e-5, |sum: f32, c| sum * square + c);
    x * above / below
}

/// Returns e to the power of a number that is at most 0. Below -87, the result is practically 0.
fn exp(x: f32) -> f32 {
    // e^x = 2^n * e^r, where n is an integer and |r| <= ln(2) / 2. Adding 1.5 * 2^23 rounds to an integer
    // and leaves it in the low bits.
    const ROUNDING: f32 = 12_582_912.0;
    let x = x.max(-87.0);
    let shifted = x * std::f32::consts::LOG2_E + ROUNDING;
    let n = shifted - ROUNDING;
    let r = x - n * 0.693_359_4 + n * 2.121_944_4e-4;
    let series = [1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0]
        .into_iter()
        .fold(1.0 / 720.0, |sum: f32, c| sum * r + c);
    let power = (shifted.to_bits() << 23).wrapping_add(127 << 23);
    series * f32::from_bits(power)
}

#[expect(
    clippy::cast_precision_loss,
    reason = "lengths of vectors and texts are far below 2^24"
)]
pub(crate) fn count(n: usize) -> f32 {
    n as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The error function, computed from its series in double precision.
    fn erf_exact(x: f64) -> f64 {
        let mut term = x;
        let mut total = x;
        let mut n = 0.0;
        while term.abs() > 1e-18 {
            n += 1.0;
            term *= -x * x / n;
            total += term / (2.0 * n + 1.0);
        }
        total * std::f64::consts::FRAC_2_SQRT_PI
    }

    #[test]
    fn error_function_is_accurate_to_a_millionth() {
        for step in -5000..=5000_i16 {
            let x = f32::from(step) / 1000.0;
            let off = (f64::from(erf(x)) - erf_exact(f64::from(x))).abs();
            assert!(off < 1e-6, "erf({x}) is off by {off:e}");
        }
        for x in [9.0, 1e30, f32::INFINITY] {
            assert!((erf(x) - 1.0).abs() < 1e-6 && (erf(-x) + 1.0).abs() < 1e-6);
        }
    }

    #[test]
    fn exponential_is_accurate_to_a_millionth() {
        for step in 0..=8700_u16 {
            let x = -f32::from(step) / 100.0;
            let exact = f64::from(x).exp();
            let off = (f64::from(exp(x)) / exact - 1.0).abs();
            assert!(off < 1e-6, "exp({x}) is off by a factor of {off:e}");
        }
        for x in [-88.0, -1e10, f32::NEG_INFINITY] {
            assert!((0.0..1e-37).contains(&exp(x)), "exp({x}) = {:e}", exp(x));
        }
    }

    #[test]
    fn softmax_sums_to_one_for_large_numbers() {
        let mut row = [1e30, 1e30, -1e30, 0.0, 1.0, 2.0, 3.0, 4.0];
        soften_rows(&mut row, 4, 0.5);
        assert!(row[..2].iter().all(|x| (x - 0.5).abs() < 1e-6), "{row:?}");
        assert!(row[2..4].iter().all(|x| *x < 1e-6), "{row:?}");
        assert!((row[4..].iter().sum::<f32>() - 1.0).abs() < 1e-6);
        assert!(row[7] > row[6]);
    }
}
