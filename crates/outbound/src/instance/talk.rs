//! Communication with a server apart from calls: lists, notifications, and state that is restored on every
//! new connection.

use std::{
    sync::{Arc, LazyLock, atomic::Ordering::Relaxed},
    time::Instant,
};

use switchboard_base::{
    apps,
    backchannel::Backchannel,
    caller::{Caller, said},
    error::{Error, cut},
    extensions::{is_foreign, with_extensions},
    health::{Reason, UNREADABLE},
};
use switchboard_catalog::{Kind, Offers};
use switchboard_client::{Asked, Era, Raw, throttle::Limited};
use switchboard_config::{Trust, shell_word};
use switchboard_wire::{meta, method};

use super::{Instance, Items};
use crate::{
    clock,
    deps::{Answering, Source},
    discovery::{self, HURRIED_RETRY, Learnt, Lists, Missing, list_method},
    judgement::{Judged, Judgements},
    live::Live,
    pins::item_kind,
    questions::UnderWay,
};

/// The decision whether a connection may be used for a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// It may.
    Yes,
    /// It has ended meanwhile.
    Ended,
    /// The first connection has to be used: the definition on this second one does not match the server's
    /// known definition.
    Elsewhere,
}

impl Instance {
    /// Tests if the list of this kind is older than the server's lifetime for it.
    pub(crate) fn is_stale(&self, kind: Kind) -> bool {
        let told = |live: &Live| live.tells_changes(kind);
        self.live().is_some_and(|live| {
            let fresh = self.common.freshness.of(kind);
            fresh.is_some_and(|fresh| fresh.is_over(told(&live)))
        })
    }

    /// Fetches a stale list, unless another task just has.
    pub(crate) async fn refresh(self: &Arc<Self>, kind: Kind) {
        let _refreshing = self.common.refreshing.lock().await;
        let Some(live) = self.live().filter(|_| self.is_stale(kind)) else {
            return;
        };
        let lists = Lists::of(kind);
        if let Some(learnt) = discovery::learn(live.client(), lists).await {
            let missing = learnt.missing.clone();
            self.take_in(learnt).await;
            self.note_lists(lists, &missing);
        }
    }

    /// Records which of these lists could not be fetched, and reports new failures: a list that keeps failing
    /// for the same reason is reported once.
    pub(super) fn note_lists(&self, lists: Lists, missing: &Missing) {
        let news = {
            let mut known = self.common.missing.lock();
            let before = known.clone();
            known.retain(|(kind, _)| !lists.has(*kind));
            known.extend_from_slice(missing);
            known.sort_by_key(|(kind, _)| *kind);
            if *known == before {
                return;
            }
            let news = missing.iter().filter(|one| !before.contains(one));
            news.cloned().collect::<Missing>()
        };
        for (kind, reason) in news {
            static TOLD: LazyLock<Limited> = LazyLock::new(Limited::default);
            let list = list_method(kind);
            TOLD.report(|missed| {
                tracing::warn!(server = %self.name, list, %reason, missed, "Cannot fetch a list of the server.");
            });
            let line = format!("{list} failed: {reason}");
            self.deps.logs.remark(&self.id, &line);
        }
        if self.era.is_none() && self.origin.number.is_none() {
            self.deps.events.server(&self.name, &self.health());
        }
    }

    /// The error if it is unknown whether the running server has an item of this kind, because its list could
    /// not be fetched. The list is fetched again.
    pub(crate) fn lacks(&self, kind: Kind) -> Option<Error> {
        let mut missing = self.common.missing.lock().clone().into_iter();
        let (_, why) = missing.find(|(of, _)| *of == kind)?;
        self.live()?;
        self.hurry(kind);
        Some(self.unlisted(why.within(UNREADABLE)))
    }

    /// Decides if this connection may be used for these items: waits until their lists have been judged,
    /// unless the server is always trusted, and rejects items that are held, were never listed, or are defined
    /// differently by this instance than in the server's lists.
    pub async fn admit(
        &self,
        live: &Live,
        items: &Items<'_>,
        deadline: Instant,
    ) -> Result<Admission, Error> {
        let always = self.settings().trust == Trust::Always;
        let is_second = self.era.is_some();
        let began = clock::now();
        // Leave time for the first connection.
        let deadline = if is_second {
            began + deadline.saturating_duration_since(began) / 2
        } else {
            deadline
        };
        for (kind, name) in items.iter().flatten() {
            if !always || is_second {
                match self.judged(live, (*kind, name), deadline).await {
                    Judged::Yes => {}
                    Judged::Ended => return Ok(Admission::Ended),
                    Judged::NotYet | Judged::Failed(_) if is_second => {
                        self.doubt_lists(live, *kind, began);
                        return Ok(Admission::Elsewhere);
                    }
                    Judged::NotYet => return Err(self.unheard()),
                    Judged::Failed(why) => {
                        return Err(self.unlisted(why.within(UNREADABLE)));
                    }
                }
            }
            if is_second && !self.agreement.load().covers(*kind, name) {
                return Ok(Admission::Elsewhere);
            }
            let item = Some((*kind, &**name));
            self.deps.live_catalog.permits(&self.name, item)?;
            if self.is_split() && !is_second && !always {
                self.agrees(*kind, name)?;
            }
            // A name that is not listed has never been judged.
            if matches!(kind, Kind::Resource | Kind::Template) {
                continue;
            }
            if !always && !self.deps.live_catalog.lists(&self.name, *kind, name) {
                let (server, word, name) = (&self.name, kind_word(*kind), cut(name));
                let message = format!("server `{server}` offers no {word} `{name}`");
                return Err(Error::invalid_params(message));
            }
        }
        Ok(Admission::Yes)
    }

