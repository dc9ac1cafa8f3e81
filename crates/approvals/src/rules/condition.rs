//! Conditions on arguments: a path, and a test for the values there.
//!
//! A restrictive rule (deny, ask) reads generously: one value that a server may take for the one that the
//! rule means is enough. A text counts in every [spelling](super::spelling), and as the
//! [number](super::number) or the JSON that it contains; a list or an object counts as each of its values. A
//! value that is not a number passes `min` and `max`, and so does null, which some servers take for no limit.
//! A missing member passes only `exists: false`, since the server's default is not known; for that test, null
//! counts as missing.
//!
//! An allow rule reads strictly: every selected value has to match literally, and in every spelling; no path
//! that goes up (`..`) matches a pattern with wildcards.

use std::borrow::Cow;

use serde_json::Value;
use switchboard_text::glob::Glob;

use super::decode::json;
use super::error::{ArgumentsError, RuleError};
use super::limits::{ARGUMENT_NODES, GLOB_CHARACTERS, MATCHED_BYTES, PATH_STEPS, TEXTS_IN_TEXTS};
use super::look::Texts;
use super::number::{Numbers, is_rounded};
use super::pattern::TextPattern;
use super::reading::Reading;
use super::same::{Same, spelled};
use switchboard_wire::tree::{Json, Tree};

/// A path, and a test for the values there.
#[derive(Clone, Debug)]
pub(crate) struct Condition {
    /// The original path.
    pub(crate) path: String,
    /// The original test.
    pub(crate) source: Value,
    steps: Vec<Step>,
    test: Test,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Name(String),
    Index(usize),
    Each,
}

/// A test. Everything that is set has to hold.
#[derive(Clone, Debug, Default)]
struct Test {
    glob: Option<Same>,
    equals: Option<Same>,
    regex: Option<TextPattern>,
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

    /// Returns `true` if it names one value.
    pub(crate) fn is_exact(&self) -> bool {
        self.test.equals.is_some() || self.test.glob.as_ref().is_some_and(Same::is_exact)
    }

    pub(crate) fn holds(
        &self,
        arguments: &Json<'_>,
        reading: Reading,
        texts: &Texts,
    ) -> Result<bool, ArgumentsError> {
        let mut tally = Tally::default();
        // Absence is judged by the members that are literally there.
        let selecting = match self.test.exists {
            Some(false) => Reading::Strict,
            _ => reading,
        };
        select(arguments, &self.steps, selecting, 0, &mut |value| {
            tally.selected += 1;
            tally.null += usize::from(*value == Json::Null);
            if self.test.looks_at_values() {
                match self.test.fits(value, reading, &self.path, (texts, 0)) {
                    Ok(fit) => tally.fits += usize::from(fit),
                    Err(found) => tally.fault = Some(found),
                }
            }
            Ok(())
        })?;
        let is_there = match (self.test.exists, reading) {
            // Servers treat null as missing.
            (Some(false), Reading::Generous) => tally.selected > tally.null,
            _ => tally.selected > 0,
        };
        if self.test.exists.is_some_and(|exists| exists != is_there) {
            return Ok(false);
        }
        if !self.test.looks_at_values() {
            return Ok(true);
        }
        match (reading, tally.fault) {
            (Reading::Generous, _) if tally.fits > 0 => Ok(true),
            (_, Some(fault)) => Err(fault),
            (Reading::Generous, None) => Ok(false),
            (Reading::Strict, None) => Ok(tally.fits > 0 && tally.fits == tally.selected),
        }
    }
}

/// Counts of the values that a path selects.
#[derive(Default)]
struct Tally {
    selected: usize,
    null: usize,
    fits: usize,
    fault: Option<ArgumentsError>,
}

