//! Compares trees with other parsers, and tests their limits.

use proptest::prelude::*;

use super::*;
use crate::limits::TREE_DEPTH;

fn raw(text: &str) -> Raw {
    Raw::parse(text.to_owned()).unwrap()
}

fn number(spelled: &str) -> Json<'_> {
    Json::Number(spelled.into())
}

fn nested(depth: usize) -> Raw {
    raw(&format!("{}{}", "[".repeat(depth), "]".repeat(depth)))
}

#[test]
fn equal_values_have_one_canonical_text() {
    let canonical = |text: &str| Json::read(&raw(text)).canonical();
    for (one, other) in [
        (
            r#"{"a":1,"b":[true,null]}"#,
            r#" { "b" : [ true , null ], "\u0061" : 1.0 } "#,
        ),
        ("100", "1e2"),
        ("-0.0", "0"),
        ("0.10", "1e-1"),
        ("120e-1", "12"),
        (r#""\ud83d\ude00\/\n""#, "\"😀/\\u000a\""),
    ] {
        assert_eq!(canonical(one), canonical(other), "{one}");
    }
    for (one, other) in [
        ("1", "-1"),
        ("1", "10"),
        ("1", "\"1\""),
        ("[[]]", "[]"),
        ("[[1],2]", "[[1,2]]"),
        (r#"["a","b"]"#, r#"["a,\"b"]"#),
        ("12345678901234567890123", "12345678901234567890124"),
        (r#"{"a":null}"#, "{}"),
    ] {
        assert_ne!(canonical(one), canonical(other), "{one}");
    }
    assert_eq!(canonical(r#"{"a":1,"a":2}"#), Err(Twice("a".to_owned())));
}

#[test]
fn numbers_and_members_keep_their_spelling() {
    let raw = raw(r#" { "a" : [1.50, -0, true,false,null, {} , [] ] , "a":1e400 } "#);
    let value = Json::read(&raw);
    let members = value.as_object().unwrap();
    assert_eq!(members[1], ("a".into(), number("1e400")));
    let list = [
        number("1.50"),
        number("-0"),
        Json::Bool(true),
        Json::Bool(false),
        Json::Null,
        Json::Object(Object::default()),
        Json::Array(vec![]),
    ];
    assert_eq!(members[0].1.as_array(), Some(&list[..]));
    assert_eq!(value.clone().into_owned(), value);
}

#[test]
fn depth_is_bounded() {
    let is_whole = |depth| Tree::read(&nested(depth), usize::MAX).whole;
    assert!(is_whole(TREE_DEPTH));
    assert!(!is_whole(TREE_DEPTH + 1));

    let deep = format!("{}\"]}}\\\"\"{}", "[".repeat(200_000), "]".repeat(200_000));
    let outer = raw(&format!("[{deep},7]"));
    let mut value = Json::read(&outer);
    assert_eq!(value.as_array().unwrap()[1], number("7"));
    for _ in 0..TREE_DEPTH {
        let Json::Array(mut elements) = value else {
            panic!("an array")
        };
        value = elements.swap_remove(0);
    }
    let rest = &deep[TREE_DEPTH - 1..=deep.len() - TREE_DEPTH];
    assert_eq!(value, Json::Unread(rest.into()));
}

#[test]
fn size_is_bounded() {
    let wide = raw(&format!("[{}1]", "1,".repeat(5000)));
    let tree = Tree::read(&wide, 1000);
    assert!(!tree.whole);
    assert_eq!(tree.value.as_array().unwrap().len(), 1000);
    assert!(Tree::read(&wide, 5002).whole);
}

#[test]
fn unpaired_surrogates_make_a_tree_inexact() {
    let is_exact = |text: &str| Tree::read(&raw(text), 10).exact;
    assert!(is_exact(r#"{"\ud83d\ude00":"\ufffd"}"#));
    assert!(!is_exact(r#"{"\ud83d":1}"#));
    assert!(!is_exact(r#"["\ude00"]"#));
}

#[test]
fn accessors_choose_among_duplicate_members() {
    let few = raw(r#"{"a":1,"b":2,"\u0061":3,"B":4}"#);
    let filler: Vec<_> = (0..40).map(|n| format!("\"z{n}\":0,")).collect();
    let many = raw(&format!("{{{}{}", filler.concat(), &few.as_str()[1..]));
    for raw in [few, many] {
        let mut value = Json::read(&raw);
        let object = value.as_object().unwrap();
        assert_eq!(object.get("a"), Some(&number("3")));
        assert_eq!(object.get("b"), Some(&number("2")));
        assert_eq!(object.get("c"), None);
        assert!(object.all("a").eq(&[number("1"), number("3")]));
        assert_eq!(object.unique("a"), Err(Twice("a".to_owned())));
        assert_eq!(object.unique("b"), Err(Twice("b".to_owned())));
        assert_eq!(object.unique("c"), Ok(None));
        let count = object.len();
        value.keep_last();
        let object = value.as_object().unwrap();
        assert_eq!(object.len(), count - 1);
        assert_eq!(object.unique("a"), Ok(Some(&number("3"))));
        assert_eq!(object.get("b"), Some(&number("2")));
    }
}

/// Converts the value to maps, in which the last of several members counts.
fn plain(value: &Json<'_>) -> serde_json::Value {
    match value {
        Json::Null | Json::Unread(_) => serde_json::Value::Null,
        Json::Bool(value) => (*value).into(),
        Json::Number(spelled) => serde_json::from_str(spelled).unwrap(),
        Json::Text(text) => (&**text).into(),
        Json::Array(elements) => elements.iter().map(plain).collect(),
        Json::Object(members) => {
            let members = members.iter().map(|(k, v)| (k.to_string(), plain(v)));
            serde_json::Value::Object(members.collect())
        }
    }
}

/// Generates JSON in which each object has all members of its parts, so that names occur twice.
fn any_json() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        any::<bool>().prop_map(|value| value.to_string()),
        any::<i64>().prop_map(|value| value.to_string()),
        any::<f64>()
            .prop_filter("JSON has no such number", |value| value.is_finite())
            .prop_map(|value| format!("{value:e}")),
        "\\PC{0,8}|[\"\\\\\n\t\u{1}é😀]{0,6}".prop_map(|text| Raw::string(&text).to_string()),
        "(\\\\u00[2-7][0-9a-f]|\\\\ud83d\\\\ude0[0-9a-f]){0,3}"
            .prop_map(|inner| format!("\"{inner}\"")),
    ];
    leaf.prop_recursive(4, 100, 12, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6)
                .prop_map(|elements| format!("[ {} ]", elements.join(" ,"))),
            prop::collection::vec(("[a-c\"\\\\é]{0,2}", inner), 0..40).prop_map(|members| {
                let members = members.iter();
                let members =
                    members.map(|(name, value)| format!("{}: {value}", Raw::string(name)));
                format!("{{{}}}", members.collect::<Vec<_>>().join(",\n"))
            }),
        ]
    })
}

proptest! {
    #[test]
    fn agrees_with_serde(text in any_json()) {
        let others: serde_json::Value = serde_json::from_str(&text).unwrap();
        let tree = Tree::read_text(&text, usize::MAX);
        prop_assert!(tree.whole && tree.exact);
        prop_assert_eq!(plain(&tree.value), others.clone());
        let mut last = tree.value;
        last.keep_last();
        prop_assert_eq!(plain(&last), others);
        prop_assert!(last.canonical().is_ok());
        prop_assert_eq!(last.clone().into_owned(), last);
    }

    #[test]
    fn finds_the_last_and_all_members(names in prop::collection::vec("[a-f]", 0..80)) {
        let members = names.iter().enumerate();
        let object: Object<'_> = members
            .map(|(n, name)| (name.as_str().into(), Json::Number(n.to_string().into())))
            .collect();
        for name in ["a", "b", "c", "d", "e", "f", "g"] {
            let last = names.iter().rposition(|other| other == name);
            prop_assert_eq!(object.place(name), last);
            prop_assert_eq!(object.get(name), object.all(name).last());
            prop_assert_eq!(object.unique(name).is_err(), object.all(name).count() > 1);
        }
    }

    #[test]
    fn reads_any_text_to_its_end(text in "[\\[\\]{}:,\"\\\\a-cu0-9 .e-]{0,24}", nodes in 0_usize..30) {
        let tree = Tree::read_text(&text, nodes);
        if let Ok(value) = serde_json::from_str::<serde_json::Value>(&text)
            && tree.whole
        {
            prop_assert_eq!(plain(&tree.value), value);
        }
    }
}
