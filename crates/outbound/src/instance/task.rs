//! The task of one server, which decides when to start it, fetch its lists and stop it.

mod health;
mod sign_in;

use std::{
    future::pending,
    sync::{Arc, Weak, atomic::Ordering::Relaxed},
    time::{Duration, Instant},
};

use switchboard_base::{
    health::{Health, Reason, ServerState},
    random,
};
use switchboard_client::{
    Client, Era, State as Connection,
    auth::{OAuth, State as SignIn},
};
use switchboard_config::{Server, Transport};
use switchboard_wire::with_hint;
use tokio::{
    sync::{mpsc, oneshot, watch},
    task::JoinSet,
    time::sleep_until,
};

use self::sign_in::{is_lost, outage_over, signed_in, signed_out};
use super::{
    Answer, Control, Instance, Known, advice,
    permission::{is_kept_up, off, runs},
    talk,
};
use crate::{
    clock,
    discovery::{self, Curiosity, Lists, Missing},
    judgement::Judgements,
    launch,
    live::Live,
    questions::unanswerable,
    restart::{NotStarted, Restart, Settings, StartError, State},
    start_approval,
    start_throttle::{Priority, StartPermit},
    stderr::{self, LastWords},
};

/// Time for which a server that was started only to fetch its lists stays up, in case it is used.
const LEARN_LINGER: Duration = Duration::from_secs(10);

/// The task that starts and stops the server.
pub(super) struct Task {
    instance: Arc<Instance>,
    restart: Restart,
    run: Option<Run>,
    /// The runs that were ended in the background.
    ending: JoinSet<()>,
    runs: u64,
    known: bool,
    era: Option<Era>,
    /// This run began in the legacy era although the server may support the modern one.
    is_unprobed: bool,
    /// Its settings, or the file that it would start, prevent it from running.
    is_off: bool,
    /// The reason of the last failure, until it is up again.
    failed: Option<Reason>,
    /// The sign-in that the server waits for, and its state when the server refused it.
    awaited: Option<(OAuth, SignIn)>,
    /// The sign-in that could not be renewed for the last start.
    outage: Option<OAuth>,
}

/// One run of the server.
struct Run {
    number: u64,
    client: Client,
    /// The sign-in of the connection.
    oauth: Option<OAuth>,
    /// It was valid. One that is lost later has to be renewed by a user.
    was_signed_in: bool,
    /// The last lines of its standard error.
    said: LastWords,
    advice: launch::LaunchAdvice,
    answers: launch::Answers,
    state: watch::Receiver<Connection>,
    ready: bool,
    judgements: Arc<Judgements>,
    curiosity: Curiosity,
    /// Time at which it became ready.
    since: Instant,
    /// The number of calls before this run.
    uses: u64,
    /// The permit of a throttled start, held until its lists are fetched.
    place: Option<StartPermit>,
}

impl Run {
    /// The reason of a failed connection, with everything that the server wrote and the gateway's advice.
    fn reason(&self, reason: &str, wrote: Option<&str>, settings: &Server) -> Reason {
        let (reason, advice) = advice::advised(reason, settings);
        Reason::new(&reason, self.said.told_after(wrote).as_deref())
            .with_hint(advice.or_else(|| self.advice.get()))
    }
}

/// The demand for the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted {
    No,
    /// A call waits for it.
    Now,
    /// It is to be up, or its lists are to be fetched, but no call waits.
    Sometime,
}

/// The next step of the task.
enum Next {
    Go,
    End(oneshot::Sender<()>),
}

impl Task {
    pub(super) fn new(instance: Arc<Instance>, known: Known, is_off: bool) -> Self {
        Self {
            instance,
            restart: Restart::new(Settings::default(), random::number()),
            run: None,
            ending: JoinSet::new(),
            runs: 0,
            known: known.offers,
            era: known.era,
            is_unprobed: false,
            is_off,
            failed: None,
            awaited: None,
            outage: None,
        }
    }

