//! Texts of a definition that a model reads in sequence, and that may form one sentence.

use switchboard_wire::tree::Json;

use super::{Kind, Severity, rules::Hit};
use crate::{
    fields::{self, Field, Role},
    limits,
};

/// A sequence of texts.
pub(super) struct Joined<'v> {
    /// Field of the first one.
    pub(super) field: Field<'v>,
    pub(super) text: String,
    row: Row,
}

/// The relation of the texts in a sequence.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Row {
    /// Titles and description.
    Heads,
    /// Values of one list.
    List,
    /// All texts of the definition.
    All,
}

impl Joined<'_> {
    /// The severity of a match in the joined text, or `None` to ignore it. Values of lists and texts
    /// of different parameters match many rules by chance, so only orders about the user or about
    /// instructions count in them.
    pub(super) fn severity(&self, hit: &Hit) -> Option<Severity> {
        let is_order = matches!(hit.kind, Kind::Override | Kind::Secrecy);
        match self.row {
            Row::Heads => Some(hit.severity),
            Row::List => is_order.then_some(hit.severity),
            Row::All => is_order.then_some(hit.severity.min(Severity::Warn)),
        }
    }
}

/// The values of each list; titles and description in both orders; and all texts.
pub(super) fn find<'v>(value: &'v Json<'v>) -> Vec<Joined<'v>> {
    let mut texts: Vec<(Field<'v>, String)> = Vec::new();
    let mut lists = Vec::new();
    let mut left = limits::SCAN_BYTES;
    fields::each(value, &mut |field, role, text| {
        if role == Role::Name || field.is_keyword() {
            return;
        }
        let text = &text.text[..text.text.floor_char_boundary(left)];
        left -= text.len();
        match texts.last_mut() {
            Some((last, list)) if last == field => {
                list.push(' ');
                list.push_str(text);
                if lists.last() != Some(&(texts.len() - 1)) {
                    lists.push(texts.len() - 1);
                }
            }
            _ => texts.push((field.clone(), text.to_owned())),
        }
    });
    let mut found: Vec<_> = lists
        .into_iter()
        .map(|n| {
            let (field, text) = texts[n].clone();
            Joined {
                field,
                text,
                row: Row::List,
            }
        })
        .collect();
    let mut heads: Vec<_> = texts.iter().filter(|(field, _)| field.is_head()).collect();
    for _ in 0..2 {
        if let [(field, _), _, ..] = heads.as_slice() {
            let (field, text) = (field.clone(), join(&heads));
            found.push(Joined {
                field,
                text,
                row: Row::Heads,
            });
        }
        heads.sort_by_cached_key(|(field, _)| field.name());
    }
    if let [(field, _), _, ..] = texts.as_slice() {
        let (field, text) = (field.clone(), join(&texts.iter().collect::<Vec<_>>()));
        found.push(Joined {
            field,
            text,
            row: Row::All,
        });
    }
    found
}

fn join(texts: &[&(Field<'_>, String)]) -> String {
    let texts: Vec<_> = texts.iter().map(|(_, text)| text.as_str()).collect();
    texts.join(" ")
}
