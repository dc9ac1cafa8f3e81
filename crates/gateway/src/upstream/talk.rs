//! What passes between a server and the gateway beside calls: what it tells, what it is told, and what is
//! asked of it for good.

use std::{
    sync::{Arc, PoisonError, atomic::Ordering::Relaxed},
    time::{Duration, Instant},
};

use switchboard_catalog::Kind;
use switchboard_client::{Era, Raw, model::LogLevel};
use switchboard_config::Trust;
use switchboard_wire::method;

use super::Upstream;
use crate::{
    call::Items,
    caller::Principal,
    context::Context,
    failure::{Failure, cut},
    health::Reason,
    judgement::{Judged, Judgements},
    learn::{self, Learnt, Lists},
    line::Line,
    live::Live,
};

/// When a call may be tried again that a list was missing for.
const RETRY_UNLISTED: Duration = Duration::from_secs(1);

impl Upstream {
    /// Somebody wants log messages from this level on, now and of every connection to come.
    pub(crate) async fn want_level(&self, level: LogLevel) {
        {
            let mut wanted = self.level.lock().unwrap_or_else(PoisonError::into_inner);
            *wanted = Some(wanted.map_or(level, |wanted| wanted.min(level)));
        }
        if let Some(live) = self.live() {
            live.want_level(level).await;
        }
    }

    /// Whether the list of this kind is older than the server wants it to be.
    pub(crate) fn is_stale(&self, kind: Kind) -> bool {
        let told = |live: &Live| live.tells_changes(kind);
        self.live().is_some_and(|live| {
            let fresh = self.freshness.of(kind);
            fresh.is_some_and(|fresh| fresh.is_over(told(&live)))
        })
    }

    /// Asks for a list that is out of date, unless somebody else just has.
    pub(crate) async fn refresh(&self, context: &Context, kind: Kind) {
        let _refreshing = self.refreshing.lock().await;
        let Some(live) = self.live().filter(|_| self.is_stale(kind)) else {
            return;
        };
        if let Some(learnt) = learn::learn(&self.name, live.client(), Lists::of(kind)).await {
            self.take_in(context, learnt).await;
        }
    }

    /// Whether this connection may be asked about these items: waits until the lists that they stand in
    /// are judged, unless the server is always trusted, and refuses what is held back or was never
    /// listed. `false` if the connection has ended meanwhile.
    pub(crate) async fn admit(
        &self,
        context: &Context,
        live: &Live,
        items: &Items<'_>,
        deadline: Instant,
    ) -> Result<bool, Failure> {
        let always = self.settings().trust == Trust::Always;
        for (kind, name) in items.iter().flatten() {
            if !always {
                match self.judged(context, live, (*kind, name), deadline).await {
                    Judged::Yes => {}
                    Judged::Ended => return Ok(false),
                    Judged::NotYet => {
                        let late = Reason::plain("its list has not come in yet");
                        return Err(self.unlisted(late));
                    }
                    Judged::Failed(why) => {
                        return Err(self.unlisted(why.within("its list cannot be read")));
                    }
                }
            }
            let item = Some((*kind, &**name));
            let permitted = context.shelf.permits(&self.name, item);
            permitted.map_err(|unapproved| unapproved.failure(&self.name, item))?;
            // A name that is not listed has never been judged.
            let word = match kind {
                Kind::Tool => "tool",
                Kind::Prompt => "prompt",
                Kind::Resource | Kind::Template => continue,
            };
            if !always && !context.shelf.lists(&self.name, *kind, name) {
                let (server, name) = (&self.name, cut(name));
                let message = format!("server '{server}' offers no {word} '{name}'");
                return Err(Failure::invalid_params(message));
            }
        }
        Ok(true)
    }

    /// Waits until the lists that say whether this item may be used have been judged, as the connection
    /// offers them now. A resource that is listed needs its list alone; any other URI may be of a template.
    async fn judged(
        &self,
        context: &Context,
        live: &Live,
        (kind, name): (Kind, &str),
        deadline: Instant,
    ) -> Judged {
        let judged = self.judged_list(context, live, kind, deadline).await;
        if judged != Judged::Yes
            || kind != Kind::Resource
            || context.shelf.lists(&self.name, kind, name)
        {
            return judged;
        }
        self.judged_list(context, live, Kind::Template, deadline)
            .await
    }

