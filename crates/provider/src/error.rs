//! Why there is no answer, and what a person can do about it.

use std::{borrow::Cow, fmt, time::Duration};

/// Why there is no answer. No message holds the key, also where the far side repeats it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProviderError {
    /// The provider is not set up in a way that could work.
    #[error("{reason}")]
    Settings {
        /// What is wrong.
        reason: String,
    },
    /// Somebody chose a model that is not configured.
    #[error("the model {wanted:?} is not configured")]
    Model {
        /// What was chosen.
        wanted: String,
        /// What can be.
        models: Vec<String>,
    },
    /// The request cannot be put to this provider.
    #[error("the request cannot be put to the model: {place} {reason}")]
    Request {
        /// Where in the request, such as `messages[0].content[1]`.
        place: String,
        /// What is wrong with it.
        reason: String,
    },
    /// No connection.
    #[error("{address} cannot be reached")]
    Unreachable {
        /// Where the model is.
        address: String,
        /// What the network said.
        source: reqwest::Error,
    },
    /// The connection broke after the request was sent. It may have been paid for, so it is not repeated.
    #[error("{address} broke off before it had answered")]
    Interrupted {
        /// Where the model is.
        address: String,
        /// What the network said.
        source: reqwest::Error,
    },
    /// It took too long.
    #[error("{address} did not answer within {} s", after.as_secs_f64())]
    TimedOut {
        /// Where the model is.
        address: String,
        /// How long it was waited for.
        after: Duration,
    },
    /// The key is not accepted (401, 403).
    #[error("{address} does not accept the key (status {status})")]
    Key {
        /// Where the model is.
        address: String,
        /// The HTTP status.
        status: u16,
    },
    /// The model or the interface is not there (404).
    #[error("{address} knows no such model or page{said}")]
    NotFound {
        /// What was asked.
        address: String,
        /// The model that was asked for.
        model: String,
        /// What it said.
        said: Said,
    },
    /// Too many requests, or none left that are paid for (429).
    #[error("{address} takes no more requests{said}")]
    Busy {
        /// Where the model is.
        address: String,
        /// When it wants to be asked again.
        after: Option<Duration>,
        /// What it said.
        said: Said,
    },
    /// Any other refusal.
    #[error("{address} answered with status {status}{said}")]
    Status {
        /// Where the model is.
        address: String,
        /// The HTTP status.
        status: u16,
        /// What it said.
        said: Said,
    },
    /// It sends elsewhere, where the key is not shown.
    #[error("{address} sends elsewhere (status {status}), which is not followed")]
    Redirect {
        /// Where the model is.
        address: String,
        /// The HTTP status.
        status: u16,
    },
    /// The answer has more bytes than are read.
    #[error("the answer of {address} is larger than {limit} bytes")]
    TooLarge {
        /// Where the model is.
        address: String,
        /// How many bytes are read.
        limit: usize,
    },
    /// The answer is not what the interface says.
    #[error("the answer of {address} cannot be understood: {reason}")]
    Answer {
        /// Where the model is.
        address: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The model, or a filter before it, does not answer such a request.
    #[error("the model {model} refused to answer{said}")]
    Refused {
        /// The model.
        model: String,
        /// What it said.
        said: Said,
    },
    /// The answer repeats the key, which the asking server must not see.
    #[error("the answer of {address} repeats the key that was sent, and is not passed on")]
    KeyInAnswer {
        /// Where the model is.
        address: String,
    },
}

impl ProviderError {
    /// Advice for the user, apart from the message.
    pub fn hint(&self) -> Option<Cow<'_, str>> {
        Some(match self {
            Self::Settings { .. } => "change \"sampling.provider\" in the configuration".into(),
            Self::Model { models, .. } => format!(
                "choose one of: {}; or add it to \"models\" of \"sampling.provider\"",
                models.join(", ")
            )
            .into(),
            Self::Unreachable { .. } => {
                "see whether it runs there, and \"baseUrl\" of \"sampling.provider\"".into()
            }
            Self::Interrupted { .. } => "ask again".into(),
            Self::TimedOut { .. } => {
                "ask for fewer tokens, or raise \"timeoutMs\" of \"sampling.provider\"".into()
            }
            Self::Key { .. } => "see \"apiKey\" of \"sampling.provider\"".into(),
            Self::NotFound { model, .. } => {
                format!("see \"model\" ({model}) and \"baseUrl\" of \"sampling.provider\"").into()
            }
            Self::Busy {
                after: Some(after), ..
            } => format!("it wants to be left alone for {} s", after.as_secs()).into(),
            Self::Busy { after: None, .. } => {
                "wait a little, or see whether the account is in credit".into()
            }
            Self::Status { status: 500.., .. } => "ask again later".into(),
            Self::Status { .. } => "see whether the model can do what is asked for".into(),
            Self::Redirect { .. } => {
                "set \"baseUrl\" of \"sampling.provider\" to where it really is".into()
            }
            Self::TooLarge { .. } => "ask for fewer tokens".into(),
            Self::Answer { .. } => {
                "see whether \"kind\" and \"baseUrl\" of \"sampling.provider\" belong together"
                    .into()
            }
            Self::Refused { .. } => "change the request or choose another model".into(),
            Self::KeyInAnswer { .. } => "change the key".into(),
            Self::Request { .. } => return None,
        })
    }

    /// One word for what happened, for logs and statistics.
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

    /// Whether it is certain that no model has worked, so that there is nothing to pay for.
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

/// What the far side said, as data: one line, cut, without the key. Shows as ` ("…")`, or as nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Said(Option<String>);

/// More of a message is not read by a person.
const SAID_MAX: usize = 300;

impl Said {
    /// What it said, if it said anything.
    pub fn text(&self) -> Option<&str> {
        self.0.as_deref()
    }

    pub(crate) fn new(text: &str, key: Option<&str>) -> Self {
        let hidden = match key.filter(|key| !key.is_empty()) {
            // Before anything is cut: half a key is not found any more.
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
    fn what_was_said_is_one_line_without_the_key() {
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
