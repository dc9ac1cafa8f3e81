//! Restrictive rules against arguments with the same meaning in another spelling.

use proptest::prelude::*;
use serde_json::{Value, json};
use switchboard_approvals::rules::{Action, Case, Guard, Rule, Rules};

use crate::raw;

/// The verdict of one rule about `$.v`; `ask` stands for an allow that does not apply.
pub(crate) fn judged(action: &str, test: &Value, arguments: &str) -> Action {
    let mut rules = vec![
        Rule::parse(&json!({ "action": action, "server": "s", "arguments": { "$.v": test } }))
            .unwrap(),
    ];
    if action == "allow" {
        rules.push(Rule::parse_text("ask *").unwrap());
    }
    let rules = Rules::new(rules, [], Guard::Never).unwrap();
    let arguments = raw(arguments);
    let case = Case {
        arguments: Some(&arguments),
        ..Case::tool_call("s", "t")
    };
    rules.judge(&case, 0).action
}

pub(crate) fn of_text(action: &str, test: &Value, text: &str) -> Action {
    judged(action, test, &json!({ "v": text }).to_string())
}

/// Spellings of `/etc/passwd` that can be recognised from the text alone.
const PASSWD: &[&str] = &[
    "/etc/passwd",
    "//etc/passwd",
    "///etc///passwd",
    "/./etc/passwd",
    "/etc/./passwd",
    "/etc/././/passwd",
    "/tmp/../etc/passwd",
    "/tmp/x/../../etc/passwd",
    "/../../etc/passwd",
    "/etc/../etc/passwd",
    "/etc/x/../passwd",
    "/tmp/..//etc/passwd",
    "/tmp/.././etc/passwd",
    "/tmp/..;/etc/passwd",
    "/tmp/..;x=1/etc/passwd",
    "/tmp/.. /etc/passwd",
    "/proc/self/root/etc/passwd",
    "/proc/1/root/etc/passwd",
    "/proc/thread-self/root/etc/passwd",
    "/proc/self/task/1/root/etc/passwd",
    "/proc/self/root/../etc/passwd",
    "/proc/self/root/proc/self/root/etc/passwd",
    "//proc//self/./root//etc/passwd",
    "/proc/self/cwd/passwd",
    "/proc/1/cwd/../etc/passwd",
    "/proc/self/fd/7",
    "/proc/self/fd/7/passwd",
    "/proc/net/../root/etc/passwd",
    "/proc/thread-self/../../root/etc/passwd",
    "/var/run/../etc/passwd",
    "/sys/class/net/lo/subsystem/../../../etc/passwd",
    "/lib/modules/x/build/../../../etc/passwd",
    "/dev/fd/7",
    "/dev/stdin",
    "/private/etc/passwd",
    "/System/Volumes/Data/etc/passwd",
    "../etc/passwd",
    "../../../../etc/passwd",
    "x/../../../etc/passwd",
    "..\\..\\etc\\passwd",
    "\\etc\\passwd",
    "/etc\\passwd",
    "\\\\etc\\\\passwd",
    "/tmp\\..\\etc\\passwd",
    "C:\\etc\\passwd",
    "c:/etc/passwd",
    "\\\\?\\C:\\etc\\passwd",
    "\\\\.\\C:\\etc\\passwd",
    "c:etc\\passwd",
    "file:///etc/passwd",
    "file:/etc/passwd",
    "file:////etc/passwd",
    "file://localhost/etc/passwd",
    "file://host.example/etc/passwd",
    "FILE:///etc/passwd",
    "file:///c:/etc/passwd",
    "file:///tmp/../etc/passwd",
    "file:///etc/passwd?x=1",
    "file:///etc/passwd#x",
    "file:///%65tc/passwd",
    "url:file:///etc/passwd",
    "<URL:file:///etc/passwd>",
    "view-source:file:///etc/passwd",
    "jar:file:///etc/passwd!/x",
    "view-source:jar:file:/etc/passwd",
    "local_file:///etc/passwd",
    "netdoc:///etc/passwd",
    "//localhost/etc/passwd",
    "\\\\127.0.0.1\\etc\\passwd",
    "\\\\localhost\\c$\\etc\\passwd",
    "\\\\HOST\\C$\\etc\\passwd",
    "\\\\?\\UNC\\localhost\\c$\\etc\\passwd",
    "\\\\wsl$\\Ubuntu\\etc\\passwd",
    "\\\\wsl.localhost\\Ubuntu\\etc\\passwd",
    "%2fetc%2fpasswd",
    "/etc%2fpasswd",
    "/%65%74%63/passwd",
    "/tmp/%2e%2e/etc/passwd",
    "/tmp/%2E./etc/passwd",
    "/tmp/..%2fetc/passwd",
    "/tmp/%252e%252e/etc/passwd",
    "/tmp/%25252e%25252e%25252fetc/passwd",
    "/tmp/%5c..%5cetc/passwd",
    "/%c0%afetc/passwd",
    "/tmp/%c0%ae%c0%ae/etc/passwd",
    "/tmp/%e0%80%ae%e0%80%ae/etc/passwd",
    "/tmp/%u002e%u002e/etc/passwd",
    "%252525252525252fetc",
    "/ETC/passwd",
    "/Etc/PASSWD",
    "/etc/passwd ",
    " /etc/passwd",
    "\t/etc/passwd\n",
    "/etc /passwd",
    "/etc./passwd",
    "/etc/passwd.",
    "/etc/passwd::$DATA",
    "\"/etc/passwd\"",
    "'/etc/passwd'",
    "/etc/passwd\0",
    "/etc/passwd\0.txt",
    "/etc/passwd%00.txt",
    "/et\u{200b}c/passwd",
    "/etc\u{feff}/passwd",
    "/e\u{ad}tc/passwd",
    "/etc/\u{202e}passwd",
    "/etc/pass\u{1}wd",
    "\u{ff0f}etc\u{ff0f}passwd",
    "/tmp/\u{ff0e}\u{ff0e}/etc/passwd",
    "/tmp/\u{2025}/etc/passwd",
    "/tmp/\u{2024}\u{2024}/etc/passwd",
    "\u{2215}etc\u{2044}passwd",
    "\u{ff3c}etc\u{ff3c}passwd",
    "/\u{ff45}\u{ff54}\u{ff43}/passwd",
    "/\u{ff05}65tc/passwd",
    "$X/passwd",
    "${X}/passwd",
    "%WINDIR%/passwd",
    "/$(echo etc)/passwd",
    "/`echo etc`/passwd",
    "/e*/passwd",
    "/e?c/passwd",
    "/[e]tc/passwd",
    "/{etc,x}/passwd",
    "/etc",
    "/etc/",
    "/etc/.",
];

