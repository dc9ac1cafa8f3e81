//! Reads the graph: relations between entities, and the memories that mention them.

use super::Memories;
use crate::types::error::StoreError;
use crate::types::limits::ROWS_PER_ANSWER;
use crate::types::memory::{Entity, Relation, Version, bounded};

impl Memories {
    /// Returns the entities with these rows, in this order, skipping deleted ones, each with the number
    /// of current versions that mention it. At most [`ROWS_PER_ANSWER`] rows.
    pub async fn entities(&self, rows: Vec<u64>) -> Result<Vec<(Entity, u64)>, StoreError> {
        bounded("the number of rows", rows.len(), ROWS_PER_ANSWER)?;
        self.ask(move |database| database.entities(&rows)).await
    }

    /// Returns up to `limit` relations from and to these entities, each once.
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

    /// Returns up to `limit` current versions that mention one of these entities, the last stored
    /// first.
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
