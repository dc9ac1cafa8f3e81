//! Text for people: shortened, and without invisible characters.

use std::fmt::Write as _;

use switchboard_wire::tree::Text;

/// The most characters of a name or excerpt to show.
pub(crate) const EXCERPT_CHARACTERS: usize = 120;

/// Writes each character of a text that is invisible, or that controls a terminal, as ⟨U+200B⟩. Line
/// ends and tabs stay. Two different texts never look the same, except for look-alike letters.
pub(crate) fn escaped(text: &Text<'_>) -> String {
    let mut halves = text.halves.iter().peekable();
    let mut out = String::with_capacity(text.text.len());
    for (at, c) in text.text.char_indices() {
        match halves.next_if(|(half, _)| *half == at) {
            Some((_, unit)) => spell(&mut out, u32::from(*unit)),
            // The bracket itself, and spaces that look like an ordinary one.
            None if c == '⟨' || c == '\r' || c.is_whitespace() && !c.is_ascii() => {
                spell(&mut out, u32::from(c));
            }
            None => push(&mut out, c),
        }
    }
    out
}

/// The text on one line, cut at both ends so that position `at` is in the middle.
pub(crate) fn excerpt(text: &str, at: usize) -> String {
    let at = text.floor_char_boundary(at);
    let before = text[..at].char_indices().rev();
    let start = before.take(EXCERPT_CHARACTERS / 3).last();
    let start = start.map_or(at, |(start, _)| start);
    let mut out = String::new();
    if start > 0 {
        out.push('…');
    }
    let mut spaced = true;
    let mut shown = 0;
    for c in text[start..].chars() {
        if shown == EXCERPT_CHARACTERS {
            out.push('…');
            break;
        }
        if c.is_whitespace() {
            if spaced {
                continue;
            }
            spaced = true;
            out.push(' ');
        } else {
            spaced = false;
            push(&mut out, c);
        }
        shown += 1;
    }
    out
}

/// Tests if a character is visible.
pub(crate) fn is_shown(c: char) -> bool {
    match u32::from(c) {
        // Ordinary whitespace.
        0x09 | 0x0A | 0x0D => true,
        0x00..=0x1F | 0x7F..=0x9F => false,
        0xAD | 0x034F | 0x061C | 0x115F..=0x1160 | 0x17B4..=0x17B5 | 0x180B..=0x180F => false,
        0x200B..=0x200F | 0x2028..=0x202E | 0x2060..=0x206F | 0x2800 | 0x3164 => false,
        0xE000..=0xF8FF | 0xFDD0..=0xFDEF | 0xFE00..=0xFE0F | 0xFEFF | 0xFFA0 => false,
        0xFFF0..=0xFFFB | 0x13430..=0x1343F | 0x1BCA0..=0x1BCA3 | 0x1D173..=0x1D17A => false,
        // Tags, selectors, unassigned and private-use characters.
        0xE0000.. => false,
        other => other & 0xFFFE != 0xFFFE,
    }
}

fn push(out: &mut String, c: char) {
    if is_shown(c) {
        out.push(c);
    } else {
        spell(out, u32::from(c));
    }
}

fn spell(out: &mut String, code: u32) {
    // Writing to a string cannot fail.
    let _ = write!(out, "⟨U+{code:04X}⟩");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invisible_characters_are_escaped() {
        let shown = |text: &'static str, halves: &[(usize, u16)]| {
            escaped(&Text {
                text: text.into(),
                halves: halves.into(),
            })
        };
        assert_eq!(
            shown("a\u{200b}b\u{1b}[0m\u{e0041}\n\té😀", &[]),
            "a⟨U+200B⟩b⟨U+001B⟩[0m⟨U+E0041⟩\n\té😀"
        );
        assert_eq!(shown("⟨U+200B⟩\u{a0}", &[]), "⟨U+27E8⟩U+200B⟩⟨U+00A0⟩");
        assert_eq!(
            shown("a\u{fffd}\u{fffd}", &[(1, 0xD800)]),
            "a⟨U+D800⟩\u{fffd}"
        );
    }

    #[test]
    fn excerpts_are_short_and_contain_their_position() {
        let text = format!("{}  \n here {}", "é".repeat(300), "x".repeat(300));
        let shown = excerpt(&text, text.find("here").unwrap());
        assert!(shown.starts_with("…é") && shown.contains("é here x") && shown.ends_with("x…"));
        assert!(shown.chars().count() <= EXCERPT_CHARACTERS + 2);
        assert_eq!(excerpt("short", 2), "short");
        assert_eq!(excerpt("", 9), "");
        for at in 0..10 {
            excerpt("aé😀\u{200b}", at);
        }
    }
}
