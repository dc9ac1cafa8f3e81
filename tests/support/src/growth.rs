//! Checks how the duration of some work grows with its amount.

use std::time::{Duration, Instant};

use crate::until;

/// Checks that `times` as much work takes about `times` as long, rather than the square of it. A busy machine
/// may disturb a measurement, so it is repeated if necessary.
#[track_caller]
pub fn assert_linear(what: &str, times: u32, mut small: impl FnMut(), mut large: impl FnMut()) {
    let time = |work: &mut dyn FnMut()| {
        let began = Instant::now();
        work();
        began.elapsed()
    };
    until(&format!("the time for {what} is linear"), || {
        let (small, large) = (time(&mut small), time(&mut large));
        large < small * times * 6 + Duration::from_millis(50)
    });
}
