//! rmcp 0.10, the last version with HTTP+SSE: it speaks the handshake revisions, and exits on any request
//! before the handshake.

pub mod client;
pub mod server;
