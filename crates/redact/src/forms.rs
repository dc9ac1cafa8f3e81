//! The spellings of one value: as it is, in JSON, in an address, in HTML, in base64.

use std::fmt::Write as _;

use base64::{Engine as _, engine::general_purpose};

use crate::known::LEAST_BYTES;

/// A value with more bytes is looked for as it is, in JSON and line by line.
const ENCODED_MAX: usize = 4 * 1024;
/// The least length of a line that is looked for by itself.
const LINE_LEAST: usize = 16;

/// Every spelling of a value that is long enough to be told from other text, each once.
pub(crate) fn of(value: &str) -> Vec<String> {
    let mut forms = vec![value.to_owned()];
    forms.extend(in_json(value));
    if value.len() <= ENCODED_MAX {
        forms.extend(in_addresses(value));
        forms.extend(in_html(value));
        forms.extend(in_base64(value));
    }
    if value.contains('\n') {
        // A program that prints a key prints a line at a time. The first and last line of one are
        // the same for all.
        let lines = value.lines().map(str::trim);
        let telling = |line: &&str| line.len() >= LINE_LEAST && !line.starts_with("-----");
        for line in lines.filter(telling) {
            forms.push(line.to_owned());
            forms.extend(in_json(line));
        }
    }
    forms.retain(|form| form.len() >= LEAST_BYTES);
    forms.sort_unstable();
    forms.dedup();
    forms
}

/// As a string in JSON, and as one within another: with and without what need not be escaped.
fn in_json(value: &str) -> Vec<String> {
    let once = escaped(value);
    let slashes = once.replace('/', "\\/");
    let ascii = ascii(&once);
    let twice = escaped(&once);
    vec![slashes, ascii, twice, once]
}

fn escaped(value: &str) -> String {
    // A string has a spelling in JSON.
    let quoted = serde_json::to_string(value).unwrap_or_default();
    let inner = quoted.get(1..quoted.len().saturating_sub(1));
    inner.unwrap_or_default().to_owned()
}

/// With everything beyond ASCII escaped.
fn ascii(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        if c.is_ascii() {
            out.push(c);
        } else {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                // Writing to a string cannot fail.
                let _ = write!(out, "\\u{unit:04x}");
            }
        }
    }
    out
}

/// The sets of characters that encoders of addresses leave as they are.
const KEPT: [&[u8]; 5] = [
    // RFC 3986, `encodeURIComponent`, forms.
    b"-._~",
    b"-._~!'()*",
    b"*-._",
    // A path and a query of a URL that is parsed and printed.
    b"-._~!'()*$&+,/:;=@[]|^%\\",
    b"-._~!()*$&+,/:;=@[]|^%\\?`{}",
];

fn in_addresses(value: &str) -> Vec<String> {
    let mut forms = Vec::new();
    for kept in KEPT {
        for upper in [true, false] {
            let encoded = percent(value, kept, upper);
            forms.push(encoded.replace("%20", "+"));
            forms.push(encoded);
        }
    }
    forms
}

fn percent(value: &str, kept: &[u8], upper: bool) -> String {
    let mut out = String::with_capacity(value.len());
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || kept.contains(&byte) {
            out.push(char::from(byte));
        } else if upper {
            let _ = write!(out, "%{byte:02X}");
        } else {
            let _ = write!(out, "%{byte:02x}");
        }
    }
    out
}

fn in_html(value: &str) -> Vec<String> {
    if !value.contains(['&', '<', '>', '"', '\'']) {
        return Vec::new();
    }
    let base = value
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;");
    let mut forms = vec![base.clone()];
    for double in ["&quot;", "&#34;"] {
        for single in ["'", "&#39;", "&#x27;", "&apos;"] {
            forms.push(base.replace('"', double).replace('\'', single));
        }
    }
    forms
}

/// The digits that the value has in base64, wherever in the encoded bytes it stands.
fn in_base64(value: &str) -> Vec<String> {
    let mut forms = Vec::new();
    for engine in [
        general_purpose::STANDARD_NO_PAD,
        general_purpose::URL_SAFE_NO_PAD,
    ] {
        for offset in 0..3 {
            let mut bytes = vec![0; offset];
            bytes.extend_from_slice(value.as_bytes());
            let digits = engine.encode(&bytes);
            // The digits at either end also hold bits of the neighbours.
            let inside = digits.get((offset * 8).div_ceil(6)..bytes.len() * 8 / 6);
            forms.extend(inside.map(str::to_owned));
        }
    }
    forms
}
