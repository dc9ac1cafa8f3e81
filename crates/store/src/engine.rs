//! The engine: one thread that owns an `SQLite` file, and the queues that feed it.

mod advice;
pub(crate) mod audit;
pub(crate) mod memory;
mod question;
mod queue;
mod sqlite;
pub(crate) mod store;
mod write;
mod writer_thread;
