//! Random names and numbers.

use switchboard_text::hex;

/// Generates 128 random bits as hexadecimal digits; `None` if the system has no randomness to give.
pub fn secret() -> Option<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).ok()?;
    Some(hex::encode(&bytes))
}

/// Generates a number that is unlikely to repeat. Not for secrets: without randomness it is the process ID.
pub fn number() -> u64 {
    let mut bytes = [0; 8];
    match getrandom::fill(&mut bytes) {
        Ok(()) => u64::from_ne_bytes(bytes),
        Err(_) => u64::from(std::process::id()),
    }
}
