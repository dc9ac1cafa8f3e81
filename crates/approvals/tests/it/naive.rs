//! `judge` against an evaluator that is slow and obviously right.

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use switchboard_approvals::rules::{
    Action, Case, Guard, Hints, Kind, Remembered, Rule, Rules, Scope, digest,
};
use switchboard_wire::Raw;

use crate::world::owners;

/// A rule before it is parsed, and its scope if it is remembered.
#[derive(Clone, Debug)]
struct Plain {
    action: &'static str,
    server: &'static str,
    tool: &'static str,
    client: &'static str,
    conditions: Vec<(&'static str, Value)>,
    read_only: Option<bool>,
    expires: Option<u64>,
    scope: Option<(Scope, Option<Value>)>,
}

#[derive(Clone, Debug)]
struct Situation {
    server: &'static str,
    tool: &'static str,
    client: &'static str,
    session: u64,
    arguments: Map<String, Value>,
    read_only: Option<bool>,
}

const NOW: u64 = 1_000_000;

fn glob(pattern: &str, text: &str) -> bool {
    match pattern.chars().next() {
        None => text.is_empty(),
        Some('*') => (0..=text.len()).any(|n| glob(&pattern[1..], &text[n..])),
        Some('?') => !text.is_empty() && glob(&pattern[1..], &text[1..]),
        Some(c) => text.starts_with(c) && glob(&pattern[1..], &text[1..]),
    }
}

/// Supports no arrays and no unusual names; the table tests cover those.
fn condition(rule: &Plain, path: &str, test: &Value, arguments: &Map<String, Value>) -> bool {
    let found = arguments.get(&path[2..]);
    let holds_back = rule.action != "allow";
    match test {
        Value::String(pattern) => match found {
            Some(Value::String(text)) => glob(pattern, text),
            Some(other) => glob(pattern, &other.to_string()),
            None => false,
        },
        // For a restrictive rule, null counts as missing, and a value that is not a number may be any.
        test if test["exists"] == json!(false) => {
            found.is_none() || (holds_back && found == Some(&Value::Null))
        }
        test if test.get("exists").is_some() => found.is_some(),
        test if test.get("equals").is_some() => found == Some(&test["equals"]),
        test => {
            let number = found.and_then(Value::as_i64);
            number.map_or(holds_back && found.is_some(), |number| {
                number >= test["min"].as_i64().unwrap()
            })
        }
    }
}

fn applies(rule: &Plain, at: &Situation) -> bool {
    // `del` is the only tool here whose name suggests what it does.
    let believed = at.read_only == Some(true) && at.tool != "del";
    glob(rule.server, at.server)
        && glob(rule.tool, at.tool)
        && glob(rule.client, at.client)
        && rule
            .conditions
            .iter()
            .all(|(path, test)| condition(rule, path, test, &at.arguments))
        && rule.read_only.is_none_or(|wanted| wanted == believed)
        && rule.expires.is_none_or(|expires| NOW < expires)
        && rule.scope.as_ref().is_none_or(|(scope, exactly)| {
            let here = match scope {
                Scope::Session(session) => *session == owners(at.session),
                Scope::Project(_) => false,
                Scope::Always => true,
            };
            here && exactly
                .as_ref()
                .is_none_or(|exactly| *exactly == Value::Object(at.arguments.clone()))
        })
}

/// The specificity of a rule: larger is more specific, compared from the front.
fn narrowness(rule: &Plain) -> Vec<usize> {
    let exact = |pattern: &str| usize::from(!pattern.contains(['*', '?']));
    let literals = |pattern: &str| pattern.replace(['*', '?'], "").len();
    let exact_conditions = rule.conditions.iter().filter(|(_, test)| match test {
        Value::String(pattern) => exact(pattern) == 1,
        test => test.get("equals").is_some(),
    });
    let (exactly, scope) = match &rule.scope {
        // A remembered decision outranks the configuration in any scope.
        Some((scope, exactly)) => (
            exactly.is_some(),
            if matches!(scope, Scope::Session(_)) {
                3
            } else {
                1
            },
        ),
        None => (false, 0),
    };
    vec![
        usize::from(exactly),
        exact_conditions.count(),
        rule.conditions.len(),
        exact(rule.tool),
        literals(rule.tool),
        exact(rule.server),
        literals(rule.server),
        usize::from(rule.read_only.is_some()),
        exact(rule.client),
        literals(rule.client),
        scope,
    ]
}

fn naive(rules: &[Plain], at: &Situation) -> &'static str {
    let matching: Vec<&Plain> = rules.iter().filter(|rule| applies(rule, at)).collect();
    if matching.iter().any(|rule| rule.action == "deny") {
        return "deny";
    }
    let Some(narrowest) = matching.iter().map(|rule| narrowness(rule)).max() else {
        return "allow";
    };
    let asks = |rule: &&&Plain| rule.action == "ask" && narrowness(rule) == narrowest;
    if matching.iter().any(|rule| asks(&rule)) {
        "ask"
    } else {
        "allow"
    }
}

