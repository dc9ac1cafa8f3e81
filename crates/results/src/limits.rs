//! Every limit of this crate, with its reason.

use std::time::Duration;

/// Tokens that an image or a piece of audio counts for. Models use about this number for an image of
/// any size in bytes.
pub const MEDIA_TOKENS: usize = 1600;

/// The longest note about missing content, in bytes. A result that is cut leaves room for it.
pub const NOTE_BYTES: usize = 300;

/// The longest note about missing content, in tokens.
pub(crate) const NOTE_TOKENS: usize = 120;

/// The most hidden blocks of a result that get a note of their own. A reader finds the others by
/// reading on.
pub(crate) const NOTES: usize = 8;

/// The smallest piece of a text that is worth showing, in bytes.
pub(crate) const PIECE_BYTES: usize = 64;

/// The largest frame that a text block keeps when its first piece is read, in bytes. The frame is the
/// block without its text.
pub(crate) const FRAME_BYTES: usize = 4 * 1024;

/// The deepest nesting of a JSON text that is cut between its elements.
pub(crate) const JSON_DEPTH: usize = 128;

/// The deepest level at which structured content is shortened.
pub(crate) const SHRINK_DEPTH: usize = 16;

/// The length up to which texts in structured content are never shortened, in bytes. A short text may
/// be one of a fixed set of values.
pub(crate) const SHORT_TEXT: usize = 512;

/// The most blocks of one result that are examined one by one. The remaining blocks are treated as
/// one.
pub(crate) const BLOCKS: usize = 10_000;

/// The most results that are kept, regardless of their size.
pub const RESULTS: usize = 10_000;

/// The most files of the folder that are examined when the store is opened.
pub(crate) const FILES: usize = 4 * RESULTS;

/// The largest difference between clocks. A file that expires later than the lifetime of results and
/// this allow is treated as damaged.
pub(crate) const CLOCK_SLACK: Duration = Duration::from_mins(5);
