//! Resumable calls: clients of 2026-07-28 are not kept waiting for a person. They receive a state,
//! and repeat their request with it.
//!
//! The call goes on in between. A client that comes back is held for a while, in case the result
//! arrives; then it is sent away again. The state is signed with a key that outlives the gateway:
//! after a restart the call starts from scratch, and finds the answer that a person gave in the
//! meantime.

use std::{sync::Arc, time::Duration};

use switchboard_base::{
    caller::{Caller, Realm},
    error::Error,
    view::View,
};
use switchboard_client::Raw;
use switchboard_outbound::upstream::Upstream;
use tokio::{
    task::{JoinError, JoinHandle},
    time::timeout,
};

use super::{
    UpstreamRequest,
    human::{AskSignal, Client},
    in_flight::{names_progress, progress_token},
    returns, walk,
};
use crate::{
    core::Core,
    dispatch::handshake,
    relay::LastProgress,
    suspended::{Origin, ResumeKey},
    translate,
};

/// A call that continues while its client is away. Dropping it withdraws the call.
#[derive(Debug)]
pub(crate) struct Running(JoinHandle<Result<Raw, Error>>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The longest time that a client that comes back is held.
const HOLD: Duration = Duration::from_secs(25);

/// Forwards a request of a client of 2026-07-28.
pub(super) async fn carry(
    core: &Arc<Core>,
    caller: &Caller,
    upstream: &Arc<Upstream>,
    outgoing: UpstreamRequest<'_>,
) -> Result<Raw, Error> {
    let waits = Waits {
        core,
        upstream,
        realm: caller.realm,
        view: outgoing.view,
        ticket: &|| super::ticket(caller, upstream, &outgoing),
    };
    let mut params = outgoing.params.clone();
    let mut comes_back = returns(params.as_ref());
    if comes_back {
        let state = params
            .as_ref()
            .and_then(|params| params.member("requestState")?.to_text());
        let origin = state.as_ref().and_then(|state| core.waiting.origin(state));
        match (origin, state) {
            (Some(Origin::ThisRun), Some(state)) => {
                let running = core.waiting.take(&state, waits.ticket);
                let running = running.map_err(Error::Refused)?;
                let token = progress_token(outgoing.params.as_ref());
                let told =
                    names_progress(outgoing.params.as_ref())?.then(Arc::<LastProgress>::default);
                let client = Client::new(outgoing.backchannel, token, told);
                return Box::pin(waits.hold(running, &client)).await;
            }
            (Some(Origin::EarlierRun), _) => {
                params = params.map(|params| params.without(&["requestState", "inputResponses"]));
                comes_back = false;
            }
            (None, _) | (_, None) => {}
        }
    }
    let ask_signal = Arc::new(AskSignal::default());
    let backchannel = outgoing
        .backchannel
        .map(|backchannel| ask_signal.backchannel(backchannel, backchannel.reason()));
    let (guest, view) = (outgoing.guest.clone(), outgoing.view.clone());
    let (method, name) = (outgoing.method.clone(), Arc::clone(&outgoing.name));
    let (changes, permitted) = (outgoing.changes.clone(), outgoing.permitted.clone());
    let call = {
        let (core, caller) = (Arc::clone(core), caller.clone());
        let (upstream, ask_signal) = (Arc::clone(upstream), Arc::clone(&ask_signal));
        async move {
            let outgoing = UpstreamRequest {
                guest: &guest,
                backchannel: backchannel.as_ref(),
                view: &view,
                method,
                name,
                params,
                changes,
                permitted,
                ask_signal: Some(&ask_signal),
                returns: comes_back,
            };
            walk(&core, &caller, &upstream, outgoing).await
        }
    };
    let mut call = Box::pin(call);
    tokio::select! {
        biased;
        result = &mut call => result,
        () = ask_signal.rung() => {
            ask_signal.send_away();
            waits.send_away(Running(tokio::spawn(call)))
        }
    }
}

struct Waits<'a> {
    core: &'a Arc<Core>,
    upstream: &'a Arc<Upstream>,
    realm: Realm,
    view: &'a View,
    ticket: &'a (dyn Fn() -> ResumeKey + Sync),
}

impl Waits<'_> {
    /// Holds a client that has come back, for at most [`HOLD`].
    async fn hold(&self, mut running: Running, client: &Client) -> Result<Raw, Error> {
        let words = "the call is in progress, or is waiting for an approver";
        match timeout(HOLD, client.wait(words, &mut running.0)).await {
            // The call ends with the gateway and starts from scratch in the next one. Tell the
            // client to come back there.
            Ok(Ok(Err(_)) | Err(_)) if self.core.approvals.is_stopping() => {
                Ok(self.come_back(&self.core.waiting.state_for_later()))
            }
            Ok(ended) => ended.unwrap_or_else(|error| Err(lost(&error))),
            Err(_) => self.send_away(running),
        }
    }

    /// Keeps the call running, and tells the client to come back.
    fn send_away(&self, running: Running) -> Result<Raw, Error> {
        let approvals = &self.core.config.load().approvals;
        // Twice the time that a person may take, so that the client has time to fetch the result.
        let patience = 2 * (approvals.short_timeout + approvals.long_timeout);
        let (server, ticket) = (&self.upstream.name, (self.ticket)());
        let state = self.core.waiting.put(server, ticket, patience, running);
        let state = state.map_err(|_| Error::Crowded)?;
        Ok(self.come_back(&state))
    }

    /// The result that tells a client to come back with this state.
    fn come_back(&self, state: &str) -> Raw {
        let answer = Raw::object([
            ("resultType", Raw::string("input_required")),
            ("requestState", Raw::string(state)),
        ]);
        translate::modern(answer, || handshake::info(self.core, self.realm, self.view))
    }
}

fn lost(error: &JoinError) -> Error {
    tracing::error!(%error, "A call failed inside the gateway.");
    Error::Cancelled
}
