//! The log level that clients request.

use serde_json::json;

use crate::{
    api_rig::Rig,
    mcp_rig::{Pipe, direct},
    stage_rig::{Stage, tool},
};

/// While the server has not answered, a second client has to wait for the level like the first.
#[tokio::test]
async fn log_level_counts_once_the_server_accepts_it() {
    let stage = Stage::new(&[tool("t", "Does.")]);
    stage.set_answer("logging/setLevel", "");
    let rig = Rig::with(json!({ "s": stage.entry() })).await;
    rig.until_tools("s", 1).await;
    let mut first = Pipe::open(&rig, direct()).await;
    let mut second = Pipe::open(&rig, direct()).await;
    let level = || json!({ "level": "info" });
    first.send("logging/setLevel", level()).await;
    stage.until_asked("logging/setLevel").await;
    second.send("logging/setLevel", level()).await;
    // An answer that does not wait for the server arrives among these.
    for _ in 0..20 {
        second.ask("ping", json!({})).await;
    }
    assert!(second.told().is_empty(), "{:?}", second.told());
    rig.stop().await;
}
