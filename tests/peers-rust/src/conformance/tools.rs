//! The tools that every revision has.

#![expect(
    deprecated,
    reason = "the suite has scenarios for logging and sampling"
)]

use std::time::Duration;

use rmcp::{
    ErrorData,
    model::{
        CallToolRequestParams, CallToolResult, ContentBlock, CreateMessageRequestParams,
        ElicitRequestParams, JsonObject, LoggingLevel, LoggingMessageNotificationParam,
        ProgressNotificationParam, ResourceContents, SamplingMessage, Tool,
    },
};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::{inputs, server::Context};
use crate::peer::read;

pub(super) const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
const WAV: &str = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=";

/// The tools without arguments, besides those of `inputs`.
const PLAIN: [&str; 14] = [
    "test_audio_content",
    "test_elicitation_sep1034_defaults",
    "test_elicitation_sep1330_enums",
    "test_embedded_resource",
    "test_error_handling",
    "test_image_content",
    "test_logging_tool",
    "test_multiple_content_types",
    "test_simple_text",
    "test_streaming_elicitation",
    "test_tool_with_logging",
    "test_tool_with_progress",
    "test_trigger_prompt_change",
    "test_trigger_tool_change",
];

pub(super) fn all() -> Vec<Tool> {
    let tool = |name: &'static str, schema: Value| {
        let schema: JsonObject = read(schema);
        Tool::new(name, name, schema)
    };
    let plain = PLAIN.into_iter().chain(inputs::TOOLS);
    let plain = plain.map(|name| tool(name, json!({ "type": "object", "properties": {} })));
    let with = |name: &'static str, member: &str, schema: Value| {
        let properties = json!({ member: schema });
        tool(
            name,
            json!({ "type": "object", "properties": properties, "required": [member] }),
        )
    };
    let string = json!({ "type": "string" });
    let header = json!({ "type": "string", "x-mcp-header": "Region" });
    let more = [
        with("test_elicitation", "message", string.clone()),
        with("test_sampling", "prompt", string),
        with("test_x_mcp_header", "region", header),
        tool("json_schema_2020_12_tool", schema_2020_12()),
    ];
    plain.chain(more).collect()
}

pub(super) fn text(text: impl Into<String>) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(text)])
}

pub(super) async fn call(
    request: &CallToolRequestParams,
    context: &Context,
) -> Result<CallToolResult, ErrorData> {
    let argument = |name: &str| {
        let value = request.arguments.as_ref().and_then(|all| all.get(name));
        value.and_then(Value::as_str).unwrap_or_default()
    };
    let result = match &*request.name {
        "json_schema_2020_12_tool" => text("ok"),
        "test_x_mcp_header" => text(argument("region")),
        "test_simple_text" => text("This is a simple text response for testing."),
        "test_streaming_elicitation" => text("no request of its own in this stream"),
        "test_error_handling" => CallToolResult::error(vec![ContentBlock::text(
            "This tool intentionally returns an error for testing",
        )]),
        "test_image_content" => {
            CallToolResult::success(vec![ContentBlock::image(PNG, "image/png")])
        }
        "test_audio_content" => {
            CallToolResult::success(vec![ContentBlock::audio(WAV, "audio/wav")])
        }
        "test_embedded_resource" => CallToolResult::success(vec![ContentBlock::embedded_text(
            "test://embedded-resource",
            "This is an embedded resource content.",
        )]),
        "test_multiple_content_types" => {
            let data = r#"{"test":"data","value":123}"#;
            let data = ResourceContents::text(data, "test://mixed-content-resource");
            CallToolResult::success(vec![
                ContentBlock::text("Multiple content types test:"),
                ContentBlock::image(PNG, "image/png"),
                ContentBlock::resource(data.with_mime_type("application/json")),
            ])
        }
        "test_tool_with_logging" => {
            for message in [
                "Tool execution started",
                "Tool processing data",
                "Tool execution completed",
            ] {
                log(context, message).await?;
                sleep(Duration::from_millis(50)).await;
            }
            text("logged")
        }
        "test_logging_tool" => {
            if context.meta.log_level().is_some() {
                log(context, "only for clients that set a level").await?;
            }
            text("logged")
        }
        "test_tool_with_progress" => {
            for progress in [0.0, 50.0, 100.0] {
                let Some(token) = context.meta.get_progress_token() else {
                    break;
                };
                let step = ProgressNotificationParam::new(token, progress);
                let step = context.peer.notify_progress(step.with_total(100.0)).await;
                step.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
                sleep(Duration::from_millis(50)).await;
            }
            text("done")
        }
        "test_sampling" => {
            let messages = vec![SamplingMessage::user_text(argument("prompt"))];
            let answer = context
                .peer
                .create_message(CreateMessageRequestParams::new(messages, 100))
                .await;
            match answer {
                Ok(answer) => {
                    let content = answer.message.content.first();
                    let said = content.and_then(|content| content.as_text());
                    let said = said.map(|said| &*said.text).unwrap_or_default();
                    text(format!("LLM response: {said}"))
                }
                Err(error) => CallToolResult::error(vec![ContentBlock::text(error.to_string())]),
            }
        }
        "test_elicitation" => {
            let response = json!({ "response": { "type": "string" } });
            ask(context, argument("message"), response).await
        }
        "test_elicitation_sep1034_defaults" => {
            ask(context, "Please review the defaults", defaults()).await
        }
        "test_elicitation_sep1330_enums" => ask(context, "Please select options", enums()).await,
        name => return Err(ErrorData::invalid_params(format!("no tool {name}"), None)),
    };
    Ok(result)
}

