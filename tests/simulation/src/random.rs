//! Random numbers from a seed: the same seed gives the same schedule on every machine and in every release.

/// A small generator (`SplitMix64`).
#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `end`, which is not zero.
    pub(crate) fn below(&mut self, end: u8) -> u8 {
        // The remainder of a division by a `u8` fits into a `u8`.
        u8::try_from(self.next() % u64::from(end)).unwrap_or(0)
    }

    /// Returns `true` with this probability, in percent.
    pub(crate) fn percent(&mut self, chance: u8) -> bool {
        self.below(100) < chance
    }

    /// One of these, of which there is at least one.
    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        let at = self.next() % from.len() as u64;
        // An index below a `usize` fits into a `usize`.
        from[usize::try_from(at).unwrap_or(0)]
    }
}
