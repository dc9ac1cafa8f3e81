//! Requests and notifications with methods that the gateway does not know, for servers that declare
//! an extension.

use std::sync::Arc;

use switchboard_base::{
    caller::{Caller, Guest},
    error::Error,
    extensions::{Told, declares, is_foreign},
    view::View,
};
use switchboard_client::Raw;
use switchboard_outbound::{
    instance::Instance,
    live::Live,
    upstream::{Lease, Upstream},
};
use switchboard_wire::Notification;
use tokio::time::timeout;

use super::Dispatch;
use crate::{call::extension::may_pass, core::Core, translate};

/// The most bytes of the parameters of a notification to a server.
const NOTIFICATION_BYTES: usize = 64 * 1024;

impl Dispatch<'_> {
    /// Forwards a request to the server of this view. It takes a permit, a deadline and a record
    /// like any call.
    pub(super) async fn extension(
        &self,
        method: String,
        params: Option<Raw>,
    ) -> Result<Raw, Error> {
        let unknown = Error::method_not_found(&method);
        let View::Server(server) = self.view else {
            return Err(unknown);
        };
        if !is_foreign(&method) {
            return Err(unknown);
        }
        let part = self.part(server).await?;
        if !part.offers().capabilities.as_ref().is_some_and(declares) {
            return Err(unknown);
        }
        let params = params.unwrap_or_else(Raw::empty_object);
        let text = |name: &str| params.member(name).and_then(|text| text.to_text());
        let name = text("name").or_else(|| text("uri")).unwrap_or_default();
        self.outgoing(server, method, Arc::from(name), params).await
    }
}

/// Forwards a notification of a client to the server that it is connected to. The notification is
/// dropped if the server does not run or its queue is full.
pub fn hand_on(core: &Arc<Core>, view: &View, caller: &Caller, guest: Guest, told: &Notification) {
    let View::Server(server) = view else {
        return;
    };
    let fits = |params: &Raw| params.is_object() && params.as_bytes().len() <= NOTIFICATION_BYTES;
    if !is_foreign(&told.method)
        || !told.params.as_ref().is_none_or(fits)
        || !core.live_catalog.declares_extension(server)
    {
        return;
    }
    let scope = core.scopes.of(caller.realm);
    let Ok(upstream) = scope.and_then(|scope| core.upstream_in(&scope, server)) else {
        return;
    };
    let instance = upstream.expected(caller);
    let running = instance.filter(|instance| instance.lives().next().is_some());
    let Some(instance) = running else { return };
    let told = Told {
        caller: caller.clone(),
        guest,
        method: told.method.clone(),
        // Copied: a frame may be a batch.
        params: told.params.as_ref().map(Raw::detached),
    };
    if instance.outbound.put(told) {
        tokio::spawn(move_all(Arc::clone(core), upstream, instance));
    }
}

/// Sends the queued notifications of a server, one after another.
async fn move_all(core: Arc<Core>, upstream: Arc<Upstream>, instance: Lease) {
    while let Some(told) = instance.outbound.next() {
        let moving = move_one(&core, &upstream, &instance, told);
        // A notification has no response, so its failure is not reported.
        let _ = timeout(upstream.request_timeout(), moving).await;
    }
}

async fn move_one(core: &Core, upstream: &Upstream, instance: &Instance, told: Told) -> Option<()> {
    let Told {
        caller,
        guest,
        method,
        params,
    } = told;
    let passing = may_pass(core, &caller, upstream, &method, params.as_ref());
    passing.await.ok()?;
    let _place = instance.limiter.acquire(caller.key).ok()?.await;
    let live = connection(instance, &guest)?;
    // A question that this leads to must not reach a client of another principal.
    instance.questions.note(&caller);
    let params = match guest {
        Guest::Modern => translate::request(params, &guest, live.era(), false),
        Guest::Legacy { .. } => params,
    };
    live.client().notify(method, params).await.ok()
}

/// The connection in the client's era, or else any other.
fn connection(instance: &Instance, guest: &Guest) -> Option<Arc<Live>> {
    let of_era = instance.lives().find(|live| live.era() == guest.era());
    of_era.or_else(|| instance.lives().next())
}
