//! Profiles: what a client may see and call.

use serde_json::{Value, json};

use crate::{
    api_rig::Rig,
    mcp_rig::{
        LEGACY, LIST_CHANGED, MODERN, Pipe, REVISIONS, Web, configured, direct, names_of, search,
        server, text_of, under, until,
    },
    stage_rig::{Stage, tool},
};

/// A gateway with two servers that offer the same, and a profile that includes a part of one.
struct Two {
    rig: Rig,
    a: Stage,
    b: Stage,
}

fn stage() -> Stage {
    let stage = Stage::new(&[
        tool("read", "Reads a page."),
        tool("drop_all", "Drops every page."),
    ]);
    stage.set_prompts(&json!([{ "name": "p" }]));
    stage.set_resources(&json!([{ "uri": "x:1", "name": "one" }]));
    stage.set_templates(&json!([{ "uriTemplate": "x:{n}", "name": "any" }]));
    stage
}

fn config(a: &Stage, b: &Stage, work: &Value) -> Value {
    json!({
        "mcpServers": {
            "alpha": a.entry_with(&json!({ "trust": "always" })),
            "beta": b.entry_with(&json!({ "trust": "always" })),
        },
        "profiles": { "work": work },
        "results": { "maxBytes": 2_000 },
        "approvals": { "notify": "off" },
    })
}

impl Two {
    async fn with(work: Value) -> Self {
        let (a, b) = (stage(), stage());
        let rig = Rig::configured(config(&a, &b, &work)).await;
        for server in ["alpha", "beta"] {
            rig.until_tools(server, 2).await;
        }
        Self { rig, a, b }
    }

    async fn new() -> Self {
        Self::with(json!({ "servers": ["alpha"], "tools": { "deny": ["*:drop_*"] } })).await
    }
}

#[tokio::test]
async fn lists_have_only_what_the_profile_includes() {
    let Two { rig, a: _a, b: _b } = Two::new().await;
    for revision in REVISIONS {
        let mut pipe = Pipe::open_as(&rig, under("work", direct()), revision).await;
        let tools = pipe.tools().await;
        let servers = |name: &String| !name.starts_with("switchboard__");
        let tools: Vec<_> = tools.into_iter().filter(servers).collect();
        assert_eq!(tools, ["alpha__read"], "{revision}");
        for (method, list) in [
            ("prompts/list", "prompts"),
            ("resources/list", "resources"),
            ("resources/templates/list", "resourceTemplates"),
        ] {
            let result = pipe.result(method, json!({})).await;
            assert_eq!(result[list].as_array().unwrap().len(), 1, "{result}");
            let text = result.to_string();
            assert!(
                !text.contains("beta__") && !text.contains("//beta/"),
                "{text}"
            );
        }
        let mut pipe = Pipe::open_as(&rig, under("work", server("alpha")), revision).await;
        assert_eq!(pipe.tools().await, ["read"], "{revision}");
    }
    rig.stop().await;
}

/// The response to a request, with a name replaced, to compare it with that for another name.
async fn answer(pipe: &mut Pipe, method: &str, params: &Value, name: &str) -> String {
    let params = params.to_string().replace("NAME", name);
    let params = serde_json::from_str(&params).unwrap();
    let mut answer = pipe.ask(method, params).await.json;
    answer.as_object_mut().unwrap().remove("id");
    answer.to_string().replace(name, "NAME")
}

#[tokio::test]
async fn hidden_items_look_like_missing_ones() {
    let work = json!({ "servers": ["alpha"], "tools": { "deny": ["*:drop_*"] } });
    for trust in ["always", "first", "ask"] {
        let (a, b) = (stage(), stage());
        let mut config = config(&a, &b, &work);
        for server in ["alpha", "beta"] {
            config["mcpServers"][server]["trust"] = json!(trust);
        }
        let rig = Rig::configured(config).await;
        for server in ["alpha", "beta"] {
            let path = format!("/api/v1/servers/{server}");
            rig.until(&path, |server| server["state"] == "ready").await;
        }
        compare_hidden_with_missing(Two { rig, a, b }).await;
    }
}

