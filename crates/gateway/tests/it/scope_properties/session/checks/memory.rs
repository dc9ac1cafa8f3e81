//! A profile that is confined to a namespace of the memory.

use super::{
    handles::{altered, client_of},
    *,
};

/// The name of a tool of the memory in this view, and the arguments with it.
fn of_memory(one: bool, tool: &str, arguments: &Value) -> Value {
    if one {
        return json!({ "name": tool, "arguments": arguments });
    }
    let inner = json!({ "name": format!("{MEMORY}:{tool}"), "arguments": arguments });
    json!({ "name": "call_tool", "arguments": inner })
}

/// Two namespaces of the memory, with the same subject.
struct Namespaces {
    rig: Rig,
    /// For each: its secret, the ID of its memory, and that of its entity.
    known: Vec<[String; 3]>,
}

const SUBJECT: &str = "Zarquonia";

impl Namespaces {
    async fn new(dice: &mut Dice) -> Self {
        let rig = Rig::configured(json!({
            "profiles": {
                "work": { "memory": { "namespace": "n0" } },
                "rest": { "memory": { "namespace": "n1" } },
            },
            "memory": { "enabled": true },
            "approvals": { "notify": "off" },
        }))
        .await;
        let mut known = Vec::new();
        for namespace in ["n0", "n1"] {
            let secret = dice.word(ITEM_LETTERS);
            let content = format!("The planet {SUBJECT} sells the fruit {secret}");
            let entity = json!({ "name": SUBJECT, "description": secret, "namespace": namespace });
            let entity = rig.call("memory:create_entity", entity).await.json();
            let entities = json!([SUBJECT, secret]);
            let fact = json!({ "content": content, "namespace": namespace, "entities": entities });
            let fact = rig.call("memory:store_memory", fact).await.json();
            let id = |of: &Value| {
                let id = of["structuredContent"]["id"].as_str();
                id.unwrap_or_else(|| panic!("{of}")).to_owned()
            };
            known.push([secret, id(&fact), id(&entity)]);
        }
        Self { rig, known }
    }
}

/// Calls of all tools that read, and of one that stores nearly the same as another namespace has.
fn queries() -> Vec<(&'static str, Value)> {
    let about = json!({ "query": format!("the fruit of {SUBJECT}") });
    vec![
        ("recall", about.clone()),
        ("search_memory", about.clone()),
        ("list_memories", json!({ "include_invalid": true })),
        ("get_valid", json!({})),
        ("get_related", json!({})),
        ("get_related", json!({ "entity": SUBJECT, "depth": 3 })),
        ("consolidate_memory", json!({ "similarity": 0.5 })),
        ("export_memory", json!({ "include_history": true })),
        ("export_memory", json!({ "format": "markdown" })),
        ("create_entity", json!({ "name": SUBJECT })),
        (
            "store_memory",
            json!({ "content": format!("The planet {SUBJECT} sells the fruit") }),
        ),
    ]
}

/// Requests that name a memory or an entity.
fn by_id() -> Vec<(&'static str, Value)> {
    vec![
        ("get_memory", json!({ "id": "NAME" })),
        ("get_memory", json!({ "id": "NAME", "history": true })),
        ("update_memory", json!({ "id": "NAME", "content": "gone" })),
        ("invalidate", json!({ "id": "NAME" })),
        ("delete_memory", json!({ "id": "NAME" })),
        ("get_related", json!({ "entity": "NAME" })),
        (
            "create_relation",
            json!({ "from": "NAME", "to": SUBJECT, "relation_type": "is" }),
        ),
    ]
}

/// The tools of the memory that take no namespace.
const UNCONFINED: [&str; 3] = ["get_status", "reset_all_memory", "import_memory"];

