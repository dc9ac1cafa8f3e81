//! Why a rule cannot be used.

use std::borrow::Cow;

use super::limits::{CONDITIONS, RULE_BYTES, RULES};
use switchboard_text::nearest;
use switchboard_wire::tree::Twice;

/// Why a rule cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RuleError {
    /// Nothing was written.
    #[error("the rule is empty")]
    Empty,
    /// It is too long.
    #[error("the rule has {0} bytes, and at most {RULE_BYTES} are read")]
    TooLong(usize),
    /// There are too many.
    #[error("there are {0} rules, and at most {RULES} are kept")]
    TooMany(usize),
    /// It has too many conditions.
    #[error("the rule has {0} conditions on arguments, and at most {CONDITIONS} are checked")]
    TooManyConditions(usize),
    /// It is neither text nor an object.
    #[error("a rule is a text such as `ask files:delete_*`, or an object")]
    NotARule,
    /// It starts with `{` and is no JSON.
    #[error("the rule is not valid JSON: {0}")]
    NotJson(String),
    /// A name that is none of those that exist.
    #[error("{what} {found:?} is not known")]
    Unknown {
        /// What kind of name: `the key`, `the action`.
        what: &'static str,
        /// The name as written.
        found: String,
        /// What to write instead.
        hint: String,
    },
    /// A member that has to be there.
    #[error("the rule says no `action`: deny, ask or allow")]
    NoAction,
    /// A value of the wrong kind.
    #[error("`{key}` has to be {expected}")]
    Value {
        /// Of which member.
        key: String,
        /// What it has to be.
        expected: &'static str,
    },
    /// A path that cannot be read.
    #[error("the path {path:?} cannot be read: {why}")]
    Path {
        /// The path as written.
        path: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A regular expression that cannot be used.
    #[error("the regular expression {pattern:?} cannot be used: {why}")]
    Regex {
        /// The expression as written.
        pattern: String,
        /// What is wrong with it.
        why: String,
    },
    /// Text after the end of the short form, or quotes without an end.
    #[error("the rule {text:?} cannot be read: {why}")]
    Short {
        /// The rule as written.
        text: String,
        /// What is wrong with it.
        why: &'static str,
    },
}

impl RuleError {
    pub(super) fn unknown(what: &'static str, found: &str, known: &[&str]) -> Self {
        let hint = match nearest(found, known.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("there are `{}`", known.join("`, `")),
        };
        Self::Unknown {
            what,
            found: found.chars().take(100).collect(),
            hint,
        }
    }

    /// Advice for the user, apart from the message.
    pub fn hint(&self) -> Option<Cow<'_, str>> {
        Some(match self {
            Self::Empty => "write for example `ask files:delete_*`".into(),
            Self::TooMany(_) => "join some with `*`".into(),
            Self::Unknown { hint, .. } => hint.into(),
            Self::Path { .. } => "write for example `$.path.to[0].x`".into(),
            Self::Short { .. } => {
                "it is `ACTION [KIND] SERVER:TOOL [@CLIENT]`, as in `ask files:delete_* @claude*`"
                    .into()
            }
            Self::TooLong(_)
            | Self::TooManyConditions(_)
            | Self::NotARule
            | Self::NotJson(_)
            | Self::NoAction
            | Self::Value { .. }
            | Self::Regex { .. } => return None,
        })
    }
}

/// Why arguments cannot be judged. Whoever sent them has to send others.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ArgumentsError {
    #[error("the arguments are not an object")]
    NotAnObject,
    #[error("the arguments are nested too deeply, or have too many values")]
    TooLarge,
    #[error(
        "the arguments have half of a character in them, which programs read in different ways; send whole ones"
    )]
    Half,
    #[error("the member {0:?} of the arguments stands there twice")]
    Twice(String),
    #[error("the value at {0} is too long for a pattern")]
    TooLong(String),
    #[error("the name or URI is too long for a pattern")]
    NameTooLong,
    #[error("the values are too long to be held against every pattern")]
    TooMuch,
}

impl From<Twice> for ArgumentsError {
    fn from(Twice(name): Twice) -> Self {
        Self::Twice(name)
    }
}
