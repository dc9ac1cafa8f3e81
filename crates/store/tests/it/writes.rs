//! Durable writes, which are atomic.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rusqlite::Connection;
use switchboard_store::{
    Approval, Change, QUEUED_WRITE_BYTES, Retention, Store, StoreError, Which, verify,
};
use switchboard_test_support::until_async;

use super::{
    Place, all, approval, call, close, closed, failure, is_intact, names, new, note, ready, record,
    rule, subjects, within, write,
};

#[tokio::test]
async fn write_is_found_at_once_and_after_reopening() {
    let place = Place::new();
    let store = place.open();
    let (first, kept) = (approval("k1"), rule("r1", None));
    let changes = [
        new(first.clone()),
        Change::Remember(kept.clone()),
        note("k1"),
    ];
    write(&store, changes).await.unwrap();
    for store in [store, place.open()] {
        let found = within(store.approval("k1")).await.unwrap();
        assert_eq!(found, Some(first.clone()));
        assert_eq!(within(store.approval("k")).await.unwrap(), None);
        assert_eq!(
            within(store.rules()).await.unwrap(),
            std::slice::from_ref(&kept)
        );
        assert_eq!(subjects(&store).await, ["k1"]);
        close(&store).await;
    }
}

#[tokio::test]
async fn approval_is_replaced_only_at_the_expected_version() {
    let place = Place::new();
    let store = place.open();
    let first = approval("k1");
    write(&store, [new(first.clone())]).await.unwrap();
    let second = closed(first.clone());
    let replace = |row: &Approval, was| {
        [Change::Approval {
            row: row.clone(),
            was,
        }]
    };
    write(&store, replace(&second, 1)).await.unwrap();
    let late = Approval {
        status: "timed_out".into(),
        ..second.clone()
    };
    let stuck = Approval {
        version: 2,
        ..late.clone()
    };
    let refused = [
        ("replaced already", replace(&late, 1)),
        ("not new", replace(&late, 0)),
        ("from the future", replace(&late, 3)),
        ("a version that does not grow", replace(&stuck, 2)),
    ];
    for (why, changes) in refused {
        let refused = write(&store, changes).await;
        assert!(
            matches!(refused, Err(StoreError::Conflict)),
            "{why}: {refused:?}"
        );
    }
    let unknown = [Change::Approval {
        row: Approval {
            version: 2,
            ..approval("k2")
        },
        was: 1,
    }];
    let refused = write(&store, unknown).await;
    assert!(matches!(refused, Err(StoreError::Conflict)));
    let found = within(store.approval("k1")).await.unwrap();
    assert_eq!(found, Some(second));
}

#[tokio::test]
async fn conflicting_write_leaves_nothing_behind() {
    let place = Place::new();
    let store = place.open();
    write(&store, [new(approval("k1")), note("k1")])
        .await
        .unwrap();
    write(&store, [Change::Remember(rule("r1", None))])
        .await
        .unwrap();
    let changes = [
        note("gone"),
        new(approval("k2")),
        Change::Remember(rule("r2", None)),
        Change::Forget("r1".into()),
        new(approval("k1")),
    ];
    let refused = write(&store, changes).await;
    assert!(matches!(refused, Err(StoreError::Conflict)));
    assert_eq!(within(store.approval("k2")).await.unwrap(), None);
    let rules = within(store.rules()).await.unwrap();
    assert!(rules.iter().map(|rule| &*rule.id).eq(["r1"]));
    write(&store, [note("k3")]).await.unwrap();
    assert_eq!(subjects(&store).await, ["k1", "k3"]);
    assert_eq!(verify(&place.file).unwrap().broken, None);
}

