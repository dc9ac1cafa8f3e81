//! [`Fingerprint`]: the hash of a definition.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use switchboard_text::hex;

/// The hash (SHA-256) of a definition's content. It is written as 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint([u8; 32]);

/// The error for a text that is not a [`Fingerprint`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a fingerprint (64 hexadecimal digits)")]
pub struct BadFingerprint(String);

impl Fingerprint {
    /// The SHA-256 of these bytes.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        Self::of_all([bytes])
    }

    /// The SHA-256 of these parts, concatenated.
    pub(crate) fn of_all<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let hash = parts.into_iter().fold(Sha256::new(), Sha256::chain_update);
        Self(hash.finalize().into())
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(&self.0))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Fingerprint {
    type Err = BadFingerprint;

    fn from_str(text: &str) -> Result<Self, BadFingerprint> {
        let read = || {
            let (pairs, []) = text.as_bytes().as_chunks::<2>() else {
                return None;
            };
            let mut bytes = [0; 32];
            if pairs.len() != bytes.len() {
                return None;
            }
            for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
                *byte = digit(*high)? << 4 | digit(*low)?;
            }
            Some(Self(bytes))
        };
        read().ok_or_else(|| BadFingerprint(text.chars().take(80).collect()))
    }
}

impl Serialize for Fingerprint {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Fingerprint {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

fn digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    }
}
