//! `retrieve_tools` and `describe_tool`: small answers to any query.

use serde_json::{Value, json};

use crate::{
    api_rig::Rig,
    mcp_rig::{
        LEGACY, MODERN, Pipe, REVISIONS, Web, names_of, result_text, search, text_of, under,
    },
    stage_rig::{Stage, tool},
};

/// The most bytes of an answer, unless the agent requests more.
const ANSWER_BYTES: usize = 1_536;

/// A gateway with one server that has these tools.
async fn with_tools(tools: &[Value]) -> (Stage, Rig) {
    let stage = Stage::new(tools);
    // Long definitions take time in a program that is not optimised.
    let config = json!({ "waitTimeoutMs": 30_000, "mcpServers": { "s": stage.entry() } });
    let rig = Rig::configured(config).await;
    rig.until_tools("s", tools.len()).await;
    (stage, rig)
}

fn usual() -> Vec<Value> {
    let mut tools = vec![
        json!({
            "name": "create_issue",
            "description": "Creates an issue in a GitHub repository. It takes a title and a body.",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "repository": { "type": "string" },
                    "title": { "type": "string" },
                    "body": { "type": "string" },
                },
                "required": ["repository", "title"],
            },
        }),
        json!({
            "name": "list_issues",
            "description": "Lists the issues of a GitHub repository.",
            "inputSchema": { "type": "object" },
            "annotations": { "readOnlyHint": true },
        }),
        tool("send_mail", "Sends a mail to somebody."),
        tool("weather", "查询城市的天气预报"),
        tool("translate", "文章を別の言語に翻訳します"),
    ];
    tools.extend((0..10).map(|n| {
        let description = format!("Closes the issue of kind {n} in a repository.");
        tool(&format!("close_issue_{n}"), &description)
    }));
    tools
}

#[tokio::test]
async fn query_finds_the_tool_and_its_parameters() {
    let (_stage, rig) = with_tools(&usual()).await;
    for revision in [LEGACY, MODERN] {
        let mut pipe = Pipe::open_as(&rig, search(), revision).await;
        let query = json!({ "query": "create an issue in a GitHub repository" });
        let found = pipe.call("retrieve_tools", query).await;
        assert_eq!(found.get("isError"), None, "{found}");
        assert_eq!(names_of(&found).len(), 5);
        let best = &found["structuredContent"]["tools"][0];
        assert_eq!(best["name"], "s:create_issue");
        assert!(
            best["summary"].as_str().unwrap().contains("issue"),
            "{best}"
        );
        assert!(
            best["parameters"].as_str().unwrap().contains("title"),
            "{best}"
        );
        assert!(best["score"].as_f64().unwrap() > 0.0, "{best}");
        let text = text_of(&found);
        assert_eq!(text.lines().count(), 5, "{text}");
        assert!(text.starts_with("s:create_issue("), "{text}");
    }
    rig.stop().await;
}

#[tokio::test]
async fn answer_is_small_in_every_revision() {
    let (_stage, rig) = with_tools(&usual()).await;
    for revision in REVISIONS {
        let web = Web::open(&rig, "/mcp/search", revision).await;
        let arguments = json!({ "query": "close an issue of a repository" });
        let call = json!({ "name": "retrieve_tools", "arguments": arguments });
        let answer = web.ask("tools/call", call).await;
        assert_eq!(names_of(&answer.json["result"]).len(), 5);
        let bytes = result_text(&answer.text).len();
        assert!(bytes <= ANSWER_BYTES, "{revision}: {bytes} bytes");
    }
    rig.stop().await;
}

