//! A text as the reader at the end of every encoding sees it.
//!
//! JSON is often sent as a string within JSON, so that a line break arrives as `\n`, `\\n` or
//! `\\\\n`. A view replaces each escape by the character that it stands for, at any depth, and maps
//! positions back to the text.

use std::{borrow::Cow, ops::Range};

pub(crate) struct View<'t> {
    source: &'t str,
    text: Cow<'t, str>,
    /// Where in the source each byte of the text comes from; empty if they are the same.
    from: Vec<usize>,
}

impl<'t> View<'t> {
    /// The text as it is.
    pub(crate) fn plain(source: &'t str) -> Self {
        Self {
            source,
            text: Cow::Borrowed(source),
            from: Vec::new(),
        }
    }

    /// The text with its escapes decoded; `None` if it has none.
    pub(crate) fn unescaped(source: &'t str) -> Option<Self> {
        let bytes = source.as_bytes();
        memchr::memchr(b'\\', bytes)?;
        let mut text = String::with_capacity(source.len());
        let mut from = Vec::with_capacity(source.len());
        let mut at = 0;
        let mut is_changed = false;
        while at < source.len() {
            let slashes = memchr::memchr(b'\\', &bytes[at..]).unwrap_or(source.len() - at);
            text.push_str(&source[at..at + slashes]);
            from.extend(at..at + slashes);
            at += slashes;
            let run = bytes[at..]
                .iter()
                .take_while(|byte| **byte == b'\\')
                .count();
            if let Some((c, taken)) = escaped(&bytes[at + run..]).filter(|_| run > 0) {
                text.push(char::from(c));
                from.push(at);
                at += run + taken;
                is_changed = true;
            } else {
                text.push_str(&source[at..at + run]);
                from.extend(at..at + run);
                at += run;
            }
        }
        is_changed.then_some(Self {
            source,
            text: Cow::Owned(text),
            from,
        })
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The part of the source that a part of the view comes from.
    pub(crate) fn source(&self, part: &Range<usize>) -> Range<usize> {
        let from = |at: usize| match self.from.get(at) {
            Some(from) => *from,
            None if self.from.is_empty() => at,
            None => self.source.len(),
        };
        from(part.start)..from(part.end)
    }

    /// The number of backslashes in front of the one-byte character at this place.
    pub(crate) fn slashes(&self, at: usize) -> usize {
        if self.from.is_empty() {
            let before = self.source.as_bytes()[..at].iter().rev();
            return before.take_while(|byte| **byte == b'\\').count();
        }
        let source = self.source(&(at..at + 1));
        source.len().saturating_sub(1)
    }
}

/// The ASCII character that follows backslashes, and the bytes that spell it.
fn escaped(bytes: &[u8]) -> Option<(u8, usize)> {
    match *bytes.first()? {
        b'n' | b'r' => Some((b'\n', 1)),
        b't' => Some((b'\t', 1)),
        c @ (b'"' | b'\'' | b'/') => Some((c, 1)),
        b'u' => {
            let digits = bytes.get(1..5)?;
            if !digits.iter().all(u8::is_ascii_hexdigit) {
                return None;
            }
            let digits = std::str::from_utf8(digits).ok()?;
            let code = u8::from_str_radix(digits, 16).ok()?;
            matches!(code, b'\n' | b'\t' | b' '..0x7f).then_some((code, 5))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_decoded_at_any_depth() {
        for (source, text) in [
            (r"a\nb", "a\nb"),
            (r"a\\\\nb", "a\nb"),
            (r#"{\\\"a\\\": \u003cb\u003e}"#, "{\"a\": <b>}"),
            (r"\\\u002fx", "/x"),
        ] {
            assert_eq!(View::unescaped(source).unwrap().text(), text, "{source}");
        }
        for source in ["", "plain", r"C:\x\", r"\u12", r"\uzzzz", r"\é"] {
            assert!(View::unescaped(source).is_none(), "{source}");
        }
    }

    #[test]
    fn parts_lead_back_to_whole_escapes() {
        let source = r#"x\\"y\\nz"#;
        let view = View::unescaped(source).unwrap();
        assert_eq!(view.text(), "x\"y\nz");
        assert_eq!(&source[view.source(&(1..2))], r#"\\""#);
        assert_eq!(&source[view.source(&(2..4))], r"y\\n");
        assert_eq!(&source[view.source(&(4..5))], "z");
        assert_eq!((view.slashes(1), view.slashes(2)), (2, 0));
        assert_eq!(View::plain(r#"\\"x"#).slashes(2), 2);
    }
}
