//! At the start of a gateway: ending what an earlier one left behind, when it and a guard were killed.

use std::{
    fs, io,
    path::PathBuf,
    time::{Duration, Instant},
};

use crate::{
    container::{Engine, INSTANCE_LABEL, Named},
    engine,
    instance::{Instance, Token},
    orphans::Orphans,
    process::Held,
    records::{self, Record},
};

/// Looks through the records of servers, and ends those that nobody guards.
///
/// To be run once when a gateway starts, with no other gateway running as the same instance. What
/// this one launches meanwhile is left alone. It blocks, for some seconds at worst.
///
/// A guard that lives is left alone. One of this instance has lost its gateway and is at work: it is given a
/// moment. Records of another boot, and what is no record, are removed, and nothing is done to
/// any process they name.
#[derive(Clone, Debug)]
pub struct Sweep {
    records: PathBuf,
    instance: Instance,
    engines: Vec<Engine>,
    /// Engines of servers that are not to run, by their names.
    retired: Vec<(String, Engine)>,
    patience: Duration,
}

/// What a sweep found and did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SweepReport {
    /// The servers that were left behind.
    pub swept: Vec<Swept>,
    /// The names of servers whose guards live.
    pub guarded: Vec<String>,
    /// How many records of another boot were removed.
    pub stale: usize,
    /// How many files were no records and were removed.
    pub damaged: usize,
    /// The containers of this instance that were removed.
    pub containers: Vec<String>,
    /// The containers of this instance that could not be removed.
    pub containers_left: Vec<String>,
    /// The engines that did not answer, so that nobody knows what they run.
    pub silent_engines: Vec<String>,
}

/// A server that was left behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Swept {
    /// Its name.
    pub name: String,
    /// How many of its processes were ended.
    pub ended: usize,
    /// How many could not be, because they hang in the system. Its record is kept.
    pub left: usize,
}

impl Sweep {
    /// Of the records in the directory `records`, by this instance.
    pub fn new(records: impl Into<PathBuf>, instance: Instance) -> Self {
        Self {
            records: records.into(),
            instance,
            engines: Vec::new(),
            retired: Vec::new(),
            patience: Duration::from_secs(3),
        }
    }

    /// Removes this instance's containers too, as far as this engine has them.
    #[must_use]
    pub fn engine(mut self, engine: Engine) -> Self {
        if !self.engines.contains(&engine) {
            self.engines.push(engine);
        }
        self
    }

    /// The same for the engine of a server that is not to run any more: it is asked only if there is a record of a
    /// container of that server.
    #[must_use]
    pub fn engine_of(mut self, server: impl Into<String>, engine: Engine) -> Self {
        self.retired.push((server.into(), engine));
        self
    }

    /// How long to wait for guards of this instance that are at work, and for the processes of each server to die. 3 s by
    /// default.
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Does it.
    pub fn run(&self) -> io::Result<SweepReport> {
        let mut report = SweepReport::default();
        let boot = records::boot()?;
        let found = records::read(&self.records)?;
        for file in &found.damaged {
            let _ = fs::remove_file(file);
        }
        report.damaged = found.damaged.len();
        let engines = self.engines_for(&found.records);
        let (current, stale): (Vec<_>, Vec<_>) = found
            .records
            .into_iter()
            .partition(|record| record.boot == boot);
        for record in &stale {
            records::remove(&self.records, &record.marker.token);
        }
        report.stale = stale.len();

        let until = Instant::now() + self.patience;
        let (guarded, lost): (Vec<_>, Vec<_>) = current
            .into_iter()
            .partition(|record| self.is_guarded(record, until));
        report.guarded = guarded.into_iter().map(|record| record.name).collect();
        // First, while the engine's own processes live: they know best how to clean up.
        for engine in engines {
            self.end_containers(engine, &boot, &mut report);
        }
        report.swept = lost
            .into_iter()
            .filter_map(|record| self.end(record))
            .collect();
        Ok(report)
    }

    /// The engines to be asked, each once.
    fn engines_for(&self, records: &[Record]) -> Vec<&Engine> {
        let has_record = |server: &str| {
            let mut records = records.iter();
            records.any(|record| {
                record.name == server
                    && record.container.is_some()
                    && record.marker.instance == self.instance
            })
        };
        let mut engines: Vec<_> = self.engines.iter().collect();
        for (server, engine) in &self.retired {
            if has_record(server) && !engines.contains(&engine) {
                engines.push(engine);
            }
        }
        engines
    }

    fn is_guarded(&self, record: &Record, until: Instant) -> bool {
        let Some(guard) = Held::take(record.guard) else {
            return false;
        };
        if record.marker.instance != self.instance {
            return true;
        }
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if guard.wait(left) {
                return false;
            }
            if left.is_zero() {
                return true;
            }
        }
    }

    /// Ends what is left of a server. None if its guard has just seen to that.
    fn end(&self, record: Record) -> Option<Swept> {
        let orphans = Orphans {
            marker: record.marker,
            guard: record.guard,
            leader: record.leader,
            container: record.container,
        };
        let outcome = orphans.end(None, self.patience);
        if outcome.left == 0 {
            records::remove(&self.records, &orphans.marker.token);
        }
        (outcome.ended + outcome.left > 0).then_some(Swept {
            name: record.name,
            ended: outcome.ended,
            left: outcome.left,
        })
    }

    /// Whether a guard looks after the container of this name. A record is there before its container
    /// is, so that this is known even of one that was launched since the records were read.
    fn has_guard(&self, container: &str, boot: &str) -> bool {
        let token = container.rsplit('-').next().and_then(Token::parse);
        token
            .and_then(|token| records::find(&self.records, &token))
            .is_some_and(|record| {
                record.boot == boot
                    && record.container.as_deref() == Some(container)
                    && Held::take(record.guard).is_some()
            })
    }

    /// Containers are found by their label, which names the instance and cannot be mistaken for another's.
    fn end_containers(&self, engine: &Engine, boot: &str, report: &mut SweepReport) {
        let filter = format!("label={INSTANCE_LABEL}={}", self.instance);
        let list = engine.run(&["ps", "-a", "--filter", &filter, "--format", "{{.Names}}"]);
        let Some(listing) = engine::run(list, ENGINE_LIST) else {
            report.silent_engines.push(engine.name().to_owned());
            return;
        };
        let ours = format!("switchboard-{}-", self.instance);
        for name in listing.lines().map(str::trim) {
            if !name.starts_with(&ours) || self.has_guard(name, boot) {
                continue;
            }
            let container = Named {
                engine: engine.clone(),
                name: name.to_owned(),
            };
            if engine::end_container(&container) {
                report.containers.push(container.name);
            } else {
                report.containers_left.push(container.name);
            }
        }
    }
}

/// How long an engine may take to list its containers.
const ENGINE_LIST: Duration = Duration::from_secs(10);
