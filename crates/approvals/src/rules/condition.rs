//! Conditions on arguments: a path and what has to be there.
//!
//! A rule that holds back (deny, ask) reads generously: one of the values that a path with `*`
//! selects is enough, and a text that spells a number counts as one. A rule that lets pass reads
//! strictly: every value that is selected has to fit, and a pattern with wildcards fits no path
//! that climbs (`..`), or `/tmp/*` would let `/tmp/../etc` pass.

use regex_lite::{Regex, RegexBuilder};
use serde_json::Value;
use switchboard_wire::Raw;

use super::error::RuleError;
use super::glob::Glob;
use super::limits::{GLOB_CHARACTERS, MATCHED_BYTES, PATH_STEPS, PROGRAM_BYTES};
use super::parse::unknown;
use crate::json::{Json, Tree, Twice};

/// A path and what has to be there.
#[derive(Clone, Debug)]
pub(crate) struct Condition {
    /// As it was written.
    pub(crate) path: String,
    /// As it was written.
    pub(crate) source: Value,
    steps: Vec<Step>,
    test: Test,
}

/// Why arguments cannot be judged. Whoever sent them has to send others.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Fault {
    #[error("the arguments are not an object")]
    NotAnObject,
    #[error("the arguments are nested too deeply, or have too many values")]
    TooLarge,
    #[error("the member {0:?} of the arguments stands there twice")]
    Twice(String),
    #[error("the value at {0} is too long for a pattern")]
    TooLong(String),
}

impl From<Twice> for Fault {
    fn from(Twice(name): Twice) -> Self {
        Self::Twice(name)
    }
}

/// How a condition is read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reading {
    /// One value is enough.
    Generous,
    /// All have to fit.
    Strict,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Name(String),
    Index(usize),
    Each,
}

/// All that is set has to be so.
#[derive(Clone, Debug, Default)]
struct Test {
    glob: Option<Glob>,
    /// In its canonical spelling.
    equals: Option<String>,
    regex: Option<Regex>,
    exists: Option<bool>,
    min: Option<f64>,
    max: Option<f64>,
}

impl Condition {
    pub(crate) fn parse(path: &str, source: &Value) -> Result<Self, RuleError> {
        Ok(Self {
            steps: steps(path)?,
            test: Test::parse(path, source)?,
            path: path.to_owned(),
            source: source.clone(),
        })
    }

    /// Whether it names one value.
    pub(crate) fn is_exact(&self) -> bool {
        self.test.equals.is_some() || self.test.glob.as_ref().is_some_and(Glob::is_exact)
    }

    pub(crate) fn holds(&self, arguments: &Json<'_>, reading: Reading) -> Result<bool, Fault> {
        let mut selected = vec![arguments];
        for step in &self.steps {
            let mut next = Vec::new();
            for value in selected {
                match (step, value) {
                    (Step::Name(name), _) => next.extend(value.member(name)?),
                    (Step::Index(index), Json::Array(elements)) => {
                        next.extend(elements.get(*index));
                    }
                    (Step::Each, Json::Array(elements)) => next.extend(elements),
                    (Step::Each, Json::Object(members)) => {
                        next.extend(members.iter().map(|(_, value)| value));
                    }
                    _ => {}
                }
            }
            selected = next;
        }
        if self
            .test
            .exists
            .is_some_and(|exists| exists == selected.is_empty())
        {
            return Ok(false);
        }
        if !self.test.looks_at_values() {
            return Ok(true);
        }
        let mut fault = None;
        let mut fits = 0;
        for value in &selected {
            match self.test.fits(value, reading, &self.path) {
                Ok(fit) => fits += usize::from(fit),
                Err(found) => fault = Some(found),
            }
        }
        match reading {
            Reading::Generous if fits > 0 => Ok(true),
            _ if fault.is_some() => fault.map_or(Ok(false), Err),
            Reading::Generous => Ok(false),
            Reading::Strict => Ok(fits > 0 && fits == selected.len()),
        }
    }
}

impl Test {
    fn parse(path: &str, source: &Value) -> Result<Self, RuleError> {
        let wrong = |key: &str, expected| RuleError::Value {
            key: format!("arguments.{path}{key}"),
            expected,
        };
        let mut test = Self::default();
        let members = match source {
            Value::String(glob) => {
                test.glob = Some(Glob::parse(glob).ok_or_else(|| wrong("", "a shorter pattern"))?);
                return Ok(test);
            }
            Value::Bool(_) | Value::Number(_) => {
                test.equals = Some(canonical(source)?);
                return Ok(test);
            }
            Value::Object(members) if !members.is_empty() => members,
            _ => {
                let expected = "a pattern, a value, or an object with `equals`, `matches`, `exists`, `min` or `max`";
                return Err(wrong("", expected));
            }
        };
        for (key, value) in members {
            match key.as_str() {
                "equals" => test.equals = Some(canonical(value)?),
                "matches" => {
                    let pattern = value.as_str();
                    test.regex = Some(regex(pattern.ok_or_else(|| wrong(".matches", "a text"))?)?);
                }
                "exists" => {
                    let exists = value.as_bool();
                    test.exists = Some(exists.ok_or_else(|| wrong(".exists", "true or false"))?);
                }
                "min" => test.min = Some(value.as_f64().ok_or_else(|| wrong(".min", "a number"))?),
                "max" => test.max = Some(value.as_f64().ok_or_else(|| wrong(".max", "a number"))?),
                other => {
                    let known = ["equals", "matches", "exists", "min", "max"];
                    return Err(unknown("the condition", other, &known));
                }
            }
        }
        let others = test.looks_at_values() && test.exists == Some(false);
        if others {
            return Err(wrong("", "either absent or of a certain value, not both"));
        }
        Ok(test)
    }

