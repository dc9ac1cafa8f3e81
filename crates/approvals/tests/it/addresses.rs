//! Addresses that a URL parser normalizes to something else, and similar harmless addresses.

use proptest::prelude::*;
use serde_json::json;
use switchboard_approvals::rules::Action;
use url::Url;

use crate::evasions::{assert_all, of_uri};
use crate::spellings::of_text;

/// Spellings of `/sec/a` that URL parsers accept.
const FILES: &[&str] = &[
    "file:sec/a",
    "file:./sec/a",
    "file:x/../sec/a",
    "file:\rsec/a",
    "FILE:sec/a",
    "file:sec//../a",
    "file:%73ec/a",
    "file:/sec//../a",
    "file://localhost/sec//../a",
    "file:///./sec//../a",
    "file:///sec//../a",
    "file://sec/a",
    "file://%73ec/a",
    "file:\\sec\\\\..\\a",
    "<file:sec/a>",
    "<URL:file:sec/a>",
    "URL: file:sec/a",
    "url:/sec/a",
    "view-source:file:sec/a",
];

#[test]
fn files_are_denied_as_parsers_read_them() {
    for text in FILES {
        assert_all(Action::Deny, &[("/sec/*", text), ("file:///sec/*", text)]);
        assert_all(Action::Deny, &[("matches ^/sec/", text)]);
        for action in ["deny", "ask"] {
            let found = of_uri(&[&format!("{action} resources files:file:///sec/*")], text);
            assert_eq!(found.as_str(), action, "{text:?}");
        }
    }
    for text in [
        "file:section/a",
        "file:a/sec/b",
        "file:tmp/a",
        "file:///tmp/sec/a",
        "file: my notes",
        "sec/a",
        "url:sec",
        "note: sec/a",
        "c:sect/a",
    ] {
        let found = of_uri(&["deny resources files:file:///sec/*"], text);
        let expected = if text.starts_with("c:") {
            // Each drive has its own working directory.
            Action::Deny
        } else {
            Action::Allow
        };
        assert_eq!(found, expected, "{text:?}");
    }
}

#[test]
fn dots_after_empty_components_are_resolved() {
    let pattern = "https://evil.example/admin/*";
    for text in [
        "https://u@evil.example/admin//../x",
        "https://evil.example:443/admin//../x",
        "HTTPS:evil.example/admin//../x",
        "https://evil.example/b/../admin///../../x",
        "https://evil.example:443/admin%2f%2f../x",
        "https://evil.example:443/admin//%2e%2e/x",
        "https://evil.example:443/admin/x\u{ff0f}../../y",
        "https://evil.example:443/admin/.\u{1}./y",
        "https://evil.example:443/adm%69n//../x",
        "https://u@evil.example/admin/x?/../../../y",
        "https://u@evil.example/admin/..;/x",
        "https://u@evil.example/admin/x#/../../../y",
    ] {
        assert_all(Action::Deny, &[(pattern, text)]);
    }
    assert_all(
        Action::Deny,
        &[
            ("https://e.example/a b/*", "https://e.example/a b//../x"),
            ("https://e.example/a%20b/*", "https://e.example:443/a b/x"),
            ("x://e.example/a/*", "x://e.example/b/../a//../x"),
        ],
    );
    assert_all(
        Action::Allow,
        &[
            (pattern, "https://evil.example:443/admin/../x"),
            (pattern, "https://evil.example/b//../x"),
            (pattern, "https://evil.example/administer//../x"),
            (pattern, "https://other.example/admin//../x"),
            (pattern, "https://u@evil.example/x?/admin/y"),
        ],
    );
}

