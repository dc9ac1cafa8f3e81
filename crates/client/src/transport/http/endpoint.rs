//! The URL of a server, and the requests to it.
//!
//! All requests go to one origin, the configured one: a redirect or a URL from the server is accepted only if
//! it has the same origin. A server can therefore not redirect credentials.

use std::{
    fmt,
    sync::{Arc, OnceLock},
    time::Duration,
};

use bytes::Bytes;
use reqwest::{
    Client, ClientBuilder, Method, Response, StatusCode, Url,
    header::{HeaderMap, HeaderName, HeaderValue, LOCATION},
    redirect::Policy,
};
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt;
use switchboard_wire::{header, limits};

use super::{super::RequestFailure, failure};
use crate::{
    auth::{self, OAuth, Token},
    throttle::Limited,
};

/// Time limit for connecting to the server.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The most consecutive redirects that are followed.
const REDIRECTS: usize = 5;

/// The most attempts of a request, with another token each: the first new one may be another process's, and expired.
const ATTEMPTS: u32 = 3;

/// The headers that the transport sets itself, or that HTTP defines.
const RESERVED: [&str; 12] = [
    "accept",
    "connection",
    "content-length",
    "content-type",
    "te",
    "transfer-encoding",
    "upgrade",
    header::LAST_EVENT_ID,
    header::METHOD,
    header::NAME,
    header::PROTOCOL_VERSION,
    header::SESSION_ID,
];

/// The reason why a URL or a header cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HttpConfigError {
    /// The text is not a URL.
    #[error("not a URL: {reason}")]
    NotAUrl {
        /// The fault.
        reason: String,
    },
    /// The scheme of the URL is neither `http` nor `https`.
    #[error("the URL must start with http: or https:, not `{scheme}:`")]
    Scheme {
        /// The scheme.
        scheme: String,
    },
    /// The name is not a valid header name.
    #[error("{name:?} cannot be the name of a header")]
    HeaderName {
        /// The name.
        name: String,
    },
    /// The value is not a valid header value.
    #[error("the value of the header `{name}` has characters that cannot be sent")]
    HeaderValue {
        /// The name of the header. The value is omitted because it may be a secret.
        name: String,
    },
    /// The protocol sets this header itself.
    #[error("the header `{name}` is set by the protocol")]
    ReservedHeader {
        /// The name of the header.
        name: String,
    },
    /// The sign-in is for a server of another origin, which must not get its tokens.
    #[error("the sign-in is for another server")]
    OtherServer,
    /// TLS cannot be set up, usually because no root certificates are installed.
    #[error("cannot set up TLS: {reason}")]
    Tls {
        /// The cause.
        reason: String,
    },
}

/// The reason why a request got no response.
#[derive(Debug)]
pub(in crate::transport) enum RequestError {
    /// The server cannot be reached; nothing was sent.
    Unreachable(String),
    /// The request failed after it was sent, or must not be sent.
    Failed {
        status: Option<StatusCode>,
        reason: String,
        /// The beginning of the server's message.
        said: Option<Arc<str>>,
    },
}

/// A server: its URL, the headers of all requests, and the connection pool.
#[derive(Clone)]
pub(in crate::transport) struct Endpoint {
    client: Client,
    url: Url,
    headers: HeaderMap,
    /// The sign-in, which adds tokens to the requests.
    oauth: Option<OAuth>,
    /// The largest message to accept, in bytes.
    pub(in crate::transport) limit: usize,
    /// Limits the warnings about messages that the server did not accept.
    pub(in crate::transport) undelivered: Arc<Limited>,
}

