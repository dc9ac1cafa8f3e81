//! The lossless envelope: the members that a router reads, around the bytes as they arrived.

use std::ops::Range;

use bytes::{Bytes, BytesMut};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::{
    ErrorObject, Id, Raw, code, limits,
    raw::offset_in,
    scan::{self, Members},
};

/// The content of one frame.
#[derive(Debug, Clone)]
pub enum Frame {
    /// One message.
    Single(Message),
    /// A batch, which only 2025-03-26 allows. A member that cannot be parsed does not affect the others.
    Batch(Vec<Result<Message, EnvelopeError>>),
}

/// One JSON-RPC message.
#[derive(Debug, Clone)]
pub enum Message {
    /// A message that expects a response.
    Request(Request),
    /// A message that expects no response.
    Notification(Notification),
    /// The response to a request.
    Response(Response),
}

/// A message that expects a response.
#[derive(Debug, Clone)]
pub struct Request {
    /// The id that the response must carry.
    pub id: Id,
    /// The method that is called.
    pub method: String,
    /// The parameters: an object or an array.
    pub params: Option<Raw>,
    frame: Bytes,
    id_at: Range<usize>,
}

/// A message that expects no response.
#[derive(Debug, Clone)]
pub struct Notification {
    /// The kind of notification.
    pub method: String,
    /// The parameters: an object or an array.
    pub params: Option<Raw>,
}

/// The response to a request.
#[derive(Debug, Clone)]
pub struct Response {
    /// The id of the request; `None` if the peer could not read it.
    pub id: Option<Id>,
    /// The result or the error.
    pub outcome: Outcome,
    frame: Bytes,
    id_at: Option<Range<usize>>,
}

/// The outcome of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The request succeeded.
    Result(Raw),
    /// The request failed.
    Error(ErrorObject),
}

/// The reason why a frame is not JSON-RPC.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EnvelopeError {
    /// The bytes are not UTF-8.
    #[error("frame is not valid UTF-8 after byte {valid_up_to}")]
    NotUtf8 {
        /// Number of bytes that were valid.
        valid_up_to: usize,
    },
    /// The text is not JSON.
    #[error("frame is not valid JSON: {reason}")]
    NotJson {
        /// The message of the parser.
        reason: String,
    },
    /// Arrays and objects are nested deeper than [`limits::DEPTH`].
    #[error("frame is nested deeper than {} levels", limits::DEPTH)]
    TooDeep {
        /// The id of the request that it answers, if that can be found without parsing the nested values.
        answers: Option<u64>,
    },
    /// The JSON is not a JSON-RPC message.
    #[error("frame is not JSON-RPC 2.0: {reason}")]
    NotJsonRpc {
        /// The rule that it breaks.
        reason: &'static str,
        /// The id of the message, if it can be read, for the error response.
        id: Option<Id>,
    },
    /// The batch is empty, or has more than [`limits::BATCH_MESSAGES`] messages.
    #[error(
        "batch of {count} messages, but 1 to {} are allowed",
        limits::BATCH_MESSAGES
    )]
    BatchSize {
        /// Number of messages in it.
        count: usize,
    },
}

impl Frame {
    /// Parses a frame. The parts of the message share its memory.
    pub fn parse(frame: impl Into<Bytes>) -> Result<Self, EnvelopeError> {
        let frame = frame.into();
        let text = std::str::from_utf8(&frame).map_err(|error| EnvelopeError::NotUtf8 {
            valid_up_to: error.valid_up_to(),
        })?;
        if let Some(members) = scan::object(text) {
            return members.classify(&frame).map(Self::Single);
        }
        if nested_too_deep(text.as_bytes()) {
            let answers = answered_by(text.as_bytes());
            return Err(EnvelopeError::TooDeep { answers });
        }
        if !text.trim_ascii_start().starts_with('[') {
            return Message::parse_text(&frame, text).map(Self::Single);
        }
        let members: Vec<&RawValue> =
            serde_json::from_str(text).map_err(|error| not_json(&error))?;
        if members.is_empty() || members.len() > limits::BATCH_MESSAGES {
            return Err(EnvelopeError::BatchSize {
                count: members.len(),
            });
        }
        let messages = members
            .into_iter()
            .map(|member| Message::parse_text(&Raw::part_of(&frame, member).bytes(), member.get()))
            .collect();
        Ok(Self::Batch(messages))
    }
}

