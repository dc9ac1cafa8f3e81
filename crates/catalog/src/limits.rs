//! Every limit of this crate, with its reason.

/// The longest exposed name of a tool or prompt. Clients and model providers refuse longer ones.
pub const NAME_CHARACTERS: usize = 64;

/// The most items of one kind that a server may offer. Further items are left out.
pub const ITEMS: usize = 10_000;

/// The longest name or URI of one item. It is stored several times, so it has its own limit.
pub const KEY_BYTES: usize = 64 * 1024;

/// The most items of a page.
pub const PAGE_ITEMS: usize = 200;

/// The most bytes of the items of a page. A single larger item has a page of its own.
pub const PAGE_BYTES: usize = 1024 * 1024;

/// The longest cursor that is decoded.
pub const CURSOR_BYTES: usize = 4 * 1024;

/// The most problems of one server that are described. Further problems are counted.
pub const PROBLEMS: usize = 20;

/// The largest snapshot file that is written or read.
pub const SNAPSHOT_BYTES: usize = 64 * 1024 * 1024;

/// The most snapshot files that are read from one folder.
pub const SNAPSHOT_FILES: usize = 10_000;
