//! Trust in a server: its settings, its pins, and decisions over REST.

use serde_json::{Value, json};

use crate::{
    api_rig::Rig,
    mcp_rig::{LIST_CHANGED, Pipe, direct, search, server, text_of},
    stage_rig::{Stage, tool},
};

fn good() -> Vec<Value> {
    vec![
        tool("paint", "Paints a wall."),
        tool("cook", "Cooks a meal."),
    ]
}

fn full_stage() -> Stage {
    let stage = Stage::new(&good());
    stage.set_instructions("Be kind.");
    stage.set_prompts(&json!([{ "name": "greet", "description": "Greets." }]));
    stage.set_resources(&json!([{ "uri": "file:///a", "name": "a" }]));
    stage
}

#[tokio::test]
async fn unapproved_server_shows_nothing() {
    let stage = full_stage();
    let entry = stage.entry_with(&json!({ "trust": "ask" }));
    let rig = Rig::with(json!({ "s": entry })).await;
    rig.until_held("s", "cook").await;
    let trust = rig.trust("s").await;
    assert_eq!(trust["trust"], "ask");
    assert_eq!(trust["approved"], 0);
    let held = trust["held"].as_array().unwrap();
    assert!(held.iter().all(|held| held["why"] == "new"), "{trust}");
    let rig = rig.restarted(|_| {}).await;
    for view in [direct(), search(), server("s")] {
        let what = format!("{view:?}");
        let mut pipe = Pipe::open(&rig, view.clone()).await;
        let greeting = pipe.greeting.to_string();
        assert!(!greeting.contains("Be kind."), "{what}: {greeting}");
        for (method, word) in [
            ("tools/list", "aint"),
            ("prompts/list", "greet"),
            ("resources/list", "file:///a"),
        ] {
            let list = pipe.result(method, json!({})).await.to_string();
            assert!(!list.contains(word), "{what}: {list}");
        }
        let own = view == server("s");
        let prompt = if own { "greet" } else { "s__greet" };
        for (method, params) in [
            (
                "tools/call",
                json!({ "name": if own { "paint" } else { "s__paint" } }),
            ),
            ("prompts/get", json!({ "name": prompt })),
            ("resources/read", json!({ "uri": "file:///a" })),
            ("resources/subscribe", json!({ "uri": "file:///a" })),
            (
                "completion/complete",
                json!({
                    "ref": { "type": "ref/prompt", "name": prompt },
                    "argument": { "name": "a", "value": "" },
                }),
            ),
        ] {
            let answer = pipe.ask(method, params).await.json;
            let refused = answer.get("error").is_some() || answer["result"]["isError"] == true;
            assert!(refused, "{what} {method}: {answer}");
        }
    }
    let mut pipe = Pipe::open(&rig, search()).await;
    assert!(!pipe.retrieve("paint").await.contains(&"s:paint".to_owned()));
    for call in [
        ("call_tool", json!({ "name": "s:paint" })),
        ("call_tool", json!({ "name": "s:never_heard_of" })),
    ] {
        let text = pipe.refusal(call.0, call.1).await;
        assert!(text.contains("until the user approves it"), "{text}");
    }
    let asked = stage.asked();
    for method in [
        "tools/call ",
        "prompts/get ",
        "resources/read ",
        "resources/subscribe ",
        "completion/",
    ] {
        let arrived = asked.iter().find(|line| line.starts_with(method));
        assert_eq!(arrived, None);
    }
    rig.stop().await;
}