impl Message {
    fn parse_text(frame: &Bytes, text: &str) -> Result<Self, EnvelopeError> {
        // Only objects are tried: serde also reads a struct from an array, with its members in order.
        if text.trim_ascii_start().starts_with('{') {
            match serde_json::from_str::<Careful<'_>>(text) {
                Ok(careful) => return careful.members().classify(frame),
                Err(error) if !error.is_data() => return Err(not_json(&error)),
                // This error is reported at the first unexpected member, so the rest may still not be JSON.
                Err(_) => {}
            }
        }
        Err(match serde_json::from_str::<&RawValue>(text) {
            Ok(_) => EnvelopeError::NotJsonRpc {
                reason: "not an object with unique members",
                id: None,
            },
            Err(error) => not_json(&error),
        })
    }
}

impl Request {
    /// Returns the request with another id. All other bytes stay the same.
    pub fn with_id(&self, id: &Id) -> Bytes {
        replace(&self.frame, &self.id_at, id)
    }

    /// Returns the frame as it arrived.
    pub fn frame(&self) -> &Bytes {
        &self.frame
    }
}

impl Response {
    /// Returns the response with another id. All other bytes stay the same. A response without a readable id
    /// is returned unchanged.
    pub fn with_id(&self, id: &Id) -> Bytes {
        match &self.id_at {
            Some(id_at) => replace(&self.frame, id_at, id),
            None => self.frame.clone(),
        }
    }

    /// Returns the frame as it arrived.
    pub fn frame(&self) -> &Bytes {
        &self.frame
    }
}

impl EnvelopeError {
    /// Returns the JSON-RPC error code to respond with.
    pub const fn code(&self) -> i64 {
        match self {
            Self::NotUtf8 { .. } | Self::NotJson { .. } | Self::TooDeep { .. } => code::PARSE,
            Self::NotJsonRpc { .. } | Self::BatchSize { .. } => code::INVALID_REQUEST,
        }
    }
}

/// The members that JSON-RPC defines, parsed with a full parser: for messages that the scan does not accept,
/// and to find the error. Other members are ignored. A duplicate member is an error, because parsers disagree
/// on which of the two counts.
#[derive(Deserialize)]
struct Careful<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    jsonrpc: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    method: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    params: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    error: Option<&'a RawValue>,
}

impl<'a> Careful<'a> {
    fn members(self) -> Members<'a> {
        Members {
            jsonrpc: self.jsonrpc.map(RawValue::get),
            id: self.id.map(RawValue::get),
            method: self.method.map(RawValue::get),
            params: self.params.map(RawValue::get),
            result: self.result.map(RawValue::get),
            error: self.error.map(RawValue::get),
        }
    }
}

/// Distinguishes `"id": null` from no id at all, which a plain `Option` does not.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

impl Members<'_> {
    fn classify(self, frame: &Bytes) -> Result<Message, EnvelopeError> {
        let is_null = self.id.is_some_and(|id| id == "null");
        let id = self
            .id
            .and_then(|id| Id::from_raw(Raw::slice_of(frame, id)));
        let bad_id = self.id.is_some() && id.is_none();
        let id_at = id.as_ref().and(self.id).map(|id| {
            let start = offset_in(frame, id);
            start..start + id.len()
        });
        // Some servers send both members, with a null for the absent one.
        let error = self.error.filter(|error| *error != "null");
        let result = self
            .result
            .filter(|result| error.is_none() || *result != "null");
        let reject = |reason| {
            let id = id.clone();
            Err(EnvelopeError::NotJsonRpc { reason, id })
        };
        if self.jsonrpc.is_none_or(|version| version != "\"2.0\"") {
            return reject("`jsonrpc` is not \"2.0\"");
        }
        match (self.method, result, error) {
            (Some(method), None, None) => {
                let Ok(method) = plain_string(method) else {
                    return reject("`method` is not a string");
                };
                let params = self.params.filter(|params| *params != "null");
                if params.is_some_and(|params| !params.starts_with(['{', '['])) {
                    return reject("`params` is neither an object nor an array");
                }
                let params = params.map(|params| Raw::slice_of(frame, params));
                match id.clone().zip(id_at) {
                    _ if bad_id => reject("`id` is neither a string nor an integer"),
                    Some((id, id_at)) => Ok(Message::Request(Request {
                        id,
                        method,
                        params,
                        frame: frame.clone(),
                        id_at,
                    })),
                    None => Ok(Message::Notification(Notification { method, params })),
                }
            }
            (None, Some(result), None) => {
                let Some(id) = id else {
                    return reject("a result without the ID of its request");
                };
                Ok(Message::Response(Response {
                    id: Some(id),
                    outcome: Outcome::Result(Raw::slice_of(frame, result)),
                    frame: frame.clone(),
                    id_at,
                }))
            }
            (None, None, Some(_)) if bad_id && !is_null => {
                reject("`id` is neither a string nor an integer")
            }
            (None, None, Some(error)) => Ok(Message::Response(Response {
                id,
                outcome: Outcome::Error(ErrorObject::from_raw(Raw::slice_of(frame, error))),
                frame: frame.clone(),
                id_at,
            })),
            (None, None, None) => reject("none of `method`, `result` and `error`"),
            _ => reject("more than one of `method`, `result` and `error`"),
        }
    }
}

