//! Properties of all schemas and values.

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use switchboard_schema::{Checker, outline, shape};
use switchboard_wire::Raw;

fn raw(value: &Value) -> Raw {
    Raw::from_value(value).unwrap()
}

/// A schema, a value that it allows, and one that it does not.
fn pair() -> impl Strategy<Value = (Value, Value, Value)> {
    let leaf = prop_oneof![
        (any::<i32>(), 0_u32..1000).prop_map(|(n, more)| {
            let most = i64::from(n) + i64::from(more);
            (
                json!({"type":"integer","minimum":n,"maximum":most}),
                json!(n),
                json!(most + 1),
            )
        }),
        "[a-z]{1,9}".prop_map(|text| {
            let length = text.len();
            (
                json!({"type":"string","maxLength":length}),
                json!(text),
                json!(text.clone() + "x"),
            )
        }),
        "[a-z]{1,9}".prop_map(|text| (
            json!({"pattern": format!("^{text}$")}),
            json!(text),
            json!("0")
        )),
        (vec("[a-z]{1,5}", 1..5), any::<prop::sample::Index>()).prop_map(|(choices, which)| {
            (
                json!({"enum": choices}),
                json!(which.get(&choices)),
                json!("Other"),
            )
        }),
        any::<bool>().prop_map(|value| (
            json!({"type":["boolean","null"]}),
            json!(value),
            json!(1)
        )),
        (-1e9..1e9).prop_map(|number: f64| (json!({"const": number}), json!(number), json!(null))),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            (
                vec((("[a-z]{1,6}", any::<bool>()), inner.clone()), 1..4),
                any::<bool>()
            )
                .prop_map(object),
            (inner.clone(), 1_usize..4).prop_map(|((schema, good, bad), count)| {
                let mut wrong = vec![good.clone(); count];
                wrong[count - 1] = bad;
                (
                    json!({"type":"array","items":schema,"minItems":count}),
                    json!(vec![good; count]),
                    json!(wrong),
                )
            }),
            inner.clone().prop_map(|(schema, good, bad)| {
                (
                    json!({"anyOf":[{"type":"string","minLength":100_000}, schema]}),
                    good,
                    bad,
                )
            }),
            inner.clone().prop_map(|(schema, good, bad)| {
                (
                    json!({"allOf":[true, schema, {"$ref":"#/$defs/none"}]}),
                    good,
                    bad,
                )
            }),
            inner.clone().prop_map(|(schema, good, bad)| (
                json!({"not":{"not":schema}}),
                good,
                bad
            )),
            inner.prop_map(|(schema, good, bad)| (
                json!({"if":true,"then":schema,"else":false}),
                good,
                bad
            )),
        ]
    })
}

type Members = Vec<((String, bool), (Value, Value, Value))>;

fn object((members, closed): (Members, bool)) -> (Value, Value, Value) {
    let (mut properties, mut required) = (Map::new(), Vec::new());
    let (mut good, mut bad) = (Map::new(), Map::new());
    for ((name, is_required), (schema, fits, wrong)) in members {
        if properties.contains_key(&name) {
            continue;
        }
        properties.insert(name.clone(), schema);
        if is_required {
            required.push(name.clone());
        }
        good.insert(name.clone(), fits);
        bad.insert(name, wrong);
    }
    let schema = json!({"type":"object","properties":properties,"required":required,"additionalProperties":!closed});
    (schema, good.into(), bad.into())
}

/// Arbitrary JSON, with words that have a meaning in schemas.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        (-1e3..1e3).prop_map(|n: f64| n.into()),
        "[a-c#/$.*+()\\\\]{0,6}|\\PC{0,4}".prop_map(Into::into),
        prop::sample::select(vec![
            "object",
            "array",
            "integer",
            "string",
            "#",
            "#/$defs/a",
            "#/properties/a",
            "^a+$"
        ])
        .prop_map(Into::into),
    ];
    let names = prop::sample::select(vec![
        "type",
        "properties",
        "required",
        "additionalProperties",
        "patternProperties",
        "items",
        "prefixItems",
        "enum",
        "const",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "multipleOf",
        "minLength",
        "maxLength",
        "pattern",
        "format",
        "minItems",
        "uniqueItems",
        "contains",
        "minContains",
        "allOf",
        "anyOf",
        "oneOf",
        "not",
        "if",
        "then",
        "else",
        "$ref",
        "$defs",
        "dependentRequired",
        "dependencies",
        "propertyNames",
        "nullable",
        "default",
        "description",
        "$id",
        "$schema",
        "additionalItems",
        "a",
        "b",
    ]);
    leaf.prop_recursive(6, 60, 6, move |inner| {
        prop_oneof![
            1 => vec(inner.clone(), 0..5).prop_map(Into::into),
            3 => vec((names.clone(), inner), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn allowed_values_pass_and_others_are_rejected((schema, good, bad) in pair()) {
        let checker = Checker::compile(&raw(&schema)).unwrap();
        prop_assert_eq!(checker.check(&raw(&good)), Ok(()));
        let mismatches = checker.check(&raw(&bad)).unwrap_err();
        prop_assert!((1..=5).contains(&mismatches.as_slice().len()));
        for mismatch in mismatches.as_slice() {
            prop_assert!(mismatch.path.starts_with("arguments"));
            prop_assert!(mismatch.to_string().len() < 2000);
        }
        // The invalid value fits the negated schema.
        let checker = Checker::compile(&raw(&json!({"not": schema}))).unwrap();
        prop_assert_eq!(checker.check(&raw(&bad)), Ok(()));
    }

    #[test]
    fn arbitrary_schemas_and_values_do_not_panic(schema in any_json(), value in any_json(), budget in 0_usize..300) {
        for show in [outline, shape] {
            let shown = show(&raw(&schema), budget);
            prop_assert!(shown.text.len() <= budget, "{}", shown.text);
            prop_assert!(!shown.text.contains(|c: char| c.is_control() && c != '\n'));
        }
        if let Ok(checker) = Checker::compile(&raw(&schema)) {
            // The check is deterministic.
            prop_assert_eq!(checker.check(&raw(&value)), checker.check(&raw(&value)));
        }
    }

    #[test]
    fn whole_outline_does_not_change_with_larger_budget(schema in any_json(), budget in 0_usize..300) {
        let schema = raw(&schema);
        let small = outline(&schema, budget);
        if small.whole {
            prop_assert_eq!(outline(&schema, 100_000), small);
        }
    }
}
