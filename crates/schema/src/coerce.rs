//! Converts arguments of the wrong type that have an obvious meaning: `"3"` for 3, a list in a text.

use switchboard_wire::{
    Raw,
    tree::{Json, Object},
};

use crate::error::{Segment, ValidationErrors, path};
use crate::limits::{FRAMES, MISMATCHES};
use crate::reference;
use crate::run::{Run, Verdict};
use crate::scalar::is_of;
use crate::schema::read_value;
use crate::text;

/// Arguments that a server may accept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fit {
    /// Arguments to send. Values of the wrong type are converted; every other value keeps its spelling.
    pub arguments: Raw,
    /// Conversions that were made, one sentence each.
    pub notes: Vec<String>,
    /// Mismatches that the server may accept all the same: unknown members may be aliases of known ones.
    pub doubts: Option<ValidationErrors>,
}

/// A search for values of the wrong type.
pub(crate) struct Coercion<'c> {
    /// The run whose remaining steps are used.
    run: Run<'c, 'c>,
    path: Vec<Step>,
    notes: Vec<String>,
    more: usize,
}

enum Step {
    Name(String),
    Index(usize),
}

impl<'c> Coercion<'c> {
    pub(crate) fn new(run: Run<'c, 'c>) -> Self {
        Self {
            run,
            path: Vec::new(),
            notes: Vec::new(),
            more: 0,
        }
    }

    /// Returns the arguments with values converted, or `None` if none was converted.
    pub(crate) fn replace(&mut self, value: &Json<'_>, raw: &Raw) -> Option<Raw> {
        self.part(&self.run.schema.root, value, raw, 0)
    }

    pub(crate) fn into_notes(mut self) -> Vec<String> {
        if self.more > 0 {
            self.notes
                .push(format!("further values that were converted: {}", self.more));
        }
        self.notes
    }

    fn part(
        &mut self,
        schema: &'c Json<'c>,
        value: &Json<'_>,
        raw: &Raw,
        depth: usize,
    ) -> Option<Raw> {
        let keywords = schema.as_object()?;
        if depth >= FRAMES || !self.run.charge(1) {
            return None;
        }
        if let Some(target) = self.target(keywords) {
            return self.part(target, value, raw, depth + 1);
        }
        if let Some(types) = keywords.get("type") {
            let types = types.as_array().unwrap_or(std::slice::from_ref(types));
            if !self.charge_for(types.len(), value) {
                return None;
            }
            if !types.iter().any(|kind| is_of(value, kind)) {
                return self.convert(schema, types, value);
            }
        }
        for branches in ["anyOf", "oneOf"].map(|name| keywords.get(name)) {
            let branches = branches.and_then(Json::as_array).unwrap_or_default();
            if let Some(replaced) = self.branch(branches, value, raw, depth) {
                return Some(replaced);
            }
        }
        match value {
            Json::Object(object) => self.members(keywords, object, raw, depth),
            Json::Array(elements) => self.elements(keywords, elements, raw, depth),
            _ => None,
        }
    }

    /// Charges for reading a number or a text as each of this many types. Returns `false` if the steps do
    /// not suffice.
    fn charge_for(&mut self, types: usize, value: &Json<'_>) -> bool {
        let length = match value {
            Json::Number(spelled) => spelled.len() as u64,
            Json::Text(text) => text.len() as u64,
            _ => 0,
        };
        self.run.charge(types as u64 * (1 + length / 16))
    }

    /// Charges for splitting a value into its parts. Returns `false` if the steps do not suffice.
    fn charge_parts(&mut self, raw: &Raw) -> bool {
        self.run.charge(raw.as_bytes().len() as u64 / 64)
    }

    /// Returns the target of a schema's reference. The only schema in an `allOf` counts as one.
    fn target(&self, keywords: &'c Object<'c>) -> Option<&'c Json<'c>> {
        let schema = self.run.schema;
        if let Some(reference) = keywords.get("$ref") {
            let reference = reference.as_text().filter(|_| schema.references)?;
            return reference::resolve(&schema.root, reference);
        }
        match keywords.get("allOf").and_then(Json::as_array)? {
            [only] => Some(only),
            _ => None,
        }
    }

