//! The settings of a provider: model, address, prices.

use std::{fmt, time::Duration};

/// The settings of a provider: model, address, prices.
#[derive(Clone, PartialEq)]
pub struct Settings {
    /// The API that it speaks.
    pub kind: Kind,
    /// Its address, with or without `/v1`; the public address of the kind if `None`.
    pub base_url: Option<String>,
    /// The default model.
    pub model: String,
    /// Other models that may be chosen.
    pub models: Vec<String>,
    /// The API key.
    pub api_key: Option<String>,
    /// The most tokens of a response, even if the request allows more.
    pub max_tokens: Option<u64>,
    /// Time limit for the whole exchange, including a second attempt.
    pub timeout: Duration,
    /// Prices of tokens.
    pub prices: Option<Prices>,
}

impl Settings {
    /// A model at the public address of its kind, without a key and with a time limit of two minutes.
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
            // An address can contain a password, or a key in its query.
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

/// The API of a model provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The chat completions API of `OpenAI`.
    OpenAi,
    /// The messages API of Anthropic.
    Anthropic,
}

/// Prices of a million tokens, in any one currency.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prices {
    /// Price of the request.
    pub input: f64,
    /// Price of the response.
    pub output: f64,
}

impl Prices {
    /// The cost of a request and response with these numbers of tokens.
    pub(crate) fn of(self, input: u64, output: u64) -> f64 {
        #[expect(
            clippy::cast_precision_loss,
            reason = "no request has as many tokens as a float can count"
        )]
        let tokens = |count: u64| count as f64;
        (tokens(input) * self.input + tokens(output) * self.output) / 1e6
    }
}