/// Reads the URL of a server.
pub(crate) fn server_url(address: &str) -> Result<Url, HttpConfigError> {
    let not_a_url = |reason: &str| HttpConfigError::NotAUrl {
        reason: reason.to_owned(),
    };
    // The parser reads a backslash as a slash and drops line breaks, and a `#` ends the host: each would
    // lead to another host than the URL seems to.
    let is_odd = |c: char| c.is_whitespace() || c.is_control() || matches!(c, '\\' | '#');
    if address.contains(is_odd) {
        return Err(not_a_url("it has a space, a backslash or a `#`"));
    }
    let url = Url::parse(address).map_err(|error| not_a_url(&error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        let scheme = url.scheme().to_owned();
        return Err(HttpConfigError::Scheme { scheme });
    }
    Ok(url)
}

impl Endpoint {
    pub(in crate::transport) fn new(address: &str) -> Result<Self, HttpConfigError> {
        let url = server_url(address)?;
        Ok(Self {
            client: client(&url)?,
            url,
            headers: HeaderMap::new(),
            oauth: None,
            limit: limits::FRAME_BYTES,
            undelivered: Arc::default(),
        })
    }

    pub(in crate::transport) fn add_header(
        &mut self,
        name: &str,
        value: &str,
    ) -> Result<(), HttpConfigError> {
        let name = name.to_ascii_lowercase();
        if RESERVED.contains(&name.as_str()) || name.starts_with(header::PARAM_PREFIX) {
            return Err(HttpConfigError::ReservedHeader { name });
        }
        let Ok(key) = HeaderName::from_bytes(name.as_bytes()) else {
            return Err(HttpConfigError::HeaderName { name });
        };
        let Ok(mut value) = HeaderValue::from_bytes(value.as_bytes()) else {
            return Err(HttpConfigError::HeaderValue { name });
        };
        value.set_sensitive(true);
        self.headers.insert(key, value);
        Ok(())
    }

    /// Adds the tokens of this sign-in to all requests.
    pub(in crate::transport) fn set_oauth(&mut self, oauth: &OAuth) -> Result<(), HttpConfigError> {
        if *oauth.origin() != self.url.origin() {
            return Err(HttpConfigError::OtherServer);
        }
        self.oauth = Some(oauth.clone());
        Ok(())
    }

    pub(in crate::transport) fn url(&self) -> &Url {
        &self.url
    }

    /// Returns the URL without the parts that may be secret.
    pub(in crate::transport) fn address(&self) -> String {
        display(&self.url)
    }

    /// Resolves `reference` relative to `base`. Only URLs of this endpoint's origin are accepted. The error
    /// holds the reason and the URL.
    pub(in crate::transport) fn resolve(
        &self,
        base: &Url,
        reference: &str,
    ) -> Result<Url, (String, Option<Arc<str>>)> {
        let mut target = base
            .join(reference)
            .map_err(|error| (format!("leads to an invalid address ({error})"), None))?;
        if target.origin() != self.url.origin() {
            let target = failure::said(display(&target).as_bytes());
            let reason =
                "leads to another origin; if you trust it, configure that address".to_owned();
            return Err((reason, target));
        }
        target.set_fragment(None);
        // Only our credentials are used. Neither call fails for a URL that has a host.
        let _ = target.set_username(self.url.username());
        let _ = target.set_password(self.url.password());
        Ok(target)
    }

    /// Sends a request, follows redirects within the origin, and waits for the head of the response. A request that the
    /// server refuses is repeated if there is a new token.
    pub(in crate::transport) async fn request(
        &self,
        method: Method,
        url: &Url,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Response, RequestError> {
        let Some(oauth) = &self.oauth else {
            return self.follow(method, url, headers, body, None).await;
        };
        let mut token = oauth.token().await;
        let (mut attempts, mut has_nonce) = (1, false);
        loop {
            let (headers, body) = (headers.clone(), body.clone());
            let response = self.follow(method.clone(), url, headers, body, token.as_ref());
            let response = response.await?;
            if token.as_ref().is_some_and(|token| token.note(&response)) {
                if has_nonce {
                    // Another one is of no use, and the token is not at fault.
                    return Ok(response);
                }
                has_nonce = true;
                continue;
            }
            if !auth::is_refusal(&response) {
                if response.status().is_success() {
                    oauth.accepted(token.as_ref(), attempts > 1);
                }
                return Ok(response);
            }
            if attempts == ATTEMPTS {
                return Ok(response);
            }
            match oauth.refused(token, &response).await {
                Some(new) => token = Some(new),
                None => return Ok(response),
            }
            attempts += 1;
        }
    }

    async fn follow(
        &self,
        method: Method,
        url: &Url,
        mut headers: HeaderMap,
        body: Bytes,
        token: Option<&Token>,
    ) -> Result<Response, RequestError> {
        let mut url = url.clone();
        for _ in 0..=REDIRECTS {
            if let Some(token) = token {
                // A proof is for one address.
                token.attach(&method, &url, &mut headers);
            }
            let request = self
                .client
                .request(method.clone(), url.clone())
                .headers(self.headers.clone())
                .headers(headers.clone())
                .body(body.clone());
            let response = request
                .send()
                .await
                .map_err(|error| RequestError::from(&error))?;
            let Some(location) = redirect(&method, &response) else {
                return Ok(response);
            };
            url = self
                .resolve(&url, location)
                .map_err(|(reason, said)| RequestError::Failed {
                    status: Some(response.status()),
                    reason: format!("the redirect {reason}"),
                    said,
                })?;
        }
        Err(RequestError::Failed {
            status: None,
            reason: format!("more than {REDIRECTS} redirects"),
            said: None,
        })
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.address())
    }
}

impl RequestError {
    /// Describes the error, with the name and the address of the request.
    pub(in crate::transport) fn failure(&self, what: &str, endpoint: &Endpoint) -> RequestFailure {
        match self {
            Self::Unreachable(reason) => RequestFailure {
                sent: false,
                ..failure::failure(what, endpoint, None, reason)
            },
            Self::Failed {
                status,
                reason,
                said,
            } => RequestFailure {
                said: said.clone(),
                ..failure::failure(what, endpoint, *status, reason)
            },
        }
    }
}

impl From<&reqwest::Error> for RequestError {
    fn from(error: &reqwest::Error) -> Self {
        let cause = failure::cause(error);
        if error.is_connect() {
            Self::Unreachable(format!("cannot reach the server: {cause}"))
        } else {
            Self::Failed {
                status: None,
                reason: cause,
                said: None,
            }
        }
    }
}

/// Returns the location to repeat the same request at. A redirect that turns a POST into a GET is not
/// followed: the result would not be the response to the message.
fn redirect<'a>(method: &Method, response: &'a Response) -> Option<&'a str> {
    let follow = match response.status() {
        StatusCode::MOVED_PERMANENTLY
        | StatusCode::FOUND
        | StatusCode::TEMPORARY_REDIRECT
        | StatusCode::PERMANENT_REDIRECT => true,
        StatusCode::SEE_OTHER => *method == Method::GET,
        _ => false,
    };
    response
        .headers()
        .get(LOCATION)
        .filter(|_| follow)
        .and_then(|location| location.to_str().ok())
}

