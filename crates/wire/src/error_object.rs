//! The error object of a JSON-RPC response.

use std::{borrow::Cow, fmt};

use crate::{Raw, is_alike, with_hint};

/// The error codes that have a meaning in MCP.
pub mod code {
    /// The text was not JSON.
    pub const PARSE: i64 = -32700;
    /// The JSON was not a request.
    pub const INVALID_REQUEST: i64 = -32600;
    /// No such method.
    pub const METHOD_NOT_FOUND: i64 = -32601;
    /// The parameters are invalid; also used for an unknown tool or prompt.
    pub const INVALID_PARAMS: i64 = -32602;
    /// The server failed.
    pub const INTERNAL: i64 = -32603;
    /// No such resource (before 2026-07-28).
    pub const RESOURCE_NOT_FOUND: i64 = -32002;
    /// HTTP headers and body disagree (2026-07-28).
    pub const HEADER_MISMATCH: i64 = -32020;
    /// The request needs a client capability that was not declared (2026-07-28).
    pub const MISSING_CLIENT_CAPABILITY: i64 = -32021;
    /// The server does not speak the revision of the request (2026-07-28).
    pub const UNSUPPORTED_PROTOCOL_VERSION: i64 = -32022;
    /// A server of 2025-11-25 requires the user to open a URL before it processes the request.
    pub const URL_ELICITATION_REQUIRED: i64 = -32042;

    /// Returns `true` if only a server of 2026-07-28 or later uses this code.
    pub const fn is_modern(code: i64) -> bool {
        matches!(
            code,
            HEADER_MISMATCH | MISSING_CLIENT_CAPABILITY | UNSUPPORTED_PROTOCOL_VERSION
        )
    }
}

/// The member of `data` that holds the hint.
const HINT: &str = "hint";

/// The error of a response: the members that programs read, and the object as it was spelled.
#[derive(Clone, PartialEq, Eq)]
pub struct ErrorObject {
    /// The kind of error, see [`code`]; a number of 32 bits. 0 if the peer sent none that can be read.
    pub code: i64,
    /// The message for the user. Empty if the peer sent none.
    pub message: String,
    /// Additional data from the peer.
    pub data: Option<Raw>,
    raw: Raw,
}

impl ErrorObject {
    /// Creates an error with a code and a message.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self::build(code, message.into(), None)
    }

    /// Adds data to this error, replacing any that it has.
    #[must_use]
    pub fn with_data(self, data: Raw) -> Self {
        Self::build(self.code, self.message, Some(data))
    }

    /// Adds a hint to this error: to the end of the message, where a model reads it, and as `data.hint` for
    /// programs. [`parts`](Self::parts) separates them again. Data that is not an object is left unchanged.
    #[must_use]
    pub fn with_hint(self, hint: &str) -> Self {
        let message = with_hint(self.message, Some(hint));
        let data = self.data.unwrap_or_else(Raw::empty_object);
        let data = data.with_member(HINT, &Raw::string(hint)).unwrap_or(data);
        Self::build(self.code, message, Some(data))
    }

    /// Returns the message without the hint, and the hint that [`with_hint`](Self::with_hint) added.
    pub fn parts(&self) -> (&str, Option<Cow<'_, str>>) {
        let hint = self.data.as_ref().and_then(|data| data.member(HINT));
        let hint = hint.and_then(|hint| hint.to_text());
        let alone = hint.as_deref().and_then(|hint| {
            let message = self.message.strip_suffix(hint)?;
            message.strip_suffix("; ")
        });
        match alone {
            Some(message) => (message, hint.map(Cow::Owned)),
            None => (&self.message, None),
        }
    }

    /// Reads an error object. It is lenient, because a caller waits for the response: a message that cannot
    /// be read is left empty, and [`raw`](Self::raw) still has it.
    ///
    /// Parsers differ in which of two members with the same name they use, so an object that has its code,
    /// message or data twice is replaced by one that has each once, with the last value. They also differ in
    /// what they accept as an integer, and some truncate it to 32 bits: a code that is not plainly a 32-bit
    /// integer is replaced by the one that was read, or by 0. A value that is not an object becomes the data
    /// of an error without a message.
    pub fn from_raw(raw: Raw) -> Self {
        let mut found: [Option<Raw>; 3] = [None, None, None];
        let (mut seen, mut ambiguous) = ([false; 3], false);
        for (name, value) in raw.members().unwrap_or_default() {
            let Some(n) = MEMBERS.iter().position(|member| is_alike(&name, member)) else {
                continue;
            };
            ambiguous |= name != MEMBERS[n] || seen[n];
            seen[n] = true;
            if name == MEMBERS[n] {
                found[n] = Some(value).filter(|value| value.as_str() != "null");
            }
        }
        if !raw.is_object() {
            return Self::build(0, String::new(), Some(raw));
        }
        let [spelled, message, data] = found;
        let code = spelled.as_ref().and_then(read_code).unwrap_or_default();
        let message = message.and_then(|message| message.to_text());
        let message = message.unwrap_or_default();
        if ambiguous {
            return Self::build(code, message, data);
        }
        let is_plain = |spelled: Raw| spelled.as_bytes() == code.to_string().as_bytes();
        let raw = if spelled.is_some_and(is_plain) {
            raw
        } else {
            match raw.with_member("code", &number(code)) {
                Ok(raw) => raw,
                Err(_) => return Self::build(code, message, data),
            }
        };
        Self {
            code,
            message,
            data,
            raw,
        }
    }

    /// Returns the object as it was spelled.
    pub fn raw(&self) -> &Raw {
        &self.raw
    }

    fn build(code: i64, message: String, data: Option<Raw>) -> Self {
        let members = [("code", number(code)), ("message", Raw::string(&message))];
        let raw = Raw::object(
            members
                .into_iter()
                .chain(data.clone().map(|data| ("data", data))),
        );
        Self {
            code,
            message,
            data,
            raw,
        }
    }
}