/// Visits the values that a path selects.
///
/// In a generous reading, a list stands for its elements, a value for a list of one, and a text for the JSON
/// that it contains, because servers convert one into the other.
fn select(
    value: &Json<'_>,
    steps: &[Step],
    reading: Reading,
    nested: usize,
    visit: &mut dyn FnMut(&Json<'_>) -> Result<(), ArgumentsError>,
) -> Result<(), ArgumentsError> {
    let Some((step, rest)) = steps.split_first() else {
        return visit(value);
    };
    let mut go = |value: &Json<'_>, steps| select(value, steps, reading, nested, visit);
    match (step, value) {
        (Step::Name(_), Json::Array(elements)) if reading == Reading::Generous => {
            elements.iter().try_for_each(|element| go(element, steps))
        }
        (Step::Name(name), Json::Object(members)) => {
            let value = members.unique(name)?;
            value.map_or(Ok(()), |value| go(value, rest))
        }
        (Step::Index(index), Json::Array(elements)) => {
            elements.get(*index).map_or(Ok(()), |value| go(value, rest))
        }
        (Step::Each, Json::Array(elements)) => {
            elements.iter().try_for_each(|value| go(value, rest))
        }
        (Step::Each, Json::Object(members)) => {
            members.iter().try_for_each(|(_, value)| go(value, rest))?;
            match reading {
                Reading::Generous => go(value, rest),
                Reading::Strict => Ok(()),
            }
        }
        _ if reading == Reading::Strict => Ok(()),
        (_, Json::Text(text)) if let Some(json) = spelled_json(text, nested) => {
            let json = json?;
            select(&tree(&json)?, steps, reading, nested + 1, visit)
        }
        (Step::Index(_) | Step::Each, Json::Null) | (Step::Name(_), _) => Ok(()),
        (Step::Index(_) | Step::Each, _) => go(value, rest),
    }
}

/// The array, object or text that a JSON text contains, if it is one.
fn spelled_json(text: &str, nested: usize) -> Option<Result<Cow<'_, str>, ArgumentsError>> {
    let text = text.trim().trim_start_matches('\u{feff}');
    let is_quoted = text.starts_with('"') && text.ends_with('"');
    if !(is_quoted || text.starts_with(['[', '{'])) || nested >= TEXTS_IN_TEXTS {
        return None;
    }
    if text.len() > MATCHED_BYTES {
        return Some(Err(ArgumentsError::TooLarge));
    }
    json(text).map(Ok)
}

