//! The server's name at its own address, and the gateway's name everywhere else.

use serde_json::{Value, json};

use crate::{
    api_rig::Rig,
    mcp_rig::{LEGACY, MODERN, Pipe, direct, server},
    stage_rig::{Stage, tool},
};

const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";

fn named(result: &Value) -> &Value {
    &result["_meta"][SERVER_INFO]["name"]
}

/// A server of 2026-07-28 that sends its name with every result, as the SDKs do.
fn modern_stage() -> Stage {
    let stage = Stage::new(&[tool("paint", "Paints.")]);
    stage.set_resources(&json!([{ "uri": "file:///a", "name": "a" }]));
    let info = r#"{"name":"stage","version":"1","icons":[{"src":"data:image/png;base64,AAAA"}]}"#;
    stage.set_info(info);
    let said = format!(r#""_meta":{{"com.example/build":7.0,"{SERVER_INFO}":{info}}}"#);
    stage.set_answer(
        "server/discover",
        &format!(
            r#""result":{{"supportedVersions":["2026-07-28"],"capabilities":{{"tools":{{}},"resources":{{}}}},"resultType":"complete","ttlMs":60000,"cacheScope":"private",{said}}}"#
        ),
    );
    stage.set_result(
        "paint",
        &format!(
            r#"{{"content":[],"resultType":"complete","_meta":{{"a":1,"{SERVER_INFO}":{info}}}}}"#
        ),
    );
    stage.set_answer(
        "resources/read",
        &format!(
            r#""result":{{"contents":[],"resultType":"complete","ttlMs":0,"cacheScope":"public","_meta":{{"{SERVER_INFO}":{info}}}}}"#
        ),
    );
    stage
}

#[tokio::test]
async fn server_has_one_name_at_its_own_address() {
    let modern = modern_stage();
    let older = Stage::new(&[tool("paint", "Paints.")]);
    let rig = Rig::with(json!({ "m": modern.modern_entry(), "o": older.entry() })).await;
    rig.until_tools("m", 1).await;
    rig.until_tools("o", 1).await;
    for name in ["m", "o"] {
        let mut pipe = Pipe::open_as(&rig, server(name), MODERN).await;
        assert_eq!(named(&pipe.greeting), "stage", "{name}: {}", pipe.greeting);
        for list in ["tools/list", "prompts/list", "resources/list"] {
            let list = pipe.result(list, json!({})).await;
            assert_eq!(named(&list), "stage", "{name}: {list}");
        }
        let called = pipe.call("paint", json!({})).await;
        assert_eq!(named(&called), "stage", "{name}: {called}");
        let failed = pipe.ask("tools/call", json!({ "name": "none" })).await.json;
        assert!(!failed.to_string().contains("Switchboard"), "{failed}");
        let older = Pipe::open_as(&rig, server(name), LEGACY).await;
        assert_eq!(older.greeting["serverInfo"]["name"], "stage");
    }
    rig.stop().await;
}

#[tokio::test]
async fn metadata_of_the_handshake_is_forwarded() {
    let stage = modern_stage();
    let mut rig = Rig::with(json!({ "m": stage.modern_entry() })).await;
    rig.until_tools("m", 1).await;
    for life in 1..=2 {
        for revision in [MODERN, LEGACY] {
            let pipe = Pipe::open_as(&rig, server("m"), revision).await;
            let meta = &pipe.greeting["_meta"];
            assert_eq!(meta["com.example/build"], 7.0, "life {life}: {meta}");
            assert_eq!(meta[SERVER_INFO].is_object(), revision == MODERN, "{meta}");
        }
        let merged = Pipe::open_as(&rig, direct(), MODERN).await;
        assert_eq!(merged.greeting["_meta"].as_object().unwrap().len(), 1);
        // The next run knows it from the snapshot.
        rig = rig.restarted(|_| {}).await;
    }
    rig.stop().await;
}

#[tokio::test]
async fn combined_views_have_the_name_of_the_gateway() {
    let stage = modern_stage();
    let rig = Rig::with(json!({ "m": stage.modern_entry() })).await;
    rig.until_tools("m", 1).await;
    let mut pipe = Pipe::open_as(&rig, direct(), MODERN).await;
    assert_eq!(named(&pipe.greeting), "switchboard");
    let list = pipe.result("tools/list", json!({})).await;
    assert_eq!(named(&list), "switchboard");
    let called = pipe.call("m__paint", json!({})).await;
    assert_eq!(named(&called), "switchboard", "{called}");
    assert_eq!(called["_meta"]["a"], 1, "{called}");
    let uri = json!({ "uri": "switchboard://m/file:///a" });
    let read = pipe.result("resources/read", uri).await;
    assert_eq!(named(&read), "switchboard", "{read}");
    rig.stop().await;
}

/// An icon in the server's info would be sent with each result.
#[tokio::test]
async fn older_clients_get_no_members_of_newer_results() {
    let stage = modern_stage();
    let rig = Rig::with(json!({ "m": stage.modern_entry() })).await;
    rig.until_tools("m", 1).await;
    let mut pipe = Pipe::open_as(&rig, server("m"), LEGACY).await;
    let called = pipe.call("paint", json!({})).await;
    assert_eq!(called, json!({ "content": [], "_meta": { "a": 1 } }));
    for _ in 0..2 {
        let uri = json!({ "uri": "file:///a" });
        let read = pipe.result("resources/read", uri).await;
        assert_eq!(read, json!({ "contents": [] }));
    }
    rig.stop().await;
}
