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

mod activity;
mod approval;
mod audit;
mod change;
mod complaint;
mod error;
mod keeper;
mod limits;
pub mod memory;
mod question;
mod queue;
mod sqlite;
mod status;
mod store;
mod write;

pub use activity::{Activity, Outcome, OutcomeKind, Query};
pub use approval::{Approval, Rule, Which};
pub use audit::{
    Anchor, Audited, Broken, Entry, Flaw, Verdict, anchor, export, forget_archived, length, shrink,
    verify,
};
pub use change::Change;
pub use error::StoreError;
pub use limits::{
    BYTES_PER_ANSWER, QUEUED_RECORDS, QUEUED_WRITE_BYTES, QUEUED_WRITES, ROWS_PER_ANSWER,
    STATUSES_PER_QUESTION,
};
pub use status::Status;
pub use store::{Retention, Store};
