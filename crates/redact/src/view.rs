//! A text as it looks after all decoding.
//!
//! JSON is often sent as a string within JSON, so a line break arrives as `\n`, `\\n` or `\\\\n`; URLs
//! write `%3D` for `=`. A view replaces each escape by its character, at any depth, and full-width
//! letters by plain ones, drops invisible characters, and maps positions back to the text.

use std::{borrow::Cow, ops::Range};

use crate::{
    decode::hex,
    numbers::run,
    words::{is_invisible, plain},
};

pub(crate) struct View<'t> {
    source: &'t str,
    text: Cow<'t, str>,
    /// The position in the source of each byte of the text; empty if both are the same.
    from: Vec<usize>,
}

impl<'t> View<'t> {
    /// A view of the text as it is.
    pub(crate) fn plain(source: &'t str) -> Self {
        Self {
            source,
            text: Cow::Borrowed(source),
            from: Vec::new(),
        }
    }

    /// A view of the decoded text; `None` if decoding changes nothing.
    pub(crate) fn decoded(source: &'t str) -> Option<Self> {
        let bytes = source.as_bytes();
        let next = |at: usize| run(&bytes[at..], usize::MAX, |byte| !is_special(*byte));
        let first = next(0);
        if first == source.len() {
            return None;
        }
        let mut text = String::with_capacity(source.len());
        let mut from = Vec::with_capacity(source.len());
        let (mut at, mut plain) = (0, first);
        let mut is_changed = false;
        loop {
            text.push_str(&source[at..at + plain]);
            from.extend(at..at + plain);
            at += plain;
            if at == source.len() {
                break;
            }
            if let Some((shown, taken)) = spelled(source, at) {
                is_changed = true;
                text.extend(shown);
                from.extend(shown.map(|_| at));
                at += taken;
            } else {
                // Skip the whole run of backslashes, so that it is not examined again.
                let is_slash = |byte: &u8| *byte == b'\\';
                let slashes = run(&bytes[at..], usize::MAX, is_slash).max(1);
                let end = source.ceil_char_boundary(at + slashes);
                text.push_str(&source[at..end]);
                from.extend(at..end);
                at = end;
            }
            plain = next(at);
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

    /// The number of backslashes before the one-byte character at this position.
    pub(crate) fn slashes(&self, at: usize) -> usize {
        if self.from.is_empty() {
            let before = self.source.as_bytes()[..at].iter().rev();
            return before.take_while(|byte| **byte == b'\\').count();
        }
        let source = self.source(&(at..at + 1));
        source.len().saturating_sub(1)
    }
}

/// Tests if a byte may begin an escape or a character that is replaced.
fn is_special(byte: u8) -> bool {
    matches!(byte, b'\\' | b'%' | 0xc2 | 0xe2 | 0xef)
}

/// Decodes the character at this position. Returns the character, `None` if it is invisible, and the
/// number of bytes that spell it.
fn spelled(source: &str, at: usize) -> Option<(Option<char>, usize)> {
    let bytes = &source.as_bytes()[at..];
    match bytes[0] {
        b'\\' => {
            let run = bytes.iter().take_while(|byte| **byte == b'\\').count();
            let (shown, taken) = escaped(&bytes[run..])?;
            Some((shown, run + taken))
        }
        b'%' => {
            let again = bytes[1..].chunks_exact(2);
            let start = 1 + 2 * again.take_while(|pair| *pair == b"25").count();
            let code = hex(bytes.get(start..start + 2)?)?;
            Some((shown(char::from_u32(code)?).ok()?, start + 2))
        }
        _ => {
            let c = source[at..].chars().next()?;
            let shown = shown(c).ok()?;
            (shown != Some(c)).then_some((shown, c.len_utf8()))
        }
    }
}

/// The character that follows backslashes, and the number of bytes that spell it.
fn escaped(bytes: &[u8]) -> Option<(Option<char>, usize)> {
    match *bytes.first()? {
        b'n' | b'r' => Some((Some('\n'), 1)),
        b't' => Some((Some('\t'), 1)),
        c @ (b'"' | b'\'' | b'/') => Some((Some(char::from(c)), 1)),
        b'u' => {
            let code = hex(bytes.get(1..5)?)?;
            Some((shown(char::from_u32(code)?).ok()?, 5))
        }
        _ => None,
    }
}

/// A character that is left as it is.
struct Other;

/// A character as plain ASCII, or `None` if it is invisible.
fn shown(c: char) -> Result<Option<char>, Other> {
    if is_invisible(c) {
        return Ok(None);
    }
    match plain(c) {
        c @ ('\n' | '\t' | ' '..='~') => Ok(Some(c)),
        _ => Err(Other),
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
            ("a%3Db%253dc", "a=b=c"),
            ("ｐａ\u{200b}ｓｓ＝é", "pass=é"),
            (r"pa\u200bss", "pass"),
        ] {
            assert_eq!(View::decoded(source).unwrap().text(), text, "{source}");
        }
        for source in [
            "",
            "plain",
            "100% é … “q”",
            r"C:\x\",
            r"\u12",
            r"\uzzzz",
            r"\é",
        ] {
            assert!(View::decoded(source).is_none(), "{source}");
        }
    }

    #[test]
    fn parts_lead_back_to_whole_escapes() {
        let source = r#"x\\"y\\nz"#;
        let view = View::decoded(source).unwrap();
        assert_eq!(view.text(), "x\"y\nz");
        assert_eq!(&source[view.source(&(1..2))], r#"\\""#);
        assert_eq!(&source[view.source(&(2..4))], r"y\\n");
        assert_eq!(&source[view.source(&(4..5))], "z");
        assert_eq!((view.slashes(1), view.slashes(2)), (2, 0));
        assert_eq!(View::plain(r#"\\"x"#).slashes(2), 2);
    }
}
