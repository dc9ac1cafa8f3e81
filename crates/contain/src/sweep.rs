//! Cleanup at the start of a gateway: ends the servers that an earlier gateway left behind when it and a
//! guard were killed.

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

/// Searches the records of servers, and ends the servers that have no guard.
///
/// Run it once when a gateway starts, while no other gateway runs as the same instance. Servers that this
/// gateway launches meanwhile are left alone. It blocks, for several seconds in the worst case.
///
/// A living guard is left alone. A living guard of this instance has lost its gateway and is ending its
/// server, so the sweep waits for it briefly. Records of another boot and invalid records are removed, and
/// the processes that they name are left alone.
#[derive(Clone, Debug)]
pub struct Sweep {
    records: PathBuf,
    instance: Instance,
    engines: Vec<Engine>,
    /// Engines of servers that are no longer to run, by server name.
    retired: Vec<(String, Engine)>,
    patience: Duration,
}

/// The outcome of a sweep.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SweepReport {
    /// The servers that were left behind.
    pub swept: Vec<Swept>,
    /// The names of servers whose guards are alive.
    pub guarded: Vec<String>,
    /// The number of records of another boot that were removed.
    pub stale: usize,
    /// The number of invalid files that were removed.
    pub damaged: usize,
    /// The containers of this instance that were removed.
    pub containers: Vec<String>,
    /// The containers of this instance that could not be removed.
    pub containers_left: Vec<String>,
    /// The engines that did not respond, so that their containers are unknown.
    pub silent_engines: Vec<String>,
}

/// A server that was left behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Swept {
    /// Its name.
    pub name: String,
    /// The number of its processes that were ended.
    pub ended: usize,
    /// The number that could not be ended, because they hang in the kernel. The record is kept.
    pub left: usize,
}

impl Sweep {
    /// Sweeps the records in the directory `records`, on behalf of this instance.
    pub fn new(records: impl Into<PathBuf>, instance: Instance) -> Self {
        Self {
            records: records.into(),
            instance,
            engines: Vec::new(),
            retired: Vec::new(),
            patience: Duration::from_secs(3),
        }
    }

    /// Also removes this instance's containers on this engine.
    #[must_use]
    pub fn engine(mut self, engine: Engine) -> Self {
        if !self.engines.contains(&engine) {
            self.engines.push(engine);
        }
        self
    }

    /// Does the same for the engine of a server that is no longer to run. The engine is queried only if there
    /// is a record of a container of that server.
    #[must_use]
    pub fn engine_of(mut self, server: impl Into<String>, engine: Engine) -> Self {
        self.retired.push((server.into(), engine));
        self
    }

    /// Sets the time to wait for guards of this instance that are still working, and for the processes of
    /// each server to die. 3 s by default.
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Runs the sweep.
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
        // Containers first, while the engine's own processes are alive: they clean up best.
        for engine in engines {
            self.end_containers(engine, &boot, &mut report);
        }
        report.swept = lost
            .into_iter()
            .filter_map(|record| self.end(record))
            .collect();
        Ok(report)
    }

    /// The engines to query, without duplicates.
    fn engines_for(&self, records: &[Record]) -> Vec<&Engine> {
        let has_record = |server: &str| {
            let mut records = records.iter();
            records.any(|record| {
                // A name has no slash; one with a number is that of one of several processes.
                record.name.split('/').next() == Some(server)
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

    /// Ends the remaining processes of a server. `None` if there were none, because its guard has just
    /// finished.
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

    /// Tests if a guard is responsible for the container of this name. A record is written before its
    /// container is created, so this also covers containers that were launched after the records were read.
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

    /// Ends the containers of this instance. They are found by their label, which names the instance and is
    /// unambiguous.
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

/// Time for an engine to list its containers.
const ENGINE_LIST: Duration = Duration::from_secs(10);
