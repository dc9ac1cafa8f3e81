//! Starting servers: what they inherit, what they do not, and the reasons for failures.

use std::{
    fs,
    future::poll_fn,
    io,
    os::unix::{fs::PermissionsExt, process::ExitStatusExt},
    path::Path,
    process::{Command, Stdio},
};

use switchboard_contain::{
    GUARD_ARGUMENT, Launch, LaunchError, Rung, StartFailure, Step, find_program,
};
use switchboard_test_support::until_async;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::support::{Place, fixture, started};

#[tokio::test]
async fn server_gets_its_pipes_and_nothing_else() {
    let place = Place::new();
    // Descriptors that this program inherited by mistake must not be passed on.
    let leaked = rustix::io::dup(fs::File::open("/dev/null").unwrap()).unwrap();
    let dir = fs::canonicalize(place.ledger()).unwrap();
    let server = place.server("show").env("SHOWN", "a=b c").cwd(&dir);
    let mut contained = place.containment.launch(&server).await.unwrap();
    drop(contained.stdin);
    let mut shown = String::new();
    contained.stdout.read_to_string(&mut shown).await.unwrap();
    let lines: Vec<_> = shown.lines().collect();
    assert_eq!(lines[0], "0 1 2");
    let token = lines[1].strip_prefix(&format!("{}:", place.tag)).unwrap();
    assert_eq!(token.len(), 32);
    assert_eq!(lines[2], "a=b c");
    assert_eq!(lines[3], dir.to_str().unwrap());
    assert_eq!(contained.handle.gone().await.rung, Rung::Own);
    drop(leaked);
}

#[tokio::test]
async fn every_start_has_its_own_marker() {
    let place = Place::new();
    let mut seen = Vec::new();
    for _ in 0..2 {
        let launch = Launch::program("env", "sh").args(["-c", "echo $SWITCHBOARD_CONTAINED"]);
        let mut contained = place.containment.launch(&launch).await.unwrap();
        let mut shown = String::new();
        contained.stdout.read_to_string(&mut shown).await.unwrap();
        seen.push(shown);
    }
    assert_ne!(seen[0], seen[1]);
}

#[tokio::test]
async fn environment_and_directory_are_not_inherited() {
    let place = Place::new();
    let shown = "tr '\\0' '\\n' < /proc/self/environ; echo -; pwd; echo -; \
                 tr '\\0' '\\n' < /proc/$PPID/environ; readlink /proc/$PPID/cwd";
    let launch = Launch::program("env", "sh")
        .args(["-c", shown])
        .env("PATH", "/usr/bin:/bin")
        .env("A", "1");
    let mut contained = place.containment.launch(&launch).await.unwrap();
    let mut shown = String::new();
    contained.stdout.read_to_string(&mut shown).await.unwrap();
    let mut parts = shown.split("-\n");
    let mut server: Vec<_> = parts.next().unwrap().lines().collect();
    // Shells add these.
    server.retain(|entry| {
        !["PWD=", "OLDPWD=", "SHLVL=", "_="]
            .iter()
            .any(|own| entry.starts_with(own))
    });
    server.sort_unstable();
    let [a, path, marker] = server[..] else {
        panic!("{server:?}");
    };
    assert_eq!((a, path), ("A=1", "PATH=/usr/bin:/bin"));
    assert_eq!(parts.next(), Some("/\n"));
    // The environment of its parent reveals nothing either.
    assert_eq!(parts.next(), Some(&*format!("{marker}\n/\n")));
}

#[tokio::test]
async fn server_starts_with_default_signals() {
    let place = Place::new();
    let launch = Launch::program("grep", "grep").args(["Sig[IB]", "/proc/self/status"]);
    let mut contained = place.containment.launch(&launch).await.unwrap();
    let mut shown = String::new();
    contained.stdout.read_to_string(&mut shown).await.unwrap();
    let masks: Vec<_> = shown
        .lines()
        .map(|line| line.split_once('\t').unwrap())
        .map(|(name, mask)| (name, u64::from_str_radix(mask, 16).unwrap()))
        // Higher signals are the C library's own, and cannot be set.
        .map(|(name, mask)| (name, mask & 0x7fff_ffff))
        .collect();
    assert_eq!(masks, [("SigBlk:", 0), ("SigIgn:", 0)]);
}

