//! Downloads the files of a model, once, in the background.

use std::{
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use reqwest::StatusCode;
use sha2::{Digest, Sha256};
use switchboard_text::hex;
use tokio::{fs, io::AsyncWriteExt};

/// The folder of the sentence model.
pub(crate) const MINILM: &str = "all-MiniLM-L6-v2";

/// The location of a model's files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Source {
    address: String,
    files: &'static [(&'static str, File)],
}

/// The requirement on a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum File {
    /// It must have this SHA-256 hash.
    Known(&'static str),
    /// It must exist.
    Needed,
    /// It may be missing.
    Optional,
}

/// The files of the published model, with their hashes. The address serves the newest revision, and a
/// different one is rejected.
const PUBLISHED: &[(&str, File)] = &[
    (
        "config.json",
        File::Known("953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41"),
    ),
    (
        "tokenizer.json",
        File::Known("be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"),
    ),
    (
        "model.safetensors",
        File::Known("53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"),
    ),
];
const ANY: &[(&str, File)] = &[
    ("config.json", File::Needed),
    ("config_sentence_transformers.json", File::Optional),
    ("tokenizer.json", File::Needed),
    ("model.safetensors", File::Needed),
];
const PUBLISHED_AT: &str =
    "https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2/resolve/main";

/// The largest model that is accepted, in bytes.
const BYTES_MAX: u64 = 512 * 1024 * 1024;
const CONNECT: Duration = Duration::from_secs(10);
/// The longest time without data. A download may be slow, but not stalled.
const SILENCE: Duration = Duration::from_secs(30);

/// The reason why a model could not be downloaded.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FetchError {
    #[error("cannot download {address}: {source}")]
    Http {
        address: String,
        source: reqwest::Error,
    },
    #[error(transparent)]
    Tls(#[from] switchboard_client::http::HttpConfigError),
    #[error("{address} does not match the published file, so it was discarded")]
    Other { address: String },
    #[error("{address} is larger than {BYTES_MAX} bytes, the limit for a model")]
    TooLarge { address: String },
    #[error("cannot write the model to {path}: {source}")]
    File { path: PathBuf, source: io::Error },
}

impl Source {
    pub(crate) fn published() -> Self {
        Self {
            address: PUBLISHED_AT.to_owned(),
            files: PUBLISHED,
        }
    }

    /// The source at this address; `None` if the text is not an HTTP URL.
    pub(crate) fn at(address: &str) -> Option<Self> {
        let is_address = address.starts_with("https://") || address.starts_with("http://");
        is_address.then(|| Self {
            address: address.trim_end_matches('/').to_owned(),
            files: ANY,
        })
    }

    /// The name of the folder for the files from this source.
    pub(crate) fn folder_name(&self) -> String {
        hex::encode(&Sha256::digest(&self.address)[..8])
    }

    /// Downloads all files into this folder, which appears only when it is complete.
    pub(crate) async fn fetch(&self, folder: &Path) -> Result<(), FetchError> {
        let file_error = |path: &Path, source| FetchError::File {
            path: path.to_owned(),
            source,
        };
        let part = folder.with_extension("part");
        // Partial files of an earlier attempt are useless.
        let _ = fs::remove_dir_all(&part).await;
        let made = fs::create_dir_all(&part).await;
        made.map_err(|source| file_error(&part, source))?;
        let client = self.client()?;
        for (name, kind) in self.files {
            tracing::info!(file = name, from = %self.address, "Downloading a file of the sentence model.");
            self.fetch_file(&client, name, *kind, &part.join(name))
                .await?;
        }
        let renamed = fs::rename(&part, folder).await;
        renamed.map_err(|source| file_error(folder, source))
    }

    fn client(&self) -> Result<reqwest::Client, FetchError> {
        let is_encrypted = self.address.starts_with("https:");
        let mut builder = reqwest::Client::builder()
            .tls_backend_preconfigured(switchboard_client::http::tls(is_encrypted)?)
            .connect_timeout(CONNECT)
            .read_timeout(SILENCE);
        if ["http://127.0.0.1", "http://localhost", "http://[::1]"]
            .iter()
            .any(|own| self.address.starts_with(own))
        {
            // A proxy cannot reach this machine's loopback address.
            builder = builder.no_proxy();
        }
        builder
            .build()
            .map_err(|source| self.http_error("", source))
    }

    async fn fetch_file(
        &self,
        client: &reqwest::Client,
        name: &str,
        kind: File,
        path: &Path,
    ) -> Result<(), FetchError> {
        let http = |source| self.http_error(name, source);
        let file_error = |source| FetchError::File {
            path: path.to_owned(),
            source,
        };
        let response = client.get(self.address_of(name)).send().await;
        let response = response.map_err(http)?;
        if kind == File::Optional && is_absent(response.status()) {
            return Ok(());
        }
        let mut response = response.error_for_status().map_err(http)?;
        let mut file = fs::File::create(path).await.map_err(file_error)?;
        let mut hash = Sha256::new();
        let mut length = 0_u64;
        while let Some(chunk) = response.chunk().await.map_err(http)? {
            length += chunk.len() as u64;
            if length > BYTES_MAX {
                let address = self.address_of(name);
                return Err(FetchError::TooLarge { address });
            }
            hash.update(&chunk);
            file.write_all(&chunk).await.map_err(file_error)?;
        }
        file.sync_all().await.map_err(file_error)?;
        if let File::Known(known) = kind
            && known != hex::encode(&hash.finalize())
        {
            let address = self.address_of(name);
            return Err(FetchError::Other { address });
        }
        Ok(())
    }

    fn address_of(&self, name: &str) -> String {
        format!("{}/{name}", self.address)
    }

    fn http_error(&self, name: &str, source: reqwest::Error) -> FetchError {
        FetchError::Http {
            address: self.address_of(name),
            source,
        }
    }
}

/// Tests if a server reports that the file does not exist. Some answer 403 instead, to clients that may not
/// list files.
fn is_absent(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::NOT_FOUND | StatusCode::GONE | StatusCode::FORBIDDEN
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_published_file_is_pinned() {
        assert_eq!(PUBLISHED.len(), 3);
        for (name, kind) in PUBLISHED {
            assert!(
                matches!(kind, File::Known(hash) if hash.len() == 64),
                "{name}"
            );
        }
    }
}
