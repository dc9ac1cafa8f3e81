//! The secrets that must not appear in anything that the gateway writes.
//!
//! There is one set per process, as there is one environment and one log subscriber: no part may write a line
//! with a secret that another part resolved. Secrets stay registered until the process ends, because a late
//! message may still contain them; only an owner of many, such as a server whose key changes every day, has
//! its oldest ones forgotten.

use std::{
    borrow::Cow,
    sync::{Arc, LazyLock},
};

use arc_swap::ArcSwap;
use switchboard_redact::{Secret, Secrets, TooMany, redact_text};

static KNOWN: LazyLock<ArcSwap<Secrets>> = LazyLock::new(ArcSwap::default);

/// The most bytes of a name, a URI or a rule in a record.
const BRIEF_BYTES: usize = 1_024;

/// The part of the configuration that secrets belong to.
#[derive(Debug, Clone, Copy)]
pub enum Owner<'a> {
    /// A server.
    Server(&'a str),
    /// The sign-in to a server.
    SignIn(&'a str),
    /// The model for sampling.
    Provider,
    /// The webhook.
    Webhook,
}

/// Registers all current secrets of the owner. Fails, and registers none of them, if there are too many.
pub fn register(owner: Owner<'_>, secrets: &[Secret]) -> Result<(), TooMany> {
    let owner = match owner {
        Owner::Server(name) => format!("server {name}"),
        Owner::SignIn(name) => format!("sign-in {name}"),
        Owner::Provider => "provider".to_owned(),
        Owner::Webhook => "webhook".to_owned(),
    };
    let mut registered = Ok(());
    if !KNOWN.load().has(&owner, secrets) {
        KNOWN.rcu(|known| match known.with(&owner, secrets.iter().cloned()) {
            Ok(more) => {
                registered = Ok(());
                Arc::new(more)
            }
            Err(too_many) => {
                registered = Err(too_many);
                Arc::clone(known)
            }
        });
    }
    registered
}

/// Replaces every known secret in the text with `[secret NAME]`.
pub fn text(text: &str) -> Cow<'_, str> {
    KNOWN.load().scrub(text)
}

/// Shortens a name, a URI or a rule for a record that is stored or leaves this machine, without known secrets
/// and without secrets of a known form.
pub fn brief(text: &str) -> String {
    // Looks beyond the limit, so that a secret at the cut is found.
    let text = &text[..text.floor_char_boundary(4 * BRIEF_BYTES)];
    let mut brief = redact_text(&self::text(text));
    if brief.len() > BRIEF_BYTES {
        brief.truncate(brief.floor_char_boundary(BRIEF_BYTES));
        brief.push('…');
    }
    brief
}

/// The number of bytes of a text that [`excerpt`] looks at: enough to find a secret at the cut.
pub const fn excerpt_bytes(chars: usize) -> usize {
    8 * chars
}

/// The beginning of a text for a record, without known secrets and without secrets of a known form.
pub fn excerpt(text: &str, chars: usize) -> String {
    let text = &text[..text.floor_char_boundary(excerpt_bytes(chars))];
    let mut excerpt = redact_text(&self::text(text));
    if let Some((end, _)) = excerpt.char_indices().nth(chars) {
        excerpt.truncate(end);
        excerpt.push('…');
    }
    excerpt
}

/// Replaces every known secret in a shared text.
pub fn shared(text: Arc<str>) -> Arc<str> {
    let scrubbed = match self::text(&text) {
        Cow::Borrowed(_) => None,
        Cow::Owned(scrubbed) => Some(scrubbed.into()),
    };
    scrubbed.unwrap_or(text)
}

/// Replaces every known secret in JSON; the result is valid JSON.
pub fn json(json: &str) -> Cow<'_, str> {
    KNOWN.load().scrub_json(json)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cut_text_has_no_secret_at_its_end() {
        let secret = Secret::new("brief", "brief-secret-5Xr2");
        register(Owner::Server("brief"), &[secret]).unwrap();
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
