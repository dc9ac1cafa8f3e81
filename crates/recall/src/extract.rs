//! Names in a text: who and what it is about.

use crate::limits;

/// A name that was found in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// As it stands there.
    pub name: String,
    /// What it names, where its form tells.
    pub kind: Option<&'static str>,
}

/// What tells one name from another: lower case, no white space around it, single spaces inside.
pub fn key(name: &str) -> String {
    let mut key = String::with_capacity(name.len());
    for word in name.split_whitespace() {
        if !key.is_empty() {
            key.push(' ');
        }
        key.extend(word.chars().flat_map(char::to_lowercase));
    }
    key
}

/// The names in a text, each once, in the order in which they come first.
pub fn entities(text: &str) -> Vec<Found> {
    let mut found: Vec<Found> = Vec::new();
    for word in text.split(|c: char| !c.is_alphanumeric()) {
        let is_name = word.len() > 1
            && word.len() <= limits::NAME_BYTES
            && word.starts_with(char::is_uppercase);
        if is_name && found.len() < limits::ENTITIES && !found.iter().any(|one| one.name == word) {
            found.push(Found {
                name: word.to_owned(),
                kind: None,
            });
        }
    }
    found
}
