//! Matching and precedence of rules.

use serde_json::{Value, json};
use switchboard_approvals::{
    Session,
    rules::{
        Action, Case, Guard, Hints, Kind, Match, Remembered, Rule, Rules, Scope, digest, matches,
    },
};

use crate::{raw, world::owners};

fn rules(texts: &[&str]) -> Rules {
    let parsed = texts.iter().map(|text| Rule::parse_text(text).unwrap());
    Rules::new(parsed.collect(), [], Guard::Never)
        .unwrap()
        .with_identities([("files".to_owned(), "this".to_owned())])
}

fn with_arguments(rule: &str, arguments: &str) -> Action {
    let arguments = raw(arguments);
    let case = Case {
        arguments: Some(&arguments),
        ..Case::tool_call("files", "write")
    };
    rules(&[rule]).judge(&case, 0).action
}

#[test]
fn more_specific_rule_wins() {
    use Action::{Allow, Ask, Deny};
    for (written, tool, expected, by) in [
        (
            &["ask files:*", "allow files:read_*"][..],
            "read_file",
            Allow,
            "config-2",
        ),
        (
            &["ask files:*", "allow files:read_*"],
            "write_file",
            Ask,
            "config-1",
        ),
        (
            &["allow files:read_file", "ask files:read_*"],
            "read_file",
            Allow,
            "config-1",
        ),
        (
            &["allow files:read_*", "ask files:read_f*"],
            "read_file",
            Ask,
            "config-2",
        ),
        (&["allow files:*", "ask files:*"], "x", Ask, "config-2"),
        (
            &["allow *:read_*", "ask files:*"],
            "read_file",
            Allow,
            "config-1",
        ),
        (&["allow *:x", "ask files:x"], "x", Ask, "config-2"),
        (
            &["allow files:x @c*", "ask files:x"],
            "x",
            Allow,
            "config-1",
        ),
        (&["allow files:x", "deny *"], "x", Deny, "config-2"),
        (&["allow Files:x", "ask files:x"], "x", Ask, "config-2"),
        (
            &["allow sampling files:x", "ask files:x"],
            "x",
            Ask,
            "config-2",
        ),
    ] {
        let case = Case {
            client: "claude-code 2.1",
            ..Case::tool_call("files", tool)
        };
        let verdict = rules(written).judge(&case, 0);
        assert_eq!(verdict.action, expected, "{written:?} {tool}");
        assert_eq!(verdict.rule.unwrap().id, by, "{written:?} {tool}");
    }
}