/// Returns the scheme, host and port of a URL. All other parts may be secret, including the path.
fn display(url: &Url) -> String {
    let scheme = url.scheme();
    match (url.host_str(), url.port()) {
        (Some(host), Some(port)) => format!("{scheme}://{host}:{port}"),
        (Some(host), None) => format!("{scheme}://{host}"),
        (None, _) => format!("{scheme}:"),
    }
}

fn client(url: &Url) -> Result<Client, HttpConfigError> {
    let builder = client_builder(url.scheme() == "https", is_loopback(url))?;
    builder.build().map_err(|error| HttpConfigError::Tls {
        reason: failure::cause(&error),
    })
}

/// Returns the settings of all HTTP clients. Unless `needs_tls`, a machine without certificates is not an error.
pub(crate) fn client_builder(
    needs_tls: bool,
    is_loopback: bool,
) -> Result<ClientBuilder, HttpConfigError> {
    let mut builder = Client::builder()
        .tls_backend_preconfigured(tls(needs_tls)?)
        .redirect(Policy::none())
        .referer(false)
        .connect_timeout(CONNECT_TIMEOUT)
        .user_agent(concat!("switchboard/", env!("CARGO_PKG_VERSION")));
    if is_loopback {
        // A proxy cannot reach the loopback address of this machine.
        builder = builder.no_proxy();
    }
    Ok(builder)
}

/// Returns a TLS configuration that uses the platform's root certificates and ring, regardless of the crypto
/// provider that the process has installed. Other HTTP clients of the same program can use it, too. Unless
/// `required`, a machine without certificates is not an error.
pub fn tls(required: bool) -> Result<ClientConfig, HttpConfigError> {
    // Reading the platform's certificates takes milliseconds, and keeping them takes memory.
    static SHARED: OnceLock<ClientConfig> = OnceLock::new();
    if let Some(config) = SHARED.get() {
        return Ok(config.clone());
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| no_tls(&error))?;
    match builder.clone().with_platform_verifier() {
        Ok(verified) => {
            let mut config = verified.with_no_client_auth();
            config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
            Ok(SHARED.get_or_init(|| config).clone())
        }
        Err(error) if required => Err(no_tls(&error)),
        // A machine without certificates can still use plain HTTP.
        Err(_) => Ok(builder
            .with_root_certificates(RootCertStore::empty())
            .with_no_client_auth()),
    }
}

