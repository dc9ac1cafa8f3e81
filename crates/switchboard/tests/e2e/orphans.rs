//! No process is left behind, no matter what dies and how badly a server behaves.

use std::{collections::BTreeSet, fs};

use rustix::process::Signal;
use serde_json::{Value, json};
use switchboard_test_support::{
    FOREVER_MS, Home, Serve, Tools, eager, fixture,
    mcp::{Client, Outcome},
    pipe::Pipe,
    processes::{self, Person},
    server, tools, until, with,
};

/// One server of each kind that could stay behind.
fn the_lot(close_ms: u64, term_ms: u64) -> Value {
    let wrapped = |args: &str| json!({ "command": "sh", "args": ["-c", format!("'{}' {args}; true", fixture("mcp_fixture"))] });
    let stubborn = ["--ignore-eof", "--ignore-term"];
    let with_child = |child| server(&[&stubborn[..], &["--child", child]].concat());
    let servers = [
        ("good", server(&[])),
        ("deaf-to-eof", server(&["--ignore-eof"])),
        ("deaf", server(&stubborn)),
        ("wrapped", wrapped("")),
        ("wrapped-deaf", wrapped("--ignore-eof --ignore-term")),
        ("child", with_child("plain")),
        ("setsid", with_child("setsid")),
        ("double", with_child("double")),
        // The server itself exits at once, but its children do not.
        ("good-setsid", server(&["--child", "setsid"])),
        ("good-double", server(&["--child", "double"])),
    ];
    let ladder = json!({ "closeTimeoutMs": close_ms, "termTimeoutMs": term_ms });
    let entry =
        |(name, server): (&str, Value)| (name.to_owned(), eager(with(server, ladder.clone())));
    servers.into_iter().map(entry).collect()
}

/// The same servers, each with a process of its own for every client or project.
fn one_for_each(share: &str, close_ms: u64, term_ms: u64) -> Value {
    let Value::Object(servers) = the_lot(close_ms, term_ms) else {
        unreachable!("the servers are an object");
    };
    let own = json!({ "share": share, "start": "lazy", "trust": "always" });
    let entry = |(name, server)| (name, with(server, own.clone()));
    servers.into_iter().map(entry).collect()
}

/// Calls all of these servers, and returns the processes that answer.
fn use_all(mut call: impl FnMut(&str) -> Outcome) -> Vec<String> {
    let servers = the_lot(0, 0);
    let names = servers.as_object().unwrap().keys();
    names
        .map(|name| call(&format!("{name}__pid")).unwrap())
        .collect()
}

/// Starts a gateway with three clients, each in a project of its own, that have called all of these.
fn with_three_clients(home: &Home) -> (Serve<'_>, [Client; 3]) {
    let serve = home.serve();
    let mut pids = BTreeSet::new();
    let clients = ["one", "two", "three"].map(|project| {
        fs::create_dir_all(home.path(project)).unwrap();
        let address = format!("/mcp?project={}", home.text(project));
        let mut client = Client::try_open_at(serve.http(), &address).unwrap();
        pids.extend(use_all(|tool| client.call(tool, json!({}))));
        client
    });
    assert_three_of_each(home, &pids);
    (serve, clients)
}

/// Starts three clients on pipes that call all of these.
fn three_pipes(home: &Home) -> [Pipe; 3] {
    let mut pids = BTreeSet::new();
    let pipes = [(); 3].map(|()| {
        let mut pipe = Pipe::open(home);
        pids.extend(use_all(|tool| {
            let pid = until("it is known", || pipe.call(tool, json!({})).ok());
            Ok(pid)
        }));
        pipe
    });
    assert_three_of_each(home, &pids);
    pipes
}

#[track_caller]
fn assert_three_of_each(home: &Home, pids: &BTreeSet<String>) {
    let people = home.people();
    assert_eq!(pids.len(), 3 * 10, "{people:#?}");
    let guards = people.iter().filter(|person| person.is_guard()).count();
    // Others have fetched the lists.
    assert!(guards >= 3 * 10, "{people:#?}");
    assert!(people.len() - guards >= 3 * 17, "{people:#?}");
}

/// Starts a gateway with all of them, and waits until they are ready.
fn with_everyone(home: &Home) -> Serve<'_> {
    let serve = home.serve();
    serve.until_all_ready();
    let people = home.people();
    let guards = people.iter().filter(|person| person.is_guard()).count();
    assert_eq!(guards, 10, "{people:#?}");
    // Ten servers, two shells and five children.
    assert_eq!(people.len() - guards, 17, "{people:#?}");
    serve
}

