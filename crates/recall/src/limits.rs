//! The limits of this crate, with their reasons.

/// The most bytes of a memory that are indexed by words. The subject of a longer text is clear by then.
pub const TEXT_BYTES: usize = 64 * 1024;

/// The most bytes of a text that are searched for names, since storing a memory waits for that search.
pub const NAMED_BYTES: usize = 8 * 1024;

/// The most bytes of a query that are read.
pub const QUERY_BYTES: usize = 16 * 1024;

/// The most distinct words of a query that are searched for: the rarest ones.
pub const QUERY_WORDS: usize = 48;

/// The most positions of a query at which the name of an entity may begin.
pub const QUERY_STARTS: usize = 256;

/// The most positions after its start, at spaces and punctuation, at which a name in a query may end.
pub const NAME_WORDS: usize = 16;

/// The most entities that one name in a query leads to, itself included.
pub const REACHED: usize = 64;

/// The most relations of one name that are followed.
pub const RELATIONS: usize = 256;

/// The most entities found in one text.
pub const ENTITIES: usize = 32;

/// The longest name of an entity, in bytes.
pub const NAME_BYTES: usize = 128;

/// The most hits of one recall.
pub const HITS: usize = 1000;

/// The fewest removed versions before the library is compacted, which takes time in proportion to its size.
pub const REMOVED: usize = 1024;
