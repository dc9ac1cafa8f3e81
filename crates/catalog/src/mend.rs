//! Mends definitions that clients would reject.
//!
//! A client that validates definitions (the official SDKs do) rejects a whole page for one
//! definition that violates the protocol, and with it the tools of every other server. So the views
//! that combine several servers show a mended definition in its place. The original stays in use
//! everywhere else: in the server's own view, the snapshot and the pins.

use std::collections::HashMap;

use switchboard_wire::Raw;

use crate::{Kind, schema::is_sure};

/// The treatment of a member.
enum Fix {
    Keep,
    Drop,
    Set(Raw),
}

/// A mended value replaces the original; `None` keeps it.
impl From<Option<Raw>> for Fix {
    fn from(mended: Option<Raw>) -> Self {
        mended.map_or(Self::Keep, Self::Set)
    }
}

impl Fix {
    fn keep_if(is_good: bool) -> Self {
        if is_good { Self::Keep } else { Self::Drop }
    }
}

/// Mends everything for which a client may reject the definition; `None` if there is nothing to
/// mend. Takes time linear in the length of the definition.
pub(crate) fn mend(kind: Kind, definition: &Raw) -> Option<Raw> {
    // A lone surrogate is rejected at every position, including member names.
    let whole = definition.whole_surrogates();
    let readable = finite_numbers(whole.as_ref().unwrap_or(definition)).or(whole);
    mend_members(kind, readable.as_ref().unwrap_or(definition)).or(readable)
}

