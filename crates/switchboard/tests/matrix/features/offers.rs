//! The offers of a server: tools, prompts, resources, completion; and names that it does not offer.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::client::{Client, Reason, call_of, check};

/// Reads all pages of a list.
pub(crate) fn list(client: &mut Client, method: &str, member: &str) -> Result<Vec<Value>, Reason> {
    let mut items = Vec::new();
    let mut params = json!({});
    for _ in 0..100 {
        let result = client.result(method, params)?;
        let page = result[member].as_array();
        items.extend(page.ok_or_else(|| format!("{method}: {result}"))?.clone());
        match &result["nextCursor"] {
            Value::Null => return Ok(items),
            cursor => params = json!({ "cursor": cursor }),
        }
    }
    Err(format!("{method} never ends"))
}

pub(crate) fn names(items: &[Value]) -> Vec<String> {
    let names = items.iter().filter_map(|item| item["name"].as_str());
    names.map(str::to_owned).collect()
}

/// Every tool is listed once, on whichever page.
pub(super) fn tools(client: &mut Client) -> Result<(), Reason> {
    let tools = list(client, "tools/list", "tools")?;
    let listed = names(&tools);
    let once: BTreeSet<_> = listed.iter().collect();
    check!(
        once.len() == listed.len(),
        "some tools are listed twice: {listed:?}"
    );
    for wanted in [
        "test_simple_text",
        "test_echo",
        "test_session_info",
        "test_progress_burst",
    ] {
        check!(
            once.contains(&wanted.to_owned()),
            "{wanted} is not in {listed:?}"
        );
    }
    // The server has pages of ten: with fewer tools, there would be only one page.
    check!(listed.len() > 20, "only {listed:?}");
    for tool in &tools {
        check!(
            tool["inputSchema"]["type"] == "object",
            "inputSchema: {tool}"
        );
    }
    Ok(())
}

pub(super) fn prompts(client: &mut Client) -> Result<(), Reason> {
    let listed = names(&list(client, "prompts/list", "prompts")?);
    let name = "test_prompt_with_arguments";
    check!(listed.iter().any(|listed| listed == name), "{listed:?}");
    let arguments = json!({ "arg1": "hello", "arg2": "world" });
    let result = client.result("prompts/get", call_of(name, arguments))?;
    let text = result["messages"][0]["content"]["text"].as_str();
    let text = text.ok_or_else(|| format!("no text: {result}"))?;
    check!(text.contains("hello") && text.contains("world"), "{result}");
    is_of_the_revision(client, &result)
}

pub(super) fn resources(client: &mut Client) -> Result<(), Reason> {
    let listed = list(client, "resources/list", "resources")?;
    let uri = "test://static-text";
    check!(
        listed.iter().any(|listed| listed["uri"] == uri),
        "{listed:?}"
    );
    let result = client.result("resources/read", json!({ "uri": uri }))?;
    check!(result["contents"][0]["uri"] == uri, "{result}");
    check!(result["contents"][0]["text"].is_string(), "{result}");
    is_of_the_revision(client, &result)?;
    let result = client.result("resources/read", json!({ "uri": "test://static-binary" }))?;
    check!(result["contents"][0]["blob"].is_string(), "{result}");
    Ok(())
}

pub(super) fn templates(client: &mut Client) -> Result<(), Reason> {
    let listed = list(client, "resources/templates/list", "resourceTemplates")?;
    let template = "test://template/{id}/data";
    let known = listed
        .iter()
        .any(|listed| listed["uriTemplate"] == template);
    check!(known, "{listed:?}");
    let result = client.result(
        "resources/read",
        json!({ "uri": "test://template/42/data" }),
    )?;
    check!(
        result["contents"][0]["text"]
            .as_str()
            .unwrap_or_default()
            .contains("42"),
        "{result}"
    );
    Ok(())
}

pub(super) fn completion(client: &mut Client) -> Result<(), Reason> {
    let params = json!({
        "ref": { "type": "ref/prompt", "name": "test_prompt_with_arguments" },
        "argument": { "name": "arg1", "value": "par" },
    });
    let result = client.result("completion/complete", params)?;
    check!(result["completion"]["values"].is_array(), "{result}");
    is_of_the_revision(client, &result)
}

pub(super) fn unknown_tool(client: &mut Client) -> Result<(), Reason> {
    let error = client.error("tools/call", call_of("test_nothing_of_the_kind", json!({})))?;
    check!(error["code"] == -32602, "{error}");
    Ok(())
}

/// Each era has its own error code for this.
pub(super) fn unknown_resource(client: &mut Client) -> Result<(), Reason> {
    let error = client.error("resources/read", json!({ "uri": "test://not-there" }))?;
    let code = if client.is_modern() { -32602 } else { -32002 };
    check!(error["code"] == code, "{error}");
    Ok(())
}

/// A modern result states that it is complete; an older one has no such member.
fn is_of_the_revision(client: &Client, result: &Value) -> Result<(), Reason> {
    let said = result.get("resultType").and_then(Value::as_str);
    let wanted = client.is_modern().then_some("complete");
    check!(said == wanted, "resultType: {result}");
    Ok(())
}
