//! The schema matches the parser.

use serde_json::{Value, json};
use switchboard_config::{parse, schema};

/// Collects the schemas of all objects with named keys, each with a configuration that contains such an
/// object with an unknown key.
fn objects(schema: &Value, wrap: &dyn Fn(Value) -> Value, found: &mut Vec<(Value, Value)>) {
    if schema["properties"].is_object() {
        found.push((schema.clone(), wrap(json!({"no such key": 1}))));
    }
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        objects(property, &|inner| wrap(json!({name: inner})), found);
        for option in property["anyOf"].as_array().into_iter().flatten() {
            objects(option, &|inner| wrap(json!({name: inner})), found);
        }
    }
    if schema["additionalProperties"].is_object() {
        objects(
            &schema["additionalProperties"],
            &|inner| wrap(json!({"s": inner})),
            found,
        );
    }
}

#[test]
fn unknown_keys_fail_in_schema_and_parser() {
    let mut found = Vec::new();
    objects(&schema(), &|inner| inner, &mut found);
    assert_eq!(found.len(), 25);
    for (schema, text) in found {
        assert_eq!(schema["additionalProperties"], false);
        let problems = parse(&text.to_string(), "x").unwrap_err();
        assert!(
            problems
                .iter()
                .any(|problem| problem.message == "unknown key \"no such key\""),
            "{text}: {problems:?}"
        );
    }
}

#[test]
fn every_key_is_described() {
    let mut found = Vec::new();
    objects(&schema(), &|inner| inner, &mut found);
    for (schema, _) in found {
        for (name, property) in schema["properties"].as_object().unwrap() {
            let about = property["description"].as_str().unwrap();
            assert!(about.ends_with('.') && about.len() > 10, "{name}: {about}");
        }
    }
}

#[test]
fn bounds_of_schema_and_parser_match() {
    let server = &schema()["properties"]["mcpServers"]["additionalProperties"]["properties"];
    let mut checked = 0;
    for (name, property) in server.as_object().unwrap() {
        let (Some(min), Some(max)) = (property["minimum"].as_u64(), property["maximum"].as_u64())
        else {
            continue;
        };
        let accepted = |value: i128| {
            let text =
                format!(r#"{{"mcpServers": {{"s": {{"command": "a", "{name}": {value}}}}}}}"#);
            parse(&text, "x").is_ok()
        };
        assert!(accepted(min.into()) && accepted(max.into()), "{name}");
        assert!(
            !accepted(i128::from(min) - 1) && !accepted(i128::from(max) + 1),
            "{name}"
        );
        checked += 1;
    }
    assert!(checked >= 8, "{checked}");
}

#[test]
fn schema_requires_exactly_one_transport() {
    let server = &schema()["properties"]["mcpServers"]["additionalProperties"];
    let ways: Vec<_> = server["allOf"][0]["oneOf"]
        .as_array()
        .unwrap()
        .iter()
        .map(|way| way["required"][0].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(ways, ["command", "url", "serverUrl", "httpUrl", "image"]);
    for (at, way) in ways.iter().enumerate() {
        let one = json!({way: "http://a"});
        assert!(
            parse(&json!({"mcpServers": {"s": one}}).to_string(), "x").is_ok(),
            "{way}"
        );
        for other in &ways[..at] {
            let two = json!({way: "http://a", other: "http://a"});
            let text = json!({"mcpServers": {"s": two}}).to_string();
            assert!(parse(&text, "x").is_err(), "{way} and {other}");
        }
    }
}
