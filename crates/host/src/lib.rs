//! The gateway in a process: as a service, for one client on a pipe, or as a connection to the
//! running gateway.

pub mod log;
pub mod runtime;
pub mod serve;
pub mod stdio;

pub use switchboard_gateway::{RENEWAL_ARGUMENT, renewal_main};
