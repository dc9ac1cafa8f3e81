//! What the configuration says about asking a person, and about a model that answers.

use std::fmt;
use std::time::Duration;

use serde_json::Value;

use super::{Hidden, Url};

/// Asking a human.
#[derive(Clone, Debug, PartialEq)]
pub struct Approvals {
    /// After this long a request becomes louder.
    pub short_timeout: Duration,
    /// After this much longer it times out.
    pub long_timeout: Duration,
    /// Who answers.
    pub route: Route,
    /// Which calls of tools are asked about where no rule says otherwise.
    pub tools: Guard,
    /// Rules as they are written; the approvals part reads them.
    pub rules: Vec<Value>,
    /// Who is told over HTTP.
    pub webhook: Option<Webhook>,
    /// Whether the desktop shows a request that became louder.
    pub notify: Notify,
    /// The most questions of a server in one call.
    pub questions_per_call: u64,
    /// The most questions of a server in a minute.
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

/// Who answers what servers ask.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Route {
    /// The client where it can, else the person.
    #[default]
    Auto,
    /// The client.
    Client,
    /// The person at the console or the command line.
    Human,
}

/// Which calls of tools are asked about where no rule says otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Guard {
    /// Those that a rule names; `"rules"` for all servers, `"never"` for one.
    #[default]
    Rules,
    /// Those that may destroy something.
    Destructive,
    /// Those that may change something.
    Writes,
    /// All.
    All,
}

impl Guard {
    /// As it is written for all servers.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Rules => "rules",
            Self::Destructive => "destructive",
            Self::Writes => "writes",
            Self::All => "all",
        }
    }

    /// The guard that is written so, for all servers or for one.
    pub(crate) fn read(written: &str) -> Self {
        match written {
            "destructive" => Self::Destructive,
            "writes" => Self::Writes,
            "all" => Self::All,
            _ => Self::Rules,
        }
    }
}

/// Whether the desktop shows a request that became louder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Notify {
    /// Where there is a desktop.
    #[default]
    Auto,
    /// Never.
    Off,
}

/// An address that is told about requests.
#[derive(Clone, PartialEq, Eq)]
pub struct Webhook {
    /// Where it is; may hold references.
    pub url: String,
    /// What the messages are signed with, usually a `${secret:…}`.
    pub secret: String,
    /// What it is told about: kinds of `approval.` events, without that beginning.
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

/// Generating for servers that ask for a model's answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sampling {
    /// Who generates.
    pub provider: Option<Provider>,
    /// Whether a person sees the answer before the server does.
    pub review: bool,
    /// The limits of each server for answers that a rule allows without a person.
    pub budget: Budget,
}

/// The limits of each server for answers of a model that a rule allows without a person.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Budget {
    /// Requests in one call.
    pub requests_per_call: u64,
    /// Requests in an hour.
    pub requests_per_hour: u64,
    /// Requests in a day.
    pub requests_per_day: u64,
    /// Tokens read and written in an hour.
    pub tokens_per_hour: u64,
    /// Tokens read and written in a day.
    pub tokens_per_day: u64,
    /// The cost of a day, in the currency of the prices; no limit unless given.
    pub cost_per_day: Option<f64>,
    /// The length of a request, in bytes.
    pub prompt_bytes: u64,
    /// Requests at a time; more wait.
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
    /// The interface it speaks.
    pub kind: ProviderKind,
    /// Where it is; absent means the kind's own public address.
    pub base_url: Option<String>,
    /// The model to ask for.
    pub model: String,
    /// Further models that may be asked for.
    pub models: Vec<String>,
    /// The key to show, usually a `${secret:…}`.
    pub api_key: Option<String>,
    /// The most tokens of an answer, whatever is asked for.
    pub max_tokens: u64,
    /// How long an answer may take.
    pub timeout: Duration,
    /// What tokens cost.
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

/// What a million tokens cost, in any one currency.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prices {
    /// Of the request.
    pub input: f64,
    /// Of the answer.
    pub output: f64,
}

/// The interface of a model provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProviderKind {
    /// Chat completions as `OpenAI` defined them, which most local servers speak too.
    OpenAi,
    /// Anthropic's messages.
    Anthropic,
}
