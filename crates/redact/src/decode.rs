//! Undoes every common encoding of a text.
//!
//! Percent signs, backslashes and HTML entities can be nested, mixed and used for any character, so
//! the spellings of a value cannot be enumerated. Instead, the text and the value are both decoded as
//! far as possible and then compared.

use std::ops::Range;

/// Marks the end of text that was cut.
pub(crate) const ELLIPSIS: &[u8] = "…".as_bytes();
/// The most passes of decoding. One pass undoes any depth of the same encoding.
const ROUNDS: usize = 3;
/// The longest name or number of an HTML entity.
const ENTITY_MAX: usize = 8;

/// The decoded bytes of a text, and the origin of each.
pub(crate) struct Decoded {
    pub(crate) bytes: Vec<u8>,
    /// The position in the text at which each byte begins, and one more for the end.
    from: Vec<usize>,
}

impl Decoded {
    /// Decodes the text; `None` if that changes nothing.
    pub(crate) fn new(text: &[u8]) -> Option<Self> {
        let mut decoded = once(text)?;
        for _ in 1..ROUNDS {
            let Some(next) = once(&decoded.bytes) else {
                break;
            };
            let from = next.from.iter().map(|at| decoded.from[*at]).collect();
            decoded = Self {
                bytes: next.bytes,
                from,
            };
        }
        Some(decoded)
    }

    /// The part of the text that these bytes come from. It consists of whole escapes.
    pub(crate) fn source(&self, part: &Range<usize>) -> Range<usize> {
        self.from[part.start]..self.from[part.end]
    }
}

/// A character that was encoded, and the length of its encoding.
struct Unit {
    character: Spelled,
    length: usize,
}

#[derive(Clone, Copy)]
enum Spelled {
    Byte(u8),
    Char(char),
    /// The beginning of an encoding that was cut off.
    Cut,
}

fn once(text: &[u8]) -> Option<Decoded> {
    let next = |at: usize| memchr::memchr3(b'%', b'\\', b'&', &text[at..]).map(|ahead| at + ahead);
    let mut special = next(0)?;
    let mut bytes = Vec::with_capacity(text.len());
    let mut from = Vec::with_capacity(text.len() + 1);
    let mut at = 0;
    let mut is_changed = false;
    loop {
        bytes.extend_from_slice(&text[at..special]);
        from.extend(at..special);
        let unit = unit(&text[special..]);
        is_changed |= unit.length > 1 || matches!(unit.character, Spelled::Cut);
        let mut utf8 = [0; 4];
        let spelled = match unit.character {
            Spelled::Byte(byte) => {
                utf8[0] = byte;
                &utf8[..1]
            }
            Spelled::Char(c) => c.encode_utf8(&mut utf8).as_bytes(),
            Spelled::Cut => &[],
        };
        bytes.extend_from_slice(spelled);
        from.extend(spelled.iter().map(|_| special));
        at = special + unit.length;
        match next(at) {
            Some(place) => special = place,
            None => break,
        }
    }
    bytes.extend_from_slice(&text[at..]);
    from.extend(at..=text.len());
    is_changed.then_some(Decoded { bytes, from })
}

/// Decodes the character that begins here with a percent sign, a backslash or an ampersand.
fn unit(text: &[u8]) -> Unit {
    let unit = match text[0] {
        b'%' => percent(text),
        b'&' => Some(entity(text)),
        _ => backslash(text),
    };
    unit.unwrap_or(Unit {
        character: Spelled::Byte(text[0]),
        length: 1,
    })
}

/// `%2F`, and `%252F` at any depth.
fn percent(text: &[u8]) -> Option<Unit> {
    let again = text[1..].chunks_exact(2);
    let start = 1 + 2 * again.take_while(|pair| *pair == b"25").count();
    if let Some(code) = text.get(start..start + 2).and_then(hex) {
        return Some(Unit {
            character: Spelled::Byte(u8::try_from(code).ok()?),
            length: start + 2,
        });
    }
    if let Some(cut) = cut(&text[start..], 2, u8::is_ascii_hexdigit) {
        return Some(Unit {
            character: Spelled::Cut,
            length: start + cut,
        });
    }
    Some(Unit {
        character: Spelled::Byte(b'%'),
        length: start,
    })
}

/// `\n`, `\x2f`, `\u002f` or a surrogate pair, each after any number of backslashes.
fn backslash(text: &[u8]) -> Option<Unit> {
    let run = text.iter().take_while(|byte| **byte == b'\\').count();
    let rest = &text[run..];
    let byte = |byte: u8| (Spelled::Byte(byte), 1);
    let itself = (Spelled::Byte(b'\\'), 0);
    let (character, length) = match rest.first() {
        Some(b'n') => byte(b'\n'),
        Some(b'r') => byte(b'\r'),
        Some(b't') => byte(b'\t'),
        Some(b'b') => byte(8),
        Some(b'f') => byte(12),
        Some(c @ (b'"' | b'\'' | b'/')) => byte(*c),
        Some(b'x') => code(rest, 2).unwrap_or(itself),
        Some(b'U') => code(rest, 8).unwrap_or(itself),
        Some(b'u') => match code(rest, 4).unwrap_or(itself) {
            (Spelled::Char(char::REPLACEMENT_CHARACTER), _) => surrogates(rest),
            unit => unit,
        },
        _ => itself,
    };
    Some(Unit {
        character,
        length: run + length,
    })
    .filter(|unit| unit.length > 1)
}

