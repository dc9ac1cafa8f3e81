//! A scripted server at the other end of a memory transport.

use bytes::Bytes;
use serde_json::{Value, json};
use switchboard_client::{
    Client, ClientBuilder,
    memory::{Memory, ServerEnd},
};
use tokio::sync::mpsc;

/// A connection, from the server's point of view.
pub(crate) struct Peer {
    end: ServerEnd,
}

/// The connections of one client.
pub(crate) struct Listener(mpsc::Receiver<ServerEnd>);

/// The era of the server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum World {
    Old,
    New,
}

pub(crate) fn builder() -> ClientBuilder {
    Client::builder("test", "0")
}

/// Creates a client over memory, and returns it with the server's side.
pub(crate) fn connect(builder: ClientBuilder) -> (Client, Listener) {
    connect_with_depth(builder, 4096)
}

pub(crate) fn connect_with_depth(builder: ClientBuilder, depth: usize) -> (Client, Listener) {
    let (memory, servers) = Memory::new(depth);
    (builder.connect(memory), Listener(servers))
}

/// Creates a client that is ready, and returns it with its server.
pub(crate) async fn ready(builder: ClientBuilder, world: World) -> (Client, Listener, Peer) {
    let (client, mut listener) = connect(builder);
    let peer = listener.accept_and_greet(world).await;
    client.ready().await.expect("ready");
    (client, listener, peer)
}

impl Listener {
    pub(crate) async fn accept(&mut self) -> Peer {
        let end = self.0.recv().await.expect("the client connects");
        Peer { end }
    }

    /// Returns `true` once the client no longer connects.
    pub(crate) async fn is_over(&mut self) -> bool {
        self.0.recv().await.is_none()
    }

    pub(crate) async fn accept_and_greet(&mut self, world: World) -> Peer {
        let mut peer = self.accept().await;
        peer.greet(world).await;
        peer
    }
}

impl Peer {
    /// Returns the next message of the client.
    pub(crate) async fn recv(&mut self) -> Value {
        let frame = self.end.frames.recv().await.expect("the client sends");
        serde_json::from_slice(&frame).expect("the client sends JSON")
    }

    /// Returns the next message, if there is one already.
    pub(crate) fn try_recv(&mut self) -> Option<Value> {
        let frame = self.end.frames.try_recv().ok()?;
        Some(serde_json::from_slice(&frame).expect("the client sends JSON"))
    }

    /// Returns the next message, which must have this method.
    pub(crate) async fn expect(&mut self, method: &str) -> Value {
        let message = self.recv().await;
        assert_eq!(message["method"], method, "{message}");
        message
    }

    pub(crate) async fn send(&self, message: Value) {
        self.send_raw(message.to_string()).await;
    }

    pub(crate) async fn send_raw(&self, frame: impl Into<Bytes>) {
        self.end
            .client
            .send(frame.into())
            .await
            .expect("the client listens");
    }

    pub(crate) async fn answer(&self, request: &Value, result: Value) {
        self.send(json!({"jsonrpc": "2.0", "id": request["id"], "result": result}))
            .await;
    }

    /// Responds, if the client still listens.
    pub(crate) fn try_answer(&self, request: &Value) {
        let answer = json!({"jsonrpc": "2.0", "id": request["id"], "result": {}});
        let _ = self.end.client.try_send(answer.to_string().into());
    }

    pub(crate) async fn refuse(&self, request: &Value, code: i64) {
        let error = json!({"code": code, "message": "no"});
        self.send(json!({"jsonrpc": "2.0", "id": request["id"], "error": error}))
            .await;
    }

    pub(crate) async fn greet(&mut self, world: World) {
        let capabilities = json!({
            "tools": {"listChanged": true}, "resources": {"subscribe": true}, "logging": {}
        });
        let mut request = self.recv().await;
        if world == World::New {
            assert_eq!(request["method"], "server/discover");
            let result = json!({"supportedVersions": ["2026-07-28"], "capabilities": capabilities});
            return self.answer(&request, result).await;
        }
        if request["method"] == "server/discover" {
            self.refuse(&request, -32601).await;
            request = self.recv().await;
        }
        assert_eq!(request["method"], "initialize");
        let version = &request["params"]["protocolVersion"];
        let result =
            json!({"protocolVersion": version, "capabilities": capabilities, "serverInfo": {}});
        self.answer(&request, result).await;
        self.expect("notifications/initialized").await;
    }
}
