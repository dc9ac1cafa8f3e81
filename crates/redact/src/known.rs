//! Secrets whose values are known.

use std::{borrow::Cow, collections::VecDeque, fmt, ops::Range, sync::Arc};

use crate::{
    decode::Decoded,
    forms::{self, Form},
    index::Index,
};

/// A value with fewer bytes is not replaced: it would be found by chance.
pub(crate) const LEAST_BYTES: usize = 6;
/// The most values that are known at a time, and the most bytes that all their spellings have.
const VALUES_MAX: usize = 512;
const BYTES_MAX: usize = 4 * 1024 * 1024;
/// The longest name of a secret.
const NAME_MAX: usize = 64;

/// A value and the name that it is shown under.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret {
    name: String,
    value: String,
}

impl Secret {
    /// A secret. Characters of the name other than letters, digits and `._-` become `_`.
    pub fn new(name: &str, value: impl Into<String>) -> Self {
        let kept = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        let name = name.chars().take(NAME_MAX);
        Self {
            name: name.map(|c| if kept(c) { c } else { '_' }).collect(),
            value: value.into(),
        }
    }

    /// The value, which nothing may show.
    pub fn value(&self) -> &str {
        &self.value
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[secret {}]", self.name)
    }
}

/// A set of secrets, in the order in which they became known.
///
/// ```
/// use switchboard_redact::{Secret, Secrets};
///
/// let secrets = Secrets::default().with([Secret::new("mail", "s3/cret")]);
/// assert_eq!(secrets.scrub("key=s3%2Fcret"), "key=[secret mail]");
/// assert_eq!(secrets.scrub_json(r#"{"a":"s3\/cret"}"#), r#"{"a":"[secret mail]"}"#);
/// ```
#[derive(Clone, Default)]
pub struct Secrets {
    known: VecDeque<Arc<Known>>,
    bytes: usize,
    index: Index,
    /// The replacements, by the numbers in the index.
    marks: Vec<String>,
}

struct Known {
    secret: Secret,
    forms: Vec<Form>,
    bytes: usize,
}

impl Secrets {
    /// Whether all of these are known.
    pub fn has(&self, secrets: &[Secret]) -> bool {
        let known = |value: &str| self.known.iter().any(|known| known.secret.value == value);
        secrets
            .iter()
            .all(|secret| secret.value.len() < LEAST_BYTES || known(&secret.value))
    }

    /// The same set and these. Values that are too short are left out; if there are too many, the oldest
    /// are forgotten.
    #[must_use]
    pub fn with(&self, secrets: impl IntoIterator<Item = Secret>) -> Self {
        let mut known = self.known.clone();
        let mut bytes = self.bytes;
        for secret in secrets {
            let is_known = known.iter().any(|known| known.secret.value == secret.value);
            if secret.value.len() < LEAST_BYTES || is_known {
                continue;
            }
            let forms = forms::of(&secret.value);
            let length = forms.iter().map(|form| form.bytes.len()).sum();
            bytes += length;
            known.push_back(Arc::new(Known {
                secret,
                forms,
                bytes: length,
            }));
        }
        while known.len() > VALUES_MAX || (bytes > BYTES_MAX && known.len() > 1) {
            let oldest = known.pop_front();
            bytes -= oldest.map_or(0, |oldest| oldest.bytes);
        }
        Self::indexed(known, bytes)
    }

    fn indexed(known: VecDeque<Arc<Known>>, bytes: usize) -> Self {
        let mut index = Index::default();
        let small = |known: &Arc<Known>| known.secret.value.to_ascii_lowercase();
        let values: Vec<String> = known.iter().map(small).collect();
        let shows = |name: &str| {
            let name = name.to_ascii_lowercase();
            values.iter().any(|value| name.contains(value))
        };
        let marks: Vec<String> = known
            .iter()
            .map(|known| {
                let name = &known.secret.name;
                // A name may hold a value, if only the own one.
                if name.is_empty() || shows(name) {
                    "[secret]".to_owned()
                } else {
                    format!("[secret {name}]")
                }
            })
            .collect();
        // A mark stands for itself, so that a value such as `secret` is not found within one.
        for (number, mark) in marks.iter().enumerate() {
            index.add_mark(mark, number);
        }
        for (number, known) in known.iter().enumerate() {
            for form in &known.forms {
                index.add(form, number);
            }
        }
        Self {
            known,
            bytes,
            index,
            marks,
        }
    }

