//! The port of the gateway, on every address where a browser looks for the console.
//!
//! The console has a name under `localhost`, which browsers find at 127.0.0.1 and at `::1`, at whichever answers first. A
//! program that has the port at one of them would be given the keys of links. So the gateway takes the port at both.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
};

use tokio::net::TcpListener;

/// Where browsers look for names under `localhost`.
const LOCALHOST: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::LOCALHOST),
    IpAddr::V6(Ipv6Addr::LOCALHOST),
];
/// How often a port that the system chooses is chosen again because another program has it at another address.
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
    /// Listens on this address, and on the others of its port where a browser would look. Only the first must be free.
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

    /// The address that clients are told.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }
}

/// Whether this machine has no such address, so that no program can listen there.
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
    async fn other_program_at_the_port_is_noticed() {
        let other = TcpListener::bind("[::1]:0").await.unwrap();
        let there = other.local_addr().unwrap();
        let ports = bind(&format!("127.0.0.1:{}", there.port())).await;
        assert_eq!(ports.taken, Some(there));
        let refused = Ports::bind(there).await.unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::AddrInUse);
    }
}
