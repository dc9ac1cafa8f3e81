//! Texts that a shell or curl expands: braces, brackets, wildcards, groups and variables.

use std::collections::BTreeSet;

use super::decode::json;
use super::pieces::first_mark;
use super::readers::{End, LISTED, Listing, is_range, of_bash, of_curl};
use super::reading::Doubt;

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
    pub(crate) is_cut: bool,
    /// The doubt about those.
    pub(crate) doubt: Doubt,
    /// Each of those begins with one of these. [`ANY_HOST`] stands for a host that may be any.
    pub(crate) starts: Vec<String>,
}

/// The beginning of an address of which nothing is known.
pub(crate) const ANY_HOST: &str = "://";

impl Expansions {
    pub(crate) fn of(text: &str) -> Self {
        let quotes = || text.find(['"', '\'', '\\']).filter(|_| leads(text));
        let Some(first) = first_mark(text).or_else(quotes) else {
            return Self::default();
        };
        if json(text).is_some() {
            return Self::default();
        }
        let (mut listed, mut starts) = (BTreeSet::new(), Vec::new());
        let mut cut = Vec::new();
        let mut add = |listing, text: &str| match listing {
            Listing::Whole(texts) => listed.extend(texts),
            Listing::Refused => {}
            Listing::TooMany(found) => {
                cut.push(text.to_owned());
                starts.extend(found);
            }
        };
        add(by_curl(text), text);
        let words = by_bash(text);
        // A shell hands its words to curl.
        if let Listing::Whole(words) = &words {
            for word in words {
                add(by_curl(word), word);
            }
        }
        add(words, text);
        if listed.len() > LISTED {
            cut.push(text.to_owned());
            starts.push(text[..first].to_owned());
        }
        let mut found = Self {
            listed: listed.into_iter().take(LISTED).collect(),
            is_cut: !cut.is_empty(),
            ..Self::default()
        };
        if leads(text) {
            found.starts = starts.iter().map(|start| told(start, text)).collect();
            for text in &cut {
                found.doubt_about(text);
            }
        }
        found
    }

    /// Adds the doubt about a text whose expansions are not all listed.
    fn doubt_about(&mut self, text: &str) {
        let is_prose = text.contains(char::is_whitespace) && !is_put_together(text);
        if let Some(first) = first_mark(text).filter(|_| !is_prose) {
            let (doubt, host) = doubt(text, first);
            self.doubt = self.doubt.max(doubt);
            self.starts.extend(host);
        }
    }
}

/// The texts of curl: of all of a text, or up to a blank, behind which no host goes on, or up to its query, which leads
/// nowhere else.
fn by_curl(text: &str) -> Listing {
    // No address begins with dots.
    let is_address = |text: &String| !text.trim_start().starts_with("..");
    let found = first_whole([|_| false, char::is_whitespace, is_query], |is_end| {
        of_curl(text, is_end)
    });
    match found {
        Listing::Whole(texts) => Listing::Whole(texts.into_iter().filter(is_address).collect()),
        other => other,
    }
}

/// The words of bash, likewise.
fn by_bash(text: &str) -> Listing {
    first_whole([|_| false, is_query], |is_end| of_bash(text, is_end))
}

fn is_query(c: char) -> bool {
    matches!(c, '?' | '#')
}

/// The first listing that is whole, or else the last one that is not refused.
fn first_whole<const N: usize>(ends: [End; N], list: impl Fn(End) -> Listing) -> Listing {
    let mut found = Listing::Refused;
    for is_end in ends {
        match list(is_end) {
            Listing::Refused => {}
            whole @ Listing::Whole(_) => return whole,
            cut @ Listing::TooMany(_) => found = cut,
        }
    }
    found
}

/// Tests if braces seem to be a part of an address.
fn is_put_together(text: &str) -> bool {
    let signs = ["}:", "]:", ",http", "{http", "}/", "]/", "}@"];
    signs.iter().any(|sign| text.contains(sign))
}

/// Tests if a text has something that leads to a place.
fn leads(text: &str) -> bool {
    text.contains(['/', ':', '.', '@', '~', '$']) || text.starts_with(|c: char| c.is_ascii_digit())
}

/// The part of a beginning that tells where an address or a path leads.
fn told(start: &str, text: &str) -> String {
    let said = start.find("://").map(|at| at + "://".len());
    let begin = said.unwrap_or_default();
    let host_end = start[begin..].find(['/', '?', '#']);
    if host_end.is_none() && text.contains('@') {
        // It may be the name of a user.
        return start[..begin].to_owned();
    }
    if host_end.is_none()
        && let Some(port) = start[begin..].find(':')
    {
        return start[..begin + port].to_owned();
    }
    // A path may be spelled otherwise from there on.
    let path = begin + host_end.unwrap_or_default();
    let odd = ["//", "/."]
        .iter()
        .filter_map(|sign| start[path..].find(sign))
        .min();
    let start = &start[..odd.map_or(start.len(), |at| path + at + 1)];
    // A percent sign takes two more characters.
    let percent = start.rfind('%').filter(|at| start.len() - at < 3);
    start[..percent.unwrap_or(start.len())].to_owned()
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

/// Tests if braces or ranges may change the host of an address, or if they or quotes may change what its percent signs
/// stand for.
pub(crate) fn may_lead_elsewhere(text: &str) -> bool {
    let is_quoted = text.contains('%') && text.contains(['"', '\'', '\\']);
    is_quoted
        || first_mark(text).is_some_and(|first| {
            let begin = text.find("://").map_or(0, |at| at + "://".len());
            let end = text[begin..].find(['/', '?', '#']);
            let end = end.map_or(text.len(), |end| begin + end);
            (begin > 0 && first < end) || text.contains(['%', '\\'])
        })
}

/// A text without the ranges of curl.
pub(crate) fn without_ranges(text: &str) -> String {
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
