//! [`diff()`]: the changes between two definitions, for the approver to read.
//!
//! It must show every change, including disguised ones: invisible characters are escaped, a long text
//! is cut around its changes, and duplicate members are both shown.

use std::{
    collections::HashSet,
    fmt::{self, Write as _},
};

use serde::Serialize;
use switchboard_wire::{
    Raw,
    tree::{Json, Object, Text},
};

use crate::{
    ItemKind, Offer, Places,
    definition::{self, fingerprint},
    fields::Field,
    show, spelled,
};

mod lines;

/// The most changed fields that are listed. The others are counted.
const CHANGES: usize = 500;

/// The most characters of a value to show.
const VALUE_CHARACTERS: usize = 20_000;

/// Unchanged characters to show before the change, when a value is cut.
const CONTEXT_CHARACTERS: usize = 200;

/// The largest value, in bytes, that is formatted over several lines.
const PRETTY_BYTES: usize = 4 * 1024;

/// The members that come first. Other members follow in their original order.
const ORDER: [&str; 6] = [
    "name",
    "title",
    "description",
    "inputSchema",
    "outputSchema",
    "annotations",
];

/// The changes between two definitions.
///
/// It is displayed as the names of fields, each followed by lines that begin with `-` and `+`, in
/// which changed words are marked `[-old-]` and `{+new+}`. It is serialized as
/// `[{"field":…,"before":…,"after":…}]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Diff {
    /// The changed fields.
    pub changes: Vec<Change>,
}

/// A changed field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Change {
    /// Path of the field: `description`, `parameters.path.type`.
    pub field: String,
    /// The previous value; `None` if the field did not exist.
    pub before: Option<String>,
    /// The current value; `None` if the field no longer exists.
    pub after: Option<String>,
}

/// Compares two definitions of one kind. There are no changes if and only if both have the same
/// [`fingerprint`](crate::fingerprint()). If other fields differ only in their order, the last change
/// lists them.
pub fn diff<'a>(approved: impl Into<Offer<'a>>, now: impl Into<Offer<'a>>) -> Diff {
    let (approved, now) = (approved.into(), now.into());
    let [before, after] = [approved, now].map(|offer| Json::read(offer.definition));
    if fingerprint(Offer {
        kind: now.kind,
        ..approved
    }) == fingerprint(now)
    {
        return Diff::default();
    }
    let mut compare = compare(&pinned(now.kind, &before), &pinned(now.kind, &after));
    let ignored = compare.ignore(&settled(now.kind, &before), &settled(now.kind, &after));
    let mut changes = compare.changes;
    let is_shown = |change: &Change| change.before != change.after;
    if changes.is_empty() || !changes.iter().all(is_shown) {
        changes.push(whole(approved.definition, now.definition));
    }
    if compare.more > 0 {
        changes.push(Change {
            field: "and more".to_owned(),
            before: None,
            after: Some(format!("further changes: {}", compare.more)),
        });
    }
    if !ignored.is_empty() {
        changes.push(Change {
            field: "(ignored)".to_owned(),
            before: None,
            after: Some(format!("different order of {}", ignored.join(", "))),
        });
    }
    Diff { changes }
}

fn compare(before: &Json<'_>, after: &Json<'_>) -> Compare {
    let mut compare = Compare::default();
    match (before, after) {
        (Json::Object(before), Json::Object(after)) => {
            compare.members(&mut Field::default(), before, after, &ORDER);
        }
        _ => compare.values(&mut Field::default(), Some(before), Some(after)),
    }
    compare
}

/// Both definitions in their original spelling, for a difference that no field shows.
fn whole(approved: &Raw, now: &Raw) -> Change {
    let [before, after] = [approved, now].map(|raw| Some(show::escaped(&raw.as_str().into())));
    let (before, after) = cut(before, after);
    Change {
        field: "(definition)".to_owned(),
        before,
        after,
    }
}

impl fmt::Display for Diff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut effort = lines::Effort::default();
        self.changes.iter().try_for_each(|change| {
            writeln!(f, "{}", change.field)?;
            lines::write(f, &mut effort, change)
        })
    }
}

/// The pinned members of a definition.
fn pinned<'a>(kind: ItemKind, definition: &Json<'a>) -> Json<'a> {
    match definition {
        Json::Object(members) => {
            let kept = definition::pinned(kind, members).into_iter();
            Json::Object(kept.map(std::borrow::Cow::into_owned).collect())
        }
        other => other.clone(),
    }
}

