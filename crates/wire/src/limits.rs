//! Every limit of this crate, with its reason.

/// The largest frame that is read, in bytes without its line end: exactly this many are accepted,
/// one more is refused.
pub const FRAME_BYTES: usize = 16 * 1024 * 1024;

/// The deepest nesting of arrays and objects in a frame. It is what `serde_json` will follow, so
/// that whatever the wire lets in, every typed view can read.
pub const DEPTH: usize = 127;

/// The most messages in one batch (2025-03-26 only). A batch is answered as one, so it is the
/// peer's way to make us hold that many answers.
pub const BATCH_MESSAGES: usize = 1_000;

/// The deepest nesting of arrays and objects in a [`tree`](crate::tree): as deep as the parser reads a frame. Pins on disk
/// were made of trees of this depth.
pub const TREE_DEPTH: usize = 127;
