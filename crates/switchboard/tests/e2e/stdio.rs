//! `switchboard stdio`: one gateway for all clients of a home, no matter which of them came first.

use std::fs;

use rustix::process::Signal;
use serde_json::json;
use switchboard_test_support::{Home, pipe::Pipe, server, until};

/// Calls until the server is known, and returns its process ID.
fn pid(pipe: &mut Pipe) -> String {
    until("a is known", || pipe.call("a__pid", json!({})).ok())
}

/// The process ID of the gateway.
fn gateway(home: &Home) -> i32 {
    until("somebody is the gateway", || {
        let holder = fs::read_to_string(home.path("run/lock")).ok()?;
        holder.trim().parse().ok()
    })
}

fn home() -> Home {
    Home::new(json!({ "a": server(&[]) }))
}

#[test]
fn joined_clients_share_the_servers() {
    let home = home();
    let serve = home.serve();
    serve.until_known("a");
    let by_http = serve.client().call("a__pid", json!({})).unwrap();
    let (mut one, mut two) = (Pipe::open(&home), Pipe::open(&home));
    assert_eq!(pid(&mut one), by_http);
    assert_eq!(pid(&mut two), by_http);
    assert_eq!(gateway(&home), serve.pid());
    one.leave();
    assert!(one.ended().success());
    assert_eq!(pid(&mut two), by_http);
    serve.stop();
}

#[test]
fn simultaneous_clients_start_one_gateway() {
    let home = home();
    let mut pipes: Vec<_> = (0..5).map(|_| Pipe::start(&home)).collect();
    for pipe in &mut pipes {
        pipe.initialize();
    }
    let pids: Vec<_> = pipes.iter_mut().map(pid).collect();
    assert!(pids.iter().all(|pid| *pid == pids[0]), "{pids:?}");
    let guards = home
        .people()
        .iter()
        .filter(|person| person.is_guard())
        .count();
    assert_eq!(guards, 1, "{:#?}", home.people());
    for pipe in &mut pipes {
        pipe.leave();
    }
    for pipe in &mut pipes {
        assert!(pipe.ended().success());
    }
    home.assert_nobody("all have left");
}

/// Two clients, the first of which runs the gateway.
fn pair(home: &Home) -> (Pipe, Pipe) {
    let mut first = Pipe::open(home);
    pid(&mut first);
    let second = Pipe::open(home);
    assert_eq!(gateway(home), first.pid());
    (first, second)
}

#[test]
fn second_client_survives_a_killed_first() {
    let home = home();
    let (mut first, mut second) = pair(&home);
    let before = pid(&mut second);
    let lost = second.begin_call("a__hang", json!({}));
    // The second call ensures that both have reached the gateway.
    second.call("a__echo", json!({ "text": "x" })).unwrap();
    first.kill();
    let lost = second.finish(&lost);
    assert_eq!(lost["error"]["code"], -32004, "{lost}");
    let answer = second.call("a__echo", json!({ "text": "alone" }));
    assert_eq!(answer, Ok("alone".to_owned()));
    assert_ne!(pid(&mut second), before);
    assert_eq!(gateway(&home), second.pid());

    // It is a full gateway.
    let mut third = Pipe::open(&home);
    assert_eq!(pid(&mut third), pid(&mut second));
    third.leave();
    assert!(third.ended().success());
    second.leave();
    assert!(second.ended().success());
    home.assert_nobody("all have left");
}

#[test]
fn second_client_survives_a_stopped_first() {
    let home = home();
    let (mut first, mut second) = pair(&home);
    pid(&mut second);
    first.signal(Signal::TERM);
    assert!(first.ended().success());
    let answer = second.call("a__echo", json!({ "text": "alone" }));
    assert_eq!(answer, Ok("alone".to_owned()));
    assert_eq!(gateway(&home), second.pid());
    second.leave();
    assert!(second.ended().success());
    home.assert_nobody("all have left");
}

#[test]
fn gateway_outlives_its_own_client() {
    let home = home();
    let (mut first, mut second) = pair(&home);
    let before = pid(&mut second);
    first.leave();
    for _ in 0..20 {
        assert_eq!(pid(&mut second), before);
    }
    assert!(!first.has_ended());
    second.leave();
    assert!(second.ended().success());
    assert!(first.ended().success());
    home.assert_nobody("all have left");
}

#[test]
fn one_survivor_takes_over_and_another_joins() {
    let home = home();
    let (mut first, mut second) = pair(&home);
    let mut third = Pipe::open(&home);
    pid(&mut third);
    first.kill();
    let two = pid(&mut second);
    let three = pid(&mut third);
    assert_eq!(two, three);
    let gateway = gateway(&home);
    assert!([second.pid(), third.pid()].contains(&gateway));
    second.leave();
    third.leave();
    assert!(second.ended().success());
    assert!(third.ended().success());
    home.assert_nobody("all have left");
}

#[test]
fn joined_client_replaces_a_killed_serve() {
    let home = home();
    let mut serve = home.serve();
    serve.until_known("a");
    let mut pipe = Pipe::open(&home);
    pid(&mut pipe);
    serve.signal(Signal::KILL);
    serve.ended();
    let answer = pipe.call("a__echo", json!({ "text": "alone" }));
    assert_eq!(answer, Ok("alone".to_owned()));
    assert_eq!(gateway(&home), pipe.pid());
    pipe.leave();
    assert!(pipe.ended().success());
    home.assert_nobody("all have left");
}

#[test]
fn calls_in_flight_outlive_end_of_input() {
    let home = home();
    let mut pipe = Pipe::open(&home);
    pid(&mut pipe);
    let id = pipe.begin_call("a__echo", json!({ "text": "last words", "ms": 300 }));
    pipe.leave();
    assert_eq!(
        pipe.finish(&id)["result"]["content"][0]["text"],
        "last words"
    );
    assert!(pipe.ended().success());
    home.assert_nobody("the client has left");
}

#[test]
fn unread_log_blocks_nothing() {
    let home = home();
    let mut pipe = Pipe::open_unlogged(&home);
    pid(&mut pipe);
    for n in 0..400 {
        let answer = pipe.call("a__echo", json!({ "text": n.to_string() }));
        assert_eq!(answer, Ok(n.to_string()));
    }
    pipe.leave();
    assert!(pipe.ended().success());
    let log = pipe.unread();
    assert!(log.len() > 60_000, "only {} bytes were logged", log.len());
    home.assert_nobody("the client has left");
}
