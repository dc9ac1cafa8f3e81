//! Bytes as hexadecimal digits.

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// Encodes bytes, two lower-case digits each.
///
/// ```
/// assert_eq!(switchboard_text::hex::encode(&[0, 171]), "00ab");
/// ```
pub fn encode(bytes: &[u8]) -> String {
    let digit = |n: u8| char::from(DIGITS[usize::from(n)]);
    let digits = bytes
        .iter()
        .flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]);
    digits.collect()
}

/// Decodes exactly `N` bytes, in digits of either case.
///
/// ```
/// assert_eq!(switchboard_text::hex::decode("00aB"), Some([0, 171]));
/// assert_eq!(switchboard_text::hex::decode::<2>("+0ab"), None);
/// ```
pub fn decode<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digits = text.as_bytes();
    if digits.len() != 2 * N {
        return None;
    }
    let digit = |byte: u8| {
        char::from(byte)
            .to_digit(16)
            .and_then(|n| u8::try_from(n).ok())
    };
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}
