//! Requests to authorization servers.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use reqwest::{
    Client,
    dns::{Addrs, Name, Resolve, Resolving},
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue, WWW_AUTHENTICATE},
};
use switchboard_auth::{Body, Challenge, Reach, Request, Settings};
use tokio::time::timeout;
use url::{Host, Url};

use super::token::{PROOF, nonce};
use crate::transport::http::{self, HttpConfigError};

/// The time limit of a request.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The largest response. Metadata and tokens have some kilobytes.
const LIMIT: usize = 1024 * 1024;

/// Sends requests to the hosts that a server may refer to.
#[derive(Debug)]
pub(super) struct Fetcher {
    /// The host of the server, which its user has chosen.
    host: String,
    /// The address of the identity provider, if the user has chosen one. The server must not send other requests to its
    /// host, which may be in a private network.
    provider: Option<(Url, Clients)>,
    reach: Arc<Mutex<Reach>>,
    /// Names are looked up by a proxy, whose address is that of all responses.
    pub(super) has_proxy: bool,
    clients: Clients,
}

#[derive(Debug)]
struct Clients {
    /// For this machine, which a proxy cannot reach.
    direct: Client,
    other: Client,
}

/// A response.
#[derive(Debug)]
pub(super) struct Fetched {
    pub(super) status: u16,
    pub(super) challenge: Challenge,
    pub(super) nonce: Option<String>,
    pub(super) body: bytes::Bytes,
    /// The address that sent it, if it is that of the server.
    pub(super) of_server: Option<IpAddr>,
}

impl Fetcher {
    pub(super) fn new(server: &Url, settings: &Settings) -> Result<Self, HttpConfigError> {
        let reach = Arc::new(Mutex::new(Reach::of(server)));
        let host = server.host_str().unwrap_or_default().to_owned();
        let provider = settings.identity_provider.as_ref();
        let provider = provider.and_then(|provider| Url::parse(&provider.token_url).ok());
        let proxies = proxies();
        let build = |is_local, chosen: &str| {
            let chosen = [chosen.to_owned()];
            let own = proxies.iter().cloned().chain(chosen).collect();
            let resolver = Resolver {
                own,
                reach: Arc::clone(&reach),
            };
            let builder = http::client_builder(false, is_local)?.dns_resolver(resolver);
            builder.build().map_err(|error| HttpConfigError::Tls {
                reason: http::cause(&error),
            })
        };
        let clients = |chosen: &str| {
            Ok(Clients {
                direct: build(true, chosen)?,
                other: build(false, chosen)?,
            })
        };
        let provider = match provider {
            Some(url) => {
                let clients = clients(url.host_str().unwrap_or_default())?;
                Some((url, clients))
            }
            None => None,
        };
        Ok(Self {
            clients: clients(&host)?,
            has_proxy: !proxies.is_empty(),
            reach,
            host,
            provider,
        })
    }

    /// Sends the request, and reads the response. The error is the reason why there is none.
    pub(super) fn fetch(
        &self,
        request: Request,
        proof: Option<HeaderValue>,
        reach: Reach,
    ) -> impl Future<Output = Result<Fetched, String>> + Send + use<> {
        *self.reach.lock() = reach;
        // An address in place of a name is not looked up.
        let is_address = !matches!(request.url.host(), Some(Host::Domain(_)) | None);
        let is_own = request.url.host_str() == Some(&*self.host);
        let provider = self.provider.as_ref();
        let provider = provider.filter(|(address, _)| *address == request.url);
        let is_permitted =
            !is_address || is_own || provider.is_some() || reach.permits(&request.url);
        let clients = provider.map_or(&self.clients, |(_, clients)| clients);
        let client = match Reach::of(&request.url) {
            Reach::Local => clients.direct.clone(),
            Reach::Private | Reach::Public => clients.other.clone(),
        };
        async move {
            if !is_permitted {
                return Err(NOT_PERMITTED.to_owned());
            }
            match timeout(TIMEOUT, send(&client, request, proof)).await {
                Ok(Ok(fetched)) => Ok(Fetched {
                    of_server: fetched.of_server.filter(|_| is_own),
                    ..fetched
                }),
                Ok(Err(reason)) => Err(reason),
                Err(_) => Err(format!("no response within {TIMEOUT:?}")),
            }
        }
    }
}

