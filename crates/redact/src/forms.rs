//! The spellings of a value that decoding a text does not reveal: base64, hexadecimal digits, and single
//! lines.

use base64::{Engine as _, engine::general_purpose};
use switchboard_text::hex;

use crate::decode::Decoded;

/// The least length of a value that is replaced, in bytes. A shorter one would be found by chance.
pub(crate) const LEAST_BYTES: usize = 6;
/// The longest value that is also searched for in base64 and hexadecimal digits, in bytes.
const ENCODED_MAX: usize = 4 * 1024;
/// The least length of a line that is searched for on its own.
const LINE_LEAST: usize = 16;
/// The least length of a value that is found regardless of case, in characters.
const ANY_CASE_LEAST: usize = 12;

/// A spelling.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Form {
    pub(crate) bytes: Box<[u8]>,
    /// Letters match regardless of case.
    pub(crate) any_case: bool,
}

/// Every spelling of a value that is long enough to be distinguished from other text, without duplicates.
pub(crate) fn of(value: &str) -> Vec<Form> {
    let mut forms = Vec::new();
    add_text(value, &mut forms);
    if value.len() <= ENCODED_MAX {
        let utf16: Vec<u8> = value.encode_utf16().flat_map(u16::to_le_bytes).collect();
        for bytes in [value.as_bytes(), &utf16] {
            add_base64(bytes, &mut forms);
            forms.push(Form {
                bytes: hex::encode(bytes).into_bytes().into(),
                any_case: true,
            });
        }
    }
    if value.contains('\n') {
        // A program may print a key one line at a time. The first and the last line are the same for all
        // keys.
        let lines = value.lines().map(str::trim);
        let telling = |line: &&str| line.len() >= LINE_LEAST && !line.starts_with("-----");
        lines
            .filter(telling)
            .for_each(|line| add_text(line, &mut forms));
    }
    forms.retain(|form| form.bytes.len() >= LEAST_BYTES);
    forms.sort_unstable();
    forms.dedup();
    forms
}

/// Adds the value verbatim, as a JSON string, and fully decoded, since texts are decoded too.
fn add_text(value: &str, forms: &mut Vec<Form>) {
    let any_case = value.chars().count() >= ANY_CASE_LEAST;
    let mut add = |bytes: &[u8]| {
        forms.push(Form {
            bytes: bytes.into(),
            any_case,
        });
    };
    add(value.as_bytes());
    // A backslash in front of the value would be decoded as a part of it.
    add(escaped(value).as_bytes());
    if let Some(decoded) = Decoded::new(value.as_bytes()) {
        add(&decoded.bytes);
    }
}

fn escaped(value: &str) -> String {
    // Serializing a string to JSON cannot fail.
    let quoted = serde_json::to_string(value).unwrap_or_default();
    let inner = quoted.get(1..quoted.len().saturating_sub(1));
    inner.unwrap_or_default().to_owned()
}

/// Adds the base64 digits of the bytes, for each alignment that they can have in the encoded data.
fn add_base64(value: &[u8], forms: &mut Vec<Form>) {
    for engine in [
        general_purpose::STANDARD_NO_PAD,
        general_purpose::URL_SAFE_NO_PAD,
    ] {
        for offset in 0..3 {
            let mut bytes = vec![0; offset];
            bytes.extend_from_slice(value);
            let digits = engine.encode(&bytes);
            // The digits at either end also contain bits of the neighbouring bytes.
            let inside = digits.get((offset * 8).div_ceil(6)..bytes.len() * 8 / 6);
            forms.extend(inside.map(|inside| Form {
                bytes: inside.as_bytes().into(),
                any_case: false,
            }));
        }
    }
}
