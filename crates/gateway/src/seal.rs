//! Seals: words that go to a client and come back, and that only this gateway can have made.

use std::fmt::Write;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// Makes and checks seals. The key lives as long as the gateway.
pub(crate) struct Seal([u8; KEY_BYTES]);

/// As long as the hash takes in at a time.
const KEY_BYTES: usize = 64;

/// The length of a seal: what half of a SHA-256 hash gives.
const TAG_BYTES: usize = 16;

impl Seal {
    /// A seal with a key of its own; `None` if there is no randomness.
    pub(crate) fn new() -> Option<Self> {
        let mut key = [0; KEY_BYTES];
        getrandom::fill(&mut key).ok()?;
        Some(Self(key))
    }

    /// The payload under seal. It can be read by anyone, and changed by nobody; `purpose` keeps one
    /// kind of seal from being used as another.
    pub(crate) fn close(&self, purpose: &str, payload: &[u8]) -> String {
        let mut sealed = self.mac(purpose, payload).finalize().into_bytes()[..TAG_BYTES].to_vec();
        sealed.extend_from_slice(payload);
        URL_SAFE_NO_PAD.encode(sealed)
    }

    /// What is under the seal, if it is whole.
    pub(crate) fn open(&self, purpose: &str, sealed: &str) -> Option<Vec<u8>> {
        let mut sealed = URL_SAFE_NO_PAD.decode(sealed).ok()?;
        if sealed.len() < TAG_BYTES {
            return None;
        }
        let payload = sealed.split_off(TAG_BYTES);
        let mac = self.mac(purpose, &payload);
        mac.verify_truncated_left(&sealed).ok()?;
        Some(payload)
    }

    fn mac(&self, purpose: &str, payload: &[u8]) -> Hmac<Sha256> {
        let mut mac = <Hmac<Sha256> as KeyInit>::new(&self.0.into());
        mac.update(&(purpose.len() as u64).to_le_bytes());
        mac.update(purpose.as_bytes());
        mac.update(payload);
        mac
    }
}

impl std::fmt::Debug for Seal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Seal")
    }
}

/// Bytes in hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_sealed_here_and_for_this_opens() {
        let seal = Seal::new().unwrap();
        let sealed = seal.close("a", b"payload");
        assert_eq!(seal.open("a", &sealed).as_deref(), Some(&b"payload"[..]));
        assert_eq!(seal.open("b", &sealed), None);
        assert_eq!(Seal::new().unwrap().open("a", &sealed), None);
        for at in 0..sealed.len() {
            let mut changed = sealed.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).unwrap();
            assert_eq!(seal.open("a", &changed), None, "{at}");
        }
        for wrong in ["", "A", "!!!!", &sealed[..20]] {
            assert_eq!(seal.open("a", wrong), None);
        }
    }
}
