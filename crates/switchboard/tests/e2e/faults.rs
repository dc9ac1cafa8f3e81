//! Servers that crash, hang, flap or never respond, without effect on the others.

use std::{
    collections::HashSet,
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use switchboard_test_support::{
    FOREVER_MS, Home, Serve, eager, mcp::Client, pipe::Pipe, processes, server, until, with,
};

fn pid_of(client: &mut Client, server: &str) -> i32 {
    let pid = client.call(&format!("{server}__pid"), json!({})).unwrap();
    pid.parse().unwrap()
}

#[test]
fn killed_server_restarts_for_the_next_call() {
    let home = Home::new(json!({ "a": server(&[]) }));
    let serve = home.serve();
    serve.until_known("a");
    let mut client = serve.client();
    let pid = pid_of(&mut client, "a");
    processes::kill(pid);
    until("the gateway has noticed", || {
        (serve.state("a") != "ready").then_some(())
    });
    let answer = client.call("a__echo", json!({ "text": "still here" }));
    assert_eq!(answer, Ok("still here".to_owned()));
    assert_ne!(pid_of(&mut client, "a"), pid);
    serve.stop();
}

#[test]
fn undelivered_call_goes_to_the_restarted_server() {
    let name = |n: u32| format!("s{n}");
    let home = Home::new((0..8).map(|n| (name(n), eager(server(&[])))).collect());
    let serve = home.serve();
    let mut client = serve.client();
    for n in 0..8 {
        serve.until_known(&name(n));
        let pid = pid_of(&mut client, &name(n));
        processes::kill(pid);
        // From now on no process reads its input, even if the gateway has not noticed yet.
        until("it is dead", || (!processes::is_alive(pid)).then_some(()));
        let answer = client.call(
            &format!("{}__echo", name(n)),
            json!({ "text": "still here" }),
        );
        assert_eq!(answer, Ok("still here".to_owned()));
    }
    serve.stop();
}

#[test]
fn response_over_the_limit_is_an_error() {
    let mib = 1024 * 1024;
    let whole = json!({ "requestTimeoutMs": FOREVER_MS, "maxResultBytes": 64 * mib, "maxResultTokens": 64 * mib });
    let home = Home::new(json!({ "a": with(server(&[]), whole) }));
    let serve = home.serve();
    serve.until_known("a");
    let mut client = serve.client();
    let whole = client.call("a__big", json!({ "bytes": 15 * mib })).unwrap();
    assert_eq!(whole.len(), 15 * mib);
    let error = client
        .call("a__big", json!({ "bytes": 17 * mib }))
        .unwrap_err();
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("`a`"), "{error}");
    let answer = client.call("a__echo", json!({ "text": "x" }));
    assert_eq!(answer, Ok("x".to_owned()));
    serve.stop();
}

#[test]
fn mute_server_delays_no_other() {
    let mute = || {
        with(
            server(&["--mute"]),
            json!({ "initTimeoutMs": FOREVER_MS, "closeTimeoutMs": 200 }),
        )
    };
    let home = Home::new(json!({ "mute": eager(mute()), "good": server(&[]) }));
    let serve = home.serve();
    let mut client = serve.client();
    client.tools();
    serve.until_known("good");
    serve.until_state("mute", "starting");
    let works = |client: &mut Client| {
        assert!(client.tools().contains(&"good__echo".to_owned()));
        let answer = client.call("good__echo", json!({ "text": "x" }));
        assert_eq!(answer, Ok("x".to_owned()));
    };
    works(&mut client);

    home.set_servers(json!({
        "mute": eager(mute()), "late": eager(mute()), "good": server(&[]),
    }));
    until("the new one is being started", || {
        serve.state("late") == "starting"
    });
    works(&mut client);
    serve.stop();
}

#[test]
fn hanging_call_times_out_and_is_cancelled() {
    let home = Home::new(json!({}));
    let seen = home.text("seen");
    home.set_servers(json!({
        "a": with(server(&["--seen", &seen]), json!({ "requestTimeoutMs": 700 })),
    }));
    let serve = home.serve();
    serve.until_known("a");
    let mut client = serve.client();
    client.call("a__pid", json!({})).unwrap();
    let began = Instant::now();
    let error = client.call("a__hang", json!({})).unwrap_err();
    let took = began.elapsed();
    assert_eq!(error["code"], -32005, "{error}");
    assert!(
        error["message"].as_str().unwrap().contains("`a`"),
        "{error}"
    );
    assert!(took >= Duration::from_millis(700), "it took {took:?}");
    withdrawn(&home);
    serve.stop();
}

