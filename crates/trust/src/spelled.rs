//! The canonical encoding of a value as bytes, for fingerprints and comparisons.

use switchboard_wire::tree::{Json, Text, canonical_number};

/// Tests if two values are equal.
pub(crate) fn same(a: &Json<'_>, b: &Json<'_>) -> bool {
    spelled(a) == spelled(b)
}

/// The unique encoding of a value.
pub(crate) fn spelled(value: &Json<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut out, value);
    out
}

/// Encodes a value so that different values never have the same encoding: each kind has a letter, and
/// lengths come first.
pub(crate) fn write(out: &mut Vec<u8>, value: &Json<'_>) {
    match value {
        Json::Null => out.push(b'n'),
        Json::Bool(true) => out.push(b't'),
        Json::Bool(false) => out.push(b'f'),
        Json::Number(spelled) => {
            out.push(b'#');
            out.extend_from_slice(canonical_number(spelled).as_bytes());
            out.push(b';');
        }
        Json::Text(text) => write_text(out, text),
        Json::Array(elements) => {
            out.push(b'[');
            write_length(out, elements.len());
            for element in elements {
                write(out, element);
            }
        }
        Json::Object(members) => write_members(out, members.iter().collect()),
        Json::Unread(spelled) => {
            out.push(b'd');
            write_length(out, spelled.len());
            out.extend_from_slice(spelled.as_bytes());
        }
    }
}

/// Encodes members sorted by name. Members with the same name keep their order, which determines the
/// one that a parser takes.
pub(crate) fn write_members(out: &mut Vec<u8>, mut members: Vec<&(Text<'_>, Json<'_>)>) {
    members.sort_by(|(a, _), (b, _)| a.text.cmp(&b.text));
    out.push(b'{');
    write_length(out, members.len());
    for (name, value) in members {
        write_text(out, name);
        write(out, value);
    }
}

fn write_text(out: &mut Vec<u8>, text: &Text<'_>) {
    out.push(b'"');
    write_length(out, text.text.len());
    out.extend_from_slice(text.text.as_bytes());
    for (at, unit) in &text.halves {
        out.push(b'h');
        write_length(out, *at);
        out.extend_from_slice(&unit.to_be_bytes());
    }
}

fn write_length(out: &mut Vec<u8>, length: usize) {
    out.extend_from_slice(&(length as u64).to_be_bytes());
}
