//! The chat completions API of `OpenAI`, which most other providers speak too.

use switchboard_wire::Raw;

use crate::{
    answer::{Answer, Flaw, Piece, Stop, complaint, count, name},
    ask::{Ask, Block, Choice, Content, Message, Role, Tool, present},
    error::ProviderError,
};

/// The name of the token limit: `OpenAI` renamed it and rejects the old name, which the others still expect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    Author,
    Others,
}

/// Encodes the body of a request.
pub(crate) fn body(
    ask: &Ask,
    model: &str,
    max_tokens: Option<u64>,
    dialect: Dialect,
) -> Result<Raw, ProviderError> {
    let mut messages = Vec::new();
    if let Some(system) = &ask.system {
        messages.push(message("system", Raw::string(system), []));
    }
    for each in &ask.messages {
        write_message(each, &mut messages)?;
    }
    let mut members = vec![
        ("model", Raw::string(model)),
        ("messages", Raw::array(messages)),
    ];
    if let Some(max_tokens) = max_tokens {
        let name = match dialect {
            Dialect::Author => "max_completion_tokens",
            Dialect::Others => "max_tokens",
        };
        members.push((name, Raw::number(max_tokens)));
    }
    if let Some(temperature) = &ask.temperature {
        members.push(("temperature", temperature.clone()));
    }
    if !ask.stops.is_empty() {
        members.push((
            "stop",
            Raw::array(ask.stops.iter().map(|stop| Raw::string(stop))),
        ));
    }
    if !ask.tools.is_empty() {
        members.push(("tools", Raw::array(ask.tools.iter().map(tool))));
        if let Some(choice) = ask.choice {
            let choice = match choice {
                Choice::Auto => "auto",
                Choice::Required => "required",
                Choice::None => "none",
            };
            members.push(("tool_choice", Raw::string(choice)));
        }
    }
    Ok(Raw::object(members))
}

/// Parses the body of a response.
pub(crate) fn answer(body: &Raw, stops: &[String]) -> Result<Answer, Flaw> {
    let choices = present(body, "choices").and_then(|choices| choices.elements());
    let Some(choice) = choices.and_then(|choices| choices.into_iter().next()) else {
        // Some providers report errors with status 200.
        let reason = complaint(body).map_or_else(
            || "it has no \"choices\"".to_owned(),
            |complaint| format!("it is an error: {complaint:?}"),
        );
        return Err(Flaw::Odd(reason));
    };
    let Some(message) = present(&choice, "message").filter(Raw::is_object) else {
        return Err(Flaw::odd("its first choice has no \"message\""));
    };
    if let Some(refusal) = present(&message, "refusal").and_then(|refusal| refusal.to_text())
        && !refusal.is_empty()
    {
        return Err(Flaw::Refused(refusal));
    }
    let finish = present(&choice, "finish_reason").and_then(|reason| reason.to_text());
    let stop = match finish.as_deref() {
        Some("content_filter") => return Err(Flaw::Refused("content filter".to_owned())),
        Some("length") => Some(Stop::MaxTokens),
        Some("tool_calls" | "function_call") => Some(Stop::ToolUse),
        // The API does not say which sequence stopped the model; some servers add it.
        Some("stop") if is_stop(&choice, stops) => Some(Stop::Sequence),
        Some("stop") => Some(Stop::EndTurn),
        _ => None,
    };
    let mut pieces = texts(&message)?;
    let calls = present(&message, "tool_calls").and_then(|calls| calls.elements());
    for call in calls.unwrap_or_default() {
        pieces.push(tool_use(&call)?);
    }
    let usage = present(body, "usage");
    Ok(Answer {
        model: name(body, "model"),
        pieces,
        stop,
        input_tokens: count(usage.as_ref(), "prompt_tokens"),
        output_tokens: count(usage.as_ref(), "completion_tokens"),
    })
}

