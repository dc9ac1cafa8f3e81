//! Credentials in the vault.

use std::{future::ready, io, path::PathBuf, sync::Arc, time::Duration};

use switchboard_base::scrub;
use switchboard_client::auth::{Credential, Lock, Renewal, Renewing, Store, Stored};
use switchboard_redact::Secret;
use switchboard_secrets::{Error, Vault};
use switchboard_wire::with_hint;
use tokio::task::spawn_blocking;

use super::renewal::delegate;

/// The time limit for another process to release a credential. The caller has its own.
const PATIENCE: Duration = Duration::from_mins(2);

/// The credential of one server.
pub(super) struct Kept {
    vault: Arc<Vault>,
    server: Arc<str>,
    /// The program that renews the tokens. `None`: this process does.
    program: Option<PathBuf>,
}

impl Kept {
    pub(super) fn new(vault: Arc<Vault>, server: &Arc<str>, program: Option<PathBuf>) -> Self {
        Self {
            vault,
            server: Arc::clone(server),
            program,
        }
    }

    /// Does something with the vault, which reads and writes files.
    fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Vault, &Arc<str>) -> io::Result<T> + Send + 'static,
    ) -> Stored<'_, T> {
        let (vault, server) = (Arc::clone(&self.vault), Arc::clone(&self.server));
        Box::pin(async move {
            let done = spawn_blocking(move || work(&vault, &server)).await;
            done.unwrap_or_else(|error| Err(io::Error::other(error)))
        })
    }
}

impl Store for Kept {
    fn load(&self) -> Stored<'_, Option<Credential>> {
        self.run(|vault, server| {
            let credential = load(vault, server).map_err(|error| failed(&error))?;
            if let Some(known) = &credential {
                register(server, known);
            }
            Ok(credential)
        })
    }

    fn save(&self, credential: Credential) -> Stored<'_, ()> {
        self.run(move |vault, server| {
            register(server, &credential);
            let text = serde_json::to_vec(&credential).map_err(io::Error::other)?;
            let text = zeroize::Zeroizing::new(text);
            let saved = vault.set(&name_of(server), &text);
            saved.map_err(|error| failed(&error))
        })
    }

    fn lock(&self) -> Stored<'_, Lock> {
        self.run(|vault, server| {
            let lock = vault.lock(&name_of(server), PATIENCE);
            let lock = lock.map_err(|error| failed(&error))?;
            Ok(Box::new(lock) as Lock)
        })
    }

    fn renew(&self, renewal: Renewal) -> Renewing {
        let Some(program) = self.program.clone() else {
            return Box::pin(ready(None));
        };
        let (vault, server) = (Arc::clone(&self.vault), Arc::clone(&self.server));
        Box::pin(async move {
            let renewed = delegate(program, vault, Arc::clone(&server), renewal).await?;
            if let Some(credential) = renewed.credential.clone() {
                // Ends normally, unless the gateway ends.
                let _ = spawn_blocking(move || register(&server, &credential)).await;
            }
            Some(renewed)
        })
    }
}

/// The credential of a server. One that cannot be parsed is an error: it must not be overwritten by a sign-in that does not
/// know what it contains.
pub(super) fn load(vault: &Vault, server: &str) -> Result<Option<Credential>, LoadError> {
    let name = name_of(server);
    let Some(text) = vault.get(&name)? else {
        return Ok(None);
    };
    // The error of the parser may quote the credential.
    let parsed = serde_json::from_slice(&text);
    parsed.map(Some).map_err(|_| LoadError::Parse)
}

/// The reason why a credential is not loaded.
#[derive(Debug, thiserror::Error)]
pub(super) enum LoadError {
    #[error(transparent)]
    Vault(#[from] Error),
    #[error("the stored sign-in cannot be parsed")]
    Parse,
}

impl LoadError {
    pub(super) fn hint(&self) -> String {
        match self {
            Self::Vault(error) => error.hint(),
            Self::Parse => "update Switchboard, or sign in again".to_owned(),
        }
    }
}

/// An error of the vault, with its advice and its cause.
fn failed(error: &(impl Advice + ?Sized)) -> io::Error {
    let cause = std::error::Error::source(error);
    let message = cause.map_or_else(|| error.to_string(), |cause| format!("{error}: {cause}"));
    io::Error::other(with_hint(message, Some(error.advice())))
}

trait Advice: std::error::Error {
    fn advice(&self) -> String;
}

impl Advice for Error {
    fn advice(&self) -> String {
        self.hint()
    }
}

impl Advice for LoadError {
    fn advice(&self) -> String {
        self.hint()
    }
}

/// Keeps the secrets of a credential out of everything that this process writes.
fn register(server: &str, credential: &Credential) {
    let tokens = credential.tokens.as_ref();
    let access = tokens.map(|tokens| ("access_token", &tokens.access));
    let refresh = tokens.and_then(|tokens| Some(("refresh_token", tokens.refresh.as_ref()?)));
    let client = credential.client.secret.as_ref();
    let client = client.map(|secret| ("client_secret", secret));
    let key = credential.proof_key.as_ref();
    let key = key.map(|key| ("proof_key", key.private()));
    let secrets = [access, refresh, client, key].into_iter().flatten();
    let secrets: Vec<_> = secrets
        .map(|(kind, secret)| Secret::new(&format!("{server}.{kind}"), secret.expose()))
        .collect();
    if let Err(error) = scrub::register(scrub::Owner::SignIn(server), &secrets) {
        tracing::warn!(server, %error, "The tokens of a sign-in may appear in logs.");
    }
}

/// The name of a credential in the vault.
pub(super) fn name_of(server: &str) -> String {
    format!("oauth/{server}")
}
