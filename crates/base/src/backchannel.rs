//! The back channel to a client while one of its requests is in flight. It carries messages to the client
//! ahead of the response, in order, and requests to clients of the older revisions.

use std::{
    collections::{HashMap, VecDeque},
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
};

use bytes::Bytes;
use parking_lot::Mutex;
use switchboard_client::{ErrorObject, Id, Raw, Reason};
use switchboard_wire::{Outcome, Response, code, encode, method};
use tokio::sync::oneshot;

use crate::random;

/// A sink of messages for a client, which takes them in order and without blocking.
pub trait Sink: Send + Sync {
    /// Queues a message. Returns `true` if there was room for it.
    fn put(&self, message: Bytes) -> bool;

    /// Shows the client that its request is being handled, before there is a message for it.
    fn begin(&self) {}
}

/// The back channel to a client.
#[derive(Clone)]
pub struct Backchannel {
    sink: Arc<dyn Sink>,
    asks: Option<Arc<Asks>>,
    reason: Reason,
}

impl Backchannel {
    /// Creates a back channel. It is one-way unless there are `asks`, with which the client can be asked
    /// questions. If the client cancels its request, its explanation is stored in `reason`.
    pub fn new(sink: Arc<dyn Sink>, asks: Option<Arc<Asks>>, reason: Reason) -> Self {
        Self { sink, asks, reason }
    }

    /// The reason for the cancellation, once the request is cancelled.
    pub fn reason(&self) -> &Reason {
        &self.reason
    }

    /// Shows the client that its request is being handled, before there is a message for it.
    pub fn begin(&self) {
        self.sink.begin();
    }

    /// Queues a message. Returns `true` if there was room for it.
    pub fn put(&self, message: Bytes) -> bool {
        self.sink.put(message)
    }

    /// Notifies the client. A client that does not read misses notifications; the gateway does not wait for
    /// it.
    pub fn tell(&self, method: &str, params: &Raw) {
        self.sink.put(encode::notification(method, Some(params)));
    }

    /// Returns `true` if the client can be asked, and has not disconnected.
    pub fn is_open(&self) -> bool {
        self.asks
            .as_ref()
            .is_some_and(|asks| !asks.closed.load(Relaxed))
    }

    /// Records that this server asks the client to open an address, so that the client can be notified when
    /// that has ended.
    pub fn asked_for(&self, server: &Arc<str>, elicitation: Option<&Raw>) {
        let id = elicitation.and_then(|params| params.member(ELICITATION_ID)?.to_text());
        if let (Some(asks), Some(id)) = (&self.asks, id) {
            asks.begun(server, &id);
        }
    }

    /// Asks the client on behalf of this server. Dropping the future withdraws the question.
    pub async fn ask(
        &self,
        server: &Arc<str>,
        question: &str,
        params: Option<&Raw>,
    ) -> Result<Raw, ErrorObject> {
        let refused = |why: &str| Err(ErrorObject::new(code::INTERNAL, why));
        let Some(asks) = &self.asks else {
            return refused("this client does not accept questions");
        };
        let Some((number, answer)) = asks.open() else {
            return refused("the client has disconnected, or has too many unanswered questions");
        };
        let asked = Asked {
            backchannel: self,
            asks,
            number,
        };
        if question == method::ELICITATION {
            self.asked_for(server, params);
        }
        let message = encode::request(&Id::from(number), question, params);
        if !self.sink.put(message) {
            return refused("the client does not read its messages");
        }
        let answer = answer.await;
        drop(asked);
        answer.unwrap_or_else(|_| refused("the client has disconnected"))
    }
}

impl fmt::Debug for Backchannel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Line")
    }
}

/// Cancels a request in flight.
#[derive(Debug)]
pub struct Cancel {
    signal: oneshot::Sender<()>,
    reason: Reason,
}

/// Resolves when a request in flight is cancelled.
pub type Cancelled = oneshot::Receiver<()>;

impl Cancel {
    /// Creates the sender of a cancellation, and the end that receives it.
    pub fn new() -> (Self, Cancelled) {
        let (signal, cancelled) = oneshot::channel();
        let reason = Reason::default();
        (Self { signal, reason }, cancelled)
    }

    /// The place where the reason for the cancellation will be stored.
    pub fn reason(&self) -> Reason {
        Arc::clone(&self.reason)
    }

    /// Cancels the request.
    pub fn cancel(self, why: Option<&str>) {
        if let Some(why) = why {
            // Nothing else sets the reason before this.
            let _ = self.reason.set(why.into());
        }
        let _ = self.signal.send(());
    }

