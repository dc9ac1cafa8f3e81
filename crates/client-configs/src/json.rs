//! JSON with comments: reading it, and changing one value without touching anything else.
//!
//! Changes are made to the text at places that the parser names, so that what is not changed stays
//! as it is to the byte.

use std::collections::HashMap;
use std::path::Path;

use jsonc_parser::ast::{Object, ObjectProp, Value as Node};
use jsonc_parser::common::Ranged as _;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use serde_json::{Map, Number, Value};

use crate::error::Error;
use crate::texts::Replace;

const BYTE_ORDER_MARK: &str = "\u{feff}";
const BLANKS: [char; 2] = [' ', '\t'];

/// A value to be written, whose members keep their order.
#[derive(Debug, Clone)]
pub(crate) enum Tree<'a> {
    Leaf(&'a Value),
    Object(Vec<(&'a str, Tree<'a>)>),
}

/// What a text says; `None` is a text without a value.
pub(crate) fn parse(file: &Path, text: &str) -> Result<Option<Value>, Error> {
    let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    Ok(nodes(file, text)?.as_ref().map(value_of))
}

/// The members of the object under these keys, in their order. A key given twice counts as the
/// last one, as it does for every client.
pub(crate) fn members(
    file: &Path,
    text: &str,
    keys: &[&str],
) -> Result<Vec<(String, Value)>, Error> {
    let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    let root = nodes(file, text)?;
    let mut node = root.as_ref();
    let mut depth = 0;
    let object = loop {
        let object = match node {
            None | Some(Node::NullKeyword(_)) => return Ok(Vec::new()),
            Some(Node::Object(object)) => object,
            Some(other) => return Err(no_object(file, text, other, &keys[..depth])),
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

/// The text with this value at these keys. Objects on the way are made where they are missing.
pub(crate) fn set(
    file: &Path,
    text: &str,
    keys: &[&str],
    value: &Tree<'_>,
) -> Result<String, Error> {
    edit(file, text, |text| {
        let root = nodes(file, text)?;
        let Some(mut node) = root.as_ref() else {
            let start = match text.trim_end() {
                "" => String::new(),
                comments => format!("{comments}\n"),
            };
            let value = nested(keys, value).pretty("  ", "");
            return Ok(format!("{start}{value}\n"));
        };
        for (depth, key) in keys.iter().enumerate() {
            let object = match node {
                Node::Object(object) => object,
                Node::NullKeyword(_) if depth > 0 => {
                    return Ok(overwrite(text, node, &nested(&keys[depth..], value)));
                }
                other => return Err(no_object(file, text, other, &keys[..depth])),
            };
            match member(object, key) {
                Some(member) => node = &member.value,
                None => {
                    return Ok(insert(
                        text,
                        object,
                        key,
                        &nested(&keys[depth + 1..], value),
                    ));
                }
            }
        }
        Ok(overwrite(text, node, value))
    })
}

/// The text without the last of these keys.
pub(crate) fn remove(file: &Path, text: &str, keys: &[&str]) -> Result<String, Error> {
    edit(file, text, |text| {
        let root = nodes(file, text)?;
        let mut node = root.as_ref();
        let Some((last, parents)) = keys.split_last() else {
            return Ok(text.to_owned());
        };
        for key in parents {
            node = match node {
                Some(Node::Object(object)) => member(object, key).map(|member| &member.value),
                _ => None,
            };
        }
        let Some(Node::Object(object)) = node else {
            return Ok(text.to_owned());
        };
        let index = object
            .properties
            .iter()
            .rposition(|prop| prop.name.as_str() == *last);
        Ok(index.map_or_else(|| text.to_owned(), |index| without(text, object, index)))
    })
}

/// The places of the texts that are to be replaced, in their order, and what to write there.
pub(crate) fn replaced(
    file: &Path,
    text: &str,
    replace: &mut Replace<'_>,
) -> Result<Vec<(usize, usize, String)>, Error> {
    let rest = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    let mut parts = Vec::new();
    if let Some(root) = nodes(file, rest)? {
        visit(&root, &mut Vec::new(), None, &mut parts, replace);
    }
    let mark = text.len() - rest.len();
    for (start, end, _) in &mut parts {
        *start += mark;
        *end += mark;
    }
    Ok(parts)
}

fn visit<'n>(
    node: &'n Node<'_>,
    keys: &mut Vec<&'n str>,
    before: Option<&str>,
    parts: &mut Vec<(usize, usize, String)>,
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

fn edit(
    file: &Path,
    text: &str,
    change: impl FnOnce(&str) -> Result<String, Error>,
) -> Result<String, Error> {
    let (mark, text) = match text.strip_prefix(BYTE_ORDER_MARK) {
        Some(rest) => (BYTE_ORDER_MARK, rest),
        None => ("", text),
    };
    let changed = change(text)?;
    // A change that cannot be read back must never reach the file.
    nodes(file, &changed)?;
    Ok(format!("{mark}{changed}"))
}

fn nodes<'a>(file: &Path, text: &'a str) -> Result<Option<Node<'a>>, Error> {
    let options = ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    let parsed = parse_to_ast(text, &CollectOptions::default(), &options).map_err(|error| {
        let message = error.kind().to_string();
        let mut letters = message.chars();
        let first = letters.next().map(|letter| letter.to_ascii_lowercase());
        let message: String = first.into_iter().chain(letters).collect();
        Error::at(file, text, error.range().start, message)
    })?;
    Ok(parsed.value)
}

fn member<'a, 'b>(object: &'b Object<'a>, name: &str) -> Option<&'b ObjectProp<'a>> {
    object
        .properties
        .iter()
        .rfind(|prop| prop.name.as_str() == name)
}

fn no_object(file: &Path, text: &str, node: &Node<'_>, keys: &[&str]) -> Error {
    let what = match keys.last() {
        Some(key) => format!("`{key}` is not an object"),
        None => "this is not an object".to_owned(),
    };
    Error::at(file, text, node.start(), what)
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

/// The value inside as many objects as there are keys.
fn nested<'a>(keys: &[&'a str], value: &Tree<'a>) -> Tree<'a> {
    keys.iter().rev().fold(value.clone(), |inner, key| {
        Tree::Object(vec![(*key, inner)])
    })
}

fn overwrite(text: &str, node: &Node<'_>, value: &Tree<'_>) -> String {
    let indent = indentation(text, node.start());
    let value = Layout::of(text).write(value, indent);
    spliced(text, [(node.start(), node.end(), value)])
}

fn insert(text: &str, object: &Object<'_>, key: &str, value: &Tree<'_>) -> String {
    let layout = Layout::of(text);
    let (start, end) = (object.range.start, object.range.end - 1);
    let key = Value::from(key);
    let (Some(first), Some(last)) = (object.properties.first(), object.properties.last()) else {
        let inside = &text[start + 1..end];
        if layout.one_line && !inside.contains('\n') {
            let at = start + 1 + inside.trim_end().len();
            return spliced(text, [(at, end, format!("{key}: {}", value.compact()))]);
        }
        let base = indentation(text, start);
        let indent = format!("{base}{}", layout.unit);
        let line = layout.newline;
        let value = layout.write(value, &indent);
        let at = start + 1 + inside.trim_end().len();
        let member = format!("{line}{indent}{key}: {value}{line}{base}");
        return spliced(text, [(at, end, member)]);
    };

    let comma = comma(&text[last.range.end..end]).map(|at| last.range.end + at);
    let after = comma.map_or(last.range.end, |comma| comma + 1);
    let starts_a_line = text[start..first.range.start].contains('\n');
    if !starts_a_line {
        let (missing, trailing) = if comma.is_some() {
            ("", ",")
        } else {
            (",", "")
        };
        let member = format!("{missing} {key}: {}{trailing}", value.compact());
        return spliced(text, [(after, after, member)]);
    }
    // A comment behind the last member stays with it.
    let at = after + rest_of_line(&text[after..end]);
    let indent = indentation(text, first.range.start);
    let value = layout.write(value, indent);
    let (missing, trailing) = match comma {
        Some(_) => ("", ","),
        None => (",", ""),
    };
    let member = format!("{}{indent}{key}: {value}{trailing}", layout.newline);
    spliced(text, [(after, after, missing.to_owned()), (at, at, member)])
}

fn without(text: &str, object: &Object<'_>, index: usize) -> String {
    let props = &object.properties;
    let prop = &props[index];
    let (mut start, mut end) = (prop.range.start, prop.range.end);
    let next = props.get(index + 1);
    let limit = next.map_or(object.range.end - 1, |next| next.range.start);
    let mut before = None;
    match comma(&text[end..limit]) {
        Some(at) => end += at + 1,
        None if index > 0 => {
            let previous = props[index - 1].range.end;
            before = comma(&text[previous..start]).map(|at| previous + at);
        }
        None => {}
    }
    let line_start = text[..start].rfind('\n').map_or(0, |newline| newline + 1);
    let begins_a_line = text[line_start..start].trim().is_empty();
    let blanks = text[end..limit].len() - text[end..limit].trim_start_matches(BLANKS).len();
    let rest = &text[end + blanks..];
    let newline = ["\r\n", "\n"]
        .into_iter()
        .find(|line| rest.starts_with(line));
    match newline {
        Some(newline) if begins_a_line => {
            start = line_start;
            end += blanks + newline.len();
        }
        _ if index > 0 => {
            let kept = text[..start].trim_end_matches(BLANKS);
            // What follows must not come to stand in a comment.
            let in_comment = text[props[index - 1].range.end..start].contains("//");
            let kept = if begins_a_line && !in_comment {
                let kept = kept.strip_suffix('\n').unwrap_or(kept);
                kept.strip_suffix('\r').unwrap_or(kept)
            } else {
                kept
            };
            start = kept.len();
        }
        _ => end += blanks,
    }
    let (inside, last) = (object.range.start + 1, object.range.end - 1);
    if text[inside..start].trim().is_empty() && text[end..last].trim().is_empty() {
        // Nothing is left, and that is how nothing is written.
        (start, end) = (inside, last);
    }
    let comma = before.map(|at| (at, at + 1, String::new()));
    spliced(text, comma.into_iter().chain([(start, end, String::new())]))
}

/// The text with parts replaced, which are given in their order.
pub(crate) fn spliced(
    text: &str,
    parts: impl IntoIterator<Item = (usize, usize, String)>,
) -> String {
    let mut result = String::with_capacity(text.len() + 256);
    let mut done = 0;
    for (start, end, new) in parts {
        result.push_str(&text[done..start]);
        result.push_str(&new);
        done = end;
    }
    result.push_str(&text[done..]);
    result
}

/// Where the first comma is that is not in a comment. There are only blanks, comments and at most
/// one comma in what is given.
fn comma(gap: &str) -> Option<usize> {
    let mut at = 0;
    while let Some(letter) = gap[at..].chars().next() {
        match comment(&gap[at..]) {
            Some(length) => at += length,
            None if letter == ',' => return Some(at),
            None => at += letter.len_utf8(),
        }
    }
    None
}

/// How much of what follows a member still belongs to its line: blanks and comments.
fn rest_of_line(gap: &str) -> usize {
    let mut at = 0;
    loop {
        let rest = &gap[at..];
        match comment(rest) {
            Some(length) if !rest[..length].contains('\n') => at += length,
            None if rest.starts_with(BLANKS) => at += 1,
            _ => return at,
        }
    }
}

/// How long the comment is that this starts with, without the end of its line.
fn comment(text: &str) -> Option<usize> {
    if text.starts_with("//") {
        Some(text.find(['\r', '\n']).unwrap_or(text.len()))
    } else {
        let inside = text.strip_prefix("/*")?;
        Some(inside.find("*/").map_or(text.len(), |end| end + 4))
    }
}

/// How a text is laid out, so that what is new looks like the rest.
struct Layout<'a> {
    newline: &'static str,
    unit: &'a str,
    one_line: bool,
}

