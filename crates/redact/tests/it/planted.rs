//! Secrets of every known form, planted anywhere in arbitrary JSON.

use proptest::{collection::vec, prelude::*};
use serde_json::{Value, json};
use switchboard_redact::{redact, redact_text};
use switchboard_test_support::assert_linear;
use switchboard_wire::Raw;

/// A text that contains a secret, and the part of it that must be hidden.
#[derive(Debug, Clone)]
struct Planted {
    text: String,
    secret: String,
}

fn planted(text: impl Into<String>, secret: impl Into<String>) -> Planted {
    Planted {
        text: text.into(),
        secret: secret.into(),
    }
}

const BODY: &str = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj\n\
    MzEfYyjiWA4R4/M2bS1GB4t7NXp98C3SC6dVMvDuictGeurT8jNbvJZHtCSuYEvu\n\
    NMoSfm76oqFvAp8Gy0iz5sxjZmSnXyCdPEovGhLa0VzMaQ8s+CLOyS56YyCFGeJZ\n";

fn pem(kind: &str) -> String {
    format!("-----BEGIN {kind}PRIVATE KEY-----\n{BODY}-----END {kind}PRIVATE KEY-----\n")
}

fn service_account() -> String {
    let account = json!({
        "type": "service_account",
        "project_id": "demo",
        "private_key_id": "0123456789abcdef0123456789abcdef01234567",
        "private_key": pem(""),
        "client_email": "demo@demo.iam.gserviceaccount.com",
    });
    serde_json::to_string_pretty(&account).unwrap()
}

/// Letters and digits, with at least one of each.
fn token(length: usize) -> BoxedStrategy<String> {
    proptest::string::string_regex(&format!("[A-Za-z][0-9][A-Za-z0-9]{{{}}}", length - 2))
        .unwrap()
        .boxed()
}

fn known_form() -> BoxedStrategy<Planted> {
    let prefixed = |prefix: &'static str, length: usize| {
        token(length).prop_map(move |rest| planted(format!("{prefix}{rest}"), rest))
    };
    let hex = "[0-9][a-f0-9]{63}";
    prop_oneof![
        prop_oneof![
            prefixed("ghp_", 36),
            prefixed("sk-ant-api03-", 40),
            prefixed("sk-proj-", 40),
            prefixed("sk_live_", 24),
            prefixed("xoxb-123456789012-", 24),
            prefixed("glpat-", 20),
            prefixed("npm_", 36),
            prefixed("pypi-AgEIcHlwaS5vcmc", 60),
            prefixed("hf_", 34),
            prefixed("ya29.a0", 60),
            prefixed("1//0g", 60),
            prefixed("AIza", 35),
            prefixed("GOCSPX-", 28),
        ],
        hex.prop_map(|rest| planted(format!("dop_v1_{rest}"), rest)),
        hex.prop_map(|rest| planted(format!("dor_v1_{rest}"), rest)),
        "[0-9]{9}:AA[A-Za-z0-9_-]{33}".prop_map(|all| planted(all.clone(), all)),
        "[MNO][A-Za-z0-9]{23}\\.[A-Za-z0-9]{6}\\.[A-Za-z0-9]{27}"
            .prop_map(|all| planted(all.clone(), all)),
        "A3T0[A-Z0-9]{16}".prop_map(|rest| planted(format!("AKIA{rest}"), rest)),
        "[A-Za-z0-9+/]{86}==".prop_map(|key| planted(
            format!("DefaultEndpointsProtocol=https;AccountName=a;AccountKey={key};"),
            key,
        )),
        "[A-Za-z0-9]{40}%3D".prop_map(|sig| planted(
            format!("https://a.blob.core.windows.net/b?sv=2024-11-04&sp=r&sig={sig}"),
            sig,
        )),
        "[a-z]{4}[0-9]{6}"
            .prop_map(|word| planted(format!("postgres://ann:{word}@db:5432/x"), word)),
        "[a-z]{6}[0-9]{4}"
            .prop_map(|word| planted(format!("my password is {word}, do not tell"), word)),
        "[a-z]{6}[0-9]{4}".prop_map(|word| planted(format!("PASSWORD={word}"), word)),
        "[a-z]{6} [0-9]{4} [a-z]{6}"
            .prop_map(|word| planted(format!("{{\"api_key\": \"{word}\"}}"), word)),
        "[a-z]{8}\"[a-z]{8}\\\\[a-z]{8}"
            .prop_map(|word| planted(json!({ "client_secret": word, "a": 1 }).to_string(), word,)),
        token(32).prop_map(|word| planted(format!("Authorization: Bearer {word}"), word)),
        Just(planted("4111 1111 1111 1111", "4111 1111 1111 1111")),
        Just(planted("5500-0000-0000-0004", "5500-0000-0000-0004")),
        Just(planted("378282246310005", "378282246310005")),
        Just(planted("DE89 3704 0044 0532 0130 00", "0044 0532 0130 00")),
        Just(planted("GB82WEST12345698765432", "WEST12345698765432")),
        Just(planted(pem("RSA "), BODY)),
        Just(planted(pem(""), BODY)),
        Just(planted(service_account(), BODY)),
    ]
    .boxed()
}

