//! Schemas as types: `string`, `"r"|"w"`, `{from: string}[]`.

use std::collections::HashSet;
use std::fmt;

use switchboard_wire::tree::{Json, Object};

use crate::limits::{CHOICES, NAME_CHARACTERS, OUTLINE_DEPTH, OUTLINE_STEPS};
use crate::reference;
use crate::text;

/// The level of detail.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Detail {
    /// The deepest nesting of objects that is shown.
    depth: usize,
    /// The most schemas to visit.
    steps: usize,
}

impl Detail {
    /// All details.
    pub(crate) fn full() -> Self {
        Self {
            depth: OUTLINE_DEPTH,
            steps: OUTLINE_STEPS,
        }
    }

    /// Without the inner parts of objects.
    pub(crate) fn flat() -> Self {
        Self {
            depth: 0,
            ..Self::full()
        }
    }

    /// Short enough for the middle of a sentence.
    pub(crate) fn brief() -> Self {
        Self {
            depth: 1,
            steps: 24,
        }
    }
}

/// A type in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Kind {
    pub(crate) text: String,
    /// It is a union or an intersection, so it needs parentheses before anything is appended.
    several: bool,
}

impl Kind {
    fn one(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            several: false,
        }
    }

    fn is_any(&self) -> bool {
        self.text == ANY
    }

    fn array(self) -> Self {
        Self::one(if self.several {
            format!("({})[]", self.text)
        } else {
            format!("{}[]", self.text)
        })
    }
}

const ANY: &str = "any";

/// A member of an object.
#[derive(Debug)]
pub(crate) struct Member<'a> {
    pub(crate) name: &'a str,
    pub(crate) required: bool,
    pub(crate) schema: &'a Json<'a>,
    pub(crate) kind: String,
}

impl Member<'_> {
    /// Returns the default value of the member, if it is short.
    pub(crate) fn default(&self) -> Option<String> {
        match self.schema.get("default")? {
            Json::Null => None,
            Json::Array(elements) if elements.is_empty() => Some("[]".to_owned()),
            Json::Object(object) if object.is_empty() => Some("{}".to_owned()),
            Json::Array(_) | Json::Object(_) => None,
            Json::Text(text) if text.chars().count() > 40 => None,
            scalar => Some(text::value(scalar)),
        }
    }
}

impl fmt::Display for Member<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let optional = if self.required { "" } else { "?" };
        write!(f, "{}{optional}: {}", text::name(self.name), self.kind)?;
        match self.default() {
            Some(default) if !self.required => write!(f, " = {default}"),
            _ => Ok(()),
        }
    }
}

/// Describes the schemas of one document.
pub(crate) struct Kinds<'a> {
    root: &'a Json<'a>,
    detail: Detail,
    steps: usize,
    /// References that are being followed.
    within: Vec<&'a str>,
    depth: usize,
    frames: usize,
    whole: bool,
}

impl<'a> Kinds<'a> {
    pub(crate) fn new(root: &'a Json<'a>, detail: Detail) -> Self {
        Self {
            root,
            detail,
            steps: detail.steps,
            within: Vec::new(),
            depth: 0,
            frames: 0,
            whole: true,
        }
    }

    /// Returns `true` if nothing was left out so far.
    pub(crate) fn is_whole(&self) -> bool {
        self.whole
    }

    /// Returns the type of a schema.
    pub(crate) fn kind(&mut self, schema: &'a Json<'a>) -> Kind {
        let object = match schema {
            Json::Bool(false) => return Kind::one("never"),
            Json::Object(object) => object,
            _ => return Kind::one(ANY),
        };
        if self.steps == 0 || self.frames > 4 * OUTLINE_DEPTH {
            self.whole = false;
            return Kind::one(ANY);
        }
        self.steps -= 1;
        self.frames += 1;
        let kind = self.kind_of(schema, object);
        self.frames -= 1;
        let nullable = object.get("nullable") == Some(&Json::Bool(true));
        if nullable && !kind.is_any() {
            return union(vec![kind, Kind::one("null")]);
        }
        kind
    }

    fn kind_of(&mut self, schema: &'a Json<'a>, object: &'a Object<'a>) -> Kind {
        if let Some(value) = object.get("const") {
            return Kind::one(self.literal(value));
        }
        if let Some(choices) = object.get("enum").and_then(Json::as_array) {
            return self.choices(choices);
        }
        if let Some(reference) = object.get("$ref").and_then(Json::as_text) {
            return self
                .followed(reference, Self::kind)
                .unwrap_or_else(|| Kind::one(reference_name(reference)));
        }
        let own = self.own(schema, object);
        if !own.is_any() && !matches!(&*own.text, "object" | "array") {
            return own;
        }
        for keyword in ["anyOf", "oneOf"] {
            let branches = object.get(keyword).and_then(Json::as_array);
            let kinds = branches
                .into_iter()
                .flatten()
                .map(|branch| self.kind(branch));
            let mut kinds: Vec<Kind> = kinds.collect();
            kinds.retain(|kind| !kind.is_any());
            if !kinds.is_empty() {
                return union(kinds);
            }
        }
        let parts = object.get("allOf").and_then(Json::as_array);
        let parts = parts.into_iter().flatten().map(|part| self.kind(part));
        let parts: Vec<Kind> = parts.filter(|kind| !kind.is_any()).collect();
        match &*parts {
            [] => own,
            [one] => one.clone(),
            several => {
                let texts: Vec<&str> = several.iter().map(|kind| &*kind.text).collect();
                Kind {
                    text: texts.join(" & "),
                    several: true,
                }
            }
        }
    }

