//! The engine: one thread with an `SQLite` file, and the queues to it.

pub(crate) mod audit;
mod complaint;
pub(crate) mod memory;
mod question;
mod queue;
mod sqlite;
pub(crate) mod store;
mod write;
mod writer_thread;
