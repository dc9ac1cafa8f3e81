//! Results of tools: every kind of content, and tool errors.

use serde_json::{Value, json};

use super::offers::list;
use crate::{
    client::{Client, Reason, call_of, check},
    revision::Revision,
};

/// The item of a result that has this type.
fn item(client: &mut Client, tool: &str, kind: &str) -> Result<Value, Reason> {
    let result = client.call(tool, json!({}))?;
    let said = result.get("resultType").and_then(Value::as_str);
    check!(
        said == client.is_modern().then_some("complete"),
        "resultType: {result}"
    );
    let items = result["content"].as_array().into_iter().flatten();
    let found = items.clone().find(|item| item["type"] == kind);
    found.cloned().ok_or_else(|| format!("no {kind}: {result}"))
}

pub(super) fn text(client: &mut Client) -> Result<(), Reason> {
    let text = item(client, "test_simple_text", "text")?;
    check!(text["text"].is_string(), "{text}");
    Ok(())
}

pub(super) fn image(client: &mut Client) -> Result<(), Reason> {
    let image = item(client, "test_image_content", "image")?;
    check!(
        image["data"].is_string() && image["mimeType"].is_string(),
        "{image}"
    );
    Ok(())
}

pub(super) fn audio(client: &mut Client) -> Result<(), Reason> {
    let audio = item(client, "test_audio_content", "audio")?;
    check!(
        audio["data"].is_string() && audio["mimeType"].is_string(),
        "{audio}"
    );
    Ok(())
}

pub(super) fn embedded_resource(client: &mut Client) -> Result<(), Reason> {
    let resource = item(client, "test_embedded_resource", "resource")?;
    check!(
        resource["resource"]["uri"] == "test://embedded-resource",
        "{resource}"
    );
    Ok(())
}

pub(super) fn resource_link(client: &mut Client) -> Result<(), Reason> {
    let link = item(client, "test_resource_link", "resource_link")?;
    check!(
        link["uri"].is_string() && link["name"].is_string(),
        "{link}"
    );
    Ok(())
}

pub(super) fn structured(client: &mut Client) -> Result<(), Reason> {
    let arguments = json!({ "words": ["a", "b"], "deep": { "number": 7 } });
    let result = client.call("test_echo", arguments.clone())?;
    check!(result["structuredContent"] == arguments, "{result}");
    Ok(())
}

/// 2026-07-28 allows any JSON. If either side knows objects only, the client gets nothing else, neither in
/// the result nor in the output schema of the list.
pub(super) fn structured_any(client: &mut Client) -> Result<(), Reason> {
    let tools = list(client, "tools/list", "tools")?;
    let name = "test_structured_any";
    let tool = tools.iter().find(|tool| tool["name"] == name);
    let schema = &tool.ok_or("the tool is not listed")?["outputSchema"];
    let result = client.call(name, json!({}))?;
    let structured = &result["structuredContent"];
    if client.is_modern() && client.server.revision.is_modern() {
        check!(schema["type"] == "array", "outputSchema: {schema}");
        check!(structured.is_array(), "{result}");
    } else if client.server.revision.is_modern() {
        check!(
            schema.is_null() || schema["type"] == "object",
            "outputSchema: {schema}"
        );
        check!(structured.is_null() || structured.is_object(), "{result}");
    } else if client.server.revision >= Revision::Jun2025 {
        check!(schema["type"] == "object", "outputSchema: {schema}");
        check!(structured.is_object(), "{result}");
    }
    let text = result["content"][0]["text"].as_str();
    check!(
        text.is_some(),
        "nothing for those who read text only: {result}"
    );
    Ok(())
}

pub(super) fn tool_error(client: &mut Client) -> Result<(), Reason> {
    let result = client.result("tools/call", call_of("test_error_handling", json!({})))?;
    check!(result["isError"] == true, "{result}");
    check!(result["content"][0]["text"].is_string(), "{result}");
    Ok(())
}
