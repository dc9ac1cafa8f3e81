//! Readers of braces and ranges, for curl and bash. Each lists the expansions of a text.
//!
//! Both are exact, so that a listed text is judged like one that was written plainly. Each step is counted: a
//! text with too many steps or too many expansions is not listed.

use std::net::Ipv6Addr;

/// The most expansions of one text.
pub(crate) const LISTED: usize = 64;

/// The most bytes of all expansions of one text.
const LISTED_BYTES: usize = 16 * 1024;

/// The most characters that are read to list them.
const STEPS: usize = 64 * 1024;

/// The deepest nesting of braces.
const DEPTH: usize = 32;

/// The most beginnings of texts if the expansions are too many.
const STARTS: usize = 1_024;

/// The longest bound of a range or a sequence.
const END_BYTES: usize = 20;

/// Tests if a character ends the part of a text that is read.
pub(crate) type End = fn(char) -> bool;

/// The expansions that a reader lists.
#[derive(Debug, PartialEq)]
pub(crate) enum Listing {
    /// All of them; empty if the text expands to itself.
    Whole(Vec<String>),
    /// None: the program rejects such a text.
    Refused,
    /// They are too many. Each begins with one of these.
    TooMany(Vec<String>),
}

/// There are too many texts, or too many steps to list them.
#[derive(Debug)]
struct TooMany;

/// Texts to which characters are appended.
struct Texts {
    texts: Vec<String>,
    bytes: usize,
}

impl Texts {
    fn new() -> Self {
        Self {
            texts: vec![String::new()],
            bytes: 0,
        }
    }

    fn push(&mut self, c: char) -> Result<(), TooMany> {
        self.texts.iter_mut().for_each(|text| text.push(c));
        self.count(self.bytes + self.texts.len() * c.len_utf8())
    }

    /// Appends each of these to each text.
    fn multiply(&mut self, others: &[String]) -> Result<(), TooMany> {
        let count = self.texts.len().saturating_mul(others.len());
        if count > STARTS {
            return Err(TooMany);
        }
        let more: usize = others.iter().map(String::len).sum();
        let bytes = self.bytes * others.len() + more * self.texts.len();
        let texts = self.texts.iter();
        let each = texts.flat_map(|text| others.iter().map(move |other| format!("{text}{other}")));
        self.texts = each.collect();
        if count > LISTED {
            return Err(TooMany);
        }
        self.count(bytes)
    }

    fn count(&mut self, bytes: usize) -> Result<(), TooMany> {
        self.bytes = bytes;
        if bytes > LISTED_BYTES {
            return Err(TooMany);
        }
        Ok(())
    }
}

/// The addresses that curl opens for a text: `{a,b}` without nesting, `[a-z]`, `[1-10:2]`, and backslashes
/// before these characters. Spaces are ordinary characters. Reading stops at an end outside of these
/// constructs.
pub(crate) fn of_curl(text: &str, is_end: End) -> Listing {
    let mut found = Texts::new();
    let mut is_changed = false;
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let after = &rest[c.len_utf8()..];
        let next = match c {
            '\\' if after.starts_with(['{', '}', '[', ']']) => {
                is_changed = true;
                found
                    .push(char::from(after.as_bytes()[0]))
                    .map(|()| &after[1..])
            }
            '{' => {
                let Some((alternatives, after)) = set(after) else {
                    return Listing::Refused;
                };
                is_changed = true;
                found.multiply(&alternatives).map(|()| after)
            }
            '}' => return Listing::Refused,
            '[' if let Some((inner, after)) = bracket(after) => {
                is_changed = true;
                let numbers = range(inner).ok_or(TooMany);
                numbers
                    .and_then(|numbers| found.multiply(&numbers))
                    .map(|()| after)
            }
            c if is_end(c) => break,
            c => found.push(c).map(|()| after),
        };
        match next {
            Ok(after) => rest = after,
            Err(TooMany) => return Listing::TooMany(found.texts),
        }
    }
    Listing::Whole(if is_changed { found.texts } else { Vec::new() })
}

