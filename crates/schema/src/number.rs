//! Decimal numbers of any size, compared exactly.

use std::cmp::Ordering;

/// A number as its digits and where they stand: `digits × 10^exponent`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Decimal {
    negative: bool,
    /// Without zeros at either end; none for zero.
    digits: Vec<u8>,
    exponent: i64,
}

/// Exponents beyond this are held for this: such numbers are as good as endless.
const EXPONENT: i64 = 1_000_000_000_000;

/// How many zeros are written out to divide a number.
const ZEROS: i64 = 4096;

impl Decimal {
    /// Reads a number that is spelled as in JSON.
    pub(crate) fn read(text: &str) -> Self {
        let (negative, text) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, read_exponent(exponent)),
            None => (text, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = whole.bytes().chain(fraction.bytes());
        let mut digits: Vec<u8> = digits.map(|byte| byte.wrapping_sub(b'0').min(9)).collect();
        let mut exponent = exponent - i64::try_from(fraction.len()).unwrap_or(EXPONENT);
        while digits.last() == Some(&0) {
            digits.pop();
            exponent += 1;
        }
        let leading = digits.iter().take_while(|digit| **digit == 0).count();
        digits.drain(..leading);
        if digits.is_empty() {
            return Self {
                negative: false,
                digits,
                exponent: 0,
            };
        }
        Self {
            negative,
            digits,
            exponent,
        }
    }

    pub(crate) fn is_integer(&self) -> bool {
        self.exponent >= 0
    }

    pub(crate) fn write_canonical(&self, out: &mut String) {
        out.push(if self.negative { '-' } else { '+' });
        out.extend(self.digits.iter().map(|digit| char::from(b'0' + digit)));
        out.push('e');
        out.push_str(&self.exponent.to_string());
    }

    /// Whether this is a multiple of the other; `None` if that is too much work to tell, or if the
    /// other one is no step at all.
    pub(crate) fn is_multiple_of(&self, step: &Self) -> Option<bool> {
        if step.digits.is_empty() || step.negative {
            return None;
        }
        if self.digits.is_empty() {
            return Some(true);
        }
        let mut divisor: u64 = 0;
        for digit in &step.digits {
            divisor = divisor.checked_mul(10)?.checked_add(u64::from(*digit))?;
        }
        let shift = self.exponent - step.exponent;
        if shift < 0 {
            let power = 10_u64.checked_pow(u32::try_from(-shift).ok()?)?;
            divisor = divisor.checked_mul(power)?;
        } else if shift > ZEROS {
            return None;
        }
        let zeros = std::iter::repeat_n(&0, usize::try_from(shift).unwrap_or(0));
        let rest = self.digits.iter().chain(zeros).fold(0_u128, |rest, digit| {
            (rest * 10 + u128::from(*digit)) % u128::from(divisor)
        });
        Some(rest == 0)
    }

    /// How large the number is, its sign aside.
    fn magnitude(&self, other: &Self) -> Ordering {
        let places = |number: &Self| {
            let digits = i64::try_from(number.digits.len()).unwrap_or(EXPONENT);
            (!number.digits.is_empty()).then_some(digits + number.exponent)
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

fn read_exponent(text: &str) -> i64 {
    let down = text.starts_with('-');
    text.parse::<i64>()
        .unwrap_or(if down { -EXPONENT } else { EXPONENT })
        .clamp(-EXPONENT, EXPONENT)
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
            prop_assert_eq!(Decimal::read(&spelled(a, p)).cmp(&Decimal::read(&spelled(b, q))), order);
        }

        #[test]
        fn multiples_are_those_of_whole_numbers(a in -100_000_i64..100_000, b in 1_i64..500, shift in -6_i32..6) {
            let multiple = Decimal::read(&format!("{a}e{shift}"))
                .is_multiple_of(&Decimal::read(&format!("{b}e{shift}")));
            prop_assert_eq!(multiple, Some(a % b == 0));
        }
    }

    #[test]
    fn large_and_odd_numbers() {
        let read = Decimal::read;
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
        assert_eq!(
            read("1e99999999999999999999").is_multiple_of(&read("3")),
            None
        );
        assert_eq!(
            read("5").is_multiple_of(&read("1e-99999999999999999999")),
            None
        );
        assert!(read("1e-99999999999999999999") > read("0"));
    }
}
