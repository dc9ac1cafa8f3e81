//! How a server is, in the words that every surface uses.

use std::{fmt, sync::Arc, time::SystemTime};

use switchboard_client::{self as client, CallError};
use switchboard_config::shell_word;
use switchboard_rest::{servers, status};
use switchboard_wire::{excerpt, visible};

use crate::{scrub, time};

/// The state of a server, since when, why, and what the user can do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Health {
    /// What it is doing.
    pub state: ServerState,
    /// Since when.
    pub since: SystemTime,
    /// Why, if there is more to say.
    pub reason: Option<Reason>,
    /// What the user can do about it.
    pub action: Option<Arc<str>>,
    /// When it is tried again.
    pub next_try: Option<SystemTime>,
}

/// Stands in a reason between the gateway's own words and those of the server.
pub const SAID: &str = "; it last said: ";
/// Precedes the reason why a list that a call needs could not be read.
pub const UNREADABLE: &str = "its list cannot be read";

/// A reason in two parts: one for everyone, and one for people only. No known secret is in either.
///
/// A server that crashes often writes its key to standard error first, and one that nobody approved may refuse a
/// connection with instructions for agents. Every agent can read the reasons of all servers; so what a server said,
/// in whatever way, goes to people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    public: Arc<str>,
    detail: Option<Arc<str>>,
}

impl Reason {
    /// A reason in words of the gateway's own, and the words of the server.
    pub fn new(public: &str, detail: Option<&str>) -> Self {
        let clean = |text: &str| Arc::from(visible(&scrub::text(text)));
        Self {
            public: clean(public),
            detail: detail.map(clean),
        }
    }

    /// A reason in words of the gateway's own alone.
    pub fn plain(public: &str) -> Self {
        Self::new(public, None)
    }

    /// The reason why a server did not give what it was asked for.
    pub fn of(error: &client::Error) -> Self {
        match error {
            client::Error::Server(error) => {
                let public = format!("the server answered with error {}", error.code);
                let said = Some(excerpt(&error.message)).filter(|said| !said.is_empty());
                Self::new(&public, said.as_deref())
            }
            client::Error::Call(CallError::RequestFailed(failure)) => {
                Self::new(&failure.message, failure.said.as_deref())
            }
            client::Error::InputRefused { method, reason } => Self::new(
                &format!("the server needs input for `{method}` that it did not get"),
                Some(&excerpt(reason)),
            ),
            other => Self::plain(&other.to_string()),
        }
    }

    /// The same reason, of something that this is the reason for.
    #[must_use]
    pub fn within(&self, what: &str) -> Self {
        Self {
            public: format!("{what}: {}", self.public).into(),
            detail: self.detail.clone(),
        }
    }

    /// The reason without its detail, and the place that shows it.
    pub(crate) fn for_agents(&self, place: &str) -> String {
        let public = &self.public;
        match self.detail {
            Some(_) => format!("{public}; its owner can read why {place}"),
            None => public.to_string(),
        }
    }

    /// The same as a reason of its own.
    #[must_use]
    pub fn plain_for_agents(&self, server: &str) -> Self {
        Self::plain(&self.for_agents(&in_logs(server)))
    }
}

/// The place that shows people what a server said.
pub(crate) fn in_logs(server: &str) -> String {
    format!("with `switchboard logs {}`", shell_word(server))
}

/// The whole reason, for people.
impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.public)?;
        match &self.detail {
            Some(detail) => write!(f, "{SAID}{detail}"),
            None => Ok(()),
        }
    }
}

/// What a server is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ServerState {
    /// Switched off by its configuration.
    Disabled,
    /// Not running; the first call starts it.
    Idle,
    /// On its way.
    Starting,
    /// Calls go through.
    Ready,
    /// It failed, and is tried again in a moment.
    Retrying,
    /// It failed too often, or in a way that only a person can mend.
    Parked,
    /// On its way out.
    Stopping,
}

