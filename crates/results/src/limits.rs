//! Every limit of this crate, with its reason.

use std::time::Duration;

/// How many tokens an image, or a piece of audio, is held for. Models see an image in about as many,
/// however many bytes it has.
pub const MEDIA_TOKENS: usize = 1600;

/// The longest note about what is missing, in bytes. A result that is cut leaves room for it.
pub const NOTE_BYTES: usize = 300;

/// The same in tokens.
pub(crate) const NOTE_TOKENS: usize = 120;

/// How many blocks that are not shown have a note of their own. The others are found by reading on.
pub(crate) const NOTES: usize = 8;

/// The smallest piece of a text that is worth showing, in bytes.
pub(crate) const PIECE_BYTES: usize = 64;

/// How much a text block may carry beside its text and still be shown with all that wherever its text
/// is read, in bytes.
pub(crate) const FRAME_BYTES: usize = 4 * 1024;

/// How deep a JSON text may be nested and still be cut between its elements.
pub(crate) const JSON_DEPTH: usize = 128;

/// How deep structured content is shortened.
pub(crate) const SHRINK_DEPTH: usize = 16;

/// Structured content: texts of at most so many bytes are never shortened. They may be one of a few
/// that are allowed.
pub(crate) const SHORT_TEXT: usize = 512;

/// The most blocks of one result that are looked at one by one. What comes after them is one block.
pub(crate) const BLOCKS: usize = 10_000;

/// How many results are kept at most, however small they are.
pub const RESULTS: usize = 10_000;

/// The most files of the folder that are looked at when the store is opened.
pub(crate) const FILES: usize = 4 * RESULTS;

/// How much clocks may differ: a file that is to be kept for longer than results are is damaged.
pub(crate) const CLOCK_SLACK: Duration = Duration::from_mins(5);
