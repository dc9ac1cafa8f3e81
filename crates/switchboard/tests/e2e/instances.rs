//! Five clients in two projects use thirty servers: exactly the processes that they need run, and for as long as they
//! are needed.

use std::{collections::BTreeSet, fs};

use serde_json::{Value, json};
use switchboard_test_support::{Home, pipe::Pipe, server, until, with};

/// The number of servers of each kind.
const SERVERS: usize = 10;
const KINDS: [&str; 3] = ["all", "project", "client"];
/// The project of each client.
const PROJECTS: [&str; 5] = ["a", "a", "a", "b", "b"];

fn config(idle_stop: u64) -> Value {
    let entry = |kind: &str, number: usize| {
        let settings = json!({ "share": kind, "trust": "always", "idleStopSeconds": idle_stop });
        (format!("{kind}{number}"), with(server(&[]), settings))
    };
    let servers = KINDS
        .iter()
        .flat_map(|kind| (0..SERVERS).map(|number| entry(kind, number)));
    json!({ "mcpServers": servers.collect::<serde_json::Map<_, _>>() })
}

/// The processes that a client's calls reach, by server.
fn pids(pipe: &mut Pipe, kind: &str) -> Vec<String> {
    let calls = (0..SERVERS).map(|number| format!("{kind}{number}__pid"));
    let calls: Vec<_> = calls
        .map(|tool| pipe.begin_call(&tool, json!({})))
        .collect();
    let told = calls.iter().map(|call| {
        let answer = pipe.finish(call);
        let text = &answer["result"]["content"][0]["text"];
        text.as_str()
            .unwrap_or_else(|| panic!("{answer}"))
            .to_owned()
    });
    told.collect()
}

#[test]
fn exactly_the_needed_processes_run() {
    let home = Home::new(json!({}));
    home.set_config(config(0));
    for project in ["a", "b"] {
        fs::create_dir(home.path(project)).unwrap();
    }
    let serve = home.serve();
    for kind in KINDS {
        for number in 0..SERVERS {
            serve.until_known(&format!("{kind}{number}"));
        }
    }
    let open = |project: &&str| Pipe::open_in(&home, &home.path(project), &[]);
    let mut clients: Vec<_> = PROJECTS.iter().map(open).collect();
    for (kind, expected) in KINDS.iter().zip([1, 2, 5]) {
        let told: Vec<_> = clients
            .iter_mut()
            .map(|client| pids(client, kind))
            .collect();
        for number in 0..SERVERS {
            let of_clients: Vec<_> = told.iter().map(|told| &told[number]).collect();
            let different: BTreeSet<_> = of_clients.iter().collect();
            assert_eq!(different.len(), expected, "{kind}{number}: {of_clients:?}");
            if *kind == "project" {
                assert_eq!(of_clients[0], of_clients[2]);
                assert_eq!(of_clients[3], of_clients[4]);
            }
        }
        // The same processes answer again.
        let again: Vec<_> = clients
            .iter_mut()
            .map(|client| pids(client, kind))
            .collect();
        assert_eq!(again, told, "{kind}");
    }
    let servers = || {
        home.people()
            .iter()
            .filter(|person| !person.is_guard())
            .count()
    };
    // The gateway has ended the processes from which it fetched the lists.
    until("exactly the needed processes run", || {
        servers() == SERVERS * (1 + 2 + 5)
    });

    // A client that leaves takes its own processes along, and no others.
    for mut client in clients.drain(2..4) {
        client.leave();
        assert!(client.ended().success());
    }
    until("the processes of two clients have ended", || {
        servers() == SERVERS * (1 + 2 + 3)
    });

    home.set_config(config(1));
    until("unused processes have ended", || servers() == 0);
    // The guard of a process ends after it.
    home.until_nobody("after the idle time");
    // A stopped process is started again.
    for (client, kind) in clients.iter_mut().zip(KINDS) {
        pids(client, kind);
    }
    serve.stop();
    home.assert_nobody("after the gateway");
}
