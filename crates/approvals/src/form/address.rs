//! The address of a question that is answered in a browser.
//!
//! It is parsed more strictly than browsers do: an address in which they would see a different host than a
//! person or this program does is refused.

use serde::Serialize;

use super::SHOWN_BYTES;

/// An address that a server asks the user to open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Address {
    /// The complete address, verbatim.
    pub url: String,
    /// The complete host, in lower case.
    pub host: String,
    #[serde(skip)]
    user: bool,
    #[serde(skip)]
    plain_http: bool,
}

impl Address {
    /// Parses an address; the error is the reason why it is refused.
    pub(super) fn read(url: &str) -> Result<Self, String> {
        let refused = |why: &str| Err(format!("the address cannot be opened: {why}"));
        if url.is_empty() || url.len() > SHOWN_BYTES {
            return refused("it is missing or too long");
        }
        // Browsers drop line breaks, and take a backslash for a slash.
        if url.contains(|c: char| c.is_control() || c.is_whitespace() || c == '\\') {
            return refused("it has invalid characters");
        }
        let Some((scheme, rest)) = url.split_once("://") else {
            return refused("it is not a web address");
        };
        let plain_http = scheme.eq_ignore_ascii_case("http");
        if !plain_http && !scheme.eq_ignore_ascii_case("https") {
            return refused("only http and https are allowed");
        }
        let authority = &rest[..rest.find(['/', '?', '#']).unwrap_or(rest.len())];
        let (user, place) = match authority.rsplit_once('@') {
            Some((_, place)) => (true, place),
            None => (false, authority),
        };
        let Some(host) = host(place) else {
            return refused("it has no valid host");
        };
        Ok(Self {
            url: url.to_owned(),
            host: host.to_lowercase(),
            user,
            plain_http,
        })
    }

    /// Warnings for the user before opening it.
    pub(super) fn warnings(&self) -> Vec<String> {
        let host = &self.host;
        let mut warnings = Vec::new();
        if !host.is_ascii() || host.split('.').any(|label| label.starts_with("xn--")) {
            warnings.push(format!(
                "the host `{host}` contains letters that can be mistaken for others; make sure that it is the host you expect"
            ));
        }
        if self.user {
            warnings.push(format!(
                "the part before the `@` is a user name, not the host: the address leads to `{host}`"
            ));
        }
        if self.plain_http && !self.is_loopback() {
            warnings.push(format!(
                "the connection to `{host}` is not encrypted: others can read what you type"
            ));
        }
        warnings
    }

    fn is_loopback(&self) -> bool {
        let ip = self
            .host
            .trim_start_matches('[')
            .trim_end_matches(']')
            .parse::<std::net::IpAddr>();
        self.host == "localhost"
            || self.host.ends_with(".localhost")
            || ip.is_ok_and(|ip| ip.is_loopback())
    }
}

/// The host of `host:port`.
fn host(place: &str) -> Option<&str> {
    let (host, port) = if place.starts_with('[') {
        let end = place.find(']')? + 1;
        let address = &place[1..end - 1];
        address.parse::<std::net::Ipv6Addr>().ok()?;
        (&place[..end], &place[end..])
    } else {
        let (host, port) = place.split_at(place.find(':').unwrap_or(place.len()));
        let odd =
            |c: char| c.is_ascii() && !c.is_ascii_alphanumeric() && !matches!(c, '-' | '.' | '_');
        if host.is_empty() || host.starts_with('.') || host.contains("..") || host.contains(odd) {
            return None;
        }
        (host, port)
    };
    let digits = port.strip_prefix(':').unwrap_or(port);
    let port_fits = port.is_empty() || (port.starts_with(':') && digits.parse::<u16>().is_ok());
    port_fits.then_some(host)
}
