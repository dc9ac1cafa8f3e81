//! Memories and their versions, the entities that they speak of, and vectors.

mod change;
mod kept;
mod piece;

pub use self::change::{Made, MemoryChange, NewMention, NewVersion};
pub(crate) use self::change::{bounded, check};
pub use self::kept::{
    Counts, Entity, Listed, Listing, Mention, ModelRow, Relation, Scope, Vector, Version,
};
pub use self::piece::Piece;
