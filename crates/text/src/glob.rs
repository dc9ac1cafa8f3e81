//! Patterns for names: `*` for any characters, `?` for one. `[*]` and `[?]` are the characters
//! themselves, since the names of tools may contain any character.
//!
//! In filters of tools, only `*` is special: [`stars_match`].

use std::{fmt, iter};

/// The most characters and wildcards of a pattern.
pub const CHARACTERS: usize = 1024;

/// A pattern for a name. Letter case counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Glob {
    parts: Vec<Part>,
}

/// A character of a pattern, or a wildcard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// This character.
    Literal(char),
    /// `?`: any one character.
    One,
    /// `*`: any characters, or none.
    Many,
}

/// The narrowness of a pattern: an exact name ranks first, then the number of literal characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Narrowness {
    exact: bool,
    literals: usize,
}

impl Glob {
    /// Parses a pattern. Returns `None` if it is too long.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            let (part, taken) = match c {
                '[' if rest.starts_with("[*]") => (Part::Literal('*'), 3),
                '[' if rest.starts_with("[?]") => (Part::Literal('?'), 3),
                '*' => (Part::Many, 1),
                '?' => (Part::One, 1),
                c => (Part::Literal(c), c.len_utf8()),
            };
            rest = &rest[taken..];
            // Two in a row mean the same as one and cost more.
            if part != Part::Many || parts.last() != Some(&Part::Many) {
                parts.push(part);
            }
        }
        (parts.len() <= CHARACTERS).then_some(Self { parts })
    }

    /// Stands for `?` in a [marked](Self::marked) pattern.
    pub const ONE: char = '\u{e000}';
    /// Stands for `*` in a [marked](Self::marked) pattern.
    pub const MANY: char = '\u{e001}';

    /// The pattern as ordinary text that can be edited, with private-use characters for its wildcards.
    pub fn marked(&self) -> String {
        let parts = self.parts.iter();
        parts
            .map(|part| match part {
                Part::Literal(c) => *c,
                Part::One => Self::ONE,
                Part::Many => Self::MANY,
            })
            .collect()
    }

    /// Parses a marked pattern.
    pub fn from_marked(text: &str) -> Self {
        let part = |c| match c {
            Self::ONE => Part::One,
            Self::MANY => Part::Many,
            c => Part::Literal(c),
        };
        Self {
            parts: text.chars().map(part).collect(),
        }
    }

    /// The characters and wildcards, in their order.
    pub fn parts(&self) -> impl ExactSizeIterator<Item = Part> + Clone {
        self.parts.iter().copied()
    }

    /// The characters before the first wildcard.
    pub fn head(&self) -> String {
        let literal = |part: &Part| match part {
            Part::Literal(c) => Some(*c),
            Part::One | Part::Many => None,
        };
        self.parts.iter().map_while(literal).collect()
    }

    /// Tests if the pattern matches in any letter case.
    pub fn matches_in_any_case(&self, text: &str) -> bool {
        self.matches(text)
            || Self::from_marked(&self.marked().to_lowercase()).matches(&text.to_lowercase())
    }

    /// A pattern that matches exactly this text.
    pub fn literal(text: &str) -> Self {
        Self {
            parts: text.chars().map(Part::Literal).collect(),
        }
    }

    /// A pattern that matches any text.
    pub fn any() -> Self {
        Self {
            parts: vec![Part::Many],
        }
    }

    /// Tests if the pattern is `*`.
    pub fn is_any(&self) -> bool {
        self.parts == [Part::Many]
    }

    /// Tests if the pattern has no wildcards.
    pub fn is_exact(&self) -> bool {
        let mut parts = self.parts.iter();
        parts.all(|part| matches!(part, Part::Literal(_)))
    }

    /// The rank among all patterns that match one text.
    pub fn narrowness(&self) -> Narrowness {
        let literal = |part: &&Part| matches!(part, Part::Literal(_));
        Narrowness {
            exact: self.is_exact(),
            literals: self.parts.iter().filter(literal).count(),
        }
    }

    /// Tests if the pattern matches a text.
    pub fn matches(&self, text: &str) -> bool {
        matches(self.parts(), text.chars())
    }

    /// Tests if the pattern matches the text followed by a slash.
    pub fn matches_directory(&self, text: &str) -> bool {
        matches(self.parts(), text.chars().chain(iter::once('/')))
    }
}

