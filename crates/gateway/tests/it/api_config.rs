//! The configuration over REST, and tests that no secret leaks.

use serde_json::json;

use crate::api_rig::{Rig, program};

#[tokio::test]
async fn no_secret_is_shown_anywhere() {
    let rig = Rig::configured(json!({
        "waitTimeoutMs": 100,
        "mcpServers": {
            "a": {
                "command": program(),
                "args": ["mcp", "--key=s3cret", "${env:PATH}"],
                "env": { "KEY": "s3cret", "PLACE": "${env:PATH}" },
            },
            "b": {
                "url": "http://me:s3cret@127.0.0.1:9/mcp?key=s3cret",
                "headers": { "Authorization": "Bearer s3cret" },
            },
            "c": { "command": "/does/not/exist", "args": ["s3cret"], "env": { "KEY": "s3cret" } },
            "d": { "command": program(), "args": ["broken", "s3cret"], "env": { "KEY": "s3cret" } },
        },
    }))
    .await;
    rig.until_known("a").await;
    for name in ["b", "c", "d"] {
        let path = format!("/api/v1/servers/{name}");
        rig.until(&path, |server| server["reason"].is_string())
            .await;
        rig.call(&format!("{name}:x"), json!({})).await.problem(503);
    }
    let shown = rig.get("/api/v1/config").await.json();
    assert_eq!(shown["file"], rig.config_file().display().to_string());
    assert_eq!(shown.get("problem"), None);
    let server = &shown["config"]["mcpServers"]["a"];
    assert_eq!(
        server["args"],
        json!(["(hidden)", "(hidden)", "${env:PATH}"])
    );
    assert_eq!(
        server["env"],
        json!({ "KEY": "(hidden)", "PLACE": "${env:PATH}" })
    );
    for path in [
        "/api/v1/config",
        "/api/v1/status",
        "/api/v1/servers",
        "/api/v1/servers/a",
        "/api/v1/servers/b",
        "/api/v1/servers/c",
        "/api/v1/servers/d",
        "/api/v1/servers/a/logs",
        "/api/v1/servers/b/logs",
        "/api/v1/servers/c/logs",
        "/api/v1/servers/d/logs",
        "/api/v1/tools",
        "/api/v1/activity",
        "/metrics",
        "/readyz",
    ] {
        let answer = rig.get(path).await;
        assert!(!answer.body.contains("s3cret"), "{path}: {}", answer.body);
        assert!(!answer.body.contains("t0ken"), "{path}: {}", answer.body);
    }
    rig.stop().await;
}

#[tokio::test]
async fn valid_file_is_applied_and_invalid_one_refused() {
    let rig = Rig::with(json!({ "a": { "command": "x", "enabled": false } })).await;
    let reload = || rig.ask("POST", "/api/v1/config/reload", None);
    let entry = r#"{"command": "x", "enabled": false}"#;
    std::fs::write(
        rig.config_file(),
        format!("{{\"mcpServers\": {{\n\"b\": {entry}, // new\n}}}}"),
    )
    .unwrap();
    let answer = reload().await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert!(answer.json()["config"]["mcpServers"]["b"].is_object());
    rig.get("/api/v1/servers/a").await.problem(404);

    std::fs::write(
        rig.config_file(),
        "{\"mcpServers\": {\n \"b\": {\"comand\": \"x\", \"env\": {\"A\": \"s3cret\"}}}}",
    )
    .unwrap();
    let answer = reload().await;
    let detail = answer.problem(422);
    assert!(detail.contains("did you mean \"command\"?"), "{detail}");
    let problem = &answer.json()["problems"][0];
    assert_eq!(
        (&problem["line"], &problem["column"]),
        (&json!(2), &json!(8))
    );
    assert_eq!(problem["message"], "unknown key \"comand\"");
    assert_eq!(problem["hint"], "did you mean \"command\"?");
    assert!(!answer.body.contains("s3cret"), "{answer:?}");
    // The current configuration stays in effect, and the problem is reported.
    assert_eq!(rig.get("/api/v1/servers/b").await.status, 200);
    let shown = rig.get("/api/v1/config").await.json();
    assert!(shown["problem"].as_str().unwrap().contains("comand"));
    let status = rig.get("/api/v1/status").await.json();
    assert!(status["configProblem"].as_str().unwrap().contains("comand"));
    // The file may contain secrets, so agents see nothing of it.
    let agent = rig.call("switchboard:get_status", json!({})).await;
    assert!(agent.body.contains("configProblem"), "{agent:?}");
    assert!(!agent.body.contains("comand"), "{agent:?}");
    rig.stop().await;
}

#[tokio::test]
async fn changed_guard_is_audited_with_both_values() {
    let rig = Rig::with(json!({})).await;
    rig.reconfigure(&json!({ "approvals": { "tools": "writes" } }))
        .await;
    let log = rig
        .until("/api/v1/audit", |log| {
            log.to_string().contains("rules-changed")
        })
        .await;
    let entries = log["entries"].as_array().unwrap();
    let changed = entries
        .iter()
        .find(|entry| entry["what"] == "rules-changed");
    let body = changed.unwrap()["body"].to_string();
    assert!(
        body.contains(r#""tools":{"new":"writes","old":"rules"}"#),
        "{body}"
    );
    rig.stop().await;
}