#[test]
fn sigterm_leaves_no_process() {
    let home = Home::new(the_lot(200, 200));
    let mut serve = with_everyone(&home);
    serve.signal(Signal::TERM);
    assert!(serve.ended().success());
    home.assert_nobody("after SIGTERM");
}

#[test]
fn sigint_leaves_no_process() {
    let home = Home::new(the_lot(200, 200));
    let mut serve = with_everyone(&home);
    serve.signal(Signal::INT);
    assert!(serve.ended().success());
    home.assert_nobody("after SIGINT");
}

#[test]
fn second_sigint_leaves_no_process_without_waiting() {
    let home = patient_home(&the_lot(FOREVER_MS, FOREVER_MS));
    let serve = with_everyone(&home);
    interrupt_twice(&home, serve);
}

#[test]
fn second_sigint_leaves_no_instance_without_waiting() {
    let home = patient_home(&one_for_each("client", FOREVER_MS, FOREVER_MS));
    let (serve, _clients) = with_three_clients(&home);
    interrupt_twice(&home, serve);
}

/// A home whose gateway waits for its servers for as long as they take.
fn patient_home(servers: &Value) -> Home {
    let home = Home::new(json!({}));
    let shutdown = json!({ "totalTimeoutMs": FOREVER_MS });
    home.set_config(json!({ "mcpServers": servers, "shutdown": shutdown }));
    home
}

fn interrupt_twice(home: &Home, mut serve: Serve<'_>) {
    serve.signal(Signal::INT);
    until("the first is understood", || {
        let people = home.people();
        let good = people
            .iter()
            .any(|person| person.words == fixture("mcp_fixture"));
        (!good).then_some(())
    });
    assert!(home.people().len() > 5, "the others have hours");
    serve.signal(Signal::INT);
    assert!(serve.ended().success());
    home.assert_nobody("after the second SIGINT");
}

#[test]
fn sigkill_leaves_no_process() {
    let home = Home::new(the_lot(FOREVER_MS, FOREVER_MS));
    let mut serve = with_everyone(&home);
    serve.signal(Signal::KILL);
    serve.ended();
    home.until_nobody("after SIGKILL");
}

/// A process that panics for good ends with SIGABRT, or exits: SIGABRT stands in for both, because no input
/// is known that makes the gateway panic.
#[test]
fn abort_leaves_no_process() {
    let home = Home::new(the_lot(FOREVER_MS, FOREVER_MS));
    let mut serve = with_everyone(&home);
    serve.signal(Signal::ABORT);
    serve.ended();
    home.until_nobody("after SIGABRT");
}

#[test]
fn killed_stdio_gateway_leaves_no_process() {
    let home = Home::new(the_lot(FOREVER_MS, FOREVER_MS));
    let mut pipe = Pipe::open(&home);
    until("all are there", || {
        (home.people().len() == 27).then_some(())
    });
    pipe.kill();
    home.until_nobody("after SIGKILL of `switchboard stdio`");
}

#[test]
fn killed_stdio_gateway_leaves_no_instance() {
    let home = Home::new(one_for_each("client", FOREVER_MS, FOREVER_MS));
    // The first runs the gateway.
    let [mut first, mut second, mut third] = three_pipes(&home);
    let before = home.people();
    first.kill();
    until("the instances of all clients have ended", || {
        before.iter().all(|old| !processes::is_alive(old.pid))
    });
    // The others continue with another gateway, and processes of their own.
    for pipe in [&mut second, &mut third] {
        until("it has a process again", || {
            pipe.call("good__pid", json!({})).ok()
        });
    }
    second.kill();
    third.kill();
    home.until_nobody("after SIGKILL of the others");
}

#[test]
fn instances_of_clients_leave_no_process() {
    assert_instances_end("client");
}

#[test]
fn instances_of_projects_leave_no_process() {
    assert_instances_end("project");
}

/// Ends a gateway with instances by each signal.
fn assert_instances_end(share: &str) {
    for signal in [Signal::TERM, Signal::INT, Signal::KILL, Signal::ABORT] {
        let is_orderly = [Signal::TERM, Signal::INT].contains(&signal);
        let wait_ms = if is_orderly { 200 } else { FOREVER_MS };
        let home = Home::new(one_for_each(share, wait_ms, wait_ms));
        let (mut serve, _clients) = with_three_clients(&home);
        serve.signal(signal);
        let status = serve.ended();
        if is_orderly {
            assert!(status.success(), "{signal:?}: {status}");
            home.assert_nobody(&format!("after {signal:?}"));
        } else {
            home.until_nobody(&format!("after {signal:?}"));
        }
    }
}

