//! The contract of a transport, checked for the HTTP transports.

use bytes::Bytes;
use switchboard_client::{
    http::Http,
    sse::Sse,
    transport::{Connect, Transport},
};

use crate::{
    common_contract::{Far, keeps_the_contract},
    server::{Events, Server},
};

/// A server of either transport, which sends its messages on one event stream.
struct HttpFar {
    server: Server,
    events: Option<Events>,
}

impl Far for HttpFar {
    async fn recv(&mut self) -> Bytes {
        let incoming = self.server.next().await;
        let body = incoming.body.clone();
        if self.events.is_none() {
            self.events = Some(incoming.events().await);
        } else {
            incoming.accept().await;
        }
        body.into()
    }

    async fn send(&mut self, frame: &str) {
        let events = self.events.as_mut().expect("a stream");
        events.send(&format!("data: {frame}\n\n")).await;
    }

    fn hang_up(self) {}
}

#[tokio::test]
async fn streamable_http_keeps_the_contract() {
    keeps_the_contract(async || {
        let server = Server::start().await;
        let connect = Http::new(&server.url("/mcp")).expect("an address");
        let transport = connect.connect().await.expect("up");
        let events = None;
        (transport, HttpFar { server, events })
    })
    .await;
}

#[tokio::test]
async fn http_with_sse_keeps_the_contract() {
    keeps_the_contract(async || {
        let mut server = Server::start().await;
        let connect = Sse::new(&server.url("/sse")).expect("an address");
        let opening = async {
            let mut events = server.next().await.events().await;
            events.send("event: endpoint\ndata: /message\n\n").await;
            events
        };
        let (transport, events): (Result<Box<dyn Transport>, _>, _) =
            tokio::join!(connect.connect(), opening);
        let events = Some(events);
        (transport.expect("up"), HttpFar { server, events })
    })
    .await;
}
