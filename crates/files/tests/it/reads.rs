//! Bounded reads.

use std::{fs, io, os::unix::fs::symlink, process::Command};

use switchboard_files::{Links, read};

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
    let pipe = dir.path().join("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    for path in [&pipe, dir.path()] {
        let refused = read(path, 9, Links::Follow).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::InvalidInput, "{refused}");
    }
}
