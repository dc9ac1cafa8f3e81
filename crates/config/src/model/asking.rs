//! The configuration of approvals and of sampling.

use std::fmt;
use std::time::Duration;

use serde_json::Value;

use super::{Hidden, Url};

/// Requests for human approval.
#[derive(Clone, Debug, PartialEq)]
pub struct Approvals {
    /// Time after which a request escalates.
    pub short_timeout: Duration,
    /// Further time after which it expires.
    pub long_timeout: Duration,
    /// The party that answers servers' questions.
    pub route: Route,
    /// The tool calls that need approval if no rule matches.
    pub tools: Guard,
    /// The rules as written; the approvals crate parses them.
    pub rules: Vec<Value>,
    /// The webhook for notifications.
    pub webhook: Option<Webhook>,
    /// Desktop notifications about escalated requests.
    pub notify: Notify,
    /// The most questions of a server during one call.
    pub questions_per_call: u64,
    /// The most questions of a server per minute.
    pub questions_per_minute: u64,
}

impl Default for Approvals {
    fn default() -> Self {
        Self {
            short_timeout: Duration::from_secs(30),
            long_timeout: Duration::from_secs(270),
            route: Route::Auto,
            tools: Guard::Rules,
            rules: Vec::new(),
            webhook: None,
            notify: Notify::Auto,
            questions_per_call: 20,
            questions_per_minute: 30,
        }
    }
}

/// The party that answers servers' questions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Route {
    /// The client if it can, otherwise the user.
    #[default]
    Auto,
    /// The client.
    Client,
    /// The user, at the console or the command line.
    Human,
}

/// The tool calls that need approval if no rule matches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Guard {
    /// Only calls that match a rule; `"rules"` for all servers, `"never"` for one.
    #[default]
    Rules,
    /// Calls that may destroy something.
    Destructive,
    /// Calls that may change something.
    Writes,
    /// All calls.
    All,
}

impl Guard {
    /// The value in the global configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Rules => "rules",
            Self::Destructive => "destructive",
            Self::Writes => "writes",
            Self::All => "all",
        }
    }

    /// Parses the value, in the global configuration or that of a server.
    pub(crate) fn read(written: &str) -> Self {
        match written {
            "destructive" => Self::Destructive,
            "writes" => Self::Writes,
            "all" => Self::All,
            _ => Self::Rules,
        }
    }
}

/// Desktop notifications about escalated requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Notify {
    /// If there is a desktop.
    #[default]
    Auto,
    /// Never.
    Off,
}

/// A webhook that is notified of requests.
#[derive(Clone, PartialEq, Eq)]
pub struct Webhook {
    /// The address; may contain references.
    pub url: String,
    /// The secret for the signatures of messages, usually a `${secret:…}`.
    pub secret: String,
    /// The events to send: kinds of `approval.` events, without that prefix.
    pub on: Vec<String>,
}

impl fmt::Debug for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Webhook")
            .field("url", &Url(&self.url))
            .field("secret", &Hidden)
            .field("on", &self.on)
            .finish()
    }
}

/// Models for servers that request sampling.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sampling {
    /// The provider of the model.
    pub provider: Option<Provider>,
    /// `true` if the user reviews the answer before the server gets it.
    pub review: bool,
    /// The limits of each server for answers that a rule allows without approval.
    pub budget: Budget,
}

/// The limits of each server for a model's answers that a rule allows without approval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Budget {
    /// The most requests during one call.
    pub requests_per_call: u64,
    /// The most requests per hour.
    pub requests_per_hour: u64,
    /// The most requests per day.
    pub requests_per_day: u64,
    /// The most input and output tokens per hour.
    pub tokens_per_hour: u64,
    /// The most input and output tokens per day.
    pub tokens_per_day: u64,
    /// The highest cost per day, in the currency of the prices; unlimited if absent.
    pub cost_per_day: Option<f64>,
    /// The longest request, in bytes.
    pub prompt_bytes: u64,
    /// The most concurrent requests; more of them wait.
    pub concurrent: usize,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            requests_per_call: 10,
            requests_per_hour: 100,
            requests_per_day: 500,
            tokens_per_hour: 500_000,
            tokens_per_day: 2_000_000,
            cost_per_day: None,
            prompt_bytes: 256 * 1024,
            concurrent: 2,
        }
    }
}

/// A model behind an HTTP interface.
#[derive(Clone, PartialEq)]
pub struct Provider {
    /// The kind of interface.
    pub kind: ProviderKind,
    /// Address; `None` means the public address of the kind.
    pub base_url: Option<String>,
    /// The default model.
    pub model: String,
    /// Other models that servers may request.
    pub models: Vec<String>,
    /// The API key, usually a `${secret:…}`.
    pub api_key: Option<String>,
    /// The most tokens of an answer, an upper bound for requests.
    pub max_tokens: u64,
    /// Timeout of an answer.
    pub timeout: Duration,
    /// Prices of tokens.
    pub prices: Option<Prices>,
}

impl fmt::Debug for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Provider")
            .field("kind", &self.kind)
            .field("base_url", &self.base_url.as_deref().map(Url))
            .field("model", &self.model)
            .field("models", &self.models)
            .field("api_key", &self.api_key.as_ref().map(|_| Hidden))
            .field("max_tokens", &self.max_tokens)
            .field("timeout", &self.timeout)
            .field("prices", &self.prices)
            .finish()
    }
}

/// Prices of a million tokens, in any one currency.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prices {
    /// Price of input tokens.
    pub input: f64,
    /// Price of output tokens.
    pub output: f64,
}

/// The kind of interface of a model provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProviderKind {
    /// Chat completions as defined by `OpenAI`, which most local servers support too.
    OpenAi,
    /// Anthropic's messages.
    Anthropic,
}
