//! Subscriptions and the log level: a task remembers them, and renews them after every reconnect.
//!
//! Older servers get a request for each. A server of 2026-07-28 gets one listen stream that names
//! everything; when a subscription changes, the new stream is opened before the old one is closed.
//! A stream without a predecessor does not cover the time before it, so the lists that may have
//! changed in that time are reported as changed.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use switchboard_machine::{Call as MachineCall, CallError, CallKind, Reply, Session, State};
use switchboard_wire::{Era, Id, Notification, Outcome, Raw, code, meta, method};
use tokio::{
    sync::{mpsc, watch},
    time::{Instant, sleep, sleep_until, timeout},
};

use crate::{
    Call, Error,
    connection::{Change, Done, Handle, Shared},
    join::join_all,
    lists::{LISTS, List},
    model::LogLevel,
    pending::Pending,
};

/// The task and its state.
pub(crate) struct Subscriptions {
    handle: Handle,
    changes: mpsc::Receiver<(Change, Done)>,
    acknowledged: mpsc::Receiver<Notification>,
    state: watch::Receiver<State>,
    /// Receives the notifications about changed lists, if the client has a handler.
    news: Option<mpsc::Sender<Notification>>,
    uris: BTreeSet<String>,
    level: Option<LogLevel>,
    /// The session for which everything has been set up.
    established: Option<Arc<Session>>,
    listening: Option<Pending>,
    /// The time at which to reopen a listen stream that was lost or refused, and the number of
    /// failures.
    listen_at: Option<Instant>,
    failures: u32,
}

/// The most resources that one client may subscribe to.
const URIS_MAX: usize = 10_000;
/// The most subscriptions that are requested concurrently.
const AT_A_TIME: usize = 64;
/// The first and the longest delay before a listen stream is reopened.
const LISTEN_AGAIN: Duration = Duration::from_secs(1);
const LISTEN_AGAIN_MAX: Duration = Duration::from_mins(1);

impl Subscriptions {
    pub(crate) fn new(
        shared: &Arc<Shared>,
        changes: mpsc::Receiver<(Change, Done)>,
        acknowledged: mpsc::Receiver<Notification>,
        news: Option<mpsc::Sender<Notification>>,
    ) -> Self {
        Self {
            handle: Handle::internal(Arc::clone(shared)),
            changes,
            acknowledged,
            state: shared.state.clone(),
            news,
            uris: BTreeSet::new(),
            level: None,
            established: None,
            listening: None,
            listen_at: None,
            failures: 0,
        }
    }