/// The pinned members of a definition, without noise.
fn settled<'a>(kind: ItemKind, definition: &Json<'a>) -> Json<'a> {
    match definition {
        Json::Object(members) => {
            Json::Object(definition::settled(kind, members, &Places::default()))
        }
        other => other.clone(),
    }
}

#[derive(Default)]
struct Compare {
    changes: Vec<Change>,
    more: usize,
}

impl Compare {
    /// Removes the fields that differ only by noise, and returns their names. Removes none if there
    /// are too many changes to be sure.
    fn ignore(&mut self, before: &Json<'_>, after: &Json<'_>) -> Vec<String> {
        let real = compare(before, after);
        if self.more > 0 || real.more > 0 {
            return Vec::new();
        }
        let real: HashSet<String> = real.changes.into_iter().map(|it| it.field).collect();
        let all = std::mem::take(&mut self.changes).into_iter();
        let (kept, ignored): (Vec<_>, Vec<_>) = all.partition(|it| real.contains(&it.field));
        self.changes = kept;
        ignored.into_iter().map(|it| it.field).collect()
    }

    fn values<'v>(
        &mut self,
        field: &mut Field<'v>,
        before: Option<&'v Json<'v>>,
        after: Option<&'v Json<'v>>,
    ) {
        if let (Some(Json::Object(before)), Some(Json::Object(after))) = (before, after) {
            self.members(field, before, after, &[]);
        } else if !same(before, after) {
            self.change(field, before, after);
        }
    }

    fn members<'v>(
        &mut self,
        field: &mut Field<'v>,
        before: &'v Object<'v>,
        after: &'v Object<'v>,
        order: &[&str],
    ) {
        let names = Names::of(before, after, order);
        for name in names.0 {
            field.push(&name.key.text);
            match (name.before.as_slice(), name.after.as_slice()) {
                ([before], [after]) => self.values(field, Some(before), Some(after)),
                ([before], []) => self.values(field, Some(before), None),
                ([], [after]) => self.values(field, None, Some(after)),
                // Of two members with one name, it depends on the parser which one counts.
                (before, after) => {
                    let is_same = before.len() == after.len()
                        && before.iter().zip(after).all(|(a, b)| spelled::same(a, b));
                    if !is_same {
                        self.push(field, show_all(before), show_all(after));
                    }
                }
            }
            field.pop();
        }
    }

    fn change(&mut self, field: &Field<'_>, before: Option<&Json<'_>>, after: Option<&Json<'_>>) {
        // A text is shown without quotes, unless it became a value of another kind that may look the
        // same.
        let bare = [before, after]
            .iter()
            .flatten()
            .all(|value| matches!(value, Json::Text(_)));
        let [before, after] =
            [before, after].map(|value| value.map(|value| show_value(value, bare)));
        self.push(field, before, after);
    }

    fn push(&mut self, field: &Field<'_>, before: Option<String>, after: Option<String>) {
        if self.changes.len() == CHANGES {
            self.more += 1;
            return;
        }
        let (before, after) = cut(before, after);
        self.changes.push(Change {
            field: field.name(),
            before,
            after,
        });
    }
}

/// The members of two objects, grouped by name.
struct Names<'v>(Vec<Name<'v>>);

struct Name<'v> {
    key: &'v Text<'v>,
    before: Vec<&'v Json<'v>>,
    after: Vec<&'v Json<'v>>,
}

impl<'v> Names<'v> {
    /// Groups members in the given order; others follow in their original order.
    fn of(before: &'v Object<'v>, after: &'v Object<'v>, order: &[&str]) -> Self {
        let sides = before.iter().map(|it| (false, it));
        let sides = sides.chain(after.iter().map(|it| (true, it)));
        let mut names: Vec<Name<'v>> = Vec::new();
        let mut places = std::collections::HashMap::new();
        for (is_after, (key, value)) in sides {
            let place = *places.entry((&*key.text, &key.halves)).or_insert_with(|| {
                names.push(Name {
                    key,
                    before: Vec::new(),
                    after: Vec::new(),
                });
                names.len() - 1
            });
            let name = &mut names[place];
            let side = if is_after {
                &mut name.after
            } else {
                &mut name.before
            };
            side.push(value);
        }
        names.sort_by_key(|name| {
            let place = order.iter().position(|key| *key == name.key.text);
            place.unwrap_or(order.len())
        });
        Self(names)
    }
}

fn same(before: Option<&Json<'_>>, after: Option<&Json<'_>>) -> bool {
    match (before, after) {
        (Some(before), Some(after)) => spelled::same(before, after),
        (None, None) => true,
        _ => false,
    }
}

