//! Rights: the kinds of things that a token may permit.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

/// A kind of things that a token may permit. None implies another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Right {
    /// To use tools, prompts and resources over MCP.
    Call,
    /// To see and decide approval requests, and to review servers.
    Approve,
    /// To see and change everything else: servers, rules, tokens, configuration.
    Admin,
}

impl Right {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Call, Self::Approve, Self::Admin];

    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Call => "call",
            Self::Approve => "approve",
            Self::Admin => "admin",
        }
    }

    /// The right with this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|right| right.as_str() == name)
    }
}

impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A set of rights.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rights(u8);

impl Rights {
    /// Every right.
    pub const ALL: Self = Self(0b111);
    /// No right.
    pub const NONE: Self = Self(0);

    /// Tests if a right is in the set.
    pub const fn has(self, right: Right) -> bool {
        self.0 & 1 << right as u8 != 0
    }

    /// Returns `true` if no right is in the set.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The rights in the set.
    pub fn iter(self) -> impl Iterator<Item = Right> {
        Right::ALL.into_iter().filter(move |right| self.has(*right))
    }
}

impl FromIterator<Right> for Rights {
    fn from_iter<T: IntoIterator<Item = Right>>(rights: T) -> Self {
        let bits = rights.into_iter().map(|right| 1 << right as u8);
        Self(bits.fold(0, |all, bit: u8| all | bit))
    }
}

impl Serialize for Rights {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self.iter().map(Right::as_str))
    }
}

impl<'de> Deserialize<'de> for Rights {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let names = Vec::<String>::deserialize(from)?;
        let right = |name: &String| {
            Right::parse(name).ok_or_else(|| D::Error::custom(format!("unknown right `{name}`")))
        };
        names.iter().map(right).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn set_has_what_it_was_made_of() {
        for right in Right::ALL {
            let one = Rights::from_iter([right]);
            assert_eq!(one.iter().collect::<Vec<_>>(), [right]);
            assert!(Rights::ALL.has(right) && !Rights::NONE.has(right));
        }
        assert_eq!(Rights::from_iter(Right::ALL), Rights::ALL);
    }

    #[test]
    fn rights_are_stored_by_name() {
        let json = serde_json::to_string(&Rights::ALL).unwrap();
        assert_eq!(json, r#"["call","approve","admin"]"#);
        assert_eq!(serde_json::from_str::<Rights>(&json).unwrap(), Rights::ALL);
        assert!(serde_json::from_str::<Rights>(r#"["root"]"#).is_err());
    }
}
