//! One request and its response over HTTP: at most two attempts, a bounded body, no redirects.

use std::time::Duration;

use reqwest::{Client, RequestBuilder, Response, StatusCode, header};
use switchboard_wire::Raw;
use tokio::time::{Instant, sleep, timeout_at};

use crate::{
    address::Address,
    answer::complaint,
    error::{ProviderError, Said},
};

/// The most bytes of a response that are read.
const BODY_MAX: usize = 8 * 1024 * 1024;
/// The most bytes of an error response that are read.
const REFUSAL_MAX: usize = 64 * 1024;
/// Time to wait before the second attempt if the response does not set it, and the longest wait.
const WAIT: Duration = Duration::from_millis(500);
const WAIT_MAX: Duration = Duration::from_secs(5);
const CONNECT: Duration = Duration::from_secs(10);

/// Creates the client for one address. It follows no redirects, since the key is for that address alone, and
/// keeps no idle connections, since one that the provider has closed looks like a request that broke off.
pub(crate) fn client(address: &Address) -> Result<Client, ProviderError> {
    let tls = switchboard_client::http::tls(address.url.scheme() == "https")
        .map_err(|error| ProviderError::settings(error.to_string()))?;
    let mut builder = Client::builder()
        .tls_backend_preconfigured(tls)
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .connect_timeout(CONNECT)
        .pool_max_idle_per_host(0);
    if address.is_own {
        builder = builder.no_proxy();
    }
    builder
        .build()
        .map_err(|error| ProviderError::settings(error.without_url().to_string()))
}

/// Context of an exchange, for its errors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct About<'a> {
    pub(crate) address: &'a Address,
    pub(crate) model: &'a str,
    pub(crate) key: Option<&'a str>,
    pub(crate) timeout: Duration,
}

impl About<'_> {
    /// Sends the request, twice if the first attempt fails in a way that allows a retry, and reads the
    /// response.
    pub(crate) async fn exchange(
        &self,
        request: impl Fn() -> RequestBuilder,
    ) -> Result<Raw, ProviderError> {
        let deadline = Instant::now() + self.timeout;
        let exchange = async {
            let first = match self.attempt(request()).await {
                Err(failure) => failure,
                Ok(body) => return Ok(body),
            };
            match first.again {
                Some(wait) if Instant::now() + wait < deadline => sleep(wait).await,
                _ => return Err(first.error),
            }
            self.attempt(request())
                .await
                .map_err(|failure| failure.error)
        };
        let late = || ProviderError::TimedOut {
            address: self.shown(),
            after: self.timeout,
        };
        timeout_at(deadline, exchange)
            .await
            .unwrap_or_else(|_| Err(late()))
    }

    async fn attempt(&self, request: RequestBuilder) -> Result<Raw, AttemptError> {
        let response = match request.send().await {
            Ok(response) => response,
            Err(error) if error.is_connect() => {
                let source = error.without_url();
                let address = self.shown();
                return Err(AttemptError {
                    error: ProviderError::Unreachable { address, source },
                    again: Some(WAIT),
                });
            }
            // The request was sent, and may have been billed.
            Err(error) => return Err(self.interrupted(error).into()),
        };
        let status = response.status();
        if !status.is_success() {
            return Err(self.refusal(response).await);
        }
        let Some(body) = self.read(response, BODY_MAX).await? else {
            let (address, limit) = (self.shown(), BODY_MAX);
            return Err(ProviderError::TooLarge { address, limit }.into());
        };
        Raw::parse(body).map_err(|_| self.odd("it is not JSON").into())
    }

    /// The error for a refused request, and whether a retry may help.
    async fn refusal(&self, response: Response) -> AttemptError {
        let status = response.status();
        let address = self.shown();
        let code = status.as_u16();
        if status.is_redirection() {
            return ProviderError::Redirect {
                address,
                status: code,
            }
            .into();
        }
        if matches!(code, 401 | 403) {
            // The message often repeats a part of the key.
            return ProviderError::Key {
                address,
                status: code,
            }
            .into();
        }
        let after = retry_after(&response);
        let is_plain = response
            .headers()
            .get(header::CONTENT_TYPE)
            .is_some_and(|kind| kind.as_bytes().starts_with(b"text/plain"));
        let body = self.read(response, REFUSAL_MAX).await.ok().flatten();
        let said = self.said(&body.unwrap_or_default(), is_plain);
        let error = match status {
            StatusCode::NOT_FOUND => ProviderError::NotFound {
                address,
                model: self.model.to_owned(),
                said,
            },
            StatusCode::TOO_MANY_REQUESTS => ProviderError::Busy {
                address,
                after,
                said,
            },
            _ => ProviderError::Status {
                address,
                status: code,
                said,
            },
        };
        // With any other status the request may have been processed, and billed.
        let may_pass = matches!(code, 429 | 503 | 529);
        let wait = after.unwrap_or(WAIT);
        AttemptError {
            error,
            again: (may_pass && wait <= WAIT_MAX).then_some(wait),
        }
    }

    fn said(&self, body: &[u8], is_plain: bool) -> Said {
        let complaint = Raw::parse(body.to_vec())
            .ok()
            .and_then(|body| complaint(&body));
        let complaint = match complaint {
            None if is_plain => Some(String::from_utf8_lossy(body).into_owned()),
            complaint => complaint,
        };
        Said::new(&complaint.unwrap_or_default(), self.key)
    }

    /// Reads the body; `None` if it is longer than `max` bytes.
    async fn read(
        &self,
        mut response: Response,
        max: usize,
    ) -> Result<Option<Vec<u8>>, ProviderError> {
        let mut body = Vec::new();
        loop {
            let chunk = response
                .chunk()
                .await
                .map_err(|error| self.interrupted(error))?;
            let Some(chunk) = chunk else {
                return Ok(Some(body));
            };
            if body.len() + chunk.len() > max {
                return Ok(None);
            }
            body.extend_from_slice(&chunk);
        }
    }

    pub(crate) fn odd(&self, reason: impl AsRef<str>) -> ProviderError {
        ProviderError::Answer {
            address: self.shown(),
            reason: Said::new(reason.as_ref(), self.key)
                .text()
                .unwrap_or_default()
                .to_owned(),
        }
    }

    pub(crate) fn shown(&self) -> String {
        self.address.shown.clone()
    }

    fn interrupted(&self, error: reqwest::Error) -> ProviderError {
        ProviderError::Interrupted {
            address: self.shown(),
            source: error.without_url(),
        }
    }
}

/// The error of a failed attempt.
struct AttemptError {
    error: ProviderError,
    /// Time to wait before the second attempt, if one may be made.
    again: Option<Duration>,
}

impl From<ProviderError> for AttemptError {
    fn from(error: ProviderError) -> Self {
        Self { error, again: None }
    }
}

/// The delay that the response asks for, if it is in seconds.
fn retry_after(response: &Response) -> Option<Duration> {
    let value = response.headers().get(header::RETRY_AFTER)?.to_str().ok()?;
    let seconds: f64 = value.trim().parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}
