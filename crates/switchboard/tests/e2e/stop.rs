//! Shutdown: without waiting when all servers cooperate, bounded when one does not.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};
use switchboard_test_support::{
    FOREVER_MS, Home, eager, mcp::Client, pipe::Pipe, server, until, with,
};

/// A home without timeouts: only an event ends a wait.
fn patient(servers: Value) -> Home {
    let home = Home::new(json!({}));
    let shutdown = json!({ "totalTimeoutMs": FOREVER_MS });
    home.set_config(json!({ "shutdown": shutdown, "mcpServers": servers }));
    home
}

/// A server with unlimited time to exit.
fn unhurried(args: &[&str]) -> Value {
    let times = json!({ "closeTimeoutMs": FOREVER_MS, "termTimeoutMs": FOREVER_MS });
    eager(with(server(args), times))
}

#[test]
fn cooperative_servers_stop_without_a_wait() {
    let servers = (0..20).map(|n| (format!("s{n}"), unhurried(&[])));
    let home = patient(servers.collect());
    let mut serve = home.serve();
    serve.until_all_ready();
    serve.signal(Signal::TERM);
    assert!(serve.ended().success());
    home.assert_nobody("stopped");
}

/// A client that disconnects while its gateway is still starting: commands to stop may then overtake each
/// other.
#[test]
fn brief_client_does_not_wait_for_listed_servers() {
    let eager = |n| {
        (
            format!("s{n}"),
            with(server(&[]), json!({ "start": "eager" })),
        )
    };
    let home = Home::new((0..50).map(eager).collect());
    let leave = || {
        let mut pipe = Pipe::open(&home);
        pipe.leave();
        assert!(pipe.ended().success());
    };
    let is_known = |n: usize| home.path(&format!("catalog/s{n}.json")).exists();
    while !(0..50).all(is_known) {
        leave();
    }
    for _ in 0..60 {
        leave();
    }
}

/// It has no state to save, so it does not get the full time of a server in use.
#[test]
fn server_that_never_responded_stops_early() {
    let home = patient(json!({ "s": unhurried(&["--mute", "--ignore-eof"]) }));
    let mut serve = home.serve();
    until("it is started", || {
        (!home.people().is_empty()).then_some(())
    });
    serve.signal(Signal::TERM);
    assert!(serve.ended().success());
    home.assert_nobody("it has stopped");
}

#[test]
fn calls_in_flight_are_answered_before_servers_stop() {
    let home = patient(json!({
        "one": unhurried(&[]),
        "two": unhurried(&["--ignore-eof", "--ignore-term"]),
    }));
    let mut serve = home.serve();
    serve.until_known("one");
    serve.until_known("two");
    let mut calls = ["one", "two"].map(|name| {
        let mut client = serve.client();
        client.begin(&json!(7), &format!("{name}__hang"), json!({}));
        (name, client)
    });
    let mut pipe = Pipe::open(&home);
    let piped = pipe.begin_call("two__hang", json!({}));
    until("all three are under way", || {
        serve.server("one")["inFlight"] == 1 && serve.server("two")["inFlight"] == 2
    });
    serve.signal(Signal::INT);
    let piped = pipe.finish(&piped);
    let mut answers = vec![("two", piped["error"].clone())];
    answers.extend(
        calls
            .each_mut()
            .map(|(name, client)| (*name, client.finish().unwrap_err())),
    );
    for (name, error) in answers {
        let message = error["message"].as_str().unwrap_or_default();
        assert!(message.contains(&format!("'{name}'")), "{error}");
    }
    let people = home.people();
    let stubborn = people
        .iter()
        .find(|one| one.words.ends_with("--ignore-term"));
    assert!(stubborn.is_some(), "it has left before: {people:?}");
    serve.signal(Signal::INT);
    assert!(serve.ended().success());
}

