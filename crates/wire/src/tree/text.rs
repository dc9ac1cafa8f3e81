//! Unescaped JSON strings.

use std::{borrow::Cow, ops::Deref};

/// A string, unescaped.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Text<'a> {
    /// The text, with U+FFFD in place of each unpaired surrogate.
    pub text: Cow<'a, str>,
    /// The unpaired surrogates, each with its position in the text.
    pub halves: Box<[(usize, u16)]>,
}

impl<'a> Text<'a> {
    /// Unescapes the inside of a string, or any JSON text as if it were one.
    pub fn unescape(spelled: &'a str) -> Self {
        let Some(first) = memchr::memchr(b'\\', spelled.as_bytes()) else {
            return spelled.into();
        };
        let mut text = String::with_capacity(spelled.len());
        let mut halves = Vec::new();
        let (mut from, mut next) = (0, Some(first));
        while let Some(at) = next {
            text.push_str(&spelled[from..at]);
            let (character, length) = escape(&spelled[at..]);
            text.push(character.unwrap_or_else(|half| {
                halves.push((text.len(), half));
                char::REPLACEMENT_CHARACTER
            }));
            from = at + length;
            next = memchr::memchr(b'\\', &spelled.as_bytes()[from..]).map(|ahead| from + ahead);
        }
        text.push_str(&spelled[from..]);
        Self {
            text: text.into(),
            halves: halves.into(),
        }
    }

    pub(super) fn into_owned(self) -> Text<'static> {
        Text {
            text: Cow::Owned(self.text.into_owned()),
            halves: self.halves,
        }
    }
}

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

impl<'a> From<&'a str> for Text<'a> {
    fn from(text: &'a str) -> Self {
        Cow::Borrowed(text).into()
    }
}

impl<'a> From<Cow<'a, str>> for Text<'a> {
    fn from(text: Cow<'a, str>) -> Self {
        let halves = Box::default();
        Self { text, halves }
    }
}

/// Decodes the escape that the text begins with. Returns the character, or an unpaired surrogate, and the
/// length of the escape.
pub(crate) fn escape(text: &str) -> (Result<char, u16>, usize) {
    let unit = |at: usize| u16::from_str_radix(text.get(at..at + 6)?.strip_prefix("\\u")?, 16).ok();
    if let Some(first) = unit(0) {
        let pair = [first, unit(6).unwrap_or_default()];
        return match char::decode_utf16(pair).next() {
            Some(Ok(c)) => (Ok(c), 6 * c.len_utf16()),
            _ => (Err(first), 6),
        };
    }
    // In JSON, a character follows each backslash.
    let spelled = text.chars().nth(1).unwrap_or(char::REPLACEMENT_CHARACTER);
    let character = match spelled {
        'n' => '\n',
        't' => '\t',
        'r' => '\r',
        'b' => '\u{8}',
        'f' => '\u{c}',
        other => other,
    };
    (Ok(character), text.len().min(1 + spelled.len_utf8()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Raw;

    fn read(spelled: &str) -> (String, Vec<(usize, u16)>) {
        let Text { text, halves } = Text::unescape(spelled);
        (text.into_owned(), halves.into())
    }

    #[test]
    fn escapes_are_decoded_and_unpaired_surrogates_kept() {
        for (spelled, text, halves) in [
            (
                r#"a\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00!"#,
                "a\"\\/\u{8}\u{c}\n\r\té😀!",
                vec![],
            ),
            (
                r"a\ud83dx\ude00",
                "a\u{fffd}x\u{fffd}",
                vec![(1, 0xD83D), (5, 0xDE00)],
            ),
            (r"\ud83d\ud83d\ude00", "\u{fffd}😀", vec![(0, 0xD83D)]),
            (r"\ud83d\u0041", "\u{fffd}A", vec![(0, 0xD83D)]),
            (r"\ud83d\\u0041", "\u{fffd}\\u0041", vec![(0, 0xD83D)]),
            (r"\ufffd", "\u{fffd}", vec![]),
        ] {
            assert_eq!(read(spelled), (text.to_owned(), halves), "{spelled}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_unescaped(text in any::<String>()) {
            let spelled = Raw::string(&text);
            let inner = &spelled.as_str()[1..spelled.as_str().len() - 1];
            prop_assert_eq!(read(inner), (text, vec![]));
        }

        #[test]
        fn units_decode_as_utf_16(units: Vec<u16>) {
            let spelled = units.iter().map(|unit| format!("\\u{unit:04x}"));
            let spelled = spelled.collect::<Vec<_>>().concat();
            let (text, halves) = read(&spelled);
            prop_assert_eq!(text, String::from_utf16_lossy(&units));
            let lone = char::decode_utf16(units).filter_map(Result::err);
            let lone: Vec<u16> = lone.map(|half| half.unpaired_surrogate()).collect();
            prop_assert_eq!(halves.into_iter().map(|(_, half)| half).collect::<Vec<_>>(), lone);
        }

        #[test]
        fn no_text_panics(text in "[\\\\ud8c0-9é\"+]{0,16}") {
            read(&text);
        }
    }
}