async fn compare_hidden_with_missing(Two { rig, a, b }: Two) {
    let call = json!({ "name": "NAME", "arguments": {} });
    let menu = |tool: &str| json!({ "name": tool, "arguments": { "name": "NAME" } });
    let within =
        json!({ "name": "retrieve_tools", "arguments": { "query": "read", "server": "NAME" } });
    let prompt = json!({ "name": "NAME" });
    let uri = json!({ "uri": "NAME" });
    let of = json!({ "ref": { "type": "ref/prompt", "name": "NAME" }, "argument": { "name": "x", "value": "" } });
    for revision in REVISIONS {
        let mut cases = vec![
            (direct(), "tools/call", &call, "beta__read", "bexa__read"),
            (
                direct(),
                "tools/call",
                &call,
                "alpha__drop_all",
                "alpha__drup_all",
            ),
            (direct(), "prompts/get", &prompt, "beta__p", "bexa__p"),
            (
                direct(),
                "resources/read",
                &uri,
                "switchboard://beta/x:1",
                "switchboard://bexa/x:1",
            ),
            (direct(), "completion/complete", &of, "beta__p", "bexa__p"),
            (search(), "tools/call", &within, "beta", "bexa"),
            (server("alpha"), "tools/call", &call, "drop_all", "drup_all"),
        ];
        let (describe, call_tool) = (menu("describe_tool"), menu("call_tool"));
        for menu in [&describe, &call_tool] {
            cases.push((search(), "tools/call", menu, "beta:read", "bexa:read"));
            cases.push((search(), "tools/call", menu, "beta__read", "bexa__read"));
            cases.push((
                search(),
                "tools/call",
                menu,
                "alpha:drop_all",
                "alpha:drup_all",
            ));
        }
        if revision != MODERN {
            cases.push((
                direct(),
                "resources/subscribe",
                &uri,
                "switchboard://beta/x:1",
                "switchboard://bexa/x:1",
            ));
        }
        for (view, method, params, hidden, missing) in cases {
            let mut pipe = Pipe::open_as(&rig, under("work", view), revision).await;
            let of_hidden = answer(&mut pipe, method, params, hidden).await;
            let of_missing = answer(&mut pipe, method, params, missing).await;
            assert_eq!(of_hidden, of_missing, "{revision} {method} {hidden}");
        }
    }
    let open = async |name: &str| {
        let client = Web::open(&rig, "/mcp/p/work", MODERN).await;
        let client = client.at(&format!("/mcp/p/work/s/{name}"));
        let answer = client.ask_whatever("tools/list", json!({})).await;
        let text = answer.body.replace(&format!("`{name}`"), "NAME");
        (
            answer.status,
            text.split_once("\"error\"").unwrap().1.to_owned(),
        )
    };
    assert_eq!(open("beta").await, open("bexa").await);
    assert!(a.calls_of("drop_all").is_empty() && b.calls_of("read").is_empty());
    rig.stop().await;
}

#[tokio::test]
async fn search_finds_only_what_the_profile_includes() {
    let Two { rig, a: _a, b: _b } = Two::new().await;
    let mut pipe = Pipe::open(&rig, under("work", search())).await;
    for query in ["read a page", "drop every page", "beta"] {
        let found = pipe.retrieve(query).await;
        let of_servers = found
            .iter()
            .filter(|name| !name.starts_with("switchboard:"));
        assert!(
            of_servers.into_iter().all(|name| name == "alpha:read"),
            "{found:?}"
        );
    }
    // Hidden tools do not take places among the best.
    let wish = json!({ "query": "drop every page", "limit": 1 });
    let found = pipe.call("retrieve_tools", wish).await;
    assert_eq!(names_of(&found), ["alpha:read"]);
    let wish = json!({ "query": "read a page", "detail": "full" });
    let found = pipe.call("retrieve_tools", wish).await;
    assert_eq!(names_of(&found)[0], "alpha:read");
    assert!(!found.to_string().contains("drop_all"), "{found}");
    assert_eq!(
        text_of(&pipe.call_found("alpha:read", json!({})).await),
        "read was called"
    );
    rig.stop().await;
}

#[tokio::test]
async fn status_and_greeting_mention_only_the_profile() {
    let Two { rig, a, b } = Two::new().await;
    for stage in [&a, &b] {
        stage.set_instructions("Use it well.");
    }
    let mut all = Pipe::open(&rig, search()).await;
    let status = all.call("get_status", json!({})).await["structuredContent"].clone();
    assert_eq!(status["servers"].as_array().unwrap().len(), 2);
    assert!(status["clients"].is_u64());
    let mut pipe = Pipe::open(&rig, under("work", search())).await;
    let greeting = pipe.greeting["instructions"].as_str().unwrap();
    assert!(greeting.ends_with("Servers: alpha"), "{greeting}");
    let status = pipe.call("get_status", json!({})).await["structuredContent"].clone();
    let servers = status["servers"].as_array().unwrap();
    assert_eq!(servers.len(), 1, "{status}");
    assert_eq!(servers[0]["tools"], 1);
    assert!(status["clients"].is_null(), "{status}");
    assert!(servers[0]["calls"].is_null(), "{status}");
    assert!(!status.to_string().contains("server:beta"), "{status}");
    rig.stop().await;
}

