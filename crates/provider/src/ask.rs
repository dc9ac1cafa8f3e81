//! A server's request for a completion, parsed from the params of `sampling/createMessage` of any revision.

use switchboard_wire::Raw;

use crate::error::ProviderError;

/// A request for a completion.
#[derive(Debug, Default)]
pub(crate) struct Ask {
    pub(crate) system: Option<String>,
    pub(crate) messages: Vec<Message>,
    pub(crate) max_tokens: Option<u64>,
    /// A number, in its original spelling.
    pub(crate) temperature: Option<Raw>,
    pub(crate) stops: Vec<String>,
    pub(crate) tools: Vec<Tool>,
    pub(crate) choice: Option<Choice>,
}

#[derive(Debug)]
pub(crate) struct Message {
    pub(crate) role: Role,
    pub(crate) blocks: Vec<Block>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    User,
    Assistant,
}

impl Role {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }
}

/// A block of a message, and its path in the request.
#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) place: String,
    pub(crate) content: Content,
}

#[derive(Debug)]
pub(crate) enum Content {
    Text(String),
    Image {
        data: String,
        mime: String,
    },
    Audio {
        data: String,
        mime: String,
    },
    ToolUse {
        id: String,
        name: String,
        input: Raw,
    },
    ToolResult {
        id: String,
        blocks: Vec<Block>,
        is_error: bool,
    },
}

/// A tool that the model may call.
#[derive(Debug)]
pub(crate) struct Tool {
    pub(crate) name: String,
    pub(crate) description: Option<String>,
    pub(crate) schema: Raw,
}

/// The rule for the use of tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    Auto,
    Required,
    None,
}

impl Ask {
    /// Parses the params. `includeContext` is treated as `none`: a server never receives another server's
    /// text here.
    pub(crate) fn read(params: &Raw) -> Result<Self, ProviderError> {
        let messages = list(params, "messages", "")?;
        if messages.is_empty() {
            return Err(ProviderError::request(
                "messages",
                "must contain at least one message",
            ));
        }
        let messages = messages.iter().enumerate();
        let tools = list(params, "tools", "")?;
        let tools = tools.iter().enumerate();
        let stops = list(params, "stopSequences", "")?;
        let stop = |stop: &Raw| {
            let text = stop.to_text();
            text.ok_or_else(|| ProviderError::request("stopSequences", "must contain only strings"))
        };
        let stops: Vec<_> = stops.iter().map(stop).collect::<Result<_, _>>()?;
        Ok(Self {
            system: text(params, "systemPrompt", "")?.filter(|text| !text.is_empty()),
            messages: messages
                .map(|(at, message)| read_message(message, &format!("messages[{at}]")))
                .collect::<Result<_, _>>()?,
            max_tokens: present(params, "maxTokens")
                .map(|count| read_count(&count))
                .transpose()?,
            temperature: present(params, "temperature")
                .map(read_temperature)
                .transpose()?,
            // An empty sequence stops nothing, and providers reject it.
            stops: stops.into_iter().filter(|stop| !stop.is_empty()).collect(),
            tools: tools
                .map(|(at, tool)| read_tool(tool, &format!("tools[{at}]")))
                .collect::<Result<_, _>>()?,
            choice: present(params, "toolChoice")
                .map(|choice| read_choice(&choice))
                .transpose()?,
        })
    }
}

/// The member, unless it is null: many programs write null for members that they leave out.
pub(crate) fn present(object: &Raw, name: &str) -> Option<Raw> {
    object
        .member(name)
        .filter(|value| value.as_bytes() != b"null")
}

fn read_message(message: &Raw, place: &str) -> Result<Message, ProviderError> {
    let role = match text(message, "role", place)?.as_deref() {
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        _ => {
            let place = format!("{place}.role");
            return Err(ProviderError::request(
                place,
                "must be \"user\" or \"assistant\"",
            ));
        }
    };
    let blocks = read_blocks(message, &format!("{place}.content"))?;
    for Block { place, content } in &blocks {
        let reason = match (role, content) {
            (Role::User, Content::ToolUse { .. }) => {
                "is a tool call, which only the assistant may make"
            }
            (Role::Assistant, Content::ToolResult { .. }) => {
                "is a tool result, which only the user may send"
            }
            (Role::Assistant, Content::Image { .. } | Content::Audio { .. }) => {
                "is an image or audio from the assistant; models accept only those from the user"
            }
            _ => continue,
        };
        return Err(ProviderError::request(place, reason));
    }
    Ok(Message { role, blocks })
}

/// The content of an object: one block, or a list of blocks.
fn read_blocks(object: &Raw, place: &str) -> Result<Vec<Block>, ProviderError> {
    let Some(content) = present(object, "content") else {
        return Err(ProviderError::request(place, "is missing"));
    };
    match content.elements() {
        Some(blocks) => blocks
            .iter()
            .enumerate()
            .map(|(at, block)| read_block(block, format!("{place}[{at}]")))
            .collect(),
        None => Ok(vec![read_block(&content, place.to_owned())?]),
    }
}

