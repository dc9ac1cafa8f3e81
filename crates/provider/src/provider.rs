//! [`Provider`]: the client of a model.

use std::{fmt, sync::Arc, time::Duration};

use reqwest::{
    Client, RequestBuilder,
    header::{AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue},
};
use serde::{Serialize, Serializer};
use switchboard_wire::Raw;
use tokio::time::Instant;

use crate::{
    address::Address,
    answer::{Flaw, holds},
    anthropic,
    ask::Ask,
    choice,
    error::{ProviderError, Said},
    exchange::{self, About},
    names::Names,
    openai::{self, Dialect},
    settings::{Kind, Settings},
};

/// A shorter key, such as `ollama`, protects nothing, and may appear in any response by chance.
const KEY_MIN: usize = 16;
const X_API_KEY: HeaderName = HeaderName::from_static("x-api-key");
const ANTHROPIC_VERSION: HeaderName = HeaderName::from_static("anthropic-version");

/// The client of a model. Cheap to clone.
#[derive(Clone)]
pub struct Provider(Arc<Inner>);

struct Inner {
    settings: Settings,
    /// The default first, without duplicates.
    models: Vec<String>,
    address: Address,
    key: Option<(HeaderName, HeaderValue)>,
    client: Client,
}

/// A response of a model, ready to be delivered.
#[derive(Debug, Clone)]
pub struct Generated {
    /// The `CreateMessageResult`.
    pub result: Raw,
    /// Tokens, cost and time that it took.
    pub usage: Usage,
}

/// Tokens, cost and time of a response.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    /// The model's name, as it reports it.
    pub model: String,
    /// Tokens of the request, if the provider reports them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// Tokens of the response, if the provider reports them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// Cost of the tokens, if prices are configured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// Elapsed time; in JSON as `seconds`.
    #[serde(rename = "seconds", serialize_with = "seconds")]
    pub took: Duration,
}

impl Provider {
    /// Creates a provider. Does not connect yet.
    pub fn new(settings: Settings) -> Result<Self, ProviderError> {
        let key = settings.api_key.as_deref().filter(|key| !key.is_empty());
        let address = Address::new(settings.kind, settings.base_url.as_deref(), key.is_some())?;
        let key = key.map(|key| header(settings.kind, key)).transpose()?;
        let mut models = vec![settings.model.clone()];
        for model in &settings.models {
            if !models.contains(model) {
                models.push(model.clone());
            }
        }
        if models.iter().any(String::is_empty) {
            return Err(ProviderError::settings("a model has an empty name"));
        }
        let client = exchange::client(&address)?;
        Ok(Self(Arc::new(Inner {
            settings,
            models,
            address,
            key,
            client,
        })))
    }

    /// The models that can be used, the default first.
    pub fn models(&self) -> &[String] {
        &self.0.models
    }

    /// Selects the model for these params: the one that the approver chose, else the first that fits one of
    /// the server's hints, else the default.
    pub fn choose(&self, params: &Raw, model: Option<&str>) -> Result<&str, ProviderError> {
        choice::choose(&self.0.models, params, model)
    }

    /// The most tokens that a response to these params may have, and its cost with `input` tokens in the
    /// request, if prices are configured.
    pub fn most(&self, params: &Raw, input: u64) -> (u64, Option<f64>) {
        let settings = &self.0.settings;
        let wanted = params.member("maxTokens");
        let wanted = wanted.and_then(|number| number.as_str().parse().ok());
        let output = [wanted, settings.max_tokens].into_iter().flatten().min();
        let output = output.unwrap_or(anthropic::MAX_TOKENS);
        let cost = settings.prices.map(|prices| prices.of(input, output));
        (output, cost)
    }

