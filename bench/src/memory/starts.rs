//! The time from the start of the program to its list of tools, compared with `cat`, in every state of the
//! store: full, locked by another process, damaged; and the program's error messages in each.

use std::{
    fs::{self, OpenOptions},
    os::unix::fs::FileExt,
    path::PathBuf,
    process::Command,
    thread,
    time::{Duration, Instant},
};

use rusqlite::Connection;
use serde_json::{Value, json};
use switchboard_wire::Era;

use super::{
    Plan,
    client::{Client, Times},
    fill::Home,
};
use crate::{Result, gateway::launch};

/// Longer than any response takes.
const PATIENCE: Duration = Duration::from_mins(2);
/// The size of a page of the file.
const PAGE: u64 = 4096;

/// The state of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Situation {
    Empty,
    Full,
    Locked,
    Header,
    Page,
}

const SITUATIONS: [(Situation, &str); 5] = [
    (Situation::Empty, "no store"),
    (Situation::Full, "full store"),
    (Situation::Locked, "locked store"),
    (Situation::Header, "damaged store: garbage at its beginning"),
    (Situation::Page, "damaged store: zeros in its middle"),
];

/// Durations of starts and exits.
pub(super) struct Started {
    pub(super) name: &'static str,
    pub(super) times: Times,
    pub(super) leaving: Times,
}

/// The program's messages about a store that does not work.
pub(super) struct Said {
    pub(super) name: &'static str,
    pub(super) status: String,
    pub(super) legacy: String,
    pub(super) modern: String,
    /// All messages are as expected.
    pub(super) is_right: bool,
    /// Seconds from the end of the failure to the first call that succeeds, if the store recovers by itself.
    pub(super) recovered: Option<f64>,
}

/// One home for each situation. A damaged file is kept aside, to restore the damage before the next start.
struct Stage {
    situation: Situation,
    home: Home,
    /// The damaged file.
    kept: Option<PathBuf>,
    /// The connection that holds the lock.
    lock: Option<Connection>,
}

impl Stage {
    fn set(plan: &Plan<'_>, full: &Home, situation: Situation) -> Result<Self> {
        let home = match situation {
            Situation::Empty => Home::new(plan.model)?,
            _ => full.copy(plan.model)?,
        };
        let mut stage = Self {
            situation,
            kept: None,
            lock: None,
            home,
        };
        match situation {
            Situation::Empty | Situation::Full => {}
            Situation::Locked => stage.lock = Some(lock(&stage.home)?),
            Situation::Header | Situation::Page => {
                let kept = stage.home.path().join("damaged-for-the-next-start");
                fs::rename(stage.home.database(), &kept)?;
                let file = OpenOptions::new().write(true).open(&kept)?;
                if situation == Situation::Header {
                    file.write_all_at(&[0xa5; 100], 0)?;
                } else {
                    let nothing = [0; 4096];
                    let pages = file.metadata()?.len() / PAGE;
                    file.write_all_at(&nothing, pages / 2 * PAGE)?;
                }
                stage.kept = Some(kept);
            }
        }
        stage.again()?;
        Ok(stage)
    }

    /// Restores the situation before a start.
    fn again(&self) -> Result<()> {
        if self.kept.is_none() && self.situation != Situation::Empty {
            return Ok(());
        }
        for entry in fs::read_dir(self.home.path())? {
            let entry = entry?;
            if entry
                .file_name()
                .to_string_lossy()
                .starts_with("switchboard.db")
            {
                fs::remove_file(entry.path())?;
            }
        }
        if let Some(kept) = &self.kept {
            // A hard link: the file stays damaged regardless of what the program writes into it.
            fs::hard_link(kept, self.home.database())?;
        }
        Ok(())
    }
}

/// Takes an exclusive lock on a store, so that other processes cannot even read it.
fn lock(home: &Home) -> Result<Connection> {
    let connection = Connection::open(home.database())?;
    connection.execute_batch("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE;")?;
    Ok(connection)
}

/// Starts the program in every situation, and `cat`, in turns.
pub(super) fn race(plan: &Plan<'_>, full: &Home) -> Result<(Times, Vec<Started>, Vec<Said>)> {
    let mut stages = Vec::new();
    let mut started = Vec::new();
    for (situation, name) in SITUATIONS {
        stages.push(Stage::set(plan, full, situation)?);
        started.push(Started {
            name,
            times: Times::default(),
            leaving: Times::default(),
        });
    }
    let mut cats = Times::default();
    for _ in 0..plan.starts {
        let [took, _, cpu] = launch(Command::new("/bin/cat"), false)?;
        cats.add(took);
        cats.add_cpu(cpu);
        for (stage, started) in stages.iter().zip(&mut started) {
            stage.again()?;
            let [took, leaving, cpu] = launch(stage.home.serve(plan.switchboard), true)?;
            started.times.add(took);
            started.times.add_cpu(cpu);
            started.leaving.add(leaving);
        }
    }
    let mut said = Vec::new();
    for (stage, (situation, name)) in stages.into_iter().zip(SITUATIONS) {
        if !matches!(situation, Situation::Empty | Situation::Full) {
            said.push(hear(plan, stage, name)?);
        }
    }
    Ok((cats, started, said))
}

/// Collects the program's messages about a store that does not work.
fn hear(plan: &Plan<'_>, mut stage: Stage, name: &'static str) -> Result<Said> {
    stage.again()?;
    let open = |era| Client::open(stage.home.serve(plan.switchboard), era, PATIENCE);
    let mut legacy = open(Era::Legacy)?;
    let begin = Instant::now();
    // Damage in the middle is noticed when that part is read.
    let status = loop {
        let (status, _) = legacy.call("get_status", json!({}))?;
        if status["status"] == "error" || begin.elapsed() > PATIENCE / 4 {
            break status;
        }
        thread::sleep(Duration::from_millis(10));
    };
    let store = status["parts"]["store"].clone();
    let (answer, _) = legacy.try_call("list_memories", json!({}))?;
    let error = answer["error"].clone();
    let mut recovered = None;
    let mut modern = open(Era::Modern)?;
    let (result, _) = modern.try_call("list_memories", json!({}))?;
    let result = result["result"].clone();
    if stage.lock.take().is_some() {
        let begin = Instant::now();
        while legacy.call("list_memories", json!({})).is_err() {
            if begin.elapsed() > PATIENCE / 4 {
                return Err("calls still fail after the lock is gone".into());
            }
            thread::sleep(Duration::from_millis(20));
        }
        recovered = Some(begin.elapsed().as_secs_f64());
    }
    modern.leave()?;
    legacy.leave()?;
    let text = result["content"][0]["text"].as_str().unwrap_or_default();
    let names_repair = |text: &str| match stage.situation {
        Situation::Locked => text.contains("lock"),
        _ => text.contains("switchboard memory repair"),
    };
    let is_right = store["state"] == "error"
        && names_repair(&store.to_string())
        && error["code"] == -32003
        && names_repair(&error.to_string())
        && result["isError"] == true
        && names_repair(text);
    let of = |value: &Value, member: &str| value[member].as_str().unwrap_or("-").to_owned();
    Ok(Said {
        name,
        status: format!(
            "{}: {}; {}",
            of(&store, "state"),
            of(&store, "message"),
            of(&store, "action")
        ),
        legacy: format!("{} {}", error["code"], of(&error, "message")),
        modern: format!("isError {}: {text}", result["isError"]),
        is_right,
        recovered,
    })
}
