//! Every limit of this crate, with its reason.

/// The longest exposed name of a tool or prompt. Clients and model providers refuse longer ones.
pub const NAME_CHARACTERS: usize = 64;

/// The most items of one kind that a server may offer. What comes after them is left out.
pub const ITEMS: usize = 10_000;

/// The longest name or URI of one item. It is kept several times over, so it has its own bound.
pub const KEY_BYTES: usize = 64 * 1024;

/// How many items one page of a list has at most.
pub const PAGE_ITEMS: usize = 200;

/// How many bytes the items of one page have at most. A single larger item has a page of its own.
pub const PAGE_BYTES: usize = 1024 * 1024;

/// The longest cursor that is looked at.
pub const CURSOR_BYTES: usize = 4 * 1024;

/// How many problems of one server are told in words. The others are counted.
pub const PROBLEMS: usize = 20;

/// The largest snapshot file that is written or read.
pub const SNAPSHOT_BYTES: usize = 64 * 1024 * 1024;

/// How many snapshot files are read from one folder.
pub const SNAPSHOT_FILES: usize = 10_000;
