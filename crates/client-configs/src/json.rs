//! Parses JSON with comments.

use std::collections::HashMap;
use std::path::Path;

use jsonc_parser::ast::Value as Node;
use jsonc_parser::common::Ranged as _;
use serde_json::{Map, Number, Value};
use switchboard_jsonc::{Patch, member, not_an_object, split_mark};

use crate::error::Error;
use crate::texts::Replace;

/// Parses a text; `None` if it has no value.
pub(crate) fn parse(file: &Path, text: &str) -> Result<Option<Value>, Error> {
    let (_, text) = split_mark(text);
    Ok(nodes(file, text)?.as_ref().map(value_of))
}

/// The members of the object under these keys, in order. Of a duplicate key the last one counts, as it
/// does for every client.
pub(crate) fn members(
    file: &Path,
    text: &str,
    keys: &[&str],
) -> Result<Vec<(String, Value)>, Error> {
    let (_, text) = split_mark(text);
    let root = nodes(file, text)?;
    let mut node = root.as_ref();
    let mut depth = 0;
    let object = loop {
        let object = match node {
            None | Some(Node::NullKeyword(_)) => return Ok(Vec::new()),
            Some(Node::Object(object)) => object,
            Some(other) => {
                return Err(located(file, text, not_an_object(other, &keys[..depth])));
            }
        };
        let Some(key) = keys.get(depth) else {
            break object;
        };
        node = member(object, key).map(|member| &member.value);
        depth += 1;
    };
    let props = &object.properties;
    let last: HashMap<_, _> = (props.iter().enumerate())
        .map(|(index, prop)| (prop.name.as_str(), index))
        .collect();
    Ok((props.iter().enumerate())
        .filter(|(index, prop)| last.get(prop.name.as_str()) == Some(index))
        .map(|(_, prop)| (prop.name.as_str().to_owned(), value_of(&prop.value)))
        .collect())
}

/// The value under these keys as it is written, with its comments; `None` if there is none.
pub(crate) fn spelling(file: &Path, text: &str, keys: &[&str]) -> Result<Option<String>, Error> {
    let (_, text) = split_mark(text);
    let root = nodes(file, text)?;
    let node = keys.iter().try_fold(root.as_ref(), |node, key| {
        let object = node?.as_object()?;
        Some(member(object, key).map(|member| &member.value))
    });
    Ok(node
        .flatten()
        .map(|node| text[node.start()..node.end()].to_owned()))
}

/// The positions of the texts to replace, in order, with their replacements.
pub(crate) fn replaced(
    file: &Path,
    text: &str,
    replace: &mut Replace<'_>,
) -> Result<Vec<Patch>, Error> {
    let (mark, rest) = split_mark(text);
    let mut parts = Vec::new();
    if let Some(root) = nodes(file, rest)? {
        visit(&root, &mut Vec::new(), None, &mut parts, replace);
    }
    for (start, end, _) in &mut parts {
        *start += mark.len();
        *end += mark.len();
    }
    Ok(parts)
}

fn visit<'n>(
    node: &'n Node<'_>,
    keys: &mut Vec<&'n str>,
    before: Option<&str>,
    parts: &mut Vec<Patch>,
    replace: &mut Replace<'_>,
) {
    match node {
        Node::StringLit(text) => {
            let new = replace(keys, before, &text.value);
            parts.extend(new.map(|new| (node.start(), node.end(), Value::from(new).to_string())));
        }
        Node::Array(array) => {
            let mut before = "";
            for element in &array.elements {
                visit(element, keys, Some(before), parts, replace);
                before = match element {
                    Node::StringLit(text) => &text.value,
                    _ => "",
                };
            }
        }
        Node::Object(object) => {
            for prop in &object.properties {
                keys.push(prop.name.as_str());
                visit(&prop.value, keys, None, parts, replace);
                keys.pop();
            }
        }
        Node::NumberLit(_) | Node::BooleanLit(_) | Node::NullKeyword(_) => {}
    }
}

fn nodes<'a>(file: &Path, text: &'a str) -> Result<Option<Node<'a>>, Error> {
    switchboard_jsonc::read(text).map_err(|error| located(file, text, error))
}

/// Converts an error of the editor, with its position in the file.
pub(crate) fn located(file: &Path, text: &str, error: switchboard_jsonc::Error) -> Error {
    let (_, text) = split_mark(text);
    let switchboard_jsonc::Error { at, message, .. } = error;
    let message = message.replace(
        "expected string for object property",
        "expected a string as the property name",
    );
    Error::at(file, text, at, message)
}

fn value_of(node: &Node<'_>) -> Value {
    match node {
        Node::StringLit(text) => Value::String(text.value.to_string()),
        Node::NumberLit(number) => number
            .value
            .parse::<Number>()
            .map_or(Value::Null, Value::Number),
        Node::BooleanLit(truth) => Value::Bool(truth.value),
        Node::NullKeyword(_) => Value::Null,
        Node::Array(array) => array.elements.iter().map(value_of).collect(),
        Node::Object(object) => {
            let members = object.properties.iter();
            let members =
                members.map(|prop| (prop.name.as_str().to_owned(), value_of(&prop.value)));
            Value::Object(members.collect::<Map<_, _>>())
        }
    }
}
