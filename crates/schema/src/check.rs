//! [`Checker`]: a schema made ready to check values.

use std::collections::HashMap;

use switchboard_wire::Raw;

use crate::coerce::{Coercion, Fit};
use crate::limits::{NAME_CHARACTERS, PATTERN_PROGRAMS, PATTERNS, SCHEMA_BYTES, STEPS};
use crate::mismatch::{Mismatches, mismatches};
use crate::pattern::Pattern;
use crate::reference;
use crate::run::{Run, Verdict};
use crate::text;
use crate::value::Value;

/// A schema made ready to check values. Drafts 4 to 2020-12 are understood as far as the schemas of
/// tools use them.
///
/// A value is turned down only if the schema surely does not allow it. Whatever is unsure is let
/// pass, for the server to decide: a keyword or pattern that is not understood, a reference to
/// another document, a value that fits several forms of `oneOf`, work beyond
/// [`STEPS`](crate::limits::STEPS).
///
/// ```
/// use switchboard_schema::Checker;
/// use switchboard_wire::Raw;
///
/// let schema = Raw::parse(r#"{"type":"object","properties":{"limit":{"type":"integer"}}}"#)?;
/// let checker = Checker::compile(&schema)?;
/// assert!(checker.check(&Raw::parse(r#"{"limit":10}"#)?).is_ok());
/// let mismatches = checker.check(&Raw::parse(r#"{"limit":"ten"}"#)?).unwrap_err();
/// assert_eq!(
///     mismatches.to_string(),
///     r#"arguments.limit has to be an integer, it is "ten""#
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Checker {
    pub(crate) schema: Value,
    pub(crate) patterns: HashMap<Box<str>, Pattern>,
    /// Whether what stands beside a `$ref` does not count, as it was up to draft 7.
    pub(crate) lone_references: bool,
    /// Whether references are followed.
    pub(crate) references: bool,
}

/// Why a schema cannot be used to check anything. The server has to decide by itself.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unusable {
    /// A schema is an object or a boolean.
    #[error("the schema is neither an object nor a boolean")]
    NotASchema,
    /// It is too large.
    #[error("the schema has {0} bytes, and more than {SCHEMA_BYTES} are not looked at")]
    TooLarge(usize),
    /// Its `$schema` is none that is known, so its keywords may mean anything.
    #[error("the schema is of the dialect {0:?}, which is not known")]
    Dialect(String),
    /// It is nested too deeply.
    #[error("the schema is nested too deeply")]
    TooDeep,
}

impl Checker {
    /// Reads a schema. It costs about as much as some checks, so keep what comes of it.
    pub fn compile(schema: &Raw) -> Result<Self, Unusable> {
        let schema = read(schema)?;
        let dialect = schema.get("$schema").and_then(Value::as_text);
        if let Some(other) = dialect.filter(|dialect| !dialect.contains("json-schema.org/")) {
            return Err(Unusable::Dialect(text::cut(other, NAME_CHARACTERS)));
        }
        let lone_references = dialect.is_some_and(|dialect| {
            ["draft-03", "draft-04", "draft-05", "draft-06", "draft-07"]
                .iter()
                .any(|draft| dialect.contains(draft))
        });
        let mut patterns = Patterns::default();
        patterns.collect(&schema);
        Ok(Self {
            references: !reference::is_rebased(&schema),
            lone_references,
            patterns: patterns.compiled,
            schema,
        })
    }

    /// Whether the schema may allow these arguments. It does not wait for anything and takes
    /// microseconds; only schemas and values made to be slow take some tens of milliseconds.
    pub fn check(&self, arguments: &Raw) -> Result<(), Mismatches> {
        match self.read(arguments) {
            Some(value) if !self.may_allow(&value) => Err(self.explain(&value)),
            _ => Ok(()),
        }
    }

    /// The same without words.
    pub fn allows(&self, arguments: &Raw) -> bool {
        let value = self.read(arguments);
        value.is_none_or(|value| self.may_allow(&value))
    }

