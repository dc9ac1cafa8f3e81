//! Addresses in which programs find different hosts, and similar harmless addresses.

use serde_json::json;
use switchboard_approvals::rules::{Action, Case, Guard, Rule, Rules};

use crate::evasions::{assert_all, of_uri};
use crate::spellings::of_text;

#[test]
fn hosts_ending_at_a_colon_need_approval() {
    for (pattern, text) in [
        ("https://*.example/*", "https://evil.test:443.example/x"),
        ("https://*.example/*", "https://evil.test:x.example/x"),
        ("https://*.example/*", "https://evil.test:.example/x"),
        ("https://*.example*", "https://evil.test:80:.example/x"),
        (
            "https://*.example:8443/*",
            "https://evil.test:x.example:8443/y",
        ),
    ] {
        let found = of_text("allow", &json!(pattern), text);
        assert_eq!(found, Action::Ask, "{text}");
        let found = of_text("deny", &json!("https://evil.test/*"), text);
        assert_eq!(found, Action::Deny, "{text}");
    }
    for text in [
        "https://ok.example:8443/x",
        "https://u:p@ok.example:8443/x:y",
    ] {
        let found = of_text("allow", &json!("https://*.example:8443/*"), text);
        assert_eq!(found, Action::Allow, "{text}");
    }
    let found = of_text(
        "allow",
        &json!("https://[::1]:8443/*"),
        "https://[::1]:8443/x",
    );
    assert_eq!(found, Action::Allow);
}

#[test]
fn every_host_of_a_list_counts() {
    for text in [
        "postgres://evil.test,b.example/db",
        "postgres://u:p@evil.test:1,b.example/db",
        "mongodb://evil.test:27017,b.example/db",
    ] {
        let scheme = &text[..text.find(':').unwrap()];
        let allowed = json!(format!("{scheme}://*.example/*"));
        assert_eq!(of_text("allow", &allowed, text), Action::Ask, "{text}");
    }
    assert_all(
        Action::Deny,
        &[
            ("postgres://prod.example/*", "postgres://a,prod.example/db"),
            ("postgres://prod.example/*", "postgres://prod.example,a/db"),
            (
                "postgres://prod.example/*",
                "postgres://u:p@a:1,prod.example:5432/db",
            ),
        ],
    );
    let long = format!(
        "postgres://{}prod.example/{}",
        "a,".repeat(30_000),
        "b/".repeat(30_000)
    );
    assert_all(Action::Deny, &[("postgres://prod.example/*", &long)]);
}

#[test]
fn default_ports_of_other_schemes_are_ignored() {
    assert_all(
        Action::Deny,
        &[
            ("ssh://host.example/*", "ssh://host.example:22/x"),
            ("ftp://host.example/*", "ftp://u@host.example:21/x"),
            ("postgres://db.example/*", "postgres://db.example:5432/x"),
            (
                "postgresql://db.example:5432/*",
                "postgresql://db.example/x",
            ),
            ("redis://db.example/*", "redis://db.example:6379/0"),
        ],
    );
    assert_all(
        Action::Allow,
        &[("ssh://host.example/*", "ssh://host.example:2222/x")],
    );
}

#[test]
fn fragments_hide_nothing() {
    for end in ["#x", "#", "#?x"] {
        for (pattern, place) in [
            ("https://prod.example/pay", "https://prod.example/pay"),
            ("https://prod.example/pay", "https://u@prod.example/pay"),
            (
                "https://prod.example/*/delete",
                "https://prod.example/1/delete",
            ),
            ("https://prod.example/", "https://prod.example"),
            ("https://prod.example", "https://prod.example/"),
            ("https://prod.example/admin/*", "https://prod.example/admin"),
            ("*/delete", "https://prod.example/1/delete"),
            (
                "matches ^https://prod\\.example/pay$",
                "https://prod.example/pay",
            ),
            ("matches /delete$", "https://prod.example/1/delete"),
        ] {
            let text = format!("{place}{end}");
            assert_all(Action::Deny, &[(pattern, &text)]);
        }
        let text = format!("https://prod.example/pay{end}");
        let test = json!({ "equals": "https://prod.example/pay" });
        assert_eq!(of_text("deny", &test, &text), Action::Deny, "{text}");
        let found = of_uri(&["deny resources files:https://prod.example/pay"], &text);
        assert_eq!(found, Action::Deny, "{text}");
    }
    assert_all(
        Action::Allow,
        &[("https://prod.example/pay", "https://prod.example/x#/pay")],
    );
}

