//! A definition for a person to read, field by field, with nothing in it that cannot be seen.
//!
//! It is read as it was spelled: a member that is there twice is shown twice, and a number keeps its digits.

use std::fmt::Write as _;

use switchboard_terminal::visible::{visible, visible_line};
use switchboard_wire::Raw;

/// What is shown first. The rest follows as it stands.
const FIRST: [&str; 3] = ["name", "title", "description"];

/// The definition, two spaces in from the left.
pub(super) fn readable(definition: &Raw) -> String {
    let mut members = definition.members().unwrap_or_default();
    members.sort_by_key(|(name, _)| {
        FIRST
            .iter()
            .position(|first| first == name)
            .unwrap_or(FIRST.len())
    });
    let mut out = String::new();
    for (name, value) in members {
        let mut said = String::new();
        match value.to_text() {
            Some(text) => said.push_str(&visible(&text)),
            None => write_json(&mut said, &value, 0),
        }
        // Writing to a string cannot fail.
        let _ = writeln!(out, "  {}", visible_line(&name));
        for line in said.split('\n') {
            let _ = writeln!(out, "      {line}");
        }
    }
    out
}

fn write_json(out: &mut String, value: &Raw, depth: usize) {
    if let Some(members) = value.members() {
        let members = members.iter().map(|(name, value)| (Some(name), value));
        write_all(out, ['{', '}'], members, depth);
    } else if let Some(elements) = value.elements() {
        let elements = elements.iter().map(|value| (None, value));
        write_all(out, ['[', ']'], elements, depth);
    } else if let Some(text) = value.to_text() {
        write_text(out, &text);
    } else {
        out.push_str(value.as_str());
    }
}

fn write_all<'a>(
    out: &mut String,
    [open, close]: [char; 2],
    members: impl Iterator<Item = (Option<&'a String>, &'a Raw)>,
    depth: usize,
) {
    out.push(open);
    let mut is_empty = true;
    for (name, value) in members {
        out.push_str(if is_empty { "\n" } else { ",\n" });
        is_empty = false;
        out.extend(std::iter::repeat_n("  ", depth + 1));
        if let Some(name) = name {
            write_text(out, name);
            out.push_str(": ");
        }
        write_json(out, value, depth + 1);
    }
    if !is_empty {
        out.push('\n');
        out.extend(std::iter::repeat_n("  ", depth));
    }
    out.push(close);
}

fn write_text(out: &mut String, text: &str) {
    let text = text.replace('\\', "\\\\").replace('"', "\\\"");
    let _ = write!(out, "\"{}\"", visible_line(&text));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_shown_and_seen() {
        let definition = r#"{"x":null,"description":"Adds \u00fc.\nMore\u200b\u001b[2J \ud800","description":"Twice",
            "inputSchema":{"properties":{"a\u202e":{"enum":["x","\"y\n"],"default":1.50}},"required":[]},"name":"add"}"#;
        let definition = Raw::parse(definition).unwrap();
        assert_eq!(
            readable(&definition),
            r#"  name
      add
  description
      Adds ü.
      More⟨U+200B⟩⟨U+001B⟩[2J ⟨U+FFFD⟩
  description
      Twice
  x
      null
  inputSchema
      {
        "properties": {
          "a⟨U+202E⟩": {
            "enum": [
              "x",
              "\"y\n"
            ],
            "default": 1.50
          }
        },
        "required": []
      }
"#
        );
        assert_eq!(readable(&Raw::parse("[1]").unwrap()), "");
    }
}
