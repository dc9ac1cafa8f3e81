//! The memory server, asked as the gateway asks it.

mod rig;
mod times;
mod tools;