#[test]
fn hosts_of_files_may_be_directories() {
    assert_all(
        Action::Deny,
        &[
            ("~/.ssh/*", "file://root/.ssh/id_rsa"),
            ("~/.ssh/*", "file://home/me/.ssh/id_rsa"),
            ("~/.ssh/*", "file://~/.ssh/id_rsa"),
            ("~/.ssh/*", "file://$HOME/.ssh/id_rsa"),
            ("~/.ssh/*", "file://%7e/.ssh/id_rsa"),
            ("/etc/hostname", "file://etc/hostname"),
            ("src/*", "file://src/x"),
            (".env", "file://.env"),
        ],
    );
    let found = of_text("allow", &json!("file://*/x"), "file://srv/x");
    assert_eq!(found, Action::Ask);
    let found = of_text("allow", &json!("file:///srv/*"), "file:///srv/x");
    assert_eq!(found, Action::Allow);
}

#[test]
fn database_drivers_may_open_other_hosts() {
    let database = "postgres://prod.example/*";
    for text in [
        "postgres://u@prod.example,@x/db",
        "postgres://u@prod.example:5432,@x/db",
        "postgres://u:p#w@prod.example/db",
        "postgres://u:p?w@prod.example/db",
        "postgres://x/db?host=prod.example",
        "postgres:///db?host=prod.example",
        "postgresql://prod.example/db",
    ] {
        assert_all(Action::Deny, &[(database, text)]);
    }
    for text in [
        "postgres://u@evil.test,@db.example/x",
        "postgres://db.example/x?host=evil.test",
        "postgres://db.example/x?hostaddr=10.0.0.1",
        "postgres://db.example/?%68ost=evil.test",
    ] {
        for pattern in ["postgres://*.example/*", "postgres://db.example/*"] {
            let found = of_text("allow", &json!(pattern), text);
            assert_eq!(found, Action::Ask, "{pattern} {text}");
        }
    }
    let plain = "postgres://db.example/x?sslmode=require";
    let found = of_text("allow", &json!("postgres://*.example/*"), plain);
    assert_eq!(found, Action::Allow);
    assert_all(Action::Allow, &[(database, plain)]);
}

#[test]
fn brackets_in_other_hosts_are_unclear() {
    for text in [
        "https://evil.test:].example/x",
        "https://evil.test:]a.example/x",
        "https://evil.test:[].example/x",
        "https://evil.test:443].example/x",
        "https://x[::ffff:1.2.3.4].example/y",
        "https://[evil.test].example/",
        "https://evil.test;\u{ff20}a.example/x",
        "https://evil.test:443\u{ff20}a.example/x",
        "https://evil.test:\u{fe6b}a.example/x",
        "https://evil.test'\u{ff20}a.example/x",
    ] {
        let found = of_text("allow", &json!("https://*.example/*"), text);
        assert_eq!(found, Action::Ask, "{text}");
    }
    assert_all(
        Action::Deny,
        &[
            (
                "http://169.254.169.254/*",
                "http://x[::ffff:169.254.169.254]/x",
            ),
            ("http://169.254.169.254/*", "http://x[::ffff:a9fe:a9fe]/x"),
            (
                "http://[2001:db8::1]:8080/*",
                "http://x[2001:db8::1]:8080/x",
            ),
            (
                "http://[2001:db8::1]:8080/*",
                "http://[2001:db8::1]y:8080/x",
            ),
            (
                "https://prod.example/*",
                "https://prod.example;\u{ff20}a.test/x",
            ),
            (
                "https://prod.example/*",
                "https://prod.example:443\u{ff20}a.test/x",
            ),
            (
                "matches ^https://prod\\.example/",
                "https://prod.example;\u{ff20}a.test/x",
            ),
        ],
    );
}