    pub(super) async fn run(mut self, mut orders: mpsc::Receiver<Control>) {
        // Kept across iterations, or it would lose its place in the queue.
        let mut queued = None;
        loop {
            let wanted = match *self.restart.state() {
                State::Idle => self.wanted(),
                _ => Wanted::No,
            };
            if wanted == Wanted::Now {
                self.launch(None).await;
            }
            if wanted == Wanted::Sometime {
                let instance = &self.instance;
                let known = self.known;
                let queue = || Box::pin(turn(Arc::clone(instance), known));
                queued.get_or_insert_with(queue);
            } else {
                queued = None;
            }
            let due = self.due();
            let instance = Arc::clone(&self.instance);
            let next = tokio::select! {
                biased;
                // The task has a sender itself, so the channel never closes.
                Some(order) = orders.recv() => self.carry_out(order).await,
                () = state_changed(self.run.as_mut()) => {
                    self.look();
                    Next::Go
                }
                () = signed_in(self.awaited.as_ref()) => {
                    self.resume();
                    Next::Go
                }
                () = outage_over(self.outage.as_ref()) => {
                    self.resume();
                    Next::Go
                }
                () = instance.wake.notified() => {
                    self.heed_changes();
                    Next::Go
                }
                place = come(queued.as_mut()) => {
                    queued = None;
                    self.launch(place).await;
                    Next::Go
                }
                () = at(due) => {
                    self.tick();
                    Next::Go
                }
            };
            if let Next::End(done) = next {
                self.end(ServerState::Stopping).await;
                // Closing the channel notifies senders that their orders are not carried out; otherwise the
                // orders would stay in the queue as long as a sender exists.
                orders.close();
                while orders.recv().await.is_some() {}
                let _ = done.send(());
                return;
            }
        }
    }

    fn wanted(&self) -> Wanted {
        let settings = self.instance.common.settings.load();
        if !runs(&settings) || self.instance.ending.load(Relaxed) {
            Wanted::No
        } else if self.instance.demand.load(Relaxed) > 0 {
            Wanted::Now
        } else if self.is_kept_up(&settings) || self.is_to_list() {
            Wanted::Sometime
        } else {
            Wanted::No
        }
    }

    /// Tests if it runs all the time; a second connection does not.
    fn is_kept_up(&self, settings: &Server) -> bool {
        is_kept_up(settings, &self.instance.origin) && self.instance.era.is_none()
    }

    /// Tests if the server's lists are to be fetched for the first time.
    fn is_to_list(&self) -> bool {
        !self.known && self.instance.origin.is_alone
    }

    /// Time of the next check.
    fn due(&self) -> Option<Instant> {
        let run = self.run.as_ref().filter(|run| run.ready);
        let question = run.and_then(|run| run.curiosity.due());
        let place = self.run.as_ref().and_then(|run| run.place.as_ref());
        let place = place.map(|place| place.until.into());
        [self.restart.due(), self.idle_due(), question, place]
            .into_iter()
            .flatten()
            .min()
    }

    /// Time at which the server has been idle long enough to be stopped.
    fn idle_due(&self) -> Option<Instant> {
        let run = self.run.as_ref().filter(|run| run.ready)?;
        let settings = self.instance.common.settings.load();
        if self.is_kept_up(&settings) || !self.known {
            return None;
        }
        let first = self.instance.first();
        let unused = run.uses == self.instance.limiter.uses();
        let patience = match settings.idle_stop {
            // It was started only to fetch its lists.
            Some(patience) if unused => patience.min(LEARN_LINGER),
            // No call comes any more.
            None if first.as_ref().is_some_and(|first| first.is_for_gateway()) => LEARN_LINGER,
            patience => patience?,
        };
        let watched = first.is_some_and(|first| !first.watched.is_empty());
        let in_use = watched || !self.instance.questions.is_empty();
        let used = self.instance.limiter.last_used().filter(|_| !in_use);
        // While it is in use, it is checked again later.
        let used = used.unwrap_or_else(clock::now);
        Some(used.max(run.since) + patience)
    }

