//! With a running gateway: the life cycle of a server, without leftovers.

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpListener,
    process::Stdio,
    sync::mpsc,
    thread,
};

use serde_json::Value;
use switchboard_test_support::{PATIENCE, processes::is_alive, until};

use crate::support::{Gateway, Place, json};

fn state(place: &Place) -> Value {
    json(place, &["list", "--json"])["servers"][0]["state"].clone()
}

fn add_echo(place: &Place) {
    let echo = place.echo();
    let mut args = vec!["add", "echo", "--start", "eager", "--"];
    args.extend(echo.iter().map(String::as_str));
    place.check(&args, 0, "", "added `echo`\n");
    // The server is ready before its tools are listed.
    until("echo is known", || {
        let listed = json(place, &["list", "--json"]);
        let echo = &listed["servers"][0];
        echo["state"] == "ready" && echo["tools"] == 2
    });
}

/// The processes of the servers, from the gateway's records.
fn processes(place: &Place) -> Vec<i32> {
    let records = fs::read_dir(place.home().join("run/groups")).unwrap();
    records
        .flat_map(|entry| {
            let text = fs::read_to_string(entry.unwrap().path()).unwrap();
            let record: Value = serde_json::from_str(&text).unwrap();
            ["guard", "leader"].map(|who| record[who]["pid"].as_i64().unwrap().try_into().unwrap())
        })
        .collect()
}

fn check_list(place: &Place) {
    let listed = json(place, &["list", "--json"]);
    let echo = &listed["servers"][0];
    assert_eq!(
        (&echo["name"], &echo["state"], &echo["tools"]),
        (&"echo".into(), &"ready".into(), &2.into()),
        "{listed}"
    );
    // The width of a column depends on the folder of this test.
    let table = place.run(&["list"]).out;
    let words: Vec<Vec<&str>> = table
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(
        words,
        [
            vec!["NAME", "STATE", "TOOLS", "KIND", "TARGET"],
            vec!["echo", "ready", "2", "command", "python3", "DIR/echo.py"],
        ]
    );
}