fn no_tls(error: &rustls::Error) -> HttpConfigError {
    HttpConfigError::Tls {
        reason: error.to_string(),
    }
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let ip = host.trim_start_matches('[').trim_end_matches(']').parse();
    match ip {
        Ok(ip) => std::net::IpAddr::is_loopback(&ip),
        Err(_) => host == "localhost" || host.ends_with(".localhost"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(url: &str) -> Endpoint {
        Endpoint::new(url).unwrap()
    }

    #[test]
    fn only_http_urls_are_accepted() {
        for good in [
            "http://localhost:1/mcp",
            "https://example.com",
            "HTTP://[::1]/x",
        ] {
            assert!(Endpoint::new(good).is_ok(), "{good}");
        }
        for bad in ["", "/mcp", "example.com/mcp", "http://", "http://[::1"] {
            assert!(
                matches!(Endpoint::new(bad), Err(HttpConfigError::NotAUrl { .. })),
                "{bad}"
            );
        }
        for bad in ["ftp://example.com", "file:///etc/passwd", "localhost:80"] {
            assert!(
                matches!(Endpoint::new(bad), Err(HttpConfigError::Scheme { .. })),
                "{bad}"
            );
        }
    }

    #[test]
    fn address_contains_no_secrets() {
        let endpoint = endpoint("https://user:secret@example.com:8443/s/secret/mcp?key=secret");
        assert_eq!(endpoint.address(), "https://example.com:8443");
    }

    #[test]
    fn characters_that_move_the_host_are_rejected() {
        for odd in ["#", "\\", "\t", " ", "\n"] {
            let bad = format!("http://127.0.0.1:1{odd}@example.com/mcp");
            assert!(
                matches!(Endpoint::new(&bad), Err(HttpConfigError::NotAUrl { .. })),
                "{bad:?}"
            );
        }
    }

    #[test]
    fn other_origins_are_rejected() {
        let endpoint = endpoint("https://u:p@example.com/a/sse?key=1");
        let resolve = |reference| endpoint.resolve(endpoint.url(), reference);
        for (reference, target) in [
            ("/messages?s=1", "https://u:p@example.com/messages?s=1"),
            ("messages", "https://u:p@example.com/a/messages"),
            ("?s=1", "https://u:p@example.com/a/sse?s=1"),
            ("https://example.com:443/m#f", "https://u:p@example.com/m"),
            ("//x:y@example.com/m", "https://u:p@example.com/m"),
        ] {
            assert_eq!(resolve(reference).unwrap().as_str(), target, "{reference}");
        }
        for reference in [
            "http://example.com/m",
            "https://example.com:8443/m",
            "https://evil.example/m",
            "//evil.example/m",
            "https://example.com.evil.example/m",
            "https://example.com@evil.example/m",
            "\\\\evil.example\\m",
            "file:///m",
            "data:,x",
        ] {
            let (error, target) = resolve(reference).unwrap_err();
            assert!(error.contains("another origin"), "{reference}: {error}");
            assert!(!error.contains("evil"), "{error}");
            assert!(!target.unwrap().contains("u:p"), "{reference}");
        }
        assert!(
            resolve("https://[")
                .unwrap_err()
                .0
                .contains("leads to an invalid address")
        );
    }

    #[test]
    fn headers_are_checked_and_kept_secret() {
        let mut endpoint = endpoint("http://localhost/");
        endpoint
            .add_header("Authorization", "Bearer secret")
            .unwrap();
        assert!(!format!("{:?}", endpoint.headers).contains("secret"));
        let mut refuse = |name, value| endpoint.add_header(name, value).unwrap_err().to_string();
        assert_eq!(refuse("a b", "c"), "\"a b\" cannot be the name of a header");
        let error = refuse("x-key", "secret\n");
        assert!(
            error.contains("x-key") && !error.contains("secret"),
            "{error}"
        );
        for name in [
            "Accept",
            "MCP-Protocol-Version",
            "mcp-param-region",
            "Mcp-Session-Id",
        ] {
            assert!(refuse(name, "x").contains("set by the protocol"), "{name}");
        }
    }

    #[test]
    fn loopback_is_recognised() {
        for (url, loopback) in [
            ("http://localhost/", true),
            ("http://a.localhost/", true),
            ("http://127.8.9.1/", true),
            ("http://[::1]:8/", true),
            ("http://10.0.0.1/", false),
            ("http://localhost.example/", false),
            ("http://[::2]/", false),
        ] {
            assert_eq!(is_loopback(&Url::parse(url).unwrap()), loopback, "{url}");
        }
    }
}