async fn log(context: &Context, message: &str) -> Result<(), ErrorData> {
    let message = LoggingMessageNotificationParam::new(LoggingLevel::Info, json!(message));
    let sent = context.peer.notify_logging_message(message).await;
    sent.map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

async fn ask(context: &Context, message: &str, properties: Value) -> CallToolResult {
    let form = ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: message.to_owned(),
        requested_schema: read(json!({ "type": "object", "properties": properties })),
    };
    match context.peer.create_elicitation(form).await {
        Ok(answer) => {
            let answer = json!(answer);
            let action = answer["action"].as_str().unwrap_or_default();
            let content = &answer["content"];
            text(format!("User response: action={action}, content={content}"))
        }
        Err(error) => CallToolResult::error(vec![ContentBlock::text(error.to_string())]),
    }
}

fn defaults() -> Value {
    let statuses = ["active", "inactive", "pending"];
    json!({
        "name": { "type": "string", "default": "John Doe" },
        "age": { "type": "integer", "default": 30 },
        "score": { "type": "number", "default": 95.5 },
        "status": { "type": "string", "enum": statuses, "default": "active" },
        "verified": { "type": "boolean", "default": true },
    })
}

fn enums() -> Value {
    let values = ["one", "two", "three"];
    let titled = values.map(|value| json!({ "const": value, "title": format!("Option {value}") }));
    json!({
        "untitledSingle": { "type": "string", "enum": values },
        "titledSingle": { "type": "string", "oneOf": titled },
        "legacyEnum": { "type": "string", "enum": values, "enumNames": ["One", "Two", "Three"] },
        "untitledMulti": { "type": "array", "items": { "type": "string", "enum": values } },
        "titledMulti": { "type": "array", "items": { "anyOf": titled } },
    })
}

fn schema_2020_12() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": { "city": { "type": "string" } },
            },
        },
        "properties": {
            "name": { "type": "string" },
            "address": { "$ref": "#/$defs/address" },
            "contactMethod": { "type": "string", "enum": ["phone", "email"] },
            "phone": { "type": "string" },
            "email": { "type": "string" },
        },
        "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
        "if": { "properties": { "contactMethod": { "const": "phone" } }, "required": ["contactMethod"] },
        "then": { "required": ["phone"] },
        "else": { "required": ["email"] },
        "additionalProperties": false,
    })
}
