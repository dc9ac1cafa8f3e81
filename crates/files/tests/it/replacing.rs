//! Atomic replacement of files.

use std::{fs, io, io::Write as _, os::unix::fs::symlink};

use switchboard_files::{Draft, Durability, Mode, follow, replace};

use crate::{mode, names, set_mode};

#[test]
fn new_file_is_private() {
    let dir = tempfile::tempdir().unwrap();
    for (name, wanted) in [("a", Mode::Private), ("b", Mode::Keep)] {
        let path = dir.path().join(name);
        replace(&path, b"text", wanted).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"text");
        assert_eq!(mode(&path), 0o600);
    }
    assert_eq!(names(dir.path()), ["a", "b"]);
}

#[test]
fn replaced_file_keeps_or_narrows_its_mode() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a");
    for (wanted, expected) in [(Mode::Keep, 0o644), (Mode::Private, 0o600)] {
        fs::write(&path, "old").unwrap();
        set_mode(&path, 0o644);
        replace(&path, b"new", wanted).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(mode(&path), expected);
    }
}

#[test]
fn link_is_replaced_not_written_through() {
    let dir = tempfile::tempdir().unwrap();
    let (victim, link) = (dir.path().join("victim"), dir.path().join("link"));
    fs::write(&victim, "precious").unwrap();
    symlink(&victim, &link).unwrap();
    replace(&link, b"new", Mode::Keep).unwrap();
    assert_eq!(fs::read(&victim).unwrap(), b"precious");
    assert_eq!(fs::read(&link).unwrap(), b"new");
    assert!(!link.is_symlink());
    assert_eq!(mode(&link), 0o600);
}

#[test]
fn draft_never_opens_a_planted_link() {
    let dir = tempfile::tempdir().unwrap();
    let victim = dir.path().join("victim");
    fs::write(&victim, "precious").unwrap();
    let path = dir.path().join("a");
    for count in 0..40 {
        let planted = format!(".a.{}.{count}.new", std::process::id());
        symlink(&victim, dir.path().join(planted)).unwrap();
    }
    replace(&path, b"new", Mode::Private).unwrap();
    assert_eq!(fs::read(&victim).unwrap(), b"precious");
    assert_eq!(fs::read(&path).unwrap(), b"new");
}

#[test]
fn dropped_draft_leaves_the_old_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a");
    fs::write(&path, "old").unwrap();
    let mut draft = Draft::beside(&path).unwrap();
    draft.write_all(b"half").unwrap();
    assert_eq!(names(dir.path()).len(), 2);
    drop(draft);
    assert_eq!(names(dir.path()), ["a"]);
    assert_eq!(fs::read(&path).unwrap(), b"old");
}

#[test]
fn place_new_refuses_to_replace() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a");
    Draft::beside(&path).unwrap().place_new().unwrap();
    let mut second = Draft::beside(&path).unwrap();
    second.write_all(b"second").unwrap();
    let refused = second.place_new().unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
    assert_eq!(fs::read(&path).unwrap(), b"");
    assert_eq!(names(dir.path()), ["a"]);
}

#[test]
fn concurrent_replacements_leave_one_whole_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a");
    std::thread::scope(|scope| {
        for writer in 0..8_u8 {
            let path = &path;
            scope.spawn(move || {
                for _ in 0..20 {
                    let mut draft = Draft::beside(path).unwrap();
                    draft.write_all(&vec![writer; 10_000]).unwrap();
                    draft.place(Durability::Eventual).unwrap();
                }
            });
        }
    });
    let content = fs::read(&path).unwrap();
    assert_eq!(content.len(), 10_000);
    assert!(content.iter().all(|byte| *byte == content[0]));
    assert_eq!(names(dir.path()), ["a"]);
}

#[test]
fn follow_ends_at_a_file_or_fails() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    fs::create_dir(at("deep")).unwrap();
    symlink("deep/b", at("a")).unwrap();
    symlink("c", at("deep/b")).unwrap();
    assert_eq!(follow(&at("a")).unwrap(), at("deep/c"));
    assert_eq!(follow(&at("plain")).unwrap(), at("plain"));
    symlink("round", at("round")).unwrap();
    follow(&at("round")).unwrap_err();
}
