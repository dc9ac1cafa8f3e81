//! Parses TOML, and edits one table without changing anything else.

use std::path::Path;

use serde_json::{Map, Number, Value};
use toml_edit::{
    Array, Document, DocumentMut, InlineTable, Item, Key, TableLike, Value as TomlValue,
};

use crate::error::Error;
use crate::texts::Replace;

/// Parses a text.
pub(crate) fn parse(file: &Path, text: &str) -> Result<Value, Error> {
    Ok(value_of(document(file, text)?.as_item()))
}

/// The members of the table under this key, in order.
pub(crate) fn members(file: &Path, text: &str, key: &str) -> Result<Vec<(String, Value)>, Error> {
    let document = document(file, text)?;
    let Some(item) = document.get(key) else {
        return Ok(Vec::new());
    };
    let table = table(file, text, item, key)?;
    Ok(table
        .iter()
        .map(|(name, item)| (name.to_owned(), value_of(item)))
        .collect())
}

/// Sets members of the table `key.name`. Its other members stay.
pub(crate) fn set(
    file: &Path,
    text: &str,
    [key, name]: [&str; 2],
    members: &[(&'static str, Value)],
) -> Result<String, Error> {
    let known = match document(file, text)?.get(key) {
        Some(item) => table(file, text, item, key)?.contains_key(name),
        None => false,
    };
    if !known {
        // A table appended to the end leaves the rest unchanged. This fails only if the other tables are
        // inline tables.
        let appended = append(text, key, name, members);
        if appended.parse::<DocumentMut>().is_ok() {
            return Ok(appended);
        }
    }
    edit(file, text, |document| {
        let Some(servers) = document.get_mut(key).and_then(Item::as_table_like_mut) else {
            return;
        };
        if !known {
            servers.insert(name, Item::Value(InlineTable::new().into()));
        }
        let Some(server) = servers.get_mut(name).and_then(Item::as_table_like_mut) else {
            return;
        };
        for (member, value) in members {
            let mut value = toml_of(value);
            if let Some(old) = server.get(member).and_then(Item::as_value) {
                // Comments after a value are part of its decor.
                *value.decor_mut() = old.decor().clone();
            }
            server.insert(member, Item::Value(value));
        }
    })
}

/// Removes the table `key.name`.
pub(crate) fn remove(file: &Path, text: &str, [key, name]: [&str; 2]) -> Result<String, Error> {
    edit(file, text, |document| {
        if let Some(servers) = document.get_mut(key).and_then(Item::as_table_like_mut) {
            servers.remove(name);
        }
    })
}

/// The positions of the texts to replace, in order, with their replacements.
pub(crate) fn replaced(
    file: &Path,
    text: &str,
    replace: &mut Replace<'_>,
) -> Result<Vec<(usize, usize, String)>, Error> {
    document(file, text)?;
    let mut parts = Vec::new();
    // A mutable document has no positions.
    if let Ok(spans) = Document::parse(text) {
        visit_table(spans.as_table(), &mut Vec::new(), &mut parts, replace);
    }
    parts.sort_unstable_by_key(|(start, ..)| *start);
    Ok(parts)
}

fn visit_table<'n>(
    table: &'n dyn TableLike,
    keys: &mut Vec<&'n str>,
    parts: &mut Vec<(usize, usize, String)>,
    replace: &mut Replace<'_>,
) {
    for (key, item) in table.iter() {
        keys.push(key);
        match item {
            Item::None => {}
            Item::Value(value) => visit_value(value, keys, None, parts, replace),
            Item::Table(table) => visit_table(table, keys, parts, replace),
            Item::ArrayOfTables(tables) => {
                for table in tables {
                    visit_table(table, keys, parts, replace);
                }
            }
        }
        keys.pop();
    }
}

fn visit_value<'n>(
    value: &'n TomlValue,
    keys: &mut Vec<&'n str>,
    before: Option<&str>,
    parts: &mut Vec<(usize, usize, String)>,
    replace: &mut Replace<'_>,
) {
    match value {
        TomlValue::String(text) => {
            let new = replace(keys, before, text.value());
            // A JSON string is also a basic TOML string.
            let new = value.span().zip(new);
            parts.extend(
                new.map(|(span, new)| (span.start, span.end, Value::from(new).to_string())),
            );
        }
        TomlValue::Array(array) => {
            let mut before = "";
            for element in array {
                visit_value(element, keys, Some(before), parts, replace);
                before = element.as_str().unwrap_or_default();
            }
        }
        TomlValue::InlineTable(table) => visit_table(table, keys, parts, replace),
        TomlValue::Integer(_)
        | TomlValue::Float(_)
        | TomlValue::Boolean(_)
        | TomlValue::Datetime(_) => {}
    }
}

