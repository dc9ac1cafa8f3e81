//! Forms of questions to the user.

use proptest::prelude::*;
use serde_json::{Value, json};
use switchboard_approvals::form::{Choice, Form, Format, Kind, Mode};
use switchboard_wire::Raw;

use crate::raw;

fn form(properties: &Value, required: &Value) -> Form {
    let params = json!({
        "message": "Please", "requestedSchema": {"type": "object", "properties": properties, "required": required},
    });
    Form::read(&Raw::from_value(&params).unwrap())
}

fn url(url: &str) -> Form {
    let params = json!({"mode": "url", "message": "Please", "url": url});
    Form::read(&Raw::from_value(&params).unwrap())
}

fn choices(values: &[(&str, &str)]) -> Vec<Choice> {
    let choice = |(value, title): &(&str, &str)| Choice {
        value: (*value).to_owned(),
        title: (*title).to_owned(),
    };
    values.iter().map(choice).collect()
}

#[test]
fn every_kind_of_field_is_parsed() {
    let ab = &[("a", "A"), ("b", "B")];
    let plain = &[("a", "a"), ("b", "b")];
    let many = |options, min, max| Kind::Choices { options, min, max };
    let titled = json!([{"const": "a", "title": "A"}, {"const": "b", "title": "B"}]);
    for (property, expected) in [
        (
            json!({"type": "string", "format": "email", "minLength": 3, "maxLength": 9, "pattern": "x"}),
            Kind::Text {
                format: Some(Format::Email),
                min: Some(3),
                max: Some(9),
                pattern: Some("x".to_owned()),
            },
        ),
        (
            json!({"type": "integer", "minimum": 1, "maximum": 2.5}),
            Kind::Number {
                integer: true,
                min: Some(1.0),
                max: Some(2.5),
            },
        ),
        (
            json!({"type": "number"}),
            Kind::Number {
                integer: false,
                min: None,
                max: None,
            },
        ),
        (json!({"type": "boolean"}), Kind::Flag),
        (
            json!({"type": "string", "enum": ["a", "b"]}),
            Kind::Choice {
                options: choices(plain),
            },
        ),
        (
            json!({"type": "string", "enum": ["a", "b"], "enumNames": ["A", "B"]}),
            Kind::Choice {
                options: choices(ab),
            },
        ),
        (
            json!({"type": "string", "enum": ["a", "b"], "enumNames": ["A"]}),
            Kind::Choice {
                options: choices(plain),
            },
        ),
        (
            json!({"type": "string", "oneOf": titled}),
            Kind::Choice {
                options: choices(ab),
            },
        ),
        (
            json!({"type": "array", "minItems": 1, "maxItems": 2, "items": {"type": "string", "enum": ["a", "b"]}}),
            many(choices(plain), Some(1), Some(2)),
        ),
        (
            json!({"type": "array", "items": {"anyOf": titled}}),
            many(choices(ab), None, None),
        ),
    ] {
        let form = form(&json!({"x": property}), &json!(["x"]));
        assert_eq!(form.fields()[0].kind, expected, "{property}");
        assert!(form.fields()[0].required);
    }
}

