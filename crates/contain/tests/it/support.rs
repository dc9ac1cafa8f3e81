//! What the tests share: a place to launch from, ways to behave, and a look at who is left.

use std::{
    fs,
    path::PathBuf,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use switchboard_contain::{
    Contained, Containment, Instance, Ladder, Launch, Step, become_subreaper,
};
use tempfile::TempDir;
use tokio::io::AsyncReadExt;

pub(crate) const FIXTURE: &str = env!("CARGO_BIN_EXE_switchboard-contain-fixture");

/// Short, so that tests are.
pub(crate) const LADDER: Ladder = Ladder {
    close: Duration::from_millis(300),
    term: Duration::from_millis(300),
};

/// One test's own instance, with its records and all that was told.
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
            .guard_program(FIXTURE)
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

    /// How a server in this mode is started: program and arguments.
    pub(crate) fn command(&self, mode: &str) -> (String, Vec<String>) {
        let tag = &self.tag;
        match mode {
            "wrapper" => (
                "sh".into(),
                vec!["-c".into(), format!("'{FIXTURE}' echo {tag}; true {tag}")],
            ),
            mode => (FIXTURE.into(), vec![mode.into(), tag.clone()]),
        }
    }

    pub(crate) fn server(&self, mode: &str) -> Launch {
        let (program, args) = self.command(mode);
        Launch::program(&self.tag, program)
            .args(args)
            .ladder(LADDER)
    }

    /// Launches a server, and waits until all of it is there.
    pub(crate) async fn launch(&self, mode: &str) -> Contained {
        let mut contained = self.containment.launch(&self.server(mode)).await.unwrap();
        let mut line = [0; 6];
        contained.stdout.read_exact(&mut line).await.unwrap();
        assert_eq!(&line, b"ready\n", "{mode}");
        contained
    }

    /// Everyone who carries this test's tag: servers, their children, and guards.
    pub(crate) fn people(&self) -> Vec<i32> {
        people(&self.tag)
    }

    /// The guards.
    pub(crate) fn guards(&self) -> Vec<i32> {
        self.people()
            .into_iter()
            .filter(|pid| is_guard(*pid))
            .collect()
    }

    /// Waits until nobody is left.
    pub(crate) fn assert_empty_within(&self, time: Duration, what: &str) {
        let until = Instant::now() + time;
        loop {
            let people = self.people();
            if people.is_empty() {
                return;
            }
            assert!(
                Instant::now() < until,
                "{what}: left after {time:?}: {:?}",
                people.iter().map(|pid| words(*pid)).collect::<Vec<_>>()
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub(crate) fn records(&self) -> usize {
        fs::read_dir(self.ledger()).unwrap().count()
    }
}

/// A test that fails leaves nobody either.
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

/// The arguments of a process. Empty when it has ended.
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

/// Field 22: when a process started.
pub(crate) fn started(pid: i32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let (_, rest) = stat.rsplit_once(')').unwrap();
    rest.split_whitespace().nth(19).unwrap().parse().unwrap()
}

pub(crate) fn sigkill(pid: i32) {
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
}
