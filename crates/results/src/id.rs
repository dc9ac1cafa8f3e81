//! [`ResultId`]: the unguessable ID of a kept result.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The ID of a kept result: 128 random bits and the expiry time.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ResultId(String);

/// Digits and letters, without the letters that are easily confused with others.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

const PREFIX: &str = "r_";
const TIME_LETTERS: usize = 8;
const RANDOM_LETTERS: usize = 26;

impl ResultId {
    /// Creates a new ID. `None` if the system provides no random numbers.
    pub(crate) fn new(expires: SystemTime) -> Option<Self> {
        let mut random = [0_u8; 16];
        getrandom::fill(&mut random).ok()?;
        let mut text = String::from(PREFIX);
        write_base32(&mut text, u128::from(seconds(expires)), TIME_LETTERS);
        write_base32(&mut text, u128::from_le_bytes(random), RANDOM_LETTERS);
        Some(Self(text))
    }

    /// Parses an ID that a client sent. `None` if the text is not an ID.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim().to_ascii_lowercase();
        let letters = text.strip_prefix(PREFIX)?;
        let right = letters.len() == TIME_LETTERS + RANDOM_LETTERS
            && letters.bytes().all(|byte| ALPHABET.contains(&byte));
        right.then_some(Self(text))
    }

    /// The ID as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The latest time until which the result is kept, in whole seconds.
    pub fn expires(&self) -> SystemTime {
        let letters = self.0[PREFIX.len()..].bytes().take(TIME_LETTERS);
        let seconds = letters.fold(0_u64, |seconds, letter| {
            let digit = ALPHABET.iter().position(|known| *known == letter);
            seconds * 32 + digit.unwrap_or(0) as u64
        });
        UNIX_EPOCH + Duration::from_secs(seconds)
    }
}

impl fmt::Display for ResultId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs()
}

fn write_base32(out: &mut String, value: u128, letters: usize) {
    for place in (0..letters).rev() {
        let digit = (value >> (5 * place)) & 31;
        out.push(char::from(ALPHABET[usize::try_from(digit).unwrap_or(0)]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_unique_and_parse_back() {
        let expires = UNIX_EPOCH + Duration::from_secs(1_800_000_123);
        let id = ResultId::new(expires).unwrap();
        assert_ne!(ResultId::new(expires).unwrap(), id);
        assert_eq!(id.expires(), expires);
        assert_eq!(
            ResultId::parse(&format!(" {} ", id.as_str().to_uppercase())),
            Some(id.clone())
        );
        for wrong in [
            "",
            "r_",
            "x",
            "r_é",
            &id.as_str()[1..],
            &format!("{id}0"),
            &id.as_str().replace('r', "../"),
        ] {
            assert_eq!(ResultId::parse(wrong), None, "{wrong}");
        }
    }
}
