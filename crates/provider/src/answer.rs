//! A model's response, on its way to a `CreateMessageResult`.

use switchboard_wire::Raw;

use crate::ask::present;

/// A model's response, independent of the API.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    /// The model's name, as it reports it.
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

/// The reason why the model stopped.
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

/// The reason why a response cannot be delivered.
#[derive(Debug)]
pub(crate) enum Flaw {
    /// The response does not conform to the API.
    Odd(String),
    /// The model refused the request.
    Refused(String),
}

impl Flaw {
    pub(crate) fn odd(reason: impl Into<String>) -> Self {
        Self::Odd(reason.into())
    }
}

/// The longest name that is accepted, in bytes.
const NAME_MAX: usize = 200;

impl Answer {
    /// Converts it into the result for the server. A response to a request without tools has one block,
    /// because revisions before 2025-11-25 know no lists; `asked` is the name of a model that does not report
    /// its own.
    pub(crate) fn into_result(self, asked: &str, has_tools: bool) -> Result<Raw, Flaw> {
        let has_calls = self
            .pieces
            .iter()
            .any(|piece| matches!(piece, Piece::ToolUse { .. }));
        if has_calls && !has_tools {
            return Err(Flaw::odd("it calls a tool, but the request offered none"));
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

/// A single block, or a list if there are several. Adjacent texts are merged.
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

/// A name in a response, if it is valid.
pub(crate) fn name(object: &Raw, member: &str) -> Option<String> {
    let name = present(object, member)?.to_text()?;
    let is_name = !name.is_empty()
        && name.len() <= NAME_MAX
        && !name.contains(|character: char| character.is_control());
    is_name.then_some(name)
}

/// A count in a response, if it is valid.
pub(crate) fn count(object: Option<&Raw>, member: &str) -> Option<u64> {
    present(object?, member)?.read().ok()
}

/// The message of an error response: `{"error":{"message"}}`, `{"error":""}`, `{"message":""}`,
/// `{"detail":""}`.
pub(crate) fn complaint(body: &Raw) -> Option<String> {
    let error = present(body, "error");
    let inner = error.as_ref().and_then(|error| present(error, "message"));
    inner
        .and_then(|message| message.to_text())
        .or_else(|| error?.to_text())
        .or_else(|| present(body, "message")?.to_text())
        .or_else(|| present(body, "detail")?.to_text())
}

/// Tests if any string of a value contains this text, regardless of escapes. `None` if the value is nested
/// too deeply to be searched.
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
    fn single_block_is_not_a_list() {
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
    fn key_is_found_despite_escapes() {
        let holds = |json: &'static str| holds(&Raw::parse(json).unwrap(), "key").unwrap();
        assert!(holds(r#"{"a":["x\u006bey"]}"#));
        assert!(holds(r#"{"\u006bey":1}"#));
        assert!(!holds(r#"{"a":["k","ey"]}"#));
    }
}
