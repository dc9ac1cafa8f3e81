//! How a request can end without the server's answer, and how each peer is told.
//!
//! This is the one place where such an end becomes a JSON-RPC error.

use std::{sync::Arc, time::Duration};

use switchboard_client::{self as client, CallError, ErrorObject, Raw};
use switchboard_config::shell_word;
use switchboard_store::Outcome;
use switchboard_trust::ItemKind;
use switchboard_wire::{Era, code, with_hint};

use crate::{
    health::{Reason, in_logs},
    scrub,
};

/// The place that shows people how a call ended.
const IN_ACTIVITY: &str = "in the activity of the console";

/// The codes of the gateway's own errors for peers of the older revisions.
pub mod codes {
    /// A part of the gateway is not ready yet.
    pub(crate) const INITIALIZING: i64 = -32002;
    /// A part of the gateway could not be started.
    pub(crate) const INITIALIZATION_FAILED: i64 = -32003;
    /// The server is gone, or was lost while it worked.
    pub(crate) const UNAVAILABLE: i64 = -32004;
    /// The server took too long.
    pub const TIMEOUT: i64 = -32005;
    /// The server has more to do than it may be given.
    pub const BUSY: i64 = -32006;
    /// A person, or a rule, has refused the call.
    pub(crate) const REFUSED: i64 = -32007;
    /// No person answered in time.
    pub(crate) const UNANSWERED: i64 = -32008;
    /// What 2026-07-28 leaves to programs lies outside of the reserved range: the same numbers, a
    /// thousand higher.
    pub(crate) const MODERN_OFFSET: i64 = 1_000;
}

/// Why there is no answer.
#[derive(Debug, Clone)]
pub enum Error {
    /// The server answered with an error, which is handed on as it is.
    Answered(ErrorObject),
    /// The request cannot be understood or carried out as it stands.
    Refused(ErrorObject),
    /// The built-in memory is not ready, or does not work.
    Memory(ErrorObject),
    /// The server is on its way.
    Initializing {
        /// The server.
        server: Arc<str>,
        /// Why.
        reason: Option<Reason>,
        /// When to try again.
        retry_after: Duration,
    },
    /// The server cannot be started.
    InitializationFailed {
        /// The server.
        server: Arc<str>,
        /// Why.
        reason: Reason,
        /// Advice for the user.
        action: Option<Arc<str>>,
        /// When to try again.
        retry_after: Option<Duration>,
    },
    /// The server is switched off.
    Disabled {
        /// The server.
        server: Arc<str>,
    },
    /// The gateway, or the server, is stopping.
    NotConnected {
        /// The server.
        server: Arc<str>,
    },
    /// The server was lost with the call under way.
    Lost {
        /// The server.
        server: Arc<str>,
        /// Why.
        reason: Reason,
    },
    /// The server did not answer in time.
    TimedOut {
        /// The server.
        server: Arc<str>,
        /// The time limit.
        after: Duration,
    },
    /// Too many calls wait for the server.
    Busy {
        /// The server.
        server: Arc<str>,
        /// The number of calls that wait already.
        waiting: usize,
    },
    /// The answer of the server cannot be read, or there is none for this request.
    Broken {
        /// The server.
        server: Arc<str>,
        /// Why.
        reason: Reason,
    },
    /// The caller withdrew the call.
    Cancelled,
    /// The server asks for input that cannot be had.
    Input {
        /// The server.
        server: Arc<str>,
        /// Why.
        reason: Arc<str>,
    },
    /// Too many calls wait for their clients to come back.
    Crowded,
    /// The search index is on its way.
    Indexing {
        /// When to try again.
        retry_after: Duration,
    },
    /// The gateway is stopping, and has closed the search index.
    SearchClosed,
    /// A rule denies the call.
    Denied {
        /// The server.
        server: Arc<str>,
        /// The tool.
        tool: Arc<str>,
        /// `called`, `read`, …
        done: &'static str,
        /// Why.
        why: Arc<str>,
    },
    /// A person has refused the call.
    Rejected {
        /// The server.
        server: Arc<str>,
        /// The tool.
        tool: Arc<str>,
        /// A word for the request: what did not happen.
        done: &'static str,
        /// Why.
        reason: Option<Arc<str>>,
    },
    /// No person answered in time.
    Unanswered {
        /// The server.
        server: Arc<str>,
        /// The tool.
        tool: Arc<str>,
        /// A word for the request: what did not happen.
        done: &'static str,
        /// The time limit.
        after: Duration,
    },
    /// A person could not be asked.
    Unasked {
        /// The server.
        server: Arc<str>,
        /// Why.
        why: Arc<str>,
    },
    /// The item is not approved, or nothing of its server is.
    Unapproved {
        /// The server.
        server: Arc<str>,
        /// Its key in the pins.
        item: Option<Arc<str>>,
    },
}