    /// Converts a value that fits no alternative to the first one that it fits after conversion.
    fn branch(
        &mut self,
        branches: &'c [Json<'c>],
        value: &Json<'_>,
        raw: &Raw,
        depth: usize,
    ) -> Option<Raw> {
        for branch in branches {
            if self.run.aside(branch, value) != Verdict::No {
                return None;
            }
        }
        branches.iter().find_map(|branch| {
            let (notes, more) = (self.notes.len(), self.more);
            let replaced = self.part(branch, value, raw, depth + 1);
            let replaced = replaced.filter(|replaced| self.fits(branch, replaced));
            if replaced.is_none() {
                self.notes.truncate(notes);
                self.more = more;
            }
            replaced
        })
    }

    fn members(
        &mut self,
        keywords: &'c Object<'c>,
        object: &Object<'_>,
        raw: &Raw,
        depth: usize,
    ) -> Option<Raw> {
        let mut members = self.charge_parts(raw).then(|| raw.members())??;
        // An object with duplicate names, or with names that are not valid text, cannot be rewritten.
        if members.len() != object.len()
            || members.iter().any(|(name, _)| name.contains('\u{FFFD}'))
        {
            return None;
        }
        let mut changed = false;
        for (name, raw) in &mut members {
            let Some(value) = object.get(name) else {
                continue;
            };
            for schema in self.schemas_of(keywords, name) {
                let step = Step::Name(name.clone());
                if self.replace_part(step, schema, value, raw, depth) {
                    changed = true;
                    // The other schemas are about the original value.
                    break;
                }
            }
        }
        let members = members.iter().map(|(name, raw)| (&**name, raw.clone()));
        changed.then(|| Raw::object(members))
    }

    /// Returns the schemas of a member of this name. The schema for additional members is left out if a
    /// pattern may match.
    fn schemas_of(&mut self, keywords: &'c Object<'c>, name: &str) -> Vec<&'c Json<'c>> {
        let object = |keyword| keywords.get(keyword).and_then(Json::as_object);
        let known = object("properties").and_then(|properties| properties.get(name));
        let mut schemas: Vec<_> = known.into_iter().collect();
        let mut is_other = known.is_none();
        let patterns = object("patternProperties").into_iter();
        for (pattern, schema) in patterns.flat_map(|members| members.iter()) {
            if !self.run.charge(1) {
                return Vec::new();
            }
            let matches = self.run.matches(pattern, name);
            is_other &= matches == Some(false);
            if matches == Some(true) {
                schemas.push(schema);
            }
        }
        schemas.extend(keywords.get("additionalProperties").filter(|_| is_other));
        schemas
    }

    fn elements(
        &mut self,
        keywords: &'c Object<'c>,
        elements: &[Json<'_>],
        raw: &Raw,
        depth: usize,
    ) -> Option<Raw> {
        let items = keywords.get("items");
        // An array of schemas in `items` is the old form of `prefixItems`.
        let (first, rest) = match (keywords.get("prefixItems"), items) {
            (Some(first), rest) => (first.as_array(), rest),
            (None, Some(Json::Array(first))) => (Some(&**first), keywords.get("additionalItems")),
            (None, rest) => (None, rest),
        };
        let first = first.unwrap_or_default();
        if first.is_empty() && rest.is_none() {
            return None;
        }
        let mut all = self.charge_parts(raw).then(|| raw.elements())??;
        let mut changed = false;
        for (at, (raw, value)) in all.iter_mut().zip(elements).enumerate() {
            if let Some(schema) = first.get(at).or(rest) {
                changed |= self.replace_part(Step::Index(at), schema, value, raw, depth);
            }
        }
        changed.then(|| Raw::array(all))
    }

    /// Returns `true` if a part was converted.
    fn replace_part(
        &mut self,
        step: Step,
        schema: &'c Json<'c>,
        value: &Json<'_>,
        raw: &mut Raw,
        depth: usize,
    ) -> bool {
        self.path.push(step);
        let replaced = self.part(schema, value, raw, depth + 1);
        self.path.pop();
        let is_new = replaced.is_some();
        if let Some(replaced) = replaced {
            *raw = replaced;
        }
        is_new
    }

    /// Converts a value to one of these types, if it fits the schema then.
    fn convert(
        &mut self,
        schema: &'c Json<'c>,
        types: &[Json<'_>],
        value: &Json<'_>,
    ) -> Option<Raw> {
        let kinds = types.iter().filter_map(Json::as_text);
        let converted: Vec<Raw> = kinds.filter_map(|kind| as_kind(kind, value)).collect();
        let fitting = converted
            .into_iter()
            .find(|converted| self.fits(schema, converted))?;
        self.note(value, &fitting);
        Some(fitting)
    }

    fn fits(&mut self, schema: &'c Json<'c>, raw: &Raw) -> bool {
        // Reading a value takes longer than splitting it, and each enclosing alternative reads it again.
        if !self.run.charge(raw.as_bytes().len() as u64 / 32) {
            return false;
        }
        read_value(raw).is_some_and(|value| self.run.aside(schema, &value) != Verdict::No)
    }

    fn note(&mut self, before: &Json<'_>, after: &Raw) {
        if self.notes.len() >= MISMATCHES {
            self.more += 1;
            return;
        }
        let steps = self.path.iter().map(|step| match step {
            Step::Name(name) => Segment::Name(name),
            Step::Index(index) => Segment::Index(*index),
        });
        let path = path(steps);
        let after = read_value(after).map_or_else(String::new, |it| text::value(&it));
        let before = text::value(before);
        self.notes
            .push(format!("{path} was converted from {before} to {after}"));
    }
}

/// Converts a value to another type, if its meaning is unambiguous.
fn as_kind(kind: &str, value: &Json<'_>) -> Option<Raw> {
    match (kind, value) {
        ("integer" | "number", Json::Text(text)) => {
            let text = text.trim();
            let is_number = text.starts_with(|c: char| c == '-' || c.is_ascii_digit());
            Raw::parse(text.to_owned()).ok().filter(|_| is_number)
        }
        ("boolean", Json::Text(text)) => match text.trim() {
            "true" | "True" => Some(Raw::from(true)),
            "false" | "False" => Some(Raw::from(false)),
            _ => None,
        },
        ("string", Json::Number(number)) => Some(Raw::string(number)),
        ("string", Json::Bool(value)) => Some(Raw::string(if *value { "true" } else { "false" })),
        ("array" | "object", Json::Text(text)) => {
            let text = text.trim();
            let is_one = text.starts_with(if kind == "array" { '[' } else { '{' });
            Raw::parse(is_one.then(|| text.to_owned())?).ok()
        }
        _ => None,
    }
}
