//! Every limit of this crate, with its reason.

/// How much of a memory is indexed by words. What comes later in so long a text is not what it is about.
pub const TEXT_BYTES: usize = 64 * 1024;

/// How much of a query is read.
pub const QUERY_BYTES: usize = 16 * 1024;

/// Of a query so many different words are looked for: those that weigh most.
pub const QUERY_WORDS: usize = 48;

/// How many entities are found in one text.
pub const ENTITIES: usize = 32;

/// The longest name of an entity, in bytes.
pub const NAME_BYTES: usize = 128;

/// The most hits of one recall.
pub const HITS: usize = 1000;
