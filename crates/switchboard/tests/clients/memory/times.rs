//! Both times: when a memory was true, and when it was known.

use serde_json::json;
use switchboard_test_support::Tools;

use super::{Agent, At, contents};

use crate::support::{Kind, Place};

const KINDS: [(Kind, bool, At); 3] = [
    (Kind::TypescriptV1, false, At::Serve),
    (Kind::TypescriptV2, true, At::Direct),
    (Kind::Python, true, At::Alone),
];

#[test]
fn as_of_selects_what_was_true() {
    each(|agent| {
        let lives = |city: &str, from: &str, until: Option<&str>| {
            let content = format!("Ada lives in {city}");
            let mut memory = json!({ "content": content, "user_id": "ada", "valid_from": from });
            if let Some(until) = until {
                memory["valid_until"] = json!(until);
            }
            memory
        };
        agent.stores(lives("London", "2020-01-01", Some("2022-06-01T00:00:00Z")));
        agent.stores(lives("Paris", "2022-06-01T02:00:00+02:00", None));
        for (as_of, expected) in [
            ("2019-12-31T23:59:59.999999Z", None),
            ("2020-01-01", Some("Ada lives in London")),
            (
                "2022-06-01T01:59:59.999999+02:00",
                Some("Ada lives in London"),
            ),
            ("2022-06-01T00:00:00", Some("Ada lives in Paris")),
            ("2030-01-01T00:00:00Z", Some("Ada lives in Paris")),
        ] {
            let expected: Vec<_> = expected.into_iter().collect();
            let mut args = json!({ "user_id": "ada", "as_of": as_of });
            for tool in ["get_valid", "list_memories"] {
                let given = agent.gives(tool, args.clone());
                assert_eq!(contents(&given), expected, "{tool} {as_of}");
            }
            args["query"] = json!("where does Ada live");
            for tool in ["recall", "search_memory"] {
                let given = agent.gives(tool, args.clone());
                assert_eq!(contents(&given), expected, "{tool} {as_of}");
            }
        }
        // Without a time, only memories that have not ended are found.
        let now = agent.gives("recall", json!({ "query": "Ada lives", "user_id": "ada" }));
        assert_eq!(contents(&now), ["Ada lives in Paris"]);
        let wish = json!({ "query": "Ada lives", "user_id": "ada", "include_invalid": true });
        assert_eq!(agent.gives("recall", wish)["count"], 2);
    });
}

#[test]
fn known_at_selects_what_was_known() {
    each(|agent| {
        let first = json!({
            "content": "The door code is 1111", "user_id": "ada",
            "learned_at": "2024-03-01T00:00:00.000001Z",
        });
        let id = agent.stores(first);
        let change = json!({ "id": id, "content": "The door code is 2222" });
        let second = agent.gives("update_memory", change);
        let learned = second["learned_at"].as_str().expect("a time").to_owned();
        agent.gives(
            "invalidate",
            json!({ "id": id, "reason": "no door any more" }),
        );

        for (known_at, expected) in [
            ("2024-03-01T00:00:00Z", None),
            ("2024-03-01T00:00:00.000001Z", Some("The door code is 1111")),
            ("2024-12-31", Some("The door code is 1111")),
            (&*learned, Some("The door code is 2222")),
        ] {
            let expected_list: Vec<_> = expected.into_iter().collect();
            let mut args = json!({ "user_id": "ada", "known_at": known_at });
            for tool in ["get_valid", "list_memories"] {
                let given = agent.gives(tool, args.clone());
                assert_eq!(contents(&given), expected_list, "{tool} {known_at}");
            }
            args["query"] = json!("door code");
            let given = agent.gives("recall", args);
            assert_eq!(contents(&given), expected_list, "recall {known_at}");
            let args = json!({ "id": id, "known_at": known_at });
            if let Some(expected) = expected {
                let got = agent.gives("get_memory", args);
                assert_eq!(got["content"], expected, "{known_at}");
                assert!(got["reason"].is_null(), "{got}");
            } else {
                let said = agent.refuses("get_memory", args);
                assert!(said.contains("not known at that time"), "{said}");
            }
        }
        let got = agent.gives("get_memory", json!({ "id": id, "history": true }));
        assert_eq!(got["version"], 3, "{got}");
        let history = got["history"].as_array().unwrap();
        for (one, next) in history.iter().zip(&history[1..]) {
            assert_eq!(one["learned_until"], next["learned_at"], "{got}");
        }
    });
}

#[test]
fn invalid_time_is_reported_by_name() {
    each(|agent| {
        let id = agent.stores(json!({ "content": "Here", "user_id": "ada" }));
        for (tool, args, fields) in [
            (
                "store_memory",
                json!({ "content": "x" }),
                &["valid_from", "valid_until", "learned_at"][..],
            ),
            ("recall", json!({ "query": "x" }), &["as_of", "known_at"]),
            (
                "search_memory",
                json!({ "query": "x" }),
                &["as_of", "known_at"],
            ),
            ("list_memories", json!({}), &["as_of", "known_at"]),
            ("get_valid", json!({}), &["as_of", "known_at"]),
            ("get_memory", json!({ "id": id }), &["known_at"]),
            (
                "update_memory",
                json!({ "id": id }),
                &["valid_from", "valid_until"],
            ),
            ("invalidate", json!({ "id": id }), &["valid_until"]),
        ] {
            for field in fields {
                for time in ["yesterday", "", "1700000000", "2024-02-30"] {
                    let mut args = args.clone();
                    args[*field] = json!(time);
                    let said = agent.refuses(tool, args.clone());
                    assert!(said.contains(field), "{tool} {args}: {said}");
                }
            }
        }
        let kept = agent.gives("get_memory", json!({ "id": id }));
        assert_eq!(kept["version"], 1, "{kept}");
    });
}

/// Runs the test with clients of several kinds, each with a memory of its own.
#[track_caller]
fn each(does: impl Fn(&mut Agent)) {
    for (kind, modern, at) in KINDS {
        let Some(tools) = Tools::peers() else { return };
        let place = Place::remembering(tools);
        let mut agent = Agent::start(&place, kind, modern, at);
        does(&mut agent);
        agent.leaves();
        drop(place);
    }
}
