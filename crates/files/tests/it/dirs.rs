//! Private directories.

use std::{fs, os::unix::fs::symlink};

use switchboard_files::private_dir;

use crate::{mode, set_mode};

#[test]
fn directory_is_created_or_made_private() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a/b");
    private_dir(&path).unwrap();
    assert_eq!((mode(&path), mode(&dir.path().join("a"))), (0o700, 0o700));
    set_mode(&path, 0o755);
    private_dir(&path).unwrap();
    assert_eq!(mode(&path), 0o700);
}

#[test]
fn linked_directory_is_refused_and_untouched() {
    let dir = tempfile::tempdir().unwrap();
    let (target, link) = (dir.path().join("target"), dir.path().join("link"));
    fs::create_dir(&target).unwrap();
    set_mode(&target, 0o755);
    symlink(&target, &link).unwrap();
    let refused = private_dir(&link).unwrap_err();
    assert_eq!(refused.to_string(), "it is a symbolic link");
    assert_eq!(mode(&target), 0o755);
}

#[test]
fn directory_of_another_user_is_refused() {
    // A directory of root. If the test runs as root, a directory of another user.
    let dir = tempfile::tempdir().unwrap();
    let path = if is_root() {
        let path = dir.path().join("a");
        fs::create_dir(&path).unwrap();
        std::os::unix::fs::chown(&path, Some(65_534), None).unwrap();
        path
    } else {
        "/usr".into()
    };
    let refused = private_dir(&path).unwrap_err();
    assert!(refused.to_string().contains("belongs to user"), "{refused}");
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
