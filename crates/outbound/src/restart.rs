//! Decides when a failed server is restarted: a state machine without a clock.
//!
//! | state | wanted | up | failed | signed out | tick | restart |
//! |---|---|---|---|---|---|---|
//! | `Idle` | → `Starting` | – | – | – | – | → `Starting` |
//! | `Starting` | – | → `Up` | → `Waiting` or `Parked` | → `SignedOut` | – | – |
//! | `Up` | – | – | → `Waiting` or `Parked` | → `SignedOut` | – | – |
//! | `Waiting` | – | – | – | – | → `Idle` when due | → `Starting` |
//! | `Parked` | – | – | – | – | → `Idle` when due | → `Starting` |
//! | `SignedOut` | – | – | – | – | – | → `Starting` |
//!
//! The owner starts the server when it is `Idle` and wanted. The first failure of a healthy server costs
//! no wait. After that the waits double. When the failures in a row reach the budget, the server is
//! parked, so that it is never restarted in a tight loop. A minute of health resets all failures. A server that a user
//! has to sign in to is not retried: the owner resets it after the sign-in.

use std::time::{Duration, Instant};

use switchboard_base::health::Reason;

/// The parameters.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    /// The wait after the second failure in a row; it doubles with each one.
    pub(crate) first_wait: Duration,
    pub(crate) longest_wait: Duration,
    /// The number of failures in a row after which the server is parked.
    pub(crate) budget: u32,
    /// Time for which it is parked; it doubles each time.
    pub(crate) park: Duration,
    pub(crate) longest_park: Duration,
    /// Time up after which all failures are forgotten.
    pub(crate) forgiven_after: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            first_wait: Duration::from_secs(1),
            longest_wait: Duration::from_secs(30),
            budget: 6,
            park: Duration::from_mins(5),
            longest_park: Duration::from_hours(1),
            forgiven_after: Duration::from_mins(1),
        }
    }
}

/// The state of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum State {
    /// Not running, and may be started.
    Idle,
    Starting,
    Up {
        since: Instant,
    },
    /// It failed, and is not started until then.
    Waiting {
        until: Instant,
        reason: Reason,
    },
    /// It failed too often, or in a way that a retry cannot fix.
    Parked {
        until: Instant,
        reason: Reason,
        /// Only the user can fix it.
        permanent: bool,
    },
    /// A user has to sign in.
    SignedOut {
        reason: Reason,
    },
}

/// The failure of a start.
#[derive(Debug, Clone)]
pub(crate) struct StartError {
    pub(crate) reason: Reason,
    /// A retry is useless: the command does not exist, or the credentials are rejected.
    pub(crate) permanent: bool,
}

impl StartError {
    /// Adds advice for the user.
    pub(crate) fn hint(mut self, hint: Option<impl AsRef<str>>) -> Self {
        self.reason = self.reason.with_hint(hint);
        self
    }
}

/// The reason why there is no connection to wait for.
#[derive(Debug)]
pub(crate) enum NotStarted {
    Failed(StartError),
    /// The user has to approve it first.
    Held(Reason),
}

impl From<StartError> for NotStarted {
    fn from(error: StartError) -> Self {
        Self::Failed(error)
    }
}

#[derive(Debug)]
pub(crate) struct Restart {
    settings: Settings,
    state: State,
    failures: u32,
    parks: u32,
    /// Spreads the waits of many servers; its quality does not matter.
    seed: u64,
}

impl Restart {
    pub(crate) fn new(settings: Settings, seed: u64) -> Self {
        Self {
            settings,
            state: State::Idle,
            failures: 0,
            parks: 0,
            seed: seed | 1,
        }
    }

    pub(crate) fn state(&self) -> &State {
        &self.state
    }

    /// Records that the server is being started.
    pub(crate) fn starting(&mut self) {
        self.state = State::Starting;
    }

    /// Records that the server is up.
    pub(crate) fn up(&mut self, now: Instant) {
        self.state = State::Up { since: now };
    }

    /// Records that the server was stopped on purpose.
    pub(crate) fn stopped(&mut self, now: Instant) {
        self.forgive(now);
        self.state = State::Idle;
    }

    /// Records that a user has to sign in before the server can be started.
    pub(crate) fn signed_out(&mut self, reason: Reason) {
        self.state = State::SignedOut { reason };
    }

    /// Records that the server could not be started, or was lost.
    pub(crate) fn failed(&mut self, now: Instant, error: StartError) {
        self.forgive(now);
        let was_up = matches!(self.state, State::Up { .. });
        self.failures += 1;
        let StartError { reason, permanent } = error;
        if permanent || self.failures >= self.settings.budget {
            let park = doubled(self.settings.park, self.parks, self.settings.longest_park);
            self.parks += 1;
            self.failures = 0;
            self.state = State::Parked {
                until: now + park,
                reason,
                permanent,
            };
            return;
        }
        let wait = if was_up && self.failures == 1 {
            Duration::ZERO
        } else {
            let doublings = self.failures.saturating_sub(if was_up { 2 } else { 1 });
            let wait = doubled(
                self.settings.first_wait,
                doublings,
                self.settings.longest_wait,
            );
            self.jitter(wait)
        };
        let until = now + wait;
        self.state = State::Waiting { until, reason };
    }