    /// Returns the type given by `type`, or implied by other keywords.
    fn own(&mut self, schema: &'a Json<'a>, object: &'a Object<'a>) -> Kind {
        match object.get("type") {
            Some(Json::Text(name)) => self.named(name, schema, object),
            Some(Json::Array(names)) => {
                let names = names.iter().filter_map(Json::as_text).take(CHOICES);
                let kinds = names.map(|name| self.named(name, schema, object));
                union(kinds.collect())
            }
            _ if object.get("properties").is_some() => self.object(schema, object),
            _ if object.get("items").is_some() || object.get("prefixItems").is_some() => {
                self.array(object)
            }
            _ if object.get("allOf").is_some() => self.object(schema, object),
            _ => Kind::one(ANY),
        }
    }

    fn named(&mut self, name: &str, schema: &'a Json<'a>, object: &'a Object<'a>) -> Kind {
        match name {
            "object" => self.object(schema, object),
            "array" => self.array(object),
            "string" | "integer" | "number" | "boolean" | "null" => Kind::one(name),
            _ => Kind::one(ANY),
        }
    }

    fn array(&mut self, object: &'a Object<'a>) -> Kind {
        let mut by_place = ["prefixItems", "items"].into_iter();
        let by_place = by_place.find_map(|name| object.get(name)?.as_array());
        if let Some(places) = by_place {
            let kinds = places
                .iter()
                .take(CHOICES)
                .map(|place| self.kind(place).text);
            let kinds: Vec<String> = kinds.collect();
            self.whole &= places.len() <= CHOICES;
            return Kind::one(format!("[{}]", kinds.join(", ")));
        }
        match object.get("items") {
            Some(items) => self.kind(items).array(),
            None => Kind::one("any[]"),
        }
    }

    fn object(&mut self, schema: &'a Json<'a>, object: &'a Object<'a>) -> Kind {
        if self.depth >= self.detail.depth {
            let named = self.named_members(schema, 0);
            if !named.is_empty() {
                self.whole = false;
                return Kind::one("{…}");
            }
        }
        self.depth += 1;
        let members = self.members(schema);
        let kind = match members {
            Some(members) => {
                let members: Vec<String> = members.iter().map(ToString::to_string).collect();
                Kind::one(format!("{{{}}}", members.join(", ")))
            }
            None => match object.get("additionalProperties") {
                Some(other @ Json::Object(inner)) if !inner.is_empty() => {
                    Kind::one(format!("{{[key]: {}}}", self.kind(other).text))
                }
                _ if object.get("type").is_some() => Kind::one("object"),
                _ => Kind::one(ANY),
            },
        };
        self.depth -= 1;
        kind
    }

