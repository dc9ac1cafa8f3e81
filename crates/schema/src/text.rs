//! Makes untrusted text safe to show.

use std::fmt::Write;

use switchboard_wire::tree::Json;

use crate::limits::{CANDIDATES, NAME_CHARACTERS, VALUE_CHARACTERS};

/// Puts a text on one line of at most this many characters.
pub(crate) fn cut(text: &str, characters: usize) -> String {
    let mut out = String::new();
    let mut count = 0;
    let mut space = false;
    for c in text.trim().chars() {
        if c.is_whitespace() {
            space = true;
            continue;
        }
        if std::mem::take(&mut space) {
            out.push(' ');
            count += 1;
        }
        if count >= characters {
            return out.trim_end().to_owned() + "…";
        }
        write_safe(&mut out, c);
        count += 1;
    }
    out
}

/// Quotes a text, limited to this many characters.
pub(crate) fn quoted(text: &str, characters: usize) -> String {
    let mut out = String::from("\"");
    for (n, c) in text.chars().enumerate() {
        if n >= characters {
            out.push('…');
            break;
        }
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            other => write_safe(&mut out, other),
        }
    }
    out.push('"');
    out
}

/// Formats a name: unchanged if it is an identifier, otherwise quoted.
pub(crate) fn name(text: &str) -> String {
    let letter = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$');
    let plain = text.chars().count() <= NAME_CHARACTERS
        && text.chars().all(letter)
        && !text.starts_with(|c: char| c.is_numeric())
        && !text.is_empty();
    if plain {
        text.to_owned()
    } else {
        quoted(text, NAME_CHARACTERS)
    }
}

/// Describes a value in few characters.
pub(crate) fn value(value: &Json<'_>) -> String {
    match value {
        Json::Null => "null".to_owned(),
        Json::Bool(value) => value.to_string(),
        Json::Number(spelled) | Json::Unread(spelled) => cut(spelled, VALUE_CHARACTERS),
        Json::Text(text) => quoted(text, VALUE_CHARACTERS),
        Json::Array(elements) if elements.is_empty() => "an empty array".to_owned(),
        Json::Array(elements) => format!("an array of {}", elements.len()),
        Json::Object(object) if object.is_empty() => "an empty object".to_owned(),
        Json::Object(object) => {
            let names = object.iter().take(3).map(|(name, _)| &**name);
            let names = list(names, 3);
            let more = if object.len() > 3 { ", …" } else { "" };
            format!("an object with {names}{more}")
        }
    }
}

/// Lists names: `a`, `b`.
pub(crate) fn list<'a>(names: impl Iterator<Item = &'a str>, most: usize) -> String {
    let mut out = String::new();
    for (n, name) in names.enumerate() {
        if n > 0 {
            out.push_str(", ");
        }
        if n >= most {
            out.push('…');
            break;
        }
        let _ = write!(out, "`{}`", cut(name, NAME_CHARACTERS));
    }
    out
}

/// Escapes characters that are invisible, or that change the display of others.
fn write_safe(out: &mut String, c: char) {
    let hidden = c.is_control()
        || matches!(
            c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}'
        );
    if hidden {
        // Writing to a string cannot fail.
        let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
    } else {
        out.push(c);
    }
}

/// Returns the name that was probably meant. At most a third of the wrong one may differ: this
/// decides whether arguments are refused, so it is stricter than a mere hint could be.
pub(crate) fn nearest<'a>(wrong: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let (slips, name) = switchboard_text::closest(wrong, names.take(CANDIDATES))?;
    (slips <= switchboard_text::letters(wrong) / 3).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_truncated_and_kept_on_one_line() {
        assert_eq!(cut("  one\n\n two\tthree ", 80), "one two three");
        assert_eq!(cut("one two three", 7), "one two…");
        assert_eq!(cut("one two three", 8), "one two…");
        assert_eq!(cut("a\u{1b}[31m\u{202e}b", 80), "a\\u{1b}[31m\\u{202e}b");
        assert_eq!(quoted("a\"b\n\u{7}", 80), "\"a\\\"b\\n\\u{7}\"");
        assert_eq!(quoted("abcdef", 3), "\"abc…\"");
    }

    #[test]
    fn names_are_quoted_unless_identifiers() {
        assert_eq!(name("path_1$"), "path_1$");
        assert_eq!(name("größe"), "größe");
        assert_eq!(name("a-b"), "\"a-b\"");
        assert_eq!(name("1a"), "\"1a\"");
        assert_eq!(name(""), "\"\"");
    }

    #[test]
    fn only_near_names_are_suggested() {
        let names = ["path", "filePath", "limit", "include_hidden", "q"];
        for (wrong, meant) in [
            ("pth", Some("path")),
            ("paht", Some("path")),
            ("Path", Some("path")),
            ("file_path", Some("filePath")),
            ("limits", Some("limit")),
            ("includeHidden", Some("include_hidden")),
            ("Q", Some("q")),
            ("w", None),
            ("weather", None),
            ("", None),
        ] {
            assert_eq!(nearest(wrong, names.into_iter()), meant, "{wrong}");
        }
    }
}