#[test]
fn hosts_are_denied_as_parsers_find_them() {
    let pattern = "https://evil.example/*";
    for text in [
        "https://evil.example:/x",
        "https://evil.example:0443/x",
        "https://evil.example:00443/x",
        "https://ok\\@evil.example/x",
        "https://ok\\a\\b:c@evil.example:0443/x",
        "https://a@ok\\@evil.example",
        "https://ok%5c@evil.example/x",
        "https://evil.example\\@ok/x",
        "<https://evil.example/x>",
        "<URL:https://evil.example/x>",
        "< URL: https://evil.example/x >",
        "URL: https://evil.example/x",
        "url:https:evil.example/x",
        "URL:url:https://evil.example/x",
        "https:\t//ev\nil.example/x",
    ] {
        assert_all(Action::Deny, &[(pattern, text)]);
    }
    assert_all(
        Action::Allow,
        &[
            (pattern, "https://ok.example/@evil.example/x"),
            (pattern, "https://ok.example/a\\@evil.example/x"),
            (pattern, "https://evil.example@ok.example/x"),
            (pattern, "https://evil.example:4430/x"),
            (pattern, "<URL:https://ok.example/evil.example>"),
            (pattern, "see <URL: evil.example>"),
        ],
    );
    let test = json!("https://ok*");
    for (text, expected) in [
        ("https://ok.example/x", Action::Allow),
        ("https://ok\\@evil.example/x", Action::Ask),
    ] {
        assert_eq!(of_text("allow", &test, text), expected, "{text}");
    }
}

#[test]
fn international_hosts_match_in_both_notations() {
    let unicode = "https://münchen.example/*";
    let ascii = "https://xn--mnchen-3ya.example/*";
    for pattern in [
        unicode,
        ascii,
        "https://*.münchen.example/*",
        "https://*.xn--mnchen-3ya.example/*",
    ] {
        let below = if pattern.contains("*.") { "www." } else { "" };
        for host in [
            "münchen.example",
            "MÜNCHEN.example",
            "mu\u{308}nchen.example",
            "m%C3%BCnchen.example",
            "xn--mnchen-3ya.example",
            "XN--MNCHEN-3YA.example.",
            "xn--mnchen-3ya\u{3002}example:443",
        ] {
            let text = format!("https://{below}{host}/x");
            assert_all(Action::Deny, &[(pattern, &text)]);
        }
        let text = format!("https://{below}xn--mnchen-zzz.example/x");
        assert_all(Action::Allow, &[(pattern, &text)]);
    }
    assert_all(
        Action::Deny,
        &[
            (
                "https://straße.example/*",
                "https://xn--strae-oqa.example/x",
            ),
            (
                "matches ^https://münchen",
                "https://xn--mnchen-3ya.example/x",
            ),
            ("matches xn--mnchen-3ya", "https://münchen.example/x"),
            ("matches xn--strae-oqa", "https://straße.example/x"),
            ("https://*.x.example:443/*", "https://a.x.example/y"),
        ],
    );
    for (pattern, text) in [
        (unicode, "https://münchen.example/x"),
        (ascii, "https://xn--mnchen-3ya.example/x"),
        ("https://mün*", "https://münchen.example/ä b?c=d"),
    ] {
        let found = of_text("allow", &json!(pattern), text);
        assert_eq!(found, Action::Allow, "{pattern} {text}");
    }
}

#[test]
fn labels_that_are_too_long_stay_encoded() {
    for label in [
        "xn--".to_owned() + &"a".repeat(250_000),
        "ü".repeat(120_000),
    ] {
        let text = format!("https://{label}.example/x");
        assert_all(Action::Allow, &[("https://münchen.example/*", &text)]);
    }
}

#[test]
fn ports_are_parsed_as_in_python() {
    let metadata = "http://169.254.169.254/*";
    for port in ["8_0", "+80", " 80", "80 ", "0_8_0", "\u{668}\u{660}", "x"] {
        let text = format!("http://169.254.169.254:{port}/x");
        assert_all(Action::Deny, &[(metadata, &text)]);
        let text = format!("http://u@2852039166:{port}/x");
        assert_all(Action::Deny, &[(metadata, &text)]);
    }
    assert_all(
        Action::Deny,
        &[("http://x.example:8080/*", "http://x.example:8_080/y")],
    );
    assert_all(
        Action::Allow,
        &[
            (metadata, "http://169.254.169.254:8_080/x"),
            (metadata, "http://169.254.169.253:8_0/x"),
            (metadata, "http://x.example:{port}/x"),
            ("http://x.example:8080/*", "http://x.example:8_0/y"),
            ("/etc/*", "http://x.example:port/y"),
        ],
    );
}

