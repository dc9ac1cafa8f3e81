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
    /// Tests if a tool is shown. Patterns match its own name and its new one, if it has one.
    pub fn permits(&self, tool: &str, new_name: Option<&str>) -> bool {
        let lists = |patterns: &[String]| {
            let by_new_name = new_name.is_some_and(|name| is_listed(patterns, name));
            is_listed(patterns, tool) || by_new_name
        };
        self.allow.as_deref().is_none_or(lists) && !lists(&self.deny)
    }

    /// Tests if `deny` hides a tool with this name.
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
        assert!(all.permits("x", None));
        let some = ToolFilter {
            allow: Some(list(&["read_*", "list"])),
            deny: list(&["*_secret"]),
        };
        assert!(some.permits("read_file", None));
        assert!(some.permits("list", None));
        assert!(!some.permits("write", None));
        assert!(!some.permits("read_secret", None));
        assert!(some.permits("get", Some("read_it")));
        assert!(!some.permits("list", Some("the_secret")));
        let none = ToolFilter {
            allow: Some(Vec::new()),
            deny: Vec::new(),
        };
        assert!(!none.permits("x", None));
    }
}
