//! Overrides: tools as the owner has changed them.

use serde_json::{Value, json};

use crate::{
    api_rig::Rig,
    mcp_rig::{LIST_CHANGED, Pipe, REVISIONS, direct, search, server, under, until},
    people::PENDING,
    stage_rig::{Stage, tool},
};

fn create() -> Value {
    json!({
        "name": "create",
        "description": "Creates an issue.",
        "inputSchema": {
            "type": "object",
            "properties": { "repo": { "type": "string" }, "title": { "type": "string" } },
            "required": ["repo", "title"],
        },
    })
}

fn stage() -> Stage {
    Stage::new(&[create(), tool("read", "Reads."), tool("wipe", "Wipes.")])
}

fn overrides() -> Value {
    json!({
        "create": {
            "name": "new_issue",
            "description": "Opens a ticket of the kangaroo project.",
            "arguments": { "repo": { "value": "acme/app" } },
        },
        "wipe": { "hidden": true },
    })
}

fn config(stage: &Stage, overrides: &Value) -> Value {
    json!({
        "mcpServers": { "hub": stage.entry_with(&json!({ "overrides": overrides })) },
        "approvals": { "notify": "off" },
    })
}

async fn gateway(stage: &Stage) -> Rig {
    let rig = Rig::configured(config(stage, &overrides())).await;
    rig.until_tools("hub", 2).await;
    rig
}

fn of_hub(tools: Vec<String>) -> Vec<String> {
    let is_own = |name: &String| name.starts_with("switchboard");
    tools.into_iter().filter(|name| !is_own(name)).collect()
}

#[tokio::test]
async fn every_view_shows_and_calls_changed_tools() {
    let stage = stage();
    let rig = gateway(&stage).await;
    for revision in REVISIONS {
        let mut pipe = Pipe::open_as(&rig, direct(), revision).await;
        assert_eq!(of_hub(pipe.tools().await), ["hub__new_issue", "hub__read"]);
        let result = pipe.call("hub__new_issue", json!({ "title": "a" })).await;
        assert_ne!(result["isError"], true, "{revision} {result}");

        let mut pipe = Pipe::open_as(&rig, server("hub"), revision).await;
        let list = pipe.result("tools/list", json!({})).await;
        let shown = &list["tools"][0];
        assert_eq!(shown["name"], "new_issue", "{list}");
        assert_eq!(shown["inputSchema"]["required"], json!(["title"]));
        assert!(!shown.to_string().contains("repo"), "{shown}");
        pipe.call("new_issue", json!({ "title": "b" })).await;

        let mut pipe = Pipe::open_as(&rig, search(), revision).await;
        let found = pipe.retrieve("open a ticket for the kangaroo").await;
        assert_eq!(found[0], "hub:new_issue", "{found:?}");
        pipe.call_found("hub:new_issue", json!({ "title": "c" }))
            .await;

        let sent = stage.calls_of("create");
        let sent: Vec<_> = sent.iter().map(|params| &params["arguments"]).collect();
        let expected = ["a", "b", "c"].map(|title| json!({ "title": title, "repo": "acme/app" }));
        let last = &sent[sent.len() - 3..];
        assert_eq!(last, expected.iter().collect::<Vec<_>>(), "{revision}");
    }
    assert!(stage.calls_of("new_issue").is_empty());
    rig.stop().await;
}

