//! The way down: without waiting when everybody cooperates, bounded when somebody does not.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};
use switchboard_test_support::{
    FOREVER_MS, Home, eager, mcp::Client, pipe::Pipe, server, until, with,
};

/// A home in which nothing but an answer ends a wait.
fn patient(servers: Value) -> Home {
    let home = Home::new(json!({}));
    let shutdown = json!({ "totalTimeoutMs": FOREVER_MS });
    home.set_config(json!({ "shutdown": shutdown, "mcpServers": servers }));
    home
}

/// A server that is given all the time there is to leave.
fn unhurried(args: &[&str]) -> Value {
    let times = json!({ "closeTimeoutMs": FOREVER_MS, "termTimeoutMs": FOREVER_MS });
    eager(with(server(args), times))
}

#[test]
fn twenty_servers_that_cooperate_are_not_waited_for() {
    let servers = (0..20).map(|n| (format!("s{n}"), unhurried(&[])));
    let home = patient(servers.collect());
    let mut serve = home.serve();
    serve.until_all_ready();
    serve.signal(Signal::TERM);
    assert!(serve.ended().success());
    home.assert_nobody("stopped");
}

/// A client that leaves while its gateway is still coming up: orders to stop overtake each other then.
#[test]
fn a_client_that_leaves_at_once_does_not_wait_for_servers_that_are_known() {
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

/// It has nothing to put in order, so it is not given all the time that one in use has.
#[test]
fn server_that_never_answered_is_soon_gone() {
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
fn calls_under_way_are_answered_before_their_servers_leave() {
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
fn a_stubborn_server_gets_its_time() {
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
fn the_total_bounds_what_the_servers_ask_for() {
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
fn its_owner_sees_it_stop() {
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
    // A second SIGTERM is no reason to hurry, as a second SIGINT is.
    assert!(began.elapsed() >= Duration::from_millis(600));
    home.assert_nobody("stopped");
}

#[test]
fn signals_that_come_together_stop_it_all_the_same() {
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
fn a_second_sigint_skips_to_the_end() {
    let home = patient(json!({ "deaf": unhurried(&["--ignore-eof", "--ignore-term"]) }));
    let mut serve = home.serve();
    serve.until_all_ready();
    serve.signal(Signal::INT);
    until("it is stopping", || stopping(&home));
    serve.signal(Signal::INT);
    assert!(serve.ended().success());
    home.assert_nobody("stopped");
}

/// Whether the gateway has begun to stop, by its own words.
fn stopping(home: &Home) -> Option<()> {
    let said = home.lines("stderr");
    said.iter()
        .any(|line| line.ends_with("Stopping."))
        .then_some(())
}

#[test]
fn the_api_stops_it_too_and_twice_does_no_harm() {
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
    // Whichever comes second may find the door closed; if it does not, it hears the same.
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
fn the_command_stops_it_and_returns_when_nobody_is_left() {
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
fn a_signal_in_the_first_moment_is_heard_too() {
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
fn servers_that_are_still_starting_do_not_hold_it_up() {
    // As many as are started at a time on any machine.
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
    // Whoever waits for one of them hears that it will not come, if it has been asked for by now.
    if let Ok(answer) = waiting.http.answer() {
        let answer = answer.json();
        let message = answer["error"]["message"].as_str().unwrap_or_default();
        assert!(message.contains("'s0'"), "{answer}");
    }
    assert!(serve.ended().success());
    home.assert_nobody("stopped");
}

#[test]
fn a_second_gateway_for_the_same_home_is_refused() {
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
fn a_call_under_way_over_a_joined_pipe_is_answered_even_when_all_is_over_at_once() {
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
