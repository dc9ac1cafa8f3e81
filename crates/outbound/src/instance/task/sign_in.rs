//! Servers that a user has to sign in to.

use std::future::pending;

use switchboard_base::health::{Health, Reason, ServerState};
use switchboard_client::auth::{OAuth, State as SignIn};

use super::{Task, Wanted};

impl Task {
    /// Handles a server that a user has to sign in to.
    pub(super) fn await_sign_in(&mut self) {
        let oauth = self.run.as_mut().and_then(|run| run.oauth.take());
        let awaited = oauth.map(|oauth| (oauth.clone(), oauth.state()));
        if self.run.as_ref().is_some_and(|run| run.ready) {
            // The server may still answer calls in flight. The connection ends with the last of them.
            self.instance.hide();
            self.run = None;
        } else {
            self.let_go();
        }
        let reason = match &awaited {
            Some((_, SignIn::SignedOut { reason })) => {
                Reason::new(&reason.to_string(), reason.said())
            }
            Some((_, SignIn::SignedIn { .. } | SignIn::Refreshing)) => {
                Reason::plain("the server refuses the token that was issued for it")
            }
            _ => Reason::plain("the server requires a sign-in"),
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

    /// Handles the sign-in of a user.
    pub(super) fn resume(&mut self) {
        self.awaited = None;
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

/// Waits until the sign-in of a run is no longer valid.
pub(super) async fn signed_out(oauth: Option<&OAuth>) {
    let Some(oauth) = oauth else {
        return pending().await;
    };
    let mut state = oauth.state();
    while !matches!(state, SignIn::SignedOut { .. }) {
        state = oauth.changed_from(&state).await;
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