    /// Returns `true` if the request has ended.
    pub fn is_over(&self) -> bool {
        self.signal.is_closed()
    }
}

/// A question without an answer yet; withdrawn when dropped.
struct Asked<'a> {
    backchannel: &'a Backchannel,
    asks: &'a Asks,
    number: u64,
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        if self.asks.waiting.lock().remove(&self.number).is_some() {
            self.backchannel.put(withdrawal(self.number));
        }
    }
}

/// The notification that withdraws a question.
pub fn withdrawal(number: u64) -> Bytes {
    let params = Raw::object([("requestId", Raw::number(number))]);
    encode::notification(method::CANCELLED, Some(&params))
}

/// The open questions to a client.
#[derive(Debug)]
pub struct Asks {
    /// The last number used. It starts at random, so that a late answer to a question of another session or
    /// another gateway matches none here.
    last: AtomicU64,
    waiting: Mutex<HashMap<u64, Waiting>>,
    closed: AtomicBool,
    /// The servers that asked the client to open an address, with the IDs of these elicitations, oldest
    /// first.
    elicitations: Mutex<VecDeque<(Arc<str>, Box<str>)>>,
}

type Waiting = oneshot::Sender<Result<Raw, ErrorObject>>;

/// The most open questions to one client.
const ASKS_MAX: usize = 256;
/// The member with the ID of an elicitation that asks the client to open an address.
pub const ELICITATION_ID: &str = "elicitationId";
/// The most such elicitations remembered per client, and the longest ID, in bytes.
const ELICITATIONS_MAX: usize = 64;
const ELICITATION_ID_BYTES: usize = 256;

impl Default for Asks {
    fn default() -> Self {
        Self {
            // 31 bits: some clients cannot read numbers of more than 32 bits.
            last: AtomicU64::new(random::number() >> 33),
            waiting: Mutex::default(),
            closed: AtomicBool::new(false),
            elicitations: Mutex::default(),
        }
    }
}

impl Asks {
    fn open(&self) -> Option<(u64, oneshot::Receiver<Result<Raw, ErrorObject>>)> {
        let (sender, answer) = oneshot::channel();
        let number = self.last.fetch_add(1, Relaxed) + 1;
        let mut waiting = self.waiting.lock();
        if waiting.len() >= ASKS_MAX || self.closed.load(Relaxed) {
            return None;
        }
        waiting.insert(number, sender);
        Some((number, answer))
    }

    /// Returns `true` if the client has open questions.
    pub fn is_asked(&self) -> bool {
        !self.waiting.lock().is_empty()
    }

    fn begun(&self, server: &Arc<str>, elicitation: &str) {
        if elicitation.len() > ELICITATION_ID_BYTES {
            return;
        }
        let mut elicitations = self.elicitations.lock();
        if elicitations.len() >= ELICITATIONS_MAX {
            elicitations.pop_front();
        }
        elicitations.push_back((Arc::clone(server), elicitation.into()));
    }

    /// Tests if this server has asked the client to open the address with this ID, and forgets it: the client
    /// is notified of the end once.
    pub fn ended(&self, server: &str, elicitation: Option<&str>) -> bool {
        let Some(elicitation) = elicitation else {
            return false;
        };
        let mut elicitations = self.elicitations.lock();
        let is_it = |(by, name): &(Arc<str>, Box<str>)| **by == *server && **name == *elicitation;
        let known = elicitations.iter().position(is_it);
        known.is_some_and(|at| elicitations.remove(at).is_some())
    }

    /// Delivers an answer of the client to the waiting caller.
    pub fn answered(&self, response: Response) {
        let number = response.id.as_ref().and_then(Id::as_u64);
        let waiting = number.and_then(|number| self.waiting.lock().remove(&number));
        if let Some(waiting) = waiting {
            let _ = waiting.send(match response.outcome {
                Outcome::Result(result) => Ok(result),
                Outcome::Error(error) => Err(error),
            });
        }
    }

    /// Ends the session: no caller waits for the client any more. Returns the numbers of the open questions.
    pub fn close(&self) -> Vec<u64> {
        let mut waiting = self.waiting.lock();
        self.closed.store(true, Relaxed);
        waiting.drain().map(|(number, _)| number).collect()
    }
}

#[cfg(test)]
mod tests {
    use switchboard_wire::{Frame, Message};

    use super::*;

    #[derive(Default)]
    struct Paper(Mutex<Vec<String>>);

