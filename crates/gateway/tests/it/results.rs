//! Results that are too long: truncated, and readable to the end.

use serde_json::{Value, json};

use crate::{
    api_rig::Rig,
    mcp_rig::{
        LEGACY, MODERN, Pipe, Web, configured, direct, refusal_of, result_text, search, server,
        text_of, until,
    },
    stage_rig::{Stage, tool},
};

const READ: &str = "read_result";
const READ_EXPOSED: &str = "switchboard__read_result";

/// A text in which every position differs from the others.
fn long_text(bytes: usize) -> String {
    let lines = (0..).map(|n| format!("Line {n} says something — like every line.\n"));
    let mut text = String::new();
    for line in lines {
        if text.len() + line.len() > bytes {
            return text;
        }
        text.push_str(&line);
    }
    text
}

fn text_result(text: &str) -> String {
    json!({ "content": [{ "type": "text", "text": text }] }).to_string()
}

fn tools() -> Vec<Value> {
    let mut typed = tool("typed", "Gives many rows.");
    typed["outputSchema"] = json!({
        "type": "object",
        "properties": { "rows": { "type": "array" } },
        "required": ["rows"],
    });
    vec![tool("long", "Gives much."), typed]
}

async fn staged(settings: &Value, mut config: Value) -> (Stage, Rig) {
    let stage = Stage::new(&tools());
    config["mcpServers"] = json!({ "s": stage.entry_with(settings) });
    let rig = Rig::configured(config).await;
    rig.until_tools("s", 2).await;
    (stage, rig)
}

/// The id and offset with which to continue after a truncated result, or after a page of it.
fn next(result: &Value, tool: &str) -> Option<(String, u64)> {
    let blocks = result["content"].as_array().unwrap();
    let note = blocks.last()?["text"].as_str()?;
    let (_, call) = note.split_once(&format!("Next: {tool} "))?;
    let call: Value = serde_json::from_str(call.trim_end_matches(']')).unwrap();
    let id = call["id"].as_str().unwrap().to_owned();
    Some((id, call["offset"].as_u64().unwrap()))
}

/// All blocks of a kept result, read page by page.
async fn read_all(pipe: &mut Pipe, tool: &str, id: &str, limit: Option<u64>) -> Vec<Value> {
    let mut blocks = Vec::new();
    let mut offset = 0;
    loop {
        let mut asked = json!({ "id": id, "offset": offset });
        if let Some(limit) = limit {
            asked["limit"] = json!(limit);
        }
        let page = pipe.call(tool, asked).await;
        assert_eq!(page.get("isError"), None, "{page}");
        let mut content = page["content"].as_array().unwrap().clone();
        content.pop();
        blocks.extend(content);
        match next(&page, tool) {
            Some((_, further)) => {
                assert!(further > offset, "{further} after {offset}");
                offset = further;
            }
            None => return blocks,
        }
    }
}

fn joined(blocks: &[Value]) -> String {
    let texts = blocks.iter().filter_map(|block| block["text"].as_str());
    texts.collect()
}

#[tokio::test]
async fn long_text_is_truncated_without_loss() {
    let (stage, rig) = staged(&json!({}), json!({})).await;
    let text = long_text(300_000);
    stage.set_result("long", &text_result(&text));
    for revision in [LEGACY, MODERN] {
        let mut pipe = Pipe::open_as(&rig, search(), revision).await;
        let cut = pipe.call_found("s:long", json!({})).await;
        assert_eq!(cut.get("isError"), None, "{cut}");
        assert!(cut.to_string().len() < 70_000, "{}", cut.to_string().len());
        let (id, offset) = next(&cut, READ).unwrap_or_else(|| panic!("{}", text_of(&cut)));
        // The beginning is shown, and the handle continues from there.
        let shown = cut["content"][0]["text"].as_str().unwrap();
        assert!(text.starts_with(shown));
        assert_eq!(shown.len() as u64, offset);
        assert_eq!(joined(&read_all(&mut pipe, READ, &id, None).await), text);
        let small = read_all(&mut pipe, READ, &id, Some(5_000)).await;
        assert_eq!(joined(&small), text);
        assert!(small.len() > 50, "{}", small.len());
        // At any offset: also in the middle of a character, and beyond the end.
        for offset in [1, 33, 34, 35, 150_000] {
            let asked = json!({ "id": id, "offset": offset, "limit": 100 });
            let page = pipe.call(READ, asked).await;
            let piece = page["content"][0]["text"].as_str().unwrap();
            assert!(text.contains(piece), "{piece}");
            assert!(piece.len() <= 100, "{piece}");
        }
        let asked = json!({ "id": id, "offset": 9_999_999 });
        let end = pipe.call(READ, asked).await;
        assert!(text_of(&end).contains("nothing is left"), "{end}");
    }
    rig.stop().await;
}

