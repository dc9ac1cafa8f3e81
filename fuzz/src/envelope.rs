//! JSON-RPC messages: parsing, new ids, encoding.

use bytes::Bytes;
use serde_json::Value;
use switchboard_wire::{
    EnvelopeError, ErrorObject, Frame, Id, Message, Outcome, Raw, encode, is_alike, limits,
};

use crate::{
    json::{self, Fault, Kind, Node},
    raw,
};

/// A frame is parsed as the model parses it, or rejected for the same reason. A new id changes the id and no
/// other byte. An encoded message parses back.
pub fn envelope(data: &[u8]) {
    let frame = Bytes::copy_from_slice(data);
    let read = Frame::parse(frame.clone());
    let kept = Raw::parse(frame.clone());
    let value: Result<Value, _> = serde_json::from_slice(data);
    let text = match std::str::from_utf8(data) {
        Ok(text) => text,
        Err(error) => {
            let valid_up_to = error.valid_up_to();
            assert_eq!(read.err(), Some(EnvelopeError::NotUtf8 { valid_up_to }));
            assert!(kept.is_err() && value.is_err());
            return;
        }
    };
    match json::parse(text) {
        Ok(node) => {
            assert_eq!(value.ok(), node.to_value());
            let kept = kept.unwrap_or_else(|_| Raw::empty_object());
            raw::check(&kept, &node);
            check_frame(&frame, read, &node);
        }
        Err(Fault::Deep) => {
            assert!(matches!(read, Err(EnvelopeError::TooDeep { .. })));
            assert!(value.is_err(), "the limit is above what serde_json follows");
        }
        Err(Fault::Invalid) => {
            let error = read.err();
            assert!(
                matches!(
                    error,
                    Some(EnvelopeError::NotJson { .. } | EnvelopeError::TooDeep { .. })
                ),
                "no JSON is {error:?}"
            );
            assert!(kept.is_err() && value.is_err());
        }
    }
}

fn check_frame(frame: &Bytes, read: Result<Frame, EnvelopeError>, node: &Node<'_>) {
    let Kind::Array(nodes) = &node.kind else {
        match read {
            Ok(Frame::Single(message)) => check_message(frame, 0, Ok(message), node),
            Ok(Frame::Batch(_)) => unreachable!("a batch that is no array"),
            Err(error) => check_message(frame, 0, Err(error), node),
        }
        return;
    };
    let count = nodes.len();
    match read {
        Ok(Frame::Batch(messages)) => {
            assert!((1..=limits::BATCH_MESSAGES).contains(&count));
            assert_eq!(messages.len(), count);
            for (message, node) in messages.into_iter().zip(nodes) {
                let member = frame.slice(node.start..node.end());
                check_message(&member, node.start, message, node);
            }
        }
        Ok(Frame::Single(_)) => unreachable!("an array that is no batch"),
        Err(error) => {
            assert_eq!(error, EnvelopeError::BatchSize { count });
            assert!(!(1..=limits::BATCH_MESSAGES).contains(&count));
        }
    }
}

