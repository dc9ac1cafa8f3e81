//! Signed tokens: payloads that a client returns, and that only this gateway can have issued.

use std::{fs, io, path::Path};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use switchboard_files::write_private;

/// Issues and verifies signed tokens. The key lives as long as the gateway or, in a file, as long as its
/// home.
#[derive(Clone)]
pub struct TokenSigner([u8; KEY_BYTES]);

/// The block size of SHA-256, so that HMAC neither pads nor hashes the key.
const KEY_BYTES: usize = 64;

/// The length of a signature: half of a SHA-256 hash.
const TAG_BYTES: usize = 16;

impl TokenSigner {
    /// Generates a key; `None` if there is no randomness.
    pub fn new() -> Option<Self> {
        let mut key = [0; KEY_BYTES];
        getrandom::fill(&mut key).ok()?;
        Some(Self(key))
    }

    /// Reads the key from this file, so that tokens stay valid after a restart. Generates one if the file is
    /// missing or unusable; earlier tokens are then invalid. Reads the disk, so it must only be called at
    /// startup. `None` if there is no randomness.
    pub fn kept(path: &Path) -> Option<Self> {
        match read_key(path) {
            Ok(Some(key)) => return Some(Self(key)),
            Ok(None) => {}
            Err(error) => {
                tracing::warn!(%error, path = %path.display(), "Cannot use the signing key, so the gateway replaces it; earlier tokens are invalid.");
            }
        }
        let signer = Self::new()?;
        if let Err(error) = write_private(path, &signer.0) {
            tracing::warn!(%error, path = %path.display(), "Cannot save the signing key; tokens are valid until the gateway stops.");
        }
        Some(signer)
    }

    /// Signs a payload. Everyone can read it, but no one can change it; a token for one `purpose` is invalid
    /// for another.
    pub fn sign(&self, purpose: &str, payload: &[u8]) -> String {
        let mut token = self.mac(purpose, payload).finalize().into_bytes()[..TAG_BYTES].to_vec();
        token.extend_from_slice(payload);
        URL_SAFE_NO_PAD.encode(token)
    }

    /// The payload of a token, if its signature is valid.
    pub fn verify(&self, purpose: &str, token: &str) -> Option<Vec<u8>> {
        let mut token = URL_SAFE_NO_PAD.decode(token).ok()?;
        if token.len() < TAG_BYTES {
            return None;
        }
        let payload = token.split_off(TAG_BYTES);
        let mac = self.mac(purpose, &payload);
        mac.verify_truncated_left(&token).ok()?;
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

/// Reads the key from a file; `None` if there is no file, an error if the file is not a key, or other users
/// can read it.
fn read_key(path: &Path) -> io::Result<Option<[u8; KEY_BYTES]>> {
    let found = match fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    if !found.is_file() || found.len() != KEY_BYTES as u64 {
        return Err(io::Error::other("it is not a key file"));
    }
    #[cfg(unix)]
    if std::os::unix::fs::PermissionsExt::mode(&found.permissions()) & 0o077 != 0 {
        return Err(io::Error::other("other users can read it"));
    }
    let key = fs::read(path)?.try_into();
    key.map(Some)
        .map_err(|_| io::Error::other("it is not a key file"))
}

impl std::fmt::Debug for TokenSigner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TokenSigner")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_unchanged_own_tokens_verify() {
        let signer = TokenSigner::new().unwrap();
        let token = signer.sign("a", b"payload");
        assert_eq!(signer.verify("a", &token).as_deref(), Some(&b"payload"[..]));
        assert_eq!(signer.verify("b", &token), None);
        assert_eq!(TokenSigner::new().unwrap().verify("a", &token), None);
        for at in 0..token.len() {
            let mut changed = token.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).unwrap();
            assert_eq!(signer.verify("a", &changed), None, "{at}");
        }
        for wrong in ["", "A", "!!!!", &token[..20]] {
            assert_eq!(signer.verify("a", wrong), None);
        }
    }

    #[test]
    fn stored_key_survives_a_restart() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("home/seal.key");
        let token = TokenSigner::kept(&path).unwrap().sign("a", b"payload");
        let again = TokenSigner::kept(&path).unwrap();
        assert_eq!(again.verify("a", &token).as_deref(), Some(&b"payload"[..]));
        let mode = std::os::unix::fs::PermissionsExt::mode;
        assert_eq!(
            mode(&fs::metadata(&path).unwrap().permissions()) & 0o777,
            0o600
        );
    }

    #[test]
    fn damaged_or_public_key_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("seal.key");
        let open = |path: &Path| {
            let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o644);
            fs::set_permissions(path, permissions).unwrap();
        };
        let short = |path: &Path| fs::write(path, b"short").unwrap();
        let long = |path: &Path| fs::write(path, [1; KEY_BYTES + 1]).unwrap();
        let other = |path: &Path| fs::write(path, [1; KEY_BYTES]).unwrap();
        for damage in [&open as &dyn Fn(&Path), &short, &long, &other] {
            let token = TokenSigner::kept(&path).unwrap().sign("a", b"payload");
            damage(&path);
            let next = TokenSigner::kept(&path).unwrap();
            assert_eq!(next.verify("a", &token), None);
            let token = next.sign("a", b"payload");
            assert!(
                TokenSigner::kept(&path)
                    .unwrap()
                    .verify("a", &token)
                    .is_some()
            );
        }
    }

    #[test]
    fn key_that_cannot_be_stored_still_works() {
        let dir = tempfile::tempdir().unwrap();
        // A directory in its place can neither be read nor replaced.
        let path = dir.path().join("seal.key");
        fs::create_dir_all(path.join("full")).unwrap();
        let signer = TokenSigner::kept(&path).unwrap();
        assert!(signer.verify("a", &signer.sign("a", b"payload")).is_some());
    }
}