#[tokio::test]
async fn approved_server_is_shown() {
    let stage = full_stage();
    let entry = stage.entry_with(&json!({ "trust": "ask" }));
    let rig = Rig::with(json!({ "s": entry })).await;
    rig.until_held("s", "cook").await;
    let mut pipe = Pipe::open(&rig, direct()).await;
    let answer = rig.post("/api/v1/trust/s/approve", &json!({})).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    pipe.until_told(LIST_CHANGED).await;
    pipe.until_told("notifications/prompts/list_changed").await;
    assert!(pipe.tools().await.contains(&"s__paint".to_owned()));
    let prompts = pipe.result("prompts/list", json!({})).await.to_string();
    assert!(prompts.contains("greet"), "{prompts}");
    let called = pipe.call("s__paint", json!({})).await;
    assert_eq!(text_of(&called), "paint was called");
    let said = Pipe::open(&rig, server("s")).await.greeting;
    assert_eq!(said["instructions"], "Be kind.");
    // Later additions are asked about separately.
    let mut tools = good();
    tools.push(tool("burn", "Burns a house."));
    stage.change_tools(&tools).await;
    let held = rig.until_held("s", "burn").await;
    assert_eq!(held["why"], "new");
    let names = pipe.tools().await;
    assert!(!names.contains(&"s__burn".to_owned()), "{names:?}");
    assert!(names.contains(&"s__paint".to_owned()), "{names:?}");
    let text = pipe.refusal("s__burn", json!({})).await;
    assert!(text.contains("until the user approves it"), "{text}");
    assert_eq!(stage.calls(), 1);
    rig.stop().await;
}

#[tokio::test]
async fn developers_own_server_is_never_held() {
    let stage = full_stage();
    let entry = stage.entry_with(&json!({ "trust": "always" }));
    let rig = Rig::with(json!({ "s": entry })).await;
    rig.until_tools("s", 2).await;
    let mut pipe = Pipe::open(&rig, direct()).await;
    for round in 0..3 {
        let hidden = "\u{200B}\u{202E}";
        stage
            .change_tools(&[tool("paint", &format!("Round {round}{hidden}."))])
            .await;
        loop {
            pipe.until_told(LIST_CHANGED).await;
            let list = pipe.result("tools/list", json!({})).await.to_string();
            if list.contains(&format!("Round {round}")) {
                break;
            }
        }
        assert!(rig.trust("s").await["held"].as_array().unwrap().is_empty());
    }
    rig.stop().await;
}

#[tokio::test]
async fn invisible_text_is_held_at_first_sight() {
    let tags: String = "steal"
        .chars()
        .map(|c| char::from_u32(0xE0000 + c as u32).unwrap())
        .collect();
    for hidden in [
        format!("Paints a wall.{tags}"),
        "Paints\u{200B} a\u{202E} wall.".to_owned(),
    ] {
        let stage = Stage::new(&[tool("paint", &hidden), tool("cook", "Cooks a meal.")]);
        let rig = Rig::with(json!({ "s": stage.entry() })).await;
        let held = rig.until_held("s", "paint").await;
        assert_eq!(held["why"], "hidden", "{held}");
        assert!(!held["findings"].as_array().unwrap().is_empty(), "{held}");
        rig.until_tools("s", 1).await;
        let mut pipe = Pipe::open(&rig, direct()).await;
        assert!(!pipe.tools().await.contains(&"s__paint".to_owned()));
        let text = pipe.refusal("s__paint", json!({})).await;
        assert!(text.contains("until the user approves it"), "{text}");
        let mut own = Pipe::open(&rig, server("s")).await;
        own.refusal("paint", json!({})).await;
        assert_eq!(stage.calls(), 0);
        rig.stop().await;
    }
}

#[tokio::test]
async fn first_of_two_equal_names_wins() {
    let stage = Stage::new(&[
        tool("paint", "Paints a wall."),
        tool("paint", "Paints a wall in another way."),
    ]);
    let rig = Rig::with(json!({ "s": stage.entry() })).await;
    rig.until("/api/v1/servers/s", |server| server["state"] == "ready")
        .await;
    rig.until_tools("s", 1).await;
    let mut pipe = Pipe::open(&rig, direct()).await;
    let list = pipe.result("tools/list", json!({})).await.to_string();
    assert!(list.contains("Paints a wall."), "{list}");
    assert!(!list.contains("another way"), "{list}");
    rig.stop().await;
}

/// A server with two approved tools, whose pins file is then replaced.
async fn with_pins(stage: &Stage, entry: Value, pins: &[u8]) -> Rig {
    let rig = Rig::with(json!({ "s": entry })).await;
    rig.until_tools("s", 2).await;
    let pins = pins.to_vec();
    assert_eq!(stage.calls(), 0);
    rig.restarted(move |home| {
        let file = home.trust().join("s.json");
        assert!(file.is_file());
        std::fs::write(file, pins).unwrap();
    })
    .await
}