    /// Starts the server, with the permit of a throttled start if no call waits for it.
    async fn launch(&mut self, place: Option<StartPermit>) {
        let settings = self.instance.settings();
        let era = self.opening_era();
        self.runs += 1;
        self.is_off = false;
        self.awaited = None;
        self.outage = None;
        self.instance.set_launched(true);
        self.instance.forget_users();
        let name = &self.instance.name;
        self.restart.starting();
        self.tell(self.again(ServerState::Starting));
        let instance = Arc::downgrade(&self.instance);
        let asking = Weak::clone(&instance);
        let judgements = Arc::new(Judgements::new());
        let questions = Arc::clone(&self.instance.questions);
        let mut builder = Client::builder("switchboard", env!("CARGO_PKG_VERSION"))
            .handshake_timeout(settings.init_timeout)
            .request_timeout(settings.request_timeout)
            // This task decides about retries, so the connection itself must never reach one.
            .backoff(NEVER, NEVER)
            .max_in_flight(settings.max_in_flight + IN_FLIGHT_SPARE)
            .capabilities(talk::capabilities())
            .label(name)
            .on_violation({
                let (logs, server) = (
                    Arc::clone(&self.instance.deps.logs),
                    Arc::clone(&self.instance.id),
                );
                move |violation| logs.note(&server, &stderr::words(violation))
            })
            .on_asked(move |asked| {
                let (under_way, instance) = (questions.under_way(), asking.upgrade());
                async move {
                    let unanswered = unanswerable(&asked.method);
                    let answering = instance.and_then(|instance| instance.answer(asked, under_way));
                    answering.ok_or(unanswered)?.await
                }
            })
            .on_notification({
                let judgements = Arc::clone(&judgements);
                move |news| {
                    if let Some(instance) = instance.upgrade() {
                        instance.told(&judgements, &news.method, news.params.as_ref());
                    }
                }
            });
        if let Some(revision) = self.instance.newest_revision() {
            builder = builder.newest_revision(revision);
        }
        if let Some(era) = era {
            builder = builder.known_era(era);
        }
        let said = LastWords::default();
        let advice = launch::LaunchAdvice::default();
        let answers = launch::Answers::default();
        let start = launch::Start {
            name: Arc::clone(name),
            id: Arc::clone(&self.instance.id),
            server: Arc::clone(&settings),
            occasion: self.instance.origin.occasion.clone(),
            state_dir: self.instance.origin.state_dir.clone(),
            deps: Arc::clone(&self.instance.deps),
        };
        let connecting = launch::connect(builder, start, &said, &advice, &answers);
        let (client, oauth) = match connecting.await {
            Ok(connecting) => connecting,
            Err(NotStarted::Failed(error)) => return self.fail(error),
            Err(NotStarted::Held(reason)) => return self.hold(reason),
        };
        self.run = Some(Run {
            number: self.runs,
            state: client.watch_state(),
            client,
            oauth,
            was_signed_in: false,
            said,
            advice,
            answers,
            ready: false,
            judgements,
            curiosity: Curiosity::new(clock::now()),
            since: clock::now(),
            uses: self.instance.limiter.uses(),
            place,
        });
    }

    /// The era to begin in: that of a waiting call, if the server may support it.
    fn opening_era(&mut self) -> Option<Era> {
        self.is_unprobed = false;
        if let Some(newest) = self.instance.newest_revision() {
            return Some(newest.era());
        }
        let eras = &self.instance.eras;
        self.is_unprobed = self.instance.may_speak(Era::Legacy)
            && !eras.is_ruled_out(Era::Modern)
            && self.instance.demand.load(Relaxed) > 0
            && eras.wished() == Some(Era::Legacy);
        if self.is_unprobed {
            Some(Era::Legacy)
        } else {
            self.era
        }
    }

    /// Records the eras that the server has been shown to support or not. Returns `true` if it may be used in
    /// this one.
    fn learn_era(&mut self, era: Era) -> bool {
        let newest = self.instance.newest_revision();
        if newest.is_some_and(|newest| newest.era() != era) {
            return false;
        }
        let eras = &self.instance.eras;
        match era {
            Era::Legacy if self.is_unprobed || newest.is_some() => self.era = None,
            Era::Legacy => {
                eras.set_refuted(Era::Modern, true);
                eras.forget_unreached();
                self.era = Some(era);
            }
            Era::Modern => {
                if self.is_unprobed {
                    // It was contacted in the legacy era, and refused.
                    eras.set_refuted(Era::Legacy, true);
                }
                self.era = Some(era);
            }
        }
        true
    }