fn plain_string(text: &str) -> Result<String, serde_json::Error> {
    let plain = text
        .strip_prefix('"')
        .and_then(|text| text.strip_suffix('"'));
    match plain {
        Some(plain) if !plain.contains('\\') => Ok(plain.to_owned()),
        _ => serde_json::from_str(text),
    }
}

fn replace(frame: &Bytes, at: &Range<usize>, id: &Id) -> Bytes {
    let id = id.raw().as_bytes();
    let mut out = BytesMut::with_capacity(frame.len() + id.len());
    out.extend_from_slice(&frame[..at.start]);
    out.extend_from_slice(id);
    out.extend_from_slice(&frame[at.end..]);
    out.freeze()
}

fn not_json(error: &serde_json::Error) -> EnvelopeError {
    EnvelopeError::NotJson {
        reason: error.to_string(),
    }
}

/// Returns `true` if arrays and objects are nested deeper than the limit. Text that is not JSON may be
/// misjudged; the parser rejects it either way.
fn nested_too_deep(text: &[u8]) -> bool {
    // Counting is far faster than tracking the depth, and most frames have few brackets.
    let opened = memchr::memchr2_iter(b'{', b'[', text)
        .take(limits::DEPTH + 1)
        .count();
    if opened <= limits::DEPTH {
        return false;
    }
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        at += 1;
        match byte {
            b'{' | b'[' => {
                depth += 1;
                if depth > limits::DEPTH {
                    return true;
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => at = after_string(text, at),
            _ => {}
        }
    }
    false
}

/// Returns the id of the request that a response answers, if it is a number, by scanning only the members of
/// the response itself.
fn answered_by(text: &[u8]) -> Option<u64> {
    if !text.trim_ascii_start().starts_with(b"{") {
        return None;
    }
    let (mut id, mut depth, mut at) = (None, 0_usize, 0);
    while let Some(byte) = text.get(at) {
        at += 1;
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => {
                let end = after_string(text, at);
                let value = text.get(end..).unwrap_or_default().trim_ascii_start();
                if depth == 1
                    && let Some(value) = value.strip_prefix(b":")
                {
                    match text.get(at..end.saturating_sub(1)) {
                        Some(b"id") => id = leading_number(value.trim_ascii_start()),
                        Some(b"method") => return None,
                        _ => {}
                    }
                }
                at = end;
            }
            _ => {}
        }
    }
    id
}

/// Parses the whole number that a text starts with.
fn leading_number(text: &[u8]) -> Option<u64> {
    let end = text.iter().position(|byte| b",} \t\r\n".contains(byte))?;
    std::str::from_utf8(&text[..end]).ok()?.parse().ok()
}