/// The alternatives of a set of curl, and the text after it; `None` if curl rejects it.
fn set(text: &str) -> Option<(Vec<String>, &str)> {
    let mut alternatives = vec![String::new()];
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        let last = alternatives.last_mut()?;
        match c {
            '}' => return Some((alternatives, &text[at + 1..])),
            ',' => alternatives.push(String::new()),
            '{' | '[' | ']' => return None,
            '\\' => last.push(chars.next().map_or('\\', |(_, c)| c)),
            c => last.push(c),
        }
    }
    None
}

/// A range in brackets, and the text after it. The brackets of `[::1]` are not a range.
fn bracket(text: &str) -> Option<(&str, &str)> {
    let (inner, after) = text.split_at(text.find([']', '[', '{', '}'])?);
    let after = after.strip_prefix(']')?;
    is_range(inner).then_some((inner, after))
}

/// Tests if brackets are a range. Those of `[::1]` are not.
pub(crate) fn is_range(inner: &str) -> bool {
    let address = inner.split('%').next().unwrap_or_default();
    inner.contains('-') && address.parse::<Ipv6Addr>().is_err()
}

/// The words that bash makes of the first word of a text: nested braces, sequences such as `{1..3}` and
/// `{a..e..2}`, with quotes and backslashes processed and removed. Reading stops at an end outside of these
/// constructs.
pub(crate) fn of_bash(text: &str, is_end: End) -> Listing {
    let mut reader = Bash { steps: 0 };
    let chars: Vec<char> = text.chars().take(STEPS + 1).collect();
    let marked = marked(&chars);
    let end = marked
        .iter()
        .position(|c| !c.is_quoted && c.c.is_whitespace());
    let word = &marked[..end.unwrap_or(marked.len())];
    let mut words = Texts::new();
    match reader.add_words(&mut words, word, is_end, 0) {
        Ok(()) if is_same(&words.texts, text) => Listing::Whole(Vec::new()),
        Ok(()) => Listing::Whole(words.texts),
        Err(TooMany) => Listing::TooMany(words.texts),
    }
}

/// Tests if the text expands to itself: its only word is its own beginning.
fn is_same(words: &[String], text: &str) -> bool {
    let [only] = words else {
        return false;
    };
    let rest = text.strip_prefix(&**only);
    rest.is_some_and(|rest| !rest.starts_with(['\\', '"', '\'']))
}

/// A character; `is_quoted` if it is taken literally.
#[derive(Clone, Copy)]
struct Char {
    c: char,
    is_quoted: bool,
}

/// The characters that remain when quotes and backslashes are removed.
fn marked(text: &[char]) -> Vec<Char> {
    let mut found = Vec::with_capacity(text.len());
    let last = |quote: char| text.iter().rposition(|c| *c == quote).unwrap_or_default();
    let ends = [last('"'), last('\'')];
    let mut quote = None;
    let mut is_escaped = false;
    for (at, &c) in text.iter().enumerate() {
        let is_quoted = is_escaped || quote.is_some();
        let ends_at = if c == '"' { ends[0] } else { ends[1] };
        let opens_quote = || quote.is_none() && matches!(text.get(at + 1), Some('"' | '\''));
        match c {
            '$' if !is_escaped && opens_quote() => {}
            _ if is_escaped => {
                is_escaped = false;
                found.push(Char { c, is_quoted });
            }
            '\\' if quote != Some('\'') => is_escaped = true,
            c if quote == Some(c) => quote = None,
            // An unclosed quote was cut off with the text around it.
            '"' | '\'' if quote.is_none() => quote = (at < ends_at).then_some(c),
            c => found.push(Char { c, is_quoted }),
        }
    }
    found
}

struct Bash {
    /// The number of characters read.
    steps: usize,
}

impl Bash {
    /// Appends the words that a part of a word expands to.
    fn add_words(
        &mut self,
        found: &mut Texts,
        word: &[Char],
        is_end: End,
        depth: usize,
    ) -> Result<(), TooMany> {
        if depth > DEPTH {
            return Err(TooMany);
        }
        let mut at = 0;
        while let Some(next) = word.get(at) {
            self.step()?;
            let is_variable = at > 0 && word[at - 1].c == '$' && !word[at - 1].is_quoted;
            if next.c == '{' && !next.is_quoted && !is_variable {
                let inner = &word[at + 1..];
                if let Some((end, commas)) = self.group(inner)? {
                    let alternatives = self.alternatives(&inner[..end], &commas, depth)?;
                    found.multiply(&alternatives)?;
                    at += end + 2;
                    continue;
                }
            }
            if is_end(next.c) {
                break;
            }
            found.push(next.c)?;
            at += 1;
        }
        Ok(())
    }

