//! What is left when the process is killed.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use switchboard_store::{Query, Store};

use super::{Place, all, close, is_intact, names, record};

const FILE_OF_THE_VICTIM: &str = "SWITCHBOARD_STORE_VICTIM";

#[tokio::test]
async fn what_was_committed_survives_a_kill() {
    let place = Place::new();
    let mut victim = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "crash::victim", "--nocapture"])
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