/// Clamps every number that does not fit into a double: some readers parse such a number as
/// infinity, some reject it, and some hang if it is written out in thousands of digits.
fn finite_numbers(definition: &Raw) -> Option<Raw> {
    let json = definition.as_bytes();
    let mut mended = Vec::new();
    let (mut from, mut at) = (0, 0);
    while let Some(c) = json.get(at) {
        match c {
            b'"' => at = string_end(json, at + 1),
            b'-' | b'0'..=b'9' => {
                let is_part = |c: &u8| matches!(c, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E');
                let length = json[at..].iter().take_while(|c| is_part(c)).count();
                if is_infinite(&json[at..at + length]) {
                    let finite: &[u8] = if *c == b'-' { b"-1.7e308" } else { b"1.7e308" };
                    mended.extend_from_slice(&json[from..at]);
                    mended.extend_from_slice(finite);
                    from = at + length;
                }
                at += length;
            }
            _ => at += 1,
        }
    }
    if from == 0 {
        return None;
    }
    mended.extend_from_slice(&json[from..]);
    Raw::parse(mended).ok()
}

/// The end of the string whose first character is at `at`.
fn string_end(json: &[u8], mut at: usize) -> usize {
    while let Some(found) = memchr::memchr2(b'"', b'\\', json.get(at..).unwrap_or_default()) {
        match json[at + found] {
            b'"' => return at + found + 1,
            _ => at += found + 2,
        }
    }
    json.len()
}

fn is_infinite(number: &[u8]) -> bool {
    const LONGEST_FINITE: usize = 308;
    let may_be = number.len() > LONGEST_FINITE || memchr::memchr2(b'e', b'E', number).is_some();
    let value = || std::str::from_utf8(number).ok()?.parse::<f64>().ok();
    may_be && value().is_none_or(f64::is_infinite)
}

fn mend_members(kind: Kind, definition: &Raw) -> Option<Raw> {
    match kind {
        Kind::Tool => rebuild(definition, tool_member, &[("inputSchema", &any_object)]),
        Kind::Prompt => rebuild(definition, prompt_member, &[]),
        Kind::Resource | Kind::Template => {
            let named = || definition.member(kind.key_member());
            let name = || named().unwrap_or_else(|| Raw::string(""));
            let fix = |member: &str, value: &Raw| match member {
                "name" if !is_text(value) => Fix::Set(name()),
                _ => resource_member(member, value),
            };
            rebuild(definition, fix, &[("name", &name)])
        }
    }
}

fn tool_member(name: &str, value: &Raw) -> Fix {
    match name {
        "inputSchema" if value.is_object() => schema(value).into(),
        "inputSchema" => Fix::Set(any_object()),
        "outputSchema" => output_schema(value),
        "annotations" if value.is_object() => rebuild(value, hint, &[]).into(),
        "annotations" => Fix::Drop,
        "execution" => Fix::keep_if(is_execution(value)),
        _ => common_member(name, value),
    }
}

fn prompt_member(name: &str, value: &Raw) -> Fix {
    match name {
        "arguments" => prompt_arguments(value),
        _ => common_member(name, value),
    }
}

fn resource_member(name: &str, value: &Raw) -> Fix {
    match name {
        "mimeType" => Fix::keep_if(is_text(value)),
        "size" => Fix::keep_if(is_size(value)),
        "annotations" if value.is_object() => rebuild(value, resource_annotation, &[]).into(),
        "annotations" => Fix::Drop,
        _ => common_member(name, value),
    }
}

/// The members that definitions of all kinds have.
fn common_member(name: &str, value: &Raw) -> Fix {
    match name {
        "title" | "description" => Fix::keep_if(is_text(value)),
        "icons" => Fix::keep_if(are_icons(value)),
        "_meta" => Fix::keep_if(value.is_object()),
        _ => Fix::Keep,
    }
}

/// A schema that matches every object.
fn any_object() -> Raw {
    Raw::object([("type", object_type())])
}

fn object_type() -> Raw {
    Raw::string("object")
}

/// Mends a schema of arguments or structured results, which have to be objects.
fn schema(schema: &Raw) -> Option<Raw> {
    rebuild(schema, schema_member, &[("type", &object_type)])
}

fn schema_member(name: &str, value: &Raw) -> Fix {
    match name {
        "type" if !is_object_type(value) => Fix::Set(object_type()),
        "properties" if value.is_object() => rebuild(value, property, &[]).into(),
        "properties" => Fix::Drop,
        "required" => Fix::keep_if(are_all(value, is_text)),
        "$schema" => Fix::keep_if(is_text(value)),
        _ => Fix::Keep,
    }
}

/// Some clients do not support the schemas `true` and `false`.
fn property(_: &str, schema: &Raw) -> Fix {
    match schema.as_bytes() {
        [b'{', ..] => Fix::Keep,
        b"false" => Fix::Set(Raw::object([("not", Raw::empty_object())])),
        _ => Fix::Set(Raw::empty_object()),
    }
}

/// Drops a schema of results that are not objects, which is useless to a client that only supports
/// objects, and a schema that some client cannot compile.
fn output_schema(value: &Raw) -> Fix {
    let is_good = match value.member("type") {
        Some(types) => is_object_type(&types),
        None => value.member("properties").is_some_and(|of| of.is_object()),
    };
    if !is_good {
        return Fix::Drop;
    }
    let mended = schema(value);
    if !is_sure(mended.as_ref().unwrap_or(value)) {
        return Fix::Drop;
    }
    mended.into()
}

fn is_object_type(value: &Raw) -> bool {
    value.to_text().as_deref() == Some("object")
}

/// Drops annotations that cannot be read. They count as missing, so the worst is assumed.
fn hint(name: &str, value: &Raw) -> Fix {
    match name {
        "title" => Fix::keep_if(is_text(value)),
        "readOnlyHint" | "destructiveHint" | "idempotentHint" | "openWorldHint" => {
            Fix::keep_if(is_bool(value))
        }
        _ => Fix::Keep,
    }
}

fn is_execution(value: &Raw) -> bool {
    let is_known = |support: Raw| {
        let known = ["forbidden", "optional", "required"];
        support.to_text().is_some_and(|it| known.contains(&&*it))
    };
    value.is_object() && value.member("taskSupport").is_none_or(is_known)
}

fn prompt_arguments(value: &Raw) -> Fix {
    let Some(arguments) = value.elements() else {
        return Fix::Drop;
    };
    let mut changed = false;
    let is_named = |argument: &Raw| argument.member("name").is_some_and(|name| is_text(&name));
    let mended: Vec<_> = arguments
        .iter()
        .filter_map(|argument| {
            let mended = rebuild(argument, prompt_argument, &[]);
            changed |= mended.is_some() || !is_named(argument);
            is_named(argument).then(|| mended.unwrap_or_else(|| argument.clone()))
        })
        .collect();
    changed.then(|| Raw::array(mended)).into()
}

fn prompt_argument(name: &str, value: &Raw) -> Fix {
    match name {
        "title" | "description" => Fix::keep_if(is_text(value)),
        "required" => Fix::keep_if(is_bool(value)),
        _ => Fix::Keep,
    }
}

fn resource_annotation(name: &str, value: &Raw) -> Fix {
    Fix::keep_if(match name {
        "audience" => are_all(value, |of| {
            matches!(of.to_text().as_deref(), Some("user" | "assistant"))
        }),
        "priority" => {
            let priority: Option<f64> = value.read().ok();
            priority.is_some_and(|priority| (0.0..=1.0).contains(&priority))
        }
        "lastModified" => value.to_text().is_some_and(|time| is_time(&time)),
        _ => true,
    })
}

/// Tests if clients accept this as a date and time with a UTC offset: spelled as in RFC 3339, in
/// capitals, with a date and time that exist. Leap seconds are not accepted.
fn is_time(text: &str) -> bool {
    const TIME: &[u8] = b"0000-00-00T00:00:00";
    let Some((time, rest)) = text.as_bytes().split_at_checked(TIME.len()) else {
        return false;
    };
    let zone = match rest.strip_prefix(b".") {
        None => rest,
        Some(rest) => match rest.iter().position(|c| !c.is_ascii_digit()) {
            None | Some(0) => return false,
            Some(end) => &rest[end..],
        },
    };
    let zone = match zone {
        b"Z" => b"00:00",
        [b'+' | b'-', zone @ ..] => zone,
        _ => return false,
    };
    let Some([century, year, month, day, hour, minute, second]) = numbers(time, TIME) else {
        return false;
    };
    let Some([zone_hour, zone_minute]) = numbers(zone, b"00:00") else {
        return false;
    };
    (1..=days(u16::from(century) * 100 + u16::from(year), month)).contains(&day)
        && hour.max(zone_hour) < 24
        && minute.max(second).max(zone_minute) < 60
}

/// The two-digit numbers in a text of this form, in which `0` stands for a digit.
fn numbers<const N: usize>(text: &[u8], form: &[u8]) -> Option<[u8; N]> {
    let mut digits = Vec::with_capacity(2 * N);
    if text.len() != form.len() {
        return None;
    }
    for (c, like) in text.iter().zip(form) {
        match like {
            b'0' if c.is_ascii_digit() => digits.push(c - b'0'),
            like if c == like && *like != b'0' => {}
            _ => return None,
        }
    }
    let (pairs, []) = digits.as_chunks::<2>() else {
        return None;
    };
    let numbers: Vec<_> = pairs.iter().map(|[ten, one]| ten * 10 + one).collect();
    numbers.try_into().ok()
}

/// The number of days in a month; 0 if there is no such month.
fn days(year: u16, month: u8) -> u8 {
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if is_leap => 29,
        2 => 28,
        _ => 0,
    }
}

