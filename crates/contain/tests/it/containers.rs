//! Servers in containers: first with a fake engine that records its commands, then with a real one if
//! available.

use std::{
    fs,
    io::{BufRead, BufReader},
    path::Path,
    process::{Command, Output, Stdio},
    sync::OnceLock,
};

use switchboard_contain::{Container, Engine, Launch, Mount, Rung, Step, Sweep};
use switchboard_test_support::{
    left_out::{Lack, lacks},
    until,
};
use tokio::io::AsyncReadExt;

use super::support::{LADDER, Place, fixture, ladder_to, sigkill};

/// A fake engine that logs its arguments and runs a fixture instead. It is run by `sh`, which reads it,
/// because a script that was just written cannot always be executed.
fn stand_in(place: &Place, mode: &str) -> Engine {
    let program = fixture();
    let script = format!(
        "echo \"$@\" >> '{log}'
case $1 in
  run) echo \"secret is $GOOGLE_API_KEY\" >> '{log}'; exec '{program}' {mode} {tag};;
  ps) cat '{listing}';;
esac",
        log = place.path("log").display(),
        listing = place.path("listing").display(),
        tag = place.tag,
    );
    let path = place.path("engine");
    fs::write(&path, script).unwrap();
    Engine::new("sh", [path.to_str().unwrap()])
}

fn log(place: &Place) -> Vec<String> {
    let log = fs::read_to_string(place.path("log")).unwrap();
    log.lines().map(str::to_owned).collect()
}

#[tokio::test]
async fn engine_receives_all_settings() {
    let place = Place::new();
    let container = Container::new("localhost/files:1")
        .env("GOOGLE_API_KEY", "hush")
        .env("PATH", "/bin")
        .memory(Some("64m".into()))
        .cpus(Some("0.5".into()))
        .pids(Some(32))
        .mount(Mount {
            source: "/srv/data".into(),
            target: "/data".into(),
            writable: false,
        })
        .read_only()
        .run_arg("--userns=keep-id");
    let launch = Launch::container("my files", stand_in(&place, "echo"), container).arg("--all");
    let mut contained = place.containment.launch(&launch).await.unwrap();
    let mut line = [0; 6];
    contained.stdout.read_exact(&mut line).await.unwrap();
    drop(contained.stdin);
    contained.handle.gone().await;
    let log = log(&place);
    let [run, secret, remove] = &log[..] else {
        panic!("{log:?}");
    };
    let tag = &place.tag;
    let (name, rest) = run
        .strip_prefix("run -i --rm --name ")
        .and_then(|rest| rest.split_once(' '))
        .unwrap();
    let token = name
        .strip_prefix(&format!("switchboard-{tag}-my-files-"))
        .unwrap();
    assert_eq!(token.len(), 32);
    assert_eq!(
        rest,
        format!(
            "--label switchboard.instance={tag} --label switchboard.server=my files --network none \
             --memory 64m --cpus 0.5 --pids-limit 32 --cap-drop ALL --security-opt no-new-privileges \
             --log-driver none --read-only \
             --mount type=bind,source=/srv/data,target=/data,readonly -e GOOGLE_API_KEY -e PATH=/bin \
             --userns=keep-id localhost/files:1 --all"
        )
    );
    assert_eq!(secret, "secret is hush");
    assert_eq!(*remove, format!("rm -f {name}"));
}

#[tokio::test]
async fn engine_gets_only_variables_that_it_needs() {
    let place = Place::new();
    let script = format!(
        "env | grep -v -e ^PWD= -e ^_= -e ^SHLVL= -e ^OLDPWD= | sort > '{}'-$1; pwd >> '{}'",
        place.path("env").display(),
        place.path("pwd").display(),
    );
    fs::write(place.path("engine"), script).unwrap();
    let path = place.path("engine");
    let variables = [
        ("DOCKER_HOST", "unix:///run/user.sock"),
        ("GH_TOKEN", "hush"),
        ("LD_PRELOAD", ""),
        ("PATH", "/usr/bin:/bin"),
    ];
    let variables = variables.map(|(name, value)| (name.into(), value.into()));
    let engine = Engine::new("sh", [path.to_str().unwrap()]).inherit(variables);
    let container = Container::new("image").env("KEY", "of the container");
    let launch = Launch::container("files", engine, container).ladder(LADDER);
    let contained = place.containment.launch(&launch).await.unwrap();
    contained.handle.gone().await;
    let given = |command: &str| {
        let env = fs::read_to_string(place.path(&format!("env-{command}"))).unwrap();
        let known = env
            .lines()
            .filter(|line| !line.starts_with("SWITCHBOARD_CONTAINED="));
        known.map(str::to_owned).collect::<Vec<_>>()
    };
    let own = ["DOCKER_HOST=unix:///run/user.sock", "PATH=/usr/bin:/bin"];
    assert_eq!(given("run"), [own[0], "KEY=of the container", own[1]]);
    assert_eq!(given("rm"), own);
    let dirs = fs::read_to_string(place.path("pwd")).unwrap();
    assert_eq!(dirs, "/\n/\n");
}

