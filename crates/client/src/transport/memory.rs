//! In-memory transport: a pair of bounded queues, for tests and for servers in the same process.

use std::task::{Context, Poll};

use bytes::Bytes;
use tokio::sync::mpsc;

use super::{
    Connect, Connecting, Down, DownKind, Outgoing, SendOutcome, Transport, TransportEvent, closed,
};

/// Connects to a server in the same process. Each attempt to connect passes a new [`ServerEnd`] to
/// the other side.
#[derive(Debug)]
pub struct Memory {
    servers: mpsc::Sender<ServerEnd>,
    depth: usize,
}

/// The server's end of the transport. Dropping it ends the transport.
#[derive(Debug)]
pub struct ServerEnd {
    /// Receives the frames that the client sends.
    pub frames: mpsc::Receiver<Bytes>,
    /// Sends frames to the client.
    pub client: mpsc::Sender<Bytes>,
}

impl Memory {
    /// Creates a connector whose queues hold `depth` frames in each direction, and a receiver for
    /// the server ends: one for each time the client connects.
    pub fn new(depth: usize) -> (Self, mpsc::Receiver<ServerEnd>) {
        let (servers, accept) = mpsc::channel(1);
        let depth = depth.max(1);
        (Self { servers, depth }, accept)
    }
}

impl Connect for Memory {
    fn connect(&self) -> Connecting {
        let (to_server, frames) = mpsc::channel(self.depth);
        let (client, from_server) = mpsc::channel(self.depth);
        let servers = self.servers.clone();
        Box::pin(async move {
            let end = ServerEnd { frames, client };
            servers.send(end).await.map_err(|_| Down {
                kind: DownKind::Permanent,
                message: "the server no longer accepts connections".into(),
                said: None,
            })?;
            let transport = MemoryTransport {
                to_server: Some(to_server),
                from_server,
            };
            Ok(Box::new(transport) as Box<dyn Transport>)
        })
    }

    fn describe(&self) -> String {
        "memory".to_owned()
    }
}

struct MemoryTransport {
    to_server: Option<mpsc::Sender<Bytes>>,
    from_server: mpsc::Receiver<Bytes>,
}

impl Transport for MemoryTransport {
    fn send(&mut self, outgoing: Outgoing) -> SendOutcome {
        let Some(to_server) = &self.to_server else {
            return SendOutcome::Closed;
        };
        match to_server.try_send(outgoing.frame) {
            Ok(()) => SendOutcome::Accepted,
            Err(mpsc::error::TrySendError::Full(_)) => SendOutcome::Busy,
            Err(mpsc::error::TrySendError::Closed(_)) => SendOutcome::Closed,
        }
    }

    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<TransportEvent> {
        if self.to_server.is_none() {
            return Poll::Ready(TransportEvent::Down(closed("closed")));
        }
        self.from_server.poll_recv(cx).map(|frame| match frame {
            Some(frame) => TransportEvent::Frame { frame, via: None },
            None => TransportEvent::Down(closed("the server closed the connection")),
        })
    }

    fn close(&mut self) {
        self.to_server = None;
    }
}
