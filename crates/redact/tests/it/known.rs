//! Secrets by value.

use proptest::prelude::*;
use serde_json::{Value, json};
use switchboard_redact::{Secret, Secrets, TooMany};
use switchboard_test_support::assert_linear;

fn secrets(all: &[(&str, &str)]) -> Secrets {
    let all = all.iter().map(|(name, value)| Secret::new(name, *value));
    Secrets::default().with("s", all).unwrap()
}

#[test]
fn every_spelling_of_a_value_is_replaced() {
    let secrets = secrets(&[("mail", "p&ss w/\"rd\"é<1>")]);
    for text in [
        "p&ss w/\"rd\"é<1>",
        r#"p&ss w/\"rd\"é<1>"#,
        r#"p&ss w\/\"rd\"é<1>"#,
        r#"p&ss w/\"rd\"\u00e9<1>"#,
        r#"p&ss w/\\\"rd\\\"é<1>"#,
        "p%26ss%20w%2F%22rd%22%C3%A9%3C1%3E",
        "p%26ss%20w%2f%22rd%22%c3%a9%3c1%3e",
        "p%26ss+w%2F%22rd%22%C3%A9%3C1%3E",
        "p&ss%20w/%22rd%22%C3%A9%3C1%3E",
        "p&amp;ss w/&quot;rd&quot;é&lt;1&gt;",
        "p&amp;ss w/&#34;rd&#34;é&lt;1&gt;",
    ] {
        let scrubbed = secrets.scrub(text);
        assert_eq!(scrubbed, "[secret mail]", "{text}");
    }
}

