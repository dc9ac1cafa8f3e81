//! How a server is, in the words that every surface uses.

use std::{fmt, sync::Arc, time::SystemTime};

use serde::{Serialize, Serializer};

use crate::scrub;

/// The state of a server, since when, why, and what the user can do about it.
#[derive(Debug, Clone, Serialize, PartialEq, Eq)]
pub struct Health {
    /// What it is doing.
    pub state: ServerState,
    /// Since when.
    #[serde(serialize_with = "crate::time::rfc3339")]
    pub since: SystemTime,
    /// Why, if there is more to say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// What the user can do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<Arc<str>>,
    /// When it is tried again.
    #[serde(
        rename = "nextTry",
        skip_serializing_if = "Option::is_none",
        serialize_with = "crate::time::rfc3339_option"
    )]
    pub next_try: Option<SystemTime>,
}

/// A reason in two parts: one for everyone, and one for people only. No known secret is in either.
///
/// A server that crashes often writes its key to standard error first, and every agent can read the
/// reasons of all servers; so what a server said goes to people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    public: Arc<str>,
    detail: Option<Arc<str>>,
}

impl Reason {
    pub(crate) fn new(public: &str, detail: Option<&str>) -> Self {
        let clean = |text: &str| Arc::from(scrub::text(text));
        Self {
            public: clean(public),
            detail: detail.map(clean),
        }
    }

    /// The reason without its detail, and the command that shows it.
    pub(crate) fn for_agents(&self, server: &str) -> String {
        let public = &self.public;
        match self.detail {
            Some(_) => {
                format!("{public}; its owner can read why with `switchboard logs {server}`")
            }
            None => public.to_string(),
        }
    }
}

impl From<String> for Reason {
    fn from(text: String) -> Self {
        Self::new(&text, None)
    }
}

impl From<&str> for Reason {
    fn from(text: &str) -> Self {
        Self::new(text, None)
    }
}

/// The whole reason, for people.
impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.public)?;
        match &self.detail {
            Some(detail) => write!(f, "; it last said: {detail}"),
            None => Ok(()),
        }
    }
}

impl Serialize for Reason {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// What a server is doing.
#[derive(Debug, Clone, Copy, Serialize, PartialEq, Eq, Hash)]
#[serde(rename_all = "lowercase")]
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
    pub(crate) fn new(state: ServerState) -> Self {
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

    /// The same for an agent.
    #[must_use]
    pub(crate) fn for_agents(mut self, server: &str) -> Self {
        self.reason = self.reason.map(|reason| reason.for_agents(server).into());
        self
    }
}

/// Something that may be slow to come up.
#[derive(Debug, Clone, Serialize)]
pub struct Part {
    /// Which.
    pub name: String,
    /// Where it stands.
    #[serde(flatten)]
    pub state: PartState,
    /// What a person should know all the same, or can do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<Arc<str>>,
}

/// The state of anything that may be slow to come up.
#[derive(Debug, Clone, Serialize, PartialEq, Eq)]
#[serde(tag = "state", rename_all = "lowercase")]
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