    /// Runs until the connection has ended.
    pub(crate) async fn run(mut self) {
        loop {
            let listen_at = self.listen_at;
            tokio::select! {
                changed = self.state.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    self.state.mark_unchanged();
                    if let Some(session) = self.handle.shared.session() {
                        self.establish(&session).await;
                    }
                }
                Some((change, done)) = self.changes.recv() => self.apply(change, done).await,
                () = ended(&mut self.listening) => self.listen_later(),
                () = until(listen_at) => {
                    self.listen_at = None;
                    // If the connection is not ready, this happens on the next one.
                    if let Some(session) = self.handle.shared.session() {
                        self.listen_again(&session).await;
                    }
                }
            }
        }
    }

    /// Sets up everything on a new connection, once. A refusal is logged, and the rest is still set
    /// up.
    async fn establish(&mut self, session: &Arc<Session>) {
        let known = self.established.replace(Arc::clone(session));
        if known.is_some_and(|known| Arc::ptr_eq(&known, session)) {
            return;
        }
        self.listening = None;
        self.listen_at = None;
        if session.revision.era() == Era::Modern {
            self.failures = 0;
            self.listen_again(session).await;
            return;
        }
        if let Some(level) = self.level {
            report("log level", &set_level(&self.handle, level).await);
        }
        let uris: Vec<_> = self.uris.iter().collect();
        for uris in uris.chunks(AT_A_TIME) {
            let asking = uris
                .iter()
                .map(|uri| subscribe(&self.handle, method::RESOURCES_SUBSCRIBE, uri));
            for asked in join_all(asking).await {
                report("subscription", &asked);
            }
            if self.handle.shared.session().is_none() {
                return;
            }
        }
    }

    async fn listen_again(&mut self, session: &Session) {
        let listening = self.listen(session).await.map(drop);
        report("listen stream", &listening);
        match listening {
            // A server that does not know the method now will not know it later.
            Err(Error::Server(error)) if error.code == code::METHOD_NOT_FOUND => {}
            Err(_) => self.listen_later(),
            Ok(()) => self.failures = 0,
        }
    }

    fn listen_later(&mut self) {
        let delay = LISTEN_AGAIN.saturating_mul(2_u32.saturating_pow(self.failures));
        self.failures = self.failures.saturating_add(1);
        self.listen_at = Some(Instant::now() + delay.min(LISTEN_AGAIN_MAX));
    }

    async fn apply(&mut self, change: Change, done: Done) {
        // The caller has given up while it waited.
        if done.is_closed() {
            return;
        }
        let result = match change {
            Change::Subscribe(uri) => self.subscribe(uri).await,
            Change::Unsubscribe(uri) => self.unsubscribe(&uri).await,
            Change::Level(level) => self.set_level(level).await,
        };
        let _ = done.send(result);
    }

    async fn subscribe(&mut self, uri: String) -> Result<(), Error> {
        if self.uris.len() >= URIS_MAX {
            return Err(CallError::Backpressure { attempts: 0 }.into());
        }
        let session = self.ready().await?;
        if session.revision.era() == Era::Legacy {
            subscribe(&self.handle, method::RESOURCES_SUBSCRIBE, &uri).await?;
            self.uris.insert(uri);
            return Ok(());
        }
        let is_new = self.uris.insert(uri.clone());
        let honoured = self.listen(&session).await;
        if honoured.as_ref().is_ok_and(|uris| uris.contains(&uri)) {
            return Ok(());
        }
        if is_new {
            self.uris.remove(&uri);
        }
        honoured?;
        Err(Error::NotOffered {
            what: format!("updates of `{uri}`"),
        })
    }

    async fn unsubscribe(&mut self, uri: &str) -> Result<(), Error> {
        if !self.uris.contains(uri) {
            return Ok(());
        }
        // A disconnected server sends no updates, and the subscription is not renewed when it is
        // back.
        let Some(session) = self.handle.shared.session() else {
            self.uris.remove(uri);
            return Ok(());
        };
        if session.revision.era() == Era::Legacy {
            subscribe(&self.handle, method::RESOURCES_UNSUBSCRIBE, uri).await?;
            self.uris.remove(uri);
            return Ok(());
        }
        self.uris.remove(uri);
        let listening = self.listen(&session).await.map(drop);
        if listening.is_err() {
            self.uris.insert(uri.to_owned());
        }
        listening
    }

    async fn set_level(&mut self, level: LogLevel) -> Result<(), Error> {
        let session = self.ready().await?;
        if session.revision.facts().session_log_level {
            set_level(&self.handle, level).await?;
        }
        self.level = Some(level);
        let with_each = Some(Raw::string(level.as_str()));
        *self.handle.shared.log_level.write() = with_each;
        Ok(())
    }

    /// Opens a listen stream for everything that is subscribed to, then closes the previous one.
    /// Returns the resources that the server will report on.
    async fn listen(&mut self, session: &Session) -> Result<BTreeSet<String>, Error> {
        let filter = self.filter(session);
        if filter.as_str() == "{}" {
            self.listening = None;
            return Ok(BTreeSet::new());
        }
        while self.acknowledged.try_recv().is_ok() {}
        let call = MachineCall {
            kind: CallKind::Request,
            method: method::LISTEN.into(),
            params: Some(Raw::object([("notifications", filter)])),
            lane: self.handle.lane,
            timeout: None,
            extend: None,
            progress: false,
            logs: false,
            fail_fast: true,
            log_level: None,
            trace: None,
            headers: Arc::from([]),
        };
        let mut opening = self.handle.shared.submit(call, None, None)?;
        let id = Id::from(opening.id());
        let after = self.handle.shared.request_timeout;
        let params = tokio::select! {
            // A stream that was acknowledged and then ended counts as acknowledged.
            biased;
            params = acknowledgement(&mut self.acknowledged, &id) => params,
            ended = &mut opening => return Err(refusal(ended)),
            () = sleep(after) => {
                return Err(CallError::Timeout { after, sent: true, reason: None }.into());
            }
        };
        let before = self.listening.replace(opening);
        if before.is_none_or(|before| before.is_over()) {
            self.tell_changes(session);
        }
        let honoured = params
            .member("notifications")
            .and_then(|honoured| honoured.member("resourceSubscriptions"));
        Ok(honoured
            .and_then(|uris| uris.read().ok())
            .unwrap_or_default())
    }

    /// Returns the filter of the listen stream: all subscriptions that the server supports.
    fn filter(&self, session: &Session) -> Raw {
        let lists = LISTS.iter().filter(|list| self.hears_of(list, session));
        let lists = lists.map(|list| (list.wish, Raw::from(true)));
        let uris = (!self.uris.is_empty())
            .then(|| Raw::from_value(&self.uris).ok())
            .flatten();
        Raw::object(lists.chain(uris.map(|uris| ("resourceSubscriptions", uris))))
    }

    /// Returns `true` if the listen stream covers changes of this list.
    fn hears_of(&self, list: &List, session: &Session) -> bool {
        let offer = session.capabilities.member(list.capability);
        let tells = offer.and_then(|offer| offer.member("listChanged"));
        self.news.is_some() && tells.is_some_and(|tells| tells.as_str() == "true")
    }

    /// Reports every list that was requested as changed, because it may have changed while there
    /// was no stream.
    fn tell_changes(&self, session: &Session) {
        let Some(news) = &self.news else {
            return;
        };
        let shared = &self.handle.shared;
        let lists = shared.asked_for.lists();
        for list in lists.filter(|list| self.hears_of(list, session)) {
            let changed = Notification {
                method: list.changed.to_owned(),
                params: None,
            };
            if news.try_send(changed).is_err() {
                shared.counters.dropped.add();
            }
        }
    }

    /// Waits for a connection on which everything so far has been set up.
    async fn ready(&mut self) -> Result<Arc<Session>, Error> {
        let after = self.handle.shared.request_timeout;
        let overdue = CallError::Timeout {
            after,
            sent: false,
            reason: None,
        };
        let Ok(session) = timeout(after, self.handle.shared.ready()).await else {
            return Err(overdue.into());
        };
        let session = session?;
        self.establish(&session).await;
        Ok(session)
    }
}

