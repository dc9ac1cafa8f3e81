//! The clients of the gateway: doors, sessions, transports.

pub mod admission;
pub mod connection;
pub mod console_auth;
pub mod doors;
pub mod edge;
pub mod inbound;
mod listen;
mod lookups;
mod peer;
pub mod ports;
pub mod problem;
mod project;