#[tokio::test]
async fn container_is_stopped_then_killed_then_removed() {
    let place = Place::new();
    let engine = stand_in(&place, "stubborn");
    let launch = Launch::container("files", engine, Container::new("image")).ladder(LADDER);
    let mut contained = place.containment.launch(&launch).await.unwrap();
    let mut line = [0; 6];
    contained.stdout.read_exact(&mut line).await.unwrap();
    drop(contained.stdin);
    contained.handle.stop(LADDER);
    let ended = contained.handle.gone().await;
    assert_eq!(ended.rung, Rung::Kill);
    let log = log(&place);
    let words: Vec<_> = log[2..]
        .iter()
        .map(|line| line.rsplit_once(' ').unwrap().0)
        .collect();
    assert_eq!(words, ["stop -t 1", "kill", "rm -f"]);
    let steps = place.steps.lock().unwrap();
    assert!(steps.contains(&Step::StoppingContainer), "{steps:?}");
    assert!(steps.contains(&Step::KillingContainer), "{steps:?}");
    place.until_empty("the command");
}

#[tokio::test]
async fn hanging_engine_is_not_waited_for() {
    let place = Place::new();
    let program = fixture();
    let script = format!(
        "case $1 in run) exec '{program}' stubborn {tag};; *) sleep 1000;; esac",
        tag = place.tag
    );
    let path = place.path("engine");
    fs::write(&path, script).unwrap();
    let engine = Engine::new("sh", [path.to_str().unwrap()]);
    let launch = Launch::container("files", engine, Container::new("image")).ladder(LADDER);
    let contained = place.containment.launch(&launch).await.unwrap();
    drop(contained.stdin);
    contained.handle.stop(LADDER);
    contained.handle.gone().await;
    place.containment.all_gone().await;
    place.assert_empty("the engine");
}

#[test]
fn sweep_removes_containers_of_this_instance() {
    let place = Place::new();
    let ours = format!("switchboard-{}-files-1", place.tag);
    fs::write(place.path("listing"), format!("{ours}\nsomebody-elses\n")).unwrap();
    let report = Sweep::new(place.ledger(), place.instance())
        .engine(stand_in(&place, "echo"))
        .run()
        .unwrap();
    assert_eq!(report.containers, std::slice::from_ref(&ours));
    let filter = format!("label=switchboard.instance={}", place.tag);
    assert_eq!(
        log(&place),
        [
            format!("ps -a --filter {filter} --format {{{{.Names}}}}"),
            format!("kill {ours}"),
            format!("rm -f {ours}"),
        ]
    );
    let silent = Sweep::new(place.ledger(), place.instance())
        .engine(Engine::new("false", [""; 0]))
        .run()
        .unwrap();
    assert_eq!(silent.silent_engines, ["false"]);
}

/// A gateway launches servers without waiting for its sweep.
#[tokio::test]
async fn sweep_spares_containers_launched_meanwhile() {
    let place = Place::new();
    let left = format!("switchboard-{}-files-{}", place.tag, "0".repeat(32));
    // Its listing takes as long as a launch does.
    let script = format!(
        "case $1 in
  ps) : > '{asked}'; until [ -e '{listing}' ]; do sleep 0.01; done; cat '{listing}';;
  *) echo \"$@\" >> '{swept}';;
