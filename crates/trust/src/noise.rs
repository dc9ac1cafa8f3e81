//! Differences that do not count as changes: the order of a set, and the directories of the server.
//!
//! This is a trust boundary, so it is narrow. Lists that are sets in JSON Schema may have any order,
//! and so may a default that is a list of words. A description may name the server's own directories,
//! which the gateway knows. Every other character counts: numbers, versions, other paths.

use std::{borrow::Cow, path::Path};

use switchboard_wire::tree::{Json, Text};

use crate::{ItemKind, spelled::spelled};

/// The directories of a server that its descriptions may name, at their current locations.
#[derive(Clone, Debug, Default)]
pub struct Places(Vec<(Place, String)>);

/// The role of a directory. One never counts as another.
#[derive(Clone, Copy, Debug)]
enum Place {
    WorkingDirectory = 1,
    Home = 2,
    Temporary = 3,
}

/// The longest path to search for, in bytes.
const PLACE_BYTES: usize = 4096;

/// The fewest words of a default that is a list. Two may be a pair, in which the order has a meaning.
const LIST_WORDS: usize = 3;

/// The keywords beside which the order of an `enum` has no meaning. Beside others, such as a list of
/// labels, it may have one.
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
    /// The working directories of the server, the home directory of the user, and the directory for
    /// temporary files. Relative paths and the root directory are ignored.
    pub fn new<'a>(
        working_directories: impl IntoIterator<Item = &'a Path>,
        home: Option<&'a Path>,
        temporary: Option<&'a Path>,
    ) -> Self {
        let working = working_directories.into_iter();
        let working = working.map(|path| (Place::WorkingDirectory, path));
        let home = home.map(|path| (Place::Home, path));
        let temporary = temporary.map(|path| (Place::Temporary, path));
        let known = working.chain(home).chain(temporary);
        let known = known.filter_map(|(place, path)| {
            let path = path.to_str()?.trim_end_matches('/');
            let is_one = path.starts_with('/') && path.len() <= PLACE_BYTES;
            is_one.then(|| (place, path.to_owned()))
        });
        let mut known: Vec<_> = known.collect();
        // Of nested directories, the innermost one is meant.
        known.sort_by_key(|(_, path)| std::cmp::Reverse(path.len()));
        Self(known)
    }

    /// The directories in which a server runs for single callers.
    pub fn of_callers(directories: &[String]) -> Self {
        Self::new(directories.iter().map(Path::new), None, None)
    }

    /// Replaces each of the directories in a text with a mark. A mark is a lone surrogate, which no
    /// valid text contains.
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

    /// The directory that a text names at this position, and the end of its path.
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

/// Tests if this character can be part of a path.
fn is_of_a_path(c: char) -> bool {
    c.is_alphanumeric() || !c.is_ascii() || "/_-.~+@%\\".contains(c)
}

/// Tests if the last component of a path ends before this text.
fn ends_a_name(after: &str) -> bool {
    let mut rest = after.chars();
    match rest.next() {
        None | Some('/') => true,
        // The end of a sentence.
        Some('.') => rest.next().is_none_or(char::is_whitespace),
        Some(c) => !is_of_a_path(c),
    }
}

/// The canonical form of a member's value: values that differ only by noise have the same one.
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

/// The canonical form of a keyword's value. A default or a list of allowed values contains no
/// keywords.
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

/// Sorts the words of a text, if it is a list of distinct words and nothing else.
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

/// Tests if a text is an identifier, such as the name of a field, and not a number.
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
    fn only_whole_paths_are_replaced() {
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
    fn root_and_relative_paths_are_ignored() {
        let places = Places::new(Some(Path::new("/")), Some(Path::new("a/b")), None);
        assert!(places.0.is_empty(), "{places:?}");
    }
}