fn read_block(block: &Raw, place: String) -> Result<Block, ProviderError> {
    let kind = text(block, "type", &place)?.unwrap_or_default();
    let content = match kind.as_str() {
        "text" => Content::Text(needed(block, "text", &place)?),
        "image" => {
            let (data, mime) = read_media(block, "image/", &place)?;
            Content::Image { data, mime }
        }
        "audio" => {
            let (data, mime) = read_media(block, "audio/", &place)?;
            Content::Audio { data, mime }
        }
        "tool_use" => Content::ToolUse {
            id: needed(block, "id", &place)?,
            name: needed(block, "name", &place)?,
            input: read_object(block, "input", &place)?,
        },
        "tool_result" => Content::ToolResult {
            id: needed(block, "toolUseId", &place)?,
            blocks: read_tool_result(block, &place)?,
            is_error: present(block, "isError").is_some_and(|flag| flag.as_bytes() == b"true"),
        },
        _ => return Err(unknown(&kind, place)),
    };
    Ok(Block { place, content })
}

/// The result of a tool, as texts and media: links and embedded texts become texts for the model.
fn read_tool_result(block: &Raw, place: &str) -> Result<Vec<Block>, ProviderError> {
    let pieces = list(block, "content", place)?;
    let mut blocks = Vec::with_capacity(pieces.len());
    for (at, piece) in pieces.iter().enumerate() {
        let place = format!("{place}.content[{at}]");
        let kind = text(piece, "type", &place)?.unwrap_or_default();
        let content = match kind.as_str() {
            "text" | "image" | "audio" => read_block(piece, place.clone())?.content,
            "resource_link" => Content::Text(needed(piece, "uri", &place)?),
            "resource" => {
                let resource = present(piece, "resource").unwrap_or_else(Raw::empty_object);
                Content::Text(needed(&resource, "text", &format!("{place}.resource"))?)
            }
            _ => return Err(unknown(&kind, place)),
        };
        blocks.push(Block { place, content });
    }
    if blocks.is_empty()
        && let Some(structured) = present(block, "structuredContent")
    {
        blocks.push(Block {
            place: format!("{place}.structuredContent"),
            content: Content::Text(structured.as_str().to_owned()),
        });
    }
    Ok(blocks)
}

fn unknown(kind: &str, place: String) -> ProviderError {
    let kind: String = kind.chars().take(40).collect();
    let reason = format!("has the type {kind:?}, which models do not accept");
    ProviderError::request(place, reason)
}

/// Data and type of an image or audio. Both become part of other texts, so they have to be validated.
fn read_media(block: &Raw, family: &str, place: &str) -> Result<(String, String), ProviderError> {
    let mime = needed(block, "mimeType", place)?.to_ascii_lowercase();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
    let subtype = mime.strip_prefix(family).unwrap_or_default();
    if subtype.is_empty() || subtype.len() > 60 || !subtype.bytes().all(is_plain) {
        let reason =
            format!("has a \"mimeType\" that does not start with {family:?} or is invalid");
        return Err(ProviderError::request(place, reason));
    }
    let data = needed(block, "data", place)?;
    let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte);
    if data.is_empty() || !data.bytes().all(is_base64) {
        return Err(ProviderError::request(
            place,
            "has \"data\" that is not base64",
        ));
    }
    Ok((data, mime))
}

fn read_tool(tool: &Raw, place: &str) -> Result<Tool, ProviderError> {
    Ok(Tool {
        name: needed(tool, "name", place)?,
        description: text(tool, "description", place)?,
        schema: match present(tool, "inputSchema") {
            Some(_) => read_object(tool, "inputSchema", place)?,
            None => Raw::object([("type", Raw::string("object"))]),
        },
    })
}

fn read_choice(choice: &Raw) -> Result<Choice, ProviderError> {
    match text(choice, "mode", "toolChoice")?.as_deref() {
        Some("auto") | None => Ok(Choice::Auto),
        Some("required") => Ok(Choice::Required),
        Some("none") => Ok(Choice::None),
        Some(_) => Err(ProviderError::request(
            "toolChoice.mode",
            "must be \"auto\", \"required\" or \"none\"",
        )),
    }
}

fn read_count(count: &Raw) -> Result<u64, ProviderError> {
    let wrong = || ProviderError::request("maxTokens", "must be a whole number above 0");
    if let Ok(count) = count.read::<u64>() {
        return if count > 0 { Ok(count) } else { Err(wrong()) };
    }
    // JavaScript and Python programs write 100.0 for 100.
    let float = count.read::<f64>().map_err(|_| wrong())?;
    if float >= 1.0 && float.fract() == 0.0 && float <= 1e15 {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it is whole, positive and small enough"
        )]
        return Ok(float as u64);
    }
    Err(wrong())
}

fn read_temperature(temperature: Raw) -> Result<Raw, ProviderError> {
    let is_number = temperature
        .read::<f64>()
        .is_ok_and(|number| number.is_finite() && number >= 0.0);
    let wrong = || ProviderError::request("temperature", "must be a number that is not negative");
    is_number.then_some(temperature).ok_or_else(wrong)
}