#[test]
fn stubborn_server_gets_its_full_time() {
    let home = Home::new(json!({
        "deaf": eager(with(
            server(&["--ignore-eof", "--ignore-term"]),
            json!({ "closeTimeoutMs": 300, "termTimeoutMs": 400 }),
        )),
    }));
    let mut serve = home.serve();
    serve.until_all_ready();
    let began = Instant::now();
    serve.signal(Signal::TERM);
    assert!(serve.ended().success());
    let took = began.elapsed();
    assert!(
        took >= Duration::from_millis(700),
        "it was given {took:?} only"
    );
    home.assert_nobody("stopped");
}

#[test]
fn total_timeout_bounds_the_servers_timeouts() {
    let home = Home::new(json!({}));
    home.set_config(json!({
        "shutdown": { "totalTimeoutMs": 500 },
        "mcpServers": { "deaf": unhurried(&["--ignore-eof", "--ignore-term"]) },
    }));
    let mut serve = home.serve();
    serve.until_all_ready();
    serve.signal(Signal::TERM);
    assert!(serve.ended().success());
    home.assert_nobody("stopped");
}

#[test]
fn status_shows_the_shutdown() {
    let home = patient(json!({ "deaf": unhurried(&["--ignore-eof", "--ignore-term"]) }));
    let mut serve = home.serve();
    serve.until_all_ready();
    serve.signal(Signal::TERM);
    until("that it stops", || {
        let status = home.run(&["status"]);
        let said = String::from_utf8_lossy(&status.stdout).into_owned();
        said.contains("stopping")
    });
    serve.signal(Signal::INT);
    assert!(serve.ended().success());
}

#[test]
fn stopping_twice_is_stopping_once() {
    let home = Home::new(json!({
        "deaf": eager(with(
            server(&["--ignore-eof", "--ignore-term"]),
            json!({ "closeTimeoutMs": 300, "termTimeoutMs": 300 }),
        )),
    }));
    let mut serve = home.serve();
    serve.until_all_ready();
    let began = Instant::now();
    serve.signal(Signal::TERM);
    until("it is stopping", || stopping(&home));
    serve.signal(Signal::TERM);
    assert!(serve.ended().success());
    // Unlike a second SIGINT, a second SIGTERM does not shorten the shutdown.
    assert!(began.elapsed() >= Duration::from_millis(600));
    home.assert_nobody("stopped");
}

#[test]
fn simultaneous_signals_stop_the_gateway() {
    let home = Home::new(json!({ "a": eager(server(&[])) }));
    for _ in 0..8 {
        let mut serve = home.serve();
        serve.until_all_ready();
        serve.signal(Signal::TERM);
        serve.signal(Signal::INT);
        assert!(serve.ended().success());
        home.assert_nobody("stopped");
    }
}

#[test]
fn second_sigint_skips_the_waits() {
    let home = patient(json!({ "deaf": unhurried(&["--ignore-eof", "--ignore-term"]) }));
    let mut serve = home.serve();
    serve.until_all_ready();
    serve.signal(Signal::INT);
    until("it is stopping", || stopping(&home));
    serve.signal(Signal::INT);
    assert!(serve.ended().success());
    home.assert_nobody("stopped");
}

/// Returns `Some` once the gateway has logged that it is stopping.
fn stopping(home: &Home) -> Option<()> {
    let said = home.lines("stderr");
    said.iter()
        .any(|line| line.ends_with("Stopping."))
        .then_some(())
}

#[test]
fn api_stops_the_gateway_even_when_called_twice() {
    let home = Home::new(json!({
        "good": eager(server(&[])),
        "deaf": eager(with(
            server(&["--ignore-eof", "--ignore-term"]),
            json!({ "closeTimeoutMs": 200, "termTimeoutMs": 200 }),
        )),
    }));
    let mut serve = home.serve();
    serve.until_all_ready();
    let mut both = [serve.http(), serve.http()];
    for http in &mut both {
        http.send("POST", "/api/v1/shutdown", &[], b"").unwrap();
    }
    // The second request may be refused; otherwise it gets the same response.
    let answers: Vec<_> = both
        .iter_mut()
        .filter_map(|http| http.answer().ok())
        .map(|answer| answer.status)
        .collect();
    assert!(matches!(answers[..], [202] | [202, 202]), "{answers:?}");
    assert!(serve.ended().success());
    home.assert_nobody("stopped");
}

