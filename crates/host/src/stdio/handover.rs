//! The state of a client's conversation that the next gateway needs.
//!
//! When a gateway leaves, its questions to the client are cancelled, and late answers are dropped,
//! so that they answer no question of the next gateway.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    mem,
    ops::RangeInclusive,
};

use bytes::{Bytes, BytesMut};
use switchboard_terminal::error::{Context as _, Error};
use switchboard_wire::{
    ErrorObject, Frame, Id, Message, Outcome, Raw, Response, encode, method, put_line,
};

/// The most resources of a client that are watched again; a gateway has the same limit.
const WATCHED_MAX: usize = 1_000;
/// The most bytes of their URIs.
const WATCHED_BYTES: usize = 1024 * 1024;

/// The most attempts to watch one resource.
const TRIES_MAX: u32 = 60;
/// Error codes of a gateway whose server is starting, busy or lost for a moment.
const NOT_NOW: RangeInclusive<i64> = -32006..=-32002;

/// The state of a conversation.
pub(super) struct Handover {
    /// The parameters of the `initialize` that the gateway has accepted.
    opened: Option<Raw>,
    /// An `initialize` without a response yet. It is repeated as the client sent it.
    opening: Option<(Id, Raw)>,
    /// The client's requests without a response yet, with the changes that they make on success.
    in_flight: HashMap<Id, Option<Change>>,
    /// The requests of the gateway that the client has not answered. The gateway limits their
    /// number.
    questions: HashSet<Id>,
    /// The lowest level of log messages that the client wants.
    level: Option<String>,
    /// The resources that the client watches.
    watched: BTreeSet<String>,
    watched_bytes: usize,
    /// The requests that this process itself has sent, with the resources that they watch. The
    /// client does not see the responses.
    own: HashMap<Id, Option<Watch>>,
    /// The resources that the gateway was not ready to watch.
    refused: Vec<Watch>,
    /// Prefix of the ids of such requests, which the client cannot guess.
    token: String,
    last: u64,
}

/// A change that a request of the client makes.
enum Change {
    Level(String),
    Watch(String),
    Unwatch(String),
}

/// A resource that the next gateway is to watch, and the number of attempts.
struct Watch {
    uri: String,
    tries: u32,
}

/// The unfinished business of a gateway that left.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Lost {
    /// Requests of the client.
    pub(super) requests: Vec<Id>,
    /// Questions to the client.
    pub(super) questions: Vec<Id>,
}

impl Handover {
    pub(super) fn new() -> Result<Self, Error> {
        let mut token = [0; 16];
        getrandom::fill(&mut token).context("the system provides no random numbers")?;
        Ok(Self {
            opened: None,
            opening: None,
            in_flight: HashMap::new(),
            questions: HashSet::new(),
            level: None,
            watched: BTreeSet::new(),
            watched_bytes: 0,
            own: HashMap::new(),
            refused: Vec::new(),
            token: format!("{:032x}", u128::from_ne_bytes(token)),
            last: 0,
        })
    }

    /// Records a frame of the client. Returns the frame to forward to the gateway, without answers
    /// to questions that the gateway did not ask or has cancelled.
    pub(super) fn client_says(&mut self, frame: Bytes) -> Option<Bytes> {
        match Frame::parse(frame.clone()) {
            Ok(Frame::Single(message)) => self.sent(message).then_some(frame),
            Ok(Frame::Batch(messages)) => {
                let goes_on: Vec<bool> = messages
                    .into_iter()
                    .map(|message| message.map_or(true, |message| self.sent(message)))
                    .collect();
                if goes_on.iter().all(|goes_on| *goes_on) {
                    return Some(frame);
                }
                let elements = Raw::parse(frame).ok()?.elements()?;
                let kept = elements.into_iter().zip(goes_on);
                let kept: Vec<Raw> = kept.filter_map(|(one, on)| on.then_some(one)).collect();
                (!kept.is_empty()).then(|| Raw::array(kept).bytes())
            }
            // The gateway reports the error.
            Err(_) => Some(frame),
        }
    }

