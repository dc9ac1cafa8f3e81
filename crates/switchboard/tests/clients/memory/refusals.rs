//! Arguments that the schemas of the tools forbid, and requests that cannot be fulfilled: results report them
//! by name.

use serde_json::{Value, json};
use switchboard_test_support::Tools;

use super::{Agent, At, contents};

use crate::support::{Kind, Place};

#[test]
fn invalid_arguments_are_named_to_typescript_v1() {
    misfits(Kind::TypescriptV1, false, At::Serve);
}

#[test]
fn invalid_arguments_are_named_to_typescript_v2() {
    misfits(Kind::TypescriptV2, true, At::Direct);
}

#[test]
fn invalid_arguments_are_named_to_python() {
    misfits(Kind::Python, false, At::Alone);
}

/// Tries every field of every tool with values that its schema forbids. The checkers of the SDKs agree that
/// they are invalid.
#[track_caller]
fn misfits(kind: Kind, modern: bool, at: At) {
    let Some(tools) = Tools::peers() else { return };
    let place = Place::remembering(tools);
    let mut agent = Agent::start(&place, kind, modern, at);
    let tools = agent.tools();
    assert_eq!(tools.len(), 17);
    for (tool, definition) in tools {
        let schema = &definition["inputSchema"];
        assert_eq!(definition["outputSchema"]["type"], "object", "{tool}");
        let fitting = fitting(schema);
        let is_fit = |agent: &mut Agent, value: &Value| {
            let judged = agent.does(&json!({ "do": "judge", "schema": schema, "value": value }));
            judged["valid"] == true
        };
        assert!(is_fit(&mut agent, &fitting), "{tool} {fitting}");
        for (field, args) in wrong(schema, &fitting) {
            assert!(!is_fit(&mut agent, &args), "{tool} {args}");
            let said = agent.refuses(&tool, args.clone());
            assert!(said.contains(&field), "{tool} {args}: {said}");
        }
    }
    let status = agent.gives("get_status", json!({}));
    let counts = (&status["memories"], &status["entities"]);
    assert_eq!(counts, (&json!(0), &json!(0)), "{status}");
    agent.leaves();
}

/// The smallest valid arguments.
fn fitting(schema: &Value) -> Value {
    let required = schema["required"].as_array().into_iter().flatten();
    let members = required.map(|name| {
        let name = name.as_str().unwrap();
        assert_eq!(schema["properties"][name]["type"], "string", "{name}");
        (name, json!("x"))
    });
    members.collect()
}

/// Invalid arguments, each with the name of the invalid member.
fn wrong(schema: &Value, fitting: &Value) -> Vec<(String, Value)> {
    let with = |name: &str, value: Value| {
        let mut args = fitting.clone();
        args[name] = value;
        (name.to_owned(), args)
    };
    let mut wrong = vec![
        with("nonsense_field", json!("x")),
        with("userId", json!("x")),
    ];
    for name in fitting.as_object().unwrap().keys() {
        let mut args = fitting.clone();
        args.as_object_mut().unwrap().remove(name);
        wrong.push((name.clone(), args));
    }
    for (name, field) in schema["properties"].as_object().unwrap() {
        let of = &field["type"];
        let is_nullable = of.as_array().is_some_and(|of| of.contains(&json!("null")));
        let others = match of.as_str() {
            Some("integer") => vec![json!("7"), json!(1.5), json!({})],
            Some("number") => vec![json!("7"), json!([0.5])],
            Some("boolean") => vec![json!("true"), json!(1)],
            Some("array") => vec![json!("x"), json!([7]), json!([{ "nome": "x" }])],
            Some("object") => vec![json!("{}"), json!([])],
            _ => vec![json!(7), json!(["x"]), json!({ "x": 1 })],
        };
        wrong.extend(others.into_iter().map(|value| with(name, value)));
        if !is_nullable {
            wrong.push(with(name, json!(null)));
        }
        if field["enum"].is_array() {
            wrong.push(with(name, json!("nonsense")));
        }
        for (bound, beyond) in [("minimum", -1.0), ("maximum", 1.0)] {
            if let Some(bound) = field[bound].as_f64() {
                wrong.push(with(name, json!(bound + beyond)));
            }
        }
    }
    wrong
}

