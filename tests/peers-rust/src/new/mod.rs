//! rmcp 3.8: it speaks every revision.

pub mod client;
pub mod server;
