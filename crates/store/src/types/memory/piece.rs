//! Objects that are read from a damaged file.

use super::{Entity, Relation, Version};

/// An object read from a damaged file. Its rows are those of that file.
#[derive(Debug, Clone, PartialEq)]
pub enum Piece {
    /// An entity. All entities come first.
    Entity(Entity),
    /// A version of a memory.
    Version(Version),
    /// A relation. All relations come last.
    Relation(Relation),
}

impl Piece {
    /// Approximate size in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let long = match self {
            Self::Entity(entity) => entity.description.as_ref().map_or(0, |text| text.len()),
            Self::Version(version) => {
                let metadata = version.metadata.as_ref().map_or(0, |text| text.len());
                version.content.len() + metadata
            }
            Self::Relation(_) => 0,
        };
        size_of::<Self>() + long
    }
}