/// The writes share one or a few commits. One decision wins for each approval, and the others
/// receive an error.
#[tokio::test]
async fn one_of_many_concurrent_decisions_wins() {
    let place = Place::new();
    let store = place.open();
    let ids: Vec<String> = (0..10).map(|number| format!("k{number}")).collect();
    let fresh: Vec<_> = ids.iter().map(|id| new(approval(id))).collect();
    write(&store, fresh).await.unwrap();
    let mut deciders = tokio::task::JoinSet::new();
    for number in 0..200 {
        let (store, id) = (store.clone(), ids[number % 10].clone());
        deciders.spawn(async move {
            let row = closed(approval(&id));
            let changes = vec![
                Change::Remember(rule(&format!("{number}"), None)),
                note(&id),
                Change::Approval { row, was: 1 },
            ];
            within(store.write(changes)).await
        });
    }
    let fates = deciders.join_all().await;
    let won = fates.iter().filter(|fate| fate.is_ok()).count();
    let lost = |fate: &&Result<_, _>| matches!(fate, Err(StoreError::Conflict));
    assert_eq!(won, 10);
    assert_eq!(fates.iter().filter(lost).count(), 190);
    assert_eq!(within(store.rules()).await.unwrap().len(), 10);
    let mut decided = subjects(&store).await;
    decided.sort();
    assert_eq!(decided, ids);
    let verdict = verify(&place.file).unwrap();
    assert_eq!((verdict.entries, verdict.broken), (10, None));
}

/// Nothing else wakes the store: a write does not wait until records are due, and commits them with
/// it.
#[tokio::test]
async fn write_wakes_the_store_and_commits_queued_records() {
    let place = Place::new();
    let store = place.open();
    ready(&store).await;
    record(&store, 0..5);
    write(&store, [note("k1")]).await.unwrap();
    let count: i64 = place
        .raw()
        .query_row("SELECT count(*) FROM activity", [], |row| row.get(0))
        .unwrap();
    assert_eq!(count, 5);
}

#[tokio::test]
async fn write_ends_the_delay_before_opening() {
    let place = Place::new();
    let store = Store::open_after(place.file.clone(), Duration::from_hours(1));
    write(&store, [new(approval("k1"))]).await.unwrap();
}

#[tokio::test]
async fn dropping_the_future_does_not_cancel_the_write() {
    let place = Place::new();
    let store = place.open();
    {
        let mut writing = Box::pin(store.write(vec![new(approval("k1"))]));
        let started = std::future::poll_fn(|context| {
            std::task::Poll::Ready(writing.as_mut().poll(context).is_pending())
        });
        assert!(started.await);
    }
    close(&store).await;
    let found = within(place.open().approval("k1")).await.unwrap();
    assert_eq!(found, Some(approval("k1")));
}

#[tokio::test]
async fn arbitrary_text_round_trips() {
    let place = Place::new();
    let store = place.open();
    let strange = "'; DROP TABLE approvals; -- \0 % _ \u{202e} \u{1f980}\n";
    let row = Approval {
        id: strange.into(),
        kind: strange.into(),
        status: strange.into(),
        server: strange.into(),
        body: strange.repeat(20_000).as_str().into(),
        created: SystemTime::UNIX_EPOCH - Duration::from_secs(5),
        ..approval("")
    };
    let forget = Change::Forget(strange.into());
    let kept = rule(strange, None);
    write(&store, [new(row.clone()), new(approval("")), note(strange)])
        .await
        .unwrap();
    assert_eq!(
        within(store.approval(strange)).await.unwrap(),
        Some(row.clone())
    );
    let which = Which {
        statuses: vec![strange.into()],
        kind: Some(strange.into()),
        server: Some(strange.into()),
        ..Which::default()
    };
    assert_eq!(within(store.approvals(which)).await.unwrap(), [row]);
    let after = Which {
        before: Some("".into()),
        ..Which::default()
    };
    assert_eq!(within(store.approvals(after)).await.unwrap().len(), 1);
    write(&store, [Change::Remember(kept.clone())])
        .await
        .unwrap();
    assert_eq!(within(store.rules()).await.unwrap(), [kept]);
    write(&store, [forget]).await.unwrap();
    assert_eq!(within(store.rules()).await.unwrap(), []);
    assert_eq!(subjects(&store).await, [strange]);
    assert_eq!(verify(&place.file).unwrap().broken, None);
}

