//! Every tool: its arguments, its results and its errors.

use serde_json::{Value, json};

use crate::rig::{Ended, Rig};

#[tokio::test]
async fn stored_memory_is_found_listed_and_read() {
    let folder = tempfile::tempdir().unwrap();
    let rig = Rig::open(folder.path());
    let id = rig
        .store(json!({
            "content": "Ada prefers green tea in the morning",
            "namespace": "home", "user_id": "ada", "importance": 0.9,
            "valid_from": "2024-01-01", "entities": ["Ada", {"name": "green tea", "entity_type": "drink"}],
            "metadata": {"source": "chat"},
        }))
        .await;
    rig.store(json!({ "content": "The build runs on Tuesdays", "namespace": "work" }))
        .await;
    let got = rig.call("get_memory", json!({ "id": id })).await;
    assert_eq!(got["content"], "Ada prefers green tea in the morning");
    assert_eq!(got["valid_from"], "2024-01-01T00:00:00Z");
    assert_eq!(got["metadata"]["source"], "chat");
    assert_eq!(got["entities"], json!(["Ada", "green tea"]));
    let found = rig
        .call(
            "recall",
            json!({ "query": "what does Ada drink? tea?", "namespace": "home" }),
        )
        .await;
    assert_eq!(found["count"], 1);
    let hit = &found["memories"][0];
    assert_eq!(hit["id"], id.as_str());
    let score = hit["score"].as_f64().unwrap();
    assert!(score > 0.0 && score <= 1.0, "{hit}");
    assert!(hit["channels"]["lexical"].is_number(), "{hit}");
    assert!(hit["channels"]["graph"].is_number(), "{hit}");
    let listed = rig.call("list_memories", json!({ "limit": 1 })).await;
    assert_eq!(listed["total"], 2);
    assert_eq!(listed["next_offset"], 1);
    assert_eq!(
        listed["memories"][0]["content"],
        "The build runs on Tuesdays"
    );
}

#[tokio::test]
async fn unknown_arguments_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let rig = Rig::open(folder.path());
    let listed = rig.request("tools/list", json!({})).await;
    let tools = listed["result"]["tools"].as_array().unwrap().clone();
    assert_eq!(tools.len(), 17);
    for tool in &tools {
        let name = tool["name"].as_str().unwrap();
        let mut arguments = json!({ "userId": "eve" });
        for required in tool["inputSchema"]["required"]
            .as_array()
            .unwrap_or(&vec![])
        {
            arguments[required.as_str().unwrap()] = json!("x");
        }
        let said = rig.refused(name, arguments).await;
        assert!(said.contains("userId"), "{name}: {said}");
        let kinds = ["readOnlyHint", "destructiveHint", "openWorldHint"];
        for hint in kinds {
            assert!(tool["annotations"][hint].is_boolean(), "{name}");
        }
        assert_eq!(tool["outputSchema"]["type"], "object", "{name}");
    }
    let said = rig.refused("recall", json!({ "query": 5 })).await;
    assert!(said.contains("query"), "{said}");
    let said = rig
        .refused(
            "store_memory",
            json!({ "content": "x", "valid_from": "soon" }),
        )
        .await;
    assert!(said.contains("valid_from"), "{said}");
    let said = rig
        .refused("store_memory", json!({ "content": "   " }))
        .await;
    assert!(said.contains("content"), "{said}");
    let unknown = rig.ended("remember", json!({})).await;
    assert!(matches!(unknown, Ended::Error(error) if error["code"] == -32602));
}

#[tokio::test]
async fn id_from_another_scope_is_unknown() {
    let folder = tempfile::tempdir().unwrap();
    let rig = Rig::open(folder.path());
    let id = rig
        .store(json!({ "content": "Secret of Ada", "user_id": "ada" }))
        .await;
    for (tool, more) in [
        ("get_memory", json!({})),
        ("update_memory", json!({ "content": "changed" })),
        ("invalidate", json!({})),
        ("delete_memory", json!({})),
    ] {
        let mut arguments = json!({ "id": id, "user_id": "eve" });
        arguments
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        let said = rig.refused(tool, arguments).await;
        assert!(said.contains("there is no memory"), "{tool}: {said}");
    }
    let kept = rig
        .call("get_memory", json!({ "id": id, "user_id": "ada" }))
        .await;
    assert_eq!(kept["content"], "Secret of Ada");
}