fn tree(json: &str) -> Result<Json<'_>, ArgumentsError> {
    let tree = Tree::read_text(json, ARGUMENT_NODES);
    if !tree.whole {
        return Err(ArgumentsError::TooLarge);
    }
    tree.exact.then_some(tree.value).ok_or(ArgumentsError::Half)
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
                let glob = Glob::parse(glob).ok_or_else(|| wrong("", "a shorter pattern"))?;
                test.glob = Some(Same::of_glob(&glob));
                return Ok(test);
            }
            Value::Bool(_) | Value::Number(_) => {
                test.equals = Some(Same::of_value(source)?);
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
                "equals" => test.equals = Some(Same::of_value(value)?),
                "matches" => {
                    let pattern = value.as_str();
                    test.regex = Some(regex(
                        pattern.ok_or_else(|| wrong(".matches", "a string"))?,
                    )?);
                }
                "exists" => {
                    let exists = value.as_bool();
                    test.exists = Some(exists.ok_or_else(|| wrong(".exists", "true or false"))?);
                }
                "min" => test.min = Some(value.as_f64().ok_or_else(|| wrong(".min", "a number"))?),
                "max" => test.max = Some(value.as_f64().ok_or_else(|| wrong(".max", "a number"))?),
                other => {
                    let known = ["equals", "matches", "exists", "min", "max"];
                    return Err(RuleError::unknown("condition", other, &known));
                }
            }
        }
        let others = test.looks_at_values() && test.exists == Some(false);
        if others {
            return Err(wrong(
                "",
                "either `exists: false` or another condition, not both",
            ));
        }
        Ok(test)
    }

    fn looks_at_values(&self) -> bool {
        self.glob.is_some() || self.equals.is_some() || self.regex.is_some() || self.looks_at_size()
    }

    fn looks_at_size(&self) -> bool {
        self.min.is_some() || self.max.is_some()
    }

    fn fits(
        &self,
        value: &Json<'_>,
        reading: Reading,
        path: &str,
        (texts, nested): (&Texts, usize),
    ) -> Result<bool, ArgumentsError> {
        if let Some(text) = spelled(value)
            && (self.glob.is_some() || self.regex.is_some())
            && text.len() > MATCHED_BYTES
        {
            return Err(ArgumentsError::TooLong(path.to_owned()));
        }
        if reading == Reading::Strict {
            return self.surely_fits(value, texts);
        }
        if self.may_fit(value, texts)? {
            return Ok(true);
        }
        if let Json::Text(text) = value {
            return spelled_json(text, nested).map_or(Ok(false), |json| {
                self.fits(&tree(&json?)?, reading, path, (texts, nested + 1))
            });
        }
        // Servers that expect one value accept a list of one, and vice versa.
        let mut fault = None;
        let mut any = |value: &Json<'_>| match self.fits(value, reading, path, (texts, nested)) {
            Ok(fits) => fits,
            Err(found) => {
                fault = Some(found);
                false
            }
        };
        let found = match value {
            Json::Array(elements) => elements.iter().any(&mut any),
            Json::Object(members) => members.iter().any(|(_, value)| any(value)),
            _ => false,
        };
        match fault {
            Some(fault) if !found => Err(fault),
            _ => Ok(found),
        }
    }

    /// Tests if a server may take the value for one that is meant.
    fn may_fit(&self, value: &Json<'_>, texts: &Texts) -> Result<bool, ArgumentsError> {
        if let Some(glob) = &self.glob
            && !glob.may_be(value, texts)?
        {
            return Ok(false);
        }
        if let Some(equals) = &self.equals
            && !equals.may_be(value, texts)?
        {
            return Ok(false);
        }
        if let Some(regex) = &self.regex
            && !spelled(value).map_or(Ok(false), |text| regex.may_match(text, texts))?
        {
            return Ok(false);
        }
        if !self.looks_at_size() {
            return Ok(true);
        }
        let numbers = match value {
            Json::Number(spelled) => Numbers::of_number(spelled),
            Json::Text(text) => Numbers::of_text(text),
            // Some servers convert it into a number anyway, and null may mean no limit.
            _ => return Ok(true),
        };
        Ok(!numbers.is_sure || numbers.values.iter().any(|number| self.has_size(*number)))
    }

    fn surely_fits(&self, value: &Json<'_>, texts: &Texts) -> Result<bool, ArgumentsError> {
        if let Some(glob) = &self.glob
            && !spelled(value).map_or(Ok(false), |text| glob.surely_is(text, texts))?
        {
            return Ok(false);
        }
        if let Some(equals) = &self.equals
            && !equals.is(value)?
        {
            return Ok(false);
        }
        if let Some(regex) = &self.regex
            && !spelled(value).map_or(Ok(false), |text| regex.surely_matches(text, texts))?
        {
            return Ok(false);
        }
        if !self.looks_at_size() {
            return Ok(true);
        }
        let Json::Number(spelled) = value else {
            return Ok(false);
        };
        let numbers = Numbers::of_number(spelled);
        let is_rounded = is_rounded(spelled);
        let fits = |number: f64| {
            // The digits that are lost may exceed the limit.
            let is_limit = self.min == Some(number) || self.max == Some(number);
            self.has_size(number) && !(is_rounded && is_limit)
        };
        Ok(numbers.is_sure && numbers.values.iter().all(|number| fits(*number)))
    }

    fn has_size(&self, number: f64) -> bool {
        self.min.is_none_or(|min| number >= min) && self.max.is_none_or(|max| number <= max)
    }
}

fn regex(pattern: &str) -> Result<TextPattern, RuleError> {
    let wrong = |why: String| RuleError::Regex {
        pattern: pattern.to_owned(),
        why,
    };
    if pattern.len() > GLOB_CHARACTERS {
        return Err(wrong(format!("it has more than {GLOB_CHARACTERS} bytes")));
    }
    TextPattern::new(pattern).map_err(|error| wrong(error.to_string()))
}

/// Parses `$.path.to[0].x`, with `["a name"]` for names that are not identifiers, and `*` for all.
fn steps(path: &str) -> Result<Vec<Step>, RuleError> {
    let wrong = |why| RuleError::Path {
        path: path.to_owned(),
        why,
    };
    let mut rest = path
        .strip_prefix('$')
        .ok_or_else(|| wrong("it must start with `$`"))?;
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
            bracket(inner).ok_or_else(|| {
                wrong("`[` must be followed by a number, `*` or a quoted name, and `]`")
            })?
        } else {
            return Err(wrong("each step must start with `.` or `[`"));
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
