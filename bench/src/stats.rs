//! Measuring in turns, and statistics over many measurements.

use std::time::{Duration, Instant};

/// Durations or rates over many rounds: extremes and median.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Summary {
    pub(crate) min: f64,
    pub(crate) median: f64,
    pub(crate) max: f64,
}

impl Summary {
    /// Summarizes at least one value.
    pub(crate) fn of(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        Self {
            min: percentile(&values, 0),
            median: percentile(&values, 50),
            max: percentile(&values, 100),
        }
    }
}

/// A percentile of sorted values; 0 if there are none.
pub(crate) fn percentile<T: Copy + Default>(sorted: &[T], percent: usize) -> T {
    let last = sorted.len().saturating_sub(1);
    sorted
        .get(last * percent / 100)
        .copied()
        .unwrap_or_default()
}

/// An operation that can be repeated a number of times.
pub(crate) type Contender<'a> = Box<dyn FnMut(u32) + 'a>;

/// Measures the time of each contender, in nanoseconds per repetition.
///
/// The contenders take turns round by round, so that other activity on the machine affects all of them alike.
/// The first one changes every round, so that none always runs after the same other.
pub(crate) fn race(contenders: &mut [Contender<'_>], rounds: u32, turn: Duration) -> Vec<Summary> {
    let times: Vec<u32> = contenders
        .iter_mut()
        .map(|contender| calibrate(contender, turn))
        .collect();
    let mut nanos = vec![Vec::new(); contenders.len()];
    for round in 0..rounds as usize {
        for turn in 0..contenders.len() {
            let who = (round + turn) % contenders.len();
            let taken = clock(&mut contenders[who], times[who]);
            nanos[who].push(taken.as_secs_f64() * 1e9 / f64::from(times[who]));
        }
    }
    nanos.into_iter().map(Summary::of).collect()
}

/// The number of repetitions that fill a turn.
fn calibrate(contender: &mut Contender<'_>, turn: Duration) -> u32 {
    let mut times = 1;
    loop {
        if clock(contender, times) >= turn || times >= 1 << 24 {
            return times;
        }
        times *= 2;
    }
}

fn clock(contender: &mut Contender<'_>, times: u32) -> Duration {
    let start = Instant::now();
    contender(times);
    start.elapsed()
}
