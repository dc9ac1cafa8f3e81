//! Finds the processes that a test has started, and waits for their end.

use std::{
    fs,
    path::Path,
    sync::atomic::{AtomicU32, Ordering::Relaxed},
};

use rustix::process::{Pid, Signal, kill_process};

use super::until;

/// A mark in the environment of processes, which their descendants inherit.
#[derive(Clone)]
pub(crate) struct Marked(String);

impl Marked {
    pub(crate) const VARIABLE: &str = "SWITCHBOARD_TEST_MARK";

    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        Self(format!(
            "{}-{}",
            std::process::id(),
            NEXT.fetch_add(1, Relaxed)
        ))
    }

    pub(crate) fn value(&self) -> &str {
        &self.0
    }

    /// The processes that carry the mark now.
    pub(crate) fn processes(&self) -> Vec<Pid> {
        let mark = format!("{}={}", Self::VARIABLE, self.0);
        let carries = |pid: &Pid| {
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            let mut variables = environment.split(|byte| *byte == 0);
            variables.any(|variable| variable == mark.as_bytes())
        };
        let entries = fs::read_dir("/proc").expect("there is a /proc");
        let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        pids.filter_map(Pid::from_raw).filter(carries).collect()
    }

    /// Kills them.
    pub(crate) fn kill(&self) {
        let processes = self.processes();
        assert!(!processes.is_empty(), "there is nothing to kill");
        for pid in processes {
            kill_process(pid, Signal::KILL).expect("it is ours");
        }
    }
}

/// Waits until these processes are gone and have been reaped.
pub(crate) async fn wait_gone(processes: &[Pid]) {
    let is_gone = |pid: &Pid| !Path::new(&format!("/proc/{pid}")).exists();
    let what = format!("the end of {processes:?}");
    until(&what, async || processes.iter().all(is_gone).then_some(())).await;
}
