//! The health of a server, in the terms that every surface uses.

use std::{fmt, sync::Arc, time::SystemTime};

use switchboard_client::{self as client, CallError};
use switchboard_config::shell_word;
use switchboard_rest::{servers, status};
use switchboard_wire::{excerpt, visible};

use crate::{scrub, time};

/// The state of a server: since when, the reason, and advice for the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Health {
    /// Current state.
    pub state: ServerState,
    /// Start of this state.
    pub since: SystemTime,
    /// Explanation of the state, if it needs one.
    pub reason: Option<Reason>,
    /// Advice for the user.
    pub action: Option<Arc<str>>,
    /// Time of the next attempt to start it.
    pub next_try: Option<SystemTime>,
}

/// Separates the gateway's own words in a reason from those of the server.
pub const SAID: &str = "; its last message: ";
/// Precedes the reason why a list that a call needs could not be read.
pub const UNREADABLE: &str = "its list cannot be read";

/// A reason in two parts: one for everyone, and one for people only; and advice, if there is any. None of
/// them contains a known secret.
///
/// A server that crashes often writes its key to standard error first, and an unapproved server may refuse a
/// connection with instructions for agents. Every agent can read the reasons of all servers; therefore the
/// server's own text, from any source, is shown to people only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    public: Arc<str>,
    detail: Option<Arc<str>>,
    hint: Option<Arc<str>>,
}

impl Reason {
    /// A reason in the gateway's own words, with the server's own text as the detail.
    pub fn new(public: &str, detail: Option<&str>) -> Self {
        Self {
            public: clean(public),
            detail: detail.map(clean),
            hint: None,
        }
    }

    /// Adds advice for the user, which is apart from the text.
    #[must_use]
    pub fn with_hint(mut self, hint: Option<impl AsRef<str>>) -> Self {
        self.hint = hint.map(|hint| clean(hint.as_ref()));
        self
    }

    /// Advice for the user.
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// A reason in the gateway's own words alone.
    pub fn plain(public: &str) -> Self {
        Self::new(public, None)
    }

    /// The reason for a failed request to a server.
    pub fn of(error: &client::Error) -> Self {
        match error {
            client::Error::Server(error) => {
                let public = format!("the server responded with error {}", error.code);
                let said = Some(excerpt(&error.message)).filter(|said| !said.is_empty());
                Self::new(&public, said.as_deref())
            }
            client::Error::Call(CallError::RequestFailed(failure)) => {
                Self::new(&failure.message, failure.said.as_deref())
            }
            client::Error::InputRefused { method, reason } => Self::new(
                &format!("the server asked for input with `{method}` and did not get it"),
                Some(&excerpt(reason)),
            ),
            other => Self::plain(&other.to_string()),
        }
    }

    /// The same reason, prefixed with the operation that failed.
    #[must_use]
    pub fn within(&self, what: &str) -> Self {
        Self {
            public: format!("{what}: {}", self.public).into(),
            ..self.clone()
        }
    }

    /// The reason without its detail, but with the place where the owner can read the detail.
    pub(crate) fn for_agents(&self, place: &str) -> String {
        let public = &self.public;
        match self.detail {
            Some(_) => format!("{public}; the user can read the details {place}"),
            None => public.to_string(),
        }
    }

    /// The reason for agents, as a [`Reason`].
    #[must_use]
    pub fn plain_for_agents(&self, server: &str) -> Self {
        Self::plain(&self.for_agents(&in_logs(server)))
    }
}

/// The text without known secrets and without invisible characters.
fn clean(text: &str) -> Arc<str> {
    visible(&scrub::text(text)).into()
}

/// The place where people can read the output of a server.
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

/// The state of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ServerState {
    /// Disabled in the configuration.
    Disabled,
    /// Not running; the first call starts it.
    Idle,
    /// Being started.
    Starting,
    /// Accepts calls.
    Ready,
    /// Failed; the next attempt follows shortly.
    Retrying,
    /// Failed too often, or in a way that only a person can fix.
    Parked,
    /// A user has to sign in to it.
    NeedsSignIn,
    /// Being stopped.
    Stopping,
}

impl ServerState {
    /// All states.
    pub const ALL: [Self; 8] = [
        Self::Disabled,
        Self::Idle,
        Self::Starting,
        Self::Ready,
        Self::Retrying,
        Self::Parked,
        Self::NeedsSignIn,
        Self::Stopping,
    ];

    /// The name of the state, as every surface shows it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Disabled => "disabled",
            Self::Idle => "idle",
            Self::Starting => "starting",
            Self::Ready => "ready",
            Self::Retrying => "retrying",
            Self::Parked => "parked",
            Self::NeedsSignIn => "needs sign-in",
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

    /// The state of the server as a part of the gateway.
    pub fn part(&self) -> PartState {
        match self.state {
            ServerState::Disabled | ServerState::Idle | ServerState::Ready => PartState::Ready,
            ServerState::Starting | ServerState::Retrying | ServerState::Stopping => {
                PartState::Initializing
            }
            ServerState::Parked | ServerState::NeedsSignIn => PartState::Error {
                message: match &self.reason {
                    Some(reason) => reason.to_string().into(),
                    None => self.state.as_str().into(),
                },
            },
        }
    }

    /// The health in the form of the REST interface.
    pub fn shown(&self) -> servers::Health {
        servers::Health {
            state: self.state.as_str().into(),
            since: time::shown(self.since),
            reason: self.reason.as_ref().map(ToString::to_string),
            action: self.action.as_deref().map(Into::into),
            next_try: self.next_try.map(time::shown),
        }
    }

    /// The health without the details that only people may see.
    #[must_use]
    pub fn for_agents(mut self, server: &str) -> Self {
        self.reason = self.reason.map(|it| it.plain_for_agents(server));
        self
    }
}

/// A part of the gateway that may be slow to start.
#[derive(Debug, Clone)]
pub struct Part {
    /// Name of the part.
    pub name: String,
    /// Current state.
    pub state: PartState,
    /// A remark for the user: something to know or to do in spite of the state.
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

/// The state of a part that may be slow to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PartState {
    /// Being started.
    Initializing,
    /// In service.
    Ready,
    /// Out of service; retried unless a retry cannot help.
    Error {
        /// The cause.
        message: Arc<str>,
    },
}

#[cfg(test)]
mod tests {
    use switchboard_client::{ErrorObject, RequestFailure};

    use super::*;

    #[test]
    fn agents_see_the_code_people_the_text() {
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