    impl Sink for Paper {
        fn put(&self, message: Bytes) -> bool {
            let text = String::from_utf8(message.to_vec()).unwrap();
            self.0.lock().push(text);
            true
        }
    }

    impl Paper {
        /// The number of the question in the message at this index.
        fn number(&self, at: usize) -> u64 {
            let message = self.0.lock()[at].clone();
            match Frame::parse(message) {
                Ok(Frame::Single(Message::Request(request))) => request.id.as_u64().unwrap(),
                other => panic!("{other:?}"),
            }
        }
    }

    fn server() -> Arc<str> {
        "s".into()
    }

    fn response(id: u64, outcome: &str) -> Response {
        let json = format!(r#"{{"jsonrpc":"2.0","id":{id},{outcome}}}"#);
        match Frame::parse(json) {
            Ok(Frame::Single(Message::Response(response))) => response,
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn questions_get_their_own_answers() {
        let paper = Arc::new(Paper::default());
        let asks = Arc::new(Asks::default());
        let backchannel =
            Backchannel::new(paper.clone(), Some(Arc::clone(&asks)), Reason::default());
        let server = server();
        let (one, two) = (
            backchannel.ask(&server, "a", None),
            backchannel.ask(&server, "b", None),
        );
        let (one, two, ()) = tokio::join!(one, two, async {
            tokio::task::yield_now().await;
            let (one, two) = (paper.number(0), paper.number(1));
            asks.answered(response(two, r#""result":{"two":2}"#));
            asks.answered(response(two + 1, r#""result":{}"#));
            asks.answered(response(one, r#""error":{"code":-1,"message":"no"}"#));
        });
        assert_eq!(one.unwrap_err().code, -1);
        assert_eq!(two.unwrap().as_str(), r#"{"two":2}"#);
        assert_eq!(paper.0.lock().len(), 2);
    }

    #[tokio::test]
    async fn dropped_question_is_withdrawn() {
        let paper = Arc::new(Paper::default());
        let backchannel = Backchannel::new(paper.clone(), Some(Arc::default()), Reason::default());
        let server = server();
        let mut question = Box::pin(backchannel.ask(&server, "a", None));
        assert!(
            std::future::poll_fn(|cx| std::task::Poll::Ready(
                question.as_mut().poll(cx).is_pending()
            ))
            .await
        );
        drop(question);
        let number = paper.number(0);
        let said = paper.0.lock();
        assert!(said[1].contains("notifications/cancelled"), "{said:?}");
        assert!(
            said[1].contains(&format!(r#""requestId":{number}}}"#)),
            "{said:?}"
        );
    }

    #[tokio::test]
    async fn end_of_an_elicitation_is_reported_once() {
        let asks = Arc::new(Asks::default());
        let backchannel = Backchannel::new(
            Arc::new(Paper::default()),
            Some(Arc::clone(&asks)),
            Reason::default(),
        );
        let params = Raw::parse(r#"{"mode":"url","elicitationId":"e1"}"#).unwrap();
        let server = server();
        let ended = |id| asks.ended(&server, id);
        let asking = backchannel.ask(&server, method::ELICITATION, Some(&params));
        let (_, ()) = tokio::join!(asking, async {
            tokio::task::yield_now().await;
            assert!(!ended(None) && !ended(Some("e2")));
            assert!(!asks.ended("other", Some("e1")));
            assert!(ended(Some("e1")) && !ended(Some("e1")));
            asks.close();
        });
        for n in 0..=ELICITATIONS_MAX {
            asks.begun(&server, &n.to_string());
        }
        assert!(!ended(Some("0")) && ended(Some("1")));
        let long = "x".repeat(ELICITATION_ID_BYTES + 1);
        asks.begun(&server, &long);
        assert!(!ended(Some(&long)));
    }

    #[tokio::test]
    async fn questions_fail_when_the_client_disconnects() {
        let asks = Arc::new(Asks::default());
        let backchannel = Backchannel::new(
            Arc::new(Paper::default()),
            Some(Arc::clone(&asks)),
            Reason::default(),
        );
        let server = server();
        let (answer, open) =
            tokio::join!(backchannel.ask(&server, "a", None), async { asks.close() });
        assert!(answer.unwrap_err().message.contains("disconnected"));
        assert_eq!(open.len(), 1);
    }

    #[test]
    fn question_numbers_start_at_random() {
        let first: std::collections::HashSet<u64> =
            (0..64).map(|_| Asks::default().open().unwrap().0).collect();
        assert!(first.len() > 60, "{first:?}");
        assert!(first.iter().all(|number| *number <= 1 << 31), "{first:?}");
    }
}
