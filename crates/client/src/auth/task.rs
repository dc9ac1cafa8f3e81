//! The task that owns the state machine of a sign-in, and carries out its actions.

mod stored;

use std::{net::IpAddr, pin::Pin, sync::Arc, time::Duration};

use reqwest::StatusCode;
use switchboard_auth::{
    Action, Challenge, Error, Event, Machine, Reach, Renewed, Response, Settings, SignIn, State,
    Tokens, UserCode,
};
use tokio::{
    sync::{mpsc, oneshot, watch},
    time::{Instant, sleep_until},
};
use url::Url;

use super::{
    Opened, Refusal, View, assertion,
    fetch::{Fetched, Fetcher},
    listener::{Arrival, Listener, Page},
    now,
    sign::{self, random},
    store::{Lock, Store},
    token::{Token, header},
};
use crate::{throttle::Limited, transport::http::HttpConfigError};

/// The longest sleep. The clock may be set, and a suspended machine does not notice that time passes.
const NAP: Duration = Duration::from_mins(10);
/// The shortest time between renewals for which no request waits, in seconds.
const RENEWAL_PAUSE: u64 = 30;
/// The delay after a renewal that failed: it is doubled up to the longest one.
const RETRY: Duration = Duration::from_secs(5);
const RETRY_MAX: Duration = Duration::from_mins(10);
/// The longest such delay if a request needs the token.
const RETRY_NEEDED_MAX: Duration = Duration::from_secs(15);

type Answer<T> = oneshot::Sender<T>;
type Outcome<T> = Result<T, Error>;

/// A request of a user of the sign-in.
#[derive(Debug)]
pub(super) enum Command {
    SignIn(Answer<Outcome<Option<Opened>>>),
    SignOut(Answer<Outcome<()>>),
    /// The user copied the address that the browser was redirected to.
    Callback {
        number: u64,
        url: String,
        answer: Answer<Outcome<()>>,
    },
    Cancel(u64),
    Renew(Answer<()>),
    Refused(Refusal, Answer<()>),
    Accepted,
    /// Answered when no token is being exchanged.
    Settle(Answer<()>),
}

/// A sign-in by a user.
struct Attempt {
    number: u64,
    /// Missing if the browser is not redirected.
    listener: Option<Listener>,
    /// Waits for the page to open.
    opening: Option<Answer<Outcome<Option<Opened>>>>,
    /// Waits for the end.
    ending: Option<Answer<Outcome<()>>>,
    /// The browser that waits for the end.
    page: Option<Answer<Page>>,
}

type Flight = Pin<Box<dyn Future<Output = Landing> + Send>>;

/// The end of work that the task waits for.
enum Landing {
    Fetched(Result<Fetched, String>),
    /// `None`: no other process renews the tokens.
    Renewed(Option<Renewed>),
}

pub(super) struct Task {
    machine: Machine,
    server: Url,
    settings: Settings,
    store: Arc<dyn Store>,
    fetcher: Fetcher,
    view: watch::Sender<View>,
    commands: mpsc::Receiver<Command>,
    /// For the handles of users, which keep the task alive.
    handles: mpsc::WeakSender<Command>,
    /// The request in flight, or the renewal by another process.
    flight: Option<Flight>,
    attempt: Option<Attempt>,
    attempts: u64,
    /// The work of the machine is a renewal.
    is_renewing: bool,
    /// A request needs a renewal, which follows the work in flight.
    renews_next: bool,
    /// The requests that wait for a renewal.
    waiting: Vec<Answer<()>>,
    /// A sign-in by a user that waits for the end of the renewal.
    sign_in_next: Option<Answer<Outcome<Option<Opened>>>>,
    signing_out: Vec<Answer<Outcome<()>>>,
    /// Held while tokens are exchanged.
    lock: Option<Lock>,
    /// The reason why the credential is not stored as it is. The lock is held meanwhile: the stored one may be void.
    unsaved: Option<String>,
    /// The time of the next attempt to save it, and the delay after that.
    save_again: Option<(Instant, Duration)>,
    /// The time at which the last renewal failed, and the delay before the next one.
    retry: Option<(Instant, Duration)>,
    /// The reason.
    failure: Option<Error>,
    /// Spreads the renewals of several credentials.
    jitter: u64,
    warnings: Limited,
}