/// A letter followed by a character code of this many digits.
fn code(text: &[u8], digits: usize) -> Option<(Spelled, usize)> {
    match text.get(1..1 + digits).and_then(hex) {
        Some(code) => {
            // In Python's output, `\x` stands for a byte of `bytes`; in `str` the two agree up to
            // 127.
            let spelled = match u8::try_from(code) {
                Ok(byte) if digits == 2 => Spelled::Byte(byte),
                _ => Spelled::Char(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)),
            };
            Some((spelled, 1 + digits))
        }
        None => cut(&text[1..], digits, u8::is_ascii_hexdigit).map(|cut| (Spelled::Cut, 1 + cut)),
    }
}

/// `ud83d\ude00`, with any number of backslashes between.
fn surrogates(text: &[u8]) -> (Spelled, usize) {
    let other = || {
        let high = hex(text.get(1..5)?)?;
        let run = text[5..].iter().take_while(|byte| **byte == b'\\').count();
        let low = text[5 + run..].strip_prefix(b"u").filter(|_| run > 0)?;
        let low = low.get(..4).and_then(hex)?;
        let units = [u16::try_from(high).ok()?, u16::try_from(low).ok()?];
        let c = char::decode_utf16(units).next()?.ok()?;
        Some((Spelled::Char(c), 5 + run + 5))
    };
    other().unwrap_or((Spelled::Char(char::REPLACEMENT_CHARACTER), 5))
}

/// `&lt;`, `&#60;`, `&#x3c;`, and `&amp;lt;` at any depth.
fn entity(text: &[u8]) -> Unit {
    let again = text[1..].chunks_exact(4);
    let start = 1 + 4 * again.take_while(|part| *part == b"amp;").count();
    let rest = &text[start..];
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'#';
    let length = rest
        .iter()
        .take(ENTITY_MAX)
        .take_while(|byte| is_part(byte))
        .count();
    let name = &rest[..length];
    let unit = |character: Spelled, length: usize| Unit {
        character,
        length: start + length,
    };
    if rest.get(length) != Some(&b';') {
        // Only a number can be a cut entity: a name may also be the next parameter of a URL.
        let is_cut = name.starts_with(b"#") && cut(rest, ENTITY_MAX, is_part).is_some();
        return if is_cut {
            unit(Spelled::Cut, length)
        } else {
            unit(Spelled::Byte(b'&'), 0)
        };
    }
    let number = |digits: &[u8], radix: u32| {
        let digits = std::str::from_utf8(digits).ok()?;
        char::from_u32(u32::from_str_radix(digits, radix).ok()?)
    };
    let c = match name {
        b"lt" => Some('<'),
        b"gt" => Some('>'),
        b"quot" => Some('"'),
        b"apos" => Some('\''),
        [b'#', b'x' | b'X', digits @ ..] => number(digits, 16),
        [b'#', digits @ ..] => number(digits, 10),
        _ => None,
    };
    match c {
        Some(c) => unit(Spelled::Char(c), length + 1),
        None => unit(Spelled::Byte(b'&'), 0),
    }
}

/// The length of an incomplete run of fewer than `whole` such bytes, if the text ends or was cut
/// right after it.
fn cut(text: &[u8], whole: usize, is_part: impl Fn(&u8) -> bool) -> Option<usize> {
    let length = text
        .iter()
        .take(whole)
        .take_while(|byte| is_part(byte))
        .count();
    let after = &text[length..];
    (length < whole && (after.is_empty() || after.starts_with(ELLIPSIS))).then_some(length)
}

/// The number that hexadecimal digits spell.
pub(crate) fn hex(digits: &[u8]) -> Option<u32> {
    if !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(text: &str) -> String {
        let decoded = Decoded::new(text.as_bytes()).unwrap();
        String::from_utf8_lossy(&decoded.bytes).into_owned()
    }

    #[test]
    fn encodings_are_undone_at_any_depth() {
        for (text, expected) in [
            ("a%2Fb%2fc", "a/b/c"),
            ("a%25252Fb", "a/b"),
            ("%C3%A9", "é"),
            (r"a\\\\nb", "a\nb"),
            (r"a\\b", "a\u{8}"),
            (r"a\\qb\\xyz", r"a\qb\xyz"),
            (r"\u00e9\\u00e9\xe2\x82\xac", "éé€"),
            (r"\ud83d\ude00 \\ud83d\\ude00", "😀 😀"),
            (r"\U0001F600", "😀"),
            ("&lt;&amp;amp;gt;&#65;&#x42;", "<>AB"),
            ("%5Cu0041 &#37;41 %26lt;", "A A <"),
            ("a%2", "a"),
            ("a%2…", "a…"),
            (r"a\u00", "a"),
            ("a&#6", "a"),
            ("100%25 of", "100% of"),
        ] {
            assert_eq!(decoded(text), expected, "{text}");
        }
        for text in [
            "", "plain", "100% of", "a&b=c", r"C:\q", "a &c; b", "% & \\ ",
        ] {
            assert!(Decoded::new(text.as_bytes()).is_none(), "{text}");
        }
    }

    #[test]
    fn parts_lead_back_to_whole_escapes() {
        let text = r"x%25%34%31y\\nz";
        let decoded = Decoded::new(text.as_bytes()).unwrap();
        assert_eq!(decoded.bytes, b"xAy\nz");
        assert_eq!(&text[decoded.source(&(1..2))], "%25%34%31");
        assert_eq!(&text[decoded.source(&(3..4))], r"\\n");
        assert_eq!(&text[decoded.source(&(4..5))], "z");
    }
}
