//! Ways to evade a restrictive rule, and similar harmless texts for each.

use proptest::prelude::*;
use serde_json::{Value, json};
use switchboard_approvals::rules::{Action, Case, Guard, Kind, Rule, Rules};

use crate::spellings::{judged, of_text};

/// Judges each text under a rule that denies its pattern.
pub(crate) fn assert_all(expected: Action, pairs: &[(&str, &str)]) {
    for (pattern, text) in pairs {
        let test = match pattern.strip_prefix("matches ") {
            Some(expression) => json!({ "matches": expression }),
            None => json!(pattern),
        };
        assert_eq!(of_text("deny", &test, text), expected, "{pattern} {text:?}");
    }
}

#[test]
fn unclear_paths_may_lead_below_a_home() {
    assert_all(
        Action::Deny,
        &[
            ("~/.ssh/*", "../../../../.ssh/id_rsa"),
            ("~/.ssh/*", "$X/.ssh/id_rsa"),
            ("~/.ssh/*", "/proc/self/cwd/../.ssh/id_rsa"),
            ("~/.ssh/*", "/hom?/me/.ssh/id_rsa"),
            ("~/.ssh/*", "/home/*/.ssh/id_rsa"),
            ("~/.ssh/*", "/home/me/.ss?/id_rsa"),
            ("~/.ssh/*", "/home/me/*/id_rsa"),
            ("~/.ssh/*", "~/.ss*/id_rsa"),
            ("~/.ssh/*", "~/{.ssh,x}/id_rsa"),
            ("~/.ssh/*", "/tmp/{a,..}/root/.ssh/id_rsa"),
            ("~/.ssh/*", "/tmp/.?/home/me/.ssh/id_rsa"),
            ("$HOME/.ssh/*", "`echo ~`/.ssh/id_rsa"),
            ("%USERPROFILE%\\.ssh\\*", "c:.ssh\\id_rsa"),
            ("/home/me/.ssh/*", "~/.ss?/id_rsa"),
            ("/*/.ssh/*", "~/.ss?/id_rsa"),
            ("matches ^~/\\.ssh/", "/home/me/.ssh/id_rsa"),
            ("matches ^~/\\.ssh/", "$X/.ssh/id_rsa"),
            ("matches ^\\$HOME/\\.ssh/", "/root/.ssh/id_rsa"),
        ],
    );
    assert_all(
        Action::Allow,
        &[
            ("~/.ssh/*", "notes/x"),
            ("~/.ssh/*", "/home/me/notes/*.txt"),
            ("~/.ssh/*", "~/notes/*.txt"),
            ("~/.ssh/*", "/tmp/*.txt"),
            ("~/.ssh/*", "/etc/ssh/x"),
            ("~/.ssh/*", "costs $100"),
            ("/home/me/.ssh/*", "~/notes/*.txt"),
            ("matches ^~/\\.ssh/", "/home/me/notes/x"),
        ],
    );
}

#[test]
fn standard_links_are_followed_in_both_directions() {
    let held = [
        ("/run/*", "/var/run/docker.sock"),
        ("/var/run/*", "/run/docker.sock"),
        ("/run/lock/*", "/var/lock/x"),
        ("/usr/bin/*", "/bin/x"),
        ("/bin/*", "/usr/bin/x"),
        ("/usr/sbin/*", "//sbin/x"),
        ("/lib64/*", "/usr/lib64/x"),
        ("/usr/lib/*", "/%6cib/x"),
        ("/proc/self/net/*", "/proc/net/tcp"),
        ("/proc/self/mounts", "/proc/mounts"),
        ("/private/var/run/*", "/run/x"),
        ("/home/me/secret/*", "/var/home/me/secret/x"),
        ("matches ^/run/", "/var/run/docker.sock"),
        ("matches ^/var/run/", "/run/docker.sock"),
        ("matches ^/bin/", "/usr/bin/x"),
        ("matches ^/private/etc/", "/etc/x"),
        ("/etc/ssl/private/*", "/usr/lib/ssl/private/key.pem"),
        ("/etc/ssl/private/*", "/lib/ssl/private/key.pem"),
        ("/etc/machine-id", "/var/lib/dbus/machine-id"),
        ("/usr/lib/ssl/private/*", "/etc/ssl/private/key.pem"),
    ];
    assert_all(Action::Deny, &held);
    assert_all(
        Action::Allow,
        &[
            ("/run/*", "/var/running/x"),
            ("/run/*", "/var/log/x"),
            ("/run/*", "/home/me/var/run/x"),
            ("/usr/bin/*", "/binary/x"),
            ("/usr/bin/*", "bin/x"),
            ("/proc/self/net/*", "/proc/network"),
            ("/etc/*", "/usr/lib/ssl/misc"),
            ("/etc/*", "/usr/lib/x/private"),
            ("matches ^/run/", "/var/log/x"),
        ],
    );
    for (test, text, expected) in [
        (json!("/bin/*"), "/bin/ls", Action::Allow),
        (json!({ "matches": "^/bin/" }), "/bin/ls", Action::Allow),
        (json!("/var/run/*"), "/var/run/x", Action::Allow),
        (json!("/var/*"), "/var/run/x", Action::Ask),
    ] {
        assert_eq!(of_text("allow", &test, text), expected, "{test} {text}");
    }
}

