//! Decoding as servers do it: compatibility characters, percent-encoding, bytes that are not UTF-8, and JSON
//! as Python parses it.

use std::borrow::Cow;

use icu_normalizer::ComposingNormalizerBorrowed;
use serde::de::IgnoredAny;

/// The text with compatibility characters replaced, in lower case.
pub(crate) fn folded(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    let nfkc = ComposingNormalizerBorrowed::new_nfkc();
    let plain: String = nfkc.normalize(text).chars().map(plain).collect();
    // Upper case first, so that `ß` and `SS` become equal.
    let folded = plain.to_uppercase().to_lowercase();
    nfkc.normalize(&folded).into_owned()
}

/// The ASCII character that this one looks like.
fn plain(c: char) -> char {
    match c {
        '\u{2044}' | '\u{2215}' | '\u{29f8}' | '\u{27cb}' => '/',
        '\u{2216}' | '\u{29f5}' | '\u{29f9}' | '\u{27cd}' => '\\',
        '\u{3002}' => '.',
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        other => other,
    }
}

/// The text without invisible characters. NUL is kept, because it may end the text.
pub(crate) fn seen(text: &str) -> String {
    let chars = text.chars();
    chars.filter(|c| *c == '\0' || !is_unseen(*c)).collect()
}

/// Tests if a character is invisible, or dropped when text is shown or normalized.
pub(crate) fn is_unseen(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
            | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}')
}

/// Values that Python writes and parses in JSON although JSON does not have them.
const NO_NUMBERS: [&str; 3] = ["-Infinity", "Infinity", "NaN"];

/// The text as JSON, with null for [`NO_NUMBERS`]; `None` if it is not JSON.
pub(crate) fn json(text: &str) -> Option<Cow<'_, str>> {
    let is_json = |text: &str| serde_json::from_str::<IgnoredAny>(text).is_ok();
    if is_json(text) {
        return Some(Cow::Borrowed(text));
    }
    if !NO_NUMBERS.iter().any(|word| text.contains(word)) {
        return None;
    }
    let mut found = String::with_capacity(text.len());
    let mut rest = text;
    let (mut is_quoted, mut is_escaped) = (false, false);
    while let Some(c) = rest.chars().next() {
        let word = NO_NUMBERS
            .iter()
            .find(|word| !is_quoted && rest.starts_with(**word));
        if let Some(word) = word {
            found.push_str("null");
            rest = &rest[word.len()..];
            continue;
        }
        is_quoted ^= c == '"' && !is_escaped;
        is_escaped = is_quoted && c == '\\' && !is_escaped;
        found.push(c);
        rest = &rest[c.len_utf8()..];
    }
    is_json(&found).then_some(Cow::Owned(found))
}

/// Decodes the percent-encoding of a text once; `None` if there is nothing to decode.
pub(crate) fn decoded(text: &str) -> Option<String> {
    if !text.contains('%') {
        return None;
    }
    let digit = |byte: Option<&u8>| char::from(*byte?).to_digit(16);
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    let mut changed = false;
    while let Some(byte) = bytes.get(at) {
        let pair = |at: usize| {
            let value = digit(bytes.get(at))? * 16 + digit(bytes.get(at + 1))?;
            u8::try_from(value).ok()
        };
        if *byte == b'%' {
            if let Some(value) = pair(at + 1) {
                out.push(value);
                at += 3;
                changed = true;
                continue;
            }
            // `%u002f`, an encoding of old Microsoft servers.
            if bytes.get(at + 1) == Some(&b'u')
                && let (Some(high), Some(low)) = (pair(at + 2), pair(at + 4))
                && let Some(c) = char::from_u32(u32::from(high) * 256 + u32::from(low))
            {
                out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                at += 6;
                changed = true;
                continue;
            }
        }
        out.push(*byte);
        at += 1;
    }
    changed.then(|| lenient(&out))
}

/// Decodes bytes, including overlong encodings of ASCII.
fn lenient(bytes: &[u8]) -> String {
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    loop {
        let (c, taken) = match rest {
            [] => break,
            [first @ 0xc0..=0xc1, second @ 0x80..=0xbf, ..] => {
                ((first & 1) << 6 | second & 0x3f, 2)
            }
            [0xe0, second @ 0x80..=0x81, third @ 0x80..=0xbf, ..] => {
                ((second & 1) << 6 | third & 0x3f, 3)
            }
            [first, ..] => (*first, 1),
        };
        out.push(c);
        rest = &rest[taken..];
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_dropped_from_hosts_are_invisible() {
        let lost = |c: &char| {
            let found = idna::domain_to_unicode(&format!("a{c}b")).0;
            found == "ab"
        };
        let missed: Vec<char> = ('\u{80}'..=char::MAX)
            .filter(lost)
            .filter(|c| !is_unseen(*c))
            .collect();
        assert!(missed.is_empty(), "{missed:?}");
    }
}
