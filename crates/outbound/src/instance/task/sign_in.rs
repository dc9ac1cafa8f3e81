//! Servers that a user has to sign in to.

use std::future::pending;

use switchboard_base::health::{Health, Reason, ServerState};
use switchboard_client::auth::{OAuth, State as SignIn};

use super::{Task, Wanted};
use crate::{restart::StartError, sign_in::of_outage};

impl Task {
    /// Handles a server that a user has to sign in to, and the text with which it refused the connection.
    pub(super) fn await_sign_in(&mut self, wrote: Option<&str>) {
        let Some(run) = &mut self.run else { return };
        let (oauth, was_ready) = (run.oauth.take(), run.ready);
        if let Some(oauth) = &oauth
            && let Some(outage) = oauth.outage()
        {
            self.fail(StartError {
                reason: of_outage(&outage),
                permanent: false,
            });
            self.outage = Some(oauth.clone());
            return;
        }
        if was_ready {
            // The server may still answer calls in flight. The connection ends with the last of them.
            self.instance.hide();
            self.run = None;
        } else {
            self.let_go();
        }
        let awaited = oauth.map(|oauth| (oauth.clone(), oauth.state()));
        let reason = match &awaited {
            Some((_, SignIn::SignedOut { reason })) => {
                Reason::new(&reason.to_string(), reason.said())
            }
            Some((_, SignIn::SignedIn { .. } | SignIn::Refreshing)) => {
                Reason::new("the server refuses the token that was issued for it", wrote)
            }
            _ => Reason::new("the server requires a sign-in", wrote),
        };
        tracing::warn!(server = %self.instance.id, %reason, "A user has to sign in.");
        let line = format!("a user has to sign in: {reason}");
        self.instance.deps.logs.note(&self.instance.id, &line);
        self.awaited = awaited;
        self.instance.set_new(false);
        self.restart.signed_out(reason);
        let health = self.unwell();
        self.tell(health);
    }

    /// Handles the sign-in of a user, or the end of an outage.
    pub(super) fn resume(&mut self) {
        self.awaited = None;
        self.outage = None;
        self.restart.pardon();
        self.failed = None;
        self.instance.set_new(self.is_to_list());
        let state = match self.wanted() {
            Wanted::No => ServerState::Idle,
            Wanted::Now | Wanted::Sometime => ServerState::Starting,
        };
        self.tell(Health::new(state));
    }
}

/// Waits until the sign-in of a run is no longer valid. A server that never had one may need none for most requests.
pub(super) async fn signed_out(oauth: Option<&OAuth>, was_signed_in: &mut bool) {
    let Some(oauth) = oauth else {
        return pending().await;
    };
    let mut state = oauth.state();
    while !is_lost(&state, was_signed_in) {
        state = oauth.changed_from(&state).await;
    }
}

/// Tests if a sign-in was valid, and is not any more.
pub(super) fn is_lost(state: &SignIn, was_signed_in: &mut bool) -> bool {
    match state {
        SignIn::SignedIn { .. } | SignIn::Refreshing => {
            *was_signed_in = true;
            false
        }
        SignIn::SignedOut { .. } | SignIn::NeedsSignIn | SignIn::Unknown => *was_signed_in,
        SignIn::AwaitingUser { .. }
        | SignIn::Discovering
        | SignIn::Registering
        | SignIn::Exchanging => false,
    }
}

/// Waits until tokens can be renewed again.
pub(super) async fn outage_over(oauth: Option<&OAuth>) {
    match oauth {
        Some(oauth) => oauth.outage_over().await,
        None => pending().await,
    }
}

/// Waits until a user has signed in.
pub(super) async fn signed_in(awaited: Option<&(OAuth, SignIn)>) {
    let Some((oauth, refused)) = awaited else {
        return pending().await;
    };
    let mut state = refused.clone();
    loop {
        state = oauth.changed_from(&state).await;
        if matches!(state, SignIn::SignedIn { .. }) {
            return;
        }
    }
}
