//! Tests that need a process of their own: one that is killed, or observed while idle.

#![allow(
    clippy::print_stdout,
    reason = "so a process talks to the test that has started it"
)]

use std::collections::HashSet;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use switchboard_store::{Query, Store, Which, verify};
use switchboard_test_support::left_out::{Lack, lacks};

use super::memory::{assert_sound, everything, learned_twice};
use super::{
    Place, all, approval, close, is_intact, names, new, note, ready, record, within, write,
};

/// Environment variable set in a child process that a test kills or observes. The child runs the
/// same test, which then takes a different branch.
const CHILD: &str = "SWITCHBOARD_STORE_CHILD";

/// Returns the file that this process should work on, if a test started it.
fn child_file() -> Option<PathBuf> {
    std::env::var_os(CHILD).map(PathBuf::from)
}

/// A command that runs a test again in a process of its own.
fn child(test: &str, file: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", &format!("alone::{test}"), "--nocapture"])
        .env(CHILD, file);
    command
}

#[tokio::test]
async fn what_was_committed_survives_a_kill() {
    if let Some(file) = child_file() {
        return victim(file).await;
    }
    let place = Place::new();
    let mut victim = child("what_was_committed_survives_a_kill", &place.file)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(victim.stdout.take().unwrap()).lines();
    let committed: u64 = lines
        .map_while(Result::ok)
        .filter_map(|line| line.strip_prefix("committed ")?.parse().ok())
        .take(20)
        .last()
        .expect("the victim commits something");
    victim.kill().unwrap();
    assert!(!victim.wait().unwrap().success());

    let store = place.open();
    let count = names(&store, all()).await.len() as u64;
    assert!(count >= committed, "{count} of {committed}");
    let gaps = names(
        &store,
        Query {
            since: Some(0),
            before: Some(committed + 1),
            ..all()
        },
    )
    .await;
    let expected: Vec<_> = (0..committed).rev().map(|n| format!("tool-{n}")).collect();
    assert_eq!(gaps, expected);
    close(&store).await;
    assert!(is_intact(&place.file));
}

/// The process that the test above kills. It prints the number of records on disk.
async fn victim(file: PathBuf) {
    let store = Store::open(file);
    let mut number = 0;
    // Fewer than the limit of one answer; the test kills this process long before.
    while number < 1000 {
        record(&store, number..number + 7);
        number += 7;
        let newest = names(&store, Query::default()).await;
        assert_eq!(newest[0], format!("tool-{}", number - 1));
        println!("committed {number}");
    }
    std::future::pending::<()>().await;
}

/// Round after round on the same file, killed at a random moment: while it opens, writes or
/// commits.
#[tokio::test]
async fn every_write_that_was_answered_survives_a_kill() {
    if let Some(file) = child_file() {
        return writer(file).await;
    }
    let place = Place::new();
    let mut answered: HashSet<String> = HashSet::new();
    for round in 0..24 {
        let mut writer = child("every_write_that_was_answered_survives_a_kill", &place.file)
            .env("ROUND", round.to_string())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(writer.stdout.take().unwrap()).lines();
        let chance = RandomState::new().build_hasher().finish();
        let killer = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_micros(10_000 + chance % 120_000));
            writer.kill().unwrap();
            assert!(!writer.wait().unwrap().success());
        });
        // Everything printed before the kill is read to the end.
        let ids = lines.map_while(Result::ok);
        answered.extend(ids.filter_map(|line| Some(line.strip_prefix("written ")?.to_owned())));
        killer.join().unwrap();
        if !answered.is_empty() {
            assert_eq!(verify(&place.file).unwrap().broken, None, "round {round}");
        }
    }
    assert!(answered.len() > 24, "only {} were answered", answered.len());

    let store = place.open();
    let mut found = HashSet::new();
    let mut before = None;
    loop {
        let limit = usize::MAX;
        let page = within(store.approvals(Which {
            before,
            limit,
            ..Which::default()
        }))
        .await
        .unwrap();
        let Some(last) = page.last() else { break };
        before = Some(last.id.clone());
        found.extend(page.iter().map(|row| row.id.to_string()));
    }
    let lost: Vec<_> = answered.difference(&found).collect();
    assert!(lost.is_empty(), "{lost:?}");
    // Each write was applied completely or not at all.
    let mut noted = HashSet::new();
    let mut since = 0;
    loop {
        let page = within(store.audit(since, usize::MAX)).await.unwrap();
        let Some(last) = page.last() else { break };
        since = last.seq;
        noted.extend(page.iter().map(|audited| audited.entry.subject.to_string()));
    }
    assert_eq!(noted, found);
    close(&store).await;
    let verdict = verify(&place.file).unwrap();
    assert_eq!(
        (verdict.entries, verdict.broken),
        (found.len() as u64, None)
    );
    assert!(is_intact(&place.file));
}

/// The process that the test above kills. It prints the ID of each write that was answered.
async fn writer(file: PathBuf) {
    let round = std::env::var("ROUND").unwrap();
    let store = Store::open(file);
    let mut writers = tokio::task::JoinSet::new();
    for lane in 0..4 {
        let (store, round) = (store.clone(), round.clone());
        writers.spawn(async move {
            for number in 0.. {
                let id = format!("{round}-{lane}-{number}");
                let changes = vec![note(&id), new(approval(&id))];
                store.write(changes).await.unwrap();
                println!("written {id}");
            }
        });
    }
    writers.join_all().await;
}

