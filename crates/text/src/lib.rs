//! Small jobs on text that several crates have.

pub mod glob;
pub mod hex;
mod nearest;

pub use nearest::{alike, closest, letters, nearest};
