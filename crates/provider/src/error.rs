//! Errors of a provider, and advice for the user.

use std::{borrow::Cow, fmt, time::Duration};

/// The error of a provider. No message contains the key, not even where the provider repeats it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProviderError {
    /// The settings cannot work.
    #[error("{reason}")]
    Settings {
        /// The problem.
        reason: String,
    },
    /// The approver chose a model that is not configured.
    #[error("the model {wanted:?} is not configured")]
    Model {
        /// The chosen model.
        wanted: String,
        /// The configured models.
        models: Vec<String>,
    },
    /// The request cannot be sent to this provider.
    #[error("cannot send the request to the model: {place} {reason}")]
    Request {
        /// Path within the request, such as `messages[0].content[1]`.
        place: String,
        /// The problem.
        reason: String,
    },
    /// The connection failed.
    #[error("cannot reach {address}")]
    Unreachable {
        /// Address of the model.
        address: String,
        /// The cause.
        source: reqwest::Error,
    },
    /// The connection broke after the request was sent. It is not repeated, because it may have been billed.
    #[error("{address} closed the connection before it responded")]
    Interrupted {
        /// Address of the model.
        address: String,
        /// The cause.
        source: reqwest::Error,
    },
    /// The time limit expired.
    #[error("{address} did not respond within {} s", after.as_secs_f64())]
    TimedOut {
        /// Address of the model.
        address: String,
        /// The time limit.
        after: Duration,
    },
    /// The provider rejected the key (401, 403).
    #[error("{address} rejected the API key (status {status})")]
    Key {
        /// Address of the model.
        address: String,
        /// The HTTP status.
        status: u16,
    },
    /// The model or the API does not exist there (404).
    #[error("{address} has no such model or path{said}")]
    NotFound {
        /// Address of the model.
        address: String,
        /// The requested model.
        model: String,
        /// The provider's message.
        said: Said,
    },
    /// There were too many requests, or the account has no credit left (429).
    #[error("{address} accepts no more requests for now{said}")]
    Busy {
        /// Address of the model.
        address: String,
        /// Delay that the provider asks for.
        after: Option<Duration>,
        /// The provider's message.
        said: Said,
    },
    /// The provider responded with another error status.
    #[error("{address} responded with status {status}{said}")]
    Status {
        /// Address of the model.
        address: String,
        /// The HTTP status.
        status: u16,
        /// The provider's message.
        said: Said,
    },
    /// The provider redirects to another address, to which the key must not be sent.
    #[error("{address} redirects (status {status}), which the gateway does not follow")]
    Redirect {
        /// Address of the model.
        address: String,
        /// The HTTP status.
        status: u16,
    },
    /// The response is longer than the limit.
    #[error("the response from {address} is larger than {limit} bytes")]
    TooLarge {
        /// Address of the model.
        address: String,
        /// The limit, in bytes.
        limit: usize,
    },
    /// The response does not conform to the API.
    #[error("the response from {address} is invalid: {reason}")]
    Answer {
        /// Address of the model.
        address: String,
        /// The problem.
        reason: String,
    },
    /// The model, or a filter in front of it, refused the request.
    #[error("the model {model} refused to answer{said}")]
    Refused {
        /// The model.
        model: String,
        /// The explanation.
        said: Said,
    },
    /// The response repeats the key, which the requesting server must not see.
    #[error("the response from {address} contains the API key, so the gateway does not pass it on")]
    KeyInAnswer {
        /// Address of the model.
        address: String,
    },
}

