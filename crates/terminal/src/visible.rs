//! Makes text of servers and clients safe to read: nothing in it is invisible, moves the cursor or
//! changes the text direction.

use std::fmt::Write as _;

use switchboard_wire::Raw;

/// Formats JSON with indentation and in its original spelling: numbers keep their digits, and a
/// duplicate member is shown twice. Invisible characters are escaped, so the JSON stays equal.
pub fn pretty(value: &Raw) -> String {
    let mut out = String::new();
    write_value(&mut out, value, 0);
    out
}

fn write_value(out: &mut String, value: &Raw, depth: usize) {
    // A lone surrogate cannot be decoded, so an object with one in a name keeps its original spelling.
    let is_whole = |(name, _): &(String, Raw)| !name.contains(char::REPLACEMENT_CHARACTER);
    if let Some(members) = value.members() {
        if !members.iter().all(is_whole) {
            out.push_str(&escaped(value.as_str()));
            return;
        }
        let members = members.iter().map(|(name, value)| (Some(name), value));
        write_all(out, ['{', '}'], members, depth);
    } else if let Some(elements) = value.elements() {
        let elements = elements.iter().map(|value| (None, value));
        write_all(out, ['[', ']'], elements, depth);
    } else {
        match value.to_text() {
            Some(text) if !text.contains(char::REPLACEMENT_CHARACTER) => {
                out.push_str(&quoted(&text));
            }
            // A lone surrogate cannot be decoded: the value keeps its original spelling.
            _ => out.push_str(&escaped(value.as_str())),
        }
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
            out.push_str(&quoted(name));
            out.push_str(": ");
        }
        write_value(out, value, depth + 1);
    }
    if !is_empty {
        out.push('\n');
        out.extend(std::iter::repeat_n("  ", depth));
    }
    out.push(close);
}

fn quoted(text: &str) -> String {
    escaped(Raw::string(text).as_str())
}

/// The length, in characters, from which it is shown.
const LONG: usize = 1_000;

/// The whole text on one line: a JSON string in which invisible characters are escaped and long runs of
/// whitespace are counted. The length of a long text comes first, since its beginning may have left the
/// screen.
pub fn spelled(text: &str) -> String {
    // The text itself must not contain what looks like such a count.
    let line = folded(&quoted(text).replace('⟨', "\\u27e8"));
    match text.chars().count() {
        length @ LONG.. => format!("({} characters) {line}", grouped(length)),
        _ => line,
    }
}

/// Escapes the invisible characters of JSON text.
pub fn escaped(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        if is_seen(c) || c == '⟨' {
            out.push(c);
        } else {
            for unit in c.encode_utf16(&mut [0; 2]) {
                // Writing to a string cannot fail.
                let _ = write!(out, "\\u{unit:04x}");
            }
        }
    }
    out
}

/// Makes a text visible as in [`visible`], on one line.
pub fn visible_line(text: &str) -> String {
    visible(text).replace('\n', "\\n").replace('\t', "\\t")
}

/// Writes each invisible character of a text as ⟨U+200B⟩. Line ends and tabs stay.
pub fn visible(text: &str) -> String {
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

/// The most consecutive spaces and tabs, and the most consecutive empty lines, that are kept.
const BLANKS: usize = 80;
const EMPTY_LINES: usize = 8;

/// Replaces long runs of whitespace by a count, such as ⟨5,900 spaces⟩, so that they push nothing off
/// the screen.
pub fn folded(text: &str) -> String {
    let is_blank = |c: char| matches!(c, ' ' | '\t' | '\n');
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(is_blank) {
        out.push_str(&rest[..start]);
        let run = &rest[start..];
        let end = run.find(|c| !is_blank(c)).unwrap_or(run.len());
        fold(&mut out, &run[..end]);
        rest = &run[end..];
    }
    out.push_str(rest);
    out
}

/// Folds one run of whitespace.
fn fold(out: &mut String, run: &str) {
    let lines = run.matches('\n').count();
    let last = match run.rsplit_once('\n') {
        Some((_, last)) if lines > EMPTY_LINES + 1 => {
            let empty = grouped(lines - 1);
            // Writing to a string cannot fail.
            let _ = write!(out, "\n⟨{empty} empty lines⟩\n");
            last
        }
        _ => run,
    };
    for (n, blanks) in last.split('\n').enumerate() {
        out.push_str(if n > 0 { "\n" } else { "" });
        let count = blanks.len();
        if count <= BLANKS {
            out.push_str(blanks);
            continue;
        }
        let what = match (blanks.contains(' '), blanks.contains('\t')) {
            (true, true) => "blanks",
            (true, false) => "spaces",
            _ => "tabs",
        };
        let _ = write!(out, "⟨{} {what}⟩", grouped(count));
    }
}

/// Formats a number with thousands separators.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (n, digit) in digits.chars().enumerate() {
        if n > 0 && (digits.len() - n).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Tests if a character is known to be visible. Others are escaped: escaping too many does no harm.
fn is_seen(c: char) -> bool {
    match c {
        '\n' | '\t' | ' '..='~' => true,
        // Letters by category, but invisible.
        '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{3164}' | '\u{ffa0}' => false,
        // The opening mark of an escape, and the soft hyphen.
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
    fn json_stays_equal() {
        let half = Raw::parse(r#"{"b":[{"a\ud800":1,"a\ud801":2}]}"#).unwrap();
        assert!(pretty(&half).contains(r#"{"a\ud800":1,"a\ud801":2}"#));
        let given = r#"{"a":1.50,"a":123456789012345678901234567890,"b\u202e":["x\u001b[2J","\ud800","ü\n"],"c":{}}"#;
        let raw = Raw::parse(given).unwrap();
        let shown = pretty(&raw);
        assert_eq!(
            shown,
            r#"{
  "a": 1.50,
  "a": 123456789012345678901234567890,
  "b\u202e": [
    "x\u001b[2J",
    "\ud800",
    "ü\n"
  ],
  "c": {}
}"#
        );
        assert_eq!(pretty(&Raw::parse(shown.clone()).unwrap()), shown);
    }

    #[test]
    fn long_runs_of_whitespace_are_counted() {
        let spaces = |count| " ".repeat(count);
        for (text, expected) in [
            ("a\n\n  b\tc ".to_owned(), "a\n\n  b\tc "),
            (format!("a{}b", spaces(5_900)), "a⟨5,900 spaces⟩b"),
            (format!("{}b", "\t".repeat(81)), "⟨81 tabs⟩b"),
            (format!("a{}b", " \t".repeat(1_000)), "a⟨2,000 blanks⟩b"),
            (format!("a\n{}\nb", spaces(100)), "a\n⟨100 spaces⟩\nb"),
            (
                format!("a{}  b", "\n ".repeat(501)),
                "a\n⟨500 empty lines⟩\n   b",
            ),
        ] {
            assert_eq!(folded(&text), expected);
        }
        assert_eq!(folded(&spaces(80)), spaces(80));
        assert_eq!(grouped(1_234_567), "1,234,567");
    }

    #[test]
    fn long_text_is_not_cut() {
        let long = format!(
            "a{}\u{1b}\n⟨9 spaces⟩{}",
            " ".repeat(100),
            "b".repeat(1_000)
        );
        let expected = format!(
            "(1,113 characters) \"a⟨100 spaces⟩\\u001b\\n\\u27e89 spaces⟩{}\"",
            "b".repeat(1_000)
        );
        assert_eq!(spelled(&long), expected);
        assert_eq!(spelled("a \"b\""), r#""a \"b\"""#);
    }

    #[test]
    fn only_visible_characters_are_left() {
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
