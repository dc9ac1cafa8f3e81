//! Sweeps of old records: leftovers are ended, and other processes are left alone.

use std::{
    fs,
    os::unix::process::CommandExt,
    process::{Child, Command, Stdio},
    time::Duration,
};

use rustix::fs::{CWD, Mode, mkfifoat};
use serde_json::{Value, json};
use switchboard_contain::{Engine, Sweep, SweepReport};

use super::support::{Place, started};

/// An unrelated process.
struct Innocent(Child);

impl Innocent {
    fn new() -> Self {
        let child = Command::new("sleep")
            .arg("1000")
            .stdin(Stdio::null())
            .process_group(0)
            .spawn()
            .unwrap();
        Self(child)
    }

    fn pid(&self) -> i32 {
        i32::try_from(self.0.id()).unwrap()
    }

    fn lives(&mut self) -> bool {
        matches!(self.0.try_wait(), Ok(None))
    }
}

impl Drop for Innocent {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn boot() -> String {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let pids = fs::read_link("/proc/self/ns/pid").unwrap();
    format!("{} {}", boot.trim(), pids.display())
}

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// A PID that no process has: it is above the maximum.
const NOBODY: i32 = 1 << 30;

fn record(place: &Place, leader: (i32, u64)) -> Value {
    json!({
        "version": 1,
        "name": "files",
        "marker": format!("{}:{TOKEN}", place.tag),
        "boot": boot(),
        "guard": {"pid": NOBODY, "started": 1},
        "leader": {"pid": leader.0, "started": leader.1},
        "container": null,
    })
}

fn write(place: &Place, record: &Value) {
    let file = place.ledger().join(format!("{TOKEN}.json"));
    fs::write(file, record.to_string()).unwrap();
}

fn sweep(place: &Place) -> SweepReport {
    Sweep::new(place.ledger(), place.instance()).run().unwrap()
}

#[test]
fn engine_of_a_retired_server_needs_a_record() {
    let place = Place::new();
    let (script, told) = (place.path("engine"), place.path("told"));
    fs::write(&script, format!("echo \"$1\" >> '{}'", told.display())).unwrap();
    let run = || {
        let engine = Engine::new("sh", [script.to_str().unwrap()]);
        let sweep = Sweep::new(place.ledger(), place.instance());
        sweep.engine_of("files", engine).run().unwrap();
        fs::read_to_string(&told).unwrap_or_default()
    };
    assert_eq!(run(), "");
    let mut left = record(&place, (NOBODY, 1));
    write(&place, &left);
    assert_eq!(run(), "", "it was no container");
    let container = format!("switchboard-{}-files-{TOKEN}", place.tag);
    left["container"] = container.as_str().into();
    left["name"] = "others".into();
    write(&place, &left);
    assert_eq!(run(), "", "it was another server's");
    left["name"] = "files".into();
    write(&place, &left);
    assert_eq!(run(), "ps\n");
}

#[test]
fn reused_pid_is_never_signalled() {
    let place = Place::new();
    let mut innocent = Innocent::new();
    let pid = innocent.pid();
    for began in [started(pid) - 1, started(pid) + 1, 0, u64::MAX] {
        write(&place, &record(&place, (pid, began)));
        assert_eq!(sweep(&place), SweepReport::default());
        assert!(innocent.lives());
        assert_eq!(place.records(), 0);
    }
    // The same record with the right start time: only the time kept the process alive.
    write(&place, &record(&place, (pid, started(pid))));
    let report = sweep(&place);
    assert_eq!(report.swept[0].ended, 1);
    assert!(!innocent.lives());
    assert_eq!(place.records(), 0);
}

#[test]
fn group_of_another_session_is_left_alone() {
    let place = Place::new();
    let mut innocent = Innocent::new();
    // The process leads a group of that ID, but the leader and the session of the record are long
    // gone.
    let mut record = record(&place, (innocent.pid(), 1));
    record["guard"]["pid"] = NOBODY.into();
    write(&place, &record);
    sweep(&place);
    assert!(innocent.lives());
}

#[test]
fn records_of_another_boot_are_removed() {
    let place = Place::new();
    let mut innocent = Innocent::new();
    let mut record = record(&place, (innocent.pid(), started(innocent.pid())));
    record["boot"] = "00000000-0000-0000-0000-000000000000 pid:[1]".into();
    write(&place, &record);
    let report = sweep(&place);
    assert_eq!(report.stale, 1);
    assert!(report.swept.is_empty());
    assert!(innocent.lives());
    assert_eq!(place.records(), 0);
}

#[test]
fn invalid_record_signals_no_process() {
    let place = Place::new();
    let mut innocent = Innocent::new();
    let good = record(&place, (innocent.pid(), started(innocent.pid())));
    let broken = |change: &dyn Fn(&mut Value)| {
        let mut record = good.clone();
        change(&mut record);
        record.to_string()
    };
    let hostile = [
        broken(&|record| record["leader"]["pid"] = (-1).into()),
        broken(&|record| record["leader"]["pid"] = 0.into()),
        broken(&|record| record["guard"]["pid"] = 1.into()),
        broken(&|record| record["leader"]["pid"] = 99_999_999_999_i64.into()),
        broken(&|record| record["marker"] = "main:short".into()),
        broken(&|record| record["marker"] = format!("../..:{TOKEN}").into()),
        broken(&|record| record["version"] = 2.into()),
        broken(&|record| record["container"] = format!("switchboard-other-files-{TOKEN}").into()),
        broken(&|record| record["engine"] = json!(["rm", "-rf"])),
        good.to_string()[..40].to_owned(),
        "null".to_owned(),
        String::new(),
    ];
    for text in hostile {
        fs::write(place.ledger().join(format!("{TOKEN}.json")), &text).unwrap();
        let report = sweep(&place);
        assert_eq!(report.damaged, 1, "{text}");
        assert!(report.swept.is_empty(), "{text}");
        assert!(innocent.lives(), "{text}");
        assert_eq!(place.records(), 0, "{text}");
    }
    // A pipe, which would block a reader forever.
    let pipe = place.ledger().join("pipe.json");
    mkfifoat(CWD, &pipe, Mode::RWXU).unwrap();
    assert_eq!(sweep(&place).damaged, 1);
    assert!(!pipe.exists());
    // Unrelated files are left alone.
    let letter = place.ledger().join("letter.txt");
    fs::write(&letter, "dear").unwrap();
    assert_eq!(sweep(&place), SweepReport::default());
    assert!(letter.exists());
}

#[test]
fn missing_directory_of_records_is_fine() {
    let place = Place::new();
    fs::remove_dir(place.ledger()).unwrap();
    assert_eq!(sweep(&place), SweepReport::default());
}

#[tokio::test]
async fn living_guard_is_left_alone() {
    let place = Place::new();
    let other = Place::new();
    let contained = place.launch("echo").await;
    let (ledger, instance) = (place.ledger(), other.instance());
    // Seen by another instance that shares the records.
    let report = Sweep::new(&ledger, instance).run().unwrap();
    assert_eq!(report.guarded, [place.tag.as_str()]);
    // Seen by the same instance, which waits for it, but not forever.
    let report = Sweep::new(&ledger, place.instance())
        .patience(Duration::from_millis(50))
        .run()
        .unwrap();
    assert_eq!(report.guarded, [place.tag.as_str()]);
    assert!(report.swept.is_empty());
    assert_eq!(place.records(), 1);
    assert_eq!(place.people().len(), 2);
    drop(contained);
}