impl<'a> Layout<'a> {
    fn of(text: &'a str) -> Self {
        let indents = text.lines().filter(|line| !line.trim().is_empty());
        let unit = indents
            .map(|line| &line[..line.len() - line.trim_start_matches(BLANKS).len()])
            .find(|indent| !indent.is_empty())
            .map_or("  ", |indent| {
                if indent.starts_with('\t') {
                    "\t"
                } else {
                    indent
                }
            });
        Self {
            newline: if text.contains("\r\n") { "\r\n" } else { "\n" },
            unit: if unit.len() > 8 { "  " } else { unit },
            one_line: !text.trim().contains('\n') && text.trim().len() > 2,
        }
    }

    /// A value whose line begins with these blanks.
    fn write(&self, value: &Tree<'_>, indent: &str) -> String {
        if self.one_line {
            return value.compact();
        }
        value.pretty(self.unit, indent).replace('\n', self.newline)
    }
}

impl Tree<'_> {
    fn compact(&self) -> String {
        match self {
            Self::Leaf(value) => inline(value),
            Self::Object(members) => {
                let members: Vec<_> = members
                    .iter()
                    .map(|(key, value)| format!("{}: {}", Value::from(*key), value.compact()))
                    .collect();
                format!("{{{}}}", members.join(", "))
            }
        }
    }

    fn pretty(&self, unit: &str, indent: &str) -> String {
        let Self::Object(members) = self else {
            return self.compact();
        };
        let inner = format!("{indent}{unit}");
        let members: Vec<_> = members
            .iter()
            .map(|(key, value)| {
                let key = Value::from(*key);
                format!("{inner}{key}: {}", value.pretty(unit, &inner))
            })
            .collect();
        format!("{{\n{}\n{indent}}}", members.join(",\n"))
    }
}

fn inline(value: &Value) -> String {
    match value {
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(inline).collect();
            format!("[{}]", items.join(", "))
        }
        other => other.to_string(),
    }
}

/// The blanks that the line of this place begins with.
fn indentation(text: &str, at: usize) -> &str {
    let line_start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let line = &text[line_start..];
    &line[..line.len() - line.trim_start_matches(BLANKS).len()]
}
