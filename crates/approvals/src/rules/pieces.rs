//! Matching of texts with braces and ranges, without listing their expansions.
//!
//! Shells and curl differ in how they read braces, quotes and backslashes. Each of them assembles pieces of
//! the text, in order, and the numbers and letters of ranges. A pattern may match such a text if it matches
//! any choice of pieces.

use switchboard_text::glob::{Glob, Part};

/// The characters that separate pieces, or that are removed from a text.
const SIGNS: [char; 9] = ['{', '}', '[', ']', ',', '"', '\'', '\\', '`'];

/// The most digits of a zero-padded number.
const WIDTH: usize = 20;

/// A text with braces or ranges.
pub(crate) struct Pieces<'t> {
    /// The text before the first of them, which is kept.
    pub(crate) before: &'t str,
    /// The text after the last of them, which is kept.
    pub(crate) after: &'t str,
    /// The pieces in between, each of which is optional.
    pub(crate) between: Vec<Piece<'t>>,
    /// All of the pieces may be left out at once.
    pub(crate) may_be_empty: bool,
}

/// A piece of a text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Piece<'t> {
    Text(&'t str),
    /// A number of a range, between these bounds and zero-padded to this width.
    Number {
        from: u64,
        to: u64,
        width: usize,
    },
    /// A letter of a range, between these bounds.
    Letter {
        from: char,
        to: char,
    },
}

impl<'t> Pieces<'t> {
    /// Splits a text; `None` if it has nothing to expand.
    pub(crate) fn of(text: &'t str) -> Option<Self> {
        let first = first_mark(text)?;
        let last = text.rfind(['}', ']']).filter(|last| *last > first)?;
        let middle = &text[first..=last];
        let mut between = Vec::new();
        let mut rest = middle;
        while let Some(c) = rest.chars().next() {
            let end = rest.find(SIGNS).unwrap_or(rest.len()).max(c.len_utf8());
            let (piece, after) = rest.split_at(end);
            let opener = middle[..middle.len() - rest.len()].chars().next_back();
            between.push(Piece::Text(piece));
            between.extend(range(opener, piece, after));
            rest = after;
        }
        Some(Self {
            before: &text[..first],
            after: &text[last + 1..],
            between,
            may_be_empty: ["{,", ",,", ",}", "{}", "\\", "\"", "'", "`"]
                .iter()
                .any(|sign| middle.contains(sign)),
        })
    }
}

/// The position of the first brace or range that is closed.
pub(crate) fn first_mark(text: &str) -> Option<usize> {
    let brace = text.find('{').filter(|at| text[*at..].contains('}'));
    let ranges = text.match_indices('[').map(|(at, _)| at);
    let is_range = |at: &usize| {
        let inner = &text[at + 1..];
        let end = inner.find([']', '[']).unwrap_or(0);
        range(Some('['), &inner[..end], &inner[end..]).is_some()
    };
    // After a brace it makes no difference.
    let range = ranges
        .take_while(|at| brace.is_none_or(|brace| *at < brace))
        .find(is_range);
    range.or(brace)
}

/// The piece that a range such as `[1-10]`, `[a-z:2]` or `{1..3}` stands for.
fn range<'t>(opener: Option<char>, inner: &str, after: &str) -> Option<Piece<'t>> {
    let sign = match (opener, after.chars().next()) {
        (Some('['), Some(']')) => "-",
        (Some('{'), Some('}')) => "..",
        _ => return None,
    };
    let (from, to) = inner.split_once(sign)?;
    let to = to.split([':', '.']).next().unwrap_or_default();
    let (from, to) = (from.trim(), to.trim());
    if let (Some(first), Some(last)) = (number(from), number(to)) {
        let width = |end: &str| if end.starts_with('0') { end.len() } else { 1 };
        let is_signed = from.starts_with('-') || to.starts_with('-');
        return Some(Piece::Number {
            from: if is_signed { 0 } else { first.min(last) },
            to: first.max(last),
            width: width(from).max(width(to)).min(WIDTH),
        });
    }
    let letter = |end: &str| end.parse().ok().filter(|c: &char| c.is_alphabetic());
    let (first, last) = (letter(from)?, letter(to)?);
    // Shells also count down.
    (first <= last || sign == "..").then(|| Piece::Letter {
        from: first.min(last),
        to: first.max(last),
    })
}

/// The digits of a bound of a range, as a number.
fn number(end: &str) -> Option<u64> {
    let digits = end.trim_start_matches('-');
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().unwrap_or(u64::MAX))
}

/// The most steps of one comparison with pieces. A text that takes more is treated as a match.
const STEPS: usize = 16 * 1024 * 1024;

/// The most digits of a number of a range.
const DIGITS: usize = 10;

/// The size of the smallest range whose numbers are not compared one by one.
const NUMBERS: usize = 64;

