//! Lists of memories, compared with a naive model.

use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::*;
use switchboard_store::memory::{Listing, MemoryChange, NewVersion, Scope, Version};

use super::{add, assert_sound, delete, everything, memory, revise, user, write};
use crate::{Place, within};

fn word() -> impl Strategy<Value = Option<Arc<str>>> {
    prop::option::of((0..3_usize).prop_map(|index| Arc::from(["a", "b", ""][index])))
}

fn scope() -> impl Strategy<Value = Scope> {
    (word(), word(), word(), word()).prop_map(|(namespace, user, agent, run)| Scope {
        namespace,
        user,
        agent,
        run,
    })
}

fn time() -> impl Strategy<Value = Option<i64>> {
    prop::option::of(0_i64..6)
}

fn version() -> impl Strategy<Value = NewVersion> {
    // A few IDs that are revised, and many that are not.
    (
        prop_oneof!["[a-d]", "[a-z]{2}"],
        scope(),
        "[ks]",
        time(),
        time(),
        0_i64..6,
    )
        .prop_map(
            |(id, scope, kind, valid_from, valid_until, learned_at)| NewVersion {
                scope,
                kind: kind.into(),
                valid_from,
                valid_until,
                learned_at,
                ..memory(&id)
            },
        )
}

/// Usually a version, sometimes the deletion of a memory.
fn event() -> impl Strategy<Value = Option<NewVersion>> {
    prop::option::weighted(0.9, version())
}

fn listing() -> impl Strategy<Value = Listing> {
    let kind = prop::option::of("[ks]".prop_map(Arc::from));
    // Most scopes have at most one of the four names, so that something matches.
    let scope = prop_oneof![
        Just(Scope::default()),
        word().prop_map(|user| Scope {
            user,
            ..Scope::default()
        }),
        scope()
    ];
    let times = (time(), time(), time(), time(), time());
    let listing = (scope, kind, times, 0_usize..5, 0_usize..3).prop_map(
        |(scope, kind, times, limit, offset)| {
            let (as_of, known_at, ended_by, learned_after, learned_before) = times;
            Listing {
                scope,
                kind,
                as_of,
                known_at,
                ended_by,
                learned_after,
                learned_before,
                limit,
                offset,
            }
        },
    );
    // Simple filters take a different code path, so half of the filters are simple.
    let plain = |all: Listing| Listing {
        scope: all.scope,
        ended_by: all.ended_by,
        limit: all.limit,
        offset: all.offset,
        ..Listing::default()
    };
    (listing, any::<bool>())
        .prop_map(move |(listing, little)| if little { plain(listing) } else { listing })
}

fn matches(version: &Version, which: &Listing) -> bool {
    let names = |scope: &Scope| {
        let scope = scope.clone();
        [scope.namespace, scope.user, scope.agent, scope.run]
    };
    let scoped = names(&which.scope)
        .into_iter()
        .zip(names(&version.scope))
        .all(|(asked, has)| asked.is_none() || asked == has);
    let current = match which.known_at {
        None => version.learned_until.is_none(),
        Some(at) => version.learned_at <= at && version.learned_until.is_none_or(|end| at < end),
    };
    let valid = which.as_of.is_none_or(|at| {
        version.valid_from.is_none_or(|from| from <= at)
            && version.valid_until.is_none_or(|until| at < until)
    });
    scoped
        && current
        && valid
        && which.kind.as_ref().is_none_or(|kind| *kind == version.kind)
        && which
            .ended_by
            .is_none_or(|at| version.valid_until.is_none_or(|until| until > at))
        && which
            .learned_after
            .is_none_or(|after| version.learned_at > after)
        && which
            .learned_before
            .is_none_or(|before| version.learned_at < before)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn lists_agree_with_the_model(events in vec(event(), 0..60), asked in vec(listing(), 1..25)) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap();
        runtime.block_on(async {
            let place = Place::new();
            let memories = place.open().memories();
            let mut known: Vec<Version> = Vec::new();
            let mut changes = Vec::new();
            let mut row = 0;
            for event in events {
                let Some(new) = event else {
                    if let Some(first) = known.first().map(|version| version.id.clone()) {
                        changes.push(delete(&first));
                        known.retain(|version| version.id != first);
                    }
                    continue;
                };
                row += 1;
                let last = known.iter_mut().rev().find(|version| version.id == new.id);
                let was = last.as_ref().map_or(0, |last| last.version);
                if let Some(last) = last {
                    last.learned_until = Some(new.learned_at);
                }
                known.push(kept(row, was + 1, new.clone()));
                changes.push(if was == 0 { add(new) } else { revise(was, new) });
            }
            write(&memories, changes).await;
            assert_eq!(everything(&memories).await, known);
            for which in asked {
                let mut expected: Vec<_> = known.iter().filter(|version| matches(version, &which)).collect();
                expected.sort_by_key(|version| std::cmp::Reverse((version.learned_at, version.row)));
                let total = expected.len() as u64;
                let page: Vec<_> = expected.into_iter().skip(which.offset).take(which.limit).cloned().collect();
                let found = within(memories.list(which.clone())).await.unwrap();
                assert_eq!((found.versions, found.total), (page, total), "{which:?}");
            }
            assert_sound(&place);
        });
    }
}

