//! Differences that make no other definition of one: the order of a set, and where the server runs.
//!
//! This is a boundary of trust, so it is narrow. Lists that are sets by the rules of JSON Schema may come in any order,
//! and so may a default that is a list of words; a description may name the server's own directories, which the
//! gateway knows. Every other character counts: numbers, versions, other paths.

use std::{borrow::Cow, path::Path};

use switchboard_wire::tree::{Json, Text};

use crate::{ItemKind, spelled::spelled};

/// The directories of a server that its descriptions may name, wherever they are at present.
#[derive(Clone, Debug, Default)]
pub struct Places(Vec<(Place, String)>);

/// What a directory is to the server. One is never taken for another.
#[derive(Clone, Copy, Debug)]
enum Place {
    WorkingDirectory = 1,
    Home = 2,
    Temporary = 3,
}

/// The longest path that is looked for.
const PLACE_BYTES: usize = 4096;

/// So many words in a default are a list. Two may be a pair, in which the order has a meaning.
const LIST_WORDS: usize = 3;

/// The keywords beside which the order of an `enum` means nothing. Beside others, such as a list of labels, it may.
const PLAIN: [&str; 9] = [
    "type",
    "title",
    "description",
    "default",
    "enum",
    "examples",
    "format",
    "deprecated",
    "nullable",
];

impl Places {
    /// The directory that the server runs in, the home of the user, and the directory for temporary files. A path that
    /// is relative or has no name in it is not looked for.
    pub fn new(
        working_directory: Option<&Path>,
        home: Option<&Path>,
        temporary: Option<&Path>,
    ) -> Self {
        let all = [
            (Place::WorkingDirectory, working_directory),
            (Place::Home, home),
            (Place::Temporary, temporary),
        ];
        let known = all.into_iter().filter_map(|(place, path)| {
            let path = path?.to_str()?.trim_end_matches('/');
            let is_one = path.starts_with('/') && path.len() <= PLACE_BYTES;
            is_one.then(|| (place, path.to_owned()))
        });
        let mut known: Vec<_> = known.collect();
        // One within another is the one that is meant.
        known.sort_by_key(|(_, path)| std::cmp::Reverse(path.len()));
        Self(known)
    }

    /// The text with a mark in the place of each of the directories. A mark is an odd half of a surrogate pair, which
    /// no text can spell.
    fn settle<'a>(&self, text: &Text<'a>) -> Text<'a> {
        if !text.halves.is_empty() {
            return text.clone();
        }
        let (mut out, mut halves) = (String::new(), Vec::new());
        let (mut from, mut at) = (0, 0);
        while let Some(slash) = text.text[at..].find('/') {
            let start = at + slash;
            at = start + 1;
            if let Some((place, end)) = self.named_at(&text.text, start) {
                out.push_str(&text.text[from..start]);
                halves.push((out.len(), place as u16));
                (from, at) = (end, end);
            }
        }
        if halves.is_empty() {
            return text.clone();
        }
        out.push_str(&text.text[from..]);
        Text {
            text: out.into(),
            halves: halves.into(),
        }
    }

    /// The directory that a text names here, and where its name ends.
    fn named_at(&self, text: &str, start: usize) -> Option<(Place, usize)> {
        let (before, rest) = text.split_at(start);
        if before.chars().next_back().is_some_and(is_of_a_path) {
            return None;
        }
        self.0.iter().find_map(|(place, path)| {
            let after = rest.strip_prefix(path.as_str())?;
            ends_a_name(after).then_some((*place, start + path.len()))
        })
    }
}

/// Whether a path may go on, or have begun before, with this character.
fn is_of_a_path(c: char) -> bool {
    c.is_alphanumeric() || !c.is_ascii() || "/_-.~+@%\\".contains(c)
}

/// Whether the last name of a path ends where this text begins.
fn ends_a_name(after: &str) -> bool {
    let mut rest = after.chars();
    match rest.next() {
        None | Some('/') => true,
        // The end of a sentence.
        Some('.') => rest.next().is_none_or(char::is_whitespace),
        Some(c) => !is_of_a_path(c),
    }
}

/// The value of a member of a definition, in the form that all that differ in noise have.
pub(crate) fn settled<'a>(
    kind: ItemKind,
    name: &str,
    value: &Json<'a>,
    places: &Places,
) -> Json<'a> {
    match (name, value) {
        ("description", Json::Text(text)) => Json::Text(places.settle(text)),
        ("inputSchema" | "outputSchema", _) if kind == ItemKind::Tool => schema(value, places),
        _ => value.clone(),
    }
}

