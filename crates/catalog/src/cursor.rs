//! Cursors: the position in a list at which the next page begins.
//!
//! A cursor names the last item of a page instead of an index, so that it stays meaningful after
//! the list has changed: the next page begins after that item; if the item is gone, at its old
//! position; if its server is gone, with the next server.

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};

use crate::{Kind, digest::Digest, limits};

/// A cursor that was not issued for this list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("invalid cursor: it was not issued for this list")]
pub struct BadCursor;

impl BadCursor {
    /// Advice for the caller, apart from the message.
    pub const HINT: &str = "request the list again, without a cursor";
}

/// The view that a cursor belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    Direct,
    Server,
}

/// The last item of a page.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Cursor<'a> {
    pub(crate) server: &'a str,
    /// Its position in its server's list.
    pub(crate) at: usize,
    /// The digest of its name at the server.
    pub(crate) key: u64,
}

impl Cursor<'_> {
    pub(crate) fn encode(&self, scope: Scope, kind: Kind) -> String {
        let mut bytes = vec![tag(scope, kind)];
        bytes.extend((self.at as u64).to_le_bytes());
        bytes.extend(self.key.to_le_bytes());
        bytes.extend(self.server.as_bytes());
        bytes.extend(check(&bytes));
        BASE64_URL_SAFE_NO_PAD.encode(bytes)
    }

    /// Decodes a cursor and passes it to `then`.
    pub(crate) fn decode<T>(
        text: &str,
        scope: Scope,
        kind: Kind,
        then: impl FnOnce(Cursor<'_>) -> Result<T, BadCursor>,
    ) -> Result<T, BadCursor> {
        if text.len() > limits::CURSOR_BYTES {
            return Err(BadCursor);
        }
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(text).map_err(|_| BadCursor)?;
        let (body, sum) = bytes.split_last_chunk::<4>().ok_or(BadCursor)?;
        if *sum != check(body) {
            return Err(BadCursor);
        }
        let (&[first], rest) = body.split_first_chunk::<1>().ok_or(BadCursor)?;
        let (at, rest) = rest.split_first_chunk().ok_or(BadCursor)?;
        let (key, server) = rest.split_first_chunk().ok_or(BadCursor)?;
        if first != tag(scope, kind) {
            return Err(BadCursor);
        }
        then(Cursor {
            server: std::str::from_utf8(server).map_err(|_| BadCursor)?,
            at: usize::try_from(u64::from_le_bytes(*at)).map_err(|_| BadCursor)?,
            key: u64::from_le_bytes(*key),
        })
    }
}

fn tag(scope: Scope, kind: Kind) -> u8 {
    let kind = match kind {
        Kind::Tool => 0x10,
        Kind::Prompt => 0x11,
        Kind::Resource => 0x12,
        Kind::Template => 0x13,
    };
    match scope {
        Scope::Direct => kind,
        Scope::Server => kind | 0x20,
    }
}

fn check(bytes: &[u8]) -> [u8; 4] {
    let [a, b, c, d, ..] = Digest::of(bytes).to_le_bytes();
    [a, b, c, d]
}
