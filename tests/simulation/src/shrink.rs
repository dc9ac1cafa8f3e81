//! Shrinks a failing schedule to the few steps that matter.

use crate::{
    campaign::try_run,
    coverage::Coverage,
    invariant::{Broken, Invariant},
    schedule::{Schedule, Setup},
    step::{Shape, Step},
    subject::Subject,
};

/// A failing schedule, shrunk as far as possible.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shrunk {
    /// The schedule.
    pub schedule: Schedule,
    /// Its failure, of the same invariant as before.
    pub broken: Broken,
    /// Number of schedules tried.
    pub tried: u32,
}

/// More attempts than a schedule of the usual length needs.
const TRIES_MAX: u32 = 50_000;

/// Shrinks a failing schedule while it violates the same invariant. Returns `None` if it does not fail.
pub fn shrink<S: Subject>(schedule: &Schedule) -> Option<Shrunk> {
    let broken = try_run::<S>(schedule, &mut Coverage::default()).err()?;
    let mut search = Search {
        invariant: broken.invariant,
        best: schedule.clone(),
        broken,
        tried: 0,
    };
    search.cut();
    loop {
        let mut smaller = search.remove_steps::<S>();
        smaller |= search.simplify_setup::<S>();
        smaller |= search.simplify_steps::<S>();
        if !smaller {
            return Some(Shrunk {
                schedule: search.best,
                broken: search.broken,
                tried: search.tried,
            });
        }
    }
}

struct Search {
    invariant: Invariant,
    best: Schedule,
    broken: Broken,
    tried: u32,
}

impl Search {
    /// Accepts the candidate if it fails in the same way.
    fn accept<S: Subject>(&mut self, candidate: Schedule) -> bool {
        if self.tried >= TRIES_MAX {
            return false;
        }
        self.tried += 1;
        match try_run::<S>(&candidate, &mut Coverage::default()) {
            Err(broken) if broken.invariant == self.invariant => {
                self.best = candidate;
                self.broken = broken;
                self.cut();
                true
            }
            _ => false,
        }
    }

    /// Removes the steps after the failure.
    fn cut(&mut self) {
        self.best.steps.truncate(self.broken.step_index + 1);
    }

    /// Delta debugging: removes ever smaller runs of steps.
    fn remove_steps<S: Subject>(&mut self) -> bool {
        let before = self.best.steps.len();
        let mut size = before.div_ceil(2);
        while size > 0 {
            let mut at = 0;
            while at < self.best.steps.len() {
                let end = (at + size).min(self.best.steps.len());
                let mut candidate = self.best.clone();
                candidate.steps.drain(at..end);
                if !self.accept::<S>(candidate) {
                    at += size;
                }
            }
            size /= 2;
        }
        self.best.steps.len() < before
    }

    fn simplify_setup<S: Subject>(&mut self) -> bool {
        let mut smaller = false;
        for simpler in [
            |setup: &mut Setup| setup.newest = Setup::PLAIN.newest,
            |setup: &mut Setup| setup.era = Setup::PLAIN.era,
            |setup: &mut Setup| setup.tight = false,
            |setup: &mut Setup| setup.quick = false,
            |setup: &mut Setup| setup.late_results = false,
            |setup: &mut Setup| setup.settle = false,
        ] {
            let mut candidate = self.best.clone();
            simpler(&mut candidate.setup);
            smaller |= candidate != self.best && self.accept::<S>(candidate);
        }
        smaller
    }

    fn simplify_steps<S: Subject>(&mut self) -> bool {
        let mut smaller = false;
        let mut at = 0;
        while let Some(step) = self.best.steps.get(at).copied() {
            let found = simpler(step).into_iter().any(|simpler| {
                let mut candidate = self.best.clone();
                candidate.steps[at] = simpler;
                self.accept::<S>(candidate)
            });
            smaller |= found;
            // A step that was simplified may be simplified further.
            at += usize::from(!found);
        }
        smaller
    }
}

