//! stdio with real processes: servers written in shell, well-behaved and misbehaving.

use std::{future::IntoFuture, path::Path, time::Duration};

use serde_json::json;
use switchboard_client::{
    CallError, Client, ClientBuilder, Error, Raw, State,
    stdio::{Command, Stdio},
};

use crate::peer::builder;

/// Functions for all scripts: `id` extracts the id from `$line`, `greet` serves the handshake.
const PRELUDE: &str = r#"
id() { printf %s "$line" | sed 's/.*"id":\([0-9]*\).*/\1/'; }
answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$(id)" "$1"; }
greet() {
  read -r line
  case "$line" in *server/discover*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"?"}}\n' "$(id)"; read -r line;; esac
  answer '{"protocolVersion":"2025-11-25","capabilities":{}}'
  read -r line
}
"#;

fn server(script: &str) -> Command {
    Command::new("sh").args(["-c", &format!("{PRELUDE}\n{script}")])
}

fn connect(builder: ClientBuilder, script: &str) -> Client {
    builder.connect(Stdio::new(server(script)))
}

#[tokio::test]
async fn server_in_another_process_responds() {
    let client = connect(
        builder(),
        r#"greet; while read -r line; do answer "{\"n\": 1.50}"; done"#,
    );
    for _ in 0..3 {
        assert_eq!(
            client.request("x", None).await.unwrap().as_str(),
            r#"{"n": 1.50}"#
        );
    }
    client.stop().await;
}

#[tokio::test]
async fn unknown_command_is_a_permanent_failure() {
    let client = builder().connect(Stdio::new(Command::new("no-such-command-anywhere")));
    let error = client.request("x", None).await.unwrap_err();
    assert!(matches!(error, Error::Call(CallError::Failed { .. })));
    assert!(
        error
            .to_string()
            .contains("cannot run `no-such-command-anywhere`"),
        "{error}"
    );
}

#[tokio::test]
async fn exit_status_and_last_output_are_reported() {
    let client = connect(builder(), "greet; echo 'cannot find module x' >&2; exit 3");
    let mut state = client.watch_state();
    let state = state
        .wait_for(|state| matches!(state, State::Backoff { .. }))
        .await
        .unwrap()
        .clone();
    let State::Backoff { reason, wrote, .. } = &state else {
        panic!("{state}");
    };
    assert_eq!(&**reason, "the server exited (exit status: 3)");
    assert_eq!(wrote.as_deref(), Some("cannot find module x"));
    // The output may contain secrets, and the errors of calls are shown to others.
    let error = client
        .request("x", None)
        .timeout(Duration::from_millis(1))
        .await;
    let error = error.unwrap_err().to_string();
    assert!(!error.contains("cannot find module x"), "{error}");
}

#[tokio::test]
async fn short_handshake_leaves_time_after_the_probe() {
    // The probe is ignored, and the older handshake is answered.
    let client = connect(
        builder().handshake_timeout(Duration::from_secs(2)),
        r#"read -r line; greet; while read -r line; do answer '{"n": 1}'; done"#,
    );
    assert!(client.request("x", None).await.is_ok());
    assert_eq!(client.counters().ready, 1);
}

#[tokio::test]
async fn standard_error_is_separate_from_messages() {
    let (heard, mut lines) = tokio::sync::mpsc::unbounded_channel();
    let command =
        server("echo one >&2; greet; read -r line; echo two >&2; answer {}; read -r line")
            .on_stderr(move |line| drop(heard.send(line.to_owned())));
    let client = builder().connect(Stdio::new(command));
    client.request("x", None).await.unwrap();
    assert_eq!(lines.recv().await.as_deref(), Some("one"));
    assert_eq!(lines.recv().await.as_deref(), Some("two"));
    assert_eq!(client.counters().malformed, 0);
    client.stop().await;
}

#[tokio::test]
async fn stop_ends_a_thousand_calls_to_silent_server() {
    let client = connect(builder(), "greet; exec sleep 1000");
    client.ready().await.unwrap();
    let calls: Vec<_> = (0..1_000)
        .map(|_| tokio::spawn(client.request("x", None).into_future()))
        .collect();
    while client.counters().calls < 1_000 {
        tokio::task::yield_now().await;
    }
    let mut state = client.watch_state();
    client.stop().await;
    for call in calls {
        assert!(matches!(
            call.await.unwrap(),
            Err(Error::Call(CallError::Shutdown { .. }))
        ));
    }
    // The driver task holds the sender of this channel.
    while state.changed().await.is_ok() {}
}

