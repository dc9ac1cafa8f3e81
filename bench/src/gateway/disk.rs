//! Verifies that no call waits for the disk, with the system calls of the gateway, thread by thread, while
//! calls pass through it.

use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead, BufReader},
    process::{Command, Stdio},
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};

use super::{Bound, GOALS, Settings, goal, load_runtime, process, subject::Subject};
use crate::{
    Effort, Result,
    report::{Cell, Report, Table},
};

/// The traced system calls: all that open, write or wait for a file.
const TRACED: &str = "write,writev,pwrite64,pwritev,pwritev2,sendto,sendmsg,fsync,fdatasync,sync_file_range,fallocate,ftruncate,openat,open,creat,rename,renameat2,unlink,unlinkat";

/// The thread that may write.
const STORE: &str = "store";

/// The target of a system call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Target {
    /// A socket, a pipe, or the runtime's own wake-up.
    Wire,
    /// A file of any kind.
    File,
}

pub(crate) fn run(settings: &Settings) -> Result<Report> {
    let calls = match settings.effort {
        Effort::Quick => 200,
        Effort::Full => 1_000,
    };
    let runtime = load_runtime()?;
    let mut subject = Subject::switchboard(&settings.switchboard)?;
    let mut connection = runtime.block_on(subject.ready())?;
    runtime.block_on(async {
        for _ in 0..200 {
            connection.call().await?;
        }
        Result::Ok(())
    })?;
    let out = tempfile::NamedTempFile::new()?;
    let mut tracer = Command::new("strace")
        .args(["-f", "-y", "--decode-pids=comm", "-e", &format!("trace={TRACED}")])
        .args(["-p", &subject.pid().to_string()])
        .arg("-o")
        .arg(out.path())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("cannot start strace: {error}; install it, for example with `apt-get install strace`"))?;
    // strace reports when it has attached to the process.
    let mut said = String::new();
    let errors = tracer.stderr.take().ok_or("no pipe from strace")?;
    BufReader::new(errors).read_line(&mut said)?;
    if !said.contains("attached") {
        return Err(format!("strace: {}", said.trim()).into());
    }
    std::thread::sleep(Duration::from_millis(300));
    runtime.block_on(async {
        for _ in 0..calls {
            connection.call().await?;
        }
        Result::Ok(())
    })?;
    // Time for the store to write its last batch.
    std::thread::sleep(Duration::from_secs(1));
    let pid = i32::try_from(tracer.id()).ok().and_then(Pid::from_raw);
    kill_process(pid.ok_or("no strace")?, Signal::INT)?;
    tracer.wait()?;
    drop(connection);
    subject.stop()?;
    let trace = fs::read_to_string(out.path())?;
    let counts = count(&trace);
    let of_others =
        |(thread, target, _): &(String, Target, String)| thread != STORE && *target == Target::File;
    let misplaced: u32 = counts
        .iter()
        .filter(|(key, _)| of_others(key))
        .map(|(_, count)| count)
        .sum();
    let rows = counts
        .iter()
        .map(|((thread, target, call), count)| {
            let target = match target {
                Target::Wire => "socket or pipe",
                Target::File => "file",
            };
            let each = f64::from(*count) / f64::from(calls);
            vec![
                Cell::Text(thread.clone()),
                target.into(),
                Cell::Text(call.clone()),
                f64::from(*count).into(),
                each.into(),
            ]
        })
        .collect();
    Ok(Report {
        tables: vec![
            Table {
                title: "No disk access on the path of a call",
                columns: GOALS.to_vec(),
                rows: vec![goal(
                    "system calls to files beside the store's thread",
                    Some(f64::from(misplaced)),
                    Bound::AtMost(0.0),
                )],
            },
            Table {
                title: "Writes and opened files of the gateway, by thread",
                columns: vec!["thread", "target", "call", "times", "per call"],
                rows,
            },
        ],
        notes: vec![
            format!("{calls} calls, one at a time, under strace. Reads are not counted."),
            format!("Load average {}.", process::load_average()),
        ],
    })
}

/// Counts by thread, target and system call.
fn count(trace: &str) -> BTreeMap<(String, Target, String), u32> {
    let mut counts = BTreeMap::new();
    for line in trace.lines() {
        // 1234<name> write(5<socket:[1]>, "...", 9) = 9
        let Some((thread, rest)) = line.split_once("> ") else {
            continue;
        };
        let thread = thread.split_once('<').map_or("?", |(_, name)| name);
        let Some((call, arguments)) = rest.trim_start().split_once('(') else {
            continue;
        };
        // A resumed call was counted when it began.
        if call.is_empty()
            || !call
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        {
            continue;
        }
        let target = arguments.split_once('<').map_or("", |(_, target)| target);
        let wire = ["socket:", "TCP:", "TCPv6:", "UNIX", "pipe:", "anon_inode:"];
        let target = if call.starts_with("send") || wire.iter().any(|kind| target.starts_with(kind))
        {
            Target::Wire
        } else {
            Target::File
        };
        *counts
            .entry((thread.to_owned(), target, call.to_owned()))
            .or_insert(0) += 1;
    }
    counts
}
