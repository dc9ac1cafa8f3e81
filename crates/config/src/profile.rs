//! Converts the entries of `profiles`.

use crate::diagnostic::Problems;
use crate::json::{Json, Member, Node};
use crate::model::{Guard, Profile, ToolPattern};
use crate::read::{self, Block};

/// Converts an entry of `profiles`.
pub(crate) fn read(member: &Member<'_>, problems: &mut Problems) -> Option<Profile> {
    member.node.members()?;
    let block = Block(&member.node);
    let tools = block.block("tools");
    let patterns = |key: &str, problems: &mut Problems| {
        let list = &tools?.0.get(key)?.node;
        patterns(list, problems)
    };
    Some(Profile {
        servers: block.texts("servers"),
        allow: patterns("allow", problems),
        deny: patterns("deny", problems).unwrap_or_default(),
        view: block.text("view").map(read::view),
        approvals: block.text("approvals").map(Guard::read),
        memory_namespace: namespace(block, problems),
    })
}

fn namespace(profile: Block<'_, '_>, problems: &mut Problems) -> Option<String> {
    let block = profile.block("memory")?;
    let namespace = block.text("namespace")?;
    if namespace.trim().is_empty() {
        let message = "\"namespace\" is empty";
        problems.add_with_hint(
            block.at("namespace"),
            message,
            "name a namespace, such as \"work\"",
        );
    }
    Some(namespace.to_owned())
}

fn patterns(list: &Node<'_>, problems: &mut Problems) -> Option<Vec<ToolPattern>> {
    let Json::List(items) = &list.value else {
        return None;
    };
    let mut all = Vec::with_capacity(items.len());
    for item in items {
        let Json::Text(text) = &item.value else {
            continue;
        };
        match ToolPattern::parse(text) {
            Some(pattern) => all.push(pattern),
            None => problems.add_with_hint(
                item.start,
                "a tool of a profile is a pattern such as \"github:get_*\"",
                "write it as \"server:tool\"; * matches any characters",
            ),
        }
    }
    Some(all)
}