    /// The text with every spelling of every value replaced by `[secret NAME]`. It takes time in
    /// proportion to the text, and copies nothing if there is nothing to replace.
    pub fn scrub<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut out = String::new();
        if self.replace(text, false, &mut out) {
            Cow::Owned(out)
        } else {
            Cow::Borrowed(text)
        }
    }

    /// The same for JSON, which stays JSON: values are replaced within strings only, and a number that
    /// holds one becomes a string.
    pub fn scrub_json<'t>(&self, json: &'t str) -> Cow<'t, str> {
        let bytes = json.as_bytes();
        let mut out = String::new();
        let (mut at, mut told) = (0, 0);
        while at < bytes.len() {
            let is_string = bytes[at] == b'"';
            let (start, end, next) = match bytes[at] {
                b'"' => {
                    let end = string_end(bytes, at);
                    (at + 1, end, end + 1)
                }
                b'-' | b'0'..=b'9' => {
                    let end = at + length(&bytes[at..], is_in_number);
                    (at, end, end)
                }
                _ => {
                    at += length(&bytes[at..], |byte| !starts_value(byte));
                    continue;
                }
            };
            let mut clean = String::new();
            let inside = json.get(start..end).unwrap_or_default();
            if self.replace(inside, is_string, &mut clean) {
                let quote = if is_string { "" } else { "\"" };
                out.push_str(&json[told..start]);
                out.extend([quote, &*clean, quote]);
                told = end;
            }
            at = next;
        }
        if out.is_empty() {
            return Cow::Borrowed(json);
        }
        out.push_str(&json[told..]);
        Cow::Owned(out)
    }

    /// Writes the text with all values replaced, if there are any.
    fn replace(&self, text: &str, in_json: bool, out: &mut String) -> bool {
        let mut found = self.find(text.as_bytes());
        if in_json {
            // A part that begins within an escape is another text for who reads the JSON.
            let mut at = 0;
            found.retain_mut(|(part, _)| {
                at = escape_boundary(text, at, part.start);
                let is_whole = at == part.start;
                part.end = escape_boundary(text, at, part.end);
                is_whole
            });
        }
        if let Some(decoded) = Decoded::new(text.as_bytes()) {
            let inside = self.find(&decoded.bytes).into_iter();
            found.extend(inside.map(|(part, mark)| (decoded.source(&part), mark)));
            found.sort_by_key(|(part, _)| (part.start, std::cmp::Reverse(part.end)));
        }
        let mut told = 0;
        let mut is_found = false;
        for (part, mark) in found {
            let (start, end) = (
                text.floor_char_boundary(part.start),
                text.ceil_char_boundary(part.end),
            );
            if start >= told {
                out.push_str(&text[told..start]);
                out.push_str(&self.marks[mark]);
                is_found = true;
            }
            told = told.max(end);
        }
        if is_found {
            out.push_str(&text[told..]);
        }
        is_found
    }

    /// The places of values, in order and apart, and the numbers of their marks.
    fn find(&self, text: &[u8]) -> Vec<(Range<usize>, usize)> {
        let mut found = Vec::new();
        let mut at = 0;
        while let Some(next) = self.index.next(text, at) {
            match self.index.at(text, next) {
                Some(hit) => {
                    at = next + hit.length;
                    found.push((next..at, hit.stands_for));
                }
                None => at = next + 1,
            }
        }
        found
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secrets({})", self.known.len())
    }
}

/// The place of the quote that ends the string which begins here, or the end of the text.
fn string_end(bytes: &[u8], open: usize) -> usize {
    let mut at = open + 1;
    while let Some(ahead) = bytes
        .get(at..)
        .and_then(|rest| memchr::memchr2(b'"', b'\\', rest))
    {
        at += ahead;
        if bytes[at] == b'"' {
            return at;
        }
        at += 2;
    }
    bytes.len()
}

fn length(bytes: &[u8], is: impl Fn(u8) -> bool) -> usize {
    bytes.iter().take_while(|byte| is(**byte)).count()
}

fn is_in_number(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'+' | b'-')
}

/// Whether a string or a number of JSON begins with this byte.
fn starts_value(byte: u8) -> bool {
    matches!(byte, b'"' | b'-' | b'0'..=b'9')
}

/// The first place from `end` on that is not within an escape or a character, seen from `start`.
fn escape_boundary(inside: &str, start: usize, end: usize) -> usize {
    let bytes = inside.as_bytes();
    let mut at = start;
    while at < end {
        at += match bytes.get(at) {
            Some(b'\\') if bytes.get(at + 1) == Some(&b'u') => 6,
            Some(b'\\') => 2,
            _ => 1,
        };
    }
    inside.ceil_char_boundary(at.min(inside.len()))
}
