//! Values as a log keeps them.

use proptest::prelude::*;
use serde_json::Value;
use switchboard_redact::{redact, redact_text};
use switchboard_wire::Raw;

use crate::raw;

fn redacted(json: &str) -> String {
    redact(&raw(json), 4096).to_string()
}

#[test]
fn secrets_in_texts_are_not_kept() {
    for (text, secret) in [
        ("use sk-abcdefghijklmnop1234 now", "abcdefghijkl"),
        ("sk-ant-api03-AbCdEfGhIjKlMnOp", "AbCdEf"),
        ("ghp_0123456789abcdefghijABCDEFGHIJ012345", "0123456789"),
        ("github_pat_11ABCDEFG0123456789_abcdef", "11ABCDEFG"),
        ("xoxb-123456789012-abcdef", "123456789012"),
        ("key AKIAIOSFODNN7EXAMPLE", "IOSFODNN7"),
        (
            "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
            "eyJzdWIi",
        ),
        ("Authorization: Bearer abcdef123456", "abcdef123456"),
        ("Authorization: Basic dXNlcjpwYXNz", "dXNlcjpwYXNz"),
        ("bearer abc.def.ghi-jkl", "abc.def"),
        ("postgres://ann:hunter2@db:5432/x", "hunter2"),
        ("https://ann:p@ss@host/", "p@ss"),
        ("https://ann:hunt#er2@host/", "er2"),
        ("postgres://ann:1234#er2@db/x", "er2"),
        ("PASSWORD=hunter2 ./run", "hunter2"),
        ("--password hunter2 password: hunter2x", "hunter2x"),
        (r#"{"api_key": "a b c"}"#, "a b c"),
        (r#"{\"client_secret\": \"abcde\"}"#, "abcde"),
        ("x?sig=9f86d081884c7d659a2feaa0c55ad015a3bf4f1b", "9f86d081"),
        (
            "AWS_KEY: wJalrXUtnFEMI7K7MDENG0bPxRfiCYEXAMPLEKEY",
            "wJalrXUt",
        ),
        (
            "-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc\n-----END RSA PRIVATE KEY-----",
            "MIIE",
        ),
        (
            "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1r",
            "b3BlbnNz",
        ),
    ] {
        let clean = redact_text(text);
        assert!(!clean.contains(secret), "{text}: {clean}");
        assert!(clean.contains("[redacted]"), "{text}: {clean}");
    }
    for text in [
        "",
        "read /tmp/notes.txt",
        "https://example.org:8080/a@b?page=2",
        "http://127.0.0.1:80#@api.example/mcp",
        "http://127.0.0.1:80?@api.example/mcp",
        "http://127.0.0.1:80\\@api.example/mcp",
        "http://[::1]:80?@api.example/mcp",
        "a basic understanding of the token bucket",
        "commit=9f86d081884c7d659a2feaa0c55ad015a3bf4f1b",
        "path=/usr/share/some/long/path/to/a/file",
        "max_tokens: 1000",
        "-----BEGIN CERTIFICATE-----\nMIIE",
    ] {
        assert_eq!(redact_text(text), text);
    }
}

#[test]
fn values_of_secret_names_are_not_kept() {
    for (json, kept) in [
        (r#"{"password":"x"}"#, r#"{"password":"[redacted]"}"#),
        (r#"{"apiKey":{"a":"b"}}"#, r#"{"apiKey":"[redacted]"}"#),
        (r#"{"user_pin": 1234}"#, r#"{"user_pin":"[redacted]"}"#),
        (
            r#"{"Authorization":"x"}"#,
            r#"{"Authorization":"[redacted]"}"#,
        ),
        (
            r#"{"password":null,"token":true}"#,
            r#"{"password":null,"token":true}"#,
        ),
        (
            r#"{"maxTokens":100,"a":[1.50,"x"]}"#,
            r#"{"maxTokens":100,"a":[1.50,"x"]}"#,
        ),
        (
            r#"{"a":{"b":["sk-abcdefghijklmnop1234"]}}"#,
            r#"{"a":{"b":["[redacted]"]}}"#,
        ),
        (r#"{"p\u0061ssword":"x"}"#, r#"{"password":"[redacted]"}"#),
    ] {
        assert_eq!(redacted(json), kept);
    }
}

#[test]
fn images_are_replaced_by_their_size() {
    for (json, kept) in [
        (
            r#"{"type":"image","data":"AAAAAAA=","mimeType":"image/png"}"#,
            r#"{"type":"image","data":"[5 bytes of image/png]","mimeType":"image/png"}"#,
        ),
        (
            r#"{"type":"audio","data":"AAAA"}"#,
            r#"{"type":"audio","data":"[3 bytes of audio]"}"#,
        ),
        (
            r#"{"uri":"x:y","blob":"AAAA","mimeType":"<b>"}"#,
            r#"{"uri":"x:y","blob":"[3 bytes of an unknown type]","mimeType":"<b>"}"#,
        ),
        (
            r#""see data:image/gif;base64,AAAA.""#,
            r#""see [3 bytes of image/gif].""#,
        ),
        (r#"{"data":"AAAA"}"#, r#"{"data":"AAAA"}"#),
    ] {
        assert_eq!(redacted(json), kept);
    }
}

#[test]
fn long_values_are_cut() {
    let picture = format!("data:image/png;base64,{}", "A".repeat(40_000));
    assert_eq!(
        redact(&Raw::string(&picture), 1000).as_str(),
        "\"[30000 bytes of image/png]\""
    );
    let long = redact(&Raw::string(&"x".repeat(100_000)), 1_000_000);
    assert!(long.as_bytes().len() < 3000 && long.as_str().ends_with("more bytes]\""));
    let many = redact(&raw(&format!("[{}1]", "1,".repeat(100_000))), 500);
    assert!(
        many.as_bytes().len() <= 500 && many.as_str().ends_with(",\"[cut]\"]"),
        "{many}"
    );
    let deep = raw(&format!("{}{}", "[".repeat(100_000), "]".repeat(100_000)));
    assert!(redact(&deep, 10_000).as_str().contains("[cut]"));
    let number = redact(&raw(&"1".repeat(5000)), 1000);
    assert_eq!(number.as_str(), "\"[a number of 5000 digits]\"");
    assert_eq!(
        redact(&raw(r#"{"abc":1234}"#), 0).as_str(),
        r#"{"…":"[cut]"}"#
    );
    assert_eq!(redact(&raw("[[[1]]]"), 0).as_str(), r#"["[cut]"]"#);
}

/// A secret at the place where a text is cut does not leave half of itself behind.
#[test]
fn no_secret_is_cut_in_two() {
    for before in (1990..2060).step_by(5) {
        let text = format!(
            "{} ghp_0123456789abcdefghijABCDEFGHIJ012345 {}",
            "x".repeat(before),
            "y".repeat(20_000)
        );
        let kept = redact(&Raw::string(&text), 100_000);
        assert!(!kept.as_str().contains("ghp_0"), "{before}");
    }
}

fn json() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        any::<String>(),
        "[a-z=:@/ \"\\\\]{0,60}",
        Just("password=hunter2hunter2".to_owned()),
        Just("data:image/png;base64,AAAA".to_owned()),
        "\\PC{200,600}",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        text.prop_map(Value::from),
    ];
    let name = prop_oneof![
        "[a-z]{0,4}",
        Just("password".to_owned()),
        Just("data".to_owned()),
        Just("mimeType".to_owned()),
        any::<String>()
    ];
    leaf.prop_recursive(5, 40, 6, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            proptest::collection::vec((name.clone(), inner), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn anything_gives_json_within_the_budget(value in json(), budget in 0..3000_usize) {
        let kept = redact(&Raw::from_value(&value).unwrap(), budget);
        prop_assert!(kept.as_bytes().len() <= budget.max(16), "{} > {budget}", kept.as_bytes().len());
        prop_assert!(serde_json::from_slice::<Value>(kept.as_bytes()).is_ok());
        prop_assert!(!kept.as_str().contains("hunter2"));
    }

    #[test]
    fn no_text_is_too_odd(text in any::<String>(), odd in "[a-zA-Z0-9:=@/;,+ -]{0,200}") {
        redact_text(&text);
        redact_text(&odd);
    }

    #[test]
    fn redacting_twice_finds_nothing_new(odd in "[a-zA-Z0-9:=@/;,+ -]{0,200}") {
        let once = redact_text(&odd);
        prop_assert_eq!(redact_text(&once).matches("[redacted]").count(), once.matches("[redacted]").count());
    }
}