#[tokio::test]
async fn deleted_memory_is_gone_everywhere() {
    let folder = tempfile::tempdir().unwrap();
    let rig = Rig::open(folder.path());
    let id = rig
        .store(json!({ "content": "Zebulon keeps bees in Vermont" }))
        .await;
    assert_eq!(
        rig.contents("recall", json!({ "query": "bees" }))
            .await
            .len(),
        1
    );
    let deleted = rig.call("delete_memory", json!({ "id": id })).await;
    assert_eq!(deleted["deleted"], true);
    assert!(
        rig.contents("recall", json!({ "query": "bees" }))
            .await
            .is_empty()
    );
    let related = rig.call("get_related", json!({})).await;
    assert_eq!(related["entities"], json!([]));
    let said = rig.refused("delete_memory", json!({ "id": id })).await;
    assert!(said.contains("there is no memory"), "{said}");
}

#[tokio::test]
async fn memory_is_found_only_through_a_relation() {
    let folder = tempfile::tempdir().unwrap();
    let rig = Rig::open(folder.path());
    rig.store(json!({ "content": "The invoices are in the blue folder", "entities": ["Acme"] }))
        .await;
    rig.call(
        "create_entity",
        json!({ "name": "Grace Hopper", "entity_type": "person" }),
    )
    .await;
    let query = json!({ "query": "Grace Hopper" });
    assert!(rig.contents("recall", query.clone()).await.is_empty());
    let related = json!({ "from": "grace hopper", "to": "ACME", "relation_type": "works at" });
    let made = rig.call("create_relation", related.clone()).await;
    assert_eq!(
        (&made["from"], &made["to"]),
        (&json!("Grace Hopper"), &json!("Acme"))
    );
    assert_eq!(made["created"], true);
    assert_eq!(rig.call("create_relation", related).await["created"], false);
    let found = rig.call("recall", query).await;
    assert_eq!(
        found["memories"][0]["content"],
        "The invoices are in the blue folder"
    );
    assert!(found["memories"][0]["channels"]["lexical"].is_null());
    let around = rig
        .call("get_related", json!({ "entity": "Grace Hopper" }))
        .await;
    let names: Vec<_> = around["entities"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["name"])
        .collect();
    assert_eq!(names, [&json!("Grace Hopper"), &json!("Acme")]);
    assert_eq!(around["relations"][0]["relation_type"], "works at");
    let out = rig
        .call(
            "get_related",
            json!({ "entity": "Acme", "direction": "out" }),
        )
        .await;
    assert_eq!(out["entities"].as_array().unwrap().len(), 1);
    let said = rig
        .refused(
            "create_relation",
            json!({ "from": "Nobody", "to": "Acme", "relation_type": "knows" }),
        )
        .await;
    assert!(
        said.contains("Nobody") && said.contains("create_entity"),
        "{said}"
    );
}

