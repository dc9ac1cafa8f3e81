//! Parses TOML, and edits one table without changing anything else.

use std::fmt::Write as _;
use std::ops::Range;
use std::path::Path;

use serde_json::{Map, Number, Value};
use toml_edit::{
    Array, Document, DocumentMut, InlineTable, Item, Key, Table, TableLike, Value as TomlValue,
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
        let appended = append(text, &section(key, name, members));
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

/// Removes the table at a place.
pub(crate) fn remove(file: &Path, text: &str, place: &[&str]) -> Result<String, Error> {
    let [key, name] = place else {
        return Ok(text.to_owned());
    };
    if let Some(changed) = without_sections(text, key, name) {
        let mut expected = members(file, text, key)?;
        expected.retain(|(known, _)| known != name);
        if members(file, &changed, key).is_ok_and(|members| members == expected) {
            return Ok(changed);
        }
    }
    edit(file, text, |document| {
        if let Some(servers) = document.get_mut(key).and_then(Item::as_table_like_mut) {
            servers.remove(name);
        }
    })
}

/// Copies the table at a place from an earlier text. Returns `None` if that has none.
pub(crate) fn put_back(
    file: &Path,
    text: &str,
    place: &[&str],
    earlier: &str,
) -> Result<Option<String>, Error> {
    let [key, name] = place else {
        return Ok(None);
    };
    let earlier = document(file, earlier)?;
    let servers = earlier.get(key).and_then(Item::as_table_like);
    let Some(server) = servers.and_then(|servers| servers.get(name)) else {
        return Ok(None);
    };
    if let Ok(mut table) = server.clone().into_table() {
        // The comments before it were not removed.
        table.decor_mut().set_prefix("");
        table.set_dotted(false);
        let mut servers = Table::new();
        servers.set_implicit(true);
        servers.insert(name, Item::Table(table));
        let mut alone = DocumentMut::new();
        alone.insert(key, Item::Table(servers));
        let appended = append(text, &alone.to_string());
        if appended.parse::<DocumentMut>().is_ok() {
            return Ok(Some(appended));
        }
    }
    edit(file, text, |document| {
        let servers = document.get_mut(key).and_then(Item::as_table_like_mut);
        if let (Some(servers), Ok(server)) = (servers, server.clone().into_value()) {
            servers.insert(name, Item::Value(server));
        }
    })
    .map(Some)
}

/// Removes the lines of a table that has a header, and those of the tables in it. Comments before a header stay.
/// Returns `None` if the table has another form.
fn without_sections(text: &str, key: &str, name: &str) -> Option<String> {
    let document = Document::parse(text).ok()?;
    let server = document.get(key)?.as_table()?.get(name)?.as_table()?;
    let mut sections = Vec::new();
    collect_sections(server, &mut sections)?;
    sections.sort_unstable_by_key(|section| section.start);
    let mut result = String::with_capacity(text.len());
    let mut done = 0;
    for section in sections {
        let start = text[..section.start].rfind('\n').map_or(0, |end| end + 1);
        let line_end = text[section.end..].find('\n');
        let mut end = line_end.map_or(text.len(), |end| section.end + end + 1);
        result.push_str(text.get(done..start).unwrap_or_default());
        // The empty line before a header goes with it, or else the one after the first section.
        let gap = ["\n\n", "\n\r\n"]
            .into_iter()
            .find(|gap| result.ends_with(gap));
        result.truncate(result.len() - gap.map_or(0, |gap| gap.len() - 1));
        if result.is_empty() {
            let rest = text[end..].trim_start_matches('\r');
            end = rest
                .strip_prefix('\n')
                .map_or(end, |rest| text.len() - rest.len());
        }
        done = done.max(end);
    }
    result.push_str(&text[done..]);
    Some(result)
}

/// The lines of a table from its header to its last value, and those of the tables in it.
fn collect_sections(table: &Table, sections: &mut Vec<Range<usize>>) -> Option<()> {
    if table.is_dotted() {
        return None;
    }
    let mut section = table.span()?;
    for (_, item) in table {
        match item {
            Item::None => {}
            Item::Value(_) => section.end = section.end.max(item.span()?.end),
            Item::Table(inner) if inner.is_dotted() => {
                section.end = section.end.max(end_of_values(inner)?);
            }
            Item::Table(inner) => collect_sections(inner, sections)?,
            Item::ArrayOfTables(all) => {
                for inner in all {
                    collect_sections(inner, sections)?;
                }
            }
        }
    }
    sections.push(section);
    Some(())
}

/// The end of the last value of a table that is written as dotted keys.
fn end_of_values(table: &Table) -> Option<usize> {
    let ends = table.iter().map(|(_, item)| match item {
        Item::Table(inner) => end_of_values(inner),
        other => other.span().map(|span| span.end),
    });
    ends.collect::<Option<Vec<_>>>()?.into_iter().max()
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

/// The lines of a new table.
fn section(key: &str, name: &str, members: &[(&'static str, Value)]) -> String {
    let mut lines = format!("[{}.{}]\n", Key::new(key), Key::new(name));
    for (member, value) in members {
        // A string takes any text.
        let _ = writeln!(lines, "{} = {}", Key::new(*member), toml_of(value));
    }
    lines
}

/// Appends lines, after an empty one.
fn append(text: &str, lines: &str) -> String {
    let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let gap = match text {
        "" => String::new(),
        _ if text.ends_with('\n') => newline.to_owned(),
        _ => newline.repeat(2),
    };
    let lines = lines.replace("\r\n", "\n").replace('\n', newline);
    format!("{text}{gap}{lines}")
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
        Value::Object(members) => {
            let members = members.iter().map(|(key, value)| (key, toml_of(value)));
            TomlValue::InlineTable(members.collect::<InlineTable>())
        }
        // The gateway's entry has no such value, and TOML has none.
        Value::Null => "null".into(),
    }
}
