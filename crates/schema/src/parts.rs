//! Keywords for composite values: objects and arrays.

use std::collections::HashMap;

use switchboard_wire::tree::{Json, Object};

use crate::error::Segment;
use crate::limits::{CHOICES, DESCRIPTION_CHARACTERS, NAME_CHARACTERS};
use crate::outline;
use crate::run::{Run, Verdict};
use crate::text;

impl<'c, 'v> Run<'c, 'v> {
    pub(crate) fn object(
        &mut self,
        schema: &'c Object<'c>,
        name: &str,
        keyword: &'c Json<'c>,
        (value, object): (&'v Json<'v>, &'v Object<'v>),
    ) -> Verdict {
        match name {
            "properties" => self.properties(schema, keyword, object),
            "patternProperties" => self.pattern_properties(keyword, object),
            "additionalProperties" => self.additional_properties(schema, keyword, object),
            "required" => match keyword {
                // In draft 3, `required` was a boolean on the member itself.
                Json::Array(names) => self.required(schema, names, None, object),
                _ => Verdict::Perhaps,
            },
            "minProperties" | "maxProperties" => {
                self.size(name == "minProperties", keyword, "member", || object.len())
            }
            "dependentRequired" | "dependentSchemas" | "dependencies" => {
                self.dependent(schema, keyword, value, object)
            }
            "propertyNames" => self.property_names(keyword, object),
            "unevaluatedProperties" if stands_alone(schema) => {
                self.additional_properties(schema, keyword, object)
            }
            "unevaluatedProperties" => unevaluated(keyword),
            _ => Verdict::Yes,
        }
    }

    /// Checks a part of the value against its own schema.
    fn part(&mut self, schema: &'c Json<'c>, segment: Segment<'v>, value: &'v Json<'v>) -> Verdict {
        self.path.push(segment);
        let verdict = self.eval(schema, value);
        self.path.pop();
        verdict
    }

    fn properties(
        &mut self,
        schema: &'c Object<'c>,
        keyword: &'c Json<'c>,
        object: &'v Object<'v>,
    ) -> Verdict {
        let Some(properties) = keyword.as_object() else {
            return Verdict::Perhaps;
        };
        let mut verdict = Verdict::Yes;
        for (name, value) in object.iter() {
            if !self.charge(1) {
                return verdict.and(Verdict::Perhaps);
            }
            let Some(property) = properties.get(name) else {
                continue;
            };
            let before = self.findings();
            verdict = verdict.and(self.part(property, Segment::Name(name), value));
            if *value == Json::Null && self.findings() > before && !requires(schema, name) {
                self.path.push(Segment::Name(name));
                self.hint(before, "omit it, it is optional");
                self.path.pop();
            }
            if self.is_over(verdict) {
                break;
            }
        }
        verdict
    }

    fn pattern_properties(&mut self, keyword: &'c Json<'c>, object: &'v Object<'v>) -> Verdict {
        let Some(patterns) = keyword.as_object() else {
            return Verdict::Perhaps;
        };
        let mut verdict = Verdict::Yes;
        for (pattern, schema) in patterns.iter() {
            for (name, value) in object.iter() {
                let found = match self.matches(pattern, name) {
                    Some(true) => self.part(schema, Segment::Name(name), value),
                    Some(false) => Verdict::Yes,
                    None => Verdict::Perhaps,
                };
                verdict = verdict.and(found);
                if self.is_over(verdict) || !self.charge(1) {
                    return verdict.and(Verdict::Perhaps);
                }
            }
        }
        verdict
    }

    fn additional_properties(
        &mut self,
        schema: &'c Object<'c>,
        keyword: &'c Json<'c>,
        object: &'v Object<'v>,
    ) -> Verdict {
        if *keyword == Json::Bool(true) {
            return Verdict::Yes;
        }
        let properties = schema.get("properties").and_then(Json::as_object);
        let patterns = schema.get("patternProperties").and_then(Json::as_object);
        let mut verdict = Verdict::Yes;
        for (name, value) in object.iter() {
            if !self.charge(1) {
                return verdict.and(Verdict::Perhaps);
            }
            if properties.is_some_and(|properties| properties.get(name).is_some()) {
                continue;
            }
            let found = match self.matched_by(patterns, name) {
                Some(true) => Verdict::Yes,
                Some(false) if *keyword == Json::Bool(false) => {
                    let search = self.charge_search(name, names(properties));
                    if self.aliases && !(search && is_slip(name, properties, object)) {
                        Verdict::Perhaps
                    } else {
                        self.no_member(name, || unknown(name, properties, search))
                    }
                }
                Some(false) => self.part(keyword, Segment::Name(name), value),
                None => Verdict::Perhaps,
            };
            verdict = verdict.and(found);
            if self.is_over(verdict) {
                break;
            }
        }
        verdict
    }