#[tokio::test]
async fn fixed_and_hidden_things_cannot_be_reached() {
    let stage = stage();
    let rig = gateway(&stage).await;
    for revision in REVISIONS {
        let mut one = Pipe::open_as(&rig, server("hub"), revision).await;
        let mut all = Pipe::open_as(&rig, direct(), revision).await;
        let mut menu = Pipe::open_as(&rig, search(), revision).await;
        for name in ["create", "wipe", "Create", "CREATE", "wipe_", "Wipe"] {
            let refusal = one.refusal(name, json!({ "title": "x" })).await;
            assert!(refusal.contains("there is no tool"), "{name}: {refusal}");
            let refusal = all.refusal(&format!("hub__{name}"), json!({})).await;
            assert!(refusal.contains("there is no tool"), "{name}: {refusal}");
            let called = json!({ "name": format!("hub:{name}"), "arguments": {} });
            let refusal = menu.refusal("call_tool", called).await;
            assert!(refusal.contains("There is no tool"), "{name}: {refusal}");
        }
        for arguments in [
            json!({ "title": "x", "repo": "evil/app" }),
            json!({ "title": "x", "REPO": "evil/app" }),
            json!({ "title": "x", "repo": "acme/app" }),
        ] {
            let called = json!({ "name": "hub:new_issue", "arguments": arguments });
            for (pipe, tool, arguments) in [
                (&mut one, "new_issue", &arguments),
                (&mut all, "hub__new_issue", &arguments),
                (&mut menu, "call_tool", &called),
            ] {
                let refusal = pipe.refusal(tool, arguments.clone()).await;
                let expected = "`repo` is not an argument of this tool";
                assert!(refusal.contains(expected), "{tool} {arguments}: {refusal}");
            }
        }
    }
    assert!(stage.calls_of("create").is_empty() && stage.calls_of("wipe").is_empty());
    rig.stop().await;
}

#[tokio::test]
async fn changed_overrides_reach_live_clients() {
    let stage = stage();
    let rig = Rig::configured(config(&stage, &json!({}))).await;
    rig.until_tools("hub", 3).await;
    let mut pipe = Pipe::open(&rig, direct()).await;
    assert_eq!(of_hub(pipe.tools().await).len(), 3);
    rig.reconfigure(&config(&stage, &overrides())).await;
    pipe.until_told(LIST_CHANGED).await;
    assert_eq!(of_hub(pipe.tools().await), ["hub__new_issue", "hub__read"]);
    let starts = stage.asked();
    let starts = starts.iter().filter(|line| line.starts_with("initialize"));
    assert!(starts.count() <= 1, "an override restarts nothing");
    rig.stop().await;
}

#[tokio::test]
async fn tool_with_a_given_name_is_left_out() {
    let stage = stage();
    stage.set_tools(&[tool("new_issue", "An impostor."), create()]);
    let rig = Rig::configured(config(&stage, &overrides())).await;
    rig.until_tools("hub", 1).await;
    let mut pipe = Pipe::open(&rig, server("hub")).await;
    let list = pipe.result("tools/list", json!({})).await;
    assert!(!list.to_string().contains("impostor"), "{list}");
    pipe.call("new_issue", json!({ "title": "x" })).await;
    assert_eq!(stage.calls_of("create").len(), 1);
    let shown = rig.get("/api/v1/servers/hub").await.json();
    let problems = shown["problems"].to_string();
    assert!(
        problems.contains("the tool `new_issue` of the server is hidden"),
        "{problems}"
    );
    rig.stop().await;
}

#[tokio::test]
async fn override_of_a_missing_tool_is_reported() {
    let stage = stage();
    let overrides = json!({ "creat": { "description": "x" } });
    let rig = Rig::configured(config(&stage, &overrides)).await;
    rig.until_tools("hub", 3).await;
    let shown = rig.get("/api/v1/servers/hub").await.json();
    assert_eq!(
        shown["problems"],
        json!([
            "the override of `creat` has no effect: the server has no such tool; did you mean `create`?"
        ])
    );
    rig.stop().await;
}

#[tokio::test]
async fn server_definition_is_shown_next_to_its_override() {
    let stage = stage();
    let rig = gateway(&stage).await;
    let tools = rig.get("/api/v1/tools?name=hub:new_issue").await.json();
    let shown = &tools["tools"][0];
    assert_eq!(shown["tool"], "create", "{shown}");
    assert_eq!(shown["override"]["definition"], create());
    assert_eq!(shown["override"]["fixed"], json!({ "repo": "acme/app" }));
    assert_eq!(shown["definition"]["name"], "new_issue");
    let config = rig.get("/api/v1/config").await.json();
    let shown = &config["config"]["mcpServers"]["hub"]["overrides"];
    assert_eq!(*shown, overrides(), "{config}");
    rig.stop().await;
}