#[test]
fn user_names_do_not_hide_a_host() {
    let admin = "http://127.0.0.1:18762/admin/*";
    for text in [
        "http://u%23@127.0.0.1:18762/%61dmin/x",
        "http://u%2f@127.0.0.1:18762/%61dmin/x",
        "http://u%3f@127.0.0.1:18762/%61dmin/x",
        "http://u\u{ff1f}@127.0.0.1:18762/%61dmin/x",
        "http://u:p%23@127.0.0.1:18762/pub/..%2fadmin/x",
        "http://u%2523@127.0.0.1:18762/%2561dmin/x",
        "http://u%2523%40127.0.0.1:18762/%2561dmin/x",
        "http://a%40b%23@127.0.0.1:18762/%61dmin/x",
        "u%23@127.0.0.%31:18762/admin/x",
    ] {
        assert_all(Action::Deny, &[(admin, text)]);
    }
    assert_all(
        Action::Allow,
        &[
            (admin, "http://127.0.0.1:18762%2fadmin@ok.example/x"),
            ("postgres://prod/*", "postgres://me:p%40ss@dev/prod"),
        ],
    );
}

#[test]
fn scheme_relative_addresses_are_denied() {
    assert_all(
        Action::Deny,
        &[
            ("http://169.254.169.254/*", "//169.254.169.254/x"),
            ("http://169.254.169.254/*", "//u@169.254.169.254/x"),
            ("http://169.254.169.254/*", "\\\\169.254.169.254\\x"),
            ("https://intranet/*", "//intranet/x"),
            ("/etc/*", "//etc/passwd"),
        ],
    );
    assert_all(
        Action::Allow,
        &[("http://169.254.169.254/*", "//169.254.169.253/x")],
    );
}

#[test]
fn single_label_hosts_match_with_a_path() {
    assert_all(
        Action::Deny,
        &[
            ("http://vm/*", "vm/x"),
            ("http://vm/*", "u@vm/x"),
            ("http://vm/admin/*", "VM/admin/x"),
            ("http://metadata/*", "metadata/computeMetadata/v1/"),
        ],
    );
    assert_all(
        Action::Allow,
        &[
            ("http://vm/*", "src/vm/x"),
            ("http://vm/*", "vms/x"),
            ("http://vm/admin/*", "vm/x"),
            ("http://*", "vm/x"),
        ],
    );
}

#[test]
fn hosts_end_where_node_ends_them() {
    for sign in [";", "^", "|", "%zz", "'", "\"", "<", ">", "}", " "] {
        for port in ["", ":18768"] {
            let pattern = format!("http://127.0.0.1{port}/*");
            let text = format!("http://127.0.0.1{port}{sign}.ok.example/x");
            assert_all(Action::Deny, &[(&pattern, &text)]);
        }
    }
}

#[test]
fn expanding_characters_are_counted() {
    let text = "\u{fdfa}".repeat(80_000);
    assert_all(Action::Deny, &[("/etc/*", &text)]);
    let text = "\u{fdfa}".repeat(800);
    assert_all(Action::Allow, &[("/etc/*", &text)]);
}

#[test]
fn wildcard_in_a_host_allows_no_other() {
    let allowed = |pattern: &str, text: &str| of_text("allow", &json!(pattern), text);
    let pattern = "https://*.ok.example/*";
    assert_eq!(allowed(pattern, "https://a.ok.example/y"), Action::Allow);
    assert_eq!(
        allowed(pattern, "https://a.b.ok.example/y?z#w"),
        Action::Allow
    );
    assert_eq!(allowed("https://*/y", "https://a.example/x/y"), Action::Ask);
    assert_eq!(allowed("https://*", "https://a.example/x/y"), Action::Allow);
    for text in [
        "https://evil.example/.ok.example/y",
        "https://evil.example?.ok.example/y",
        "https://evil.example#.ok.example/y",
        "https://evil.example\\.ok.example/y",
        "https://a.ok.example@evil.example/.ok.example/y",
    ] {
        assert_eq!(allowed(pattern, text), Action::Ask, "{text}");
    }
}