    fn looks_at_values(&self) -> bool {
        self.glob.is_some()
            || self.equals.is_some()
            || self.regex.is_some()
            || self.min.is_some()
            || self.max.is_some()
    }

    fn fits(&self, value: &Json<'_>, reading: Reading, path: &str) -> Result<bool, Fault> {
        let too_long = |text: &str| {
            let long = text.len() > MATCHED_BYTES;
            if long {
                Err(Fault::TooLong(path.to_owned()))
            } else {
                Ok(())
            }
        };
        if let Some(glob) = &self.glob {
            let Some(text) = spelled(value) else {
                return Ok(false);
            };
            if !glob.is_exact() {
                too_long(text)?;
                if reading == Reading::Strict && climbs(text) {
                    return Ok(false);
                }
            }
            if !glob.matches(text) {
                return Ok(false);
            }
        }
        if let Some(equals) = &self.equals
            && value.canonical()? != *equals
        {
            return Ok(false);
        }
        if let Some(regex) = &self.regex {
            let Some(text) = spelled(value) else {
                return Ok(false);
            };
            too_long(text)?;
            if !regex.is_match(text) {
                return Ok(false);
            }
        }
        if self.min.is_none() && self.max.is_none() {
            return Ok(true);
        }
        let number: Option<f64> = match value {
            Json::Number(spelled) => spelled.parse().ok(),
            Json::Text(text) if reading == Reading::Generous => text.trim().parse().ok(),
            // Some servers make a number of it all the same.
            Json::Array(_) | Json::Object(_) | Json::Bool(_) if reading == Reading::Generous => {
                return Ok(true);
            }
            _ => None,
        };
        Ok(number.is_some_and(|number| {
            self.min.is_none_or(|min| number >= min) && self.max.is_none_or(|max| number <= max)
        }))
    }
}

/// What a pattern is held against.
fn spelled<'j>(value: &'j Json<'_>) -> Option<&'j str> {
    match value {
        Json::Text(text) => Some(text),
        Json::Number(spelled) => Some(spelled),
        Json::Bool(true) => Some("true"),
        Json::Bool(false) => Some("false"),
        Json::Null => Some("null"),
        Json::Array(_) | Json::Object(_) | Json::Unread => None,
    }
}

/// Whether a text, read as a path, goes up. Servers may decode what is encoded in a URL.
fn climbs(text: &str) -> bool {
    let encoded = || text.to_ascii_lowercase().contains("%2e");
    text.split(['/', '\\']).any(|part| part == "..") || (text.contains('%') && encoded())
}

fn canonical(value: &Value) -> Result<String, RuleError> {
    let wrong = || RuleError::Value {
        key: "equals".to_owned(),
        expected: "a value that JSON can spell",
    };
    let raw = Raw::from_value(value).map_err(|_| wrong())?;
    Tree::read(&raw, usize::MAX)
        .value
        .canonical()
        .map_err(|_| wrong())
}

fn regex(pattern: &str) -> Result<Regex, RuleError> {
    let wrong = |why: String| RuleError::Regex {
        pattern: pattern.to_owned(),
        why,
    };
    if pattern.len() > GLOB_CHARACTERS {
        return Err(wrong(format!("it has more than {GLOB_CHARACTERS} bytes")));
    }
    let built = RegexBuilder::new(pattern).size_limit(PROGRAM_BYTES).build();
    built.map_err(|error| wrong(error.to_string()))
}

/// Reads `$.path.to[0].x`, with `["a name"]` for names that are none in a program, and `*` for all.
fn steps(path: &str) -> Result<Vec<Step>, RuleError> {
    let wrong = |why| RuleError::Path {
        path: path.to_owned(),
        why,
    };
    let mut rest = path
        .strip_prefix('$')
        .ok_or_else(|| wrong("it has to begin with `$`"))?;
    let mut steps = Vec::new();
    while !rest.is_empty() {
        if steps.len() == PATH_STEPS {
            return Err(wrong("it has too many steps"));
        }
        let (step, after) = if let Some(after) = rest.strip_prefix('.') {
            let (name, after) = after.split_at(after.find(['.', '[']).unwrap_or(after.len()));
            match name {
                "" => return Err(wrong("a name is missing after `.`")),
                "*" => (Step::Each, after),
                name => (Step::Name(name.to_owned()), after),
            }
        } else if let Some(inner) = rest.strip_prefix('[') {
            bracket(inner)
                .ok_or_else(|| wrong("`[` takes a number, `*` or a name in quotes, and `]`"))?
        } else {
            return Err(wrong("a step begins with `.` or `[`"));
        };
        steps.push(step);
        rest = after;
    }
    Ok(steps)
}

fn bracket(inner: &str) -> Option<(Step, &str)> {
    let quote = inner.chars().next().filter(|c| matches!(c, '"' | '\''));
    if let Some(quote) = quote {
        let (name, after) = inner[1..].split_once(quote)?;
        return Some((Step::Name(name.to_owned()), after.strip_prefix(']')?));
    }
    let (index, after) = inner.split_once(']')?;
    let step = match index {
        "*" => Step::Each,
        index if index.bytes().all(|byte| byte.is_ascii_digit()) => {
            Step::Index(index.parse().ok()?)
        }
        _ => return None,
    };
    Some((step, after))
}