fn are_icons(value: &Raw) -> bool {
    are_all(value, |icon| {
        let is = |member: &str, fits: &dyn Fn(&Raw) -> bool| {
            icon.member(member).is_none_or(|value| fits(&value))
        };
        let is_theme = |theme: &Raw| matches!(theme.to_text().as_deref(), Some("light" | "dark"));
        icon.member("src").is_some_and(|src| is_text(&src))
            && is("mimeType", &is_text)
            && is("sizes", &|sizes| are_all(sizes, is_text))
            && is("theme", &is_theme)
    })
}

/// Tests if this is an array whose elements all fit.
fn are_all(value: &Raw, fits: impl Fn(&Raw) -> bool) -> bool {
    let elements = value.elements();
    elements.is_some_and(|elements| elements.iter().all(fits))
}

fn is_text(value: &Raw) -> bool {
    value.as_bytes().first() == Some(&b'"')
}

/// Tests if this is a number of bytes that clients in every language read correctly: some do not
/// support fractions or infinity, and some round above 2^53.
fn is_size(value: &Raw) -> bool {
    const MOST: u64 = 1 << 53;
    value.read::<u64>().is_ok_and(|size| size <= MOST)
}

fn is_bool(value: &Raw) -> bool {
    matches!(value.as_bytes(), b"true" | b"false")
}

/// Fixes the members of an object and adds missing ones; `None` if it stays unchanged. Of several
/// members with one name, the last counts, as for the clients that validate it, and is the only one
/// left in an object that changes.
fn rebuild(
    object: &Raw,
    fix: impl Fn(&str, &Raw) -> Fix,
    wanted: &[(&str, &dyn Fn() -> Raw)],
) -> Option<Raw> {
    let mut members = object.members()?;
    let last: HashMap<String, usize> = if is_distinct(&members) {
        HashMap::new()
    } else {
        let places = members.iter().enumerate();
        places.map(|(at, (name, _))| (name.clone(), at)).collect()
    };
    let mut at = 0;
    members.retain(|(name, _)| {
        at += 1;
        last.get(name).is_none_or(|last| *last == at - 1)
    });
    let mut changed = false;
    let mut kept: Vec<(&str, Raw)> = Vec::with_capacity(members.len() + wanted.len());
    for (name, value) in &members {
        let value = match fix(name, value) {
            Fix::Keep => value.clone(),
            Fix::Set(value) => {
                changed = true;
                value
            }
            Fix::Drop => {
                changed = true;
                continue;
            }
        };
        kept.push((name, value));
    }
    for (name, make) in wanted {
        if !members.iter().any(|(known, _)| known == name) {
            changed = true;
            kept.push((name, make()));
        }
    }
    changed.then(|| Raw::object(kept))
}

/// Tests if all members have different names.
fn is_distinct(members: &[(String, Raw)]) -> bool {
    let mut names: Vec<_> = members.iter().map(|(name, _)| name).collect();
    names.sort_unstable();
    names.windows(2).all(|pair| pair[0] != pair[1])
}
