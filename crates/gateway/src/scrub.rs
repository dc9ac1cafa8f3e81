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
use switchboard_redact::{Secret, Secrets};

static KNOWN: LazyLock<ArcSwap<Secrets>> = LazyLock::new(ArcSwap::default);

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

/// The same for a text that is shared.
pub(crate) fn shared(text: Arc<str>) -> Arc<str> {
    let scrubbed = match self::text(&text) {
        Cow::Borrowed(_) => None,
        Cow::Owned(scrubbed) => Some(scrubbed.into()),
    };
    scrubbed.unwrap_or(text)
}

/// The same for JSON, which stays JSON.
pub(crate) fn json(json: &str) -> Cow<'_, str> {
    KNOWN.load().scrub_json(json)
}
