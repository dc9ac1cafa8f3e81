//! Texts that a shell or curl expands: braces, brackets, wildcards, groups and variables.

use std::net::Ipv6Addr;

/// The longest text whose expansions are listed.
const LISTED_BYTES: usize = 512;

/// The most expansions of one text.
const LISTED: usize = 256;

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

/// An open brace or parenthesis.
struct Group {
    /// The names before it.
    before: Names,
    /// The names at the end of its alternatives so far.
    after: Names,
}

impl Group {
    fn new(before: Names) -> Self {
        let after = Names::default();
        Self { before, after }
    }

    /// Ends an alternative, and returns the names that the next one starts from.
    fn next(&mut self, names: Names) -> Names {
        self.after = self.after.with(names);
        self.before
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
    let mut braces: Vec<Group> = Vec::new();
    let mut parentheses: Vec<Group> = Vec::new();
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
            b'{' => {
                braces.push(Group::new(names));
                names
            }
            b'(' => {
                parentheses.push(Group::new(names));
                names
            }
            b',' => next_in(&mut braces, names),
            b'|' => next_in(&mut parentheses, names),
            b'}' => braces.pop().map_or(names, |group| group.after.with(names)),
            // It may repeat, or be left out.
            b')' => parentheses.pop().map_or(names, |group| {
                let found = group.after.with(names);
                found.with(found.dotted_by_wildcard()).with(group.before)
            }),
            b'*' | b'?' | b'+' | b'@' if next == Some(b'(') => names,
            b'!' if next == Some(b'(') => names.with(names.starred()),
            b'*' => names.starred(),
            b'?' => names.dotted_by_wildcard(),
            b'$' => {
                at += variable(&text[at..]);
                names
            }
            b' ' | b'\t' if braces.is_empty() && parentheses.is_empty() => {
                names.only(Names::EMPTY.with(Names::DOTS))
            }
            _ => Names::default(),
        };
    }
    names.has(Names::DOTS)
}

/// The names that the next alternative of the innermost group starts from. Elsewhere its sign is a
/// character of a name.
fn next_in(groups: &mut [Group], names: Names) -> Names {
    let group = groups.last_mut();
    group.map_or(Names::default(), |group| group.next(names))
}

/// The length of the name of a variable.
fn variable(text: &[u8]) -> usize {
    let is_name = |byte: &&u8| byte.is_ascii_alphanumeric() || **byte == b'_';
    let is_sign = matches!(text.first(), Some(b'@' | b'*' | b'#' | b'!' | b'-'));
    usize::from(is_sign).max(text.iter().take_while(is_name).count())
}

/// The texts that curl and shells make of the braces and ranges of a text, if it has any. None if they are too many
/// to list, and may lead to any host.
pub(crate) fn expansions(text: &str) -> Option<Vec<String>> {
    // No host goes on behind a blank.
    let (head, tail) = text.split_at(text.find(char::is_whitespace).unwrap_or(text.len()));
    let Some(first) = head.find(['{', '[']) else {
        return Some(Vec::new());
    };
    if head.len() > LISTED_BYTES {
        return (first > host_end(head)).then(Vec::new);
    }
    let mut found = listed(head)?;
    // To curl, a backslash takes a character for what it is.
    if head.contains('\\') {
        found.extend(listed(&head.replace('\\', ""))?);
    }
    for text in &mut found {
        text.push_str(tail);
    }
    Some(found)
}

/// The end of the host that an address begins with, if it is one.
fn host_end(text: &str) -> usize {
    let (scheme, after) = text.split_once(':').unwrap_or(("", text));
    let is_scheme = scheme.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let after = if is_scheme { after } else { text };
    let after = after.trim_start_matches('/');
    let begin = text.len() - after.len();
    begin + after.find(['/', '?', '#']).unwrap_or(after.len())
}

/// Every expansion of a text; none if it has nothing to expand.
fn listed(text: &str) -> Option<Vec<String>> {
    let mut found = Vec::new();
    // Each with the end of the part in which marks are still to be looked for.
    let mut waiting = vec![(text.to_owned(), text.len())];
    while let Some((text, end)) = waiting.pop() {
        if found.len() + waiting.len() >= LISTED {
            return None;
        }
        let Some(open) = text[..end].rfind(['{', '[']) else {
            found.push(text);
            continue;
        };
        let (before, inner) = (&text[..open], &text[open + 1..]);
        let parts = if text[open..].starts_with('{') {
            inner.split_once('}').map(|(inner, rest)| {
                let parts = inner.split(',').map(str::to_owned);
                (parts.collect::<Vec<_>>(), rest)
            })
        } else {
            inner
                .split_once(']')
                .filter(|(inner, _)| is_range(inner))
                .map(|(inner, rest)| (range(inner), rest))
        };
        match parts {
            Some((parts, rest)) => {
                let parts = parts.iter().map(|part| format!("{before}{part}{rest}"));
                waiting.extend(parts.map(|text| (text, open)));
            }
            None => waiting.push((text, open)),
        }
    }
    found.retain(|found| found != text);
    Some(found)
}

/// Tests if brackets are a range. Those of `[::1]` are none.
fn is_range(inner: &str) -> bool {
    let address = inner.split('%').next().unwrap_or_default();
    inner.contains('-') && address.parse::<Ipv6Addr>().is_err()
}

/// The texts of a range such as `a-f`, `1-10` and `0-8:2`, up to one more than are listed.
fn range(inner: &str) -> Vec<String> {
    let (ends, _) = inner.split_once(':').unwrap_or((inner, ""));
    let Some((first, last)) = ends.split_once('-') else {
        return vec![ends.to_owned()];
    };
    // Zeros in front stay.
    let width = if first.starts_with('0') {
        first.len()
    } else {
        0
    };
    let numbers = first.parse::<u32>().ok().zip(last.parse::<u32>().ok());
    let letters = first.parse::<char>().ok().zip(last.parse::<char>().ok());
    match (numbers, letters) {
        (Some((from, to)), _) => (from..=to)
            .take(LISTED + 1)
            .map(|n| format!("{n:0width$}"))
            .collect(),
        (None, Some((from, to))) => (from..=to).take(LISTED + 1).map(String::from).collect(),
        (None, None) => vec![first.to_owned(), last.to_owned()],
    }
}
