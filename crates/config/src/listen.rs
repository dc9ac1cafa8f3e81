//! The address to listen on.

use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// The reason why the gateway cannot listen on an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ListenError {
    /// It is not an address.
    #[error("the address must be HOST:PORT, such as 127.0.0.1:7777")]
    Address,
    /// Other machines could reach it.
    #[error(
        "the gateway listens on loopback addresses only, because it has no TLS and every machine \
         on the network could use its servers"
    )]
    NotLoopback,
}

impl ListenError {
    /// A hint for the user, separate from the message.
    pub(crate) fn hint(&self) -> Option<Cow<'_, str>> {
        Some(match self {
            Self::NotLoopback => {
                "use 127.0.0.1:PORT; to reach it from another machine, use a tunnel or a proxy \
                 with TLS"
                    .into()
            }
            Self::Address => return None,
        })
    }
}

/// Parses an address to listen on: `127.0.0.1:7777`, `[::1]:7777` or `localhost:7777`. Port 0 selects a
/// free port. Addresses that other machines could reach are rejected.
pub(crate) fn parse_listen(text: &str) -> Result<SocketAddr, ListenError> {
    let address = match text.strip_prefix("localhost:") {
        Some(port) => {
            let port = port.parse().map_err(|_| ListenError::Address)?;
            SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port)
        }
        None => text.parse().map_err(|_| ListenError::Address)?,
    };
    if address.ip().to_canonical().is_loopback() {
        Ok(address)
    } else {
        Err(ListenError::NotLoopback)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        for (text, expected) in [
            ("127.0.0.1:7777", Ok("127.0.0.1:7777")),
            ("127.9.9.9:0", Ok("127.9.9.9:0")),
            ("[::1]:80", Ok("[::1]:80")),
            ("localhost:81", Ok("127.0.0.1:81")),
            ("0.0.0.0:7777", Err(ListenError::NotLoopback)),
            ("[::]:7777", Err(ListenError::NotLoopback)),
            ("192.168.1.2:7777", Err(ListenError::NotLoopback)),
            ("[::ffff:10.0.0.1]:1", Err(ListenError::NotLoopback)),
            ("127.0.0.1", Err(ListenError::Address)),
            ("7777", Err(ListenError::Address)),
            ("example.com:1", Err(ListenError::Address)),
            ("localhost:99999", Err(ListenError::Address)),
            ("", Err(ListenError::Address)),
        ] {
            let expected = expected.map(|address| address.parse().unwrap());
            assert_eq!(parse_listen(text), expected, "{text:?}");
        }
    }
}