#[tokio::test]
async fn patterns_match_both_names() {
    for denied in ["hub:create", "hub:new_*"] {
        let stage = stage();
        let mut config = config(&stage, &overrides());
        config["profiles"] = json!({ "work": { "tools": { "deny": [denied] } } });
        config["approvals"]["rules"] = json!([format!("deny {denied}")]);
        let rig = Rig::configured(config).await;
        rig.until_tools("hub", 2).await;
        let mut pipe = Pipe::open(&rig, under("work", direct())).await;
        assert_eq!(of_hub(pipe.tools().await), ["hub__read"], "{denied}");
        let mut pipe = Pipe::open(&rig, direct()).await;
        let refusal = pipe
            .refusal("hub__new_issue", json!({ "title": "x" }))
            .await;
        assert!(refusal.contains("denied"), "{denied}: {refusal}");
        assert!(stage.calls_of("create").is_empty());
        rig.stop().await;
    }
}

/// The guard asks before calls that may write; the owner's annotation settles it, the server's does not.
#[tokio::test]
async fn annotations_of_the_owner_are_believed() {
    let stage = stage();
    let mut wipe = tool("wipe", "Wipes.");
    wipe["annotations"] = json!({ "readOnlyHint": true });
    stage.set_tools(&[wipe]);
    let mut config = config(&stage, &json!({}));
    config["approvals"]["tools"] = json!("writes");
    let rig = Rig::configured(config.clone()).await;
    rig.until_tools("hub", 1).await;
    let mut pipe = Pipe::open(&rig, direct()).await;
    let call = json!({ "name": "hub__wipe", "arguments": {} });
    pipe.send("tools/call", call).await;
    rig.until(PENDING, |list| list["approvals"][0]["tool"] == "wipe")
        .await;
    config["mcpServers"]["hub"]["overrides"] =
        json!({ "wipe": { "annotations": { "readOnlyHint": true } } });
    rig.reconfigure(&config).await;
    let mut pipe = Pipe::open(&rig, direct()).await;
    pipe.call("hub__wipe", json!({})).await;
    assert_eq!(stage.calls_of("wipe").len(), 1);
    rig.stop().await;
}

/// Rules judge, and approvers see, the arguments that are sent. An approver cannot change fixed ones.
#[tokio::test]
async fn approver_sees_but_cannot_change_fixed_arguments() {
    let stage = stage();
    let mut config = config(&stage, &overrides());
    config["approvals"]["rules"] = json!(["ask hub:create"]);
    let rig = Rig::configured(config).await;
    rig.until_tools("hub", 2).await;
    let mut pipe = Pipe::open(&rig, direct()).await;
    let call = json!({ "name": "hub__new_issue", "arguments": { "title": "x" } });
    let id = pipe.send("tools/call", call).await;
    let asked = rig
        .until(PENDING, |list| list["approvals"][0].is_object())
        .await;
    let asked = &asked["approvals"][0];
    let arguments = json!({ "title": "x", "repo": "acme/app" });
    assert_eq!(asked["request"]["arguments"], arguments, "{asked}");
    let path = format!(
        "/api/v1/approvals/{}/approve",
        asked["id"].as_str().unwrap()
    );
    let edited = json!({ "edits": { "arguments": { "title": "x", "repo": "evil/app" } } });
    let answer = rig.post(&path, &edited).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let answer = pipe.finish(&id).await.json.to_string();
    assert!(
        answer.contains("the approver changed the argument `repo`"),
        "{answer}"
    );
    assert!(stage.calls_of("create").is_empty());
    rig.stop().await;
}

/// A name that an override gives away stays reserved while the renamed tool is gone.
#[tokio::test]
async fn given_name_is_reserved() {
    let stage = Stage::new(&[tool("new_issue", "An impostor."), tool("read", "Reads.")]);
    let rig = Rig::configured(config(&stage, &overrides())).await;
    rig.until_tools("hub", 1).await;
    let mut pipe = Pipe::open(&rig, server("hub")).await;
    assert_eq!(pipe.tools().await, ["read"]);
    let refusal = pipe.refusal("new_issue", json!({})).await;
    assert!(refusal.contains("there is no tool"), "{refusal}");
    assert!(stage.calls_of("new_issue").is_empty());
    rig.stop().await;
}

