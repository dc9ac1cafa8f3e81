//! The keeper: knows what was asked of the server for good, subscriptions and log level, and asks
//! again whenever the connection is new.
//!
//! Older servers are asked with a request each. A server of 2026-07-28 is asked with one listen
//! stream that names everything; when the wishes change, the new stream is opened before the old
//! one is closed.

use std::{
    collections::BTreeSet,
    sync::{Arc, PoisonError, Weak},
    time::Duration,
};

use switchboard_machine::{Call, CallError, CallKind, Session, State};
use switchboard_wire::{Era, Id, Notification, Raw, meta, method};
use tokio::{
    sync::{mpsc, oneshot, watch},
    time::{sleep, timeout},
};

use crate::{Client, Error, client::Shared, model::LogLevel, pending::Pending};

/// Something to be asked of the server for good.
pub(crate) enum Wish {
    Subscribe { uri: String, reply: Granted },
    Unsubscribe { uri: String, reply: Granted },
    Level { level: LogLevel, reply: Granted },
}

type Granted = oneshot::Sender<Result<(), Error>>;

pub(crate) struct Keeper {
    shared: Weak<Shared>,
    wishes: mpsc::Receiver<Wish>,
    acknowledged: mpsc::Receiver<Notification>,
    state: watch::Receiver<State>,
    /// Whether somebody wants to hear of changed lists.
    wants_lists: bool,
    request_timeout: Duration,
    uris: BTreeSet<String>,
    level: Option<LogLevel>,
    listening: Option<Pending>,
}

/// The most resources that one client watches.
const URIS_MAX: usize = 10_000;
/// How long to wait before opening a listen stream again that the server ended.
const LISTEN_AGAIN: Duration = Duration::from_secs(1);

impl Keeper {
    pub(crate) fn new(
        shared: &Arc<Shared>,
        wishes: mpsc::Receiver<Wish>,
        acknowledged: mpsc::Receiver<Notification>,
        state: watch::Receiver<State>,
    ) -> Self {
        Self {
            shared: Arc::downgrade(shared),
            wishes,
            acknowledged,
            state,
            wants_lists: shared.handlers.notification.is_some(),
            request_timeout: shared.request_timeout,
            uris: BTreeSet::new(),
            level: None,
            listening: None,
        }
    }