fn parsed(rule: &Plain) -> Rule {
    let mut object = json!({
        "action": rule.action, "server": rule.server, "tool": rule.tool, "client": rule.client,
        "arguments": Value::Object(rule.conditions.iter().map(|(path, test)| ((*path).to_owned(), test.clone())).collect()),
    });
    if let Some(read_only) = rule.read_only {
        object["annotations"] = json!({"readOnly": read_only});
    }
    Rule::parse(&object).unwrap().until(rule.expires)
}

fn judged(rules: &[Plain], at: &Situation) -> &'static str {
    let (remembered, configured): (Vec<_>, Vec<_>) =
        rules.iter().partition(|rule| rule.scope.is_some());
    let configured = configured.into_iter().map(parsed).collect();
    let identities = ["s", "t", "st"].map(|name| (name.to_owned(), "id".to_owned()));
    let all = Rules::new(configured, [], Guard::Never).unwrap();
    let mut all = all.with_identities(identities);
    for (n, rule) in remembered.into_iter().enumerate() {
        let (scope, exactly) = rule.scope.clone().unwrap();
        all.remember(Remembered {
            id: format!("r{n}"),
            rule: parsed(rule),
            scope,
            exactly: exactly.map(|exactly| digest(&Raw::from_value(&exactly).unwrap())),
            identity: Some("id".to_owned()),
            created_at: 0,
            by: "console".to_owned(),
        })
        .unwrap();
    }
    let arguments = Raw::from_value(&at.arguments).unwrap();
    let case = Case {
        client: at.client,
        session: owners(at.session),
        arguments: Some(&arguments),
        annotations: Hints {
            read_only: at.read_only,
            ..Hints::default()
        },
        ..Case::tool_call(at.server, at.tool)
    };
    let verdict = all.judge(&case, NOW);
    let held_back = verdict.action != Action::Allow;
    assert!(
        !held_back || !all.asks_nothing(Kind::ToolCall),
        "{verdict:?}"
    );
    verdict.action.as_str()
}

fn arguments() -> impl Strategy<Value = Map<String, Value>> {
    let value = prop_oneof![
        Just(json!("a")),
        Just(json!("ab")),
        Just(json!(1)),
        Just(json!(5)),
        Just(json!(null))
    ];
    proptest::collection::vec((prop_oneof![Just("p"), Just("q")], value), 0..3).prop_map(
        |members| {
            members
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value))
                .collect()
        },
    )
}

fn conditions() -> impl Strategy<Value = Vec<(&'static str, Value)>> {
    let test = prop_oneof![
        Just(json!("a")),
        Just(json!("a*")),
        Just(json!("?")),
        Just(json!({"equals": 1})),
        Just(json!({"equals": "ab"})),
        Just(json!({"exists": true})),
        Just(json!({"exists": false})),
        Just(json!({"min": 2})),
    ];
    let path = prop_oneof![Just("$.p"), Just("$.q")];
    proptest::collection::vec((path, test), 0..2)
}

