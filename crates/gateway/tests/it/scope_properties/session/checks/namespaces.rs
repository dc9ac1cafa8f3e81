//! Two memories that differ only in other namespaces: a profile with a namespace gets the same answers from both, and
//! changes nothing of the others.

use std::collections::HashMap;

use super::{handles::client_of, *};

/// A gateway with a profile for each namespace, and one without.
async fn rig() -> Rig {
    Rig::configured(json!({
        "profiles": {
            "work": { "memory": { "namespace": "n0" } },
            "rest": { "memory": { "namespace": "n1" } },
            "free": {},
        },
        "memory": { "enabled": true },
        "approvals": { "notify": "off" },
    }))
    .await
}

/// Calls a tool of the memory as the owner.
async fn call(rig: &Rig, tool: &str, arguments: Value) -> Value {
    let answer = rig.call(&format!("{MEMORY}:{tool}"), arguments).await;
    let result = answer.json();
    assert_ne!(result["isError"], true, "{tool} {result}");
    result["structuredContent"].clone()
}

/// The fruits of each namespace. Some are in both, and the last ones in one only.
const FRUITS: [&str; 7] = [
    "apples", "pears", "plums", "figs", "dates", "limes", "kiwis",
];

/// Fills one namespace, or the memories without any. Returns the IDs.
async fn fill(rig: &Rig, namespace: Option<&str>, fruits: &[&str]) -> Vec<String> {
    let mut ids = Vec::new();
    let with = |mut arguments: Value| {
        if let Some(namespace) = namespace {
            arguments["namespace"] = json!(namespace);
        }
        arguments
    };
    for (day, fruit) in fruits.iter().enumerate() {
        let content = format!(
            "The market in Zarquonia sells {fruit} on the {}th",
            day + 10
        );
        let fact = with(json!({
            "content": content,
            "learned_at": format!("2026-01-{}T10:00:00Z", day + 10),
            "entities": ["Zarquonia", fruit],
        }));
        let stored = call(rig, "store_memory", fact).await;
        ids.push(stored["id"].as_str().unwrap().to_owned());
    }
    for fruit in fruits {
        let about = with(json!({ "name": fruit, "description": format!("{fruit} are sweet") }));
        let made = call(rig, "create_entity", about).await;
        ids.push(made["id"].as_str().unwrap().to_owned());
        let relation = json!({ "from": fruit, "to": "Zarquonia", "relation_type": "grows in" });
        call(rig, "create_relation", with(relation)).await;
    }
    ids
}

/// Everything in a namespace, or in all, as lines.
async fn export(rig: &Rig, namespace: Option<&str>) -> String {
    let mut wish = json!({ "include_history": true, "limit": 1_000 });
    if let Some(namespace) = namespace {
        wish["namespace"] = json!(namespace);
    }
    let exported = call(rig, "export_memory", wish).await;
    assert_eq!(exported["next_cursor"], Value::Null);
    exported["data"].as_str().unwrap().to_owned()
}

/// Calls of all tools. `KNOWN` is a memory of the namespace, `OTHER` one of another, `NEW` the latest one, `PLAN` the
/// plan of the last merge, `CURSOR` the next page.
fn script() -> Vec<(&'static str, Value)> {
    let market = "what does the market in Zarquonia sell";
    let mut script = Vec::new();
    for query in [market, "apples", "kiwis", "limes on the 15th", "Zarquonia"] {
        for limit in [1, 3, 50] {
            let about = json!({ "query": query, "limit": limit, "include_invalid": true });
            script.push(("recall", about));
        }
        for mode in ["text", "vector"] {
            script.push(("search_memory", json!({ "query": query, "mode": mode })));
        }
    }
    for (limit, offset) in [(2, 0), (2, 2), (200, 0), (200, 4), (200, 100)] {
        let page = json!({ "limit": limit, "offset": offset });
        script.extend([("list_memories", page.clone()), ("get_valid", page)]);
    }
    for entity in ["Zarquonia", "apples", "kiwis"] {
        let about = json!({ "entity": entity, "depth": 3 });
        script.push(("get_related", about));
    }
    script.extend([
        ("get_related", json!({})),
        ("get_related", json!({ "entity": "OTHER" })),
        (
            "export_memory",
            json!({ "limit": 2, "include_history": true }),
        ),
        ("export_memory", json!({ "limit": 2, "cursor": "CURSOR" })),
        ("export_memory", json!({ "format": "markdown" })),
        ("consolidate_memory", json!({ "similarity": 0.5 })),
        (
            "store_memory",
            json!({ "content": "The market in Zarquonia sells kiwis" }),
        ),
        ("get_memory", json!({ "id": "NEW", "history": true })),
        (
            "update_memory",
            json!({ "id": "NEW", "content": "The market sells kiwis" }),
        ),
        (
            "invalidate",
            json!({ "id": "NEW", "superseded_by": "OTHER" }),
        ),
        (
            "invalidate",
            json!({ "id": "NEW", "superseded_by": "KNOWN" }),
        ),
        ("create_entity", json!({ "name": "kiwis" })),
        (
            "create_relation",
            json!({ "from": "kiwis", "to": "limes", "relation_type": "like" }),
        ),
        (
            "create_relation",
            json!({ "from": "kiwis", "to": "OTHER", "relation_type": "like" }),
        ),
        ("get_related", json!({ "entity": "kiwis" })),
        ("delete_memory", json!({ "id": "KNOWN" })),
    ]);
    for tool in ["get_memory", "update_memory", "invalidate", "delete_memory"] {
        script.push((tool, json!({ "id": "OTHER" })));
    }
    script.push(("delete_memory", json!({ "id": "NEW" })));
    let merge = json!({ "similarity": 0.99 });
    let merged = json!({ "similarity": 0.99, "apply": "PLAN" });
    let twice = json!({ "content": "All markets are closed" });
    script.extend([("store_memory", twice.clone()), ("store_memory", twice)]);
    script.extend([
        ("consolidate_memory", merge),
        ("consolidate_memory", merged),
    ]);
    script.push(("recall", json!({ "query": market, "limit": 50 })));
    script.push(("list_memories", json!({ "include_invalid": true })));
    script
}

