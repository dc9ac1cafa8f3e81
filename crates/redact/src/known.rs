//! Secrets whose values are known.

use std::{borrow::Cow, collections::VecDeque, fmt, sync::Arc};

use crate::{forms, index::Index};

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
    forms: Vec<String>,
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
            let length = forms.iter().map(String::len).sum();
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
        let shows = |mark: &str| {
            known
                .iter()
                .any(|known| mark.contains(&*known.secret.value))
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
        let bytes = text.as_bytes();
        let mut out = String::new();
        let (mut at, mut told) = (0, 0);
        while let Some(next) = self.index.next(bytes, at) {
            match self.index.at(bytes, next, false) {
                // A spelling begins with a whole character; one that was cut may end within one.
                Some(hit) if text.is_char_boundary(next) => {
                    out.push_str(&text[told..next]);
                    out.push_str(&self.marks[hit.stands_for]);
                    told = text.ceil_char_boundary(next + hit.length);
                    at = told;
                }
                _ => at = next + 1,
            }
        }
        if told == 0 {
            return Cow::Borrowed(text);
        }
        out.push_str(&text[told..]);
        Cow::Owned(out)
    }

    /// The same for JSON, which stays JSON: values are replaced within strings only, and a number that
    /// holds one becomes a string.
    pub fn scrub_json<'t>(&self, json: &'t str) -> Cow<'t, str> {
        let bytes = json.as_bytes();
        let is_found = |at: usize| self.index.at(bytes, at, false).is_some();
        let mut at = 0;
        loop {
            match self.index.next(bytes, at) {
                None => return Cow::Borrowed(json),
                Some(next) if is_found(next) => break,
                Some(next) => at = next + 1,
            }
        }
        let mut out = String::with_capacity(json.len());
        let mut at = 0;
        while at < bytes.len() {
            let end = match bytes[at] {
                b'"' => {
                    let end = string_end(bytes, at);
                    out.push('"');
                    let inside = json.get(at + 1..end).unwrap_or_default();
                    self.scrub_inside(inside, &mut out);
                    out.push_str(if end < bytes.len() { "\"" } else { "" });
                    end + 1
                }
                b'-' | b'0'..=b'9' => {
                    let rest = &bytes[at..];
                    let length = rest
                        .iter()
                        .take_while(|byte| {
                            byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'+' | b'-')
                        })
                        .count();
                    let number = &json[at..at + length];
                    match self.scrub(number) {
                        Cow::Borrowed(number) => out.push_str(number),
                        Cow::Owned(scrubbed) => {
                            out.push('"');
                            out.push_str(&scrubbed);
                            out.push('"');
                        }
                    }
                    at + length
                }
                _ => {
                    let rest = &bytes[at..];
                    let length = rest
                        .iter()
                        .take_while(|byte| !matches!(byte, b'"' | b'-' | b'0'..=b'9'))
                        .count();
                    out.push_str(&json[at..at + length]);
                    at + length
                }
            };
            at = end;
        }
        Cow::Owned(out)
    }

    /// What stands between the quotes of a JSON string.
    fn scrub_inside(&self, inside: &str, out: &mut String) {
        let bytes = inside.as_bytes();
        let (mut at, mut told) = (0, 0);
        while at < bytes.len() {
            let hit = self.index.at(bytes, at, true);
            match hit {
                Some(hit) if inside.is_char_boundary(at) => {
                    out.push_str(&inside[told..at]);
                    out.push_str(&self.marks[hit.stands_for]);
                    told = escape_boundary(inside, at, at + hit.length);
                    at = told;
                }
                _ if bytes[at] == b'\\' => at += 2,
                _ => at += 1,
            }
        }
        out.push_str(&inside[told..]);
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
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' => return at,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
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
