//! Servers of both eras: each client is served in its own.

use serde_json::{Value, json};

use crate::{
    api_rig::Rig,
    mcp_rig::{LEGACY, MODERN, Pipe, server, text_of, until},
    stage_rig::{Stage, tool},
};

const CALL: &str = "tools/call ";

fn stage() -> Stage {
    Stage::new(&[
        tool("elicit", "Asks."),
        tool("ask", "Asks."),
        tool("echo", "Says."),
    ])
}

/// A gateway with this server, which runs in the newer era and has not been called.
async fn rig(entry: Value) -> Rig {
    rig_with(json!({ "mcpServers": { "s": entry } })).await
}

async fn rig_with(config: Value) -> Rig {
    let rig = Rig::configured(config).await;
    rig.until_tools("s", 3).await;
    rig
}

/// A gateway with this server, which has been listed and does not run: it is stopped whenever it is idle.
async fn idle_rig(mut entry: Value) -> Rig {
    entry["start"] = json!("lazy");
    entry["idleStopSeconds"] = json!(1);
    let rig = rig(entry).await;
    until_idle(&rig).await;
    rig
}

async fn until_idle(rig: &Rig) {
    rig.until("/api/v1/servers/s", |server| server["state"] == "idle")
        .await;
}

const CHANGED: &str = "notifications/tools/list_changed";

/// Makes the first process, which is of the newer era, offer these tools and announce the change.
async fn change_first(stage: &Stage, tools: &[Value]) {
    stage.set_tools(tools);
    stage.tell_in("newer", CHANGED, json!({})).await;
}

/// The same for the second process.
async fn change_second(stage: &Stage, tools: &[Value]) {
    stage.set("older.tools.json", &Value::from(tools).to_string());
    stage.tell_in("older", CHANGED, json!({})).await;
}

/// The entry of a server whose process all clients share, although it asks them.
fn shared(mut entry: Value) -> Value {
    entry["share"] = json!("all");
    entry
}

fn calls_in(stage: &Stage, era: &str) -> usize {
    let asked = stage.asked_in(era);
    asked.iter().filter(|line| line.starts_with(CALL)).count()
}

#[tokio::test]
async fn client_is_asked_in_its_own_era() {
    let stage = stage();
    let rig = rig(stage.entry_of_both()).await;
    let mut older = Pipe::open(&rig, server("s")).await;
    let result = older.call("elicit", json!({})).await;
    assert!(text_of(&result).contains("Ada"), "{result}");
    // The other client gets the response that such a server gives in its era.
    let mut newer = Pipe::open_as(&rig, server("s"), MODERN).await;
    let refused = newer.refusal("elicit", json!({})).await;
    assert_eq!(refused, "not in 2026-07-28");
    assert_eq!(
        (calls_in(&stage, "older"), calls_in(&stage, "newer")),
        (1, 1)
    );
}

#[tokio::test]
async fn first_call_opens_its_own_era() {
    let stage = stage();
    let entry = stage.entry_of_both();
    let rig = rig(entry.clone()).await;
    let mut lazy = entry;
    lazy["start"] = json!("lazy");
    let config = json!({ "mcpServers": { "s": lazy }, "memory": { "enabled": false } });
    let rig = rig
        .restarted(|home| std::fs::write(home.config_file(), config.to_string()).unwrap())
        .await;
    let before = stage.asked_in("newer").len();
    let mut older = Pipe::open(&rig, server("s")).await;
    let result = older.call("elicit", json!({})).await;
    assert!(text_of(&result).contains("Ada"), "{result}");
    assert_eq!(stage.asked_in("newer").len(), before);
    // A client of the other era causes the start of the other process.
    let mut newer = Pipe::open_as(&rig, server("s"), MODERN).await;
    newer.call("echo", json!({})).await;
    assert_eq!(calls_in(&stage, "newer"), 1);
}

#[tokio::test]
async fn mute_client_starts_no_second_process() {
    let stage = stage();
    let approvals = json!({ "route": "client" });
    let servers = json!({ "s": shared(stage.entry_of_both()) });
    let rig = rig_with(json!({ "mcpServers": servers, "approvals": approvals })).await;
    let mut older = Pipe::open_able(&rig, server("s"), LEGACY, json!({})).await;
    older.call("echo", json!({})).await;
    let mut newer = Pipe::open_as(&rig, server("s"), MODERN).await;
    newer.call("echo", json!({})).await;
    assert_eq!(
        (calls_in(&stage, "older"), calls_in(&stage, "newer")),
        (0, 2)
    );
    assert!(!stage.is_up_in("older"));
    // A client that can be asked causes its start, for itself alone.
    let mut able = Pipe::open(&rig, server("s")).await;
    able.call("elicit", json!({})).await;
    older.call("echo", json!({})).await;
    assert_eq!(
        (calls_in(&stage, "older"), calls_in(&stage, "newer")),
        (1, 3)
    );
}

