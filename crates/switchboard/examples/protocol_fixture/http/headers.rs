//! What the headers of a request have to say of its body.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::Value;

use super::Request;
use crate::{
    options::Revision,
    rpc::{Fault, HEADER_MISMATCH, Message},
    tools,
    world::World,
};

/// Whether the client takes both kinds of answers, as it has to.
pub(super) fn acceptable(request: &Request) -> bool {
    let accept = request.header("accept").unwrap_or_default();
    accept.contains("*/*")
        || (accept.contains("application/json") && accept.contains("text/event-stream"))
}

/// Checks the headers of a request of the newest revision.
pub(super) fn check(world: &World, request: &Request, message: &Message) -> Result<(), Fault> {
    let version = crate::modern::version(message).unwrap_or_default();
    same(request, "mcp-protocol-version", &version)?;
    let method = message.method.as_deref().unwrap_or_default();
    same(request, "mcp-method", method)?;
    let params = message.params();
    let name = match method {
        "tools/call" | "prompts/get" => params["name"].as_str(),
        "resources/read" => params["uri"].as_str(),
        "tasks/get" | "tasks/update" | "tasks/cancel" => params["taskId"].as_str(),
        _ => None,
    };
    if let Some(name) = name {
        same(request, "mcp-name", name)?;
        if method == "tools/call" {
            check_arguments(world, request, name, &params["arguments"])?;
        }
    }
    Ok(())
}

fn check_arguments(
    world: &World,
    request: &Request,
    tool: &str,
    arguments: &Value,
) -> Result<(), Fault> {
    let tools = tools::listed(world, Revision::MODERN);
    let Some(tool) = tools.iter().find(|known| known.name == tool) else {
        return Ok(());
    };
    for (argument, header) in tool.headers() {
        let header = format!("mcp-param-{header}");
        match &arguments[argument] {
            Value::Null if request.header(&header).is_none() => {}
            Value::Null => return Err(mismatch(&header)),
            Value::String(text) => same(request, &header, text)?,
            other => same(request, &header, &other.to_string())?,
        }
    }
    Ok(())
}

fn same(request: &Request, header: &str, value: &str) -> Result<(), Fault> {
    let found = request.header(header).and_then(decode);
    if found.as_deref() == Some(value) {
        Ok(())
    } else {
        Err(mismatch(header))
    }
}

fn mismatch(header: &str) -> Fault {
    Fault::new(
        HEADER_MISMATCH,
        format!("The header {header} does not match the body"),
    )
}

/// The value of a header, which may be wrapped; `None` if the wrapping is broken.
fn decode(value: &str) -> Option<String> {
    let wrapped = value.strip_prefix("=?base64?");
    let Some(wrapped) = wrapped.and_then(|rest| rest.strip_suffix("?=")) else {
        return Some(value.to_owned());
    };
    String::from_utf8(STANDARD.decode(wrapped).ok()?).ok()
}
