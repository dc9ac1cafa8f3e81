//! Which tools of a server are shown.

/// A list of names to show and a list of names to hide, both with `*` for any run of characters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolFilter {
    /// Only these are shown; absent is all.
    pub allow: Option<Vec<String>>,
    /// These are not shown, whatever `allow` says.
    pub deny: Vec<String>,
}

impl ToolFilter {
    /// Whether the tool is shown.
    pub fn permits(&self, tool: &str) -> bool {
        self.allow
            .as_deref()
            .is_none_or(|allowed| is_listed(allowed, tool))
            && !self.denies(tool)
    }

    /// Whether a tool is left out by its name.
    pub fn denies(&self, tool: &str) -> bool {
        is_listed(&self.deny, tool)
    }
}

fn is_listed(patterns: &[String], tool: &str) -> bool {
    patterns.iter().any(|pattern| matches(pattern, tool))
}

/// Whether `name` fits `pattern`. On a mismatch only the latest `*` takes one character more, which
/// is enough and keeps the work below the product of the two lengths.
fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name) = (pattern.as_bytes(), name.as_bytes());
    let (mut p, mut n) = (0, 0);
    let mut retry = None;
    while n < name.len() {
        if pattern.get(p) == Some(&b'*') {
            p += 1;
            retry = Some((p, n));
        } else if pattern.get(p) == Some(&name[n]) {
            p += 1;
            n += 1;
        } else if let Some((after_star, taken)) = retry {
            p = after_star;
            n = taken + 1;
            retry = Some((after_star, n));
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|&rest| rest == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        for (pattern, name, expected) in [
            ("read_file", "read_file", true),
            ("read_file", "read_files", false),
            ("read_file", "Read_file", false),
            ("", "", true),
            ("", "a", false),
            ("*", "", true),
            ("*", "anything", true),
            ("read_*", "read_file", true),
            ("read_*", "read_", true),
            ("read_*", "write_file", false),
            ("*_file", "read_file", true),
            ("*_file", "read_file_now", false),
            ("*a*b", "xxaxxaxb", true),
            ("*a*b", "xxbxxa", false),
            ("a**b", "ab", true),
            ("*ü*", "grün", true),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern:?} on {name:?}");
        }
    }

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