impl ProviderError {
    /// Advice for the user, separate from the message.
    pub fn hint(&self) -> Option<Cow<'_, str>> {
        Some(match self {
            Self::Settings { .. } => "change \"sampling.provider\" in the configuration".into(),
            Self::Model { models, .. } => format!(
                "choose one of: {}; or add it to \"models\" of \"sampling.provider\"",
                models.join(", ")
            )
            .into(),
            Self::Unreachable { .. } => {
                "check that the model runs there, and check \"baseUrl\" of \"sampling.provider\""
                    .into()
            }
            Self::Interrupted { .. } => "try again".into(),
            Self::TimedOut { .. } => {
                "ask for fewer tokens, or raise \"timeoutMs\" of \"sampling.provider\"".into()
            }
            Self::Key { .. } => "check \"apiKey\" of \"sampling.provider\"".into(),
            Self::NotFound { model, .. } => {
                format!("check \"model\" ({model}) and \"baseUrl\" of \"sampling.provider\"").into()
            }
            Self::Busy {
                after: Some(after), ..
            } => format!("try again after {} s", after.as_secs()).into(),
            Self::Busy { after: None, .. } => {
                "try again later, or check that the account has credit".into()
            }
            Self::Status { status: 500.., .. } => "try again later".into(),
            Self::Status { .. } => "check that the model supports the request".into(),
            Self::Redirect { .. } => {
                "set \"baseUrl\" of \"sampling.provider\" to the address that it redirects to"
                    .into()
            }
            Self::TooLarge { .. } => "ask for fewer tokens".into(),
            Self::Answer { .. } => {
                "check that \"kind\" and \"baseUrl\" of \"sampling.provider\" belong together"
                    .into()
            }
            Self::Refused { .. } => "change the request or choose another model".into(),
            Self::KeyInAnswer { .. } => "revoke the key and use a new one".into(),
            Self::Request { .. } => return None,
        })
    }

    /// The kind of the error in one word, for logs and statistics.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Settings { .. } => "settings",
            Self::Model { .. } => "model",
            Self::Request { .. } => "request",
            Self::Unreachable { .. } => "unreachable",
            Self::Interrupted { .. } => "interrupted",
            Self::TimedOut { .. } => "timed_out",
            Self::Key { .. } => "key",
            Self::NotFound { .. } => "not_found",
            Self::Busy { .. } => "busy",
            Self::Status { .. } => "status",
            Self::Redirect { .. } => "redirect",
            Self::TooLarge { .. } => "too_large",
            Self::Answer { .. } => "answer",
            Self::Refused { .. } => "refused",
            Self::KeyInAnswer { .. } => "key_in_answer",
        }
    }

    /// Returns `true` if it is certain that no model has run, so that nothing is billed.
    pub const fn is_free(&self) -> bool {
        match self {
            Self::Settings { .. }
            | Self::Model { .. }
            | Self::Request { .. }
            | Self::Unreachable { .. }
            | Self::Key { .. }
            | Self::NotFound { .. }
            | Self::Busy { .. }
            | Self::Redirect { .. } => true,
            Self::Interrupted { .. }
            | Self::TimedOut { .. }
            | Self::Status { .. }
            | Self::TooLarge { .. }
            | Self::Answer { .. }
            | Self::Refused { .. }
            | Self::KeyInAnswer { .. } => false,
        }
    }

    pub(crate) fn settings(reason: impl Into<String>) -> Self {
        Self::Settings {
            reason: reason.into(),
        }
    }

    pub(crate) fn request(place: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Request {
            place: place.into(),
            reason: reason.into(),
        }
    }
}

/// A message of the provider: one line, cut, without the key. Displayed as ` ("…")`, or as nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Said(Option<String>);

/// The most characters that are kept.
const SAID_MAX: usize = 300;

impl Said {
    /// The message, if there is one.
    pub fn text(&self) -> Option<&str> {
        self.0.as_deref()
    }

    pub(crate) fn new(text: &str, key: Option<&str>) -> Self {
        let hidden = match key.filter(|key| !key.is_empty()) {
            // Replaced before the cut, because a part of the key would not be found.
            Some(key) => text.replace(key, "(key)"),
            None => text.to_owned(),
        };
        let line: Vec<_> = hidden
            .split(|character: char| character.is_control() || character.is_whitespace())
            .filter(|word| !word.is_empty())
            .collect();
        let line = line.join(" ");
        let line = match line.char_indices().nth(SAID_MAX) {
            Some((end, _)) => format!("{}…", &line[..end]),
            None => line,
        };
        Self((!line.is_empty()).then_some(line))
    }
}

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(text) => write!(f, " ({text:?})"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_is_one_line_without_the_key() {
        let said = |text: &str| Said::new(text, Some("s3cret-key")).to_string();
        assert_eq!(
            said("no\nkey\u{1b}[31m s3cret-key"),
            r#" ("no key [31m (key)")"#
        );
        assert_eq!(said(" \n"), "");
        let long = said(&"ü".repeat(1_000));
        assert_eq!(long.chars().count(), 300 + 6);
        let cut = said(&format!("{}s3cret-key", "x".repeat(295)));
        assert!(!cut.contains("s3"), "{cut}");
    }
}