#[tokio::test]
async fn rules_are_replaced_forgotten_and_expire() {
    let place = Place::new();
    let store = place.open();
    let now = SystemTime::now();
    let hour = Duration::from_hours(1);
    let changes = [
        Change::Remember(rule("ended", Some(now - hour))),
        Change::Remember(rule("lasting", Some(now + hour))),
        Change::Remember(rule("forgotten", None)),
        Change::Remember(rule("lasting", None)),
        Change::Forget("forgotten".into()),
        Change::Forget("never there".into()),
    ];
    write(&store, changes).await.unwrap();
    let ids = |rules: Vec<switchboard_store::Rule>| -> Vec<Arc<str>> {
        rules.into_iter().map(|rule| rule.id).collect()
    };
    let found = within(store.rules()).await.unwrap();
    assert!(
        found
            .iter()
            .all(|rule| &*rule.id != "lasting" || rule.expires.is_none())
    );
    assert_eq!(
        ids(found),
        ["ended".into(), "lasting".into()] as [Arc<str>; 2]
    );
    close(&store).await;
    let found = within(place.open().rules()).await.unwrap();
    assert_eq!(ids(found), ["lasting".into()] as [Arc<str>; 1]);
}

#[tokio::test]
async fn closed_approvals_expire_and_open_ones_stay() {
    let place = Place::new();
    let store = place.open();
    let most = Retention::APPROVALS.rows;
    let old = SystemTime::now() - Duration::from_hours(91 * 24);
    let open = Approval {
        created: old,
        changed: old,
        ..approval("open")
    };
    let late = Approval {
        created: old,
        changed: SystemTime::now(),
        ..closed(approval("decided-late"))
    };
    let mut changes = vec![new(open), new(late), note("first")];
    let ancient = (0..600).map(|number| Approval {
        changed: old,
        ..closed(approval(&format!("ancient-{number}")))
    });
    changes.extend(ancient.map(new));
    write(&store, changes).await.unwrap();
    let count = |what: &str| -> u64 {
        let sql = format!("SELECT count(*) FROM approvals WHERE id GLOB '{what}'");
        let count: i64 = place.raw().query_row(&sql, [], |row| row.get(0)).unwrap();
        count.unsigned_abs()
    };
    // Queries are answered between two steps of the removal.
    let until = async |store: &Store, done: &dyn Fn() -> bool| {
        until_async("they are removed", async || {
            within(store.approval("open")).await.unwrap();
            done()
        })
        .await;
    };
    until(&store, &|| count("ancient-*") == 0).await;
    assert_eq!(count("decided-late"), 1);

    let start = call(0).at;
    let many = (0..most + 600).map(|number| Approval {
        changed: start + Duration::from_micros(number),
        ..closed(approval(&format!("closed-{number:05}")))
    });
    write(&store, many.map(new).collect::<Vec<_>>())
        .await
        .unwrap();
    until(&store, &|| {
        count("closed-*") + count("decided-late") == most
    })
    .await;
    assert_eq!(count("*"), most + 1);
    // The newest remain, and reopening counts them correctly.
    assert_eq!(count(&format!("closed-{:05}", most + 599)), 1);
    assert_eq!(count("closed-00000"), 0);
    assert_eq!(count("open"), 1);
    close(&store).await;
    let store = place.open();
    let last = Approval {
        changed: start + Duration::from_secs(1),
        ..closed(approval("last"))
    };
    write(&store, [new(last)]).await.unwrap();
    until(&store, &|| count("*") == most + 1).await;
    assert_eq!(count("last") + count("open"), 2);
    assert_eq!(subjects(&store).await, ["first"]);
}

#[tokio::test]
async fn oversized_write_is_refused_and_not_retryable() {
    let place = Place::new();
    let store = place.open();
    let body: Arc<str> = "x".repeat(QUEUED_WRITE_BYTES).into();
    let row = Approval {
        body,
        ..approval("k1")
    };
    let refused = write(&store, [new(row)]).await;
    assert!(
        matches!(refused, Err(StoreError::TooLarge { .. })),
        "{refused:?}"
    );
    assert!(!refused.unwrap_err().is_retryable());
    write(&store, [new(approval("k1"))]).await.unwrap();
}

/// Two of these are too many for the queue. The store may have taken the first already, but not the
/// second, because it waits for the lock. That wait is short and may end on a busy machine before
/// the third write arrives, in which case the test tries again.
#[tokio::test]
async fn writes_beyond_the_queue_limit_are_refused() {
    let place = Place::new();
    let store = place.open();
    let body: Arc<str> = "x".repeat(QUEUED_WRITE_BYTES - 4096).into();
    let large = |id: &str| {
        new(Approval {
            body: Arc::clone(&body),
            ..approval(id)
        })
    };
    for _ in 0..20 {
        ready(&store).await;
        let holder = lock(&place);
        let fates: [Result<(), StoreError>; 3] = tokio::join!(
            write(&store, [large("k1")]),
            write(&store, [large("k2")]),
            write(&store, [large("k3")]),
        )
        .into();
        drop(holder);
        assert!(fates.iter().all(Result::is_err));
        if fates
            .iter()
            .any(|fate| matches!(fate, Err(StoreError::Busy)))
        {
            ready(&store).await;
            write(&store, [new(approval("k4"))]).await.unwrap();
            return;
        }
    }
    panic!("none was ever refused");
}