#[tokio::test]
async fn what_fits_stays_as_it_is() {
    let (stage, rig) = staged(&json!({}), json!({})).await;
    let whole = text_result(&long_text(40_000));
    stage.set_result("long", &whole);
    for path in ["/mcp/search", "/mcp/direct", "/mcp"] {
        let web = Web::open(&rig, path, LEGACY).await;
        let call = match path {
            "/mcp/search" => json!({ "name": "call_tool", "arguments": { "name": "s:long" } }),
            _ => json!({ "name": "s__long", "arguments": {} }),
        };
        let answer = web.ask("tools/call", call).await;
        assert_eq!(result_text(&answer.text), whole, "{path}");
    }
    rig.stop().await;
}

#[tokio::test]
async fn list_is_truncated_between_its_elements() {
    let (stage, rig) = staged(&json!({}), json!({})).await;
    let rows: Vec<Value> = (0..5_000)
        .map(|n| json!({ "n": n, "says": format!("row {n} — \"quoted\"") }))
        .collect();
    let rows = Value::from(rows);
    stage.set_result("long", &text_result(&rows.to_string()));
    let mut pipe = Pipe::open(&rig, search()).await;
    let cut = pipe.call_found("s:long", json!({})).await;
    let shown: Value = serde_json::from_str(cut["content"][0]["text"].as_str().unwrap()).unwrap();
    let shown = shown.as_array().unwrap();
    assert!(shown.len() > 100, "{}", shown.len());
    assert_eq!(*shown, rows.as_array().unwrap()[..shown.len()]);
    assert!(text_of(&cut).contains("of 5000"), "{}", text_of(&cut));
    let (id, _) = next(&cut, READ).unwrap();
    let all = joined(&read_all(&mut pipe, READ, &id, None).await);
    assert_eq!(serde_json::from_str::<Value>(&all).unwrap(), rows);
    rig.stop().await;
}

#[tokio::test]
async fn structured_content_is_readable_to_its_end() {
    let (stage, rig) = staged(&json!({}), json!({})).await;
    let rows: Vec<Value> = (0..6_000).map(|n| json!({ "n": n, "t": "row" })).collect();
    let structure = json!({ "rows": rows });
    let result = json!({
        "content": [{ "type": "text", "text": "6000 rows." }],
        "structuredContent": structure,
    });
    stage.set_result("long", &result.to_string());
    let mut pipe = Pipe::open(&rig, search()).await;
    let cut = pipe.call_found("s:long", json!({})).await;
    assert!(cut.to_string().len() < 70_000);
    let (id, _) = next(&cut, READ).unwrap();
    let all = joined(&read_all(&mut pipe, READ, &id, None).await);
    let told = all.strip_prefix("6000 rows.").unwrap();
    assert_eq!(serde_json::from_str::<Value>(told).unwrap(), structure);
    rig.stop().await;
}

#[tokio::test]
async fn oversized_image_is_announced_and_can_be_read() {
    let (stage, rig) = staged(&json!({}), json!({})).await;
    let image = json!({
        "type": "image",
        "mimeType": "image/png",
        "data": "QUJD".repeat(400_000),
        "annotations": { "audience": ["user"] },
    });
    let result = json!({ "content": [{ "type": "text", "text": "Look:" }, image] });
    stage.set_result("long", &result.to_string());
    let mut pipe = Pipe::open(&rig, search()).await;
    let cut = pipe.call_found("s:long", json!({})).await;
    assert!(cut.to_string().len() < 70_000);
    assert_eq!(cut["content"][0]["text"], "Look:");
    let text = text_of(&cut);
    assert!(text.contains("image/png"), "{text}");
    let (_, call) = text.split_once("read_result ").unwrap();
    let call: Value = serde_json::from_str(call.split_inclusive('}').next().unwrap()).unwrap();
    let read = pipe.call(READ, call).await;
    assert_eq!(read["content"][0], image);
    rig.stop().await;
}

