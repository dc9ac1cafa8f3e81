//! The library's public interface.

mod changes;
mod examples;
mod graph;
mod hostile;
mod world;
