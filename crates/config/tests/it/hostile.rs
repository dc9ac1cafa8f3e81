//! Hostile texts.

use proptest::prelude::*;
use switchboard_config::{add_server, parse, remove_server, set_enabled};

use super::{malformed, problems};

#[test]
fn deep_nesting() {
    // The outer object, the servers and the server are three levels.
    let nested = |levels: usize| {
        format!(
            r#"{{"mcpServers": {{"s": {{"command": "a", "gallery": {}{}}}}}}}"#,
            "[".repeat(levels),
            "]".repeat(levels)
        )
    };
    assert_eq!(problems(&nested(61)), [""; 0]);
    assert_eq!(
        problems(&nested(62)),
        ["switchboard.json:1:111: objects and lists are nested more than 64 levels deep"]
    );
    for text in ["[".repeat(1_000_000), "{\"a\":".repeat(500_000)] {
        assert_eq!(problems(&text).len(), 1);
    }
}

#[test]
fn many_of_everything() {
    let many = |item: &dyn Fn(usize) -> String| {
        let items: Vec<_> = (0..100_000).map(item).collect();
        items.join(",")
    };
    for text in [
        format!("{{{}}}", many(&|_| "\"a\":1".to_owned())),
        format!("{{{}}}", many(&|at| format!("\"lisen{at}\":1"))),
        format!(
            "{{\"mcpServers\":{{{}}}}}",
            many(&|at| format!("\"{at}\":{{\"comand\":1}}"))
        ),
        format!(
            "{{\"mcpServers\":{{{}}}}}",
            many(&|at| format!("\"{at}\":1"))
        ),
        format!(
            "{{\"mcpServers\":{{{}}}}}",
            many(&|at| format!("\"{at}\":{{\"command\":\"${{\"}}"))
        ),
    ] {
        let problems = problems(&text);
        assert_eq!(problems.len(), 101, "{text:.99}");
    }
    let references = many(&|_| "\"${\"".to_owned());
    let text =
        format!("{{\"mcpServers\":{{\"a\":{{\"command\":\"a\",\"args\":[{references}]}}}}}}");
    assert!(malformed(&text, "a").is_some());
}

#[test]
fn long_names_are_shortened_in_messages() {
    let long = "x".repeat(1_000_000);
    for text in [
        format!("{{\"{long}\": 1}}"),
        format!("{{\"view\": \"{long}\"}}"),
        format!("{{\"view\": {long}}}"),
        format!("{{\"mcpServers\": {{\"{long}\": {{}}}}}}"),
    ] {
        for problem in problems(&text) {
            assert!(problem.len() < 300, "{}", &problem[..300]);
        }
    }
    let text = format!("{{\"mcpServers\": {{\"s\": {{\"command\": \"${{{long}}}\"}}}}}}");
    assert!(malformed(&text, "s").unwrap().len() < 300);
}

#[test]
fn zero_bytes() {
    assert_eq!(
        problems("{\"view\"\0: 1}"),
        ["switchboard.json:1:8: expected a : after the key, not character U+0000"]
    );
    assert_eq!(
        problems("{\"view\": \"\0\"}"),
        ["switchboard.json:1:11: write this character as \\u0000 in a string"]
    );
}

/// Text that resembles a configuration.
fn nearly() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"",
        "\\u",
        "//",
        "/*",
        "*/",
        "\n",
        "\r\n",
        " ",
        "\u{feff}",
        "\"mcpServers\"",
        "\"command\":\"a\"",
        "\"s\":",
        "\"enabled\":true",
        "\"${env:A}\"",
        "\"$${\"",
        "1e5",
        "-",
        "null",
        "ü",
        "\"tools\":[]",
        "\"isolation\":{}",
        "\"url\":\"http://a\"",
    ]);
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

fn survive(text: &str) {
    if let Err(problems) = parse(text, "x") {
        assert!(!problems.is_empty());
        let lines = text.split('\n').count();
        for problem in problems {
            assert!((1..=lines).contains(&problem.line), "{problem} in {text:?}");
            assert!(!problem.message.is_empty());
        }
    }
    let entry = serde_json::json!({"command": "b"});
    for edited in [
        add_server(text, "new", &entry),
        remove_server(text, "s"),
        set_enabled(text, "s", false),
    ]
    .into_iter()
    .flatten()
    {
        let before = parse(text, "x");
        let after = parse(&edited, "x");
        assert!(
            before.is_err() || after.is_ok(),
            "{text:?} became {edited:?}: {after:?}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text(text in any::<String>()) {
        survive(&text);
    }

    #[test]
    fn nearly_a_configuration(text in nearly()) {
        survive(&text);
    }

    #[test]
    fn a_configuration_cut_anywhere(cut in 0usize..1000, with in any::<char>()) {
        let text = "{\n  \"listen\": \"127.0.0.1:1\", // ü\n  \"mcpServers\": {\n    \"s\": { \"command\": \"a\\u00fc\\ud83d\\ude00\", \"args\": [\"${env:A}\", \"$${\"],\n      \"env\": {}, /* x */ \"tools\": {\"allow\": [\"*\"]} },\n    \"t\": {\"url\": \"http://a/?b\", \"timeout\": 60},\n  },\n  \"approvals\": {\"rules\": [{\"action\": \"ask\", \"arguments\": {\"$.a\": {\"min\": 1.5e3}}}]},\n}\n";
        let mut cut = cut % (text.len() + 1);
        while !text.is_char_boundary(cut) {
            cut -= 1;
        }
        prop_assert!(parse(text, "x").is_ok());
        survive(&text[..cut]);
        survive(&format!("{}{with}{}", &text[..cut], &text[cut..]));
    }

    #[test]
    fn any_json(text in json(4)) {
        survive(&text);
    }
}

/// Any JSON, with keys that the parser knows.
fn json(levels: u32) -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        Just("7".to_owned()),
        Just("-1.5e400".to_owned()),
        Just("\"text\"".to_owned()),
        Just("\"http://a\"".to_owned()),
        Just("\"${\"".to_owned()),
    ];
    let key = prop::sample::select(vec![
        "mcpServers",
        "s",
        "command",
        "url",
        "image",
        "isolation",
        "tools",
        "allow",
        "env",
        "headers",
        "args",
        "approvals",
        "rules",
        "sampling",
        "provider",
        "kind",
        "timeout",
        "cpus",
        "engine",
        "listen",
    ]);
    leaf.prop_recursive(levels, 40, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4)
                .prop_map(|items| format!("[{}]", items.join(", "))),
            prop::collection::vec((key.clone(), inner), 0..6).prop_map(|members| {
                let members: Vec<_> = members
                    .iter()
                    .map(|(key, value)| format!("\"{key}\": {value}"))
                    .collect();
                format!("{{{}}}", members.join(", "))
            }),
        ]
    })
}