#[tokio::test]
async fn budget_comes_from_call_server_or_configuration() {
    let text = long_text(30_000);
    let all = json!({ "results": { "maxBytes": 20_000, "maxTokens": 100_000 } });
    let own = json!({ "maxResultBytes": 5_000 });
    for (settings, config, max_bytes, most) in [
        (json!({}), all.clone(), None, 20_000),
        (own.clone(), all.clone(), None, 5_000),
        (own.clone(), all.clone(), Some(2_000), 2_000),
        // A call may request less, never more.
        (own, all.clone(), Some(25_000), 5_000),
        (json!({ "maxResultBytes": 100_000 }), all, None, 100_000),
        (
            json!({}),
            json!({ "results": { "maxTokens": 1_000 } }),
            None,
            6_000,
        ),
        (json!({ "maxResultTokens": 500 }), json!({}), None, 3_000),
    ] {
        let what = format!("{settings} {config} {max_bytes:?}");
        let (stage, rig) = staged(&settings, config).await;
        stage.set_result("long", &text_result(&text));
        let mut pipe = Pipe::open(&rig, search()).await;
        let mut arguments = json!({ "name": "s:long" });
        if let Some(max_bytes) = max_bytes {
            arguments["max_bytes"] = json!(max_bytes);
        }
        let cut = pipe.call("call_tool", arguments).await;
        let bytes = cut.to_string().len();
        assert!(bytes <= most + 300, "{what}: {bytes}");
        if most < text.len() {
            assert!(bytes > most / 3, "{what}: {bytes}");
            let (id, _) = next(&cut, READ).unwrap();
            assert_eq!(joined(&read_all(&mut pipe, READ, &id, None).await), text);
        } else {
            assert_eq!(next(&cut, READ), None, "{what}");
            assert_eq!(text_of(&cut), text, "{what}");
        }
        rig.stop().await;
    }
}

#[tokio::test]
async fn budget_can_be_changed_at_run_time() {
    let (stage, rig) = staged(&json!({}), json!({})).await;
    stage.set_result("long", &text_result(&long_text(30_000)));
    let mut pipe = Pipe::open(&rig, search()).await;
    let whole = pipe.call_found("s:long", json!({})).await;
    assert_eq!(next(&whole, READ), None);
    let config = json!({
        "results": { "maxBytes": 4_096 },
        "mcpServers": { "s": stage.entry() },
    });
    rig.reconfigure(&config).await;
    let cut = pipe.call_found("s:long", json!({})).await;
    assert!(next(&cut, READ).is_some(), "{cut}");
    rig.stop().await;
}

#[tokio::test]
async fn direct_view_truncates_and_honours_output_schemas() {
    let (stage, rig) = staged(&json!({}), json!({})).await;
    let text = long_text(100_000);
    stage.set_result("long", &text_result(&text));
    let rows: Vec<Value> = (0..9_000).map(|n| json!({ "n": n, "t": "row" })).collect();
    let structure = json!({ "rows": rows });
    let result = json!({
        "content": [{ "type": "text", "text": structure.to_string() }],
        "structuredContent": structure,
    });
    stage.set_result("typed", &result.to_string());
    for view in [direct(), configured()] {
        for revision in [LEGACY, MODERN] {
            let mut pipe = Pipe::open_as(&rig, view.clone(), revision).await;
            assert!(pipe.tools().await.contains(&READ_EXPOSED.to_owned()));
            let cut = pipe.call("s__long", json!({})).await;
            let (id, _) = next(&cut, READ_EXPOSED).unwrap();
            let all = read_all(&mut pipe, READ_EXPOSED, &id, None).await;
            assert_eq!(joined(&all), text);
            let cut = pipe.call("s__typed", json!({})).await;
            assert!(cut.to_string().len() < 70_000);
            let shown = cut["structuredContent"]["rows"].as_array().unwrap();
            assert!(!shown.is_empty());
            assert_eq!(*shown, rows[..shown.len()]);
            let (id, _) = next(&cut, READ_EXPOSED).unwrap();
            let all = joined(&read_all(&mut pipe, READ_EXPOSED, &id, None).await);
            assert_eq!(serde_json::from_str::<Value>(&all).unwrap(), structure);
        }
    }
    rig.stop().await;
}

