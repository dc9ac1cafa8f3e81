//! Random operations: a filter gives the same as a naive list, and nothing from another scope.

use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::rig::{Rig, contents};

const PARTS: [&str; 4] = ["namespace", "user_id", "agent_id", "run_id"];
const NAMES: [&str; 3] = ["Ada", "Grace Hopper", "Acme"];
const WORDS: [&str; 5] = ["tea", "invoice", "Oslo", "deploys on Friday", "keeps bees"];

/// Each part of a scope is one of two names, or missing.
type Scope = [Option<bool>; 4];

#[derive(Debug, Clone)]
enum Step {
    Store {
        scope: Scope,
        name: usize,
        word: usize,
        /// Years since 2000.
        valid: (Option<u8>, Option<u8>),
    },
    Update {
        which: usize,
        word: usize,
    },
    Invalidate {
        which: usize,
        until: u8,
    },
    Delete {
        which: usize,
    },
    Relate {
        scope: Scope,
        from: usize,
        to: usize,
    },
}

#[derive(Debug, Clone)]
struct Known {
    id: String,
    scope: Scope,
    content: String,
    valid: (Option<u8>, Option<u8>),
}

fn scope() -> impl Strategy<Value = Scope> {
    proptest::array::uniform4(proptest::option::weighted(0.6, any::<bool>()))
}

fn step() -> impl Strategy<Value = Step> {
    let years = proptest::option::of(1_u8..20);
    let valid = (years.clone(), years).prop_map(|(from, until)| match (from, until) {
        (Some(from), Some(until)) => (Some(from.min(until)), Some(from.max(until))),
        other => other,
    });
    prop_oneof![
        6 => (scope(), 0..NAMES.len(), 0..WORDS.len(), valid)
            .prop_map(|(scope, name, word, valid)| Step::Store { scope, name, word, valid }),
        2 => (any::<usize>(), 0..WORDS.len()).prop_map(|(which, word)| Step::Update { which, word }),
        1 => (any::<usize>(), 1_u8..20).prop_map(|(which, until)| Step::Invalidate { which, until }),
        1 => any::<usize>().prop_map(|which| Step::Delete { which }),
        1 => (scope(), 0..NAMES.len(), 0..NAMES.len())
            .prop_map(|(scope, from, to)| Step::Relate { scope, from, to }),
    ]
}

fn put(scope: Scope, to: &mut Map<String, Value>) {
    for (name, part) in PARTS.iter().zip(scope) {
        if let Some(part) = part {
            to.insert((*name).to_owned(), json!(if part { "one" } else { "two" }));
        }
    }
}

fn with(scope: Scope, arguments: Value) -> Value {
    let Value::Object(mut arguments) = arguments else {
        unreachable!()
    };
    put(scope, &mut arguments);
    Value::Object(arguments)
}

fn is_within(scope: Scope, filter: Scope) -> bool {
    filter
        .iter()
        .zip(scope)
        .all(|(wanted, is)| wanted.is_none() || *wanted == is)
}

fn year(year: u8) -> String {
    format!("20{year:02}-01-01T00:00:00Z")
}

async fn take(rig: &Rig, known: &mut Vec<Known>, step: &Step) {
    let pick = |which: usize, known: &[Known]| (!known.is_empty()).then(|| which % known.len());
    match step {
        Step::Store {
            scope,
            name,
            word,
            valid,
        } => {
            let content = format!(
                "{} and {} number {}",
                NAMES[*name],
                WORDS[*word],
                known.len()
            );
            let mut arguments = json!({ "content": content, "entities": [NAMES[*name]] });
            if let Some(from) = valid.0 {
                arguments["valid_from"] = json!(year(from));
            }
            if let Some(until) = valid.1 {
                arguments["valid_until"] = json!(year(until));
            }
            let id = rig.store(with(*scope, arguments)).await;
            known.push(Known {
                id,
                scope: *scope,
                content,
                valid: *valid,
            });
        }
        Step::Update { which, word } => {
            if let Some(at) = pick(*which, known) {
                let content = format!("{} instead, {which}", WORDS[*word]);
                let arguments = json!({ "id": known[at].id, "content": content });
                rig.call("update_memory", arguments).await;
                known[at].content = content;
            }
        }
        Step::Invalidate { which, until } => {
            if let Some(at) = pick(*which, known) {
                let arguments = json!({ "id": known[at].id, "valid_until": year(*until) });
                rig.call("invalidate", arguments).await;
                let from = known[at].valid.0.unwrap_or(0);
                known[at].valid.1 = Some(from.max(*until));
            }
        }
        Step::Delete { which } => {
            if let Some(at) = pick(*which, known) {
                rig.call("delete_memory", json!({ "id": known[at].id }))
                    .await;
                known.remove(at);
            }
        }
        Step::Relate { scope, from, to } => {
            for name in [from, to] {
                let entity = with(*scope, json!({ "name": NAMES[*name] }));
                rig.call("create_entity", entity).await;
            }
            let relation =
                json!({ "from": NAMES[*from], "to": NAMES[*to], "relation_type": "knows" });
            rig.call("create_relation", with(*scope, relation)).await;
        }
    }
}

