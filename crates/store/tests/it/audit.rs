//! The audit log: its integrity, and the detection of tampering.

use std::io;

use rusqlite::Connection;
use switchboard_store::{
    Anchor, Audited, Broken, Change, Flaw, Store, StoreError, anchor, export, forget_archived,
    shrink, verify,
};

use super::{Place, all, approval, call, close, names, new, note, subjects, within, write};

#[tokio::test]
async fn entries_are_numbered_and_read_in_pages() {
    let place = Place::new();
    let store = place.open();
    let mut times = Vec::new();
    for group in 0..3 {
        let notes: Vec<_> = (0..4)
            .map(|number| note(&format!("{group}.{number}")))
            .collect();
        times.extend(notes.iter().map(|note| match note {
            Change::Audit(entry) => entry.at,
            other => panic!("{other:?}"),
        }));
        write(&store, notes).await.unwrap();
    }
    let found = within(store.audit(5, 3)).await.unwrap();
    assert!(found.iter().map(|audited| audited.seq).eq([6, 7, 8]));
    let subjects = found.iter().map(|audited| &*audited.entry.subject);
    assert!(subjects.eq(["1.1", "1.2", "1.3"]));
    assert_eq!(found[0].entry.at, times[5]);
    assert_eq!(within(store.audit(12, 3)).await.unwrap(), []);
    assert_eq!(within(store.audit(u64::MAX, 3)).await.unwrap(), []);

    // The same from outside, while the store has the file open.
    let mut exported = Vec::new();
    export(&place.file, 5, |audited| {
        exported.push(audited);
        Ok(())
    })
    .unwrap();
    assert_eq!(exported.len(), 7);
    assert_eq!(exported[..3], found);
    let verdict = verify(&place.file).unwrap();
    assert_eq!((verdict.entries, verdict.broken), (12, None));
    assert_eq!(verdict.head, exported[6].hash);
}

#[tokio::test]
async fn log_verifies_at_every_moment_during_writes() {
    let place = Place::new();
    let store = place.open();
    write(&store, [note("first")]).await.unwrap();
    let file = place.file.clone();
    let checker = tokio::task::spawn_blocking(move || {
        let mut last = 0;
        while last < 100 {
            let verdict = verify(&file).unwrap();
            assert_eq!(verdict.broken, None);
            assert!(verdict.entries >= last);
            last = verdict.entries;
        }
    });
    while !checker.is_finished() {
        write(&store, [note("a"), note("b")]).await.unwrap();
    }
    checker.await.unwrap();
}

#[tokio::test]
async fn triggers_reject_changes_to_the_log() {
    let place = Place::new();
    log_of(&place, 3).await;
    let raw = place.raw();
    for sql in [
        "UPDATE audit SET body = '{}' WHERE seq = 2",
        "DELETE FROM audit WHERE seq = 3",
        "DELETE FROM audit",
        "INSERT OR REPLACE INTO audit SELECT seq, at, what, 'x', body, hash FROM audit WHERE seq = 2",
        "INSERT INTO audit SELECT 0, at, what, subject, body, hash FROM audit WHERE seq = 2",
        "UPDATE audit_head SET seq = 2",
        "DELETE FROM audit_head",
    ] {
        assert!(raw.execute_batch(sql).is_err(), "{sql}");
    }
    assert_eq!(verify(&place.file).unwrap().broken, None);
}