/// A message, according to the plainest reading of JSON-RPC.
enum Expected<'n, 'a> {
    Request(&'n Node<'a>, &'n str, Option<&'n Node<'a>>),
    Notification(&'n str, Option<&'n Node<'a>>),
    Result(&'n Node<'a>, &'n Node<'a>),
    Error(Option<&'n Node<'a>>, &'n Node<'a>),
    /// Not JSON-RPC, with the id to respond to.
    Refused(Option<&'n Node<'a>>),
    /// A member name is not valid Unicode, so it is unknown if this is a message.
    Unreadable,
}

fn classify<'n, 'a>(node: &'n Node<'a>) -> Expected<'n, 'a> {
    if node.has_unreadable_name() {
        return Expected::Unreadable;
    }
    let names = ["jsonrpc", "id", "method", "params", "result", "error"];
    let members = names.map(|name| node.all(name));
    let is_object = matches!(node.kind, Kind::Object(_));
    if !is_object || members.iter().any(|values| values.len() > 1) {
        return Expected::Refused(None);
    }
    let [version, id, method, params, result, error] =
        members.map(|values| values.first().copied());
    let good_id = id.filter(|id| is_id(id));
    let refused = Expected::Refused(good_id);
    // Compared as spelled: no peer writes the version with escapes.
    if version.map(|version| version.text) != Some("\"2.0\"") {
        return refused;
    }
    // A null may stand for an absent member.
    let error = error.filter(|error| !error.is_null());
    let result = result.filter(|result| error.is_none() || !result.is_null());
    match (method, result, error) {
        (Some(method), None, None) => {
            let Some(method) = method.as_text() else {
                return refused;
            };
            let params = params.filter(|params| !params.is_null());
            let fits = |params: &Node<'_>| matches!(params.kind, Kind::Object(_) | Kind::Array(_));
            match (id, good_id) {
                _ if !params.is_none_or(fits) => refused,
                (None, _) => Expected::Notification(method, params),
                (Some(_), None) => refused,
                (Some(_), Some(id)) => Expected::Request(id, method, params),
            }
        }
        (None, Some(result), None) => match good_id {
            Some(id) => Expected::Result(id, result),
            None => refused,
        },
        (None, None, Some(error)) => {
            if id.is_none_or(|id| is_id(id) || id.is_null()) {
                Expected::Error(good_id, error)
            } else {
                refused
            }
        }
        _ => refused,
    }
}

fn is_id(node: &Node<'_>) -> bool {
    match node.kind {
        Kind::String { .. } => true,
        Kind::Number => !node.text.contains(['.', 'e', 'E']),
        _ => false,
    }
}

/// Checks one message. `frame` is its text, which starts at `base` of the text that `node` was read from.
fn check_message(
    frame: &Bytes,
    base: usize,
    message: Result<Message, EnvelopeError>,
    node: &Node<'_>,
) {
    let message = match (classify(node), message) {
        (Expected::Refused(id), Err(EnvelopeError::NotJsonRpc { id: own, .. })) => {
            assert_eq!(
                own.as_ref().map(|id| id.raw().as_str()),
                id.map(|id| id.text)
            );
            return;
        }
        (
            Expected::Unreadable,
            Err(EnvelopeError::NotJson { .. } | EnvelopeError::NotJsonRpc { .. }),
        ) => return,
        (_, Err(error)) => unreachable!("{error} is said of {}", node.text),
        (expected, Ok(message)) => {
            compare(frame, base, &expected, &message);
            message
        }
    };
    check_spelling(&message);
}

fn compare(frame: &Bytes, base: usize, expected: &Expected<'_, '_>, message: &Message) {
    match (expected, message) {
        (Expected::Request(id, method, params), Message::Request(request)) => {
            assert_eq!(request.frame(), frame);
            check_part(request.frame(), base, Some(id), Some(request.id.raw()));
            check_part(request.frame(), base, *params, request.params.as_ref());
            assert_eq!(request.method, *method);
            check_rename(frame, base, Some(id), |id| request.with_id(id));
        }
        (Expected::Notification(method, params), Message::Notification(notification)) => {
            check_part(frame, base, *params, notification.params.as_ref());
            assert_eq!(notification.method, *method);
        }
        (Expected::Result(id, result), Message::Response(response)) => {
            let Outcome::Result(own) = &response.outcome else {
                unreachable!("a result read as an error");
            };
            assert_eq!(response.frame(), frame);
            let own_id = response.id.as_ref().map(Id::raw);
            check_part(response.frame(), base, Some(id), own_id);
            check_part(response.frame(), base, Some(result), Some(own));
            check_rename(frame, base, Some(id), |id| response.with_id(id));
        }
        (Expected::Error(id, error), Message::Response(response)) => {
            let Outcome::Error(own) = &response.outcome else {
                unreachable!("an error read as a result");
            };
            assert_eq!(response.frame(), frame);
            let own_id = response.id.as_ref().map(Id::raw);
            check_part(response.frame(), base, *id, own_id);
            if !is_ambiguous(error) && has_plain_code(error) {
                check_part(response.frame(), base, Some(error), Some(own.raw()));
            }
            check_error(own, error);
            check_rename(frame, base, *id, |id| response.with_id(id));
        }
        _ => unreachable!("read as {message:?}"),
    }
}

/// Checks that a part is a slice of the frame, not a copy.
fn check_part(frame: &Bytes, base: usize, node: Option<&Node<'_>>, part: Option<&Raw>) {
    assert_eq!(node.map(|node| node.text), part.map(Raw::as_str));
    if let (Some(node), Some(part)) = (node, part) {
        let place = &frame[node.start - base..node.end() - base];
        assert_eq!(place.as_ptr_range(), part.as_bytes().as_ptr_range());
    }
}

fn check_rename(frame: &Bytes, base: usize, old: Option<&Node<'_>>, rename: impl Fn(&Id) -> Bytes) {
    let Some(old) = old else {
        assert_eq!(rename(&Id::from(7)), frame);
        return;
    };
    let (before, after) = (&frame[..old.start - base], &frame[old.end() - base..]);
    for id in [Id::from(0), Id::from(u64::MAX), Id::from("a \"b\" \u{e9}")] {
        let renamed = rename(&id);
        assert_eq!(renamed, [before, id.raw().as_bytes(), after].concat());
        let own = match Frame::parse(renamed) {
            Ok(Frame::Single(Message::Request(request))) => Some(request.id),
            Ok(Frame::Single(Message::Response(response))) => response.id,
            other => unreachable!("renamed, it reads as {other:?}"),
        };
        assert_eq!(own, Some(id));
    }
}

const ERROR: [&str; 3] = ["code", "message", "data"];

/// Tests if parsers may disagree on a member of an error.
fn is_ambiguous(error: &Node<'_>) -> bool {
    let Kind::Object(members) = &error.kind else {
        return false;
    };
    ERROR.into_iter().any(|name| {
        let mut alike = members.iter().filter(|(own, _)| is_alike(&own.lossy, name));
        alike.next().is_some_and(|(own, _)| own.lossy != name) || alike.next().is_some()
    })
}

/// Tests if an error is an object with a code that every parser reads as the same number.
fn has_plain_code(error: &Node<'_>) -> bool {
    let code = error.all("code").pop();
    code.is_some_and(|code| {
        let number = code.text.parse::<i32>();
        number.is_ok_and(|number| number.to_string() == code.text)
    })
}

/// Checks that the readable members of an error are kept and the rest is dropped.
fn check_error(own: &ErrorObject, node: &Node<'_>) {
    if !matches!(node.kind, Kind::Object(_)) {
        assert_eq!((own.code, own.message.as_str()), (0, ""));
        assert_eq!(own.data.as_ref().map(Raw::as_str), Some(node.text));
        return;
    }
    let [code, message, data] = ERROR.map(|name| node.all(name).pop());

    let code = code.and_then(|code| {
        let text = code.as_lossy_text().unwrap_or(code.text).trim();
        let number = || text.parse::<f64>().ok();
        let whole = |number: &f64| number.fract() == 0.0 && number.abs() <= f64::from(i32::MAX);
        #[expect(
            clippy::cast_possible_truncation,
            reason = "it is whole and within i32"
        )]
        let code = || Some(number().filter(whole)? as i64);
        text.parse::<i32>().ok().map(i64::from).or_else(code)
    });
    assert_eq!(own.code, code.unwrap_or(0));
    assert_eq!(
        own.raw().member("code"),
        Raw::parse(own.code.to_string()).ok()
    );
    assert_eq!(
        own.message,
        message.and_then(Node::as_lossy_text).unwrap_or("")
    );
    let data = data.filter(|data| !data.is_null()).map(|data| data.text);
    assert_eq!(own.data.as_ref().map(Raw::as_str), data);