#[tokio::test]
async fn long_results_are_read_in_their_profile_only() {
    let Two { rig, a, b: _b } = Two::new().await;
    let text = "word ".repeat(1_000);
    let result = json!({ "content": [{ "type": "text", "text": text }] });
    a.set_result("read", &result.to_string());
    let mut pipe = Pipe::open(&rig, under("work", search())).await;
    let cut = text_of(&pipe.call_found("alpha:read", json!({})).await);
    let (_, call) = cut.split_once("read_result ").unwrap();
    let call: Value = serde_json::from_str(call.split_inclusive('}').next().unwrap()).unwrap();
    let rest = pipe.call("read_result", call.clone()).await;
    assert!(text_of(&rest).starts_with("word"), "{rest}");
    let mut other = Pipe::open(&rig, search()).await;
    let refused = other.call("read_result", call).await;
    assert_eq!(refused["isError"], true, "{refused}");
    rig.stop().await;
}

#[tokio::test]
async fn changed_profile_reaches_live_clients() {
    let Two { rig, a, b } = Two::new().await;
    let mut pipe = Pipe::open(&rig, under("work", direct())).await;
    let web = Web::open(&rig, "/mcp/p/work/direct", LEGACY).await;
    let mut other = Pipe::open(&rig, direct()).await;
    rig.reconfigure(&config(&a, &b, &json!({ "servers": ["beta"] })))
        .await;
    pipe.until_told(LIST_CHANGED).await;
    for tools in [pipe.tools().await, web.tools().await] {
        let servers = tools
            .iter()
            .filter(|name| !name.starts_with("switchboard__"));
        assert_eq!(
            servers.collect::<Vec<_>>(),
            ["beta__read", "beta__drop_all"]
        );
    }
    other.ask("ping", json!({})).await;
    assert!(other.told().is_empty(), "{:?}", other.told());
    let mut gone = config(&a, &b, &json!({}));
    gone["profiles"] = json!({});
    rig.reconfigure(&gone).await;
    let refused = pipe.ask("tools/list", json!({})).await.json;
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(message.contains("profile"), "{message}");
    rig.stop().await;
}

#[tokio::test]
async fn messages_of_hidden_servers_do_not_arrive() {
    let Two { rig, a, b } = Two::with(json!({ "servers": ["alpha"] })).await;
    let mut pipe = Pipe::open(&rig, under("work", direct())).await;
    pipe.result("logging/setLevel", json!({ "level": "info" }))
        .await;
    assert!(
        !b.asked()
            .iter()
            .any(|line| line.starts_with("logging/setLevel"))
    );
    for (stage, from) in [(&b, "beta"), (&a, "alpha")] {
        let message = json!({ "level": "error", "data": from });
        stage.tell_with("notifications/message", message).await;
    }
    let told = pipe.until_told("notifications/message").await;
    assert_eq!(told["data"], "alpha", "{told}");
    rig.stop().await;
}

/// A message may be about a call that is over, and of a tool that the profile hides.
#[tokio::test]
async fn late_messages_stay_with_the_owner() {
    let Two { rig, a, b: _b } = Two::new().await;
    let mut narrow = Pipe::open(&rig, under("work", direct())).await;
    let mut owner = Pipe::open(&rig, direct()).await;
    for pipe in [&mut narrow, &mut owner] {
        pipe.result("logging/setLevel", json!({ "level": "info" }))
            .await;
    }
    let message = |data: &str| json!({ "level": "info", "data": data });
    owner.call("alpha__drop_all", json!({})).await;
    a.tell_with("notifications/message", message("drop_all is done"))
        .await;
    let told = owner.until_told("notifications/message").await;
    assert_eq!(told["data"], "drop_all is done", "{told}");
    // The only call in flight is not the one that the message is about, either.
    a.set_result("read", "");
    narrow.send_call("alpha__read", json!({})).await;
    a.until_asked("\"read\"").await;
    a.tell_with("notifications/message", message("drop_all is over"))
        .await;
    a.change_tools(&[tool("read", "Reads another page.")]).await;
    narrow.until_told(LIST_CHANGED).await;
    let told = narrow.told().into_iter().map(Value::to_string);
    let told: Vec<_> = told.filter(|told| told.contains("drop_all")).collect();
    assert_eq!(told, [""; 0]);
    rig.stop().await;
}

#[tokio::test]
async fn unknown_profile_is_not_found() {
    let Two { rig, a: _a, b: _b } = Two::new().await;
    let client = Web::open(&rig, "/mcp/p/work", MODERN)
        .await
        .at("/mcp/p/none");
    let answer = client.ask_whatever("tools/list", json!({})).await;
    assert_eq!(answer.status, 404, "{answer:?}");
    assert!(
        answer.body.contains("there is no profile `none`"),
        "{answer:?}"
    );
    rig.stop().await;
}

