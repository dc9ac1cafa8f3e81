//! Texts with braces and ranges, held against a pattern without listing what they expand to.
//!
//! Shells and curl differ in how they read braces, quotes and backslashes. What they make of a text is put together of
//! pieces of it, in their order, and of the numbers and letters of ranges. A pattern may match such a text if it matches
//! any choice of pieces.

/// The signs that a text is put together by, or that are taken out of it.
const SIGNS: [char; 9] = ['{', '}', '[', ']', ',', '"', '\'', '\\', '`'];

/// The most digits of a number with zeros in front.
const WIDTH: usize = 20;

/// A text with braces or ranges in it.
pub(crate) struct Pieces<'t> {
    /// The text before the first of them, which stays.
    pub(crate) before: &'t str,
    /// The text after the last of them, which stays.
    pub(crate) after: &'t str,
    /// The pieces between, each of which may be left out.
    pub(crate) between: Vec<Piece<'t>>,
    /// All of the pieces may be left out at once.
    pub(crate) may_be_empty: bool,
}

/// A piece of a text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Piece<'t> {
    Text(&'t str),
    /// A number of a range, between these and with at least as many digits.
    Number {
        from: u64,
        to: u64,
        width: usize,
    },
    /// A letter of a range, between these.
    Letter {
        from: char,
        to: char,
    },
}

impl<'t> Pieces<'t> {
    /// None if a text has nothing to expand.
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

/// The place of the first brace or range that is closed again.
pub(crate) fn first_mark(text: &str) -> Option<usize> {
    let brace = text.find('{').filter(|at| text[*at..].contains('}'));
    let ranges = text.match_indices('[').map(|(at, _)| at);
    let is_range = |at: &usize| {
        let inner = &text[at + 1..];
        let end = inner.find([']', '[']).unwrap_or(0);
        range(Some('['), &inner[..end], &inner[end..]).is_some()
    };
    // Beyond a brace it does not matter.
    let range = ranges
        .take_while(|at| brace.is_none_or(|brace| *at < brace))
        .find(is_range);
    range.or(brace)
}

/// The text that a range such as `[1-10]`, `[a-z:2]` or `{1..3}` yields.
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
    // Shells count down, too.
    (first <= last || sign == "..").then(|| Piece::Letter {
        from: first.min(last),
        to: first.max(last),
    })
}

/// The digits of an end of a range as a number.
fn number(end: &str) -> Option<u64> {
    let digits = end.trim_start_matches('-');
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_told_from_other_brackets() {
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
