//! The processes that belong to a test's own gateway.

use std::{collections::BTreeMap, fs, path::PathBuf};

use rustix::process::{Pid, Signal, kill_process};

/// A process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Person {
    pub pid: i32,
    /// Its command line, for the message of a failed test.
    pub words: String,
}

impl Person {
    pub fn is_guard(&self) -> bool {
        self.words.starts_with("switchboard __guard")
    }
}

/// All processes that carry the mark of this instance: servers, their children, and guards, without zombies.
pub fn contained(instance: &str) -> Vec<Person> {
    with_variable(&format!("SWITCHBOARD_CONTAINED={instance}:"))
}

/// All processes with a variable that starts with this text (name and value), without zombies.
pub fn with_variable(beginning: &str) -> Vec<Person> {
    let is_one = |pid: &i32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let mut entries = environment.split(|byte| *byte == 0);
        entries.any(|entry| entry.starts_with(beginning.as_bytes()))
    };
    all()
        .filter(is_one)
        .filter(|pid| is_alive(*pid))
        .map(person)
        .collect()
}

/// Tests if the process exists and is not a zombie. Its first thread may be one while others still hold its
/// files open.
pub fn is_alive(pid: i32) -> bool {
    let threads = fs::read_dir(format!("/proc/{pid}/task"));
    let mut threads = threads.into_iter().flatten().flatten();
    threads.any(|thread| {
        let stat = fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        let state = stat.rsplit_once(')').map(|(_, rest)| rest.trim_start());
        state.is_some_and(|state| !state.starts_with(['Z', 'X']))
    })
}

/// Resident memory of the process, in bytes.
pub fn resident(pid: i32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib: u64 = line
        .and_then(|line| line.split_whitespace().next()?.parse().ok())
        .unwrap();
    kib * 1024
}

pub fn signal(pid: i32, signal: Signal) {
    // A process that is gone needs no signal.
    let _ = kill_process(Pid::from_raw(pid).unwrap(), signal);
}

pub fn kill(pid: i32) {
    signal(pid, Signal::KILL);
}

fn all() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn person(pid: i32) -> Person {
    let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    Person {
        pid,
        words: String::from_utf8_lossy(&words)
            .replace('\0', " ")
            .trim_end()
            .to_owned(),
    }
}

/// The processes with an open file whose path begins like this.
pub fn with_file(beginning: &str) -> Vec<Person> {
    let has_file = |pid: &i32| {
        let files = files(*pid);
        files.iter().any(|file| file.starts_with(beginning))
    };
    all().filter(has_file).map(person).collect()
}

/// The session of a process, by the process that leads it.
pub fn session(pid: i32) -> i32 {
    stat(pid).unwrap()[3].parse().unwrap()
}

/// The open files of a process, as the system names them; none if it has ended.
pub fn files(pid: i32) -> Vec<String> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd"));
    let links = entries
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| fs::read_link(entry.path()).ok());
    links.map(|link| link.display().to_string()).collect()
}

/// The environment with which the process was started.
pub fn environment(pid: i32) -> BTreeMap<String, String> {
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap();
    String::from_utf8(environment)
        .unwrap()
        .split_terminator('\0')
        .map(|entry| entry.split_once('=').unwrap())
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

/// The working directory of the process.
pub fn directory(pid: i32) -> PathBuf {
    fs::read_link(format!("/proc/{pid}/cwd")).unwrap()
}

/// The parent of the process.
pub fn parent(pid: i32) -> i32 {
    stat(pid).unwrap()[1].parse().unwrap()
}

/// The fields of `stat` after the name: state, parent, and so on.
fn stat(pid: i32) -> Option<Vec<String>> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(')')?;
    Some(rest.split_whitespace().map(str::to_owned).collect())
}

/// The number of open files of the process.
pub fn open_files(pid: i32) -> usize {
    fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count()
}

/// The number of zombie children of the process.
pub fn zombies(parent: i32) -> usize {
    let parent = parent.to_string();
    all()
        .filter_map(stat)
        .filter(|stat| stat.first().is_some_and(|state| state == "Z"))
        .filter(|stat| stat.get(1) == Some(&parent))
        .count()
}
