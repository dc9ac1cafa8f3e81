//! Texts that a shell or curl resolves to a different place than they seem to name, and similar harmless
//! texts.

use serde_json::json;
use switchboard_approvals::rules::Action;

use crate::evasions::assert_all;
use crate::spellings::of_text;

const METADATA: &str = "http://169.254.169.254/*";
const LOCAL: &str = "http://127.0.0.1:18762/*";

#[test]
fn quotes_are_processed_as_in_bash() {
    assert_all(
        Action::Deny,
        &[
            (METADATA, r#""16"{9,{x,y}}".254.169.254/x""#),
            ("~/.ssh/*", r#""f"{i,{x,y}}"le:///home/me/.ssh/id_rsa""#),
            ("/etc/passwd", r#""f"{i,{x,y}}"le:///etc/./passwd""#),
            ("http://intranet/*", r#""i"{n,{x,y}}"tranet""#),
            ("/etc/*", "f{$'ile:///%6',x}5tc/passwd"),
            ("~/.ssh/*", "f{$'i',{x,y}}le:///home/me/.ssh/k"),
        ],
    );
}

#[test]
fn quotes_and_escapes_hide_nothing() {
    assert_all(
        Action::Deny,
        &[
            ("/etc/*", r#"file:///%6"5"tc/passwd"#),
            ("/etc/*", "file:///%6''5tc/passwd"),
            ("/etc/*", r"file:///%6\5tc/passwd"),
            ("/etc/*", r#"f{i}le:///%6"{5}"tc/passwd"#),
            ("~/.ssh/*", "file:///home/me/%2''essh/id_rsa"),
            (METADATA, "http://16%3''9.254.169.254/x"),
            (METADATA, r#"169.254.169".2"54"#),
            (METADATA, r"169.254.169.\254"),
            (METADATA, "169.254.169.$'254'"),
        ],
    );
    for (pattern, text) in [
        ("file:///srv/*", "file:///srv/.%2''e/etc/passwd"),
        ("/srv/*", "/srv/%2''e%2''e/etc/passwd"),
    ] {
        let found = of_text("allow", &json!(pattern), text);
        assert_eq!(found, Action::Ask, "{text}");
    }
}

#[test]
fn text_after_a_space_hides_no_address() {
    for end in [" }", " {", "\t}", "\n{"] {
        for (pattern, text) in [
            ("/etc/*", "file:///%6{5}tc/passwd"),
            ("~/.ssh/*", "f{i}le:///home/me/.ssh/id_rsa"),
            (LOCAL, "12{7}.1:18762/x"),
            ("http://localhost/*", "localhos{t}"),
        ] {
            assert_all(Action::Deny, &[(pattern, &format!("{text}{end}"))]);
        }
    }
}

#[test]
fn wildcards_through_proc_may_lead_home() {
    assert_all(
        Action::Deny,
        &[
            ("~/.ssh/*", "/proc/self/roo?/root/.ssh/id_rsa"),
            ("~/.ssh/*", "/pro?/self/root/home/me/.ssh/id_rsa"),
            ("~/.ssh/*", "/proc/self/cw?/.ssh/id_rsa"),
            ("~/.ssh/*", "/p*/1/root/root/.ssh/id_rsa"),
            ("~/.ssh/*", "/dev/f?/3/.ssh/id_rsa"),
        ],
    );
    assert_all(Action::Allow, &[("~/.ssh/*", "/srv/*/x")]);
}

#[test]
fn prose_with_shell_characters_is_allowed() {
    for text in [
        "~2/3 of the users agreed",
        "~100/month is the price",
        "~~done~~",
        "~~struck/out~~ and kept",
        "$5 and $10",
        "$5 a month",
        "$5.00",
        "$1,000",
        "//TODO: fix `x`",
        "/*! normalize.css v8 */ html{}",
        "don't touch '%' signs",
        "it's 5'10\" tall",
    ] {
        for pattern in ["/etc/*", "~/.ssh/*", METADATA, "matches ^/etc/"] {
            assert_all(Action::Allow, &[(pattern, text)]);
        }
    }
    assert_all(
        Action::Deny,
        &[("/etc/*", "~9user/passwd"), ("/etc/*", "$1/passwd")],
    );
}
