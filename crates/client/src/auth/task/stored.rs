//! The stored credential: its lock, loading and saving it, and renewals by another process.

use std::time::Duration;

use switchboard_auth::{Action, Credential, Event, Machine, Renewed};
use tokio::time::{Instant, sleep, timeout};

use super::{Flight, Landing, RETRY, RETRY_MAX, Task, flown};
use crate::auth::{Renewal, now};

/// The time limit for another process to release the credential: longer than it needs for a request and its result.
const LOCK_PATIENCE: Duration = Duration::from_mins(1);
/// The attempts to save a credential, and the delay between them.
const SAVES: u32 = 3;
const SAVE_DELAY: Duration = Duration::from_millis(100);

impl Task {
    /// Renews the tokens of a credential once.
    pub(in crate::auth) async fn renew_once(mut self, renewal: Renewal) -> Renewed {
        let (server, settings) = (self.server.clone(), self.settings.clone());
        self.machine = Machine::new(server, settings, Some(*renewal.credential));
        self.machine.widen(renewal.reach);
        self.renew(Event::Renew).await;
        while self.flight.is_some() {
            let landing = flown(&mut self.flight).await;
            self.landed(landing).await;
        }
        Renewed {
            credential: self.machine.credential().cloned().map(Box::new),
            outcome: self.failure.map_or(Ok(()), Err),
            unsaved: self.unsaved,
        }
    }

    /// The renewal by another process. That needs the lock, so there is none while this process holds it.
    pub(super) fn renewing(&self) -> Option<Flight> {
        // One that is not saved is known to this process alone.
        let is_free = self.lock.is_none() && self.unsaved.is_none();
        let credential = self.machine.credential().filter(|_| is_free)?;
        let renewing = self.store.renew(Renewal {
            server: self.server.to_string(),
            settings: self.settings.clone(),
            reach: self.machine.reach(),
            credential: Box::new(credential.clone()),
        });
        Some(Box::pin(async { Landing::Renewed(renewing.await) }))
    }

    /// Loads the credential under the lock, before its refresh token is used.
    pub(super) async fn load(&mut self) -> Action {
        match self.locked_load().await {
            Ok(stored) => {
                let stored = stored.map(Box::new);
                self.machine.handle(now(), Event::Loaded(stored))
            }
            Err(reason) => self.machine.handle(now(), Event::Failed(reason)),
        }
    }

    async fn locked_load(&mut self) -> Result<Option<Credential>, String> {
        if !self.lock().await {
            return Err("it cannot be locked, and another process may be using it".to_owned());
        }
        if self.unsaved.is_some() {
            // The stored one is older than ours.
            self.save().await;
            return Ok(self.machine.credential().cloned());
        }
        let loaded = self.store.load().await;
        loaded.map_err(|error| format!("cannot load it: {error}"))
    }

    /// Saves the credential. One that cannot be saved is used all the same: the former one may be void already.
    pub(super) async fn save(&mut self) {
        let Some(credential) = self.machine.credential().cloned() else {
            return;
        };
        self.lock().await;
        for attempt in 1..=SAVES {
            match self.store.save(credential.clone()).await {
                Ok(()) => {
                    self.unsaved = None;
                    self.save_again = None;
                    return;
                }
                Err(error) => {
                    tracing::error!(target: "switchboard::auth", server = self.name(), %error, attempt, "Cannot save the sign-in.");
                    self.unsaved = Some(error.to_string());
                }
            }
            sleep(SAVE_DELAY * attempt).await;
        }
        self.save_later();
    }

    /// Plans the next attempt to save the credential.
    pub(super) fn save_later(&mut self) {
        let delay = self.save_again.map_or(RETRY, |(_, delay)| delay);
        self.save_again = Some((Instant::now() + delay, (delay * 2).min(RETRY_MAX)));
    }

    pub(super) async fn lock(&mut self) -> bool {
        if self.lock.is_some() {
            return true;
        }
        match timeout(LOCK_PATIENCE, self.store.lock()).await {
            Ok(Ok(lock)) => self.lock = Some(lock),
            Ok(Err(error)) => self.warn("Cannot lock the sign-in.", &error),
            Err(_) => self.warn(
                "Cannot lock the sign-in.",
                &"another process keeps it locked",
            ),
        }
        self.lock.is_some()
    }

    /// Lets other processes use the credential, unless it is not stored as it is.
    pub(super) fn unlock(&mut self) {
        if self.unsaved.is_none() {
            self.lock = None;
        }
    }
}