fn number(code: i64) -> Raw {
    if code < 0 {
        // `Raw::number` makes no negative numbers.
        Raw::parse(code.to_string()).unwrap_or_else(|_| Raw::number(0))
    } else {
        Raw::number(code.unsigned_abs())
    }
}

/// The members of an error object that are read.
const MEMBERS: [&str; 3] = ["code", "message", "data"];

/// Reads a code in any spelling that some parser accepts as a 32-bit integer: `-32042`, `-32042.0`,
/// `"-32042"`.
fn read_code(code: &Raw) -> Option<i64> {
    let text = code.to_text();
    let spelled = text.as_deref().unwrap_or(code.as_str()).trim();
    if let Ok(code) = spelled.parse::<i32>() {
        return Some(code.into());
    }
    let number: f64 = spelled.parse().ok()?;
    // The codes of MCP are far below the limit up to which a float is exact.
    let is_code = number.fract() == 0.0 && number.abs() <= f64::from(i32::MAX);
    #[expect(
        clippy::cast_possible_truncation,
        reason = "it is whole and within i32"
    )]
    is_code.then_some(number as i64)
}

impl fmt::Debug for ErrorObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.raw, f)
    }
}

impl fmt::Display for ErrorObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.message.is_empty() {
            write!(f, "error {}", self.code)
        } else {
            write!(f, "{} ({})", self.message, self.code)
        }
    }
}