    /// Records a message of the client. Returns `true` if it is forwarded to the gateway.
    fn sent(&mut self, message: Message) -> bool {
        match message {
            Message::Request(request) => {
                let params = request.params.as_ref();
                let text = |name: &str| params.and_then(|params| params.member(name)?.to_text());
                let change = match &*request.method {
                    method::INITIALIZE => {
                        let params = params.map_or_else(Raw::empty_object, Raw::detached);
                        self.opening = Some((request.id.clone(), params));
                        None
                    }
                    method::SET_LEVEL => text("level").map(Change::Level),
                    method::RESOURCES_SUBSCRIBE => text("uri").map(Change::Watch),
                    method::RESOURCES_UNSUBSCRIBE => text("uri").map(Change::Unwatch),
                    _ => None,
                };
                self.in_flight.insert(request.id, change);
                true
            }
            Message::Notification(notification) => {
                if let Some(id) = cancelled(&notification.method, notification.params.as_ref()) {
                    // It gets no response.
                    self.in_flight.remove(&id);
                }
                true
            }
            Message::Response(response) => response.id.is_none_or(|id| self.questions.remove(&id)),
        }
    }

    /// Records a frame of the gateway. Returns `true` if it is forwarded to the client.
    pub(super) fn gateway_says(&mut self, frame: &Bytes) -> bool {
        match Frame::parse(frame.clone()) {
            Ok(Frame::Single(message)) => self.received(message),
            Ok(Frame::Batch(messages)) => {
                for message in messages.into_iter().flatten() {
                    self.received(message);
                }
                true
            }
            Err(_) => true,
        }
    }

    fn received(&mut self, message: Message) -> bool {
        match message {
            Message::Request(request) => {
                self.questions.insert(request.id);
                true
            }
            Message::Notification(notification) => {
                if let Some(id) = cancelled(&notification.method, notification.params.as_ref()) {
                    self.questions.remove(&id);
                }
                true
            }
            Message::Response(response) => self.answered(&response),
        }
    }

    fn answered(&mut self, response: &Response) -> bool {
        let Some(id) = &response.id else { return true };
        let failed = match &response.outcome {
            Outcome::Result(_) => None,
            Outcome::Error(error) => Some(error),
        };
        if let Some(watch) = self.own.remove(id) {
            match (failed, watch) {
                (Some(error), Some(watch)) if watch.tries < TRIES_MAX && is_passing(error) => {
                    self.refused.push(watch);
                }
                (Some(error), _) => {
                    tracing::warn!(%error.message, "The next gateway rejected a request that restores the client's session.");
                }
                (None, _) => {}
            }
            return false;
        }
        let change = self.in_flight.remove(id).flatten();
        if let Some((_, params)) = self.opening.take_if(|(opening, _)| opening == id)
            && failed.is_none()
        {
            // A new session: nothing of the previous one applies to it.
            self.opened = Some(params);
            self.level = None;
            self.watched.clear();
            self.watched_bytes = 0;
        }
        if let Some(change) = change.filter(|_| failed.is_none()) {
            self.apply(change);
        }
        true
    }

    fn apply(&mut self, change: Change) {
        match change {
            Change::Level(level) => self.level = Some(level),
            Change::Watch(uri) => {
                let bytes = self.watched_bytes + uri.len();
                if self.watched.len() >= WATCHED_MAX || bytes > WATCHED_BYTES {
                    tracing::warn!(
                        "The client watches too many resources; the next gateway will not watch this one."
                    );
                } else if self.watched.insert(uri) {
                    self.watched_bytes = bytes;
                }
            }
            Change::Unwatch(uri) => {
                if self.watched.remove(&uri) {
                    self.watched_bytes -= uri.len();
                }
            }
        }
    }

    /// Gives up the unfinished requests and questions of the gateway that left.
    pub(super) fn lost(&mut self) -> Lost {
        self.own.clear();
        self.refused.clear();
        // An `initialize` without a response is repeated instead.
        let opening = self.opening.as_ref().map(|(id, _)| id);
        let requests = self.in_flight.drain().map(|(id, _)| id);
        Lost {
            requests: requests.filter(|id| opening != Some(id)).collect(),
            questions: self.questions.drain().collect(),
        }
    }