#[tokio::test]
async fn locked_file_refuses_writes_and_answers_queries() {
    let place = Place::new();
    let store = place.open();
    record(&store, 0..3);
    write(&store, [new(approval("k1"))]).await.unwrap();
    let holder = lock(&place);
    let refused = write(&store, [new(approval("k2")), note("k2")]).await;
    assert!(
        matches!(refused, Err(StoreError::Unavailable { .. })),
        "{refused:?}"
    );
    let (message, _, retrying) = failure(&store).await;
    assert!(message.contains("locked") && retrying, "{message}");
    let refused = write(&store, [note("k3")]).await;
    assert!(
        matches!(refused, Err(StoreError::Unavailable { .. })),
        "{refused:?}"
    );
    assert!(within(store.approval("k1")).await.unwrap().is_some());
    assert_eq!(within(store.approval("k2")).await.unwrap(), None);
    drop(holder);
    ready(&store).await;
    assert_eq!(within(store.approval("k2")).await.unwrap(), None);
    assert_eq!(subjects(&store).await, [""; 0]);
    assert_eq!(names(&store, all()).await.len(), 3);
    write(&store, [new(approval("k2")), note("k2")])
        .await
        .unwrap();
}

#[tokio::test]
async fn write_goes_to_new_file_after_damage() {
    let place = Place::new();
    let store = place.open();
    let many = (0..500).map(|number| new(approval(&format!("k{number}"))));
    write(&store, many.collect::<Vec<_>>()).await.unwrap();
    close(&store).await;
    let mut bytes = std::fs::read(&place.file).unwrap();
    let pages = bytes.len() / 4096;
    assert!(pages > 20);
    bytes[16 * 4096..].fill(0x5a);
    std::fs::write(&place.file, bytes).unwrap();

    let store = place.open();
    write(&store, [new(approval("new")), note("new")])
        .await
        .unwrap();
    assert!(ready(&store).await.is_some());
    assert_eq!(place.names("switchboard.db.damaged-").len(), 1);
    let found = within(store.approvals(Which::default())).await.unwrap();
    assert_eq!(found, [approval("new")]);
    close(&store).await;
    assert!(is_intact(&place.file));
}

#[tokio::test]
async fn unreadable_row_fails_only_its_own_query() {
    let place = Place::new();
    let store = place.open();
    write(&store, [new(approval("k1")), new(approval("k2"))])
        .await
        .unwrap();
    let spoil = "UPDATE approvals SET body = CAST(x'ff' AS TEXT) WHERE id = 'k1'";
    place.raw().execute_batch(spoil).unwrap();
    let refused = within(store.approval("k1")).await;
    let Err(StoreError::Unavailable { message, .. }) = refused else {
        panic!("{refused:?}");
    };
    assert!(message.contains("a value in it is invalid"), "{message}");
    assert!(within(store.approval("k2")).await.unwrap().is_some());
    assert!(store.status().is_ready());
}

#[tokio::test]
async fn closing_completes_accepted_writes_and_refuses_more() {
    let place = Place::new();
    let store = place.open();
    let writing = tokio::spawn({
        let store = store.clone();
        async move { store.write(vec![new(approval("k1"))]).await }
    });
    tokio::task::yield_now().await;
    close(&store).await;
    within(writing).await.unwrap().unwrap();
    let refused = write(&store, [new(approval("k2"))]).await;
    assert!(matches!(refused, Err(StoreError::Closed)), "{refused:?}");
    let found = within(place.open().approvals(Which::default()))
        .await
        .unwrap();
    assert_eq!(found, [approval("k1")]);
}

/// Holds the file as another writer would, until dropped.
fn lock(place: &Place) -> Connection {
    let connection = place.raw();
    connection.execute_batch("BEGIN IMMEDIATE").unwrap();
    connection
}
