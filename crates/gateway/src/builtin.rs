//! What the gateway itself offers beside its servers.

use std::sync::Arc;

use switchboard_catalog::{Offers, ServerPart};
use switchboard_client::Raw;

/// Under this name the gateway's own tools are listed.
pub(crate) const SERVER: &str = "switchboard";
/// Tells how the gateway and its servers are.
pub(crate) const GET_STATUS: &str = "get_status";

const TOOL: &str = r#"{"name":"get_status","title":"Gateway status","description":"How the gateway and each server behind it are: state, since when, why, and what can be done. Use it when a tool answers that its server is not ready.","inputSchema":{"type":"object","properties":{},"additionalProperties":false},"annotations":{"readOnlyHint":true,"openWorldHint":false}}"#;

/// The gateway's own part of the catalogue.
pub(crate) fn part() -> ServerPart {
    let offers = Offers {
        tools: Raw::parse(TOOL).into_iter().collect(),
        ..Offers::default()
    };
    ServerPart::prepare(SERVER, Arc::new(offers), &|_| true)
}

#[cfg(test)]
mod tests {
    use switchboard_catalog::Kind;

    use super::*;

    #[test]
    fn the_tool_is_one() {
        assert!(part().find(Kind::Tool, GET_STATUS).is_some());
    }
}
