//! MCP Apps: tools that come with a page, which the client shows to the user.
//!
//! A page calls tools of its own server, by the names that the server gives them; some of these tools are for
//! pages only.

use switchboard_catalog::{Catalog, Item, Kind};
use switchboard_client::Raw;
use switchboard_wire::{Name, meta};

/// The extension for apps.
pub const EXTENSION: &str = "io.modelcontextprotocol/ui";

/// The capability that a client declares if it shows apps.
pub fn capability() -> Raw {
    let page = Raw::string("text/html;profile=mcp-app");
    Raw::object([("mimeTypes", Raw::array([page]))])
}

/// Tests if a client with these capabilities shows apps.
pub fn are_shown(capabilities: &Raw) -> bool {
    let said = capabilities.member("extensions");
    said.is_some_and(|said| said.member(EXTENSION).is_some())
}

/// Tests if a tool, by its definition, is for apps and not for models.
pub fn is_for_apps_alone(tool: &Raw) -> bool {
    let seen_by = visibility(tool);
    seen_by.is_some_and(|seen_by| !seen_by.iter().any(|who| who == "model"))
}

/// Returns a list of tools as this client should see it: a client that shows no apps has no use for tools
/// that are for apps alone.
pub fn list_for(list: Raw, capabilities: impl FnOnce() -> Raw) -> Raw {
    if !list.may_name(&VISIBILITY) || are_shown(&capabilities()) {
        return list;
    }
    let Some(tools) = list.member("tools").and_then(|tools| tools.elements()) else {
        return list;
    };
    let all = tools.len();
    let left: Vec<Raw> = tools
        .into_iter()
        .filter(|tool| !is_for_apps_alone(tool))
        .collect();
    if left.len() == all {
        return list;
    }
    list.with_member("tools", &Raw::array(left)).unwrap_or(list)
}

/// Finds the tool that an app calls by its server's own name for it. Only one server may have apps, so that
/// it is clear which server the app belongs to. A name in the gateway's own format never comes from an app.
pub fn own_tool<'a>(catalog: &'a Catalog, name: &'a str) -> Option<Item<'a>> {
    if name.contains("__") || name.contains(':') {
        return None;
    }
    let mut with_apps = catalog.servers().filter(|part| part.has_apps());
    let part = with_apps.next().filter(|_| with_apps.next().is_none())?;
    let tool = part.find(Kind::Tool, name)?;
    let seen_by = visibility(tool.raw());
    let is_for_apps = seen_by.is_none_or(|seen_by| seen_by.iter().any(|who| who == "app"));
    is_for_apps.then_some(tool)
}

static VISIBILITY: Name = Name::new("visibility");

/// The audiences that a tool declares, if any (`model`, `app`).
fn visibility(tool: &Raw) -> Option<Vec<String>> {
    if !tool.may_name(&VISIBILITY) {
        return None;
    }
    let ui = tool.member(meta::META)?.member("ui")?;
    ui.member(VISIBILITY.as_str())?.read().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_for_apps_say_so() {
        let is_for_apps = |json: &'static str| is_for_apps_alone(&Raw::parse(json).unwrap());
        assert!(is_for_apps(r#"{"_meta":{"ui":{"visibility":["app"]}}}"#));
        assert!(is_for_apps(
            r#"{"_meta":{"ui":{"visib\u0069lity":["app"]}}}"#
        ));
        for other in [
            r#"{"_meta":{"ui":{"visibility":["model","app"]}}}"#,
            r#"{"_meta":{"ui":{"visibility":"app"}}}"#,
            r#"{"_meta":{"visibility":["app"]}}"#,
            r#"{"visibility":["app"]}"#,
        ] {
            assert!(!is_for_apps(other), "{other}");
        }
    }
}
