//! Secrets that are recognised by their values.

use std::{borrow::Cow, fmt, ops::Range, sync::Arc};

use crate::{
    decode::Decoded,
    forms::{self, Form, LEAST_BYTES},
    index::Index,
};

/// The most values of one owner that are known at a time, and the most bytes of all their spellings.
const OWNED_MAX: usize = 64;
const OWNED_BYTES_MAX: usize = 4 * 1024 * 1024;
/// The same limits for all owners together.
const VALUES_MAX: usize = 2_048;
const BYTES_MAX: usize = 32 * 1024 * 1024;
/// The longest name of a secret.
const NAME_MAX: usize = 64;

/// A value, and the name that replaces it in text.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret {
    name: String,
    value: String,
}

impl Secret {
    /// Creates a secret. Characters of the name other than letters, digits and `._-` become `_`.
    pub fn new(name: &str, value: impl Into<String>) -> Self {
        let kept = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        let name = name.chars().take(NAME_MAX);
        Self {
            name: name.map(|c| if kept(c) { c } else { '_' }).collect(),
            value: value.into(),
        }
    }

    /// The value, which must not be shown.
    pub fn value(&self) -> &str {
        &self.value
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[secret {}]", self.name)
    }
}

/// Secrets are rejected because there are too many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TooMany {
    /// One owner has too many.
    Owned,
    /// All owners together have too many.
    Known,
}

impl fmt::Display for TooMany {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Owned => write!(
                f,
                "too many secrets: at most {OWNED_MAX} values, with {} MiB in all their spellings, are allowed",
                OWNED_BYTES_MAX / 1024 / 1024
            ),
            Self::Known => write!(
                f,
                "too many secrets of all servers together: at most {VALUES_MAX} values, with {} MiB in all their spellings, are allowed",
                BYTES_MAX / 1024 / 1024
            ),
        }
    }
}

impl std::error::Error for TooMany {}

impl TooMany {
    /// Advice for the user, apart from the message.
    pub const fn hint(self) -> &'static str {
        match self {
            Self::Owned => "configure fewer secrets, such as fewer cookies in a header",
            Self::Known => "restart the gateway to forget old secrets, or configure fewer servers",
        }
    }
}

/// A set of secrets, each with an owner, in the order in which they became known. The values of one owner
/// never displace those of another.
///
/// ```
/// use switchboard_redact::{Secret, Secrets};
///
/// # fn main() -> Result<(), switchboard_redact::TooMany> {
/// let secrets = Secrets::default().with("post", [Secret::new("mail", "s3/cret")])?;
/// assert_eq!(secrets.scrub("key=s3%2Fcret"), "key=[secret mail]");
/// assert_eq!(secrets.scrub_json(r#"{"a":"s3\/cret"}"#), r#"{"a":"[secret mail]"}"#);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Default)]
pub struct Secrets {
    known: Vec<Arc<Known>>,
    index: Index,
    /// The replacements, by their indices in the index.
    marks: Vec<String>,
}

struct Known {
    owner: Arc<str>,
    secret: Secret,
    forms: Vec<Form>,
    bytes: usize,
}

impl Known {
    fn new(owner: &Arc<str>, secret: Secret) -> Self {
        let forms = forms::of(&secret.value);
        Self {
            owner: Arc::clone(owner),
            secret,
            bytes: forms.iter().map(|form| form.bytes.len()).sum(),
            forms,
        }
    }

    fn is(&self, owner: &str, value: &str) -> bool {
        *self.owner == *owner && self.secret.value == value
    }
}

impl Secrets {
    /// Tests if all of these are known as secrets of this owner.
    pub fn has(&self, owner: &str, secrets: &[Secret]) -> bool {
        let known = |value: &str| self.known.iter().any(|known| known.is(owner, value));
        secrets
            .iter()
            .all(|secret| secret.value.len() < LEAST_BYTES || known(&secret.value))
    }

    /// Returns the set with these secrets as the current ones of the owner. Values that are too short are
    /// left out. The owner's oldest previous values are removed to make room; the values of other owners
    /// never are.
    pub fn with(
        &self,
        owner: &str,
        secrets: impl IntoIterator<Item = Secret>,
    ) -> Result<Self, TooMany> {
        let owner: Arc<str> = owner.into();
        let mut now: Vec<Arc<Known>> = Vec::new();
        let mut bytes = 0;
        for secret in secrets {
            let value = &*secret.value;
            if value.len() < LEAST_BYTES || now.iter().any(|known| known.is(&owner, value)) {
                continue;
            }
            let known = self.known.iter().find(|known| known.is(&owner, value));
            let known = known.cloned();
            let known = known.unwrap_or_else(|| Arc::new(Known::new(&owner, secret)));
            bytes += known.bytes;
            now.push(known);
            if now.len() > OWNED_MAX || bytes > OWNED_BYTES_MAX {
                return Err(TooMany::Owned);
            }
        }
        let (mut known, before): (Vec<_>, Vec<_>) = self
            .known
            .iter()
            .cloned()
            .partition(|known| known.owner != owner);
        let others = (
            known.len(),
            known.iter().map(|known| known.bytes).sum::<usize>(),
        );
        if others.0 + now.len() > VALUES_MAX || others.1 + bytes > BYTES_MAX {
            return Err(TooMany::Known);
        }
        // Newest first, while there is room.
        let mut count = now.len();
        let mut kept: Vec<_> = before
            .into_iter()
            .rev()
            .filter(|known| !now.iter().any(|now| Arc::ptr_eq(now, known)))
            .take_while(|known| {
                count += 1;
                bytes += known.bytes;
                count <= OWNED_MAX
                    && bytes <= OWNED_BYTES_MAX
                    && others.0 + count <= VALUES_MAX
                    && others.1 + bytes <= BYTES_MAX
            })
            .collect();
        kept.reverse();
        known.append(&mut kept);
        known.append(&mut now);
        Ok(Self::indexed(known))
    }

    fn indexed(known: Vec<Arc<Known>>) -> Self {
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
                // A name may contain a value, for example its own.
                if name.is_empty() || shows(name) {
                    "[secret]".to_owned()
                } else {
                    format!("[secret {name}]")
                }
            })
            .collect();
        // A mark is replaced by itself, so that a value such as `secret` is not found within one.
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
            index,
            marks,
        }
    }

    /// Replaces every spelling of every value by `[secret NAME]`. Takes time in proportion to the text, and
    /// does not copy a text without secrets.
    pub fn scrub<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut out = String::new();
        if self.replace(text, false, &mut out) {
            Cow::Owned(out)
        } else {
            Cow::Borrowed(text)
        }
    }

    /// Does the same for JSON, and keeps it valid: values are replaced only within strings, and a number that
    /// contains one becomes a string.
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

    /// Writes the text with all values replaced. Returns `false` if there are none.
    fn replace(&self, text: &str, in_json: bool, out: &mut String) -> bool {
        let mut found = self.find(text.as_bytes());
        if in_json {
            // A match that begins within an escape is different text to a JSON parser.
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

    /// The positions of values, in order and without overlap, and the indices of their marks.
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

/// The position of the closing quote of the string that begins here, or the end of the text.
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

/// Tests if a JSON string or number begins with this byte.
fn starts_value(byte: u8) -> bool {
    matches!(byte, b'"' | b'-' | b'0'..=b'9')
}

/// The first position from `end` on that is not within an escape or a character, counted from `start`.
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
