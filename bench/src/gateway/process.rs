//! Measurements of other processes by the operating system. Linux only.

use std::{collections::HashMap, fs, process::Child, sync::mpsc, thread, time::Duration};

use rustix::process::{Pid, Signal, kill_process};

use crate::Result;

/// CPU time of all live threads of a process.
pub(crate) fn cpu_time(pid: u32) -> Result<Duration> {
    // `stat` has it as well, in steps of 10 ms.
    let mut nanos = 0;
    for thread in fs::read_dir(format!("/proc/{pid}/task"))? {
        // A thread that has just ended has no times.
        let Ok(times) = fs::read_to_string(thread?.path().join("schedstat")) else {
            continue;
        };
        let used = times.split_whitespace().next();
        nanos += used
            .ok_or("the system reports no CPU times")?
            .parse::<u64>()?;
    }
    Ok(Duration::from_nanos(nanos))
}

/// The fields of `stat` after the name, which may contain any character.
fn fields(stat: &str) -> Option<Vec<&str>> {
    let (_, rest) = stat.rsplit_once(')')?;
    Some(rest.split_whitespace().collect())
}

/// Resident memory of a process, in MB.
pub(crate) fn resident(pid: u32) -> Result<f64> {
    // The figures in `status` lag behind; these are counted when they are read.
    let sizes = fs::read_to_string(format!("/proc/{pid}/smaps_rollup"))?;
    let line = sizes.lines().find_map(|line| line.strip_prefix("Rss:"));
    let kib = line.and_then(|line| line.split_whitespace().next());
    let kib: f64 = kib.ok_or("the system reports no sizes")?.parse()?;
    Ok(kib / 1024.0)
}

/// Peak resident memory so far, in MB.
pub(crate) fn peak(pid: u32) -> Result<f64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().next());
    let kib: f64 = kib.ok_or("the system reports no sizes")?.parse()?;
    Ok(kib / 1024.0)
}

/// Number of context switches of all threads of a process, voluntary or not.
pub(crate) fn context_switches(pid: u32) -> Result<u64> {
    let mut switches = 0;
    for thread in fs::read_dir(format!("/proc/{pid}/task"))? {
        let status = fs::read_to_string(thread?.path().join("status"))?;
        for line in status.lines() {
            if let Some((name, count)) = line.split_once(':')
                && name.ends_with("ctxt_switches")
            {
                switches += count.trim().parse::<u64>()?;
            }
        }
    }
    Ok(switches)
}

/// The descendants of a process.
pub(crate) fn descendants(pid: u32) -> Result<Vec<u32>> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for pid in all()? {
        let parent = fs::read_to_string(format!("/proc/{pid}/stat"))
            .ok()
            .and_then(|stat| fields(&stat)?.get(1)?.parse().ok());
        // A process that has ended since has no parent.
        if let Some(parent) = parent {
            children.entry(parent).or_default().push(pid);
        }
    }
    let mut found = vec![pid];
    let mut next = 0;
    while let Some(parent) = found.get(next) {
        found.extend(children.remove(parent).unwrap_or_default());
        next += 1;
    }
    found.remove(0);
    Ok(found)
}

/// The processes whose command line contains this text.
pub(crate) fn with_command_line(text: &str) -> Result<Vec<u32>> {
    let own = std::process::id();
    let holds = |pid: &u32| command_line(*pid).is_some_and(|line| line.contains(text));
    Ok(all()?.filter(|pid| *pid != own).filter(holds).collect())
}

/// The command line of a process; `None` if it has ended.
pub(crate) fn command_line(pid: u32) -> Option<String> {
    let line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    Some(String::from_utf8_lossy(&line).replace('\0', " "))
}

/// The load averages of the last 1, 5 and 15 minutes.
pub(crate) fn load_average() -> String {
    let averages = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let averages: Vec<&str> = averages.split_whitespace().take(3).collect();
    averages.join(" ")
}

fn all() -> Result<impl Iterator<Item = u32>> {
    let entries = fs::read_dir("/proc")?;
    Ok(entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()))
}

/// Kills a process that neither answers nor exits, so that waiting for it ends.
pub(crate) struct Watchdog(#[expect(dead_code, reason = "held, not used")] mpsc::Sender<()>);

impl Watchdog {
    /// Kills the process after this time, unless the watchdog is dropped before.
    pub(crate) fn new(child: &Child, patience: Duration) -> Self {
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let (done, is_done) = mpsc::channel();
        thread::spawn(move || {
            if is_done.recv_timeout(patience) == Err(mpsc::RecvTimeoutError::Timeout)
                && let Some(pid) = pid
            {
                // An error means that it has just exited.
                let _ = kill_process(pid, Signal::KILL);
            }
        });
        Self(done)
    }
}
