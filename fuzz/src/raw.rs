//! One JSON value, and the operations on it.

use serde_json::Value;
use switchboard_wire::{Raw, RawError, meta};

use crate::json::{self, Kind, Node};

/// The depth to which nested members are checked too.
const LEVELS: usize = 3;
/// A name that needs escapes.
const AWKWARD: &str = "a \"fresh\" \u{e9}\n";

/// A value reads as the model reads it, and a change leaves everything else alone.
pub(crate) fn check(raw: &Raw, node: &Node<'_>) {
    check_levels(raw, node, LEVELS);
}

fn check_levels(raw: &Raw, node: &Node<'_>, levels: usize) {
    assert_eq!(raw.as_str(), node.text);
    assert_eq!(raw.as_bytes(), node.text.as_bytes());
    assert_eq!(raw.is_object(), matches!(node.kind, Kind::Object(_)));
    assert_eq!(raw.to_text().as_deref(), node.as_lossy_text());
    assert_eq!(raw.read::<Value>().ok(), node.to_value());
    check_typed_round_trip(raw);

    let elements = raw.elements();
    let members = raw.members();
    match &node.kind {
        Kind::Array(nodes) => {
            let elements = elements.unwrap_or_default();
            assert_eq!(elements.len(), nodes.len());
            if levels > 0 {
                for (element, node) in elements.iter().zip(nodes) {
                    check_levels(element, node, levels - 1);
                }
            }
            assert!(members.is_none());
        }
        Kind::Object(nodes) => {
            let members = members.unwrap_or_default();
            assert_eq!(members.len(), nodes.len());
            for ((name, value), (own, node)) in members.iter().zip(nodes) {
                assert_eq!(*name, own.lossy);
                let last = node_of_last(nodes, name).map(|node| node.text);
                assert_eq!(raw.member(name).as_ref().map(Raw::as_str), last);
                if levels > 0 {
                    check_levels(value, node, levels - 1);
                }
            }
            for name in members.iter().map(|(name, _)| name.as_str()).take(3) {
                check_with_member(raw, node, name);
            }
            assert!(elements.is_none());
        }
        _ => {
            assert!(elements.is_none() && members.is_none());
            assert!(raw.member("a").is_none());
        }
    }
    check_with_member(raw, node, meta::META);
    check_with_member(raw, node, AWKWARD);
    check_stamp(raw, node);
}

fn node_of_last<'n, 'a>(members: &'n [(json::Key, Node<'a>)], name: &str) -> Option<&'n Node<'a>> {
    let named = members.iter().rfind(|(own, _)| own.lossy == name);
    named.map(|(_, node)| node)
}

fn check_typed_round_trip(raw: &Raw) {
    let spelled = serde_json::to_string(raw);
    assert_eq!(spelled.ok().as_deref(), Some(raw.as_str()));
    let again: Option<Raw> = serde_json::from_slice(raw.as_bytes()).ok();
    assert_eq!(again.as_ref(), Some(raw));
    assert_eq!(Raw::from_value(raw).ok().as_ref(), Some(raw));
}

fn check_with_member(raw: &Raw, node: &Node<'_>, name: &str) {
    let value = "[1.50, null]";
    let set = Raw::parse(value).and_then(|value| raw.with_member(name, &value));
    let expected = with_member(node, name, value);
    compare(set, &expected);

    let (Ok(text), Some(Value::Object(mut map))) = (expected, node.to_value()) else {
        return;
    };
    map.insert(name.to_owned(), serde_json::json!([1.5, null]));
    let read: Option<Value> = serde_json::from_str(&text).ok();
    assert_eq!(read, Some(Value::Object(map)));
}

fn check_stamp(raw: &Raw, node: &Node<'_>) {
    let members = [
        (meta::PROGRESS_TOKEN, Raw::number(7)),
        (meta::TRACEPARENT, Raw::string("00-\"-01")),
    ];
    let stamped = meta::stamp(Some(raw), &members);
    let expected = stamp(node, &members);
    compare(stamped, &expected);

    let bare = meta::stamp(None, &members).ok();
    let empty = meta::stamp(Some(&Raw::empty_object()), &members).ok();
    assert_eq!(bare, empty);
}

/// Parameters with `_meta` as the model sets it, one member at a time.
fn stamp(params: &Node<'_>, members: &[(&str, Raw)]) -> Result<String, Refusal> {
    let own = params.all(meta::META).last().map(|node| node.text);
    let own = own.filter(|text| text.starts_with('{')).unwrap_or("{}");
    let mut stamped = own.to_owned();
    for (name, value) in members {
        let node = json::parse(&stamped).map_err(|_| Refusal::Unreadable)?;
        stamped = with_member(&node, name, value.as_str())?;
    }
    with_member(params, meta::META, &stamped)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refusal {
    NotAnObject,
    Duplicate,
    Unreadable,
}

fn with_member(node: &Node<'_>, name: &str, value: &str) -> Result<String, Refusal> {
    let Kind::Object(members) = &node.kind else {
        return Err(Refusal::NotAnObject);
    };
    let text = node.text;
    match node.all(name)[..] {
        [] => {
            let (end, comma) = match members.last() {
                Some((_, last)) => (last.end() - node.start, ","),
                None => (1, ""),
            };
            let body = &text[..end];
            let name = Value::from(name);
            Ok(format!("{body}{comma}{name}:{value}}}"))
        }
        [old] => {
            let (before, after) = (old.start - node.start, old.end() - node.start);
            Ok([&text[..before], value, &text[after..]].concat())
        }
        _ => Err(Refusal::Duplicate),
    }
}

fn compare(got: Result<Raw, RawError>, expected: &Result<String, Refusal>) {
    let got = got.map(|raw| raw.as_str().to_owned());
    let got = got.map_err(|error| match error {
        RawError::NotAnObject => Refusal::NotAnObject,
        RawError::DuplicateMember(_) => Refusal::Duplicate,
        _ => Refusal::Unreadable,
    });
    assert_eq!(&got, expected);
}
