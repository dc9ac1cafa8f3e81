//! Output on a terminal: errors with hints, tables, colours, text made safe to show.

pub mod error;
pub mod print;
pub mod usage;
pub mod visible;
