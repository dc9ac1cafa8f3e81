//! The port of the gateway, on every address where a browser looks for the console.
//!
//! The console has a name under `localhost`, which browsers resolve to 127.0.0.1 and `::1`; they
//! use whichever answers first. A program that has the port at one of them would receive the keys
//! of links. So the gateway takes the port at both.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
};

use tokio::net::TcpListener;

/// The addresses of names under `localhost`.
const LOCALHOST: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::LOCALHOST),
    IpAddr::V6(Ipv6Addr::LOCALHOST),
];
/// The most attempts to find a port that is free at all addresses, if the system chooses it.
const CHOICES: usize = 16;

/// The listeners of one port.
#[derive(Debug)]
pub struct Ports {
    pub(crate) address: SocketAddr,
    pub(crate) listeners: Vec<TcpListener>,
    /// An address at which another program has the port.
    pub(crate) taken: Option<SocketAddr>,
}

impl Ports {
    /// Listens on this address, and on the other addresses of its port where a browser would look.
    /// Only the first must be free.
    pub async fn bind(address: SocketAddr) -> io::Result<Self> {
        let mut ports = Self::bind_once(address).await?;
        for _ in 1..CHOICES {
            if address.port() != 0 || ports.taken.is_none() {
                break;
            }
            ports = Self::bind_once(address).await?;
        }
        Ok(ports)
    }

    async fn bind_once(address: SocketAddr) -> io::Result<Self> {
        let first = TcpListener::bind(address).await?;
        let address = first.local_addr()?;
        let mut ports = Self {
            address,
            listeners: vec![first],
            taken: None,
        };
        for ip in LOCALHOST.into_iter().filter(|ip| *ip != address.ip()) {
            let other = SocketAddr::new(ip, address.port());
            match TcpListener::bind(other).await {
                Ok(listener) => ports.listeners.push(listener),
                Err(error) if is_nowhere(&error) => {}
                Err(_) => ports.taken = Some(other),
            }
        }
        Ok(ports)
    }

    /// The address to publish to clients.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }
}

/// Tests if this machine has no such address, so that no program can listen there.
fn is_nowhere(error: &io::Error) -> bool {
    use rustix::io::Errno;
    matches!(
        Errno::from_io_error(error),
        Some(Errno::ADDRNOTAVAIL | Errno::AFNOSUPPORT)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn bind(address: &str) -> Ports {
        Ports::bind(address.parse().unwrap()).await.unwrap()
    }

    #[tokio::test]
    async fn port_is_taken_at_both_addresses_of_localhost() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let ports = bind(address).await;
            assert_eq!(ports.taken, None);
            assert_eq!(ports.listeners.len(), 2, "{ports:?}");
            for ip in LOCALHOST {
                let there = SocketAddr::new(ip, ports.address.port());
                let refused = TcpListener::bind(there).await.unwrap_err();
                assert_eq!(refused.kind(), io::ErrorKind::AddrInUse, "{there}");
            }
        }
        assert_eq!(bind("127.0.0.2:0").await.listeners.len(), 3);
    }

    #[tokio::test]
    async fn other_program_on_port_is_detected() {
        let other = TcpListener::bind("[::1]:0").await.unwrap();
        let there = other.local_addr().unwrap();
        let ports = bind(&format!("127.0.0.1:{}", there.port())).await;
        assert_eq!(ports.taken, Some(there));
        let refused = Ports::bind(there).await.unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::AddrInUse);
    }
}