impl Error {
    /// The request is not one that can be carried out.
    pub fn invalid_params(message: impl Into<String>) -> Self {
        Self::Refused(ErrorObject::new(code::INVALID_PARAMS, message))
    }

    /// Parameters that cannot be used, and advice for the caller.
    pub fn advised(message: impl Into<String>, hint: &str) -> Self {
        Self::Refused(ErrorObject::new(code::INVALID_PARAMS, message).with_hint(hint))
    }

    /// There is no such method.
    pub fn method_not_found(method: &str) -> Self {
        let message = format!("there is no method `{}` here", cut(method));
        Self::Refused(ErrorObject::new(code::METHOD_NOT_FOUND, message))
    }

    /// What became of a call to this server.
    pub fn of(server: &Arc<str>, error: client::Error) -> Self {
        let server = Arc::clone(server);
        match error {
            client::Error::Server(error) => Self::Answered(error),
            client::Error::Call(CallError::Timeout { after, .. }) => {
                Self::TimedOut { server, after }
            }
            client::Error::Call(CallError::ConnectionLost { reason, .. }) => Self::Lost {
                server,
                reason: Reason::plain(&reason),
            },
            error @ client::Error::Call(CallError::RequestFailed(_)) => Self::Lost {
                server,
                reason: Reason::of(&error),
            },
            client::Error::Call(
                CallError::Shutdown { .. } | CallError::NotReady { .. } | CallError::Failed { .. },
            ) => Self::NotConnected { server },
            client::Error::Call(CallError::Backpressure { .. }) => {
                Self::Busy { server, waiting: 0 }
            }
            client::Error::Call(CallError::Cancelled) => Self::Cancelled,
            client::Error::Call(CallError::InvalidParams { reason }) => {
                Self::invalid_params(format!("the parameters cannot be sent: {reason}"))
            }
            other => Self::Broken {
                server,
                reason: Reason::of(&other),
            },
        }
    }

    /// What became of a call to the built-in memory, which says in the gateway's own words what is wrong with
    /// it.
    pub fn of_memory(error: ErrorObject) -> Self {
        match error.code {
            codes::INITIALIZING | codes::INITIALIZATION_FAILED => Self::Memory(error),
            _ => Self::Answered(error),
        }
    }

    /// What is written down of it.
    pub fn outcome(&self) -> Outcome {
        match self {
            Self::Cancelled => Outcome::Cancelled,
            Self::TimedOut { .. } => Outcome::Timeout,
            Self::Answered(error) | Self::Refused(error) => Outcome::Error { code: error.code },
            other => Outcome::Error {
                code: other.own(Reader::Person).0,
            },
        }
    }

    /// The error for a peer.
    pub fn into_error(self, era: Era) -> ErrorObject {
        if let Self::Answered(error) | Self::Refused(error) = self {
            return error;
        }
        self.own_error(era)
    }

    /// The same fact as the result of a tool, for peers of 2026-07-28, to whom these codes mean
    /// nothing. Errors of the server and of the request itself stay errors.
    pub fn into_tool_result(self) -> Result<Raw, ErrorObject> {
        if let Self::Answered(error) | Self::Refused(error) = self {
            return Err(error);
        }
        let ErrorObject { message, data, .. } = self.own_error(Era::Modern);
        let content = Raw::object([
            ("type", Raw::string("text")),
            ("text", Raw::string(&message)),
        ]);
        let mut members = vec![
            ("content", Raw::array([content])),
            ("isError", Raw::from(true)),
        ];
        members.extend(data.map(|data| ("structuredContent", data)));
        Ok(Raw::object(members))
    }

    /// The gateway's own error for an agent.
    fn own_error(&self, era: Era) -> ErrorObject {
        let (code, message, data) = self.own(Reader::Agent);
        let code = match era {
            Era::Modern if is_own(code) => code + codes::MODERN_OFFSET,
            Era::Modern | Era::Legacy => code,
        };
        let mut error = ErrorObject::new(code, message);
        if let Some(data) = data {
            error = error.with_data(data);
        }
        match self.hint() {
            Some(hint) => error.with_hint(&hint),
            None => error,
        }
    }

