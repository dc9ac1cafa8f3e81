//! First contact with a server: its tools are listed for the first client, and it is started for that only
//! once.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    process::{Child, ChildStderr, Stdio},
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use switchboard_test_support::{
    FOREVER_MS, Home, fixture, pipe::Pipe, processes, server, until, with,
};

/// A server that does not start before the test opens its gate.
struct Gated<'a> {
    home: &'a Home,
    gate: String,
}

impl<'a> Gated<'a> {
    fn new(home: &'a Home) -> Self {
        let gate = home.text("gate");
        Self { home, gate }
    }

    /// Its command line.
    fn words(&self) -> [&str; 5] {
        let script =
            "echo >> \"$0.knocks\"; while [ ! -e \"$0\" ]; do sleep 0.02; done; exec \"$1\"";
        ["sh", "-c", script, &self.gate, fixture("mcp_fixture")]
    }

    fn entry(&self) -> Value {
        let [command, args @ ..] = self.words();
        json!({ "command": command, "args": args })
    }

    /// The number of starts.
    fn starts(&self) -> usize {
        self.home.lines("gate.knocks").len()
    }

    fn until_started(&self) {
        until("the server is started", || {
            (self.starts() > 0).then_some(())
        });
    }

    fn open(&self) {
        fs::write(&self.gate, "").unwrap();
    }
}

fn tools(pipe: &mut Pipe) -> Vec<String> {
    let answer = pipe.request("tools/list", json!({}));
    let tools = answer["result"]["tools"].as_array().unwrap();
    let names = tools.iter().map(|tool| tool["name"].as_str().unwrap());
    names.map(str::to_owned).collect()
}

/// The standard error of `add`.
fn add(home: &Home, args: &[&str]) -> String {
    let words = [&["add"], args].concat();
    let done = home.run(&words);
    let said = String::from_utf8(done.stderr).unwrap();
    assert!(done.status.success(), "{said}");
    // The duration depends on the machine.
    let lines = said.lines().map(|line| match line.split_once(" tools (") {
        Some((before, _)) => format!("{before} tools\n"),
        None => format!("{line}\n"),
    });
    lines.collect()
}

