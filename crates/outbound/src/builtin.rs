//! The gateway's own tools.

use std::sync::Arc;

use switchboard_catalog::{Offers, Presented, ServerPart};
use switchboard_client::Raw;

/// The server name under which the gateway's own tools are listed.
pub const SERVER: &str = "switchboard";
/// Reports the status of the gateway and its servers.
pub const GET_STATUS: &str = "get_status";
/// Reads the rest of a result that was cut.
pub const READ_RESULT: &str = "read_result";
/// The name of [`READ_RESULT`] among the tools of all servers.
pub const READ_RESULT_EXPOSED: &str = "switchboard__read_result";

/// The gateway's own tools.
pub const TOOLS: [&str; 2] = [
    r#"{"name":"read_result","title":"Read more of a result","description":"Reads the rest of a tool result that was truncated because it was too long. The truncated result names the id and the offset to continue with; each response names the next offset.","inputSchema":{"type":"object","properties":{"id":{"type":"string","description":"The id that the truncated result names"},"offset":{"type":"integer","minimum":0,"description":"Offset in bytes to start at; default 0"},"limit":{"type":"integer","minimum":1,"description":"Maximum number of bytes to read"}},"required":["id"],"additionalProperties":false},"annotations":{"readOnlyHint":true,"openWorldHint":false}}"#,
    r#"{"name":"get_status","title":"Gateway status","description":"Reports the state of the gateway and of each server behind it: since when, why, and what to do. Use it when a tool responds that its server is not ready.","inputSchema":{"type":"object","properties":{},"additionalProperties":false},"annotations":{"readOnlyHint":true,"openWorldHint":false}}"#,
];

/// The gateway's own part of the catalogue.
pub(crate) fn part() -> ServerPart {
    let offers = Offers {
        tools: TOOLS
            .iter()
            .filter_map(|tool| Raw::parse(*tool).ok())
            .collect(),
        ..Offers::default()
    };
    ServerPart::prepare(SERVER, Arc::new(offers), &|_, _, _| Presented::Unchanged)
}

#[cfg(test)]
mod tests {
    use switchboard_catalog::Kind;

    use super::*;

    #[test]
    fn own_tools_are_in_the_catalogue() {
        let part = part();
        for name in [GET_STATUS, READ_RESULT] {
            assert!(part.find(Kind::Tool, name).is_some(), "{name}");
        }
    }
}
