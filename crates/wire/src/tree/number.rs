//! Decimal numbers of any size, with exact comparison.

use std::cmp::Ordering;

/// A number as its digits and their scale: `digits × 10^exponent`.
#[derive(Debug, PartialEq, Eq)]
pub struct Decimal {
    negative: bool,
    /// The digits in ASCII, without leading and trailing zeros; empty for zero.
    digits: String,
    /// Saturates at the bounds of `i64`. A number with such an exponent is practically infinite, or zero.
    exponent: i64,
}

/// The most zeros that are appended to divide a number.
const ZEROS: i64 = 4096;

impl Decimal {
    /// Reads a number in JSON syntax.
    pub fn read(spelled: &str) -> Self {
        let unsigned = spelled.strip_prefix('-').unwrap_or(spelled);
        let (mantissa, power) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = [whole, fraction].concat();
        let kept = digits.trim_end_matches('0');
        let significant = kept.trim_start_matches('0');
        if significant.is_empty() {
            return Self {
                negative: false,
                digits: String::new(),
                exponent: 0,
            };
        }
        // An exponent beyond 64 bits saturates, so that it differs from all others.
        let beyond = if power.starts_with('-') {
            i64::MIN
        } else {
            i64::MAX
        };
        let exponent = power.parse::<i64>().ok().and_then(|power| {
            power
                .checked_add(length(&digits[kept.len()..]))?
                .checked_sub(length(fraction))
        });
        Self {
            negative: unsigned.len() < spelled.len(),
            digits: significant.to_owned(),
            exponent: exponent.unwrap_or(beyond),
        }
    }

    /// Returns `true` if the number has no fraction.
    pub fn is_integer(&self) -> bool {
        self.exponent >= 0
    }

    /// Tests if this is a multiple of `step`; `None` if that is too much work, or if `step` is not a positive
    /// number.
    pub fn is_multiple_of(&self, step: &Self) -> Option<bool> {
        if step.digits.is_empty() || step.negative {
            return None;
        }
        if self.digits.is_empty() {
            return Some(true);
        }
        let mut divisor: u64 = step.digits.parse().ok()?;
        let shift = self.exponent.saturating_sub(step.exponent);
        if shift < 0 {
            let power = 10_u64.checked_pow(u32::try_from(shift.unsigned_abs()).ok()?)?;
            divisor = divisor.checked_mul(power)?;
        } else if shift > ZEROS {
            return None;
        }
        let zeros = std::iter::repeat_n(b'0', usize::try_from(shift).unwrap_or(0));
        let rest = self
            .digits
            .bytes()
            .chain(zeros)
            .fold(0_u128, |rest, digit| {
                (rest * 10 + u128::from(digit.saturating_sub(b'0'))) % u128::from(divisor)
            });
        Some(rest == 0)
    }

    /// Compares the absolute values.
    fn magnitude(&self, other: &Self) -> Ordering {
        let places = |number: &Self| {
            let digits = length(&number.digits);
            (digits > 0).then(|| digits.saturating_add(number.exponent))
        };
        places(self)
            .cmp(&places(other))
            .then_with(|| self.digits.cmp(&other.digits))
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.negative, other.negative) {
            (false, true) => Ordering::Greater,
            (true, false) => Ordering::Less,
            (false, false) => self.magnitude(other),
            (true, true) => other.magnitude(self),
        }
    }
}

/// Returns the canonical spelling of a number: `1.50e2` is `15e1`, and zero is `0`. A number with an exponent
/// beyond 64 bits keeps its spelling.
pub fn canonical_number(spelled: &str) -> String {
    let number = Decimal::read(spelled);
    let sign = if number.negative { "-" } else { "" };
    match number.exponent {
        _ if number.digits.is_empty() => "0".to_owned(),
        i64::MIN | i64::MAX => spelled.to_owned(),
        exponent => format!("{sign}{}e{exponent}", number.digits),
    }
}

fn length(digits: &str) -> i64 {
    i64::try_from(digits.len()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn order_is_that_of_numbers(a in -1000_i64..1000, b in -1000_i64..1000, p in 0_u32..3, q in 0_u32..3) {
            let spelled = |n: i64, places: u32| {
                let power = 10_i64.pow(places);
                let (whole, rest) = (n.abs() / power, n.abs() % power);
                let sign = if n < 0 { "-" } else { "" };
                let width = places as usize;
                if places == 0 { format!("{sign}{whole}") } else { format!("{sign}{whole}.{rest:0width$}") }
            };
            let order = (a * 10_i64.pow(2 - p)).cmp(&(b * 10_i64.pow(2 - q)));
            let (a, b) = (spelled(a, p), spelled(b, q));
            prop_assert_eq!(Decimal::read(&a).cmp(&Decimal::read(&b)), order);
            prop_assert_eq!(canonical_number(&a) == canonical_number(&b), order.is_eq());
        }

        #[test]
        fn multiples_are_those_of_whole_numbers(a in -100_000_i64..100_000, b in 1_i64..500, shift in -6_i32..6) {
            let multiple = Decimal::read(&format!("{a}e{shift}"))
                .is_multiple_of(&Decimal::read(&format!("{b}e{shift}")));
            prop_assert_eq!(multiple, Some(a % b == 0));
        }

        #[test]
        fn canonical_spelling_is_the_same_number(spelled in "-?(0|[1-9][0-9]{0,25})(\\.[0-9]{1,9})?([eE][+-]?[0-9]{1,22})?") {
            let canonical = canonical_number(&spelled);
            prop_assert_eq!(Decimal::read(&canonical), Decimal::read(&spelled));
            prop_assert_eq!(canonical_number(&canonical), canonical);
        }
    }

    #[test]
    fn powers_beyond_64_bits_are_told_apart() {
        for (one, other) in [
            ("1.5e99999999999999999999", "1.5e88888888888888888888"),
            ("100e-99999999999999999999", "100e-88888888888888888888"),
            ("1.5e9223372036854775807", "15e99999999999999999999"),
        ] {
            assert_ne!(canonical_number(one), canonical_number(other));
        }
    }

    #[test]
    fn large_and_odd_numbers() {
        let read = Decimal::read;
        let huge = "1e99999999999999999999";
        let tiny = "1e-99999999999999999999";
        assert!(read("1e400") > read("1e399"));
        assert!(read("-1e400") < read("0"));
        assert!(read("12345678901234567890123") > read("12345678901234567890122"));
        assert!(
            read("1.0").is_integer() && read("1e400").is_integer() && read("-0.0").is_integer()
        );
        assert!(!read("1.5").is_integer() && !read("1e-1").is_integer());
        assert_eq!(read("0.3").is_multiple_of(&read("0.1")), Some(true));
        assert_eq!(read("1e20").is_multiple_of(&read("7")), Some(false));
        assert_eq!(read("5").is_multiple_of(&read("0")), None);
        assert_eq!(read(huge).is_multiple_of(&read("3")), None);
        assert_eq!(read("5").is_multiple_of(&read(tiny)), None);
        assert_eq!(read(tiny).is_multiple_of(&read(huge)), None);
        assert!(read(tiny) > read("0") && read(huge) > read("1e400"));
        assert_eq!(canonical_number(huge), huge);
        assert_eq!(canonical_number("0e99999999999999999999"), "0");
    }
}
