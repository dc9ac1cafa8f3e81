//! Small text functions that several crates share.

pub mod glob;
pub mod hex;
mod nearest;
pub mod percent;

pub use nearest::{alike, closest, letters, nearest};