    /// The messages that resume the conversation with the next gateway, if there is one to resume.
    pub(super) fn opening(&mut self) -> Option<Bytes> {
        let mut lines = BytesMut::new();
        if let Some((id, params)) = &self.opening {
            put_line(
                &mut lines,
                &encode::request(id, method::INITIALIZE, Some(params)),
            );
            return Some(lines.freeze());
        }
        let params = self.opened.clone()?;
        put_line(&mut lines, &self.own(method::INITIALIZE, &params, None));
        put_line(&mut lines, &encode::notification(method::INITIALIZED, None));
        if let Some(level) = &self.level {
            let params = Raw::object([("level", Raw::string(level))]);
            put_line(&mut lines, &self.own(method::SET_LEVEL, &params, None));
        }
        for uri in self.watched.clone() {
            put_line(&mut lines, &self.watch(Watch { uri, tries: 0 }));
        }
        Some(lines.freeze())
    }

    /// Returns `true` if there are resources to ask the gateway for again.
    pub(super) fn has_refused(&self) -> bool {
        !self.refused.is_empty()
    }

    /// The requests to watch the resources that the gateway was not ready for and the client still
    /// wants.
    pub(super) fn again(&mut self) -> Option<Bytes> {
        let mut lines = BytesMut::new();
        for watch in mem::take(&mut self.refused) {
            let is_leaving = |change: &Option<Change>| matches!(change, Some(Change::Unwatch(uri)) if *uri == watch.uri);
            if self.watched.contains(&watch.uri) && !self.in_flight.values().any(is_leaving) {
                put_line(&mut lines, &self.watch(watch));
            }
        }
        (!lines.is_empty()).then(|| lines.freeze())
    }

    fn watch(&mut self, watch: Watch) -> Bytes {
        let params = Raw::object([("uri", Raw::string(&watch.uri))]);
        let watch = Watch {
            tries: watch.tries + 1,
            ..watch
        };
        self.own(method::RESOURCES_SUBSCRIBE, &params, Some(watch))
    }

    /// A request of this process itself.
    fn own(&mut self, method: &str, params: &Raw, watch: Option<Watch>) -> Bytes {
        self.last += 1;
        let id = Id::from(&*format!("{}-{}", self.token, self.last));
        let request = encode::request(&id, method, Some(params));
        self.own.insert(id, watch);
        request
    }
}

/// Returns `true` if the same request may succeed later.
fn is_passing(error: &ErrorObject) -> bool {
    let data = error.data.as_ref();
    let is_permanent = data.and_then(|data| data.member("permanent"));
    NOT_NOW.contains(&error.code) && is_permanent.is_none()
}

/// The request that a notification cancels.
fn cancelled(method: &str, params: Option<&Raw>) -> Option<Id> {
    let params = params.filter(|_| method == method::CANCELLED)?;
    params.member("requestId").and_then(Id::from_raw)
}

#[cfg(test)]
mod tests {
    use super::*;

