//! Arguments and results are forwarded verbatim, no matter which JSON they contain.

use std::cell::RefCell;

use proptest::{
    prelude::*,
    test_runner::{Config, TestCaseError, TestRunner},
};
use serde::Deserialize;
use serde_json::{json, value::RawValue};

use crate::{
    client::{Client, Reason, Setup, check},
    revision::{
        Revision::{self, Jul2026, Jun2025, Nov2025},
        Side, Way,
    },
    rig::{NAME, Upstream, home, through},
};

/// Calls in one run, all over one connection.
const CASES: u32 = 96;

/// Numbers that a parser would be tempted to rewrite.
const NUMBERS: &[&str] = &[
    "0",
    "-0",
    "-0.0",
    "1.0",
    "1.50",
    "1e400",
    "-1E+400",
    "1e-400",
    "100000000000000000000",
    "12345678901234567890123",
    "9007199254740993",
    "18446744073709551616",
    "0.1000000000000000055511151231257827",
];

/// Texts with escapes that have other spellings, and with invalid characters.
const STRINGS: &[&str] = &[
    r#""""#,
    r#""\u0041""#,
    r#""\/""#,
    r#""/""#,
    r#""\ud800""#,
    r#""\udc00\ud800""#,
    r#""\ud83d\ude00""#,
    r#""\u0000""#,
    r#""\u2028""#,
    r#""\"\\\b\f\n\r\t""#,
    "\"\u{1f600} \u{2028} \u{feff}\"",
    "\"\u{7f}\"",
];

/// Keys that mean something elsewhere, or look like each other.
const KEYS: &[&str] = &[
    r#""a""#,
    r#""A""#,
    r#""\u0061""#,
    r#""""#,
    r#"" ""#,
    r#""_meta""#,
    r#""name""#,
    r#""arguments""#,
    r#""method""#,
    r#""id""#,
    r#""jsonrpc""#,
    r#""progressToken""#,
    r#""io.modelcontextprotocol/protocolVersion""#,
    r#""$serde_json::private::RawValue""#,
    r#""$serde_json::private::Number""#,
    r#""__proto__""#,
    "\"\u{e9}\"",
    "\"e\u{301}\"",
];

fn space() -> impl Strategy<Value = &'static str> {
    prop_oneof![8 => Just(""), 1 => Just(" "), 1 => Just("\t  ")]
}

fn key() -> impl Strategy<Value = String> {
    let odd = prop::sample::select(KEYS).prop_map(str::to_owned);
    prop_oneof![odd, "[a-z]{1,8}".prop_map(|word| format!("\"{word}\""))]
}

fn leaf() -> impl Strategy<Value = String> {
    let odd = |words: &'static [&'static str]| prop::sample::select(words).prop_map(str::to_owned);
    prop_oneof![
        odd(NUMBERS),
        odd(STRINGS),
        odd(&["null", "true", "false", "{}", "[]"]),
        any::<i64>().prop_map(|number| number.to_string()),
        any::<String>().prop_map(|text| json!(text).to_string()),
        "[0-9]{1,40}\\.[0-9]{1,40}[eE][+-]?[0-9]{1,5}"
            .prop_map(|number| format!("1{}", number.trim_start_matches('0'))),
    ]
}

fn object(member: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
    let members = prop::collection::vec((key(), space(), member, space()), 0..6);
    members.prop_map(|members| {
        let members: Vec<_> = members
            .into_iter()
            .map(|(key, before, value, after)| format!("{key}{before}:{after}{value}{before}"))
            .collect();
        format!("{{{}}}", members.join(","))
    })
}