/// The text as a string within JSON, nested this many times.
fn escaped(text: &str, times: usize) -> String {
    (0..times).fold(text.to_owned(), |text, _| {
        json!({ "note": text }).to_string()
    })
}

/// The output, decoded repeatedly.
fn every_reading(output: &str) -> Vec<String> {
    let mut readings = vec![output.to_owned()];
    for _ in 0..5 {
        let last = readings.last().cloned().unwrap_or_default();
        let next = last
            .replace("\\n", "\n")
            .replace("\\\"", "\"")
            .replace("\\\\", "\\");
        readings.push(next);
    }
    readings
}

/// The first eight consecutive characters of the secret that are still readable.
fn leak(output: &str, secret: &str) -> Option<String> {
    let chars: Vec<char> = secret.chars().collect();
    let readings = every_reading(output);
    chars
        .windows(8)
        .map(|window| window.iter().collect::<String>())
        .find(|window| readings.iter().any(|reading| reading.contains(window)))
}

fn around() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        Just(" ".to_owned()),
        Just("\n".to_owned()),
        Just("\\".to_owned()),
        Just("see: \"".to_owned()),
        "[ -~]{0,20}[ (,\"'\n]",
        "\\PC{0,10} ",
    ]
}

fn json_with(leaf: Planted) -> impl Strategy<Value = Value> {
    let other = prop_oneof![
        any::<i32>().prop_map(Value::from),
        "[a-z ]{0,12}".prop_map(Value::from),
        Just(Value::Null),
    ];
    (
        around(),
        around(),
        0..4_usize,
        vec((any::<bool>(), vec(other, 0..3)), 0..4),
    )
        .prop_map(move |(before, after, times, nesting)| {
            let text = escaped(&leaf.text, times);
            // The text that follows must not change the secret.
            let after = if after.starts_with(|c: char| c.is_alphanumeric()) {
                format!(" {after}")
            } else {
                after
            };
            let text = format!("{before}{text} {after}");
            nesting
                .into_iter()
                .fold(Value::from(text), |value, (is_array, others)| {
                    if is_array {
                        let mut all = others;
                        all.push(value);
                        Value::from(all)
                    } else {
                        json!({ "x": others, "y": value })
                    }
                })
        })
}

fn case() -> impl Strategy<Value = (String, Value)> {
    known_form().prop_flat_map(|leaf| {
        let secret = leaf.secret.clone();
        json_with(leaf).prop_map(move |value| (secret.clone(), value))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn no_planted_secret_survives_in_json((secret, value) in case()) {
        let input = Raw::from_value(&value).unwrap();
        let output = redact(&input, 64 * 1024);
        prop_assert!(serde_json::from_str::<Value>(output.as_str()).is_ok());
        prop_assert_eq!(leak(output.as_str(), &secret), None, "{}", output);
    }

    #[test]
    fn no_planted_secret_survives_in_text(
        leaf in known_form(), before in around(), times in 0..4_usize
    ) {
        let text = format!("{before}{} and on", escaped(&leaf.text, times));
        let output = redact_text(&text);
        prop_assert_eq!(leak(&output, &leaf.secret), None, "{}", output);
        prop_assert_eq!(redact_text(&output), output);
    }
}

#[test]
fn service_accounts_are_redacted_in_every_shape() {
    let text = service_account();
    let object: Value = serde_json::from_str(&text).unwrap();
    for value in [
        object.clone(),
        Value::from(text.clone()),
        json!({ "credentials_json": text }),
        json!({ "arguments": { "body": json!({ "file": text }).to_string() } }),
        json!([{ "deep": [object] }]),
    ] {
        let output = redact(&Raw::from_value(&value).unwrap(), 8192).to_string();
        assert_eq!(leak(&output, BODY), None, "{output}");
    }
    let cut = &text[..text.len() / 2];
    assert_eq!(leak(&redact_text(cut), BODY), None, "a key that is cut off");
}

/// Text that begins every form and completes none.
#[test]
fn time_is_linear_in_the_text() {
    let hostile = [
        "password:",
        "://a:b",
        "-----BEGIN ",
        "-----BEGIN PRIVATE KEY",
        "eyJ",
        "key:",
        "=",
        "4111 ",
        "DE89 ",
        "bearer ",
        "password is ",
        "\"secret\":\"",
        "\\",
        "\\\\\"token\\\\\":\\\\\"",
        "12345678:",
        "M.",
        "sk-",
        "authorization: ",
        "authorization:",
        "token={",
        "token=${",
    ];
    for piece in hostile {
        let small = piece.repeat(4_000 / piece.len());
        let large = piece.repeat(34_000 / piece.len());
        let work = |text: &str| drop(redact_text(text));
        assert_linear(piece, 16, || work(&small), || work(&large));
    }
}
