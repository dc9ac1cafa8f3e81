//! Clients that search tools themselves: they send their model the names of tools, and look up a definition when the
//! model asks for it. A full list costs their model little, and a menu would only be a second search.

use switchboard_client::Raw;

/// A client that searches tools itself.
struct SelfSearching {
    /// The name that it gives itself.
    name: &'static str,
    /// The first version that does so by default.
    since: [u64; 3],
}

/// Checked on 2026-11-18 with 10 and 120 tools. `OpenCode` 1.18 and Gemini CLI 0.61 send every definition.
const CLIENTS: &[SelfSearching] = &[
    // 2.1.325 sends only names, also with another base URL. Earlier versions did so only without one.
    SelfSearching {
        name: "claude-code",
        since: [2, 1, 325],
    },
    // 0.166.0 sends none, with the models that it knows.
    SelfSearching {
        name: "codex-mcp-client",
        since: [0, 142, 2],
    },
];

/// Tests if a client with this name and description of itself searches tools itself.
pub fn searches_tools(name: &str, info: Option<&Raw>) -> bool {
    let Some(client) = CLIENTS.iter().find(|client| client.name == name) else {
        return false;
    };
    let version = info.and_then(|info| info.member("version")?.to_text());
    version.is_some_and(|version| numbers(&version).is_some_and(|version| version >= client.since))
}

/// The three numbers of a version. A pre-release counts as its release.
fn numbers(version: &str) -> Option<[u64; 3]> {
    let release = version.split(['-', '+', ' ']).next()?;
    let mut parts = release.split('.').map(|part| part.parse().ok());
    Some([parts.next()??, parts.next()??, parts.next()??])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_known_by_name_and_version() {
        let searches = |name: &str, version: &str| {
            let info = serde_json::json!({ "name": name, "version": version });
            searches_tools(name, Some(&Raw::from_value(&info).unwrap()))
        };
        assert!(searches("claude-code", "2.1.325") && searches("claude-code", "3.0.0-beta.1"));
        assert!(searches("codex-mcp-client", "0.166.0"));
        for (name, version) in [
            ("claude-code", "2.1.324"),
            ("claude-code", "2"),
            ("claude-code", "x.y.z"),
            ("codex-mcp-client", "0.142.1"),
            ("opencode", "9.9.9"),
            ("claude-code-2", "2.1.325"),
        ] {
            assert!(!searches(name, version), "{name} {version}");
        }
        assert!(!searches_tools("claude-code", None));
    }
}
