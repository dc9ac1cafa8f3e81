//! Output on a terminal: errors with hints, tables, colours, and escaping of untrusted text.

pub mod error;
pub mod print;
pub mod usage;
pub mod visible;
