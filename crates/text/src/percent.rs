//! Percent-encoding in addresses, URI fragments and file names.

use std::borrow::Cow;

/// Encodes every byte as `%XX`, except ASCII letters and digits and those in `plain`.
///
/// ```
/// use switchboard_text::percent::encode;
///
/// assert_eq!(encode("My server/ü", b"/"), "My%20server/%C3%BC");
/// ```
pub fn encode(text: &str, plain: &[u8]) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || plain.contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(percent_encoding::percent_encode_byte(byte));
        }
    }
    encoded
}

/// Decodes `%XX`. Returns `None` if a percent sign is not followed by two hexadecimal digits, or if the
/// result is not UTF-8.
///
/// ```
/// use switchboard_text::percent::decode;
///
/// assert_eq!(decode("My%20server").as_deref(), Some("My server"));
/// assert_eq!(decode("a%+5"), None);
/// ```
pub fn decode(text: &str) -> Option<Cow<'_, str>> {
    let is_digit = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_hexdigit());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        // The decoder would leave a malformed escape unchanged.
        if byte == b'%' && !(is_digit(bytes.next()) && is_digit(bytes.next())) {
            return None;
        }
    }
    percent_encoding::percent_decode_str(text)
        .decode_utf8()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_decoded() {
        for (text, expected) in [
            ("", ""),
            ("plain+text", "plain+text"),
            ("%41%62%2fc", "Ab/c"),
            ("%c3%BC", "ü"),
            ("100%25", "100%"),
        ] {
            assert_eq!(decode(text).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn malformed_escapes_are_refused() {
        for text in [
            "%", "a%4", "%+5", "a%+5b", "%-1", "% 1", "%4g", "%%41", "%ff", "%c3",
        ] {
            assert_eq!(decode(text), None, "{text}");
        }
    }
}
