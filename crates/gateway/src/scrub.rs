//! The values that nothing the gateway writes may show.
//!
//! There is one set for the process, as there is one environment and one subscriber for its own log:
//! whichever part writes a line, the line must not hold a value that another part resolved. Values
//! stay known until the process ends, because a late message may still hold them; the set itself
//! forgets the oldest when there are too many.

use std::{
    borrow::Cow,
    sync::{Arc, LazyLock},
};

use arc_swap::ArcSwap;
use switchboard_redact::{Secret, Secrets, redact_text};

static KNOWN: LazyLock<ArcSwap<Secrets>> = LazyLock::new(ArcSwap::default);

/// The most bytes of a name, a URI or a rule in a record.
const BRIEF_BYTES: usize = 1_024;

/// Makes values known.
pub fn register(secrets: &[Secret]) {
    if !KNOWN.load().has(secrets) {
        KNOWN.rcu(|known| known.with(secrets.iter().cloned()));
    }
}

/// The text with every known value replaced by `[secret NAME]`.
pub fn text(text: &str) -> Cow<'_, str> {
    KNOWN.load().scrub(text)
}

/// A name, a URI or a rule for a record that is kept or leaves this machine: without secrets, known ones and those of
/// a known form, and cut.
pub(crate) fn brief(text: &str) -> String {
    // A secret at the place of the cut is found before it.
    let text = &text[..text.floor_char_boundary(4 * BRIEF_BYTES)];
    let mut brief = redact_text(&self::text(text));
    if brief.len() > BRIEF_BYTES {
        brief.truncate(brief.floor_char_boundary(BRIEF_BYTES));
        brief.push('…');
    }
    brief
}

/// A shared text with every known value replaced.
pub(crate) fn shared(text: Arc<str>) -> Arc<str> {
    let scrubbed = match self::text(&text) {
        Cow::Borrowed(_) => None,
        Cow::Owned(scrubbed) => Some(scrubbed.into()),
    };
    scrubbed.unwrap_or(text)
}

/// JSON with every known value replaced, which stays JSON.
pub(crate) fn json(json: &str) -> Cow<'_, str> {
    KNOWN.load().scrub_json(json)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_brief_text_has_no_secret_at_its_cut() {
        register(&[Secret::new("brief", "brief-secret-5Xr2")]);
        let before = "x".repeat(BRIEF_BYTES - 20);
        for secret in ["postgres://ann:hunter2-hunter2@db/x", "brief-secret-5Xr2"] {
            for gap in 0..30 {
                let text = format!("{before}{} {secret} {before}", "y".repeat(gap));
                let brief = brief(&text);
                assert!(
                    !brief.contains("hunt") && !brief.contains("brief-secret"),
                    "{brief}"
                );
                assert!(brief.len() <= BRIEF_BYTES + '…'.len_utf8());
            }
        }
        assert_eq!(brief("file:///tmp/x"), "file:///tmp/x");
    }
}
