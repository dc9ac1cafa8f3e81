//! Rules as people write them.

use serde_json::json;
use switchboard_approvals::rules::limits::RULES;
use switchboard_approvals::rules::{Guard, Rule, RuleError, Rules};

#[test]
fn short_form_can_be_parsed_again() {
    for (written, shown) in [
        ("ask files:delete_*", "ask files:delete_*"),
        ("  deny   files ", "deny files:*"),
        ("allow *", "allow *"),
        ("ask *:delete_*", "ask *:delete_*"),
        ("ask sampling", "ask sampling *"),
        (
            "ask sampling files @claude*",
            "ask sampling files:* @claude*",
        ),
        ("ask sampling:*", "ask sampling:*"),
        ("deny elicitation", "deny elicitation *"),
        ("ask tool_call files:x", "ask files:x"),
        ("ask @cursor", "ask * @cursor"),
        (r#"ask "my files":"a b""#, r#"ask "my files":"a b""#),
        (
            r#"ask "a:b":c @"claude code 2.1""#,
            r#"ask "a:b":c @"claude code 2.1""#,
        ),
        ("ask x:[*]", "ask x:[*]"),
    ] {
        let rule = Rule::parse_text(written).unwrap();
        assert_eq!(rule.to_string(), shown, "{written}");
        assert_eq!(Rule::parse_text(shown).unwrap(), rule, "{shown}");
        let object = serde_json::to_value(&rule).unwrap();
        assert_eq!(Rule::parse(&object).unwrap(), rule, "{object}");
    }
}

#[test]
fn objects_are_displayed_and_parsed_again() {
    let object = json!({
        "action": "deny", "kind": "tool_call", "server": "files", "tool": "write_*", "client": "*",
        "arguments": {"$.path": "/etc/*", "$.size": {"min": 10, "max": 20.5}},
        "annotations": {"destructive": true, "openWorld": false},
        "expires": "2030-01-01T00:00:00Z", "reason": "not there",
    });
    let rule = Rule::parse(&object).unwrap();
    assert_eq!(
        rule.to_string(),
        "deny files:write_* where $.path is \"/etc/*\", $.size max 20.5 and min 10, destructive, \
         not open-world until 2030-01-01T00:00:00Z"
    );
    let again = serde_json::to_value(&rule).unwrap();
    assert_eq!(Rule::parse(&again).unwrap(), rule);
    assert_eq!(Rule::parse_text(&object.to_string()).unwrap(), rule);
    assert_eq!(again["expires"], "2030-01-01T00:00:00Z");
    assert!(again.get("client").is_none() && again.get("kind").is_none());
}

#[test]
fn errors_describe_the_problem() {
    let long = format!("ask {}", "x".repeat(5000));
    for (written, told) in [
        (json!(""), "the rule is empty"),
        (json!("aks files"), "did you mean `ask`?"),
        (json!("ask"), "names no tools"),
        (json!("ask a:b c"), "followed by more text"),
        (json!("ask \"a"), "a quote is not closed"),
        (json!("ask :x"), "`server` must be a name"),
        (json!("{nonsense"), "not valid JSON"),
        (json!(long), "at most 4096"),
        (json!(7), "a rule must be a string"),
        (json!({"tool": "x"}), "has no `action`"),
        (
            json!({"action": "ask", "tols": "x"}),
            "did you mean `tool`?",
        ),
        (
            json!({"action": "ask", "tool": 7}),
            "`tool` must be a string",
        ),
        (
            json!({"action": "ask", "kind": "samplng"}),
            "did you mean `sampling`?",
        ),
        (
            json!({"action": "ask", "annotations": {"readonly": true}}),
            "did you mean `readOnly`?",
        ),
        (
            json!({"action": "ask", "annotations": {"readOnly": 1}}),
            "true or false",
        ),
        (
            json!({"action": "ask", "arguments": {"path": "x"}}),
            "start with `$`",
        ),
        (
            json!({"action": "ask", "arguments": {"$.a[x]": "x"}}),
            "followed by a number",
        ),
        (
            json!({"action": "ask", "arguments": {"$..a": "x"}}),
            "a name is missing",
        ),
        (
            json!({"action": "ask", "arguments": {"$.a": {"match": "x"}}}),
            "did you mean `matches`?",
        ),
        (
            json!({"action": "ask", "arguments": {"$.a": {"matches": "("}}}),
            "invalid regular expression",
        ),
        (
            json!({"action": "ask", "arguments": {"$.a": {"matches": "(x{100}){100}{100}"}}}),
            "invalid regular expression",
        ),
        (
            json!({"action": "ask", "arguments": {"$.a": {}}}),
            "an object with `equals`",
        ),
        (
            json!({"action": "ask", "arguments": {"$.a": {"exists": false, "min": 1}}}),
            "not both",
        ),
        (
            json!({"action": "ask", "expires": "tomorrow"}),
            "a date and time such as",
        ),
    ] {
        let error = Rule::parse(&written).unwrap_err();
        let hint = error.hint().unwrap_or_default();
        let is_told = error.to_string().contains(told) || hint.contains(told);
        assert!(is_told, "{written}: {error}, {hint}");
    }
    let path = "$".to_owned() + &".a".repeat(40);
    assert!(Rule::parse(&json!({"action": "ask", "arguments": {path: "x"}})).is_err());
    let many = vec![Rule::parse_text("ask x").unwrap(); RULES + 1];
    assert!(matches!(
        Rules::new(many, [], Guard::Never),
        Err(RuleError::TooMany(1001))
    ));
}