/// Tests if a pattern matches, with `*` as the only wildcard: `?` and brackets are plain characters.
pub fn stars_match(pattern: &str, text: &str) -> bool {
    stars_match_joined(pattern, [text])
}

/// Does the same for the texts joined together, without joining them.
pub fn stars_match_joined<const N: usize>(pattern: &str, texts: [&str; N]) -> bool {
    let part = |c| match c {
        '*' => Part::Many,
        c => Part::Literal(c),
    };
    let text = texts.into_iter().flat_map(str::chars);
    matches(pattern.chars().map(part), text)
}

/// Matches a text with backtracking to the last `*` only: on a mismatch it takes one more character.
/// That is sufficient and keeps the work below the product of the two lengths.
fn matches<P, T>(mut pattern: P, mut text: T) -> bool
where
    P: Iterator<Item = Part> + Clone,
    T: Iterator<Item = char> + Clone,
{
    // The pattern after the last `*`, and the text that the `*` has not consumed yet.
    let mut star: Option<(P, T)> = None;
    loop {
        let part = pattern.next();
        if part == Some(Part::Many) {
            star = Some((pattern.clone(), text.clone()));
            continue;
        }
        let fits = match (part, text.next()) {
            (None, None) => return true,
            (Some(Part::One), Some(_)) => true,
            (Some(Part::Literal(expected)), Some(c)) => expected == c,
            _ => false,
        };
        if fits {
            continue;
        }
        let Some((after, rest)) = &mut star else {
            return false;
        };
        if rest.next().is_none() {
            return false;
        }
        pattern = after.clone();
        text = rest.clone();
    }
}

impl fmt::Display for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is = |at: Option<usize>, c: char| {
            at.and_then(|at| self.parts.get(at)) == Some(&Part::Literal(c))
        };
        let mut parts = self.parts.iter().enumerate();
        parts.try_for_each(|(n, part)| match part {
            Part::Literal('*') => f.write_str("[*]"),
            Part::Literal('?') => f.write_str("[?]"),
            Part::Literal(c) => write!(f, "{c}"),
            Part::One => f.write_str("?"),
            // `[*]` would be the literal character.
            Part::Many if is(n.checked_sub(1), '[') && is(n.checked_add(1), ']') => {
                f.write_str("**")
            }
            Part::Many => f.write_str("*"),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Reference implementation: obviously correct, and slow.
    fn naive(pattern: &[char], text: &[char]) -> bool {
        match (pattern.first(), text.first()) {
            (None, None) => true,
            (Some('*'), _) => {
                naive(&pattern[1..], text) || (!text.is_empty() && naive(pattern, &text[1..]))
            }
            (Some('?'), Some(_)) => naive(&pattern[1..], &text[1..]),
            (Some(p), Some(c)) => p == c && naive(&pattern[1..], &text[1..]),
            _ => false,
        }
    }

    proptest! {
        #[test]
        fn agrees_with_naive_matcher(pattern in "[ab*?é]{0,8}", text in "[abé]{0,10}") {
            let chars = |text: &str| text.chars().collect::<Vec<_>>();
            let glob = Glob::parse(&pattern).unwrap();
            prop_assert_eq!(glob.matches(&text), naive(&chars(&pattern), &chars(&text)));
        }

        #[test]
        fn a_literal_matches_itself_alone_and_reads_back(name in "[a\\[\\]*?]{0,6}", other in "[a\\[\\]*?]{0,6}") {
            let glob = Glob::literal(&name);
            prop_assert_eq!(glob.matches(&other), name == other);
            prop_assert_eq!(Glob::parse(&glob.to_string()), Some(glob));
        }
    }

    #[test]
    fn a_star_in_brackets_reads_back() {
        let glob = Glob::parse("a[**]").unwrap();
        assert_eq!(Glob::parse(&glob.to_string()), Some(glob));
    }

    #[test]
    fn stars_alone_are_special_in_filters() {
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
            ("a?", "ab", false),
            ("a?", "a?", true),
            ("a[*]", "a*", false),
            ("a[*]", "a[b]", true),
        ] {
            assert_eq!(
                stars_match(pattern, name),
                expected,
                "{pattern:?} on {name:?}"
            );
        }
    }

    #[test]
    fn many_stars_do_not_slow_matching() {
        let glob = Glob::parse(&"a*".repeat(400)).unwrap();
        assert!(!glob.matches(&format!("{}b", "a".repeat(399))));
    }
}