esac",
        asked = place.path("asked").display(),
        listing = place.path("listing").display(),
        swept = place.path("swept").display(),
    );
    fs::write(place.path("slow"), script).unwrap();
    let slow = Engine::new("sh", [place.path("slow").to_str().unwrap()]);
    let sweep = Sweep::new(place.ledger(), place.instance()).engine(slow);
    let sweeping = tokio::task::spawn_blocking(move || sweep.run().unwrap());
    while !place.path("asked").exists() {
        tokio::task::yield_now().await;
    }
    let engine = stand_in(&place, "echo");
    let launch = Launch::container("files", engine, Container::new("image")).ladder(LADDER);
    let mut contained = place.containment.launch(&launch).await.unwrap();
    let mut line = [0; 6];
    contained.stdout.read_exact(&mut line).await.unwrap();
    let launched = log(&place)[0].split(' ').nth(4).unwrap().to_owned();
    fs::write(place.path("draft"), format!("{left}\n{launched}\n")).unwrap();
    fs::rename(place.path("draft"), place.path("listing")).unwrap();
    let report = sweeping.await.unwrap();
    assert_eq!(report.containers, std::slice::from_ref(&left));
    let swept = fs::read_to_string(place.path("swept")).unwrap();
    assert_eq!(swept, format!("kill {left}\nrm -f {left}\n"));
    drop(contained.stdin);
    contained.handle.gone().await;
}

/// A server to run alone in a container, without even a C library.
const SERVER: &str = r#"
#include <signal.h>
#include <string.h>
#include <unistd.h>
static void leave(int signal) { (void)signal; _exit(0); }
int main(int count, char **words) {
    char bytes[256];
    long got;
    signal(SIGTERM, count > 1 && !strcmp(words[1], "stubborn") ? SIG_IGN : leave);
    write(1, "ready\n", 6);
    while ((got = read(0, bytes, sizeof bytes)) > 0) write(1, bytes, got);
    while (count > 1 && strcmp(words[1], "echo")) pause();
    return 0;
}
"#;

const IMAGE: &str = "localhost/switchboard-contain-test:1";

/// An engine that works here, or the reason why there is none.
fn real_engine() -> Result<&'static [String], &'static str> {
    static ENGINE: OnceLock<Result<Vec<String>, String>> = OnceLock::new();
    let engine = ENGINE.get_or_init(|| {
        let dir = tempfile::tempdir().unwrap();
        let tar = image(dir.path())?;
        let candidates = [
            "docker",
            "podman",
            "podman --runtime runc --cgroup-manager=cgroupfs",
        ];
        let mut why = Vec::new();
        for candidate in candidates {
            let engine: Vec<String> = candidate.split(' ').map(str::to_owned).collect();
            match try_engine(&engine, &tar) {
                Ok(()) => return Ok(engine),
                Err(reason) => why.push(format!("{candidate}: {reason}")),
            }
        }
        Err(why.join("; "))
    });
    engine.as_deref().map_err(String::as_str)
}

fn image(dir: &Path) -> Result<String, String> {
    fs::write(dir.join("server.c"), SERVER).unwrap();
    let build = Command::new("cc")
        .args(["-static", "-o", "server", "server.c"])
        .current_dir(dir)
        .output();
    succeeded(build)?;
    let pack = Command::new("tar")
        .args(["-cf", "image.tar", "server"])
        .current_dir(dir)
        .output();
    succeeded(pack)?;
    let tar = dir.join("image.tar");
    Ok(tar.to_str().unwrap().to_owned())
}

fn try_engine(engine: &[String], tar: &str) -> Result<(), String> {
    let run = |words: &[&str]| {
        succeeded(
            Command::new(&engine[0])
                .args(&engine[1..])
                .args(words)
                .stdin(Stdio::null())
                .output(),
        )
    };
    run(&["import", tar, IMAGE])?;
    run(&[
        "run",
        "--rm",
        "--network=none",
        "--memory=1g",
        "--pids-limit=256",
        "--ulimit=nofile=1024:1024",
        "--ulimit=nproc=1024:1024",
        IMAGE,
        "/server",
        "echo",
    ])?;
    Ok(())
}

fn succeeded(output: std::io::Result<Output>) -> Result<String, String> {
    let output = output.map_err(|error| error.to_string())?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        Err(said.lines().last().unwrap_or_default().to_owned())
    }
}

/// The engine's command; `None` if there is none, and the test is skipped.
fn engine() -> Option<&'static [String]> {
    let engine = real_engine();
    engine
        .inspect_err(|why| lacks(Lack::ContainerEngine, why))
        .ok()
}

/// The containers of an instance that the engine knows.
fn known(engine: &[String], instance: &str) -> Vec<String> {
    let filter = format!("label=switchboard.instance={instance}");
    let output = Command::new(&engine[0])
        .args(&engine[1..])
        .args(["ps", "-a", "--filter", &filter, "--format", "{{.Names}}"])
        .output();
    let listing = succeeded(output).unwrap();
    listing.lines().map(str::to_owned).collect()
}

