//! The messages API of Anthropic.

use switchboard_wire::Raw;

use crate::{
    answer::{Answer, Flaw, Piece, Stop, complaint, count, name},
    ask::{Ask, Block, Choice, Content, Message, Tool, present},
    error::ProviderError,
};

/// The limit if neither the request nor the settings have one; the API requires it.
pub(crate) const MAX_TOKENS: u64 = 4_096;

/// The types of images that it accepts.
const IMAGES: [&str; 4] = ["image/jpeg", "image/png", "image/gif", "image/webp"];

/// Encodes the body of a request.
pub(crate) fn body(ask: &Ask, model: &str, max_tokens: Option<u64>) -> Result<Raw, ProviderError> {
    let messages: Vec<_> = ask.messages.iter().map(message).collect::<Result<_, _>>()?;
    let mut members = vec![
        ("model", Raw::string(model)),
        ("max_tokens", Raw::number(max_tokens.unwrap_or(MAX_TOKENS))),
        // The API rejects messages without content, so they are left out.
        ("messages", Raw::array(messages.into_iter().flatten())),
    ];
    if let Some(system) = &ask.system {
        members.push(("system", Raw::string(system)));
    }
    if let Some(temperature) = &ask.temperature {
        // The API accepts at most 1; others accept up to 2.
        let is_high = temperature.read::<f64>().is_ok_and(|number| number > 1.0);
        let temperature = if is_high {
            Raw::number(1)
        } else {
            temperature.clone()
        };
        members.push(("temperature", temperature));
    }
    if !ask.stops.is_empty() {
        members.push((
            "stop_sequences",
            Raw::array(ask.stops.iter().map(|stop| Raw::string(stop))),
        ));
    }
    if !ask.tools.is_empty() {
        members.push(("tools", Raw::array(ask.tools.iter().map(tool))));
        if let Some(choice) = ask.choice {
            let choice = match choice {
                Choice::Auto => "auto",
                Choice::Required => "any",
                Choice::None => "none",
            };
            members.push(("tool_choice", Raw::object([("type", Raw::string(choice))])));
        }
    }
    Ok(Raw::object(members))
}

/// Parses the body of a response.
pub(crate) fn answer(body: &Raw) -> Result<Answer, Flaw> {
    let Some(blocks) = present(body, "content").and_then(|content| content.elements()) else {
        let reason = complaint(body).map_or_else(
            || "it has no \"content\" list".to_owned(),
            |complaint| format!("it is an error: {complaint:?}"),
        );
        return Err(Flaw::Odd(reason));
    };
    let mut pieces = Vec::with_capacity(blocks.len());
    for block in blocks {
        let kind = present(&block, "type").and_then(|kind| kind.to_text());
        match kind.as_deref() {
            Some("text") => {
                let text = present(&block, "text").and_then(|text| text.to_text());
                pieces.push(Piece::Text(
                    text.ok_or_else(|| Flaw::odd("a text block has no text"))?,
                ));
            }
            Some("tool_use") => pieces.push(tool_use(&block)?),
            // Thinking, and blocks of unknown types, are not for the server.
            _ => {}
        }
    }
    let reason = present(body, "stop_reason").and_then(|reason| reason.to_text());
    let stop = match reason.as_deref() {
        Some("refusal") => {
            let said = pieces.iter().find_map(|piece| match piece {
                Piece::Text(text) => Some(text.clone()),
                Piece::ToolUse { .. } => None,
            });
            return Err(Flaw::Refused(said.unwrap_or_default()));
        }
        Some("end_turn") => Some(Stop::EndTurn),
        Some("max_tokens" | "model_context_window_exceeded") => Some(Stop::MaxTokens),
        Some("stop_sequence") => Some(Stop::Sequence),
        Some("tool_use") => Some(Stop::ToolUse),
        _ => None,
    };
    let usage = present(body, "usage");
    Ok(Answer {
        model: name(body, "model"),
        pieces,
        stop,
        input_tokens: count(usage.as_ref(), "input_tokens"),
        output_tokens: count(usage.as_ref(), "output_tokens"),
    })
}

