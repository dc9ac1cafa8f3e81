//! Addresses and paths with braces around any part of them, next to alternatives that programs expand
//! differently.

use proptest::prelude::*;
use serde_json::json;
use switchboard_approvals::rules::Action;

use crate::evasions::HOME_PLACES;
use crate::spellings::of_text;

/// Places, each with a pattern that matches it.
const PLACES: &[(&str, &str)] = &[
    ("http://127.0.0.1:18762/*", "http://127.0.0.1:18762/admin/x"),
    ("http://127.0.0.1:18762/*", "127.0.0.1:18762/admin/x"),
    ("http://127.0.0.1:18762/*", "127.0.0.1:18762"),
    (
        "http://127.0.0.1:18762/admin/*",
        "http://127.1:18762/%61dmin/x",
    ),
    ("http://169.254.169.254/*", "169.254.169.254"),
    ("http://169.254.169.254/*", "http://2852039166/x"),
    ("http://localhost/*", "localhost"),
    ("http://localhost/*", "http://localhost/x"),
    ("https://admin.example/*", "https://u@admin.example/x"),
    ("/etc/*", "/etc/passwd"),
    ("/etc/*", "file:///%65tc/passwd"),
    ("/etc/passwd", "file:///etc//passwd"),
    ("/etc/passwd", "/etc/./passwd"),
    ("~/.ssh/*", "~/.ssh/id_rsa"),
];

/// A place in braces, with its pattern.
fn wrapped() -> impl Strategy<Value = (&'static str, String)> {
    let other = prop_oneof![
        "(x|/x|x/|http://ok/|a b| |#|x\\?|\\$)",
        Just(String::new()),
        Just(r"x\}".to_owned()),
        Just(r"x\{".to_owned()),
        Just(r"\}".to_owned()),
        Just(r"x\,y".to_owned()),
    ];
    let others = proptest::collection::vec(other, 1..4);
    let place = proptest::sample::select([PLACES, HOME_PLACES].concat());
    (place, any::<(usize, usize, usize)>(), others).prop_map(|((pattern, place), cuts, others)| {
        let (one, two) = (cuts.0 % (place.len() + 1), cuts.1 % (place.len() + 1));
        let (from, to) = (one.min(two), one.max(two));
        let mut list = others;
        list.insert(cuts.2 % (list.len() + 1), place[from..to].to_owned());
        let text = format!("{}{{{}}}{}", &place[..from], list.join(","), &place[to..]);
        (pattern, text)
    })
}

/// A place in nested braces, as bash expands them.
fn nested() -> impl Strategy<Value = (&'static str, String)> {
    let other = prop_oneof![
        "(x|x/|'a b'|\"}\"|'\\{')",
        Just(String::new()),
        Just(r"\}".to_owned()),
        Just(r"a\ b".to_owned()),
        Just("{y,z}".to_owned()),
        Just("{1..3}".to_owned()),
    ];
    let place = proptest::sample::select([PLACES, HOME_PLACES].concat());
    (place, any::<[usize; 4]>(), other.clone(), other).prop_map(
        |((pattern, place), cuts, one, two)| {
            let mut cuts = cuts.map(|cut| cut % (place.len() + 1));
            cuts.sort_unstable();
            let [a, b, c, d] = cuts;
            let inner = format!("{}{{{},{one}}}{}", &place[a..b], &place[b..c], &place[c..d]);
            let text = format!("{}{{{two},{inner}}}{}", &place[..a], &place[d..]);
            (pattern, text)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: std::env::var("WRAPPED_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(1_000),
        ..ProptestConfig::default()
    })]

    #[test]
    fn alternatives_in_braces_hide_no_place((pattern, text) in wrapped()) {
        prop_assert_eq!(of_text("deny", &json!(pattern), &text), Action::Deny, "{} {}", pattern, text);
    }

    #[test]
    fn nested_braces_hide_no_place((pattern, text) in nested()) {
        prop_assert_eq!(of_text("deny", &json!(pattern), &text), Action::Deny, "{} {}", pattern, text);
    }
}
