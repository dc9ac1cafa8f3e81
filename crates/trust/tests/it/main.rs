//! Tests of the public interface.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test may fail"
)]

mod attacks;
mod benign;
mod diff;
mod files;
mod fuzz;
mod kinds;
mod noise;
mod pins;
mod properties;

use switchboard_wire::Raw;

/// A tool with this name and description.
fn tool(name: &str, description: &str) -> Raw {
    Raw::object([
        ("name", Raw::string(name)),
        ("description", Raw::string(description)),
        ("inputSchema", Raw::parse(r#"{"type":"object"}"#).unwrap()),
    ])
}
