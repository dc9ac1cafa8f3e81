//! The embedded store behind the parts of the gateway.