/// Texts that do not lead there.
const HARMLESS: &[&str] = &[
    "/etcetera",
    "/etc-old/passwd",
    "/home/me/etc/x",
    "/home/me/etc/passwd",
    "/tmp/..hidden",
    "/tmp/x..y/z",
    "/tmp/...",
    "//tmp//x",
    "/tmp/etc/passwd",
    "notes.txt",
    "./notes.txt",
    "a/../notes.txt",
    "etc/passwd",
    "~/notes.txt",
    "$HOME/notes.txt",
    "${HOME}/notes.txt",
    "%USERPROFILE%/notes.txt",
    "file:///tmp/etc/passwd",
    "https://example.com/etc/passwd",
    "/tmp/100%",
    "/tmp/100%25",
    "/tmp/a%20b",
    "/proc/self/status",
    "/proc/self/root/tmp/x",
    "/dev/null",
    "C:\\Users\\me",
    "/tmp/*.txt",
    "/home/[me]/x",
    "/Users/me/é",
    "what is in /etc/passwd?",
    "costs $100",
    "",
    "/",
    "..hidden",
    "see etc/",
    "//srv/etc/passwd",
    "//host.example/share/etc/passwd",
    "url:https://example.com/etc/passwd",
    "note: file names",
    "/var/run/x",
    "/bin/ls",
    "/proc/net/dev",
    "/tmp/[a-z]*.{txt,md}",
];

