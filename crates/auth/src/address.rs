//! The hosts that a server may refer to.

use std::net::{Ipv4Addr, Ipv6Addr};

use serde::{Deserialize, Serialize};
use url::{Host, Url};

/// The hosts that the metadata of a server may name. A server on the Internet must not make us send requests to this
/// machine or to its network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reach {
    /// Hosts on the Internet, over TLS.
    Public,
    /// Also those of a private network, over TLS.
    Private,
    /// Also this machine, without TLS.
    Local,
}

impl Reach {
    /// The hosts that this server may name.
    pub fn of(server: &Url) -> Self {
        match server.host() {
            Some(Host::Domain(name)) if is_local(name) => Self::Local,
            Some(Host::Ipv4(address)) => Self::of_v4(address),
            Some(Host::Ipv6(address)) => Self::of_v6(address),
            Some(Host::Domain(_)) | None => Self::Public,
        }
    }

    /// The hosts that a server at this address may name.
    pub fn of_address(address: std::net::IpAddr) -> Self {
        match address {
            std::net::IpAddr::V4(address) => Self::of_v4(address),
            std::net::IpAddr::V6(address) => Self::of_v6(address),
        }
    }

    /// Tests if requests to this URL are permitted, as far as its spelling shows.
    pub fn permits(self, url: &Url) -> bool {
        let scheme = match self {
            Self::Local => matches!(url.scheme(), "https" | "http"),
            Self::Public | Self::Private => url.scheme() == "https",
        };
        let is_plain = url.username().is_empty() && url.password().is_none();
        // Without TLS, only this machine is reached.
        let is_safe = url.scheme() == "https" || Self::of(url) == Self::Local;
        scheme && is_plain && is_safe && url.has_host() && self.includes(Self::of(url))
    }

    /// Tests if hosts of this kind are permitted.
    pub fn includes(self, other: Self) -> bool {
        let rank = |reach| match reach {
            Self::Public => 0,
            Self::Private => 1,
            Self::Local => 2,
        };
        rank(other) <= rank(self)
    }

    fn of_v4(address: Ipv4Addr) -> Self {
        let [a, b, ..] = address.octets();
        match () {
            () if address.is_loopback() || address.is_unspecified() => Self::Local,
            () if address.is_private()
                || address.is_link_local()
                || address.is_broadcast()
                || address.is_multicast()
                // Shared by the customers of a provider.
                || (a == 100 && b & 0xC0 == 64)
                || a == 0
                || a >= 240 =>
            {
                Self::Private
            }
            () => Self::Public,
        }
    }

    fn of_v6(address: Ipv6Addr) -> Self {
        if address.is_loopback() || address.is_unspecified() {
            return Self::Local;
        }
        let [first, second, ..] = address.segments();
        // Addresses that contain one of IPv4: mapped, compatible, translated by NAT64, and 6to4.
        let tail = |segments: [u16; 2]| {
            let [high, low] = segments.map(u16::to_be_bytes);
            Self::of_v4(Ipv4Addr::new(high[0], high[1], low[0], low[1]))
        };
        let segments = address.segments();
        let contained = match segments {
            [0, 0, 0, 0, 0, 0 | 0xFFFF, high, low] => Some(tail([high, low])),
            [0x64, 0xFF9B, .., high, low] => Some(tail([high, low])),
            [0x2002, high, low, ..] => Some(tail([high, low])),
            _ => None,
        };
        match contained {
            Some(reach) => reach,
            None if first & 0xFE00 == 0xFC00
                || first & 0xFFC0 == 0xFE80
                || first & 0xFF00 == 0xFF00
                || (first == 0x2001 && second == 0x0DB8) =>
            {
                Self::Private
            }
            None => Self::Public,
        }
    }
}

fn is_local(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    name == "localhost" || name.ends_with(".localhost")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_reaches_only_hosts_like_its_own() {
        let servers = [
            ("https://a.example/mcp", Reach::Public),
            ("https://192.168.1.2/mcp", Reach::Private),
            ("http://localhost:3000/mcp", Reach::Local),
            ("http://127.0.0.1/mcp", Reach::Local),
            ("http://[::1]/mcp", Reach::Local),
        ];
        for (server, expected) in servers {
            assert_eq!(Reach::of(&server.parse().unwrap()), expected, "{server}");
        }
        for (url, least) in [
            ("https://b.example/token", Some(Reach::Public)),
            ("https://8.8.8.8/", Some(Reach::Public)),
            ("https://10.0.0.1/", Some(Reach::Private)),
            ("https://169.254.169.254/", Some(Reach::Private)),
            ("https://100.64.0.1/", Some(Reach::Private)),
            ("https://[fd00::1]/", Some(Reach::Private)),
            ("https://[::ffff:10.0.0.1]/", Some(Reach::Private)),
            ("https://[64:ff9b::a00:1]/", Some(Reach::Private)),
            ("https://[2002:7f00:1::]/", Some(Reach::Local)),
            ("https://localhost./", Some(Reach::Local)),
            ("https://0x7f.1/", Some(Reach::Local)),
            ("https://2130706433/", Some(Reach::Local)),
            ("http://127.0.0.1:8080/", Some(Reach::Local)),
            ("http://b.example/", None),
            ("http://10.0.0.1/", None),
            ("https://user@b.example/", None),
            ("file:///etc/passwd", None),
            ("data:text/plain,x", None),
        ] {
            let parsed: Url = url.parse().unwrap();
            for reach in [Reach::Public, Reach::Private, Reach::Local] {
                let expected = least.is_some_and(|least| reach.includes(least));
                assert_eq!(reach.permits(&parsed), expected, "{url} {reach:?}");
            }
        }
    }
}
