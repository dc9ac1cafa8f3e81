//! The embedded store behind the parts of the gateway.
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
//! # What to expect
//!
//! * [`Store::open`] returns at once; a thread of the store's own opens the file, brings it up to
//!   date and serves it. [`Store::status`] tells where it stands.
//! * [`Store::record`] costs a short push onto a bounded queue and never waits for the disk. What
//!   is queued is committed together: after half a second, after 2048 records, or when somebody asks.
//! * [`Store::activity`] sees everything that was recorded before it was called.
//! * A process that is killed loses at most the records that were queued; a machine that loses power
//!   may lose the last commits of them, never the file.
//! * [`Store::write`] is for what must not be lost: approvals, remembered rules and the audit log. It
//!   answers when the disk has it. Writes that wait at the same time share one commit.
//! * [`Store::memories`] is what agents remember, in the [`memory`] module; its changes share those commits.
//! * [`verify`] and [`export`] read the audit log of a file, with or without a store that has it open.
//! * Nothing runs while there is nothing to do: the thread sleeps on its queue, without a timer.
//!
//! The engine is one private module: what stands here does not say how things are kept.

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
    //! What agents remember: memories and their versions, the entities that they speak of, and vectors.
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
    //! * A memory is never changed: a [`MemoryChange::Revise`] closes its current version and adds the next.
    //!   So what was known at any time can be listed.
    //! * [`Memories::write`] makes all of its changes or none, and answers when the disk has them. A process
    //!   that is killed loses nothing that was answered.
    //! * Whatever belongs to a version goes with it: no mention and no vector is ever left over.
    //! * Where the file was damaged and put aside, every method answers [`StoreError::Damaged`](crate::StoreError::Damaged), so that
    //!   nobody takes the empty memory for all there was. [`Memories::repair`] brings back what can be read.
    //!
    //! This part knows nothing about searching.

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