/// Starts `add` without waiting for it.
fn begin_add(home: &Home, args: &[&str]) -> Child {
    let words = [&["add"], args].concat();
    let mut command = home.command(&words);
    command.stdin(Stdio::null()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

fn is_in_file(home: &Home, name: &str) -> bool {
    let text = fs::read_to_string(home.path("switchboard.json")).unwrap();
    let config: Value = serde_json::from_str(&text).unwrap();
    config["mcpServers"][name].is_object()
}

#[test]
fn add_lists_tools_with_and_without_a_gateway() {
    let home = Home::new(json!({}));
    let said = add(&home, &["a", "--", fixture("mcp_fixture"), "--tools", "2"]);
    assert_eq!(said, "added `a`\n`a` is ready: 12 tools\n");
    home.assert_nobody("added");
    let mut pipe = Pipe::open(&home);
    assert!(tools(&mut pipe).contains(&"a__t1".to_owned()));
    assert_eq!(home.people(), [], "it is known already");
    pipe.leave();
    assert!(pipe.ended().success());

    let serve = home.serve();
    let said = add(&home, &["b", "--", fixture("mcp_fixture")]);
    assert_eq!(said, "added `b`\n`b` is ready: 10 tools\n");
    assert!(serve.client().tools().contains(&"b__echo".to_owned()));
    serve.stop();
}

#[test]
fn add_reports_failure_and_keeps_the_entry() {
    let home = Home::new(json!({}));
    let fails = "echo 'Error: API_KEY is missing' >&2; echo '}' >&2; exit 1";
    let done = home.run(&["add", "a", "--", "sh", "-c", fails]);
    let said = String::from_utf8(done.stderr).unwrap();
    assert_eq!(done.status.code(), Some(1), "{said}");
    assert!(said.contains("error: server `a` did not start: "), "{said}");
    assert!(
        said.contains("its last message: Error: API_KEY is missing\n"),
        "{said}"
    );
    assert!(is_in_file(&home, "a"));
    home.assert_nobody("added");
}

#[test]
fn add_starts_nothing_with_no_wait_or_disabled() {
    let home = Home::new(json!({}));
    let starts = home.text("starts");
    for (name, option) in [("a", "--no-wait"), ("b", "--disabled")] {
        add(
            &home,
            &[
                name,
                option,
                "--",
                fixture("mcp_fixture"),
                "--starts",
                &starts,
            ],
        );
        assert!(is_in_file(&home, name));
    }
    assert_eq!(home.lines("starts"), Vec::<String>::new());
    assert!(!home.path("run/lock").exists(), "no gateway was needed");
}

#[test]
fn client_is_served_while_add_waits() {
    let home = Home::new(json!({}));
    let gated = Gated::new(&home);
    let mut adding = begin_add(&home, &[&["a", "--"][..], &gated.words()].concat());
    gated.until_started();
    let mut pipe = Pipe::open(&home);
    assert!(!tools(&mut pipe).contains(&"a__echo".to_owned()));
    assert!(adding.try_wait().unwrap().is_none());
    gated.open();
    assert!(adding.wait().unwrap().success());
    assert!(tools(&mut pipe).contains(&"a__echo".to_owned()));
    let answer = pipe.call("a__echo", json!({ "text": "x" }));
    assert_eq!(answer, Ok("x".to_owned()));
    assert_eq!(gated.starts(), 1);
    pipe.leave();
    assert!(pipe.ended().success());
    home.until_nobody("everybody has left");
}

/// Each starts while the gateway of the one before stops.
#[test]
fn overlapping_adds_list_all_servers() {
    let home = Home::new(json!({}));
    let names = ["a", "b", "c", "d"];
    let mut adding: Vec<(Child, BufReader<ChildStderr>)> = Vec::new();
    for name in names {
        let mut child = begin_add(
            &home,
            &[name, "--", fixture("mcp_fixture"), "--init-delay", "300"],
        );
        let mut said = BufReader::new(child.stderr.take().unwrap());
        let mut lines = String::new();
        while !lines.contains(&format!("`{name}` is ready: 10 tools (")) {
            let read = said.read_line(&mut lines).unwrap();
            assert!(read > 0 && !lines.contains("warning"), "{lines}");
        }
        adding.push((child, said));
    }
    for (mut child, _said) in adding {
        assert!(child.wait().unwrap().success());
    }
    home.until_nobody("all are added");
}

#[test]
fn interrupted_add_keeps_the_entry_and_the_start() {
    let home = Home::new(json!({}));
    let gated = Gated::new(&home);
    let mut adding = begin_add(&home, &[&["a", "--"][..], &gated.words()].concat());
    gated.until_started();
    let pid = i32::try_from(adding.id()).unwrap();
    processes::signal(pid, rustix::process::Signal::INT);
    assert!(!adding.wait().unwrap().success());
    assert!(is_in_file(&home, "a"));
    gated.open();
    until("it is learnt all the same", || {
        home.path("catalog/a.json").exists().then_some(())
    });
    home.until_nobody("learnt");
    assert_eq!(gated.starts(), 1);
}

#[test]
fn import_starts_and_reports_every_server() {
    let home = Home::new(json!({}));
    let file = home.path("other.json");
    let servers = json!({ "mcpServers": {
        "a": server(&["--tools", "1"]),
        "b": { "command": "no-such-program-anywhere" },
        "c": with(server(&[]), json!({ "disabled": true })),
    }});
    fs::write(&file, servers.to_string()).unwrap();
    let done = home.run(&["import", file.to_str().unwrap(), "--yes"]);
    let said = String::from_utf8(done.stderr).unwrap();
    assert_eq!(done.status.code(), Some(1), "{said}");
    assert!(said.contains("`a` is ready: 11 tools ("), "{said}");
    assert!(said.contains("error: server `b` did not start: "), "{said}");
    for about in ["`c` is ready", "`c` did not start"] {
        assert!(!said.contains(about), "{said}");
    }
    let mut pipe = Pipe::open(&home);
    assert!(tools(&mut pipe).contains(&"a__t0".to_owned()));
}

#[test]
fn first_list_includes_a_fast_new_server() {
    let home = Home::new(json!({ "a": server(&[]), "b": server(&[]) }));
    let mut pipe = Pipe::open(&home);
    let listed = tools(&mut pipe);
    for name in ["a__echo", "b__echo"] {
        assert!(listed.contains(&name.to_owned()), "{listed:?}");
    }
}

#[test]
fn mute_server_delays_only_the_first_list() {
    let mute = with(server(&["--mute"]), json!({ "closeTimeoutMs": 100 }));
    let home = Home::new(json!({ "mute": mute }));
    let list = || {
        let mut pipe = Pipe::open(&home);
        let began = Instant::now();
        tools(&mut pipe);
        let took = began.elapsed();
        pipe.signal(rustix::process::Signal::TERM);
        pipe.ended();
        took
    };
    let delay = Duration::from_secs(1);
    assert!(list() >= delay);
    // A busy machine may delay one of them as much, but not all.
    until("a list does not wait", || list() < delay);
}

#[test]
fn gateway_finishes_listing_after_the_last_client() {
    let home = Home::new(json!({}));
    let gated = Gated::new(&home);
    home.set_servers(json!({ "a": gated.entry() }));
    let mut pipe = Pipe::open(&home);
    assert!(!tools(&mut pipe).contains(&"a__echo".to_owned()));
    pipe.leave();
    gated.open();
    assert!(pipe.ended().success());
    home.assert_nobody("left");
    assert!(home.path("catalog/a.json").exists(), "it was learnt first");
    let mut pipe = Pipe::open(&home);
    assert!(tools(&mut pipe).contains(&"a__echo".to_owned()));
    assert_eq!(gated.starts(), 1);
}

#[test]
fn next_client_keeps_the_gateway_listing() {
    let home = Home::new(json!({}));
    let gated = Gated::new(&home);
    home.set_servers(json!({ "a": gated.entry() }));
    let mut first = Pipe::open(&home);
    tools(&mut first);
    first.leave();
    let mut next = Pipe::open(&home);
    gated.open();
    until("it is listed", || {
        tools(&mut next)
            .contains(&"a__echo".to_owned())
            .then_some(())
    });
    assert_eq!(gated.starts(), 1, "it was started once");
    next.leave();
    assert!(next.ended().success());
    assert!(first.ended().success());
}

#[test]
fn failed_server_does_not_delay_shutdown() {
    let mute = with(
        server(&["--mute"]),
        json!({ "initTimeoutMs": 500, "closeTimeoutMs": 100 }),
    );
    let home = Home::new(json!({ "mute": mute.clone() }));
    let mut pipe = Pipe::open(&home);
    pipe.leave();
    assert!(pipe.ended().success());
    // The same server, with a timeout longer than the test.
    let mute = with(mute, json!({ "initTimeoutMs": 600_000 }));
    home.set_servers(json!({ "mute": mute }));
    let mut pipe = Pipe::open(&home);
    pipe.leave();
    assert!(pipe.ended().success());
}

#[test]
fn brief_client_still_gets_new_servers_listed() {
    let names = ["a", "b", "c", "d", "e", "f", "g"];
    let slow = names.map(|name| (name.to_owned(), server(&["--init-delay", "300"])));
    let home = Home::new(slow.into_iter().collect());
    let mut pipe = Pipe::open(&home);
    pipe.leave();
    assert!(pipe.ended().success());
    home.assert_nobody("left");
    for name in names {
        let known = home.path(&format!("catalog/{name}.json"));
        assert!(known.exists(), "{name} was learnt first");
    }
}

/// Otherwise a few hanging servers would keep short-lived clients from ever listing the others.
#[test]
fn untried_servers_start_before_failed_ones() {
    let patience = |ms| json!({ "initTimeoutMs": ms, "closeTimeoutMs": 100 });
    let home = Home::new(json!({}));
    let starts = |name: &str| home.text(&format!("{name}.starts"));
    let mute = |name: &str, ms| with(server(&["--mute", "--starts", &starts(name)]), patience(ms));
    let cores = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
    let places = cores.max(2);
    let names: Vec<_> = (0..=places).map(|n| format!("a{n}")).collect();
    let many = |ms| names.iter().map(move |name| (name.clone(), mute(name, ms)));
    home.set_servers(many(300).collect());
    let mut pipe = Pipe::open(&home);
    pipe.leave();
    assert!(pipe.ended().success());
    for name in &names {
        fs::remove_file(starts(name)).unwrap();
    }
    let other = server(&["--init-delay", "300", "--starts", &starts("z")]);
    let other = ("z".to_owned(), other);
    home.set_servers(many(FOREVER_MS).chain([other]).collect());
    let mut pipe = Pipe::open(&home);
    pipe.leave();
    assert!(pipe.ended().success());
    assert!(home.path("catalog/z.json").exists(), "it was learnt");
    // The server was among the first to be started: fewer others than places were started before it.
    let started = |name: &str| fs::metadata(starts(name)).and_then(|file| file.modified());
    let own = started("z").unwrap();
    let before = names.iter().filter_map(|name| started(name).ok());
    let before = before.filter(|other| *other < own).count();
    assert!(before < places, "{before} were started first");
}

#[test]
fn interrupted_listing_is_finished_after_the_next_client() {
    let home = Home::new(json!({}));
    let gated = Gated::new(&home);
    let entry = with(gated.entry(), json!({ "closeTimeoutMs": 100 }));
    home.set_servers(json!({ "a": entry }));
    let mut pipe = Pipe::open(&home);
    pipe.leave();
    gated.until_started();
    pipe.signal(rustix::process::Signal::TERM);
    pipe.ended();
    let mut pipe = Pipe::open(&home);
    pipe.leave();
    gated.open();
    assert!(pipe.ended().success());
    assert!(home.path("catalog/a.json").exists(), "it was learnt first");
}
