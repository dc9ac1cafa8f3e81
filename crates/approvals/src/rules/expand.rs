//! Texts that a shell or curl expands: braces, brackets, wildcards, groups and variables.

use std::net::Ipv6Addr;

use serde::de::IgnoredAny;

use super::pieces::first_mark;
use super::spelling::Doubt;

/// The longest text whose expansions are listed.
const LISTED_BYTES: usize = 256;

/// The most expansions of one text.
const LISTED: usize = 64;

/// The most steps to list them.
const STEPS: usize = 1_024;

/// Characters that an expansion begins with.
const MARKS: [char; 6] = ['{', '[', '*', '?', '(', '$'];

/// The names that a part of a path may have so far, of those that `..` begins with.
#[derive(Clone, Copy, Default)]
struct Names(u8);

impl Names {
    /// The name has no characters yet.
    const EMPTY: Self = Self(1);
    /// The name is `.`.
    const DOT: Self = Self(2);
    /// The name is `..`.
    const DOTS: Self = Self(4);

    fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    fn only(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Each name with a dot behind it.
    fn dotted(self) -> Self {
        Self(self.0 << 1 & (Self::DOT.0 | Self::DOTS.0))
    }

    /// Each name with a dot that a wildcard matches. No wildcard matches the first dot of a name.
    fn dotted_by_wildcard(self) -> Self {
        self.only(Self::DOT).dotted()
    }

    /// Each name with any text behind it.
    fn starred(self) -> Self {
        let named = self.only(Self::DOT.with(Self::DOTS));
        named.with(named.dotted())
    }
}

/// The braces, or the parentheses, so far.
///
/// Which of them belong together depends on who reads the text: quotes and backslashes make characters of them. So the
/// next alternative may start where any of them opened, and go on where any alternative ended.
#[derive(Default)]
struct Groups {
    is_open: bool,
    /// The names before each.
    before: Names,
    /// The names at the end of all alternatives.
    after: Names,
}

impl Groups {
    fn open(&mut self, names: Names) -> Names {
        self.is_open = true;
        self.before = self.before.with(names);
        names
    }

    /// Ends an alternative, and returns the names that the next one starts from. Outside, its sign is a character of a
    /// name.
    fn next(&mut self, names: Names) -> Names {
        if !self.is_open {
            return Names::default();
        }
        self.after = self.after.with(names);
        self.before
    }

    fn close(&mut self, names: Names) -> Names {
        if self.is_open {
            self.after = self.after.with(names);
        }
        self.after.with(names)
    }
}

/// An open bracket.
struct Class {
    /// The names before it.
    before: Names,
    is_negated: bool,
    has_dot: bool,
    /// It has a dot in a range, or a named class.
    may_have_dot: bool,
    /// Its last character so far.
    last: Option<u8>,
}

impl Class {
    fn new(before: Names) -> Self {
        Self {
            before,
            is_negated: false,
            has_dot: false,
            may_have_dot: false,
            last: None,
        }
    }

    fn add(&mut self, byte: u8, next: Option<u8>) {
        if self.last.is_none() && !self.is_negated && matches!(byte, b'!' | b'^') {
            self.is_negated = true;
            return;
        }
        self.has_dot |= byte == b'.';
        let is_range = byte == b'-'
            && self.last.is_some_and(|start| start <= b'.')
            && next.is_some_and(|end| end >= b'.');
        self.may_have_dot |= is_range || byte == b'[';
        self.last = Some(byte);
    }