/// An error about an argument would tell a hidden tool from a missing one.
#[tokio::test]
async fn arguments_do_not_reveal_hidden_tools() {
    let stage = stage();
    let mut all = overrides();
    all["wipe"]["arguments"] = json!({ "repo": { "value": 1 } });
    let mut config = config(&stage, &all);
    config["profiles"] = json!({ "work": { "tools": { "deny": ["hub:create"] } } });
    let rig = Rig::configured(config).await;
    rig.until_tools("hub", 2).await;
    let mut pipe = Pipe::open(&rig, under("work", server("hub"))).await;
    for name in ["new_issue", "create", "wipe", "missing"] {
        let refusal = pipe.refusal(name, json!({ "repo": 1 })).await;
        assert!(refusal.contains("there is no tool"), "{name}: {refusal}");
    }
    let mut pipe = Pipe::open(&rig, direct()).await;
    let status = pipe.call("switchboard__get_status", json!({})).await;
    assert!(!status.to_string().contains("create"), "{status}");
    rig.stop().await;
}

/// A call that waits for an approver is not sent without an argument that was fixed meanwhile.
#[tokio::test]
async fn waiting_call_is_refused_after_a_change() {
    let stage = stage();
    let mut config = config(&stage, &json!({}));
    config["approvals"]["rules"] = json!(["ask hub:create"]);
    let rig = Rig::configured(config.clone()).await;
    rig.until_tools("hub", 3).await;
    let mut pipe = Pipe::open(&rig, direct()).await;
    let call = json!({ "name": "hub__create", "arguments": { "title": "x", "repo": "evil/app" } });
    let id = pipe.send("tools/call", call).await;
    let asked = rig
        .until(PENDING, |list| list["approvals"][0].is_object())
        .await;
    config["mcpServers"]["hub"]["overrides"] =
        json!({ "create": { "arguments": { "repo": { "value": "acme/app" } } } });
    rig.reconfigure(&config).await;
    let asked = asked["approvals"][0]["id"].as_str().unwrap();
    let path = format!("/api/v1/approvals/{asked}/approve");
    rig.post(&path, &json!({})).await;
    let answer = pipe.finish(&id).await.json.to_string();
    assert!(answer.contains("the tool has changed"), "{answer}");
    assert!(stage.calls_of("create").is_empty());
    rig.stop().await;
}

#[tokio::test]
async fn fixed_secret_is_not_shown() {
    let stage = stage();
    let fixed = json!({ "create": { "arguments": { "password": { "value": "hunter2" } } } });
    let rig = Rig::configured(config(&stage, &fixed)).await;
    rig.until_tools("hub", 3).await;
    for path in ["/api/v1/config", "/api/v1/tools?name=hub:create"] {
        let shown = rig.get(path).await.json().to_string();
        assert!(shown.contains("password"), "{shown}");
        assert!(!shown.contains("hunter2"), "{shown}");
    }
    rig.stop().await;
}

/// A tool that is held for approval is reported as such under its new name only, and not at all if it is hidden.
#[tokio::test]
async fn held_tools_have_only_their_new_names() {
    let stage = stage();
    let mut config = config(&stage, &overrides());
    config["mcpServers"]["hub"]["trust"] = json!("ask");
    let rig = Rig::configured(config).await;
    rig.until_held("hub", "read").await;
    let approve = "/api/v1/trust/hub/approve";
    let answer = rig.post(approve, &json!({ "tool": "read" })).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    rig.until_tools("hub", 1).await;
    let mut one = Pipe::open(&rig, server("hub")).await;
    let mut all = Pipe::open(&rig, direct()).await;
    let mut menu = Pipe::open(&rig, search()).await;
    for (name, expected) in [
        ("new_issue", "held until the user approves it"),
        ("create", "here is no tool"),
        ("wipe", "here is no tool"),
    ] {
        let full = format!("hub__{name}");
        let named = json!({ "name": format!("hub:{name}") });
        let refusals = [
            one.refusal(name, json!({})).await,
            all.refusal(&full, json!({})).await,
            menu.refusal("call_tool", named.clone()).await,
            menu.refusal("describe_tool", named).await,
        ];
        for refusal in refusals {
            assert!(refusal.contains(expected), "{name}: {refusal}");
        }
    }
    rig.stop().await;
}