#[tokio::test]
async fn answer_is_small_for_any_definitions() {
    let word = "gardening ".repeat(2_000);
    let properties: serde_json::Map<String, Value> = (0..200)
        .map(|n| {
            let name = format!("a_parameter_with_a_long_name_{n}");
            (
                name,
                json!({ "type": "string", "description": "What is it? ".repeat(9) }),
            )
        })
        .collect();
    let quotes = "\"\\👩".repeat(500);
    for (what, name, description) in [
        ("long descriptions", "gardening".to_owned(), word.clone()),
        (
            "long names",
            format!("gardening_{}", "x".repeat(100)),
            word.clone(),
        ),
        (
            "much to escape",
            "gardening".to_owned(),
            format!("gardening {quotes}"),
        ),
        (
            "no end of a word",
            "gardening".to_owned(),
            "gardening".repeat(5_000),
        ),
    ] {
        let tools: Vec<Value> = (0..9)
            .map(|n| {
                json!({
                    "name": format!("{name}_{n}"),
                    "description": description,
                    "inputSchema": { "type": "object", "properties": properties },
                })
            })
            .collect();
        let (_stage, rig) = with_tools(&tools).await;
        for revision in [LEGACY, MODERN] {
            let web = Web::open(&rig, "/mcp/search", revision).await;
            let call = json!({ "name": "retrieve_tools", "arguments": { "query": "gardening" } });
            let answer = web.ask("tools/call", call).await;
            let found = &answer.json["result"];
            assert!(found.is_object(), "{what} ({revision}): {}", answer.text);
            assert_eq!(names_of(found).len(), 5, "{what}");
            let bytes = result_text(&answer.text).len();
            assert!(bytes <= ANSWER_BYTES, "{what}: {bytes} bytes ({revision})");
        }
        rig.stop().await;
    }
}

#[tokio::test]
async fn query_can_be_filtered() {
    let (_stage, rig) = with_tools(&usual()).await;
    let other = Stage::new(&[tool("create_issue", "Creates an issue in a tracker.")]);
    let path = rig.config_file().to_owned();
    let mut config: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    config["mcpServers"]["other"] = other.entry();
    rig.reconfigure(&config).await;
    rig.until_tools("other", 1).await;
    let mut pipe = Pipe::open(&rig, search()).await;
    for limit in [1, 3, 12] {
        let asked = json!({ "query": "issue", "limit": limit });
        let found = pipe.call("retrieve_tools", asked).await;
        assert_eq!(names_of(&found).len(), limit, "{found}");
    }
    let asked = json!({ "query": "create an issue", "server": "other" });
    let found = pipe.call("retrieve_tools", asked).await;
    assert_eq!(names_of(&found), ["other:create_issue"]);
    let asked = json!({ "query": "issue", "read_only": true });
    let found = pipe.call("retrieve_tools", asked).await;
    assert_eq!(names_of(&found), ["s:list_issues"]);
    let asked = json!({ "query": "create an issue", "detail": "full", "limit": 1, "server": "s" });
    let found = pipe.call("retrieve_tools", asked).await;
    let best = &found["structuredContent"]["tools"][0];
    assert_eq!(best["name"], "s:create_issue");
    assert_eq!(best["inputSchema"], usual()[0]["inputSchema"]);
    assert_eq!(best["description"], usual()[0]["description"]);
    let asked = json!({ "query": "x", "server": "nobody" });
    let text = pipe.refusal("retrieve_tools", asked).await;
    assert!(text.contains("nobody"), "{text}");
    assert!(text.contains("other, s"), "{text}");
    rig.stop().await;
}

#[tokio::test]
async fn wrong_arguments_are_named_with_their_shape() {
    let (_stage, rig) = with_tools(&usual()).await;
    let mut pipe = Pipe::open(&rig, search()).await;
    for (tool, arguments, field) in [
        ("retrieve_tools", json!({}), "query"),
        ("retrieve_tools", json!({ "query": 7 }), "query"),
        ("retrieve_tools", json!({ "query": null }), "query"),
        (
            "retrieve_tools",
            json!({ "query": "a", "limit": 0 }),
            "limit",
        ),
        (
            "retrieve_tools",
            json!({ "query": "a", "limit": 51 }),
            "limit",
        ),
        (
            "retrieve_tools",
            json!({ "query": "a", "limit": "5" }),
            "limit",
        ),
        (
            "retrieve_tools",
            json!({ "query": "a", "detail": "some" }),
            "detail",
        ),
        (
            "retrieve_tools",
            json!({ "query": "a", "read_only": "yes" }),
            "read_only",
        ),
        (
            "retrieve_tools",
            json!({ "query": "a", "serve": "s" }),
            "serve",
        ),
        ("describe_tool", json!({}), "name"),
        ("describe_tool", json!({ "name": ["s:weather"] }), "name"),
        ("call_tool", json!({}), "name"),
        (
            "call_tool",
            json!({ "name": "s:weather", "arguments": "{}" }),
            "arguments",
        ),
        (
            "call_tool",
            json!({ "name": "s:weather", "max_bytes": 5 }),
            "max_bytes",
        ),
        (
            "call_tool",
            json!({ "name": "s:weather", "args": {} }),
            "args",
        ),
    ] {
        let text = pipe.refusal(tool, arguments.clone()).await;
        assert!(
            text.contains(&format!("arguments.{field}")),
            "{arguments}: {text}"
        );
        let shape = text.split("The expected shape").nth(1);
        let wanted = if tool == "retrieve_tools" {
            "query"
        } else {
            "name"
        };
        assert!(shape.is_some_and(|shape| shape.contains(wanted)), "{text}");
        assert!(text.len() < 3_000, "{}", text.len());
    }
    rig.stop().await;
}