    /// Handles a change of the connection's state.
    fn look(&mut self) {
        let Some(run) = &mut self.run else { return };
        let state = run.state.borrow_and_update().clone();
        if let Some(oauth) = &run.oauth
            && is_lost(&oauth.state(), &mut run.was_signed_in)
        {
            return self.await_sign_in(None);
        }
        match state {
            Connection::Ready(session) if !run.ready => {
                if !self.learn_era(session.revision.era()) {
                    let newest = self.instance.newest_revision();
                    let newest = newest.map_or("", |newest| newest.as_str());
                    let asked = match self.instance.era {
                        None => ", which its setting `revision` requires",
                        Some(_) => "",
                    };
                    return self.fail(StartError {
                        reason: Reason::plain(&format!(
                            "it does not support revision {newest}{asked}"
                        )),
                        permanent: true,
                    });
                }
                let Some(run) = &mut self.run else { return };
                run.ready = true;
                run.answers.note();
                run.since = clock::now();
                self.instance.deps.reads.forget(&self.instance.id);
                let judgements = Arc::clone(&run.judgements);
                let live = Arc::new(Live::new(run.client.clone(), session, judgements));
                if let Some(first) = self.instance.first() {
                    talk::restore(&first, &live);
                }
                // One connection in this era is enough.
                if let Some(other) = self.instance.close_other(Some(live.era())) {
                    tokio::spawn(async move { other.leave().await });
                }
                self.instance.live.store(Some(live));
                self.restart.up(clock::now());
                self.failed = None;
                self.tell(Health::new(ServerState::Ready));
                self.learn();
            }
            Connection::Backoff { reason, wrote, .. } => {
                let reason = run.reason(
                    &reason,
                    wrote.as_deref(),
                    &self.instance.common.settings.load(),
                );
                self.fail(StartError {
                    reason,
                    permanent: false,
                });
            }
            Connection::Failed { reason, wrote }
                if run.oauth.is_some() && advice::is_refused(&reason) =>
            {
                self.await_sign_in(wrote.as_deref());
            }
            Connection::Failed { reason, wrote } => {
                let reason = run.reason(
                    &reason,
                    wrote.as_deref(),
                    &self.instance.common.settings.load(),
                );
                self.fail(StartError {
                    reason,
                    permanent: true,
                });
            }
            Connection::Starting
            | Connection::Initializing
            | Connection::Ready(_)
            | Connection::Closing => {}
        }
    }

    /// Handles a server that could not be started, or was lost.
    fn fail(&mut self, error: StartError) {
        let was_ready = self.run.as_ref().is_some_and(|run| run.ready);
        self.let_go();
        if self.is_unprobed && !was_ready && !error.permanent {
            // It may support only the modern era, and exit or stay silent when contacted in the legacy one.
            let line = format!(
                "failed to start in an older revision, now starting in the newest: {}",
                error.reason
            );
            self.instance.deps.logs.note(&self.instance.id, &line);
            self.instance.eras.set_unreached(Era::Legacy);
            self.restart.stopped(clock::now());
            if self.wanted() == Wanted::No {
                self.tell(Health::new(ServerState::Idle));
            }
            self.instance.wake.notify_one();
            return;
        }
        self.doubt_era(was_ready);
        let reason = with_hint(&error.reason, error.reason.hint());
        tracing::warn!(server = %self.instance.id, %reason, "Server failed.");
        let failed = match self.instance.era.and(self.instance.newest_revision()) {
            None => format!("failed: {reason}"),
            Some(revision) => format!("failed in revision {revision}: {reason}"),
        };
        self.instance.deps.logs.note(&self.instance.id, &failed);
        self.failed = Some(error.reason.clone());
        if !self.known {
            let contact = &self.instance.deps.first_contact;
            contact.fail(&self.instance.name, &self.instance.common.settings.load());
            contact.save_soon(self.instance.deps.config.load_full());
        }
        self.instance.set_new(false);
        self.restart.failed(clock::now(), error);
        let health = self.unwell();
        self.tell(health);
    }

    /// Forgets the known era, which may have caused the failure.
    fn doubt_era(&mut self, was_ready: bool) {
        let instance = &self.instance;
        if let Some(era) = instance.era {
            if !was_ready && let Some(first) = instance.first() {
                first.eras.set_unreached(era);
            }
            return;
        }
        self.era = None;
        instance.eras.set_refuted(Era::Modern, false);
        instance.eras.forget_unreached();
    }