    fn step(&mut self) -> Result<(), TooMany> {
        self.steps += 1;
        if self.steps > STEPS {
            Err(TooMany)
        } else {
            Ok(())
        }
    }

    /// The end of a group whose brace was opened, and its commas; `None` if it is not a group. Without a
    /// comma, braces enclose a sequence or nothing.
    fn group(&mut self, inner: &[Char]) -> Result<Option<(usize, Vec<usize>)>, TooMany> {
        let mut commas = Vec::new();
        let mut depth = 0_usize;
        for (at, next) in inner.iter().enumerate() {
            self.step()?;
            match next.c {
                _ if next.is_quoted => {}
                '{' => depth += 1,
                '}' if depth > 0 => depth -= 1,
                '}' if !commas.is_empty() || sequence(&inner[..at]).is_some() => {
                    return Ok(Some((at, commas)));
                }
                ',' if depth == 0 => commas.push(at),
                _ => {}
            }
        }
        Ok(None)
    }

    fn alternatives(
        &mut self,
        inner: &[Char],
        commas: &[usize],
        depth: usize,
    ) -> Result<Vec<String>, TooMany> {
        if commas.is_empty() {
            return sequence(inner).unwrap_or(Err(TooMany));
        }
        let mut found = Vec::new();
        let mut begin = 0;
        for end in commas.iter().copied().chain([inner.len()]) {
            let mut words = Texts::new();
            self.add_words(&mut words, &inner[begin..end], |_| false, depth + 1)?;
            found.extend(words.texts);
            if found.len() > STARTS {
                return Err(TooMany);
            }
            begin = end + 1;
        }
        Ok(found)
    }
}

/// The texts of a sequence; `None` if it is not a sequence.
fn sequence(inner: &[Char]) -> Option<Result<Vec<String>, TooMany>> {
    if inner.len() > 3 * END_BYTES || inner.iter().any(|c| c.is_quoted) {
        return None;
    }
    let text: String = inner.iter().map(|c| c.c).collect();
    let mut parts = text.split("..");
    let (from, to) = (parts.next()?, parts.next()?);
    let step = parts.next().map_or(Ok(1), str::parse::<i64>).ok()?;
    if parts.next().is_some() {
        return None;
    }
    if let (Ok(first), Ok(last)) = (from.parse::<i64>(), to.parse::<i64>()) {
        let is_padded = |end: &str| end.trim_start_matches('-').starts_with('0') && end.len() > 1;
        let is_padded = is_padded(from) || is_padded(to);
        let width = if is_padded {
            from.len().max(to.len())
        } else {
            0
        };
        return Some(between(first, last, step).map(|numbers| {
            numbers
                .iter()
                .map(|number| format!("{number:0width$}"))
                .collect()
        }));
    }
    let (first, last) = (from.parse::<char>().ok()?, to.parse::<char>().ok()?);
    if !(first.is_ascii_alphabetic() && last.is_ascii_alphabetic()) {
        return None;
    }
    let letters = between(
        i64::from(u32::from(first)),
        i64::from(u32::from(last)),
        step,
    );
    let letter = |code: &i64| {
        u32::try_from(*code)
            .ok()
            .and_then(char::from_u32)
            .map(String::from)
    };
    Some(letters.map(|letters| letters.iter().filter_map(letter).collect()))
}

/// The numbers from one to another, counting up or down.
fn between(first: i64, last: i64, step: i64) -> Result<Vec<i64>, TooMany> {
    let step = usize::try_from(step.unsigned_abs()).map_err(|_| TooMany)?;
    let step = step.max(1);
    let (low, high) = (first.min(last), first.max(last));
    let count = high.abs_diff(low) / step as u64;
    if count >= LISTED as u64 {
        return Err(TooMany);
    }
    Ok(if first <= last {
        (low..=high).step_by(step).collect()
    } else {
        (low..=high).rev().step_by(step).collect()
    })
}

