//! Tools that answer at once.

use std::{process, sync::atomic::Ordering};

use serde_json::{Value, json};

use super::{count, text};
use crate::{
    call::{Call, Stop},
    offers::{PNG, WAV},
    options::Revision,
    rpc::Answer,
    world::Change,
};

/// The answer of a tool of this kind; `None` if it is of another.
pub(super) fn run(call: &Call) -> Option<Result<Answer, Stop>> {
    Some(Ok(match &*call.name {
        "test_simple_text" => text("This is a simple text response for testing."),
        "test_image_content" => content(&[image()]),
        "test_audio_content" => {
            content(&[json!({ "type": "audio", "data": WAV, "mimeType": "audio/wav" })])
        }
        "test_embedded_resource" => content(&[embedded()]),
        "test_multiple_content_types" => mixed(),
        "test_error_handling" => {
            return Some(Err(Stop::Failed(
                "This tool intentionally returns an error for testing".to_owned(),
            )));
        }
        "json_schema_2020_12_tool" => text(format!("Received: {}", call.arguments)),
        "test_custom_header" => text(format!("Received: {}", call.arguments["value"])),
        "test_echo" => echo(call),
        "test_resource_link" => content(&[link()]),
        "test_structured_any" => structured(call.revision),
        "test_comes_and_goes" => text("here"),
        "test_trigger_tool_change" => {
            call.world.change(Change::Tools);
            text("The list of tools has changed")
        }
        "test_trigger_prompt_change" => {
            call.world.change(Change::Prompts);
            text("The list of prompts has changed")
        }
        "test_update_watched" => {
            call.world.updated("test://watched-resource");
            text("The watched resource has changed")
        }
        "test_cancelled_count" => text(call.world.cancelled.load(Ordering::SeqCst).to_string()),
        "test_session_info" => text(session_info(call).to_string()),
        "test_method_counts" => text(call.world.counts().to_string()),
        "test_missing_capability" => {
            return Some(
                call.needs_sampling()
                    .map(|()| text("The client can sample")),
            );
        }
        "test_large" => text("x".repeat(1000 * large(call))),
        "test_crash" => process::exit(1),
        _ => return None,
    }))
}

fn content(content: &[Value]) -> Answer {
    json!({ "content": content }).into()
}

fn image() -> Value {
    json!({ "type": "image", "data": PNG, "mimeType": "image/png" })
}

fn embedded() -> Value {
    json!({
        "type": "resource",
        "resource": {
            "uri": "test://embedded-resource",
            "mimeType": "text/plain",
            "text": "This is an embedded resource content."
        }
    })
}

fn mixed() -> Answer {
    let resource = json!({
        "type": "resource",
        "resource": {
            "uri": "test://mixed-content-resource",
            "mimeType": "application/json",
            "text": r#"{"test":"data","value":123}"#
        }
    });
    let words = json!({ "type": "text", "text": "Multiple content types test:" });
    content(&[words, image(), resource])
}

fn link() -> Value {
    json!({
        "type": "resource_link",
        "uri": "test://static-text",
        "name": "static-text",
        "mimeType": "text/plain"
    })
}

/// The arguments, byte for byte.
fn echo(call: &Call) -> Answer {
    let arguments = call.raw_arguments.clone();
    let mut answer = text(arguments.as_deref().map_or("", |raw| raw.get()));
    if call.revision >= Revision::V2025_06_18 {
        answer.raw = arguments.map(|raw| ("structuredContent", raw));
    }
    answer
}

fn structured(revision: Revision) -> Answer {
    let structured = if revision == Revision::V2026_07_28 {
        json!([1, 2, 3])
    } else {
        json!({ "numbers": [1, 2, 3] })
    };
    let mut answer = text(structured.to_string());
    if revision >= Revision::V2025_06_18 {
        let members = &mut answer.members;
        members.insert("structuredContent".to_owned(), structured);
    }
    answer
}

/// How many thousand characters are wanted.
fn large(call: &Call) -> usize {
    const MOST: u64 = 10_000;
    let wanted = count(call, "kilobytes", 1000).min(MOST);
    usize::try_from(wanted).unwrap_or_default()
}

fn session_info(call: &Call) -> Value {
    json!({
        "revision": call.revision.name(),
        "clientInfo": call.client_info,
        "capabilities": call.capabilities,
        "logLevel": call.log_level,
    })
}
