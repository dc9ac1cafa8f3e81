//! The ways in which a request can end without the server's response, and their form for each peer.
//!
//! This is the one place where such an end becomes a JSON-RPC error.

use std::{sync::Arc, time::Duration};

use switchboard_client::{self as client, CallError, ErrorObject, Raw};
use switchboard_config::{NO_PROJECT_HINT, shell_word};
use switchboard_store::Outcome;
use switchboard_wire::{Era, code, with_hint};

use crate::{
    health::{Reason, in_logs},
    scrub,
};

/// The place where people can read how a call ended.
const IN_ACTIVITY: &str = "in the activity log of the console";
/// Advice for people about a call that a rule denies.
const LIST_RULES: &str = "`switchboard approvals rules` lists the rules";

/// Codes of the gateway's own errors, for peers of the older revisions.
pub mod codes {
    /// A part of the gateway is not ready yet.
    pub(crate) const INITIALIZING: i64 = -32002;
    /// A part of the gateway could not be started.
    pub(crate) const INITIALIZATION_FAILED: i64 = -32003;
    /// The server is stopped, or was lost during the call.
    pub(crate) const UNAVAILABLE: i64 = -32004;
    /// The server took too long.
    pub const TIMEOUT: i64 = -32005;
    /// The server's queue of calls is full.
    pub const BUSY: i64 = -32006;
    /// A person or a rule has refused the call.
    pub(crate) const REFUSED: i64 = -32007;
    /// No approver answered in time.
    pub(crate) const UNANSWERED: i64 = -32008;
    /// The offset of the same codes in 2026-07-28, where the codes left to applications lie outside of the
    /// reserved range.
    pub(crate) const MODERN_OFFSET: i64 = 1_000;
}

/// The reason why there is no response.
#[derive(Debug, Clone)]
pub enum Error {
    /// The server responded with an error, which is forwarded verbatim.
    Answered(ErrorObject),
    /// The request is malformed, or cannot be carried out as it stands.
    Refused(ErrorObject),
    /// The built-in memory server is not ready, or does not work.
    Memory(ErrorObject),
    /// The server is starting.
    Initializing {
        /// The server.
        server: Arc<str>,
        /// The cause.
        reason: Option<Reason>,
        /// Time until a retry makes sense.
        retry_after: Duration,
    },
    /// The server cannot be started.
    InitializationFailed {
        /// The server.
        server: Arc<str>,
        /// The cause.
        reason: Reason,
        /// Advice for the user.
        action: Option<Arc<str>>,
        /// Time until a retry makes sense.
        retry_after: Option<Duration>,
    },
    /// A user has to sign in to the server.
    NeedsSignIn {
        /// The server.
        server: Arc<str>,
        /// The cause, if it is known.
        reason: Option<Reason>,
    },
    /// The sign-in to the server cannot be renewed at the moment.
    SignInOutage {
        /// The server.
        server: Arc<str>,
        /// The cause.
        reason: Reason,
        /// The time until the next attempt.
        retry_after: Duration,
    },
    /// The server is disabled.
    Disabled {
        /// The server.
        server: Arc<str>,
    },
    /// The gateway, or the server, is stopping.
    NotConnected {
        /// The server.
        server: Arc<str>,
    },
    /// The server was lost during the call.
    Lost {
        /// The server.
        server: Arc<str>,
        /// The cause.
        reason: Reason,
    },
    /// The server did not respond in time.
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
        /// Number of calls that are waiting already.
        waiting: usize,
    },
    /// All processes that the server may have are in use by other callers.
    TooManyInstances {
        /// The server.
        server: Arc<str>,
        /// The limit.
        most: usize,
    },
    /// The server needs a project directory, and the caller has none.
    NoProject {
        /// The server.
        server: Arc<str>,
        /// The caller may choose a directory.
        is_owner: bool,
    },
    /// The server's response cannot be parsed, or does not fit the request.
    Broken {
        /// The server.
        server: Arc<str>,
        /// The cause.
        reason: Reason,
    },
    /// The caller cancelled the call.
    Cancelled,
    /// The server asks for input that is not available.
    Input {
        /// The server.
        server: Arc<str>,
        /// The cause.
        reason: Arc<str>,
    },
    /// Too many calls wait for their clients to return.
    Crowded,
    /// The search index is being built.
    Indexing {
        /// Time until a retry makes sense.
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
        /// The cause, for people. It contains the rule, which may name what an override hides from the client.
        why: Arc<str>,
        /// The cause without the rule.
        for_agents: Arc<str>,
    },
    /// The approver rejected the call.
    Rejected {
        /// The server.
        server: Arc<str>,
        /// The tool.
        tool: Arc<str>,
        /// The verb for the request, such as `called`.
        done: &'static str,
        /// The approver's explanation.
        reason: Option<Arc<str>>,
    },
    /// No approver answered in time.
    Unanswered {
        /// The server.
        server: Arc<str>,
        /// The tool.
        tool: Arc<str>,
        /// The verb for the request, such as `called`.
        done: &'static str,
        /// The time limit.
        after: Duration,
    },
    /// The approval request could not be made.
    Unasked {
        /// The server.
        server: Arc<str>,
        /// The tool.
        tool: Arc<str>,
        /// The verb for the request, such as `called`.
        done: &'static str,
        /// The cause.
        why: Arc<str>,
        /// A rule that allows it without an approver, if that would help.
        allow: Option<Arc<str>>,
    },
    /// The item is not approved, or nothing of its server is.
    Unapproved {
        /// The server.
        server: Arc<str>,
        /// Its key in the pins.
        item: Option<Arc<str>>,
        /// The name that clients know it by, if an override has changed it.
        new_name: Option<Arc<str>>,
    },
}

