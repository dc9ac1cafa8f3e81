//! Patterns for names: `*` for any characters, `?` for one. `[*]` and `[?]` are the characters
//! themselves, since a server may call its tool anything.

use std::{fmt, iter};

use super::limits::GLOB_CHARACTERS;
use super::pieces::{Piece, Pieces};

/// A pattern for a name. Letter case counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Glob {
    parts: Vec<Part>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Literal(char),
    One,
    Many,
}

/// How narrow a pattern is: first of all an exact name, then by its literal characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Narrowness {
    exact: bool,
    literals: usize,
}

impl Glob {
    /// `None` if it is too long.
    pub(crate) fn parse(text: &str) -> Option<Self> {
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
            // Two in a row mean what one means, and cost more.
            if part != Part::Many || parts.last() != Some(&Part::Many) {
                parts.push(part);
            }
        }
        (parts.len() <= GLOB_CHARACTERS).then_some(Self { parts })
    }

    /// Stands for `?` in a [marked](Self::marked) pattern.
    pub(crate) const ONE: char = '\u{e000}';
    /// Stands for `*` in a [marked](Self::marked) pattern.
    pub(crate) const MANY: char = '\u{e001}';

    /// The pattern as text that can be changed like any other, with private characters for its
    /// wildcards.
    pub(crate) fn marked(&self) -> String {
        let parts = self.parts.iter();
        parts
            .map(|part| match part {
                Part::Literal(c) => *c,
                Part::One => Self::ONE,
                Part::Many => Self::MANY,
            })
            .collect()
    }

    /// Reads a marked pattern.
    pub(crate) fn from_marked(text: &str) -> Self {
        let part = |c| match c {
            Self::ONE => Part::One,
            Self::MANY => Part::Many,
            c => Part::Literal(c),
        };
        Self {
            parts: text.chars().map(part).collect(),
        }
    }

    /// The characters before the first wildcard.
    pub(crate) fn head(&self) -> String {
        let literal = |part: &Part| match part {
            Part::Literal(c) => Some(*c),
            Part::One | Part::Many => None,
        };
        self.parts.iter().map_while(literal).collect()
    }

    /// Whether it matches in any letter case.
    pub(crate) fn matches_in_any_case(&self, text: &str) -> bool {
        self.matches(text)
            || Self::from_marked(&self.marked().to_lowercase()).matches(&text.to_lowercase())
    }

    /// Exactly this text.
    pub(crate) fn literal(text: &str) -> Self {
        Self {
            parts: text.chars().map(Part::Literal).collect(),
        }
    }

    pub(crate) fn any() -> Self {
        Self {
            parts: vec![Part::Many],
        }
    }

    pub(crate) fn is_any(&self) -> bool {
        self.parts == [Part::Many]
    }

    pub(crate) fn is_exact(&self) -> bool {
        let mut parts = self.parts.iter();
        parts.all(|part| matches!(part, Part::Literal(_)))
    }

    pub(crate) fn narrowness(&self) -> Narrowness {
        let literal = |part: &&Part| matches!(part, Part::Literal(_));
        Narrowness {
            exact: self.is_exact(),
            literals: self.parts.iter().filter(literal).count(),
        }
    }

    pub(crate) fn matches(&self, text: &str) -> bool {
        self.matches_chars(text.chars())
    }

    /// Whether it matches the text with a slash behind it.
    pub(crate) fn matches_directory(&self, text: &str) -> bool {
        self.matches_chars(text.chars().chain(iter::once('/')))
    }

    fn matches_chars<I: Iterator<Item = char> + Clone>(&self, text: I) -> bool {
        let mut at = 0;
        let mut rest = text;
        // The last `*`, and what it has not swallowed yet.
        let mut star: Option<(usize, I)> = None;
        loop {
            let part = self.parts.get(at);
            if part == Some(&Part::Many) {
                at += 1;
                star = Some((at, rest.clone()));
                continue;
            }
            let fits = match (part, rest.next()) {
                (None, None) => return true,
                (Some(Part::One), Some(_)) => true,
                (Some(Part::Literal(expected)), Some(c)) => *expected == c,
                _ => false,
            };
            if fits {
                at += 1;
                continue;
            }
            let Some((after, swallowed)) = &mut star else {
                return false;
            };
            if swallowed.next().is_none() {
                return false;
            }
            at = *after;
            rest = swallowed.clone();
        }
    }
}

/// The most steps of one comparison with pieces. A text that takes more may match.
const STEPS: usize = 16 * 1024 * 1024;

/// The longest number of a range.
const DIGITS: usize = 10;

/// The fewest numbers of a range of which not each is compared.
const NUMBERS: usize = 64;

