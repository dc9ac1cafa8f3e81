//! Seals: words that go to a client and come back, and that only this gateway can have made.

use std::{fmt::Write, fs, io, path::Path};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use switchboard_files::write_private;

/// Makes and checks seals. The key lives as long as the gateway, or in a file for as long as its home.
#[derive(Clone)]
pub struct Seal([u8; KEY_BYTES]);

/// As long as the hash takes in at a time.
const KEY_BYTES: usize = 64;

/// The length of a seal: what half of a SHA-256 hash gives.
const TAG_BYTES: usize = 16;

impl Seal {
    /// A seal with a key of its own; `None` if there is no randomness.
    pub fn new() -> Option<Self> {
        let mut key = [0; KEY_BYTES];
        getrandom::fill(&mut key).ok()?;
        Some(Self(key))
    }

    /// A seal whose key is in this file, so that what it closes opens after a restart too. The key is
    /// made if there is none, or none that can be used: then what was closed before is good no more. It
    /// reads the disk, and belongs to the start. `None` if there is no randomness.
    pub fn kept(path: &Path) -> Option<Self> {
        match read_key(path) {
            Ok(Some(key)) => return Some(Self(key)),
            Ok(None) => {}
            Err(error) => {
                tracing::warn!(%error, path = %path.display(), "The key of seals is replaced: who was signed in has to sign in again.");
            }
        }
        let seal = Self::new()?;
        if let Err(error) = write_private(path, &seal.0) {
            tracing::warn!(%error, path = %path.display(), "Cannot keep the key of seals: what is sealed now is good until the gateway stops.");
        }
        Some(seal)
    }

    /// The payload under seal. It can be read by anyone, and changed by nobody; `purpose` keeps one
    /// kind of seal from being used as another.
    pub fn close(&self, purpose: &str, payload: &[u8]) -> String {
        let mut sealed = self.mac(purpose, payload).finalize().into_bytes()[..TAG_BYTES].to_vec();
        sealed.extend_from_slice(payload);
        URL_SAFE_NO_PAD.encode(sealed)
    }

    /// What is under the seal, if it is whole.
    pub fn open(&self, purpose: &str, sealed: &str) -> Option<Vec<u8>> {
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

/// The key in a file; `None` if there is no file, an error if it cannot be a key that nobody else knows.
fn read_key(path: &Path) -> io::Result<Option<[u8; KEY_BYTES]>> {
    let found = match fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    if !found.is_file() || found.len() != KEY_BYTES as u64 {
        return Err(io::Error::other("it is no file with a key"));
    }
    #[cfg(unix)]
    if std::os::unix::fs::PermissionsExt::mode(&found.permissions()) & 0o077 != 0 {
        return Err(io::Error::other("others can read it"));
    }
    let key = fs::read(path)?.try_into();
    key.map(Some)
        .map_err(|_| io::Error::other("it is no file with a key"))
}

impl std::fmt::Debug for Seal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Seal")
    }
}

/// Bytes in hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
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

    #[test]
    fn a_kept_key_is_the_same_the_next_time() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("home/seal.key");
        let sealed = Seal::kept(&path).unwrap().close("a", b"payload");
        let again = Seal::kept(&path).unwrap();
        assert_eq!(again.open("a", &sealed).as_deref(), Some(&b"payload"[..]));
        let mode = std::os::unix::fs::PermissionsExt::mode;
        assert_eq!(
            mode(&fs::metadata(&path).unwrap().permissions()) & 0o777,
            0o600
        );
    }

    #[test]
    fn a_key_that_is_damaged_or_not_private_is_replaced() {
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
            let sealed = Seal::kept(&path).unwrap().close("a", b"payload");
            damage(&path);
            let next = Seal::kept(&path).unwrap();
            assert_eq!(next.open("a", &sealed), None);
            let sealed = next.close("a", b"payload");
            assert!(Seal::kept(&path).unwrap().open("a", &sealed).is_some());
        }
    }

    #[test]
    fn a_key_that_cannot_be_kept_is_good_for_now() {
        let dir = tempfile::tempdir().unwrap();
        // A folder in its place can neither be read nor replaced.
        let path = dir.path().join("seal.key");
        fs::create_dir_all(path.join("full")).unwrap();
        let seal = Seal::kept(&path).unwrap();
        assert!(seal.open("a", &seal.close("a", b"payload")).is_some());
    }
}