#[test]
fn client_that_leaves_takes_its_processes_along() {
    let home = Home::new(one_for_each("client", 200, 200));
    let (serve, [first, _second, _third]) = with_three_clients(&home);
    first.end();
    until("two clients have processes", || {
        home.people().len() == 2 * (10 + 17)
    });
    serve.stop();
}

#[test]
fn killed_client_takes_its_processes_along() {
    let home = Home::new(one_for_each("client", 200, 200));
    let serve = home.serve();
    let [mut first, mut second, mut third] = three_pipes(&home);
    let mut pids = || {
        let pid = |pipe: &mut Pipe| pipe.call("good__pid", json!({})).unwrap();
        [&mut second, &mut third].map(pid)
    };
    let before = pids();
    first.kill();
    until("two clients have processes", || {
        home.people().len() == 2 * (10 + 17)
    });
    assert_eq!(pids(), before);
    serve.stop();
}

#[test]
fn next_start_sweeps_survivors() {
    let home = Home::new(the_lot(FOREVER_MS, FOREVER_MS));
    let serve = with_everyone(&home);
    let serve = sweep_after_crash(&home, serve);
    serve.until_all_ready();
    drop(serve);
    home.until_nobody("after SIGKILL of the second gateway");
}

#[test]
fn next_start_sweeps_instances() {
    let home = Home::new(one_for_each("client", FOREVER_MS, FOREVER_MS));
    let (serve, _clients) = with_three_clients(&home);
    drop(sweep_after_crash(&home, serve));
    home.until_nobody("after SIGKILL of the second gateway");
}

/// Ends a gateway and its guards so that processes are left, and starts another one, which ends these.
fn sweep_after_crash<'a>(home: &'a Home, mut serve: Serve<'a>) -> Serve<'a> {
    let (guards, rest): (Vec<_>, Vec<_>) = home.people().into_iter().partition(Person::is_guard);
    // Stopped first, so that none of them sees another one die.
    serve.signal(Signal::STOP);
    for guard in &guards {
        processes::signal(guard.pid, Signal::STOP);
    }
    for guard in &guards {
        processes::kill(guard.pid);
    }
    serve.signal(Signal::KILL);
    serve.ended();
    let outlived = home.people();
    assert!(!outlived.is_empty(), "there is nobody to be swept");

    let serve = home.serve();
    until("the old ones are swept", || {
        rest.iter()
            .all(|old| !processes::is_alive(old.pid))
            .then_some(())
    });
    serve
}

#[test]
fn killed_server_takes_its_children_along() {
    let home = Home::new(json!({
        "a": eager(with(server(&["--child", "setsid"]), json!({ "termTimeoutMs": 200 }))),
    }));
    let serve = home.serve();
    serve.until_all_ready();
    let before: Vec<_> = home.people();
    let leader = before
        .iter()
        .find(|person| person.words.ends_with("--child setsid") && !person.is_guard());
    processes::kill(leader.unwrap().pid);
    until("all of the first are gone", || {
        before
            .iter()
            .all(|old| !processes::is_alive(old.pid))
            .then_some(())
    });
    serve.stop();
}

#[test]
fn package_behind_npx_leaves_no_process() {
    let Some(peers) = peers() else { return };
    for signal in [Signal::TERM, Signal::KILL] {
        let home = Home::new(json!({ "everything": eager(json!({
            "command": "npx",
            "args": ["--no-install", "mcp-server-everything", "stdio"],
            "cwd": peers,
        })) }));
        let mut serve = home.serve();
        serve.until_known("everything");
        let mut client = serve.client();
        let echoed = client.call("everything__echo", json!({ "message": "hello" }));
        assert!(
            echoed.as_ref().is_ok_and(|text| text.contains("hello")),
            "{echoed:?}"
        );
        assert!(home.people().len() >= 3, "{:#?}", home.people());
        serve.signal(signal);
        serve.ended();
        home.until_nobody("an npx server");
    }
}

/// The directory in which `scripts/tools.sh` installs the reference servers; `None` if the test is skipped.
fn peers() -> Option<String> {
    let tools = Tools::need(&["peers/node_modules/.bin/mcp-server-everything"])?;
    tools::program("npx");
    Some(tools.path("peers").to_str()?.to_owned())
}

