//! The memory server: what agents should not forget.
//!
//! [`Memory`] is an MCP server inside the process: the gateway connects to it as to any other server and
//! speaks its protocol for it to clients of every revision. What it remembers is in the store, which is the
//! truth; what makes it quick to find, an index, vectors and a graph, is kept in memory and made of the store
//! when somebody first needs it. Vectors are filled in behind.
//!
//! * The handshake and the lists are answered without a look at the store.
//! * What was acknowledged is on the disk.
//! * Storing, reading and listing need neither the index nor a model; recalling needs the index; without a
//!   model it finds by words and by who is mentioned.

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
