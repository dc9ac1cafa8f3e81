//! Features of the transports: batches, sessions, resumed streams.

use serde_json::{Value, json};

use crate::{
    client::{Client, Headers, Place, Reason, Setup, call_of, check, with_progress},
    revision::{Revision, Way},
};

const PROGRESS: &str = "notifications/progress";

/// 2025-03-26 has batches; in other revisions the gateway responds that a message is one object.
pub(super) fn batches(client: &mut Client) -> Result<(), Reason> {
    let ask = |id: &str, method: &str, params: Value| json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": client.dressed(params) });
    let batch = json!([
        ask("batch-1", "tools/list", json!({})),
        { "jsonrpc": "2.0", "method": "notifications/roots/list_changed" },
        ask("batch-2", "tools/call", call_of("test_simple_text", json!({}))),
    ]);
    let headers = client.headers("tools/list", &json!({}));
    let from = client.now();
    let sent = client.door.send(&batch.to_string(), headers);
    if client.revision() == Revision::Mar2025 {
        sent.map_err(|error| error.to_string())?;
        for id in ["batch-1", "batch-2"] {
            let found = client.until(from, id, |arrival| {
                arrival.answers() == Some(format!("\"{id}\""))
            })?;
            let answer = &client.seen[found].message;
            check!(answer["result"].is_object(), "{answer}");
        }
        return Ok(());
    }
    if let Err(error) = sent {
        let error = error.to_string();
        check!(error.contains("-32600"), "{error}");
        return Ok(());
    }
    let found = client.until(from, "a refusal", |arrival| {
        arrival.message.get("error").is_some()
    })?;
    let refusal = &client.seen[found];
    check!(
        refusal.message["error"]["code"] == -32600,
        "{}",
        refusal.text
    );
    let status = refusal.status;
    check!(
        client.way() != Way::Http || status == 400,
        "refused with {status}"
    );
    Ok(())
}

/// Sends a separate HTTP request, and returns the status and the body.
fn http(
    client: &mut Client,
    method: &str,
    headers: Headers,
    body: &Value,
) -> Result<(u16, String), Reason> {
    let body = if body.is_null() {
        String::new()
    } else {
        body.to_string()
    };
    let from = client.now();
    let http = client.door.http().ok_or("not over HTTP")?;
    let stream = http
        .send(method, headers, body.as_bytes())
        .map_err(|error| error.to_string())?;
    let end = client.until(from, method, |seen| seen.stream == stream && seen.is_end)?;
    let status = client.seen[end].status;
    let body = client.seen[from..]
        .iter()
        .find(|seen| seen.stream == stream);
    Ok((status, body.map_or(String::new(), |seen| seen.text.clone())))
}

fn header(name: &str, value: &str) -> Headers {
    vec![(name.to_owned(), value.to_owned())]
}

/// A session exists until it is deleted, and only for clients that know its ID.
pub(super) fn sessions(client: &mut Client) -> Result<(), Reason> {
    let mut one = client.another(Setup::able(client.setup.side))?;
    let ping = json!({ "jsonrpc": "2.0", "id": "ping", "method": "ping" });
    let (status, said) = http(&mut one, "POST", Vec::new(), &ping)?;
    check!(status == 200, "its own session: {status} {said}");
    let unknown = header("Mcp-Session-Id", "0123456789abcdef0123456789abcdef");
    let (status, said) = http(&mut one, "POST", unknown, &ping)?;
    check!(status == 404, "an unknown session: {status} {said}");

    let session = one.door.http().and_then(|http| http.session.clone());
    let session = session.ok_or("it has no session")?;
    // Without a gateway there is only one address.
    if client.place.http_path != "/mcp" {
        let place = Place {
            http_path: "/mcp/direct".to_owned(),
            ..client.place.clone()
        };
        let mut elsewhere = Client::knock(&place, client.server, Setup::able(client.setup.side))?;
        let own = header("Mcp-Session-Id", &session);
        let (status, said) = http(&mut elsewhere, "POST", own, &ping)?;
        check!(
            status == 404,
            "the session of another address: {status} {said}"
        );
    }

    let (status, said) = http(&mut one, "DELETE", Vec::new(), &Value::Null)?;
    check!((200..300).contains(&status), "DELETE: {status} {said}");
    let (status, said) = http(&mut one, "POST", Vec::new(), &ping)?;
    check!(status == 404, "after DELETE: {status} {said}");
    Ok(())
}

/// A stream that was cut continues where it was, including the response.
pub(super) fn resumption(client: &mut Client) -> Result<(), Reason> {
    const COUNT: u64 = 20;
    let from = client.now();
    let params = call_of("test_progress_burst", json!({ "count": COUNT }));
    let sent = client.send("tools/call", with_progress(params, &json!("resumed")))?;
    let first = client.until_told_on(from, PROGRESS, sent.stream)?;
    let event = client.seen[first].event_id.clone();
    let event = event.ok_or("the event has no id")?;
    let said = client.seen[first].params()["progress"].as_u64();
    check!(said == Some(1), "the first is not the first: {said:?}");
    client.door.cut(sent.stream);

    let from = client.now();
    let http = client.door.http().ok_or("not over HTTP")?;
    let resumed = http
        .send("GET", header("Last-Event-ID", &event), b"")
        .map_err(|error| error.to_string())?;
    let id = sent.id.to_string();
    let answer = client.until(from, "the answer on the resumed stream", |seen| {
        seen.stream == resumed && (seen.answers().as_ref() == Some(&id) || seen.is_end)
    })?;
    let of_it = client.seen[from..=answer]
        .iter()
        .filter(|seen| seen.stream == resumed);
    let numbers: Vec<_> = of_it
        .filter(|seen| seen.is_notification(PROGRESS))
        .filter_map(|seen| seen.params()["progress"].as_u64())
        .collect();
    check!(
        numbers == (2..=COUNT).collect::<Vec<_>>(),
        "after the first came {numbers:?}"
    );
    let answer = &client.seen[answer];
    check!(
        answer.message["result"].is_object(),
        "the answer: {}",
        answer.text
    );
    Ok(())
}

/// Only 2025-11-25 has a first event without data; 2026-07-28 has no event IDs, either.
pub(super) fn priming(client: &mut Client) -> Result<(), Reason> {
    let from = client.now();
    let params = call_of("test_progress_burst", json!({ "count": 3 }));
    let sent = client.send("tools/call", with_progress(params, &json!("primed")))?;
    client.wait(&sent)?;
    let of_it = client.seen[from..]
        .iter()
        .filter(|seen| seen.stream == sent.stream);
    let events: Vec<_> = of_it.filter(|seen| seen.is_event).collect();
    let first = events.first().ok_or("no stream of events")?;
    let primed = first.text.is_empty();
    check!(
        primed == (client.revision() == Revision::Nov2025),
        "the first event: {first:?}"
    );
    check!(
        !primed || (first.event_id.is_some() && first.retry.is_some()),
        "{first:?}"
    );
    let named = events.iter().any(|event| event.event_id.is_some());
    check!(named != client.is_modern(), "event ids: {first:?}");
    Ok(())
}