#[tokio::test]
async fn terminal_signals_do_not_reach_the_server() {
    let place = Place::new();
    let contained = place.launch("echo").await;
    let stat = |pid: i32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        let (_, rest) = stat.rsplit_once(')').unwrap();
        let mut fields = rest.split_whitespace().skip(2);
        let mut next = || fields.next().unwrap().parse::<i32>().unwrap();
        (next(), next())
    };
    let own = stat(i32::try_from(std::process::id()).unwrap());
    let guard = place.guards()[0];
    let server = i32::try_from(contained.handle.pid()).unwrap();
    assert_eq!(stat(guard), (guard, guard));
    assert_eq!(stat(server), (server, guard));
    assert_ne!(own.1, guard);
    // The guard does not react to requests to exit.
    let pid = rustix::process::Pid::from_raw(guard).unwrap();
    for signal in [
        rustix::process::Signal::INT,
        rustix::process::Signal::TERM,
        rustix::process::Signal::HUP,
    ] {
        rustix::process::kill_process(pid, signal).unwrap();
    }
    let mut contained = contained;
    contained.stdin.write_all(b"still here\n").await.unwrap();
    let mut line = [0; 11];
    contained.stdout.read_exact(&mut line).await.unwrap();
    assert_eq!(&line, b"still here\n");
    assert_eq!(place.guards(), [guard]);
}

#[tokio::test]
async fn exit_of_the_server_is_reported() {
    let place = Place::new();
    let launch = Launch::program("sh", "sh").args(["-c", "exit 7"]);
    let mut contained = place.containment.launch(&launch).await.unwrap();
    let status = poll_fn(|cx| contained.handle.poll_exit(cx)).await;
    assert_eq!(status.code(), Some(7));
    let again = poll_fn(|cx| contained.handle.poll_exit(cx)).await;
    assert_eq!(again.code(), Some(7));
    assert_eq!(contained.handle.gone().await.rung, Rung::Own);

    let launch = Launch::program("sh", "sh").args(["-c", "kill -SEGV $$"]);
    let contained = place.containment.launch(&launch).await.unwrap();
    let status = contained.handle.exited().await;
    assert_eq!(status.signal(), Some(libc::SIGSEGV));
}

#[tokio::test]
async fn every_step_is_reported() {
    let place = Place::new();
    let contained = place.launch("stubborn").await;
    drop(contained.stdin);
    contained.handle.stop(super::support::LADDER);
    contained.handle.gone().await;
    place.containment.all_gone().await;
    let steps = place.steps.lock().unwrap();
    let [
        Step::Started(pid),
        Step::Stopping,
        Step::SentTerm(1),
        Step::SentKill(1),
        Step::Exited(status),
        Step::Gone(ended),
    ] = &steps[..]
    else {
        panic!("{steps:?}");
    };
    assert_eq!(*pid, contained.handle.pid());
    assert_eq!(status.signal(), Some(libc::SIGKILL));
    assert_eq!(ended.rung, Rung::Kill);
}

