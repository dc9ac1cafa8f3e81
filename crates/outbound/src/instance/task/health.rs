//! The health of a server: its report, and the health of one that does not run.

use std::time::SystemTime;

use switchboard_base::health::{Health, Reason, ServerState};
use switchboard_config::shell_word;

use super::Task;
use crate::{clock, restart::State, sign_in};

impl Task {
    /// The health of a server that is, or may be, retried. After a failure it has a reason until it is up.
    pub(super) fn again(&self, state: ServerState) -> Health {
        let failed = self.failed.as_ref();
        Health {
            reason: failed.map(|reason| reason.within("the last attempt failed")),
            action: failed.and_then(Reason::hint).map(Into::into),
            ..Health::new(state)
        }
    }

    /// The health of a server that is not retried for a while.
    pub(super) fn unwell(&self) -> Health {
        let name = shell_word(&self.instance.name);
        let (until, reason, state, action) = match self.restart.state() {
            State::Waiting { until, reason } => {
                let action = match reason.hint() {
                    Some(hint) => format!("{hint}; the gateway retries it"),
                    None => format!(
                        "the gateway retries it; `switchboard logs {name}` shows its output"
                    ),
                };
                (*until, reason, ServerState::Retrying, action)
            }
            State::Parked {
                until,
                reason,
                permanent,
            } => {
                let first = match reason.hint() {
                    Some(hint) => hint.to_owned(),
                    None if *permanent => "fix the cause".to_owned(),
                    None => format!("check `switchboard logs {name}`"),
                };
                let action = format!("{first}, then run `switchboard restart {name}`");
                (*until, reason, ServerState::Parked, action)
            }
            State::SignedOut { reason } => {
                return Health {
                    reason: Some(reason.clone()),
                    action: Some(sign_in::action(&self.instance.name).into()),
                    ..Health::new(ServerState::NeedsSignIn)
                };
            }
            State::Idle | State::Starting | State::Up { .. } => {
                return Health::new(ServerState::Idle);
            }
        };
        Health {
            reason: Some(reason.clone()),
            action: Some(action.into()),
            next_try: Some(SystemTime::now() + until.saturating_duration_since(clock::now())),
            ..Health::new(state)
        }
    }

    /// Publishes the health of the server.
    pub(super) fn tell(&self, health: Health) {
        let name = &self.instance.name;
        tracing::debug!(server = %self.instance.id, state = health.state.as_str(), reason = health.reason.as_ref().map(tracing::field::display), "Server state.");
        // Before the event: a client may read the status in response to it.
        self.instance.health.send_replace(health);
        if self.instance.era.is_none() {
            let health = self.instance.health();
            let events = &self.instance.deps.events;
            match self.instance.origin.number {
                None => events.server(name, &health),
                Some(number) => events.instance(name, number, &health),
            }
        }
    }
}