impl Glob {
    /// Tests if it matches some choice of pieces.
    pub(crate) fn may_match(&self, pieces: &Pieces<'_>) -> bool {
        let between = pieces.between.iter().map(|piece| match piece {
            Piece::Text(text) => text.len(),
            Piece::Number { from, to, .. } => {
                let numbers = usize::try_from(to - from).unwrap_or(NUMBERS);
                DIGITS * if numbers < NUMBERS { numbers + 1 } else { 1 }
            }
            Piece::Letter { .. } => 1,
        });
        let bytes = pieces.before.len() + pieces.after.len() + between.sum::<usize>();
        if bytes.saturating_mul(self.parts.len() + 1) > STEPS {
            return true;
        }
        let mut states = vec![false; self.parts.len() + 1];
        states[0] = true;
        self.skip_stars(&mut states);
        self.advance(&mut states, pieces.before);
        let none_taken = states.clone();
        let mut taken = vec![false; states.len()];
        for piece in &pieces.between {
            let mut with = states.clone();
            match piece {
                Piece::Text(text) => self.advance(&mut with, text),
                Piece::Letter { from, to } => self.step(&mut with, |c| (*from..=*to).contains(&c)),
                Piece::Number { from, to, width } => {
                    with = self.after_number(&with, (*from, *to), *width);
                }
            }
            join(&mut states, &with);
            join(&mut taken, &with);
        }
        if pieces.may_be_empty {
            join(&mut taken, &none_taken);
        }
        self.advance(&mut taken, pieces.after);
        taken.last() == Some(&true)
    }

    /// The states behind a number of a range. Of a long one, only the count of digits is known.
    fn after_number(&self, states: &[bool], (from, to): (u64, u64), width: usize) -> Vec<bool> {
        let mut found = vec![false; states.len()];
        if to - from < NUMBERS as u64 {
            for number in from..=to {
                let mut with = states.to_vec();
                self.advance(&mut with, &format!("{number:0width$}"));
                join(&mut found, &with);
            }
            return found;
        }
        let digits = |number: u64| number.to_string().len().max(width);
        let mut longer = states.to_vec();
        for count in 1..=digits(to).min(DIGITS) {
            self.step(&mut longer, |c| c.is_ascii_digit());
            if count >= digits(from).min(DIGITS) {
                join(&mut found, &longer);
            }
        }
        found
    }

    fn advance(&self, states: &mut [bool], text: &str) {
        for c in text.chars() {
            self.step(states, |expected| expected == c);
        }
    }

    /// Goes on by one character, of which it is known which literals it can be.
    fn step(&self, states: &mut [bool], can_be: impl Fn(char) -> bool) {
        let mut came = false;
        for (at, part) in self.parts.iter().enumerate() {
            let was = std::mem::replace(&mut states[at], came);
            came = match part {
                Part::Literal(expected) => was && can_be(*expected),
                Part::One => was,
                Part::Many => {
                    states[at] |= was;
                    false
                }
            };
        }
        states[self.parts.len()] = came;
        self.skip_stars(states);
    }

    /// A star need not take anything.
    fn skip_stars(&self, states: &mut [bool]) {
        for (at, part) in self.parts.iter().enumerate() {
            if *part == Part::Many && states[at] {
                states[at + 1] = true;
            }
        }
    }
}

fn join(states: &mut [bool], others: &[bool]) {
    for (state, other) in states.iter_mut().zip(others) {
        *state |= other;
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
            // `[*]` would be the character.
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

    /// Obviously right, and slow.
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
        fn matches_what_the_naive_one_matches(pattern in "[ab*?é]{0,8}", text in "[abé]{0,10}") {
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

    proptest! {
        #[test]
        fn choices_of_pieces_are_matched(
            pattern in "[ab/*?1]{0,6}",
            before in "[ab/]{0,2}",
            list in proptest::collection::vec("[ab/1]{0,3}", 1..4),
            after in "[ab/]{0,2}",
        ) {
            let glob = Glob::parse(&pattern).unwrap();
            let text = format!("{before}{{{}}}{after}", list.join(","));
            let pieces = Pieces::of(&text).unwrap();
            let matches = |piece: &String| glob.matches(&format!("{before}{piece}{after}"));
            prop_assert!(!list.iter().any(matches) || glob.may_match(&pieces), "{pattern} {text}");
        }
    }

    #[test]
    fn numbers_and_letters_of_ranges_are_matched() {
        let may_match = |pattern: &str, text: &str| {
            let glob = Glob::parse(pattern).unwrap();
            glob.may_match(&Pieces::of(text).unwrap())
        };
        assert!(may_match("10.0.0.254/*", "10.0.0.[1-254]/x"));
        assert!(may_match("10.0.0.1/x", "10.0.0.[1- 1: 1]/x"));
        assert!(may_match("http://*", "htt{p..p}://x"));
        assert!(!may_match("*secret*", "items[0-1000]"));
        assert!(!may_match("10.0.0.9/*", "10.0.0.[1-8]/x"));
        assert!(may_match("10.0.0.008/*", "10.0.0.[001-010]/x"));
        assert!(!may_match("10.0.0.25/*", "10.0.0.[100-254]/x"));
        assert!(!may_match("xyz", "x[a-w]z"));
        assert!(may_match("xyz", "x[y-z]z"));
        assert!(!may_match("*secret*", &"a[i-1]{b}".repeat(6)));
        assert!(!may_match("10.0.0.x/*", "10.0.0.[1-254]/x"));
        assert!(!may_match("*secret*", r#"{"a":"set","b":"cream"}"#));
        assert!(!may_match("/etc/*", "{a,b}/etc/x"));
        assert!(may_match("/etc/*", "{,b}/etc/x"));
    }

    #[test]
    fn a_star_in_brackets_reads_back() {
        let glob = Glob::parse("a[**]").unwrap();
        assert_eq!(Glob::parse(&glob.to_string()), Some(glob));
    }

    #[test]
    fn many_stars_take_no_time() {
        let glob = Glob::parse(&"a*".repeat(400)).unwrap();
        assert!(!glob.matches(&format!("{}b", "a".repeat(399))));
    }
}
