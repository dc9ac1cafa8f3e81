//! Which model is asked, where, and for how much.

use std::{fmt, time::Duration};

/// Which model is asked, where, and for how much.
#[derive(Clone, PartialEq)]
pub struct Settings {
    /// The interface it speaks.
    pub kind: Kind,
    /// Where it is, with or without `/v1`; the kind's own public address if `None`.
    pub base_url: Option<String>,
    /// The model to ask unless another is chosen.
    pub model: String,
    /// Further models that may be chosen.
    pub models: Vec<String>,
    /// The key to show.
    pub api_key: Option<String>,
    /// The most tokens of an answer, whatever is asked for.
    pub max_tokens: Option<u64>,
    /// How long all of it may take, with a second attempt.
    pub timeout: Duration,
    /// What tokens cost.
    pub prices: Option<Prices>,
}

impl Settings {
    /// A model at its kind's public address, without a key, that may take two minutes.
    pub fn new(kind: Kind, model: impl Into<String>) -> Self {
        Self {
            kind,
            base_url: None,
            model: model.into(),
            models: Vec::new(),
            api_key: None,
            max_tokens: None,
            timeout: Duration::from_mins(2),
            prices: None,
        }
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("kind", &self.kind)
            // An address can hold a password, or a key in its query.
            .field("base_url", &self.base_url.as_ref().map(|_| Hidden))
            .field("model", &self.model)
            .field("models", &self.models)
            .field("api_key", &self.api_key.as_ref().map(|_| Hidden))
            .field("max_tokens", &self.max_tokens)
            .field("timeout", &self.timeout)
            .field("prices", &self.prices)
            .finish()
    }
}

struct Hidden;

impl fmt::Debug for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(hidden)")
    }
}

/// The interface of a model provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Chat completions as `OpenAI` defined them.
    OpenAi,
    /// Anthropic's messages.
    Anthropic,
}

/// What a million tokens cost, in any one currency.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prices {
    /// Of the request.
    pub input: f64,
    /// Of the answer.
    pub output: f64,
}

impl Prices {
    /// What so many tokens cost.
    pub(crate) fn of(self, input: u64, output: u64) -> f64 {
        #[expect(
            clippy::cast_precision_loss,
            reason = "no request has as many tokens as a float can count"
        )]
        let tokens = |count: u64| count as f64;
        (tokens(input) * self.input + tokens(output) * self.output) / 1e6
    }
}
