//! What may be kept of a value in a log: no secrets, no pictures, and only so many bytes.
//!
//! Nothing here can fail: a log entry is written of whatever arrives. What looks like a secret is
//! taken for one; a log that shows too little is better than one that shows a password.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::ops::Range;
use std::sync::OnceLock;

use regex_lite::Regex;
use switchboard_wire::Raw;

use crate::json::{Json, Tree};
use crate::words;

/// What stands for a secret.
pub const REDACTED: &str = "[redacted]";

/// What stands for all that did not fit.
const CUT: &str = "[cut]";

/// How much of one text is kept, in bytes.
const TEXT_BYTES: usize = 2048;

/// How much of the name of a member is kept, in bytes.
const NAME_BYTES: usize = 128;

/// How much of a text beyond what is kept is looked at, so that no secret is cut into a half that
/// does not look like one.
const MARGIN_BYTES: usize = 512;

/// The longest number that is kept.
const NUMBER_BYTES: usize = 64;

/// No budget is smaller than this: JSON that says it was cut needs that much.
const LEAST_BYTES: usize = 16;

/// What has to be left over in an array or object, to say that there was more and to close it.
const ENDING_BYTES: usize = r#","…":"[cut]"}"#.len();

/// The value as a log may keep it, in at most `budget_bytes` (or 16, if that is less).
///
/// ```
/// use switchboard_approvals::redact::redact;
/// use switchboard_wire::Raw;
///
/// let value = Raw::parse(r#"{"user":"ann","password":"hunter2","n":1.50}"#)?;
/// assert_eq!(
///     redact(&value, 1000).as_str(),
///     r#"{"user":"ann","password":"[redacted]","n":1.50}"#
/// );
/// # Ok::<(), switchboard_wire::RawError>(())
/// ```
pub fn redact(value: &Raw, budget_bytes: usize) -> Raw {
    let budget = budget_bytes.max(LEAST_BYTES);
    let tree = Tree::read(value, budget);
    let mut writer = Writer { out: String::new() };
    if !writer.value(&tree.value, budget) {
        writer.out = format!("\"{CUT}\"");
    }
    // It is JSON by construction; if it were not, nothing would be told.
    Raw::parse(writer.out).unwrap_or_else(|_| Raw::string(CUT))
}

/// The text with all that looks like a secret replaced. It takes time in proportion to the text.
pub fn redact_text(text: &str) -> String {
    let Some(patterns) = patterns() else {
        return REDACTED.to_owned();
    };
    let small = text.to_ascii_lowercase();
    let mut out = String::with_capacity(text.len());
    let (mut at, mut told) = (0, 0);
    while at < text.len() {
        let secret = patterns
            .iter()
            .find_map(|(regex, pattern)| pattern.find(regex, text, &small, at));
        at = match secret {
            Some(secret) => {
                out.push_str(&text[told..secret.start]);
                out.push_str(REDACTED);
                told = secret.end;
                secret.end
            }
            None => at + 1,
        };
    }
    out.push_str(&text[told..]);
    out
}

/// Whether anything in a value was left out here.
pub(crate) fn is_marked(value: &Raw) -> bool {
    let text = value.as_str();
    [REDACTED, CUT, " bytes of ", " more bytes]"]
        .iter()
        .any(|mark| text.contains(mark))
}

struct Writer {
    out: String,
}

impl Writer {
    /// Writes a value so that `out` is at most `end` bytes long; nothing if that is not possible.
    fn value(&mut self, value: &Json<'_>, end: usize) -> bool {
        match value {
            Json::Null => self.fits("null", end),
            Json::Bool(true) => self.fits("true", end),
            Json::Bool(false) => self.fits("false", end),
            Json::Number(spelled) if spelled.len() <= NUMBER_BYTES => self.fits(spelled, end),
            Json::Number(spelled) => {
                let told = format!("[a number of {} digits]", spelled.len());
                self.text(&told, end)
            }
            Json::Text(text) => {
                let kept = TEXT_BYTES.min(end.saturating_sub(self.out.len()));
                self.text(&shortened(text, kept), end)
            }
            Json::Array(elements) => self.array(elements, end),
            Json::Object(members) => self.object(value, members, end),
            Json::Unread => self.text(CUT, end),
        }
    }