#[test]
fn stop_command_returns_when_all_are_gone() {
    let home = Home::new(json!({
        "good": eager(server(&[])),
        "deaf": eager(with(
            server(&["--ignore-eof", "--ignore-term", "--child", "double"]),
            json!({ "closeTimeoutMs": 200, "termTimeoutMs": 200 }),
        )),
    }));
    let mut serve = home.serve();
    serve.until_all_ready();
    let stopped = home.run(&["stop"]);
    home.assert_nobody("`switchboard stop` has returned");
    assert!(stopped.status.success(), "{stopped:?}");
    assert!(serve.ended().success());
    let nobody = home.run(&["stop"]);
    assert_eq!(nobody.status.code(), Some(3), "{nobody:?}");
}

#[test]
fn signal_during_startup_is_handled() {
    let home = Home::new(json!({ "a": eager(server(&[])) }));
    for signal in [Signal::TERM, Signal::INT].repeat(5) {
        let mut serve = home.serve();
        serve.signal(signal);
        let status = serve.ended();
        assert!(status.success(), "{status}");
        home.assert_nobody("stopped");
    }
}

#[test]
fn starting_servers_do_not_delay_shutdown() {
    // The number of servers that start at a time on any machine.
    let mute = || {
        with(
            unhurried(&["--mute"]),
            json!({ "initTimeoutMs": FOREVER_MS }),
        )
    };
    let servers = (0..2).map(|n| (format!("s{n}"), mute()));
    let home = patient(servers.collect());
    let mut serve = home.serve();
    for n in 0..2 {
        serve.until_state(&format!("s{n}"), "starting");
    }
    let mut waiting = Client::try_open_at(serve.http(), "/mcp/s/s0").unwrap();
    waiting.begin(&json!(1), "echo", json!({}));
    until("they are there", || {
        (home.people().len() == 4).then_some(())
    });
    serve.signal(Signal::TERM);
    // A caller that waits for one of them gets an error with its name, if the call has arrived by now.
    if let Ok(answer) = waiting.http.answer() {
        let answer = answer.json();
        let message = answer["error"]["message"].as_str().unwrap_or_default();
        assert!(message.contains("'s0'"), "{answer}");
    }
    assert!(serve.ended().success());
    home.assert_nobody("stopped");
}

#[test]
fn second_gateway_for_a_home_is_refused() {
    let home = Home::new(json!({ "a": server(&[]) }));
    let serve = home.serve();
    serve.until_known("a");
    let second = home.run(&["serve"]);
    assert_eq!(second.status.code(), Some(1), "{second:?}");
    let said = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(said.contains(&serve.pid().to_string()), "{said}");
    let mut client = serve.client();
    let answer = client.call("a__echo", json!({ "text": "x" }));
    assert_eq!(answer, Ok("x".to_owned()));
    serve.stop();
}

#[test]
fn joined_call_is_answered_during_shutdown() {
    let home = Home::new(json!({ "a": server(&[]) }));
    for _ in 0..5 {
        let mut serve = home.serve();
        serve.until_known("a");
        let mut pipe = Pipe::open(&home);
        let id = pipe.begin_call("a__hang", json!({}));
        until("it is under way", || {
            (serve.server("a")["inFlight"] == 1).then_some(())
        });
        serve.signal(Signal::TERM);
        let answer = pipe.finish(&id);
        let message = answer["error"]["message"].as_str().unwrap_or_default();
        assert!(message.contains("'a'"), "{answer}");
        assert!(serve.ended().success());
    }
}
