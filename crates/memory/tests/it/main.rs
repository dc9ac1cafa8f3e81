//! The memory server, asked as the gateway asks it.

mod isolation;
mod rig;
mod vectors;
mod times;
mod tools;