#[test]
fn this_machine_has_many_names() {
    for text in [
        "http://localhost:18762/x",
        "http://0.0.0.0:18762/x",
        "http://0:18762/x",
        "http://[::1]:18762/",
        "http://[::]:18762/",
        "http://127.0.0.2:18762/",
        "http://api.localhost:18762/",
        "localhost:18762/x",
    ] {
        for host in ["127.0.0.1", "localhost", "[::1]"] {
            assert_all(Action::Deny, &[(&format!("http://{host}:18762/*"), text)]);
        }
    }
    let found = of_text(
        "allow",
        &json!("http://localhost:1/*"),
        "http://127.0.0.1:1/x",
    );
    assert_eq!(found, Action::Ask);
}

#[test]
fn prose_is_allowed_by_address_rules() {
    for text in [
        "Use `ls` to list",
        "Fixes the `foo` bug, see `bar`",
        "- item `a`\n- item `b`",
        "price ${x}",
        "$HOME is set",
        "$x = 5;",
        "../sibling/file",
        "../docs/readme.md",
        "Dear ${name}, thanks",
        "$ref",
        "$5",
        "a:b",
        "~=1.0",
    ] {
        for pattern in [
            "http://169.254.169.254/*",
            "https://prod.example/pay",
            "matches ^https://prod\\.example/",
        ] {
            assert_all(Action::Allow, &[(pattern, text)]);
        }
    }
    for text in ["Use `ls` to list", "price ${x}", "Dear ${name}, thanks"] {
        assert_all(Action::Allow, &[("/etc/*", text)]);
    }
}

/// Runs itself with another home directory, since that is read once.
#[test]
fn own_home_is_known_wherever_it_is() {
    if std::env::var("OWN_HOME_TEST").is_err() {
        let name = "hosts::own_home_is_known_wherever_it_is";
        let status = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", name])
            .env("OWN_HOME_TEST", "1")
            .env("HOME", "/srv/Company/me")
            .status()
            .unwrap();
        assert!(status.success());
        return;
    }
    assert_all(
        Action::Deny,
        &[
            ("~/.ssh/*", "/srv/Company/me/.ssh/id_rsa"),
            ("~/.ssh/*", "file:///srv/company/me/.ssh/id_rsa"),
            ("matches ^~/\\.ssh/", "/srv/Company/me/.ssh/id_rsa"),
            ("/srv/Company/me/.ssh/*", "~/.ssh/id_rsa"),
            ("/srv/Company/me/.ssh/*", "$HOME/.ssh/id_rsa"),
        ],
    );
    assert_all(
        Action::Allow,
        &[("~/.ssh/*", "/srv/Company/you/.ssh/id_rsa")],
    );
}

#[test]
fn large_ports_are_unclear() {
    for text in [
        "http://127.0.0.1:84298/x",
        "127.0.0.1:84298/x",
        "//127.0.0.1:84298/x",
        "http://127.0.0.1:149834/x",
    ] {
        assert_all(
            Action::Deny,
            &[
                ("http://127.0.0.1:18762/*", text),
                ("matches ^https?://127\\.0\\.0\\.1:18762/", text),
            ],
        );
    }
    assert_all(
        Action::Deny,
        &[("http://169.254.169.254/*", "http://169.254.169.254:65616/x")],
    );
    assert_all(
        Action::Allow,
        &[("http://169.254.169.254/*", "http://169.254.169.254:65535/x")],
    );
}