/// The answers to the script, with numbers in place of new IDs and without times of today.
async fn answers(client: &mut Client, [known, other]: [&str; 2]) -> Vec<String> {
    let mut names = HashMap::from([("KNOWN", known.to_owned()), ("OTHER", other.to_owned())]);
    let mut all = Vec::new();
    for (tool, arguments) in script() {
        let mut params = json!({ "name": tool, "arguments": arguments }).to_string();
        for (name, value) in &names {
            params = params.replace(&format!("\"{name}\""), &json!(value).to_string());
        }
        let params = serde_json::from_str(&params).unwrap();
        let answer = client.ask("tools/call", params).await;
        let told = &answer["result"]["structuredContent"];
        for (name, member) in [("PLAN", "plan"), ("CURSOR", "next_cursor"), ("NEW", "id")] {
            if let Some(value) = told[member].as_str()
                && (name != "NEW" || tool == "store_memory")
            {
                names.insert(name, value.to_owned());
            }
        }
        all.push(format!("{tool} {arguments}: {answer} {:?}", client.heard()));
    }
    all
}

/// A text with the order of their first occurrences in place of IDs, and without times that are not set.
fn normal(text: &str, known: &mut Vec<String>) -> String {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || "-:.".contains(letter);
    let mut all = String::new();
    for piece in text.split_inclusive(|letter| !is_part(letter)) {
        let word = piece.trim_end_matches(|letter| !is_part(letter));
        let is_hex = |part: &str| part.bytes().all(|byte| byte.is_ascii_hexdigit());
        let is_id = word.len() == 29 && word.split('-').all(is_hex);
        let is_time = word.starts_with("20") && word.ends_with('Z') && !word.starts_with(MONTH);
        if is_id {
            let at = known.iter().position(|id| id == word);
            let at = at.unwrap_or_else(|| {
                known.push(word.to_owned());
                known.len() - 1
            });
            all.push('#');
            all.push_str(&at.to_string());
        } else if is_time {
            all.push_str("TIME");
        } else if word.starts_with("plan-") {
            all.push_str("PLAN");
        } else {
            all.push_str(word);
        }
        all.push_str(&piece[word.len()..]);
    }
    all
}

/// The month of all times that the test sets.
const MONTH: &str = "2026-01-";

/// Everything but the namespace `n0`, as lines.
async fn of_others(rig: &Rig) -> Vec<String> {
    let all = export(rig, None).await;
    let others = all
        .lines()
        .filter(|line| !line.contains(r#""namespace":"n0""#));
    others.map(str::to_owned).collect()
}

#[tokio::test]
async fn other_namespaces_change_no_answer() {
    let here = rig().await;
    let known = fill(&here, Some("n0"), &FRUITS[..5]).await;
    let part = export(&here, Some("n0")).await;
    let others = fill(&here, Some("n1"), &FRUITS[2..]).await;
    fill(&here, None, &FRUITS[4..]).await;
    let there = rig().await;
    call(&there, "import_memory", json!({ "jsonl": part })).await;
    let before = of_others(&here).await;
    for (turn, revision) in REVISIONS.into_iter().enumerate() {
        let other = &others[turn];
        let known = [&*known[turn], other];
        let mut all = Vec::new();
        for rig in [&here, &there] {
            let mut client = client_of(rig, (Some("work"), None), Some(MEMORY), revision).await;
            let list = client.ask("tools/list", json!({})).await;
            let tools = list["result"]["tools"].as_array().unwrap().iter();
            let tools: BTreeSet<_> = tools.map(|tool| tool["name"].as_str().unwrap()).collect();
            let used = script().into_iter().map(|(tool, _)| tool);
            assert_eq!(used.collect::<BTreeSet<_>>(), tools, "all tools are tried");
            all.push(answers(&mut client, known).await);
        }
        let (theirs, ours) = (all.pop().unwrap(), all.pop().unwrap());
        let [mut known_here, mut known_there] = [Vec::new(), Vec::new()];
        for (ours, theirs) in ours.iter().zip(&theirs) {
            let ours = normal(ours, &mut known_here);
            assert_eq!(ours, normal(theirs, &mut known_there), "{revision}");
        }
    }
    assert_eq!(of_others(&here).await, before);
    assert!(before.len() > FRUITS.len(), "{before:?}");
    let mut free = client_of(&here, (Some("free"), None), Some(MEMORY), MODERN).await;
    let list = json!({ "name": "list_memories", "arguments": {} });
    let seen = free.ask("tools/call", list).await["result"]["structuredContent"].clone();
    let all = call(&here, "list_memories", json!({})).await;
    assert_eq!(
        seen["total"], all["total"],
        "without a namespace, it has all"
    );
    here.stop().await;
    there.stop().await;
}
