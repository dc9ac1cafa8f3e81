//! Small jobs on text that several crates have.

pub mod glob;
pub mod hex;
mod nearest;
pub mod percent;

pub use nearest::{alike, closest, letters, nearest};