    /// Runs until the last client is gone or the connection is over.
    pub(crate) async fn run(mut self) {
        loop {
            tokio::select! {
                wish = self.wishes.recv() => match wish {
                    Some(wish) => self.grant(wish).await,
                    None => return,
                },
                changed = self.state.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    let session = match &*self.state.borrow_and_update() {
                        State::Ready(session) => Some(Arc::clone(session)),
                        _ => None,
                    };
                    if let Some(session) = session {
                        self.establish(&session).await;
                    }
                }
                () = ended(&mut self.listening) => self.listen_again().await,
            }
        }
    }

    /// Asks for everything on a new connection. What is refused is reported, and the rest stands.
    async fn establish(&mut self, session: &Session) {
        self.listening = None;
        let Some(client) = self.client() else {
            return;
        };
        match session.revision.era() {
            Era::Legacy => {
                if let Some(level) = self.level {
                    report("log level", set_level(&client, level).await);
                }
                for uri in &self.uris {
                    report(
                        "subscription",
                        subscribe(&client, method::RESOURCES_SUBSCRIBE, uri).await,
                    );
                }
            }
            Era::Modern => report(
                "listen stream",
                self.listen(&client, session).await.map(drop),
            ),
        }
    }

    async fn listen_again(&mut self) {
        sleep(LISTEN_AGAIN).await;
        let session = match &*self.state.borrow() {
            State::Ready(session) => Arc::clone(session),
            // The next connection will see to it.
            _ => return,
        };
        if let Some(client) = self.client() {
            report(
                "listen stream",
                self.listen(&client, &session).await.map(drop),
            );
        }
    }

    async fn grant(&mut self, wish: Wish) {
        let Some(client) = self.client() else {
            return;
        };
        // The caller may be gone, and the wish stands nevertheless.
        match wish {
            Wish::Subscribe { uri, reply } => {
                let granted = self.subscribe(&client, uri).await;
                let _ = reply.send(granted);
            }
            Wish::Unsubscribe { uri, reply } => {
                let granted = self.unsubscribe(&client, &uri).await;
                let _ = reply.send(granted);
            }
            Wish::Level { level, reply } => {
                let granted = self.set_level(&client, level).await;
                let _ = reply.send(granted);
            }
        }
    }

    async fn subscribe(&mut self, client: &Client, uri: String) -> Result<(), Error> {
        if self.uris.len() >= URIS_MAX {
            return Err(CallError::Backpressure { attempts: 0 }.into());
        }
        let session = self.ready(client).await?;
        match session.revision.era() {
            Era::Legacy => {
                subscribe(client, method::RESOURCES_SUBSCRIBE, &uri).await?;
                self.uris.insert(uri);
            }
            Era::Modern => {
                self.uris.insert(uri.clone());
                let honoured = self.listen(client, &session).await;
                if !honoured
                    .as_ref()
                    .is_ok_and(|honoured| honoured.contains(&uri))
                {
                    self.uris.remove(&uri);
                    honoured?;
                    return Err(Error::NotOffered {
                        what: format!("updates of `{uri}`"),
                    });
                }
            }
        }
        Ok(())
    }

    async fn unsubscribe(&mut self, client: &Client, uri: &str) -> Result<(), Error> {
        if !self.uris.remove(uri) {
            return Ok(());
        }
        let session = self.ready(client).await?;
        match session.revision.era() {
            Era::Legacy => subscribe(client, method::RESOURCES_UNSUBSCRIBE, uri).await,
            Era::Modern => self.listen(client, &session).await.map(drop),
        }
    }

    async fn set_level(&mut self, client: &Client, level: LogLevel) -> Result<(), Error> {
        let session = self.ready(client).await?;
        if session.revision.facts().session_log_level {
            set_level(client, level).await?;
        }
        self.level = Some(level);
        let with_each = Some(Raw::string(level.as_str()));
        *client
            .shared()
            .log_level
            .write()
            .unwrap_or_else(PoisonError::into_inner) = with_each;
        Ok(())
    }

    /// Opens a listen stream for all that is wished, then closes the one before. The resources that
    /// the server will report on.
    async fn listen(
        &mut self,
        client: &Client,
        session: &Session,
    ) -> Result<BTreeSet<String>, Error> {
        let filter = self.filter(session);
        if filter.as_str() == "{}" {
            self.listening = None;
            return Ok(BTreeSet::new());
        }
        while self.acknowledged.try_recv().is_ok() {}
        let call = Call {
            kind: CallKind::Request,
            method: method::LISTEN.into(),
            params: Some(Raw::object([("notifications", filter)])),
            lane: client.lane(),
            timeout: None,
            extend: None,
            progress: false,
            fail_fast: true,
            log_level: None,
            trace: None,
            headers: Arc::from([]),
        };
        let mut opening = client.shared().submit(call, None)?;
        let id = Id::from(opening.id());
        let acknowledged = async {
            loop {
                match self.acknowledged.recv().await.and_then(|news| news.params) {
                    Some(params) if subscription_id(&params).as_ref() == Some(&id) => break params,
                    Some(_) => {}
                    None => std::future::pending().await,
                }
            }
        };
        let params = tokio::select! {
            params = timeout(self.request_timeout, acknowledged) => params.map_err(|_| CallError::Timeout {
                after: self.request_timeout,
                sent: true,
            })?,
            ended = &mut opening => return Err(match ended {
                Err(error) => error.into(),
                Ok(_) => Error::NotOffered { what: "listen streams".to_owned() },
            }),
        };
        self.listening = Some(opening);
        let honoured = params
            .member("notifications")
            .and_then(|honoured| honoured.member("resourceSubscriptions"));
        Ok(honoured
            .and_then(|uris| uris.read().ok())
            .unwrap_or_default())
    }

    /// What to listen for: what is wished, as far as the server offers it.
    fn filter(&self, session: &Session) -> Raw {
        let offers = |what: &str| {
            let offered = session
                .capabilities
                .member(what)
                .and_then(|offer| offer.member("listChanged"));
            self.wants_lists && offered.is_some_and(|offered| offered.as_str() == "true")
        };
        let yes = || Raw::from_value(&true).ok();
        let lists = [
            ("toolsListChanged", "tools"),
            ("promptsListChanged", "prompts"),
            ("resourcesListChanged", "resources"),
        ];
        let lists = lists.into_iter().filter(|(_, what)| offers(what));
        let lists = lists.filter_map(|(name, _)| Some((name, yes()?)));
        let uris = (!self.uris.is_empty())
            .then(|| Raw::from_value(&self.uris).ok())
            .flatten();
        Raw::object(lists.chain(uris.map(|uris| ("resourceSubscriptions", uris))))
    }

    async fn ready(&self, client: &Client) -> Result<Arc<Session>, Error> {
        let after = self.request_timeout;
        match timeout(after, client.ready()).await {
            Ok(session) => Ok(session?),
            Err(_) => Err(CallError::Timeout { after, sent: false }.into()),
        }
    }

    fn client(&self) -> Option<Client> {
        self.shared.upgrade().map(Client::new)
    }
}

async fn subscribe(client: &Client, method: &'static str, uri: &str) -> Result<(), Error> {
    let params = Raw::object([("uri", Raw::string(uri))]);
    client.request(method, params).await.map(drop)
}

async fn set_level(client: &Client, level: LogLevel) -> Result<(), Error> {
    let params = Raw::object([("level", Raw::string(level.as_str()))]);
    client.request(method::SET_LEVEL, params).await.map(drop)
}

/// Waits for the end of a listen stream, for ever if there is none.
async fn ended(listening: &mut Option<Pending>) {
    match listening {
        Some(stream) => {
            let _ = stream.await;
            *listening = None;
        }
        None => std::future::pending().await,
    }
}

fn subscription_id(params: &Raw) -> Option<Id> {
    Id::from_raw(params.member(meta::META)?.member(meta::SUBSCRIPTION_ID)?)
}

fn report(what: &str, result: Result<(), Error>) {
    if let Err(error) = result {
        tracing::warn!(target: "switchboard::connection", %error, "could not establish the {what} again");
    }
}
