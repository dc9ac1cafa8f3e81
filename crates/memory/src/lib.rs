//! The memory server, with which agents remember across conversations.
//!
//! [`Memory`] is an MCP server inside the process: the gateway connects to it as to any other server and
//! translates its protocol for clients of every revision. The store holds the memories and is the source of
//! truth; the index, the vectors and the graph that make them quick to find are kept in memory and built from
//! the store on first use. Vectors are computed in the background.
//!
//! * The handshake and the lists are answered without reading the store.
//! * Acknowledged changes are on disk.
//! * Storing, reading and listing need neither the index nor a model. Recalling needs the index; without a
//!   model it finds memories by words and by the entities they mention.

mod backfill;
mod count;
mod digest;
mod export;
mod find;
mod graph;
mod import;
mod index_thread;
mod markdown;
mod merge;
mod record;
mod remember;
mod scope;
mod server;
mod service;
mod status;
mod times;
mod tools;

mod error;

pub use server::{Offers, offers};
pub use service::{Memory, Model, Settings};