#[tokio::test]
async fn profile_can_require_more_approvals() {
    let Two { rig, a, b: _b } = Two::with(json!({ "approvals": "all" })).await;
    let mut free = Pipe::open(&rig, direct()).await;
    free.call("alpha__read", json!({})).await;
    let mut pipe = Pipe::open(&rig, under("work", direct())).await;
    let id = pipe.send_call("alpha__read", json!({})).await;
    let approval = pending(&rig).await;
    assert_eq!(a.calls_of("read").len(), 1);
    let path = format!("/api/v1/approvals/{approval}/approve");
    assert_eq!(rig.post(&path, &json!({})).await.status, 200);
    let result = pipe.finish(&id).await.json;
    assert_eq!(text_of(&result["result"]), "read was called");
    rig.stop().await;
}

#[tokio::test]
async fn questions_reach_clients_under_a_profile() {
    let Two { rig, a, b: _b } = Two::new().await;
    let mut owner = Pipe::open(&rig, direct()).await;
    let mut pipe = Pipe::open(&rig, under("work", direct())).await;
    owner.call("alpha__read", json!({})).await;
    a.change_tools(&[tool("read", "Reads."), tool("elicit", "Asks.")])
        .await;
    pipe.until_told(LIST_CHANGED).await;
    let answer = text_of(&pipe.call("alpha__elicit", json!({})).await);
    assert!(answer.contains("accept"), "{answer}");
    rig.stop().await;
}

#[tokio::test]
async fn waiting_call_is_refused_if_its_profile_changes() {
    let Two { rig, a, b } = Two::with(json!({ "approvals": "all" })).await;
    let mut pipe = Pipe::open(&rig, under("work", direct())).await;
    let id = pipe.send_call("alpha__read", json!({})).await;
    let approval = pending(&rig).await;
    let stricter = json!({ "approvals": "all", "tools": { "deny": ["*:read"] } });
    rig.reconfigure(&config(&a, &b, &stricter)).await;
    let path = format!("/api/v1/approvals/{approval}/approve");
    assert_eq!(rig.post(&path, &json!({})).await.status, 200);
    let answer = pipe.finish(&id).await.json;
    assert!(answer.to_string().contains("there is no tool"), "{answer}");
    assert!(a.calls_of("read").is_empty());
    rig.stop().await;
}

/// The ID of the first pending approval request.
async fn pending(rig: &Rig) -> String {
    let first = async || {
        let list = rig.get("/api/v1/approvals").await.json();
        let first = list["approvals"].get(0)?;
        Some(first["id"].as_str()?.to_owned())
    };
    until("an approval request", first).await
}

#[tokio::test]
async fn owner_sees_a_profile_as_its_clients() {
    let Two { rig, a: _a, b: _b } = Two::new().await;
    let list = rig.get("/api/v1/profiles").await.json();
    let work = &list["profiles"][0];
    assert_eq!((&work["name"], &work["tools"]), (&json!("work"), &json!(1)));
    assert_eq!(work["servers"], json!(["alpha"]));
    assert_eq!(work["shows"], "direct", "{work}");
    let shown = rig.get("/api/v1/profiles/work").await.json();
    let mut pipe = Pipe::open(&rig, under("work", direct())).await;
    for (method, list, member) in [
        ("tools/list", "tools", "toolDefinitions"),
        ("prompts/list", "prompts", "prompts"),
        ("resources/list", "resources", "resources"),
        (
            "resources/templates/list",
            "resourceTemplates",
            "resourceTemplates",
        ),
    ] {
        let result = pipe.result(method, json!({})).await;
        assert_eq!(shown[member], result[list], "{method}");
    }
    // Its clients see every tool.
    assert_eq!(shown["menu"], Value::Null);
    rig.get("/api/v1/profiles/wrk").await.problem(404);
    rig.stop().await;
}

#[tokio::test]
async fn owner_sees_the_menu_of_a_profile() {
    let work = json!({ "servers": ["alpha"], "view": "search" });
    let Two { rig, a: _a, b: _b } = Two::with(work).await;
    let shown = rig.get("/api/v1/profiles/work").await.json();
    let mut pipe = Pipe::open(&rig, under("work", configured())).await;
    let menu = pipe.result("tools/list", json!({})).await;
    assert_eq!(shown["menu"], menu["tools"]);
    let found = shown["toolDefinitions"].to_string();
    assert!(found.contains("\"alpha__read\""), "{found}");
    rig.stop().await;
}