    /// Advances the state to this time.
    pub(crate) fn tick(&mut self, now: Instant) {
        if self.due().is_some_and(|due| due <= now) {
            self.state = State::Idle;
        }
    }

    /// Resets all failures, because the user wants it started now.
    pub(crate) fn pardon(&mut self) {
        self.failures = 0;
        self.parks = 0;
        if self.due().is_some() || matches!(self.state, State::SignedOut { .. }) {
            self.state = State::Idle;
        }
    }

    /// Time of the next tick.
    pub(crate) fn due(&self) -> Option<Instant> {
        match self.state {
            State::Waiting { until, .. } | State::Parked { until, .. } => Some(until),
            State::Idle | State::Starting | State::Up { .. } | State::SignedOut { .. } => None,
        }
    }

    fn forgive(&mut self, now: Instant) {
        if let State::Up { since } = self.state
            && now.saturating_duration_since(since) >= self.settings.forgiven_after
        {
            self.failures = 0;
            self.parks = 0;
        }
    }

    /// Varies a wait by up to a fifth, so that servers that failed together do not restart together.
    fn jitter(&mut self, wait: Duration) -> Duration {
        self.seed ^= self.seed << 13;
        self.seed ^= self.seed >> 7;
        self.seed ^= self.seed << 17;
        // Between 80 and 120.
        let percent = u32::try_from(self.seed % 41).unwrap_or_default() + 80;
        wait * percent / 100
    }
}

fn doubled(first: Duration, doublings: u32, longest: Duration) -> Duration {
    first
        .saturating_mul(2_u32.saturating_pow(doublings))
        .min(longest)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn error(permanent: bool) -> StartError {
        StartError {
            reason: Reason::plain("it broke"),
            permanent,
        }
    }

    fn wait_of(restart: &Restart, now: Instant) -> Duration {
        restart.due().map_or(Duration::ZERO, |due| due - now)
    }

    #[test]
    fn crash_restarts_at_once_and_flapping_parks() {
        let mut now = Instant::now();
        let mut restart = Restart::new(Settings::default(), 7);
        let mut waits = Vec::new();
        for _ in 0..6 {
            restart.starting();
            restart.up(now);
            now += Duration::from_secs(5);
            restart.failed(now, error(false));
            waits.push(wait_of(&restart, now).as_millis());
            now += wait_of(&restart, now);
            restart.tick(now);
            assert_eq!(restart.state(), &State::Idle);
        }
        assert_eq!(waits[0], 0);
        for (wait, around) in waits[1..5].iter().zip([1_000, 2_000, 4_000, 8_000]) {
            assert!(
                (around * 8 / 10..=around * 12 / 10).contains(wait),
                "{waits:?}"
            );
        }
        assert_eq!(waits[5], 300_000);
    }

    #[test]
    fn minute_of_health_resets_failures() {
        let mut now = Instant::now();
        let mut restart = Restart::new(Settings::default(), 7);
        for _ in 0..50 {
            restart.starting();
            restart.up(now);
            now += Duration::from_mins(1);
            restart.failed(now, error(false));
            assert_eq!(wait_of(&restart, now), Duration::ZERO);
            restart.tick(now);
        }
    }

    #[test]
    fn permanent_failure_parks_until_a_restart() {
        let now = Instant::now();
        let mut restart = Restart::new(Settings::default(), 7);
        restart.starting();
        restart.failed(now, error(true));
        assert!(matches!(
            restart.state(),
            State::Parked {
                permanent: true,
                ..
            }
        ));
        restart.pardon();
        assert_eq!(restart.state(), &State::Idle);
    }

    proptest! {
        /// A server that is never up for long enough to be forgiven is started at most `budget` times
        /// within the shortest park, no matter how it fails: that many failures lead to a park, and a
        /// start after a park is at least that far from all earlier ones.
        #[test]
        fn restarts_are_rate_limited(ups in proptest::collection::vec((any::<bool>(), 0_u64..60), 1..200), seed: u64) {
            let Settings { budget, park, .. } = Settings::default();
            let mut now = Instant::now();
            let mut restart = Restart::new(Settings::default(), seed);
            let mut starts = Vec::new();
            for (comes_up, lives) in ups {
                starts.push(now);
                restart.starting();
                if comes_up {
                    restart.up(now);
                    now += Duration::from_secs(lives);
                }
                restart.failed(now, error(false));
                now += wait_of(&restart, now);
                restart.tick(now);
            }
            for (n, at) in starts.iter().enumerate() {
                let within = starts[n..].iter().take_while(|other| **other - *at < park).count();
                prop_assert!(within <= budget as usize, "{within} starts within {park:?}");
            }
        }
    }
}