#[tokio::test]
async fn own_view_and_rest_truncate_nothing() {
    let (stage, rig) = staged(&json!({ "maxResultBytes": 1_024 }), json!({})).await;
    let whole = text_result(&long_text(200_000));
    stage.set_result("long", &whole);
    let web = Web::open(&rig, "/mcp/s/s", LEGACY).await;
    let call = json!({ "name": "long", "arguments": {} });
    let answer = web.ask("tools/call", call).await;
    assert_eq!(result_text(&answer.text), whole);
    assert_eq!(rig.call("s:long", json!({})).await.body, whole);
    rig.stop().await;
}

#[tokio::test]
async fn results_are_private_to_their_principal() {
    let config = json!({ "auth": { "mcp": "none" }, "results": { "maxBytes": 1_024 } });
    let (stage, rig) = staged(&json!({}), config).await;
    stage.set_result("long", &text_result(&long_text(10_000)));
    let owner = Web::open(&rig, "/mcp/search", LEGACY).await;
    let anyone = Web::anyone(&rig, "/mcp/search").await;
    let call = json!({ "name": "s:long" });
    let (owners, _) = next(&owner.call("call_tool", call.clone()).await, READ).unwrap();
    let (anyones, _) = next(&anyone.call("call_tool", call).await, READ).unwrap();
    for (client, own, other) in [(&owner, &owners, &anyones), (&anyone, &anyones, &owners)] {
        let read = client.call(READ, json!({ "id": own })).await;
        assert!(text_of(&read).contains("Line 0"), "{read}");
        let read = client.call(READ, json!({ "id": other })).await;
        assert_eq!(read["isError"], true, "{read}");
        assert!(!text_of(&read).contains("Line"), "{read}");
        assert!(text_of(&read).contains("call the tool again"), "{read}");
    }
    // Another client of the same user can: it may be another agent of theirs.
    let mut pipe = Pipe::open(&rig, search()).await;
    let read = pipe.call(READ, json!({ "id": owners })).await;
    assert!(text_of(&read).contains("Line 0"), "{read}");
    rig.stop().await;
}

/// Without a disk, results are kept in memory, which fills soon.
#[tokio::test]
async fn results_without_token_evict_none_of_owner() {
    let config = json!({ "auth": { "mcp": "none" }, "results": { "maxBytes": 1_024 } });
    let (stage, rig) = staged(&json!({}), config).await;
    std::fs::write(rig.home.results(), "").unwrap();
    let owner = Web::open(&rig, "/mcp/search", LEGACY).await;
    let stranger = Web::anyone(&rig, "/mcp/search").await;
    let call = json!({ "name": "s:long" });
    stage.set_result("long", &text_result(&long_text(10_000)));
    let (kept, _) = next(&owner.call("call_tool", call.clone()).await, READ).unwrap();
    stage.set_result("long", &text_result(&long_text(3_000_000)));
    for _ in 0..4 {
        let cut = stranger.call("call_tool", call.clone()).await;
        let (id, _) = next(&cut, READ).unwrap();
        let read = stranger.call(READ, json!({ "id": id })).await;
        assert!(text_of(&read).contains("Line 0"), "{read}");
    }
    let read = owner.call(READ, json!({ "id": kept })).await;
    assert!(text_of(&read).contains("Line 0"), "{read}");
    rig.stop().await;
}

