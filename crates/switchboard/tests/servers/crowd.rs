//! Many servers that the gateway has never seen, all at once.

use std::{collections::BTreeSet, time::Instant};

use serde_json::{Value, json};
use switchboard_test_support::until;

use crate::{place::Place, table::all_installed};

const CROWD: usize = 40;

#[test]
fn forty_at_once_are_listed_without_failures() {
    let Some(servers) = all_installed() else {
        return;
    };
    let place = Place::new();
    let work = place.work();
    let copies = (1..).flat_map(|round| servers.iter().map(move |server| (round, server)));
    let crowd: serde_json::Map<String, Value> = copies
        .take(CROWD)
        .map(|(round, server)| {
            let name = match round {
                1 => server.name().to_owned(),
                _ => format!("{}-{round}", server.name()),
            };
            // Two instances of a server must not share a home directory.
            let user = place.path(&format!("user/{name}"));
            std::fs::create_dir_all(&user).unwrap();
            let mut entry = server.entry(&work);
            entry["env"]["HOME"] = json!(user);
            (name, entry)
        })
        .collect();
    assert_eq!(crowd.len(), CROWD);
    let names: BTreeSet<_> = crowd.keys().cloned().collect();
    place.configure(&Value::Object(crowd));

    let began = Instant::now();
    let gateway = place.serve("here");
    until("all are learnt", || {
        let servers = gateway.servers();
        let parked = servers.iter().find(|server| server["state"] == "parked");
        assert_eq!(parked, None);
        servers
            .iter()
            .all(|server| gateway.has_learnt(server))
            .then_some(())
    });
    eprintln!("learnt: {CROWD} servers at once in {:.1?}", began.elapsed());
    let held = place.held();
    gateway.stop();

    let log = place.log();
    let states = log.lines().filter(|line| line.contains("Server state."));
    let failed: Vec<_> = states
        .clone()
        .filter(|line| line.contains("retrying") || line.contains("parked"))
        .collect();
    assert!(
        failed.is_empty(),
        "{} failed starts:\n{}",
        failed.len(),
        failed.join("\n")
    );
    let ready = states.filter(|line| line.contains("ready")).count();
    assert!(ready >= names.len(), "the log tells of every start");
    assert!(held.is_empty(), "{}", held.join("\n"));
}
