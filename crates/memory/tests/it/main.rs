//! The memory server, asked as the gateway asks it.

mod isolation;
mod rig;
mod times;
mod tools;
mod vectors;