/// Items of the memory that take no namespace, and missing ones.
fn unconfined(one: bool, revision: &str, foreign: &str) -> Vec<(&'static str, Value, [String; 2])> {
    let before = |prefix: &str, name: &str| {
        let prefix = if one { "" } else { prefix };
        format!("{prefix}{name}")
    };
    let named = |name: &str| before("memory__", name);
    let addressed = |uri: &str| before("switchboard://memory/", uri);
    let prompts = ["memory_digest", "memory_dogest"].map(named);
    let of = json!({ "type": "ref/prompt", "name": "NAME" });
    let argument = json!({ "name": "namespace", "value": "" });
    let completed = json!({ "ref": of, "argument": argument });
    let mut all = vec![
        ("prompts/get", json!({ "name": "NAME" }), prompts.clone()),
        ("completion/complete", completed, prompts),
    ];
    let fact = format!("memory://memories/{foreign}");
    for [hidden, missing] in [
        ["memory://digest", "memory://dogest"],
        [
            "memory://digest?namespace=n1",
            "memory://dogest?namespace=n1",
        ],
        [&fact, &altered(&fact)],
    ] {
        let uris = [addressed(hidden), addressed(missing)];
        let uri = json!({ "uri": "NAME" });
        all.push(("resources/read", uri.clone(), uris.clone()));
        if revision != MODERN {
            all.push(("resources/subscribe", uri, uris));
        }
    }
    for hidden in UNCONFINED {
        let call = json!({ "name": "NAME", "arguments": {} });
        let missing = "bcdfghjklmnpqrstvw".get(..hidden.len()).unwrap();
        all.push(("tools/call", call, [named(hidden), named(missing)]));
    }
    all
}

/// The text of an answer without a suggestion, which depends on how similar a name is to visible ones.
fn without_hint(answer: &Value) -> String {
    let mut answer = answer.clone();
    let error = &mut answer["error"];
    let hint = error["data"]["hint"].as_str().unwrap_or_default();
    if hint.starts_with("did you mean") {
        for hidden in UNCONFINED {
            assert!(!hint.contains(&format!("__{hidden}`")), "{hint}");
        }
        let message = error["message"].as_str().unwrap();
        error["message"] = json!(message.replace(&format!("; {hint}"), ""));
        error.as_object_mut().unwrap().remove("data");
    }
    answer.to_string()
}

#[tokio::test]
async fn namespaced_profile_has_its_memories_only() {
    let mut dice = Dice::new(31);
    let Namespaces { rig, known } = Namespaces::new(&mut dice).await;
    let held = token(&rig, "held", Some("work"), &[]).await;
    let [secret, fact, entity] = &known[1];
    for (realm, one, revision) in [(Some("work"), None), (None, Some(&*held))]
        .into_iter()
        .flat_map(|realm| [false, true].map(|one| (realm, one)))
        .flat_map(|(realm, one)| REVISIONS.map(|revision| (realm, one, revision)))
    {
        let view = one.then_some(MEMORY);
        let mut client = client_of(&rig, realm, view, revision).await;
        let about = format!("{realm:?} {one} {revision}");
        for (tool, arguments) in queries() {
            let call = of_memory(one, tool, &arguments);
            let answer = client.ask("tools/call", call).await;
            let is_done = answer["result"]["isError"] != true && answer["error"].is_null();
            assert!(is_done, "{about} {tool}: {answer}");
            let text = format!("{answer} {:?}", client.heard());
            for hidden in [&**secret, fact, entity, "n1"] {
                assert!(!text.contains(hidden), "{about} {tool}: {text}");
            }
            let mut other = arguments.clone();
            other["namespace"] = json!("n1");
            let call = of_memory(one, tool, &other);
            let answer = client.ask("tools/call", call).await;
            let answer = answer.to_string();
            let expected = "`namespace` is not an argument of this tool";
            assert!(answer.contains(expected), "{about} {tool}: {answer}");
        }
        for (tool, arguments) in by_id() {
            for id in [fact, entity] {
                let call = of_memory(one, tool, &arguments);
                let of_theirs = client.answer("tools/call", &call, id).await;
                let of_missing = client.answer("tools/call", &call, &altered(id)).await;
                assert_eq!(of_theirs, of_missing, "{about} {tool}");
            }
        }
        for (method, params, [hidden, missing]) in unconfined(one, revision, fact) {
            let mut answers = Vec::new();
            for name in [&hidden, &missing] {
                let answer = client.answer(method, &params, name).await;
                // The error for a resource names it as its server does.
                let (_, own) = name.split_once("memory/").unwrap_or(("", name));
                answers.push(without_hint(&answer).replace(own, "NAME"));
            }
            assert_eq!(answers[0], answers[1], "{about} {method} {hidden}");
        }
    }
    let wish = json!({ "id": fact, "namespace": "n1" });
    let kept = rig.call("memory:get_memory", wish).await.json();
    assert_eq!(kept["structuredContent"]["version"], 1, "{kept}");
    rig.stop().await;
}