/// The key of the AWS documentation, in the encodings that programs use.
#[test]
fn encodings_that_programs_use_are_found() {
    use base64::Engine as _;

    let key = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYzEXAMPLEKEY";
    let back = "C:\\new\\x\"1+é/2";
    let secrets = secrets(&[("aws", key), ("back", back)]);
    let bytes = |each: &dyn Fn(u8) -> String| key.bytes().map(each).collect::<String>();
    let utf16: Vec<u8> = key.encode_utf16().flat_map(u16::to_le_bytes).collect();
    for text in [
        key.replace('+', "%2B"),
        key.replace('/', "%2F"),
        key.replace('+', "%252B").replace('/', "%252f"),
        key.replace('+', "%2b").replace('F', "%46"),
        key.replace('+', " "),
        key.to_lowercase(),
        key.to_uppercase(),
        key.to_lowercase().replace('+', "%2b"),
        bytes(&|byte| format!("{byte:02x}")),
        bytes(&|byte| format!("{byte:02X}")),
        bytes(&|byte| format!("%{byte:02X}")),
        bytes(&|byte| format!("\\x{byte:02x}")),
        bytes(&|byte| format!("\\u{byte:04x}")),
        bytes(&|byte| format!("\\\\u{byte:04X}")),
        bytes(&|byte| format!("&#{byte};")),
        bytes(&|byte| format!("&#x{byte:X};")),
        bytes(&|byte| format!("&amp;#{byte};")),
        key.replace('/', "\\/"),
    ] {
        let line = format!("a {text} b");
        assert_eq!(secrets.scrub(&line), "a [secret aws] b", "{text}");
        let json = json!({ "a": line }).to_string();
        let clean = secrets.scrub_json(&json);
        assert_eq!(clean, r#"{"a":"a [secret aws] b"}"#, "{text}");
    }
    // The last digit contains one bit of the value, which is zero.
    let digits = base64::engine::general_purpose::STANDARD_NO_PAD.encode(&utf16);
    assert_eq!(secrets.scrub(&digits), "[secret aws]A");
    for text in [
        back.to_owned(),
        back.replace('\\', "\\\\"),
        back.replace('\\', "\\\\").replace('é', "\\xc3\\xa9"),
        back.replace('\\', "%5C").replace('é', "%c3%A9"),
        back.replace('é', "%C3%A9").replace('"', "&quot;"),
        json!(json!(back).to_string())
            .to_string()
            .replace('é', "\\\\u00e9"),
    ] {
        let clean = secrets.scrub(&text).into_owned();
        assert!(clean.contains("[secret back]"), "{text}: {clean}");
        assert!(!clean.contains("new"), "{text}: {clean}");
    }
}

#[test]
fn short_values_keep_their_case() {
    let secrets = secrets(&[("short", "Hunter2-Hun"), ("long", "Hunter2-Hunt")]);
    assert_eq!(secrets.scrub("hunter2-hun!"), "hunter2-hun!");
    assert_eq!(secrets.scrub("hunter2-hunt!"), "[secret long]!");
    assert_eq!(secrets.scrub("Hunter2-Hun!"), "[secret short]!");
}

#[test]
fn value_cut_within_an_escape_is_replaced() {
    let secrets = secrets(&[("mail", "hunter2/hunter2")]);
    for text in ["hunter2%2", "hunter2%", "hunter2%2Fhu", "hunter2\\u00"] {
        assert_eq!(secrets.scrub(text), "[secret mail]", "{text}");
        let cut = format!("{text}… and");
        assert_eq!(secrets.scrub(&cut), "[secret mail]… and", "{text}");
    }
}

/// Text that begins an encoding everywhere but encodes no secret.
#[test]
fn scrubbing_is_linear_in_the_text() {
    let secrets = secrets(&[("a", "hunter2/hunter2"), ("b", "%25%25%25%25%25%25")]);
    for piece in [
        "%", "%25", "\\", "\\u", "&", "&amp;", "&#", "hunter2/", "%5C", "\\ud83d",
    ] {
        let [small, large] = [2_000, 32_000].map(|bytes| {
            let text = piece.repeat(bytes / piece.len());
            let json = format!("[\"{text}\"]");
            (text, json)
        });
        let work = |(text, json): &(String, String)| {
            let _ = (secrets.scrub(text), secrets.scrub_json(json));
        };
        assert_linear(piece, 16, || work(&small), || work(&large));
    }
}

#[test]
fn base64_is_found_at_any_alignment() {
    use base64::Engine as _;

    let secrets = secrets(&[("mail", "hunter2-hunter2")]);
    for before in ["", "a", "ab", "abc", "user:"] {
        let text = format!("{before}hunter2-hunter2 and more");
        for engine in [
            base64::engine::general_purpose::STANDARD,
            base64::engine::general_purpose::URL_SAFE,
        ] {
            let encoded = engine.encode(&text);
            let scrubbed = secrets.scrub(&encoded);
            assert!(scrubbed.contains("[secret mail]"), "{text}: {scrubbed}");
        }
    }
}

#[test]
fn the_longest_value_wins() {
    let secrets = secrets(&[
        ("short", "abcdef"),
        ("long", "abcdefghij"),
        ("inner", "defghi"),
    ]);
    assert_eq!(
        secrets.scrub("abcdefghij abcdefgh defghi abcde"),
        "[secret long] [secret short]gh [secret inner] abcde"
    );
}

#[test]
fn truncated_value_is_replaced() {
    let secrets = secrets(&[("mail", "hunter2-hunter2")]);
    assert_eq!(
        secrets.scrub("said: hunter2-h… and"),
        "said: [secret mail]… and"
    );
    assert_eq!(secrets.scrub("said: hunter2-h"), "said: [secret mail]");
    assert_eq!(secrets.scrub("said: hunter2-h and"), "said: hunter2-h and");
    assert_eq!(
        secrets.scrub_json(r#"["hunter2…"]"#),
        r#"["[secret mail]…"]"#
    );
}

#[test]
fn multiline_key_is_found_line_by_line() {
    let key = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhki\nG9w0BAQEFAASCBKcwgg\n-----END PRIVATE KEY-----";
    let secrets = secrets(&[("key", key)]);
    assert_eq!(secrets.scrub("at MIIEvQIBADANBgkqhki!"), "at [secret key]!");
    assert_eq!(secrets.scrub(&key.replace('\n', "\\n")), "[secret key]");
    assert_eq!(secrets.scrub(key), "[secret key]");
    let other = "-----BEGIN PRIVATE KEY-----";
    assert_eq!(secrets.scrub(&format!("{other} x")), format!("{other} x"));
}

#[test]
fn short_values_and_marks_are_left_alone() {
    let secrets = secrets(&[("a", "12345"), ("word", "secret"), ("hunter2", "hunter2")]);
    assert_eq!(secrets.scrub("12345"), "12345");
    assert_eq!(secrets.scrub("a secret"), "a [secret word]");
    assert_eq!(secrets.scrub("[secret word]"), "[secret word]");
    assert_eq!(
        secrets.scrub("hunter2"),
        "[secret]",
        "the name is the value"
    );
}

#[test]
fn json_stays_json() {
    let secrets = secrets(&[
        ("odd", "\",\"x\":\""),
        ("number", "12345678"),
        ("end", "nabcdef\\"),
    ]);
    for value in [
        json!({ "a": "", "x": "" }),
        json!({ "a": "\",\"x\":\"" }),
        json!([12_345_678, -12_345_678.5, "12345678"]),
        json!(["\nabcdef\\", "nabcdef\\", "nabcdef\\\"", "\\nabcdef\n"]),
    ] {
        let scrubbed = secrets.scrub_json(&value.to_string()).into_owned();
        let read: Value =
            serde_json::from_str(&scrubbed).unwrap_or_else(|error| panic!("{error}: {scrubbed}"));
        assert!(!read.to_string().contains("12345678"), "{read}");
    }
    let text = json!(["nabcdef\\"]).to_string();
    assert_eq!(secrets.scrub_json(&text), r#"["[secret end]"]"#);
}

fn numbered(from: usize, count: usize) -> impl Iterator<Item = Secret> {
    (from..from + count).map(|n| Secret::new("next", format!("{n}-numbered-value")))
}

#[test]
fn oldest_values_of_the_same_owner_are_forgotten() {
    let first = secrets(&[("first", "the-first-value")]);
    let full = first.with("s", numbered(0, 63)).unwrap();
    assert_eq!(full.scrub("the-first-value"), "[secret first]");
    let more = full
        .with("s", [Secret::new("last", "the-last-value")])
        .unwrap();
    assert_eq!(more.scrub("the-first-value"), "the-first-value");
    assert_eq!(more.scrub("the-last-value"), "[secret last]");
    assert_eq!(more.scrub("0-numbered-value"), "[secret next]");
    // A value that is passed again becomes current again.
    let again = full
        .with("s", [Secret::new("first", "the-first-value")])
        .unwrap();
    let again = again.with("s", numbered(100, 1)).unwrap();
    assert_eq!(again.scrub("the-first-value"), "[secret first]");
}

#[test]
fn owners_never_displace_values_of_others() {
    let mut all = secrets(&[("first", "the-first-value")]);
    assert_eq!(all.with("t", numbered(0, 65)).err(), Some(TooMany::Owned));
    let huge = "0123456789abcdef".repeat(4096);
    let huge = (0..100).map(|n| Secret::new("huge", format!("{n}-{huge}")));
    assert_eq!(all.with("t", huge).err(), Some(TooMany::Owned));
    for owner in 0..31 {
        all = all
            .with(&owner.to_string(), numbered(owner * 64, 64))
            .unwrap();
    }
    all = all.with("31", numbered(31 * 64, 63)).unwrap();
    let one = [Secret::new("late", "a-late-value")];
    assert_eq!(all.with("t", one).err(), Some(TooMany::Known));
    // An owner can still change its own values.
    all = all.with("0", numbered(10_000, 64)).unwrap();
    for (text, scrubbed) in [
        ("the-first-value", "[secret first]"),
        ("10001-numbered-value", "[secret next]"),
        ("64-numbered-value", "[secret next]"),
        ("1-numbered-value", "1-numbered-value"),
    ] {
        assert_eq!(all.scrub(text), scrubbed);
    }
}

/// Two servers may use the same key.
#[test]
fn shared_value_is_known_while_one_owner_remains() {
    let both = secrets(&[("mine", "the-shared-value")]);
    let both = both.with("t", [Secret::new("theirs", "the-shared-value")]);
    let left = both.unwrap().with("s", numbered(0, 64)).unwrap();
    assert_eq!(left.scrub("the-shared-value"), "[secret theirs]");
}

#[test]
fn debug_shows_no_value() {
    let secret = Secret::new("mail", "hunter2");
    let secrets = Secrets::default().with("s", [secret.clone()]).unwrap();
    assert_eq!(
        format!("{secret:?} {secrets:?}"),
        "[secret mail] Secrets(1)"
    );
}

proptest! {
    #[test]
    fn no_value_survives(
        values in proptest::collection::vec("\\PC{6,20}|[a-z\"\\\\/<&]{6,12}", 1..4),
        before in "\\PC{0,10}",
        after in "\\PC{0,10}",
        which in any::<prop::sample::Index>(),
    ) {
        let values_known = values.iter().map(|value| Secret::new("x", value.clone()));
        let set = Secrets::default().with("s", values_known).unwrap();
        let value = which.get(&values);
        let text = format!("{before}{value}{after}");
        let scrubbed = set.scrub(&text).into_owned();
        prop_assert!(!scrubbed.contains(value.as_str()) || "[secret x]".contains(value.as_str()), "{scrubbed}");
        prop_assert_eq!(set.scrub(&scrubbed), scrubbed.clone());
        let document = json!({ "a": [text], "n": 1 });
        let json = document.to_string();
        let scrubbed = set.scrub_json(&json);
        let read: Value = serde_json::from_str(&scrubbed).unwrap();
        let kept = read["a"][0].as_str().unwrap();
        prop_assert!(!kept.contains(value.as_str()) || "[secret x]".contains(value.as_str()), "{kept}");
    }

    #[test]
    fn other_text_stays_as_it_is(text in "[a-z ]{0,40}") {
        let set = secrets(&[("x", "0123456789")]);
        prop_assert_eq!(set.scrub(&text), text.clone());
    }
}