#[test]
fn every_spelling_of_a_path_is_denied() {
    for test in [
        json!("/etc/*"),
        json!("\\ETC\\*"),
        json!("file:///etc/*"),
        json!("/private/etc//./*"),
        json!({ "matches": "^/etc/" }),
    ] {
        for action in ["deny", "ask"] {
            for path in PASSWD {
                let found = of_text(action, &test, path);
                assert_eq!(found.as_str(), action, "{test} {path:?}");
            }
        }
    }
}

#[test]
fn harmless_paths_are_allowed() {
    for test in [
        json!("/etc/*"),
        json!("\\ETC\\*"),
        json!("file:///etc/*"),
        json!("/etc/passwd"),
        json!({ "equals": "/etc/passwd" }),
        json!({ "matches": "^/etc/" }),
    ] {
        for path in HARMLESS {
            assert_eq!(
                of_text("deny", &test, path),
                Action::Allow,
                "{test} {path:?}"
            );
        }
    }
}

#[test]
fn single_file_is_denied_in_every_spelling() {
    for test in [json!("/etc/passwd"), json!({ "equals": "/etc/passwd" })] {
        for path in PASSWD {
            // The pattern is about the file, and not about its directory.
            if !matches!(*path, "/etc" | "/etc/" | "/etc/.") {
                assert_eq!(
                    of_text("deny", &test, path),
                    Action::Deny,
                    "{test} {path:?}"
                );
            }
        }
        assert_eq!(of_text("deny", &test, "/etc/passwd2"), Action::Allow);
    }
}

#[test]
fn home_paths_are_denied_under_any_name() {
    let held = [
        ("/home/me/.ssh/*", "~/.ssh/id"),
        ("/home/*/.ssh/*", "~/.ssh/id"),
        ("/home/*", "~/x"),
        ("/Users/me/.ssh/*", "$HOME/.ssh/id"),
        ("/root/*", "${HOME}/x"),
        ("/root/.ssh/*", "~root/.ssh/id"),
        ("C:\\Users\\me\\secret\\*", "%USERPROFILE%\\secret\\x"),
        ("~/.ssh/*", "/home/me/.ssh/id"),
        ("~/.ssh/*", "/Users/me//.ssh/./id"),
        ("~/.ssh/*", "$HOME/x/../.ssh/id"),
        ("$HOME/.ssh/*", "~/.ssh/id"),
        ("*/.ssh/*", ".ssh/id"),
        ("*/.ssh/*", "~/.ssh/id"),
        ("*.env", "/x/.ENV"),
        ("/*", "~/x"),
        ("/etc/*", "~/../../etc/passwd"),
    ];
    for (pattern, path) in held {
        let found = of_text("deny", &json!(pattern), path);
        assert_eq!(found, Action::Deny, "{pattern} {path}");
    }
    let passed = [
        ("/home/me/.ssh/*", "~/notes/x"),
        ("/root/.ssh/*", "~/notes"),
        ("~/.ssh/*", "/home/me/ssh/id"),
        ("~/.ssh/*", "~/.sshx/id"),
        ("*/.ssh/*", "ssh/id"),
        ("/*", "notes/x"),
    ];
    for (pattern, path) in passed {
        let found = of_text("deny", &json!(pattern), path);
        assert_eq!(found, Action::Allow, "{pattern} {path}");
    }
}

#[test]
fn addresses_are_denied_in_other_spellings() {
    let pattern = json!("https://intra.example/secret/*");
    for text in [
        "https://intra.example/secret/x",
        "HTTPS://INTRA.example/secret/x",
        "https://intra.example:443/secret/x",
        "https://intra.example./secret/x",
        "https://me:pw@intra.example/secret/x",
        "https:/intra.example/secret/x",
        "https:\\\\intra.example\\secret\\x",
        "https:intra.example/secret/x",
        "https://intra.example//secret/x",
        "https://intra.example/a/../secret/x",
        "https://intra.example/%73ecret/x",
        "https://intra\u{3002}example/secret/x",
    ] {
        assert_eq!(of_text("deny", &pattern, text), Action::Deny, "{text}");
    }
    for text in [
        "https://intra.example/public/x",
        "https://other.example/secret/x",
        "https://intra.example.evil.example/secret/x",
        "http://localhost/secret/x",
    ] {
        assert_eq!(of_text("deny", &pattern, text), Action::Allow, "{text}");
    }
}