    /// Returns the members that a schema names, required ones first; `None` if it names none.
    pub(crate) fn members(&mut self, schema: &'a Json<'a>) -> Option<Vec<Member<'a>>> {
        let mut named = self.named_members(schema, 0);
        if named.is_empty() {
            return None;
        }
        named.sort_by_key(|(_, _, required)| !required);
        let members = named.into_iter().map(|(name, schema, required)| Member {
            name,
            required,
            schema,
            kind: self.kind(schema).text,
        });
        Some(members.collect())
    }

    /// Returns the members of an object, or of the objects in an array, and the suffix that marks
    /// an array: `[]`. `None` if the schema is anything else, or shows no members.
    pub(crate) fn opened(
        &mut self,
        schema: &'a Json<'a>,
    ) -> Option<(Vec<Member<'a>>, &'static str)> {
        let schema = self.target(schema);
        let several = ["anyOf", "oneOf", "enum", "const", "nullable"];
        if several.iter().any(|keyword| schema.get(keyword).is_some()) {
            return None;
        }
        match schema.get("type").and_then(Json::as_text) {
            Some("array") => {
                let items = self.target(schema.get("items")?);
                let object = items.get("type").and_then(Json::as_text) == Some("object");
                Some((object.then(|| self.members(items)).flatten()?, "[]"))
            }
            Some("object") => Some((self.members(schema)?, "")),
            _ => None,
        }
    }

    /// Returns the target of a schema's reference, or the schema itself.
    fn target(&self, schema: &'a Json<'a>) -> &'a Json<'a> {
        let reference = schema.get("$ref").and_then(Json::as_text);
        let target = reference.and_then(|reference| reference::resolve(self.root, reference));
        target.unwrap_or(schema)
    }

    /// Returns every member with its schema, and `true` if it is required: the schema's own
    /// members, those of its reference, and those of its `allOf`, `anyOf` and `oneOf`.
    fn named_members(
        &mut self,
        schema: &'a Json<'a>,
        nested: usize,
    ) -> Vec<(&'a str, &'a Json<'a>, bool)> {
        if self.steps == 0 || nested > OUTLINE_DEPTH {
            self.whole = false;
            return Vec::new();
        }
        self.steps -= 1;
        let mut found: Vec<(&str, &Json<'_>, bool)> = Vec::new();
        if let Some(reference) = schema.get("$ref").and_then(Json::as_text) {
            let inner = |kinds: &mut Self, target| kinds.named_members(target, nested + 1);
            found = self.followed(reference, inner).unwrap_or_default();
        }
        let properties = schema.get("properties").and_then(Json::as_object);
        let own = properties.into_iter().flat_map(|members| members.iter());
        add(
            &mut found,
            own.map(|(name, schema)| (&**name, schema, false)),
        );
        let parts = schema.get("allOf").and_then(Json::as_array);
        for part in parts.into_iter().flatten() {
            let inner = self.named_members(part, nested + 1);
            add(&mut found, inner.into_iter());
        }
        if !found.is_empty() {
            // Members of only some alternatives cannot be required.
            for keyword in ["anyOf", "oneOf"] {
                let forms = schema.get(keyword).and_then(Json::as_array);
                for form in forms.into_iter().flatten() {
                    let inner = self.named_members(form, nested + 1);
                    add(
                        &mut found,
                        inner
                            .into_iter()
                            .map(|(name, schema, _)| (name, schema, false)),
                    );
                }
            }
        }
        let required = schema.get("required").and_then(Json::as_array);
        let required = required.into_iter().flatten().filter_map(Json::as_text);
        let required: HashSet<&str> = required.collect();
        for (name, _, is_required) in &mut found {
            *is_required |= required.contains(name);
        }
        found
    }

    /// Calls `then` with the target of a reference; `None` if it does not exist, or is being
    /// followed already.
    fn followed<T>(
        &mut self,
        reference: &'a str,
        then: impl FnOnce(&mut Self, &'a Json<'a>) -> T,
    ) -> Option<T> {
        let target = reference::resolve(self.root, reference);
        let Some(target) = target.filter(|_| !self.within.contains(&reference)) else {
            self.whole = false;
            return None;
        };
        self.within.push(reference);
        let done = then(self, target);
        self.within.pop();
        Some(done)
    }

    fn choices(&mut self, choices: &[Json<'_>]) -> Kind {
        let literals = choices.iter().take(CHOICES);
        let mut kinds: Vec<Kind> = literals
            .map(|value| Kind::one(self.literal(value)))
            .collect();
        if choices.len() > CHOICES {
            self.whole = false;
            kinds.push(Kind::one("…"));
        }
        union(kinds)
    }

    /// Formats a value as a literal type.
    fn literal(&mut self, value: &Json<'_>) -> String {
        match value {
            Json::Array(_) => "array".to_owned(),
            Json::Object(_) => "object".to_owned(),
            Json::Text(text) => {
                self.whole &= text.chars().count() <= NAME_CHARACTERS;
                text::quoted(text, NAME_CHARACTERS)
            }
            scalar => text::value(scalar),
        }
    }
}

/// Adds members with new names, and marks known ones as required.
fn add<'a>(
    found: &mut Vec<(&'a str, &'a Json<'a>, bool)>,
    more: impl Iterator<Item = (&'a str, &'a Json<'a>, bool)>,
) {
    let mut known: HashSet<&str> = found.iter().map(|(name, ..)| *name).collect();
    for (name, schema, required) in more {
        if known.insert(name) {
            found.push((name, schema, required));
        } else if required && let Some(member) = found.iter_mut().find(|(other, ..)| *other == name)
        {
            member.2 = true;
        }
    }
}

/// Joins types into a union, each once.
fn union(kinds: Vec<Kind>) -> Kind {
    let mut texts: Vec<String> = Vec::new();
    for kind in kinds {
        if !texts.contains(&kind.text) {
            texts.push(kind.text);
        }
    }
    if texts.iter().any(|text| text == ANY) || texts.is_empty() {
        return Kind::one(ANY);
    }
    Kind {
        several: texts.len() > 1,
        text: texts.join("|"),
    }
}

/// Returns the name of a referenced type.
fn reference_name(reference: &str) -> String {
    let name = text::name(reference::name(reference));
    if name.starts_with('"') {
        ANY.to_owned()
    } else {
        name
    }
}
