//! A schedule: the conditions of a connection, and everything that happens to it.

use std::{fmt, str::FromStr, time::Duration};

use switchboard_machine::Settings;
use switchboard_wire::{Era, Raw, Revision};

use crate::step::Step;

/// One lifetime of a connection. Its text form has one step per line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    /// The seed from which it was generated, which is also the source of the machine's jitter.
    pub seed: u64,
    /// The conditions.
    pub setup: Setup,
    /// The steps.
    pub steps: Vec<Step>,
}

/// The conditions of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an independent choice of two"
)]
pub struct Setup {
    /// The newest revision to offer.
    pub newest: Revision,
    /// The known era of the server.
    pub era: Option<Era>,
    /// All limits on numbers are very small.
    pub tight: bool,
    /// Timeouts are short enough to overlap with the retry window.
    pub quick: bool,
    /// Send results are handed in after all actions are taken, not one by one. Both are allowed.
    pub late_results: bool,
    /// At the end the connection is left alone until it has settled; otherwise it is stopped.
    pub settle: bool,
}

impl Setup {
    /// The defaults of the machine.
    pub const PLAIN: Self = Self {
        newest: Revision::LATEST,
        era: None,
        tight: false,
        quick: false,
        late_results: false,
        settle: false,
    };

    /// The settings of the machine.
    pub fn settings(self) -> Settings {
        let mut settings = Settings::new(Raw::empty_object());
        settings.newest = self.newest;
        settings.era = self.era;
        if self.tight {
            settings.in_flight_max = 4;
            settings.tombstones_max = 2;
            settings.server_requests_max = 2;
            settings.held_max = 2;
        }
        if self.quick {
            settings.request_timeout = Duration::from_secs(1);
            settings.probe_timeout = Duration::from_millis(12);
            settings.handshake_timeout = Duration::from_millis(60);
            settings.backoff_base = Duration::from_millis(20);
            settings.backoff_max = Duration::from_millis(100);
            settings.sweep_interval = Duration::from_secs(1);
        }
        settings
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed {}", self.seed)?;
        writeln!(f, "setup {}", self.setup)?;
        for step in &self.steps {
            writeln!(f, "{step}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Setup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let era = match self.era {
            None => "unknown",
            Some(Era::Legacy) => "legacy",
            Some(Era::Modern) => "modern",
        };
        write!(f, "newest={} era={era}", self.newest)?;
        for (set, word) in [
            (self.tight, " tight"),
            (self.quick, " quick"),
            (self.late_results, " late-results"),
            (self.settle, " settle"),
        ] {
            if set {
                f.write_str(word)?;
            }
        }
        Ok(())
    }
}

impl FromStr for Schedule {
    type Err = String;

    /// Parses a schedule. Blank lines and lines that start with `#` are skipped.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut schedule = Self {
            seed: 0,
            setup: Setup::PLAIN,
            steps: Vec::new(),
        };
        for (line, number) in text.lines().map(str::trim).zip(1..) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let read = if let Some(seed) = line.strip_prefix("seed ") {
                seed.parse()
                    .map(|seed| schedule.seed = seed)
                    .map_err(|error| error.to_string())
            } else if let Some(setup) = line.strip_prefix("setup") {
                setup.parse().map(|setup| schedule.setup = setup)
            } else {
                line.parse().map(|step| schedule.steps.push(step))
            };
            read.map_err(|error| format!("line {number}: {error}"))?;
        }
        Ok(schedule)
    }
}

impl FromStr for Setup {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut setup = Self::PLAIN;
        for word in text.split_whitespace() {
            match word {
                "tight" => setup.tight = true,
                "quick" => setup.quick = true,
                "late-results" => setup.late_results = true,
                "settle" => setup.settle = true,
                "era=unknown" => setup.era = None,
                "era=legacy" => setup.era = Some(Era::Legacy),
                "era=modern" => setup.era = Some(Era::Modern),
                _ => {
                    let newest = word.strip_prefix("newest=").and_then(Revision::parse);
                    setup.newest = newest.ok_or_else(|| format!("not a condition: {word}"))?;
                }
            }
        }
        Ok(setup)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate;

    #[test]
    fn schedule_parses_back_from_its_text() {
        for seed in 0..2_000 {
            let schedule = generate::schedule(seed);
            assert_eq!(schedule.to_string().parse(), Ok(schedule));
        }
    }

    #[test]
    fn invalid_step_is_reported_with_its_line() {
        let error = "# a comment\n\nup\ndown sideways\n"
            .parse::<Schedule>()
            .unwrap_err();
        assert_eq!(error, "line 4: not a step: down sideways");
    }
}