fn json_text() -> impl Strategy<Value = String> {
    leaf().prop_recursive(6, 64, 6, |inner| {
        let list = prop::collection::vec((space(), inner.clone()), 0..6).prop_map(|items| {
            let items: Vec<_> = items
                .iter()
                .map(|(space, item)| format!("{space}{item}"))
                .collect();
            format!("[{}]", items.join(","))
        });
        // Deeply nested arrays, where recursion ends.
        let deep = (inner.clone(), 1_usize..40)
            .prop_map(|(item, depth)| format!("{}{item}{}", "[".repeat(depth), "]".repeat(depth)));
        prop_oneof![list, object(inner), deep]
    })
}

#[derive(Deserialize)]
struct Echo<'a> {
    content: Vec<Text>,
    #[serde(borrow, rename = "structuredContent")]
    structured: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Text {
    text: String,
}

/// The result of the echo tool, as it was spelled.
fn echo(client: &mut Client, arguments: &str) -> Result<String, Reason> {
    let meta = client.meta();
    let params = format!(r#"{{"name":"test_echo","arguments":{arguments},"_meta":{meta}}}"#);
    let headers = client.headers("tools/call", &json!({ "name": "test_echo" }));
    let sent = client.send_text("tools/call", &params, headers)?;
    client.wait(&sent)?;
    let arrival = client.answer_to(&sent).ok_or("no answer")?;
    let result = arrival.result_text();
    result.ok_or_else(|| format!("no result: {}", arrival.text))
}

/// Compares the bytes at the server and in the result with the bytes that were sent.
fn compare(client: &mut Client, arguments: &str) -> Result<String, Reason> {
    let result = echo(client, arguments)?;
    let echo: Echo<'_> =
        serde_json::from_str(&result).map_err(|error| format!("{error}: {result}"))?;
    let had = echo.content.first().map(|text| &*text.text);
    check!(had == Some(arguments), "the server had {had:?}");
    let came = echo.structured.map(RawValue::get);
    check!(came == Some(arguments), "the client was given {came:?}");
    Ok(result)
}

/// A client connected directly to the same server.
fn witness(upstream: &Upstream, server: Side) -> Client {
    Client::open(&upstream.place(), server, Setup::able(server)).unwrap()
}

fn transparent(client: Revision, server: Revision, way: Way) {
    let server = Side {
        revision: server,
        way,
    };
    let upstream = Upstream::start(server, &[]);
    let home = home(&upstream);
    let serve = home.serve();
    serve.until_known(NAME);
    let place = through(&serve);
    // Between equal revisions, nothing is changed at all.
    let witness = (client == server.revision).then(|| witness(&upstream, server));
    let witness = RefCell::new(witness);
    for way in [Way::Pipe, Way::Http] {
        let side = Side {
            revision: client,
            way,
        };
        let client = Client::open(&place, server, Setup::able(side)).unwrap();
        let client = RefCell::new(client);
        let config = Config {
            cases: CASES,
            failure_persistence: None,
            ..Config::default()
        };
        let judge = |arguments: &str| {
            let result = compare(&mut client.borrow_mut(), arguments)?;
            if let Some(witness) = &mut *witness.borrow_mut() {
                let sent = echo(witness, arguments)?;
                check!(
                    result == sent,
                    "{result} is not what the server sent: {sent}"
                );
            }
            Ok(())
        };
        let run = TestRunner::new(config).run(&object(json_text()), |arguments| {
            judge(&arguments).map_err(TestCaseError::fail)
        });
        run.unwrap_or_else(|error| panic!("{side} in front of {server}: {error}"));
    }
    serve.stop();
}

#[test]
fn bytes_pass_between_older_revisions() {
    transparent(Nov2025, Nov2025, Way::Pipe);
}

#[test]
fn bytes_pass_between_newer_revisions() {
    transparent(Jul2026, Jul2026, Way::Http);
}

#[test]
fn bytes_pass_from_newer_client_to_older_server() {
    transparent(Jul2026, Jun2025, Way::Pipe);
}

#[test]
fn bytes_pass_from_older_client_to_newer_server() {
    transparent(Jun2025, Jul2026, Way::Http);
}