#[test]
fn quotes_and_parameters_are_removed_from_paths() {
    for text in [
        "/e''tc/passwd",
        "/e\"\"tc/passwd",
        "/e\\tc/passwd",
        "'/etc'/passwd",
        "\"/etc\"/passwd",
        "/et'c'/passwd",
        "/e\\''tc/passwd",
        "/etc;x/passwd",
        "/etc;/passwd",
    ] {
        assert_all(Action::Deny, &[("/etc/*", text)]);
    }
    assert_all(
        Action::Deny,
        &[
            ("/admin/*", "/admin;x/y"),
            ("https://x.example/admin/*", "https://x.example/admin;a=b/y"),
        ],
    );
    assert_all(
        Action::Allow,
        &[
            ("/etc/*", "it's in 'etc'/x"),
            ("/etc/*", "say \"/etc/x\""),
            ("/etc/*", "c:\\tmp\\x"),
            ("/etc/*", "/tmp/e''tc/x"),
            ("/etc/*", "/et;c/x"),
            ("/etc/*", "a;/etc/x"),
            ("/admin/*", "/administer;x/y"),
        ],
    );
}

#[test]
fn rounded_numbers_are_not_allowed() {
    let test = json!({ "max": 10 });
    for (value, expected) in [
        ("10", Action::Allow),
        ("10.0", Action::Allow),
        ("9.9999999999999999999", Action::Ask),
        ("10.0000000000000000001", Action::Ask),
        ("3.1415926535897932384626", Action::Allow),
    ] {
        let found = judged("allow", &test, &format!(r#"{{"v":{value}}}"#));
        assert_eq!(found, expected, "{value}");
    }
}

#[test]
fn wildcards_may_match_anchored_expressions() {
    assert_all(
        Action::Deny,
        &[
            ("matches ^/etc/", "/e?c/passwd"),
            ("matches ^/etc/", "/et*"),
            ("matches \\A/etc/passwd$", "/etc/pass[w]d"),
            ("matches (?i)^/etc/", "/{etc,x}/passwd"),
            ("matches ^(/etc/|/var/)", "/v?r/x"),
            ("matches ^/\\.ssh/", "/.ss?/id"),
            ("matches ^/etcd?/", "/et?/passwd"),
            ("matches ^file:///etc/", "/e?c/passwd"),
        ],
    );
    assert_all(
        Action::Allow,
        &[
            ("matches ^/etc/", "/tmp/*.txt"),
            ("matches ^/\\.ssh/", "/xssh/*"),
            ("matches ^/etc/", "*.txt"),
            ("matches /internal/", "*.txt"),
        ],
    );
}

#[test]
fn prose_is_not_an_unclear_path() {
    let test = json!({ "matches": "/internal/" });
    for text in [
        "Run `cargo test` first.",
        "It is `src/main.rs`, not `src/lib.rs`.",
        "Use ${NAME} here, and $(date) there.",
        "See\n```\nls /tmp\n```\nfor more",
    ] {
        assert_eq!(of_text("deny", &test, text), Action::Allow, "{text:?}");
    }
    for text in [
        "see /internal/x",
        "$X/passwd",
        "${X}/passwd",
        "/my dir/${X}/passwd",
        "${X}/my file",
        "~/my dir/$(echo x)/y",
        "my dir/${X}/passwd",
        "my dir/a`echo x y`/passwd",
        "my dir`echo x y`/z",
        "C:\\my dir\\${X}\\y",
        "my dir/\u{200b}${X}/y",
        "my dir/%24%7BX%7D/y and `z`",
    ] {
        assert_eq!(of_text("deny", &test, text), Action::Deny, "{text:?}");
    }
    for test in [json!("/etc/*"), json!({ "matches": "^/etc/" })] {
        let found = of_text("deny", &test, "my notes `x`");
        assert_eq!(found, Action::Allow, "{test}");
    }
}

#[test]
fn addresses_are_denied_in_every_notation() {
    let metadata = "http://169.254.169.254/*";
    for text in [
        "http://169.254.169.254/x",
        "http://2852039166/x",
        "http://0xa9fea9fe/x",
        "http://0xA9.0xFE.0xA9.0xFE/x",
        "http://0251.0376.0251.0376/x",
        "http://025177524776/x",
        "http://169.254.43518/x",
        "http://169.16689662/x",
        "http://0169.0254.0169.0254/x",
        "http://[::ffff:a9fe:a9fe]/x",
        "http://[::ffff:169.254.169.254]/x",
        "http://[0:0:0:0:0:ffff:a9fe:a9fe]/x",
        "http://[::169.254.169.254]/x",
        "http://[64:ff9b::a9fe:a9fe]/x",
        "http://169.254.169.254:80/x",
        "http://169.254.169.254:080/x",
        "http://169.254.169.254:/x",
        "http://169.254.169.254.:80/x",
        "http://me@2852039166:080/x",
        "view-source:http://169.254.169.254/x",
        "url:http://2852039166/x",
    ] {
        assert_all(Action::Deny, &[(metadata, text)]);
    }
    assert_all(
        Action::Deny,
        &[
            ("http://2852039166/*", "http://169.254.169.254/x"),
            ("http://[::ffff:a9fe:a9fe]/*", "http://169.254.169.254/x"),
            ("http://[0:0::1]/*", "http://[::1]/x"),
            ("http://x.example:80/*", "http://x.example/y"),
            ("https://x.example:443/*", "https://x.example/y"),
            ("https://x.example:0443/*", "https://x.example:443/y"),
            ("https://x.example.:443/*", "https://x.example/y"),
            ("https://x.example:8443/*", "https://x.example:08443/y"),
            ("http://x.example:80", "http://x.example/"),
        ],
    );
    assert_all(
        Action::Allow,
        &[
            (metadata, "http://169.254.169.253/x"),
            (metadata, "http://2852039167/x"),
            (metadata, "http://169.254.169.254.example/x"),
            (metadata, "http://169.254.169.254:8080/x"),
            (metadata, "http://[::1]/x"),
            (metadata, "https://169.254.169.254/x"),
            ("http://x.example:8080/*", "http://x.example/y"),
            ("https://x.example/*", "https://x.example:80/y"),
        ],
    );
    let test = json!("https://x.example:443/*");
    let found = of_text("allow", &test, "https://x.example:443/y");
    assert_eq!(found, Action::Allow);
}

#[test]
fn numbers_of_unclear_sign_are_denied() {
    let test = json!({ "min": 100 });
    for text in [
        "(100)",
        "--100",
        "-(100)",
        "1 hundred",
        "1 lakh",
        "1万",
        "1 million",
        "5 px",
        "about 5",
        "hundred 1",
    ] {
        assert_eq!(of_text("deny", &test, text), Action::Deny, "{text}");
    }
    for text in [
        "-100", "- 100", "-$100", "5 EUR", "CHF 5", "£5", "-5 €", "5.", "(5)", "5 euros",
    ] {
        assert_eq!(of_text("deny", &test, text), Action::Allow, "{text}");
    }
    let test = json!({ "equals": -100 });
    assert_eq!(of_text("deny", &test, "(100)"), Action::Deny);
}

#[test]
fn lists_do_not_count_as_nested_texts() {
    let test = json!("/etc/*");
    let text = |value: &Value| json!(value.to_string());
    let inner = text(&json!(["/etc/passwd"]));
    for value in [
        json!([[[inner]]]),
        json!([[[[[inner]]]]]),
        text(&json!([[[inner]]])),
        text(&json!([text(&json!([inner]))])),
    ] {
        let arguments = json!({ "v": value }).to_string();
        assert_eq!(
            judged("deny", &test, &arguments),
            Action::Deny,
            "{arguments}"
        );
    }
    // A fourth level is plain text.
    let fourth = text(&json!([text(&json!([text(&json!([inner]))]))]));
    let arguments = json!({ "v": fourth }).to_string();
    assert_eq!(judged("deny", &test, &arguments), Action::Allow);
}

#[test]
fn quoted_json_texts_are_parsed() {
    for (test, value) in [
        (json!("/etc/*"), r#""\"\\u002fetc/passwd\"""#),
        (json!("/etc/*"), r#""\"{\\\"p\\\":\\\"/etc/x\\\"}\"""#),
        (
            json!({ "equals": { "role": "admin" } }),
            r#""\"{\\\"role\\\":\\\"admin\\\"}\"""#,
        ),
        (json!({ "equals": 100 }), r#"" \"1e2\" ""#),
    ] {
        let found = judged("deny", &test, &format!(r#"{{"v":{value}}}"#));
        assert_eq!(found, Action::Deny, "{test} {value}");
    }
    for value in [r#""\"\\u002ftmp/x\"""#, r#""\"a\" and \"b\"""#, r#""\"""#] {
        let found = judged("deny", &json!("/etc/*"), &format!(r#"{{"v":{value}}}"#));
        assert_eq!(found, Action::Allow, "{value}");
    }
}

#[test]
fn members_are_found_in_quoted_json() {
    let rule = json!({ "action": "deny", "arguments": { "$.a.role": "admin" } });
    let rules = Rules::new(vec![Rule::parse(&rule).unwrap()], [], Guard::Never).unwrap();
    for (role, expected) in [("admin", Action::Deny), ("guest", Action::Allow)] {
        let inner = json!({ "role": role }).to_string();
        let arguments = json!({ "a": json!(inner).to_string() }).to_string();
        let arguments = crate::raw(&arguments);
        let case = Case {
            arguments: Some(&arguments),
            ..Case::tool_call("s", "t")
        };
        assert_eq!(rules.judge(&case, 0).action, expected, "{role}");
    }
}

#[test]
fn leading_braces_are_expanded() {
    for text in [
        "{/etc/passwd,x}",
        "{x,/etc}/passwd",
        "{x,/et}c/passwd",
        "{/,x}etc/passwd",
        "{,x}/etc/passwd",
        "{x,}/etc/passwd",
        "{{/etc,x},y}/passwd",
        "{\\etc\\passwd,x}",
        "{~,/etc}/passwd",
    ] {
        assert_all(Action::Deny, &[("/etc/*", text), ("matches ^/etc/", text)]);
    }
    assert_all(
        Action::Allow,
        &[
            ("/etc/*", "{/tmp/a,/tmp/b}"),
            ("/etc/*", "{a,b}/etc/x"),
            ("/etc/*", "{id}/etc/x"),
            ("/etc/*", "{\"a\": [1, 2], \"b\": \"/tmp/x\"}"),
            ("/etc/*", "{}"),
            ("/etc/*", "{,x}/tmp/y"),
        ],
    );
}

pub(crate) fn of_uri(rules: &[&str], uri: &str) -> Action {
    let rules = rules.iter().map(|rule| Rule::parse_text(rule).unwrap());
    let rules = Rules::new(rules.collect(), [], Guard::Never).unwrap();
    let case = Case {
        kind: Kind::Resource,
        ..Case::tool_call("files", uri)
    };
    rules.judge(&case, 0).action
}

#[test]
fn names_too_long_for_a_pattern_are_denied() {
    let long = format!("file:///tmp/{}", "x".repeat(300_000));
    for rule in ["deny", "ask", "allow"] {
        let rule = format!("{rule} resources files:file:///etc/*");
        assert_eq!(of_uri(&[&rule], &long), Action::Deny, "{rule}");
        assert_eq!(of_uri(&[&rule], "file:///tmp/x"), Action::Allow, "{rule}");
    }
    // Rules about other servers, and about everything of one, need not look at it.
    for (rule, expected) in [
        ("deny resources other:file:///etc/*", Action::Allow),
        ("ask resources files:*", Action::Ask),
    ] {
        assert_eq!(of_uri(&[rule], &long), expected, "{rule}");
    }
}

/// A client could otherwise find out, name by name, at which members a rule looks.
#[test]
fn denial_names_no_member_of_the_rule() {
    let long = format!(r#"{{"inner":{{"secretKey":"{}"}}}}"#, "x".repeat(300_000));
    for (arguments, expected) in [
        (
            r#"{"Inner":{}}"#,
            "the arguments contain a member twice, or in another letter case",
        ),
        (
            r#"{"inner":{"SecretKey":"x"}}"#,
            "the arguments contain a member twice, or in another letter case",
        ),
        (
            long.as_str(),
            "a value is too long to be compared with a pattern",
        ),
    ] {
        let rule = json!({ "action": "deny", "arguments": { "$.inner.secretKey": "/etc/*" } });
        let rules = [Rule::parse(&rule).unwrap()];
        let rules = Rules::new(rules.into(), [], Guard::Never).unwrap();
        let arguments = crate::raw(arguments);
        let case = Case {
            arguments: Some(&arguments),
            ..Case::tool_call("s", "t")
        };
        let verdict = rules.judge(&case, 0);
        assert_eq!(verdict.action, Action::Deny);
        assert_eq!(verdict.denial(), format!("denied by a rule: {expected}"));
        assert!(verdict.why.contains("nner"), "{}", verdict.why);
    }
}

#[test]
fn work_of_one_judgement_is_bounded() {
    let rules = |count: usize| {
        let rule = |n| json!({ "action": "deny", "arguments": { "$.v": format!("/etc/{n}/*") } });
        let rules = (0..count).map(|n| Rule::parse(&rule(n)).unwrap());
        Rules::new(rules.collect(), [], Guard::Never).unwrap()
    };
    let text = format!("/tmp/{}", "x".repeat(200_000));
    let arguments = crate::raw(&json!({ "v": text }).to_string());
    let case = Case {
        arguments: Some(&arguments),
        ..Case::tool_call("s", "t")
    };
    assert_eq!(rules(20).judge(&case, 0).action, Action::Allow);
    let verdict = rules(1_000).judge(&case, 0);
    assert_eq!(verdict.action, Action::Deny);
    assert!(
        verdict.why.contains("cannot be evaluated"),
        "{}",
        verdict.why
    );
}

proptest! {
    #[test]
    fn every_numeric_notation_is_denied(address in any::<u32>(), which in 0..6) {
        let [a, b, c, d] = address.to_be_bytes();
        let host = match which {
            0 => address.to_string(),
            1 => format!("{address:#x}"),
            2 => format!("0{address:o}"),
            3 => format!("{a:#x}.0{b:o}.{c}.{d:#X}"),
            4 => format!("{a}.{}", address & 0xff_ffff),
            _ => format!("[::ffff:{:x}:{:x}]", address >> 16, address & 0xffff),
        };
        let test = json!(format!("http://{a}.{b}.{c}.{d}/*"));
        prop_assert_eq!(of_text("deny", &test, &format!("http://{host}/x")), Action::Deny, "{}", host);
    }
}

#[test]
fn homes_of_other_users_may_be_anywhere() {
    assert_all(
        Action::Deny,
        &[
            ("/etc/*", "~systemd-network/etc/passwd"),
            ("/etc/*", "~-/passwd"),
            ("/etc/*", "~+/passwd"),
            ("/etc/*", "~2/passwd"),
            ("/etc/*", "\"~bin/../etc/passwd\""),
            ("/var/backups/*", "~backup/x"),
            ("/var/backups/*", "~backup"),
            ("/dev/*", "~sys/sda"),
            ("matches ^/etc/", "~+/passwd"),
            ("~/.ssh/*", "~root/.ssh/x"),
            ("/root/.ssh/*", "~root/.ssh/x"),
        ],
    );
    for text in ["~backup/x", "~+/x", "~-/x"] {
        let found = of_text("allow", &json!("~*"), text);
        assert_eq!(found, Action::Ask, "{text}");
    }
    assert_all(
        Action::Allow,
        &[
            ("/etc/*", "~/etc/passwd"),
            ("/etc/*", "~"),
            ("/etc/*", "~5 minutes"),
            ("/etc/*", "~100"),
            ("/etc/*", "~3.5/4"),
            ("/etc/*", "~$report.docx"),
            ("/etc/*", "a~b/c"),
        ],
    );
    let found = of_text("allow", &json!("~/*"), "~/notes/x");
    assert_eq!(found, Action::Allow);
}

#[test]
fn numbers_are_parsed_as_in_javascript() {
    for (test, text) in [
        (json!({ "min": 100 }), "900e-5"),
        (json!({ "min": 100 }), "100.5e-1"),
        (json!({ "min": 100 }), "\u{ff19}\u{ff10}\u{ff10}e-5"),
        (json!({ "equals": 900 }), "900e-5"),
        (json!({ "equals": 900 }), "900.9"),
        (json!({ "equals": 900 }), "0x384px"),
        (json!({ "equals": 900 }), "900abc1"),
        (json!({ "equals": 900 }), "900/1"),
        (json!({ "equals": 900 }), "900 x 1"),
        (json!({ "equals": 100 }), "100.5e-1"),
        (json!({ "equals": 100.5 }), "100.5E-1"),
        (json!({ "equals": -900 }), "-900e-5"),
        (json!({ "max": 50 }), "50 00"),
        (json!({ "max": 50 }), "5e3"),
    ] {
        assert_eq!(of_text("deny", &test, text), Action::Deny, "{test} {text}");
    }
    for (test, text) in [
        (json!({ "min": 100 }), "90e-5"),
        (json!({ "equals": 900 }), "901e-5"),
        (json!({ "max": 50 }), "51 00"),
    ] {
        assert_eq!(of_text("deny", &test, text), Action::Allow, "{test} {text}");
    }
}

#[test]
fn json_texts_may_contain_nan_and_infinity() {
    let denied = |path: &str, text: &str| {
        let rule = json!({ "action": "deny", "server": "s", "arguments": { path: "/etc/*" } });
        let rules = Rules::new(vec![Rule::parse(&rule).unwrap()], [], Guard::Never).unwrap();
        let arguments = crate::raw(&json!({ "p": text }).to_string());
        let case = Case {
            arguments: Some(&arguments),
            ..Case::tool_call("s", "t")
        };
        rules.judge(&case, 0).action
    };
    for text in [
        r#"{"path":"/etc/x","n":NaN}"#,
        r#"{"n":Infinity,"path":"/etc/x"}"#,
        "\u{feff}{\"path\":\"/etc/x\"}",
        r#"{"n":[-Infinity , NaN],"path":"/etc/x"}"#,
        r#"{"n":"\"NaN","m":NaN,"path":"/etc/x"}"#,
    ] {
        assert_eq!(denied("$.p.path", text), Action::Deny, "{text}");
    }
    for text in [r#"["/etc/passwd",NaN]"#, r#"[NaN,"/etc/passwd"]"#] {
        assert_eq!(denied("$.p", text), Action::Deny, "{text}");
    }
    for text in [r#"["NaN /etc/passwd"]"#, r#"["/tmp/x",NaN]"#] {
        assert_eq!(denied("$.p", text), Action::Allow, "{text}");
    }
}

#[test]
fn homes_after_braced_schemes_are_denied() {
    let long = format!("fil{{e}}:///home/me/.ssh/{}id_rsa", "./".repeat(150));
    for text in [
        "f{i}le:///home/me/.ssh/id_rs[a-z]{,1,2}",
        "file:///home/me/%2{e}ssh/id_rs[a-z]{,1,2}",
        "f{i}le:///root/.ssh/id_rs[a-z]{,1,2}",
        "f{a b,ile:///home/}me/.ssh/id_rsa",
        "f{\\},il}e:///home/me/.ssh/id_rsa",
        &long,
    ] {
        assert_all(
            Action::Deny,
            &[("~/.ssh/*", text), ("matches ^~/\\.ssh/", text)],
        );
    }
    assert_all(
        Action::Allow,
        &[("~/.ssh/*", "/srv/f{i}le:///x[a-z]{,1,2}")],
    );
}

/// Places below a home directory, each with a pattern that matches it.
pub(crate) const HOME_PLACES: &[(&str, &str)] = &[
    ("~/.ssh/*", "/home/me/.ssh/id_rsa"),
    ("~/.ssh/*", "file:///home/me/.ssh/id_rsa"),
    ("~/.ssh/*", "file:///root/%2essh/id_rsa"),
];