    /// Sends the params of `sampling/createMessage` to a model; `model` is the approver's choice.
    pub async fn generate(
        &self,
        params: &Raw,
        model: Option<&str>,
    ) -> Result<Generated, ProviderError> {
        let started = Instant::now();
        let inner = &*self.0;
        let model = self.choose(params, model)?;
        let mut ask = Ask::read(params)?;
        let names = Names::fit(&mut ask);
        let body = inner.body(&ask, model)?.bytes();
        let about = About {
            address: &inner.address,
            model,
            key: inner.secret(),
            timeout: inner.settings.timeout,
        };
        let body = about.exchange(|| inner.request(body.clone())).await?;
        let answer = match inner.settings.kind {
            Kind::OpenAi => openai::answer(&body, &ask.stops),
            Kind::Anthropic => anthropic::answer(&body),
        };
        let flawed = |flaw| match flaw {
            Flaw::Odd(reason) => about.odd(reason),
            Flaw::Refused(said) => ProviderError::Refused {
                model: model.to_owned(),
                said: Said::new(&said, about.key),
            },
        };
        let mut answer = answer.map_err(flawed)?;
        names.restore(&mut answer);
        let usage = Usage {
            model: answer.model.clone().unwrap_or_else(|| model.to_owned()),
            input_tokens: answer.input_tokens,
            output_tokens: answer.output_tokens,
            cost: inner.cost(answer.input_tokens, answer.output_tokens),
            took: started.elapsed(),
        };
        let result = answer
            .into_result(model, !ask.tools.is_empty())
            .map_err(flawed)?;
        if let Some(key) = about.key.filter(|key| key.len() >= KEY_MIN)
            && holds(&result, key).ok_or_else(|| about.odd("it is nested too deeply"))?
        {
            let address = about.shown();
            return Err(ProviderError::KeyInAnswer { address });
        }
        Ok(Generated { result, usage })
    }
}

impl Inner {
    fn body(&self, ask: &Ask, model: &str) -> Result<Raw, ProviderError> {
        let bounds = [ask.max_tokens, self.settings.max_tokens];
        let max_tokens = bounds.into_iter().flatten().min();
        match self.settings.kind {
            Kind::OpenAi => {
                let dialect = if self.address.is_openai() {
                    Dialect::Author
                } else {
                    Dialect::Others
                };
                openai::body(ask, model, max_tokens, dialect)
            }
            Kind::Anthropic => anthropic::body(ask, model, max_tokens),
        }
    }

    fn request(&self, body: impl Into<reqwest::Body>) -> RequestBuilder {
        let mut request = self
            .client
            .post(self.address.url.clone())
            .header(CONTENT_TYPE, "application/json")
            .body(body);
        if let Some((name, value)) = &self.key {
            request = request.header(name, value);
        }
        if self.settings.kind == Kind::Anthropic {
            request = request.header(ANTHROPIC_VERSION, "2023-06-01");
        }
        request
    }

    fn secret(&self) -> Option<&str> {
        self.settings
            .api_key
            .as_deref()
            .filter(|key| !key.is_empty())
    }

    fn cost(&self, input: Option<u64>, output: Option<u64>) -> Option<f64> {
        Some(self.settings.prices?.of(input?, output?))
    }
}

impl fmt::Debug for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Provider").field(&self.0.settings).finish()
    }
}

/// The header that carries the key.
fn header(kind: Kind, key: &str) -> Result<(HeaderName, HeaderValue), ProviderError> {
    let (name, text) = match kind {
        Kind::OpenAi => (AUTHORIZATION, format!("Bearer {key}")),
        Kind::Anthropic => (X_API_KEY, key.to_owned()),
    };
    let mut value = HeaderValue::try_from(text).map_err(|_| {
        ProviderError::settings(
            "\"apiKey\" has characters that cannot be sent, such as a line break",
        )
    })?;
    value.set_sensitive(true);
    Ok((name, value))
}

fn seconds<S: Serializer>(took: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    // Milliseconds are precise enough for people.
    serializer.serialize_f64((took.as_secs_f64() * 1e3).round() / 1e3)
}