fn message(message: &Message) -> Result<Option<Raw>, ProviderError> {
    let content = blocks(&message.blocks)?;
    Ok((!content.is_empty()).then(|| {
        Raw::object([
            ("role", Raw::string(message.role.as_str())),
            ("content", Raw::array(content)),
        ])
    }))
}

fn blocks(all: &[Block]) -> Result<Vec<Raw>, ProviderError> {
    let is_empty =
        |block: &&Block| matches!(&block.content, Content::Text(text) if text.is_empty());
    all.iter()
        .filter(|each| !is_empty(each))
        .map(block)
        .collect()
}

fn block(block: &Block) -> Result<Raw, ProviderError> {
    Ok(match &block.content {
        Content::Text(text) => {
            Raw::object([("type", Raw::string("text")), ("text", Raw::string(text))])
        }
        Content::Image { data, mime } => {
            let mime = if mime == "image/jpg" {
                "image/jpeg"
            } else {
                mime
            };
            if !IMAGES.contains(&mime) {
                let reason = format!(
                    "is an image of the type {mime}; this provider accepts jpeg, png, gif and webp"
                );
                return Err(ProviderError::request(&block.place, reason));
            }
            let source = Raw::object([
                ("type", Raw::string("base64")),
                ("media_type", Raw::string(mime)),
                ("data", Raw::string(data)),
            ]);
            Raw::object([("type", Raw::string("image")), ("source", source)])
        }
        Content::Audio { .. } => {
            let reason =
                "is audio, which this provider does not accept; choose a provider that does";
            return Err(ProviderError::request(&block.place, reason));
        }
        Content::ToolUse { id, name, input } => Raw::object([
            ("type", Raw::string("tool_use")),
            ("id", Raw::string(id)),
            ("name", Raw::string(name)),
            ("input", input.clone()),
        ]),
        Content::ToolResult {
            id,
            blocks: inner,
            is_error,
        } => {
            let mut members = vec![
                ("type", Raw::string("tool_result")),
                ("tool_use_id", Raw::string(id)),
                ("content", Raw::array(blocks(inner)?)),
            ];
            if *is_error {
                members.push(("is_error", true.into()));
            }
            Raw::object(members)
        }
    })
}

fn tool(tool: &Tool) -> Raw {
    let description = tool.description.as_ref();
    let members = [("name", Raw::string(&tool.name))]
        .into_iter()
        .chain(description.map(|text| ("description", Raw::string(text))))
        .chain([("input_schema", tool.schema.clone())]);
    Raw::object(members)
}

