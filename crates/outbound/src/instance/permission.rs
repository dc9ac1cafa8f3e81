//! Decides by its settings if a server may run, and if it runs all the time.

use std::sync::Arc;

use switchboard_base::{
    error::Error,
    health::{Health, Reason, ServerState},
};
use switchboard_config::{Server, Start};

use super::Origin;
use crate::start_approval;

/// Tests if the settings allow the server to run.
pub(super) fn runs(settings: &Server) -> bool {
    settings.enabled && !settings.hold && settings.malformed.is_none()
}

/// The reason of a server whose entry has a malformed reference, and the advice.
const MISSPELT: &str = "a reference in its entry is misspelt";
const MISSPELT_ACTION: &str = "correct the entry; `switchboard doctor` shows the mistake";

/// The health of a server that its settings prevent from running; `None` for others.
pub(crate) fn off(name: &str, settings: &Server) -> Option<Health> {
    if runs(settings) {
        return None;
    }
    if !settings.enabled {
        return Some(Health::new(ServerState::Disabled));
    }
    if let Some(malformed) = &settings.malformed {
        return Some(Health {
            // The text of the entry may be a secret in the wrong place, which agents do not get.
            reason: Some(Reason::new(MISSPELT, Some(&malformed.to_string()))),
            action: Some(MISSPELT_ACTION.into()),
            ..Health::new(ServerState::Parked)
        });
    }
    Some(Health {
        reason: Some(Reason::plain(start_approval::REASON)),
        action: Some(start_approval::action(name).into()),
        ..Health::new(ServerState::Parked)
    })
}

/// The error of calls to a server that its settings prevent from running; `None` for others.
pub(crate) fn refusal(name: &Arc<str>, settings: &Server) -> Option<Error> {
    let server = Arc::clone(name);
    let health = off(name, settings)?;
    Some(match health.reason {
        None => Error::Disabled { server },
        Some(reason) => Error::InitializationFailed {
            server,
            reason,
            action: health.action,
            retry_after: None,
        },
    })
}

/// Tests if the instance runs all the time. Those of single callers run on demand.
pub(super) fn is_kept_up(settings: &Server, origin: &Origin) -> bool {
    settings.start == Some(Start::Eager) && !origin.is_split
}
