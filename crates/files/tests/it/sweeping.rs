//! Drafts of processes that were killed.

use std::{
    fs::{self, File},
    os::unix::fs::symlink,
    path::Path,
    process::Command,
    time::{Duration, SystemTime},
};

use proptest::prelude::*;
use switchboard_files::sweep;

use crate::names;

fn dead() -> u32 {
    let mut child = Command::new("true").spawn().unwrap();
    child.wait().unwrap();
    child.id()
}

fn make(path: &Path, age: Duration) {
    fs::write(path, "half").unwrap();
    let file = File::options().write(true).open(path).unwrap();
    file.set_modified(SystemTime::now() - age).unwrap();
}

#[test]
fn old_draft_of_a_dead_process_is_removed() {
    let dir = tempfile::tempdir().unwrap();
    let (old, young) = (Duration::from_mins(6), Duration::from_secs(1));
    let (dead, alive) = (dead(), std::os::unix::process::parent_id());
    let own = std::process::id();
    for (name, age) in [
        (format!(".a.json.{dead}.0.new"), old),
        (format!(".a.json.{own}.0.new"), old),
        (format!(".b.json.{dead}.1.new"), young),
        (format!(".c.json.{alive}.1.new"), old),
        (format!("d.json.{dead}.1.new"), old),
        (format!(".e.{dead}.new"), old),
        (".f.json.x.1.new".to_owned(), old),
        ("switchboard.json.new".to_owned(), old),
    ] {
        make(&dir.path().join(name), age);
    }
    let link = dir.path().join(format!(".link.{dead}.7.new"));
    symlink(dir.path().join("switchboard.json.new"), link).unwrap();
    assert_eq!(sweep(dir.path()).unwrap(), 2);
    let mut left = [
        format!(".b.json.{dead}.1.new"),
        format!(".c.json.{alive}.1.new"),
        format!("d.json.{dead}.1.new"),
        format!(".e.{dead}.new"),
        ".f.json.x.1.new".to_owned(),
        format!(".link.{dead}.7.new"),
        "switchboard.json.new".to_owned(),
    ];
    left.sort();
    assert_eq!(names(dir.path()), left);
    assert_eq!(sweep(&dir.path().join("missing")).unwrap(), 0);
}

proptest! {
    #[test]
    fn only_drafts_are_removed(name in "[.]?[a-z.0-9]{1,12}([.][0-9]{1,12}){0,3}([.]new)?") {
        prop_assume!(!matches!(name.as_str(), "." | ".."));
        let dir = tempfile::tempdir().unwrap();
        make(&dir.path().join(&name), Duration::from_mins(6));
        let parts: Vec<_> = name.split('.').collect();
        let looks_like_one = name.starts_with('.') && parts.last() == Some(&"new") && parts.len() >= 5;
        prop_assert!(sweep(dir.path()).unwrap() == 0 || looks_like_one, "{}", name);
    }
}