#[tokio::test]
async fn refusals_name_the_tool_as_clients_see_it() {
    let stage = stage();
    let mut config = config(&stage, &overrides());
    config["approvals"]["rules"] = json!(["deny hub:new_issue"]);
    let rig = Rig::configured(config).await;
    rig.until_tools("hub", 2).await;
    for revision in REVISIONS {
        let mut pipe = Pipe::open_as(&rig, direct(), revision).await;
        let answer = pipe
            .refusal("hub__new_issue", json!({ "title": "a" }))
            .await;
        assert!(
            answer.contains("`hub:new_issue` was not called"),
            "{answer}"
        );
        assert!(!answer.contains("hub:create"), "{answer}");
    }
    rig.stop().await;
}

/// A rule may name what the override hides. The owner is shown it all the same.
#[tokio::test]
async fn denial_does_not_reveal_the_rule() {
    let stage = stage();
    let mut config = config(&stage, &overrides());
    let rule = json!({
        "action": "deny", "server": "hub", "tool": "create",
        "arguments": { "$.repo": "acme/app" }, "reason": "the project is frozen",
    });
    config["approvals"]["rules"] = json!([rule, "deny hub:read"]);
    let rig = Rig::configured(config).await;
    rig.until_tools("hub", 2).await;
    for revision in REVISIONS {
        let mut pipe = Pipe::open_as(&rig, direct(), revision).await;
        let answer = pipe.refusal("hub__new_issue", json!({})).await;
        let expected = "`hub:new_issue` was not called: denied by a rule: the project is frozen";
        assert_eq!(answer, expected, "{revision}");
        let answer = pipe.refusal("hub__read", json!({})).await;
        assert_eq!(answer, "`hub:read` was not called: denied by a rule");
    }
    let activity = rig.get("/api/v1/activity").await.json().to_string();
    assert!(activity.contains("deny hub:create"), "{activity}");
    rig.stop().await;
}

/// The name of the server's own is not told even if the tool vanishes while its call waits.
#[tokio::test]
async fn waiting_call_of_a_removed_tool_is_missing() {
    let stage = stage();
    let mut config = config(&stage, &overrides());
    config["approvals"]["rules"] = json!(["ask hub:create"]);
    config["profiles"] = json!({ "work": { "servers": ["hub"] } });
    let rig = Rig::configured(config.clone()).await;
    rig.until_tools("hub", 2).await;
    let mut pipe = Pipe::open(&rig, under("work", direct())).await;
    let id = pipe.send_call("hub__new_issue", json!({})).await;
    let asked = rig
        .until(PENDING, |list| list["approvals"][0].is_object())
        .await;
    config["profiles"]["work"]["tools"] = json!({ "deny": ["hub:new_issue"] });
    rig.reconfigure(&config).await;
    let asked = asked["approvals"][0]["id"].as_str().unwrap();
    let path = format!("/api/v1/approvals/{asked}/approve");
    rig.post(&path, &json!({})).await;
    let answer = pipe.finish(&id).await.json.to_string();
    assert!(answer.contains("there is no tool `new_issue`"), "{answer}");
    assert!(!answer.contains("create"), "{answer}");
    assert!(stage.calls_of("create").is_empty());
    rig.stop().await;
}

#[tokio::test]
async fn short_fixed_values_are_shown_to_the_owner() {
    let stage = stage();
    let fixed = json!({ "create": { "arguments": { "repo": { "value": 40 } } } });
    let rig = Rig::configured(config(&stage, &fixed)).await;
    rig.until_tools("hub", 3).await;
    let tools = rig.get("/api/v1/tools?name=hub:create").await.json();
    assert_eq!(
        tools["tools"][0]["override"]["fixed"],
        json!({ "repo": 40 }),
        "{tools}"
    );
    rig.stop().await;
}

#[tokio::test]
async fn owner_learns_the_new_name_of_a_tool() {
    let stage = stage();
    let mut overrides = overrides();
    overrides["gone"] = json!({ "name": "back" });
    let rig = Rig::configured(config(&stage, &overrides)).await;
    rig.until_tools("hub", 2).await;
    for (name, hint) in [
        ("hub:create", "use `hub:new_issue`"),
        ("hub:gone", "`switchboard tools hub` lists its tools"),
        (
            "hub:wipe",
            "`switchboard trust show hub:wipe` shows its definition",
        ),
    ] {
        let answer = rig.get(&format!("/api/v1/tools?name={name}")).await;
        assert_eq!(answer.status, 404, "{answer:?}");
        assert_eq!(answer.json()["hint"], hint, "{answer:?}");
    }
    rig.stop().await;
}