#[test]
fn answers_are_validated() {
    let properties = json!({
        "name": {"type": "string", "minLength": 2, "maxLength": 4},
        "code": {"type": "string", "pattern": "^[a-z]+$"},
        "mail": {"type": "string", "format": "email"},
        "age": {"type": "integer", "minimum": 0, "maximum": 150},
        "ok": {"type": "boolean"},
        "size": {"type": "string", "enum": ["s", "l"]},
        "tags": {"type": "array", "minItems": 1, "maxItems": 2, "items": {"type": "string", "enum": ["a", "b", "c"]}},
        "a/b": {"type": "string", "maxLength": 1},
    });
    let form = form(&properties, &json!(["name"]));
    let problems = |content: &str| match form.check(Some(&raw(content))) {
        Ok(_) => Vec::new(),
        Err(problems) => problems.into_iter().map(|problem| problem.path).collect(),
    };
    for (content, expected) in [
        (r#"{"name":"ann"}"#, &[][..]),
        (r#"{"name":"äöü€"}"#, &[]),
        (
            r#"{"name":"ann","age":1e2,"ok":false,"size":"l","tags":["a","c"],"mail":"a@b.org"}"#,
            &[],
        ),
        ("{}", &["/name"]),
        (r#"{"name":"a"}"#, &["/name"]),
        (r#"{"name":"abcde"}"#, &["/name"]),
        (r#"{"name":7}"#, &["/name"]),
        (r#"{"name":"ann","code":"A"}"#, &["/code"]),
        (r#"{"name":"ann","mail":"a"}"#, &["/mail"]),
        (r#"{"name":"ann","age":1.5}"#, &["/age"]),
        (r#"{"name":"ann","age":-1}"#, &["/age"]),
        (r#"{"name":"ann","age":"7"}"#, &["/age"]),
        (r#"{"name":"ann","ok":"true"}"#, &["/ok"]),
        (r#"{"name":"ann","size":"m"}"#, &["/size"]),
        (r#"{"name":"ann","tags":[]}"#, &["/tags"]),
        (r#"{"name":"ann","tags":["a","b","c"]}"#, &["/tags"]),
        (r#"{"name":"ann","tags":["x"]}"#, &["/tags"]),
        (r#"{"name":"ann","a/b":"xx"}"#, &["/a~1b"]),
        (r#"{"name":"ann","nmae":"x","age":"x"}"#, &["/age", "/nmae"]),
        (r#"{"name":"ann","name":"bob"}"#, &["/name"]),
        ("[]", &[""]),
    ] {
        assert_eq!(problems(content), expected, "{content}");
    }
    assert_eq!(form.check(None).unwrap_err()[0].message, "is required");
    let unknown = form
        .check(Some(&raw(r#"{"name":"ann","agee":1}"#)))
        .unwrap_err();
    assert_eq!(
        unknown[0].message,
        "is not a field of the form; did you mean `age`?"
    );
}

#[test]
fn defaults_fill_in_missing_answers() {
    let properties = json!({
        "a": {"type": "string", "default": "x"},
        "b": {"type": "number", "default": 1.5},
        "c": {"type": "array", "items": {"enum": ["p", "q"]}, "default": ["q"]},
        "d": {"type": "integer", "default": "seven"},
        "e": {"type": "boolean", "default": false},
    });
    let form = form(&properties, &json!(["a"]));
    let answer = |content| form.check(Some(&raw(content))).unwrap().to_string();
    assert_eq!(answer("{}"), r#"{"a":"x","b":1.5,"c":["q"],"e":false}"#);
    assert_eq!(
        answer(r#"{"b":2.50,"a":""}"#),
        r#"{"b":2.50,"a":"","c":["q"],"e":false}"#
    );
}

#[test]
fn requests_for_secrets_give_warnings() {
    for property in [
        json!({"password": {"type": "string"}}),
        json!({"x": {"type": "string", "title": "API key"}}),
        json!({"x": {"type": "string", "description": "Ihr Passwort"}}),
        json!({"x": {"type": "string", "format": "password"}}),
        json!({"userPin": {"type": "integer"}}),
    ] {
        let warnings = form(&property, &json!([])).warnings();
        assert_eq!(warnings.len(), 1, "{property}");
        assert!(warnings[0].ends_with("` seems to ask for a password or key"));
    }
    assert!(
        form(&json!({"name": {"type": "string"}}), &json!([]))
            .warnings()
            .is_empty()
    );
    let params =
        raw(r#"{"message":"请输入密码","requestedSchema":{"type":"object","properties":{}}}"#);
    assert_eq!(
        Form::read(&params).warnings(),
        ["the message mentions a secret: `密码`"]
    );
}

#[test]
fn unsupported_schema_is_answered_in_json() {
    for schema in [
        r#"{"type":"array"}"#,
        r#"{"type":"object","properties":{"a":{"type":"object"}}}"#,
        r#"{"type":"object","properties":{"a":{"enum":["x"]}}}"#,
        r#"{"type":"object","properties":{"a":{"type":"string","enum":[1]}}}"#,
        r#"{"type":"object","properties":{"a":{"type":"array","items":{"type":"string"}}}}"#,
        r#"{"type":"object","properties":{},"required":["a"]}"#,
        r#"{"type":"object","properties":{"a":{"type":"boolean"},"a":{"type":"string"}}}"#,
        "7",
    ] {
        let form = Form::read(&raw(&format!(
            r#"{{"message":"m","requestedSchema":{schema}}}"#
        )));
        assert!(
            matches!(form.mode, Mode::Raw { .. }),
            "{schema}: {:?}",
            form.mode
        );
        assert!(form.warnings()[0].starts_with("the form cannot be shown: "));
    }
    let nested = Form::read(&raw(
        r#"{"message":"m","requestedSchema":{"type":"object","properties":{"a":{"type":"object",
        "properties":{"password":{"type":"integer"}}}}}}"#,
    ));
    assert_eq!(
        nested.warnings()[1],
        "the form seems to ask for a password or key"
    );
    assert!(nested.check(Some(&raw(r#"{"a":{"password":1}}"#))).is_ok());
    let problems = nested
        .check(Some(&raw(r#"{"a":{"password":"x"}}"#)))
        .unwrap_err();
    assert_eq!(problems[0].path, "/a/password");
    assert!(matches!(Form::read(&raw("{}")).mode, Mode::Raw { .. }));
    assert!(matches!(Form::read(&raw("[]")).mode, Mode::Raw { .. }));
    let unknown = Form::read(&raw(r#"{"mode":"telepathy"}"#));
    assert!(matches!(unknown.mode, Mode::Refused { .. }) && unknown.check(None).is_err());
}

#[test]
fn addresses_are_parsed_strictly() {
    for (address, host, warnings) in [
        ("https://Example.org/a?b=http://x@y", "example.org", 0),
        ("https://example.org:8443", "example.org", 0),
        ("http://localhost:3000/", "localhost", 0),
        ("http://127.0.0.1:9/x", "127.0.0.1", 0),
        ("http://[::1]/x", "[::1]", 0),
        ("http://example.org/", "example.org", 1),
        ("https://xn--pple-43d.com/", "xn--pple-43d.com", 1),
        ("https://аpple.com/", "аpple.com", 1),
        ("https://bank.example@evil.example/", "evil.example", 1),
        ("http://u:p@evil.example/", "evil.example", 2),
    ] {
        let form = url(address);
        assert_eq!(form.host(), Some(host), "{address}");
        assert_eq!(
            form.warnings().len(),
            warnings,
            "{address}: {:?}",
            form.warnings()
        );
        assert_eq!(form.check(None).unwrap().as_str(), "{}");
    }
    for address in [
        "",
        "example.org",
        "javascript:alert(1)",
        "file:///etc/passwd",
        "javascript://x/%0aalert(1)",
        "https:///x",
        "https://evil.example\\@bank.example/",
        "https://exa mple.org",
        "https://a\nb.org",
        "https://a%2eb/",
        "https://a:99999/",
        "https://[zz]/",
        "https://a:b",
        "https://..",
        "https://<b>/",
        "//example.org",
    ] {
        let form = url(address);
        assert!(
            matches!(form.mode, Mode::Refused { .. }),
            "{address}: {:?}",
            form.mode
        );
        assert!(form.check(None).is_err() && form.host().is_none() && !form.warnings().is_empty());
    }
    assert!(
        url("https://example.org/")
            .check(Some(&raw(r#"{"a":1}"#)))
            .is_err()
    );
    assert!(
        url("https://example.org/")
            .check(Some(&raw("null")))
            .is_ok()
    );
}

#[test]
fn forms_are_bounded() {
    let many: serde_json::Map<String, Value> = (0..300)
        .map(|n| (n.to_string(), json!({"type": "boolean"})))
        .collect();
    assert!(matches!(
        form(&Value::Object(many), &json!([])).mode,
        Mode::Raw { .. }
    ));
    let options: Vec<String> = (0..5000).map(|n| n.to_string()).collect();
    let long = form(
        &json!({"a": {"type": "string", "enum": options}}),
        &json!([]),
    );
    assert!(matches!(long.mode, Mode::Raw { .. }));
    let message = Raw::from_value(&json!({"message": "ä".repeat(100_000)})).unwrap();
    assert!(Form::read(&message).message.len() <= 8192);
    let deep = raw(&format!("{}{}", "[".repeat(10_000), "]".repeat(10_000)));
    let nested = form(&json!({}), &json!([]));
    assert!(nested.check(Some(&deep)).is_err());
}

proptest! {
    #[test]
    fn any_address_can_be_checked(text in "(https?://)?[a-z:@/\\[\\]%é.\\\\?#]{0,30}") {
        let form = url(&text);
        form.warnings();
        let _ = form.check(None);
    }

    /// An accepted answer contains everything that is required, and nothing that was not requested.
    #[test]
    fn accepted_answers_have_only_requested_fields(
        required in any::<[bool; 3]>(),
        answered in proptest::collection::vec((0..4_usize, 0..4_usize), 0..4),
    ) {
        let names = ["a", "b", "c", "d"];
        let values = [json!("x"), json!(1), json!(true), json!(null)];
        let properties = json!({"a": {"type": "string"}, "b": {"type": "integer"}, "c": {"type": "boolean"}});
        let needed: Vec<&str> = (0..3).filter(|n| required[*n]).map(|n| names[n]).collect();
        let content: serde_json::Map<String, Value> =
            answered.iter().map(|(name, value)| (names[*name].to_owned(), values[*value].clone())).collect();
        let right = content.iter().all(|(name, value)| match name.as_str() {
            "a" => value.is_string(),
            "b" => value.is_i64(),
            "c" => value.is_boolean(),
            _ => false,
        }) && needed.iter().all(|name| content.contains_key(*name));
        let raw = Raw::from_value(&content).unwrap();
        prop_assert_eq!(form(&properties, &json!(needed)).check(Some(&raw)).is_ok(), right);
    }
}
