//! What passes between a server and the gateway beside calls: what it tells, what it is told, and what is
//! asked of it for good.

use std::{
    sync::{Arc, LazyLock, atomic::Ordering::Relaxed},
    time::Instant,
};

use switchboard_base::{
    apps,
    backchannel::Backchannel,
    caller::{Principal, said},
    error::{Error, cut},
    extensions::{is_foreign, with_extensions},
    health::{Reason, UNREADABLE},
};
use switchboard_catalog::{Kind, Offers};
use switchboard_client::{Asked, Era, Raw, model::LogLevel, throttle::Limited};
use switchboard_config::Trust;
use switchboard_wire::{meta, method};

use super::{Items, Upstream};
use crate::{
    deps::{Answering, Source},
    discovery::{self, HURRIED_RETRY, Learnt, Lists, Missing, list_method},
    judgement::{Judged, Judgements},
    live::Live,
    questions::UnderWay,
};

/// Whether a connection may be asked about something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// It may.
    Yes,
    /// It has ended meanwhile.
    Ended,
    /// The first connection is to be asked: this second one does not list it in the way that the server is known for.
    Elsewhere,
}

impl Upstream {
    /// Somebody wants log messages from this level on, now and of every connection to come.
    pub async fn want_level(&self, level: LogLevel) {
        {
            let mut wanted = self.level.lock();
            *wanted = Some(wanted.map_or(level, |wanted| wanted.min(level)));
        }
        for live in self.lives() {
            live.want_level(level).await;
        }
    }

    /// Whether the list of this kind is older than the server wants it to be.
    pub fn is_stale(&self, kind: Kind) -> bool {
        let told = |live: &Live| live.tells_changes(kind);
        self.live().is_some_and(|live| {
            let fresh = self.freshness.of(kind);
            fresh.is_some_and(|fresh| fresh.is_over(told(&live)))
        })
    }