#[tokio::test]
async fn damaged_pins_hold_everything_and_are_reported() {
    for damage in [&b""[..], b"{", b"\xff\xfe", b"{\"version\":99}", b"[]"] {
        let stage = full_stage();
        let rig = with_pins(&stage, stage.entry(), damage).await;
        rig.until_held("s", "paint").await;
        rig.until_tools("s", 0).await;
        let trust = rig.trust("s").await;
        assert_eq!(trust["approved"], 0, "{trust}");
        assert!(
            trust["note"].as_str().unwrap().contains("cannot be read"),
            "{trust}"
        );
        let mut pipe = Pipe::open(&rig, direct()).await;
        assert!(!pipe.greeting.to_string().contains("Be kind."));
        assert_eq!(pipe.tools().await.len(), 2, "the gateway's own");
        pipe.refusal("s__paint", json!({})).await;
        assert_eq!(stage.calls(), 0);
        let answer = rig.post("/api/v1/trust/s/approve", &json!({})).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(answer.json().get("note"), None);
        let called = pipe.call("s__paint", json!({})).await;
        assert_eq!(text_of(&called), "paint was called");
        rig.stop().await;
    }
}

#[tokio::test]
async fn damaged_pins_hold_everything_of_stopped_server() {
    let stage = full_stage();
    let rig = with_pins(&stage, stage.lazy_entry(), b"{").await;
    let mut pipe = Pipe::open(&rig, direct()).await;
    let refused = pipe.refusal("s__paint", json!({})).await;
    assert!(refused.contains("until the user approves it"), "{refused}");
    assert_eq!(pipe.tools().await.len(), 2, "the gateway's own");
    assert_eq!(stage.calls(), 0);
    rig.stop().await;
}

#[tokio::test]
async fn pins_are_removed_with_their_server() {
    let stage = Stage::new(&good());
    let rig = Rig::with(json!({ "s": stage.entry() })).await;
    rig.until_tools("s", 2).await;
    let pins = rig.home.trust().join("s.json");
    assert!(pins.is_file());
    rig.reconfigure(&json!({ "mcpServers": {} })).await;
    switchboard_test_support::until_async("the pins are gone", async || !pins.exists()).await;
    // After its return, the server and its definitions are new.
    stage.set_tools(&[tool("paint", "Paints a house."), tool("cook", "Cooks.")]);
    rig.reconfigure(&json!({ "mcpServers": { "s": stage.entry() } }))
        .await;
    rig.until_tools("s", 2).await;
    assert!(rig.trust("s").await["held"].as_array().unwrap().is_empty());
    rig.stop().await;
}

#[tokio::test]
async fn only_the_command_identifies_a_server() {
    let stage = Stage::new(&good());
    let rig = Rig::with(json!({ "s": stage.entry() })).await;
    rig.until_tools("s", 2).await;
    let other = [
        tool("paint", "Paints a house."),
        tool("cook", "Cooks a meal."),
    ];
    // The same command with another environment is the same server: the change is held.
    stage.set_tools(&other);
    let entry = stage.entry_with(&json!({ "env": { "A": "1" } }));
    rig.reconfigure(&json!({ "mcpServers": { "s": entry } }))
        .await;
    rig.until_held("s", "paint").await;
    rig.until_tools("s", 1).await;
    // Another command is a server that was never seen.
    let entry = stage.modern_entry();
    rig.reconfigure(&json!({ "mcpServers": { "s": entry } }))
        .await;
    rig.until_tools("s", 2).await;
    assert!(rig.trust("s").await["held"].as_array().unwrap().is_empty());
    let mut pipe = Pipe::open(&rig, direct()).await;
    let list = pipe.result("tools/list", json!({})).await.to_string();
    assert!(list.contains("Paints a house."), "{list}");
    rig.stop().await;
}

