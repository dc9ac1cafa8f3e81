//! Edits of JSON with comments that keep every other byte: comments, order, indentation, line endings
//! and a byte order mark.
//!
//! The parser gives the position of each member, and its scanner finds the comma and the comments
//! between two of them. The parser's own `cst` would rewrite too much: it breaks a one-line object into
//! several lines, removes blank lines, removes comments together with a member, and finds the first of
//! two members with one name, where clients read the last.

mod layout;

use jsonc_parser::ast::{Object, ObjectProp, Value as Node};
use jsonc_parser::common::Ranged;
use jsonc_parser::tokens::Token;
use jsonc_parser::{CollectOptions, ParseOptions, Scanner, ScannerOptions, parse_to_ast};

pub use layout::Tree;
use layout::{Layout, indentation, line_before};

const BYTE_ORDER_MARK: &str = "\u{feff}";
const BLANKS: [char; 2] = [' ', '\t'];

/// Start and end of a part of a text, and its replacement.
pub type Patch = (usize, usize, String);

/// The reason why a text could not be parsed or changed.
#[derive(Debug)]
pub struct Error {
    /// Byte offset into the text after its byte order mark.
    pub at: usize,
    /// The reason, in lower case.
    pub message: String,
}

/// Treatment of a comment after a member, on its last line, when the member is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comment {
    /// Keep the comment.
    Keep,
    /// Remove it together with the member, if nothing else is on the line.
    Remove,
}

/// Splits off a byte order mark.
pub fn split_mark(text: &str) -> (&str, &str) {
    match text.strip_prefix(BYTE_ORDER_MARK) {
        Some(rest) => (BYTE_ORDER_MARK, rest),
        None => ("", text),
    }
}

/// Parses a text without a byte order mark. Returns `None` for whitespace and comments alone.
pub fn read(text: &str) -> Result<Option<Node<'_>>, Error> {
    let options = ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    let parsed = parse_to_ast(text, &CollectOptions::default(), &options).map_err(|error| {
        let mut message = error.kind().to_string();
        if let Some(first) = message.get_mut(..1) {
            first.make_ascii_lowercase();
        }
        let at = error.range().start;
        Error { at, message }
    })?;
    Ok(parsed.value)
}

/// The member of this name. Of several, the last one counts, as it does for every client.
pub fn member<'a, 'b>(object: &'b Object<'a>, name: &str) -> Option<&'b ObjectProp<'a>> {
    let mut members = object.properties.iter();
    members.rfind(|member| member.name.as_str() == name)
}

/// The error for a value that is not an object, under the last of these keys.
pub fn not_an_object(node: &Node<'_>, keys: &[&str]) -> Error {
    let message = match keys.last() {
        Some(key) => format!("`{key}` is not an object"),
        None => "this is not an object".to_owned(),
    };
    let at = node.start();
    Error { at, message }
}

