//! The key that opens a vault.

use std::{
    fmt, io,
    io::Write as _,
    path::{Path, PathBuf},
};

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use sha2::{Digest as _, Sha256};
use switchboard_files::{Access, Draft, Links, create_dir, open, read_open};
use switchboard_text::hex;
use zeroize::Zeroizing;

use crate::Error;

/// The environment variable with the key: 32 bytes in Base64.
pub const KEY_VARIABLE: &str = "SWITCHBOARD_KEY";

const KEY_BYTES: usize = 32;

/// The longest key file: a key in Base64, and white space.
const FILE_BYTES: u64 = 1024;

/// The place of the key.
#[derive(Clone, PartialEq, Eq)]
pub enum KeySource {
    /// The value of [`KEY_VARIABLE`].
    Variable(Zeroizing<String>),
    /// A file, which is created with a random key if there is none.
    File(PathBuf),
}

/// A key.
pub(crate) struct Key {
    bytes: Zeroizing<[u8; KEY_BYTES]>,
    id: String,
}

impl KeySource {
    /// The variable if it is set and not empty, else the file.
    pub fn choose(variable: Option<String>, file: PathBuf) -> Self {
        match variable.filter(|value| !value.trim().is_empty()) {
            Some(value) => Self::Variable(value.into()),
            None => Self::File(file),
        }
    }

    /// Reads the key. Creates the file if it is missing and `create` is set.
    pub(crate) fn load(&self, create: bool) -> Result<Key, Error> {
        let path = match self {
            Self::Variable(value) => {
                return Key::parse(value).ok_or_else(|| Error::BadKey { key: self.clone() });
            }
            Self::File(path) => path,
        };
        if create {
            create_key(path)?;
        }
        let text = match read_key(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(Error::NoKey { path: path.clone() });
            }
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                return Err(Error::OpenKey { path: path.clone() });
            }
            read => read.map_err(|source| Error::file("read", path, source))?,
        };
        Key::parse(&text).ok_or_else(|| Error::BadKey { key: self.clone() })
    }
}

/// Without the key itself.
impl fmt::Debug for KeySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("KeySource").field(&self.to_string()).finish()
    }
}

/// The place, for messages.
impl fmt::Display for KeySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Variable(_) => f.write_str(KEY_VARIABLE),
            Self::File(path) => path.display().fmt(f),
        }
    }
}

impl Key {
    fn parse(text: &str) -> Option<Self> {
        let decoded = Zeroizing::new(BASE64.decode(text.trim()).ok()?);
        let bytes = Zeroizing::new(<[u8; KEY_BYTES]>::try_from(&**decoded).ok()?);
        let mut hash = Sha256::new_with_prefix("switchboard key id ");
        hash.update(*bytes);
        let id = hex::encode(&hash.finalize()[..8]);
        Some(Self { bytes, id })
    }

    pub(crate) fn bytes(&self) -> &[u8; KEY_BYTES] {
        &self.bytes
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Key").field(&self.id).finish()
    }
}

/// Reads a key file. Fails with [`PermissionDenied`](io::ErrorKind::PermissionDenied) if others may read it.
fn read_key(path: &Path) -> io::Result<Zeroizing<String>> {
    let file = open(path, Links::Refuse)?;
    let access = Access::of(&file)?;
    if access.is_foreign() || access.is_open() {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    let content = Zeroizing::new(read_open(&file, FILE_BYTES)?);
    let text = std::str::from_utf8(&content).unwrap_or_default();
    Ok(text.to_owned().into())
}

/// Creates a key file with a random key, unless there is one. If several processes try, one of the keys remains.
fn create_key(path: &Path) -> Result<(), Error> {
    match path.symlink_metadata() {
        Ok(_) => return Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(source) => return Err(Error::file("read", path, source)),
    }
    let mut bytes = Zeroizing::new([0; KEY_BYTES]);
    getrandom::fill(&mut *bytes).map_err(|_| Error::Random)?;
    let text = Zeroizing::new(BASE64.encode(*bytes));
    let write = || {
        path.parent().map_or(Ok(()), create_dir)?;
        let mut draft = Draft::beside(path)?;
        writeln!(draft, "{}", *text)?;
        draft.place_new()
    };
    match write() {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        written => written.map_err(|source| Error::file("create", path, source)),
    }
}
