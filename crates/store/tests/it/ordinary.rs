//! Everyday use of the store.

use std::time::{Duration, Instant, SystemTime};

use switchboard_store::{
    Activity, Outcome, OutcomeKind, Query, ROWS_PER_ANSWER, Retention, Status, Store, StoreError,
};
use switchboard_test_support::until_async;

use super::{Place, all, call, close, names, ready, record, within};

#[tokio::test]
async fn record_is_found_at_once_and_after_reopening() {
    let place = Place::new();
    let store = place.open();
    let mut expected = Activity {
        outcome: Outcome::Error { code: -32_603 },
        error: Some("it broke".into()),
        ..call(1)
    };
    assert!(store.record(expected.clone()));
    expected.id = 1;
    let found = within(store.activity(all())).await.unwrap();
    assert_eq!(found, [expected.clone()]);
    close(&store).await;
    assert_eq!(store.status(), Status::Closed);
    assert_eq!(place.names("switchboard.db"), ["switchboard.db"]);

    let again = place.open();
    assert_eq!(within(again.activity(all())).await.unwrap(), [expected]);
}

#[tokio::test]
async fn every_outcome_round_trips() {
    let place = Place::new();
    let store = place.open();
    let outcomes = [
        Outcome::Ok,
        Outcome::ToolError,
        Outcome::Error { code: i64::MIN },
        Outcome::Cancelled,
        Outcome::Timeout,
    ];
    for outcome in outcomes {
        assert!(store.record(Activity { outcome, ..call(0) }));
    }
    let found = within(store.activity(all())).await.unwrap();
    assert!(found.iter().rev().map(|call| call.outcome).eq(outcomes));
    for outcome in outcomes {
        let only = Query {
            outcomes: vec![outcome.kind()],
            ..all()
        };
        let found = within(store.activity(only)).await.unwrap();
        assert!(found.iter().map(|call| call.outcome).eq([outcome]));
    }
    assert_eq!(OutcomeKind::ALL.map(OutcomeKind::as_str)[1], "tool_error");
}

#[tokio::test]
async fn every_filter_narrows_the_query() {
    let place = Place::new();
    let store = place.open();
    record(&store, 0..4);
    let git = Activity {
        server: "git".into(),
        error: Some("100% of_it \\ Failed".into()),
        ..call(4)
    };
    assert!(store.record(git));

    let ask = |query| names(&store, query);
    let default = Query::default;
    assert_eq!(
        ask(default()).await,
        ["tool-4", "tool-3", "tool-2", "tool-1", "tool-0"]
    );
    let server = Some("git".to_owned());
    assert_eq!(ask(Query { server, ..all() }).await, ["tool-4"]);
    let name = Some("tool-2".to_owned());
    assert_eq!(ask(Query { name, ..all() }).await, ["tool-2"]);
    let (since, before) = (Some(1), Some(4));
    let between = Query {
        since,
        before,
        ..all()
    };
    assert_eq!(ask(between).await, ["tool-2", "tool-1"]);
    assert_eq!(
        ask(Query {
            limit: 2,
            ..default()
        })
        .await,
        ["tool-4", "tool-3"]
    );
    for (text, count) in [
        ("100% OF_", 1),
        ("\\", 1),
        ("o%l", 0),
        ("cursor", 5),
        ("TOOL-3", 1),
        ("", 5),
    ] {
        let text_only = Query {
            text: Some(text.to_owned()),
            ..all()
        };
        assert_eq!(ask(text_only).await.len(), count, "{text}");
    }
}

#[tokio::test]
async fn answers_and_texts_are_limited() {
    let place = Place::new();
    let store = place.open();
    let long = "é".repeat(100_000);
    assert!(store.record(Activity {
        name: long.as_str().into(),
        error: Some(long.as_str().into()),
        ..call(0)
    }));
    let found = within(store.activity(all())).await.unwrap();
    assert_eq!(found[0].name.len(), 512);
    assert_eq!(found[0].error.as_ref().unwrap().len(), 4096);
    record(&store, 1..1200);
    let found = names(&store, all()).await;
    assert_eq!(found.len(), ROWS_PER_ANSWER);
    assert_eq!(found[0], "tool-1199");
}

/// No query is made: the batch becomes due on its own.
#[tokio::test]
async fn single_record_is_committed_without_a_query() {
    let place = Place::new();
    let store = place.open();
    ready(&store).await;
    record(&store, 0..1);
    let raw = place.raw();
    let count = || -> i64 {
        raw.query_row("SELECT count(*) FROM activity", [], |row| row.get(0))
            .unwrap()
    };
    until_async("it is committed", async || count() > 0).await;
}