impl std::error::Error for ErrorObject {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unreadable_members_are_kept_in_the_raw_object() {
        let odd =
            ErrorObject::from_raw(Raw::parse(r#"{"code":"x","message":7,"hint":1.0}"#).unwrap());
        assert_eq!((odd.code, odd.message.as_str()), (0, ""));
        assert_eq!(odd.raw().as_str(), r#"{"code":0,"message":7,"hint":1.0}"#);
        let bare = ErrorObject::from_raw(Raw::parse(r#"{"message":"m"}"#).unwrap());
        assert_eq!(bare.raw().as_str(), r#"{"message":"m","code":0}"#);
    }

    /// Some parsers read a list as the members of an object, in order.
    #[test]
    fn error_that_is_no_object_becomes_data() {
        for said in ["\"boom\"", "[-32042,\"boom\",{}]", "7"] {
            let error = ErrorObject::from_raw(Raw::parse(said).unwrap());
            assert_eq!((error.code, error.message.as_str()), (0, ""));
            assert_eq!(
                error.raw().as_str(),
                format!(r#"{{"code":0,"message":"","data":{said}}}"#)
            );
        }
    }

    #[test]
    fn codes_are_read_in_every_spelling() {
        for spelled in [
            "-32042",
            "-32042.0",
            "-3.2042e4",
            "-320420e-1",
            "\"-32042\"",
            "\" -32042.0\"",
        ] {
            let raw = Raw::parse(format!(r#"{{"code":{spelled},"message":"m"}}"#)).unwrap();
            let error = ErrorObject::from_raw(raw);
            let sent = r#"{"code":-32042,"message":"m"}"#;
            assert_eq!(
                (error.code, error.raw().as_str()),
                (-32042, sent),
                "{spelled}"
            );
        }
        let hidden = Raw::parse(r#"{"\ud800":1,"code":-32042}"#).unwrap();
        assert_eq!(ErrorObject::from_raw(hidden).code, -32042);
        for odd in [
            "-32042.5",
            "\"x\"",
            "1e400",
            "\"NaN\"",
            "\"inf\"",
            "null",
            "[-32042]",
            "\"-0x7D2A\"",
            "{\"code\":-32042}",
            "true",
            "-0",
            // Some parsers truncate these to 32 bits.
            "4294935254",
            "4294935254.0",
            "-8589966634",
            "\"4294935254\"",
            "18446744073709519574",
        ] {
            let error = ErrorObject::from_raw(Raw::parse(format!(r#"{{"code":{odd}}}"#)).unwrap());
            assert_eq!(
                (error.code, error.raw().as_str()),
                (0, r#"{"code":0}"#),
                "{odd}"
            );
        }
    }

    #[test]
    fn duplicate_members_are_sent_once_as_read() {
        for (said, passed) in [
            (
                r#"{"code":0,"code":-32042,"message":"m","data":1}"#,
                r#"{"code":-32042,"message":"m","data":1}"#,
            ),
            (
                r#"{"code":-1,"data":{},"message":"m","data":[1.0],"x":2}"#,
                r#"{"code":-1,"message":"m","data":[1.0]}"#,
            ),
            (
                r#"{"code":-1,"Code":-32042,"message":"m"}"#,
                r#"{"code":-1,"message":"m"}"#,
            ),
            (
                r#"{"c\u006fde":-1,"code":-2,"message":"m"}"#,
                r#"{"code":-2,"message":"m"}"#,
            ),
        ] {
            let error = ErrorObject::from_raw(Raw::parse(said).unwrap());
            assert_eq!(error.raw().as_str(), passed, "{said}");
            assert_eq!(ErrorObject::from_raw(error.raw().clone()), error);
        }
    }

    #[test]
    fn created_error_can_be_parsed() {
        let made =
            ErrorObject::new(code::INVALID_PARAMS, "no \"x\"").with_data(Raw::empty_object());
        assert_eq!(
            made.raw().as_str(),
            r#"{"code":-32602,"message":"no \"x\"","data":{}}"#
        );
        assert_eq!(ErrorObject::from_raw(made.raw().clone()), made);
    }

    #[test]
    fn hint_is_separated_from_any_message() {
        let plain = ErrorObject::new(code::INTERNAL, "no; room");
        assert_eq!(plain.parts(), ("no; room", None));
        let part = Raw::object([("part", Raw::string("store"))]);
        let advised = plain.with_data(part).with_hint("free some; space");
        assert_eq!(
            advised.raw().as_str(),
            r#"{"code":-32603,"message":"no; room; free some; space","data":{"part":"store","hint":"free some; space"}}"#
        );
        let read = ErrorObject::from_raw(advised.raw().clone());
        assert_eq!(read.parts(), ("no; room", Some("free some; space".into())));
        // A hint that is not the end of the message was added by another program.
        let other = Raw::parse(r#"{"code":1,"message":"no; room","data":{"hint":"x"}}"#).unwrap();
        assert_eq!(ErrorObject::from_raw(other).parts(), ("no; room", None));
    }
}
