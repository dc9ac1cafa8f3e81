//! Servers in containers, with a fake engine that records its arguments and runs a fixture instead.

use std::fs;

use serde_json::{Value, json};

use crate::api_rig::{Rig, program};

#[tokio::test]
async fn container_has_only_the_requested_network() {
    let folder = tempfile::tempdir().unwrap();
    let (engine, told) = (folder.path().join("engine"), folder.path().join("told"));
    let program = program();
    let script = format!(
        "echo \"$@\" >> '{}'; case $1 in run) exec '{program}' mcp;; esac",
        told.display()
    );
    fs::write(&engine, script).unwrap();
    let server = |network: Option<Value>| {
        let mut server = json!({ "image": "i", "isolation": { "engine": ["sh", engine] } });
        if let Some(network) = network {
            server["isolation"]["network"] = network;
        }
        server
    };
    let rig = Rig::with(json!({
        "unasked": server(None),
        "no": server(Some(false.into())),
        "yes": server(Some(true.into())),
        "named": server(Some("web".into())),
    }))
    .await;
    let config = rig.get("/api/v1/config").await.json();
    for (name, words, shown) in [
        ("unasked", "--network none", json!(false)),
        ("no", "--network none", json!(false)),
        ("yes", "", json!(true)),
        ("named", "--network web", json!("web")),
    ] {
        rig.until_known(name).await;
        let told = fs::read_to_string(&told).unwrap();
        let label = format!("switchboard.server={name} ");
        let run = told.lines().find(|line| line.contains(&label)).unwrap();
        let (_, rest) = run.split_once(&label).unwrap();
        let said = rest.split_once("--memory").unwrap().0.trim();
        assert_eq!(said, words, "{name}: {run}");
        let server = &config["config"]["mcpServers"][name];
        assert_eq!(server["isolation"]["network"], shown, "{name}");
    }
    rig.stop().await;
}
