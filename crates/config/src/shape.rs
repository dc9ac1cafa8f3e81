//! The allowed values of a key: one description for both the parser and the schema.

use switchboard_text::{alike, nearest};

use crate::diagnostic::Problems;
use crate::json::{Json, Member, Node, quote};

/// A key of an object.
#[derive(Debug)]
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) shape: Shape,
    /// The default value, as JSON.
    pub(crate) default: Option<&'static str>,
    /// The description for the schema.
    pub(crate) about: &'static str,
}

/// The allowed values of a key.
#[derive(Debug)]
pub(crate) enum Shape {
    Flag,
    Text,
    /// A positive number, possibly with a fraction.
    Amount,
    Whole {
        min: u64,
        max: u64,
    },
    /// A non-negative number, possibly with a fraction.
    Price,
    Choice(&'static [&'static str]),
    /// A list of these choices.
    Choices(&'static [&'static str]),
    Texts,
    /// A map from names to strings.
    TextMap,
    Object(&'static Keys),
    /// A map from names, of things such as servers, to objects.
    Named(&'static str, &'static Keys),
    /// The same with any names, such as those of tools.
    Entries(&'static str, &'static Keys),
    Values,
    Anything,
    Either(&'static Shape, &'static Shape),
}

/// The keys of one kind of object, and wrong names that users are known to try.
#[derive(Debug)]
pub(crate) struct Keys {
    pub(crate) all: &'static [Key],
    pub(crate) meant: &'static [(&'static str, &'static str)],
    /// Exactly one key of each group must be present.
    pub(crate) one_of: &'static [&'static [&'static str]],
}

impl Keys {
    pub(crate) fn get(&self, name: &str) -> Option<&Key> {
        self.all.iter().find(|key| key.name == name)
    }