impl Task {
    pub(super) fn new(
        server: Url,
        settings: Settings,
        store: Arc<dyn Store>,
        view: watch::Sender<View>,
        (commands, handles): (mpsc::Receiver<Command>, mpsc::WeakSender<Command>),
    ) -> Result<Self, HttpConfigError> {
        let jitter: [u8; 2] = random();
        Ok(Self {
            machine: Machine::new(server.clone(), settings.clone(), None),
            fetcher: Fetcher::new(&server, &settings)?,
            server,
            settings,
            store,
            view,
            commands,
            handles,
            flight: None,
            attempt: None,
            attempts: 0,
            is_renewing: false,
            renews_next: false,
            waiting: Vec::new(),
            sign_in_next: None,
            signing_out: Vec::new(),
            lock: None,
            unsaved: None,
            save_again: None,
            retry: None,
            failure: None,
            jitter: u16::from_be_bytes(jitter).into(),
            warnings: Limited::default(),
        })
    }

    pub(super) async fn run(mut self) {
        match self.store.load().await {
            Ok(stored) => {
                let (server, settings) = (self.server.clone(), self.settings.clone());
                self.machine = Machine::new(server, settings, stored);
            }
            // It is loaded again when the server refuses a request.
            Err(error) => self.warn("Cannot load the sign-in.", &error),
        }
        self.publish();
        loop {
            // Nothing interrupts work whose tokens would be lost.
            let is_free = !self.machine.is_committed() || self.flight.is_none();
            let due = self.due().filter(|_| is_free);
            tokio::select! {
                landing = flown(&mut self.flight), if self.flight.is_some() => {
                    self.landed(landing).await;
                }
                command = self.commands.recv(), if is_free => match command {
                    Some(command) => self.command(command).await,
                    None => return,
                },
                arrival = arrival(&mut self.attempt), if is_free => self.arrived(arrival).await,
                () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                    self.tick().await;
                }
            }
            self.follow_up().await;
            self.publish();
        }
    }

    /// Starts the work that waits for the end of other work.
    async fn follow_up(&mut self) {
        if self.flight.is_some() {
            return;
        }
        if let Some(answer) = self.sign_in_next.take() {
            self.sign_in(answer).await;
        }
        if self.flight.is_none() && std::mem::take(&mut self.renews_next) {
            self.renew(Event::Renew).await;
            if self.flight.is_none() {
                self.release_waiting();
            }
        }
    }

    /// The time of the next check. Work in flight ends by itself.
    fn due(&self) -> Option<Instant> {
        if self.flight.is_some() {
            return None;
        }
        let save_at = self.save_again.map(|(at, _)| at);
        let now = now();
        let wall = |at: u64| Instant::now() + Duration::from_secs(at.saturating_sub(now)).min(NAP);
        let awaited = self.machine.tick_at().map(wall);
        let is_usable = matches!(
            self.machine.state(),
            State::AwaitingUser { .. } | State::SignedIn { .. }
        );
        let renewal = self.renew_at().filter(|_| is_usable);
        let renewal = renewal.map(|at| match self.retry {
            Some((failed, delay)) => wall(at).max(failed + delay),
            None => wall(at),
        });
        [awaited, renewal, save_at].into_iter().flatten().min()
    }

    fn renew_at(&self) -> Option<u64> {
        let tokens = self.tokens().filter(|_| self.can_renew())?;
        let at = tokens.renew_at(self.jitter)?;
        Some(at.max(tokens.issued.saturating_add(RENEWAL_PAUSE)))
    }

    fn tokens(&self) -> Option<&Tokens> {
        self.machine.credential()?.tokens.as_ref()
    }

    fn can_renew(&self) -> bool {
        let is_alone = self.settings.grant.is_unattended();
        self.tokens()
            .is_some_and(|tokens| is_alone || tokens.refresh.is_some())
    }

    /// Tests if a renewal may be tried, after at most this delay.
    fn may_retry(&self, longest: Duration) -> bool {
        self.retry
            .is_none_or(|(failed, delay)| Instant::now() >= failed + delay.min(longest))
    }

    async fn tick(&mut self) {
        if self.machine.tick_at().is_some() {
            self.handle(Event::Tick).await;
        }
        let is_due = |(at, _)| Instant::now() >= at;
        if self.save_again.is_some_and(is_due) && self.flight.is_none() {
            self.save().await;
            self.unlock();
        }
        let is_due = self.renew_at().is_some_and(|at| now() >= at);
        if is_due && self.may_retry(RETRY_MAX) && self.flight.is_none() {
            self.renew(Event::Renew).await;
        }
    }

    async fn command(&mut self, command: Command) {
        match command {
            Command::SignIn(answer) if self.is_renewing && self.flight.is_some() => {
                if let Some(former) = self.sign_in_next.replace(answer) {
                    let _ = former.send(Err(Error::Cancelled));
                }
            }
            Command::SignIn(answer) => self.sign_in(answer).await,
            Command::SignOut(answer) => self.sign_out(answer).await,
            Command::Callback {
                number,
                url,
                answer,
            } => {
                let is_current = self.attempt.as_ref().is_some_and(|it| it.number == number);
                let outcome = if is_current {
                    self.callback(&url).await
                } else {
                    Err(Error::Cancelled)
                };
                let _ = answer.send(outcome);
            }
            Command::Cancel(number) => {
                if self.attempt.as_ref().is_some_and(|it| it.number == number) {
                    self.abandon(Error::Cancelled).await;
                }
            }
            Command::Renew(answer) => {
                let is_due = self
                    .tokens()
                    .is_some_and(|tokens| tokens.has_expired(now()));
                if is_due && self.can_renew() && self.may_retry(RETRY_NEEDED_MAX) {
                    self.renew_soon().await;
                }
                self.answer_later(answer);
            }
            Command::Refused(refusal, answer) => {
                self.refused(refusal).await;
                self.answer_later(answer);
            }
            Command::Accepted => self.handle(Event::Accepted).await,
            Command::Settle(answer) => {
                if self.unsaved.is_some() {
                    self.save().await;
                    self.unlock();
                }
                let _ = answer.send(());
            }
        }
    }

    /// Renews the token for a request, after the work in flight.
    async fn renew_soon(&mut self) {
        if self.flight.is_none() {
            self.renew(Event::Renew).await;
        } else if !self.is_renewing {
            self.renews_next = true;
        }
    }

    /// Answers once the work for a new token has ended. A user may take longer than a request can wait.
    fn answer_later(&mut self, answer: Answer<()>) {
        if self.flight.is_some() && (self.is_renewing || self.renews_next) {
            self.waiting.push(answer);
        } else {
            // The view has to be current when the answer arrives.
            self.publish();
            let _ = answer.send(());
        }
    }

    /// Ends the work that is not committed, and the attempt of a user.
    async fn abandon(&mut self, reason: Error) {
        self.flight = None;
        self.is_renewing = false;
        self.renews_next = false;
        // The outcome is known.
        let _ = self.machine.handle(now(), Event::Cancel);
        self.unlock();
        self.release_waiting();
        self.end_attempt(Err(reason)).await;
    }

    async fn sign_in(&mut self, answer: Answer<Outcome<Option<Opened>>>) {
        self.abandon(Error::Cancelled).await;
        let listener = match self.listen().await {
            Ok(listener) => listener,
            Err(error) => {
                let _ = answer.send(Err(error));
                return;
            }
        };
        let redirect_uri = listener
            .as_ref()
            .map(|listener| listener.redirect_uri.clone());
        let start = SignIn {
            redirect_uri: redirect_uri.unwrap_or_default(),
            random: random(),
        };
        self.attempts += 1;
        self.attempt = Some(Attempt {
            number: self.attempts,
            listener,
            opening: Some(answer),
            ending: None,
            page: None,
        });
        self.handle(Event::SignIn(start)).await;
    }

    /// Listens for the browser, if it will be redirected. The address of the last sign-in is preferred, since the client is
    /// registered with it.
    async fn listen(&mut self) -> Outcome<Option<Listener>> {
        if !self.settings.grant.has_redirect() {
            return Ok(None);
        }
        let configured = self.settings.redirect_uri.clone();
        let client = self.machine.credential().map(|known| &known.client);
        let registered = client.and_then(|client| client.redirect_uri.clone());
        let registered = registered.filter(|uri| !uri.is_empty());
        if let (None, Some(uri)) = (&configured, registered)
            && let Ok(listener) = Listener::bind(Some(&uri)).await
        {
            return Ok(Some(listener));
        }
        let bound = Listener::bind(configured.as_deref()).await;
        bound.map(Some).map_err(|error| Error::NoListener {
            redirect_uri: configured,
            reason: error.to_string(),
        })
    }

    async fn sign_out(&mut self, answer: Answer<Outcome<()>>) {
        self.abandon(Error::Cancelled).await;
        // Another process may have renewed the tokens.
        self.lock().await;
        match self.store.load().await {
            Ok(stored) if self.unsaved.is_none() => {
                let stored = stored.map(Box::new);
                let _ = self.machine.handle(now(), Event::Loaded(stored));
            }
            Ok(_) => {}
            Err(error) => {
                self.unlock();
                let reason = error.to_string();
                let _ = answer.send(Err(Error::NotSaved { reason }));
                return;
            }
        }
        self.signing_out.push(answer);
        self.handle(Event::SignOut).await;
    }

    /// The browser was redirected to the page.
    async fn arrived(&mut self, Arrival { url, page }: Arrival) {
        match self.callback(&url).await {
            Err(error) => {
                let _ = page.send(Page::Failed(told(&error)));
            }
            Ok(()) => match &mut self.attempt {
                Some(attempt) => attempt.page = Some(page),
                // It ended at once, and the caller knows why.
                None => {
                    let _ = page.send(Page::Failed("The sign-in has ended.".to_owned()));
                }
            },
        }
    }

    /// Continues with the address that the browser was redirected to.
    async fn callback(&mut self, url: &str) -> Outcome<()> {
        let action = self.machine.handle(now(), Event::Callback(url));
        let failed = match &action {
            Action::Ignore(error) => return Err(error.clone()),
            Action::Done(Err(error)) => Some(error.clone()),
            _ => None,
        };
        // A renewal that has not sent its refresh token yet is replaced.
        self.flight = None;
        self.is_renewing = false;
        self.carry_out(action).await;
        failed.map_or(Ok(()), Err)
    }

    /// Has the machine renew the token.
    async fn renew(&mut self, event: Event<'_>) {
        self.is_renewing = true;
        self.handle(event).await;
        self.is_renewing &= self.flight.is_some();
    }

    async fn refused(&mut self, refusal: Refusal) {
        let Refusal {
            used,
            mut challenge,
            status,
            address,
        } = refusal;
        if header(&self.machine) != used || self.machine.is_committed() {
            // Another request has got a new token, or is about to.
            return;
        }
        self.widen(address);
        tracing::debug!(target: "switchboard::auth", server = self.name(), status = status.as_u16(), "The server refused a request.");
        if self.flight.is_none() && self.unsaved.is_none() {
            // Another process may have signed in.
            match self.store.load().await {
                Ok(stored) => self.handle_quietly(Event::Loaded(stored.map(Box::new))),
                Err(error) => self.warn("Cannot load the sign-in.", &error),
            }
            let is_valid = |tokens: &Tokens| !tokens.has_expired(now());
            if header(&self.machine) != used && self.tokens().is_some_and(is_valid) {
                return;
            }
        }
        if challenge == Challenge::default() && status == StatusCode::UNAUTHORIZED {
            // A server of 2025-03-26 sends no challenge.
            challenge.error = Some("invalid_token".to_owned());
        }
        let is_about_token = !challenge.needs_scope();
        let may_retry = self.may_retry(RETRY_NEEDED_MAX);
        if self.flight.is_some() {
            // The machine only notes the challenge while it works.
            self.handle(Event::Refused(challenge)).await;
            self.renews_next |=
                is_about_token && may_retry && self.can_renew() && !self.is_renewing;
            return;
        }
        if is_about_token && !may_retry {
            return;
        }
        self.renew(Event::Refused(challenge)).await;
    }

    /// Handles an event whose outcome shows in the state.
    fn handle_quietly(&mut self, event: Event<'_>) {
        let _ = self.machine.handle(now(), event);
    }

    /// Learns from the address of the server: one in a private network may refer to others there. A name must not lead
    /// to this machine, and through a proxy nothing is known.
    fn widen(&mut self, address: Option<IpAddr>) {
        let reach = address.map(Reach::of_address);
        if !self.fetcher.has_proxy && reach.is_some_and(|reach| reach != Reach::Public) {
            self.machine.widen(Reach::Private);
        }
    }

    async fn landed(&mut self, landing: Landing) {
        self.flight = None;
        match landing {
            Landing::Fetched(Ok(fetched)) => {
                self.widen(fetched.of_server);
                let response = Response {
                    status: fetched.status,
                    challenge: fetched.challenge,
                    nonce: fetched.nonce,
                    body: &fetched.body,
                };
                self.handle(Event::Response(response)).await;
            }
            Landing::Fetched(Err(reason)) => self.handle(Event::Failed(reason)).await,
            Landing::Renewed(Some(renewed)) => {
                if let Some(reason) = renewed.unsaved.clone() {
                    self.lock().await;
                    self.unsaved = Some(reason);
                    self.save_later();
                }
                self.handle(Event::Renewed(renewed)).await;
            }
            Landing::Renewed(None) => {
                let action = self.load().await;
                self.carry_out(action).await;
            }
        }
    }

    async fn handle(&mut self, event: Event<'_>) {
        let action = self.machine.handle(now(), event);
        self.carry_out(action).await;
    }

    async fn carry_out(&mut self, mut action: Action) {
        loop {
            action = match action {
                Action::Wait | Action::Ignore(_) => break,
                Action::Send(mut request) => match sign::complete(&mut request) {
                    Ok(proof) => {
                        let reach = self.machine.reach();
                        let fetching = self.fetcher.fetch(request, proof, reach);
                        self.flight = Some(Box::pin(async { Landing::Fetched(fetching.await) }));
                        break;
                    }
                    Err(error) => self.machine.handle(now(), Event::Unable(error)),
                },
                Action::Open { url, code, until } => {
                    if self.opened(url, code, until) {
                        break;
                    }
                    self.machine.handle(now(), Event::Cancel)
                }
                Action::Save => {
                    self.save().await;
                    self.machine.handle(now(), Event::Saved)
                }
                Action::MakeKey => {
                    let made = sign::new_key().map_or_else(Event::Unable, Event::Key);
                    self.machine.handle(now(), made)
                }
                Action::ReadAssertion => {
                    let event = assertion::read(self.settings.assertion_file.clone()).await;
                    self.machine.handle(now(), event)
                }
                Action::Load => match self.renewing() {
                    Some(renewing) => {
                        self.flight = Some(renewing);
                        break;
                    }
                    None => self.load().await,
                },
                Action::Done(outcome) => {
                    self.done(outcome).await;
                    break;
                }
            };
        }
    }

    /// Hands the page to the caller. Returns `false` if the caller has stopped waiting.
    fn opened(&mut self, url: Url, code: Option<UserCode>, until: u64) -> bool {
        let (Some(attempt), Some(commands)) = (&mut self.attempt, self.handles.upgrade()) else {
            return false;
        };
        let (ending, outcome) = oneshot::channel();
        attempt.ending = Some(ending);
        let opened = Opened {
            url,
            code,
            until,
            number: attempt.number,
            outcome,
            commands,
        };
        let opening = attempt.opening.take();
        opening.is_some_and(|opening| opening.send(Ok(Some(opened))).is_ok())
    }

    /// The work of the machine has ended.
    async fn done(&mut self, outcome: Outcome<()>) {
        self.unlock();
        if std::mem::take(&mut self.is_renewing) {
            self.failure = outcome.as_ref().err().cloned();
            self.retry = match (&outcome, self.retry) {
                (Ok(()), _) => None,
                (Err(Error::TooManyStepUps { .. } | Error::StillRefused), retry) => retry,
                (Err(_), last) => {
                    let delay = last.map_or(RETRY, |(_, last)| (last * 2).min(RETRY_MAX));
                    Some((Instant::now(), delay))
                }
            };
            self.release_waiting();
            if let Err(error) = outcome {
                self.warn("Cannot renew the sign-in.", &error);
            }
            return;
        }
        if outcome.is_ok() {
            self.retry = None;
            self.failure = None;
            self.renews_next = false;
        }
        if !self.renews_next {
            self.release_waiting();
        }
        let stored = match self.unsaved.clone() {
            Some(reason) if outcome.is_ok() => Err(Error::NotSaved { reason }),
            _ => outcome,
        };
        for answer in self.signing_out.drain(..) {
            let _ = answer.send(stored.clone());
        }
        self.end_attempt(stored).await;
    }

    /// Tells the user how the sign-in ended.
    async fn end_attempt(&mut self, outcome: Outcome<()>) {
        let Some(attempt) = self.attempt.take() else {
            return;
        };
        // The next attempt may need the same port.
        if let Some(listener) = attempt.listener {
            listener.close().await;
        }
        // The view has to be current when the user continues.
        self.publish();
        if let Some(opening) = attempt.opening {
            let _ = opening.send(outcome.clone().map(|()| None));
        }
        if let Some(page) = attempt.page {
            let shown = match &outcome {
                Ok(()) => Page::SignedIn,
                Err(error) => Page::Failed(told(error)),
            };
            let _ = page.send(shown);
        }
        if let Some(ending) = attempt.ending {
            let _ = ending.send(outcome);
        }
    }

    /// Has requests go on that wait for a new token.
    fn release_waiting(&mut self) {
        // The view has to be current when they do.
        self.publish();
        for waiting in self.waiting.drain(..) {
            let _ = waiting.send(());
        }
    }

    fn publish(&self) {
        let expires = self.tokens().and_then(|tokens| tokens.expires);
        let new = View {
            state: self.machine.state(),
            token: Token::of(&self.machine, self.view.borrow().token.as_ref()),
            renewable_until: expires.filter(|_| self.can_renew()),
            is_unproven: self.machine.is_unproven(),
            is_loading: false,
            outage: self.failure.clone().filter(Error::is_temporary),
        };
        self.view.send_if_modified(|view| {
            let is_new = *view != new;
            if is_new {
                *view = new;
            }
            is_new
        });
    }

    /// Servers can cause these.
    fn warn(&self, message: &'static str, error: &dyn std::fmt::Display) {
        let server = self.name();
        self.warnings.report(|left_out| {
            tracing::warn!(target: "switchboard::auth", server, %error, left_out, "{message}");
        });
    }

    /// The server, for logs.
    fn name(&self) -> &str {
        self.server.host_str().unwrap_or_default()
    }
}

/// The text of an error, for the user's browser.
fn told(error: &Error) -> String {
    let said = error.said().map(|said| format!(" (“{said}”)"));
    format!("{error}{}: {}.", said.unwrap_or_default(), error.hint())
}

async fn flown(flight: &mut Option<Flight>) -> Landing {
    match flight {
        Some(flight) => flight.await,
        None => std::future::pending().await,
    }
}

async fn arrival(attempt: &mut Option<Attempt>) -> Arrival {
    match attempt
        .as_mut()
        .and_then(|attempt| attempt.listener.as_mut())
    {
        Some(listener) => listener.arrival().await,
        None => std::future::pending().await,
    }
}
