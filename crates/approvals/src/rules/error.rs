//! Errors in rules.

use std::borrow::Cow;

use super::limits::{CONDITIONS, RULE_BYTES, RULES};
use switchboard_text::nearest;
use switchboard_wire::tree::Twice;

/// The reason why a rule cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RuleError {
    /// The rule is empty.
    #[error("the rule is empty")]
    Empty,
    /// The rule is too long.
    #[error("the rule has {0} bytes, but at most {RULE_BYTES} are allowed")]
    TooLong(usize),
    /// There are too many rules.
    #[error("there are {0} rules, but at most {RULES} are allowed")]
    TooMany(usize),
    /// The rule has too many conditions.
    #[error("the rule has {0} conditions on arguments, but at most {CONDITIONS} are allowed")]
    TooManyConditions(usize),
    /// The rule is neither a text nor an object.
    #[error("a rule must be a string such as `ask files:delete_*`, or an object")]
    NotARule,
    /// The rule starts with `{` but is not JSON.
    #[error("the rule is not valid JSON: {0}")]
    NotJson(String),
    /// A name that does not exist.
    #[error("unknown {what} {found:?}")]
    Unknown {
        /// The kind of name: `key`, `action`.
        what: &'static str,
        /// The name as written.
        found: String,
        /// Advice for the user.
        hint: String,
    },
    /// The action is missing.
    #[error("the rule has no `action` (deny, ask or allow)")]
    NoAction,
    /// A value has the wrong type.
    #[error("`{key}` must be {expected}")]
    Value {
        /// Key of the value.
        key: String,
        /// The expected type.
        expected: &'static str,
    },
    /// A path cannot be parsed.
    #[error("invalid path {path:?}: {why}")]
    Path {
        /// The path as written.
        path: String,
        /// The problem.
        why: &'static str,
    },
    /// A regular expression cannot be used.
    #[error("invalid regular expression {pattern:?}: {why}")]
    Regex {
        /// The expression as written.
        pattern: String,
        /// The problem.
        why: String,
    },
    /// The short form is followed by text, or has an unclosed quote.
    #[error("invalid rule {text:?}: {why}")]
    Short {
        /// The rule as written.
        text: String,
        /// The problem.
        why: &'static str,
    },
}

impl RuleError {
    pub(super) fn unknown(what: &'static str, found: &str, known: &[&str]) -> Self {
        let hint = match nearest(found, known.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("use one of `{}`", known.join("`, `")),
        };
        Self::Unknown {
            what,
            found: found.chars().take(100).collect(),
            hint,
        }
    }

    /// Advice for the user, separate from the message.
    pub fn hint(&self) -> Option<Cow<'_, str>> {
        Some(match self {
            Self::Empty => "write a rule such as `ask files:delete_*`".into(),
            Self::TooMany(_) => "combine some of them with `*`".into(),
            Self::Unknown { hint, .. } => hint.into(),
            Self::Path { .. } => "write a path such as `$.path.to[0].x`".into(),
            Self::Short { .. } => {
                "write `ACTION [KIND] SERVER:TOOL [@CLIENT]`, as in `ask files:delete_* @claude*`"
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

/// The reason why arguments cannot be judged. The caller has to send others.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ArgumentsError {
    #[error("the arguments are not an object")]
    NotAnObject,
    #[error("the arguments are nested too deeply, or have too many values")]
    TooLarge,
    #[error(
        "the arguments contain a lone surrogate, which programs interpret differently; send complete characters"
    )]
    Half,
    #[error("the arguments contain the member {0:?} twice")]
    Twice(String),
    #[error("the value at {0} is too long to be compared with a pattern")]
    TooLong(String),
    #[error("the name or URI is too long to be compared with a pattern")]
    NameTooLong,
    #[error("the values are too long to be compared with all patterns")]
    TooMuch,
}

impl ArgumentsError {
    /// The text without names: a rule may name what is hidden from a client.
    pub(crate) fn for_agents(&self) -> String {
        match self {
            Self::Twice(_) => {
                "the arguments contain a member twice, or in another letter case".to_owned()
            }
            Self::TooLong(_) => "a value is too long to be compared with a pattern".to_owned(),
            other => other.to_string(),
        }
    }
}

impl From<Twice> for ArgumentsError {
    fn from(Twice(name): Twice) -> Self {
        Self::Twice(name)
    }
}