    const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}"#;
    const QUESTION: &str = r#"{"jsonrpc":"2.0","id":7,"method":"elicitation/create","params":{}}"#;
    const ANSWER: &str = r#"{"jsonrpc":"2.0","id":7,"result":{"action":"accept"}}"#;

    fn sends(memory: &mut Handover, text: &str) -> Option<String> {
        let on = memory.client_says(Bytes::copy_from_slice(text.as_bytes()))?;
        Some(String::from_utf8(on.to_vec()).unwrap())
    }

    fn sees(memory: &mut Handover, text: &str) -> bool {
        memory.gateway_says(&Bytes::copy_from_slice(text.as_bytes()))
    }

    /// A request and its response.
    fn does(memory: &mut Handover, id: u64, method: &str, params: &str) {
        let request =
            format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#);
        assert!(sends(memory, &request).is_some());
        let answer = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#);
        assert!(sees(memory, &answer));
    }

    fn opened() -> Handover {
        let mut memory = Handover::new().unwrap();
        assert!(memory.opening().is_none());
        does(
            &mut memory,
            0,
            "initialize",
            r#"{"protocolVersion":"2025-06-18"}"#,
        );
        memory
    }

    /// The method, the id and the parameters of each line.
    fn repeated(memory: &mut Handover) -> Vec<(String, Option<Id>, String)> {
        let lines = memory.opening().unwrap();
        let lines = std::str::from_utf8(&lines).unwrap().lines();
        let read = |line: &str| match Frame::parse(line.to_owned()) {
            Ok(Frame::Single(Message::Request(request))) => {
                let params = request.params.unwrap().as_str().to_owned();
                (request.method, Some(request.id), params)
            }
            Ok(Frame::Single(Message::Notification(told))) => (told.method, None, String::new()),
            other => panic!("{other:?}"),
        };
        lines.map(read).collect()
    }

    #[test]
    fn conversation_resumes_unseen_by_the_client() {
        let mut memory = opened();
        let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#;
        assert!(sends(&mut memory, call).is_some());
        let lost = Lost {
            requests: vec![Id::from(1)],
            questions: Vec::new(),
        };
        assert_eq!(memory.lost(), lost);
        let repeated = repeated(&mut memory);
        assert_eq!(repeated[0].0, "initialize");
        assert!(repeated[0].2.contains("2025-06-18"));
        assert_eq!(repeated[1].0, "notifications/initialized");
        assert_eq!(repeated.len(), 2);
        let id = repeated[0].1.clone().unwrap();
        let answer = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#);
        assert!(!sees(&mut memory, &answer));
        // If the client happens to use the same id, it still gets its response.
        assert!(sees(&mut memory, &answer));
    }

    #[test]
    fn unanswered_initialize_is_repeated_verbatim() {
        let mut memory = Handover::new().unwrap();
        sends(&mut memory, INITIALIZE);
        assert!(memory.lost().requests.is_empty());
        let opening = memory.opening().unwrap();
        assert_eq!(
            std::str::from_utf8(&opening).unwrap().trim_end(),
            INITIALIZE
        );
    }

    #[test]
    fn answer_goes_only_to_the_asking_gateway() {
        let mut memory = opened();
        assert_eq!(sends(&mut memory, ANSWER), None);
        assert!(sees(&mut memory, QUESTION));
        assert_eq!(sends(&mut memory, ANSWER).as_deref(), Some(ANSWER));
        assert_eq!(sends(&mut memory, ANSWER), None);
        // A question ends when its gateway leaves or cancels it.
        assert!(sees(&mut memory, QUESTION));
        assert_eq!(memory.lost().questions, [Id::from(7)]);
        assert_eq!(sends(&mut memory, ANSWER), None);
        assert!(sees(&mut memory, QUESTION));
        let withdrawn =
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}"#;
        assert!(sees(&mut memory, withdrawn));
        assert_eq!(sends(&mut memory, ANSWER), None);
        assert!(memory.lost().questions.is_empty());
    }

    #[test]
    fn late_answer_is_removed_from_batch() {
        let mut memory = opened();
        let ping = r#"{"jsonrpc":"2.0","id":3,"method":"ping"}"#;
        let batch = format!("[{ANSWER},{ping}]");
        assert_eq!(sends(&mut memory, &batch), Some(format!("[{ping}]")));
        assert_eq!(sends(&mut memory, &format!("[{ANSWER}]")), None);
        assert!(sees(&mut memory, QUESTION));
        assert_eq!(sends(&mut memory, &batch), Some(batch));
        assert!(sees(
            &mut memory,
            r#"[{"jsonrpc":"2.0","id":3,"result":{}}]"#
        ));
        assert!(memory.lost().requests.is_empty());
    }

    #[test]
    fn level_and_watches_are_restored() {
        let mut memory = opened();
        does(&mut memory, 1, "logging/setLevel", r#"{"level":"error"}"#);
        does(&mut memory, 2, "resources/subscribe", r#"{"uri":"a:1"}"#);
        does(&mut memory, 3, "resources/subscribe", r#"{"uri":"a:2"}"#);
        does(&mut memory, 4, "resources/unsubscribe", r#"{"uri":"a:1"}"#);
        let refused =
            r#"{"jsonrpc":"2.0","id":5,"method":"resources/subscribe","params":{"uri":"a:3"}}"#;
        sends(&mut memory, refused);
        let error = r#"{"jsonrpc":"2.0","id":5,"error":{"code":-1,"message":"no"}}"#;
        assert!(sees(&mut memory, error));
        let again = repeated(&mut memory);
        let again: Vec<_> = again.iter().map(|one| (&*one.0, &*one.2)).collect();
        assert_eq!(
            again[2..],
            [
                ("logging/setLevel", r#"{"level":"error"}"#),
                ("resources/subscribe", r#"{"uri":"a:2"}"#)
            ]
        );
        // Another session begins without them.
        does(&mut memory, 6, "initialize", "{}");
        assert_eq!(repeated(&mut memory).len(), 2);
    }

    /// The ids and URIs of requests to watch resources.
    fn watches(lines: &Bytes) -> Vec<(Id, String)> {
        let read = |line: &str| match Frame::parse(line.to_owned()) {
            Ok(Frame::Single(Message::Request(request))) => {
                let uri = request.params?.member("uri")?.to_text()?;
                Some((request.id, uri))
            }
            _ => None,
        };
        let lines = std::str::from_utf8(lines).unwrap().lines();
        lines.filter_map(read).collect()
    }

    fn refuses(memory: &mut Handover, id: &Id, error: &str) {
        let answer = format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#);
        assert!(!sees(memory, &answer));
    }

    const NOT_READY: &str = r#"{"code":-32002,"message":"initializing"}"#;

    #[test]
    fn watch_is_retried_until_server_is_ready() {
        let mut memory = opened();
        for (id, uri) in [(1, "a:1"), (2, "a:2"), (3, "a:3"), (4, "a:4")] {
            let params = format!(r#"{{"uri":"{uri}"}}"#);
            does(&mut memory, id, "resources/subscribe", &params);
        }
        let opening = memory.opening().unwrap();
        let asked = watches(&opening);
        assert_eq!(asked.len(), 4);
        refuses(&mut memory, &asked[0].0, NOT_READY);
        refuses(
            &mut memory,
            &asked[1].0,
            r#"{"code":-32602,"message":"no"}"#,
        );
        let never = r#"{"code":-32003,"message":"off","data":{"permanent":true}}"#;
        refuses(&mut memory, &asked[2].0, never);
        refuses(&mut memory, &asked[3].0, NOT_READY);
        assert!(memory.has_refused());
        // The client is about to unsubscribe from one of them.
        let leaves =
            r#"{"jsonrpc":"2.0","id":9,"method":"resources/unsubscribe","params":{"uri":"a:4"}}"#;
        sends(&mut memory, leaves);
        let again = watches(&memory.again().unwrap());
        assert_eq!(again.len(), 1);
        assert_eq!(again[0].1, "a:1");
        let answer = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{}}}}"#, again[0].0);
        assert!(!sees(&mut memory, &answer));
        assert!(memory.again().is_none());
    }

    #[test]
    fn watch_is_given_up_after_limit() {
        let mut memory = opened();
        does(&mut memory, 1, "resources/subscribe", r#"{"uri":"a:1"}"#);
        let mut lines = memory.opening();
        let mut tries = 0;
        while let Some(asked) = lines {
            tries += 1;
            assert!(tries <= TRIES_MAX);
            refuses(&mut memory, &watches(&asked)[0].0, NOT_READY);
            lines = memory.again();
        }
        assert_eq!(tries, TRIES_MAX);
        // The next gateway is asked again.
        memory.lost();
        assert_eq!(watches(&memory.opening().unwrap()).len(), 1);
    }

    #[test]
    fn watched_resources_are_bounded() {
        let mut memory = opened();
        for id in 1..=WATCHED_MAX as u64 + 5 {
            does(
                &mut memory,
                id,
                "resources/subscribe",
                &format!(r#"{{"uri":"a:{id}"}}"#),
            );
        }
        assert_eq!(memory.watched.len(), WATCHED_MAX);
        let mut memory = opened();
        for id in 1..=5 {
            let long = "x".repeat(WATCHED_BYTES / 4);
            does(
                &mut memory,
                id,
                "resources/subscribe",
                &format!(r#"{{"uri":"a:{id}{long}"}}"#),
            );
        }
        assert_eq!(memory.watched.len(), 3);
    }
}
