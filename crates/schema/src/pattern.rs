//! `pattern`: regular expressions of schemas, matched in time linear in the text.
//!
//! Schemas use JavaScript syntax. Patterns that need backtracking (look-around, back references),
//! or that have a different meaning in other engines, are not matched at all.

use std::fmt::Write;
use std::str::Chars;

use regex_lite::{Regex, RegexBuilder};

use crate::limits::{PATTERN_BYTES, PROGRAM_BYTES};

/// A compiled pattern.
#[derive(Debug)]
pub(crate) struct Pattern {
    regex: Regex,
    /// The pattern has `\w` or similar, which engines interpret differently beyond ASCII.
    shorthand: bool,
    /// Number of steps that a byte of text costs.
    weight: u64,
}

impl Pattern {
    /// Compiles a pattern; `None` if this crate does not support it.
    pub(crate) fn compile(pattern: &str) -> Option<Self> {
        if pattern.len() > PATTERN_BYTES {
            return None;
        }
        let mut translation = Translation::default();
        translation.run(pattern)?;
        PROGRAM_BYTES.into_iter().find_map(|size| {
            let regex = RegexBuilder::new(&translation.out).size_limit(size).build();
            Some(Self {
                regex: regex.ok()?,
                shorthand: translation.shorthand,
                weight: (size / PROGRAM_BYTES[0]) as u64,
            })
        })
    }

    /// Returns the size of the compiled pattern, in units of the smallest size.
    pub(crate) fn weight(&self) -> u64 {
        self.weight
    }

    /// Returns the number of steps that matching a text costs.
    pub(crate) fn steps(&self, text: &str) -> u64 {
        1 + self.weight * text.len() as u64
    }

    /// Returns `true` if the pattern matches; `None` if that depends on the engine.
    pub(crate) fn matches(&self, text: &str) -> Option<bool> {
        // Without the `u` flag, JavaScript treats a character beyond U+FFFF as two.
        let unclear = |c: char| (self.shorthand && !c.is_ascii()) || c > '\u{ffff}';
        if !text.is_ascii() && text.chars().any(unclear) {
            return None;
        }
        Some(self.regex.is_match(text))
    }
}

#[derive(Default)]
struct Translation {
    out: String,
    shorthand: bool,
}

impl Translation {
    fn run(&mut self, pattern: &str) -> Option<()> {
        let mut rest = pattern.chars();
        while let Some(c) = rest.next() {
            match c {
                '\\' => {
                    self.escape(&mut rest, false)?;
                }
                '[' => self.class(&mut rest)?,
                '(' if rest.as_str().starts_with("?i") => {
                    self.shorthand = true;
                    self.out.push('(');
                }
                other => self.out.push(other),
            }
        }
        Some(())
    }

    /// Translates a character class, after its opening bracket.
    fn class(&mut self, rest: &mut Chars<'_>) -> Option<()> {
        self.out.push('[');
        if rest.as_str().starts_with('^') {
            rest.next();
            self.out.push('^');
        }
        // The empty class, which other engines do not have.
        if rest.as_str().starts_with(']') {
            return None;
        }
        loop {
            let was_set = match rest.next()? {
                ']' => {
                    self.out.push(']');
                    return Some(());
                }
                '\\' => self.escape(rest, true)?,
                c @ ('[' | '&' | '~') => {
                    self.literal(c);
                    false
                }
                other => {
                    self.out.push(other);
                    false
                }
            };
            // A dash after a class escape is a literal dash.
            if was_set && rest.as_str().starts_with('-') {
                rest.next();
                self.out.push_str("\\-");
            }
        }
    }

    /// Translates an escape, after its backslash. Returns `true` if it stands for a set of
    /// characters.
    fn escape(&mut self, rest: &mut Chars<'_>, in_class: bool) -> Option<bool> {
        match rest.next()? {
            c @ ('d' | 'D' | 'w' | 'W' | 's' | 'S') => {
                self.shorthand = true;
                self.out.push('\\');
                self.out.push(c);
                return Some(true);
            }
            'b' if in_class => self.literal('\u{8}'),
            c @ ('b' | 'B') if !in_class && !rest.as_str().starts_with('{') => {
                self.shorthand = true;
                self.out.push('\\');
                self.out.push(c);
            }
            'n' => self.literal('\n'),
            't' => self.literal('\t'),
            'r' => self.literal('\r'),
            'f' => self.literal('\u{c}'),
            'v' => self.literal('\u{b}'),
            '0' if !rest.as_str().starts_with(|c: char| c.is_ascii_digit()) => {
                self.literal('\0');
            }
            'x' => {
                let code = hex(rest, 2)?;
                self.literal(char::from_u32(code)?);
            }
            'u' => {
                let code = unicode(rest)?;
                self.literal(code);
            }
            // Other escapes with a letter or a digit are specific to one engine, or are back
            // references.
            c if c.is_alphanumeric() => return None,
            c => self.literal(c),
        }
        Some(false)
    }

