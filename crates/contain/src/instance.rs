//! The origin of a process: a gateway instance, and a token for every start.

use std::{fmt, fs::File, io, io::Read, str::FromStr};

/// The environment variable that every contained process carries.
pub const MARKER: &str = "SWITCHBOARD_CONTAINED";

/// The name of one gateway instance, stable across its runs and unique.
///
/// It becomes part of container names and labels, so it is 1 to 64 letters, digits, `_`, `.` and `-`, and
/// starts with a letter or a digit.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Instance(String);

impl Instance {
    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Instance {
    type Err = InvalidInstance;

    fn from_str(name: &str) -> Result<Self, InvalidInstance> {
        let fits = name.len() <= 64
            && name.starts_with(|first: char| first.is_ascii_alphanumeric())
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte));
        if fits {
            Ok(Self(name.to_owned()))
        } else {
            Err(InvalidInstance {
                name: name.chars().take(80).collect(),
            })
        }
    }
}

impl fmt::Display for Instance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A name that is not valid for an instance.
#[derive(Clone, Debug, thiserror::Error)]
#[error(
    "`{name}` is not a valid instance name: use 1 to 64 letters, digits, `_`, `.` and `-`, and \
     start with a letter or a digit"
)]
pub struct InvalidInstance {
    name: String,
}

/// The unique ID of a start: 32 hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Token(String);

impl Token {
    pub(crate) fn random() -> io::Result<Self> {
        let mut bytes = [0; 16];
        File::open("/dev/urandom")?.read_exact(&mut bytes)?;
        Ok(Self(format!("{:032x}", u128::from_ne_bytes(bytes))))
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        let fits = text.len() == 32
            && text
                .bytes()
                .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        fits.then(|| Self(text.to_owned()))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// The value of the marker of one start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Marker {
    pub(crate) instance: Instance,
    pub(crate) token: Token,
}

impl Marker {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (instance, token) = text.split_once(':')?;
        Some(Self {
            instance: instance.parse().ok()?,
            token: Token::parse(token)?,
        })
    }

    /// The marker as an entry of an environment.
    pub(crate) fn entry(&self) -> String {
        format!("{MARKER}={self}")
    }
}

impl fmt::Display for Marker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.instance, self.token.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instance_names_are_valid_for_every_engine() {
        for good in ["a", "7", "main", "a-b_c.d", &"x".repeat(64)] {
            assert_eq!(good.parse::<Instance>().unwrap().as_str(), good);
        }
        for bad in [
            "",
            "-a",
            ".a",
            "a:b",
            "a b",
            "a/b",
            "ä",
            "a\n",
            &"x".repeat(65),
        ] {
            assert!(bad.parse::<Instance>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn marker_survives_a_round_trip() {
        let marker = Marker {
            instance: "main".parse().unwrap(),
            token: Token::random().unwrap(),
        };
        assert_eq!(Marker::parse(&marker.to_string()), Some(marker.clone()));
        assert_ne!(marker.token, Token::random().unwrap());
        for bad in ["", "main", "main:", "main:12", ":0123", "a b:0123"] {
            assert_eq!(Marker::parse(bad), None, "{bad}");
        }
    }
}
