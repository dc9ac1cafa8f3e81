//! Additional requirements of 2026-07-28.

use serde_json::{Value, json};

use crate::{
    client::{Client, Headers, Reason, Setup, call_of, check},
    revision::{Revision, Way},
};

/// The error of a response, and its HTTP status.
fn refusal(
    client: &mut Client,
    method: &str,
    params: &Value,
    headers: Headers,
) -> Result<(Value, u16), Reason> {
    let sent = client.send_text(method, &params.to_string(), headers)?;
    let answer = client.wait(&sent)?;
    let status = client.answer_to(&sent).map_or(0, |seen| seen.status);
    let error = answer.get("error").cloned();
    Ok((
        error.ok_or_else(|| format!("{method} did not fail: {answer}"))?,
        status,
    ))
}

pub(super) fn removed_methods(client: &mut Client) -> Result<(), Reason> {
    let methods = [
        "initialize",
        "ping",
        "logging/setLevel",
        "resources/subscribe",
        "resources/unsubscribe",
        "tasks/list",
        "tasks/result",
    ];
    for method in methods {
        let params = client.dressed(json!({ "level": "info", "uri": "test://static-text" }));
        let headers = client.headers(method, &params);
        let (error, status) = refusal(client, method, &params, headers)?;
        check!(error["code"] == -32601, "{method}: {error}");
        check!(
            client.way() != Way::Http || status == 404,
            "{method}: status {status}"
        );
    }
    Ok(())
}

/// Headers that contradict the body are refused, so that a proxy that trusts them is not deceived.
pub(super) fn contradictions(client: &mut Client) -> Result<(), Reason> {
    let params = client.dressed(call_of("test_simple_text", json!({})));
    let cases = [
        ("MCP-Protocol-Version", "2025-11-25"),
        ("Mcp-Method", "tools/list"),
        ("Mcp-Method", ""),
        ("Mcp-Name", "test_echo"),
        ("Mcp-Name", ""),
    ];
    for (name, value) in cases {
        let mut headers = client.headers("tools/call", &params);
        headers.retain(|(known, _)| known != name);
        headers.push((name.to_owned(), value.to_owned()));
        let (error, status) = refusal(client, "tools/call", &params, headers)?;
        check!(error["code"] == -32020, "{name}: {value:?}: {error}");
        check!(status == 400, "{name}: {value:?}: status {status}");
    }
    if !client.server.revision.is_modern() {
        return Ok(());
    }
    let params = client.dressed(call_of("test_custom_header", json!({ "value": "one" })));
    let mut headers = client.headers("tools/call", &params);
    headers.push(("Mcp-Param-Test-Value".to_owned(), "one".to_owned()));
    let sent = client.send_text("tools/call", &params.to_string(), headers.clone())?;
    let answer = client.wait(&sent)?;
    check!(answer["result"].is_object(), "{answer}");
    headers.pop();
    headers.push(("Mcp-Param-Test-Value".to_owned(), "another".to_owned()));
    let (error, status) = refusal(client, "tools/call", &params, headers)?;
    check!(error["code"] == -32020 && status == 400, "{status} {error}");
    Ok(())
}

/// An unknown revision: a modern request is refused with the known ones, and an older handshake ends with a
/// known one.
pub(super) fn unknown_revision(client: &mut Client) -> Result<(), Reason> {
    let unknown = "2099-01-01";
    if client.is_modern() {
        let mut params = client.dressed(json!({}));
        params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!(unknown);
        let mut headers = client.headers("tools/list", &params);
        headers.retain(|(name, _)| name != "MCP-Protocol-Version");
        headers.push(("MCP-Protocol-Version".to_owned(), unknown.to_owned()));
        let (error, status) = refusal(client, "tools/list", &params, headers)?;
        check!(error["code"] == -32022, "{error}");
        check!(
            client.way() != Way::Http || status == 400,
            "status {status}"
        );
        let supported = error["data"]["supported"].as_array();
        let known = supported.is_some_and(|known| known.contains(&json!("2026-07-28")));
        check!(known && error["data"]["requested"] == unknown, "{error}");
        return Ok(());
    }
    let setup = Setup::able(client.setup.side);
    let mut other = Client::knock(&client.place, client.server, setup)?;
    let params = json!({
        "protocolVersion": unknown,
        "capabilities": {},
        "clientInfo": other.info(),
    });
    let result = other.result("initialize", params)?;
    let version = &result["protocolVersion"];
    let older = Revision::ALL
        .iter()
        .filter(|revision| !revision.is_modern());
    let known = older.clone().any(|revision| *version == revision.as_str());
    check!(known, "{result}");
    Ok(())
}

/// Lists and reads state how long they are valid, and for whom.
pub(super) fn cache_hints(client: &mut Client) -> Result<(), Reason> {
    let requests = [
        ("server/discover", json!({})),
        ("tools/list", json!({})),
        ("prompts/list", json!({})),
        ("resources/list", json!({})),
        ("resources/templates/list", json!({})),
        ("resources/read", json!({ "uri": "test://static-text" })),
    ];
    for (method, params) in requests {
        let result = client.result(method, params)?;
        check!(result["ttlMs"].is_u64(), "{method}: ttlMs: {result}");
        let scope = result["cacheScope"].as_str();
        let known = matches!(scope, Some("public" | "private"));
        check!(known, "{method}: cacheScope: {result}");
    }
    Ok(())
}
