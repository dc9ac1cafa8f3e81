//! Limits and failures of one process of a server, which do not affect its others.

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    api_rig::Rig,
    instance_rig::{
        Gate, instances, is_alive, mirror, of_project, open_in, pid, project, rig, until_in_flight,
    },
    mcp_rig::{LEGACY, Pipe, refusal_of, server, until},
};

#[tokio::test]
async fn full_queue_of_one_process_spares_another() {
    let limits = json!({ "share": "client", "maxInFlight": 1, "maxQueued": 1 });
    let rig = rig(mirror(limits)).await;
    let mut first = Pipe::open(&rig, server("s")).await;
    let mut second = Pipe::open(&rig, server("s")).await;
    let own = pid(&mut first).await;
    let gate = Gate::new();
    let arguments = json!({ "gate": gate.path() });
    let mut calls = vec![first.send_call("sleep", arguments.clone()).await];
    until_in_flight(&rig, 1).await;
    calls.push(first.send_call("sleep", arguments.clone()).await);
    rig.until("/api/v1/servers/s", |server| server["queued"] == 1)
        .await;
    let third = first.send_call("sleep", arguments).await;
    let refused = first.finish(&third).await.json;
    assert_eq!(refused["error"]["code"], -32006, "{refused}");
    for _ in 0..2 {
        assert_ne!(pid(&mut second).await, own);
    }
    gate.open();
    for call in &calls {
        let answer = first.finish(call).await.json;
        assert_eq!(answer["result"]["structuredContent"]["pid"], own);
    }
    rig.stop().await;
}

#[tokio::test]
async fn idle_process_ends_beside_a_busy_one() {
    let rig = rig(mirror(json!({ "share": "client", "idleStopSeconds": 1 }))).await;
    let mut first = Pipe::open(&rig, server("s")).await;
    let mut second = Pipe::open(&rig, server("s")).await;
    let gate = Gate::new();
    let busy = pid(&mut second).await;
    let call = second
        .send_call("sleep", json!({ "gate": gate.path() }))
        .await;
    until_in_flight(&rig, 1).await;
    let idle = pid(&mut first).await;
    until("the idle process has ended", async || !is_alive(idle)).await;
    assert!(is_alive(busy));
    gate.open();
    let answer = second.finish(&call).await.json;
    assert_eq!(answer["result"]["structuredContent"]["pid"], busy);
    // It is started again when it is used, and the other one stops as well.
    assert_ne!(pid(&mut first).await, idle);
    until("the busy process has ended", async || !is_alive(busy)).await;
    rig.stop().await;
}

/// The message of the call of a tool, if it fails.
async fn refusal(client: &mut Pipe) -> Option<String> {
    let params = json!({ "name": "whoami", "arguments": {} });
    let answer = client.ask("tools/call", params).await.json;
    let is_error = answer["error"].is_object() || answer["result"]["isError"] == true;
    is_error.then(|| refusal_of(&answer))
}

#[tokio::test]
async fn vanished_project_stops_its_own_process_alone() {
    let dirs = TempDir::new().unwrap();
    let (a, b) = (project(&dirs, "a"), project(&dirs, "b"));
    let rig = rig(of_project()).await;
    let mut first = open_in(&rig, &a).await;
    let mut second = open_in(&rig, &b).await;
    let mut other = Pipe::open_in(&rig, server("other"), Some(&a), LEGACY, json!({})).await;
    let (one, two) = (pid(&mut first).await, pid(&mut second).await);
    let third = pid(&mut other).await;
    std::fs::remove_dir(&a).unwrap();
    // A process that runs goes on.
    assert_eq!(pid(&mut first).await, one);
    first.refusal("die", json!({})).await;
    let gone = format!("the project directory {} does not exist", a.display());
    for _ in 0..2 {
        let refused = refusal(&mut first).await.unwrap();
        assert!(refused.contains(&gone), "{refused}");
        assert!(refused.contains("server `s`"), "{refused}");
    }
    assert_eq!(pid(&mut second).await, two);
    assert_eq!(pid(&mut other).await, third);
    let failed = |one: &&Value| {
        one["reason"]
            .as_str()
            .is_some_and(|why| why.contains(&gone))
    };
    let shown = instances(&rig).await;
    assert_eq!(shown.iter().filter(failed).count(), 1, "{shown:?}");
    std::fs::create_dir(&a).unwrap();
    until("it is back", async || refusal(&mut first).await.is_none()).await;
    assert_eq!(pid(&mut second).await, two);
    rig.stop().await;
}