/// Encodes one message of MCP as several: each result of a tool becomes a message of its own, and media in a
/// result, which such a message cannot contain, follow in a message of the user.
fn write_message(each: &Message, out: &mut Vec<Raw>) -> Result<(), ProviderError> {
    let mut parts = Vec::new();
    let mut calls = Vec::new();
    for block in &each.blocks {
        match &block.content {
            Content::ToolUse { id, name, input } => calls.push(Raw::object([
                ("id", Raw::string(id)),
                ("type", Raw::string("function")),
                (
                    "function",
                    Raw::object([
                        ("name", Raw::string(name)),
                        ("arguments", Raw::string(input.as_str())),
                    ]),
                ),
            ])),
            Content::ToolResult {
                id,
                blocks,
                is_error,
            } => {
                let text = result_text(blocks, *is_error);
                out.push(message(
                    "tool",
                    Raw::string(&text),
                    [("tool_call_id", Raw::string(id))],
                ));
                for block in blocks {
                    if !matches!(block.content, Content::Text(_)) {
                        parts.push(part(block)?);
                    }
                }
            }
            _ => parts.push(part(block)?),
        }
    }
    let content = match joined(&each.blocks) {
        // Many servers accept only strings, and no lists of parts.
        Some(text) => Raw::string(&text),
        None => Raw::array(parts.clone()),
    };
    match each.role {
        Role::User if parts.is_empty() => {}
        Role::User => out.push(message("user", content, [])),
        Role::Assistant if calls.is_empty() => out.push(message("assistant", content, [])),
        Role::Assistant => {
            let calls = [("tool_calls", Raw::array(calls))];
            out.push(message("assistant", content, calls));
        }
    }
    Ok(())
}

fn message<const N: usize>(role: &str, content: Raw, more: [(&str, Raw); N]) -> Raw {
    let members = [("role", Raw::string(role)), ("content", content)];
    Raw::object(members.into_iter().chain(more))
}

/// The text of blocks, if they are only texts and calls.
fn joined(blocks: &[Block]) -> Option<String> {
    let mut texts = Vec::new();
    for block in blocks {
        match &block.content {
            Content::Text(text) => texts.push(text.as_str()),
            Content::ToolUse { .. } => {}
            _ => return None,
        }
    }
    Some(texts.join("\n"))
}

fn result_text(blocks: &[Block], is_error: bool) -> String {
    let mut lines = Vec::new();
    if is_error {
        // The API has no flag for errors.
        lines.push("The tool failed:");
    }
    for block in blocks {
        lines.push(match &block.content {
            Content::Text(text) => text,
            _ => "(in the next message)",
        });
    }
    lines.join("\n")
}

fn part(block: &Block) -> Result<Raw, ProviderError> {
    let (name, value) = match &block.content {
        Content::Text(text) => ("text", Raw::string(text)),
        Content::Image { data, mime } => {
            let url = Raw::string(&format!("data:{mime};base64,{data}"));
            ("image_url", Raw::object([("url", url)]))
        }
        Content::Audio { data, mime } => {
            let format = match mime.as_str() {
                "audio/wav" | "audio/x-wav" | "audio/wave" | "audio/vnd.wave" => "wav",
                "audio/mpeg" | "audio/mp3" => "mp3",
                _ => {
                    let reason =
                        format!("is audio of the type {mime}; this provider accepts wav and mp3");
                    return Err(ProviderError::request(&block.place, reason));
                }
            };
            let members = [("data", Raw::string(data)), ("format", Raw::string(format))];
            ("input_audio", Raw::object(members))
        }
        Content::ToolUse { .. } | Content::ToolResult { .. } => {
            return Err(ProviderError::request(
                &block.place,
                "cannot be part of a tool result",
            ));
        }
    };
    Ok(Raw::object([("type", Raw::string(name)), (name, value)]))
}

fn tool(tool: &Tool) -> Raw {
    let description = tool.description.as_ref();
    let members = [("name", Raw::string(&tool.name))]
        .into_iter()
        .chain(description.map(|text| ("description", Raw::string(text))))
        .chain([("parameters", tool.schema.clone())]);
    Raw::object([
        ("type", Raw::string("function")),
        ("function", Raw::object(members)),
    ])
}

fn is_stop(choice: &Raw, stops: &[String]) -> bool {
    let at = present(choice, "stop_reason").and_then(|reason| reason.to_text());
    at.is_some_and(|at| stops.contains(&at))
}

/// The text of a message, which is a string or a list of parts.
fn texts(message: &Raw) -> Result<Vec<Piece>, Flaw> {
    let Some(content) = present(message, "content") else {
        return Ok(Vec::new());
    };
    if let Some(text) = content.to_text() {
        return Ok(vec![Piece::Text(text)]);
    }
    let odd = || Flaw::odd("its \"content\" is not text");
    let mut pieces = Vec::new();
    for part in content.elements().ok_or_else(odd)? {
        let kind = present(&part, "type").and_then(|kind| kind.to_text());
        match kind.as_deref() {
            Some("text" | "output_text") => {
                let text = present(&part, "text").and_then(|text| text.to_text());
                pieces.push(Piece::Text(text.ok_or_else(odd)?));
            }
            Some("refusal") => {
                let refusal = present(&part, "refusal").and_then(|text| text.to_text());
                return Err(Flaw::Refused(refusal.unwrap_or_default()));
            }
            // Thinking, and parts of unknown types, are not for the server.
            _ => {}
        }
    }
    Ok(pieces)
}

