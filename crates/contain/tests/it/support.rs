//! Shared test helpers: an instance to launch from, server behaviours, and a check for remaining processes.

use std::{
    fs,
    path::PathBuf,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use switchboard_contain::{
    Contained, Containment, Instance, Ladder, Launch, Rung, Step, become_subreaper,
};
use switchboard_test_support::{FOREVER_MS, until};
use tempfile::TempDir;
use tokio::io::AsyncReadExt;

/// The fixture program: the guard, and servers.
pub(crate) fn fixture() -> &'static str {
    switchboard_test_support::fixture("contain_fixture")
}

/// Short, so that the tests are fast.
pub(crate) const LADDER: Ladder = Ladder {
    close: Duration::from_millis(300),
    term: Duration::from_millis(300),
};

/// A ladder that times out only on the rungs that have no effect, so that a server that is slow to exit is
/// not mistaken for one that does not.
pub(crate) fn ladder_to(rung: Rung) -> Ladder {
    match rung {
        Rung::Own | Rung::Close => PATIENT,
        Rung::Term => Ladder {
            close: LADDER.close,
            ..PATIENT
        },
        Rung::Kill => LADDER,
    }
}

/// A ladder that outlasts every test.
pub(crate) const PATIENT: Ladder = Ladder {
    close: Duration::from_millis(FOREVER_MS),
    term: Duration::from_millis(FOREVER_MS),
};

/// A test's own instance, with its records and reported steps.
pub(crate) struct Place {
    pub(crate) tag: String,
    dir: TempDir,
    pub(crate) steps: Arc<Mutex<Vec<Step>>>,
    pub(crate) containment: Containment,
}

impl Place {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        become_subreaper().unwrap();
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        let tag = format!("tag-{}-{next}-end", std::process::id());
        let dir = tempfile::tempdir().unwrap();
        let steps = Arc::new(Mutex::new(Vec::new()));
        let told = Arc::clone(&steps);
        let containment = Containment::new(dir.path().join("groups"), tag.parse().unwrap())
            .unwrap()
            .guard_program(fixture())
            .on_step(move |_, step| told.lock().unwrap().push(step.clone()));
        Self {
            tag,
            dir,
            steps,
            containment,
        }
    }

    pub(crate) fn instance(&self) -> Instance {
        self.tag.parse().unwrap()
    }

    pub(crate) fn ledger(&self) -> PathBuf {
        self.dir.path().join("groups")
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The program and arguments of a server in this mode.
    pub(crate) fn command(&self, mode: &str) -> (String, Vec<String>) {
        let tag = &self.tag;
        let program = fixture();
        match mode {
            "wrapper" => (
                "sh".into(),
                vec!["-c".into(), format!("'{program}' echo {tag}; true {tag}")],
            ),
            mode => (program.into(), vec![mode.into(), tag.clone()]),
        }
    }

    pub(crate) fn server(&self, mode: &str) -> Launch {
        let (program, args) = self.command(mode);
        Launch::program(&self.tag, program)
            .args(args)
            .ladder(LADDER)
    }

    /// Launches a server, and waits until all its processes run.
    pub(crate) async fn launch(&self, mode: &str) -> Contained {
        self.launch_with(mode, LADDER).await
    }

    /// Does the same, with a ladder for the drop of its handle.
    pub(crate) async fn launch_with(&self, mode: &str, ladder: Ladder) -> Contained {
        let server = self.server(mode).ladder(ladder);
        let mut contained = self.containment.launch(&server).await.unwrap();
        let mut line = [0; 6];
        contained.stdout.read_exact(&mut line).await.unwrap();
        assert_eq!(&line, b"ready\n", "{mode}");
        contained
    }

    /// All processes that carry this test's tag: servers, their children, and guards.
    pub(crate) fn people(&self) -> Vec<i32> {
        people(&self.tag)
    }

    pub(crate) fn guards(&self) -> Vec<i32> {
        self.people()
            .into_iter()
            .filter(|pid| is_guard(*pid))
            .collect()
    }

    /// Asserts that no process is left now.
    #[track_caller]
    pub(crate) fn assert_empty(&self, what: &str) {
        let left: Vec<_> = self.people().into_iter().map(words).collect();
        assert!(left.is_empty(), "{what}: left: {left:?}");
    }

    /// Waits until no process is left.
    #[track_caller]
    pub(crate) fn until_empty(&self, what: &str) {
        until(&format!("{what}: nobody is left"), || {
            self.people().is_empty()
        });
    }

    pub(crate) fn records(&self) -> usize {
        fs::read_dir(self.ledger()).unwrap().count()
    }
}

/// Kills all remaining processes if the test fails.
impl Drop for Place {
    fn drop(&mut self) {
        for pid in self
            .people()
            .into_iter()
            .filter(|_| std::thread::panicking())
        {
            sigkill(pid);
        }
    }
}

pub(crate) fn people(tag: &str) -> Vec<i32> {
    let own = i32::try_from(std::process::id()).unwrap();
    fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid| *pid != own)
        .filter(|pid| words(*pid).contains(tag) || environment(*pid).contains(tag))
        .collect()
}

/// The arguments of a process. Empty if it has exited.
pub(crate) fn words(pid: i32) -> String {
    read(format!("/proc/{pid}/cmdline"))
}

pub(crate) fn is_guard(pid: i32) -> bool {
    words(pid).starts_with("switchboard __guard")
}

fn environment(pid: i32) -> String {
    read(format!("/proc/{pid}/environ"))
}

fn read(path: String) -> String {
    let bytes = fs::read(path).unwrap_or_default();
    String::from_utf8_lossy(&bytes).replace('\0', " ")
}

/// Field 22: the start time of a process.
pub(crate) fn started(pid: i32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let (_, rest) = stat.rsplit_once(')').unwrap();
    rest.split_whitespace().nth(19).unwrap().parse().unwrap()
}

pub(crate) fn sigkill(pid: i32) {
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
}