#[test]
fn the_life_of_a_server() {
    let place = Place::without_memory();
    let mut gateway = Gateway::start(&place, &[]);
    place.check(
        &["list"],
        0,
        "",
        "there are no servers\nhint: add one with `switchboard add`, or import those of your clients with `switchboard import`\n",
    );
    add_echo(&place);
    place.check(
        &["add", "echo", "--", "x"],
        1,
        "",
        "error: server `echo` already exists\nhint: remove it first, or choose another name\n",
    );
    check_list(&place);
    place.check(
        &["tools", "echo"],
        0,
        "TOOL       DESCRIPTION\necho:say   It will say.\necho:fail  It will fail.\n",
        "",
    );
    let tools = json(&place, &["tools", "echo", "--json"]);
    assert_eq!(tools["tools"][0]["definition"]["name"], "say");

    place.check(
        &["call", "echo:say", r#"{"n": 12345678901234567890}"#],
        0,
        "{\"n\": 12345678901234567890}\n",
        "",
    );
    let done = place.run_with_input(&["call", "echo:say", "-"], "{\"x\": 1}\n");
    assert_eq!((done.code, done.out.as_str()), (Some(0), "{\"x\": 1}\n"));
    place.check(
        &["call", "echo:fail"],
        1,
        "{}\n",
        "error: `echo:fail` reported an error\n",
    );
    let raw = json(&place, &["call", "echo:say", "--json"]);
    assert_eq!(raw["content"][0]["text"], "{}");
    let done = place.run(&["call", "echo:sya"]);
    assert_eq!(done.code, Some(1));
    assert_eq!(
        done.err,
        "error: there is no tool `echo:sya`\nhint: did you mean `echo:say`?\n"
    );

    let done = place.run(&["logs", "echo"]);
    assert!(
        done.out.contains("echo is here\n") && done.out.contains("called fail\n"),
        "{done:?}"
    );
    let last = place.run(&["logs", "echo", "-n", "1"]);
    assert_eq!(last.out.lines().count(), 1);

    place.check(&["disable", "echo"], 0, "", "disabled `echo`\n");
    place.check(&["disable", "echo"], 0, "", "`echo` is already disabled\n");
    let done = place.run(&["call", "echo:say"]);
    assert_eq!(done.code, Some(1));
    assert!(done.err.contains("`switchboard enable echo`"), "{done:?}");
    for (command, first) in [("enable", "enabled `echo`\n"), ("restart", "")] {
        let done = place.run(&[command, "echo"]);
        assert_eq!(done.code, Some(0));
        let learnt = format!("{first}`echo` is ready: 2 tools (");
        assert!(done.err.starts_with(&learnt), "{done:?}");
    }
    place.check(
        &["restart", "echo", "--no-wait"],
        0,
        "",
        "restarting `echo`\n",
    );
    until("echo is ready again", || state(&place) == "ready");

    let status = place.run(&["status"]);
    assert_eq!(status.code, Some(0));
    assert!(
        status
            .out
            .contains("calls         4 (1 failed, 0 in flight)\n"),
        "{status:?}"
    );
    assert!(status.out.contains("\necho  ready  2 "), "{status:?}");
    let status = json(&place, &["status", "--json"]);
    assert_eq!(status["pid"], gateway.child.id());

    place.check(&["remove", "echo"], 0, "", "removed `echo`\n");
    place.check(
        &["remove", "echo"],
        1,
        "",
        "error: there is no server `echo`\nhint: add one with `switchboard add`\n",
    );
    let done = place.run(&["stop"]);
    let pid = gateway.child.id();
    assert_eq!(
        (done.code, done.err),
        (Some(0), format!("stopped the gateway (process {pid})\n"))
    );
    assert_eq!(gateway.child.wait().unwrap().code(), Some(0));
    assert!(!Gateway::log(&place).contains("connection.transition"));
}

#[test]
fn semicolon_in_a_message_starts_no_hint() {
    let place = Place::without_memory();
    let _gateway = Gateway::start(&place, &[]);
    add_echo(&place);
    place.check(
        &["restart", "a; b"],
        1,
        "",
        "error: there is no server `a; b`\nhint: `switchboard list` shows the names\n",
    );
    place.check(
        &["call", "echo:say", r#"{"refuse": "no; not today"}"#],
        1,
        "",
        "error: the server responded with an error: no; not today\n",
    );
}

#[test]
fn stop_leaves_nothing_behind() {
    let place = Place::new();
    let mut gateway = Gateway::start(&place, &["--log-level", "debug"]);
    add_echo(&place);
    let processes = processes(&place);
    assert_eq!(processes.len(), 2);
    assert!(processes.iter().all(|&pid| is_alive(pid)));
    assert_eq!(place.run(&["stop"]).code, Some(0));
    // When `stop` has returned, all processes are gone.
    assert!(!processes.iter().any(|&pid| is_alive(pid)));
    assert!(!place.home().join("run/switchboard.sock").exists());
    assert_eq!(gateway.child.wait().unwrap().code(), Some(0));
    assert_eq!(place.run(&["stop"]).code, Some(3));
    assert!(Gateway::log(&place).contains("connection.transition"));
    // The same home can be used again at once.
    let _again = Gateway::start(&place, &[]);
    assert_eq!(place.run(&["status"]).code, Some(0));
}

#[test]
fn log_is_followed_until_server_is_removed() {
    let place = Place::new();
    let _gateway = Gateway::start(&place, &[]);
    add_echo(&place);
    let mut child = place
        .command(&["logs", "echo", "-f"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let stdout = BufReader::new(child.stdout.take().unwrap());
    let (sender, lines) = mpsc::channel();
    thread::spawn(move || {
        for line in stdout.lines() {
            sender.send(line.unwrap()).unwrap();
        }
    });
    let see = |what: &str| loop {
        match lines.recv_timeout(PATIENCE) {
            Ok(line) if line.ends_with(what) => return,
            Ok(_) => {}
            Err(error) => panic!("{what} is not seen: {error}"),
        }
    };
    see("echo is here");
    assert_eq!(place.run(&["call", "echo:say"]).code, Some(0));
    see("called say");
    assert_eq!(place.run(&["remove", "echo"]).code, Some(0));
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn clients_are_listed() {
    let place = Place::without_memory();
    let _gateway = Gateway::start(&place, &[]);
    place.check(&["clients"], 0, "", "there are no connected clients\n");
    let mut client = place
        .command(&["stdio", "--view", "direct"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let hello = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"probe","version":"1"}}}"#;
    let mut input = client.stdin.take().unwrap();
    writeln!(input, "{hello}").unwrap();
    until("it is listed", || {
        let done = place.run(&["clients"]);
        let row = done.out.lines().nth(1).unwrap_or_default();
        let words: Vec<_> = row.split_whitespace().collect();
        matches!(
            words[..],
            ["probe", _, "stdio", "direct", "0", "2025-11-25", ..]
        )
    });
    assert_eq!(json(&place, &["clients", "--json"])["others"], 0);
    drop(input);
    client.wait().unwrap();
    until("it has left", || {
        place.run(&["clients"]).err == "there are no connected clients\n"
    });
}

#[test]
fn status_shows_view_and_reason_of_clients() {
    let place = Place::without_memory();
    place.write_config(r#"{"profiles": {"work": {}}, "memory": {"enabled": false}}"#);
    let _gateway = Gateway::start(&place, &[]);
    let client = |args: &[&str], name: &str| {
        let mut client = place.command(args);
        let client = client.stdin(Stdio::piped()).stdout(Stdio::null());
        let mut client = client.spawn().unwrap();
        let hello = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"NAME","version":"1"}}}"#;
        let mut input = client.stdin.take().unwrap();
        writeln!(input, "{}", hello.replace("NAME", name)).unwrap();
        let row = format!("{name} ");
        until("it is listed", || {
            let clients = place.run(&["clients"]).out;
            clients.lines().any(|line| line.starts_with(&row))
        });
        (client, input)
    };
    let first = client(&["stdio", "--profile", "work"], "one");
    let mut all = vec![first, client(&["stdio", "--view", "direct"], "two")];
    let status = place.run(&["status"]);
    let rows = "\
\nCLIENT  VIEW            REASON
one     p/work: direct  the list of tools is short
two     direct          its address names this view
";
    assert!(status.out.ends_with(rows), "{status:?}");
    all.extend((3..=11).map(|number| client(&["stdio"], &format!("c{number}"))));
    let status = place.run(&["status"]);
    assert!(!status.out.contains("\nc11 "), "{status:?}");
    let more = "and 1 more; `switchboard clients` lists them";
    assert!(status.err.contains(more), "{status:?}");
    for (mut client, input) in all {
        drop(input);
        client.wait().unwrap();
    }
}

#[test]
fn failed_start_is_explained_by_every_command() {
    let place = Place::without_memory();
    let _gateway = Gateway::start(&place, &[]);
    let add = ["add", "bad", "--start", "eager", "--", "nonesuch-program"];
    place.check(&add, 0, "", "added `bad`\n");
    until("bad is parked", || state(&place) == "parked");
    let done = place.run(&["restart", "bad"]);
    assert_eq!(done.code, Some(1), "{done:?}");
    let reason = "error: server `bad` did not start: cannot run `nonesuch-program`: command not found\nhint: install it, or check the spelling and PATH, then run `switchboard restart bad`\n";
    assert!(done.err.starts_with(reason), "{done:?}");
    let done = place.run(&["list"]);
    assert!(
        done.out.contains(
            "bad   parked  -      command  nonesuch-program\n    cannot run `nonesuch-program`: "
        ),
        "{done:?}"
    );
    let done = place.run(&["tools", "bad"]);
    assert_eq!((done.code, done.out.as_str()), (Some(0), ""));
    assert!(
        done.err
            .contains("warning: the tools of `bad` are not known yet: the server is parked: "),
        "{done:?}"
    );
    let done = place.run(&["doctor"]);
    assert_eq!(done.code, Some(1));
    // One cause is reported as one problem.
    assert_eq!(done.out.matches("server:bad").count(), 1, "{done:?}");
    assert!(
        done.out
            .contains("problem  server:bad: the program `nonesuch-program` is not in PATH\n"),
        "{done:?}"
    );
    assert!(
        done.out.contains("ok       gateway: running as process "),
        "{done:?}"
    );
}

#[test]
fn running_gateway_applies_an_import() {
    let place = Place::without_memory();
    let _gateway = Gateway::start(&place, &[]);
    let file = place.write(
        "other.json",
        r#"{"mcpServers": {"a": {"command": "true", "disabled": true}}}"#,
    );
    let done = place.run(&["import", file.to_str().unwrap(), "--yes"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert_eq!(state(&place), "disabled");
    let done = place.run(&["import", "--undo"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert_eq!(
        json(&place, &["list", "--json"])["servers"],
        serde_json::json!([])
    );
    let other = place.write("elsewhere.json", "{}");
    let done = place.run(&[
        "import",
        file.to_str().unwrap(),
        "--yes",
        "--config",
        other.to_str().unwrap(),
    ]);
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(
        done.err
            .contains("hint: use --config DIR/home/switchboard.json"),
        "{done:?}"
    );
}

/// The URL of a server that responds to every request with this status and text.
pub(crate) fn closed_server(status: &'static str, text: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = [0; 4096];
            // The request does not matter.
            let _ = stream.read(&mut request);
            let length = text.len();
            let refused = format!(
                "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{text}"
            );
            let _ = stream.write_all(refused.as_bytes());
        }
    });
    format!("http://{address}/mcp")
}

#[test]
fn refused_token_is_reported_with_its_renewal() {
    let place = Place::new();
    let _gateway = Gateway::start(&place, &[]);
    place.write_secret("key", "old");
    let url = closed_server("401 Unauthorized", "");
    let header = "Authorization=Bearer ${secret:key}";
    let add = ["add", "far", &url, "--start", "eager", "--header", header];
    place.check(&add, 0, "", "added `far`\n");
    until("far is parked", || state(&place) == "parked");
    let done = place.run(&["doctor"]);
    assert_eq!(done.code, Some(1));
    let fix = "hint: renew the token, which the server refused: store it with `switchboard secret set key`, then run `switchboard restart far`\n";
    assert!(done.out.contains(fix), "{done:?}");
}

#[test]
fn refusal_without_a_challenge_is_not_about_credentials() {
    let place = Place::without_memory();
    let _gateway = Gateway::start(&place, &[]);
    let says = "Access is only allowed at localhost:8931";
    let url = closed_server("403 Forbidden", says);
    let add = ["add", "near", &url, "--start", "eager"];
    place.check(&add, 0, "", "added `near`\n");
    until("near is parked", || state(&place) == "parked");
    let done = place.run(&["doctor"]);
    assert_eq!(done.code, Some(1));
    for said in [
        "the server refused the connection: ",
        "HTTP 403 Forbidden",
        "use `localhost` instead of `127.0.0.1` in its `url`",
        says,
    ] {
        assert!(done.out.contains(said), "{done:?}");
    }
    let (_, about) = done.out.split_once("server:near").unwrap();
    for advice in ["credentials", "token"] {
        assert!(!about.contains(advice), "{done:?}");
    }
}

#[test]
fn doctor_reports_a_retrying_server() {
    let place = Place::without_memory();
    let _gateway = Gateway::start(&place, &[]);
    let been = place.home().join("been");
    let been = been.to_str().unwrap();
    // One attempt is two starts: a server may exit because it was addressed in the newest revision.
    let script = "if [ -e \"$0.again\" ]; then exec sleep 60; fi; if [ -e \"$0\" ]; then touch \"$0.again\"; fi; \
        touch \"$0\"; echo 'Error: broken' >&2; exit 1";
    let add = [
        "add", "bad", "--start", "eager", "--", "sh", "-c", script, been,
    ];
    place.check(&add, 0, "", "added `bad`\n");
    until("it is tried again", || {
        let listed = json(&place, &["list", "--json"]);
        let bad = &listed["servers"][0];
        bad["state"] == "starting" && bad["reason"].is_string()
    });
    let done = place.run(&["doctor"]);
    let found = "warning  server:bad: starting: the last attempt failed: ";
    assert!(done.out.contains(found), "{done:?}");
    assert!(done.out.contains("Error: broken"), "{done:?}");
}

#[test]
fn server_output_does_not_choose_the_advice() {
    let place = Place::without_memory();
    let _gateway = Gateway::start(&place, &[]);
    let says = "echo 'HTTP 401 Unauthorized' >&2; exit 1";
    let add = ["add", "far", "--start", "eager", "--", "sh", "-c", says];
    place.check(&add, 0, "", "added `far`\n");
    until("far has failed", || {
        ["retrying", "parked"]
            .iter()
            .any(|failed| state(&place) == *failed)
    });
    let done = place.run(&["doctor"]);
    assert!(done.out.contains("HTTP 401 Unauthorized"), "{done:?}");
    for advice in ["store a token", "renew the token"] {
        assert!(!done.out.contains(advice), "{done:?}");
    }
}

#[test]
fn occupied_port_is_logged_by_stdio() {
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = other.local_addr().unwrap().to_string();
    let place = Place::new();
    place.write_config(&format!("{{ \"listen\": \"{taken}\" }}"));
    let log = place.write("stdio.err", "");
    let mut stdio = place
        .command(&["stdio"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(fs::File::create(&log).unwrap())
        .spawn()
        .unwrap();
    until("the port is named", || {
        fs::read_to_string(&log).unwrap().contains(&taken)
    });
    drop(stdio.stdin.take());
    assert!(stdio.wait().unwrap().success());
}