/// Waits until the server is notified that the hanging call was cancelled.
fn withdrawn(home: &Home) {
    until("the server is told", || {
        let lines = home.lines("seen");
        let lines: Vec<Value> = lines
            .iter()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect();
        let hangs = &lines.iter().find(|line| line.get("hangs").is_some())?["hangs"];
        lines
            .iter()
            .any(|line| line.get("requestId") == Some(hangs))
            .then_some(())
    });
}

fn until_it_hangs(home: &Home) {
    until("the call is there", || {
        (!home.lines("seen").is_empty()).then_some(())
    });
}

#[test]
fn cancellation_over_http_reaches_the_server() {
    let home = Home::new(json!({}));
    let seen = home.text("seen");
    home.set_servers(json!({ "a": server(&["--seen", &seen]) }));
    let serve = home.serve();
    serve.until_known("a");
    let mut client = serve.client();
    client.begin(&json!("mine"), "a__hang", json!({}));
    until_it_hangs(&home);
    // The same ID of another client is another request.
    let mut other = serve.client();
    other.tell("notifications/cancelled", json!({ "requestId": "mine" }));
    assert_eq!(
        other.call("a__echo", json!({ "text": "x" })),
        Ok("x".to_owned())
    );
    assert_eq!(home.lines("seen").len(), 1);
    client.tell(
        "notifications/cancelled",
        json!({ "requestId": "mine", "reason": "enough" }),
    );
    withdrawn(&home);
    assert!(home.lines("seen")[1].contains("enough"));
    let answer = client.http.answer().unwrap();
    assert_eq!((answer.status, answer.body.len()), (202, 0));
    assert_eq!(
        client.call("a__echo", json!({ "text": "y" })),
        Ok("y".to_owned())
    );
    serve.stop();
}

#[test]
fn cancellation_over_stdio_reaches_the_server() {
    let home = Home::new(json!({}));
    let seen = home.text("seen");
    home.set_servers(json!({ "a": server(&["--seen", &seen]) }));
    let serve = home.serve();
    serve.until_known("a");
    let mut pipe = Pipe::open(&home);
    let id = pipe.begin_call("a__hang", json!({}));
    until_it_hangs(&home);
    pipe.tell(
        "notifications/cancelled",
        json!({ "requestId": id, "reason": "enough" }),
    );
    withdrawn(&home);
    assert!(home.lines("seen")[1].contains("enough"));
    assert_eq!(
        pipe.call("a__echo", json!({ "text": "y" })),
        Ok("y".to_owned())
    );
    serve.stop();
}

#[test]
fn responses_reach_their_callers_despite_equal_ids() {
    const CLIENTS: usize = 32;
    const CALLS: usize = 15;
    let home = Home::new(json!({ "a": server(&[]), "b": server(&[]) }));
    let serve = home.serve();
    serve.until_known("a");
    serve.until_known("b");
    let answers: Vec<_> = thread::scope(|scope| {
        let crowd: Vec<_> = (0..CLIENTS)
            .map(|who| {
                let serve = &serve;
                scope.spawn(move || one_of_the_crowd(serve, who, CALLS))
            })
            .collect();
        crowd
            .into_iter()
            .flat_map(|one| one.join().unwrap())
            .collect()
    });
    assert_eq!(answers.len(), CLIENTS * CALLS);
    let distinct: HashSet<_> = answers.iter().collect();
    assert_eq!(distinct.len(), CLIENTS * CALLS);
    serve.stop();
}

/// Sends all its calls before it reads a response, with the same IDs as the other clients.
fn one_of_the_crowd(serve: &Serve<'_>, who: usize, calls: usize) -> Vec<String> {
    let client = serve.client();
    let mut lines: Vec<_> = (0..calls).map(|_| client.beside()).collect();
    let said = |n: usize| format!("client {who} call {n}");
    for (n, line) in lines.iter_mut().enumerate() {
        let tool = if (who + n).is_multiple_of(2) {
            "a__echo"
        } else {
            "b__echo"
        };
        // The last calls are answered first.
        let ms = 10 * (calls - n);
        line.begin(&json!(n), tool, json!({ "text": said(n), "ms": ms }));
    }
    let answers = lines.iter_mut().enumerate().map(|(n, line)| {
        let answer = line.http.answer().unwrap().json();
        assert_eq!(answer["id"], n, "{answer}");
        let text = answer["result"]["content"][0]["text"].as_str();
        assert_eq!(text, Some(&*said(n)), "{answer}");
        said(n)
    });
    answers.collect()
}