async fn check(rig: &Rig, known: &[Known], filter: Scope, as_of: u8) {
    let meant: Vec<&Known> = known
        .iter()
        .filter(|one| is_within(one.scope, filter))
        .collect();
    let all = rig
        .call(
            "list_memories",
            with(filter, json!({ "limit": 200, "include_invalid": true })),
        )
        .await;
    let expected: BTreeSet<_> = meant.iter().map(|one| one.content.clone()).collect();
    assert_eq!(
        contents(&all).into_iter().collect::<BTreeSet<_>>(),
        expected
    );
    let is_valid = |one: &&&Known| {
        one.valid.0.is_none_or(|from| from <= as_of)
            && one.valid.1.is_none_or(|until| as_of < until)
    };
    let then: BTreeSet<_> = meant
        .iter()
        .filter(is_valid)
        .map(|one| one.content.clone())
        .collect();
    let at = json!({ "limit": 100, "as_of": year(as_of) });
    let valid = rig.call("get_valid", with(filter, at.clone())).await;
    assert_eq!(contents(&valid).into_iter().collect::<BTreeSet<_>>(), then);
    let ids: BTreeSet<&str> = meant.iter().map(|one| &*one.id).collect();
    for query in [
        "Ada tea Oslo",
        "Grace Hopper",
        "who knows Acme? number instead",
    ] {
        let mut wish = with(filter, at.clone());
        wish["query"] = json!(query);
        for found in contents(&rig.call("recall", wish).await) {
            assert!(then.contains(&found), "{found:?} is not within {filter:?}");
        }
        let wish = with(
            filter,
            json!({ "query": query, "limit": 100, "include_invalid": true }),
        );
        for tool in ["recall", "search_memory"] {
            let found = rig.call(tool, wish.clone()).await;
            for one in found["memories"].as_array().unwrap() {
                let id = one["id"].as_str().unwrap();
                assert!(ids.contains(id), "{tool} gives {one} within {filter:?}");
            }
        }
    }
    let related = rig
        .call("get_related", with(filter, json!({ "limit": 200 })))
        .await;
    for entity in related["entities"].as_array().unwrap() {
        for (part, wanted) in PARTS.iter().zip(filter) {
            let wanted = wanted.map(|wanted| json!(if wanted { "one" } else { "two" }));
            assert!(
                wanted.is_none_or(|wanted| entity[*part] == wanted),
                "{entity}"
            );
        }
    }
    let page = rig
        .call("export_memory", with(filter, json!({ "limit": 1000 })))
        .await;
    let lines = page["data"].as_str().unwrap().lines();
    let lines: Vec<Value> = lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let exported = lines.iter().filter(|line| line["type"] == "memory");
    let exported: BTreeSet<_> = exported.map(|line| line["id"].as_str().unwrap()).collect();
    assert_eq!(exported, ids);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn filter_agrees_with_a_naive_list(
        steps in proptest::collection::vec(step(), 1..40),
        filters in proptest::collection::vec((scope(), 1_u8..20), 1..5),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let folder = tempfile::tempdir().unwrap();
            let rig = Rig::with_vectors(folder.path());
            let mut known = Vec::new();
            for step in &steps {
                take(&rig, &mut known, step).await;
            }
            rig.embedded().await;
            for (filter, as_of) in &filters {
                check(&rig, &known, *filter, *as_of).await;
            }
            // The state that is rebuilt from the store gives the same.
            drop(rig);
            let rig = Rig::with_vectors(folder.path());
            for (filter, as_of) in &filters {
                check(&rig, &known, *filter, *as_of).await;
            }
        });
    }
}