    /// Checks that the server's definition of an item is that of this instance. Clients see, and the user approves,
    /// the definitions in the lists of the server.
    fn agrees(&self, kind: Kind, name: &str) -> Result<(), Error> {
        if self.agreement.load().covers(kind, name) {
            return Ok(());
        }
        let server = &self.name;
        if self.deps.live_catalog.holds_apart(server, (kind, name)) {
            return Err(Error::Unapproved {
                server: Arc::clone(server),
                item: Some(item_kind(kind).key(name).into()),
                new_name: None,
            });
        }
        let is_listed = self.listing.load().has(kind, name);
        let word = kind_word(kind);
        let shown = cut(name);
        if !is_listed {
            let message = format!("server `{server}` offers no {word} `{shown}` to this client");
            return Err(Error::invalid_params(message));
        }
        let message = format!(
            "the instance of server `{server}` for this client defines {word} `{shown}` differently than its latest one"
        );
        let hint = format!(
            "restart it with `switchboard restart {}`",
            shell_word(&self.id)
        );
        Err(Error::advised(message, &hint))
    }

    /// Waits until the lists that decide about this item have been judged in their current state. A listed
    /// resource needs only its list; any other URI may come from a template.
    async fn judged(&self, live: &Live, (kind, name): (Kind, &str), deadline: Instant) -> Judged {
        let judged = self.judged_list(live, kind, deadline).await;
        if judged != Judged::Yes
            || kind != Kind::Resource
            || self.deps.live_catalog.lists(&self.name, kind, name)
        {
            return judged;
        }
        self.judged_list(live, Kind::Template, deadline).await
    }

    /// Waits until the list of this kind has been judged. A list that is waited for is fetched at once.
    async fn judged_list(&self, live: &Live, kind: Kind, deadline: Instant) -> Judged {
        if let Some(judged) = live.judgements.now(kind) {
            if let Judged::Failed(_) = judged {
                self.hurry(kind);
            }
            return judged;
        }
        let mut patience = self.deps.wait();
        if !live.judgements.has_been(kind) {
            // The server is still starting.
            patience = patience.max(self.common.settings.load().init_timeout);
        }
        let until = (clock::now() + patience).min(deadline);
        self.hurry(kind);
        // Boxed, because few calls get here.
        Box::pin(live.judgements.wait(kind, until)).await
    }

    /// The error of a server that has not sent its list yet.
    pub fn unheard(&self) -> Error {
        self.unlisted(Reason::plain("the server has not sent its list yet"))
    }

    fn unlisted(&self, reason: Reason) -> Error {
        Error::Initializing {
            server: Arc::clone(&self.name),
            reason: Some(reason),
            retry_after: HURRIED_RETRY,
        }
    }

    /// Takes in the lists that the server sent. Returns `true` if they have been judged.
    pub(super) async fn take_in(self: &Arc<Self>, learnt: Learnt) -> bool {
        if self.ending.load(Relaxed) {
            return false;
        }
        let live_catalog = &self.deps.live_catalog;
        if self.era.is_some() {
            return self.take_in_besides(learnt).await;
        }
        for (kind, hints) in learnt.hints() {
            self.common.freshness.set(kind, hints);
        }
        let is_open = !self.eras.is_refuted(Era::Modern);
        let first = Arc::clone(self);
        let taking_in = live_catalog.put(&self.name, move |known| {
            let mut offers = first.combined(known, Some(learnt));
            if is_open && offers.era == Some(Era::Legacy) {
                let known = known.and_then(|known| known.capabilities.as_ref());
                offers.capabilities = offers.capabilities.map(|said| with_extensions(said, known));
            }
            // A server that was not probed may support both eras.
            let era = offers.era.filter(|era| *era == Era::Modern || !is_open);
            Offers { era, ..offers }
        });
        let is_judged = taking_in.await;
        self.compare().await;
        is_judged
    }