#[tokio::test]
async fn reason_for_a_failed_start_is_reported() {
    let place = Place::new();
    let file = |name: &str, mode: u32, text: &str| {
        let path = place.path(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    };
    let plain = file("plain", 0o644, "#!/bin/sh\n");
    let script = file("script", 0o755, "#!/no/such/interpreter\n");
    let nowhere = place.path("nowhere");
    let cases = [
        (
            Launch::program("a", "no-such-command"),
            StartFailure::NotFound,
            io::ErrorKind::NotFound,
        ),
        (
            Launch::program("b", nowhere.join("server")),
            StartFailure::NotFound,
            io::ErrorKind::NotFound,
        ),
        (
            Launch::program("c", &plain),
            StartFailure::PermissionDenied,
            io::ErrorKind::PermissionDenied,
        ),
        (
            Launch::program("d", &script),
            StartFailure::Interpreter,
            io::ErrorKind::NotFound,
        ),
        (
            Launch::program("e", "script").env("PATH", place.path("")),
            StartFailure::Interpreter,
            io::ErrorKind::NotFound,
        ),
        (
            Launch::program("g", "true").cwd(&nowhere),
            StartFailure::WorkingDirectory,
            io::ErrorKind::InvalidInput,
        ),
        (
            Launch::program("h", "true").cwd(&plain),
            StartFailure::WorkingDirectory,
            io::ErrorKind::InvalidInput,
        ),
    ];
    for (launch, expected, kind) in cases {
        let error = place.containment.launch(&launch).await.unwrap_err();
        assert!(error.is_permanent(), "{launch:?}");
        let LaunchError::Start { failure, .. } = &error else {
            panic!("{launch:?}: {error}");
        };
        assert_eq!(*failure, expected, "{launch:?}");
        assert_eq!(io::Error::from(error).kind(), kind, "{launch:?}");
    }
    let error = place
        .containment
        .launch(&Launch::program("i", "true").arg("a\0b"))
        .await
        .unwrap_err();
    assert!(matches!(error, LaunchError::Invalid { .. }), "{error}");
    let lost = place.containment.clone().guard_program(&nowhere);
    let error = lost
        .launch(&Launch::program("j", "true"))
        .await
        .unwrap_err();
    assert!(matches!(error, LaunchError::Guard { .. }), "{error}");
    assert!(!error.is_permanent());
    // A program that is not a guard.
    let deaf = place.containment.clone().guard_program("/bin/true");
    let error = deaf
        .launch(&Launch::program("k", "true"))
        .await
        .unwrap_err();
    assert!(matches!(error, LaunchError::Guard { .. }), "{error}");
    place.containment.all_gone().await;
    assert_eq!(place.records(), 0);
}

/// Writes an executable file with this content.
fn program(file: &Path, text: &str) {
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, text).unwrap();
    fs::set_permissions(file, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Everything that a server writes to its standard output.
async fn written(place: &Place, launch: &Launch) -> String {
    let mut contained = place.containment.launch(launch).await.unwrap();
    let mut written = String::new();
    contained.stdout.read_to_string(&mut written).await.unwrap();
    written
}

#[tokio::test]
async fn file_that_is_found_is_the_one_started() {
    let place = Place::new();
    let path = |first: &str| {
        format!(
            "{}:{}",
            place.path(first).display(),
            place.path("p2").display()
        )
    };
    program(&place.path("p2/tool"), "#!/bin/sh\necho second\n");
    // Files that the system would skip in favour of the next directory.
    program(&place.path("script/tool"), "#!/nonexistent/interp -x\n");
    program(&place.path("windows/tool"), "#!/bin/sh\r\n");
    program(&place.path("interp/data"), "");
    fs::set_permissions(place.path("interp/data"), fs::Permissions::from_mode(0o644)).unwrap();
    let data = place.path("interp/data");
    program(
        &place.path("interp/tool"),
        &format!("#!{}\n", data.display()),
    );
    for (first, expected, says) in [
        ("script", StartFailure::Interpreter, "`/nonexistent/interp`"),
        ("windows", StartFailure::Interpreter, r"`/bin/sh\r`"),
        (
            "interp",
            StartFailure::PermissionDenied,
            "permission denied",
        ),
    ] {
        let launch = Launch::program("a", "tool").env("PATH", path(first));
        let found = find_program("tool".as_ref(), Some(path(first).as_ref()));
        assert_eq!(found, Some(place.path(first).join("tool")));
        let error = place.containment.launch(&launch).await.unwrap_err();
        let LaunchError::Start { failure, .. } = &error else {
            panic!("{first}: {error}");
        };
        assert_eq!(*failure, expected, "{first}");
        assert!(error.to_string().contains(says), "{error}");
    }
    // A file that is not executable is skipped, also by `find_program`.
    fs::create_dir(place.path("plain")).unwrap();
    fs::write(place.path("plain/tool"), "#!/bin/sh\necho first\n").unwrap();
    let launch = Launch::program("a", "tool").env("PATH", path("plain"));
    assert_eq!(written(&place, &launch).await, "second\n");
    // A relative directory is ignored.
    let launch = Launch::program("a", "tool").env("PATH", "p2:");
    let launch = launch.cwd(place.path(""));
    assert!(place.containment.launch(&launch).await.is_err());
    place.containment.all_gone().await;
}

#[tokio::test]
async fn program_sees_the_name_it_was_given() {
    let place = Place::new();
    let shown = ["-c", "tr '\\0' '\\n' < /proc/$$/cmdline | head -n 1; :"];
    let launch = Launch::program("a", "sh").args(shown);
    assert_eq!(written(&place, &launch).await, "sh\n");
    let launch = Launch::program("a", "/bin/sh").args(shown);
    assert_eq!(written(&place, &launch).await, "/bin/sh\n");
    // A shim sees its own path, not that of the file it is linked to.
    program(&place.path("real/shim"), "#!/bin/sh\necho \"$0\"\n");
    fs::create_dir(place.path("links")).unwrap();
    let link = place.path("links/tool");
    std::os::unix::fs::symlink(place.path("real/shim"), &link).unwrap();
    let launch = Launch::program("a", "tool").env("PATH", place.path("links"));
    assert_eq!(
        written(&place, &launch).await,
        format!("{}\n", link.display())
    );
    // The file may be set in addition to the name.
    let launch = Launch::program("a", "other").file(&link);
    assert_eq!(
        written(&place, &launch).await,
        format!("{}\n", link.display())
    );
}

#[tokio::test]
async fn dropped_launch_leaves_no_process() {
    let place = Place::new();
    for _ in 0..10 {
        let server = place.server("stubborn");
        let mut launching = Box::pin(place.containment.launch(&server));
        // The guard is starting.
        assert!(futures_poll(&mut launching).await);
        drop(launching);
    }
    place.containment.kill_all();
    place.containment.all_gone().await;
    place.assert_empty("given up");
    assert_eq!(place.records(), 0);
}

/// Polls once. Returns `true` if the future is still pending.
async fn futures_poll(future: &mut (impl Future + Unpin)) -> bool {
    poll_fn(|cx| std::task::Poll::Ready(std::pin::Pin::new(&mut *future).poll(cx).is_pending()))
        .await
}

#[test]
fn runtime_shutdown_leaves_no_process() {
    let place = Place::new();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let contained = runtime.block_on(place.launch("stubborn"));
    drop(runtime);
    place.until_empty("a runtime that ends");
    drop(contained);
}

#[tokio::test]
async fn orphans_that_exit_are_reaped() {
    let place = Place::new();
    // Each `true` is orphaned at once, and exits as a child of the guard.
    let orphans = "for i in 1 2 3 4 5 6 7 8; do sh -c 'true &'; done; echo ready; cat";
    let launch = Launch::program(&place.tag, "sh").args(["-c", orphans]);
    let mut contained = place.containment.launch(&launch).await.unwrap();
    let mut line = [0; 6];
    contained.stdout.read_exact(&mut line).await.unwrap();
    let guard = place.guards()[0];
    let children = || fs::read_to_string(format!("/proc/{guard}/task/{guard}/children")).unwrap();
    until_async("the guard has one child", async || {
        children().split_whitespace().count() == 1
    })
    .await;
}

#[tokio::test]
async fn server_starts_without_a_writable_record() {
    let place = Place::new();
    fs::remove_dir(place.ledger()).unwrap();
    let contained = place.launch("echo").await;
    drop(contained.stdin);
    contained.handle.gone().await;
    let steps = place.steps.lock().unwrap();
    assert!(
        steps.iter().any(|step| matches!(step, Step::Unrecorded(_))),
        "{steps:?}"
    );
}

#[tokio::test]
async fn record_identifies_guard_and_server() {
    let place = Place::new();
    let contained = place.launch("echo").await;
    let file = fs::read_dir(place.ledger())
        .unwrap()
        .next()
        .unwrap()
        .unwrap();
    let mode = file.metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let record: serde_json::Value =
        serde_json::from_slice(&fs::read(file.path()).unwrap()).unwrap();
    let guard = place.guards()[0];
    let leader = i32::try_from(contained.handle.pid()).unwrap();
    assert_eq!(record["guard"]["pid"], guard);
    assert_eq!(record["guard"]["started"], started(guard));
    assert_eq!(record["leader"]["pid"], leader);
    assert_eq!(record["leader"]["started"], started(leader));
    assert_eq!(record["name"], place.tag);
}

#[test]
fn guard_refuses_to_run_by_hand() {
    let output = Command::new(fixture())
        .arg(GUARD_ARGUMENT)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(!output.stderr.is_empty());
}
