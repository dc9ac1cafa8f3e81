//! Prompts, resources and completions.

use std::sync::atomic::Ordering;

use serde_json::{Value, json};

use crate::{
    call::{Call, Input, Stop},
    options::Revision,
    rpc::{Answer, Fault},
    world::World,
};

/// A picture of one red dot.
pub(crate) const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
/// A sound of no length.
pub(crate) const WAV: &str = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=";

pub(crate) fn prompts(world: &World, revision: Revision) -> Value {
    let argument =
        |name, description| json!({ "name": name, "description": description, "required": true });
    let mut prompts = vec![
        json!({ "name": "test_simple_prompt", "description": "A prompt without arguments" }),
        json!({
            "name": "test_prompt_with_arguments",
            "description": "A prompt with two arguments",
            "arguments": [argument("arg1", "The first"), argument("arg2", "The second")]
        }),
        json!({
            "name": "test_prompt_with_embedded_resource",
            "description": "A prompt with a resource in it",
            "arguments": [argument("resourceUri", "The resource")]
        }),
        json!({ "name": "test_prompt_with_image", "description": "A prompt with an image in it" }),
    ];
    if revision >= Revision::V2025_06_18 {
        prompts.push(json!({
            "name": "test_input_required_result_prompt",
            "description": "A prompt that asks first"
        }));
    }
    if world.extra_prompt.load(Ordering::SeqCst) {
        prompts.push(json!({
            "name": "test_prompt_comes_and_goes",
            "description": "Is there after every second change"
        }));
    }
    json!({ "prompts": prompts })
}

pub(crate) async fn prompt(call: &Call) -> Result<Answer, Stop> {
    let given = |name: &str| call.arguments[name].as_str().unwrap_or_default();
    let text = |text: String| json!({ "type": "text", "text": text });
    let content = match &*call.name {
        "test_simple_prompt" | "test_prompt_comes_and_goes" => {
            vec![text("This is a simple prompt for testing.".to_owned())]
        }
        "test_prompt_with_arguments" => {
            let (first, second) = (given("arg1"), given("arg2"));
            vec![text(format!(
                "Prompt with arguments: arg1='{first}', arg2='{second}'"
            ))]
        }
        "test_prompt_with_embedded_resource" => {
            let resource = json!({
                "uri": given("resourceUri"),
                "mimeType": "text/plain",
                "text": "Embedded resource content for testing."
            });
            vec![
                json!({ "type": "resource", "resource": resource }),
                text("Please process the embedded resource above.".to_owned()),
            ]
        }
        "test_prompt_with_image" => vec![
            json!({ "type": "image", "data": PNG, "mimeType": "image/png" }),
            text("Please analyze the image above.".to_owned()),
        ],
        "test_input_required_result_prompt" => {
            let fields = json!({ "context": { "type": "string" } });
            let message = "What context should the prompt use?";
            let answer = call
                .ask(Input::elicit("user_context", message, &fields))
                .await?;
            let context = answer["content"]["context"].as_str().unwrap_or_default();
            vec![text(format!("Use this context: {context}"))]
        }
        unknown => return Err(Fault::invalid(format!("Unknown prompt: {unknown}")).into()),
    };
    let message = |content| json!({ "role": "user", "content": content });
    let messages: Vec<Value> = content.into_iter().map(message).collect();
    Ok(json!({ "messages": messages }).into())
}

pub(crate) fn resources() -> Value {
    let resource = |uri: &str, name: &str, description: &str, mime: &str| json!({ "uri": uri, "name": name, "description": description, "mimeType": mime });
    json!({ "resources": [
        resource("test://static-text", "static-text", "A static text", "text/plain"),
        resource("test://static-binary", "static-binary", "A static picture", "image/png"),
        resource("test://watched-resource", "watched-resource", "May change", "text/plain"),
    ] })
}

pub(crate) fn templates() -> Value {
    json!({ "resourceTemplates": [{
        "uriTemplate": "test://template/{id}/data",
        "name": "template",
        "description": "Data for an id",
        "mimeType": "application/json"
    }] })
}

pub(crate) fn read(uri: &str, revision: Revision) -> Result<Value, Fault> {
    let text = |mime: &str, text: &str| json!({ "uri": uri, "mimeType": mime, "text": text });
    let content = match uri {
        "test://static-text" => text(
            "text/plain",
            "This is the content of the static text resource.",
        ),
        "test://static-binary" => json!({ "uri": uri, "mimeType": "image/png", "blob": PNG }),
        "test://watched-resource" => text("text/plain", "Watched resource content"),
        _ => {
            let id = uri.strip_prefix("test://template/");
            let id = id.and_then(|rest| rest.strip_suffix("/data"));
            let Some(id) = id.filter(|id| !id.is_empty() && !id.contains('/')) else {
                return Err(not_found(uri, revision));
            };
            let data = json!({
                "id": id, "templateTest": true, "data": format!("Data for ID: {id}")
            });
            text("application/json", &data.to_string())
        }
    };
    Ok(json!({ "contents": [content] }))
}

fn not_found(uri: &str, revision: Revision) -> Fault {
    let code = if revision == Revision::MODERN {
        -32602
    } else {
        -32002
    };
    Fault::new(code, format!("Resource not found: {uri}")).with(json!({ "uri": uri }))
}

pub(crate) fn complete(params: &Value) -> Result<Value, Fault> {
    let typed = params["argument"]["value"].as_str();
    let typed = typed.ok_or_else(|| Fault::invalid("completion/complete needs an argument"))?;
    let known = ["paris", "park", "party"];
    let values: Vec<&str> = known
        .into_iter()
        .filter(|word| word.starts_with(typed))
        .collect();
    Ok(json!({ "completion": { "values": values, "total": values.len(), "hasMore": false } }))
}