    /// The names behind it.
    fn after(&self) -> Names {
        if self.has_dot && !self.is_negated {
            self.before.dotted()
        } else if self.is_negated || self.may_have_dot {
            self.before.dotted_by_wildcard()
        } else {
            Names::default()
        }
    }
}

/// True if some expansion of a path or an address has a part `..`.
///
/// Marks also stand for nothing, since programs differ in the ones that they expand. A text without marks
/// is left to its other readings.
pub(crate) fn may_climb(text: &str) -> bool {
    if !text.contains('.') || !text.contains(MARKS) {
        return false;
    }
    // A question mark is a wildcard, or begins a query.
    let path = text.split(['?', '#']).next().unwrap_or_default();
    climbs(text.as_bytes()) || climbs(path.as_bytes())
}

fn climbs(text: &[u8]) -> bool {
    let mut names = Names::EMPTY;
    let mut braces = Groups::default();
    let mut parentheses = Groups::default();
    let mut class: Option<Class> = None;
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        at += 1;
        let next = text.get(at).copied();
        if matches!(byte, b'/' | b';') && names.has(Names::DOTS) {
            return true;
        }
        let closed = class.take_if(|class| byte == b'/' || (byte == b']' && class.last.is_some()));
        if let Some(class) = &mut class {
            class.add(byte, next);
        }
        names = match byte {
            b'/' => Names::EMPTY,
            b'.' => names.dotted(),
            b'[' => {
                class.get_or_insert_with(|| Class::new(names));
                names
            }
            b']' => closed.map_or(names, |class| names.with(class.after())),
            b'{' => braces.open(names),
            b'(' => parentheses.open(names),
            b',' => braces.next(names),
            b'|' => parentheses.next(names),
            b'}' => braces.close(names),
            // It may repeat, or be left out.
            b')' if parentheses.is_open => {
                let found = parentheses.close(names);
                found
                    .with(found.dotted_by_wildcard())
                    .with(parentheses.before)
            }
            b'*' | b'?' | b'+' | b'@' if next == Some(b'(') => names,
            b'!' if next == Some(b'(') => names.with(names.starred()),
            b'*' => names.starred(),
            b'?' => names.dotted_by_wildcard(),
            b'$' => {
                at += variable(&text[at..]);
                names
            }
            b' ' | b'\t' if !braces.is_open && !parentheses.is_open => {
                names.only(Names::EMPTY.with(Names::DOTS))
            }
            _ => Names::default(),
        };
    }
    names.has(Names::DOTS)
}

/// The length of the name of a variable.
fn variable(text: &[u8]) -> usize {
    let is_name = |byte: &&u8| byte.is_ascii_alphanumeric() || **byte == b'_';
    let is_sign = matches!(text.first(), Some(b'@' | b'*' | b'#' | b'!' | b'-'));
    usize::from(is_sign).max(text.iter().take_while(is_name).count())
}

/// The texts that braces and ranges stand for, of which each may spell a host or a path in its own way.
#[derive(Default)]
pub(crate) struct Expansions {
    pub(crate) listed: Vec<String>,
    /// There are others that are not listed.
    pub(crate) doubt: Doubt,
    /// Each of those begins with one of these. [`ANY_HOST`] stands for a host that may be any.
    pub(crate) starts: Vec<String>,
}

/// The beginning of an address of which nothing is known.
pub(crate) const ANY_HOST: &str = "://";

impl Expansions {
    pub(crate) fn of(text: &str) -> Self {
        let Some(first) = first_mark(text) else {
            return Self::default();
        };
        // No host goes on behind a blank, and a query leads nowhere else.
        let text = &text[..outer_end(text, char::is_whitespace)];
        let head = &text[..outer_end(text, |c| matches!(c, '?' | '#'))];
        let has_blank = text.contains(char::is_whitespace);
        if is_data(text) || (has_blank && !is_odd(text)) {
            return Self::default();
        }
        // To curl, a backslash takes a character for what it is.
        let bare = text.replace('\\', "");
        let listed = [text, head].iter().find_map(|text| listed(text));
        let listed = listed.filter(|_| !has_blank);
        let others = listed.as_ref().and_then(|_| {
            let is_escaped = bare.len() < text.len();
            if is_escaped {
                self::listed(&bare)
            } else {
                Some(Vec::new())
            }
        });
        let is_listed = others.is_some() && !is_odd(text);
        let listed = listed.into_iter().chain(others).flatten().collect();
        if is_listed {
            return Self {
                listed,
                ..Self::default()
            };
        }
        let (doubt, host) = doubt(text, first);
        let starts = first_parts(text).unwrap_or_else(|| vec![start(text, first).to_owned()]);
        Self {
            listed,
            doubt,
            starts: starts.into_iter().chain(host).collect(),
        }
    }
}