    /// Waits until the list of this kind has been judged. A list that is waited for is asked for at once.
    async fn judged_list(
        &self,
        context: &Context,
        live: &Live,
        kind: Kind,
        deadline: Instant,
    ) -> Judged {
        if let Some(judged) = live.judgements.now(kind) {
            return judged;
        }
        let until = (Instant::now() + context.wait()).min(deadline);
        self.hurry(kind);
        // Boxed, as all that few calls come to.
        Box::pin(live.judgements.wait(kind, until)).await
    }

    fn unlisted(&self, reason: Reason) -> Failure {
        Failure::Initializing {
            server: Arc::clone(&self.name),
            reason: Some(reason),
            retry_after: RETRY_UNLISTED,
        }
    }

    /// Takes in what the server says it offers. Says whether that has been judged.
    pub(super) async fn take_in(&self, context: &Context, learnt: Learnt) -> bool {
        if self.ending.load(Relaxed) {
            return false;
        }
        for (kind, hints) in learnt.hints() {
            self.freshness.set(kind, hints);
        }
        let shelf = &context.shelf;
        let taking_in = shelf.put(&self.name, |known| learnt.merge(known));
        taking_in.await
    }

    /// A client on this line says that its roots have changed. Servers of the older revisions keep them,
    /// and ask when they are told.
    pub(crate) async fn roots_changed(&self, principal: Principal, line: Line) {
        self.questions.set_roots(principal, line);
        if let Some(live) = self.live().filter(|live| live.era() == Era::Legacy) {
            // A server that is gone asks when it is back.
            let _ = live.client().notify(method::ROOTS_CHANGED, None).await;
        }
    }

    /// The server says something that is no part of a call.
    pub(super) fn told(
        &self,
        context: &Context,
        judgements: &Judgements,
        said: &str,
        params: Option<&Raw>,
    ) {
        if let Some(lists) = Lists::changed(said) {
            if lists.has(Kind::Resource) {
                context.reads.forget(&self.name);
            }
            judgements.change(lists);
            self.wake.notify_one();
            return;
        }
        if context.shelf.permits(&self.name, None).is_err() {
            // Nobody has approved anything of it: what it says goes nowhere.
            return;
        }
        match (said, params) {
            (method::RESOURCE_UPDATED, Some(params)) => {
                let Some(uri) = params.member("uri").and_then(|uri| uri.to_text()) else {
                    return;
                };
                context.reads.changed(&self.name, &uri);
                let item = Some((Kind::Resource, &*uri));
                if context.shelf.permits(&self.name, item).is_err() {
                    return;
                }
                self.watched.updated(context, &self.name, params);
            }
            (method::LOG_MESSAGE | method::ELICITATION_COMPLETE, _) => {
                context.audience.hear(self, said, params);
            }
            _ => {}
        }
    }
}

/// What the gateway says it can do. Servers of the older revisions are told once, before it is known who
/// will call them: what the client of a call cannot do is refused when it is asked for.
pub(super) fn capabilities() -> Raw {
    let nothing = Raw::empty_object;
    Raw::object([
        ("roots", Raw::object([("listChanged", Raw::from(true))])),
        (
            "sampling",
            Raw::object([("context", nothing()), ("tools", nothing())]),
        ),
        (
            "elicitation",
            Raw::object([("form", nothing()), ("url", nothing())]),
        ),
    ])
}

/// Asks a new connection for what was asked of the one before.
pub(super) fn restore(upstream: &Arc<Upstream>, live: &Arc<Live>) {
    let level = *upstream
        .level
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    if level.is_none() && upstream.watched.is_empty() {
        return;
    }
    let (upstream, live) = (Arc::clone(upstream), Arc::clone(live));
    tokio::spawn(async move {
        if let Some(level) = level {
            live.want_level(level).await;
        }
        upstream
            .watched
            .restore(&upstream.name, live.client())
            .await;
    });
}
