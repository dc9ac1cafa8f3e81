//! Delivery of messages to a webhook, signed according to the Standard Webhooks specification.

use std::time::{Duration, SystemTime};

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use hmac::{Hmac, KeyInit, Mac};
use reqwest::{Client, StatusCode, Url, header::CONTENT_TYPE};
use sha2::Sha256;
use switchboard_base::{random, time};
use switchboard_client::Raw;
use switchboard_config::Webhook;
use switchboard_core::approvals::notifier::Event;

/// The time limit of one attempt.
const PATIENCE: Duration = Duration::from_secs(10);
/// The longest message, in bytes; a longer one is sent without the request, the draft, the result and the
/// decision.
const BODY_MAX: usize = 256 * 1024;
/// The prefix of a secret in base64.
const BASE64: &str = "whsec_";

/// A message for the webhook.
#[derive(Debug)]
pub(super) struct Message {
    /// The same for each attempt, so that the receiver can recognise repetitions.
    id: String,
    body: Bytes,
}

impl Message {
    pub(super) fn new(event: &Event, console: Option<&str>) -> Self {
        let console = console.map_or_else(Raw::null, Raw::string);
        let body = |approval: Raw| {
            let data = [("approval", approval), ("console", console.clone())];
            Raw::object([
                ("type", Raw::string(event.kind)),
                ("timestamp", Raw::string(&time::format(event.at))),
                ("data", Raw::object(data)),
            ])
        };
        let mut whole = body(event.approval.clone());
        if whole.as_bytes().len() > BODY_MAX {
            let long = ["request", "draft", "result", "decision", "truncated"];
            let short = event.approval.without(&long);
            let marked = short.with_member("truncated", &Raw::from(true));
            whole = body(marked.unwrap_or(short));
        }
        let random = random::secret().unwrap_or_else(|| time::format(event.at));
        Self {
            id: format!("msg_{random:.24}"),
            body: whole.bytes(),
        }
    }
}

/// A message to be delivered.
pub(super) struct Delivery {
    message: Message,
    url: String,
    key: Vec<u8>,
}

/// The reason why an attempt failed.
#[derive(Debug, thiserror::Error)]
enum DeliveryError {
    #[error("its address is not a URL")]
    Address,
    #[error("{0}")]
    Tls(#[from] switchboard_client::http::HttpConfigError),
    #[error("{0}")]
    Http(#[source] reqwest::Error),
    #[error("it redirects (status {0}), which the gateway does not follow")]
    Elsewhere(StatusCode),
    #[error("it responded with status {0}")]
    Status(StatusCode),
}

impl Delivery {
    pub(super) fn new(message: Message, webhook: &Webhook) -> Self {
        let written = webhook.secret.strip_prefix(BASE64);
        let decoded = written.and_then(|secret| STANDARD.decode(secret).ok());
        Self {
            message,
            url: webhook.url.clone(),
            key: decoded.unwrap_or_else(|| webhook.secret.clone().into_bytes()),
        }
    }

    /// Retries until the message is accepted, once for each wait in `backoff`.
    pub(super) async fn carry_out(self, backoff: &[Duration]) {
        let mut waits = backoff.iter();
        loop {
            let Err(error) = self.attempt().await else {
                return;
            };
            let Some(wait) = waits.next() else {
                // Paths of such addresses are often secrets, too.
                let host = Url::parse(&self.url)
                    .ok()
                    .and_then(|url| Some(url.host_str()?.to_owned()));
                let id = &self.message.id;
                tracing::warn!(host, id, %error, "Cannot deliver a message to the webhook.");
                return;
            };
            tokio::time::sleep(*wait).await;
        }
    }

    async fn attempt(&self) -> Result<(), DeliveryError> {
        let url = Url::parse(&self.url).map_err(|_| DeliveryError::Address)?;
        let timestamp = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let timestamp = timestamp.unwrap_or_default().as_secs().to_string();
        let request = client(&url)?
            .post(url)
            .header(CONTENT_TYPE, "application/json")
            .header("webhook-id", &self.message.id)
            .header("webhook-timestamp", &timestamp)
            .header("webhook-signature", self.signature(&timestamp))
            .body(self.message.body.clone());
        let response = request.send().await;
        // The body of the response is of no use, and is not read.
        let status = response
            .map_err(|error| DeliveryError::Http(error.without_url()))?
            .status();
        match status {
            status if status.is_success() => Ok(()),
            status if status.is_redirection() => Err(DeliveryError::Elsewhere(status)),
            status => Err(DeliveryError::Status(status)),
        }
    }

    fn signature(&self, timestamp: &str) -> String {
        // HMAC accepts a key of any length.
        let Ok(mut mac) = <Hmac<Sha256> as KeyInit>::new_from_slice(&self.key) else {
            return String::new();
        };
        for part in [
            self.message.id.as_bytes(),
            b".",
            timestamp.as_bytes(),
            b".",
            &self.message.body,
        ] {
            mac.update(part);
        }
        format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
    }
}

fn client(url: &Url) -> Result<Client, DeliveryError> {
    let mut builder = Client::builder()
        .tls_backend_preconfigured(switchboard_client::http::tls(url.scheme() == "https")?)
        .redirect(reqwest::redirect::Policy::none())
        .timeout(PATIENCE);
    if matches!(url.host_str(), Some("127.0.0.1" | "localhost" | "[::1]")) {
        // A proxy cannot reach this machine's own address for the gateway.
        builder = builder.no_proxy();
    }
    builder
        .build()
        .map_err(|error| DeliveryError::Http(error.without_url()))
}
