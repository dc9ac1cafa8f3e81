//! Authentication of HTTP requests.
//!
//! A web page that a user happens to visit can make the browser talk to a port of this machine. So
//! the request must be meant for this machine (Host), must not come from a foreign page (Origin),
//! and must carry the token.
//!
//! A browser keeps data that a page left at an address (a service worker, a cached file), and that
//! page may belong to another program that had the port before. So the console has a host name that
//! is new in each run. `own` is that name with the port, and sessions are opened and used only
//! there.

use std::net::IpAddr;

use hyper::{
    HeaderMap, Uri,
    header::{AUTHORIZATION, HOST, HeaderValue, ORIGIN},
};
use subtle::ConstantTimeEq;
use switchboard_tokens::Rejected;

/// The reason why a request is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnedAway {
    /// The request is meant for another host.
    Host,
    /// A foreign page sent it.
    Origin,
    /// A page other than the console's own sent it, with a session of the console.
    Page,
    /// There is no token, or an unknown one.
    Token,
    /// The token has expired.
    Expired,
    /// The token does not give the right to use MCP.
    Right,
}

impl From<Rejected> for TurnedAway {
    fn from(rejected: Rejected) -> Self {
        match rejected {
            Rejected::Unknown => Self::Token,
            Rejected::Expired => Self::Expired,
        }
    }
}

/// The secret that clients present.
#[derive(Clone)]
pub(crate) struct Token(Box<[u8]>);

impl Token {
    pub(crate) fn new(token: &str) -> Self {
        Self(token.as_bytes().into())
    }

    /// Compares in constant time, except for the length, which is no secret.
    pub(crate) fn is(&self, shown: &str) -> bool {
        bool::from(self.0.ct_eq(shown.as_bytes()))
    }
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token")
    }
}

/// Checks Host and Origin.
pub(crate) fn check_origin(
    own: Option<&str>,
    uri: &Uri,
    headers: &HeaderMap,
) -> Result<(), TurnedAway> {
    let is_local = |authority: &str| is_local(authority) || own == Some(authority);
    let mut hosts = headers
        .get_all(HOST)
        .iter()
        .map(|host| host.to_str().unwrap_or_default())
        .chain(uri.authority().map(hyper::http::uri::Authority::as_str))
        .peekable();
    if hosts.peek().is_none() || !hosts.all(is_local) {
        return Err(TurnedAway::Host);
    }
    let is_local_page = |origin: &HeaderValue| {
        let origin = origin.to_str().unwrap_or_default();
        ["http://", "https://"]
            .into_iter()
            .find_map(|scheme| origin.strip_prefix(scheme))
            .is_some_and(is_local)
    };
    let all = headers.get_all(ORIGIN).iter().all(is_local_page);
    all.then_some(()).ok_or(TurnedAway::Origin)
}

/// Checks that the request is meant for the console's own address and, if a page sent it, that the
/// page is from there. A page of another port or name may belong to another program.
pub fn check_own_page(own: Option<&str>, headers: &HeaderMap) -> Result<(), TurnedAway> {
    let own = own.ok_or(TurnedAway::Page)?;
    let mut hosts = headers.get_all(HOST).iter();
    let is_meant = hosts.next().is_some_and(|host| host == own) && hosts.next().is_none();
    let is_own = |origin: &HeaderValue| {
        let named = origin.as_bytes().strip_prefix(b"http://");
        named == Some(own.as_bytes())
    };
    let all = is_meant && headers.get_all(ORIGIN).iter().all(is_own);
    all.then_some(()).ok_or(TurnedAway::Page)
}

/// The token in `Authorization: Bearer …`.
pub(crate) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut all = headers.get_all(AUTHORIZATION).iter();
    let value = all.next()?.to_str().ok()?;
    // Another program on the way may use the other one.
    if all.next().is_some() {
        return None;
    }
    let (scheme, shown) = value.split_once(' ')?;
    scheme
        .eq_ignore_ascii_case("bearer")
        .then_some(shown.trim())
}

