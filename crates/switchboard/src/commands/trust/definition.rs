//! A definition for a person to read, field by field, with nothing in it that cannot be seen.
//!
//! It is read as it was spelled: a member that is there twice is shown twice, and a number keeps its digits.

use std::fmt::Write as _;

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

fn visible_line(text: &str) -> String {
    visible(text).replace('\n', "\\n").replace('\t', "\\t")
}

/// The text with every character that may not be seen written as ⟨U+200B⟩. Line ends and tabs stay.
fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if is_seen(c) {
            out.push(c);
        } else {
            let _ = write!(out, "⟨U+{:04X}⟩", u32::from(c));
        }
    }
    out
}

/// Whether something is seen where this character is. What is not known to be is spelled out: once too
/// often does no harm.
fn is_seen(c: char) -> bool {
    match c {
        '\n' | '\t' | ' '..='~' => true,
        // Letters in name only.
        '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{3164}' | '\u{ffa0}' => false,
        // The mark by which others are spelled out, and the soft hyphen.
        '⟨' | '\u{ad}' => false,
        // Punctuation, currencies, arrows, signs, pictures.
        '\u{a1}'..='\u{ff}'
        | '\u{2010}'..='\u{2027}'
        | '\u{2030}'..='\u{205e}'
        | '\u{20a0}'..='\u{20c0}'
        | '\u{2100}'..='\u{27ff}'
        | '\u{2900}'..='\u{2bff}'
        | '\u{3001}'..='\u{3003}'
        | '\u{3008}'..='\u{301f}'
        | '\u{ff01}'..='\u{ff65}'
        | '\u{1f300}'..='\u{1faff}' => true,
        other => other.is_alphanumeric(),
    }
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

    #[test]
    fn only_what_is_known_to_be_seen_is_left() {
        for text in ["Straße, 北京, Москва – “ok” → 5 € 🙂", "a\n\tb"] {
            assert_eq!(visible(text), text);
        }
        for c in [
            '\r',
            '\u{7f}',
            '\u{9b}',
            '\u{a0}',
            '\u{ad}',
            '\u{200b}',
            '\u{200d}',
            '\u{2028}',
            '\u{202e}',
            '\u{2060}',
            '\u{3164}',
            '\u{e000}',
            '\u{fe0f}',
            '\u{feff}',
            '\u{e0041}',
            '⟨',
            '\u{10ffff}',
        ] {
            assert_eq!(visible(&c.to_string()), format!("⟨U+{:04X}⟩", u32::from(c)));
        }
    }
}
