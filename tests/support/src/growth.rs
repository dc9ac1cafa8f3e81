//! How the time that some work takes grows with the work.

use std::time::{Duration, Instant};

use crate::until;

/// Checks that so many `times` the work takes about that many times as long, and not the square of it. A busy machine
/// may disturb a measurement, which is repeated then, but not every one.
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