/// The same for memories and everything that belongs to them.
#[tokio::test]
async fn every_memory_that_was_answered_survives_a_kill() {
    if let Some(file) = child_file() {
        return learner(file).await;
    }
    let place = Place::new();
    let mut answered: HashSet<String> = HashSet::new();
    for round in 0..16 {
        let mut learner = child(
            "every_memory_that_was_answered_survives_a_kill",
            &place.file,
        )
        .env("ROUND", round.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
        let lines = BufReader::new(learner.stdout.take().unwrap()).lines();
        let chance = RandomState::new().build_hasher().finish();
        let killer = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_micros(10_000 + chance % 120_000));
            learner.kill().unwrap();
            assert!(!learner.wait().unwrap().success());
        });
        let ids = lines.map_while(Result::ok);
        answered.extend(ids.filter_map(|line| Some(line.strip_prefix("learned ")?.to_owned())));
        killer.join().unwrap();
    }
    assert!(answered.len() > 16, "only {} were answered", answered.len());
    let store = place.open();
    let versions = everything(&store.memories()).await;
    let current = versions
        .iter()
        .filter(|version| version.learned_until.is_none());
    // Each write was applied completely or not at all.
    let found: HashSet<_> = current
        .inspect(|version| assert_eq!((version.version, version.mentions.len()), (2, 1)))
        .map(|version| version.id.to_string())
        .collect();
    let lost: Vec<_> = answered.difference(&found).collect();
    assert!(lost.is_empty(), "{lost:?}");
    assert_eq!(versions.len(), 2 * found.len());
    close(&store).await;
    assert_sound(&place);
}

/// The process that the test above kills. It prints the ID of each write that was answered.
async fn learner(file: PathBuf) {
    let round = std::env::var("ROUND").unwrap();
    let store = Store::open(file);
    let mut learners = tokio::task::JoinSet::new();
    for lane in 0..4 {
        let (memories, round) = (store.memories(), round.clone());
        learners.spawn(async move {
            for number in 0.. {
                let id = format!("{round}-{lane}-{number}");
                memories.write(learned_twice(&id)).await.unwrap();
                println!("learned {id}");
            }
        });
    }
    learners.join_all().await;
}

/// The wake-ups of the store's thread can only be counted in a process with a single store.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_store_with_nothing_to_do_never_wakes() {
    if let Some(file) = child_file() {
        return idler(file).await;
    }
    let place = Place::new();
    let idler = child("a_store_with_nothing_to_do_never_wakes", &place.file)
        .output()
        .unwrap();
    let said = String::from_utf8(idler.stdout).unwrap();
    assert!(said.contains("woke 0 times"), "{said}");
}

/// The process that the test above observes.
#[cfg(target_os = "linux")]
async fn idler(file: PathBuf) {
    let store = Store::open(file);
    record(&store, 0..3);
    names(&store, all()).await;
    let second = Duration::from_secs(1);
    // The answer arrives before the thread has gone to sleep.
    tokio::time::sleep(second).await;
    let before = wakings();
    tokio::time::sleep(2 * second).await;
    println!("woke {} times", wakings() - before);
    drop(store);
}

/// Number of times the only thread named `store` has gone to sleep so far.
#[cfg(target_os = "linux")]
fn wakings() -> u64 {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let read =
        |name: &str, task: &Path| std::fs::read_to_string(task.join(name)).unwrap_or_default();
    let task = tasks
        .map(|task| task.unwrap().path())
        .find(|task| read("comm", task).trim() == "store")
        .unwrap();
    let status = read("status", &task);
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    line.unwrap().trim().parse().unwrap()
}

/// Runs in its own namespaces, in which every user may mount a disk of one megabyte.
#[tokio::test]
async fn full_disk_refuses_writes_and_is_read_on() {
    if let Some(disk) = child_file() {
        return small_disk(&disk).await;
    }
    let place = tempfile::tempdir().unwrap();
    let unshared = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["-rm", "sh", "-c", script, "sh"]);
        command
            .arg(place.path())
            .arg(std::env::current_exe().unwrap());
        command.env(CHILD, place.path());
        command
    };
    let mount = r#"mount -t tmpfs -o size=1m none "$1""#;
    if !unshared(mount).status().is_ok_and(|done| done.success()) {
        return lacks(Lack::Namespaces, "`unshare -rm` cannot mount a small disk");
    }
    let test = "alone::full_disk_refuses_writes_and_is_read_on";
    let script = format!(r#"{mount} && exec "$2" --exact {test} --nocapture"#);
    assert!(unshared(&script).status().unwrap().success());
}

/// The process of the test above, with the small disk.
async fn small_disk(disk: &Path) {
    let store = Store::open(disk.join("db"));
    write(&store, [new(approval("k1"))]).await.unwrap();
    // The log of the store has room for a while, but cannot grow.
    std::fs::write(disk.join("rest"), vec![1; 4 << 20]).unwrap_err();
    let mut number = 0;
    let refused = loop {
        number += 1;
        assert!(number < 1000, "nothing was refused");
        if let Err(error) = write(&store, [new(approval(&format!("n{number}")))]).await {
            break error;
        }
    };
    assert!(
        refused.to_string().contains("the disk is full"),
        "{refused}"
    );
    assert!(within(store.approval("k1")).await.unwrap().is_some());
    assert!(!store.status().is_ready());
    std::fs::remove_file(disk.join("rest")).unwrap();
    ready(&store).await;
    write(&store, [new(approval("k2"))]).await.unwrap();
    close(&store).await;
    assert!(is_intact(&disk.join("db")));
}