    /// Asks for a list that is out of date, unless somebody else just has.
    pub async fn refresh(self: &Arc<Self>, kind: Kind) {
        let _refreshing = self.refreshing.lock().await;
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

    /// Notes which of these lists could not be had, and tells of what is new in that: a list that fails for one reason
    /// again and again is told of once.
    pub(super) fn note_lists(&self, lists: Lists, missing: &Missing) {
        let news = {
            let mut known = self.missing.lock();
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
                tracing::warn!(server = %self.name, list, %reason, missed, "Cannot learn what the server offers.");
            });
            let line = format!("{list} failed: {reason}");
            self.deps.logs.remark(&self.name, &line);
        }
        if self.era.is_none() {
            self.deps.events.server(&self.name, &self.health());
        }
    }

    /// The lists that could not be had when they were last asked for.
    pub fn missing(&self) -> Missing {
        let missing = self.missing.lock();
        missing.clone()
    }

    /// Why nobody can say if the server, which runs, has an item of this kind: the list could not be had. It is asked for
    /// again.
    pub fn lacks(&self, kind: Kind) -> Option<Error> {
        let mut missing = self.missing().into_iter();
        let (_, why) = missing.find(|(of, _)| *of == kind)?;
        self.live()?;
        self.hurry(kind);
        Some(self.unlisted(why.within(UNREADABLE)))
    }

    /// Whether this connection may be asked about these items: waits until the lists that they stand in
    /// are judged, unless the server is always trusted, and refuses what is held back or was never
    /// listed.
    pub async fn admit(
        &self,
        live: &Live,
        items: &Items<'_>,
        deadline: Instant,
    ) -> Result<Admission, Error> {
        let always = self.settings().trust == Trust::Always;
        let is_second = self.era.is_some();
        let began = Instant::now();
        // The first connection has to have time left.
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
            // A name that is not listed has never been judged.
            let word = match kind {
                Kind::Tool => "tool",
                Kind::Prompt => "prompt",
                Kind::Resource | Kind::Template => continue,
            };
            if !always && !self.deps.live_catalog.lists(&self.name, *kind, name) {
                let (server, name) = (&self.name, cut(name));
                let message = format!("server '{server}' offers no {word} '{name}'");
                return Err(Error::invalid_params(message));
            }
        }
        Ok(Admission::Yes)
    }

    /// Waits until the lists that say whether this item may be used have been judged, as the connection
    /// offers them now. A resource that is listed needs its list alone; any other URI may be of a template.
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

    /// Waits until the list of this kind has been judged. A list that is waited for is asked for at once.
    async fn judged_list(&self, live: &Live, kind: Kind, deadline: Instant) -> Judged {
        if let Some(judged) = live.judgements.now(kind) {
            if let Judged::Failed(_) = judged {
                self.hurry(kind);
            }
            return judged;
        }
        let mut patience = self.deps.wait();
        if !live.judgements.has_been(kind) {
            // It is still starting.
            patience = patience.max(self.settings.load().init_timeout);
        }
        let until = (Instant::now() + patience).min(deadline);
        self.hurry(kind);
        // Boxed, as all that few calls come to.
        Box::pin(live.judgements.wait(kind, until)).await
    }

    /// It has not said yet what it offers.
    pub fn unheard(&self) -> Error {
        self.unlisted(Reason::plain("its list has not come in yet"))
    }

    fn unlisted(&self, reason: Reason) -> Error {
        Error::Initializing {
            server: Arc::clone(&self.name),
            reason: Some(reason),
            retry_after: HURRIED_RETRY,
        }
    }

    /// Takes in what the server says it offers. Says whether that has been judged.
    pub(super) async fn take_in(self: &Arc<Self>, learnt: Learnt) -> bool {
        if self.ending.load(Relaxed) {
            return false;
        }
        let live_catalog = &self.deps.live_catalog;
        if self.era.is_some() {
            return self.take_in_besides(learnt).await;
        }
        for (kind, hints) in learnt.hints() {
            self.freshness.set(kind, hints);
        }
        let is_open = !self.eras.is_refuted(Era::Modern);
        let first = Arc::clone(self);
        let taking_in = live_catalog.put(&self.name, move |known| {
            let mut offers = first.combined(known, Some(learnt));
            if is_open && offers.era == Some(Era::Legacy) {
                let known = known.and_then(|known| known.capabilities.as_ref());
                offers.capabilities = offers.capabilities.map(|said| with_extensions(said, known));
            }
            // A server that was not probed may be of both eras.
            let era = offers.era.filter(|era| *era == Era::Modern || !is_open);
            Offers { era, ..offers }
        });
        let is_judged = taking_in.await;
        self.compare().await;
        is_judged
    }

    /// The same of a second connection, which adds to what the server is known to offer and changes none of it.
    async fn take_in_besides(self: &Arc<Self>, learnt: Learnt) -> bool {
        self.listing
            .store(Arc::new(self.listing.load().with(learnt)));
        let Some(first) = self.first() else {
            return false;
        };
        // A server is known by what its first connection lists.
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

    /// A client on this back channel says that its roots have changed. Servers of the older revisions keep them,
    /// and ask when they are told.
    pub async fn roots_changed(&self, principal: Principal, backchannel: Backchannel) {
        self.questions.set_roots(principal, backchannel);
        for live in self.lives().filter(|live| live.era() == Era::Legacy) {
            // A server that is gone asks when it is back.
            let _ = live.client().notify(method::ROOTS_CHANGED, None).await;
        }
    }

    /// The server says something that is no part of a call.
    pub(super) fn told(
        self: &Arc<Self>,
        judgements: &Judgements,
        said: &str,
        params: Option<&Raw>,
    ) {
        if let Some(lists) = Lists::changed(said) {
            if lists.has(Kind::Resource) {
                self.deps.reads.forget(&self.name);
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
            // Nobody has approved anything of it: what it says goes nowhere.
            return;
        }
        let Some(first) = self.first() else { return };
        match said {
            method::RESOURCE_UPDATED => {
                let uri = params.and_then(|params| params.member("uri")?.to_text());
                let Some(uri) = uri else { return };
                self.deps.reads.changed(&self.name, &uri);
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
        }
    }

    /// Has a request of the server answered; `None` if the gateway ends.
    pub(super) fn answer(self: &Arc<Self>, asked: Asked, under_way: UnderWay) -> Option<Answering> {
        let handler = self.deps.handler()?;
        Some(handler.answer(self.source(), asked, under_way))
    }
}

impl Upstream {
    /// Tests if the server itself says that a list has changed: of one of 2026-07-28 the connection says so, too, when
    /// it begins to listen.
    fn is_announced(&self, params: Option<&Raw>) -> bool {
        let on_stream = || said(params, meta::SUBSCRIPTION_ID).is_some();
        self.live()
            .is_some_and(|live| live.era() == Era::Legacy || on_stream())
    }

    /// Takes the announced changes of these lists, which have been asked for since.
    pub(super) fn take_announced(&self, lists: Lists) -> Lists {
        let mut announced = self.announced.lock();
        let taken = announced.within(lists);
        *announced = announced.without(lists);
        taken
    }
}

/// What the gateway says it can do. Servers of the older revisions are told once, before it is known who
/// will call them: what the client of a call cannot do is refused when it is asked for. Lists are asked for on behalf of
/// all clients, of which some may show apps; the others ignore what is for those.
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

/// Asks a new connection for what was asked of the one before.
pub(super) fn restore(upstream: &Arc<Upstream>, live: &Arc<Live>) {
    let level = *upstream.level.lock();
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
