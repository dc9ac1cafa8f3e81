//! Sign-ins against an authorization server in memory: an honest one, and hostile ones.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test may fail")]

mod alone;
mod device;
mod hostile;
mod proof;
mod quirks;
mod renewal;
mod server;
mod sign_in;
mod simulation;