    /// A hint for an unknown key.
    fn hint(&self, wrong: &str) -> String {
        let meant = self
            .meant
            .iter()
            .find(|(other, _)| alike(other, wrong))
            .map(|&(_, right)| right)
            .or_else(|| nearest(wrong, self.all.iter().map(|key| key.name)));
        match meant {
            Some(right) => format!("did you mean \"{right}\"?"),
            None if self.all.len() <= 10 => {
                let names: Vec<_> = self.all.iter().map(|key| key.name).collect();
                format!("the keys here are {}", names.join(", "))
            }
            None => "remove it; `switchboard schema` lists the keys".to_owned(),
        }
    }
}

/// Reports everything in `node`, the value of `name`, that does not match the shape.
pub(crate) fn check(node: &Node<'_>, shape: &Shape, name: &str, problems: &mut Problems) {
    if !fits(node, shape) {
        return misfit(node, shape, name, problems);
    }
    match (shape, &node.value) {
        (Shape::Text, Json::Text(text)) => check_text(node, text, problems),
        (Shape::Texts, Json::List(items)) => {
            for item in items {
                check_item(
                    item,
                    || format!("{name:?} must contain only strings"),
                    problems,
                );
            }
        }
        (Shape::Choices(choices), Json::List(items)) => {
            for item in items {
                check(item, &Shape::Choice(choices), name, problems);
            }
        }
        (Shape::TextMap, Json::Object(members)) => {
            for Member { key, node, .. } in members {
                let message = || format!("{} in {name:?} must be a string", quote(key));
                check_item(node, message, problems);
            }
        }
        (Shape::Object(keys), Json::Object(members)) => check_members(members, keys, problems),
        (Shape::Named(thing, keys) | Shape::Entries(thing, keys), Json::Object(all)) => {
            for one in all {
                match &one.node.value {
                    Json::Object(members) => check_members(members, keys, problems),
                    _ => problems.add(
                        one.node.start,
                        format!(
                            "the {thing} {} must be an object, not {}",
                            quote(&one.key),
                            one.node.kind()
                        ),
                    ),
                }
            }
        }
        (Shape::Either(one, other), _) => {
            let fitting = if fits(node, one) { one } else { other };
            check(node, fitting, name, problems);
        }
        _ => {}
    }
}

fn check_members(members: &[Member<'_>], keys: &Keys, problems: &mut Problems) {
    for member in members {
        match keys.get(&member.key) {
            Some(key) => check(&member.node, &key.shape, key.name, problems),
            None if problems.has_room() => problems.add_with_hint(
                member.at,
                format!("unknown key {}", quote(&member.key)),
                keys.hint(&member.key),
            ),
            None => problems.one_more(),
        }
    }
}

fn check_item(item: &Node<'_>, message: impl Fn() -> String, problems: &mut Problems) {
    match &item.value {
        Json::Text(text) => check_text(item, text, problems),
        Json::Number(_) | Json::Bool(_) => problems.add_with_hint(
            item.start,
            format!("{}, not {}", message(), item.kind()),
            "put it in double quotes",
        ),
        _ => problems.add(item.start, format!("{}, not {}", message(), item.kind())),
    }
}

/// Rejects U+0000, which no program, address or header can contain.
fn check_text(node: &Node<'_>, text: &str, problems: &mut Problems) {
    if text.contains('\0') {
        problems.add(
            node.start,
            "this string contains the character U+0000, which is not allowed",
        );
    }
}

/// Tests if the value is of the right kind. Its content is checked later.
fn fits(node: &Node<'_>, shape: &Shape) -> bool {
    match (shape, &node.value) {
        (Shape::Flag, Json::Bool(_))
        | (Shape::Text, Json::Text(_))
        | (Shape::Texts | Shape::Values | Shape::Choices(_), Json::List(_))
        | (
            Shape::TextMap | Shape::Object(_) | Shape::Named(..) | Shape::Entries(..),
            Json::Object(_),
        )
        | (Shape::Anything, _) => true,
        (Shape::Amount, Json::Number(text)) => text
            .parse::<f64>()
            .is_ok_and(|amount| amount.is_finite() && amount > 0.0),
        (Shape::Price, Json::Number(text)) => text
            .parse::<f64>()
            .is_ok_and(|price| price.is_finite() && price >= 0.0),
        (Shape::Whole { min, max }, Json::Number(text)) => text
            .parse::<u64>()
            .is_ok_and(|number| (*min..=*max).contains(&number)),
        (Shape::Choice(choices), Json::Text(text)) => choices.contains(&text.as_ref()),
        (Shape::Either(one, other), _) => fits(node, one) || fits(node, other),
        _ => false,
    }
}

fn misfit(node: &Node<'_>, shape: &Shape, name: &str, problems: &mut Problems) {
    let found = match (&node.value, shape) {
        (Json::Number(text), Shape::Whole { .. } | Shape::Amount | Shape::Price) => {
            (*text).to_owned()
        }
        (Json::Text(text), shape) if choices(shape).is_some() => quote(text),
        _ => node.kind().to_owned(),
    };
    let message = format!("{name:?} must be {}, not {found}", describe(shape));
    let hint = match (&node.value, shape) {
        (Json::Text(text), shape) if choices(shape).is_some() => {
            let choices = choices(shape).unwrap_or_default();
            nearest(text, choices.iter().copied()).map(|right| format!("did you mean \"{right}\"?"))
        }
        (Json::Text(text), Shape::Flag | Shape::Whole { .. }) if is_bare(text) => {
            Some("write it without quotes".to_owned())
        }
        (Json::Number(_) | Json::Bool(_), Shape::Text) => {
            Some("put it in double quotes".to_owned())
        }
        (Json::Null, _) => Some("remove it to use the default".to_owned()),
        (Json::Text(_), Shape::Texts | Shape::Values | Shape::Choices(_)) => {
            Some("put it in square brackets".to_owned())
        }
        (Json::List(_), Shape::Text) if name == "command" => {
            Some("keep the program here and move the rest to \"args\"".to_owned())
        }
        _ => None,
    };
    match hint {
        Some(hint) => problems.add_with_hint(node.start, message, hint),
        None => problems.add(node.start, message),
    }
}

/// The choices for a value, if it has some.
fn choices(shape: &Shape) -> Option<&'static [&'static str]> {
    match shape {
        Shape::Choice(choices) => Some(choices),
        Shape::Either(one, other) => choices(one).or_else(|| choices(other)),
        _ => None,
    }
}

/// Tests if a string would be a value without its quotes.
fn is_bare(text: &str) -> bool {
    matches!(text, "true" | "false") || text.parse::<u64>().is_ok()
}

fn describe(shape: &Shape) -> String {
    match shape {
        Shape::Flag => "true or false".to_owned(),
        Shape::Text => "a string".to_owned(),
        Shape::Amount => "a number above 0".to_owned(),
        Shape::Whole { min, max } => format!("a whole number from {min} to {max}"),
        Shape::Choice([one]) => format!("\"{one}\""),
        Shape::Choice(choices) => {
            let (last, others) = choices.split_last().unwrap_or((&"", &[]));
            format!("\"{}\" or \"{last}\"", others.join("\", \""))
        }
        Shape::Price => "a number of at least 0".to_owned(),
        Shape::Choices(choices) => format!("a list of {}", describe(&Shape::Choice(choices))),
        Shape::Texts => "a list of strings".to_owned(),
        Shape::TextMap => "an object with string values".to_owned(),
        Shape::Object(_) | Shape::Named(..) | Shape::Entries(..) => "an object".to_owned(),
        Shape::Values => "a list".to_owned(),
        Shape::Anything => "a value".to_owned(),
        Shape::Either(one, other) => format!("{} or {}", describe(one), describe(other)),
    }
}