fn tool_use(block: &Raw) -> Result<Piece, Flaw> {
    let (Some(id), Some(name)) = (name(block, "id"), name(block, "name")) else {
        return Err(Flaw::odd("it calls a tool without a name or an ID"));
    };
    let input = present(block, "input").filter(Raw::is_object);
    let Some(input) = input else {
        return Err(Flaw::Odd(format!(
            "the input of its call to {name:?} is not an object"
        )));
    };
    Ok(Piece::ToolUse { id, name, input })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(params: &str) -> Result<String, ProviderError> {
        let ask = Ask::read(&Raw::parse(params.to_owned()).unwrap())?;
        body(&ask, "m", ask.max_tokens).map(|body| body.to_string())
    }

    #[test]
    fn plain_request_is_encoded() {
        assert_eq!(
            written(r#"{"messages":[{"role":"user","content":{"type":"text","text":"Hi"}},{"role":"assistant","content":[{"type":"text","text":""}]}],
                "systemPrompt":"Be brief.","maxTokens":10,"temperature":1.5,"stopSequences":["END"],"includeContext":"thisServer"}"#).unwrap(),
            r#"{"model":"m","max_tokens":10,"messages":[{"role":"user","content":[{"type":"text","text":"Hi"}]}],"system":"Be brief.","temperature":1,"stop_sequences":["END"]}"#
        );
        let bare = written(r#"{"messages":[{"role":"user","content":{"type":"text","text":"Hi"}}],"temperature":0.70}"#).unwrap();
        assert!(
            bare.contains(r#""max_tokens":4096"#) && bare.contains(r#""temperature":0.70"#),
            "{bare}"
        );
    }

    #[test]
    fn images_are_encoded_and_audio_is_rejected() {
        let content = |content: &str| {
            written(&format!(
                r#"{{"messages":[{{"role":"user","content":[{content}]}}]}}"#
            ))
        };
        assert!(content(r#"{"type":"image","data":"aGk=","mimeType":"image/jpg"}"#).unwrap().contains(
            r#"{"type":"image","source":{"type":"base64","media_type":"image/jpeg","data":"aGk="}}"#
        ));
        assert_eq!(
            content(r#"{"type":"image","data":"aGk=","mimeType":"image/tiff"}"#)
                .unwrap_err()
                .to_string(),
            "cannot send the request to the model: messages[0].content[0] is an image of the type image/tiff; \
             this provider accepts jpeg, png, gif and webp"
        );
        assert_eq!(
            content(r#"{"type":"audio","data":"aGk=","mimeType":"audio/wav"}"#)
                .unwrap_err()
                .to_string(),
            "cannot send the request to the model: messages[0].content[0] is audio, which this provider \
             does not accept; choose a provider that does"
        );
    }

    #[test]
    fn tools_and_results_are_encoded() {
        assert_eq!(
            written(r#"{"messages":[{"role":"assistant","content":{"type":"tool_use","id":"c1","name":"add","input":{"n": 1.50}}},
                {"role":"user","content":[{"type":"tool_result","toolUseId":"c1","isError":true,"content":[{"type":"text","text":"no"},{"type":"image","data":"aGk=","mimeType":"image/png"}]}]}],
                "maxTokens":1,"tools":[{"name":"add","inputSchema":{"type":"object"}}],"toolChoice":{"mode":"required"}}"#).unwrap(),
            concat!(
                r#"{"model":"m","max_tokens":1,"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"add","input":{"n": 1.50}}]},"#,
                r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":[{"type":"text","text":"no"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"aGk="}}],"is_error":true}]}],"#,
                r#""tools":[{"name":"add","input_schema":{"type":"object"}}],"tool_choice":{"type":"any"}}"#
            )
        );
    }

    fn read(body: &str) -> Result<String, Flaw> {
        let answer = answer(&Raw::parse(body.to_owned()).unwrap())?;
        answer
            .into_result("m", true)
            .map(|result| result.to_string())
    }

    #[test]
    fn answers() {
        assert_eq!(
            read(r#"{"model":"claude-x","content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":"Yes"}],"stop_reason":"end_turn"}"#).unwrap(),
            r#"{"role":"assistant","content":{"type":"text","text":"Yes"},"model":"claude-x","stopReason":"endTurn"}"#
        );
        assert_eq!(
            read(r#"{"content":[{"type":"tool_use","id":"c1","name":"add","input":{"n": 1.50}}],"stop_reason":"tool_use"}"#).unwrap(),
            r#"{"role":"assistant","content":{"type":"tool_use","id":"c1","name":"add","input":{"n": 1.50}},"model":"m","stopReason":"toolUse"}"#
        );
        for (reason, expected) in [
            (r#""max_tokens""#, r#","stopReason":"maxTokens"}"#),
            (r#""stop_sequence""#, r#","stopReason":"stopSequence"}"#),
            (r#""pause_turn""#, r#""model":"m"}"#),
            ("null", r#""model":"m"}"#),
        ] {
            let result = read(&format!(r#"{{"content":[],"stop_reason":{reason}}}"#)).unwrap();
            assert!(result.ends_with(expected), "{result}");
        }
    }

    #[test]
    fn refusals_and_errors_are_reported() {
        assert!(matches!(
            read(r#"{"content":[{"type":"text","text":"No."}],"stop_reason":"refusal"}"#),
            Err(Flaw::Refused(said)) if said == "No."
        ));
        assert!(
            matches!(read(r#"{"type":"error","error":{"message":"odd"}}"#), Err(Flaw::Odd(reason)) if reason.contains("odd"))
        );
        for odd in [
            "1",
            "{}",
            r#"{"content":"a"}"#,
            r#"{"content":[{"type":"text"}]}"#,
            r#"{"content":[{"type":"tool_use","id":"1","name":"a","input":[]}]}"#,
            r#"{"content":[{"type":"tool_use","name":"a","input":{}}]}"#,
        ] {
            assert!(matches!(read(odd), Err(Flaw::Odd(_))), "{odd}");
        }
    }
}
