//! Secrets at rest.
//!
//! A [`Vault`] is a directory with one encrypted file per secret. A file is replaced as a whole, so a process that is
//! killed leaves the old value or the new one. The key is in the environment variable [`KEY_VARIABLE`], or in a file that
//! is created for the first secret.
//!
//! ```
//! use switchboard_secrets::{KeySource, Vault};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let home = tempfile::tempdir()?;
//! let key = KeySource::File(home.path().join("vault.key"));
//! let vault = Vault::new(home.path().join("vault"), key);
//! vault.set("mail", b"hunter2")?;
//! assert_eq!(vault.get("mail")?.as_deref().map(Vec::as_slice), Some(&b"hunter2"[..]));
//! # Ok(())
//! # }
//! ```
//!
//! The encryption protects a copy of the files without the key, such as a backup or a synchronised directory. It does not
//! protect from a program that runs as the same user and reads both.

mod error;
mod key;
mod sealed;

use std::{
    io,
    path::{Path, PathBuf},
    sync::OnceLock,
    time::Duration,
};

use sha2::{Digest as _, Sha256};
use switchboard_files::{Links, Lock, folder, private_dir, read, write_private};
use switchboard_text::hex;
use zeroize::Zeroizing;

pub use self::{
    error::Error,
    key::{KEY_VARIABLE, KeySource},
};
use self::{key::Key, sealed::Sealed};

/// The longest secret, in bytes.
pub const SECRET_BYTES: usize = 1024 * 1024;

/// The longest file: a secret with its name, in Base64 and JSON.
const FILE_BYTES: u64 = 2 * SECRET_BYTES as u64;

/// The most files that are listed.
const FILES: usize = 10_000;

/// The directory of encrypted secrets. Nothing is read or created before it is used.
#[derive(Debug)]
pub struct Vault {
    dir: PathBuf,
    source: KeySource,
    key: OnceLock<Key>,
}

impl Vault {
    /// The vault in this directory.
    pub fn new(dir: PathBuf, source: KeySource) -> Self {
        Self {
            dir,
            source,
            key: OnceLock::new(),
        }
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The place of the key.
    pub fn source(&self) -> &KeySource {
        &self.source
    }

    /// The secret with this name, if there is one.
    pub fn get(&self, name: &str) -> Result<Option<Zeroizing<Vec<u8>>>, Error> {
        let path = self.path(name);
        let Some(content) = load(&path)? else {
            return Ok(None);
        };
        let sealed = Sealed::parse(&path, &content)?;
        if sealed.name != name {
            return Err(Error::Damaged { path });
        }
        let key = self.key(false)?;
        sealed.open(&path, key, &self.source).map(Some)
    }

    /// Stores a secret, in place of one with the same name. It survives a loss of power once this returns.
    pub fn set(&self, name: &str, secret: &[u8]) -> Result<(), Error> {
        if secret.len() > SECRET_BYTES || name.len() > usize::from(u16::MAX) {
            return Err(Error::TooLong);
        }
        private_dir(&self.dir).map_err(|source| Error::file("create", &self.dir, source))?;
        let path = self.path(name);
        let sealed = sealed::seal(name, secret, self.key(true)?)?;
        write_private(&path, &sealed).map_err(|source| Error::file("write", &path, source))
    }

    /// Removes a secret, if there is one.
    pub fn remove(&self, name: &str) -> Result<(), Error> {
        let path = self.path(name);
        folder::remove(&path).map_err(|source| Error::file("remove", &path, source))
    }

    /// The names of all secrets, in order. Needs no key. Files that are damaged, or of a newer version, are left out.
    pub fn names(&self) -> Result<Vec<String>, Error> {
        let (paths, error) = folder::list(&self.dir, FILES);
        if let Some(source) = error {
            return Err(Error::file("read", &self.dir, source));
        }
        let mut names = Vec::new();
        for path in paths {
            let Some(content) = load(&path)? else {
                continue;
            };
            if let Ok(sealed) = Sealed::parse(&path, &content) {
                names.push(sealed.name);
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    /// Waits until no other process holds the lock of this secret, and blocks the thread. Locks are advisory: a process
    /// that replaces a secret by one that depends on it takes the lock before it reads the secret.
    pub fn lock(&self, name: &str, patience: Duration) -> Result<Lock, Error> {
        private_dir(&self.dir).map_err(|source| Error::file("create", &self.dir, source))?;
        let path = self.path(name).with_extension("lock");
        Lock::wait(&path, patience).map_err(Error::Lock)
    }

    fn path(&self, name: &str) -> PathBuf {
        let hash = || hex::encode(&Sha256::digest(name)[..16]);
        self.dir.join(folder::file_name(name, hash))
    }

    /// The key, which is created if it is missing and `create` is set.
    fn key(&self, create: bool) -> Result<&Key, Error> {
        if let Some(key) = self.key.get() {
            return Ok(key);
        }
        // A new key in place of a lost one would hide that the other secrets cannot be read.
        let is_file = matches!(self.source, KeySource::File(_));
        let may_create = create && is_file && self.is_empty()?;
        let key = self.source.load(may_create)?;
        Ok(self.key.get_or_init(|| key))
    }

    /// Tests if there are no secrets, not even damaged ones.
    fn is_empty(&self) -> Result<bool, Error> {
        match folder::list(&self.dir, FILES) {
            (paths, None) => Ok(paths.is_empty()),
            (_, Some(source)) => Err(Error::file("read", &self.dir, source)),
        }
    }
}

fn load(path: &Path) -> Result<Option<Vec<u8>>, Error> {
    match read(path, FILE_BYTES, Links::Refuse) {
        Ok(content) => Ok(Some(content)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(Error::file("read", path, source)),
    }
}