#[tokio::test]
async fn several_tools_are_approved_as_seen() {
    let stage = Stage::new(&good());
    let mut entry = stage.entry();
    entry["trust"] = json!("ask");
    let rig = Rig::with(json!({ "s": entry })).await;
    let first = rig.until_held("s", "paint").await;
    let second = rig.until_held("s", "cook").await;
    let brief = rig.get("/api/v1/trust?server=s&brief=true").await.json();
    let held = &brief["servers"][0]["held"];
    assert_eq!(held.as_array().unwrap().len(), 2, "{held}");
    assert_eq!(
        (&held[0]["definition"], &held[0]["why"]),
        (&json!(null), &json!("new"))
    );
    let seen =
        |tool: &str, held: &Value| json!({ "tool": tool, "fingerprint": held["fingerprint"] });
    // The approver saw another definition of the second one.
    let tools = json!([seen("paint", &first), seen("cook", &first)]);
    let path = "/api/v1/trust/s/approve";
    for more in ["tool", "start", "fingerprint"] {
        let body = json!({ "tools": tools, more: "x" });
        rig.post(path, &body).await.problem(400);
    }
    for body in [
        json!({ "tools": null }),
        json!({ "tool": null }),
        json!({ "fingerprint": first["fingerprint"] }),
    ] {
        rig.post(path, &body).await.problem(400);
    }
    let answer = rig.post(path, &json!({ "tools": tools })).await.json();
    assert_eq!(answer["approved"], 1, "{answer}");
    assert_eq!(answer["held"][0]["tool"], "cook", "{answer}");
    let audit = rig.get("/api/v1/audit").await.json();
    // The request for the remaining one may be logged at any time.
    let entries = audit["entries"].as_array().unwrap().iter();
    let decided: Vec<_> = entries
        .filter(|entry| entry["what"] == "trust")
        .map(|entry| entry["body"].to_string())
        .collect();
    let [decided] = decided.as_slice() else {
        panic!("{audit}");
    };
    assert!(
        decided.contains("paint") && !decided.contains("cook"),
        "{audit}"
    );
    let body = json!({ "tools": [seen("cook", &second)] });
    let answer = rig.post(path, &body).await.json();
    assert_eq!(answer["approved"], 2, "{answer}");
    rig.stop().await;
}

#[tokio::test]
async fn stale_and_unfounded_decisions_are_refused() {
    let stage = Stage::new(&good());
    let rig = Rig::with(json!({ "s": stage.entry() })).await;
    rig.until_tools("s", 2).await;
    let mut tools = good();
    tools[0] = tool("paint", "Paints a house.");
    stage.change_tools(&tools).await;
    let first = rig.until_held("s", "paint").await;
    tools[0] = tool("paint", "Paints a town.");
    stage.change_tools(&tools).await;
    rig.until("/api/v1/trust?server=s", |trust| {
        trust["servers"][0]["held"][0]["fingerprint"] != first["fingerprint"]
    })
    .await;
    for verb in ["approve", "reject"] {
        let path = format!("/api/v1/trust/s/{verb}");
        // The held definition is no longer the one that the approver saw.
        let decided = json!({ "tool": "paint", "fingerprint": first["fingerprint"] });
        let detail = rig.post(&path, &decided).await.problem(409);
        assert!(
            detail.contains("paint") && detail.contains("review"),
            "{detail}"
        );
        for tool in ["cook", "never_heard_of"] {
            let detail = rig.post(&path, &json!({ "tool": tool })).await.problem(404);
            assert!(detail.contains(tool), "{detail}");
        }
        let decided = json!({ "tool": "paint", "fingerprint": "nonsense" });
        rig.post(&path, &decided).await.problem(400);
        let decided = json!({ "tol": "paint" });
        rig.post(&path, &decided).await.problem(400);
        let path = format!("/api/v1/trust/nobody/{verb}");
        rig.post(&path, &json!({ "tool": "paint" }))
            .await
            .problem(404);
    }
    // Rejecting everything at once is not a valid decision.
    rig.post("/api/v1/trust/s/reject", &json!({}))
        .await
        .problem(400);
    rig.get("/api/v1/trust/s?tool=never_heard_of")
        .await
        .problem(404);
    rig.get("/api/v1/trust?server=nobody").await.problem(404);
    let shown = rig.get("/api/v1/trust/s?tool=paint").await.json();
    assert_eq!(shown["held"]["definition"]["description"], "Paints a town.");
    assert_eq!(
        shown["approved"]["definition"]["description"],
        "Paints a wall."
    );
    // No decision was made.
    rig.until_tools("s", 1).await;
    rig.until_held("s", "paint").await;
    rig.stop().await;
}
