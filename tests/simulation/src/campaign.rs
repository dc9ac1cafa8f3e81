//! Runs many schedules on several threads, and finds the first that fails.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    thread,
};

use crate::{
    coverage::Coverage,
    generate,
    invariant::{Broken, Invariant},
    schedule::Schedule,
    shrink::{Shrunk, shrink},
    subject::Subject,
    world::{Summary, run},
};

/// The schedules of a range of seeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Campaign {
    /// The first seed.
    pub first_seed: u64,
    /// Number of schedules.
    pub schedules: u64,
    /// Number of threads.
    pub threads: usize,
}

/// The progress of a campaign, for display.
#[derive(Debug, Default)]
pub struct Progress(AtomicU64);

impl Progress {
    /// The number of schedules played so far.
    pub fn schedules(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// The outcome of a campaign.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Number of schedules played.
    pub schedules: u64,
    /// Sum of their summaries.
    pub totals: Summary,
    /// Sum of their coverage.
    pub coverage: Coverage,
    /// The failure with the lowest seed.
    pub failure: Option<Failure>,
}

/// A schedule that fails.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The schedule as generated from its seed.
    pub schedule: Schedule,
    /// The same, shrunk to the steps that matter.
    pub shrunk: Shrunk,
}

/// Number of schedules that a thread takes at a time.
const SHARE: u64 = 256;

impl Campaign {
    /// Plays all schedules, or all up to the first that fails.
    pub fn run<S: Subject>(&self, progress: &Progress) -> Outcome {
        let (next, failed) = (AtomicU64::new(0), AtomicU64::new(u64::MAX));
        let worker = || self.work::<S>(&next, &failed, progress);
        let parts: Vec<Outcome> = thread::scope(|scope| {
            let threads: Vec<_> = (0..self.threads.max(1))
                .map(|_| scope.spawn(worker))
                .collect();
            threads
                .into_iter()
                .filter_map(|thread| thread.join().ok())
                .collect()
        });
        let mut outcome = Outcome::default();
        for part in parts {
            outcome.schedules += part.schedules;
            outcome.totals.add(&part.totals);
            outcome.coverage.add(&part.coverage);
        }
        let failed = failed.into_inner();
        if failed != u64::MAX {
            let schedule = generate::schedule(self.first_seed.wrapping_add(failed));
            let shrunk = shrink::<S>(&schedule).unwrap_or_else(|| passed_again(&schedule));
            outcome.failure = Some(Failure { schedule, shrunk });
        }
        outcome
    }

    fn work<S: Subject>(
        &self,
        next: &AtomicU64,
        failed: &AtomicU64,
        progress: &Progress,
    ) -> Outcome {
        let mut outcome = Outcome::default();
        loop {
            let start = next.fetch_add(SHARE, Relaxed);
            // A schedule after a known failure cannot be the first failure.
            if start >= self.schedules || start > failed.load(Relaxed) {
                return outcome;
            }
            let end = (start + SHARE).min(self.schedules);
            for offset in start..end {
                let schedule = generate::schedule(self.first_seed.wrapping_add(offset));
                outcome.schedules += 1;
                let Ok(summary) = try_run::<S>(&schedule, &mut outcome.coverage) else {
                    failed.fetch_min(offset, Relaxed);
                    break;
                };
                outcome.totals.add(&summary);
            }
            progress.0.fetch_add(end - start, Relaxed);
        }
    }
}

impl Summary {
    fn add(&mut self, other: &Self) {
        self.steps += other.steps;
        self.events += other.events;
        self.actions += other.actions;
        self.calls += other.calls;
        self.answered += other.answered;
        self.ready += other.ready;
    }
}

/// Plays a schedule. A panic counts as a broken invariant.
pub fn try_run<S: Subject>(
    schedule: &Schedule,
    coverage: &mut Coverage,
) -> Result<Summary, Broken> {
    // State that a panic leaves inconsistent is dropped, except for counts of events.
    catch_unwind(AssertUnwindSafe(|| run::<S>(schedule, coverage))).unwrap_or_else(|panic| {
        Err(Broken {
            invariant: Invariant::Panic,
            step_index: schedule.steps.len(),
            detail: message(panic.as_ref()).to_owned(),
        })
    })
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("a panic without words")
}

/// The result for a schedule that failed once and then passed: it depends on more than the schedule.
fn passed_again(schedule: &Schedule) -> Shrunk {
    Shrunk {
        schedule: schedule.clone(),
        broken: Broken {
            invariant: Invariant::Determinism,
            step_index: schedule.steps.len(),
            detail: "it failed once, and not when it was played again".to_owned(),
        },
        tried: 1,
    }
}