fn rule(actions: &'static [&'static str]) -> impl Strategy<Value = Plain> {
    let scope = proptest::option::weighted(
        0.3,
        (
            prop_oneof![
                Just(Scope::Session(owners(1))),
                Just(Scope::Always),
                Just(Scope::Project("p".to_owned()))
            ],
            proptest::option::weighted(0.3, arguments().prop_map(Value::Object)),
        ),
    );
    (
        proptest::sample::select(actions),
        proptest::sample::select(&["*", "*", "s", "s*", "?"][..]),
        proptest::sample::select(&["*", "*e*", "get", "del", "g*", "ge*", "?e?"][..]),
        proptest::sample::select(&["*", "*", "*", "c", "c*"][..]),
        conditions(),
        proptest::option::weighted(0.2, any::<bool>()),
        proptest::option::weighted(0.2, prop_oneof![Just(NOW), Just(NOW + 1)]),
        scope,
    )
        .prop_map(
            |(action, server, tool, client, conditions, read_only, expires, scope)| Plain {
                action,
                server,
                tool,
                client,
                conditions,
                read_only,
                expires,
                scope,
            },
        )
}

fn situation() -> impl Strategy<Value = Situation> {
    (
        proptest::sample::select(&["s", "s", "t", "st"][..]),
        proptest::sample::select(&["get", "del", "ge"][..]),
        proptest::sample::select(&["c", "cd", ""][..]),
        0..2_u64,
        arguments(),
        any::<Option<bool>>(),
    )
        .prop_map(
            |(server, tool, client, session, arguments, read_only)| Situation {
                server,
                tool,
                client,
                session,
                arguments,
                read_only,
            },
        )
}

/// A deny; `true` for the parts that are exact.
#[derive(Clone, Debug)]
struct Denial([bool; 4]);

fn denial() -> impl Strategy<Value = Denial> {
    any::<[bool; 4]>().prop_map(Denial)
}

impl Denial {
    fn about(&self, at: &Situation) -> Plain {
        let Self([server, tool, client, remembered]) = *self;
        let exact = |exact, name: &'static str| if exact && !name.is_empty() { name } else { "*" };
        Plain {
            action: "deny",
            server: exact(server, at.server),
            tool: exact(tool, at.tool),
            client: exact(client, at.client),
            conditions: Vec::new(),
            read_only: None,
            expires: None,
            scope: remembered.then_some((Scope::Session(owners(at.session)), None)),
        }
    }
}

const ALL: &[&str] = &["deny", "ask", "ask", "allow", "allow", "allow"];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn verdicts_match_the_naive_evaluator(rules in proptest::collection::vec(rule(ALL), 0..8), at in situation()) {
        prop_assert_eq!(judged(&rules, &at), naive(&rules, &at));
    }

    #[test]
    fn deny_always_wins(rules in proptest::collection::vec(rule(ALL), 0..6), deny in denial(), at in situation(), place in 0..6_usize) {
        let mut rules = rules;
        let deny = deny.about(&at);
        prop_assert!(applies(&deny, &at));
        rules.insert(place.min(rules.len()), deny);
        prop_assert_eq!(judged(&rules, &at), "deny");
    }

    #[test]
    fn allow_undoes_no_deny(rules in proptest::collection::vec(rule(ALL), 0..6), allow in rule(&["allow"]), at in situation(), place in 0..6_usize) {
        let mut more = rules.clone();
        more.insert(place.min(rules.len()), allow);
        if judged(&rules, &at) == "deny" {
            prop_assert_eq!(judged(&more, &at), "deny");
        }
    }

    #[test]
    fn parsed_rules_can_be_parsed_again(text in "[a-z:@*?\"\\[\\]{} \\\\$.é]{0,40}") {
        if let Ok(rule) = Rule::parse_text(&format!("ask {text}")) {
            prop_assert_eq!(Rule::parse_text(&rule.to_string()), Ok(rule));
        }
    }

    #[test]
    fn any_path_can_be_judged(path in "\\$[a-c.*'\"\\[\\]0-9é]{0,12}", arguments in "\\{(\"a\":(1|\\[\\[1\\]\\]|\\{\"b\":2\\}))?\\}") {
        if let Ok(rule) = Rule::parse(&json!({"action": "deny", "arguments": {path: "1"}})) {
            let arguments = crate::raw(&arguments);
            let case = Case { arguments: Some(&arguments), ..Case::tool_call("s", "t") };
            Rules::new(vec![rule], [], Guard::Never).unwrap().judge(&case, 0);
        }
    }
}