impl Error {
    /// Parameters that cannot be used.
    pub fn invalid_params(message: impl Into<String>) -> Self {
        Self::Refused(ErrorObject::new(code::INVALID_PARAMS, message))
    }

    /// Parameters that cannot be used, with advice for the caller.
    pub fn advised(message: impl Into<String>, hint: &str) -> Self {
        Self::Refused(ErrorObject::new(code::INVALID_PARAMS, message).with_hint(hint))
    }

    /// The method does not exist.
    pub fn method_not_found(method: &str) -> Self {
        let message = format!("unknown method `{}`", cut(method));
        Self::Refused(ErrorObject::new(code::METHOD_NOT_FOUND, message))
    }

    /// The outcome of a failed call to this server.
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
                Self::invalid_params(format!("cannot send the parameters: {reason}"))
            }
            other => Self::Broken {
                server,
                reason: Reason::of(&other),
            },
        }
    }

    /// The outcome of a failed call to the built-in memory server, which reports its own state in the
    /// gateway's words.
    pub fn of_memory(error: ErrorObject) -> Self {
        match error.code {
            codes::INITIALIZING | codes::INITIALIZATION_FAILED => Self::Memory(error),
            _ => Self::Answered(error),
        }
    }

    /// The outcome as the activity log records it.
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

    /// Converts it into the error for a peer.
    pub fn into_error(self, era: Era) -> ErrorObject {
        if let Self::Answered(error) | Self::Refused(error) = self {
            return error;
        }
        self.own_error(era)
    }

    /// Converts it into a tool result, for peers of 2026-07-28, which do not know these codes. Errors of the
    /// server and of the request itself stay errors.
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

    /// Advice, separate from the message and without known secrets.
    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Refused(error) | Self::Memory(error) => error.parts().1?,
            Self::Initializing { reason, .. } => reason.as_ref().and_then(Reason::hint)?.into(),
            Self::InitializationFailed { action, .. } => action.as_deref()?.into(),
            Self::NeedsSignIn { server, .. } => {
                format!("sign in with `switchboard login {}`", shell_word(server)).into()
            }
            Self::SignInOutage { .. } => "try again later".into(),
            Self::Disabled { server } => {
                format!("enable it with `switchboard enable {}`", shell_word(server)).into()
            }
            Self::TimedOut { .. } => "the call may have completed: check before you repeat it, or raise `requestTimeoutMs` of the server".into(),
            Self::Busy { .. } => "try again later, or raise `maxInFlight` of the server".into(),
            Self::TooManyInstances { .. } => {
                "try again later, or raise `maxInstances` of the server".into()
            }
            Self::NoProject { is_owner: true, .. } => NO_PROJECT_HINT.into(),
            Self::NoProject { .. } => "clients with a token work in the directory of the token: create one with \
                                       `switchboard token create NAME --project DIR`".into(),
            Self::Crowded => "answer or cancel some of them, then try again".into(),
            Self::Unanswered { .. } => "send the request again to ask for approval again".into(),
            Self::Unapproved {
                server,
                item,
                new_name,
            } => {
                // A client does not learn the server's own name.
                let item = item.as_deref().filter(|_| new_name.is_none());
                let (_, word) = held(server, item);
                format!("review it with `switchboard trust show {word}`").into()
            }
            Self::Answered(_)
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

    /// Code, message and data of the gateway's own error, without known secrets.
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
            Self::Initializing { .. }
            | Self::InitializationFailed { .. }
            | Self::NeedsSignIn { .. }
            | Self::SignInOutage { .. }
            | Self::Disabled { .. }
            | Self::NoProject { .. }
            | Self::NotConnected { .. }
            | Self::Lost { .. } => self.unavailable(reader),
            Self::TimedOut { server, after } => {
                let message = format!(
                    "server `{server}` did not respond within {:.1} s, so the gateway cancelled the call",
                    after.as_secs_f64()
                );
                (codes::TIMEOUT, message, Some(named(server)))
            }
            Self::Busy { server, waiting } => {
                let waiting = match waiting {
                    0 => String::new(),
                    1 => " (1 call is waiting)".to_owned(),
                    more => format!(" ({more} calls are waiting)"),
                };
                let message = format!("server `{server}` is busy: its queue is full{waiting}");
                (codes::BUSY, message, Some(named(server)))
            }
            Self::TooManyInstances { server, most } => {
                let message = match most {
                    1 => format!(
                        "server `{server}` may have one instance, which is in use by another caller"
                    ),
                    most => format!(
                        "server `{server}` may have {most} instances, and all that can be stopped are in use by other callers"
                    ),
                };
                (codes::BUSY, message, Some(named(server)))
            }
            Self::Indexing { retry_after } => {
                let message = "initializing: the search index is not ready yet".to_owned();
                let data = [("part", Raw::string("search")), retry(*retry_after)];
                (codes::INITIALIZING, message, Some(Raw::object(data)))
            }
            Self::SearchClosed => {
                let message = "cannot search for tools: the gateway is stopping";
                (codes::UNAVAILABLE, message.to_owned(), None)
            }
            Self::Unapproved {
                server,
                item,
                new_name,
            } => {
                let (what, _) = held(server, new_name.as_deref().or(item.as_deref()));
                let message = match reader {
                    Reader::Agent => format!("{what} is held until the user approves it"),
                    Reader::Person => format!("{what} is held until you approve it"),
                };
                (code::INVALID_PARAMS, message, Some(named(server)))
            }
            Self::Denied { .. }
            | Self::Rejected { .. }
            | Self::Unanswered { .. }
            | Self::Unasked { .. } => self.unapproved(reader),
            Self::Broken { server, reason } => {
                let reason = reader.reason_for(reason, IN_ACTIVITY);
                let message = format!("server `{server}` sent an invalid response: {reason}");
                (code::INTERNAL, message, Some(named(server)))
            }
            Self::Cancelled => (code::INTERNAL, "the call was cancelled".to_owned(), None),
            Self::Input { server, reason } => {
                let message = format!("server `{server}` cannot continue: {reason}");
                (code::INTERNAL, message, Some(named(server)))
            }
            Self::Crowded => {
                let message = "too many calls are waiting for their clients to answer";
                (codes::BUSY, message.to_owned(), None)
            }
        }
    }

    /// The same for calls whose server is not connected.
    fn unavailable(&self, reader: Reader) -> (i64, String, Option<Raw>) {
        match self {
            Self::Initializing {
                server,
                reason,
                retry_after,
            } => {
                let mut message = format!("initializing: server `{server}` is not ready yet");
                if let Some(reason) = reason {
                    let reason = reader.reason_for(reason, &in_logs(server));
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
                let reason = reader.reason_for(reason, &in_logs(server));
                let message = match reader {
                    Reader::Agent => format!("initialization failed: server `{server}`: {reason}"),
                    Reader::Person => format!("server `{server}` did not start: {reason}"),
                };
                let next = retry_after.map_or_else(|| ("permanent", Raw::from(true)), retry);
                let data = Raw::object([("part", Raw::string(server)), next]);
                (codes::INITIALIZATION_FAILED, message, Some(data))
            }
            Self::NeedsSignIn { server, reason } => {
                let mut message = format!("server `{server}` needs a sign-in");
                if let Some(reason) = reason {
                    let reason = reader.reason_for(reason, &in_logs(server));
                    message = format!("{message}: {reason}");
                }
                let data = [
                    ("part", Raw::string(server)),
                    ("permanent", Raw::from(true)),
                ];
                let data = Raw::object(data);
                (codes::INITIALIZATION_FAILED, message, Some(data))
            }
            Self::SignInOutage {
                server,
                reason,
                retry_after,
            } => {
                let reason = reader.reason_for(reason, &in_logs(server));
                let message =
                    format!("the sign-in to server `{server}` cannot be renewed: {reason}");
                let data = Raw::object([("part", Raw::string(server)), retry(*retry_after)]);
                (codes::INITIALIZATION_FAILED, message, Some(data))
            }
            Self::NoProject { server, .. } => {
                let message = format!(
                    "server `{server}` needs a project directory, and it is not known in which one this client works"
                );
                let data = [
                    ("part", Raw::string(server)),
                    ("permanent", Raw::from(true)),
                ];
                let data = Raw::object(data);
                (codes::INITIALIZATION_FAILED, message, Some(data))
            }
            Self::Disabled { server } => {
                let message = format!("server `{server}` is disabled");
                let data = [
                    ("part", Raw::string(server)),
                    ("permanent", Raw::from(true)),
                ];
                let data = Raw::object(data);
                (codes::INITIALIZATION_FAILED, message, Some(data))
            }
            Self::NotConnected { server } => {
                let message = match reader {
                    Reader::Agent => format!(
                        "Server '{server}' is not connected (state: Disconnected): it is stopping, and a call in flight may have completed"
                    ),
                    Reader::Person => {
                        format!("server `{server}` is stopping; the call may have completed")
                    }
                };
                (codes::UNAVAILABLE, message, Some(named(server)))
            }
            Self::Lost { server, reason } => {
                let reason = reader.reason_for(reason, IN_ACTIVITY);
                let message = format!(
                    "the connection to server `{server}` was lost: {reason}; the call may have completed"
                );
                (codes::UNAVAILABLE, message, Some(named(server)))
            }
            other => other.composed(reader),
        }
    }

    /// The same for calls that were denied or rejected, or whose approval was not given in time or could not
    /// be requested.
    fn unapproved(&self, reader: Reader) -> (i64, String, Option<Raw>) {
        let (code, message, server, approval) = match self {
            Self::Denied {
                server,
                tool,
                done,
                why,
                for_agents,
            } => {
                let why = match reader {
                    Reader::Person => why,
                    Reader::Agent => for_agents,
                };
                let message = format!("`{server}:{}` was not {done}: {why}", cut(tool));
                (codes::REFUSED, message, server, "denied")
            }
            Self::Rejected {
                server,
                tool,
                done,
                reason,
            } => {
                let mut message = format!(
                    "`{server}:{}` was not {done}: the approver rejected the call",
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
                    "`{server}:{}` was not {done}: it needs approval, and no approver answered within {} s",
                    cut(tool),
                    after.as_secs_f64()
                );
                (codes::UNANSWERED, message, server, "timed_out")
            }
            Self::Unasked {
                server,
                tool,
                done,
                why,
                ..
            } => {
                let message = format!(
                    "`{server}:{}` was not {done}: it needs approval, and the request could not be created: {why}",
                    cut(tool)
                );
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
        let hint = match self {
            // Agents must not try to change the rules.
            Self::Denied { .. } => Some(LIST_RULES.to_owned()),
            Self::Unasked {
                allow: Some(rule), ..
            } => Some(format!("a more specific rule, such as `{rule}`, allows it")),
            _ => self.hint(),
        };
        (self.own(Reader::Person).1, hint)
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
    /// The reason for this reader. An agent gets the place where the user can read the rest.
    fn reason_for(self, reason: &Reason, place: &str) -> String {
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

/// Names for an item that is held: one for messages, and one for commands, quoted as one word for a
/// shell.
fn held(server: &str, item: Option<&str>) -> (String, String) {
    match item {
        Some(item) => {
            let name = format!("{server}:{item}");
            let word = shell_word(&name);
            (format!("`{name}`"), word)
        }
        None => (format!("server `{server}`"), shell_word(server)),
    }
}

fn millis(duration: Duration) -> Raw {
    Raw::number(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
}

/// The beginning of a peer's text, short enough to quote.
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
            new_name: None,
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
