//! The gateway in a process: as a service, for one client on a pipe, or joined over the socket.

pub mod log;
pub mod runtime;
pub mod serve;
pub mod stdio;