/// Two clients in their projects, whose processes describe their tools in other words, beyond the directory.
async fn of_other_wording(dirs: &TempDir) -> (Rig, Pipe, Pipe) {
    let rig = rig(mirror(json!({
        "share": "project",
        "env": { "WORDING": "Reads ${project.name}." },
    })))
    .await;
    let mut first = open_in(&rig, &project(dirs, "a")).await;
    pid(&mut first).await;
    let second = open_in(&rig, &project(dirs, "b")).await;
    (rig, first, second)
}

/// The held definition of a tool, with the approved one.
async fn held(rig: &Rig) -> Value {
    let trust = rig.get("/api/v1/trust?server=s").await.json();
    let held = trust["servers"][0]["held"].as_array().unwrap().clone();
    let held = held.into_iter().find(|held| held["tool"] == "whoami");
    held.unwrap_or_default()
}

async fn decide(rig: &Rig, verb: &str) {
    let tool = json!({ "tool": "whoami" });
    let answer = rig.post(&format!("/api/v1/trust/s/{verb}"), &tool).await;
    assert_eq!(answer.status, 200, "{answer:?}");
}

fn ends(definition: &Value, wording: &str) -> bool {
    definition["description"]
        .as_str()
        .unwrap()
        .ends_with(wording)
}

#[tokio::test]
async fn other_definition_is_held_for_its_process_alone() {
    let dirs = TempDir::new().unwrap();
    let (rig, mut first, mut second) = of_other_wording(&dirs).await;
    let (one, tools) = (pid(&mut first).await, first.tools().await);
    let refused = refusal(&mut second).await.unwrap();
    assert!(
        refused.contains("`s:whoami` is held until the user approves it"),
        "{refused}"
    );
    let before = held(&rig).await;
    assert!(ends(&before["definition"], "Reads b."), "{before}");
    assert!(ends(&before["approved"], "Reads a."), "{before}");
    assert_eq!(rig.get("/api/v1/status").await.json()["held"], tools.len());
    // The user is asked about it, and the first process goes on.
    assert_eq!(rig.one_waiting().await["kind"], "trust");
    assert_eq!(pid(&mut first).await, one);
    assert_eq!(first.tools().await, tools);
    // It stays so if the first process is listed again.
    assert_eq!(
        rig.post("/api/v1/servers/s/restart?instance=1", &json!({}))
            .await
            .status,
        200
    );
    assert_ne!(pid(&mut first).await, one);
    assert!(refusal(&mut second).await.is_some());
    assert_eq!(held(&rig).await, before);
    // Nothing of it is left after a restart of the gateway.
    let rig = rig.restarted(|_| ()).await;
    assert_eq!(rig.get("/api/v1/status").await.json()["held"], 0);
    rig.stop().await;
}

#[tokio::test]
async fn approved_definition_replaces_that_of_other_processes() {
    let dirs = TempDir::new().unwrap();
    let (rig, mut first, mut second) = of_other_wording(&dirs).await;
    assert!(refusal(&mut second).await.is_some());
    decide(&rig, "reject").await;
    assert!(refusal(&mut second).await.is_some());
    assert_eq!(held(&rig).await["why"], "rejected");
    assert_eq!(refusal(&mut first).await, None);
    decide(&rig, "approve").await;
    until("the approved definition is used", async || {
        refusal(&mut second).await.is_none()
    })
    .await;
    let refused = refusal(&mut first).await.unwrap();
    assert!(refused.contains("`s:whoami` is held"), "{refused}");
    let held = held(&rig).await;
    assert!(ends(&held["definition"], "Reads a."), "{held}");
    rig.stop().await;
}
