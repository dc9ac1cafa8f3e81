//! Filters of a server's tools.

use switchboard_text::glob::stars_match;

/// Patterns of tools to show and to hide. `*` matches any characters; `?` and brackets are literal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolFilter {
    /// If present, only these tools are shown.
    pub allow: Option<Vec<String>>,
    /// These tools are hidden, even if `allow` lists them.
    pub deny: Vec<String>,
}

impl ToolFilter {
    /// Tests if a tool is shown.
    pub fn permits(&self, tool: &str) -> bool {
        self.allow
            .as_deref()
            .is_none_or(|allowed| is_listed(allowed, tool))
            && !self.denies(tool)
    }

    /// Tests if `deny` hides a tool.
    pub fn denies(&self, tool: &str) -> bool {
        is_listed(&self.deny, tool)
    }
}

/// Tests if a pattern matches.
pub(crate) fn is_listed(patterns: &[String], tool: &str) -> bool {
    patterns.iter().any(|pattern| stars_match(pattern, tool))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deny_wins_over_allow() {
        let list = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        let all = ToolFilter::default();
        assert!(all.permits("x"));
        let some = ToolFilter {
            allow: Some(list(&["read_*", "list"])),
            deny: list(&["*_secret"]),
        };
        assert!(some.permits("read_file"));
        assert!(some.permits("list"));
        assert!(!some.permits("write"));
        assert!(!some.permits("read_secret"));
        let none = ToolFilter {
            allow: Some(Vec::new()),
            deny: Vec::new(),
        };
        assert!(!none.permits("x"));
    }
}