/// Formats a value for the approver; a string without quotes if it is `bare`.
fn show_value(value: &Json<'_>, bare: bool) -> String {
    match value {
        Json::Text(text) if bare => show::escaped(text),
        _ => {
            let mut out = String::new();
            let pretty = size(value) <= PRETTY_BYTES;
            write_json(&mut out, value, pretty.then_some(0));
            out
        }
    }
}

/// Formats the members with one name for the approver. A list of their values would be another value.
fn show_all(values: &[&Json<'_>]) -> Option<String> {
    let shown: Vec<_> = values
        .iter()
        .map(|value| show_value(value, false))
        .collect();
    match shown.as_slice() {
        [] => None,
        [one] => Some(one.clone()),
        many => Some(format!(
            "{} members with this name\n{}",
            many.len(),
            many.join("\n")
        )),
    }
}

/// The approximate length of a value as JSON.
fn size(value: &Json<'_>) -> usize {
    match value {
        Json::Null | Json::Bool(_) => 4,
        Json::Number(spelled) => spelled.len(),
        Json::Text(text) => text.text.len(),
        Json::Unread(spelled) => spelled.len(),
        Json::Array(elements) => elements.iter().map(size).sum::<usize>() + elements.len(),
        Json::Object(members) => members
            .iter()
            .map(|(key, value)| key.text.len() + size(value) + 4)
            .sum(),
    }
}

/// Writes JSON with invisible characters escaped, for reading only. `indent` is the depth of a new
/// line; `None` puts everything on one line.
fn write_json(out: &mut String, value: &Json<'_>, indent: Option<usize>) {
    let deeper = indent.map(|indent| indent + 1);
    match value {
        Json::Null => out.push_str("null"),
        Json::Bool(true) => out.push_str("true"),
        Json::Bool(false) => out.push_str("false"),
        Json::Number(spelled) => out.push_str(spelled),
        Json::Text(text) => write_string(out, text),
        Json::Unread(spelled) => out.push_str(&show::escaped(&Text::unescape(spelled))),
        Json::Array(elements) => {
            // A list of words is most readable on one line.
            let flat = !elements
                .iter()
                .any(|it| matches!(it, Json::Object(_) | Json::Array(_)));
            let deeper = if flat { None } else { deeper };
            out.push('[');
            for (n, element) in elements.iter().enumerate() {
                if n > 0 {
                    out.push_str(if deeper.is_some() { "," } else { ", " });
                }
                new_line(out, deeper);
                write_json(out, element, deeper);
            }
            if !flat {
                new_line(out, indent);
            }
            out.push(']');
        }
        Json::Object(members) => {
            out.push('{');
            for (n, (key, value)) in members.iter().enumerate() {
                if n > 0 {
                    out.push_str(if indent.is_some() { "," } else { ", " });
                }
                new_line(out, deeper);
                write_string(out, key);
                out.push_str(": ");
                write_json(out, value, deeper);
            }
            if !members.is_empty() {
                new_line(out, indent);
            }
            out.push('}');
        }
    }
}

fn new_line(out: &mut String, indent: Option<usize>) {
    if let Some(indent) = indent {
        out.push('\n');
        out.extend(std::iter::repeat_n("  ", indent));
    }
}

fn write_string(out: &mut String, text: &Text<'_>) {
    out.push('"');
    for c in show::escaped(text).chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c => out.push(c),
        }
    }
    out.push('"');
}

/// Cuts long values around their changes.
fn cut(before: Option<String>, after: Option<String>) -> (Option<String>, Option<String>) {
    let is_long = |text: &Option<String>| {
        text.as_ref()
            .is_some_and(|text| text.chars().nth(VALUE_CHARACTERS).is_some())
    };
    if !is_long(&before) && !is_long(&after) {
        return (before, after);
    }
    let sides = [&before, &after].map(|side| side.as_deref().unwrap_or_default());
    let pairs = sides[0].char_indices().zip(sides[1].chars());
    let common = pairs.take_while(|((_, a), b)| a == b).last();
    let common = common.map_or(0, |((at, c), _)| at + c.len_utf8());
    let start = sides[0][..common].char_indices().rev();
    let start = start.take(CONTEXT_CHARACTERS).last();
    let start = start.map_or(0, |(at, _)| at);
    let side = |text: String| {
        let mut shown = String::new();
        if start > 0 {
            shown.push('…');
        }
        shown.extend(text[start..].chars().take(VALUE_CHARACTERS));
        let rest = text[start..].chars().skip(VALUE_CHARACTERS).count();
        if rest > 0 {
            // Writing to a string cannot fail.
            let _ = write!(shown, "… ({rest} more characters)");
        }
        shown
    };
    (before.map(side), after.map(side))
}