#[tokio::test]
async fn single_era_server_is_tried_once_and_translated() {
    let stage = stage();
    let rig = rig(stage.modern_entry()).await;
    let mut older = Pipe::open(&rig, server("s")).await;
    for _ in 0..3 {
        let result = older.call("elicit", json!({})).await;
        assert!(text_of(&result).contains("Ada"), "{result}");
    }
    let asked = stage.asked();
    let tried = asked.iter().filter(|line| line.starts_with("initialize "));
    assert_eq!(tried.count(), 1, "{asked:?}");
}

#[tokio::test]
async fn refused_era_is_remembered_across_restarts() {
    let stage = stage();
    let rig = idle_rig(stage.modern_entry()).await;
    let mut older = Pipe::open(&rig, server("s")).await;
    for _ in 0..3 {
        older.call("echo", json!({})).await;
        until_idle(&rig).await;
    }
    let asked = stage.asked();
    let count = |method: &str| {
        let asked = asked.iter();
        asked.filter(|line| line.starts_with(method)).count()
    };
    // The first call uses its own era; one start is for the lists.
    assert_eq!(
        (count("initialize "), count("server/discover ")),
        (1, 4),
        "{asked:?}"
    );
}

#[tokio::test]
async fn server_that_exits_on_initialize_serves_older_clients() {
    let stage = stage();
    stage.set("older.leaves", "");
    let rig = idle_rig(stage.entry_of_both()).await;
    let mut older = Pipe::open(&rig, server("s")).await;
    for calls in 1..3 {
        older.call("echo", json!({})).await;
        assert_eq!(calls_in(&stage, "newer"), calls);
    }
}

#[tokio::test]
async fn additional_tools_of_second_process_are_listed() {
    let stage = stage();
    let rig = rig(shared(stage.entry_of_both())).await;
    let other = [tool("elicit", "Asks."), tool("extra", "Says.")];
    stage.set("older.tools.json", &Value::from(&other[..]).to_string());
    let mut older = Pipe::open(&rig, server("s")).await;
    older.call("elicit", json!({})).await;
    rig.until_tools("s", 4).await;
    // A client that sees the tools can call them.
    let mut newer = Pipe::open_as(&rig, server("s"), MODERN).await;
    newer.call("extra", json!({})).await;
    assert_eq!(
        (calls_in(&stage, "older"), calls_in(&stage, "newer")),
        (2, 0)
    );
    // The first process does not have them, regardless of the second.
    stage.set("older.tools.json", "7");
    stage.tell_in("older", CHANGED, json!({})).await;
    until("it is refused", async || {
        let call = json!({ "name": "extra", "arguments": {} });
        newer.ask("tools/call", call).await.json["result"]["isError"] == true
    })
    .await;
    assert_eq!(calls_in(&stage, "newer"), 0);
}

#[tokio::test]
async fn differing_tool_is_called_on_the_first_process() {
    let stage = Stage::new(&[
        tool("elicit", "Asks."),
        tool("echo", "Says."),
        tool("speak", "Says."),
    ]);
    let rig = rig(stage.entry_of_both()).await;
    let elicit = r#"{"name":"elicit","inputSchema":{"type":"object"},"description":"Asks."}"#;
    let echo = tool("echo", "Sends it elsewhere.");
    stage.set("older.tools.json", &format!("[{elicit},{echo}]"));
    let mut older = Pipe::open(&rig, server("s")).await;
    older.call("echo", json!({})).await;
    older.call("speak", json!({})).await;
    assert_eq!(
        (calls_in(&stage, "older"), calls_in(&stage, "newer")),
        (0, 2)
    );
    // The order of members does not make a different definition.
    older.call("elicit", json!({})).await;
    assert_eq!(calls_in(&stage, "older"), 1);
    let held = rig.trust("s").await;
    assert!(!held.to_string().contains("elsewhere"), "{held}");
}

#[tokio::test]
async fn list_of_second_process_lifts_no_hold() {
    let stage = stage();
    let rig = rig(stage.entry_of_both()).await;
    let approved = [tool("elicit", "Asks."), tool("echo", "Says.")];
    stage.set("older.tools.json", &Value::from(&approved[..]).to_string());
    let changed = [tool("elicit", "Asks."), tool("echo", "Sends it elsewhere.")];
    change_first(&stage, &changed).await;
    rig.until_held("s", "echo").await;
    let mut older = Pipe::open(&rig, server("s")).await;
    older.call("elicit", json!({})).await;
    assert_eq!(calls_in(&stage, "older"), 1);
    let refused = older.refusal("echo", json!({})).await;
    assert!(refused.contains("approve"), "{refused}");
    rig.until_held("s", "echo").await;
}

