//! Non-negative integers in JSON.

use std::fmt;

use serde::{Deserialize, Deserializer, de::Visitor};

/// A non-negative integer. `5.0` is one too: in JSON, and to schemas, it is the same as `5`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Count(usize);

impl Count {
    pub(crate) const fn get(self) -> usize {
        self.0
    }
}

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Counting;
        impl Visitor<'_> for Counting {
            type Value = Count;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a whole number that is not negative")
            }

            fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<Count, E> {
                Ok(Count(usize::try_from(number).unwrap_or(usize::MAX)))
            }

            fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<Count, E> {
                let unexpected = serde::de::Unexpected::Signed(number);
                let number =
                    u64::try_from(number).map_err(|_| E::invalid_value(unexpected, &self))?;
                self.visit_u64(number)
            }

            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "it is whole and not negative, and what is too large becomes the largest"
            )]
            fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<Count, E> {
                if number < 0.0 || number.fract() != 0.0 {
                    let unexpected = serde::de::Unexpected::Float(number);
                    return Err(E::invalid_value(unexpected, &self));
                }
                Ok(Count(number as usize))
            }
        }
        from.deserialize_any(Counting)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_read_in_any_spelling() {
        let read = |text: &str| serde_json::from_str(text).map(Count::get).ok();
        assert_eq!(read("5"), Some(5));
        assert_eq!(read("5.0"), Some(5));
        assert_eq!(read("5e1"), Some(50));
        assert_eq!(read("1e300"), Some(usize::MAX));
        for wrong in ["-1", "-1.0", "1.5", "\"5\"", "null", "true"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
