//! Time as the machine sees it: passed in by the driver, never read from a clock.

use std::{
    ops::{Add, Sub},
    time::Duration,
};

/// A point in time, measured from a start that the driver chooses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Moment(Duration);

impl Moment {
    /// The start, from which time is measured.
    pub const START: Self = Self(Duration::ZERO);

    /// The point in time at this duration after the start.
    pub const fn after_start(elapsed: Duration) -> Self {
        Self(elapsed)
    }

    /// Returns the time since the start.
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

    /// Returns the time since `earlier`; zero if `earlier` is later.
    fn sub(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}