/// Returns the position after the string whose content starts at `at`.
fn after_string(text: &[u8], mut at: usize) -> usize {
    while let Some(found) = text
        .get(at..)
        .and_then(|rest| memchr::memchr2(b'"', b'\\', rest))
    {
        at += found + 1;
        if text[at - 1] == b'"' {
            return at;
        }
        at += 1;
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn single(text: &str) -> Result<Message, EnvelopeError> {
        match Frame::parse(text.to_owned())? {
            Frame::Single(message) => Ok(message),
            Frame::Batch(_) => panic!("a batch"),
        }
    }

    fn reason(text: &str) -> &'static str {
        match single(text) {
            Err(EnvelopeError::NotJsonRpc { reason, .. }) => reason,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn requests_notifications_and_responses_are_distinguished() {
        assert!(matches!(
            single(r#"{"jsonrpc":"2.0","id":"a","method":"ping"}"#),
            Ok(Message::Request(Request { id, params: None, .. })) if id == Id::from("a")
        ));
        assert!(matches!(
            single(r#" {"method":"tools\/x","params":[],"jsonrpc":"2.0"} "#),
            Ok(Message::Notification(Notification { method, .. })) if method == "tools/x"
        ));
        assert!(matches!(
            single(r#"{"jsonrpc":"2.0","id":1,"result":null}"#),
            Ok(Message::Response(Response { outcome: Outcome::Result(raw), .. })) if raw.as_str() == "null"
        ));
        assert!(matches!(
            single(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"x"}}"#),
            Ok(Message::Response(Response { id: None, outcome: Outcome::Error(error), .. })) if error.code == -32700
        ));
    }

    #[test]
    fn invalid_json_rpc_is_rejected_with_a_reason() {
        assert_eq!(
            reason(r#"{"id":1,"method":"x"}"#),
            "`jsonrpc` is not \"2.0\""
        );
        assert_eq!(
            reason(r#"{"jsonrpc":"2.0","id":1.5,"method":"x"}"#),
            "`id` is neither a string nor an integer"
        );
        assert_eq!(
            reason(r#"{"jsonrpc":"2.0","id":null,"method":"x"}"#),
            "`id` is neither a string nor an integer"
        );
        assert_eq!(
            reason(r#"{"jsonrpc":"2.0","id":1}"#),
            "none of `method`, `result` and `error`"
        );
        assert_eq!(
            reason(r#"{"jsonrpc":"2.0","id":1,"result":1,"error":{}}"#),
            "more than one of `method`, `result` and `error`"
        );
        assert_eq!(
            reason(r#"{"jsonrpc":"2.0","result":1}"#),
            "a result without the ID of its request"
        );
        assert_eq!(
            reason(r#"{"jsonrpc":"2.0","method":1}"#),
            "`method` is not a string"
        );
        assert_eq!(
            reason(r#"{"jsonrpc":"2.0","method":"x","params":1}"#),
            "`params` is neither an object nor an array"
        );
        assert_eq!(
            reason(r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"x"}"#),
            "not an object with unique members"
        );
        assert_eq!(reason("17"), "not an object with unique members");
    }

    #[test]
    fn null_member_counts_as_absent() {
        assert!(matches!(
            single(r#"{"jsonrpc":"2.0","id":1,"result":{},"error":null}"#),
            Ok(Message::Response(Response {
                outcome: Outcome::Result(_),
                ..
            }))
        ));
        assert!(matches!(
            single(r#"{"jsonrpc":"2.0","id":1,"result":null,"error":{"code":1,"message":"x"}}"#),
            Ok(Message::Response(Response { outcome: Outcome::Error(error), .. })) if error.code == 1
        ));
        assert_eq!(
            reason(r#"{"jsonrpc":"2.0","id":1,"error":null}"#),
            "none of `method`, `result` and `error`"
        );
    }

    #[test]
    fn response_nested_too_deep_names_its_request() {
        let deep = format!("{}{}", "[".repeat(5_000), "]".repeat(5_000));
        for (text, expected) in [
            (r#"{"jsonrpc":"2.0","id":7,"result":DEEP}"#, Some(7)),
            (r#" {"result":{"id":8,"x":DEEP}, "id" : 9 }"#, Some(9)),
            (r#"{"id":7,"method":"x","params":DEEP}"#, None),
            (r#"{"x":"\"id\":8","id":"7","result":DEEP}"#, None),
            (r#"{"id":7.5,"result":DEEP}"#, None),
            (r#"[{"id":7,"result":DEEP}]"#, None),
            (r#"{"result":DEEP,"id":7"#, None),
            ("DEEP", None),
        ] {
            let Err(EnvelopeError::TooDeep { answers }) = single(&text.replace("DEEP", &deep))
            else {
                panic!("{text}");
            };
            assert_eq!(answers, expected, "{text}");
        }
    }

    #[test]
    fn id_of_an_invalid_request_is_reported() {
        let Err(EnvelopeError::NotJsonRpc { id, .. }) = single(r#"{"id":9,"method":"x"}"#) else {
            panic!("accepted");
        };
        assert_eq!(id, Some(Id::from(9)));
    }

    #[test]
    fn with_id_changes_only_the_id() {
        let text = r#"{ "x":1e400, "id" : "one" ,"jsonrpc":"2.0","result":{"id":"one","n":1.0}, "y":"\u00e9"}"#;
        let Ok(Message::Response(response)) = single(text) else {
            panic!("no response");
        };
        let renamed = response.with_id(&Id::from(77));
        assert_eq!(renamed, text.replacen("\"one\"", "77", 1));
        assert_eq!(response.with_id(&Id::from("one")), text);
    }

    #[test]
    fn nesting_is_accepted_up_to_the_limit() {
        let nested = |depth: usize, open: &str, close: &str| {
            format!(
                r#"{{"jsonrpc":"2.0","method":"x","params":{}{}}}"#,
                open.repeat(depth),
                close.repeat(depth)
            )
        };
        assert!(single(&nested(limits::DEPTH - 1, "[", "]")).is_ok());
        assert_eq!(
            single(&nested(limits::DEPTH, "[", "]")).unwrap_err(),
            EnvelopeError::TooDeep { answers: None }
        );
        assert_eq!(
            single(&nested(10_000, "[", "]")).unwrap_err(),
            EnvelopeError::TooDeep { answers: None }
        );
        let flat = format!(
            r#"{{"jsonrpc":"2.0","method":"x","params":[{}0]}}"#,
            "[],{},\"[\",".repeat(500)
        );
        assert!(single(&flat).is_ok());
        let quoted = format!(
            r#"{{"jsonrpc":"2.0","method":"x","params":["{}"]}}"#,
            "[\\\"".repeat(500)
        );
        assert!(single(&quoted).is_ok());
    }

    #[test]
    fn accepted_frames_fit_typed_views() {
        let text = format!(
            r#"{{"jsonrpc":"2.0","method":"x","params":{}{}}}"#,
            "[".repeat(limits::DEPTH - 1),
            "]".repeat(limits::DEPTH - 1)
        );
        assert!(single(&text).is_ok());
        assert!(serde_json::from_str::<serde_json::Value>(&text).is_ok());
    }

    #[test]
    fn invalid_batch_member_does_not_affect_others() {
        let Ok(Frame::Batch(members)) = Frame::parse(
            r#" [{"jsonrpc":"2.0","id":1,"result":{}}, 7, {"jsonrpc":"2.0","method":"a"}]"#,
        ) else {
            panic!("no batch");
        };
        assert_eq!(
            members.iter().map(Result::is_ok).collect::<Vec<_>>(),
            [true, false, true]
        );
        assert_eq!(
            Frame::parse("[]").unwrap_err(),
            EnvelopeError::BatchSize { count: 0 }
        );
        let long = format!("[{}0]", "0,".repeat(limits::BATCH_MESSAGES));
        assert!(matches!(
            Frame::parse(long),
            Err(EnvelopeError::BatchSize { .. })
        ));
    }

    #[test]
    fn array_of_members_is_not_a_message() {
        let Ok(Frame::Batch(members)) = Frame::parse(r#"[["2.0",1,"ping"]]"#) else {
            panic!("no batch");
        };
        assert!(matches!(
            members[..],
            [Err(EnvelopeError::NotJsonRpc { id: None, .. })]
        ));
    }

    #[test]
    fn garbage_is_rejected_with_its_error() {
        assert_eq!(
            Frame::parse(b"{\"a\":\"\xc3".as_slice()).unwrap_err(),
            EnvelopeError::NotUtf8 { valid_up_to: 6 }
        );
        assert!(matches!(
            Frame::parse("{"),
            Err(EnvelopeError::NotJson { .. })
        ));
        assert!(matches!(
            Frame::parse(""),
            Err(EnvelopeError::NotJson { .. })
        ));
        assert!(matches!(
            Frame::parse("npm warn deprecated"),
            Err(EnvelopeError::NotJson { .. })
        ));
        assert!(matches!(
            Frame::parse("2026-07-28 INFO up"),
            Err(EnvelopeError::NotJson { .. })
        ));
        assert!(matches!(
            Frame::parse("{\"id\":1,\"id\":"),
            Err(EnvelopeError::NotJson { .. })
        ));
    }
}