/// The place of the first such character that is in no braces or brackets.
fn outer_end(text: &str, is_end: impl Fn(char) -> bool) -> usize {
    let mut depth = 0_usize;
    let end = text.char_indices().find(|(_, c)| {
        match c {
            '{' | '[' => depth += 1,
            '}' | ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && is_end(*c)
    });
    end.map_or(text.len(), |(at, _)| at)
}

/// Tests if the braces of an address can be read in several ways.
fn is_odd(text: &str) -> bool {
    let is_balanced = text.matches('{').count() == text.matches('}').count();
    let is_put_together = ["}:", "]:", ",http", "{http", "}/", "]/", "}@"];
    (!is_balanced || text.contains(['\\', '"', '\'']) || text.contains(char::is_whitespace))
        && is_put_together.iter().any(|sign| text.contains(sign))
}

/// Tests if a text has nothing that leads to a place, or is data that happens to have an address in it.
fn is_data(text: &str) -> bool {
    let leads = text.contains(['/', ':', '.', '@', '~', '$']);
    let is_number = text.starts_with(|c: char| c.is_ascii_digit());
    !(leads || is_number) || serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// The first names of a relative path, if there are few.
fn first_parts(text: &str) -> Option<Vec<String>> {
    let (first, _) = text.split_once('/')?;
    let is_name = !first.is_empty() && !first.contains([':', '@', '%', '\\', '"', '\'']);
    let is_whole = first.matches('{').count() == first.matches('}').count();
    let names = listed(first).filter(|_| is_name && is_whole)?;
    let names = names
        .iter()
        .map(|name| format!("{}/", name.trim_end_matches('.')));
    Some(names.collect()).filter(|names: &Vec<String>| !names.is_empty())
}

/// The beginning of a text up to its first mark, as far as it tells where an address or a path leads.
fn start(text: &str, first: usize) -> &str {
    let start = &text[..first];
    let said = start.find("://").map(|at| at + "://".len());
    let begin = said.unwrap_or_default();
    let host_end = text[begin..].find(['/', '?', '#']);
    let is_in_host = host_end.is_none_or(|end| first < begin + end);
    if is_in_host && text.contains('@') {
        // It may be the name of a user.
        return &text[..begin];
    }
    if is_in_host && let Some(port) = start[begin..].find(':') {
        return &start[..begin + port];
    }
    // A percent sign takes two more characters.
    let percent = start.rfind('%').filter(|at| start.len() - at < 3);
    &start[..percent.unwrap_or(start.len())]
}

/// The doubt about a text of which not every expansion can be looked at: a number may be a host in a notation of its own.
fn doubt(text: &str, first: usize) -> (Doubt, Option<String>) {
    let is_scheme = |c: char| c.is_ascii_alphanumeric() || "+-.{}[],\\ ".contains(c);
    let said = text
        .find("://")
        .filter(|at| text[..*at].chars().all(is_scheme));
    let begin = said.map_or(0, |at| at + "://".len());
    let end = text[begin..].find(['/', '?', '#']);
    let end = end.map_or(text.len(), |end| begin + end);
    let written = text.get(begin..end).unwrap_or_default();
    let host = without_ranges(written);
    let is_number = |c: char| c.is_ascii_hexdigit() || "x.:{},".contains(c);
    let has_digit = host.contains(|c: char| c.is_ascii_digit());
    if first >= end || !has_digit || is_usual(written) {
        return (Doubt::None, None);
    }
    match said {
        Some(_) => (Doubt::All, None),
        None if text.contains(['/', '@']) || host.chars().all(is_number) => {
            (Doubt::None, Some(ANY_HOST.to_owned()))
        }
        None => (Doubt::None, None),
    }
}

/// Tests if a host is four numbers in the usual notation, of which some may be ranges.
fn is_usual(host: &str) -> bool {
    let port = host.rfind(':').filter(|at| !host[*at..].contains(']'));
    let host = &host[..port.unwrap_or(host.len())];
    let is_number = |text: &str| {
        let is_octal = text.len() > 1 && text.starts_with('0');
        !text.is_empty() && !is_octal && text.bytes().all(|byte| byte.is_ascii_digit())
    };
    let is_part = |part: &str| {
        let range = part
            .strip_prefix('[')
            .and_then(|part| part.strip_suffix(']'));
        match range.map(|range| range.split_once('-')) {
            Some(Some((from, to))) => is_number(from.trim()) && is_number(to.trim()),
            Some(None) => false,
            None => is_number(part),
        }
    };
    host.split('.').count() == 4 && host.split('.').all(is_part)
}

/// Tests if braces or ranges may change the host of an address, or what its percent signs stand for.
pub(crate) fn may_lead_elsewhere(text: &str) -> bool {
    first_mark(text).is_some_and(|first| {
        let begin = text.find("://").map_or(0, |at| at + "://".len());
        let end = text[begin..].find(['/', '?', '#']);
        let end = end.map_or(text.len(), |end| begin + end);
        (begin > 0 && first < end) || text.contains(['%', '\\'])
    })
}

fn without_ranges(text: &str) -> String {
    let mut parts = text.split('[');
    let mut found = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once(']') {
            Some((inner, rest)) if is_range(inner) => found.push_str(rest),
            _ => found.push_str(part),
        }
    }
    found
}

/// Every expansion of a text; none if they are too many.
fn listed(text: &str) -> Option<Vec<String>> {
    if text.len() > LISTED_BYTES {
        return None;
    }
    let mut found = Vec::new();
    let mut steps = 0;
    // Each with the end of the part in which marks are still to be looked for.
    let mut waiting = vec![(text.to_owned(), text.len())];
    while let Some((text, end)) = waiting.pop() {
        steps += 1;
        if found.len() + waiting.len() >= LISTED || steps > STEPS {
            return None;
        }
        let Some(open) = text[..end].rfind(['{', '[']) else {
            found.push(text);
            continue;
        };
        let (before, inner) = (&text[..open], &text[open + 1..]);
        let parts = if text[open..].starts_with('{') {
            inner.split_once('}').map(|(inner, rest)| {
                if is_sequence(inner) {
                    // As bash has it.
                    let inner = inner.replacen("..", "-", 1).replace("..", ":");
                    return range(&inner).map(|parts| (parts, rest));
                }
                let parts = inner.split(',').map(str::to_owned);
                Some((parts.collect::<Vec<_>>(), rest))
            })
        } else {
            inner
                .split_once(']')
                .filter(|(inner, _)| is_range(inner))
                .map(|(inner, rest)| range(inner).map(|parts| (parts, rest)))
        };
        match parts {
            Some(None) => return None,
            Some(Some((parts, rest))) => {
                let parts = parts.iter().map(|part| format!("{before}{part}{rest}"));
                waiting.extend(parts.map(|text| (text, open)));
            }
            None => waiting.push((text, open)),
        }
    }
    found.retain(|found| found != text);
    Some(found)
}

/// Tests if braces are a sequence such as `1..3` or `a..e..2`.
fn is_sequence(inner: &str) -> bool {
    let is_end =
        |end: &str| !end.is_empty() && end.chars().all(|c| c.is_alphanumeric() || c == '-');
    inner.contains("..") && inner.split("..").all(is_end)
}

/// Tests if brackets are a range. Those of `[::1]` are none.
fn is_range(inner: &str) -> bool {
    let address = inner.split('%').next().unwrap_or_default();
    inner.contains('-') && address.parse::<Ipv6Addr>().is_err()
}

/// The texts of a range such as `a-f`, `1-10` and `0-8:2`. None if they are too many.
fn range(inner: &str) -> Option<Vec<String>> {
    let (ends, _) = inner.split_once(':').unwrap_or((inner, ""));
    let Some((first, last)) = ends.split_once('-') else {
        return Some(vec![ends.to_owned()]);
    };
    let (first, last) = (first.trim(), last.trim());
    // Zeros in front stay.
    let width = if first.starts_with('0') {
        first.len()
    } else {
        0
    };
    let is_number = |end: &str| !end.is_empty() && end.bytes().all(|byte| byte.is_ascii_digit());
    if is_number(first) && is_number(last) {
        let (from, to) = (first.parse::<u64>().ok()?, last.parse::<u64>().ok()?);
        // Some count down.
        let (from, to) = (from.min(to), from.max(to));
        let is_short = to - from < LISTED as u64;
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
