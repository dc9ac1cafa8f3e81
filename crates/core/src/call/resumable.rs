//! Clients of 2026-07-28 are not kept waiting for a person: they are sent away with a state, and come
//! back with it.
//!
//! The call goes on in between. A client that comes back is kept for a while, in case the answer comes;
//! then it is sent away again. The state is under a seal that outlives the gateway: after a restart the
//! call begins anew, and finds the answer that a person gave in the meantime.

use std::{sync::Arc, time::Duration};

use switchboard_client::Raw;
use tokio::{
    task::{JoinError, JoinHandle},
    time::timeout,
};

use super::{
    Errand,
    human::{Bell, Client},
    in_flight::{names_progress, progress_token},
    returns, walk,
};
use switchboard_base::{caller::Caller, failure::Failure, view::View};
use switchboard_outbound::upstream::Upstream;

use crate::{
    core::Core,
    dispatch::handshake,
    relay::Told,
    suspended::{Origin, Ticket},
    translate,
};

/// A call that goes on while its client is away. Dropping it withdraws the call.
#[derive(Debug)]
pub(crate) struct Running(JoinHandle<Result<Raw, Failure>>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// How long a client that comes back is kept.
const HOLD: Duration = Duration::from_secs(25);

/// Carries a request of a client of 2026-07-28.
pub(super) async fn carry(
    core: &Arc<Core>,
    caller: &Caller,
    upstream: &Arc<Upstream>,
    errand: Errand<'_>,
) -> Result<Raw, Failure> {
    let waits = Waits {
        core,
        upstream,
        view: errand.view,
        ticket: &|| super::ticket(caller, upstream, &errand),
    };
    let mut params = errand.params.clone();
    let mut comes_back = returns(params.as_ref());
    if comes_back {
        let state = params
            .as_ref()
            .and_then(|params| params.member("requestState")?.to_text());
        let origin = state.as_ref().and_then(|state| core.waiting.origin(state));
        match (origin, state) {
            (Some(Origin::ThisRun), Some(state)) => {
                let running = core.waiting.take(&state, waits.ticket);
                let running = running.map_err(Failure::Refused)?;
                let token = progress_token(errand.params.as_ref());
                let told = names_progress(errand.params.as_ref())?.then(Arc::<Told>::default);
                let client = Client::new(errand.line, token, told);
                return Box::pin(waits.hold(running, &client)).await;
            }
            (Some(Origin::EarlierRun), _) => {
                params = params.map(|params| params.without(&["requestState", "inputResponses"]));
                comes_back = false;
            }
            (None, _) | (_, None) => {}
        }
    }
    let bell = Arc::new(Bell::default());
    let line = errand.line.map(|line| bell.line(line, line.reason()));
    let (guest, view) = (errand.guest.clone(), errand.view.clone());
    let (method, name) = (errand.method.clone(), Arc::clone(&errand.name));
    let call = {
        let (core, caller) = (Arc::clone(core), caller.clone());
        let (upstream, bell) = (Arc::clone(upstream), Arc::clone(&bell));
        async move {
            let errand = Errand {
                guest: &guest,
                line: line.as_ref(),
                view: &view,
                method,
                name,
                params,
                bell: Some(&bell),
                returns: comes_back,
            };
            walk(&core, &caller, &upstream, errand).await
        }
    };
    let mut call = Box::pin(call);
    tokio::select! {
        biased;
        result = &mut call => result,
        () = bell.rung() => {
            bell.send_away();
            waits.send_away(Running(tokio::spawn(call)))
        }
    }
}

struct Waits<'a> {
    core: &'a Arc<Core>,
    upstream: &'a Arc<Upstream>,
    view: &'a View,
    ticket: &'a (dyn Fn() -> Ticket + Sync),
}

impl Waits<'_> {
    /// Keeps a client that has come back, for a while.
    async fn hold(&self, mut running: Running, client: &Client) -> Result<Raw, Failure> {
        let words = "the call is under way, or waits for a person";
        match timeout(HOLD, client.wait(words, &mut running.0)).await {
            // It ends with the gateway, and begins anew with the next: the client is to ask that.
            Ok(Ok(Err(_)) | Err(_)) if self.core.approvals.is_stopping() => {
                Ok(self.come_back(&self.core.waiting.state_for_later()))
            }
            Ok(ended) => ended.unwrap_or_else(|error| Err(lost(&error))),
            Err(_) => self.send_away(running),
        }
    }

    /// Tells the client to come back.
    fn send_away(&self, running: Running) -> Result<Raw, Failure> {
        let approvals = &self.core.config.load().approvals;
        // Twice as long as a person may take: what comes of it has to be fetched.
        let patience = 2 * (approvals.short_timeout + approvals.long_timeout);
        let (server, ticket) = (&self.upstream.name, (self.ticket)());
        let state = self.core.waiting.put(server, ticket, patience, running);
        let state = state.map_err(|_| Failure::Crowded)?;
        Ok(self.come_back(&state))
    }

    /// Tells a client to come back with this.
    fn come_back(&self, state: &str) -> Raw {
        let answer = Raw::object([
            ("resultType", Raw::string("input_required")),
            ("requestState", Raw::string(state)),
        ]);
        translate::modern(answer, || handshake::info(self.core, self.view))
    }
}

fn lost(error: &JoinError) -> Failure {
    tracing::error!(%error, "A call was lost.");
    Failure::Cancelled
}