    /// Handles a server that would start a different file than the user approved.
    fn hold(&mut self, reason: Reason) {
        self.fail(StartError {
            reason,
            permanent: true,
        });
        // It is started as soon as new settings allow it.
        self.is_off = true;
        self.tell(Health {
            action: Some(start_approval::action(&self.instance.name).into()),
            ..self.unwell()
        });
        self.instance.deps.live_catalog.ask_again();
    }

    fn tick(&mut self) {
        if let Some(run) = &mut self.run {
            // The permit has expired; other starts go on.
            run.place
                .take_if(|place| place.until.into_std() <= clock::now());
        }
        let was = self.restart.state().clone();
        self.restart.tick(clock::now());
        if was != *self.restart.state() && self.wanted() == Wanted::No {
            self.tell(self.again(ServerState::Idle));
        }
        self.learn();
        if self.idle_due().is_some_and(|due| due <= clock::now()) {
            self.retire();
        }
    }

    /// Stops an unused server in the background.
    fn retire(&mut self) {
        let live = self.instance.live.swap(None);
        // A caller that holds a permit by now may have seen the connection, and is about to use it.
        if self.instance.limiter.last_used().is_none() || self.instance.demand.load(Relaxed) > 0 {
            self.instance.live.store(live);
            // A caller may have found no connection in between, and now waits.
            self.instance.health.send_modify(|_| ());
            return;
        }
        tracing::info!(server = %self.instance.id, "Stopping an idle server.");
        self.let_go();
        self.instance.eras.forget_unreached();
        self.restart.stopped(clock::now());
        self.tell(Health::new(ServerState::Idle));
    }

    /// Ends the run in the background.
    fn let_go(&mut self) {
        self.instance.hide();
        while self.ending.try_join_next().is_some() {}
        if let Some(run) = self.run.take() {
            // A call that causes the next run has begun before it.
            self.instance.forget_users();
            self.ending.spawn(async move {
                run.client.stop().await;
                run.client.closed().await;
            });
        }
    }

    async fn carry_out(&mut self, order: Control) -> Next {
        match order {
            Control::Stop(done) => return Next::End(done),
            Control::Tune(done) => {
                let off = off(&self.instance.name, &self.instance.common.settings.load());
                let was_off = std::mem::replace(&mut self.is_off, off.is_some());
                if let Some(off) = off {
                    self.instance.set_new(false);
                    self.awaited = None;
                    self.outage = None;
                    if !was_off {
                        self.let_go();
                    }
                    self.restart.stopped(clock::now());
                    self.tell(off);
                } else if was_off {
                    self.restart.pardon();
                    self.failed = None;
                    self.instance.set_new(self.is_to_list());
                    let state = match self.wanted() {
                        Wanted::No => ServerState::Idle,
                        Wanted::Now | Wanted::Sometime => ServerState::Starting,
                    };
                    self.tell(Health::new(state));
                }
                let _ = done.send(());
            }
            Control::Restart(done) => {
                self.end(ServerState::Starting).await;
                self.restart.pardon();
                self.era = None;
                self.instance.eras.forget();
                self.failed = None;
                match off(&self.instance.name, &self.instance.common.settings.load()) {
                    None => self.launch(None).await,
                    Some(off) => self.tell(off),
                }
                let _ = done.send(());
            }
            Control::Learnt(answer) => self.learnt(answer).await,
        }
        Next::Go
    }

    /// Handles changes of lists, and calls that wait for lists.
    fn heed_changes(&mut self) {
        let hurried = self.instance.take_hurried();
        if let Some(run) = &mut self.run {
            run.curiosity.hurry(hurried, clock::now());
            self.learn();
        }
    }