#[tokio::test]
async fn tampering_is_found_where_it_begins() {
    let cases: [(&str, u64, Flaw); 16] = [
        (
            "UPDATE audit SET body = '{}' WHERE seq = 3",
            3,
            Flaw::Changed,
        ),
        (
            "UPDATE audit SET subject = 's4' WHERE seq = 3",
            3,
            Flaw::Changed,
        ),
        (
            "UPDATE audit SET what = what || ' ' WHERE seq = 1",
            1,
            Flaw::Changed,
        ),
        (
            "UPDATE audit SET at = at + 1 WHERE seq = 5",
            5,
            Flaw::Changed,
        ),
        (
            "UPDATE audit SET hash = zeroblob(32) WHERE seq = 3",
            3,
            Flaw::Changed,
        ),
        (
            "UPDATE audit SET body = CAST(x'ff' AS TEXT) WHERE seq = 2",
            2,
            Flaw::Changed,
        ),
        ("DELETE FROM audit WHERE seq = 3", 3, Flaw::Missing),
        ("DELETE FROM audit WHERE seq = 1", 1, Flaw::Missing),
        // Removed, and the gap closed.
        (
            "DELETE FROM audit WHERE seq = 3; UPDATE audit SET seq = 3 WHERE seq = 4;
             UPDATE audit SET seq = 4 WHERE seq = 5; UPDATE audit_head SET seq = 4",
            3,
            Flaw::Changed,
        ),
        // Two entries swapped.
        (
            "UPDATE audit SET seq = 9 WHERE seq = 2; UPDATE audit SET seq = 2 WHERE seq = 3;
             UPDATE audit SET seq = 3 WHERE seq = 9",
            2,
            Flaw::Changed,
        ),
        // One inserted in between.
        (
            "UPDATE audit SET seq = 6 WHERE seq = 5;
             INSERT INTO audit SELECT 5, at, what, subject, body, hash FROM audit WHERE seq = 1",
            5,
            Flaw::Changed,
        ),
        (
            "INSERT INTO audit SELECT 0, at, what, subject, body, hash FROM audit WHERE seq = 1",
            1,
            Flaw::Added,
        ),
        ("DELETE FROM audit WHERE seq > 3", 4, Flaw::Cut),
        ("DROP TABLE audit", 1, Flaw::Cut),
        ("DELETE FROM audit_head", 6, Flaw::Unended),
        // The recorded end moved back to an earlier entry.
        (
            "UPDATE audit_head SET seq = 4, hash = (SELECT hash FROM audit WHERE seq = 4)",
            5,
            Flaw::Added,
        ),
    ];
    for (sql, seq, why) in cases {
        let place = Place::new();
        log_of(&place, 5).await;
        unprotected(&place).execute_batch(sql).unwrap();
        let verdict = verify(&place.file).unwrap();
        assert_eq!(verdict.broken, Some(Broken { seq, why }), "{sql}");
    }
}

fn entries_of(place: &Place) -> Vec<Audited> {
    let mut entries = Vec::new();
    export(&place.file, 0, |audited| {
        entries.push(audited);
        Ok(())
    })
    .unwrap();
    entries
}

#[tokio::test]
async fn archived_entries_leave_a_verifiable_anchor() {
    let place = Place::new();
    let store = place.open();
    let notes = (1..=1_500).map(|n| note(&format!("s{n}")));
    write(&store, notes.collect::<Vec<_>>()).await.unwrap();
    let before = entries_of(&place);
    assert!(before.windows(2).all(|two| two[1].follows(&two[0].hash)));
    let until = Anchor {
        seq: 1_200,
        hash: before[1_199].hash,
    };
    let wrong = Anchor {
        hash: [7; 32],
        ..until
    };
    assert!(!forget_archived(&place.file, &wrong).unwrap());
    assert_eq!(entries_of(&place).len(), 1_500);
    // While the store has the file open.
    assert!(forget_archived(&place.file, &until).unwrap());
    assert_eq!(anchor(&place.file).unwrap(), until);
    assert_eq!(entries_of(&place), before[1_200..]);
    write(&store, [note("later")]).await.unwrap();
    let verdict = verify(&place.file).unwrap();
    let found = (verdict.entries, verdict.archived, verdict.broken);
    assert_eq!(found, (1_501, 1_200, None));
    close(&store).await;
    let changed = "UPDATE audit SET body = 'x' WHERE seq = 1201";
    unprotected(&place).execute_batch(changed).unwrap();
    let why = Flaw::Changed;
    let broken = verify(&place.file).unwrap().broken;
    assert_eq!(broken, Some(Broken { seq: 1_201, why }));
}

#[tokio::test]
async fn archiving_frees_disk_space() {
    let place = Place::new();
    let store = place.open();
    let long = "x".repeat(8_000);
    let notes = (1..=600).map(|n| note(&format!("{n}{long}")));
    write(&store, notes.collect::<Vec<_>>()).await.unwrap();
    close(&store).await;
    let size = || std::fs::metadata(&place.file).unwrap().len();
    let before = size();
    let last = entries_of(&place).pop().unwrap();
    let until = Anchor {
        seq: last.seq,
        hash: last.hash,
    };
    assert!(forget_archived(&place.file, &until).unwrap());
    shrink(&place.file).unwrap();
    assert!(size() < before / 4, "{} of {before} bytes", size());
    assert_eq!(verify(&place.file).unwrap().entries, 600);
}