impl Pieces<'_> {
    /// Tests if a pattern matches some choice of pieces.
    pub(crate) fn may_match(&self, glob: &Glob) -> bool {
        let parts: Vec<_> = glob.parts().collect();
        let between = self.between.iter().map(|piece| match piece {
            Piece::Text(text) => text.len(),
            Piece::Number { from, to, .. } => {
                let numbers = usize::try_from(to - from).unwrap_or(NUMBERS);
                DIGITS * if numbers < NUMBERS { numbers + 1 } else { 1 }
            }
            Piece::Letter { .. } => 1,
        });
        let bytes = self.before.len() + self.after.len() + between.sum::<usize>();
        if bytes.saturating_mul(parts.len() + 1) > STEPS {
            return true;
        }
        let mut states = vec![false; parts.len() + 1];
        states[0] = true;
        skip_stars(&parts, &mut states);
        advance(&parts, &mut states, self.before);
        let none_taken = states.clone();
        let mut taken = vec![false; states.len()];
        for piece in &self.between {
            let mut with = states.clone();
            match piece {
                Piece::Text(text) => advance(&parts, &mut with, text),
                Piece::Letter { from, to } => {
                    step(&parts, &mut with, |c| (*from..=*to).contains(&c));
                }
                Piece::Number { from, to, width } => {
                    with = after_number(&parts, &with, (*from, *to), *width);
                }
            }
            join(&mut states, &with);
            join(&mut taken, &with);
        }
        if self.may_be_empty {
            join(&mut taken, &none_taken);
        }
        advance(&parts, &mut taken, self.after);
        taken.last() == Some(&true)
    }
}

/// The states after a number of a range. For a large range, only the number of digits is considered.
fn after_number(
    parts: &[Part],
    states: &[bool],
    (from, to): (u64, u64),
    width: usize,
) -> Vec<bool> {
    let mut found = vec![false; states.len()];
    if to - from < NUMBERS as u64 {
        for number in from..=to {
            let mut with = states.to_vec();
            advance(parts, &mut with, &format!("{number:0width$}"));
            join(&mut found, &with);
        }
        return found;
    }
    let digits = |number: u64| number.to_string().len().max(width);
    let mut longer = states.to_vec();
    for count in 1..=digits(to).min(DIGITS) {
        step(parts, &mut longer, |c| c.is_ascii_digit());
        if count >= digits(from).min(DIGITS) {
            join(&mut found, &longer);
        }
    }
    found
}

fn advance(parts: &[Part], states: &mut [bool], text: &str) {
    for c in text.chars() {
        step(parts, states, |expected| expected == c);
    }
}

/// Advances by one character, given the literals that it can be.
fn step(parts: &[Part], states: &mut [bool], can_be: impl Fn(char) -> bool) {
    let mut came = false;
    for (at, part) in parts.iter().enumerate() {
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
    states[parts.len()] = came;
    skip_stars(parts, states);
}

/// Marks the states that are reached because a star may match nothing.
fn skip_stars(parts: &[Part], states: &mut [bool]) {
    for (at, part) in parts.iter().enumerate() {
        if *part == Part::Many && states[at] {
            states[at + 1] = true;
        }
    }
}
fn join(states: &mut [bool], others: &[bool]) {
    for (state, other) in states.iter_mut().zip(others) {
        *state |= other;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_choice_of_pieces_may_match(
            pattern in "[ab/*?1]{0,6}",
            before in "[ab/]{0,2}",
            list in proptest::collection::vec("[ab/1]{0,3}", 1..4),
            after in "[ab/]{0,2}",
        ) {
            let glob = Glob::parse(&pattern).unwrap();
            let text = format!("{before}{{{}}}{after}", list.join(","));
            let pieces = Pieces::of(&text).unwrap();
            let matches = |piece: &String| glob.matches(&format!("{before}{piece}{after}"));
            prop_assert!(!list.iter().any(matches) || pieces.may_match(&glob), "{pattern} {text}");
        }
    }

    #[test]
    fn numbers_and_letters_of_ranges_may_match() {
        let may_match = |pattern: &str, text: &str| {
            let glob = Glob::parse(pattern).unwrap();
            Pieces::of(text).unwrap().may_match(&glob)
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
    fn braces_and_ranges_differ_from_other_brackets() {
        for text in [
            "a{b}",
            "x[1-3]",
            "[a-z]x",
            "{1..3}",
            "[id]/{x}",
            "a[1- 3: 1]",
        ] {
            assert!(Pieces::of(text).is_some(), "{text}");
        }
        for text in [
            "",
            "a{b",
            "a}b",
            "[::1]/x",
            "[docs](x-y)",
            "[0,1]",
            "x[0]",
            "}{",
            "a[i-1]",
            "[1-i]",
            "[z-a]",
            "[+-0]",
        ] {
            assert!(Pieces::of(text).is_none(), "{text}");
        }
    }
}
