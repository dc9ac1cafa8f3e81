//! [`Digest`]: a 64-bit hash that detects damage and changes.
//!
//! It is fast (a snapshot of ten megabytes is checked in a few milliseconds) and stable across
//! versions of the program, because it is written to disk. It does not protect against an attacker
//! who chooses the data; names, where that matters, use SHA-256.

const ONE: u64 = 0x9E37_79B9_7F4A_7C15;
const TWO: u64 = 0xD6E8_FEB8_6659_FD93;
const STEP: u64 = 0xA076_1D64_78BD_642F;

/// An incremental digest.
pub(crate) struct Digest(u64);

impl Digest {
    pub(crate) fn new() -> Self {
        Self(ONE)
    }

    /// The digest of one piece.
    pub(crate) fn of(piece: &[u8]) -> u64 {
        Self::new().add(piece).finish()
    }

    /// Adds a piece. Its length counts too, so that two pieces differ from their concatenation.
    pub(crate) fn add(mut self, piece: &[u8]) -> Self {
        let (blocks, rest) = piece.as_chunks::<16>();
        for block in blocks {
            self.block(block);
        }
        let mut last = [0; 16];
        last[..rest.len()].copy_from_slice(rest);
        self.block(&last);
        self.add_number(piece.len() as u64)
    }

    /// Adds a number.
    pub(crate) fn add_number(mut self, number: u64) -> Self {
        self.mix(fold(number ^ ONE, TWO));
        self
    }

    pub(crate) fn finish(self) -> u64 {
        fold(self.0 ^ TWO, STEP)
    }

    #[inline]
    fn block(&mut self, block: &[u8; 16]) {
        let (first, second) = block.split_at(8);
        self.mix(fold(word(first) ^ ONE, word(second) ^ TWO));
    }

    /// A bijective step: different states stay different.
    #[inline]
    fn mix(&mut self, value: u64) {
        self.0 = (self.0 ^ value).wrapping_mul(STEP).rotate_left(29);
    }
}

#[inline]
fn word(bytes: &[u8]) -> u64 {
    bytes
        .first_chunk()
        .map_or(0, |chunk| u64::from_le_bytes(*chunk))
}

/// The XOR of the two halves of the product: each bit depends on all bits of both factors.
#[inline]
#[expect(clippy::cast_possible_truncation)] // The lower half is wanted.
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bit_flip_and_truncation_is_detected() {
        let data: Vec<u8> = (0..200_u8).collect();
        let whole = Digest::of(&data);
        for at in 0..data.len() {
            assert_ne!(Digest::of(&data[..at]), whole);
            for bit in 0..8 {
                let mut damaged = data.clone();
                damaged[at] ^= 1 << bit;
                assert_ne!(Digest::of(&damaged), whole);
            }
        }
        assert_ne!(Digest::of(&[data.as_slice(), &[0]].concat()), whole);
    }

    #[test]
    fn pieces_are_kept_apart() {
        let ab_c = Digest::new().add(b"ab").add(b"c").finish();
        let a_bc = Digest::new().add(b"a").add(b"bc").finish();
        assert_ne!(ab_c, a_bc);
    }

    #[test]
    fn digests_stay_stable_across_versions() {
        // Snapshots on disk contain these values.
        assert_eq!(Digest::of(b""), 8_448_768_946_128_473_187);
        assert_eq!(
            Digest::of(b"The quick brown fox"),
            14_507_078_913_272_263_513
        );
    }
}