#[test]
fn integers_may_have_a_decimal_point() {
    let Some(tools) = Tools::peers() else { return };
    let place = Place::remembering(tools);
    // Of the two languages, only Python distinguishes 5.0 from 5.
    let mut agent = Agent::start(&place, Kind::Python, false, At::Alone);
    agent.stores(json!({ "content": "One" }));
    for (tool, args) in [
        ("list_memories", json!({ "limit": 5.0, "offset": 0.0 })),
        ("get_valid", json!({ "limit": 5.0 })),
        ("recall", json!({ "query": "one", "limit": 5.0 })),
        ("search_memory", json!({ "query": "one", "limit": 5.0 })),
        ("get_related", json!({ "depth": 1.0, "limit": 5.0 })),
        ("consolidate_memory", json!({ "limit": 5.0 })),
        ("export_memory", json!({ "limit": 5.0 })),
    ] {
        agent.gives(tool, args);
    }
    let far = json!({ "offset": 18_446_744_073_709_551_615_u64 });
    assert_eq!(agent.gives("list_memories", far)["count"], 0);
    agent.leaves();
}

#[test]
fn impossible_requests_are_reported() {
    let Some(tools) = Tools::peers() else { return };
    let place = Place::remembering(tools);
    for (kind, at) in [
        (Kind::TypescriptV1, At::Direct),
        (Kind::Python, At::Serve),
        (Kind::PythonV1, At::Alone),
    ] {
        let mut agent = Agent::start(&place, kind, false, at);
        let id = agent.stores(json!({ "content": "Here" }));
        for (tool, args, part) in [
            (
                "store_memory",
                json!({ "content": " \n" }),
                "content is empty",
            ),
            (
                "store_memory",
                json!({ "content": "x", "valid_from": "2024-01-02", "valid_until": "2024-01-01" }),
                "valid_until is before valid_from",
            ),
            (
                "store_memory",
                json!({ "content": "x", "metadata": { "x": "x".repeat(70_000) } }),
                "metadata",
            ),
            ("recall", json!({ "query": "  " }), "query is empty"),
            ("search_memory", json!({ "query": "" }), "query is empty"),
            (
                "update_memory",
                json!({ "id": id, "content": "" }),
                "content is empty",
            ),
            (
                "invalidate",
                json!({ "id": id, "superseded_by": id }),
                "itself",
            ),
            (
                "invalidate",
                json!({ "id": id, "superseded_by": "none" }),
                "`none`",
            ),
            ("create_entity", json!({ "name": " " }), "name is empty"),
            (
                "create_relation",
                json!({ "from": "Nobody", "to": "Noone", "relation_type": "x" }),
                "no entity `Nobody`",
            ),
            (
                "get_related",
                json!({ "entity": "Nobody" }),
                "no entity `Nobody`",
            ),
            ("export_memory", json!({ "cursor": "here" }), "cursor"),
        ] {
            let said = agent.refuses(tool, args.clone());
            assert!(said.contains(part), "{tool} {args}: {said}");
        }
        for tool in ["get_memory", "update_memory", "invalidate", "delete_memory"] {
            let said = agent.refuses(tool, json!({ "id": "none" }));
            assert!(said.contains("no memory `none`"), "{tool}: {said}");
        }
        let call = agent.call("remember_me", json!({}));
        let said = agent.fails(&call);
        assert!(said.contains("remember_me"), "{said}");
        agent.leaves();
    }
}

#[test]
fn memories_of_another_scope_are_not_found() {
    let Some(tools) = Tools::peers() else { return };
    let place = Place::remembering(tools);
    for (kind, at) in [(Kind::TypescriptV1, At::Serve), (Kind::Python, At::Direct)] {
        let mut agent = Agent::start(&place, kind, false, at);
        let ours = json!({ "content": "Ours", "namespace": "ours", "user_id": "ada" });
        let ours = agent.stores(ours);
        let theirs = agent.stores(json!({ "content": "Theirs", "namespace": "theirs" }));
        for scope in [
            json!({ "namespace": "theirs" }),
            json!({ "namespace": "OURS" }),
            json!({ "user_id": "ada", "run_id": "1" }),
            json!({ "agent_id": "ada" }),
        ] {
            for tool in ["get_memory", "update_memory", "invalidate", "delete_memory"] {
                let mut args = scope.clone();
                args["id"] = json!(ours);
                let said = agent.refuses(tool, args);
                assert!(said.contains(&format!("no memory `{ours}`")), "{said}");
            }
            let mut args = scope.clone();
            args["query"] = json!("ours");
            let found = agent.gives("recall", args);
            assert!(!contents(&found).contains(&"Ours"), "{scope} {found}");
        }
        let args = json!({ "id": ours, "namespace": "ours", "superseded_by": theirs });
        let said = agent.refuses("invalidate", args);
        assert!(said.contains(&format!("no memory `{theirs}`")), "{said}");
        let kept = agent.gives("get_memory", json!({ "id": ours, "user_id": "ada" }));
        assert_eq!(kept["version"], 1, "{kept}");
        agent.leaves();
    }
}