/// Tests if `host[:port]` names this machine, by a name that no foreign name server can serve.
fn is_local(authority: &str) -> bool {
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            Some((host, rest)) => (host, rest.strip_prefix(':')),
            None => return false,
        },
        None => match authority.rsplit_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        },
    };
    if port.is_some_and(|port| port.parse::<u16>().is_err()) {
        return false;
    }
    host.eq_ignore_ascii_case("localhost")
        || host.parse::<IpAddr>().is_ok_and(|host| host.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: &str = "0123.localhost:7777";

    fn with(name: hyper::header::HeaderName, value: &'static str) -> HeaderMap {
        HeaderMap::from_iter([
            (HOST, HeaderValue::from_static("localhost:7777")),
            (name, HeaderValue::from_static(value)),
        ])
    }

    #[test]
    fn only_this_machine_is_local() {
        for local in [
            "localhost",
            "LOCALHOST:80",
            "127.0.0.1:7777",
            "127.1.2.3",
            "[::1]:7777",
            "[::1]",
        ] {
            assert!(is_local(local), "{local}");
        }
        for foreign in [
            "example.com",
            "localhost.example.com",
            "127.0.0.1.example.com",
            "127.0.0.1:7777.example.com",
            "0.0.0.0",
            "[::1",
            "::1",
            "10.0.0.1",
            "localhost:x",
            "",
        ] {
            assert!(!is_local(foreign), "{foreign}");
        }
    }

    #[test]
    fn only_the_name_of_this_run_is_local() {
        let uri = Uri::from_static("/");
        let check = |host| check_origin(Some(OWN), &uri, &with(HOST, host));
        assert_eq!(check(OWN), Ok(()));
        for other in [
            "0123.localhost:7778",
            "0123.localhost",
            "4567.localhost:7777",
            "x.0123.localhost:7777",
            "0123.localhost:7777.example.com",
        ] {
            assert_eq!(check(other), Err(TurnedAway::Host), "{other}");
        }
        let checked = check_origin(None, &uri, &with(HOST, OWN));
        assert_eq!(checked, Err(TurnedAway::Host));
    }

    #[test]
    fn foreign_pages_and_hosts_are_rejected() {
        let uri = Uri::from_static("/mcp");
        let check_origin = |uri: &Uri, headers: &HeaderMap| check_origin(Some(OWN), uri, headers);
        assert_eq!(
            check_origin(&uri, &with(ORIGIN, "https://example.com")),
            Err(TurnedAway::Origin)
        );
        assert_eq!(
            check_origin(&uri, &with(ORIGIN, "null")),
            Err(TurnedAway::Origin)
        );
        assert_eq!(
            check_origin(&uri, &with(ORIGIN, "http://localhost:3000")),
            Ok(())
        );
        assert_eq!(
            check_origin(&uri, &with(HOST, "rebound.example.com:7777")),
            Err(TurnedAway::Host)
        );
        assert_eq!(check_origin(&uri, &HeaderMap::new()), Err(TurnedAway::Host));
    }

    #[test]
    fn each_of_two_origins_is_checked() {
        let uri = Uri::from_static("/mcp");
        let check_origin = |uri: &Uri, headers: &HeaderMap| check_origin(Some(OWN), uri, headers);
        let mut two = with(ORIGIN, "http://localhost:3000");
        two.append(ORIGIN, HeaderValue::from_static("https://example.com"));
        assert_eq!(check_origin(&uri, &two), Err(TurnedAway::Origin));
    }

    #[test]
    fn only_exact_console_address_is_own_page() {
        let check = |headers: &HeaderMap| check_own_page(Some(OWN), headers);
        let with = |origin: &'static str| {
            HeaderMap::from_iter([
                (HOST, HeaderValue::from_static(OWN)),
                (ORIGIN, HeaderValue::from_static(origin)),
            ])
        };
        let own = with("http://0123.localhost:7777");
        assert_eq!(check(&own), Ok(()));
        assert_eq!(check_own_page(None, &own), Err(TurnedAway::Page));
        for other in [
            "http://0123.localhost:3000",
            "http://0123.localhost",
            "https://0123.localhost:7777",
            "http://4567.localhost:7777",
            "http://localhost:7777",
            "http://127.0.0.1:7777",
            "http://0123.localhost:7777.example.com",
            "0123.localhost:7777",
            "null",
            "",
        ] {
            assert_eq!(check(&with(other)), Err(TurnedAway::Page), "{other}");
        }
        let mut two = own.clone();
        two.append(ORIGIN, HeaderValue::from_static("http://localhost:3000"));
        assert_eq!(check(&two), Err(TurnedAway::Page));
        let mut two = own.clone();
        two.append(HOST, HeaderValue::from_static(OWN));
        assert_eq!(check(&two), Err(TurnedAway::Page));
        let mut none = own;
        none.remove(HOST);
        assert_eq!(check(&none), Err(TurnedAway::Page));
    }

    #[test]
    fn programs_must_name_the_console_address() {
        for (host, checked) in [
            (OWN, Ok(())),
            ("127.0.0.1:7777", Err(TurnedAway::Page)),
            ("localhost:7777", Err(TurnedAway::Page)),
            ("4567.localhost:7777", Err(TurnedAway::Page)),
        ] {
            let headers = HeaderMap::from_iter([(HOST, HeaderValue::from_static(host))]);
            assert_eq!(check_own_page(Some(OWN), &headers), checked, "{host}");
        }
    }

    #[test]
    fn only_the_token_is_accepted() {
        let token = Token::new("s3cret");
        let is_accepted =
            |headers: &HeaderMap| bearer(headers).is_some_and(|shown| token.is(shown));
        for right in ["Bearer s3cret", "bearer  s3cret"] {
            assert!(is_accepted(&with(AUTHORIZATION, right)), "{right}");
        }
        for wrong in ["Bearer s3cre", "Basic s3cret", "s3cret", "Bearer "] {
            assert!(!is_accepted(&with(AUTHORIZATION, wrong)), "{wrong}");
        }
        assert!(!is_accepted(&HeaderMap::new()));
    }
}
