//! Every limit of this crate, with its reason.

/// How much of a memory is indexed by words. What comes later in so long a text is not what it is about.
pub const TEXT_BYTES: usize = 64 * 1024;

/// How much of a text is looked through for names: whoever waits for a memory to be stored waits for that too.
pub const NAMED_BYTES: usize = 8 * 1024;

/// How much of a query is read.
pub const QUERY_BYTES: usize = 16 * 1024;

/// Of a query so many different words are looked for: the rarest.
pub const QUERY_WORDS: usize = 48;

/// At so many places of a query the name of an entity may begin.
pub const QUERY_STARTS: usize = 256;

/// The name of an entity in a query ends at one of so many places after its start: spaces and marks.
pub const NAME_WORDS: usize = 16;

/// How many entities one name in a query leads to, itself among them.
pub const REACHED: usize = 64;

/// How many relations of one name are followed.
pub const RELATIONS: usize = 256;

/// How many entities are found in one text.
pub const ENTITIES: usize = 32;

/// The longest name of an entity, in bytes.
pub const NAME_BYTES: usize = 128;

/// The most hits of one recall.
pub const HITS: usize = 1000;

/// So many removed versions wait at least before the library is tidied, which takes time in proportion to all
/// that is there.
pub const REMOVED: usize = 1024;
