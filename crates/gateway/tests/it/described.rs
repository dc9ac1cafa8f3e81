//! Responses and events compared with the `OpenAPI` description, field by field: an undescribed field fails.
//!
//! The rig compares every response and every event of every test.

use std::sync::LazyLock;

use serde_json::{Value, json};

use crate::{
    api_rig::{Answer, Event, Rig, fixture},
    mcp_rig::{Pipe, direct},
};

static DOCUMENT: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(switchboard_rest::OPENAPI).unwrap());

/// Compares a response with its description. Undescribed addresses are skipped.
#[track_caller]
pub(crate) fn check_answer(method: &str, path: &str, answer: &Answer) {
    let Some((_, item)) = item(path) else {
        return;
    };
    let operation = &item[method.to_lowercase()];
    if operation.is_null() {
        return;
    }
    let response = &operation["responses"][answer.status.to_string()];
    let response = resolved(response);
    assert!(
        response.is_object(),
        "{method} {path} has no {}",
        answer.status
    );
    for kind in ["application/json", "application/problem+json"] {
        if answer
            .headers
            .contains(&format!("content-type: {kind}\r\n"))
        {
            let schema = &response["content"][kind]["schema"];
            assert!(
                schema.is_object(),
                "{method} {path} {} has no {kind}",
                answer.status
            );
            if let Err(wrong) = check(schema, &answer.json(), "") {
                panic!("{method} {path} {}: {wrong}", answer.status);
            }
        }
    }
}

/// Compares an event of the gateway with its description.
#[track_caller]
pub(crate) fn check_event(event: &Event) {
    let (kind, data) = match event.kind.as_str() {
        "lagged" => ("lagged", event.data.clone()),
        kind => {
            check_as("Event", &event.data);
            let told: Value = serde_json::from_str(&event.data).unwrap();
            (kind, told["data"].to_string())
        }
    };
    check_as(
        match kind {
            "server.state" => "ServerEvent",
            "server.instance" => "InstanceEvent",
            "calls" => "CallsEvent",
            "config.refused" => "ConfigEvent",
            "question.refused" => "QuestionEvent",
            "lagged" => "LaggedEvent",
            "config.applied" | "gateway.stopping" => return assert_eq!(data, "{}"),
            kind if kind.starts_with("trust.") => "TrustEvent",
            kind if kind.starts_with("approval.") => "ApprovalEvent",
            kind => panic!("the event {kind} is not described"),
        },
        &data,
    );
}

#[track_caller]
fn check_as(name: &str, text: &str) {
    let schema = json!({ "$ref": format!("#/components/schemas/{name}") });
    if let Err(wrong) = check(&schema, &serde_json::from_str(text).unwrap(), "") {
        panic!("{name}: {wrong}: {text}");
    }
}

/// The path in the description that matches an address. An exact match takes precedence over one with
/// variable parts.
fn item(address: &str) -> Option<(&'static str, &'static Value)> {
    let address = address.split('?').next().unwrap_or_default();
    let paths = DOCUMENT["paths"].as_object().unwrap();
    let fits = |path: &str| {
        let (mut known, mut asked) = (path.split('/'), address.split('/'));
        known
            .by_ref()
            .zip(asked.by_ref())
            .all(|(known, asked)| known.starts_with('{') || known == asked)
            && path.split('/').count() == address.split('/').count()
    };
    let exact = paths.get_key_value(address);
    let found = exact.or_else(|| paths.iter().find(|(path, _)| fits(path)));
    found.map(|(path, item)| (path.as_str(), item))
}

