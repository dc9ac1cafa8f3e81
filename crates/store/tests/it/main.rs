//! The public interface of the store, tested on real files.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test may fail"
)]

mod alone;
mod audit;
mod lists;
mod memory;
mod ordinary;
mod trouble;
mod writes;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rusqlite::Connection;
use switchboard_store::{
    Activity, Approval, Change, Entry, Outcome, Query, Rule, Status, Store, StoreError,
};
use switchboard_test_support::PATIENCE;
use tempfile::TempDir;

/// A temporary folder for a store's file.
struct Place {
    folder: TempDir,
    file: PathBuf,
}

impl Place {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let file = folder.path().join("switchboard.db");
        Self { folder, file }
    }

    fn open(&self) -> Store {
        Store::open(self.file.clone())
    }

    /// Opens the file directly, to modify or inspect it.
    fn raw(&self) -> Connection {
        Connection::open(&self.file).unwrap()
    }

    /// Names of the files that start with `beginning`.
    fn names(&self, beginning: &str) -> Vec<String> {
        let mut names: Vec<_> = std::fs::read_dir(self.folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name.starts_with(beginning))
            .collect();
        names.sort();
        names
    }
}

/// A call made just now, named after its number.
fn call(number: u64) -> Activity {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    Activity {
        id: 0,
        // Rounded to the precision of the store.
        at: UNIX_EPOCH + Duration::from_secs(now.as_secs()) + Duration::from_micros(number),
        server: "files".into(),
        method: "tools/call".into(),
        name: format!("tool-{number}").into(),
        principal: "token ci".into(),
        door: "tcp".into(),
        client: "cursor".into(),
        duration: Duration::from_micros(1500),
        waited: Duration::from_micros(number),
        outcome: Outcome::Ok,
        error: None,
        request_bytes: 10,
        response_bytes: 20,
    }
}

/// A new approval, from some time in 2026.
fn approval(id: &str) -> Approval {
    let at = UNIX_EPOCH + Duration::from_micros(1_794_718_800_123_456);
    Approval {
        id: id.into(),
        kind: "tool_call".into(),
        status: "pending".into(),
        open: true,
        server: "files".into(),
        created: at,
        changed: at,
        version: 1,
        body: format!(r#"{{"id":"{id}"}}"#).into(),
    }
}

/// The same approval, closed just now.
fn closed(row: Approval) -> Approval {
    Approval {
        status: "approved".into(),
        open: false,
        changed: call(0).at,
        version: row.version + 1,
        ..row
    }
}

fn new(row: Approval) -> Change {
    Change::Approval { row, was: 0 }
}

fn rule(id: &str, expires: Option<SystemTime>) -> Rule {
    Rule {
        id: id.into(),
        created: call(0).at,
        expires,
        body: "{}".into(),
    }
}

fn note(subject: &str) -> Change {
    Change::Audit(Entry {
        at: call(7).at,
        what: "approval.decided".into(),
        subject: subject.into(),
        body: r#"{"by":"console"}"#.into(),
    })
}

async fn write(store: &Store, changes: impl Into<Vec<Change>>) -> Result<(), StoreError> {
    within(store.write(changes.into())).await
}

/// Subjects of all entries of the audit log.
async fn subjects(store: &Store) -> Vec<String> {
    let found = within(store.audit(0, usize::MAX)).await.unwrap();
    let subject = |audited: &switchboard_store::Audited| audited.entry.subject.to_string();
    found.iter().map(subject).collect()
}

fn record(store: &Store, numbers: std::ops::Range<u64>) {
    for number in numbers {
        assert!(store.record(call(number)), "record {number} was dropped");
    }
}

async fn ready(store: &Store) -> Option<Arc<str>> {
    let mut watch = store.watch();
    let status = within(watch.wait_for(Status::is_ready))
        .await
        .unwrap()
        .clone();
    match status {
        Status::Ready { note } => note,
        other => panic!("{other:?}"),
    }
}

/// Message, advice and `retrying` flag of a store that does not work.
async fn failure(store: &Store) -> (Arc<str>, Arc<str>, bool) {
    let mut watch = store.watch();
    let failed = |status: &Status| matches!(status, Status::Failed { .. });
    let status = within(watch.wait_for(failed)).await.unwrap().clone();
    match status {
        Status::Failed {
            message,
            action,
            retrying,
            ..
        } => (message, action, retrying),
        other => panic!("{other:?}"),
    }
}

async fn close(store: &Store) {
    store.close();
    within(store.closed()).await;
}

async fn names(store: &Store, query: Query) -> Vec<String> {
    let found = within(store.activity(query)).await.unwrap();
    found.iter().map(|call| call.name.to_string()).collect()
}

fn all() -> Query {
    Query {
        limit: usize::MAX,
        ..Query::default()
    }
}

/// Fails a test that would otherwise hang.
async fn within<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, work)
        .await
        .expect("this lasts too long")
}

fn is_intact(file: &Path) -> bool {
    let connection = Connection::open(file).unwrap();
    let verdict: String = connection
        .query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .unwrap();
    verdict == "ok"
}