/// The hosts of the proxies in the environment.
fn proxies() -> Vec<String> {
    let names = [
        "HTTPS_PROXY",
        "https_proxy",
        "HTTP_PROXY",
        "http_proxy",
        "ALL_PROXY",
        "all_proxy",
    ];
    let values = names.iter().filter_map(|name| std::env::var(name).ok());
    let host = |value: String| {
        let url = Url::parse(&value).ok().filter(Url::has_host);
        let url = url.or_else(|| Url::parse(&format!("http://{value}")).ok());
        Some(url?.host_str()?.to_owned())
    };
    values.filter_map(host).collect()
}

/// The reason for not sending a request.
const NOT_PERMITTED: &str =
    "its host is in a private network or on this machine, where the server must not send anyone";

async fn send(
    client: &Client,
    request: Request,
    proof: Option<HeaderValue>,
) -> Result<Fetched, String> {
    let Request {
        url,
        authorization,
        body,
        assertion: _,
        proof: _,
    } = request;
    let mut builder = match body {
        None => client.get(url),
        Some(body) => {
            let (kind, body) = match &body {
                Body::Form(body) => ("application/x-www-form-urlencoded", body),
                Body::Json(body) => ("application/json", body),
            };
            let builder = client.post(url).header(CONTENT_TYPE, kind);
            builder.body(body.expose().to_owned())
        }
    };
    builder = builder.header(ACCEPT, "application/json");
    if let Some(authorization) = authorization {
        let mut value = HeaderValue::from_str(authorization.expose())
            .map_err(|_| "the client's ID or secret cannot be sent in a header".to_owned())?;
        value.set_sensitive(true);
        builder = builder.header(AUTHORIZATION, value);
    }
    if let Some(proof) = proof {
        builder = builder.header(PROOF, proof);
    }
    let response = builder.send().await.map_err(|error| http::cause(&error))?;
    let status = response.status().as_u16();
    let address = response.remote_addr().map(|address| address.ip());
    let headers = response.headers().get_all(WWW_AUTHENTICATE).iter();
    let challenge = Challenge::read(headers.filter_map(|value| value.to_str().ok()));
    let nonce = nonce(response.headers());
    match http::read_body(response, LIMIT).await {
        Ok(http::Body::Whole(body)) => Ok(Fetched {
            status,
            challenge,
            nonce,
            body,
            of_server: address,
        }),
        Ok(http::Body::TooLarge) => Err(format!("the response is larger than {LIMIT} bytes")),
        Err(error) => Err(http::cause(&error)),
    }
}

/// Looks up names, and drops the addresses that must not be reached.
#[derive(Debug, Clone)]
struct Resolver {
    /// The hosts that the user has chosen: the server or the identity provider, and proxies.
    own: Arc<[String]>,
    reach: Arc<Mutex<Reach>>,
}

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let is_own = self.own.iter().any(|own| own == name.as_str());
        let reach = *self.reach.lock();
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let is_permitted =
                |address: &SocketAddr| is_own || reach.includes(Reach::of_address(address.ip()));
            let permitted: Vec<_> = found.filter(is_permitted).collect();
            if permitted.is_empty() {
                return Err(io::Error::other(NOT_PERMITTED).into());
            }
            Ok(Box::new(permitted.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get(url: &str) -> Request {
        Request {
            url: url.parse().unwrap(),
            authorization: None,
            body: None,
            assertion: None,
            proof: None,
        }
    }

    #[tokio::test]
    async fn server_on_the_internet_cannot_send_us_home() {
        let fetcher = Fetcher::new(
            &"https://mcp.example/mcp".parse().unwrap(),
            &Settings::new("test"),
        )
        .unwrap();
        for url in [
            "https://127.0.0.1:1/",
            "https://[::1]:1/",
            "https://[::ffff:127.0.0.1]:1/",
            "https://2130706433:1/",
            "https://10.0.0.1/",
            "https://169.254.169.254/latest/meta-data",
            // A name that leads there.
            "https://localhost:1/",
        ] {
            let refused = fetcher
                .fetch(get(url), None, Reach::Public)
                .await
                .unwrap_err();
            assert_eq!(refused, NOT_PERMITTED, "{url}");
        }
        // Those of its own kind are tried.
        let tried = fetcher
            .fetch(get("http://127.0.0.1:1/"), None, Reach::Local)
            .await;
        assert_ne!(tried.unwrap_err(), NOT_PERMITTED);
    }
}