    /// The arguments as a server may accept them: values of another type that say the same are replaced, members that
    /// the schema does not name are left to the server. It takes a few times as long as a check.
    ///
    /// ```
    /// use switchboard_schema::Checker;
    /// use switchboard_wire::Raw;
    ///
    /// let schema = Raw::parse(r#"{"type":"object","properties":{"limit":{"type":"integer"}}}"#)?;
    /// let fit = Checker::compile(&schema)?.fit(&Raw::parse(r#"{"limit":"10"}"#)?).unwrap();
    /// assert_eq!(fit.arguments.as_str(), r#"{"limit":10}"#);
    /// assert_eq!(fit.notes, [r#"arguments.limit is "10" and was passed on as 10"#]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn fit(&self, arguments: &Raw) -> Result<Fit, Mismatches> {
        let fit = |arguments: &Raw, notes, doubts| Fit {
            arguments: arguments.clone(),
            notes,
            doubts,
        };
        let Some(value) = self.read(arguments) else {
            return Ok(fit(arguments, Vec::new(), None));
        };
        if self.may_allow(&value) {
            return Ok(fit(arguments, Vec::new(), None));
        }
        let aliases = || Run::new(self, STEPS).with_aliases();
        if aliases().eval(&self.schema, &value) != Verdict::No {
            return Ok(fit(arguments, Vec::new(), Some(self.explain(&value))));
        }
        let mut coercion = Coercion::new(aliases());
        if let Some(replaced) = coercion.replace(&value, arguments)
            && let Some(now) = self.read(&replaced)
            && aliases().eval(&self.schema, &now) != Verdict::No
        {
            let doubts = (!self.may_allow(&now)).then(|| self.explain(&now));
            return Ok(fit(&replaced, coercion.into_notes(), doubts));
        }
        Err(self.explain(&value))
    }

    /// The arguments, if there is something to check. A value that nests deeper than anybody checks is the server's to
    /// refuse.
    fn read(&self, arguments: &Raw) -> Option<Value> {
        if self.allows_everything() {
            return None;
        }
        Value::read(arguments).ok()
    }

    fn may_allow(&self, value: &Value) -> bool {
        Run::new(self, STEPS).eval(&self.schema, value) != Verdict::No
    }

    /// Most values fit; only for the others are words looked for.
    fn explain(&self, value: &Value) -> Mismatches {
        let mut run = Run::new(self, STEPS).explaining();
        run.eval(&self.schema, value);
        mismatches(run.into_findings())
    }

    fn allows_everything(&self) -> bool {
        match &self.schema {
            Value::Bool(allowed) => *allowed,
            Value::Object(object) => object.len() == 0,
            _ => false,
        }
    }
}

pub(crate) fn read(schema: &Raw) -> Result<Value, Unusable> {
    let bytes = schema.as_bytes();
    if bytes.len() > SCHEMA_BYTES {
        return Err(Unusable::TooLarge(bytes.len()));
    }
    let value = Value::read(schema).map_err(|_| Unusable::TooDeep)?;
    match value {
        Value::Object(_) | Value::Bool(_) => Ok(value),
        _ => Err(Unusable::NotASchema),
    }
}

/// The patterns of a schema, wherever they stand.
#[derive(Default)]
struct Patterns {
    compiled: HashMap<Box<str>, Pattern>,
    seen: usize,
    weight: u64,
}

impl Patterns {
    fn collect(&mut self, value: &Value) {
        match value {
            Value::Object(object) => {
                for (name, value) in object.iter() {
                    match (name, value) {
                        ("pattern", Value::Text(pattern)) => self.add(pattern),
                        ("patternProperties", Value::Object(properties)) => {
                            properties.iter().for_each(|(name, _)| self.add(name));
                        }
                        _ => {}
                    }
                    self.collect(value);
                }
            }
            Value::Array(elements) => elements.iter().for_each(|value| self.collect(value)),
            _ => {}
        }
    }

    fn add(&mut self, pattern: &str) {
        if self.compiled.contains_key(pattern) || self.seen >= PATTERNS {
            return;
        }
        self.seen += 1;
        let Some(compiled) = Pattern::compile(pattern) else {
            return;
        };
        if self.weight + compiled.weight() <= PATTERN_PROGRAMS {
            self.weight += compiled.weight();
            self.compiled.insert(pattern.into(), compiled);
        }
    }
}