#[test]
fn crashed_server_fails_only_its_own_calls() {
    let home = Home::new(json!({ "a": server(&[]), "b": server(&[]) }));
    let serve = home.serve();
    serve.until_known("a");
    serve.until_known("b");
    let mut hanging: Vec<_> = (0..3).map(|_| serve.client()).collect();
    for client in &mut hanging {
        client.begin(&json!(1), "a__hang", json!({}));
    }
    let mut other = serve.client();
    other.begin(
        &json!(1),
        "b__echo",
        json!({ "text": "unmoved", "ms": 1_000 }),
    );
    until("all are under way", || {
        let all = serve.server("a")["inFlight"] == 3 && serve.server("b")["inFlight"] == 1;
        all.then_some(())
    });
    let mut client = serve.client();
    let error = client.call("a__die", json!({})).unwrap_err();
    assert!(
        error["message"].as_str().unwrap().contains("`a`"),
        "{error}"
    );
    for client in &mut hanging {
        let error = client.finish().unwrap_err();
        assert_eq!(error["code"], -32004, "{error}");
        assert!(
            error["message"].as_str().unwrap().contains("`a`"),
            "{error}"
        );
    }
    assert_eq!(other.finish(), Ok("unmoved".to_owned()));
    assert_eq!(
        client.call("a__echo", json!({ "text": "x" })),
        Ok("x".to_owned())
    );
    serve.stop();
}

#[test]
fn flapping_server_is_parked() {
    let home = Home::new(json!({}));
    let starts = home.text("starts");
    home.set_servers(json!({
        "flaps": eager(server(&["--fail-after", "0", "--starts", &starts])),
        "good": server(&[]),
    }));
    let serve = home.serve();
    until("it is parked", || {
        (serve.state("flaps") == "parked").then_some(())
    });
    let tried = home.lines("starts").len();
    assert!((2..=6).contains(&tried), "it was started {tried} times");
    let health = serve.server("flaps");
    for member in ["reason", "action", "nextTry"] {
        assert!(health[member].is_string(), "{health}");
    }
    // The server never lived long enough to list its tools, so it is called at its own address.
    let mut direct = Client::try_open_at(serve.http(), "/mcp/s/flaps").unwrap();
    for _ in 0..20 {
        let error = direct.call("echo", json!({ "text": "x" })).unwrap_err();
        assert_eq!(error["code"], -32003, "{error}");
        assert_eq!(error["data"]["part"], "flaps", "{error}");
        assert!(
            error["data"]["retryAfterMs"].as_u64() > Some(60_000),
            "{error}"
        );
    }
    assert_eq!(home.lines("starts").len(), tried, "it was tried again");
    let text = serve
        .client()
        .call("switchboard__get_status", json!({}))
        .unwrap();
    let status: Value = serde_json::from_str(&text).unwrap();
    let flaps = status["servers"]
        .as_array()
        .unwrap()
        .iter()
        .find(|server| server["name"] == "flaps");
    assert_eq!(flaps.unwrap()["state"], "parked");
    serve.stop();
}

#[test]
fn ended_session_cancels_its_calls() {
    let home = Home::new(json!({}));
    let seen = home.text("seen");
    home.set_servers(json!({ "a": server(&["--seen", &seen]) }));
    let serve = home.serve();
    serve.until_known("a");
    let mut client = serve.client();
    client.begin(&json!(1), "a__hang", json!({}));
    until_it_hangs(&home);
    let headers = [("Mcp-Session-Id", &*client.session)];
    let ended = serve.http().ask("DELETE", "/mcp", &headers, b"");
    assert_eq!(ended.status, 204);
    withdrawn(&home);
    serve.stop();
}

#[test]
fn disconnected_client_cancels_its_calls() {
    let home = Home::new(json!({}));
    let seen = home.text("seen");
    home.set_servers(json!({ "a": server(&["--seen", &seen]) }));
    let serve = home.serve();
    serve.until_known("a");
    let mut pipe = Pipe::open(&home);
    pipe.begin_call("a__hang", json!({}));
    until_it_hangs(&home);
    pipe.leave();
    // Responses may still arrive for a while; this one does not.
    assert!(pipe.ended().success());
    withdrawn(&home);
    serve.stop();
}

#[test]
fn garbage_on_standard_output_is_harmless() {
    let noisy = "echo 'Welcome!'; echo '{'; echo '[]'; head -c 3000000 /dev/zero | tr '\\0' x >&2; echo >&2; exec \"$0\"";
    let home = Home::new(json!({
        "noisy": { "command": "sh", "args": ["-c", noisy, switchboard_test_support::fixture("mcp_fixture")] },
    }));
    let serve = home.serve();
    serve.until_known("noisy");
    let mut client = serve.client();
    let answer = client.call("noisy__echo", json!({ "text": "x" }));
    assert_eq!(answer, Ok("x".to_owned()));
    let log = std::fs::metadata(home.path("logs/noisy.log")).unwrap();
    assert!(log.len() < 100_000, "a line of 3 MB made it into the log");
    serve.stop();
}
