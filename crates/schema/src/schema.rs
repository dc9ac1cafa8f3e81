//! [`Schema`]: a compiled schema. Also reads the values to check.

use std::collections::HashMap;

use switchboard_wire::{
    Raw,
    tree::{Json, Tree},
};

use crate::limits::{NAME_CHARACTERS, PATTERN_PROGRAMS, PATTERNS, SCHEMA_BYTES};
use crate::pattern::Pattern;
use crate::reference;
use crate::text;

/// A schema with its compiled patterns.
#[derive(Debug)]
pub(crate) struct Schema {
    pub(crate) root: Json<'static>,
    pub(crate) patterns: HashMap<Box<str>, Pattern>,
    /// Keywords beside a `$ref` are ignored, as in drafts up to 7.
    pub(crate) lone_references: bool,
    /// References are followed.
    pub(crate) references: bool,
}

/// The reason why a schema cannot be used for checks. The decision is left to the server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unusable {
    /// The schema is neither an object nor a boolean.
    #[error("the schema is neither an object nor a boolean")]
    NotASchema,
    /// The schema is too large.
    #[error("the schema has {0} bytes, but at most {SCHEMA_BYTES} are checked")]
    TooLarge(usize),
    /// The `$schema` is unknown, so the keywords may have any meaning.
    #[error("the schema has the unknown dialect {0:?}")]
    Dialect(String),
    /// The schema is nested too deeply.
    #[error("the schema is nested too deeply")]
    TooDeep,
}

impl Schema {
    pub(crate) fn compile(schema: &Raw) -> Result<Self, Unusable> {
        let root = read(schema)?;
        let dialect = root.get("$schema").and_then(Json::as_text);
        if let Some(other) = dialect.filter(|dialect| !dialect.contains("json-schema.org/")) {
            return Err(Unusable::Dialect(text::cut(other, NAME_CHARACTERS)));
        }
        let lone_references = dialect.is_some_and(|dialect| {
            ["draft-03", "draft-04", "draft-05", "draft-06", "draft-07"]
                .iter()
                .any(|draft| dialect.contains(draft))
        });
        let mut patterns = Patterns::default();
        patterns.collect(&root);
        Ok(Self {
            references: !reference::is_rebased(&root),
            lone_references,
            patterns: patterns.compiled,
            root: root.into_owned(),
        })
    }
}

/// Reads a schema.
pub(crate) fn read(schema: &Raw) -> Result<Json<'_>, Unusable> {
    let bytes = schema.as_bytes();
    if bytes.len() > SCHEMA_BYTES {
        return Err(Unusable::TooLarge(bytes.len()));
    }
    match read_value(schema).ok_or(Unusable::TooDeep)? {
        root @ (Json::Object(_) | Json::Bool(_)) => Ok(root),
        _ => Err(Unusable::NotASchema),
    }
}

/// Reads a value; of duplicate members, the last one counts. `None` if it is nested too deeply.
pub(crate) fn read_value(raw: &Raw) -> Option<Json<'_>> {
    let mut tree = Tree::read(raw, usize::MAX);
    tree.value.keep_last();
    tree.whole.then_some(tree.value)
}

/// All patterns in a schema.
#[derive(Default)]
struct Patterns {
    compiled: HashMap<Box<str>, Pattern>,
    seen: usize,
    weight: u64,
}

impl Patterns {
    fn collect(&mut self, value: &Json<'_>) {
        match value {
            Json::Object(object) => {
                for (name, value) in object.iter() {
                    match (&**name, value) {
                        ("pattern", Json::Text(pattern)) => self.add(pattern),
                        ("patternProperties", Json::Object(properties)) => {
                            properties.iter().for_each(|(name, _)| self.add(name));
                        }
                        _ => {}
                    }
                    self.collect(value);
                }
            }
            Json::Array(elements) => elements.iter().for_each(|value| self.collect(value)),
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