/// The store continues, but does not hide the tampering.
#[tokio::test]
async fn further_writes_do_not_hide_tampering() {
    for sql in [
        "DELETE FROM audit WHERE seq > 3",
        "DELETE FROM audit_head",
        "UPDATE audit SET body = '' WHERE seq = 5",
        "INSERT INTO audit SELECT 6, at, what, subject, body, hash FROM audit WHERE seq = 5",
    ] {
        let place = Place::new();
        log_of(&place, 5).await;
        unprotected(&place).execute_batch(sql).unwrap();
        let store = place.open();
        write(&store, [note("more")]).await.unwrap();
        assert_eq!(subjects(&store).await.last().unwrap(), "more");
        assert!(verify(&place.file).unwrap().broken.is_some(), "{sql}");
    }
}

#[tokio::test]
async fn first_version_file_keeps_activity_and_gains_log() {
    let place = Place::new();
    let raw = place.raw();
    raw.execute_batch(include_str!(
        "../../src/engine/migrations/0001_activity.sql"
    ))
    .unwrap();
    raw.execute_batch(
        "INSERT INTO activity VALUES
             (7, 1794718800000000, 'files', 'tools/call', 'old', 'cursor', 5, 'ok', NULL, NULL, 1, 2);
         UPDATE activity_counter SET last = 7;
         PRAGMA journal_mode = wal;
         PRAGMA application_id = 0x53774264;
         PRAGMA user_version = 1;",
    )
    .unwrap();
    drop(raw);
    let before = verify(&place.file).unwrap();
    assert_eq!(
        (before.entries, before.head, before.broken),
        (0, [0; 32], None)
    );
    export(&place.file, 0, |_| panic!("there is nothing")).unwrap();

    let store = place.open();
    write(&store, [new(approval("k1")), note("k1")])
        .await
        .unwrap();
    assert_eq!(names(&store, all()).await, ["old"]);
    assert!(store.record(call(1)));
    let newest = within(store.activity(all())).await.unwrap();
    assert_eq!(newest[0].id, 8);
    assert_eq!(verify(&place.file).unwrap().entries, 1);
}

#[test]
fn missing_or_foreign_file_is_refused() {
    let place = Place::new();
    let refused = verify(&place.file).unwrap_err();
    let hint = refused.hint().unwrap();
    assert!(hint.contains("check that the file exists"), "{hint}");
    assert_eq!(place.names(""), [""; 0]);

    std::fs::write(&place.file, "not a database".repeat(500)).unwrap();
    let refused = verify(&place.file).unwrap_err().to_string();
    assert!(refused.contains("damaged"), "{refused}");

    std::fs::remove_file(&place.file).unwrap();
    place
        .raw()
        .execute_batch("CREATE TABLE bookmarks (url TEXT)")
        .unwrap();
    let refused = verify(&place.file).unwrap_err().to_string();
    assert!(refused.contains("another program"), "{refused}");
}

#[tokio::test]
async fn verify_and_export_do_not_change_the_file() {
    let place = Place::new();
    log_of(&place, 5).await;
    let before = std::fs::read(&place.file).unwrap();
    verify(&place.file).unwrap();
    export(&place.file, 0, |_| Ok(())).unwrap();
    assert_eq!(std::fs::read(&place.file).unwrap(), before);
    assert!(place.open().audit(0, 10).await.is_ok());
}

#[tokio::test]
async fn export_stops_when_the_callback_fails() {
    let place = Place::new();
    log_of(&place, 5).await;
    let mut taken = 0;
    let each = |_: Audited| {
        taken += 1;
        if taken < 3 {
            Ok(())
        } else {
            Err(io::ErrorKind::BrokenPipe.into())
        }
    };
    let refused = export(&place.file, 0, each);
    let Err(StoreError::Export(error)) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    assert_eq!(taken, 3);
}

/// Creates a closed file with this many entries.
async fn log_of(place: &Place, entries: u64) {
    let store: Store = place.open();
    for number in 1..=entries {
        write(&store, [note(&format!("s{number}"))]).await.unwrap();
    }
    close(&store).await;
}

/// The file without its triggers, as an attacker would have it.
fn unprotected(place: &Place) -> Connection {
    let raw = place.raw();
    let mut statement = raw
        .prepare(
            "SELECT 'DROP TRIGGER ' || name FROM sqlite_schema \
             WHERE type = 'trigger' AND tbl_name LIKE 'audit%'",
        )
        .unwrap();
    let drops: Vec<String> = statement
        .query_map([], |row| row.get(0))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    drop(statement);
    assert_eq!(drops.len(), 7);
    raw.execute_batch(&drops.join(";")).unwrap();
    raw
}
