//! The address of a provider's API, from the base address in the settings.

use std::net::IpAddr;

use reqwest::Url;

use crate::{error::ProviderError, settings::Kind};

const OPENAI: &str = "https://api.openai.com/v1";
const ANTHROPIC: &str = "https://api.anthropic.com";

/// The address that requests are posted to.
#[derive(Clone, Debug)]
pub(crate) struct Address {
    pub(crate) url: Url,
    /// The address without user, password and query, for messages.
    pub(crate) shown: String,
    /// `true` if it is on this machine, where a proxy cannot reach it for the gateway.
    pub(crate) is_own: bool,
}

impl Address {
    pub(crate) fn new(
        kind: Kind,
        base: Option<&str>,
        has_key: bool,
    ) -> Result<Self, ProviderError> {
        let base = base.unwrap_or(match kind {
            Kind::OpenAi => OPENAI,
            Kind::Anthropic => ANTHROPIC,
        });
        // The address itself is not quoted, because it may contain a password.
        let mut url = Url::parse(base.trim()).map_err(|error| {
            ProviderError::settings(format!("\"baseUrl\" is not a URL: {error}"))
        })?;
        let host = url.host_str().unwrap_or_default().to_owned();
        if !matches!(url.scheme(), "http" | "https") || host.is_empty() {
            return Err(ProviderError::settings(
                "\"baseUrl\" must start with http:// or https:// and name a host",
            ));
        }
        if url.scheme() == "http" && has_key && !is_near(&host) {
            return Err(ProviderError::settings(
                "\"baseUrl\" is an http:// address of another machine, so the key would be sent \
                 unencrypted; use https://",
            ));
        }
        let path = match kind {
            Kind::OpenAi => chat_completions(url.path()),
            Kind::Anthropic => messages(url.path()),
        };
        url.set_path(&path);
        url.set_fragment(None);
        let mut shown = url.clone();
        shown.set_query(None);
        // These fail only for an address without a host.
        let _ = shown.set_username("");
        let _ = shown.set_password(None);
        Ok(Self {
            is_own: is_own(&host),
            shown: shown.into(),
            url,
        })
    }

    /// Returns `true` if this is `OpenAI` itself, which has renamed a parameter that others still expect.
    pub(crate) fn is_openai(&self) -> bool {
        self.url
            .host_str()
            .is_some_and(|host| host == "api.openai.com" || host.ends_with(".openai.azure.com"))
    }
}

/// A path that contains a version is used as it is, with any version; others get `/v1`.
fn chat_completions(path: &str) -> String {
    let path = path.trim_end_matches('/');
    let path = path.strip_suffix("/chat/completions").unwrap_or(path);
    let is_version = |segment: &str| {
        let digits = segment.strip_prefix('v');
        digits.is_some_and(|digits| digits.starts_with(|first: char| first.is_ascii_digit()))
    };
    let version = if path.split('/').any(is_version) {
        ""
    } else {
        "/v1"
    };
    format!("{path}{version}/chat/completions")
}

fn messages(path: &str) -> String {
    let path = path.trim_end_matches('/');
    let path = path.strip_suffix("/messages").unwrap_or(path);
    let path = path.strip_suffix("/v1").unwrap_or(path);
    format!("{path}/v1/messages")
}

fn is_own(host: &str) -> bool {
    match ip(host) {
        Some(ip) => ip.is_loopback(),
        None => host == "localhost" || host.ends_with(".localhost"),
    }
}

/// Tests if the host is this machine or in a local network, as far as its name or address shows.
fn is_near(host: &str) -> bool {
    match ip(host) {
        Some(IpAddr::V4(ip)) => ip.is_loopback() || ip.is_private() || ip.is_link_local(),
        Some(IpAddr::V6(ip)) => {
            ip.is_loopback() || ip.is_unique_local() || ip.is_unicast_link_local()
        }
        None => {
            let host = host.trim_end_matches('.');
            let nearby = [".localhost", ".local", ".lan", ".internal", ".home.arpa"];
            !host.contains('.') || nearby.iter().any(|end| host.ends_with(end))
        }
    }
}

fn ip(host: &str) -> Option<IpAddr> {
    host.trim_start_matches('[')
        .trim_end_matches(']')
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(kind: Kind, base: &str) -> String {
        Address::new(kind, Some(base), true).unwrap().shown
    }

    #[test]
    fn common_forms_of_base_addresses_are_accepted() {
        for (base, expected) in [
            (
                "http://localhost:11434",
                "http://localhost:11434/v1/chat/completions",
            ),
            (
                "http://localhost:11434/",
                "http://localhost:11434/v1/chat/completions",
            ),
            (
                "http://localhost:11434/v1",
                "http://localhost:11434/v1/chat/completions",
            ),
            (
                "http://localhost:11434/v1//",
                "http://localhost:11434/v1/chat/completions",
            ),
            (
                "https://openrouter.ai/api",
                "https://openrouter.ai/api/v1/chat/completions",
            ),
            (
                "https://a.example/v1beta/openai",
                "https://a.example/v1beta/openai/chat/completions",
            ),
            (
                "https://a.example/v1/chat/completions",
                "https://a.example/v1/chat/completions",
            ),
            (
                "https://me:s3cret@a.example/v1?key=s3cret",
                "https://a.example/v1/chat/completions",
            ),
        ] {
            assert_eq!(shown(Kind::OpenAi, base), expected);
        }
        for base in ["", "/", "/v1", "/v1/", "/v1/messages"] {
            assert_eq!(
                shown(Kind::Anthropic, &format!("https://a.example{base}")),
                "https://a.example/v1/messages"
            );
        }
        let own = |kind| Address::new(kind, None, true).unwrap().shown;
        assert_eq!(
            own(Kind::OpenAi),
            "https://api.openai.com/v1/chat/completions"
        );
        assert_eq!(
            own(Kind::Anthropic),
            "https://api.anthropic.com/v1/messages"
        );
    }

    #[test]
    fn key_is_not_sent_over_remote_http() {
        let taken = |base: &str, key| Address::new(Kind::OpenAi, Some(base), key).is_ok();
        for near in [
            "http://127.0.0.1:1",
            "http://[::1]:1",
            "http://192.168.1.2",
            "http://gpu:8000",
            "http://host.docker.internal",
            "https://far.example",
        ] {
            assert!(taken(near, true), "{near}");
        }
        for far in [
            "http://far.example",
            "http://8.8.8.8",
            "http://localhost.far.example",
        ] {
            assert!(!taken(far, true), "{far}");
            assert!(taken(far, false), "{far}");
        }
        for none in [
            "",
            "localhost:1",
            "ftp://localhost",
            "http://",
            "file:///etc",
        ] {
            assert!(!taken(none, false), "{none}");
        }
    }

    #[test]
    fn invalid_address_is_not_quoted() {
        let error = Address::new(Kind::OpenAi, Some("s3cret@nowhere"), true).unwrap_err();
        assert!(!error.to_string().contains("s3cret"), "{error}");
    }
}
