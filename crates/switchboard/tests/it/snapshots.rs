//! The output of every command on a terminal of 80 and of 160 columns, compared with the files in
//! `tests/snapshots`.
//!
//! `UPDATE_SNAPSHOTS=1 cargo nextest run -p switchboard --test it -E 'test(snapshots)'` updates them.

mod colour;
mod deciding;
mod editing;
mod golden;
mod helping;
mod looking;
mod remembering;
mod rich;
mod running;
mod screen;
mod stage;

use std::{collections::BTreeSet, fs};

use golden::folder;
pub(crate) use helping::listed;
use stage::Stage;

/// The files that tests write, and their widths. A file that is listed twice, or not at all, fails a test.
const GROUPS: &[(&[&str], &[u16])] = &[
    (colour::FILES, &[80]),
    (deciding::FILES, &[80, 160]),
    (editing::FILES, &[80, 160]),
    (helping::FILES, &[80, 160]),
    (looking::FILES, &[80, 160]),
    (remembering::FILES, &[80, 160]),
    (running::FILES, &[80, 160]),
];

/// Runs `record` of a module at each width, and compares its files with `FILES`.
macro_rules! at_both_widths {
    () => {
        fn at(columns: u16) {
            let mut book = Book::new(columns);
            record(&mut book);
            book.check(FILES);
        }

        #[test]
        fn at_80_columns() {
            at(80);
        }

        #[test]
        fn at_160_columns() {
            at(160);
        }
    };
}
use at_both_widths;

#[test]
fn every_file_is_used() {
    let there = fs::read_dir(folder()).unwrap();
    let there: BTreeSet<String> = there
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let mut expected = BTreeSet::new();
    for (names, widths) in GROUPS {
        for (name, columns) in names
            .iter()
            .flat_map(|name| widths.iter().map(move |columns| (name, columns)))
        {
            let is_new = expected.insert(format!("{name}.{columns}.txt"));
            assert!(is_new, "two tests write {name}");
        }
    }
    let unused: Vec<_> = there.difference(&expected).collect();
    assert!(unused.is_empty(), "no test uses {unused:?}: delete them");
}

#[test]
fn every_command_has_a_snapshot() {
    if golden::is_updating() {
        // Other tests are still writing the files.
        return;
    }
    let stage = Stage::new(80);
    let read = |name: &str| {
        let path = folder().join(format!("{name}.80.txt"));
        fs::read_to_string(path).unwrap_or_default()
    };
    let mut missing = Vec::new();
    for command in listed(&stage.run(&["--help"]).text) {
        let text = read(&command);
        let mut wanted = vec![format!("\n$ switchboard {command}")];
        for below in listed(&stage.run(&[&command, "--help"]).text) {
            wanted.push(format!("\n$ switchboard {command} {below}"));
        }
        wanted.retain(|line| !text.contains(line.as_str()));
        missing.extend(wanted);
    }
    assert!(missing.is_empty(), "no snapshot has {missing:?}");
}
