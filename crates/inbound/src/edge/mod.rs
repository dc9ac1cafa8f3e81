//! The transports of clients.
//!
//! A transport reads messages, identifies their sender, calls [`switchboard_core::dispatch`] and
//! writes the responses. It makes no decisions about servers.

pub mod auth;
pub(crate) mod body;
pub(crate) mod connection_slots;
pub(crate) mod conversation;
pub(crate) mod event_stream;
pub mod http;
pub(crate) mod pipe;
pub(crate) mod replay_budget;
pub mod request_body;
pub(crate) mod sessions;
pub(crate) mod sse;
pub(crate) mod stall;
mod work;

use std::sync::Arc;

use bytes::Bytes;
use switchboard_base::{caller::said, random};
use switchboard_client::{ErrorObject, Id, Raw, Revision};
use switchboard_core::{core::Core, dispatch, session::Session};
use switchboard_wire::{Era, Name, Notification, code, encode, meta, method};

/// The era of a request: the newer one if the request states its revision itself. Most do not,
/// which a search in the bytes shows.
fn era_of(params: Option<&Raw>) -> Era {
    static VERSION: Name = Name::new(meta::PROTOCOL_VERSION);
    let params = params.filter(|params| params.may_name(&VERSION));
    if said(params, meta::PROTOCOL_VERSION).is_some() {
        Era::Modern
    } else {
        Era::Legacy
    }
}

/// The error in the envelope of a request of 2026-07-28, if there is one.
fn modern_fault(params: Option<&Raw>) -> Option<ErrorObject> {
    let missing = |name: &str| {
        let message = format!("`_meta` must contain `{name}`");
        Some(ErrorObject::new(code::INVALID_PARAMS, message))
    };
    let version = said(params, meta::PROTOCOL_VERSION).and_then(|version| version.to_text());
    let Some(version) = version else {
        return missing(meta::PROTOCOL_VERSION);
    };
    if version != Revision::LATEST.as_str() {
        let supported = Revision::ALL.map(|revision| Raw::string(revision.as_str()));
        let data = Raw::object([
            ("supported", Raw::array(supported)),
            ("requested", Raw::string(&version)),
        ]);
        let error = ErrorObject::new(
            code::UNSUPPORTED_PROTOCOL_VERSION,
            "this protocol revision is not supported",
        );
        return Some(error.with_data(data));
    }
    if !said(params, meta::CLIENT_CAPABILITIES).is_some_and(|said| said.is_object()) {
        return missing(meta::CLIENT_CAPABILITIES);
    }
    None
}

/// The request that a client cancels, and the reason.
fn withdrawn(notification: &Notification) -> Option<(Id, Option<String>)> {
    if notification.method != method::CANCELLED {
        return None;
    }
    let params = notification.params.as_ref()?;
    let id = Id::from_raw(params.member("requestId")?)?;
    Some((id, params.member("reason").and_then(|why| why.to_text())))
}

/// Handles a notification of a client of an older revision.
fn heed(core: &Arc<Core>, session: &Arc<Session>, notification: &Notification) {
    if let Some((id, why)) = withdrawn(notification) {
        session.withdraw(&id, why.as_deref());
        return;
    }
    let roots = match &*notification.method {
        method::ROOTS_CHANGED => true,
        // Servers that were running before have asked another client, or none.
        method::INITIALIZED => matches!(session.view, switchboard_base::view::View::Server(_)),
        _ => {
            let (view, caller) = (&session.view, &session.caller);
            return dispatch::extension::hand_on(core, view, caller, session.guest(), notification);
        }
    };
    if roots && session.has_roots() {
        core.roots_changed(session);
    }
}

fn reply(id: &Id, answer: Result<Raw, ErrorObject>) -> Bytes {
    match answer {
        Ok(result) => encode::result(id, &result),
        Err(error) => encode::error(Some(id), &error),
    }
}

/// The most messages in one batch.
const BATCH_MAX: usize = 128;
/// The most bytes of the responses to one batch.
const BATCH_BYTES: usize = 16 * 1024 * 1024;

/// The responses to a batch, which 2025-03-26 has.
#[derive(Debug, Default)]
struct BatchAnswers {
    answers: Vec<Bytes>,
    bytes: usize,
}

impl BatchAnswers {
    /// Adds the response to this request. One that does not fit becomes an error.
    fn put(&mut self, id: &Id, answer: Bytes) {
        if self.bytes + answer.len() <= BATCH_BYTES {
            return self.push(answer);
        }
        let message = format!(
            "the response is too long: the responses to one batch are limited to {BATCH_BYTES} bytes; send the request alone"
        );
        let error = ErrorObject::new(code::INTERNAL, message);
        self.refuse(Some(id), &error);
    }

    /// Adds an error for the request with this id, if known.
    fn refuse(&mut self, id: Option<&Id>, error: &ErrorObject) {
        self.push(encode::error(id, error));
    }

    fn push(&mut self, answer: Bytes) {
        self.bytes += answer.len();
        self.answers.push(answer);
    }

    /// All responses in one message; `None` if there are none.
    fn into_message(self) -> Option<Bytes> {
        if self.answers.is_empty() {
            return None;
        }
        let mut body = Vec::with_capacity(self.bytes + self.answers.len() + 1);
        for answer in &self.answers {
            body.push(if body.is_empty() { b'[' } else { b',' });
            body.extend_from_slice(answer);
        }
        body.push(b']');
        Some(body.into())
    }
}

/// A number that distinguishes one client from another.
pub(crate) fn client_key() -> u64 {
    use std::sync::{
        LazyLock,
        atomic::{AtomicU64, Ordering::Relaxed},
    };
    // A random start: the keys of an earlier run must match no client now. The upper half leaves
    // room to count, and 0 stands for no client.
    static NEXT: LazyLock<AtomicU64> =
        LazyLock::new(|| AtomicU64::new((random::number() & 0x7fff_ffff_0000_0000) | 1));
    NEXT.fetch_add(1, Relaxed)
}

/// The name of a client that has not given one.
pub(crate) fn nameless() -> Arc<str> {
    "unknown".into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn response_beyond_batch_limit_becomes_error() {
        let mut answers = BatchAnswers::default();
        let long = Bytes::from(vec![b'1'; BATCH_BYTES - 10]);
        answers.put(&Id::from(1), long.clone());
        answers.put(&Id::from(2), long.clone());
        answers.put(&Id::from(3), Bytes::from_static(b"3"));
        let message = answers.into_message().unwrap();
        let rest = std::str::from_utf8(&message[1 + long.len()..]).unwrap();
        assert!(
            rest.starts_with(r#",{"jsonrpc":"2.0","id":2,"error""#),
            "{rest}"
        );
        assert!(rest.contains("is too long"), "{rest}");
        assert_eq!(BatchAnswers::default().into_message(), None);
    }

    #[test]
    fn escaped_protocol_version_is_read() {
        for params in [
            r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}"#,
            r#"{"_meta":{"io.modelcontextprotocol\/protocolVersion":"2026-07-28"}}"#,
            r#"{"_meta":{"io.modelcontextprotocol/protocol\u0056ersion":"2026-07-28"}}"#,
        ] {
            let params = Raw::parse(params).unwrap();
            let era = era_of(Some(&params));
            assert_eq!(era, Era::Modern, "{params}");
        }
    }
}