#[test]
fn addresses_with_braced_schemes_are_denied() {
    let metadata = "http://169.254.169.254/*";
    for text in [
        "[h-h]ttp://169.254.169.254/x",
        "{http}://169.254.169.254/x",
        "{https,http}://169.254.169.254/x",
        "htt{p,ps}://169.254.169.254/x",
        "{http:}//169.254.169.254/x",
        "{http:/}/169.254.169.254/x",
        "{http}://2852039166:8_0/x",
        "[h-h]ttp://169.254.169.{253,254}/x",
        "169.254.169.254/x",
        "169.254.169.254",
        "169.254.169.254:80/x",
        "u@169.254.169.254/x",
        "2852039166/x",
        "0xA9FEA9FE/x",
        "169.254.43518/x",
        "[::ffff:a9fe:a9fe]/x",
        "169.254.169.254?x",
    ] {
        assert_all(Action::Deny, &[(metadata, text)]);
    }
    assert_all(
        Action::Deny,
        &[
            ("https://evil.example/*", "evil.example/x"),
            ("https://evil.example/*", "EVIL.example./x"),
            ("https://evil.example/*", "evil.example:443/x"),
            ("http://localhost:8080/*", "localhost:8080/x"),
            ("http://localhost:8080/*", "{http}://localhost:8080/x"),
            ("http://localhost/*", "localhost/x"),
            ("matches ^https?://evil", "evil.example/x"),
            ("ftp://evil.example/*", "{ftp}://evil.example/x"),
            ("/etc/*", "{file}:///etc/passwd"),
            ("/etc/*", "[f-f]ile:///etc/passwd"),
        ],
    );
    assert_all(
        Action::Allow,
        &[
            (metadata, "{http}://ok.example/x"),
            (metadata, "[h-h]ttp://169.254.169.253/x"),
            (metadata, "169.254.169.253/x"),
            (metadata, "169.254.169.254.txt"),
            (metadata, "169.254.169.254:8080/x"),
            (metadata, "src/169.254.169.254/x"),
            (metadata, "see 169.254.169.254/x"),
            (metadata, "{id}/x"),
            (metadata, "{\"a\":\"//b\"}"),
            ("http://*", "src/main.rs"),
            ("http://*", "notes.txt"),
            ("http://*", "./a.b/c"),
            ("http://*", "/a.b/c"),
            ("http://*", "at 10:30"),
            ("http://*", "c:/x"),
            ("http://*", "2024/05/x"),
            ("https://evil.example/*", "ok.example/evil.example/x"),
            ("/etc/*", "{file}:///tmp/x"),
        ],
    );
}