/// Puts members into the object under these keys: existing ones get the new value, the others are
/// appended. Missing or null objects on the way are created. The names of the members must be distinct.
pub fn put(text: &str, keys: &[&str], members: &[(&str, Tree<'_>)]) -> Result<String, Error> {
    let changed = edit(text, |text| {
        let root = read(text)?;
        let layout = Layout::of(text, root.as_ref());
        let Some(mut node) = root.as_ref() else {
            let line = layout.newline;
            let start = if text.is_empty() || text.ends_with('\n') {
                ""
            } else {
                line
            };
            let object = layout.value(&nested(keys, members), Some(""));
            let end = text.len();
            return Ok(vec![(end, end, format!("{start}{object}{line}"))]);
        };
        let mut depth = 0;
        loop {
            let object = match node {
                Node::Object(object) => object,
                Node::NullKeyword(_) if depth > 0 => {
                    let new = nested(&keys[depth..], members);
                    return Ok(vec![overwrite(text, &layout, node, &new)]);
                }
                other => return Err(not_an_object(other, &keys[..depth])),
            };
            let Some(key) = keys.get(depth) else {
                return Ok(put_all(text, &layout, object, members));
            };
            let Some(member) = member(object, key) else {
                let new = nested(&keys[depth + 1..], members);
                return Ok(append(text, &layout, object, &[(key, new)]));
            };
            node = &member.value;
            depth += 1;
        }
    })?;
    check_put(&changed, keys, members)?;
    Ok(changed)
}

/// The value under these keys.
fn under<'a, 'b>(root: Option<&'b Node<'a>>, keys: &[&str]) -> Option<&'b Node<'a>> {
    keys.iter().try_fold(root?, |node, key| {
        Some(&member(node.as_object()?, key)?.value)
    })
}

/// Checks that the members arrived at their place, and not in a comment.
fn check_put(changed: &str, keys: &[&str], members: &[(&str, Tree<'_>)]) -> Result<(), Error> {
    let root = read(split_mark(changed).1)?;
    let object = under(root.as_ref(), keys).and_then(|node| node.as_object());
    match members
        .iter()
        .find(|(key, _)| object.is_none_or(|object| member(object, key).is_none()))
    {
        None => Ok(()),
        Some((key, _)) => Err(Error {
            at: 0,
            message: format!("cannot insert `{key}` into this text: format the file first"),
        }),
    }
}

/// Removes the member under the last of these keys, if it exists. Comments above it stay.
pub fn remove(text: &str, keys: &[&str], comment: Comment) -> Result<String, Error> {
    edit(text, |text| {
        let root = read(text)?;
        let Some((last, parents)) = keys.split_last() else {
            return Ok(Vec::new());
        };
        let Some(Node::Object(object)) = under(root.as_ref(), parents) else {
            return Ok(Vec::new());
        };
        let mut names = object.properties.iter().map(|member| member.name.as_str());
        let index = names.rposition(|name| name == *last);
        Ok(index.map_or_else(Vec::new, |index| without(text, object, index, comment)))
    })
}

/// Replaces parts of the text; the patches must be in order.
pub fn spliced(text: &str, patches: impl IntoIterator<Item = Patch>) -> String {
    let mut result = String::with_capacity(text.len() + 256);
    let mut done = 0;
    for (start, end, new) in patches {
        result.push_str(&text[done..start]);
        result.push_str(&new);
        done = end;
    }
    result.push_str(&text[done..]);
    result
}

fn edit(
    text: &str,
    change: impl FnOnce(&str) -> Result<Vec<Patch>, Error>,
) -> Result<String, Error> {
    let (mark, text) = split_mark(text);
    let mut patches = change(text)?;
    patches.sort_by_key(|&(start, ..)| start);
    let changed = spliced(text, patches);
    // A change that does not parse must never reach the file.
    read(&changed)?;
    Ok(format!("{mark}{changed}"))
}

/// Wraps the members in an object, and that in one object per key.
fn nested<'a>(keys: &[&'a str], members: &[(&'a str, Tree<'a>)]) -> Tree<'a> {
    let keys = keys.iter().rev();
    keys.fold(Tree::Object(members.to_vec()), |inner, key| {
        Tree::Object(vec![(key, inner)])
    })
}

fn overwrite(text: &str, layout: &Layout<'_>, node: &Node<'_>, tree: &Tree<'_>) -> Patch {
    let indent = (!layout.one_line).then(|| indentation(text, node.start()));
    (node.start(), node.end(), layout.value(tree, indent))
}

fn put_all(
    text: &str,
    layout: &Layout<'_>,
    object: &Object<'_>,
    members: &[(&str, Tree<'_>)],
) -> Vec<Patch> {
    let mut patches = Vec::new();
    let mut new = Vec::new();
    for (key, tree) in members {
        match member(object, key) {
            Some(member) => patches.push(overwrite(text, layout, &member.value, tree)),
            None => new.push((*key, tree.clone())),
        }
    }
    if !new.is_empty() {
        patches.extend(append(text, layout, object, &new));
    }
    patches
}

/// Appends members, formatted like the last existing one.
fn append(
    text: &str,
    layout: &Layout<'_>,
    object: &Object<'_>,
    members: &[(&str, Tree<'_>)],
) -> Vec<Patch> {
    let line = layout.newline;
    let close = object.end() - 1;
    let Some(last) = object.properties.last() else {
        let new = if layout.one_line {
            layout.members(members, None)
        } else {
            let outer = indentation(text, object.start());
            let inner = format!("{outer}{}", layout.unit);
            let members = layout.members(members, Some(&inner));
            format!("{line}{inner}{members}{line}{outer}")
        };
        return vec![(text[..close].trim_end().len(), close, new)];
    };
    let (comma, line_end) = gap(text, last.end(), close);
    let (missing, trailing) = match comma {
        Some(_) => ("", ","),
        None => (",", ""),
    };
    let indent = line_before(text, last.start());
    if indent.trim().is_empty() {
        let members = layout.members(members, Some(indent));
        let new = format!("{line}{indent}{members}{trailing}");
        // A comment after the last member stays with it.
        return vec![
            (last.end(), last.end(), missing.to_owned()),
            (line_end, line_end, new),
        ];
    }
    let behind = comma.map_or(last.end(), |comma| comma + 1);
    let new = format!("{missing} {}{trailing}", layout.members(members, None));
    vec![(behind, behind, new)]
}

fn without(text: &str, object: &Object<'_>, index: usize, comment: Comment) -> Vec<Patch> {
    let members = &object.properties;
    let (open, close) = (object.start() + 1, object.end() - 1);
    let (mut start, mut end) = (members[index].start(), members[index].end());
    let before = index.checked_sub(1).map(|before| members[before].end());
    let (comma, line_end) = gap(
        text,
        end,
        members.get(index + 1).map_or(close, Ranged::start),
    );
    let mut patches = Vec::new();
    match (comma, before) {
        (Some(comma), _) => end = comma + 1,
        (None, Some(before)) => {
            let (comma, _) = gap(text, before, start);
            patches.extend(comma.map(|comma| (comma, comma + 1, String::new())));
        }
        (None, None) => {}
    }
    let rest = match comment {
        Comment::Keep => &text[end..],
        Comment::Remove => &text[line_end..],
    };
    let line_rest = rest
        .trim_start_matches([' ', '\t', '\r'])
        .strip_prefix('\n');
    let behind = text[end..].trim_start_matches(BLANKS);
    let line = line_before(text, start);
    let begins_line = line.trim().is_empty();
    if let Some(rest) = line_rest
        && begins_line
    {
        start -= line.len();
        end = text.len() - rest.len();
    } else if begins_line && text.len() - behind.len() == close {
        start -= line.len();
        // The closing brace must not end up in a comment.
        if !text[before.unwrap_or(open)..start].contains("//") {
            let kept = &text[..start];
            let kept = kept.strip_suffix('\n').unwrap_or(kept);
            start = kept.strip_suffix('\r').unwrap_or(kept).len();
        }
    } else if begins_line || before.is_none() {
        end = text.len() - behind.len();
    } else {
        start = text[..start].trim_end_matches(BLANKS).len();
    }
    if text[open..start].trim().is_empty() && text[end..close].trim().is_empty() {
        (start, end) = (open, close);
    }
    patches.push((start, end, String::new()));
    patches
}

/// The comma between the end of a member and the next one or the brace, and the end of the comments that
/// start and end on the line of the comma, or of the member if there is no comma.
fn gap(text: &str, from: usize, to: usize) -> (Option<usize>, usize) {
    let mut scanner = Scanner::new(&text[from..to], &ScannerOptions::default());
    let (mut comma, mut line_end, mut same_line) = (None, from, true);
    while let Ok(Some(token)) = scanner.scan() {
        let end = from + scanner.token_end();
        if token == Token::Comma {
            comma = Some(end - 1);
            (line_end, same_line) = (end, true);
        } else if same_line {
            same_line = !text[line_end..end].contains('\n');
            line_end = if same_line { end } else { line_end };
        }
    }
    let rest = text[line_end..].trim_start_matches(BLANKS);
    if rest.starts_with(['\r', '\n']) {
        line_end = text.len() - rest.len();
    }
    (comma, line_end)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const KEYS: [&str; 2] = ["s", "a"];

    /// Valid pieces in any order, and valid documents.
    fn texts() -> impl Strategy<Value = String> {
        let trivia = prop::sample::select(vec![
            "",
            "",
            "",
            " ",
            "\t",
            "\n",
            "\r\n",
            "\n  ",
            "\r",
            "// c\n",
            "// c\r",
            "// c\r\n",
            "/* c */",
            "/* c\n */",
            "\u{a0}",
            "\u{b}",
            "/**/",
        ]);
        let piece = prop::sample::select(vec![
            "{",
            "}",
            "[",
            "]",
            ":",
            ",",
            "\"s\"",
            "\"a\"",
            "\"\\u0061\"",
            "null",
            "1",
            "\"//\"",
            "\\",
            "\"",
            "ü",
            "\u{feff}",
            "/",
            "{}",
            "{\"a\":1}",
            "\"s\":{",
            "},",
            "\"a\":1,",
        ]);
        let any_order = prop::collection::vec((trivia.clone(), piece), 0..16)
            .prop_map(|pieces| pieces.into_iter().flat_map(|(t, p)| [t, p]).collect());
        let member = prop::sample::select(vec!["\"a\"", "\"b\"", "\"a,}\"", "\"\\u0061\""]);
        let value = prop::sample::select(vec!["1", "\"// {\"", "{ }", "[\n]", "{\"a\":{},}"]);
        let member = (
            trivia.clone(),
            member,
            trivia.clone(),
            value,
            trivia.clone(),
        );
        let members = prop::collection::vec(member, 0..4);
        let valid = (prop::collection::vec(trivia, 6), members, any::<bool>()).prop_map(
            |(t, members, comma)| {
                let members: Vec<_> = members
                    .into_iter()
                    .map(|(before, key, colon, value, after)| {
                        format!("{before}{key}:{colon}{value}{after}")
                    })
                    .collect();
                let comma = if comma && !members.is_empty() {
                    ","
                } else {
                    ""
                };
                let members = members.join(",") + comma;
                format!(
                    "{}{{{}\"s\":{}{{{members}{}}}{}}}{}",
                    t[0], t[1], t[2], t[3], t[4], t[5]
                )
            },
        );
        prop_oneof![any_order, valid]
    }

    /// The text of the value under `keys`.
    fn at<'t>(text: &'t str, keys: &[&str]) -> Option<&'t str> {
        let (_, text) = split_mark(text);
        let root = read(text).unwrap();
        let node = under(root.as_ref(), keys)?;
        Some(&text[node.start()..node.end()])
    }

    fn is_subsequence(part: &str, whole: &str) -> bool {
        let mut whole = whole.chars();
        let mut part = part.chars().filter(|c| !c.is_whitespace());
        part.all(|c| whole.any(|other| other == c))
    }

    #[test]
    fn lone_carriage_return_swallows_nothing() {
        let text = "{\"s\":{// none yet\r},\"z\":{\"rules\":[1]\r}}";
        let put = put(text, &["s"], &[("a", Tree::Leaf("1".to_owned()))]).unwrap();
        assert_eq!(at(&put, &KEYS), Some("1"), "{put:?}");
        assert_eq!(at(&put, &["z", "rules"]), Some("[1]"), "{put:?}");
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn put_and_remove_change_only_their_member(text in texts()) {
            let old = read(split_mark(&text).1).is_ok().then(|| at(&text, &KEYS)).flatten();
            let value = Tree::Leaf("\"new\"".to_owned());
            let Ok(put) = put(&text, &KEYS[..1], &[(KEYS[1], value)]) else { return Ok(()) };
            prop_assert_eq!(at(&put, &KEYS), Some("\"new\""));
            let rest = match old {
                Some(old) => text.replacen(old, "", usize::from(text.matches(old).count() == 1)),
                None => text.replacen("null", "", 1),
            };
            if old.is_none() || rest.len() < text.len() {
                prop_assert!(is_subsequence(&rest, &put), "{:?} became {:?}", text, put);
            }
            for comment in [Comment::Keep, Comment::Remove] {
                // Of several members with one name, each call removes one.
                let mut left = put.clone();
                while at(&left, &KEYS).is_some() {
                    let removed = remove(&left, &KEYS, comment).unwrap();
                    prop_assert!(removed.len() < left.len(), "{:?} became {:?}", left, removed);
                    prop_assert!(is_subsequence(&removed, &left), "{:?} became {:?}", left, removed);
                    left = removed;
                }
                prop_assert!(at(&left, &KEYS[..1]).is_some());
                prop_assert_eq!(remove(&left, &KEYS, comment).unwrap(), left);
            }
        }

        #[test]
        fn no_text_panics(text in any::<String>()) {
            let _ = put(&text, &KEYS, &[]);
            let _ = remove(&text, &KEYS, Comment::Remove);
        }
    }
}