#[tokio::test]
async fn excess_rows_are_removed_oldest_first() {
    let place = Place::new();
    record_and_close(&place, 0..3000).await;
    let few = Retention {
        rows: 100,
        ..Retention::default()
    };
    let store = Store::open_keeping(place.file.clone(), few);
    record(&store, 3000..3001);
    close_when_left(&place, &store, 100).await;
    let raw = place.raw();
    let bounds = raw.query_row("SELECT min(id), max(id) FROM activity", [], |row| {
        Ok((row.get(0)?, row.get(1)?))
    });
    assert_eq!(bounds, Ok((2902, 3001)));
}

#[tokio::test]
async fn expired_rows_are_removed_and_ids_never_reused() {
    let place = Place::new();
    let old = Activity {
        at: SystemTime::now() - Duration::from_hours(31 * 24),
        ..call(0)
    };
    let store = place.open();
    for _ in 0..1500 {
        assert!(store.record(old.clone()));
    }
    close_when_left(&place, &store, 0).await;
    let store = place.open();
    assert!(store.record(Activity {
        at: SystemTime::now(),
        ..call(1)
    }));
    let found = within(store.activity(all())).await.unwrap();
    assert_eq!(found[0].id, 1501);
    assert_eq!(found.len(), 1);
}

#[tokio::test]
async fn closed_store_refuses_records_and_queries() {
    let place = Place::new();
    let store = place.open();
    record(&store, 0..1000);
    close(&store).await;
    assert!(!store.record(call(1000)));
    assert_eq!(store.dropped(), 1);
    let refused = within(store.activity(all())).await;
    assert!(matches!(refused, Err(StoreError::Closed)), "{refused:?}");
    let count: i64 = place
        .raw()
        .query_row("SELECT count(*) FROM activity", [], |row| row.get(0))
        .unwrap();
    assert_eq!(count, 1000);
}

#[tokio::test]
async fn dropping_the_last_handle_closes_the_store() {
    let place = Place::new();
    let store = place.open();
    let other = store.clone();
    record(&store, 0..1);
    drop(store);
    record(&other, 1..2);
    let mut watch = other.watch();
    drop(other);
    within(watch.wait_for(|status| *status == Status::Closed))
        .await
        .unwrap();
    let store = place.open();
    assert_eq!(names(&store, all()).await, ["tool-1", "tool-0"]);
}

#[cfg(unix)]
#[tokio::test]
async fn only_the_owner_can_read_the_file() {
    use std::os::unix::fs::PermissionsExt;

    let place = Place::new();
    let store = place.open();
    record(&store, 0..1);
    names(&store, all()).await;
    for name in place.names("switchboard.db") {
        let file = place.folder.path().join(&name);
        let mode = file.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    assert_eq!(place.names("switchboard.db-wal").len(), 1);
}

/// Reading a file of a hundred megabytes is up to the store's thread and does not delay the caller.
#[tokio::test]
async fn large_file_does_not_delay_opening() {
    let place = Place::new();
    record_and_close(&place, 0..1).await;
    let raw = place.raw();
    raw.execute_batch(
        "CREATE TABLE ballast (filler BLOB);
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100)
         INSERT INTO ballast SELECT zeroblob(1000000) FROM n;",
    )
    .unwrap();
    drop(raw);
    assert!(place.file.metadata().unwrap().len() > 90_000_000);

    // Reading the file takes longer; a busy machine may delay some attempts, but not all.
    let mut number = 0;
    until_async("the caller does not wait", async || {
        number += 1;
        let start = Instant::now();
        let store = place.open();
        record(&store, number..number + 1);
        let took = start.elapsed();
        assert_eq!(names(&store, all()).await[0], format!("tool-{number}"));
        close(&store).await;
        took < Duration::from_millis(20)
    })
    .await;
}

async fn record_and_close(place: &Place, numbers: std::ops::Range<u64>) {
    let store = place.open();
    record(&store, numbers);
    close(&store).await;
}

/// Waits until the store has trimmed the activity to this many rows, and closes it.
async fn close_when_left(place: &Place, store: &Store, left: i64) {
    until_async(&format!("{left} are left"), async || {
        let all = within(store.activity(Query {
            limit: 1,
            ..Query::default()
        }));
        all.await.unwrap();
        let sql = "SELECT count(*) FROM activity";
        let count: i64 = place.raw().query_row(sql, [], |row| row.get(0)).unwrap();
        count == left
    })
    .await;
    close(store).await;
}
