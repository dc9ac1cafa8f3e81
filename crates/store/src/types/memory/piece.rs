//! Pieces of memory that are read of a damaged file.

use super::{Entity, Relation, Version};

/// Something that was read of a damaged file. Its rows are those of that file.
#[derive(Debug, Clone, PartialEq)]
pub enum Piece {
    /// An entity. All of them come first.
    Entity(Entity),
    /// A version of a memory.
    Version(Version),
    /// A relation. All of them come last.
    Relation(Relation),
}

impl Piece {
    /// About how much room it takes.
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