fn kept(row: u64, version: u32, new: NewVersion) -> Version {
    Version {
        row,
        id: new.id,
        version,
        scope: new.scope,
        kind: new.kind,
        content: new.content,
        importance: new.importance,
        metadata: new.metadata,
        valid_from: new.valid_from,
        valid_until: new.valid_until,
        learned_at: new.learned_at,
        learned_until: new.learned_until,
        reason: new.reason,
        superseded_by: new.superseded_by,
        mentions: Vec::new(),
    }
}

/// Enough memories that a page is found without visiting all of them.
#[tokio::test]
async fn pages_of_long_lists_do_not_overlap() {
    let place = Place::new();
    let memories = place.open().memories();
    let many = (0..1500_i64).map(|number| {
        add(NewVersion {
            scope: user(["ada", "ada", "bob"][usize::try_from(number % 3).unwrap()]),
            // Often equal, and not in the order of the rows.
            learned_at: number * 7 % 500,
            valid_until: (number % 5 == 0).then_some(number),
            ..memory(&format!("{number}"))
        })
    });
    write(&memories, many.collect::<Vec<_>>()).await;
    let all = everything(&memories).await;
    for (scope, ended_by) in [
        (Scope::default(), None),
        (Scope::default(), Some(700)),
        (user("ada"), Some(700)),
        (user("eve"), None),
    ] {
        let mut which = Listing {
            scope,
            ended_by,
            limit: 7,
            ..Listing::default()
        };
        let mut expected: Vec<_> = all
            .iter()
            .filter(|version| matches(version, &which))
            .collect();
        expected.sort_by_key(|version| std::cmp::Reverse((version.learned_at, version.row)));
        for page in 0..=expected.len().div_ceil(7) {
            which.offset = page * 7;
            let found = within(memories.list(which.clone())).await.unwrap();
            assert_eq!(found.total, expected.len() as u64);
            let rest = expected.iter().skip(which.offset).take(7);
            assert!(found.versions.iter().eq(rest.copied()), "{which:?}");
        }
    }
}

#[tokio::test]
async fn scopes_are_counted_by_their_current_memories() {
    let place = Place::new();
    let memories = place.open().memories();
    let of = |id: &str, name: &str| NewVersion {
        scope: user(name),
        ..memory(id)
    };
    let changes: [MemoryChange; 5] = [
        add(of("a", "ada")),
        add(of("b", "bob")),
        add(of("c", "bob")),
        // A memory that moves to another scope leaves its old versions in the old one.
        revise(1, of("a", "eve")),
        add(memory("d")),
    ];
    write(&memories, changes).await;
    let scopes = within(memories.scopes(9)).await.unwrap();
    let nobody = Scope::default();
    let mut expected = vec![(user("bob"), 2), (user("eve"), 1), (nobody, 1)];
    assert_eq!(scopes, expected);
    expected.truncate(1);
    assert_eq!(within(memories.scopes(1)).await.unwrap(), expected);
    assert_sound(&place);
}
