//! Changes of memory, one by one and together.

use switchboard_store::memory::{
    CONTENT_BYTES, Counts, Made, MemoryChange, Mention, NewVersion, Scope,
};
use switchboard_store::{Change, StoreError};

use super::{
    NOW, add, assert_sound, delete, everything, found, get, memory, mentioning, revise, said,
    sizes, text, user, write, write_one,
};
use crate::{Place, close, note, subjects, within};

#[tokio::test]
async fn a_memory_is_found_as_it_was_at_once_and_after_reopening() {
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
async fn a_revision_closes_the_version_before_it_and_only_that() {
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
async fn history_is_brought_in_with_its_own_numbers_and_times() {
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
async fn entities_are_made_once_for_each_scope_and_named_in_every_version() {
    let place = Place::new();
    let memories = place.open().memories();
    let of_ada = |id| NewVersion {
        scope: user("ada"),
        ..memory(id)
    };
    let mentions = [found("tea"), said("tea"), found("oslo")];
    let made = write(&memories, [mentioning(of_ada("a"), mentions)]).await;
    let [
        Made::Version {
            mentions,
            new_entities,
            ..
        },
    ] = &made[..]
    else {
        panic!("{made:?}");
    };
    let named = |entity: &Mention| (entity.name.to_string(), entity.explicit);
    let named: Vec<_> = mentions.iter().map(named).collect();
    assert_eq!(
        named,
        [("TEA".to_owned(), true), ("OSLO".to_owned(), false)]
    );
    assert_eq!(new_entities.len(), 2);
    let kept = within(memories.entities_after(0, 9)).await.unwrap();
    assert_eq!(&kept, new_entities);
    assert!(!kept[0].found && kept[1].found);

    let others = [
        mentioning(of_ada("b"), [found("oslo")]),
        mentioning(memory("c"), [found("rome")]),
    ];
    write(&memories, others).await;
    let places = within(memories.entity(&Scope::default(), "oslo"))
        .await
        .unwrap();
    assert_eq!(places, kept[1..]);
    let by_id = within(memories.entity(&user("ada"), "id of oslo"))
        .await
        .unwrap();
    assert_eq!(by_id, places);
    let elsewhere = within(memories.entity(&user("bob"), "oslo")).await.unwrap();
    assert_eq!(elsewhere, []);
    let version = get(&memories, "b").await.unwrap();
    assert_eq!(version.mentions[0].entity, places[0].row);
    assert_eq!(within(memories.counts()).await.unwrap().entities, 3);
    assert_sound(&place);
}

#[tokio::test]
async fn what_a_memory_brought_goes_with_it() {
    let place = Place::new();
    let memories = place.open().memories();
    let scoped = NewVersion {
        scope: user("ada"),
        ..memory("a")
    };
    let made = write(
        &memories,
        [
            mentioning(scoped.clone(), [found("tea"), found("oslo"), said("ada")]),
            MemoryChange::Revise {
                id: "a".into(),
                was: 1,
                version: scoped.clone(),
                mentions: vec![found("rome")],
            },
            mentioning(
                NewVersion {
                    id: "b".into(),
                    ..scoped
                },
                [found("oslo")],
            ),
        ],
    )
    .await;
    let Made::Version {
        new_entities,
        row: first,
        ..
    } = &made[0]
    else {
        panic!("{made:?}");
    };
    let Made::Version {
        new_entities: later,
        row: second,
        ..
    } = &made[1]
    else {
        panic!("{made:?}");
    };
    let deleted = write(&memories, [delete("a"), delete("a")]).await;
    let gone = Made::Deleted {
        rows: vec![*first, *second],
        entities: vec![new_entities[0].row, later[0].row],
        relations: Vec::new(),
    };
    assert_eq!(deleted, [gone, Made::Nothing]);
    let left = within(memories.entities_after(0, 9)).await.unwrap();
    let left: Vec<_> = left.iter().map(|entity| &*entity.key).collect();
    assert_eq!(left, ["oslo", "ada"]);
    assert_sound(&place);

    write(&memories, [delete("b")]).await;
    let [ada] = &within(memories.entities_after(0, 9)).await.unwrap()[..] else {
        panic!();
    };
    let gone = write(&memories, [MemoryChange::DeleteEntity { row: ada.row }]).await;
    let expected = Made::Deleted {
        rows: Vec::new(),
        entities: vec![ada.row],
        relations: Vec::new(),
    };
    assert_eq!(gone, [expected]);
    let empty = [("memory_counts".to_owned(), 1)];
    let left: Vec<_> = sizes(&place)
        .into_iter()
        .filter(|(_, count)| *count > 0)
        .collect();
    assert_eq!(left, empty);
    assert_sound(&place);
}

#[tokio::test]
async fn entities_are_made_once_and_completed() {
    let place = Place::new();
    let memories = place.open().memories();
    write(
        &memories,
        [mentioning(memory("a"), [found("tea"), found("oslo")])],
    )
    .await;
    let entity = |id: &str, key: &str, kind, description| MemoryChange::Entity {
        id: id.into(),
        scope: Scope::default(),
        name: key.into(),
        key: key.into(),
        kind,
        description,
        learned_at: NOW,
        found: false,
    };
    let made = write(
        &memories,
        [
            entity("x", "tea", text("drink"), None),
            entity("y", "tea", None, text("hot")),
            entity("z", "cup", None, None),
        ],
    )
    .await;
    let of = |row, id: &str, created| Made::Entity {
        row,
        id: id.into(),
        created,
    };
    assert_eq!(
        made,
        [
            of(1, "id of tea", false),
            of(1, "id of tea", false),
            of(3, "z", true)
        ]
    );
    let tea = within(memories.entity(&Scope::default(), "tea"))
        .await
        .unwrap()
        .remove(0);
    assert_eq!(
        (tea.kind, tea.description, tea.found),
        (text("drink"), text("hot"), false)
    );
    assert_eq!(&*tea.name, "TEA");

    let taken = within(memories.write(vec![entity("z", "pot", None, None)])).await;
    assert!(matches!(taken, Err(StoreError::Conflict)), "{taken:?}");
    assert_sound(&place);
}

#[tokio::test]
async fn relations_are_made_once_and_keep_their_ends() {
    let place = Place::new();
    let memories = place.open().memories();
    let mentions = [found("tea"), found("oslo"), said("cup")];
    write(&memories, [mentioning(memory("a"), mentions)]).await;
    let relation = |id: &str, from, to, weight| MemoryChange::Relation {
        id: id.into(),
        from,
        to,
        kind: "in".into(),
        weight,
        learned_at: NOW,
    };
    let made = write(
        &memories,
        [
            relation("r", 1, 3, 0.5),
            relation("s", 1, 3, 0.75),
            relation("t", 3, 1, 1.0),
            relation("u", 2, 2, 1.0),
        ],
    )
    .await;
    let of = |row, id: &str, created| Made::Relation {
        row,
        id: id.into(),
        created,
    };
    assert_eq!(
        made,
        [
            of(1, "r", true),
            of(1, "r", false),
            of(2, "t", true),
            of(3, "u", true)
        ]
    );
    let kept = within(memories.relations_after(0, 9)).await.unwrap();
    assert_eq!((kept[0].from, kept[0].to, kept[0].weight), (1, 3, 0.75));
    let dangling = within(memories.write(vec![relation("v", 1, 99, 1.0)])).await;
    assert!(
        matches!(dangling, Err(StoreError::Conflict)),
        "{dangling:?}"
    );

    // Both ends of a relation stay, whoever spoke of them first.
    write(&memories, [delete("a")]).await;
    assert_eq!(within(memories.counts()).await.unwrap().entities, 3);
    let gone = write(
        &memories,
        [
            MemoryChange::DeleteEntity { row: 1 },
            MemoryChange::DeleteRelation { row: 3 },
        ],
    )
    .await;
    let of = |entities: &[u64], relations: &[u64]| Made::Deleted {
        rows: Vec::new(),
        entities: entities.to_vec(),
        relations: relations.to_vec(),
    };
    assert_eq!(gone, [of(&[1], &[1, 2]), of(&[], &[3])]);
    assert_sound(&place);
}

#[tokio::test]
async fn clearing_leaves_nothing_and_no_number_is_given_again() {
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
async fn versions_are_read_by_their_rows_in_the_order_asked_for() {
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
async fn what_is_too_much_or_makes_no_sense_is_refused_whole() {
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

/// All of them share a commit or a few with writes of the other kind; one winner, and the others are told.
#[tokio::test]
async fn of_many_that_revise_at_once_one_wins_and_the_others_are_unharmed() {
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

/// A file as the version before left it.
#[tokio::test]
async fn a_file_of_the_second_version_gets_a_memory_and_keeps_the_rest() {
    let place = Place::new();
    let raw = place.raw();
    raw.execute_batch(include_str!("../../../src/migrations/0001_activity.sql"))
        .unwrap();
    raw.execute_batch(include_str!("../../../src/migrations/0002_approvals.sql"))
        .unwrap();
    raw.pragma_update(None, "application_id", 0x5377_4264)
        .unwrap();
    raw.pragma_update(None, "user_version", 2).unwrap();
    raw.execute_batch("INSERT INTO rules (id, created, body) VALUES ('r1', 0, '{}')")
        .unwrap();
    drop(raw);
    // One that lies there from before there was a memory does not matter.
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
async fn a_closed_store_has_no_memory() {
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
