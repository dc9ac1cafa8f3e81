//! Bounded reads.

use std::{
    fs, io,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::Duration,
};

use switchboard_files::{Links, open_any, read, read_within};

fn pipe(dir: &Path) -> PathBuf {
    let pipe = dir.join("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    pipe
}

#[test]
fn size_is_bounded() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a");
    fs::write(&path, "12345").unwrap();
    assert_eq!(read(&path, 5, Links::Refuse).unwrap(), b"12345");
    let refused = read(&path, 4, Links::Refuse).unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::FileTooLarge);
    let missing = read(&dir.path().join("b"), 4, Links::Refuse).unwrap_err();
    assert_eq!(missing.kind(), io::ErrorKind::NotFound);
}

#[test]
fn link_is_refused_or_followed() {
    let dir = tempfile::tempdir().unwrap();
    let (path, link) = (dir.path().join("a"), dir.path().join("link"));
    fs::write(&path, "text").unwrap();
    symlink(&path, &link).unwrap();
    assert_eq!(read(&link, 9, Links::Follow).unwrap(), b"text");
    let refused = read(&link, 9, Links::Refuse).unwrap_err();
    assert_eq!(refused.to_string(), "it is a symbolic link");
}

#[test]
fn pipe_and_directory_are_refused_without_waiting() {
    let dir = tempfile::tempdir().unwrap();
    let pipe = pipe(dir.path());
    for path in [&pipe, dir.path()] {
        let refused = read(path, 9, Links::Follow).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::InvalidInput, "{refused}");
    }
}

#[test]
fn pipe_without_a_writer_times_out() {
    let dir = tempfile::tempdir().unwrap();
    let file = open_any(&pipe(dir.path())).unwrap();
    let refused = read_within(&file, 9, Duration::from_millis(50)).unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::TimedOut, "{refused}");
}

#[test]
fn pipe_is_read_to_end_or_limit() {
    let dir = tempfile::tempdir().unwrap();
    let pipe = pipe(dir.path());
    let text = "x".repeat(200_000);
    for most in [300_000, 150_000] {
        thread::scope(|scope| {
            // The writer gets a broken pipe when the reader stops at its limit.
            scope.spawn(|| fs::write(&pipe, &text));
            let file = open_any(&pipe).unwrap();
            let bytes = read_within(&file, most, Duration::from_secs(10)).unwrap();
            assert_eq!(bytes.len(), most.min(text.len()));
        });
    }
}
