//! The memory is killed at random moments while it works: after a restart, everything that it acknowledged is
//! there, and nothing is left over.

mod database;
mod ledger;
mod work;

use std::{env, thread, time::Duration};

use serde_json::{Value, json};
use switchboard_test_support::{Dice, Home, pipe::Pipe, processes, until};

use self::{
    ledger::{Ledger, Snapshot},
    work::Work,
};

/// The number of kills, unless the environment says otherwise.
const KILLS: u64 = 15;
/// The number of expected memories, and of deleted ones, to search for after each start.
const SAMPLE: usize = 12;
/// The number of starts between checks that wait for the vectors.
const VECTORS_EVERY: u64 = 5;

#[test]
fn acknowledged_writes_survive_kills_at_any_moment() {
    let number = |name: &str| env::var(name).ok().and_then(|text| text.parse().ok());
    let kills = number("SWITCHBOARD_CRASH_KILLS").unwrap_or(KILLS);
    let seed = number("SWITCHBOARD_CRASH_SEED").unwrap_or_else(|| u64::from(std::process::id()));
    eprintln!("{kills} kills, seed {seed}");

    let home = Home::remembering();
    let mut dice = Dice(seed);
    let mut ledger = Ledger::default();
    let mut work = Work::new();
    for kill in 1..=kills {
        // Kills it also while it starts and cleans up after the last kill.
        if dice.below(5) == 0 {
            let mut pipe = Pipe::start_memory(&home);
            thread::sleep(Duration::from_millis(dice.below(150)));
            pipe.kill();
        }
        let mut pipe = Pipe::open_memory(&home);
        verify(
            &mut pipe,
            &home,
            &mut ledger,
            &mut dice,
            kill % VECTORS_EVERY == 0,
        );
        let moment = Duration::from_millis(1 + dice.below(500));
        let pid = pipe.pid();
        let killer = thread::spawn(move || {
            thread::sleep(moment);
            processes::kill(pid);
        });
        work.until_killed(&mut pipe, &mut ledger, &mut dice);
        killer.join().unwrap();
        pipe.kill();
        if kill % 20 == 0 || kill == kills {
            eprintln!("{kill} kills: {work}; {ledger}");
        }
    }
    let mut pipe = Pipe::open_memory(&home);
    verify(&mut pipe, &home, &mut ledger, &mut dice, true);
    pipe.leave();
    assert!(pipe.ended().success());
    database::check(&home, &ledger);
    work.assert_all_kinds_were_done();
    let aside = std::fs::read_dir(home.path("")).unwrap().flatten();
    let aside = aside.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let aside: Vec<String> = aside.filter(|name| name.contains("damaged")).collect();
    assert!(aside.is_empty(), "a file was taken for damaged: {aside:?}");
}

/// Checks that everything expected is there, and nothing else.
fn verify(pipe: &mut Pipe, home: &Home, ledger: &mut Ledger, dice: &mut Dice, vectors: bool) {
    let snapshot = Snapshot::take(pipe);
    ledger.settle(&snapshot);
    // Search finds what is expected.
    for (id, kept) in ledger.sample(dice, SAMPLE) {
        let arguments =
            json!({ "query": kept.token, "namespace": kept.namespace, "include_invalid": true });
        let found = call(pipe, "search_memory", arguments);
        let first = ids(&found).first().copied();
        assert_eq!(
            first,
            Some(id.as_str()),
            "looked for {}: {found}",
            kept.token
        );
        let got = call(pipe, "get_memory", json!({ "id": id }));
        assert_eq!(got["content"], kept.content, "{got}");
    }
    for token in ledger.sample_of_gone(dice, SAMPLE) {
        let arguments = json!({ "query": token, "include_invalid": true });
        let found = call(pipe, "search_memory", arguments);
        assert!(
            !found.to_string().contains(&token),
            "{token} is gone: {found}"
        );
    }
    let status = call(pipe, "get_status", json!({}));
    assert_eq!(status["memories"], ledger.len(), "{status}");
    if vectors {
        until("the vectors are filled in", || {
            let status = call(pipe, "get_status", json!({}));
            let of_vectors = &status["parts"]["embeddings"];
            (of_vectors["state"] == "ready" && of_vectors["waiting"] == 0).then_some(())
        });
        for (id, kept) in ledger.sample(dice, SAMPLE) {
            let arguments = json!({
                "query": kept.content, "mode": "vector", "namespace": kept.namespace,
                "include_invalid": true, "limit": 5,
            });
            let found = call(pipe, "search_memory", arguments);
            assert!(ids(&found).contains(&id.as_str()), "not {id}: {found}");
        }
    }
    database::check(home, ledger);
}

fn ids(found: &Value) -> Vec<&str> {
    let memories = found["memories"].as_array().unwrap();
    memories
        .iter()
        .map(|one| one["id"].as_str().unwrap())
        .collect()
}

/// The structured result of a tool.
#[track_caller]
fn call(pipe: &mut Pipe, tool: &str, arguments: Value) -> Value {
    let id = pipe.begin_call(tool, arguments);
    let mut answer = pipe.finish(&id);
    let is_fine = answer.get("error").is_none() && answer["result"]["isError"] != true;
    assert!(is_fine, "{tool}: {answer}");
    answer["result"]["structuredContent"].take()
}
