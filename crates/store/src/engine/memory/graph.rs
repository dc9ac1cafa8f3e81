//! Reading the graph: what leads from an entity to others, and to memories.

use super::Memories;
use crate::types::error::StoreError;
use crate::types::limits::ROWS_PER_ANSWER;
use crate::types::memory::{Entity, Relation, Version, bounded};

impl Memories {
    /// The entities with these rows, in this order, without those that are gone, and how many current
    /// versions speak of each. At most [`ROWS_PER_ANSWER`] rows.
    pub async fn entities(&self, rows: Vec<u64>) -> Result<Vec<(Entity, u64)>, StoreError> {
        bounded("the number of rows", rows.len(), ROWS_PER_ANSWER)?;
        self.ask(move |database| database.entities(&rows)).await
    }

    /// The relations from and to these entities, each once. At most so many.
    pub async fn relations_of(
        &self,
        rows: Vec<u64>,
        limit: usize,
    ) -> Result<Vec<Relation>, StoreError> {
        bounded("the number of rows", rows.len(), ROWS_PER_ANSWER)?;
        let limit = limit.min(ROWS_PER_ANSWER);
        self.ask(move |database| database.relations_of(&rows, limit))
            .await
    }

    /// The current versions that speak of one of these entities, the one learned last first. At most so
    /// many.
    pub async fn mentioning(
        &self,
        rows: Vec<u64>,
        limit: usize,
    ) -> Result<Vec<Version>, StoreError> {
        bounded("the number of rows", rows.len(), ROWS_PER_ANSWER)?;
        self.ask(move |database| database.mentioning(&rows, limit))
            .await
    }
}