#[test]
fn every_spelling_of_a_number_is_denied() {
    let test = json!({ "min": 100 });
    for value in [
        "100",
        "100.0",
        "1e2",
        "1E+2",
        "1000",
        "1e400",
        "99.99999999999999999999",
        "123456789012345678901234567890",
        "-1e400",
        "true",
        "false",
        "null",
        "[]",
        "{}",
        "[1]",
        "[[100]]",
        r#"{"x":100}"#,
        r#""100""#,
        r#""1_000""#,
        r#""１００""#,
        r#""1,000""#,
        r#""1.000,00""#,
        r#""1.000""#,
        r#""$100""#,
        r#""100 USD""#,
        r#""€ 100""#,
        r#""0x64""#,
        r#""0X64""#,
        r#""0b1100100""#,
        r#""0o144""#,
        r#""1e2""#,
        r#"" 100 ""#,
        r#""+100""#,
        r#""Infinity""#,
        r#""inf""#,
        r#""NaN""#,
        r#""1/2""#,
        r#""½""#,
        r#""١٠٠""#,
        r#""१००""#,
        r#""1 000""#,
        r#""1'000""#,
        r#""1\u200b00""#,
        r#""1\u00a0000""#,
        r#""5k""#,
        r#""99%""#,
        r#""a lot""#,
        r#""""#,
        r#""100abc""#,
        r#""99.99999999999999999999""#,
        r#""1e999""#,
        r#""99999999999999999999999999""#,
        r#""one hundred""#,
        r#""[100]""#,
        r#""[\"100\"]""#,
        r#""0xzz""#,
        r#""1 + 99""#,
        r#""12:30""#,
        r#""0x""#,
    ] {
        let found = judged("deny", &test, &format!(r#"{{"v":{value}}}"#));
        assert_eq!(found, Action::Deny, "{value}");
    }
    for value in [
        "99",
        "99.99",
        "0",
        "-5",
        "-100",
        "1e1",
        "0.001",
        "1e-400",
        r#""99""#,
        r#""99.99""#,
        r#""1_0""#,
        r#""$5""#,
        r#""5 USD""#,
        r#""９９""#,
        r#"" 99 ""#,
        r#""+99""#,
        r#""-100""#,
        r#""-$100""#,
        r#""0x10""#,
        r#"".5""#,
        r#""5.""#,
        r#""1e1""#,
        r#""0,5""#,
    ] {
        let found = judged("deny", &test, &format!(r#"{{"v":{value}}}"#));
        assert_eq!(found, Action::Allow, "{value}");
    }
}

#[test]
fn ambiguous_numbers_are_denied() {
    // A missing value is not known to be large.
    assert_eq!(judged("deny", &json!({ "min": 100 }), "{}"), Action::Allow);
    // Some parsers read leading zeros as octal.
    let small = json!({ "max": 100 });
    assert_eq!(judged("deny", &small, r#"{"v":"0144"}"#), Action::Deny);
    assert_eq!(judged("deny", &small, r#"{"v":"144"}"#), Action::Allow);
    assert_eq!(
        judged("deny", &small, r#"{"v":18446744073709551615}"#),
        Action::Deny
    );
}

#[test]
fn equivalent_values_are_denied() {
    let held = [
        (
            json!({ "equals": 100 }),
            &[
                "100",
                "100.0",
                "1e2",
                r#""100""#,
                r#""1e2""#,
                r#"" 100 ""#,
                r#""$100""#,
                r#""１００""#,
                r#""١٠٠""#,
                "[100]",
                r#"["100"]"#,
            ][..],
        ),
        (json!("100"), &["100", "1e2", r#""100.0""#]),
        (
            json!(true),
            &[
                "true",
                "1",
                r#""true""#,
                r#""True""#,
                r#""yes""#,
                r#""on""#,
                r#""1""#,
                "1.0",
                "1.00",
                "1e0",
                "10e-1",
                "100e-2",
                "1.00000000000000000001",
                r#""1.00""#,
                r#""01""#,
                r#""+1""#,
                r#"" 1e0 ""#,
                r#""Y""#,
                r#""t""#,
                "[true]",
            ],
        ),
        (
            json!({ "equals": false }),
            &[
                "false", "0", "-0", "-0.0", "0e0", "0e5", r#""00""#, r#""0e0""#, r#""-0""#,
                r#""no""#, r#""OFF""#,
            ],
        ),
        (
            json!({ "equals": null }),
            &["null", r#""null""#, r#""None""#, r#""""#],
        ),
        (
            json!({ "equals": "yes" }),
            &[r#""yes""#, r#""YES""#, "true", r#""ye\u200bs""#],
        ),
        (
            json!({ "equals": [1, "a"] }),
            &[r#"[1,"a"]"#, r#"["1","A"]"#, r#""[1,\"a\"]""#],
        ),
        (
            json!({ "equals": { "a": 1, "b": true } }),
            &[r#"{"b":"yes","a":"1"}"#],
        ),
        (
            json!("prod"),
            &[
                r#""prod""#,
                r#""PROD""#,
                r#"["dev","prod"]"#,
                r#"{"x":"prod"}"#,
                r#"[["prod"]]"#,
                r#""[\"prod\"]""#,
            ],
        ),
        (
            json!({ "matches": "drop" }),
            &[r#""DROP table""#, r#"["x","drop"]"#, r#""d\u200brop""#],
        ),
    ];
    for (test, values) in held {
        for value in values {
            let found = judged("ask", &test, &format!(r#"{{"v":{value}}}"#));
            assert_eq!(found, Action::Ask, "{test} {value}");
        }
    }
}

#[test]
fn different_values_are_allowed() {
    for (test, value) in [
        (json!({ "equals": 100 }), r#""101""#),
        (json!({ "equals": 100 }), r#""abc""#),
        (json!({ "equals": 1 }), r#""at 10:30""#),
        (json!({ "equals": true }), "false"),
        (json!({ "equals": true }), r#""maybe""#),
        (json!({ "equals": true }), "0e1"),
        (json!({ "equals": true }), "10"),
        (json!({ "equals": true }), r#""1 file""#),
        (json!({ "equals": true }), r#""0.1e0""#),
        (json!({ "equals": false }), "1e-3"),
        (json!({ "equals": false }), r#""""#),
        (json!({ "equals": [1, 2] }), "[1]"),
        (json!({ "equals": { "a": 1 } }), r#"{"a":1,"b":2}"#),
        (json!({ "equals": null }), "0"),
        (json!("prod"), r#""production""#),
        (json!("prod"), "[]"),
        (json!({ "matches": "^drop$" }), r#""a drop""#),
    ] {
        let found = judged("ask", &test, &format!(r#"{{"v":{value}}}"#));
        assert_eq!(found, Action::Allow, "{test} {value}");
    }
}

#[test]
fn null_counts_as_absent_for_restrictive_rules() {
    let absent = json!({ "exists": false });
    assert_eq!(judged("ask", &absent, r#"{"v":null}"#), Action::Ask);
    assert_eq!(judged("ask", &absent, "{}"), Action::Ask);
    assert_eq!(judged("ask", &absent, r#"{"v":0}"#), Action::Allow);
    let present = json!({ "exists": true });
    assert_eq!(judged("ask", &present, r#"{"v":null}"#), Action::Ask);
}

#[test]
fn lists_and_json_texts_are_searched() {
    let rule = |path: &str| {
        let rule = json!({ "action": "deny", "arguments": { path: "/etc/*" } });
        Rules::new(vec![Rule::parse(&rule).unwrap()], [], Guard::Never).unwrap()
    };
    for (path, arguments) in [
        ("$.a[*]", r#"{"a":"/etc/x"}"#),
        ("$.a[0]", r#"{"a":"/etc/x"}"#),
        ("$.a[*]", r#"{"a":"[\"/etc/x\"]"}"#),
        ("$.a.b", r#"{"a":[{"b":"/etc/x"}]}"#),
        ("$.a.b", r#"{"a":"{\"b\":\"/etc/x\"}"}"#),
        ("$.a", r#"{"a":{"path":["/tmp",{"p":"/etc/x"}]}}"#),
        ("$.a[*].b", r#"{"a":{"b":"/etc/x"}}"#),
    ] {
        let arguments = raw(arguments);
        let case = Case {
            arguments: Some(&arguments),
            ..Case::tool_call("s", "t")
        };
        let found = rule(path).judge(&case, 0).action;
        assert_eq!(found, Action::Deny, "{path} {arguments}");
    }
}

#[test]
fn allow_requires_every_spelling_to_match() {
    for (test, text) in [
        (json!("/tmp/*"), "/tmp/x"),
        (json!("/tmp/*"), "/tmp/x.y/z"),
        (json!("/tmp/*"), "/tmp/100%"),
        (json!("*.txt"), "notes.txt"),
        (json!("file:///tmp/*"), "file:///tmp/x"),
        (json!("https://x.example/*"), "https://x.example/a?b=c"),
        (json!({ "matches": "^What .*\\?$" }), "What is it?"),
        (json!({ "matches": "^/tmp/" }), "/tmp/x"),
        (json!("*"), "../anything"),
        (json!("/tmp/../x"), "/tmp/../x"),
        (json!("~/notes/*"), "~/notes/x"),
    ] {
        assert_eq!(
            of_text("allow", &test, text),
            Action::Allow,
            "{test} {text}"
        );
    }
    for (test, text) in [
        (json!("/tmp/*"), "//tmp/x"),
        (json!("/tmp/*"), "/TMP/x"),
        (json!("/tmp/*"), "/tmp/../etc/passwd"),
        (json!("/tmp/*"), "/tmp/a/../x"),
        (json!("/tmp/*"), "/tmp/%2e%2e/x"),
        (json!("/tmp/*"), "/tmp/%252e%252e/x"),
        (json!("/tmp/*"), "/tmp/\u{ff0e}\u{ff0e}/x"),
        (json!("/tmp/*"), "/tmp/..;/x"),
        (json!("/tmp/*"), "/tmp/${X}"),
        (json!("/proc/*"), "/proc/self/root/etc/shadow"),
        (json!("/proc/*"), "/proc/self/cwd/x"),
        (json!("/dev/*"), "/dev/fd/3"),
        (json!("*.txt"), "/etc/passwd\0.txt"),
        (json!("*.txt"), "/etc/passwd%00.txt"),
        (json!({ "matches": "^/tmp/" }), "/tmp/../etc/passwd"),
        (json!({ "matches": "^/tmp/" }), "/tmp/%2e%2e/etc/passwd"),
        (json!({ "matches": "txt$" }), "/etc/passwd%00.txt"),
        (json!("~/notes/*"), "~/notes/../.ssh/id"),
    ] {
        assert_eq!(of_text("allow", &test, text), Action::Ask, "{test} {text}");
    }
    let small = json!({ "max": 5 });
    for value in [r#""3""#, "true", "null", "[3]", "-1e400", "-1e30"] {
        let found = judged("allow", &small, &format!(r#"{{"v":{value}}}"#));
        assert_eq!(found, Action::Ask, "{value}");
    }
}

/// A transformation of a path into another spelling.
#[derive(Clone, Debug)]
enum Rewrite {
    Slashes,
    Dot,
    Detour,
    Backslash,
    Percent,
    FullWidth,
    Case,
    Unseen,
    Root,
    Uri,
    Blank,
}

impl Rewrite {
    fn of(&self, path: &str, at: usize) -> String {
        let slashes: Vec<usize> = path.match_indices('/').map(|(at, _)| at).collect();
        let with = |text: &str| match slashes.get(at % slashes.len().max(1)) {
            Some(slash) => format!("{}{text}{}", &path[..*slash], &path[slash + 1..]),
            None => path.to_owned(),
        };
        let one = |change: &dyn Fn(char) -> String| {
            let count = path.chars().count().max(1);
            let chars = path.chars().enumerate();
            let changed = chars.map(|(n, c)| {
                if n == at % count {
                    change(c)
                } else {
                    c.to_string()
                }
            });
            changed.collect::<String>()
        };
        let is_plain = path.starts_with('/') && !path.contains('%');
        match self {
            Self::Slashes => with("//"),
            Self::Dot => with("/./"),
            Self::Detour => with("/x/../"),
            Self::Backslash => path.replace('/', "\\"),
            Self::Percent => one(&|c| {
                let mut bytes = [0; 4];
                let bytes = c.encode_utf8(&mut bytes).bytes();
                let spelled: Vec<String> = bytes.map(|byte| format!("%{byte:02x}")).collect();
                spelled.concat()
            }),
            Self::FullWidth => one(&|c| match c {
                '!'..='~' => char::from_u32(u32::from(c) + 0xfee0).unwrap().to_string(),
                c => c.to_string(),
            }),
            Self::Case => path.to_uppercase(),
            Self::Unseen => one(&|c| format!("{c}\u{200b}")),
            Self::Root if is_plain => format!("/proc/self/root{path}"),
            Self::Uri if is_plain => format!("file://{path}"),
            Self::Root | Self::Uri => path.to_owned(),
            Self::Blank => format!(" {path} "),
        }
    }
}

fn rewrite() -> impl Strategy<Value = (Rewrite, usize)> {
    let which = prop_oneof![
        Just(Rewrite::Slashes),
        Just(Rewrite::Dot),
        Just(Rewrite::Detour),
        Just(Rewrite::Backslash),
        Just(Rewrite::Percent),
        Just(Rewrite::FullWidth),
        Just(Rewrite::Case),
        Just(Rewrite::Unseen),
        Just(Rewrite::Root),
        Just(Rewrite::Uri),
        Just(Rewrite::Blank),
    ];
    (which, 0..64_usize)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn rewritten_paths_are_denied(
        below in "[a-z][a-z0-9_-]{0,5}(/[a-z][a-z0-9_-]{0,5}){0,3}",
        rewrites in proptest::collection::vec(rewrite(), 0..4),
    ) {
        let mut path = format!("/srv/secret/{below}");
        for (rewrite, at) in rewrites {
            path = rewrite.of(&path, at);
        }
        prop_assert_eq!(of_text("deny", &json!("/srv/secret/*"), &path), Action::Deny, "{:?}", path);
    }

    #[test]
    fn plain_paths_elsewhere_are_allowed(
        parts in proptest::collection::vec("[a-zA-Z0-9_-]{1,6}(\\.[a-z]{1,3})?", 1..5),
        is_absolute in any::<bool>(),
    ) {
        let start = if is_absolute { "/" } else { "" };
        let path = format!("{start}{}", parts.join("/"));
        let lower = path.to_lowercase();
        prop_assume!(!lower.starts_with("/srv/secret") && !lower.starts_with("/proc") && !lower.starts_with("/dev"));
        prop_assert_eq!(of_text("deny", &json!("/srv/secret/*"), &path), Action::Allow, "{:?}", path);
    }

    #[test]
    fn allowed_paths_have_no_denied_reading(path in "(/|/tmp/|\\.|\\.\\.|%2e|%2f|[a-c/\\\\%$~ ;:0-9]|\u{ff0e}|\\PC){0,12}") {
        let path = format!("/tmp/{path}");
        let test = json!("/tmp/*");
        if of_text("allow", &test, &path) == Action::Allow {
            // No possible reading leads elsewhere.
            prop_assert_eq!(of_text("deny", &json!("/etc/*"), &path), Action::Allow, "{:?}", path);
        }
    }
}
