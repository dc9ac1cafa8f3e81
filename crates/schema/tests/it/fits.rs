//! Arguments that are converted to their obvious meaning.

use proptest::prelude::*;
use serde_json::json;
use switchboard_schema::{Checker, Fit, limits};
use switchboard_test_support::assert_linear;
use switchboard_wire::Raw;

fn raw(text: &str) -> Raw {
    Raw::parse(text.to_owned()).unwrap()
}

fn checker(schema: &serde_json::Value) -> Checker {
    Checker::compile(&raw(&schema.to_string())).unwrap()
}

fn fit(schema: &serde_json::Value, arguments: &str) -> Option<Fit> {
    checker(schema).fit(&raw(arguments)).ok()
}

#[test]
fn convertible_values_are_no_mismatches() {
    let schema = json!({
        "type": "object",
        "properties": { "path": { "type": "string" }, "limit": { "type": "integer" } },
        "required": ["path"],
    });
    let wrong = checker(&schema)
        .fit(&raw(r#"{"limit":"2"}"#))
        .unwrap_err()
        .to_string();
    assert!(
        wrong.contains("path") && !wrong.contains("limit"),
        "{wrong}"
    );
}

#[test]
fn values_of_the_wrong_type_are_converted() {
    for (property, given, sent) in [
        (json!({ "type": "integer" }), r#""3""#, "3"),
        (json!({ "type": "integer" }), r#"" -3 ""#, "-3"),
        (json!({ "type": "number" }), r#""1.50""#, "1.50"),
        (json!({ "type": "boolean" }), r#""true""#, "true"),
        (json!({ "type": "boolean" }), r#""False""#, "false"),
        (json!({ "type": "string" }), "3", r#""3""#),
        (json!({ "type": "string" }), "1.50", r#""1.50""#),
        (json!({ "type": "string" }), "true", r#""true""#),
        (json!({ "type": ["integer", "null"] }), r#""3""#, "3"),
        (
            json!({ "anyOf": [{ "type": "integer" }, { "type": "null" }] }),
            r#""3""#,
            "3",
        ),
        (json!({ "$ref": "#/$defs/count" }), r#""3""#, "3"),
        (
            json!({ "allOf": [{ "$ref": "#/$defs/count" }] }),
            r#""3""#,
            "3",
        ),
        (
            json!({ "type": "array", "items": { "type": "integer" } }),
            r#"[1, "2" ]"#,
            "[1,2]",
        ),
        (
            json!({ "type": "array", "items": { "type": "string" } }),
            r#""[\"a\"]""#,
            r#"["a"]"#,
        ),
        (
            json!({ "type": "object" }),
            r#""{\"a\": 1.0}""#,
            r#"{"a": 1.0}"#,
        ),
        (
            json!({ "type": "object", "properties": { "n": { "type": "integer" } } }),
            r#"{"other":1e400,"n":"3"}"#,
            r#"{"other":1e400,"n":3}"#,
        ),
        (
            json!({ "type": "object", "additionalProperties": { "type": "integer" } }),
            r#"{"a":"3"}"#,
            r#"{"a":3}"#,
        ),
        (
            json!({
                "type": "object",
                "patternProperties": { "^n": { "type": "integer" } },
                "additionalProperties": { "type": "string" },
            }),
            r#"{"s":"3","n":"3"}"#,
            r#"{"s":"3","n":3}"#,
        ),
        // Several schemas may apply to one member.
        (
            json!({
                "type": "object",
                "properties": { "n": {} },
                "patternProperties": { "^n": { "type": "integer" } },
                "additionalProperties": false,
            }),
            r#"{"n":"3"}"#,
            r#"{"n":3}"#,
        ),
        (
            json!({
                "type": "array",
                "prefixItems": [{ "type": "string" }, { "type": "integer" }],
                "items": { "type": "boolean" },
            }),
            r#"["3","3","true"]"#,
            r#"["3",3,true]"#,
        ),
        // The form of drafts up to 2019-09.
        (
            json!({
                "type": "array",
                "items": [{ "type": "string" }, { "type": "integer" }],
                "additionalItems": { "type": "boolean" },
            }),
            r#"["3","3","true"]"#,
            r#"["3",3,true]"#,
        ),
    ] {
        let schema = json!({
            "type": "object",
            "properties": { "p": property },
            "$defs": { "count": { "type": "integer", "minimum": 1 } },
        });
        let found = fit(&schema, &format!(r#"{{"p":{given}}}"#)).unwrap();
        assert_eq!(
            found.arguments.as_str(),
            format!(r#"{{"p":{sent}}}"#),
            "{property}"
        );
        assert!(!found.notes.is_empty(), "{found:?}");
        assert!(found.notes[0].starts_with("arguments.p"), "{found:?}");
        assert_eq!(found.doubts, None);
    }
}

#[test]
fn values_with_another_meaning_are_refused() {
    for (property, given) in [
        (json!({ "type": "integer" }), r#""three""#),
        (json!({ "type": "integer" }), r#""007""#),
        (json!({ "type": "integer" }), r#""1.5""#),
        (json!({ "type": "integer" }), r#""""#),
        (json!({ "type": "integer" }), "true"),
        (json!({ "type": "integer", "minimum": 5 }), r#""3""#),
        (json!({ "type": "boolean" }), r#""yes""#),
        (json!({ "type": "boolean" }), "1"),
        (json!({ "type": "string", "enum": ["a"] }), "3"),
        (json!({ "type": "string" }), "null"),
        (json!({ "type": "string" }), "{}"),
        (
            json!({ "type": "array", "items": { "type": "integer" } }),
            r#""[\"a\"]""#,
        ),
        (json!({ "type": "array" }), r#""a,b""#),
        (json!({ "type": "object" }), r#""[]""#),
    ] {
        let schema = json!({ "type": "object", "properties": { "p": property } });
        assert_eq!(
            fit(&schema, &format!(r#"{{"p":{given}}}"#)),
            None,
            "{property} {given}"
        );
    }
    // Of duplicate members, none is chosen.
    let schema = json!({ "type": "object", "properties": { "p": { "type": "integer" } } });
    assert_eq!(fit(&schema, r#"{"p":1,"p":"3"}"#), None);
}

#[test]
fn unknown_members_may_be_aliases() {
    let schema = json!({
        "type": "object",
        "properties": { "path": { "type": "string" }, "n": { "type": "integer" } },
        "required": ["path"],
        "additionalProperties": false,
    });
    for given in [r#"{"path":"a","x":1}"#, r#"{"folder":"a"}"#] {
        let found = fit(&schema, given).unwrap();
        assert_eq!(found.arguments.as_str(), given);
        assert_eq!(found.notes, [""; 0]);
        let doubts = found.doubts.unwrap().to_string();
        assert!(doubts.contains("is unknown"), "{doubts}");
    }
    let found = fit(&schema, r#"{"folder":"a","n":"3"}"#).unwrap();
    assert_eq!(found.arguments.as_str(), r#"{"folder":"a","n":3}"#);
    // A misspelling is refused, even if the server would accept it.
    for slip in [r#"{"pth":"a"}"#, r#"{"Path":"a"}"#] {
        assert_eq!(fit(&schema, slip), None, "{slip}");
    }
    let found = fit(&schema, r#"{"path":"a","paths":1}"#).unwrap();
    assert!(found.doubts.is_some());
    // None of these members can be the path.
    assert_eq!(fit(&schema, "{}"), None);
    assert_eq!(fit(&schema, r#"{"n":3}"#), None);
}

#[test]
fn misspelt_short_names_are_refused() {
    let schema = |names: &[&str]| {
        let properties: serde_json::Map<_, _> = names
            .iter()
            .map(|name| ((*name).to_owned(), json!({})))
            .collect();
        json!({ "type": "object", "properties": properties, "additionalProperties": false })
    };
    assert_eq!(fit(&schema(&["id"]), r#"{"ids":1}"#), None);
    // The nearest name is present, so the other may be an alias.
    let found = fit(&schema(&["id", "idx"]), r#"{"id":1,"ids":2}"#).unwrap();
    assert!(found.doubts.is_some());
}

#[test]
fn hostile_schemas_and_arguments_take_bounded_time() {
    // Every level tries both alternatives of the next, on a value that fits neither.
    let mut nested = json!({ "type": "integer" });
    for _ in 0..80 {
        nested = json!({ "anyOf": [nested.clone(), { "items": nested }] });
        if nested.to_string().len() > limits::SCHEMA_BYTES / 4 {
            break;
        }
    }
    let cyclic = json!({
        "$defs": { "a": { "anyOf": [
            { "type": "array", "items": { "$ref": "#/$defs/a" } },
            { "type": "array", "items": { "$ref": "#/$defs/a" } },
            { "type": "integer" },
        ] } },
        "$ref": "#/$defs/a",
    });
    let wide = json!({ "type": "object", "additionalProperties": { "type": "integer" } });
    let members: Vec<_> = (0..100_000).map(|n| format!(r#""m{n}":"{n}""#)).collect();
    let deep = format!("{}\"x\"{}", "[".repeat(60), "]".repeat(60));
    for (schema, arguments) in [
        (nested, deep.clone()),
        (cyclic, deep),
        (wide, format!("{{{}}}", members.join(","))),
    ] {
        drop(fit(&schema, &arguments));
    }
}

/// Without a limit, each alternative around a list would read it again after a conversion.
#[test]
fn large_list_is_not_read_per_alternative() {
    let [one, many] = [1, 75].map(within_forms);
    let arguments = format!(r#"{{"n":"3","all":[0{}]}}"#, ",0".repeat(500_000));
    let work = |schema| drop(fit(schema, &arguments));
    assert_linear("a list", 1, || work(&one), || work(&many));
}

fn within_forms(forms: usize) -> serde_json::Value {
    let mut defs: serde_json::Map<_, _> = (0..forms)
        .map(|n| {
            let next = json!({ "anyOf": [{ "$ref": format!("#/$defs/a{}", n + 1) }] });
            (format!("a{n}"), next)
        })
        .collect();
    defs.insert(
        format!("a{forms}"),
        json!({ "properties": { "n": { "type": "integer" } } }),
    );
    json!({ "$defs": defs, "$ref": "#/$defs/a0" })
}

fn property() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(json!({ "type": "integer" })),
        Just(json!({ "type": ["number", "null"] })),
        Just(json!({ "type": "boolean" })),
        Just(json!({ "type": "string" })),
        Just(json!({ "enum": [1, "b", null] })),
        Just(json!({})),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            inner
                .clone()
                .prop_map(|of| json!({ "type": "array", "items": of })),
            (inner.clone(), inner.clone()).prop_map(|(first, rest)| {
                json!({ "type": "array", "prefixItems": [first], "items": rest })
            }),
            (inner.clone(), inner.clone()).prop_map(|(matching, rest)| {
                json!({
                    "type": "object",
                    "patternProperties": { "^a": matching },
                    "additionalProperties": rest,
                })
            }),
            (inner.clone(), inner.clone())
                .prop_map(|(one, other)| json!({ "anyOf": [one, other] })),
            inner.prop_map(|of| {
                json!({ "type": "object", "properties": { "a": of }, "required": ["a"] })
            }),
        ]
    })
}

fn value() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        Just(json!(true)),
        Just(json!(3)),
        Just(json!("3")),
        Just(json!("true")),
        Just(json!("[1]")),
        Just(json!("b")),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Into::into),
            inner.clone().prop_map(|inner| json!({ "a": inner })),
            (inner.clone(), inner).prop_map(|(a, b)| json!({ "a": a, "b": b })),
        ]
    })
}

proptest! {
    /// Arguments that are sent are allowed by the schema, and are unchanged if they were allowed as
    /// given.
    #[test]
    fn fitting_arguments_are_allowed(property in property(), value in value()) {
        let schema = json!({ "type": "object", "properties": { "p": property } });
        let checker = checker(&schema);
        let given = raw(&json!({ "p": value }).to_string());
        match checker.fit(&given) {
            Ok(fit) => {
                prop_assert!(fit.doubts.is_some() || checker.allows(&fit.arguments), "{fit:?}");
                prop_assert_eq!(fit.notes.is_empty(), fit.arguments == given);
                prop_assert_eq!(checker.allows(&given), fit.notes.is_empty() && fit.doubts.is_none());
            }
            Err(wrong) => {
                prop_assert!(!wrong.as_slice().is_empty());
                prop_assert!(!checker.allows(&given));
            }
        }
    }
}