#[tokio::test]
async fn empty_result_has_a_hint() {
    let (_stage, rig) = with_tools(&[]).await;
    let mut pipe = Pipe::open(&rig, search()).await;
    let asked = json!({ "query": "water the plants", "server": "s" });
    let found = pipe.call("retrieve_tools", asked).await;
    assert_eq!(found.get("isError"), None, "{found}");
    assert!(names_of(&found).is_empty());
    let text = text_of(&found);
    assert!(text.contains("No tool matches"), "{text}");
    assert!(text.contains("other words"), "{text}");
    rig.stop().await;
}

#[tokio::test]
async fn queries_in_other_scripts_find_matching_tools() {
    let (_stage, rig) = with_tools(&usual()).await;
    let mut pipe = Pipe::open(&rig, search()).await;
    for (query, best) in [
        ("天气", "s:weather"),
        ("我想查询天气预报", "s:weather"),
        ("翻訳", "s:translate"),
        ("言語の翻訳をしたい", "s:translate"),
    ] {
        let found = pipe.retrieve(query).await;
        assert_eq!(found[0], best, "{query}: {found:?}");
    }
    rig.stop().await;
}

#[tokio::test]
async fn any_query_gets_a_sensible_answer() {
    let (_stage, rig) = with_tools(&usual()).await;
    let mut pipe = Pipe::open(&rig, search()).await;
    pipe.retrieve("warm up").await;
    let long = "close the issue and then send a mail about it; ".repeat(2_200);
    let huge = "issue ".repeat(175_000);
    for query in [
        "",
        " ",
        "\n\t\r\n",
        "👩‍🚀🚀",
        "\u{0}\u{1}\u{7f}",
        "\u{202E}eussi",
        "the of and",
        "?!...",
        "SELECT * FROM tools; DROP TABLE tools",
        &"x".repeat(100_000),
        &"界".repeat(50_000),
        &long,
        &huge,
        &"界".repeat(340_000),
    ] {
        let found = pipe.call("retrieve_tools", json!({ "query": query })).await;
        let shown: String = query.chars().take(20).collect();
        let is_blank = query.trim().is_empty();
        let error = is_blank.then_some(&Value::Bool(true));
        assert_eq!(found.get("isError"), error, "{shown:?}: {found}");
        if is_blank {
            assert!(text_of(&found).contains("`query` is empty"), "{found}");
            continue;
        }
        assert!(names_of(&found).len() <= 5, "{shown:?}: {found}");
        assert!(!text_of(&found).is_empty(), "{shown:?}: {found}");
    }
    // The relevant words of a long query still count.
    let query = format!("send a mail to somebody, {}", "please ".repeat(10_000));
    assert_eq!(pipe.retrieve(&query).await[0], "s:send_mail");
    rig.stop().await;
}

