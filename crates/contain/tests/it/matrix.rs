//! Whoever dies, and however a server behaves: nobody is left.

use std::{
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use switchboard_contain::{Rung, Step, Sweep};

use super::support::{LADDER, PATIENT, Place, fixture, is_guard, ladder_to, sigkill};

/// How servers behave, and the rung it takes to stop each.
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

/// Those of which nobody but their guard knows: a daemon that has thrown away its environment, and one that is gone
/// before it is seen.
const UNSEEN: [&str; 2] = ["scrubbed", "comet"];

#[tokio::test]
async fn stopping_leaves_nobody() {
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
        // The record and the guard go with the last of them.
        assert_eq!(place.records(), 0, "{mode}");
        place.containment.all_gone().await;
        place.assert_empty(mode);
    }
}

#[tokio::test]
async fn killing_leaves_nobody() {
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
async fn dropping_the_handle_leaves_nobody() {
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
async fn a_kill_cuts_a_stop_short() {
    let place = Place::new();
    let contained = place.launch("stubborn").await;
    contained.handle.stop(PATIENT);
    place.containment.kill_all();
    let ended = contained.handle.gone().await;
    assert_eq!(ended.rung, Rung::Kill);
}

#[tokio::test]
async fn a_killed_guard_leaves_nobody() {
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
        // Those that fell to this process have been looked after.
        assert_eq!(zombies(guards[0]), 0, "{mode}");
        place.containment.all_gone().await;
    }
}

#[tokio::test]
async fn a_guard_that_hangs_is_done_without() {
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
fn a_killed_gateway_leaves_nobody() {
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
fn what_two_killed_leave_is_swept() {
    for (mode, _) in MODES {
        if UNSEEN.contains(&mode) {
            continue;
        }
        let place = Place::new();
        let mut gateway = gateway(&place, mode);
        let guards = place.guards();
        assert_eq!(guards.len(), 1);
        // The gateway first, but so fast that the guard does not see it.
        stop_process(guards[0]);
        gateway.kill().unwrap();
        gateway.wait().unwrap();
        sigkill(guards[0]);
        let left: Vec<_> = place.people();
        let report = Sweep::new(place.ledger(), place.instance()).run().unwrap();
        place.assert_empty(mode);
        assert_eq!(place.records(), 0, "{mode}");
        assert!(report.guarded.is_empty(), "{mode}: {report:?}");
        // The server itself dies with its guard; others have to be found.
        let ended: usize = report.swept.iter().map(|swept| swept.ended).sum();
        if matches!(mode, "setsid" | "daemon" | "member") {
            assert!(ended >= 1, "{mode}: {report:?}, {left:?}");
        }
    }
}

#[test]
fn a_guard_at_work_is_left_to_it() {
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
async fn what_a_server_leaves_behind_is_ended() {
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

/// How many of a guard's session have ended and were not looked after by this process.
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