    /// Fetches the lists that are due.
    fn learn(&mut self) {
        let Some(run) = self.run.as_mut().filter(|run| run.ready) else {
            return;
        };
        run.curiosity.want(run.judgements.unasked());
        let Some(lists) = run.curiosity.ask(clock::now()) else {
            return;
        };
        let due = run.judgements.ask(lists);
        // Each list of a known server is judged when it arrives, so that no call waits for a list that it
        // does not need. The lists of a new server are shown together.
        let parts = if self.known {
            lists.kinds().map(Lists::of).collect()
        } else {
            vec![lists]
        };
        for lists in parts {
            let (number, client) = (run.number, run.client.clone());
            let control = self.instance.control.clone();
            tokio::spawn(async move {
                let learnt = discovery::learn(&client, lists).await.map(Box::new);
                let answer = Answer {
                    run: number,
                    lists,
                    due,
                    learnt,
                };
                // An error means that the server is no longer supervised.
                let _ = control.send(Control::Learnt(answer)).await;
            });
        }
    }

    /// Handles the result of fetching lists.
    async fn learnt(&mut self, answer: Answer) {
        let Answer {
            run: number,
            lists,
            due,
            learnt,
        } = answer;
        let Some(run) = self.run.as_mut().filter(|run| run.number == number) else {
            return;
        };
        let place = run.place.take();
        let all_missing = |why: &str| {
            let why = Reason::plain(why);
            lists.kinds().map(|kind| (kind, why.clone())).collect()
        };
        let mut missing: Missing = match &learnt {
            Some(learnt) => learnt.missing.clone(),
            None => all_missing("the connection was lost"),
        };
        if let Some(learnt) = learnt {
            if learnt.has_tools() && !std::mem::replace(&mut self.known, true) {
                self.instance
                    .deps
                    .first_contact
                    .succeed(&self.instance.name);
            }
            let had = lists.without(missing.iter().map(|(kind, _)| *kind).collect());
            // Clients read this when they are notified of a change, so that a change that was also announced
            // is notified once.
            let announced = self.instance.take_announced(had);
            let live_catalog = &self.instance.deps.live_catalog;
            live_catalog.announce(&self.instance.name, announced);
            if !self.instance.take_in(*learnt).await {
                missing = all_missing("its definitions cannot be checked");
            }
            self.instance.note_lists(lists, &missing);
            if announced != Lists::NONE {
                live_catalog.touch();
            }
        }
        drop(place);
        let lacking = missing.iter().map(|(kind, _)| *kind).collect();
        run.curiosity.answered(lists, lacking, clock::now());
        run.judgements.finish(lists, due, &missing);
        self.instance.set_new(false);
    }

    /// Ends the run and waits until its process is gone, and those of former runs.
    async fn end(&mut self, state: ServerState) {
        self.awaited = None;
        self.outage = None;
        self.instance.hide();
        self.restart.stopped(clock::now());
        self.tell(Health::new(state));
        if let Some(run) = self.run.take() {
            run.client.stop().await;
            run.client.closed().await;
        }
        while self.ending.join_next().await.is_some() {}
    }
}

/// The connection's own backoff, which is not used.
const NEVER: Duration = Duration::from_hours(24);
/// Room for the gateway's own requests (lists) in addition to calls.
const IN_FLIGHT_SPARE: usize = 16;

/// Waits for the turn of a server that no call waits for, and for a permit if it runs on this machine.
async fn turn(instance: Arc<Instance>, known: bool) -> Option<StartPermit> {
    let settings = instance.settings();
    instance.set_launched(false);
    let begin = || instance.set_launched(true);
    match settings.transport {
        Transport::Command(_) | Transport::Container(_) => {
            let contact = &instance.deps.first_contact;
            let order = if !known && contact.was_tried(&instance.name, &settings) {
                Priority::Last
            } else {
                Priority::First
            };
            Some(instance.deps.start_throttle.turn(order, begin).await)
        }
        Transport::Remote(_) | Transport::BuiltIn => {
            instance.deps.start_throttle.open(begin).await;
            None
        }
    }
}

/// Waits for a future, or forever if there is none.
async fn come<T>(waited_for: Option<&mut (impl Future<Output = T> + Unpin)>) -> T {
    match waited_for {
        Some(waited_for) => waited_for.await,
        None => pending().await,
    }
}

async fn state_changed(run: Option<&mut Run>) {
    let Some(run) = run else {
        return pending().await;
    };
    tokio::select! {
        Ok(()) = run.state.changed() => {}
        () = signed_out(run.oauth.as_ref(), &mut run.was_signed_in) => {}
        else => pending().await,
    }
}

async fn at(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due.into()).await,
        None => pending().await,
    }
}