fn document(file: &Path, text: &str) -> Result<DocumentMut, Error> {
    text.parse::<DocumentMut>().map_err(|error| {
        let offset = error.span().map_or(0, |span| span.start);
        Error::at(file, text, offset, error.message().replace('\n', ", "))
    })
}

fn table<'a>(
    file: &Path,
    text: &str,
    item: &'a Item,
    key: &str,
) -> Result<&'a dyn TableLike, Error> {
    item.as_table_like().ok_or_else(|| {
        // A mutable document has no positions.
        let spans = Document::parse(text).ok();
        let span = spans.and_then(|spans| spans.get(key)?.span());
        let offset = span.map_or(0, |span| span.start);
        Error::at(file, text, offset, format!("`{key}` is not a table"))
    })
}

/// Edits a document and serializes it.
fn edit(file: &Path, text: &str, change: impl FnOnce(&mut DocumentMut)) -> Result<String, Error> {
    let mut document = document(file, text)?;
    change(&mut document);
    let mut changed = document.to_string();
    // New text has plain line ends.
    if text.contains("\r\n") {
        changed = changed.replace("\r\n", "\n").replace('\n', "\r\n");
    }
    // A change that does not parse must never reach the file.
    self::document(file, &changed)?;
    Ok(changed)
}

fn append(text: &str, key: &str, name: &str, members: &[(&'static str, Value)]) -> String {
    let mut lines = vec![format!("[{}.{}]", Key::new(key), Key::new(name))];
    for (member, value) in members {
        lines.push(format!("{} = {}", Key::new(*member), toml_of(value)));
    }
    let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let gap = match text {
        "" => String::new(),
        _ if text.ends_with('\n') => newline.to_owned(),
        _ => newline.repeat(2),
    };
    format!("{text}{gap}{}{newline}", lines.join(newline))
}

fn value_of(item: &Item) -> Value {
    match item {
        Item::None => Value::Null,
        Item::Value(value) => plain(value),
        Item::Table(table) => object(table),
        Item::ArrayOfTables(tables) => tables.iter().map(|table| object(table)).collect(),
    }
}

fn plain(value: &TomlValue) -> Value {
    match value {
        TomlValue::String(text) => Value::String(text.value().clone()),
        TomlValue::Integer(number) => Value::from(*number.value()),
        TomlValue::Float(number) => {
            Number::from_f64(*number.value()).map_or(Value::Null, Value::Number)
        }
        TomlValue::Boolean(truth) => Value::Bool(*truth.value()),
        TomlValue::Datetime(time) => Value::String(time.value().to_string()),
        TomlValue::Array(array) => array.iter().map(plain).collect(),
        TomlValue::InlineTable(table) => object(table),
    }
}

fn object(table: &dyn TableLike) -> Value {
    let members = table.iter();
    let members = members.map(|(key, item)| (key.to_owned(), value_of(item)));
    Value::Object(members.collect::<Map<_, _>>())
}

fn toml_of(value: &Value) -> TomlValue {
    match value {
        Value::Bool(truth) => (*truth).into(),
        Value::Array(items) => TomlValue::Array(items.iter().map(toml_of).collect::<Array>()),
        Value::String(text) => text.as_str().into(),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => whole.into(),
            None => number.to_string().into(),
        },
        // The gateway's entry has no other kinds of values.
        other => other.to_string().into(),
    }
}
