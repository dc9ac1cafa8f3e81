//! The first time that a server is seen: its tools are there for the first client, and it is met once.

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

/// A server that does not start before it is let.
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

    /// How often it was started.
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

/// What `add` says on standard error.
fn add(home: &Home, args: &[&str]) -> String {
    let words = [&["add"], args].concat();
    let done = home.run(&words);
    let said = String::from_utf8(done.stderr).unwrap();
    assert!(done.status.success(), "{said}");
    // How long it took depends on the machine.
    let lines = said
        .lines()
        .map(|line| match line.split_once(" tools in ") {
            Some((before, _)) => format!("{before} tools\n"),
            None => format!("{line}\n"),
        });
    lines.collect()
}

/// `add` under way.
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
fn add_learns_tools_with_and_without_a_gateway() {
    let home = Home::new(json!({}));
    let said = add(&home, &["a", "--", fixture("mcp_fixture"), "--tools", "2"]);
    assert_eq!(said, "added `a`\n`a`: 12 tools\n");
    home.assert_nobody("added");
    let mut pipe = Pipe::open(&home);
    assert!(tools(&mut pipe).contains(&"a__t1".to_owned()));
    assert_eq!(home.people(), [], "it is known already");
    pipe.leave();
    assert!(pipe.ended().success());

    let serve = home.serve();
    let said = add(&home, &["b", "--", fixture("mcp_fixture")]);
    assert_eq!(said, "added `b`\n`b`: 10 tools\n");
    assert!(serve.client().tools().contains(&"b__echo".to_owned()));
    serve.stop();
}

#[test]
fn add_says_why_tools_are_not_known_and_leaves_the_entry() {
    let home = Home::new(json!({}));
    let fails = "echo 'Error: API_KEY is missing' >&2; echo '}' >&2; exit 1";
    let done = home.run(&["add", "a", "--", "sh", "-c", fails]);
    let said = String::from_utf8(done.stderr).unwrap();
    assert_eq!(done.status.code(), Some(1), "{said}");
    assert!(said.contains("error: `a` does not start: "), "{said}");
    assert!(
        said.contains("it last said: Error: API_KEY is missing\n"),
        "{said}"
    );
    assert!(is_in_file(&home, "a"));
    home.assert_nobody("added");
}

#[test]
fn add_starts_nothing_if_told_so_or_switched_off() {
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
fn client_that_starts_while_add_learns_is_served() {
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

/// Each begins while the gateway of the one before leaves.
#[test]
fn adds_that_overlap_learn_all() {
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
        while !lines.contains(&format!("`{name}`: 10 tools in ")) {
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
fn interrupted_add_leaves_the_entry_and_what_it_began() {
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
fn import_learns_every_server_and_tells_of_each() {
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
    assert!(said.contains("`a`: 11 tools in "), "{said}");
    assert!(said.contains("error: `b` does not start: "), "{said}");
    assert!(!said.contains("`c`: "), "{said}");
    let mut pipe = Pipe::open(&home);
    assert!(tools(&mut pipe).contains(&"a__t0".to_owned()));
}

#[test]
fn first_list_has_a_pasted_server_that_starts_soon() {
    let home = Home::new(json!({ "a": server(&[]), "b": server(&[]) }));
    let mut pipe = Pipe::open(&home);
    let listed = tools(&mut pipe);
    for name in ["a__echo", "b__echo"] {
        assert!(listed.contains(&name.to_owned()), "{listed:?}");
    }
}

#[test]
fn server_that_does_not_come_delays_one_list_in_its_life() {
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
    // A busy machine may delay one of them by as much, but not all.
    until("a list does not wait", || list() < delay);
}

#[test]
fn last_client_leaves_what_is_being_learnt_to_its_end() {
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
fn next_client_takes_over_what_is_being_learnt() {
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
fn server_that_has_failed_keeps_nobody_waiting_at_the_end() {
    let mute = with(
        server(&["--mute"]),
        json!({ "initTimeoutMs": 500, "closeTimeoutMs": 100 }),
    );
    let home = Home::new(json!({ "mute": mute.clone() }));
    let mut pipe = Pipe::open(&home);
    pipe.leave();
    assert!(pipe.ended().success());
    // The same server, with more time than a test has.
    let mute = with(mute, json!({ "initTimeoutMs": 600_000 }));
    home.set_servers(json!({ "mute": mute }));
    let mut pipe = Pipe::open(&home);
    pipe.leave();
    assert!(pipe.ended().success());
}

#[test]
fn client_that_leaves_at_once_has_every_new_server_learnt() {
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

/// Else a few that hang would keep all others from being learnt by clients that do not stay.
#[test]
fn servers_that_were_never_tried_are_started_before_those_that_failed() {
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
    // It had one of the places from the beginning: so many of the others were not started before it.
    let started = |name: &str| fs::metadata(starts(name)).and_then(|file| file.modified());
    let own = started("z").unwrap();
    let before = names.iter().filter_map(|name| started(name).ok());
    let before = before.filter(|other| *other < own).count();
    assert!(before < places, "{before} were started first");
}

#[test]
fn server_that_was_cut_off_is_learnt_when_the_next_client_leaves() {
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
