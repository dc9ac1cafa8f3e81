//! Names of tools: MCP allows more characters and longer names than providers do.

use std::{
    collections::{HashMap, HashSet},
    iter, mem,
};

use crate::{
    answer::{Answer, Piece},
    ask::{Ask, Content},
};

/// The longest name that all providers accept.
const NAME_MAX: usize = 64;

/// The names that were changed: from the provider's name to the server's.
#[derive(Debug, Default)]
pub(crate) struct Names(HashMap<String, String>);

impl Names {
    /// Gives every tool of the request a name that providers accept.
    pub(crate) fn fit(ask: &mut Ask) -> Self {
        let mut taken: HashSet<String> = HashSet::new();
        taken.extend(
            names(ask)
                .filter(|name| fits(name))
                .map(|name| name.clone()),
        );
        let mut changed: HashMap<String, String> = HashMap::new();
        for name in names(ask).filter(|name| !fits(name)) {
            if let Some(theirs) = changed.get(name) {
                theirs.clone_into(name);
                continue;
            }
            // Numbers increase over all names, so that names that are made to collide cost no more than
            // others.
            let mut numbers = iter::once(1).chain(changed.len() + 2..);
            let theirs = numbers.find_map(|number| {
                let new = fitting(name, number);
                taken.insert(new.clone()).then_some(new)
            });
            let theirs = theirs.unwrap_or_default();
            let own = mem::replace(name, theirs.clone());
            changed.insert(own, theirs);
        }
        Self(
            changed
                .into_iter()
                .map(|(own, theirs)| (theirs, own))
                .collect(),
        )
    }

    /// Gives the calls in a response the server's names.
    pub(crate) fn restore(&self, answer: &mut Answer) {
        for piece in &mut answer.pieces {
            if let Piece::ToolUse { name, .. } = piece
                && let Some(own) = self.0.get(name)
            {
                own.clone_into(name);
            }
        }
    }
}

/// All names of tools in the request.
fn names(ask: &mut Ask) -> impl Iterator<Item = &mut String> {
    let blocks = ask
        .messages
        .iter_mut()
        .flat_map(|message| &mut message.blocks);
    let called = blocks.filter_map(|block| match &mut block.content {
        Content::ToolUse { name, .. } => Some(name),
        _ => None,
    });
    ask.tools
        .iter_mut()
        .map(|tool| &mut tool.name)
        .chain(called)
}

fn fits(name: &str) -> bool {
    (1..=NAME_MAX).contains(&name.len()) && name.bytes().all(is_plain)
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_-".contains(&byte)
}

/// The name with unsupported characters replaced, shortened, and with `_{at}` from the second attempt on.
fn fitting(name: &str, at: usize) -> String {
    let end = match at {
        1 => String::new(),
        at => format!("_{at}"),
    };
    let plain = |character: char| match u8::try_from(character) {
        Ok(byte) if is_plain(byte) => character,
        _ => '_',
    };
    let start: String = name.chars().map(plain).take(NAME_MAX - end.len()).collect();
    let start = if start.is_empty() {
        "tool".to_owned()
    } else {
        start
    };
    start + &end
}

#[cfg(test)]
mod tests {
    use switchboard_wire::Raw;

    use super::*;

    #[test]
    fn changed_names_are_restored_in_the_response() {
        let long = "l".repeat(100);
        let longer = format!("{long}er");
        let own = [
            "files.read",
            "files_read",
            "files/read",
            "plain-1",
            "",
            &long,
            &longer,
            "ü",
        ];
        let tools: Vec<_> = own
            .iter()
            .map(|name| serde_json::json!({"name": name}))
            .collect();
        let params = serde_json::json!({
            "messages": [{"role": "assistant", "content": [
                {"type": "tool_use", "id": "1", "name": "files/read", "input": {}},
                {"type": "tool_use", "id": "2", "name": "gone.since", "input": {}},
            ]}],
            "tools": tools,
        });
        let mut ask = Ask::read(&Raw::parse(params.to_string()).unwrap()).unwrap();
        let changed = Names::fit(&mut ask);
        let theirs: Vec<_> = ask.tools.iter().map(|tool| tool.name.clone()).collect();
        assert_eq!(
            theirs[..5],
            [
                "files_read_2",
                "files_read",
                "files_read_3",
                "plain-1",
                "tool"
            ]
        );
        assert!(theirs.iter().all(|name| fits(name)), "{theirs:?}");
        let called: Vec<_> = names(&mut ask)
            .skip(own.len())
            .map(|name| name.clone())
            .collect();
        assert_eq!(called, ["files_read_3", "gone_since"]);
        let mut answer = Answer {
            pieces: theirs
                .iter()
                .map(|name| Piece::ToolUse {
                    id: String::new(),
                    name: name.clone(),
                    input: Raw::empty_object(),
                })
                .collect(),
            ..Answer::default()
        };
        changed.restore(&mut answer);
        let back: Vec<_> = answer
            .pieces
            .iter()
            .map(|piece| match piece {
                Piece::ToolUse { name, .. } => name.as_str(),
                Piece::Text(_) => "",
            })
            .collect();
        assert_eq!(back, own);
    }
}
