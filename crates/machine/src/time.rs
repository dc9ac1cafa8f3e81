//! Time as the machine sees it: handed in, never read.

use std::{
    ops::{Add, Sub},
    time::Duration,
};

/// A point in time, counted from wherever the driver began to count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Moment(Duration);

impl Moment {
    /// The point from which is counted.
    pub const START: Self = Self(Duration::ZERO);

    /// The point this long after the start.
    pub const fn after_start(elapsed: Duration) -> Self {
        Self(elapsed)
    }

    /// How long after the start this is.
    pub const fn since_start(self) -> Duration {
        self.0
    }
}

impl Add<Duration> for Moment {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(duration))
    }
}

impl Sub for Moment {
    type Output = Duration;

    /// How long this is after `earlier`; nothing, if it is not.
    fn sub(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}
