//! Secrets in a text, recognised by their form.

use std::ops::Range;

use crate::{
    patterns::{self, REDACTED},
    view::View,
};

/// The most times that a text is searched. A replacement can complete another pattern, so the
/// output is searched again until nothing is found; usually two rounds are enough.
const ROUNDS: usize = 6;

/// Replaces everything in the text that has the form of a secret. Takes time in proportion to the
/// text.
///
/// ```
/// use switchboard_redact::redact_text;
///
/// assert_eq!(redact_text("postgres://ann:hunter2@db/x"), "postgres://[redacted]@db/x");
/// ```
pub fn redact_text(text: &str) -> String {
    let mut out = text.to_owned();
    for _ in 0..ROUNDS {
        let found = find(&out);
        if found.is_empty() {
            break;
        }
        let next = replaced(&out, &found);
        if next == out {
            break;
        }
        out = next;
    }
    out
}

/// The positions of the secrets in a text, in order and without overlap.
pub(crate) fn find(text: &str) -> Vec<Range<usize>> {
    let plain = View::plain(text);
    let mut found = patterns::find(&plain);
    // A backslash may be an escape or a literal, so both readings count.
    if let Some(view) = View::decoded(text) {
        let inside = patterns::find(&view);
        found.extend(inside.iter().map(|part| view.source(part)));
    }
    found.sort_unstable_by_key(|part| (part.start, part.end));
    let mut apart: Vec<Range<usize>> = Vec::with_capacity(found.len());
    for part in found {
        match apart.last_mut() {
            Some(last) if part.start <= last.end => last.end = last.end.max(part.end),
            _ => apart.push(part),
        }
    }
    apart
}

fn replaced(text: &str, found: &[Range<usize>]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for part in found {
        out.push_str(&text[at..part.start]);
        out.push_str(REDACTED);
        at = part.end;
    }
    out.push_str(&text[at..]);
    out
}