fn resolved(part: &'static Value) -> &'static Value {
    match part["$ref"].as_str() {
        Some(to) => DOCUMENT.pointer(to.strip_prefix('#').unwrap()).unwrap(),
        None => part,
    }
}

fn check(schema: &Value, value: &Value, at: &str) -> Result<(), String> {
    if let Some(to) = schema["$ref"].as_str() {
        let to = DOCUMENT.pointer(to.strip_prefix('#').unwrap());
        return check(to.unwrap(), value, at);
    }
    if let Some(words) = schema["enum"].as_array()
        && !words.contains(value)
    {
        return Err(format!("{at} is {value}, which is none of {words:?}"));
    }
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let is = |wanted: &Value| wanted == kind || (wanted == "number" && kind == "integer");
    let fits = match &schema["type"] {
        Value::Null => true,
        Value::Array(kinds) => kinds.iter().any(is),
        wanted => is(wanted),
    };
    if !fits {
        return Err(format!(
            "{at} is of the type {kind}, and not {}",
            schema["type"]
        ));
    }
    if let (Some(all), Some(items)) = (value.as_array(), schema.get("items")) {
        for (n, one) in all.iter().enumerate() {
            check(items, one, &format!("{at}/{n}"))?;
        }
    }
    let Some(members) = value.as_object() else {
        return Ok(());
    };
    let Some(properties) = schema["properties"].as_object() else {
        let others = &schema["additionalProperties"];
        let mut members = members.iter();
        return members.try_for_each(|(name, one)| check(others, one, &format!("{at}/{name}")));
    };
    for name in schema["required"].as_array().into_iter().flatten() {
        if !members.contains_key(name.as_str().unwrap()) {
            return Err(format!("{at}/{} is missing", name.as_str().unwrap()));
        }
    }
    for (name, value) in members {
        let at = format!("{at}/{name}");
        let property = properties.get(name);
        check(
            property.ok_or_else(|| format!("{at} is not described"))?,
            value,
            &at,
        )?;
    }
    Ok(())
}

#[tokio::test]
async fn every_get_route_answers_as_described() {
    let mut held = fixture();
    held["trust"] = "ask".into();
    let rig = Rig::configured(json!({
        "mcpServers": { "a": fixture(), "held": held, "off": { "command": "x", "enabled": false } },
        "profiles": { "a": {} },
        "approvals": { "rules": ["ask a:echo"], "notify": "off" },
    }))
    .await;
    rig.until_known("a").await;
    let client = Pipe::open(&rig, direct()).await;
    let waits = |found: &Value| {
        found["approvals"]
            .as_array()
            .is_some_and(|all| !all.is_empty())
    };
    let decide = async {
        let path = "/api/v1/approvals?status=pending&kind=tool_call";
        let waiting = rig.until(path, waits).await;
        let id = waiting["approvals"][0]["id"].as_str().unwrap().to_owned();
        let body = json!({ "remember": { "scope": "always" } });
        let path = format!("/api/v1/approvals/{id}/approve");
        assert_eq!(rig.post(&path, &body).await.status, 200);
        id
    };
    let (called, id) = tokio::join!(rig.call("a:echo", json!({ "text": "x" })), decide);
    assert_eq!(called.status, 200, "{called:?}");
    let is_held = |trust: &Value| !trust["servers"][0]["held"].as_array().unwrap().is_empty();
    let trust = rig.until("/api/v1/trust?server=held", is_held).await;
    let tool = trust["servers"][0]["held"][0]["tool"].as_str().unwrap();
    rig.until("/api/v1/activity", |found| {
        found["activity"][0]["server"] == "a"
    })
    .await;
    let mut read = 0;
    for (path, item) in DOCUMENT["paths"].as_object().unwrap() {
        let query = match path.as_str() {
            "/api/v1/search" => "?q=echo&explain=true".to_owned(),
            "/api/v1/trust/{name}" => format!("?tool={tool}"),
            _ => String::new(),
        };
        // The stream of events never ends; other tests compare its events.
        if item.get("get").is_none() || path == "/api/v1/events" {
            continue;
        }
        let name = if path.contains("/trust/") {
            "held"
        } else {
            "a"
        };
        let address = path.replace("{name}", name).replace("{id}", &id) + &query;
        let answer = rig.get(&address).await;
        assert_eq!(answer.status, 200, "{address}: {answer:?}");
        read += 1;
    }
    assert!(read >= 18, "{read}");
    drop(client);
    rig.stop().await;
}

#[test]
fn undescribed_field_fails() {
    let server = json!({ "$ref": "#/components/schemas/FailedList" });
    let fits = |value: Value| check(&server, &value, "");
    assert_eq!(fits(json!({ "list": "tools/list", "reason": "x" })), Ok(()));
    for wrong in [
        json!({ "list": "tools/list", "reason": "x", "more": 1 }),
        json!({ "list": "tools/list" }),
        json!({ "list": "else", "reason": "x" }),
        json!({ "list": "tools/list", "reason": 1 }),
        json!([]),
    ] {
        assert!(fits(wrong.clone()).is_err(), "{wrong}");
    }
}