    /// Advice, apart from the message, without known secrets.
    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Refused(error) | Self::Memory(error) => error.parts().1?,
            Self::InitializationFailed { action, .. } => action.as_deref()?.into(),
            Self::Disabled { server } => {
                format!("`switchboard enable {}` switches it on", shell_word(server)).into()
            }
            Self::TimedOut { .. } => "`requestTimeoutMs` of the server sets the limit".into(),
            Self::Busy { .. } => "try again later, or raise its `maxInFlight`".into(),
            Self::Crowded => "answer or end some, then try again".into(),
            Self::Unanswered { .. } => "call it again to ask again".into(),
            Self::Unapproved { server, item } => format!(
                "`switchboard trust show {}` shows what it says",
                held(server, item.as_deref()).1
            )
            .into(),
            Self::Answered(_)
            | Self::Initializing { .. }
            | Self::NotConnected { .. }
            | Self::Lost { .. }
            | Self::Broken { .. }
            | Self::Cancelled
            | Self::Input { .. }
            | Self::Indexing { .. }
            | Self::SearchClosed
            | Self::Denied { .. }
            | Self::Rejected { .. }
            | Self::Unasked { .. } => return None,
        };
        Some(scrub::text(&hint).into_owned())
    }

    /// Code, message and data of the gateway's own errors, without known secrets.
    fn own(&self, reader: Reader) -> (i64, String, Option<Raw>) {
        let (code, message, data) = self.composed(reader);
        (code, scrub::text(&message).into_owned(), data)
    }

    fn composed(&self, reader: Reader) -> (i64, String, Option<Raw>) {
        match self {
            Self::Answered(error) => (error.code, error.message.clone(), error.data.clone()),
            Self::Refused(error) | Self::Memory(error) => {
                (error.code, error.parts().0.to_owned(), error.data.clone())
            }
            Self::Initializing {
                server,
                reason,
                retry_after,
            } => {
                let mut message = format!("initializing: server '{server}' is not ready yet");
                if let Some(reason) = reason {
                    let reason = reader.told(reason, &in_logs(server));
                    message = format!("{message} ({reason})");
                }
                let data = [("part", Raw::string(server)), retry(*retry_after)];
                (codes::INITIALIZING, message, Some(Raw::object(data)))
            }
            Self::InitializationFailed {
                server,
                reason,
                retry_after,
                ..
            } => {
                let reason = reader.told(reason, &in_logs(server));
                let message = format!("initialization failed: server '{server}': {reason}");
                let next = retry_after.map_or_else(|| ("permanent", Raw::from(true)), retry);
                let data = Raw::object([("part", Raw::string(server)), next]);
                (codes::INITIALIZATION_FAILED, message, Some(data))
            }
            Self::Disabled { server } => {
                let message = format!("server '{server}' is disabled");
                let data = [
                    ("part", Raw::string(server)),
                    ("permanent", Raw::from(true)),
                ];
                let data = Raw::object(data);
                (codes::INITIALIZATION_FAILED, message, Some(data))
            }
            Self::NotConnected { server } => {
                let message = format!(
                    "Server '{server}' is not connected (state: Disconnected): it is being stopped, and a call that was under way may have been carried out"
                );
                (codes::UNAVAILABLE, message, Some(named(server)))
            }
            Self::Lost { server, reason } => {
                let reason = reader.told(reason, IN_ACTIVITY);
                let message = format!(
                    "server '{server}' was lost during the call, which it may have carried out: {reason}"
                );
                (codes::UNAVAILABLE, message, Some(named(server)))
            }
            Self::TimedOut { server, after } => {
                let message = format!(
                    "server '{server}' did not answer within {after:.1?} and was told to stop"
                );
                (codes::TIMEOUT, message, Some(named(server)))
            }
            Self::Busy { server, waiting } => {
                let message = format!("server '{server}' is busy and {waiting} calls wait for it");
                (codes::BUSY, message, Some(named(server)))
            }
            Self::Indexing { retry_after } => {
                let message = "initializing: the search index is not ready yet".to_owned();
                let data = [("part", Raw::string("search")), retry(*retry_after)];
                (codes::INITIALIZING, message, Some(Raw::object(data)))
            }
            Self::SearchClosed => {
                let message = "the gateway is stopping, and tools cannot be searched any more";
                (codes::UNAVAILABLE, message.to_owned(), None)
            }
            Self::Unapproved { server, item } => {
                let (what, _) = held(server, item.as_deref());
                let message = format!("{what} is held back until a person approves it");
                (code::INVALID_PARAMS, message, Some(named(server)))
            }
            Self::Denied { .. }
            | Self::Rejected { .. }
            | Self::Unanswered { .. }
            | Self::Unasked { .. } => self.unapproved(reader),
            Self::Broken { server, reason } => {
                let reason = reader.told(reason, IN_ACTIVITY);
                let message = format!("server '{server}' gave no usable answer: {reason}");
                (code::INTERNAL, message, Some(named(server)))
            }
            Self::Cancelled => (code::INTERNAL, "the call was cancelled".to_owned(), None),
            Self::Input { server, reason } => {
                let message = format!("server '{server}' cannot go on: {reason}");
                (code::INTERNAL, message, Some(named(server)))
            }
            Self::Crowded => {
                let message = "too many calls wait for answers of their clients";
                (codes::BUSY, message.to_owned(), None)
            }
        }
    }

    /// The same of calls that no person, or no rule, lets pass.
    fn unapproved(&self, reader: Reader) -> (i64, String, Option<Raw>) {
        let (code, message, server, approval) = match self {
            Self::Denied {
                server,
                tool,
                done,
                why,
            } => {
                let message = format!("{server}:{} was not {done}: {why}", cut(tool));
                (codes::REFUSED, message, server, "denied")
            }
            Self::Rejected {
                server,
                tool,
                done,
                reason,
            } => {
                let mut message = format!(
                    "{server}:{} was not {done}: a person rejected the call",
                    cut(tool)
                );
                if let Some(reason) = reason {
                    message = format!("{message}: {reason}");
                }
                (codes::REFUSED, message, server, "rejected")
            }
            Self::Unanswered {
                server,
                tool,
                done,
                after,
            } => {
                let message = format!(
                    "{server}:{} was not {done}: it needs a person's approval, and nobody answered within {} s",
                    cut(tool),
                    after.as_secs_f64()
                );
                (codes::UNANSWERED, message, server, "timed_out")
            }
            Self::Unasked { server, why } => {
                let message =
                    format!("this needs a person's approval, and nobody could be asked: {why}");
                (codes::REFUSED, message, server, "unavailable")
            }
            other => return other.composed(reader),
        };
        let data = [
            ("server", Raw::string(server)),
            ("approval", Raw::string(approval)),
        ];
        (code, message, Some(Raw::object(data)))
    }

    /// The message for people, and the advice.
    pub fn parts(&self) -> (String, Option<String>) {
        (self.own(Reader::Person).1, self.hint())
    }

    /// The text for people in the activity log.
    pub fn message(&self) -> Arc<str> {
        let (message, hint) = self.parts();
        with_hint(message, hint).into()
    }
}

