//! Profiles: the servers and tools that a client may see and call.

use std::fmt;

use switchboard_text::glob::stars_match;

use super::{Guard, View};
use crate::filter::is_listed;

/// An entry of `profiles`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// Patterns for the servers that it includes; `None` for all.
    pub servers: Option<Vec<String>>,
    /// If present, only these tools are included.
    pub allow: Option<Vec<ToolPattern>>,
    /// These tools are left out, even if `allow` lists them.
    pub deny: Vec<ToolPattern>,
    /// The presentation of the tools, if different from the global setting.
    pub view: Option<View>,
    /// The calls that need approval, if more than elsewhere.
    pub approvals: Option<Guard>,
}

/// A pattern such as `github:get_*`: `*` matches any characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolPattern(String);

impl ToolPattern {
    /// Parses a pattern.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (server, tool) = text.split_once(':')?;
        (!server.is_empty() && !tool.is_empty()).then(|| Self(text.to_owned()))
    }
}

/// The pattern as it is written.
impl fmt::Display for ToolPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Profile {
    /// Tests if it includes a server.
    pub fn permits_server(&self, server: &str) -> bool {
        let servers = self.servers.as_deref();
        servers.is_none_or(|servers| is_listed(servers, server))
    }

    /// Tests if it includes a tool, by the server's own name for it.
    pub fn permits_tool(&self, server: &str, tool: &str) -> bool {
        let name = full(server, tool);
        let allow = self.allow.as_deref();
        self.permits_server(server)
            && allow.is_none_or(|allow| matches(allow, &name))
            && !matches(&self.deny, &name)
    }

    /// Tests if `deny` leaves a tool out.
    pub fn denies(&self, server: &str, tool: &str) -> bool {
        matches(&self.deny, &full(server, tool))
    }
}

/// The name that patterns match. They match it as a whole, because both parts may contain colons.
fn full(server: &str, tool: &str) -> String {
    format!("{server}:{tool}")
}

fn matches(patterns: &[ToolPattern], name: &str) -> bool {
    patterns.iter().any(|one| stars_match(&one.0, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patterns(texts: &[&str]) -> Vec<ToolPattern> {
        texts
            .iter()
            .map(|text| ToolPattern::parse(text).unwrap())
            .collect()
    }

    #[test]
    fn empty_profile_permits_everything() {
        let all = Profile::default();
        assert!(all.permits_server("a") && all.permits_tool("a", "b"));
    }

    #[test]
    fn tools_of_other_servers_are_left_out() {
        let profile = Profile {
            servers: Some(vec!["git*".to_owned(), "jira".to_owned()]),
            ..Profile::default()
        };
        assert!(profile.permits_tool("github", "x") && profile.permits_server("jira"));
        assert!(!profile.permits_tool("files", "x") && !profile.permits_server("jira2"));
    }

    #[test]
    fn deny_wins_over_allow() {
        let profile = Profile {
            allow: Some(patterns(&["github:get_*", "*:list"])),
            deny: patterns(&["*:*_secret"]),
            ..Profile::default()
        };
        for (server, tool, permits) in [
            ("github", "get_issue", true),
            ("jira", "list", true),
            ("jira", "get_issue", false),
            ("github", "get_secret", false),
            ("github", "GET_issue", false),
        ] {
            assert_eq!(
                profile.permits_tool(server, tool),
                permits,
                "{server}:{tool}"
            );
        }
        assert!(profile.permits_server("files"));
    }

    #[test]
    fn pattern_needs_both_parts() {
        for wrong in ["", "x", ":x", "x:"] {
            assert_eq!(ToolPattern::parse(wrong), None, "{wrong}");
        }
        let two = Profile {
            deny: patterns(&["a:b:c*"]),
            ..Profile::default()
        };
        assert!(two.denies("a", "b:cd") && two.denies("a:b", "c") && !two.denies("a", "b"));
    }
}