#[tokio::test]
async fn new_tool_of_second_process_is_checked() {
    let stage = stage();
    let mut entry = stage.entry_of_both();
    entry["trust"] = json!("ask");
    let rig = Rig::configured(json!({ "mcpServers": { "s": entry } })).await;
    rig.until_held("s", "echo").await;
    rig.post("/api/v1/trust/s/approve", &json!({})).await;
    rig.until_tools("s", 3).await;
    let other = [tool("elicit", "Asks."), tool("extra", "Says.")];
    stage.set("older.tools.json", &Value::from(&other[..]).to_string());
    let mut older = Pipe::open(&rig, server("s")).await;
    older.call("elicit", json!({})).await;
    let refused = older.refusal("extra", json!({})).await;
    assert!(refused.contains("approve"), "{refused}");
    rig.until_held("s", "extra").await;
    // It does not vanish when the first process is listed again.
    change_first(&stage, &[tool("elicit", "Asks.")]).await;
    rig.until_tools("s", 1).await;
    rig.until_held("s", "extra").await;
    rig.post("/api/v1/trust/s/approve", &json!({})).await;
    older.call("extra", json!({})).await;
    // It changes and vanishes with its process.
    let other = [tool("elicit", "Asks."), tool("extra", "Says more.")];
    change_second(&stage, &other).await;
    let held = rig.until_held("s", "extra").await;
    assert_eq!(held["definition"]["description"], "Says more.", "{held}");
    change_second(&stage, &other[..1]).await;
    rig.until("/api/v1/trust?server=s", |trust| {
        trust["servers"][0]["held"] == json!([])
    })
    .await;
}

#[tokio::test]
async fn calls_use_first_process_if_second_fails() {
    let stage = stage();
    let rig = rig(stage.entry_of_both()).await;
    stage.set("older.tools.json", "7");
    let mut older = Pipe::open(&rig, server("s")).await;
    older.call("echo", json!({})).await;
    assert_eq!(
        (calls_in(&stage, "older"), calls_in(&stage, "newer")),
        (0, 1)
    );
}

#[tokio::test]
async fn second_process_reports_subscribed_resources() {
    let stage = stage();
    stage.set_resources(&json!([{ "uri": "file:///a", "name": "a" }]));
    let rig = rig(stage.entry_of_both()).await;
    let mut older = Pipe::open(&rig, server("s")).await;
    older.call("elicit", json!({})).await;
    let watch = json!({ "uri": "file:///a" });
    older.result("resources/subscribe", watch).await;
    let updated = "notifications/resources/updated";
    let params = json!({ "uri": "file:///a" });
    stage.tell_in("older", updated, params).await;
    let told = older.until_told(updated).await;
    assert_eq!(told["uri"], "file:///a");
}

#[tokio::test]
async fn second_process_ends_with_the_server() {
    let stage = stage();
    let rig = rig(stage.entry_of_both()).await;
    let mut older = Pipe::open(&rig, server("s")).await;
    older.call("elicit", json!({})).await;
    assert!(stage.is_up_in("older") && stage.is_up_in("newer"));
    let mut entry = stage.entry_of_both();
    entry["enabled"] = json!(false);
    rig.reconfigure(&json!({ "mcpServers": { "s": entry } }))
        .await;
    let gone = || async { !stage.is_up_in("older") && !stage.is_up_in("newer") };
    until("both are gone", gone).await;
    let refused = older.refusal("echo", json!({})).await;
    assert!(refused.contains("disabled"), "{refused}");
}

#[tokio::test]
async fn second_process_is_restarted_after_a_crash() {
    let stage = stage();
    let rig = rig(stage.entry_of_both()).await;
    let mut older = Pipe::open(&rig, server("s")).await;
    older.call("elicit", json!({})).await;
    stage.die_in("older").await;
    until("it is gone", || async { !stage.is_up_in("older") }).await;
    let result = older.call("elicit", json!({})).await;
    assert!(text_of(&result).contains("Ada"), "{result}");
}

#[tokio::test]
async fn revision_determines_the_era() {
    let stage = stage();
    let mut entry = stage.entry_of_both();
    entry["revision"] = json!("2025-06-18");
    let rig = rig(entry).await;
    let mut newer = Pipe::open_as(&rig, server("s"), MODERN).await;
    let result = newer.call("elicit", json!({})).await;
    assert!(text_of(&result).contains("Ada"), "{result}");
    assert_eq!(
        (calls_in(&stage, "older"), stage.asked_in("newer").len()),
        (1, 0)
    );

    let older = Stage::new(&[tool("echo", "Says.")]);
    let entry = older.entry_with(&json!({ "revision": MODERN }));
    rig.reconfigure(&json!({ "mcpServers": { "o": entry } }))
        .await;
    let parked = rig
        .until("/api/v1/servers/o", |server| server["state"] == "parked")
        .await;
    assert!(
        parked
            .to_string()
            .contains("it does not support revision 2026-07-28"),
        "{parked}"
    );
}

#[tokio::test]
async fn unexpected_question_is_answered_at_once() {
    let stage = stage();
    let rig = rig(stage.modern_entry()).await;
    let mut newer = Pipe::open_as(&rig, server("s"), MODERN).await;
    newer.call("echo", json!({})).await;
    let params =
        json!({ "message": "Who?", "requestedSchema": { "type": "object", "properties": {} } });
    stage.request_with(7, "elicitation/create", params).await;
    let answer = stage.until_asked("answer ").await;
    assert!(
        answer.contains("-32601") && answer.contains("\"id\":7"),
        "{answer}"
    );
}