    /// Appends a literal character, escaped.
    fn literal(&mut self, c: char) {
        // Writing to a string cannot fail.
        let _ = write!(self.out, "\\u{{{:x}}}", u32::from(c));
    }
}

/// Parses a character code, after `\u`.
fn unicode(rest: &mut Chars<'_>) -> Option<char> {
    if rest.as_str().starts_with('{') {
        rest.next();
        let (digits, after) = rest.as_str().split_once('}')?;
        let code = u32::from_str_radix(digits, 16).ok()?;
        *rest = after.chars();
        return char::from_u32(code);
    }
    // A lone surrogate is not a character: no Rust string would match it.
    char::from_u32(hex(rest, 4)?)
}

fn hex(rest: &mut Chars<'_>, digits: usize) -> Option<u32> {
    let text = rest.as_str().get(..digits)?;
    if !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let code = u32::from_str_radix(text, 16).ok()?;
    *rest = rest.as_str().get(digits..)?.chars();
    Some(code)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn patterns_follow_javascript() {
        for (pattern, text, expected) in [
            ("^[a-z0-9-]+$", "abc-1", Some(true)),
            ("^[a-z0-9-]+$", "Abc", Some(false)),
            ("^\\d{4}-\\d{2}$", "2024-01", Some(true)),
            ("^https?:\\/\\/", "http://x", Some(true)),
            ("^[\\w-.@]+$", "a-b.c@d", Some(true)),
            ("^[\\w.-]+$", "a/b", Some(false)),
            ("^[^\\s]+$", "a b", Some(false)),
            ("^[a[&&~~]+$", "[a&~", Some(true)),
            ("^\\u0041\\x42\\u{43}$", "ABC", Some(true)),
            ("^\\<a\\>$", "<a>", Some(true)),
            ("^[\\b\\-\\]]+$", "\u{8}-]", Some(true)),
            ("b", "abc", Some(true)),
            ("^(?<year>\\d+)$", "1", Some(true)),
            ("^\\w+$", "\u{e9}", None),
            ("^.$", "\u{1f600}", None),
            ("^\u{e9}$", "\u{e9}", Some(true)),
            ("^(?i)a$", "A", Some(true)),
        ] {
            let compiled = Pattern::compile(pattern).unwrap_or_else(|| panic!("{pattern}"));
            assert_eq!(compiled.matches(text), expected, "{pattern} on {text:?}");
        }
    }

    #[test]
    fn unsupported_patterns_are_not_compiled() {
        for pattern in [
            "(?=a)",
            "(?!a)b",
            "(?<=a)b",
            "(a)\\1",
            "\\p{L}",
            "[]",
            "[^]",
            "\\k<a>",
            "\\A",
            "\\Z",
            "\\ud83d",
            "(",
            "a{2,1}",
            "*",
            "\\",
            "(x{100}){100}{100}",
            "\\cA",
        ] {
            assert!(Pattern::compile(pattern).is_none(), "{pattern}");
        }
        assert!(Pattern::compile(&"a".repeat(5000)).is_none());
    }

    #[test]
    fn steps_are_charged_by_size() {
        let small = Pattern::compile("^(a+)+$").unwrap();
        let large = Pattern::compile("^[a-z]{1,500}$").unwrap();
        assert_eq!(small.steps("aaaa"), 5);
        assert!(large.steps("aaaa") > 5 * small.steps("aaaa"));
    }

    proptest! {
        #[test]
        fn odd_patterns_do_not_panic(pattern in "[\\\\()\\[\\]{}?*+^$|.a-cdwsux0-3:<=!&~-]{0,16}", text in "[a-c0-3 é]{0,8}") {
            if let Some(pattern) = Pattern::compile(&pattern) {
                pattern.matches(&text);
            }
        }
    }
}