fn tool_use(call: &Raw) -> Result<Piece, Flaw> {
    let function = present(call, "function").unwrap_or_else(Raw::empty_object);
    let Some(tool) = name(&function, "name") else {
        return Err(Flaw::odd("it calls a tool without a name"));
    };
    let arguments = present(&function, "arguments");
    let input = match arguments.as_ref().and_then(Raw::to_text) {
        // Servers write a call without arguments in both ways.
        None if arguments.is_none() => Some(Raw::empty_object()),
        Some(text) if text.trim().is_empty() => Some(Raw::empty_object()),
        Some(text) => Raw::parse(text).ok(),
        // Some servers send the object itself.
        None => arguments,
    };
    let Some(input) = input.filter(Raw::is_object) else {
        return Err(Flaw::Odd(format!(
            "the arguments of its call to {tool:?} are not a JSON object"
        )));
    };
    // Results are sent back under this ID; servers that send none expect none.
    let id = name(call, "id").unwrap_or_else(|| tool.clone());
    Ok(Piece::ToolUse {
        id,
        name: tool,
        input,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(params: &str) -> Result<String, ProviderError> {
        let ask = Ask::read(&Raw::parse(params.to_owned()).unwrap())?;
        body(&ask, "m", ask.max_tokens, Dialect::Others).map(|body| body.to_string())
    }

    fn messages(messages: &str) -> String {
        let body = written(&format!(r#"{{"messages":{messages}}}"#)).unwrap();
        let body = body.strip_prefix(r#"{"model":"m","messages":"#).unwrap();
        body.strip_suffix('}').unwrap().to_owned()
    }

    #[test]
    fn plain_request_is_encoded() {
        let params = r#"{"messages":[{"role":"user","content":{"type":"text","text":"Hi \"you\""}},
            {"role":"assistant","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}],
            "systemPrompt":"Be brief.","maxTokens":10,"temperature":0.50,"stopSequences":["END"],
            "includeContext":"allServers","metadata":{"model":"other"}}"#;
        assert_eq!(
            written(params).unwrap(),
            r#"{"model":"m","messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"Hi \"you\""},{"role":"assistant","content":"a\nb"}],"max_tokens":10,"temperature":0.50,"stop":["END"]}"#
        );
        let ask = Ask::read(&Raw::parse(params).unwrap()).unwrap();
        let body = body(&ask, "m", Some(3), Dialect::Author).unwrap();
        assert!(
            body.as_str().contains(r#""max_completion_tokens":3"#)
                && !body.as_str().contains("max_tokens")
        );
    }

    #[test]
    fn images_and_audio_are_encoded() {
        assert_eq!(
            messages(
                r#"[{"role":"user","content":[{"type":"text","text":"See"},{"type":"image","data":"aGk=","mimeType":"image/PNG"},
                {"type":"audio","data":"aGk=","mimeType":"audio/mpeg"},{"type":"audio","data":"aGk=","mimeType":"audio/x-wav"}]}]"#
            ),
            r#"[{"role":"user","content":[{"type":"text","text":"See"},{"type":"image_url","image_url":{"url":"data:image/png;base64,aGk="}},{"type":"input_audio","input_audio":{"data":"aGk=","format":"mp3"}},{"type":"input_audio","input_audio":{"data":"aGk=","format":"wav"}}]}]"#
        );
        let error = written(r#"{"messages":[{"role":"user","content":{"type":"audio","data":"aGk=","mimeType":"audio/ogg"}}]}"#).unwrap_err();
        assert_eq!(
            error.to_string(),
            "cannot send the request to the model: messages[0].content is audio of the type audio/ogg; \
             this provider accepts wav and mp3"
        );
    }

    #[test]
    fn tools_and_results_are_encoded() {
        let params = r#"{"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"add","input":{"n": 1.50}}]},
            {"role":"user","content":[{"type":"tool_result","toolUseId":"c1","content":[{"type":"text","text":"2"}]},
              {"type":"tool_result","toolUseId":"c2","isError":true,"content":[{"type":"image","data":"aGk=","mimeType":"image/png"}]},
              {"type":"tool_result","toolUseId":"c3","content":[],"structuredContent":{"a":1}}]}],
            "tools":[{"name":"add","description":"Adds","inputSchema":{"type":"object","x":1e2}},{"name":"bare"}],"toolChoice":{"mode":"required"}}"#;
        assert_eq!(
            written(params).unwrap(),
            concat!(
                r#"{"model":"m","messages":[{"role":"assistant","content":"","tool_calls":[{"id":"c1","type":"function","function":{"name":"add","arguments":"{\"n\": 1.50}"}}]},"#,
                r#"{"role":"tool","content":"2","tool_call_id":"c1"},{"role":"tool","content":"The tool failed:\n(in the next message)","tool_call_id":"c2"},"#,
                r#"{"role":"tool","content":"{\"a\":1}","tool_call_id":"c3"},{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,aGk="}}]}],"#,
                r#""tools":[{"type":"function","function":{"name":"add","description":"Adds","parameters":{"type":"object","x":1e2}}},{"type":"function","function":{"name":"bare","parameters":{"type":"object"}}}],"tool_choice":"required"}"#
            )
        );
    }

    fn read(body: &str) -> Result<String, Flaw> {
        let body = Raw::parse(body.to_owned()).unwrap();
        let answer = answer(&body, &["END".to_owned()])?;
        answer
            .into_result("m", true)
            .map(|result| result.to_string())
    }

    fn choice(choice: &str) -> Result<String, Flaw> {
        read(&format!(r#"{{"choices":[{choice}]}}"#))
    }

    #[test]
    fn answers() {
        assert_eq!(
            read(r#"{"model":"m-2","choices":[{"message":{"content":"Yes"},"finish_reason":"stop"}]}"#).unwrap(),
            r#"{"role":"assistant","content":{"type":"text","text":"Yes"},"model":"m-2","stopReason":"endTurn"}"#
        );
        for (rest, expected) in [
            (
                r#""finish_reason":"length""#,
                r#","stopReason":"maxTokens"}"#,
            ),
            (
                r#""finish_reason":"stop","stop_reason":"END""#,
                r#","stopReason":"stopSequence"}"#,
            ),
            (
                r#""finish_reason":"stop","stop_reason":"other""#,
                r#","stopReason":"endTurn"}"#,
            ),
            (r#""finish_reason":"new""#, r#""model":"m"}"#),
            (r#""finish_reason":7"#, r#""model":"m"}"#),
        ] {
            let result = choice(&format!(r#"{{"message":{{"content":"a"}},{rest}}}"#)).unwrap();
            assert!(result.ends_with(expected), "{result}");
        }
        let parts = choice(
            r#"{"message":{"content":[{"type":"thinking","x":1},{"type":"text","text":"a"},{"type":"text","text":"b"}]}}"#,
        );
        assert!(parts.unwrap().contains(r#""text":"ab""#));
    }

    #[test]
    fn calls_in_answers_are_parsed() {
        let call = |function: &str| {
            choice(&format!(
                r#"{{"message":{{"content":null,"tool_calls":[{{"id":"c1","function":{function}}}]}},"finish_reason":"stop"}}"#
            ))
        };
        assert_eq!(
            call(r#"{"name":"add","arguments":"{\"n\": 1.50}"}"#).unwrap(),
            r#"{"role":"assistant","content":{"type":"tool_use","id":"c1","name":"add","input":{"n": 1.50}},"model":"m","stopReason":"toolUse"}"#
        );
        for empty in [
            r#"{"name":"add","arguments":""}"#,
            r#"{"name":"add"}"#,
            r#"{"name":"add","arguments":{}}"#,
        ] {
            assert!(call(empty).unwrap().contains(r#""input":{}"#), "{empty}");
        }
        for odd in [
            r#"{"arguments":"{}"}"#,
            r#"{"name":"a","arguments":"["}"#,
            r#"{"name":"a","arguments":"[]"}"#,
            r#"{"name":"a","arguments":1}"#,
            "1",
        ] {
            assert!(matches!(call(odd), Err(Flaw::Odd(_))), "{odd}");
        }
    }

    #[test]
    fn refusals_and_errors_are_reported() {
        assert!(
            matches!(choice(r#"{"message":{"refusal":"No."}}"#), Err(Flaw::Refused(said)) if said == "No.")
        );
        assert!(matches!(
            choice(r#"{"message":{},"finish_reason":"content_filter"}"#),
            Err(Flaw::Refused(_))
        ));
        assert!(matches!(
            choice(r#"{"message":{"content":[{"type":"refusal"}]}}"#),
            Err(Flaw::Refused(_))
        ));
        assert!(
            matches!(read(r#"{"error":{"message":"no credit"}}"#), Err(Flaw::Odd(reason)) if reason.contains("no credit"))
        );
        for odd in [
            "1",
            "{}",
            r#"{"choices":[]}"#,
            r#"{"choices":[1]}"#,
            r#"{"choices":[{"message":{"content":1}}]}"#,
        ] {
            assert!(matches!(read(odd), Err(Flaw::Odd(_))), "{odd}");
        }
    }
}
