//! Jitter from a seed, so that a run is reproducible.

use std::time::Duration;

/// A small generator (`SplitMix64`), good enough to spread retries, but not for secrets.
#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns `base` stretched or shrunk by up to `percent`.
    pub(crate) fn jitter(&mut self, base: Duration, percent: u32) -> Duration {
        let span = u64::from(percent) * 2 + 1;
        let percent = 100 - u64::from(percent) + self.next() % span;
        // A percentage of at most 200 fits, and a delay is far below the range of u32 multiplication.
        base.saturating_mul(u32::try_from(percent).unwrap_or(100)) / 100
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jitter_covers_exactly_its_percentage() {
        let mut random = Random::new(1);
        let all: Vec<_> = (0..10_000)
            .map(|_| random.jitter(Duration::from_secs(1), 20).as_millis())
            .collect();
        assert_eq!(all.iter().min(), Some(&800));
        assert_eq!(all.iter().max(), Some(&1200));
    }
}