    let made = ErrorObject::new(own.code, own.message.clone());
    let made = match &own.data {
        Some(data) => made.with_data(data.clone()),
        None => made,
    };
    assert_eq!(ErrorObject::from_raw(made.raw().clone()), made);
}

/// Checks that a message, taken apart and encoded again, is the same message.
fn check_spelling(message: &Message) {
    let spelled = match message {
        Message::Request(request) => {
            encode::request(&request.id, &request.method, request.params.as_ref())
        }
        Message::Notification(notification) => {
            encode::notification(&notification.method, notification.params.as_ref())
        }
        Message::Response(response) => match (&response.id, &response.outcome) {
            (Some(id), Outcome::Result(result)) => encode::result(id, result),
            (None, Outcome::Result(_)) => unreachable!("a result for nobody"),
            (id, Outcome::Error(error)) => encode::error(id.as_ref(), error),
        },
    };
    let again = Frame::parse(spelled);
    let Ok(Frame::Single(again)) = again else {
        unreachable!("{message:?} was spelled as {again:?}");
    };
    let same = match (message, &again) {
        (Message::Request(a), Message::Request(b)) => {
            a.id == b.id && a.method == b.method && a.params == b.params
        }
        (Message::Notification(a), Message::Notification(b)) => {
            a.method == b.method && a.params == b.params
        }
        (Message::Response(a), Message::Response(b)) => a.id == b.id && a.outcome == b.outcome,
        _ => false,
    };
    assert!(same, "{message:?} was spelled as {again:?}");
}
