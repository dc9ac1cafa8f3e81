//! A session of the revisions with a handshake.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::{
    feed::{Feed, held},
    options::Revision,
    rpc::{self, Message},
};

/// What the client said of itself in the handshake.
#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) revision: Revision,
    pub(crate) info: Value,
    pub(crate) capabilities: Value,
}

pub(crate) struct Session {
    pub(crate) client: Mutex<Option<Client>>,
    pub(crate) log_level: Mutex<Option<String>>,
    pub(crate) subscriptions: Mutex<BTreeSet<String>>,
    /// Where messages go that belong to no request.
    pub(crate) feed: Arc<Feed>,
    /// The streams of requests over HTTP, which a client may resume.
    streams: Mutex<Vec<(u64, Arc<Feed>)>>,
    next_stream: AtomicU64,
    /// Requests of ours that wait for an answer.
    asked: Mutex<BTreeMap<u64, oneshot::Sender<Result<Value, Value>>>>,
    next_request: AtomicU64,
    /// Calls that run, by id. To drop one is to cancel it.
    running: Mutex<BTreeMap<String, oneshot::Sender<()>>>,
    /// Whether the URL that `test_url_required` needs has been handed out.
    pub(crate) url_given: AtomicBool,
}

/// How many finished streams a client may still resume.
const STREAMS_MAX: usize = 64;

impl Session {
    pub(crate) fn new(feed: Arc<Feed>) -> Self {
        Self {
            client: Mutex::default(),
            log_level: Mutex::default(),
            subscriptions: Mutex::default(),
            feed,
            streams: Mutex::default(),
            next_stream: AtomicU64::new(1),
            asked: Mutex::default(),
            next_request: AtomicU64::new(1),
            running: Mutex::default(),
            url_given: AtomicBool::new(false),
        }
    }

    pub(crate) fn revision(&self) -> Option<Revision> {
        held(&self.client).as_ref().map(|client| client.revision)
    }

    /// A stream for the answer to one request.
    pub(crate) fn open_stream(&self) -> (u64, Arc<Feed>) {
        let number = self.next_stream.fetch_add(1, Ordering::SeqCst);
        let feed = Arc::new(Feed::new());
        let mut streams = held(&self.streams);
        if streams.len() >= STREAMS_MAX {
            streams.remove(0);
        }
        streams.push((number, feed.clone()));
        (number, feed)
    }

    /// A stream that was opened before; 0 is the one that belongs to no request.
    pub(crate) fn stream(&self, number: u64) -> Option<Arc<Feed>> {
        if number == 0 {
            return Some(self.feed.clone());
        }
        let streams = held(&self.streams);
        let stream = streams.iter().find(|(known, _)| *known == number);
        stream.map(|(_, feed)| feed.clone())
    }

    /// Sends a request to the client, and waits for what it answers.
    pub(crate) async fn ask(
        &self,
        feed: &Feed,
        method: &str,
        params: &Value,
    ) -> Result<Value, Value> {
        let id = self.next_request.fetch_add(1, Ordering::SeqCst);
        let (answer, answered) = oneshot::channel();
        held(&self.asked).insert(id, answer);
        feed.push(rpc::request(id, method, params));
        let gone = |_| Err(json!({ "code": -32000, "message": "the client has gone" }));
        answered.await.unwrap_or_else(gone)
    }

    /// Hands an answer to whoever asked.
    pub(crate) fn answered(&self, message: Message) {
        let id = message.id.as_ref().and_then(Value::as_u64);
        let asker = id.and_then(|id| held(&self.asked).remove(&id));
        if let Some(asker) = asker {
            let _ = asker.send(match message.error {
                Some(error) => Err(error),
                None => Ok(message.result.unwrap_or_default()),
            });
        }
    }

    /// Notes that a call runs; what is returned resolves when it is cancelled.
    pub(crate) fn running(&self, id: &Value) -> oneshot::Receiver<()> {
        let (guard, cancelled) = oneshot::channel();
        held(&self.running).insert(id.to_string(), guard);
        cancelled
    }

    pub(crate) fn done(&self, id: &Value) {
        held(&self.running).remove(&id.to_string());
    }

    /// Cancels everything that runs, because the client has left for good.
    pub(crate) fn end(&self) {
        held(&self.running).clear();
        held(&self.asked).clear();
        self.feed.end();
    }
}
