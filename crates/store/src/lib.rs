//! The embedded store of the gateway.
//!
//! ```no_run
//! use switchboard_store::{Query, Store};
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let store = Store::open("switchboard.db".into());
//! for call in store.activity(Query::default()).await? {
//!     println!("{}: {} {}", call.id, call.server, call.name);
//! }
//! store.close();
//! store.closed().await;
//! # Ok(())
//! # }
//! ```
//!
//! # Guarantees
//!
//! * [`Store::open`] returns at once; the store's own thread opens the file, migrates it and serves it.
//!   [`Store::status`] reports its state.
//! * [`Store::record`] costs a short push onto a bounded queue and never waits for the disk. Queued records
//!   are committed together: after half a second, after 2048 records, or when a query or a write arrives.
//! * [`Store::activity`] sees everything that was recorded before it was called.
//! * A process that is killed loses at most the queued records; a machine that loses power may lose the last
//!   commits of records, never the file.
//! * [`Store::write`] is for data that must not be lost: approvals, remembered rules and the audit log. It
//!   returns when the data is on disk. Writes that are queued at the same time share one commit.
//! * [`Store::memories`] holds the memories of agents, described in the [`memory`] module; their changes
//!   share those commits.
//! * [`verify`] and [`export`] read the audit log of a file, even if a store has it open.
//! * An idle store uses no CPU: the thread sleeps on its queue, without a timer.
//!
//! The engine is a private module: nothing in this interface depends on the storage format.

mod engine;
mod types;

pub use engine::audit::{anchor, export, forget_archived, length, shrink, verify};
pub use engine::store::{Retention, Store};
pub use types::activity::{Activity, Outcome, OutcomeKind, Query};
pub use types::approval::{Approval, Rule, Which};
pub use types::audit::{Anchor, Audited, Broken, Entry, Flaw, Verdict};
pub use types::change::Change;
pub use types::error::StoreError;
pub use types::limits::{
    BYTES_PER_ANSWER, QUEUED_RECORDS, QUEUED_WRITE_BYTES, QUEUED_WRITES, ROWS_PER_ANSWER,
    STATUSES_PER_QUESTION,
};
pub use types::status::Status;

pub mod memory {
    //! The memories of agents: their versions, the entities that they mention, and vectors.
    //!
    //! ```no_run
    //! use switchboard_store::Store;
    //! use switchboard_store::memory::{Listing, MemoryChange};
    //!
    //! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
    //! let memories = Store::open("switchboard.db".into()).memories();
    //! for version in memories.list(Listing::default()).await?.versions {
    //!     println!("{}: {}", version.id, version.content);
    //! }
    //! memories.write(vec![MemoryChange::Delete { id: "k7".into() }]).await?;
    //! # Ok(())
    //! # }
    //! ```
    //!
    //! * A memory is never changed in place: [`MemoryChange::Revise`] closes its current version and adds
    //!   the next. The state of knowledge at any past time can therefore be listed.
    //! * [`Memories::write`] applies all of its changes or none, and returns when they are on disk. A
    //!   process that is killed loses no write that has returned.
    //! * Deleting a version deletes everything that belongs to it: no mention and no vector is ever left
    //!   over.
    //! * After a damaged file was set aside, every method returns
    //!   [`StoreError::Damaged`](crate::StoreError::Damaged), so that an empty memory is not mistaken for
    //!   the complete one. [`Memories::repair`] restores everything that can still be read.
    //!
    //! This module does not search.

    pub use crate::engine::memory::{Memories, Salvaged, salvage};
    pub use crate::types::limits::{
        CHANGES_PER_WRITE, CONTENT_BYTES, DESCRIPTION_BYTES, DIMENSIONS, MENTIONS_PER_VERSION,
        METADATA_BYTES, NAME_BYTES, REASON_BYTES, SALVAGED_NAMESPACE, VECTORS_PER_WRITE,
    };
    pub use crate::types::memory::{
        Counts, Entity, Listed, Listing, Made, MemoryChange, Mention, ModelRow, NewMention,
        NewVersion, Piece, Relation, Scope, Vector, Version,
    };
}
