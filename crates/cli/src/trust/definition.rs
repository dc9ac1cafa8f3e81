//! A definition as text, field by field, with nothing invisible in it.
//!
//! It is read as it was spelled: a duplicate member is shown twice, and a number keeps its digits.

use std::fmt::Write as _;

use switchboard_terminal::visible::{pretty, visible, visible_line};
use switchboard_wire::Raw;

/// The members that come first. The rest keeps its order.
const FIRST: [&str; 3] = ["name", "title", "description"];

/// The definition, indented by two spaces.
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
        let said = match value.to_text() {
            Some(text) => visible(&text),
            None => pretty(&value),
        };
        // Writing to a string cannot fail.
        let _ = writeln!(out, "  {}", visible_line(&name));
        for line in said.split('\n') {
            let _ = writeln!(out, "      {line}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_members_are_shown_visibly() {
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
          "a\u202e": {
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