#[test]
fn another_home_is_left_alone() {
    let ours = Home::new(json!({ "a": eager(server(&["--child", "double"])) }));
    let serve = ours.serve();
    serve.until_all_ready();
    // The process between the server and its grandchild exits at once.
    let before = until("the grandchild is alone", || {
        let people = ours.people();
        let passing = |person: &Person| person.words.ends_with("--linger double");
        (people.len() >= 3 && !people.iter().any(passing)).then_some(people)
    });
    let theirs = Home::new(json!({ "a": eager(server(&["--child", "double"])) }));
    for _ in 0..2 {
        let mut other = theirs.serve();
        other.until_all_ready();
        other.signal(Signal::KILL);
        other.ended();
        theirs.until_nobody("after SIGKILL of the other");
    }
    assert_eq!(ours.people(), before);
    serve.stop();
}

#[test]
fn killed_guard_is_replaced_without_leaks() {
    let entry = server(&["--ignore-eof", "--ignore-term", "--child", "double"]);
    let home = Home::new(json!({
        "a": with(entry, json!({ "closeTimeoutMs": 200, "termTimeoutMs": 200 })),
    }));
    let serve = home.serve();
    serve.until_known("a");
    let mut client = serve.client();
    client.call("a__pid", json!({})).unwrap();
    let before = home.people();
    let guard = before.iter().find(|person| person.is_guard()).unwrap();
    processes::kill(guard.pid);
    until("all of the first are gone", || {
        before
            .iter()
            .all(|old| !processes::is_alive(old.pid))
            .then_some(())
    });
    until("the gateway has noticed", || {
        (serve.state("a") != "ready").then_some(())
    });
    let answer = client.call("a__echo", json!({ "text": "x" }));
    assert_eq!(answer, Ok("x".to_owned()));
    serve.stop();
}

#[test]
fn killed_guard_ends_its_instance_alone() {
    let entry = server(&["--ignore-eof", "--ignore-term", "--child", "double"]);
    let settings = json!({ "share": "client", "closeTimeoutMs": 200, "termTimeoutMs": 200 });
    let home = Home::new(json!({ "a": with(entry, settings) }));
    let serve = home.serve();
    serve.until_known("a");
    let mut clients = [(); 3].map(|()| serve.client());
    let pid = |client: &mut Client| client.call("a__pid", json!({})).unwrap();
    let before = clients.each_mut().map(pid);
    let first = before[0].parse().unwrap();
    let mark = &processes::environment(first)["SWITCHBOARD_CONTAINED"];
    let tree = processes::with_variable(&format!("SWITCHBOARD_CONTAINED={mark}"));
    assert!(tree.len() >= 3, "{tree:#?}");
    let mut guards = tree.iter().filter(|person| person.is_guard());
    processes::kill(guards.next().unwrap().pid);
    assert_eq!(guards.next(), None, "it is the guard of one instance");
    until("its instance has ended", || {
        tree.iter().all(|old| !processes::is_alive(old.pid))
    });
    until("its client has another", || {
        let pid = clients[0].call("a__pid", json!({}));
        pid.is_ok_and(|pid| pid != before[0])
    });
    assert_eq!(clients.each_mut().map(pid)[1..], before[1..]);
    // Three instances, each with a guard, a server and its grandchild.
    until("nothing else is left", || home.people().len() == 3 * 3);
    serve.stop();
}

#[test]
fn long_running_gateway_leaks_nothing() {
    let home = Home::new(json!({ "a": server(&[]) }));
    let serve = home.serve();
    serve.until_known("a");
    let mut client = serve.client();
    client.call("a__pid", json!({})).unwrap();
    let files = processes::open_files(serve.pid());
    for _ in 0..5 {
        let mut other = serve.client();
        other.call("a__pid", json!({})).unwrap();
        let mut pipe = Pipe::open(&home);
        pipe.request("tools/list", json!({}));
        let restarted = serve
            .http()
            .ask("POST", "/api/v1/servers/a/restart", &[], b"");
        assert_eq!(restarted.status, 200, "{}", restarted.text());
        client.call("a__pid", json!({})).unwrap();
    }
    until(
        "all that was opened is closed, and the dead are buried",
        || {
            let open = processes::open_files(serve.pid()) > files;
            (!open && processes::zombies(serve.pid()) == 0).then_some(())
        },
    );
    serve.stop();
}
