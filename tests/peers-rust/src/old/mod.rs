//! rmcp 0.10, the last with HTTP+SSE: it speaks the handshake revisions, and leaves when it is asked anything
//! before the handshake.

pub mod client;
pub mod server;
