//! The file of one secret.

use std::path::Path;

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use chacha20poly1305::{
    KeyInit as _, XChaCha20Poly1305, XNonce,
    aead::{Aead as _, Payload},
};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::{Error, KeySource, key::Key};

/// The format that this version writes.
const VERSION: u32 = 1;

const NONCE_BYTES: usize = 24;

/// The part of a file that all versions have.
#[derive(Deserialize)]
struct Versioned {
    version: u32,
}

/// An encrypted secret.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Sealed {
    version: u32,
    pub(crate) name: String,
    /// Tells keys apart, and reveals nothing about them.
    key_id: String,
    nonce: String,
    ciphertext: String,
}

impl Sealed {
    /// Parses a file. Only [`Sealed::open`] verifies it.
    pub(crate) fn parse(path: &Path, content: &[u8]) -> Result<Self, Error> {
        let damaged = |_| Error::Damaged { path: path.into() };
        let Versioned { version } = serde_json::from_slice(content).map_err(damaged)?;
        if version != VERSION {
            return Err(Error::Newer { path: path.into() });
        }
        serde_json::from_slice(content).map_err(damaged)
    }

    /// Decrypts the secret.
    pub(crate) fn open(
        &self,
        path: &Path,
        key: &Key,
        source: &KeySource,
    ) -> Result<Zeroizing<Vec<u8>>, Error> {
        if self.key_id != key.id() {
            return Err(Error::OtherKey {
                path: path.into(),
                key: source.clone(),
            });
        }
        let damaged = || Error::Damaged { path: path.into() };
        let sealed = BASE64.decode(&self.ciphertext).map_err(|_| damaged())?;
        let nonce = BASE64.decode(&self.nonce).ok();
        let nonce: Option<[u8; NONCE_BYTES]> = nonce.and_then(|nonce| nonce.try_into().ok());
        let nonce = XNonce::from(nonce.ok_or_else(damaged)?);
        let payload = Payload {
            msg: &sealed,
            aad: &bound(&self.name),
        };
        let opened = cipher(key).decrypt(&nonce, payload);
        opened.map(Zeroizing::new).map_err(|_| damaged())
    }
}

/// The content of the file of a secret.
pub(crate) fn seal(name: &str, secret: &[u8], key: &Key) -> Result<Vec<u8>, Error> {
    let mut nonce = [0; NONCE_BYTES];
    getrandom::fill(&mut nonce).map_err(|_| Error::Random)?;
    let payload = Payload {
        msg: secret,
        aad: &bound(name),
    };
    let encrypted = cipher(key).encrypt(&XNonce::from(nonce), payload);
    let sealed = Sealed {
        version: VERSION,
        name: name.to_owned(),
        key_id: key.id().to_owned(),
        nonce: BASE64.encode(nonce),
        // The cipher refuses only what is longer than 256 GiB.
        ciphertext: BASE64.encode(encrypted.map_err(|_| Error::TooLong)?),
    };
    let mut content = serde_json::to_vec(&sealed).map_err(|_| Error::TooLong)?;
    content.push(b'\n');
    Ok(content)
}

/// The data that a secret is bound to, so that it is of no use in another file.
fn bound(name: &str) -> Vec<u8> {
    format!("switchboard secret {VERSION} {name}").into_bytes()
}

fn cipher(key: &Key) -> XChaCha20Poly1305 {
    XChaCha20Poly1305::new(key.bytes().into())
}
