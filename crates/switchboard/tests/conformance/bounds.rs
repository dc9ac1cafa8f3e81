//! What no gateway can carry from one era to the other.

/// A check that cannot pass.
#[derive(Debug)]
pub(crate) struct Bound {
    /// `scenario:check`.
    pub(crate) check: &'static str,
    /// Why, for whoever reads that it fails.
    #[allow(
        dead_code,
        reason = "it is read by people, in the message of a failed test"
    )]
    pub(crate) reason: &'static str,
}

/// Clients of 2025-11-25 of a server of 2026-07-28.
pub(crate) const OLD_TO_NEW: &[Bound] = &[];

/// Clients of 2026-07-28 of a server of 2025-11-25.
pub(crate) const NEW_TO_OLD: &[Bound] = &[];