/// The texts of a range such as `a-f`, `1-10` and `0-8:2`; `None` if they are too many.
pub(crate) fn range(inner: &str) -> Option<Vec<String>> {
    let (ends, _) = inner.split_once(':').unwrap_or((inner, ""));
    let Some((first, last)) = ends.split_once('-') else {
        return Some(vec![ends.to_owned()]);
    };
    let (first, last) = (first.trim(), last.trim());
    // Leading zeros are kept.
    let width = if first.starts_with('0') {
        first.len()
    } else {
        0
    };
    let is_number = |end: &str| !end.is_empty() && end.bytes().all(|byte| byte.is_ascii_digit());
    if is_number(first) && is_number(last) {
        let (from, to) = (first.parse::<u64>().ok()?, last.parse::<u64>().ok()?);
        // Some programs count down.
        let (from, to) = (from.min(to), from.max(to));
        let is_short = to - from < LISTED as u64 && width <= END_BYTES;
        return is_short.then(|| (from..=to).map(|n| format!("{n:0width$}")).collect());
    }
    match (first.parse::<char>(), last.parse::<char>()) {
        (Ok(from), Ok(to)) => {
            let letters = from.min(to)..=from.max(to);
            let letters: Vec<String> = letters.take(LISTED + 1).map(String::from).collect();
            (letters.len() <= LISTED).then_some(letters)
        }
        _ => Some(vec![first.to_owned(), last.to_owned()]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_lists(reader: fn(&str, End) -> Listing, text: &str, expected: &[&str]) {
        let expected = expected.iter().map(|text| (*text).to_owned()).collect();
        assert_eq!(reader(text, |_| false), Listing::Whole(expected), "{text}");
    }

    #[test]
    fn expansions_match_those_of_curl() {
        for (text, expected) in [
            ("a{b,c}d", &["abd", "acd"][..]),
            ("{a b,c}", &["a b", "c"]),
            (r"{x\},y}", &["x}", "y"]),
            (r"{x\,y,z}", &["x,y", "z"]),
            (r"\{a\}", &["{a}"]),
            ("{a}{,b}", &["a", "ab"]),
            ("[a-c]", &["a", "b", "c"]),
            ("x[08-10]", &["x08", "x09", "x10"]),
            ("[::1]/{a}", &["[::1]/a"]),
            ("a", &[]),
            (r"a\b", &[]),
        ] {
            assert_lists(of_curl, text, expected);
        }
        for text in ["{a,{b,c}}", "{a},b}", "{a", "a}"] {
            assert_eq!(of_curl(text, |_| false), Listing::Refused, "{text}");
        }
        for text in ["[a-z][a-z]", "[1-100]", "[1-99999999999999999999]"] {
            assert!(
                matches!(of_curl(text, |_| false), Listing::TooMany(_)),
                "{text}"
            );
        }
    }

    #[test]
    fn expansions_match_those_of_bash() {
        for (text, expected) in [
            ("a{b,c}d", &["abd", "acd"][..]),
            ("a{b,{c,d}}e", &["abe", "ace", "ade"]),
            (r"{x\},y}", &["x}", "y"]),
            ("{'a b',c} d", &["a b", "c"]),
            ("{\"}\",c}", &["}", "c"]),
            ("{a},b}c", &["a}c", "bc"]),
            ("{{a,b}", &["{a", "{b"]),
            ("{{a,b}}", &["{a}", "{b}"]),
            ("{1..3}", &["1", "2", "3"]),
            ("{3..1}", &["3", "2", "1"]),
            ("{-1..1}", &["-1", "0", "1"]),
            ("{01..3..2}", &["01", "03"]),
            ("{a..e..2}", &["a", "c", "e"]),
            ("{a b,c}", &[]),
            ("{a}", &[]),
            ("${a,b}", &[]),
            ("{a,b", &[]),
            ("\"{a,b}\"", &["{a,b}"]),
            ("a$'b'\\c d", &["abc"]),
        ] {
            assert_lists(of_bash, text, expected);
        }
        let deep = format!("{}a,b{}", "{".repeat(5_000), "}".repeat(5_000));
        for text in [
            "{1..100}",
            "{0..9223372036854775807}",
            &*"{a,b}".repeat(7),
            &deep,
        ] {
            assert!(
                matches!(of_bash(text, |_| false), Listing::TooMany(_)),
                "{text}"
            );
        }
    }
}