/// The reader of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reader {
    Agent,
    Person,
}

impl Reader {
    /// The reason for this reader, and for an agent the place that shows its owner the rest.
    fn told(self, reason: &Reason, place: &str) -> String {
        match self {
            Self::Agent => reason.for_agents(place),
            Self::Person => reason.to_string(),
        }
    }
}

const fn is_own(code: i64) -> bool {
    code <= codes::INITIALIZING && code >= codes::UNANSWERED
}

fn named(server: &str) -> Raw {
    Raw::object([("server", Raw::string(server))])
}

fn retry(after: Duration) -> (&'static str, Raw) {
    ("retryAfterMs", millis(after))
}

/// Names for what is held back: one in words, and one for a command, which a shell reads as one word.
fn held(server: &str, item: Option<&str>) -> (String, String) {
    match item.map(|item| (ItemKind::of_key(item), item)) {
        Some((ItemKind::Tool, tool)) => (
            format!("tool '{tool}' of server '{server}'"),
            shell_word(&format!("{server}:{tool}")),
        ),
        Some((_, key)) => (
            format!("{key} of server '{server}'"),
            shell_word(&format!("{server}:{key}")),
        ),
        None => (format!("server '{server}'"), shell_word(server)),
    }
}

fn millis(duration: Duration) -> Raw {
    Raw::number(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
}

/// What a peer sent, short enough to be said back.
pub fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(100)]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Servers and repositories choose these names, and people paste the command.
    #[test]
    fn names_in_advised_commands_are_one_word() {
        let server: Arc<str> = "s;x".into();
        let held = |item: Option<&str>| Error::Unapproved {
            server: Arc::clone(&server),
            item: item.map(Into::into),
        };
        for (failure, word) in [
            (held(None), "'s;x'"),
            (held(Some("t;touch a")), "'s;x:t;touch a'"),
            (
                held(Some("(resource) a';touch b;'")),
                r"'s;x:(resource) a'\'';touch b;'\'''",
            ),
        ] {
            let hint = failure.hint().unwrap();
            let command = format!("`switchboard trust show {word}`");
            assert!(hint.contains(&command), "{hint}");
        }
        let hint = Error::Disabled { server }.hint().unwrap();
        assert!(hint.contains("`switchboard enable 's;x'`"), "{hint}");
    }
}