#[tokio::test]
async fn held_tool_is_refused_under_its_new_name() {
    let stage = Stage::new(&[tool("create_secretname", "Creates a\u{200b}b.")]);
    let settings = json!({ "overrides": { "create_secretname": { "name": "new_issue" } } });
    let rig = Rig::with(json!({ "hub": stage.entry_with(&settings) })).await;
    rig.until_held("hub", "create_secretname").await;
    for (endpoint, name) in [(direct(), "hub__new_issue"), (server("hub"), "new_issue")] {
        let mut pipe = Pipe::open(&rig, endpoint).await;
        let refusal = pipe.refusal(name, json!({})).await;
        assert!(refusal.contains("`hub:new_issue` is held"), "{refusal}");
        assert!(!refusal.contains("secretname"), "{refusal}");
    }
    rig.stop().await;
}

#[tokio::test]
async fn held_tool_with_a_taken_name_is_reported() {
    let stage = Stage::new(&[tool("a", "Does a\u{200b}b."), tool("b", "Reads.")]);
    let settings = json!({ "overrides": { "a": { "name": "b" }, "b": { "name": "c" } } });
    let rig = Rig::with(json!({ "hub": stage.entry_with(&settings) })).await;
    rig.until_held("hub", "a").await;
    rig.until_tools("hub", 1).await;
    for (endpoint, name) in [(direct(), "hub__b"), (server("hub"), "b")] {
        let mut pipe = Pipe::open(&rig, endpoint).await;
        let refusal = pipe.refusal(name, json!({})).await;
        assert!(refusal.contains("`hub:b` is held"), "{refusal}");
    }
    rig.stop().await;
}

/// An override of every field that it can replace.
fn all_fields() -> Value {
    json!({ "create": {
        "name": "new_issue",
        "description": "Opens a ticket.",
        "annotations": { "readOnlyHint": false, "destructiveHint": false },
        "arguments": { "repo": { "value": "acme/app" } },
    } })
}

/// A definition of the server is pinned as the server sends it, also where agents see something else.
#[tokio::test]
async fn change_behind_an_override_is_held() {
    let mut about = create();
    about["description"] = json!("Creates an issue, and mails it.");
    let mut hints = create();
    hints["annotations"] = json!({ "destructiveHint": true });
    let mut argument = create();
    argument["inputSchema"]["properties"]["repo"]["description"] = json!("Any repository.");
    for (what, changed) in [
        ("description", about),
        ("annotations", hints),
        ("argument", argument),
    ] {
        let stage = Stage::new(&[create(), tool("read", "Reads.")]);
        let rig = Rig::configured(config(&stage, &all_fields())).await;
        rig.until_tools("hub", 2).await;
        let mut pipe = Pipe::open(&rig, direct()).await;
        let before = pipe.result("tools/list", json!({})).await;
        stage
            .change_tools(&[changed.clone(), tool("read", "Reads.")])
            .await;
        let held = rig.until_held("hub", "create").await;
        assert_eq!(held["why"], "changed", "{what}: {held}");
        assert_eq!(held["definition"], changed, "{what}");
        assert_eq!(held["approved"], create(), "{what}");
        pipe.until_told(LIST_CHANGED).await;
        assert_eq!(of_hub(pipe.tools().await), ["hub__read"], "{what}");
        let call = json!({ "title": "x" });
        let refusal = pipe.refusal("hub__new_issue", call.clone()).await;
        assert!(refusal.contains("`hub:new_issue` is held"), "{refusal}");
        assert!(stage.calls_of("create").is_empty(), "{what}");
        let approve = json!({ "tool": "create", "fingerprint": held["fingerprint"] });
        let answer = rig.post("/api/v1/trust/hub/approve", &approve).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        // The override hides the change from agents.
        let after = pipe.result("tools/list", json!({})).await;
        assert_eq!(before, after, "{what}");
        pipe.call("hub__new_issue", call).await;
        assert_eq!(stage.calls_of("create").len(), 1, "{what}");
        rig.stop().await;
    }
}

