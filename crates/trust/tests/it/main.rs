//! The crate as others see it.

mod diff;
mod files;
mod ledger;
mod properties;

use switchboard_wire::Raw;

/// A tool of this name and description.
pub fn tool(name: &str, description: &str) -> Raw {
    Raw::object([
        ("name", Raw::string(name)),
        ("description", Raw::string(description)),
        ("inputSchema", Raw::parse(r#"{"type":"object"}"#).unwrap()),
    ])
}