#[tokio::test]
async fn frame_limit_is_exact() {
    let frame = |bytes: usize| {
        format!(
            r#"greet; read -r line
               head='{{"jsonrpc":"2.0","id":'"$(id)"',"result":"'; tail='"}}'
               pad=$(({bytes} - ${{#head}} - ${{#tail}}))
               printf %s "$head"; head -c $pad /dev/zero | tr '\0' x; printf '%s\n' "$tail"; read -r line"#
        )
    };
    let limit = 16 * 1024 * 1024;
    let client = connect(builder(), &frame(limit));
    let result = client.request("x", None).await.unwrap();
    assert!(result.as_bytes().len() > limit - 100);

    let client = connect(builder(), &frame(limit + 1));
    let error = client.request("x", None).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "connection lost: frame over the limit of 16777216 bytes"
    );
    assert_eq!(client.counters().oversized, 1);
}

#[tokio::test]
async fn server_that_never_reads_costs_bounded_memory() {
    let client = connect(builder(), "greet; exec sleep 1000");
    client.ready().await.unwrap();
    let megabyte = Raw::object([("pad", Raw::string(&"x".repeat(1 << 20)))]);
    let calls: Vec<_> = (0..20)
        .map(|_| {
            let call = client.clone().request("x", megabyte.clone());
            tokio::spawn(call.timeout(Duration::from_secs(2)).into_future())
        })
        .collect();
    let mut busy = 0;
    for call in calls {
        match call.await.unwrap().unwrap_err() {
            Error::Call(CallError::Backpressure { attempts: 3 }) => busy += 1,
            Error::Call(CallError::Timeout { .. }) => {}
            other => panic!("{other}"),
        }
    }
    assert!(busy >= 15, "4 MiB wait at most: {busy}");
}

#[tokio::test]
async fn stubborn_server_and_its_children_are_killed() {
    let dir = tempfile::tempdir().unwrap();
    let pids = dir.path().join("pids");
    let script = format!(
        "trap '' TERM; (trap '' TERM; while :; do sleep 1; done) & echo $$ $! > {}; greet; while :; do sleep 1; done",
        pids.display()
    );
    let command = server(&script).grace(Duration::from_millis(100), Duration::from_millis(100));
    let client = builder().connect(Stdio::new(command));
    client.ready().await.unwrap();
    let pids = std::fs::read_to_string(&pids).unwrap();
    client.stop().await;
    client.closed().await;
    let gone = |pid: &str| !Path::new("/proc").join(pid).join("cmdline").exists() || is_zombie(pid);
    assert!(pids.split_whitespace().all(gone), "still there: {pids}");
}

#[tokio::test]
async fn killed_server_is_restarted() {
    let client = connect(
        builder().backoff(Duration::from_millis(10), Duration::from_millis(10)),
        r#"greet; while read -r line; do case "$line" in *die*) kill -9 $$;; *) answer "{\"pid\":$$}";; esac; done"#,
    );
    let pid = client.request("who", None).await.unwrap();
    let error = client.request("die", None).await.unwrap_err();
    assert!(
        matches!(error, Error::Call(CallError::ConnectionLost { .. })),
        "{error}"
    );
    let other = client.request("who", None).await.unwrap();
    assert_ne!(pid, other);
    assert_eq!(client.counters().ready, 2);
}

#[tokio::test]
async fn exit_is_noticed_while_a_child_holds_output() {
    let client = connect(
        builder().backoff(Duration::from_mins(1), Duration::from_mins(1)),
        "sleep 30 & greet; while read -r line; do exit 4; done",
    );
    let error = client.request("x", None).await.unwrap_err().to_string();
    assert!(error.contains("exit status: 4"), "{error}");
    assert!(matches!(client.state(), State::Backoff { .. }));
}

#[tokio::test]
async fn closed_waits_for_the_server_to_exit() {
    let dir = tempfile::tempdir().unwrap();
    let mark = dir.path().join("left");
    let script = format!(
        "greet; while read -r line; do :; done; sleep 0.3; touch {}",
        mark.display()
    );
    let client = connect(builder(), &script);
    client.ready().await.unwrap();
    client.stop().await;
    assert!(!mark.exists());
    client.closed().await;
    assert!(mark.exists(), "it was given the time it asked for");
}

#[tokio::test]
async fn environment_and_working_directory_reach_the_server() {
    let command = server(r#"greet; read -r line; answer "\"$GREETING $PWD\""; read -r line"#)
        .env("GREETING", "hello")
        .current_dir("/");
    let client = builder().connect(Stdio::new(command));
    let result = client
        .request("x", Raw::from_value(&json!({})).unwrap())
        .await
        .unwrap();
    assert_eq!(result.as_str(), "\"hello /\"");
}

fn is_zombie(pid: &str) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| stat.contains(") Z "))
}