    /// Returns `true` if one of the patterns matches a name; `None` if that is unknown.
    fn matched_by(&mut self, patterns: Option<&Object<'_>>, name: &str) -> Option<bool> {
        let mut sure = true;
        for (pattern, _) in patterns.into_iter().flat_map(|members| members.iter()) {
            match self.matches(pattern, name) {
                Some(true) => return Some(true),
                Some(false) => {}
                None => sure = false,
            }
        }
        sure.then_some(false)
    }

    /// Checks that these members are present; `because` is the member that requires them, if any.
    fn required(
        &mut self,
        schema: &'c Object<'c>,
        names: &'c [Json<'c>],
        because: Option<&str>,
        object: &Object<'_>,
    ) -> Verdict {
        let mut verdict = Verdict::Yes;
        let may_be_there = self.aliases && self.has_unknown(schema, object);
        for name in names {
            let found = match name.as_text() {
                _ if !self.charge(1) => Verdict::Perhaps,
                None => Verdict::Perhaps,
                Some(name) if object.get(name).is_some() => Verdict::Yes,
                Some(_) if may_be_there => Verdict::Perhaps,
                Some(name) => {
                    self.charge(32);
                    let root = &self.schema.root;
                    self.no_member(name, || (missing(root, schema, name, because), None))
                }
            };
            verdict = verdict.and(found);
            if self.is_over(verdict) {
                break;
            }
        }
        verdict
    }

    /// Returns `true` if the schema names members, and the object has one that it does not name.
    fn has_unknown(&mut self, schema: &Object<'_>, object: &Object<'_>) -> bool {
        let properties = schema.get("properties").and_then(Json::as_object);
        self.charge(object.len() as u64);
        properties.is_some_and(|known| object.iter().any(|(name, _)| known.get(name).is_none()))
    }

    /// Checks the requirements of members that are present: other members, or a schema for the
    /// whole object.
    fn dependent(
        &mut self,
        schema: &'c Object<'c>,
        keyword: &'c Json<'c>,
        value: &'v Json<'v>,
        object: &'v Object<'v>,
    ) -> Verdict {
        let Some(dependents) = keyword.as_object() else {
            return Verdict::Perhaps;
        };
        let mut verdict = Verdict::Yes;
        for (name, dependent) in dependents.iter() {
            if !self.charge(1) {
                return verdict.and(Verdict::Perhaps);
            }
            if object.get(name).is_none() {
                continue;
            }
            let found = match dependent {
                Json::Array(names) => self.required(schema, names, Some(name), object),
                Json::Text(_) => {
                    let names = std::slice::from_ref(dependent);
                    self.required(schema, names, Some(name), object)
                }
                schema => self.eval(schema, value),
            };
            verdict = verdict.and(found);
            if self.is_over(verdict) {
                break;
            }
        }
        verdict
    }

    fn property_names(&mut self, keyword: &'c Json<'c>, object: &'v Object<'v>) -> Verdict {
        let mut verdict = Verdict::Yes;
        for (name, _) in object.iter() {
            let found = match self.aside(keyword, &Json::Text(name.clone())) {
                Verdict::No => self.no_member(name, || {
                    let message = "has a name that is not allowed here".to_owned();
                    (message, None)
                }),
                other => other,
            };
            verdict = verdict.and(found);
            if self.is_over(verdict) || !self.charge(1) {
                return verdict.and(Verdict::Perhaps);
            }
        }
        verdict
    }

    pub(crate) fn array(
        &mut self,
        schema: &'c Object<'c>,
        name: &str,
        keyword: &'c Json<'c>,
        elements: &'v [Json<'v>],
    ) -> Verdict {
        match name {
            "items" | "additionalItems" | "prefixItems" => {
                self.items(schema, name, keyword, elements)
            }
            "minItems" | "maxItems" => {
                self.size(name == "minItems", keyword, "element", || elements.len())
            }
            "uniqueItems" if *keyword == Json::Bool(true) => self.unique(elements),
            "contains" => self.contains(schema, keyword, elements),
            "unevaluatedItems" => unevaluated(keyword),
            _ => Verdict::Yes,
        }
    }

    /// Checks elements by position, and all others. Until draft 2020-12, which introduced
    /// `prefixItems`, the former were an array of schemas in `items`.
    fn items(
        &mut self,
        schema: &'c Object<'c>,
        name: &str,
        keyword: &'c Json<'c>,
        elements: &'v [Json<'v>],
    ) -> Verdict {
        let by_place = |name| schema.get(name).and_then(Json::as_array);
        match (name, keyword) {
            ("prefixItems" | "items", Json::Array(schemas)) => {
                let mut verdict = Verdict::Yes;
                for (index, (schema, value)) in schemas.iter().zip(elements).enumerate() {
                    verdict = verdict.and(self.part(schema, Segment::Index(index), value));
                    if self.is_over(verdict) {
                        break;
                    }
                }
                verdict
            }
            ("additionalItems", _) => match by_place("items") {
                Some(first) => self.rest(first.len(), keyword, elements),
                None => Verdict::Yes,
            },
            ("items", _) => {
                let first = by_place("prefixItems").map_or(0, <[Json<'_>]>::len);
                self.rest(first, keyword, elements)
            }
            _ => Verdict::Perhaps,
        }
    }

    fn rest(&mut self, first: usize, schema: &'c Json<'c>, elements: &'v [Json<'v>]) -> Verdict {
        let mut verdict = Verdict::Yes;
        for (index, value) in elements.iter().enumerate().skip(first) {
            verdict = verdict.and(self.part(schema, Segment::Index(index), value));
            if self.is_over(verdict) || !self.charge(1) {
                return verdict.and(Verdict::Perhaps);
            }
        }
        verdict
    }

    fn unique(&mut self, elements: &[Json<'_>]) -> Verdict {
        let mut seen = HashMap::new();
        for (index, element) in elements.iter().enumerate() {
            let Some(canonical) = self.canonical(element).filter(|_| self.charge(1)) else {
                return Verdict::Perhaps;
            };
            if let Some(first) = seen.insert(canonical, index) {
                return self.no(|| {
                    format!("must have unique elements, but [{first}] and [{index}] are equal")
                });
            }
        }
        Verdict::Yes
    }

    fn contains(
        &mut self,
        schema: &'c Object<'c>,
        keyword: &'c Json<'c>,
        elements: &'v [Json<'v>],
    ) -> Verdict {
        let (mut sure, mut unsure) = (0_usize, 0_usize);
        for element in elements {
            match self.quietly(keyword, element) {
                Verdict::Yes => sure += 1,
                Verdict::Perhaps => unsure += 1,
                Verdict::No => {}
            }
        }
        let one = Json::Number("1".into());
        let least = schema.get("minContains").unwrap_or(&one);
        let unit = "matching element";
        let mut verdict = match self.size(true, least, unit, || sure + unsure) {
            Verdict::Yes if unsure > 0 => Verdict::Perhaps,
            other => other,
        };
        if let Some(most) = schema.get("maxContains") {
            verdict = verdict.and(self.size(false, most, unit, || sure));
        }
        verdict
    }
}