#[tokio::test]
async fn unreadable_result_has_a_hint() {
    let config = json!({ "results": { "maxBytes": 1_024, "keepSeconds": 1 } });
    let (stage, rig) = staged(&json!({}), config).await;
    stage.set_result("long", &text_result(&long_text(10_000)));
    let mut pipe = Pipe::open(&rig, search()).await;
    for (arguments, said) in [
        (json!({}), "`id`"),
        (json!({ "id": 7 }), "`id`"),
        (json!({ "id": "r_x", "offset": -1 }), "`offset`"),
        (json!({ "id": "r_x", "page": 1 }), "`id`"),
        (json!({ "id": "" }), "is invalid"),
        (json!({ "id": "../../etc/passwd" }), "is invalid"),
        (
            json!({ "id": format!("r_zzzzzzzz{}", "0".repeat(26)) }),
            "call the tool again",
        ),
        (
            json!({ "id": format!("r_00000000{}", "0".repeat(26)) }),
            "call the tool again",
        ),
    ] {
        let text = pipe.refusal(READ, arguments.clone()).await;
        assert!(text.contains(said), "{arguments}: {text}");
    }
    let cut = pipe.call_found("s:long", json!({})).await;
    let (id, _) = next(&cut, READ).unwrap();
    let pipe = tokio::sync::Mutex::new(&mut pipe);
    let is_gone = async || {
        let read = pipe.lock().await.call(READ, json!({ "id": id })).await;
        read["isError"] == true
    };
    until("it is expired", is_gone).await;
    let read = pipe.lock().await.call(READ, json!({ "id": id })).await;
    assert!(text_of(&read).contains("this result expired"), "{read}");
    assert!(text_of(&read).contains("call the tool again"), "{read}");
    rig.stop().await;
}

#[tokio::test]
async fn result_is_readable_after_a_restart() {
    let (stage, rig) = staged(&json!({}), json!({})).await;
    let text = long_text(200_000);
    stage.set_result("long", &text_result(&text));
    let mut pipe = Pipe::open(&rig, search()).await;
    let cut = pipe.call_found("s:long", json!({})).await;
    let (id, _) = next(&cut, READ).unwrap();
    let rig = rig.restarted(|_| {}).await;
    let mut pipe = Pipe::open(&rig, search()).await;
    assert_eq!(joined(&read_all(&mut pipe, READ, &id, None).await), text);
    let rig = rig
        .restarted(|home| std::fs::remove_dir_all(home.results()).unwrap())
        .await;
    let mut pipe = Pipe::open(&rig, search()).await;
    let text = pipe.refusal(READ, json!({ "id": id })).await;
    assert!(text.contains("call the tool again"), "{text}");
    rig.stop().await;
}

#[tokio::test]
async fn result_that_cannot_be_kept_is_whole() {
    let config = json!({ "results": { "maxBytes": 1_024 } });
    let (stage, rig) = staged(&json!({}), config).await;
    // A file in place of the directory, and more than is kept in memory alone.
    std::fs::write(rig.home.results(), "").unwrap();
    let whole = text_result(&long_text(10_000_000));
    stage.set_result("long", &whole);
    let mut pipe = Pipe::open(&rig, search()).await;
    let params = json!({ "name": "call_tool", "arguments": { "name": "s:long" } });
    let answer = pipe.ask("tools/call", params).await;
    assert_eq!(result_text(&answer.text).len(), whole.len());
    rig.stop().await;
}

/// Denies every further call to the server.
async fn deny_all(stage: &Stage, rig: &Rig) {
    rig.reconfigure(&json!({
        "mcpServers": { "s": stage.entry_with(&json!({})) },
        "approvals": { "rules": ["deny s:*"], "notify": "off" },
    }))
    .await;
}

/// Rules are about calls: the client keeps the result of an earlier one.
#[tokio::test]
async fn result_outlives_a_rule_denying_its_tool() {
    let (stage, rig) = staged(&json!({}), json!({})).await;
    let text = long_text(100_000);
    stage.set_result("long", &text_result(&text));
    let mut pipe = Pipe::open_as(&rig, search(), LEGACY).await;
    let cut = pipe.call_found("s:long", json!({})).await;
    let (id, _) = next(&cut, READ).unwrap();
    deny_all(&stage, &rig).await;
    let again = json!({ "name": "s:long", "arguments": {} });
    let refusal = pipe.refusal("call_tool", again).await;
    assert!(refusal.contains("denied by a rule"), "{refusal}");
    assert_eq!(joined(&read_all(&mut pipe, READ, &id, None).await), text);
    rig.stop().await;
}

