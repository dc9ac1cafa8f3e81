//! [`Budget`]: the size of a result that an agent is shown at once.

use switchboard_wire::Raw;

use crate::limits::{MEDIA_TOKENS, NOTE_BYTES, NOTE_TOKENS};
use crate::tokens::{estimate_tokens, within};

/// The largest part of a result that an agent is shown at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// Bytes of text.
    pub bytes: usize,
    /// Tokens, as counted by [`estimate_tokens`]; an image counts as [`MEDIA_TOKENS`].
    pub tokens: usize,
    /// Bytes of images and audio, in their encoded form. Models do not read them as text, so they have
    /// their own limit.
    pub media_bytes: usize,
}

impl Default for Budget {
    /// A budget that common agents accept.
    fn default() -> Self {
        Self {
            bytes: 64 * 1024,
            tokens: 16_000,
            media_bytes: 1024 * 1024,
        }
    }
}

/// The remaining part of a budget.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Allowance {
    pub(crate) bytes: usize,
    pub(crate) tokens: usize,
    media_bytes: usize,
}

impl Allowance {
    pub(crate) fn new(budget: &Budget) -> Self {
        Self {
            bytes: budget.bytes,
            tokens: budget.tokens,
            media_bytes: budget.media_bytes,
        }
    }

    /// Sets room aside for a note.
    pub(crate) fn reserve_note(&mut self) {
        self.bytes = self.bytes.saturating_sub(NOTE_BYTES);
        self.tokens = self.tokens.saturating_sub(NOTE_TOKENS);
    }

    /// Half of the remaining room for text, and none for media.
    pub(crate) fn half(&self) -> Self {
        Self {
            bytes: self.bytes / 2,
            tokens: self.tokens / 2,
            media_bytes: 0,
        }
    }

    /// Takes room for a text. Returns `false`, and takes nothing, if there is too little.
    pub(crate) fn take(&mut self, text: &str) -> bool {
        if text.len() > self.bytes {
            return false;
        }
        let tokens = estimate_tokens(text);
        if tokens > self.tokens {
            return false;
        }
        self.bytes -= text.len();
        self.tokens -= tokens;
        true
    }

    /// Takes room for a text, even if there is too little.
    pub(crate) fn spend(&mut self, text: &str) {
        self.bytes = self.bytes.saturating_sub(text.len());
        self.tokens = self.tokens.saturating_sub(estimate_tokens(text));
    }

    /// Takes room for an image or audio. Returns `false`, and takes nothing, if there is too little.
    pub(crate) fn take_media(&mut self, block: &Raw) -> bool {
        let bytes = block.as_bytes().len();
        if bytes > self.media_bytes || MEDIA_TOKENS > self.tokens {
            return false;
        }
        self.media_bytes -= bytes;
        self.tokens -= MEDIA_TOKENS;
        true
    }

    /// The longest prefix of a text that fits, in bytes.
    pub(crate) fn prefix(&self, text: &str) -> usize {
        let end = text.floor_char_boundary(self.bytes.min(text.len()));
        within(&text[..end], self.tokens)
    }
}