async fn subscribe(handle: &Handle, method: &'static str, uri: &str) -> Result<(), Error> {
    let params = Raw::object([("uri", Raw::string(uri))]);
    let asking = Call::<Raw>::of(handle, method, Ok(Some(params)));
    asking.fail_fast().await.map(drop)
}

async fn set_level(handle: &Handle, level: LogLevel) -> Result<(), Error> {
    let params = Raw::object([("level", Raw::string(level.as_str()))]);
    let asking = Call::<Raw>::of(handle, method::SET_LEVEL, Ok(Some(params)));
    asking.fail_fast().await.map(drop)
}

/// Waits for the end of a listen stream, forever if there is none.
async fn ended(listening: &mut Option<Pending>) {
    match listening {
        Some(stream) => {
            let _ = stream.await;
            *listening = None;
        }
        None => std::future::pending().await,
    }
}

/// Waits until a time, forever if there is none.
async fn until(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
}

/// Waits for the acknowledgement of the listen stream with this id.
async fn acknowledgement(acknowledged: &mut mpsc::Receiver<Notification>, id: &Id) -> Raw {
    while let Some(news) = acknowledged.recv().await {
        if let Some(params) = news.params
            && subscription_id(&params).as_ref() == Some(id)
        {
            return params;
        }
    }
    std::future::pending().await
}

/// Returns the reason why a listen stream did not open.
fn refusal(ended: Result<Reply, CallError>) -> Error {
    match ended {
        Err(error) => error.into(),
        Ok(Reply::Answered(response)) => match response.outcome {
            Outcome::Error(error) => Error::Server(error),
            Outcome::Result(_) => {
                Error::unexpected(method::LISTEN, "the stream ended before it opened")
            }
        },
        Ok(Reply::Sent) => Error::unexpected(method::LISTEN, "the stream got no response"),
    }
}

fn subscription_id(params: &Raw) -> Option<Id> {
    Id::from_raw(params.member(meta::META)?.member(meta::SUBSCRIPTION_ID)?)
}

fn report(what: &str, result: &Result<(), Error>) {
    if let Err(error) = result {
        tracing::warn!(target: "switchboard::connection", %error, "Cannot restore the {what}.");
    }
}
