//! No process is left, no matter which one dies and how a server behaves.

use std::{
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use switchboard_contain::{Rung, Step, Sweep};

use super::support::{LADDER, PATIENT, Place, fixture, is_guard, ladder_to, sigkill};

/// The behaviours of servers, and the rung that stops each.
const MODES: [(&str, Rung); 10] = [
    ("echo", Rung::Close),
    ("deaf", Rung::Term),
    ("stubborn", Rung::Kill),
    ("wrapper", Rung::Close),
    ("setsid", Rung::Kill),
    ("daemon", Rung::Kill),
    ("scrubbed", Rung::Kill),
    ("member", Rung::Kill),
    ("hydra", Rung::Kill),
    ("comet", Rung::Kill),
];

/// Servers that only their guard can find: a daemon that has discarded its environment, and one that exits
/// before it is seen.
const UNSEEN: [&str; 2] = ["scrubbed", "comet"];

#[tokio::test]
async fn stopping_leaves_no_process() {
    for (mode, rung) in MODES {
        let place = Place::new();
        let contained = place.launch(mode).await;
        assert!(place.people().len() >= 2, "{mode}: a guard and a server");
        assert_eq!(place.records(), 1);
        let since = Instant::now();
        drop(contained.stdin);
        contained.handle.stop(ladder_to(rung));
        contained.handle.exited().await;
        let ended = contained.handle.gone().await;
        let took = since.elapsed();
        assert_eq!(ended.rung, rung, "{mode}");
        let least = match rung {
            Rung::Own | Rung::Close => Duration::ZERO,
            Rung::Term => LADDER.close,
            Rung::Kill => LADDER.close + LADDER.term,
        };
        assert!(took >= least, "{mode}: {took:?}");
        // The record and the guard disappear with the last process.
        assert_eq!(place.records(), 0, "{mode}");
        place.containment.all_gone().await;
        place.assert_empty(mode);
    }
}

#[tokio::test]
async fn killing_leaves_no_process() {
    for (mode, _) in MODES {
        let place = Place::new();
        let contained = place.launch_with(mode, PATIENT).await;
        contained.handle.kill();
        let ended = contained.handle.gone().await;
        assert_eq!(ended.rung, Rung::Kill, "{mode}");
        place.containment.all_gone().await;
        place.assert_empty(mode);
    }
}

#[tokio::test]
async fn dropping_the_handle_leaves_no_process() {
    for (mode, rung) in MODES {
        let place = Place::new();
        let contained = place.launch_with(mode, ladder_to(rung)).await;
        let tree = contained.handle.tree().clone();
        drop(contained);
        assert_eq!(tree.gone().await.rung, rung, "{mode}");
        place.containment.all_gone().await;
        place.assert_empty(mode);
    }
}

#[tokio::test]
async fn kill_cuts_a_stop_short() {
    let place = Place::new();
    let contained = place.launch("stubborn").await;
    contained.handle.stop(PATIENT);
    place.containment.kill_all();
    let ended = contained.handle.gone().await;
    assert_eq!(ended.rung, Rung::Kill);
}

#[tokio::test]
async fn killed_guard_leaves_no_process() {
    for (mode, _) in MODES {
        if UNSEEN.contains(&mode) {
            continue;
        }
        let place = Place::new();
        let contained = place.launch(mode).await;
        let guards = place.guards();
        assert_eq!(guards.len(), 1);
        sigkill(guards[0]);
        contained.handle.exited().await;
        let ended = contained.handle.gone().await;
        assert_eq!(ended.rung, Rung::Kill);
        place.assert_empty(mode);
        assert_eq!(place.records(), 0, "{mode}");
        assert!(place.steps.lock().unwrap().contains(&Step::GuardLost));
        // Processes that became children of this one have been reaped.
        assert_eq!(zombies(guards[0]), 0, "{mode}");
        place.containment.all_gone().await;
    }
}

#[tokio::test]
async fn hanging_guard_is_replaced_by_the_gateway() {
    let place = Place::new();
    let contained = place.launch("stubborn").await;
    stop_process(place.guards()[0]);
    contained.handle.kill();
    let ended = contained.handle.gone().await;
    assert_eq!(ended.rung, Rung::Kill);
    place.containment.all_gone().await;
    place.assert_empty("a guard that hangs");
    assert_eq!(place.records(), 0);
}

#[test]
fn killed_gateway_leaves_no_process() {
    for (mode, _) in MODES {
        let place = Place::new();
        let mut gateway = gateway(&place, mode);
        assert!(place.people().len() >= 3, "{mode}");
        gateway.kill().unwrap();
        gateway.wait().unwrap();
        place.until_empty(mode);
        assert_eq!(place.records(), 0, "{mode}");
    }
}

#[test]
fn leftovers_of_killed_gateway_and_guard_are_swept() {
    for (mode, _) in MODES {
        if UNSEEN.contains(&mode) {
            continue;
        }
        let place = Place::new();
        let mut gateway = gateway(&place, mode);
        let guards = place.guards();
        assert_eq!(guards.len(), 1);
        // The gateway first, but the guard is stopped so that it does not notice.
        stop_process(guards[0]);
        gateway.kill().unwrap();
        gateway.wait().unwrap();
        sigkill(guards[0]);
        let left: Vec<_> = place.people();
        let report = Sweep::new(place.ledger(), place.instance()).run().unwrap();
        place.assert_empty(mode);
        assert_eq!(place.records(), 0, "{mode}");
        assert!(report.guarded.is_empty(), "{mode}: {report:?}");
        // The server itself dies with its guard; other processes have to be found.
        let ended: usize = report.swept.iter().map(|swept| swept.ended).sum();
        if matches!(mode, "setsid" | "daemon" | "member") {
            assert!(ended >= 1, "{mode}: {report:?}, {left:?}");
        }
    }
}

#[test]
fn sweep_waits_for_a_working_guard() {
    let place = Place::new();
    let mut gateway = gateway(&place, "stubborn");
    gateway.kill().unwrap();
    gateway.wait().unwrap();
    // The guard takes 300 ms; the sweep waits for it.
    let report = Sweep::new(place.ledger(), place.instance()).run().unwrap();
    assert_eq!(report, switchboard_contain::SweepReport::default());
    place.assert_empty("a guard at work");
}

#[tokio::test]
async fn leftovers_of_a_server_are_ended() {
    let place = Place::new();
    let contained = place.launch("quits").await;
    let status = contained.handle.exited().await;
    assert!(status.success());
    assert!(!place.people().iter().all(|pid| is_guard(*pid)), "a child");
    let ended = contained.handle.gone().await;
    assert_eq!(ended.rung, Rung::Term);
    place.containment.all_gone().await;
    place.assert_empty("quits");
}

/// A gateway in a process of its own, with a server that is ready.
fn gateway(place: &Place, mode: &str) -> Child {
    let (program, args) = place.command(mode);
    let mut gateway = Command::new(fixture())
        .args(["gateway", &place.tag])
        .arg(place.ledger())
        .arg(program)
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let stdout = gateway.stdout.take().unwrap();
    BufReader::new(stdout).read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n", "{mode}");
    gateway
}

/// The number of processes of a guard's session that exited and were not reaped by this process.
fn zombies(session: i32) -> usize {
    let own = std::process::id().to_string();
    let session = session.to_string();
    std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| std::fs::read_to_string(entry.path().join("stat")).ok())
        .filter(|stat| {
            let (_, rest) = stat.rsplit_once(')').unwrap();
            let fields: Vec<_> = rest.split_whitespace().collect();
            fields[0] == "Z" && fields[1] == own && fields[3] == session
        })
        .count()
}

fn stop_process(pid: i32) {
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
}
