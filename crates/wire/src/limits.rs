//! The limits of this crate and the reason for each.

/// The largest frame that is read, in bytes without its line end. A frame of exactly this size is accepted,
/// and one more byte is rejected.
pub const FRAME_BYTES: usize = 16 * 1024 * 1024;

/// The deepest nesting of arrays and objects in a frame. `serde_json` parses no deeper, so every frame that
/// is accepted can also be deserialized into typed views.
pub const DEPTH: usize = 127;

/// The most messages in one batch (2025-03-26 only). A batch is answered as a whole, so a peer can make us
/// hold this many responses.
pub const BATCH_MESSAGES: usize = 1_000;

/// The deepest nesting of arrays and objects in a [`tree`](crate::tree), the same as in a frame. Pins on disk
/// were made from trees of this depth.
pub const TREE_DEPTH: usize = 127;