#[tokio::test]
async fn answers_contain_no_raw_control_characters() {
    let stage = Stage::new(&[json!({
        "name": "paint",
        "description": "Paints\u{1b}[2J a wall\u{7}\u{9b}31m with\u{8} colour.",
        "inputSchema": {
            "type": "object",
            "properties": { "co\u{1b}[1mlour": { "type": "string" } },
        },
    })]);
    let entry = stage.entry_with(&json!({ "trust": "always" }));
    let rig = Rig::with(json!({ "s": entry })).await;
    rig.until_tools("s", 1).await;
    let mut pipe = Pipe::open(&rig, search()).await;
    // JSON escapes these characters, and full definitions are JSON; the summaries must not have them either.
    let obeyed = |c: char| c < ' ' && c != '\n';
    for arguments in [
        json!({ "query": "paint a wall" }),
        json!({ "query": "paint a wall", "detail": "full" }),
    ] {
        let found = pipe.call("retrieve_tools", arguments.clone()).await;
        assert_eq!(names_of(&found), ["s:paint"]);
        let text = text_of(&found);
        assert!(!text.contains(obeyed), "{arguments}: {text:?}");
        if arguments.get("detail").is_none() {
            let structure = found["structuredContent"]["tools"][0].as_object().unwrap();
            for (name, value) in structure {
                // Also no control characters that JSON does not escape.
                let text = value.as_str().unwrap_or_default();
                assert!(!text.chars().any(char::is_control), "{name}: {text:?}");
            }
        }
    }
    let described = pipe
        .call("describe_tool", json!({ "name": "s:paint" }))
        .await;
    let text = text_of(&described);
    assert!(!text.contains(obeyed), "{text:?}");
    rig.stop().await;
}

#[tokio::test]
async fn description_has_the_whole_definition() {
    let (_stage, rig) = with_tools(&usual()).await;
    let mut pipe = Pipe::open(&rig, search()).await;
    for name in ["s:create_issue", "s__create_issue"] {
        let described = pipe.call("describe_tool", json!({ "name": name })).await;
        let definition = &described["structuredContent"];
        assert_eq!(definition["name"], "s:create_issue");
        assert_eq!(definition["inputSchema"], usual()[0]["inputSchema"]);
        assert_eq!(definition["description"], usual()[0]["description"]);
        let text: Value = serde_json::from_str(&text_of(&described)).unwrap();
        assert_eq!(text, *definition);
    }
    let text = pipe
        .refusal("describe_tool", json!({ "name": "s:create_isue" }))
        .await;
    assert!(text.contains("s:create_issue"), "{text}");
    assert!(text.contains("retrieve_tools"), "{text}");
    rig.stop().await;
}

/// The answers to some searches under a profile, in a gateway whose servers have these tools.
async fn answers(servers: &[(&str, &[Value])]) -> Vec<Value> {
    let stages: Vec<_> = servers.iter().map(|(_, tools)| Stage::new(tools)).collect();
    let settings = json!({ "trust": "always" });
    let entries = servers.iter().zip(&stages);
    let entries: serde_json::Map<String, Value> = entries
        .map(|((name, _), stage)| ((*name).to_owned(), stage.entry_with(&settings)))
        .collect();
    let rig = Rig::configured(json!({
        "waitTimeoutMs": 30_000,
        "mcpServers": entries,
        "profiles": { "work": { "servers": ["s"], "tools": { "deny": ["s:hidden_*"] } } },
    }))
    .await;
    for (name, tools) in servers {
        rig.until_tools(name, tools.len()).await;
    }
    let mut pipe = Pipe::open(&rig, under("work", search())).await;
    let mut answers = Vec::new();
    for query in ["close an issue", "mail somebody", "weather", "quark"] {
        for detail in ["compact", "full"] {
            let asked = json!({ "query": query, "limit": 50, "detail": detail });
            answers.push(pipe.call("retrieve_tools", asked).await);
        }
    }
    rig.stop().await;
    answers
}

#[tokio::test]
async fn scores_do_not_depend_on_hidden_tools() {
    let alone = answers(&[("s", &usual())]).await;
    assert!(names_of(&alone[0]).len() > 5, "{}", alone[0]);
    // They make words of the queries frequent, and the average text longer.
    let words = "Closes the issue of somebody by mail, with a quark, for the weather. ".repeat(9);
    let secret = |name: &str| tool(name, &words);
    let others = ["quark", "mail", "issue"].map(secret);
    let beside = answers(&[("other", &others), ("s", &usual())]).await;
    assert_eq!(alone, beside);
    let mut more = usual();
    more.insert(0, secret("hidden_quark"));
    more.push(secret("hidden_mail"));
    let among = answers(&[("s", &more)]).await;
    assert_eq!(alone, among);
}