/// The members or elements that other keywords have evaluated are not tracked.
fn unevaluated(keyword: &Json<'_>) -> Verdict {
    match keyword {
        Json::Bool(true) => Verdict::Yes,
        _ => Verdict::Perhaps,
    }
}

/// Returns `true` if no other schema can evaluate members on behalf of this one.
fn stands_alone(schema: &Object<'_>) -> bool {
    let others = [
        "additionalProperties",
        "$ref",
        "$dynamicRef",
        "$recursiveRef",
        "allOf",
        "anyOf",
        "oneOf",
        "not",
        "if",
        "dependentSchemas",
        "dependencies",
    ];
    others.iter().all(|name| schema.get(name).is_none())
}

fn requires(schema: &Object<'_>, name: &str) -> bool {
    let names = schema.get("required").and_then(Json::as_array);
    names.is_some_and(|names| {
        names
            .iter()
            .any(|required| required.as_text() == Some(name))
    })
}

/// Describes a missing member.
fn missing(root: &Json<'_>, schema: &Object<'_>, name: &str, because: Option<&str>) -> String {
    let mut out = String::from("is missing");
    if let Some(because) = because {
        let because = text::cut(because, NAME_CHARACTERS);
        out.extend([", but `", &because, "` requires it"]);
    }
    let property = schema
        .get("properties")
        .and_then(|properties| properties.get(name));
    let Some(property) = property else {
        return out;
    };
    out.push_str(": ");
    out.push_str(&outline::kind(root, property));
    let description = property.get("description").and_then(Json::as_text);
    if let Some(description) = description {
        let description = text::cut(description, DESCRIPTION_CHARACTERS);
        out.extend([" (", &description, ")"]);
    }
    out
}

/// Describes an unknown member and, if `search` is set, suggests the name that was probably meant.
fn unknown(name: &str, properties: Option<&Object<'_>>, search: bool) -> (String, Option<String>) {
    let meant = search
        .then(|| text::nearest(name, names(properties)))
        .flatten();
    let hint = match (meant, names(properties).next()) {
        (Some(meant), _) => format!("did you mean `{}`?", text::cut(meant, NAME_CHARACTERS)),
        (None, Some(_)) => format!(
            "the known names are {}",
            text::list(names(properties), CHOICES)
        ),
        (None, None) => "no members are allowed here".to_owned(),
    };
    ("is unknown".to_owned(), Some(hint))
}

/// Returns `true` if the name of a member looks like a misspelling of one that is absent.
fn is_slip(name: &str, properties: Option<&Object<'_>>, object: &Object<'_>) -> bool {
    let meant = text::nearest(name, names(properties));
    meant.is_some_and(|meant| object.get(meant).is_none())
}

fn names<'a>(properties: Option<&'a Object<'a>>) -> impl Iterator<Item = &'a str> {
    let members = properties.into_iter().flat_map(|members| members.iter());
    members.map(|(name, _)| &**name)
}
