//! Files that the store cannot use.

use rusqlite::Connection;
use switchboard_store::{QUEUED_RECORDS, Query, Status, Store, StoreError};

use super::{Place, all, call, close, failure, is_intact, names, ready, record, within};

#[tokio::test]
async fn non_database_file_is_set_aside() {
    let place = Place::new();
    let garbage = "This is not a database, whatever its name says.".repeat(100);
    std::fs::write(&place.file, &garbage).unwrap();
    let store = place.open();
    record(&store, 0..3);
    let note = ready(&store).await.expect("a note");
    assert_eq!(names(&store, all()).await.len(), 3);
    let aside = place.names("switchboard.db.damaged-");
    assert_eq!(aside.len(), 1);
    assert!(note.contains(&aside[0]), "{note}");
    let kept = std::fs::read_to_string(place.folder.path().join(&aside[0])).unwrap();
    assert_eq!(kept, garbage);
}

/// The header of the file is intact, so the damage only shows once its pages are read.
#[tokio::test]
async fn damaged_file_is_set_aside_without_losing_records() {
    let place = Place::new();
    let store = place.open();
    record(&store, 0..1000);
    close(&store).await;
    let mut bytes = std::fs::read(&place.file).unwrap();
    let pages = bytes.len() / 4096;
    assert!(pages > 4);
    bytes[2 * 4096..].fill(0x5a);
    std::fs::write(&place.file, bytes).unwrap();

    let store = place.open();
    record(&store, 0..3);
    let found = names(&store, all()).await;
    assert_eq!(found, ["tool-2", "tool-1", "tool-0"]);
    assert!(ready(&store).await.is_some());
    assert_eq!(place.names("switchboard.db.damaged-").len(), 1);
    close(&store).await;
    assert!(is_intact(&place.file));
}

#[tokio::test]
async fn newer_file_is_refused_and_left_unchanged() {
    let place = Place::new();
    close_new(&place).await;
    let raw = place.raw();
    raw.pragma_update(None, "user_version", 99).unwrap();
    drop(raw);
    let before = std::fs::read(&place.file).unwrap();

    let store = place.open();
    let (message, action, retrying) = failure(&store).await;
    assert!(
        message.contains("newer version of Switchboard wrote it (file version 99"),
        "{message}"
    );
    assert!(action.contains("switchboard.db"), "{action}");
    assert!(!retrying);
    within(store.closed()).await;
    assert!(!store.record(call(0)));
    let refused = within(store.activity(all())).await;
    assert!(matches!(refused, Err(StoreError::Unavailable { .. })));
    assert_eq!(std::fs::read(&place.file).unwrap(), before);
}

#[tokio::test]
async fn database_of_another_program_is_left_unchanged() {
    let place = Place::new();
    let raw = place.raw();
    raw.execute_batch("CREATE TABLE bookmarks (url TEXT)")
        .unwrap();
    drop(raw);
    let before = std::fs::read(&place.file).unwrap();
    let store = place.open();
    let (message, _, retrying) = failure(&store).await;
    assert!(message.contains("another program"), "{message}");
    assert!(!retrying);
    within(store.closed()).await;
    assert_eq!(std::fs::read(&place.file).unwrap(), before);
}

#[tokio::test]
async fn locked_file_is_reported_and_used_once_free() {
    let place = Place::new();
    close_new(&place).await;
    let holder = lock(&place);
    let store = place.open();
    record(&store, 0..3);
    let (message, action, retrying) = failure(&store).await;
    assert!(message.contains("locked"), "{message}");
    assert!(action.contains("close the program"), "{action}");
    assert!(retrying);
    let refused = within(store.activity(all())).await;
    assert!(
        matches!(refused, Err(StoreError::Unavailable { .. })),
        "{refused:?}"
    );
    drop(holder);
    assert_eq!(ready(&store).await, None);
    assert_eq!(names(&store, all()).await, ["tool-2", "tool-1", "tool-0"]);
    assert_eq!(store.dropped(), 0);
}

#[tokio::test]
async fn file_locked_while_in_use_is_reported() {
    let place = Place::new();
    let store = place.open();
    ready(&store).await;
    let holder = lock(&place);
    record(&store, 0..3);
    failure(&store).await;
    drop(holder);
    ready(&store).await;
    assert_eq!(names(&store, all()).await, ["tool-2", "tool-1", "tool-0"]);
}

#[tokio::test]
async fn full_queue_drops_and_counts_without_waiting() {
    let place = Place::new();
    close_new(&place).await;
    let holder = lock(&place);
    let store = place.open();
    failure(&store).await;
    let room = QUEUED_RECORDS as u64;
    record(&store, 0..room);
    // Another connection holds the lock until further down, so waiting for it would never end.
    for number in 0..100 {
        assert!(!store.record(call(number)));
    }
    assert_eq!(store.dropped(), 100);

    drop(holder);
    ready(&store).await;
    let newest = names(&store, Query::default()).await;
    assert_eq!(newest[0], format!("tool-{}", room - 1));
    record(&store, room..room + 1);
    assert_eq!(store.dropped(), 100);
}

#[tokio::test]
async fn closing_does_not_wait_for_another_lock() {
    let place = Place::new();
    close_new(&place).await;
    let holder = lock(&place);
    let store = place.open();
    record(&store, 0..10);
    close(&store).await;
    assert_eq!(store.status(), Status::Closed);
    assert_eq!(store.dropped(), 10);
    drop(holder);
}

#[tokio::test]
async fn impossible_path_is_reported() {
    let place = Place::new();
    std::fs::write(&place.file, "").unwrap();
    let store = Store::open(place.file.join("below-a-file.db"));
    let (message, action, retrying) = failure(&store).await;
    assert!(message.contains("cannot be created"), "{message}");
    assert!(action.contains("permissions"), "{action}");
    assert!(retrying);
    close(&store).await;
}

async fn close_new(place: &Place) {
    let store = place.open();
    close(&store).await;
}

/// Holds the file as another writer would, until dropped.
fn lock(place: &Place) -> Connection {
    let connection = place.raw();
    connection.execute_batch("BEGIN IMMEDIATE").unwrap();
    connection
}