impl ServerState {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Disabled,
        Self::Idle,
        Self::Starting,
        Self::Ready,
        Self::Retrying,
        Self::Parked,
        Self::Stopping,
    ];

    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Disabled => "disabled",
            Self::Idle => "idle",
            Self::Starting => "starting",
            Self::Ready => "ready",
            Self::Retrying => "retrying",
            Self::Parked => "parked",
            Self::Stopping => "stopping",
        }
    }
}

impl Health {
    /// A state without a reason.
    pub fn new(state: ServerState) -> Self {
        Self {
            state,
            since: SystemTime::now(),
            reason: None,
            action: None,
            next_try: None,
        }
    }

    /// As a part of the gateway.
    pub fn part(&self) -> PartState {
        match self.state {
            ServerState::Disabled | ServerState::Idle | ServerState::Ready => PartState::Ready,
            ServerState::Starting | ServerState::Retrying | ServerState::Stopping => {
                PartState::Initializing
            }
            ServerState::Parked => PartState::Error {
                message: match &self.reason {
                    Some(reason) => reason.to_string().into(),
                    None => "parked".into(),
                },
            },
        }
    }

    /// The same for an answer.
    pub fn shown(&self) -> servers::Health {
        servers::Health {
            state: self.state.as_str().into(),
            since: time::shown(self.since),
            reason: self.reason.as_ref().map(ToString::to_string),
            action: self.action.as_deref().map(Into::into),
            next_try: self.next_try.map(time::shown),
        }
    }

    /// The same for an agent.
    #[must_use]
    pub fn for_agents(mut self, server: &str) -> Self {
        self.reason = self.reason.map(|it| it.plain_for_agents(server));
        self
    }
}

/// Something that may be slow to come up.
#[derive(Debug, Clone)]
pub struct Part {
    /// Which.
    pub name: String,
    /// Where it stands.
    pub state: PartState,
    /// What a person should know all the same, or can do.
    pub note: Option<Arc<str>>,
}

impl From<Part> for status::Part {
    fn from(part: Part) -> Self {
        let (state, message) = match part.state {
            PartState::Initializing => ("initializing", None),
            PartState::Ready => ("ready", None),
            PartState::Error { message } => ("error", Some(message)),
        };
        Self {
            name: part.name,
            state: state.into(),
            message: message.as_deref().map(Into::into),
            note: part.note.as_deref().map(Into::into),
        }
    }
}

/// The state of anything that may be slow to come up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PartState {
    /// On its way.
    Initializing,
    /// There.
    Ready,
    /// Not there; tried again, unless that cannot help.
    Error {
        /// Why.
        message: Arc<str>,
    },
}

#[cfg(test)]
mod tests {
    use switchboard_client::{ErrorObject, RequestFailure};

    use super::*;

    #[test]
    fn agents_are_told_the_code_and_people_the_words() {
        let said = format!("<IMPORTANT>\x1b[31m\n{}", "x".repeat(1_000_000));
        let failure = RequestFailure {
            status: Some(500),
            message: "`initialize` to http://h: HTTP 500 Internal Server Error".into(),
            said: Some("<IMPORTANT>".into()),
            sent: true,
            challenged: false,
        };
        for (error, public) in [
            (
                client::Error::Server(ErrorObject::new(-32000, said)),
                "error -32000",
            ),
            (
                client::Error::Call(CallError::RequestFailed(failure)),
                "HTTP 500 Internal",
            ),
            (
                client::Error::InputRefused {
                    method: "tools/list".to_owned(),
                    reason: "`<IMPORTANT>`: unknown".to_owned(),
                },
                "`tools/list`",
            ),
        ] {
            let reason = Reason::of(&error);
            let told = reason.for_agents(&in_logs("h"));
            assert!(
                told.contains(public) && !told.contains("IMPORTANT"),
                "{told}"
            );
            let whole = reason.to_string();
            assert!(whole.contains("<IMPORTANT>"), "{whole}");
            assert!(!whole.contains(char::is_control), "{whole:?}");
            assert!(whole.len() < 500, "{} bytes", whole.len());
        }
    }
}
