//! The library at its public surface.
