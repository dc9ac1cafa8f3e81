//! What the gateway itself offers beside its servers.

use std::sync::Arc;

use switchboard_catalog::{Offers, ServerPart};
use switchboard_client::Raw;

/// Under this name the gateway's own tools are listed.
pub const SERVER: &str = "switchboard";
/// Tells how the gateway and its servers are.
pub const GET_STATUS: &str = "get_status";
/// Reads on in a result that was cut.
pub const READ_RESULT: &str = "read_result";
/// The same among the tools of all servers.
pub const READ_RESULT_EXPOSED: &str = "switchboard__read_result";

/// The gateway's own tools.
pub const TOOLS: [&str; 2] = [
    r#"{"name":"read_result","title":"Read on in a result","description":"Reads on in a tool's result that was too long and was cut. The cut result says which id and offset to read on with; the answer says where to go on.","inputSchema":{"type":"object","properties":{"id":{"type":"string","description":"The id that the cut result names"},"offset":{"type":"integer","minimum":0,"description":"Where to begin, 0 if not given"},"limit":{"type":"integer","minimum":1,"description":"At most how much to read, in bytes"}},"required":["id"],"additionalProperties":false},"annotations":{"readOnlyHint":true,"openWorldHint":false}}"#,
    r#"{"name":"get_status","title":"Gateway status","description":"How the gateway and each server behind it are: state, since when, why, and what can be done. Use it when a tool answers that its server is not ready.","inputSchema":{"type":"object","properties":{},"additionalProperties":false},"annotations":{"readOnlyHint":true,"openWorldHint":false}}"#,
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
    ServerPart::prepare(SERVER, Arc::new(offers), &|_, _| true)
}

#[cfg(test)]
mod tests {
    use switchboard_catalog::Kind;

    use super::*;

    #[test]
    fn the_tools_are_some() {
        let part = part();
        for name in [GET_STATUS, READ_RESULT] {
            assert!(part.find(Kind::Tool, name).is_some(), "{name}");
        }
    }
}