    fn array(&mut self, elements: &[Json<'_>], end: usize) -> bool {
        let Some(inner) = self.open('[', end) else {
            return false;
        };
        for (n, element) in elements.iter().enumerate() {
            let before = self.out.len();
            self.out.push_str(if n > 0 { "," } else { "" });
            if !self.value(element, inner) {
                self.out.truncate(before);
                let comma = if n > 0 { "," } else { "" };
                // Writing to a string has no way to fail.
                let _ = write!(self.out, "{comma}\"{CUT}\"");
                break;
            }
        }
        self.out.push(']');
        true
    }

    fn object(
        &mut self,
        whole: &Json<'_>,
        members: &[(impl AsRef<str>, Json<'_>)],
        end: usize,
    ) -> bool {
        let Some(inner) = self.open('{', end) else {
            return false;
        };
        let media = media_type(whole);
        for (n, (name, value)) in members.iter().enumerate() {
            let name = name.as_ref();
            let before = self.out.len();
            self.out.push_str(if n > 0 { "," } else { "" });
            let written = self.text(&shortened(name, NAME_BYTES), inner)
                && self.fits(":", inner)
                && match (value, &media) {
                    (Json::Null | Json::Bool(_), _) => self.value(value, inner),
                    (Json::Text(data), Some(media)) if matches!(name, "data" | "blob") => {
                        self.text(&bytes_of(data, media), inner)
                    }
                    _ if is_secret_name(name) => self.text(REDACTED, inner),
                    _ => self.value(value, inner),
                };
            if !written {
                self.out.truncate(before);
                let comma = if n > 0 { "," } else { "" };
                // Writing to a string has no way to fail.
                let _ = write!(self.out, "{comma}\"…\":\"{CUT}\"");
                break;
            }
        }
        self.out.push('}');
        true
    }

    /// Begins an array or object, and says how long its inside may get.
    fn open(&mut self, bracket: char, end: usize) -> Option<usize> {
        let inner = end.checked_sub(ENDING_BYTES)?;
        if self.out.len() >= inner {
            return None;
        }
        self.out.push(bracket);
        Some(inner)
    }

    fn fits(&mut self, text: &str, end: usize) -> bool {
        let fits = self.out.len() + text.len() <= end;
        if fits {
            self.out.push_str(text);
        }
        fits
    }

    /// A string, shorter if it must be: what has to be escaped is longer than it was.
    fn text(&mut self, text: &str, end: usize) -> bool {
        let room = end.saturating_sub(self.out.len());
        let mut spelled = Raw::string(text);
        let mut kept = text.len();
        while spelled.as_bytes().len() > room {
            if kept < LEAST_BYTES {
                return false;
            }
            kept /= 2;
            spelled = Raw::string(&cut(text, kept));
        }
        self.out.push_str(spelled.as_str());
        true
    }
}

/// A text without secrets, in about this many bytes.
fn shortened(text: &str, bytes: usize) -> String {
    let text = without_data_urls(text);
    let looked_at = head(&text, bytes.saturating_add(MARGIN_BYTES));
    let clean = redact_text(looked_at);
    if clean.len() <= bytes && looked_at.len() == text.len() {
        return clean;
    }
    let kept = head(&clean, bytes);
    let gone = text.len().saturating_sub(kept.len());
    format!("{kept}… [{gone} more bytes]")
}

/// A text that is already clean, in about this many bytes.
fn cut(text: &str, bytes: usize) -> String {
    let kept = head(text, bytes);
    format!("{kept}… [{} more bytes]", text.len() - kept.len())
}

fn head(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

/// The type of a picture or a sound that a block of content holds.
fn media_type(block: &Json<'_>) -> Option<String> {
    let media = block.get("mimeType").and_then(Json::as_text);
    let kind = block.get("type").and_then(Json::as_text);
    match (media, kind) {
        (Some(media), _) => Some(plain_media(media)),
        (None, Some(kind @ ("image" | "audio"))) => Some(kind.to_owned()),
        (None, _) => None,
    }
}

/// A type that is one, whatever the server wrote there.
fn plain_media(media: &str) -> String {
    let odd = |c: char| !(c.is_ascii_alphanumeric() || matches!(c, '/' | '-' | '.' | '+'));
    if media.is_empty() || media.len() > 64 || media.contains(odd) {
        return "an unknown type".to_owned();
    }
    media.to_owned()
}

fn bytes_of(base64: &str, media: &str) -> String {
    let digits = base64
        .bytes()
        .filter(|byte| !matches!(byte, b'=' | b'\n' | b'\r'))
        .count();
    format!(
        "[{} bytes of {media}]",
        digits / 4 * 3 + (digits % 4).saturating_sub(1)
    )
}

/// `data:image/png;base64,…` within a text.
fn without_data_urls(text: &str) -> Cow<'_, str> {
    if !text.contains(";base64,") {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(";base64,") {
        let begins = before.rfind("data:");
        let media = begins
            .map(|at| &before[at + "data:".len()..])
            .unwrap_or_default();
        let digit = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '-' | '_' | '=');
        let end = after.find(|c| !digit(c)).unwrap_or(after.len());
        match begins {
            Some(at) if media.len() <= 64 && !media.contains(char::is_whitespace) => {
                out.push_str(&before[..at]);
                out.push_str(&bytes_of(&after[..end], &plain_media(media)));
            }
            _ => {
                out.push_str(before);
                out.push_str(";base64,");
                out.push_str(&after[..end]);
            }
        }
        rest = &after[end..];
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// Names whose values are secrets.
fn is_secret_name(name: &str) -> bool {
    const ALSO: [&str; 7] = [
        "authorization",
        "cookie",
        "auth",
        "pass",
        "jwt",
        "signature",
        "sig",
    ];
    let bounded = head(name, NAME_BYTES);
    let last = words::words(bounded).pop();
    words::secret(bounded).is_some() || last.is_some_and(|last| ALSO.contains(&&*last))
}

/// What a secret looks like.
struct Pattern {
    /// What it begins with, in small letters. To look for that first costs little.
    begins: &'static [&'static str],
    /// From its beginning on; the first group is the secret.
    regex: &'static str,
    demands: Demands,
}

/// What else has to be so.
enum Demands {
    Nothing,
    /// It is no end of a longer word.
    WholeWord,
    /// It is too random to be words.
    Randomness,
}

static PATTERNS: [Pattern; 9] = [
    Pattern {
        begins: &["-----begin "],
        regex: r"^(-----BEGIN [A-Z0-9 ]*PRIVATE KEY( BLOCK)?-----(?s:.*?)(-----END [A-Z0-9 ]*PRIVATE KEY( BLOCK)?-----|$))",
        demands: Demands::Nothing,
    },
    // As those who issue them begin them, so that they are found.
    Pattern {
        begins: &[
            "sk-", "sk_", "rk_", "pk_", "gh", "glpat-", "xox", "xapp-", "akia", "asia", "aiza",
            "ya29.", "npm_", "hf_", "eyj",
        ],
        regex: r"^(sk-[A-Za-z0-9_-]{12,}|[srp]k_(live|test)_[A-Za-z0-9]{8,}|gh[pousr]_[A-Za-z0-9]{16,}|glpat-[A-Za-z0-9_-]{16,}|x(ox[a-z]|app)-[A-Za-z0-9-]{8,}|A(KI|SI)A[A-Z0-9]{12,}|AIza[A-Za-z0-9_-]{30,}|ya29\.[A-Za-z0-9._-]{16,}|npm_[A-Za-z0-9]{30,}|hf_[A-Za-z0-9]{30,}|eyJ[A-Za-z0-9_-]{8,}(\.[A-Za-z0-9_-]*)*)",
        demands: Demands::WholeWord,
    },
    Pattern {
        begins: &["github_pat_"],
        regex: r"^(github_pat_[A-Za-z0-9_]{16,})",
        demands: Demands::Nothing,
    },
    Pattern {
        begins: &["authorization"],
        regex: r"(?i)^authorization[^A-Za-z0-9\n]{1,4}[a-z]+ +([^\s,;]{4,})",
        demands: Demands::WholeWord,
    },
    Pattern {
        begins: &["bearer"],
        regex: r"(?i)^bearer\s+([A-Za-z0-9._~+/=-]{8,})",
        demands: Demands::WholeWord,
    },
    Pattern {
        begins: &["://"],
        regex: r#"^://([^\s/@:"'<>]*:[^\s/"'<>]*)@"#,
        demands: Demands::Nothing,
    },
    // In quotes, perhaps those of JSON within a text; or without.
    Pattern {
        begins: NAMES,
        regex: r#"(?i)^(?:passwor[dt]|passwd|pwd|passphrase|secret|token|(?:api|access|private)[_-]?key|credentials?|kennwort)(?:\\*["'])?\s*[=:]\s*\\*["']([^"'\\\n]+)"#,
        demands: Demands::Nothing,
    },
    Pattern {
        begins: NAMES,
        regex: r#"(?i)^(?:passwor[dt]|passwd|pwd|passphrase|secret|token|(?:api|access|private)[_-]?key|credentials?|kennwort)\s*[=:]\s*([^\s"'&,;\[]{3,})"#,
        demands: Demands::Nothing,
    },
    Pattern {
        begins: &["=", "key"],
        regex: r#"(?i)^(?:=|key["']?\s*:\s*)["']?([a-z0-9+/_-]{24,}={0,2})"#,
        demands: Demands::Randomness,
    },
];

/// Names that a secret follows.
const NAMES: &[&str] = &[
    "password",
    "passwort",
    "passwd",
    "pwd",
    "passphrase",
    "secret",
    "token",
    "apikey",
    "api_key",
    "api-key",
    "accesskey",
    "access_key",
    "access-key",
    "privatekey",
    "private_key",
    "private-key",
    "credential",
    "kennwort",
];

impl Pattern {
    /// Where the secret is that begins here.
    fn find(&self, regex: &Regex, text: &str, small: &str, at: usize) -> Option<Range<usize>> {
        let rest = &small.as_bytes()[at..];
        let begins = |begin: &&str| rest.starts_with(begin.as_bytes());
        if !self.begins.iter().any(begins) {
            return None;
        }
        let found = regex.captures(text.get(at..)?)?.get(1)?.range();
        let secret = at + found.start..at + found.end;
        let in_name =
            |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
        let fits = match self.demands {
            Demands::Nothing => true,
            Demands::WholeWord => {
                let before = at.checked_sub(1).map(|before| small.as_bytes()[before]);
                before.is_none_or(|byte| !byte.is_ascii_alphanumeric() && byte != b'_')
            }
            Demands::Randomness => {
                let before = small.as_bytes()[..at].iter().rev();
                let name = before
                    .take(NAME_BYTES)
                    .take_while(|byte| in_name(byte))
                    .count();
                is_random(&small[at - name..at], &text[secret.clone()])
            }
        };
        fits.then_some(secret)
    }
}

/// `None` if one of the patterns is no regular expression, which a test rules out.
fn patterns() -> Option<&'static [(Regex, &'static Pattern)]> {
    static COMPILED: OnceLock<Option<Vec<(Regex, &'static Pattern)>>> = OnceLock::new();
    let compile = || {
        let patterns = PATTERNS.iter();
        patterns
            .map(|pattern| Some((Regex::new(pattern.regex).ok()?, pattern)))
            .collect()
    };
    COMPILED.get_or_init(compile).as_deref()
}

/// Whether what stands after `name=` is too random to be words, and not said to be a checksum.
fn is_random(name: &str, value: &str) -> bool {
    if ["sha", "md5", "hash", "digest", "checksum", "commit", "etag"]
        .iter()
        .any(|sum| name.contains(sum))
    {
        return false;
    }
    let mut counts = [0_u32; 256];
    value
        .bytes()
        .for_each(|byte| counts[usize::from(byte)] += 1);
    let length = f64::from(u32::try_from(value.len()).unwrap_or(u32::MAX));
    let shares = counts.iter().filter(|count| **count > 0);
    let bits: f64 = shares
        .map(|count| f64::from(*count) / length)
        .map(|share| -share * share.log2())
        .sum();
    let digits = value.bytes().filter(u8::is_ascii_digit).count();
    let hex = value.bytes().all(|byte| byte.is_ascii_hexdigit());
    digits > 0 && bits > if hex { 2.8 } else { 3.7 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_patterns_are_regular_expressions() {
        assert!(patterns().is_some());
    }

    #[test]
    fn is_marked_where_something_was_left_out() {
        let marked = |json: &str| is_marked(&redact(&Raw::parse(json.to_owned()).unwrap(), 200));
        assert!(!marked(r#"{"path":"/tmp"}"#));
        assert!(marked(r#"{"token":"x"}"#));
        assert!(marked(&format!("{{\"a\":\"{}\"}}", "x".repeat(500))));
        assert!(marked(&format!("[{}1]", "1,".repeat(500))));
        assert!(marked(r#"{"data":"AAAA","mimeType":"image/png"}"#));
    }
}
