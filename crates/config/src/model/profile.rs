//! Profiles: the servers and tools that a client may see and call.

use std::fmt;

use switchboard_text::glob::stars_match_joined;

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
    /// The namespace of the memory that it is confined to.
    pub memory_namespace: Option<String>,
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

    /// Tests if it includes a tool. Patterns match its own name and its new one, if it has one.
    pub fn permits_tool(&self, server: &str, tool: &str, new_name: Option<&str>) -> bool {
        let lists = |patterns: &[ToolPattern]| {
            matches(patterns, server, tool)
                || new_name.is_some_and(|name| matches(patterns, server, name))
        };
        let allow = self.allow.as_deref();
        self.permits_server(server) && allow.is_none_or(lists) && !lists(&self.deny)
    }

    /// Tests if `deny` leaves a tool out.
    pub fn denies(&self, server: &str, tool: &str) -> bool {
        matches(&self.deny, server, tool)
    }
}

/// Tests if a pattern matches `server:tool`, as a whole, because both parts may contain colons.
fn matches(patterns: &[ToolPattern], server: &str, tool: &str) -> bool {
    let mut patterns = patterns.iter();
    patterns.any(|one| stars_match_joined(&one.0, [server, ":", tool]))
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
        assert!(all.permits_server("a") && all.permits_tool("a", "b", None));
    }

    #[test]
    fn tools_of_other_servers_are_left_out() {
        let profile = Profile {
            servers: Some(vec!["git*".to_owned(), "jira".to_owned()]),
            ..Profile::default()
        };
        assert!(profile.permits_tool("github", "x", None) && profile.permits_server("jira"));
        assert!(!profile.permits_tool("files", "x", None) && !profile.permits_server("jira2"));
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
                profile.permits_tool(server, tool, None),
                permits,
                "{server}:{tool}"
            );
        }
        assert!(profile.permits_server("files"));
        assert!(profile.permits_tool("jira", "old", Some("list")));
        assert!(!profile.permits_tool("jira", "list", Some("a_secret")));
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