    /// Does the same for a second connection, which adds to the server's known offers and changes none of
    /// them.
    async fn take_in_besides(self: &Arc<Self>, learnt: Learnt) -> bool {
        self.listing
            .store(Arc::new(self.listing.load().with(learnt)));
        let Some(first) = self.first() else {
            return false;
        };
        // A server is known by the lists of its first connection.
        let is_known = self.deps.live_catalog.offers(&self.name).is_some();
        let is_judged = !is_known || {
            let first = Arc::clone(&first);
            let taking_in = self
                .deps
                .live_catalog
                .put(&self.name, move |known| first.combined(known, None));
            taking_in.await
        };
        first.compare().await;
        is_judged
    }

    /// Records that the roots of a client on this back channel have changed. Servers of older revisions cache
    /// roots, and request them again when notified.
    pub async fn roots_changed(&self, caller: &Caller, backchannel: Backchannel) {
        self.questions.set_roots(caller, backchannel);
        for live in self.lives().filter(|live| live.era() == Era::Legacy) {
            // A server that is gone requests them when it is back.
            let _ = live.client().notify(method::ROOTS_CHANGED, None).await;
        }
    }

    /// Handles a notification that belongs to no call.
    pub(super) fn told(
        self: &Arc<Self>,
        judgements: &Judgements,
        said: &str,
        params: Option<&Raw>,
    ) {
        if let Some(lists) = Lists::changed(said) {
            if lists.has(Kind::Resource) {
                self.deps.reads.forget(&self.id);
            }
            if self.is_announced(params) {
                let mut announced = self.announced.lock();
                *announced = announced.and(lists);
            }
            judgements.change(lists);
            self.wake.notify_one();
            return;
        }
        if self.deps.live_catalog.permits(&self.name, None).is_err() {
            // Nothing of the server is approved, so its messages are dropped.
            return;
        }
        let Some(first) = self.first() else { return };
        match said {
            method::RESOURCE_UPDATED => {
                let uri = params.and_then(|params| params.member("uri")?.to_text());
                let Some(uri) = uri else { return };
                self.deps.reads.changed(&self.id, &uri);
                let item = Some((Kind::Resource, &*uri));
                if self.deps.live_catalog.permits(&self.name, item).is_err() {
                    return;
                }
            }
            method::LOG_MESSAGE | method::ELICITATION_COMPLETE => {}
            _ if is_foreign(said) && self.deps.live_catalog.declares_extension(&self.name) => {}
            _ => return,
        }
        if let Some(handler) = self.deps.handler() {
            handler.notified(first.source(), said, params);
        }
    }

    fn source(&self) -> Source<'_> {
        Source {
            server: &self.name,
            questions: &self.questions,
            watched: &self.watched,
            key: self.key(),
            project: self.origin.occasion.project.as_ref(),
        }
    }

    /// Has a request of the server answered; `None` if the gateway is shutting down.
    pub(super) fn answer(self: &Arc<Self>, asked: Asked, under_way: UnderWay) -> Option<Answering> {
        let handler = self.deps.handler()?;
        Some(handler.answer(self.source(), asked, under_way))
    }
}

const fn kind_word(kind: Kind) -> &'static str {
    match kind {
        Kind::Tool => "tool",
        Kind::Prompt => "prompt",
        Kind::Resource => "resource",
        Kind::Template => "resource template",
    }
}

impl Instance {
    /// Tests if the server itself announced the change of a list: for a 2026-07-28 server, the connection
    /// also reports a change when it starts to listen.
    fn is_announced(&self, params: Option<&Raw>) -> bool {
        let on_stream = || said(params, meta::SUBSCRIPTION_ID).is_some();
        self.live()
            .is_some_and(|live| live.era() == Era::Legacy || on_stream())
    }

    /// Takes the announced changes of these lists, which have been fetched since.
    pub(super) fn take_announced(&self, lists: Lists) -> Lists {
        let mut announced = self.announced.lock();
        let taken = announced.within(lists);
        *announced = announced.without(lists);
        taken
    }
}

/// The client capabilities of the gateway. Servers of older revisions receive them once, before the caller is
/// known: a request that the client of a call cannot handle is rejected when it arrives. Lists are fetched on
/// behalf of all clients, some of which may show apps; the others ignore items for apps.
pub(super) fn capabilities() -> Raw {
    let nothing = Raw::empty_object;
    Raw::object([
        (
            "extensions",
            Raw::object([(apps::EXTENSION, apps::capability())]),
        ),
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

/// Restores the state of the previous connection on a new one.
pub(super) fn restore(instance: &Arc<Instance>, live: &Arc<Live>) {
    let level = *instance.common.level.lock();
    if level.is_none() && instance.watched.is_empty() {
        return;
    }
    let (instance, live) = (Arc::clone(instance), Arc::clone(live));
    tokio::spawn(async move {
        if let Some(level) = level {
            live.want_level(level).await;
        }
        instance
            .watched
            .restore(&instance.name, live.client())
            .await;
    });
}
