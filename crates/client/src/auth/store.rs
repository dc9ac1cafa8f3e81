//! Where credentials are kept.

use std::{future::Future, io, pin::Pin};

use parking_lot::Mutex;
use switchboard_auth::Credential;

use super::{Renewal, Renewing};

/// The outcome of an operation of a store.
pub type Stored<'a, T> = Pin<Box<dyn Future<Output = io::Result<T>> + Send + 'a>>;

/// The right to change the credential, until it is dropped.
pub type Lock = Box<dyn Send>;

/// Keeps the credential of one server. It contains secrets.
pub trait Store: Send + Sync + 'static {
    /// Loads the credential that was saved last.
    fn load(&self) -> Stored<'_, Option<Credential>>;

    /// Saves the credential. The former one must be intact until the new one is durable.
    fn save(&self, credential: Credential) -> Stored<'_, ()>;

    /// Waits until no other process changes the credential. If several processes share the store, this prevents that
    /// two of them use the same refresh token, which most authorization servers take for a theft. The lock of a process
    /// that has ended must not remain.
    fn lock(&self) -> Stored<'_, Lock>;

    /// Has another process renew the tokens with [`Renewal::run`], one that outlives this one: if a process dies after the
    /// authorization server has accepted a refresh token and before the next one is saved, the sign-in is lost. The outcome
    /// is `None` if no process has begun, which is the default: the caller renews the tokens itself then.
    fn renew(&self, _renewal: Renewal) -> Renewing {
        Box::pin(std::future::ready(None))
    }
}

/// Keeps the credential until the program ends.
#[derive(Debug, Default)]
pub struct InMemory(Mutex<Option<Credential>>);

impl Store for InMemory {
    fn load(&self) -> Stored<'_, Option<Credential>> {
        Box::pin(std::future::ready(Ok(self.0.lock().clone())))
    }

    fn save(&self, credential: Credential) -> Stored<'_, ()> {
        *self.0.lock() = Some(credential);
        Box::pin(std::future::ready(Ok(())))
    }

    /// No other process knows it.
    fn lock(&self) -> Stored<'_, Lock> {
        Box::pin(std::future::ready(Ok(Box::new(()) as Lock)))
    }
}