#[tokio::test]
async fn task_outlives_a_rule_denying_its_tool() {
    let (stage, rig) = staged(&json!({}), json!({})).await;
    stage.set_result("long", r#"{"task":{"taskId":"t1","status":"working"}}"#);
    let mut pipe = Pipe::open_as(&rig, server("s"), LEGACY).await;
    let started = pipe.call("long", json!({})).await;
    let task = json!({ "taskId": started["task"]["taskId"] });
    deny_all(&stage, &rig).await;
    let refusal = pipe.refusal("long", json!({})).await;
    assert!(refusal.contains("denied by a rule"), "{refusal}");
    let result = pipe.result("tasks/result", task).await;
    assert_eq!(text_of(&result), "done", "{result}");
    rig.stop().await;
}

/// A server whose tool `job` works as a task only.
async fn with_a_task(config: Value) -> (Stage, Rig) {
    let mut job = tool("job", "Works.");
    job["execution"] = json!({ "taskSupport": "required" });
    let stage = Stage::new(&[job]);
    let capabilities = r#"{"tools":{},"tasks":{"requests":{"tools":{"call":{}}}}}"#;
    stage.set_answer(
        "initialize",
        &format!(
            r#""result":{{"protocolVersion":"2025-11-25","capabilities":{capabilities},"serverInfo":{{"name":"stage","version":"1"}}}}"#
        ),
    );
    stage.set_result("job", r#"{"task":{"taskId":"t1","status":"working"}}"#);
    let mut config = config;
    config["mcpServers"] = json!({ "s": stage.entry() });
    let rig = Rig::configured(config).await;
    rig.until_tools("s", 1).await;
    (stage, rig)
}

/// The gateway uses its own progress tokens: one of a client could equal that of another client's call.
#[tokio::test]
async fn progress_token_of_a_task_is_not_forwarded() {
    let (stage, rig) = with_a_task(json!({})).await;
    for revision in [LEGACY, MODERN] {
        let mut pipe = Pipe::open_as(&rig, direct(), revision).await;
        let mut params =
            json!({ "name": "s__job", "arguments": {}, "_meta": { "progressToken": 4, "a/b": 1 } });
        if revision == MODERN {
            params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!(MODERN);
            params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
        }
        let result = pipe.result("tools/call", params).await;
        assert_eq!(text_of(&result), "done");
        let calls = stage.calls_of("job");
        let meta = &calls.last().unwrap()["_meta"];
        assert_eq!(meta["progressToken"], Value::Null, "{revision} {meta}");
        assert_eq!(meta["a/b"], 1, "{revision} {meta}");
    }
    rig.stop().await;
}

/// Some servers ignore case, and would report progress for another call.
#[tokio::test]
async fn progress_token_in_another_spelling_is_refused() {
    let (stage, rig) = staged(&json!({}), json!({})).await;
    for revision in [LEGACY, MODERN] {
        let mut pipe = Pipe::open_as(&rig, server("s"), revision).await;
        for meta in [
            r#""_meta":{DRESS"ProgressToken":4}"#,
            r#""_meta":{DRESS"progressToken":4,"PROGRESSTOKEN":5}"#,
            r#""_meta":{DRESS"progressTo\u212aen":4}"#,
            r#""_meta":{DRESS"progressToken":4},"_Meta":{"progressToken":5}"#,
        ] {
            let dress = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"#;
            let meta = meta.replace("DRESS", if revision == MODERN { dress } else { "" });
            let line = format!(
                r#"{{"jsonrpc":"2.0","id":7000,"method":"tools/call","params":{{"name":"long","arguments":{{}},{meta}}}}}"#
            );
            pipe.send_text(&line).await;
            let answer = pipe.finish(&json!(7_000)).await.json;
            let refusal = refusal_of(&answer);
            assert!(refusal.contains("more than once"), "{line}: {answer}");
        }
    }
    assert_eq!(stage.calls(), 0);
    rig.stop().await;
}

/// A sampling request may contain links in results of tools.
#[tokio::test]
async fn links_in_questions_refer_to_their_server() {
    let link = json!({ "type": "resource_link", "uri": "switchboard://memory/memory://digest", "name": "Report" });
    let content = json!({ "type": "tool_result", "toolUseId": "1", "content": [link] });
    let message = json!({ "role": "user", "content": [content] });
    let params = json!({ "messages": [message], "maxTokens": 9 });
    let questions = json!({ "q": { "method": "sampling/createMessage", "params": params } });
    let able = json!({ "sampling": { "tools": {} } });
    for (modern, revision, is_merged) in [
        (false, "2025-11-25", true),
        (false, MODERN, true),
        (true, "2025-11-25", true),
        (true, MODERN, true),
        (true, MODERN, false),
    ] {
        let stage = Stage::new(&[tool("ask", "Asks.")]);
        let entry = if modern {
            stage.modern_entry()
        } else {
            stage.entry()
        };
        let rig = Rig::configured(json!({ "mcpServers": { "s": entry } })).await;
        rig.until_tools("s", 1).await;
        let own = "switchboard://memory/memory://digest";
        let (view, name, uri) = if is_merged {
            (direct(), "s__ask", format!("switchboard://s/{own}"))
        } else {
            (server("s"), "ask", own.to_owned())
        };
        let mut pipe = Pipe::open_able(&rig, view, revision, able.clone()).await;
        let arguments = json!({ "questions": questions });
        let call = pipe.send_call(name, arguments).await;
        let asked = if revision == MODERN {
            let answer = pipe.finish(&call).await.json;
            let asked = answer["result"]["inputRequests"].as_object();
            let asked = asked.and_then(|asked| asked.values().next());
            asked.unwrap_or_else(|| panic!("{answer}")).clone()
        } else {
            pipe.question().await
        };
        let link = &asked["params"]["messages"][0]["content"][0]["content"][0];
        assert_eq!(link["uri"], uri, "{modern} {revision} {asked}");
        rig.stop().await;
    }
}

/// A link in a result refers to the server of the result, no matter how the result is delivered.
#[tokio::test]
async fn links_in_task_results_refer_to_their_server() {
    let (stage, rig) = with_a_task(json!({})).await;
    let link = r#"{"content":[{"type":"resource_link","uri":"switchboard://memory/memory://digest","name":"Report"}]}"#;
    stage.set_answer("tasks/result", &format!(r#""result":{link}"#));
    let inner = format!(r#""result":{{"taskId":"t1","status":"completed","result":{link}}}"#);
    stage.set_answer("tasks/get", &inner);
    let exposed = "switchboard://s/switchboard://memory/memory://digest";
    let outside = format!("{},\"result\":{{}}}}", &link[..link.len() - 1]);
    for view in [direct(), search()] {
        let mut pipe = Pipe::open_as(&rig, view, "2025-11-25").await;
        let call = json!({ "name": "s__job", "arguments": {}, "task": {} });
        let call = if pipe.tools().await.contains(&"s__job".to_owned()) {
            call
        } else {
            json!({ "name": "call_tool", "arguments": { "name": "s__job", "arguments": {} }, "task": {} })
        };
        let started = pipe.result("tools/call", call).await;
        let task = json!({ "taskId": started["task"]["taskId"] });
        for said in [link, &outside] {
            stage.set_answer("tasks/result", &format!(r#""result":{said}"#));
            let result = pipe.result("tasks/result", task.clone()).await;
            assert_eq!(result["content"][0]["uri"], exposed, "{result}");
        }
        for twice in [format!(r#""result":{link}"#), format!(r#""Result":{link}"#)] {
            let twice = inner.replacen(r#""status""#, &format!(r#"{twice},"status""#), 1);
            stage.set_answer("tasks/get", &twice);
            let answer = pipe.ask("tasks/get", task.clone()).await.text;
            assert!(answer.contains("cannot parse its task data"), "{answer}");
            assert!(!answer.contains("memory://"), "{answer}");
        }
        stage.set_answer("tasks/get", &inner);
        let state = pipe.result("tasks/get", task).await;
        assert_eq!(state["result"]["content"][0]["uri"], exposed, "{state}");
    }
    rig.stop().await;
}
