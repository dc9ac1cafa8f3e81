//! Changes of memories, one at a time and together.

use switchboard_store::memory::{CONTENT_BYTES, Counts, Made, MemoryChange, NewVersion, Scope};
use switchboard_store::{Change, StoreError};

use super::{
    NOW, add, assert_sound, delete, everything, found, get, memory, mentioning, revise, said,
    sizes, text, user, write, write_one,
};
use crate::{Place, close, note, subjects, within};

#[tokio::test]
async fn memory_is_found_at_once_and_after_reopening() {
    let place = Place::new();
    let full = NewVersion {
        scope: Scope {
            namespace: text("work"),
            user: text("ada"),
            agent: text(""),
            run: text("r\u{0}1"),
        },
        content: "Łódź, 東京 and \u{1f980}".into(),
        importance: 0.125,
        metadata: text(r#"{"a":1}"#),
        valid_from: Some(-5),
        valid_until: Some(i64::MAX),
        reason: text("because"),
        superseded_by: text("b"),
        ..memory("a")
    };
    let store = place.open();
    let row = write_one(&store.memories(), add(full.clone())).await;
    for store in [store, place.open()] {
        let found = get(&store.memories(), "a").await.unwrap();
        assert_eq!((found.row, found.version), (row, 1));
        let same = NewVersion {
            id: found.id,
            version: None,
            scope: found.scope,
            kind: found.kind,
            content: found.content,
            importance: found.importance,
            metadata: found.metadata,
            valid_from: found.valid_from,
            valid_until: found.valid_until,
            learned_at: found.learned_at,
            learned_until: found.learned_until,
            reason: found.reason,
            superseded_by: found.superseded_by,
        };
        assert_eq!(same, full);
        assert_eq!(get(&store.memories(), "A").await, None);
        close(&store).await;
    }
    assert_sound(&place);
}

#[tokio::test]
async fn revision_closes_only_the_version_before_it() {
    let place = Place::new();
    let memories = place.open().memories();
    let first = write_one(&memories, add(memory("a"))).await;
    let second = NewVersion {
        content: "Now different.".into(),
        learned_at: NOW + 5,
        ..memory("a")
    };
    let made = write(&memories, [revise(1, second.clone())]).await;
    let [
        Made::Version {
            row,
            version,
            closed,
            ..
        },
    ] = made[..]
    else {
        panic!("{made:?}");
    };
    assert_eq!((version, closed), (2, Some(first)));
    let history = within(memories.history("a")).await.unwrap();
    let times: Vec<_> = history
        .iter()
        .map(|version| {
            (
                version.row,
                version.version,
                version.learned_at,
                version.learned_until,
            )
        })
        .collect();
    assert_eq!(
        times,
        [(first, 1, NOW, Some(NOW + 5)), (row, 2, NOW + 5, None)]
    );
    assert_eq!(get(&memories, "a").await.as_ref(), history.last());

    for (why, change) in [
        ("replaced already", revise(1, second.clone())),
        ("not there yet", revise(3, second.clone())),
        ("no such memory", revise(1, memory("b"))),
        ("not new", add(memory("a"))),
    ] {
        let refused = within(memories.write(vec![add(memory("c")), change])).await;
        assert!(
            matches!(refused, Err(StoreError::Conflict)),
            "{why}: {refused:?}"
        );
    }
    assert_eq!(within(memories.history("a")).await.unwrap(), history);
    assert_eq!(get(&memories, "c").await, None);
    let counts = within(memories.counts()).await.unwrap();
    assert_eq!((counts.memories, counts.versions), (1, 2));
    assert_sound(&place);
}

#[tokio::test]
async fn imported_history_keeps_its_numbers_and_times() {
    let place = Place::new();
    let memories = place.open().memories();
    let old = NewVersion {
        version: Some(3),
        learned_until: Some(NOW + 9),
        ..memory("a")
    };
    let next = NewVersion {
        version: Some(7),
        learned_at: NOW + 10,
        ..memory("a")
    };
    let made = write(&memories, [add(old), revise(3, next)]).await;
    let closed: Vec<_> = made
        .iter()
        .map(|made| match made {
            Made::Version {
                version, closed, ..
            } => (*version, *closed),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(closed, [(3, None), (7, None)]);
    let history = within(memories.history("a")).await.unwrap();
    assert_eq!(history[0].learned_until, Some(NOW + 9));
    assert_eq!(get(&memories, "a").await.as_ref(), history.last());
    let again = NewVersion {
        version: Some(7),
        ..memory("a")
    };
    let refused = within(memories.write(vec![revise(7, again)])).await;
    assert!(
        matches!(refused, Err(StoreError::Invalid { .. })),
        "{refused:?}"
    );
}

#[tokio::test]
async fn clearing_deletes_everything_and_reuses_no_row() {
    let place = Place::new();
    let memories = place.open().memories();
    let many = (0..50)
        .map(|number| mentioning(memory(&format!("{number}")), [said("tea"), found("oslo")]));
    write(&memories, many.collect::<Vec<_>>()).await;
    let before = sizes(&place);
    let undone = vec![MemoryChange::Clear, add(memory("a")), add(memory("a"))];
    let refused = within(memories.write(undone)).await;
    assert!(matches!(refused, Err(StoreError::Conflict)), "{refused:?}");
    assert_eq!(sizes(&place), before);
    let made = write(
        &memories,
        [MemoryChange::Clear, mentioning(memory("a"), [found("tea")])],
    )
    .await;
    let [Made::Deleted { .. }, Made::Version { row, mentions, .. }] = &made[..] else {
        panic!("{made:?}");
    };
    assert_eq!((*row, mentions[0].entity), (51, 3));
    let counts = within(memories.counts()).await.unwrap();
    let expected = Counts {
        memories: 1,
        versions: 1,
        entities: 1,
        lacking: 1,
        ..Counts::default()
    };
    assert_eq!(counts, expected);
    assert_sound(&place);
    write(&memories, [MemoryChange::Clear]).await;
    drop(memories);
    let memories = place.open().memories();
    assert_eq!(write_one(&memories, add(memory("a"))).await, 52);
}

#[tokio::test]
async fn versions_are_returned_in_the_requested_order() {
    let place = Place::new();
    let memories = place.open().memories();
    let many = (0..250).map(|number| add(memory(&format!("{number}"))));
    write(&memories, many.collect::<Vec<_>>()).await;
    write(&memories, [delete("4")]).await;
    let found = within(memories.versions(vec![9, 5, 3, u64::MAX, 9]))
        .await
        .unwrap();
    let ids: Vec<_> = found.iter().map(|version| &*version.id).collect();
    assert_eq!(ids, ["8", "2", "8"]);
    let all = everything(&memories).await;
    assert_eq!(all.len(), 249);
    assert!(all.is_sorted_by_key(|version| version.row));
    let scopes = within(memories.scopes(5)).await.unwrap();
    assert_eq!(scopes, [(Scope::default(), 249)]);
}

#[tokio::test]
async fn oversized_or_invalid_writes_are_refused_entirely() {
    let place = Place::new();
    let store = place.open();
    let memories = store.memories();
    let long = |bytes: usize| "x".repeat(bytes);
    let named = |scope| NewVersion {
        scope,
        ..memory("a")
    };
    let too_large = [
        NewVersion {
            content: long(CONTENT_BYTES + 1).into(),
            ..memory("a")
        },
        NewVersion {
            id: long(513).into(),
            ..memory("a")
        },
        NewVersion {
            kind: long(513).into(),
            ..memory("a")
        },
        NewVersion {
            metadata: text(&long(300_000)),
            ..memory("a")
        },
        NewVersion {
            reason: text(&long(5000)),
            ..memory("a")
        },
        named(user(&long(513))),
    ];
    for version in too_large {
        let refused = within(memories.write(vec![add(memory("b")), add(version)])).await;
        assert!(
            matches!(refused, Err(StoreError::TooLarge { .. })),
            "{refused:?}"
        );
    }
    for importance in [f32::NAN, f32::INFINITY, -0.1, 1.1] {
        let odd = NewVersion {
            importance,
            ..memory("a")
        };
        let refused = within(memories.write(vec![add(odd)])).await;
        assert!(
            matches!(refused, Err(StoreError::Invalid { .. })),
            "{refused:?}"
        );
    }
    let many: Vec<_> = (0..600)
        .map(|number| found(&format!("e{number}")))
        .collect();
    let refused = within(memories.write(vec![mentioning(memory("a"), many)])).await;
    assert!(
        matches!(refused, Err(StoreError::TooLarge { .. })),
        "{refused:?}"
    );
    let most = NewVersion {
        content: long(CONTENT_BYTES).into(),
        ..memory("a")
    };
    write_one(&memories, add(most)).await;
    assert_eq!(
        get(&memories, "a").await.unwrap().content.len(),
        CONTENT_BYTES
    );
    assert_eq!(get(&memories, "b").await, None);
    assert!(store.status().is_ready());
}

/// The writes share one or a few commits with writes to the audit log. One revision wins, and the others
/// receive an error.
#[tokio::test]
async fn one_concurrent_revision_wins_and_other_writes_succeed() {
    let place = Place::new();
    let store = place.open();
    let memories = store.memories();
    write(&memories, [add(memory("a"))]).await;
    let mut writers = tokio::task::JoinSet::new();
    for number in 0..40 {
        let (store, memories) = (store.clone(), memories.clone());
        writers.spawn(async move {
            let subject = format!("s{number}");
            let (noted, own, contested) = tokio::join!(
                store.write(vec![note(&subject)]),
                memories.write(vec![mentioning(memory(&subject), [found("tea")])]),
                memories.write(vec![
                    add(memory(&format!("x{number}"))),
                    revise(1, memory("a"))
                ]),
            );
            noted.unwrap();
            own.unwrap();
            contested.is_ok()
        });
    }
    let won = within(writers.join_all()).await;
    assert_eq!(won.iter().filter(|won| **won).count(), 1);
    let counts = within(memories.counts()).await.unwrap();
    assert_eq!(
        (counts.memories, counts.versions, counts.entities),
        (42, 43, 1)
    );
    assert_eq!(subjects(&store).await.len(), 40);
    store
        .write(vec![Change::Forget("none".into())])
        .await
        .unwrap();
    assert_sound(&place);
}

/// A file as the previous version left it.
#[tokio::test]
async fn second_version_file_gains_memory_and_keeps_rest() {
    let place = Place::new();
    let raw = place.raw();
    raw.execute_batch(include_str!(
        "../../../src/engine/migrations/0001_activity.sql"
    ))
    .unwrap();
    raw.execute_batch(include_str!(
        "../../../src/engine/migrations/0002_approvals.sql"
    ))
    .unwrap();
    raw.pragma_update(None, "application_id", 0x5377_4264)
        .unwrap();
    raw.pragma_update(None, "user_version", 2).unwrap();
    raw.execute_batch("INSERT INTO rules (id, created, body) VALUES ('r1', 0, '{}')")
        .unwrap();
    drop(raw);
    // A damaged file from before the store had memories is ignored.
    let aside = place.folder.path().join("switchboard.db.damaged-17");
    std::fs::write(aside, "whatever").unwrap();

    let store = place.open();
    let memories = store.memories();
    assert_eq!(within(memories.damaged()).await.unwrap(), None);
    write(&memories, [mentioning(memory("a"), [found("tea")])]).await;
    assert_eq!(within(store.rules()).await.unwrap().len(), 1);
    assert_sound(&place);
}

#[tokio::test]
async fn closed_store_refuses_memory_requests() {
    let place = Place::new();
    let store = place.open();
    let memories = store.memories();
    write(&memories, [add(memory("a"))]).await;
    close(&store).await;
    let refused = within(memories.get("a")).await;
    assert!(matches!(refused, Err(StoreError::Closed)), "{refused:?}");
    let refused = within(memories.write(vec![delete("a")])).await;
    assert!(matches!(refused, Err(StoreError::Closed)), "{refused:?}");
}
