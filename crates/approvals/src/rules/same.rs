//! Values that are the same to a server: `100`, `"100"` and `"1e2"`, or `true` and `"yes"`.

use serde_json::Value;
use switchboard_text::glob::Glob;
use switchboard_wire::{Raw, tree::Json};

use super::decode::folded;
use super::error::{ArgumentsError, RuleError};
use super::look::Texts;
use super::number::Numbers;
use super::pattern::PathPattern;

/// A value, or a pattern for one, that values are held against.
#[derive(Clone, Debug)]
pub(crate) enum Same {
    Null,
    Bool(bool),
    /// In its canonical spelling, and as a double.
    Number(String, f64),
    /// A text or a pattern.
    Text(Box<Text>),
    /// An array or an object in its canonical spelling, and what it holds.
    Array(String, Vec<Self>),
    Object(String, Vec<(String, Self)>),
}

/// A text or a pattern.
#[derive(Clone, Debug)]
pub(crate) struct Text {
    glob: Glob,
    pattern: PathPattern,
    /// The number that it spells.
    number: Option<f64>,
    /// The truth value that it spells.
    is_true: Option<bool>,
    /// In its canonical spelling.
    canonical: String,
}

impl Same {
    pub(crate) fn of_glob(glob: &Glob) -> Self {
        let text = glob.head();
        let is_exact = glob.is_exact();
        let number = || {
            text.trim()
                .parse()
                .ok()
                .filter(|number: &f64| number.is_finite())
        };
        Self::Text(Box::new(Text {
            pattern: PathPattern::new(glob),
            glob: glob.clone(),
            number: is_exact.then(number).flatten(),
            is_true: is_exact.then(|| truth(&text)).flatten(),
            canonical: Raw::string(&text).to_string(),
        }))
    }

    pub(crate) fn of_value(value: &Value) -> Result<Self, RuleError> {
        let wrong = || RuleError::Value {
            key: "equals".to_owned(),
            expected: "a value that JSON can spell",
        };
        let canonical = || {
            let raw = Raw::from_value(value).map_err(|_| wrong())?;
            Json::read(&raw).canonical().map_err(|_| wrong())
        };
        Ok(match value {
            Value::Null => Self::Null,
            Value::Bool(value) => Self::Bool(*value),
            Value::Number(number) => {
                Self::Number(canonical()?, number.as_f64().unwrap_or(f64::NAN) + 0.0)
            }
            Value::String(text) => Self::of_glob(&Glob::literal(text)),
            Value::Array(elements) => {
                let elements = elements.iter().map(Self::of_value);
                Self::Array(canonical()?, elements.collect::<Result<_, _>>()?)
            }
            Value::Object(members) => {
                let members = members
                    .iter()
                    .map(|(name, value)| Ok((name.clone(), Self::of_value(value)?)));
                Self::Object(canonical()?, members.collect::<Result<_, RuleError>>()?)
            }
        })
    }

    /// Whether it names one value.
    pub(crate) fn is_exact(&self) -> bool {
        match self {
            Self::Text(text) => text.glob.is_exact(),
            _ => true,
        }
    }

    /// Whether a value is this one, to the letter.
    pub(crate) fn is(&self, value: &Json<'_>) -> Result<bool, ArgumentsError> {
        Ok(match self {
            Self::Null => *value == Json::Null,
            Self::Bool(expected) => *value == Json::Bool(*expected),
            Self::Number(canonical, _) | Self::Array(canonical, _) | Self::Object(canonical, _) => {
                value.canonical()? == *canonical
            }
            Self::Text(text) => value.canonical()? == text.canonical,
        })
    }

    /// Whether a text is what the pattern means, in every spelling.
    pub(crate) fn surely_is(&self, text: &str, texts: &Texts) -> Result<bool, ArgumentsError> {
        match self {
            Self::Text(expected) => expected.pattern.surely_matches(text, texts),
            _ => Ok(false),
        }
    }

    /// Whether a server may take a value for this one.
    pub(crate) fn may_be(&self, value: &Json<'_>, texts: &Texts) -> Result<bool, ArgumentsError> {
        if let (Json::Array(_) | Json::Object(_), Self::Array(..) | Self::Object(..)) =
            (value, self)
            && self.is(value)?
        {
            return Ok(true);
        }
        Ok(match (self, value) {
            (Self::Null, Json::Null) => true,
            (Self::Null, Json::Text(text)) => {
                matches!(
                    &*folded(text.trim()),
                    "" | "null" | "none" | "nil" | "undefined"
                )
            }
            (Self::Bool(expected), value) => spelled(value).and_then(truth) == Some(*expected),
            (Self::Number(canonical, number), value) => {
                numbers(value).is_some_and(|found| found.may_be(*number))
                    || value.canonical()? == *canonical
            }
            (Self::Text(expected), value) => expected.may_be(value, texts)?,
            (Self::Array(_, expected), Json::Array(found)) => {
                expected.len() == found.len() && all(expected.iter().zip(found), texts)?
            }
            (Self::Object(_, expected), Json::Object(found)) => {
                if expected.len() != found.len() {
                    return Ok(false);
                }
                let mut pairs = Vec::with_capacity(expected.len());
                for (name, expected) in expected {
                    match found.unique(name)? {
                        Some(found) => pairs.push((expected, found)),
                        None => return Ok(false),
                    }
                }
                all(pairs.into_iter(), texts)?
            }
            _ => false,
        })
    }
}

fn all<'s, 'j: 's>(
    mut pairs: impl Iterator<Item = (&'s Same, &'s Json<'j>)>,
    texts: &Texts,
) -> Result<bool, ArgumentsError> {
    pairs.try_fold(true, |all, (expected, found)| {
        Ok(all && expected.may_be(found, texts)?)
    })
}

impl Text {
    fn may_be(&self, value: &Json<'_>, texts: &Texts) -> Result<bool, ArgumentsError> {
        let Some(text) = spelled(value) else {
            return Ok(false);
        };
        let is_number = || {
            let number = self.number?;
            Some(numbers(value)?.may_be(number))
        };
        let is_true = || Some(truth(text)? == self.is_true?);
        Ok(self.pattern.may_match(text, texts)?
            || is_number().unwrap_or_default()
            || is_true().unwrap_or_default())
    }
}

/// A scalar value as text.
pub(crate) fn spelled<'j>(value: &'j Json<'_>) -> Option<&'j str> {
    match value {
        Json::Text(text) => Some(text),
        Json::Number(spelled) => Some(spelled),
        Json::Bool(true) => Some("true"),
        Json::Bool(false) => Some("false"),
        Json::Null => Some("null"),
        Json::Array(_) | Json::Object(_) | Json::Unread(_) => None,
    }
}

fn numbers(value: &Json<'_>) -> Option<Numbers> {
    match value {
        Json::Number(spelled) => Some(Numbers::of_number(spelled)),
        Json::Text(text) => Some(Numbers::of_text(text)),
        Json::Bool(is_true) => Some(Numbers::of_number(if *is_true { "1" } else { "0" })),
        _ => None,
    }
}

/// The truth value that a text is to lenient servers.
fn truth(text: &str) -> Option<bool> {
    match folded(text).trim() {
        "t" | "true" | "y" | "yes" | "on" => Some(true),
        "f" | "false" | "n" | "no" | "off" => Some(false),
        number => match number.replace('_', "").parse::<f64>() {
            Ok(1.0) => Some(true),
            Ok(0.0) => Some(false),
            _ => None,
        },
    }
}