#[test]
fn conditions_on_arguments_are_judged() {
    use Action::{Allow, Ask, Deny};
    let rule = |action: &str, path: &str, test: Value| json!({"action": action, "arguments": {path: test}});
    for (rule, arguments, expected) in [
        (
            rule("deny", "$.path", json!("/etc/*")),
            r#"{"path":"/etc/passwd"}"#,
            Deny,
        ),
        (
            rule("deny", "$.path", json!("/etc/*")),
            r#"{"path":"/tmp/x"}"#,
            Allow,
        ),
        (
            rule("deny", "$.path", json!("/etc/*")),
            r#"{"\u0070ath":"\/etc/x"}"#,
            Deny,
        ),
        (
            rule("ask", "$.a.b[1][\"c d\"]", json!("x")),
            r#"{"a":{"b":[0,{"c d":"x"}]}}"#,
            Ask,
        ),
        (rule("ask", "$.a[0]", json!("x")), r#"{"a":["x"]}"#, Ask),
        (rule("ask", "$.a[1]", json!("x")), r#"{"a":["x"]}"#, Allow),
        (rule("ask", "$.a[*]", json!("x")), r#"{"a":["y","x"]}"#, Ask),
        (rule("ask", "$.*", json!("x")), r#"{"a":"y","b":"x"}"#, Ask),
        (rule("ask", "$.n", json!({"min": 10})), r#"{"n":10}"#, Ask),
        (rule("ask", "$.n", json!({"min": 10})), r#"{"n":"11"}"#, Ask),
        (
            rule("ask", "$.n", json!({"min": 10, "max": 20})),
            r#"{"n":21}"#,
            Allow,
        ),
        (
            rule("ask", "$.n", json!({"min": 10})),
            r#"{"n":1e400}"#,
            Ask,
        ),
        (rule("ask", "$.n", json!(true)), r#"{"n":true}"#, Ask),
        (rule("ask", "$.n", json!("true")), r#"{"n":true}"#, Ask),
        (
            rule("ask", "$.n", json!({"equals": {"a": [1, null]}})),
            r#"{"n":{"a":[1.0,null]}}"#,
            Ask,
        ),
        (
            rule("ask", "$.n", json!({"equals": 1})),
            r#"{"n":"1"}"#,
            Ask,
        ),
        (rule("ask", "$", json!({"equals": {}})), "{}", Ask),
        (
            rule("ask", "$.n", json!({"exists": true})),
            r#"{"n":null}"#,
            Ask,
        ),
        (rule("ask", "$.n", json!({"exists": false})), "{}", Ask),
        (
            rule("ask", "$.n", json!({"exists": false})),
            r#"{"n":1}"#,
            Allow,
        ),
        (
            rule("ask", "$.q", json!({"matches": "(?i)\\bdrop\\b"})),
            r#"{"q":"; DROP table"}"#,
            Ask,
        ),
        (
            rule("ask", "$.q", json!({"matches": "^a+$", "exists": true})),
            r#"{"q":"b"}"#,
            Allow,
        ),
        // Arguments that cannot be judged are denied.
        (
            rule("allow", "$.path", json!("x")),
            r#"{"path":"x","path":"y"}"#,
            Deny,
        ),
        (rule("ask", "$.path", json!("x")), "[1]", Deny),
        (
            rule("ask", "$.path", json!({"equals": 1})),
            r#"{"path":{"a":1,"a":1}}"#,
            Deny,
        ),
    ] {
        assert_eq!(
            with_arguments(&rule.to_string(), arguments),
            expected,
            "{rule} {arguments}"
        );
    }
    let wildcard = json!({"action": "deny", "arguments": {"$.a": "*x"}}).to_string();
    let long = format!("{{\"a\":\"{}\"}}", "y".repeat(300 * 1024));
    assert_eq!(with_arguments(&wildcard, &long), Deny);
    let many = format!("{{\"b\":[{}1]}}", "1,".repeat(200_000));
    assert_eq!(with_arguments(&wildcard, &many), Deny);
    let deep = format!("{{\"b\":{}{}}}", "[".repeat(10_000), "]".repeat(10_000));
    assert_eq!(with_arguments(&wildcard, &deep), Deny);
}

/// An allow rule is read literally.
#[test]
fn allow_matches_arguments_literally() {
    let guarded = |test: Value, path: &str, arguments: &str| {
        let allow = json!({"action": "allow", "arguments": {path: test}}).to_string();
        let arguments = raw(arguments);
        let case = Case {
            arguments: Some(&arguments),
            ..Case::tool_call("files", "write")
        };
        rules(&["ask *", &allow]).judge(&case, 0).action
    };
    let tmp = json!("/tmp/*");
    assert_eq!(
        guarded(tmp.clone(), "$.path", r#"{"path":"/tmp/x"}"#),
        Action::Allow
    );
    for arguments in [
        r#"{"path":"/tmp/../etc/passwd"}"#,
        r#"{"path":"/tmp\\..\\x"}"#,
        r#"{"path":"/tmp/%2E%2e/x"}"#,
        r#"{"path":["/tmp/x"]}"#,
        "{}",
    ] {
        assert_eq!(
            guarded(tmp.clone(), "$.path", arguments),
            Action::Ask,
            "{arguments}"
        );
    }
    assert_eq!(
        guarded(
            tmp.clone(),
            "$.paths[*]",
            r#"{"paths":["/tmp/a","/tmp/b"]}"#
        ),
        Action::Allow
    );
    assert_eq!(
        guarded(
            tmp.clone(),
            "$.paths[*]",
            r#"{"paths":["/tmp/a","/etc/b"]}"#
        ),
        Action::Ask
    );
    assert_eq!(guarded(tmp, "$.paths[*]", r#"{"paths":[]}"#), Action::Ask);
    assert_eq!(
        guarded(json!({"max": 5}), "$.n", r#"{"n":"3"}"#),
        Action::Ask
    );
}

#[test]
fn guards_decide_without_a_matching_rule() {
    use Action::{Allow, Ask};
    let guards = [
        ("a".to_owned(), Guard::All),
        ("d".to_owned(), Guard::Destructive),
        ("w".to_owned(), Guard::Writes),
        ("n".to_owned(), Guard::Never),
    ];
    let rules = Rules::new(Vec::new(), guards, Guard::Writes).unwrap();
    let says = |read_only, destructive| Hints {
        read_only: Some(read_only),
        destructive: Some(destructive),
        ..Hints::default()
    };
    for (server, tool, annotations, expected) in [
        ("n", "delete", Hints::default(), Allow),
        ("a", "look", says(true, false), Ask),
        ("d", "look", Hints::default(), Ask),
        ("d", "add_note", says(false, false), Allow),
        ("d", "delete_note", says(false, false), Ask),
        ("w", "look", says(true, false), Allow),
        ("w", "add_note", says(false, false), Ask),
        ("w", "remove_note", says(true, false), Ask),
        ("other", "look", says(true, false), Allow),
        ("other", "look", Hints::default(), Ask),
    ] {
        let case = Case {
            annotations,
            ..Case::tool_call(server, tool)
        };
        let verdict = rules.judge(&case, 0);
        assert_eq!(verdict.action, expected, "{server}:{tool} {annotations:?}");
        assert_eq!(verdict.rule.is_some(), expected == Ask);
    }
    assert!(!rules.asks_nothing(Kind::ToolCall));
    let listed: Vec<_> = rules
        .list()
        .into_iter()
        .map(|one| (one.id, one.rule.to_string()))
        .collect();
    assert_eq!(listed[0], ("server-a".to_owned(), "ask a:*".to_owned()));
    assert_eq!(
        listed[1],
        (
            "server-d".to_owned(),
            "ask d:* where destructive".to_owned()
        )
    );
    assert_eq!(
        listed[3],
        ("default".to_owned(), "ask * where not read-only".to_owned())
    );
    for kind in [Kind::Sampling, Kind::Elicitation] {
        let case = Case {
            kind,
            ..Case::tool_call("n", "")
        };
        assert_eq!(rules.judge(&case, 0).action, Ask);
    }
}

#[test]
fn remembered_decisions_apply_within_scope_and_expiry() {
    let one = raw(r#"{"path":"/a","n":1}"#);
    let same = raw(r#"{ "n":1, "path":"/a" }"#);
    let other = raw(r#"{"path":"/b","n":1}"#);
    let case = |arguments| Case {
        session: owners(7),
        project: Some("p"),
        arguments: Some(arguments),
        ..Case::tool_call("files", "delete_*")
    };
    let decision = |scope, exactly| Remembered {
        id: "r1".to_owned(),
        rule: Rule::about(Action::Allow, &case(&one)).until(Some(1000)),
        scope,
        exactly,
        identity: Some("this".to_owned()),
        created_at: 0,
        by: "console".to_owned(),
    };
    let judge = |decision: &Remembered, case: &Case<'_>, now| {
        let mut rules = rules(&["ask *"]);
        rules.remember(decision.clone()).unwrap();
        rules.judge(case, now).action
    };
    let exact = decision(Scope::Always, Some(digest(&one)));
    assert_eq!(judge(&exact, &case(&same), 0), Action::Allow);
    assert_eq!(judge(&exact, &case(&other), 0), Action::Ask);
    assert_eq!(judge(&exact, &case(&same), 1000), Action::Ask);
    // A tool may have any name: it is not a pattern.
    let elsewhere = Case {
        tool: "delete_all",
        ..case(&same)
    };
    assert_eq!(judge(&exact, &elsewhere, 0), Action::Ask);
    for (scope, expected) in [
        (Scope::Session(owners(7)), Action::Allow),
        (Scope::Session(owners(8)), Action::Ask),
        (
            Scope::Session(Session {
                is_owner: false,
                ..owners(7)
            }),
            Action::Ask,
        ),
        (Scope::Project("p".to_owned()), Action::Allow),
        (Scope::Project("q".to_owned()), Action::Ask),
    ] {
        assert_eq!(judge(&decision(scope, None), &case(&other), 0), expected);
    }
    let kept = serde_json::to_string(&exact).unwrap();
    assert_eq!(serde_json::from_str::<Remembered>(&kept).unwrap(), exact);
    let unbound = decision(Scope::Session(owners(7)), None);
    let kept = serde_json::to_string(&unbound).unwrap();
    assert_eq!(serde_json::from_str::<Remembered>(&kept).unwrap(), unbound);
    let mut rules = rules(&["deny files"]);
    rules.remember(exact).unwrap();
    assert_eq!(rules.judge(&case(&one), 0).action, Action::Deny);
    assert_eq!(rules.forget_expired(999).len(), 0);
    assert_eq!(rules.forget_expired(1000).len(), 1);
    assert!(rules.remembered().is_empty() && rules.forget("r1").is_none());
}

/// Each rule is more specific than all that follow, by the first criterion that differs.
#[test]
fn specificity_compares_criteria_in_order() {
    let arguments = raw(r#"{"p":"a","q":1}"#);
    let case = Case {
        client: "c",
        session: owners(7),
        project: Some("p"),
        arguments: Some(&arguments),
        ..Case::tool_call("files", "look")
    };
    let ladder = [
        (json!({}), Scope::Always, Some(digest(&arguments))),
        (json!({"arguments": {"$.p": "a"}}), Scope::Always, None),
        (
            json!({"arguments": {"$.p": "a*", "$.q": {"min": 0}}}),
            Scope::Always,
            None,
        ),
        (json!({"arguments": {"$.p": "a*"}}), Scope::Always, None),
        (json!({"tool": "look"}), Scope::Always, None),
        (json!({"tool": "loo*"}), Scope::Always, None),
        (json!({"tool": "l*"}), Scope::Always, None),
        (json!({"server": "files"}), Scope::Always, None),
        (json!({"server": "f*"}), Scope::Always, None),
        (
            json!({"annotations": {"readOnly": false, "openWorld": true}}),
            Scope::Always,
            None,
        ),
        (
            json!({"annotations": {"readOnly": false}}),
            Scope::Always,
            None,
        ),
        (json!({"client": "c"}), Scope::Always, None),
        (json!({"client": "c*"}), Scope::Always, None),
        (json!({}), Scope::Session(owners(7)), None),
        (json!({}), Scope::Project("p".to_owned()), None),
        (json!({}), Scope::Always, None),
    ];
    let remembered = |n: usize, action: &str| {
        let (mut rule, scope, exactly) = ladder[n].clone();
        rule["action"] = json!(action);
        Remembered {
            id: n.to_string(),
            rule: Rule::parse(&rule).unwrap(),
            scope,
            exactly,
            identity: Some("this".to_owned()),
            created_at: 0,
            by: "console".to_owned(),
        }
    };
    for upper in 0..ladder.len() {
        for lower in upper + 1..ladder.len() {
            for (above, below) in [("allow", "ask"), ("ask", "allow")] {
                let mut rules = rules(&[]);
                rules.remember(remembered(lower, below)).unwrap();
                rules.remember(remembered(upper, above)).unwrap();
                let verdict = rules.judge(&case, 0);
                assert_eq!(
                    verdict.action.as_str(),
                    above,
                    "{:?} {:?}",
                    ladder[upper],
                    ladder[lower]
                );
            }
        }
    }
}

#[test]
fn redacted_arguments_leave_a_match_unsure() {
    let rule =
        Rule::parse(&json!({"action": "ask", "tool": "write", "arguments": {"$.path": "/etc/*"}}))
            .unwrap();
    let look = |tool, arguments: Option<&str>| {
        let arguments = arguments.map(raw);
        let case = Case {
            arguments: arguments.as_ref(),
            ..Case::tool_call("files", tool)
        };
        matches(&rule, &case, 0)
    };
    assert_eq!(look("write", Some(r#"{"path":"/etc/x"}"#)), Match::Yes);
    assert_eq!(look("write", Some(r#"{"path":"/tmp/x"}"#)), Match::No);
    assert_eq!(look("write", None), Match::Unsure);
    assert_eq!(
        look("write", Some(r#"{"path":"[redacted]"}"#)),
        Match::Unsure
    );
    assert_eq!(look("read", None), Match::No);
    let short = Rule::parse_text("ask files").unwrap();
    assert_eq!(
        matches(&short, &Case::tool_call("files", "x"), 0),
        Match::Yes
    );
}

#[test]
fn no_call_is_judged_without_restrictive_rules() {
    for (texts, quiet) in [
        (&[][..], true),
        (&["allow mail:*", "ask sampling", "deny elicitation"], true),
        (&["deny resources", "ask prompts mail:*"], true),
        (&["allow mail:*", "ask files:*"], false),
        (&["deny x*"], false),
    ] {
        assert_eq!(
            rules(texts).asks_nothing(Kind::ToolCall),
            quiet,
            "{texts:?}"
        );
    }
}

#[test]
fn rules_cover_their_kinds() {
    use Kind::{Elicitation, Prompt, Resource, Sampling, ToolCall};
    for (rule, covered) in [
        (
            "deny a:*",
            &[ToolCall, Resource, Prompt, Sampling, Elicitation][..],
        ),
        (
            "deny a",
            &[ToolCall, Resource, Prompt, Sampling, Elicitation],
        ),
        (
            "deny *",
            &[ToolCall, Resource, Prompt, Sampling, Elicitation],
        ),
        ("deny a:x*", &[ToolCall]),
        ("deny tool_call a:*", &[ToolCall]),
        ("deny resources a:*", &[Resource]),
        ("deny resources", &[Resource]),
        ("deny prompts a:x", &[Prompt]),
        (
            r#"{"action":"deny","kind":"resources","server":"a","tool":"x"}"#,
            &[Resource],
        ),
        (
            r#"{"action":"deny","server":"a","arguments":{"$.x":{"exists":false}}}"#,
            &[ToolCall],
        ),
        (
            r#"{"action":"deny","server":"a","annotations":{"readOnly":true}}"#,
            &[Resource, Prompt],
        ),
        (
            r#"{"action":"deny","server":"a","annotations":{"readOnly":false}}"#,
            &[ToolCall],
        ),
    ] {
        for kind in [ToolCall, Resource, Prompt, Sampling, Elicitation] {
            let case = Case {
                kind,
                ..Case::tool_call("a", "x")
            };
            let denied = rules(&[rule]).judge(&case, 0).action == Action::Deny;
            assert_eq!(denied, covered.contains(&kind), "{rule} {kind}");
        }
        let parsed = Rule::parse_text(rule).unwrap();
        let shown = parsed.to_string();
        if !shown.contains(" where ") {
            assert_eq!(Rule::parse_text(&shown), Ok(parsed));
        }
    }
    // Allowing the tools of a server does not mean that it may ask a model.
    let allowed = rules(&["allow a:*"]);
    let asks = |kind| {
        let case = Case {
            kind,
            ..Case::tool_call("a", "x")
        };
        allowed.judge(&case, 0).action
    };
    assert_eq!(asks(Sampling), Action::Ask);
    assert_eq!(asks(Resource), Action::Allow);
}

#[test]
fn resource_uris_match_in_every_spelling() {
    let judge = |rule: &str, uri: &str| {
        let case = Case {
            kind: Kind::Resource,
            ..Case::tool_call("a", uri)
        };
        rules(&["ask resources", rule]).judge(&case, 0).action
    };
    for uri in [
        "file:///etc/passwd",
        "file:/etc/passwd",
        "FILE:///etc//passwd",
        "file:///tmp/../etc/passwd",
        "file:///%65tc/passwd",
        "/etc/passwd",
        "file://localhost/etc/passwd",
    ] {
        let denied = judge("deny resources a:file:///etc/*", uri);
        assert_eq!(denied, Action::Deny, "{uri}");
    }
    for uri in ["file:///etcetera", "file:///tmp/x", "note://etc/passwd"] {
        assert_eq!(
            judge("deny resources a:file:///etc/*", uri),
            Action::Ask,
            "{uri}"
        );
    }
    let allow = "allow resources a:file:///tmp/*";
    assert_eq!(judge(allow, "file:///tmp/x"), Action::Allow);
    assert_eq!(judge(allow, "file:///tmp/../etc/x"), Action::Ask);
    assert_eq!(judge(allow, "file:///tmp/%2e%2e/etc/x"), Action::Ask);
}

#[test]
fn only_the_widest_guard_covers_reading() {
    for (guard, expected) in [
        (Guard::Never, Action::Allow),
        (Guard::Destructive, Action::Allow),
        (Guard::Writes, Action::Allow),
        (Guard::All, Action::Ask),
    ] {
        let rules = Rules::new(Vec::new(), [], guard).unwrap();
        for kind in [Kind::Resource, Kind::Prompt] {
            let case = Case {
                kind,
                ..Case::tool_call("a", "delete_everything")
            };
            assert_eq!(rules.judge(&case, 0).action, expected, "{guard:?} {kind}");
        }
    }
}

#[test]
fn remembered_allow_is_bound_to_its_server() {
    let case = Case::tool_call("files", "write");
    let decision = |action, identity: Option<&str>| Remembered {
        id: "r1".to_owned(),
        rule: Rule::about(action, &case),
        scope: Scope::Always,
        exactly: None,
        identity: identity.map(str::to_owned),
        created_at: 0,
        by: "console".to_owned(),
    };
    for (action, identity, expected, is_inert) in [
        (Action::Allow, Some("this"), Action::Allow, false),
        (Action::Allow, Some("other"), Action::Ask, true),
        (Action::Allow, None, Action::Ask, true),
        (Action::Deny, Some("other"), Action::Deny, false),
        (Action::Deny, None, Action::Deny, false),
    ] {
        let mut rules = rules(&["ask *"]);
        rules.remember(decision(action, identity)).unwrap();
        assert_eq!(
            rules.judge(&case, 0).action,
            expected,
            "{action} {identity:?}"
        );
        let listed = rules.list();
        assert_eq!(listed[1].is_inert, is_inert, "{action} {identity:?}");
        // A removed server does not match either.
        let gone = rules.with_identities([]);
        let expected = if action == Action::Deny {
            Action::Deny
        } else {
            Action::Ask
        };
        assert_eq!(gone.judge(&case, 0).action, expected);
    }
    // Decisions stored before servers had fingerprints have no identity.
    let kept = r#"{"id":"r1","rule":{"action":"allow","server":"files","tool":"write"},"scope":"always","createdAt":0,"by":"x"}"#;
    assert_eq!(
        serde_json::from_str::<Remembered>(kept).unwrap().identity,
        None
    );
}

#[test]
fn client_names_match_in_any_case() {
    for client in ["cursor 1.0", "Cursor", "CURSOR-vscode"] {
        let case = Case {
            client,
            ..Case::tool_call("files", "x_admin")
        };
        let found = rules(&["deny *:*_admin @cursor*"]).judge(&case, 0).action;
        assert_eq!(found, Action::Deny, "{client}");
    }
}

/// A question on a stream that belongs to no call may be that of any client.
#[test]
fn client_rules_apply_to_unknown_callers() {
    use Action::{Allow, Ask, Deny};
    for kind in [Kind::Sampling, Kind::Elicitation] {
        let case = Case {
            kind,
            ..Case::tool_call("files", "")
        };
        let judge = |rules: &Rules| rules.judge(&case, 0).action;
        let allow = format!("allow {kind} files");
        for (other, expected) in [
            (format!("deny {kind} files @cursor*"), Deny),
            (format!("ask {kind} files @cursor*"), Ask),
            (format!("deny {kind} *:* @cursor*"), Deny),
            (allow.clone(), Allow),
        ] {
            assert_eq!(judge(&rules(&[&allow, &other])), expected, "{other}");
        }
        assert_eq!(judge(&rules(&[&format!("{allow} @cursor*")])), Ask);
        for scope in [Scope::Session(owners(7)), Scope::Project("/a".to_owned())] {
            let decided = |action| Remembered {
                id: "r1".to_owned(),
                rule: Rule::about(
                    action,
                    &Case {
                        tool: "*",
                        ..case.clone()
                    },
                ),
                scope: scope.clone(),
                exactly: None,
                identity: Some("this".to_owned()),
                created_at: 0,
                by: "console".to_owned(),
            };
            for (written, action, expected) in [(&*allow, Deny, Deny), ("ask files:*", Allow, Ask)]
            {
                let mut rules = rules(&[written]);
                rules.remember(decided(action)).unwrap();
                assert_eq!(judge(&rules), expected, "{kind} {scope:?} {action}");
            }
        }
        let ruled = rules(&[&format!("deny {kind} files:a @x"), "allow sampling other"]);
        assert!(ruled.holds_back(kind, "files"));
        assert!(!ruled.holds_back(kind, "other") && !ruled.holds_back(Kind::Prompt, "files"));
        // The caller of a tool is always known.
        let call = Case::tool_call("files", "x");
        let rules = rules(&["deny files:x @cursor*"]);
        assert_eq!(rules.judge(&call, 0).action, Allow);
    }
}

#[test]
fn rules_match_both_names_decisions_one() {
    use Action::{Allow, Ask, Deny};
    let case = Case {
        new_name: Some("new_issue".into()),
        ..Case::tool_call("files", "create")
    };
    for rule in ["deny files:create", "deny files:new_*"] {
        assert_eq!(rules(&[rule]).judge(&case, 0).action, Deny, "{rule}");
    }
    for (about, expected) in [("create", Allow), ("new_issue", Ask)] {
        let mut rules = rules(&["ask files:create"]);
        let decided = Remembered {
            id: "r1".to_owned(),
            rule: Rule::about(Allow, &Case::tool_call("files", about)),
            scope: Scope::Always,
            exactly: Some(digest(&raw("{}"))),
            identity: Some("this".to_owned()),
            created_at: 0,
            by: "console".to_owned(),
        };
        rules.remember(decided).unwrap();
        assert_eq!(rules.judge(&case, 0).action, expected, "{about}");
    }
}