fn assert_removed(place: &Place, engine: &[String], what: &str) {
    let left = known(engine, &place.tag);
    assert!(left.is_empty(), "{what}: {left:?}");
    place.assert_empty(what);
}

fn real(engine: &[String], place: &Place, mode: &str) -> Launch {
    let container = Container::new(IMAGE)
        .run_arg("--ulimit=nofile=1024:1024")
        .run_arg("--ulimit=nproc=1024:1024");
    let engine = Engine::new(&engine[0], &engine[1..]).inherit(std::env::vars_os());
    Launch::container(&place.tag, engine, container).args(["/server", mode, &place.tag])
}

const MODES: [(&str, Rung); 3] = [
    ("echo", Rung::Close),
    ("deaf", Rung::Term),
    ("stubborn", Rung::Kill),
];

#[tokio::test]
async fn real_container_is_stopped() {
    let Some(engine) = engine() else { return };
    for (mode, rung) in MODES {
        let place = Place::new();
        let launch = real(engine, &place, mode);
        let mut contained = place.containment.launch(&launch).await.unwrap();
        let mut line = [0; 6];
        contained.stdout.read_exact(&mut line).await.unwrap();
        assert_eq!(&line, b"ready\n");
        assert_eq!(known(engine, &place.tag).len(), 1);
        drop(contained.stdin);
        contained.handle.stop(ladder_to(rung));
        let ended = contained.handle.gone().await;
        assert_eq!(ended.rung, rung, "{mode}");
        place.containment.all_gone().await;
        assert_removed(&place, engine, mode);
    }
}

#[tokio::test]
async fn real_container_does_not_outlive_its_guard() {
    let Some(engine) = engine() else { return };
    let place = Place::new();
    let launch = real(engine, &place, "stubborn");
    let mut contained = place.containment.launch(&launch).await.unwrap();
    let mut line = [0; 6];
    contained.stdout.read_exact(&mut line).await.unwrap();
    sigkill(place.guards()[0]);
    contained.handle.gone().await;
    assert_removed(&place, engine, "guard");
}

#[tokio::test]
async fn real_container_does_not_outlive_its_gateway() {
    let Some(engine) = engine() else { return };
    let other = Place::new();
    let bystander = bystander(engine, &other).await;
    for (mode, _) in MODES {
        let place = Place::new();
        let mut gateway = gateway(engine, &place, mode);
        gateway.kill().unwrap();
        gateway.wait().unwrap();
        until("it is removed", || known(engine, &place.tag).is_empty());
        place.until_empty(mode);
        assert_eq!(place.records(), 0);
    }
    assert_eq!(known(engine, &other.tag).len(), 1);
    drop(bystander);
    other.containment.all_gone().await;
}

#[tokio::test]
async fn real_container_is_swept() {
    let Some(engine) = engine() else { return };
    let other = Place::new();
    let bystander = bystander(engine, &other).await;
    for (mode, _) in MODES {
        let place = Place::new();
        let mut gateway = gateway(engine, &place, mode);
        let guard = place.guards()[0];
        let pid = rustix::process::Pid::from_raw(guard).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
        gateway.kill().unwrap();
        gateway.wait().unwrap();
        sigkill(guard);
        let sweep = Sweep::new(place.ledger(), place.instance())
            .engine(Engine::new(&engine[0], &engine[1..]).inherit(std::env::vars_os()));
        let report = tokio::task::spawn_blocking(move || sweep.run().unwrap())
            .await
            .unwrap();
        assert!(report.containers_left.is_empty(), "{mode}: {report:?}");
        // A server that reacts to its closed input may have exited by itself.
        if mode != "echo" {
            assert_eq!(report.containers.len(), 1, "{mode}: {report:?}");
        }
        assert_removed(&place, engine, mode);
        assert_eq!(place.records(), 0);
        assert_eq!(known(engine, &other.tag).len(), 1, "{mode}: another's");
    }
    drop(bystander);
    other.containment.all_gone().await;
}

/// A container of another instance, which must be left alone.
async fn bystander(engine: &[String], other: &Place) -> switchboard_contain::Contained {
    let launch = real(engine, other, "echo");
    let mut contained = other.containment.launch(&launch).await.unwrap();
    let mut line = [0; 6];
    contained.stdout.read_exact(&mut line).await.unwrap();
    contained
}

fn gateway(engine: &[String], place: &Place, mode: &str) -> std::process::Child {
    let mut gateway = Command::new(fixture())
        .args(["gateway", &place.tag])
        .arg(place.ledger())
        .args(["container", IMAGE, mode])
        .args(engine)
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
