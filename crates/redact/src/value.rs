//! Makes a JSON value safe to keep in a log: no secrets, no images, and a bounded number of bytes.
//!
//! A doubtful value counts as a secret: a log that shows too little is better than one that shows a
//! password.

use std::{borrow::Cow, fmt::Write as _};

use switchboard_wire::{
    Raw,
    tree::{Json, Object, Tree},
};

use crate::{
    named::is_label, numbers::is_card, patterns::REDACTED, text::redact_text, words::is_secret_name,
};

/// Replaces everything that did not fit.
const CUT: &str = "[cut]";

/// The longest part of a text that is kept, in bytes.
const TEXT_BYTES: usize = 2048;

/// The longest part of a member's name that is kept, in bytes.
const NAME_BYTES: usize = 128;

/// The length beyond the kept part that is also searched, in bytes, so that a secret is not cut
/// into a half that does not look like one.
const MARGIN_BYTES: usize = 512;

/// The longest number that is kept, in bytes.
const NUMBER_BYTES: usize = 64;

/// The smallest budget, in bytes. Valid JSON that says it was cut needs this much.
const LEAST_BYTES: usize = 16;

/// The room reserved in an array or object to mark the cut and to close it, in bytes.
const ENDING_BYTES: usize = r#","…":"[cut]"}"#.len();

/// Makes a value safe to keep in a log, in at most `budget_bytes` (but at least 16).
///
/// ```
/// use switchboard_redact::redact;
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
    // The output is JSON by construction; if it were not, nothing would be shown.
    Raw::parse(writer.out).unwrap_or_else(|_| Raw::string(CUT))
}

/// Tests if [`redact`] left out anything of a value.
pub fn is_marked(value: &Raw) -> bool {
    let text = value.as_str();
    [REDACTED, CUT, " bytes of ", " more bytes]"]
        .iter()
        .any(|mark| text.contains(mark))
}

struct Writer {
    out: String,
}

impl Writer {
    /// Writes a value so that `out` is at most `end` bytes long; writes nothing and returns `false`
    /// if that is impossible.
    fn value(&mut self, value: &Json<'_>, end: usize) -> bool {
        match value {
            Json::Null => self.fits("null", end),
            Json::Bool(true) => self.fits("true", end),
            Json::Bool(false) => self.fits("false", end),
            Json::Number(spelled) if is_card_number(spelled) => self.text(REDACTED, end),
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
            Json::Object(members) => self.object(members, end),
            Json::Unread(_) => self.text(CUT, end),
        }
    }

    fn array(&mut self, elements: &[Json<'_>], end: usize) -> bool {
        let Some(inner) = self.open('[', end) else {
            return false;
        };
        let mut is_secret = false;
        for (n, element) in elements.iter().enumerate() {
            let before = self.out.len();
            self.out.push_str(if n > 0 { "," } else { "" });
            let written = match element {
                Json::Text(_) if is_secret => self.text(REDACTED, inner),
                element => self.value(element, inner),
            };
            is_secret = element.as_text().is_some_and(is_secret_option);
            if !written {
                self.out.truncate(before);
                let comma = if n > 0 { "," } else { "" };
                // Writing to a string cannot fail.
                let _ = write!(self.out, "{comma}\"{CUT}\"");
                break;
            }
        }
        self.out.push(']');
        true
    }

    fn object(&mut self, members: &Object<'_>, end: usize) -> bool {
        let Some(inner) = self.open('{', end) else {
            return false;
        };
        let media = media_type(members);
        // `{"name": "Authorization", "value": "…"}`
        let is_pair = members
            .iter()
            .any(|(name, value)| is_label(name) && value.as_text().is_some_and(is_secret_name));
        for (n, (name, value)) in members.iter().enumerate() {
            let before = self.out.len();
            self.out.push_str(if n > 0 { "," } else { "" });
            let written = self.text(&shortened(name, NAME_BYTES), inner)
                && self.fits(":", inner)
                && match (value, &media) {
                    (Json::Null | Json::Bool(_), _) => self.value(value, inner),
                    (Json::Text(data), Some(media)) if matches!(&**name, "data" | "blob") => {
                        self.text(&bytes_of(data, media), inner)
                    }
                    _ if is_pair && name.eq_ignore_ascii_case("value") => {
                        self.text(REDACTED, inner)
                    }
                    _ if is_secret_name(name) => self.text(REDACTED, inner),
                    _ => self.value(value, inner),
                };
            if !written {
                self.out.truncate(before);
                let comma = if n > 0 { "," } else { "" };
                // Writing to a string cannot fail.
                let _ = write!(self.out, "{comma}\"…\":\"{CUT}\"");
                break;
            }
        }
        self.out.push('}');
        true
    }

    /// Begins an array or object, and returns the length up to which its inside may be written.
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

    /// Writes a string, shortened if necessary: escapes make it longer than its text.
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

/// Tests if this is a program option whose value, the next argument, is a secret.
fn is_secret_option(argument: &str) -> bool {
    argument.starts_with('-') && !argument.contains('=') && is_secret_name(argument)
}

fn is_card_number(spelled: &str) -> bool {
    let digits: Option<Vec<u8>> = spelled
        .bytes()
        .map(|byte| byte.is_ascii_digit().then(|| byte - b'0'))
        .collect();
    digits.is_some_and(|digits| is_card(&digits))
}

/// Redacts a text and shortens it to about this many bytes.
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

/// Shortens a text that is already redacted to about this many bytes.
fn cut(text: &str, bytes: usize) -> String {
    let kept = head(text, bytes);
    format!("{kept}… [{} more bytes]", text.len() - kept.len())
}

fn head(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

/// The media type of an image or audio block.
fn media_type(block: &Object<'_>) -> Option<String> {
    let media = block.get("mimeType").and_then(Json::as_text);
    let kind = block.get("type").and_then(Json::as_text);
    match (media, kind) {
        (Some(media), _) => Some(plain_media(media)),
        (None, Some(kind @ ("image" | "audio"))) => Some(kind.to_owned()),
        (None, _) => None,
    }
}

/// The media type, or a placeholder if the server sent something else.
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

/// Replaces `data:image/png;base64,…` within a text.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_with_omissions_are_marked() {
        let marked = |json: &str| is_marked(&redact(&Raw::parse(json.to_owned()).unwrap(), 200));
        assert!(!marked(r#"{"path":"/tmp"}"#));
        assert!(marked(r#"{"token":"x"}"#));
        assert!(marked(&format!("{{\"a\":\"{}\"}}", "x".repeat(500))));
        assert!(marked(&format!("[{}1]", "1,".repeat(500))));
        assert!(marked(r#"{"data":"AAAA","mimeType":"image/png"}"#));
    }
}