#[tokio::test]
async fn duplicates_are_reported_previewed_and_merged() {
    let folder = tempfile::tempdir().unwrap();
    let rig = Rig::open(folder.path());
    let text = "The staging server listens on port 8443 behind the proxy";
    let first = rig
        .store(json!({ "content": text, "namespace": "ops" }))
        .await;
    // Ensures that the index is built.
    rig.contents("recall", json!({ "query": "staging" })).await;
    let second = rig
        .call(
            "store_memory",
            json!({ "content": format!("{text}."), "namespace": "ops" }),
        )
        .await;
    assert_eq!(second["similar"][0]["id"], first.as_str());
    rig.store(json!({ "content": text, "namespace": "other" }))
        .await;
    let preview = rig
        .call("consolidate_memory", json!({ "namespace": "ops" }))
        .await;
    assert_eq!(
        (&preview["count"], &preview["applied"]),
        (&json!(1), &json!(false))
    );
    let said = rig
        .refused(
            "consolidate_memory",
            json!({ "namespace": "ops", "apply": "plan-0" }),
        )
        .await;
    assert!(said.contains("out of date"), "{said}");
    let applied = rig
        .call(
            "consolidate_memory",
            json!({ "namespace": "ops", "apply": preview["plan"] }),
        )
        .await;
    assert_eq!(applied["applied"], true);
    let listed = rig
        .call("list_memories", json!({ "namespace": "ops" }))
        .await;
    assert_eq!(listed["total"], 1);
    let all = rig
        .call(
            "list_memories",
            json!({ "namespace": "ops", "include_invalid": true }),
        )
        .await;
    assert_eq!(all["total"], 2);
    let gone: Vec<&Value> = all["memories"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|one| one["reason"] == "consolidated")
        .collect();
    assert_eq!(gone.len(), 1);
    assert_eq!(gone[0]["superseded_by"], listed["memories"][0]["id"]);
    let again = rig
        .call("consolidate_memory", json!({ "namespace": "ops" }))
        .await;
    assert_eq!(again["count"], 0);
}

#[tokio::test]
async fn everything_survives_export_and_import() {
    let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let rig = Rig::open(one.path());
    let id = rig
        .store(
            json!({ "content": "Ada moved to Oslo", "user_id": "ada", "valid_from": "2024-05-01" }),
        )
        .await;
    rig.call(
        "update_memory",
        json!({ "id": id, "content": "Ada moved to Bergen" }),
    )
    .await;
    for n in 0..25 {
        rig.store(json!({ "content": format!("Note number {n}"), "namespace": "notes" }))
            .await;
    }
    for name in ["Ada", "Oslo"] {
        rig.call(
            "create_entity",
            json!({ "name": name, "user_id": "ada", "description": "known" }),
        )
        .await;
    }
    rig.call(
        "create_relation",
        json!({ "from": "Ada", "to": "Oslo", "relation_type": "left", "user_id": "ada" }),
    )
    .await;
    let mut lines = String::new();
    let mut cursor = None;
    loop {
        let mut wish = json!({ "limit": 7, "include_history": true });
        if let Some(cursor) = cursor {
            wish["cursor"] = cursor;
        }
        let page = rig.call("export_memory", wish).await;
        lines.push_str(page["data"].as_str().unwrap());
        match page.get("next_cursor") {
            Some(next) => cursor = Some(next.clone()),
            None => break,
        }
    }
    let copy = Rig::open(other.path());
    let trial = copy
        .call("import_memory", json!({ "jsonl": lines, "dry_run": true }))
        .await;
    assert_eq!(trial["memories"], 26);
    assert_eq!(copy.call("list_memories", json!({})).await["total"], 0);
    let done = copy.call("import_memory", json!({ "jsonl": lines })).await;
    assert_eq!(done["errors"], json!([]));
    assert_eq!(
        (&done["memories"], &done["relations"]),
        (&json!(26), &json!(1))
    );
    let there = rig
        .call("get_memory", json!({ "id": id, "history": true }))
        .await;
    let here = copy
        .call("get_memory", json!({ "id": id, "history": true }))
        .await;
    assert_eq!(here, there);
    let again = copy.call("import_memory", json!({ "jsonl": lines })).await;
    assert_eq!(
        (&again["memories"], &again["skipped"]),
        (&json!(0), &json!(27))
    );
    let copies = copy
        .call(
            "import_memory",
            json!({ "jsonl": lines, "on_conflict": "copy" }),
        )
        .await;
    assert_eq!(copies["memories"], 26);
    assert_eq!(copy.call("list_memories", json!({})).await["total"], 52);
    let replaced = copy
        .call(
            "import_memory",
            json!({ "jsonl": lines, "on_conflict": "replace" }),
        )
        .await;
    assert_eq!(replaced["memories"], 26);
    assert_eq!(copy.call("list_memories", json!({})).await["total"], 52);
    let related = copy
        .call("get_related", json!({ "entity": "Ada", "user_id": "ada" }))
        .await;
    assert_eq!(related["relations"][0]["relation_type"], "left");
}

