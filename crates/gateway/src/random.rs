//! Random names that cannot be guessed.

/// Generates 128 random bits in hexadecimal digits; `None` if the system has no randomness to give.
pub(crate) fn secret() -> Option<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).ok()?;
    Some(crate::seal::hex(&bytes))
}