#[tokio::test]
async fn edit_of_an_override_keeps_the_pins() {
    let stage = Stage::new(&[create(), tool("read", "Reads.")]);
    let with_trust = |overrides: &Value| {
        let mut config = config(&stage, overrides);
        config["mcpServers"]["hub"]["trust"] = json!("ask");
        config
    };
    let rig = Rig::configured(with_trust(&json!({}))).await;
    rig.until_held("hub", "create").await;
    let answer = rig.post("/api/v1/trust/hub/approve", &json!({})).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    rig.until_tools("hub", 2).await;
    let lists = || {
        let asked = stage.asked();
        let lists = asked.iter().filter(|line| line.starts_with("tools/list"));
        lists.count()
    };
    let approved = rig.trust("hub").await["approved"].clone();
    let mut all = all_fields();
    let create = all["create"].as_object_mut().unwrap();
    let mut edits = vec![json!({})];
    for field in ["name", "description", "annotations", "arguments"] {
        edits.push(json!({ "create": create }));
        create.remove(field);
    }
    edits.push(json!({ "create": { "hidden": true } }));
    edits.push(json!({}));
    for edit in edits {
        rig.reconfigure(&with_trust(&edit)).await;
        let is_hidden = edit["create"]["hidden"] == true;
        rig.until_tools("hub", if is_hidden { 1 } else { 2 }).await;
        // The server is asked for its list and judged again.
        let before = lists();
        stage.tell_changed().await;
        until("the list is read", async || lists() > before).await;
        let name = edit["create"]["name"].as_str().unwrap_or("create");
        let mut pipe = Pipe::open(&rig, server("hub")).await;
        let shown = if is_hidden { "read" } else { name };
        pipe.call(shown, json!({ "title": "x" })).await;
        let trust = rig.trust("hub").await;
        assert_eq!(trust["held"], json!([]), "{edit}: {trust}");
        assert_eq!(trust["approved"], approved, "{edit}: {trust}");
    }
    let requests = rig.get("/api/v1/approvals?status=pending").await.json();
    assert_eq!(requests["approvals"], json!([]));
    rig.stop().await;
}

/// Two entries for the same kind of server offer the same tool, each with its account.
#[tokio::test]
async fn each_entry_calls_with_its_own_account() {
    let entry = |stage: &Stage, name: &str, account: &str| {
        let create = json!({ "name": name, "arguments": { "repo": { "value": account } } });
        stage.entry_with(&json!({ "trust": "always", "overrides": { "create": create } }))
    };
    let accounts = [
        ("home", "note", "ada/notes"),
        ("work", "ticket", "acme/app"),
    ];
    let stages = [stage(), stage()];
    let servers = accounts.iter().zip(&stages);
    let servers = servers.map(|((server, name, account), stage)| {
        ((*server).to_owned(), entry(stage, name, account))
    });
    let servers: serde_json::Map<_, _> = servers.collect();
    let rig = Rig::with(servers.into()).await;
    for (server, ..) in accounts {
        rig.until_tools(server, 3).await;
    }
    for revision in REVISIONS {
        let mut all = Pipe::open_as(&rig, direct(), revision).await;
        let mut menu = Pipe::open_as(&rig, search(), revision).await;
        for (entry, name, _) in accounts {
            let title = json!({ "title": revision });
            all.call(&format!("{entry}__{name}"), title.clone()).await;
            menu.call_found(&format!("{entry}:{name}"), title.clone())
                .await;
            let mut one = Pipe::open_as(&rig, server(entry), revision).await;
            one.call(name, title).await;
        }
        // Neither has the name, or the account, of the other.
        for name in ["home__ticket", "work__note", "home__create", "work__create"] {
            let refusal = all.refusal(name, json!({ "title": "x" })).await;
            assert!(refusal.contains("there is no tool"), "{name}: {refusal}");
        }
        let call = json!({ "title": "x", "repo": "acme/app" });
        let refusal = all.refusal("home__note", call).await;
        assert!(refusal.contains("is not an argument"), "{refusal}");
    }
    for ((_, _, account), stage) in accounts.iter().zip(&stages) {
        let calls = stage.calls_of("create");
        assert_eq!(calls.len(), 3 * REVISIONS.len(), "{account}");
        for call in calls {
            assert_eq!(call["arguments"]["repo"], *account, "{call}");
        }
    }
    rig.stop().await;
}