#[tokio::test]
async fn file_of_the_reference_server_is_imported() {
    let folder = tempfile::tempdir().unwrap();
    let rig = Rig::open(folder.path());
    let lines = r#"{"type":"entity","name":"Ada","entityType":"person","observations":["likes tea","lives in Oslo"]}
{"type":"entity","name":"Acme","entityType":"company","observations":[]}
{"type":"relation","from":"Ada","to":"Acme","relationType":"works_at"}
not json
{"type":"relation","from":"Ada","to":"Nobody","relationType":"knows"}"#;
    let done = rig.call("import_memory", json!({ "jsonl": lines })).await;
    assert_eq!(
        (&done["memories"], &done["entities"], &done["relations"]),
        (&json!(2), &json!(2), &json!(1))
    );
    let wrong: Vec<_> = done["errors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["line"].clone())
        .collect();
    assert_eq!(wrong, [json!(4), json!(5)]);
    let found = rig.contents("recall", json!({ "query": "Ada tea" })).await;
    assert_eq!(found[0], "Ada: likes tea");
}

#[tokio::test]
async fn repeated_observations_of_reference_server_are_skipped() {
    let folder = tempfile::tempdir().unwrap();
    let rig = Rig::open(folder.path());
    let lines = r#"{"type":"entity","name":"Ada","entityType":"person","observations":["likes tea","likes tea"]}"#;
    let once = rig.call("import_memory", json!({ "jsonl": lines })).await;
    assert_eq!(
        (&once["memories"], &once["skipped"]),
        (&json!(1), &json!(1))
    );
    let again = rig.call("import_memory", json!({ "jsonl": lines })).await;
    assert_eq!(
        (&again["memories"], &again["skipped"]),
        (&json!(0), &json!(2))
    );
    assert_eq!(rig.call("list_memories", json!({})).await["total"], 1);
}

#[tokio::test]
async fn context_hits_are_distinguished_from_word_hits() {
    let folder = tempfile::tempdir().unwrap();
    let rig = Rig::open(folder.path());
    rig.store(json!({ "content": "Zebra stripes are black", "namespace": "a" }))
        .await;
    rig.store(json!({ "content": "lunch at noon", "namespace": "a" }))
        .await;
    let found = rig.call("recall", json!({ "query": "zebra" })).await;
    for memory in found["memories"].as_array().unwrap() {
        let has_word = memory["content"] == "Zebra stripes are black";
        assert_eq!(
            memory["channels"]["lexical"].is_number(),
            has_word,
            "{memory}"
        );
        assert_eq!(
            memory["channels"]["context"].is_number(),
            !has_word,
            "{memory}"
        );
    }
    let found = rig
        .contents("search_memory", json!({ "query": "zebra", "mode": "text" }))
        .await;
    assert_eq!(found, ["Zebra stripes are black"]);
    let said = rig
        .refused("recall", json!({ "query": "zebra", "namespace": "" }))
        .await;
    assert!(said.contains("namespace is empty"), "{said}");
}

#[tokio::test]
async fn markdown_and_digest_show_memories() {
    let folder = tempfile::tempdir().unwrap();
    let rig = Rig::open(folder.path());
    let id = rig.store(json!({ "content": "Line one\n# not a heading", "namespace": "n s", "importance": 1.0 })).await;
    let page = rig
        .call("export_memory", json!({ "format": "markdown" }))
        .await;
    assert!(
        page["data"]
            .as_str()
            .unwrap()
            .starts_with("- Line one # not a heading\n")
    );
    let read = |uri: String| rig.request("resources/read", json!({ "uri": uri }));
    for uri in ["memory://digest", "memory://digest?namespace=n%20s"] {
        let answer = read(uri.to_owned()).await;
        let text = answer["result"]["contents"][0]["text"]
            .as_str()
            .unwrap()
            .to_owned();
        assert!(
            text.contains("Line one") && text.contains("Memories: 1."),
            "{text}"
        );
    }
    let other = read("memory://digest?namespace=other".to_owned()).await;
    assert!(
        !other["result"]["contents"][0]["text"]
            .as_str()
            .unwrap()
            .contains("Line one")
    );
    let one = read(format!("memory://memories/{id}")).await;
    assert!(
        one["result"]["contents"][0]["text"]
            .as_str()
            .unwrap()
            .contains("Line one")
    );
    for wrong in [
        "memory://other",
        "memory://digest?user=x",
        "memory://memories/none",
    ] {
        assert_eq!(
            read(wrong.to_owned()).await["error"]["code"],
            -32602,
            "{wrong}"
        );
    }
    let prompt = json!({ "name": "memory_digest", "arguments": { "namespace": "n s" } });
    let prompt = rig.request("prompts/get", prompt).await;
    let text = prompt["result"]["messages"][0]["content"]["text"]
        .as_str()
        .unwrap();
    assert!(text.contains("Line one"), "{text}");
}

#[tokio::test]
async fn reset_needs_the_consent_of_a_person() {
    let folder = tempfile::tempdir().unwrap();
    let rig = Rig::open(folder.path());
    rig.store(json!({ "content": "Something" })).await;
    let ask = || {
        rig.request(
            "tools/call",
            json!({ "name": "reset_all_memory", "arguments": {} }),
        )
    };
    let answer = |state: Value, answer: Value| {
        rig.request(
            "tools/call",
            json!({ "name": "reset_all_memory", "arguments": {}, "requestState": state,
                    "inputResponses": { "confirm": answer } }),
        )
    };
    let asked = ask().await["result"].clone();
    assert_eq!(asked["resultType"], "input_required");
    let yes = json!({ "action": "accept", "content": { "forget": true } });
    // Consent to a question that was never asked does not count.
    let unasked = answer(json!("made-up"), yes.clone()).await;
    assert_eq!(unasked["result"]["resultType"], "input_required");
    for no in [
        json!({ "action": "decline" }),
        json!({ "action": "accept", "content": { "forget": false } }),
    ] {
        let asked = ask().await["result"]["requestState"].clone();
        let refused = answer(asked.clone(), no).await;
        assert_eq!(refused["result"]["isError"], true);
        // Nor does late consent to a question that was answered already.
        let late = answer(asked, yes.clone()).await;
        assert_eq!(late["result"]["resultType"], "input_required");
    }
    assert_eq!(rig.call("list_memories", json!({})).await["total"], 1);
    let done = answer(asked["requestState"].clone(), yes).await;
    assert_eq!(done["result"]["structuredContent"]["deleted"], 1);
    assert_eq!(rig.call("list_memories", json!({})).await["total"], 0);
    assert!(
        rig.contents("recall", json!({ "query": "something" }))
            .await
            .is_empty()
    );
}

#[tokio::test]
async fn scopes_are_listed_on_request() {
    let folder = tempfile::tempdir().unwrap();
    let rig = Rig::open(folder.path());
    for user in ["ada", "bob", "ada"] {
        let content = format!("Something about {user}");
        rig.store(json!({ "content": content, "user_id": user, "namespace": "work" }))
            .await;
    }
    let status = rig.call("get_status", json!({ "scopes": true })).await;
    let scopes = json!([
        { "namespace": "work", "user_id": "ada", "memories": 2 },
        { "namespace": "work", "user_id": "bob", "memories": 1 },
    ]);
    assert_eq!(status["scopes"], scopes);
    let status = rig.call("get_status", json!({})).await;
    assert!(status.get("scopes").is_none(), "{status}");
}
