//! Renewals on behalf of another process.

use std::{pin::Pin, sync::Arc};

use serde::{Deserialize, Serialize};
use switchboard_auth::{Credential, Error, Reach, Renewed, Settings};

use super::{OAuth, Store};

/// A renewal by another process. `None`: it has not begun.
pub type Renewing = Pin<Box<dyn Future<Output = Option<Renewed>> + Send>>;

/// The knowledge that a process needs to renew the tokens of another one. It contains secrets.
#[derive(Debug, Clone, Deserialize, Serialize)]
pub struct Renewal {
    pub(super) server: String,
    pub(super) settings: Settings,
    /// The hosts that the server may refer to.
    pub(super) reach: Reach,
    pub(super) credential: Box<Credential>,
}

impl Renewal {
    /// The credential as the other process knows it.
    pub fn credential(&self) -> &Credential {
        &self.credential
    }

    /// Locks the credential, loads it, and renews and saves its tokens, unless a third process has done so meanwhile. Takes
    /// at most some minutes, and must not be cancelled. Requires a Tokio runtime.
    pub async fn run(self, store: impl Store) -> Renewed {
        let known = self.credential.clone();
        match OAuth::with_task(&self.server, self.settings.clone(), Arc::new(store)) {
            // The handle keeps the channels of the task open.
            Ok((_handle, task)) => task.renew_once(self).await,
            Err(error) => Renewed {
                credential: Some(known),
                outcome: Err(Error::Unreachable {
                    document: "token".into(),
                    reason: error.to_string(),
                }),
                unsaved: None,
            },
        }
    }
}
