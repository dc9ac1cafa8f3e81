//! Taking turns, and what many measurements of the same come to.

use std::time::{Duration, Instant};

/// How long one thing takes, or how often it is done: the best of many rounds, and the middle one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Summary {
    pub(crate) min: f64,
    pub(crate) median: f64,
    pub(crate) max: f64,
}

impl Summary {
    /// Of at least one value.
    pub(crate) fn of(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        Self {
            min: percentile(&values, 0),
            median: percentile(&values, 50),
            max: percentile(&values, 100),
        }
    }
}

/// The value that so many per cent are not above, of sorted values; 0 if there are none.
pub(crate) fn percentile<T: Copy + Default>(sorted: &[T], percent: usize) -> T {
    let last = sorted.len().saturating_sub(1);
    sorted
        .get(last * percent / 100)
        .copied()
        .unwrap_or_default()
}

/// Something that can be done so many times over.
pub(crate) type Contender<'a> = Box<dyn FnMut(u32) + 'a>;

/// Measures how long each contender takes, in nanoseconds a time.
///
/// They take turns round by round, so that whatever else the machine does meets all of them, and
/// who begins moves on, so that none always runs in the wake of the same other.
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

/// How many times over fill a turn.
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