/// An address, most often of the host or the files that the rules below are about.
fn address() -> impl Strategy<Value = String> {
    let slashes = prop_oneof![
        Just("//"),
        Just(""),
        Just("/"),
        Just("\\\\"),
        Just("///"),
        Just("/\\"),
        Just("/\t/")
    ];
    let user = prop_oneof![4 => Just(""), 1 => Just("u@"), 1 => Just("u:p@"), 1 => Just("@"), 1 => Just("a@b@"), 1 => Just("ok\\@")];
    let host = prop_oneof![
        6 => Just("evil.example"),
        1 => Just("EVIL.example"),
        1 => Just("evil\u{3002}example"),
        1 => Just("ev%69l.example"),
        1 => Just("\u{ff45}vil.example"),
        1 => Just("ev\u{ad}il.example"),
        1 => Just("ok.example"),
        1 => Just("localhost"),
        1 => Just(""),
    ];
    let port = prop_oneof![4 => Just(""), 1 => Just(":"), 1 => Just(":443"), 1 => Just(":0443"), 1 => Just(":80"), 1 => Just(":8443")];
    let part = prop_oneof![
        6 => Just("/"),
        3 => Just("admin"),
        2 => Just(".."),
        1 => Just("."),
        1 => Just("\\"),
        1 => Just("%2e"),
        1 => Just("%2F"),
        1 => Just("adm%69n"),
        1 => Just("x"),
        1 => Just("\t"),
        1 => Just(" "),
        1 => Just("\u{ff0f}"),
        1 => Just("\u{e9}"),
        1 => Just("\u{1}"),
        1 => Just(";"),
        1 => Just("?"),
        1 => Just("#"),
        1 => Just("c:"),
        1 => Just("|"),
    ];
    let path = proptest::collection::vec(part, 0..10);
    let scheme = prop_oneof![
        Just("https:"),
        Just("HTTPS:"),
        Just("ht\ttps:"),
        Just(" https:"),
        Just("file:"),
        Just("File:")
    ];
    (scheme, slashes, user, host, port, path).prop_map(
        |(scheme, slashes, user, host, port, path)| {
            let path = path.concat();
            if scheme.to_lowercase().contains("file") {
                let host = if host == "localhost" { host } else { "" };
                return format!("{scheme}{slashes}{host}{path}");
            }
            format!("{scheme}{slashes}{user}{host}{port}/{path}")
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn addresses_are_judged_as_parsers_read_them(text in address()) {
        let Ok(url) = Url::parse(&text) else {
            return Ok(());
        };
        let is_site = url.scheme() == "https" && url.host_str() == Some("evil.example") && url.port().is_none();
        let is_file = url.scheme() == "file";
        let is_below = url.path().trim_start_matches('/').starts_with("admin/");
        for (pattern, action, is_held) in [
            ("https://evil.example/*", "deny", is_site),
            ("https://evil.example/admin/*", "ask", is_site && is_below),
            ("file:///admin/*", "deny", is_file && is_below),
            ("/admin/*", "ask", is_file && is_below),
        ] {
            if is_held {
                let found = of_text(action, &json!(pattern), &text);
                prop_assert_eq!(found.as_str(), action, "{} {:?} {}", pattern, text, url);
            }
        }
        // Other hosts are allowed, unless a parser takes the host for a part of the user's name, or ends it
        // earlier, or the text could be several words for a shell: such a text is denied rather than
        // analysed.
        let is_odd = text.contains('\\') || text.contains('\t') && text.contains('?');
        let of_host = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '%');
        let is_odd = is_odd || !url.host_str().is_some_and(|host| host.chars().all(of_host));
        if !is_site && !is_file && !is_odd {
            let found = of_text("deny", &json!("https://evil.example/*"), &text);
            prop_assert_eq!(found, Action::Allow, "{:?} {}", text, url);
        }
    }
}

proptest! {
    #[test]
    fn hosts_without_a_scheme_are_judged_as_addresses(
        host in "(evil[.]example|EVIL[.]example|ok[.]example|169[.]254[.]169[.]25[34]|localhost|src)",
        port in "(|:80|:443|:8_0|:8080)",
        path in "(/|/x|[?]x|/a/[.][.]/x)",
    ) {
        let text = format!("{host}{port}{path}");
        let name = host.to_lowercase();
        let is_usual = matches!(&*port, "" | ":80" | ":8_0");
        for known in ["evil.example", "169.254.169.254"] {
            let found = of_text("deny", &json!(format!("http://{known}/*")), &text);
            let expected = if name == known && is_usual { Action::Deny } else { Action::Allow };
            prop_assert_eq!(found, expected, "{} {}", known, text);
        }
    }
}

#[test]
fn hosts_that_end_early_need_approval() {
    for c in [";", "'", " ", "^", "|", "<", ">", "\"", "`"] {
        for text in [
            format!("https://evil.test{c}.example/x"),
            format!("https://u@evil.test{c}.example/x"),
            format!("https://evil.test{c}x.example"),
        ] {
            let found = of_text("allow", &json!("https://*.example*"), &text);
            assert_eq!(found, Action::Ask, "{text}");
        }
    }
    for text in [
        "https://ok.example/x;y",
        "https://ok.example/x y",
        "https://ok.example/?q='a'|b",
        "https://u;v@ok.example/x",
    ] {
        let found = of_text("allow", &json!("https://*.example/*"), text);
        assert_eq!(found, Action::Allow, "{text}");
    }
}

#[test]
fn ignored_characters_hide_no_host() {
    for c in ["\u{1bca0}", "\u{1bca3}", "\u{ad}", "\u{200b}", "\u{fe0f}"] {
        for text in [
            format!("loc{c}alhost:18762/"),
            format!("http://loc{c}alhost:18762/"),
        ] {
            let found = of_text("deny", &json!("http://localhost:18762/*"), &text);
            assert_eq!(found, Action::Deny, "{text:?}");
        }
    }
}
