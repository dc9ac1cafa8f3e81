//! Converts the `overrides` of a server.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use switchboard_wire::Raw;

use crate::diagnostic::Problems;
use crate::json::{Member, Node, quote};
use crate::model::{Argument, Override, Overrides};
use crate::read::{Block, to_value};

/// The most characters of a new name.
const NAME_MAX: usize = 64;

/// Converts the `overrides` of a server.
pub(crate) fn read(server: Block<'_, '_>, problems: &mut Problems) -> Overrides {
    let members = server.0.get("overrides");
    let members = members.and_then(|member| member.node.members());
    let mut all = BTreeMap::new();
    // The tools by the names that clients see.
    let mut shown: HashMap<String, &str> = HashMap::new();
    for member in members.unwrap_or_default() {
        if member.node.members().is_none() {
            continue;
        }
        let tool = one(member, problems);
        if !tool.hidden {
            let name = tool.name.clone().unwrap_or_else(|| member.key.to_string());
            if let Some(other) = shown.insert(name.clone(), &member.key) {
                problems.add_with_hint(
                    member.at,
                    format!(
                        "the overrides of {} and {} have the same name, {}",
                        quote(other),
                        quote(&member.key),
                        quote(&name)
                    ),
                    "change the \"name\" of one of them",
                );
            }
        }
        all.insert(member.key.clone().into_owned(), Arc::new(tool));
    }
    all.into()
}

fn one(member: &Member<'_>, problems: &mut Problems) -> Override {
    let block = Block(&member.node);
    let name = block.text("name");
    if let Some(name) = name
        && !is_name(name)
    {
        problems.add_with_hint(
            block.at("name"),
            format!("{} is not a valid tool name", quote(name)),
            format!("use at most {NAME_MAX} letters, digits, \"_\", \"-\" and \".\""),
        );
    }
    let annotations = block.block("annotations");
    let says = |key: &str| annotations.and_then(|of| of.flag(key)) == Some(true);
    if says("readOnlyHint") && says("destructiveHint") {
        let message = "\"readOnlyHint\" and \"destructiveHint\" contradict each other";
        problems.add_with_hint(block.at("annotations"), message, "keep one of them");
    }
    Override {
        name: name.map(str::to_owned),
        description: block.text("description").map(str::to_owned),
        annotations: annotations.map(|block| value(block.0, problems)),
        arguments: arguments(block, problems),
        hidden: block.flag("hidden").unwrap_or(false),
    }
}

fn arguments(tool: Block<'_, '_>, problems: &mut Problems) -> BTreeMap<String, Argument> {
    let members = tool.0.get("arguments");
    let members = members.and_then(|member| member.node.members());
    let is_hidden = |member: &Member<'_>| member.key == "hidden";
    let mut all = BTreeMap::new();
    for member in members.unwrap_or_default() {
        let node = &member.node;
        let argument = match (node.get("value"), Block(node).flag("hidden")) {
            (Some(fixed), _) => Argument::Fixed(value(&fixed.node, problems)),
            (None, Some(true)) => Argument::Hidden,
            // Another kind of value or key was reported before.
            _ if !node.members().is_some_and(|all| all.iter().all(is_hidden)) => continue,
            _ => {
                problems.add_with_hint(
                    member.at,
                    format!(
                        "the override of the argument {} is empty",
                        quote(&member.key)
                    ),
                    "set its \"value\", or \"hidden\" to true",
                );
                continue;
            }
        };
        all.insert(member.key.clone().into_owned(), argument);
    }
    all
}

fn value(node: &Node<'_>, problems: &mut Problems) -> Raw {
    // A tree of JSON values always serializes.
    Raw::from_value(&to_value(node, problems)).unwrap_or_else(|_| Raw::null())
}

/// Tests if clients accept this as the name of a tool.
fn is_name(name: &str) -> bool {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    (1..=NAME_MAX).contains(&name.len()) && name.chars().all(is_allowed)
}
