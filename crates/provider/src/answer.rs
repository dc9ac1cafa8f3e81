//! What a model answered, on its way to a `CreateMessageResult`.

use switchboard_wire::Raw;

use crate::ask::present;

/// A model's answer, whichever interface it came through.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    /// The model's own name for itself.
    pub(crate) model: Option<String>,
    pub(crate) pieces: Vec<Piece>,
    pub(crate) stop: Option<Stop>,
    pub(crate) input_tokens: Option<u64>,
    pub(crate) output_tokens: Option<u64>,
}

#[derive(Debug)]
pub(crate) enum Piece {
    Text(String),
    ToolUse {
        id: String,
        name: String,
        input: Raw,
    },
}

/// Why the model stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    EndTurn,
    MaxTokens,
    Sequence,
    ToolUse,
}

impl Stop {
    fn as_str(self) -> &'static str {
        match self {
            Self::EndTurn => "endTurn",
            Self::MaxTokens => "maxTokens",
            Self::Sequence => "stopSequence",
            Self::ToolUse => "toolUse",
        }
    }
}

/// Why there is an answer and nothing to deliver.
#[derive(Debug)]
pub(crate) enum Flaw {
    /// It is not what the interface says.
    Odd(String),
    /// The model does not want to.
    Refused(String),
}

impl Flaw {
    pub(crate) fn odd(reason: impl Into<String>) -> Self {
        Self::Odd(reason.into())
    }
}

/// A name longer than this is none.
const NAME_MAX: usize = 200;

impl Answer {
    /// The result for the server. Without tools it has one block, which is all that revisions before
    /// 2025-11-25 know; `asked` stands in for a model that does not say its name.
    pub(crate) fn into_result(self, asked: &str, has_tools: bool) -> Result<Raw, Flaw> {
        let has_calls = self
            .pieces
            .iter()
            .any(|piece| matches!(piece, Piece::ToolUse { .. }));
        if has_calls && !has_tools {
            return Err(Flaw::odd("it calls a tool, though it was offered none"));
        }
        let model = self.model.as_deref().unwrap_or(asked);
        let stop = if has_calls {
            Some(Stop::ToolUse)
        } else {
            self.stop
        };
        let mut members = vec![
            ("role", Raw::string("assistant")),
            ("content", content(self.pieces)),
            ("model", Raw::string(model)),
        ];
        if let Some(stop) = stop {
            members.push(("stopReason", Raw::string(stop.as_str())));
        }
        Ok(Raw::object(members))
    }
}

/// One block if one is enough, else a list. Texts that follow each other are one.
fn content(pieces: Vec<Piece>) -> Raw {
    let mut blocks = Vec::new();
    let mut text = String::new();
    let text_block =
        |text: &str| Raw::object([("type", Raw::string("text")), ("text", Raw::string(text))]);
    for piece in pieces {
        match piece {
            Piece::Text(more) => text.push_str(&more),
            Piece::ToolUse { id, name, input } => {
                if !text.is_empty() {
                    blocks.push(text_block(&text));
                    text.clear();
                }
                blocks.push(Raw::object([
                    ("type", Raw::string("tool_use")),
                    ("id", Raw::string(&id)),
                    ("name", Raw::string(&name)),
                    ("input", input),
                ]));
            }
        }
    }
    if !text.is_empty() || blocks.is_empty() {
        blocks.push(text_block(&text));
    }
    match blocks.len() {
        1 => blocks.remove(0),
        _ => Raw::array(blocks),
    }
}

/// A name in an answer, if it can be one.
pub(crate) fn name(object: &Raw, member: &str) -> Option<String> {
    let name = present(object, member)?.to_text()?;
    let is_name = !name.is_empty()
        && name.len() <= NAME_MAX
        && !name.contains(|character: char| character.is_control());
    is_name.then_some(name)
}

/// A count in an answer, if it is one.
pub(crate) fn count(object: Option<&Raw>, member: &str) -> Option<u64> {
    present(object?, member)?.read().ok()
}

/// What an error in a body says: `{"error":{"message"}}`, `{"error":""}`, `{"message":""}`, `{"detail":""}`.
pub(crate) fn complaint(body: &Raw) -> Option<String> {
    let error = present(body, "error");
    let inner = error.as_ref().and_then(|error| present(error, "message"));
    inner
        .and_then(|message| message.to_text())
        .or_else(|| error?.to_text())
        .or_else(|| present(body, "message")?.to_text())
        .or_else(|| present(body, "detail")?.to_text())
}

/// Whether a value holds this text in any of its strings, however they are spelled. `None` if it is
/// nested too deeply to be looked into.
pub(crate) fn holds(value: &Raw, text: &str) -> Option<bool> {
    fn within(value: &serde_json::Value, text: &str) -> bool {
        use serde_json::Value;
        match value {
            Value::String(string) => string.contains(text),
            Value::Array(items) => items.iter().any(|item| within(item, text)),
            Value::Object(members) => members
                .iter()
                .any(|(name, value)| name.contains(text) || within(value, text)),
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
    }
    let value = value.read_owned().ok()?;
    Some(within(&value, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call() -> Piece {
        Piece::ToolUse {
            id: "1".to_owned(),
            name: "add".to_owned(),
            input: Raw::empty_object(),
        }
    }

    fn result(pieces: Vec<Piece>, has_tools: bool) -> Result<String, Flaw> {
        let answer = Answer {
            pieces,
            stop: Some(Stop::EndTurn),
            ..Answer::default()
        };
        answer
            .into_result("m", has_tools)
            .map(|result| result.to_string())
    }

    #[test]
    fn one_block_where_one_is_enough() {
        let text = |text: &str| Piece::Text(text.to_owned());
        assert_eq!(
            result(vec![text("a"), text("b")], false).unwrap(),
            r#"{"role":"assistant","content":{"type":"text","text":"ab"},"model":"m","stopReason":"endTurn"}"#
        );
        assert_eq!(
            result(vec![], true).unwrap(),
            r#"{"role":"assistant","content":{"type":"text","text":""},"model":"m","stopReason":"endTurn"}"#
        );
        assert_eq!(
            result(vec![text("a"), call(), call()], true).unwrap(),
            r#"{"role":"assistant","content":[{"type":"text","text":"a"},{"type":"tool_use","id":"1","name":"add","input":{}},{"type":"tool_use","id":"1","name":"add","input":{}}],"model":"m","stopReason":"toolUse"}"#
        );
        assert!(
            result(vec![call()], true)
                .unwrap()
                .contains(r#""content":{"type":"tool_use""#)
        );
        assert!(result(vec![call()], false).is_err());
    }

    #[test]
    fn a_key_is_found_however_it_is_spelled() {
        let holds = |json: &'static str| holds(&Raw::parse(json).unwrap(), "key").unwrap();
        assert!(holds(r#"{"a":["x\u006bey"]}"#));
        assert!(holds(r#"{"\u006bey":1}"#));
        assert!(!holds(r#"{"a":["k","ey"]}"#));
    }
}
