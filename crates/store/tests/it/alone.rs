//! What takes a process of its own: being killed, and being watched while doing nothing.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use switchboard_store::{Query, Store};

use super::{Place, all, close, is_intact, names, record};

const FILE_OF_THE_VICTIM: &str = "SWITCHBOARD_STORE_VICTIM";

#[tokio::test]
async fn what_was_committed_survives_a_kill() {
    let place = Place::new();
    let mut victim = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "alone::victim", "--nocapture"])
        .env(FILE_OF_THE_VICTIM, &place.file)
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

/// Not a test by itself: the process that is killed above. It says what is on the disk.
#[tokio::test]
async fn victim() {
    let Some(file) = std::env::var_os(FILE_OF_THE_VICTIM) else {
        return;
    };
    let store = Store::open(file.into());
    let mut number = 0;
    // Fewer than one answer holds; the reader kills long before.
    while number < 1000 {
        record(&store, number..number + 7);
        number += 7;
        let newest = names(&store, Query::default()).await;
        assert_eq!(newest[0], format!("tool-{}", number - 1));
        println!("committed {number}");
    }
    std::future::pending::<()>().await;
}

/// How often the store's thread wakes is only to be seen where there is one store.
#[cfg(target_os = "linux")]
#[test]
fn a_store_with_nothing_to_do_never_wakes() {
    let place = Place::new();
    let idler = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "alone::idler", "--nocapture"])
        .env(FILE_OF_THE_IDLER, &place.file)
        .output()
        .unwrap();
    let said = String::from_utf8(idler.stdout).unwrap();
    assert!(said.contains("woke 0 times"), "{said}");
}

#[cfg(target_os = "linux")]
const FILE_OF_THE_IDLER: &str = "SWITCHBOARD_STORE_IDLER";

/// Not a test by itself: the process that is watched above.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn idler() {
    let Some(file) = std::env::var_os(FILE_OF_THE_IDLER) else {
        return;
    };
    let store = Store::open(file.into());
    record(&store, 0..3);
    names(&store, all()).await;
    let second = std::time::Duration::from_secs(1);
    // The answer comes before the thread has gone to sleep.
    tokio::time::sleep(second).await;
    let before = wakings();
    tokio::time::sleep(2 * second).await;
    println!("woke {} times", wakings() - before);
    drop(store);
}

/// How often the one thread that is called `store` went to sleep so far.
#[cfg(target_os = "linux")]
fn wakings() -> u64 {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let read = |name: &str, task: &std::path::Path| {
        std::fs::read_to_string(task.join(name)).unwrap_or_default()
    };
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
