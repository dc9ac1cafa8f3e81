//! Advisory locks.

use std::{fs, os::unix::fs::symlink, time::Duration};

use switchboard_files::{Lock, LockError};

use crate::mode;

#[test]
fn held_lock_fails_after_the_timeout() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("lock");
    let held = Lock::wait(&path, Duration::ZERO).unwrap();
    assert_eq!(mode(&path), 0o600);
    let refused = Lock::wait(&path, Duration::from_millis(30)).unwrap_err();
    assert!(matches!(refused, LockError::Held { .. }), "{refused}");
    drop(held);
    Lock::wait(&path, Duration::ZERO).unwrap();
}

#[test]
fn lock_excludes_others() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("lock");
    let counter = dir.path().join("counter");
    fs::write(&counter, "0").unwrap();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..10 {
                    let _lock = Lock::wait(&path, Duration::from_mins(1)).unwrap();
                    let count: u32 = fs::read_to_string(&counter).unwrap().parse().unwrap();
                    fs::write(&counter, (count + 1).to_string()).unwrap();
                }
            });
        }
    });
    assert_eq!(fs::read_to_string(&counter).unwrap(), "80");
}

#[test]
fn linked_lock_file_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (victim, link) = (dir.path().join("victim"), dir.path().join("lock"));
    fs::write(&victim, "precious").unwrap();
    symlink(&victim, &link).unwrap();
    let refused = Lock::wait(&link, Duration::ZERO).unwrap_err();
    assert!(matches!(refused, LockError::File { .. }), "{refused}");
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
}