fn read_object(object: &Raw, name: &str, place: &str) -> Result<Raw, ProviderError> {
    let value = present(object, name).filter(Raw::is_object);
    value.ok_or_else(|| ProviderError::request(within(place, name), "must be an object"))
}

fn list(object: &Raw, name: &str, place: &str) -> Result<Vec<Raw>, ProviderError> {
    match present(object, name) {
        None => Ok(Vec::new()),
        Some(list) => {
            let elements = list.elements();
            elements.ok_or_else(|| ProviderError::request(within(place, name), "must be a list"))
        }
    }
}

fn text(object: &Raw, name: &str, place: &str) -> Result<Option<String>, ProviderError> {
    match present(object, name) {
        None => Ok(None),
        Some(text) => match text.to_text() {
            Some(text) => Ok(Some(text)),
            None => Err(ProviderError::request(
                within(place, name),
                "must be a string",
            )),
        },
    }
}

fn needed(object: &Raw, name: &str, place: &str) -> Result<String, ProviderError> {
    text(object, name, place)?
        .ok_or_else(|| ProviderError::request(within(place, name), "is missing"))
}

fn within(place: &str, name: &str) -> String {
    match place {
        "" => name.to_owned(),
        place => format!("{place}.{name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(params: &str) -> String {
        let params = Raw::parse(params.to_owned()).unwrap();
        let error = Ask::read(&params).unwrap_err().to_string();
        let rest = error.strip_prefix("cannot send the request to the model: ");
        rest.unwrap().to_owned()
    }

    #[test]
    fn errors_name_the_path() {
        for (content, expected) in [
            (
                "1",
                "messages[0].content has the type \"\", which models do not accept",
            ),
            (
                r#"[{"type":"text"}]"#,
                "messages[0].content[0].text is missing",
            ),
            (
                r#"{"type":"video"}"#,
                "messages[0].content has the type \"video\", which models do not accept",
            ),
            (
                r#"[{"type":"text","text":"a"},{"type":"image","data":"a b","mimeType":"image/png"}]"#,
                "messages[0].content[1] has \"data\" that is not base64",
            ),
            (
                r#"{"type":"image","data":"aa","mimeType":"image/png,x"}"#,
                "messages[0].content has a \"mimeType\" that does not start with \"image/\" or is invalid",
            ),
            (
                r#"{"type":"tool_use","id":"1","name":"a","input":{}}"#,
                "messages[0].content is a tool call, which only the assistant may make",
            ),
            (
                r#"{"type":"tool_result","toolUseId":"1","content":[{"type":"resource","resource":{"blob":"aa"}}]}"#,
                "messages[0].content.content[0].resource.text is missing",
            ),
        ] {
            let params = format!(r#"{{"messages":[{{"role":"user","content":{content}}}]}}"#);
            assert_eq!(problem(&params), expected);
        }
        let message = r#"{"role":"user","content":{"type":"text","text":"a"}}"#;
        for (rest, expected) in [
            (
                r#""maxTokens":0"#,
                "maxTokens must be a whole number above 0",
            ),
            (
                r#""maxTokens":1.5"#,
                "maxTokens must be a whole number above 0",
            ),
            (
                r#""temperature":"hot""#,
                "temperature must be a number that is not negative",
            ),
            (
                r#""temperature":1e999"#,
                "temperature must be a number that is not negative",
            ),
            (
                r#""stopSequences":[1]"#,
                "stopSequences must contain only strings",
            ),
            (
                r#""tools":[{"name":"a","inputSchema":1}]"#,
                "tools[0].inputSchema must be an object",
            ),
            (
                r#""toolChoice":{"mode":"any"}"#,
                "toolChoice.mode must be \"auto\", \"required\" or \"none\"",
            ),
        ] {
            assert_eq!(
                problem(&format!(r#"{{"messages":[{message}],{rest}}}"#)),
                expected
            );
        }
        assert_eq!(problem("{}"), "messages must contain at least one message");
        assert_eq!(problem(r#"{"messages":{}}"#), "messages must be a list");
        assert_eq!(
            problem(r#"{"messages":[{"role":"system","content":[]}]}"#),
            "messages[0].role must be \"user\" or \"assistant\""
        );
    }

    #[test]
    fn null_members_are_ignored() {
        let params = r#"{"messages":[{"role":"user","content":[]}],"systemPrompt":null,"maxTokens":8.0,
            "temperature":null,"tools":null,"toolChoice":null,"stopSequences":["",null,"x"]}"#;
        assert!(
            Ask::read(&Raw::parse(params).unwrap()).is_err(),
            "a stop that is no text"
        );
        let params = params.replace("null,\"x\"", "\"x\"");
        let ask = Ask::read(&Raw::parse(params).unwrap()).unwrap();
        assert_eq!(ask.max_tokens, Some(8));
        assert_eq!(ask.stops, ["x"]);
        assert!(ask.system.is_none() && ask.temperature.is_none() && ask.tools.is_empty());
    }
}
