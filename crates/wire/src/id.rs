//! Request ids, kept as they were spelled.

use std::fmt;

use crate::Raw;

/// The id of a request: a JSON string or integer, kept as its sender spelled it.
///
/// Two ids are equal if they are spelled alike: `1` is not `"1"`. A response carries the id of its
/// request byte for byte.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Id(Raw);

impl Id {
    /// Makes an id of this value, if it is a string or an integer.
    pub fn from_raw(raw: Raw) -> Option<Self> {
        let text = raw.as_bytes();
        let digits = text.strip_prefix(b"-").unwrap_or(text);
        let valid = text.first() == Some(&b'"')
            || (!digits.is_empty() && digits.iter().all(u8::is_ascii_digit));
        valid.then_some(Self(raw))
    }

    /// The id as JSON.
    pub fn raw(&self) -> &Raw {
        &self.0
    }

    /// Copies the id into its own buffer, so that it does not keep a larger one in memory.
    #[must_use]
    pub fn detached(&self) -> Self {
        Self(self.0.detached())
    }

    /// Returns the id as a number, if it is one that fits into 64 bits.
    pub fn as_u64(&self) -> Option<u64> {
        // A JSON number has no leading zero and no plus sign, so a number that parses is spelled
        // canonically.
        let text = std::str::from_utf8(self.0.as_bytes()).ok()?;
        text.as_bytes()
            .first()?
            .is_ascii_digit()
            .then(|| text.parse().ok())?
    }
}

impl From<u64> for Id {
    fn from(number: u64) -> Self {
        Self(Raw::number(number))
    }
}

impl From<&str> for Id {
    fn from(text: &str) -> Self {
        Self(Raw::string(text))
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_strings_and_integers_are_ids() {
        let id = |text: &'static str| Id::from_raw(Raw::parse(text).unwrap());
        for good in ["0", "-1", "12345678901234567890123", "\"\"", "\"a\\u0062\""] {
            assert_eq!(id(good).unwrap().raw().as_str(), good);
        }
        for bad in ["null", "true", "1.0", "1e3", "{}", "[1]"] {
            assert!(id(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn a_number_and_its_text_differ() {
        assert_eq!(Id::from(7).as_u64(), Some(7));
        assert_eq!(Id::from("7").as_u64(), None);
        assert_ne!(Id::from(7), Id::from("7"));
    }
}