fn schema<'a>(value: &Json<'a>, places: &Places) -> Json<'a> {
    let Json::Object(members) = value else {
        return value.clone();
    };
    let is_plain = members.iter().all(|(name, _)| PLAIN.contains(&&*name.text));
    let settled = members.iter().map(|(name, value)| {
        let value = match &*name.text {
            "enum" if !is_plain => value.clone(),
            name => keyword(name, value, places),
        };
        (name.clone(), value)
    });
    Json::Object(settled.collect())
}

/// The value of a keyword. Within a default or a list of allowed values there are no keywords.
fn keyword<'a>(name: &str, value: &Json<'a>, places: &Places) -> Json<'a> {
    let is_text = |value: &Json<'_>| matches!(value, Json::Text(_));
    match (name, value) {
        ("description", Json::Text(text)) => Json::Text(places.settle(text)),
        ("default", Json::Text(text)) => Json::Text(sorted_words(text)),
        ("required" | "type", Json::Array(elements)) if elements.iter().all(is_text) => {
            sorted(elements)
        }
        ("enum", Json::Array(elements)) => sorted(elements),
        (
            "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas",
            Json::Object(members),
        ) => {
            let each = members.iter();
            Json::Object(
                each.map(|(name, value)| (name.clone(), schema(value, places)))
                    .collect(),
            )
        }
        ("anyOf" | "oneOf" | "allOf" | "prefixItems" | "items", Json::Array(elements)) => {
            Json::Array(elements.iter().map(|it| schema(it, places)).collect())
        }
        (
            "items"
            | "additionalProperties"
            | "additionalItems"
            | "not"
            | "if"
            | "then"
            | "else"
            | "contains"
            | "propertyNames"
            | "unevaluatedItems"
            | "unevaluatedProperties",
            _,
        ) => schema(value, places),
        _ => value.clone(),
    }
}

fn sorted<'a>(elements: &[Json<'a>]) -> Json<'a> {
    let mut elements = elements.to_vec();
    elements.sort_by_cached_key(spelled);
    Json::Array(elements)
}

/// The text with its words in one order, if it is a list of different words and nothing else.
fn sorted_words<'a>(text: &Text<'a>) -> Text<'a> {
    let between = if text.text.contains(", ") { ", " } else { "," };
    let mut words: Vec<&str> = text.text.split(between).collect();
    if words.len() < LIST_WORDS
        || !text.halves.is_empty()
        || !words.iter().all(|word| is_word(word))
    {
        return text.clone();
    }
    words.sort_unstable();
    if words.windows(2).any(|pair| pair[0] == pair[1]) {
        return text.clone();
    }
    Cow::<str>::Owned(words.join(between)).into()
}

/// Whether this is a name, as fields have one, and no number.
fn is_word(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text
            .bytes()
            .all(|c| c.is_ascii_alphanumeric() || b"_-.".contains(&c))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settle(text: &str) -> (String, Vec<(usize, u16)>) {
        let path = |path| Some(Path::new(path));
        let places = Places::new(path("/users/u/work/"), path("/users/u"), path("/tmp"));
        let Text { text, halves } = places.settle(&text.into());
        (text.into_owned(), halves.into())
    }

    #[test]
    fn directories_are_named_by_whole_paths() {
        assert_eq!(settle("in /users/u/work."), ("in .".into(), vec![(3, 1)]));
        assert_eq!(
            settle("`/users/u/work/a` or /users/u/b, (/tmp)"),
            ("`/a` or /b, ()".into(), vec![(1, 1), (8, 2), (13, 3)])
        );
        for other in [
            "/users/u2",
            "/users/u.d",
            "/users/u-x",
            "/srv/users/u",
            "file:///tmp",
            "C:\\/tmp",
            "./tmp",
            "/users/ü",
            "/home",
            "/tmpfile",
            "http://x/tmp/y",
        ] {
            assert_eq!(settle(other), (other.to_owned(), vec![]));
        }
    }

    #[test]
    fn root_is_no_directory_to_look_for() {
        let places = Places::new(Some(Path::new("/")), Some(Path::new("a/b")), None);
        assert!(places.0.is_empty(), "{places:?}");
    }
}
