//! The protocols between agents and their models.

use serde_json::{Value, json};

/// A protocol between an agent and its model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// Anthropic's Messages API.
    Messages,
    /// `OpenAI`'s Responses API.
    Responses,
    /// `OpenAI`'s Chat Completions API.
    Chat,
    /// Google's `generateContent`.
    Generate,
}

/// A response of the model.
#[derive(Debug)]
pub(crate) enum Says {
    Text(&'static str),
    /// Calls this tool of the gateway; `number` counts the calls.
    Call {
        tool: &'static str,
        arguments: Value,
        number: usize,
    },
}

impl Dialect {
    /// The texts of the tool results in a request, in order.
    pub(crate) fn results(self, request: &Value) -> Vec<String> {
        let list = |name: &str| request[name].as_array().cloned().unwrap_or_default();
        let results: Vec<Value> = match self {
            Self::Messages => list("messages")
                .iter()
                .flat_map(|message| message["content"].as_array().cloned().unwrap_or_default())
                .filter(|block| block["type"] == "tool_result")
                .map(|block| block["content"].clone())
                .collect(),
            Self::Responses => list("input")
                .iter()
                .filter(|item| item["type"] == "function_call_output")
                .map(|item| item["output"].clone())
                .collect(),
            Self::Chat => list("messages")
                .iter()
                .filter(|message| message["role"] == "tool")
                .map(|message| message["content"].clone())
                .collect(),
            Self::Generate => list("contents")
                .iter()
                .flat_map(|content| content["parts"].as_array().cloned().unwrap_or_default())
                .map(|part| part["functionResponse"]["response"].clone())
                .filter(|response| !response.is_null())
                .collect(),
        };
        results.iter().map(text_of).collect()
    }

    /// The content type and the body of a response. `streamed` is `true` if the agent asked for a stream.
    pub(crate) fn response(self, says: &Says, streamed: bool) -> (&'static str, String) {
        const EVENTS: &str = "text/event-stream";
        const JSON: &str = "application/json";
        match self {
            Self::Messages if streamed => (EVENTS, events(&message_events(says), true)),
            Self::Messages => (JSON, message(says).to_string()),
            Self::Responses => (EVENTS, events(&response_events(says), true)),
            Self::Chat if streamed => {
                let chunks = events(&chat_chunks(says), false);
                (EVENTS, format!("{chunks}data: [DONE]\n\n"))
            }
            Self::Chat => (JSON, chat(says).to_string()),
            Self::Generate if streamed => (EVENTS, events(&[generated(says)], false)),
            Self::Generate => (JSON, generated(says).to_string()),
        }
    }
}

/// All texts in a value.
fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(text_of).collect::<Vec<_>>().join("\n"),
        Value::Object(members) => members.values().map(text_of).collect::<Vec<_>>().join("\n"),
        other => other.to_string(),
    }
}

fn events(all: &[Value], named: bool) -> String {
    let event = |event: &Value| match event["type"].as_str().filter(|_| named) {
        Some(name) => format!("event: {name}\ndata: {event}\n\n"),
        None => format!("data: {event}\n\n"),
    };
    all.iter().map(event).collect()
}

fn message(says: &Says) -> Value {
    let (block, reason) = match says {
        Says::Text(text) => (json!({ "type": "text", "text": text }), "end_turn"),
        Says::Call {
            tool,
            arguments,
            number,
        } => {
            let name = format!("mcp__switchboard__{tool}");
            let id = format!("toolu_{number}");
            let call = json!({ "type": "tool_use", "id": id, "name": name, "input": arguments });
            (call, "tool_use")
        }
    };
    json!({
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "scripted",
        "content": [block],
        "stop_reason": reason,
        "stop_sequence": null,
        "usage": { "input_tokens": 1, "output_tokens": 1 },
    })
}

fn message_events(says: &Says) -> Vec<Value> {
    let mut message = message(says);
    let mut block = message["content"][0].take();
    let delta = match says {
        Says::Text(text) => {
            block["text"] = json!("");
            json!({ "type": "text_delta", "text": text })
        }
        Says::Call { arguments, .. } => {
            block["input"] = json!({});
            json!({ "type": "input_json_delta", "partial_json": arguments.to_string() })
        }
    };
    let reason = message["stop_reason"].take();
    message["content"] = json!([]);
    let end = json!({ "stop_reason": reason, "stop_sequence": null });
    vec![
        json!({ "type": "message_start", "message": message }),
        json!({ "type": "content_block_start", "index": 0, "content_block": block }),
        json!({ "type": "content_block_delta", "index": 0, "delta": delta }),
        json!({ "type": "content_block_stop", "index": 0 }),
        json!({ "type": "message_delta", "delta": end, "usage": { "output_tokens": 1 } }),
        json!({ "type": "message_stop" }),
    ]
}

fn response_events(says: &Says) -> Vec<Value> {
    let item = match says {
        Says::Text(text) => json!({
            "type": "message",
            "id": "item_1",
            "role": "assistant",
            "content": [{ "type": "output_text", "text": text }],
        }),
        Says::Call {
            tool,
            arguments,
            number,
        } => json!({
            "type": "function_call",
            "call_id": format!("call_{number}"),
            "namespace": "mcp__switchboard",
            "name": tool,
            "arguments": arguments.to_string(),
        }),
    };
    let usage = json!({ "input_tokens": 1, "output_tokens": 1, "total_tokens": 2 });
    vec![
        json!({ "type": "response.created", "response": { "id": "resp_1" } }),
        json!({ "type": "response.output_item.done", "item": item }),
        json!({ "type": "response.completed", "response": { "id": "resp_1", "usage": usage } }),
    ]
}

/// The message of the model, and the reason why it ends.
fn chat_message(says: &Says) -> (Value, &'static str) {
    match says {
        Says::Text(text) => (json!({ "role": "assistant", "content": text }), "stop"),
        Says::Call {
            tool,
            arguments,
            number,
        } => {
            let name = format!("switchboard_{tool}");
            let call = json!({
                "index": 0,
                "id": format!("call_{number}"),
                "type": "function",
                "function": { "name": name, "arguments": arguments.to_string() },
            });
            let message = json!({ "role": "assistant", "content": null, "tool_calls": [call] });
            (message, "tool_calls")
        }
    }
}

fn chat(says: &Says) -> Value {
    let (message, reason) = chat_message(says);
    json!({
        "id": "chat_1",
        "object": "chat.completion",
        "created": 1,
        "model": "scripted",
        "choices": [{ "index": 0, "message": message, "finish_reason": reason }],
        "usage": { "prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2 },
    })
}

fn chat_chunks(says: &Says) -> Vec<Value> {
    let (delta, reason) = chat_message(says);
    let chunk = |delta: Value, reason: Value| {
        json!({
            "id": "chat_1",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": "scripted",
            "choices": [{ "index": 0, "delta": delta, "finish_reason": reason }],
            "usage": { "prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2 },
        })
    };
    vec![chunk(delta, Value::Null), chunk(json!({}), json!(reason))]
}

fn generated(says: &Says) -> Value {
    let part = match says {
        Says::Text(text) => json!({ "text": text }),
        Says::Call {
            tool, arguments, ..
        } => {
            let name = format!("mcp_switchboard_{tool}");
            json!({ "functionCall": { "name": name, "args": arguments } })
        }
    };
    let content = json!({ "role": "model", "parts": [part] });
    json!({
        "candidates": [{ "content": content, "finishReason": "STOP", "index": 0 }],
        "usageMetadata": {
            "promptTokenCount": 1,
            "candidatesTokenCount": 1,
            "totalTokenCount": 2,
        },
    })
}