/// Simpler steps in place of this one, the simplest first. A step is never among its own.
fn simpler(step: Step) -> Vec<Step> {
    let fewer = |count: u8, make: fn(u8) -> Step| (1..count).map(make).collect();
    let first =
        |which: u8, make: fn(u8) -> Step| if which > 0 { vec![make(0)] } else { Vec::new() };
    match step {
        Step::Wait(ms) => shorter(ms).map(Step::Wait).collect(),
        Step::Doze(ms) => std::iter::once(Step::Wait(ms))
            .chain(shorter(ms).map(Step::Doze))
            .collect(),
        Step::Busy(count) => fewer(count, Step::Busy),
        Step::Shut(count) => fewer(count, Step::Shut),
        Step::Batch(count) => fewer(count, Step::Batch),
        Step::Stale(back) => fewer(back, Step::Stale),
        Step::Answer(which) => first(which, Step::Answer),
        Step::Error(which) => vec![Step::Answer(which)],
        Step::Again(which) => first(which, Step::Again),
        Step::Guess(which) => first(which, Step::Guess),
        Step::Ping(which) => first(which, Step::Ping),
        Step::Ask(which) => first(which, Step::Ask),
        Step::Via(which) => first(which, Step::Via),
        Step::Progress(which) => first(which, Step::Progress),
        Step::WithdrawOwn(which) => first(which, Step::WithdrawOwn),
        Step::WithdrawCall(which) => first(which, Step::WithdrawCall),
        Step::Gone(which) => first(which, Step::Gone),
        Step::Cancel(which) => first(which, Step::Cancel),
        Step::Reply(which) => first(which, Step::Reply),
        Step::Refuse(which) => vec![Step::Reply(which)],
        Step::Welcome(which, how) if which > 0 => vec![Step::Welcome(0, how)],
        Step::Fail(which, status) => [(0, 0), (128, 0), (0, status), (128, status)]
            .into_iter()
            .filter(|(other, code)| (*other, *code) < (which, status))
            .map(|(which, status)| Step::Fail(which, status))
            .collect(),
        Step::Call(shape) => plainer(shape).into_iter().map(Step::Call).collect(),
        Step::Ring
        | Step::Up
        | Step::Down(_)
        | Step::Oversize
        | Step::Greet(_)
        | Step::Welcome(..)
        | Step::Stray(_)
        | Step::Garbage(_)
        | Step::News
        | Step::Log
        | Step::Restart
        | Step::Stop => Vec::new(),
    }
}

fn shorter(ms: u32) -> impl Iterator<Item = u32> {
    [1, 10, 100, 1_000, 10_000, ms / 2]
        .into_iter()
        .filter(move |less| *less < ms)
}

fn plainer(shape: Shape) -> Vec<Shape> {
    let plain = Shape::PLAIN;
    let candidates = [
        plain,
        Shape {
            extend: plain.extend,
            ..shape
        },
        Shape {
            notify: false,
            ..shape
        },
        Shape {
            progress: false,
            ..shape
        },
        Shape {
            logs: false,
            ..shape
        },
        Shape {
            fast: false,
            ..shape
        },
        Shape {
            array: false,
            ..shape
        },
        Shape { lane: 0, ..shape },
        Shape {
            timeout: plain.timeout,
            ..shape
        },
    ];
    candidates
        .into_iter()
        .filter(|candidate| *candidate != shape)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate;

    #[test]
    fn simplifying_a_step_terminates() {
        for seed in 0..500 {
            for step in generate::schedule(seed).steps {
                let (mut left, mut step) = (100, step);
                while let Some(next) = simpler(step).last().copied() {
                    assert_ne!(next, step);
                    step = next;
                    left -= 1;
                    assert!(left > 0, "{step} never gets simple");
                }
            }
        }
    }

    #[test]
    fn passing_schedule_is_not_shrunk() {
        assert_eq!(
            shrink::<switchboard_machine::Machine>(&generate::schedule(1)),
            None
        );
    }
}