#[test]
fn space_in_user_name_makes_no_comment() {
    for text in ["//a b@169.254.169.254/x", "//a b:c@169.254.169.254:80/x"] {
        assert_all(Action::Deny, &[("http://169.254.169.254/*", text)]);
    }
    assert_all(
        Action::Allow,
        &[("http://169.254.169.254/*", "//note: ask at the desk")],
    );
}

#[test]
fn wild_schemes_match_unclear_addresses() {
    for pattern in ["http*://169.254.169.254/*", "*://169.254.169.254/*"] {
        for text in [
            "http://::ffff:169.254.169.254:80/x",
            "http://[169.254.169.254]/x",
            "http://[2852039166]/x",
            "http://x;169.254.169.254/x",
        ] {
            assert_all(Action::Deny, &[(pattern, text)]);
        }
        assert_all(Action::Allow, &[(pattern, "http://ok.example/x")]);
    }
    for pattern in ["postgres*://prod.example/*", "*://prod.example/*"] {
        assert_all(
            Action::Deny,
            &[
                (pattern, "postgres://a,prod.example/db"),
                (pattern, "postgres://a/db?host=prod.example"),
            ],
        );
    }
    for text in ["http://[127.0.0.1]:18762/x", "http://[localhost]:18762/x"] {
        let test = "matches ^https?://127\\.0\\.0\\.1:18762/";
        assert_all(Action::Deny, &[(test, text)]);
    }
}

#[test]
fn database_queries_may_change_the_target() {
    assert_all(
        Action::Deny,
        &[
            (
                "postgres://prod.example:5433/*",
                "postgres://prod.example/db?port=5433",
            ),
            (
                "postgres://prod.example/*",
                "postgres://prod.example:1/db?port=5432",
            ),
            (
                "postgres://prod.example/secret*",
                "postgres://prod.example/pub?dbname=secret",
            ),
            (
                "jdbc:postgresql://prod.example/*",
                "jdbc:postgresql://prod.example:5432/db",
            ),
            (
                "postgresql+psycopg://prod.example/*",
                "postgresql+psycopg://prod.example:5432/db",
            ),
            (
                "postgres://prod.example/*",
                "postgresql+psycopg2://prod.example/db",
            ),
        ],
    );
    for end in ["?dbname=secret", "?port=5433"] {
        let text = format!("postgres://prod.example/pub{end}");
        let found = of_text("allow", &json!("postgres://prod.example/pub*"), &text);
        assert_eq!(found, Action::Ask, "{text}");
    }
    assert_all(
        Action::Allow,
        &[(
            "postgres://prod.example/*",
            "postgres://other.example/db?report=1&sslmode=x",
        )],
    );
}

#[test]
fn standard_links_of_systems_are_followed() {
    assert_all(
        Action::Deny,
        &[
            ("/var/mail/*", "/var/spool/mail/me"),
            ("/dev/shm/*", "/run/shm/x"),
            ("/dev/shm/*", "/var/run/shm/x"),
            ("/usr/bin/passwd", "/bin/X11/passwd"),
            ("~/.ssh/*", "/$HOME/.ssh/id"),
        ],
    );
}

#[test]
fn unpaired_surrogates_are_denied() {
    let rule = json!({ "action": "deny", "server": "s", "arguments": { "$.p": "/srv/\u{e4}/*" } });
    let rules = Rules::new(vec![Rule::parse(&rule).unwrap()], [], Guard::Never).unwrap();
    for arguments in [
        r#"{"p":"/srv/\udcc3\udca4/x"}"#,
        r#"{"p":"{\"path\":\"/srv/\\udcc3\\udca4/x\"}"}"#,
    ] {
        let arguments = crate::raw(arguments);
        let case = Case {
            arguments: Some(&arguments),
            ..Case::tool_call("s", "t")
        };
        assert_eq!(rules.judge(&case, 0).action, Action::Deny);
    }
}
