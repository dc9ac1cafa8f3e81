//! Text from peers and errors, made safe to show to users.

use std::{borrow::Cow, fmt::Display};

/// The most characters of a peer's text that [`excerpt`] keeps.
pub const EXCERPT_CHARS: usize = 300;

/// Joins a message and its hint into one text, for places that have room for one text only.
///
/// ```
/// use switchboard_wire::with_hint;
///
/// assert_eq!(with_hint("the file is empty", Some("write it again")), "the file is empty; write it again");
/// assert_eq!(with_hint("the file is empty", None::<&str>), "the file is empty");
/// ```
pub fn with_hint(message: impl Display, hint: Option<impl Display>) -> String {
    match hint {
        Some(hint) => format!("{message}; {hint}"),
        None => message.to_string(),
    }
}

/// Escapes control characters and invisible formatting, so that the text stays on one line and cannot
/// manipulate a terminal. Tabs are kept.
///
/// ```
/// use switchboard_wire::visible;
///
/// assert_eq!(visible("no\tkey"), "no\tkey");
/// assert_eq!(visible("\x1b[31mred\nline"), r"\u{1b}[31mred\nline");
/// ```
pub fn visible(text: &str) -> Cow<'_, str> {
    if !text.contains(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        if is_hidden(character) {
            shown.extend(character.escape_default());
        } else {
            shown.push(character);
        }
    }
    Cow::Owned(shown)
}

/// Returns the beginning of a peer's text, made [`visible`]. If the text was cut, the excerpt ends with an
/// ellipsis, so that a truncated secret can be distinguished from a complete one.
pub fn excerpt(text: &str) -> String {
    let mut cut = text.char_indices().nth(EXCERPT_CHARS).map(|(end, _)| end);
    let mut shown = visible(&text[..cut.unwrap_or(text.len())]).into_owned();
    // Escapes are longer than the characters that they replace.
    if let Some((end, _)) = shown.char_indices().nth(EXCERPT_CHARS) {
        shown.truncate(end);
        cut = Some(end);
    }
    if cut.is_some() {
        shown.push('…');
    }
    shown
}

/// Returns `true` if a character is invisible, or changes the display of others.
fn is_hidden(character: char) -> bool {
    (character.is_control() && character != '\t') || is_formatting(character)
}

/// Returns `true` if a character is invisible formatting, such as a direction mark, a joiner, a line
/// separator or a tag.
pub fn is_formatting(character: char) -> bool {
    matches!(
        character,
        '\u{ad}'
            | '\u{61c}'
            | '\u{180e}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{2069}'
            | '\u{feff}'
            | '\u{e0000}'..='\u{e007f}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excerpt_is_bounded_and_shows_its_cut() {
        assert_eq!(excerpt("no key"), "no key");
        assert_eq!(excerpt(&"é".repeat(300)), "é".repeat(300));
        assert_eq!(excerpt(&"é".repeat(301)), format!("{}…", "é".repeat(300)));
        let hidden = excerpt(&"\x1b".repeat(100_000));
        assert_eq!(hidden.chars().count(), EXCERPT_CHARS + 1);
        assert!(hidden.starts_with(r"\u{1b}\u{1b}") && hidden.ends_with('…'));
    }

    #[test]
    fn hidden_characters_are_shown() {
        for (text, shown) in [
            ("a\u{202e}b", r"a\u{202e}b"),
            ("a\u{2028}b", r"a\u{2028}b"),
            ("\u{e0041}", r"\u{e0041}"),
            ("a\r\n\0", r"a\r\n\u{0}"),
            ("naïve 👍\u{fe0f}", "naïve 👍\u{fe0f}"),
        ] {
            assert_eq!(visible(text), shown);
        }
    }
}
