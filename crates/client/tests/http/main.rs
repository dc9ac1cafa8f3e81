//! Streamable HTTP and HTTP+SSE, driven directly against well-behaved and misbehaving servers.
#![cfg(feature = "http")]
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test may fail"
)]

mod auth;
#[path = "../common/contract.rs"]
mod common_contract;
mod contract;
mod device;
mod headers;
mod legacy;
mod proof;
mod renewals;
mod requests;
mod server;
mod sse;
mod streams;

use std::{future::poll_fn, sync::Arc, time::Duration};

use serde_json::{Value, json};
use switchboard_client::transport::{
    Connect, DownKind, Outgoing, OutgoingKind, SendOutcome, Session, Transport, TransportEvent,
    http::Http,
};
use switchboard_wire::{Raw, Revision};
use tokio::time::timeout;

use server::{PATIENCE, Server};

/// A transport under test.
struct Wire(Box<dyn Transport>);

impl Wire {
    /// Opens a transport over Streamable HTTP.
    async fn to(server: &Server) -> Self {
        Self::over(&Http::new(&server.url("/mcp")).unwrap()).await
    }

    async fn over(connect: &impl Connect) -> Self {
        Self(connect.connect().await.unwrap())
    }

    fn send(&mut self, outgoing: Outgoing) {
        assert_eq!(self.0.send(outgoing), SendOutcome::Accepted);
    }

    async fn event(&mut self) -> TransportEvent {
        timeout(PATIENCE, poll_fn(|cx| self.0.poll_event(cx)))
            .await
            .expect("no event")
    }

    async fn frame(&mut self) -> String {
        match self.event().await {
            TransportEvent::Frame { frame, .. } => String::from_utf8(frame.to_vec()).unwrap(),
            other => panic!("{other:?}"),
        }
    }

    /// Returns the next frame, and the request on whose stream it arrived.
    async fn frame_via(&mut self) -> (Value, Option<u64>) {
        match self.event().await {
            TransportEvent::Frame { frame, via } => (serde_json::from_slice(&frame).unwrap(), via),
            other => panic!("{other:?}"),
        }
    }

    async fn message(&mut self) -> Value {
        serde_json::from_str(&self.frame().await).unwrap()
    }

    /// Returns the id, status and message of a request that failed.
    async fn failure(&mut self) -> (u64, Option<u16>, String) {
        match self.event().await {
            TransportEvent::RequestFailed { id, failure } => {
                (id, failure.status, failure.to_string())
            }
            other => panic!("{other:?}"),
        }
    }

    async fn down(&mut self) -> (DownKind, String) {
        match self.event().await {
            TransportEvent::Down(down) => (down.kind, down.to_string()),
            other => panic!("{other:?}"),
        }
    }

    /// Returns `true` if no event occurs for a while.
    async fn is_quiet(&mut self, millis: u64) -> bool {
        let event = poll_fn(|cx| self.0.poll_event(cx));
        timeout(Duration::from_millis(millis), event).await.is_err()
    }

    fn negotiated(&mut self, revision: Revision) {
        self.0.negotiated(&Session {
            revision,
            capabilities: Raw::empty_object(),
            server_info: None,
            instructions: None,
            raw: Raw::empty_object(),
        });
    }

    /// Opens a session of an older revision, on a server that offers no stream.
    async fn open_session(&mut self, server: &mut Server, session: &str, revision: Revision) {
        self.send(request(1, "initialize", json!({})));
        server.next().await.initialized(session).await;
        self.frame().await;
        self.negotiated(revision);
        self.send(notification("notifications/initialized"));
        server.next().await.accept().await;
        let get = server.next().await;
        assert_eq!(get.method, "GET");
        get.respond(405, "", "").await;
    }
}

fn request(id: u64, method: &'static str, params: Value) -> Outgoing {
    let mut frame = json!({"jsonrpc": "2.0", "id": id, "method": method});
    frame["params"] = params;
    Outgoing {
        frame: frame.to_string().into(),
        kind: OutgoingKind::Request {
            id,
            method: method.into(),
        },
        headers: Arc::from([]),
    }
}

fn modern(id: u64, method: &'static str, mut params: Value) -> Outgoing {
    params["_meta"] = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28"});
    request(id, method, params)
}

fn notification(method: &'static str) -> Outgoing {
    let frame = json!({"jsonrpc": "2.0", "method": method});
    Outgoing {
        frame: frame.to_string().into(),
        kind: OutgoingKind::Notification {
            method: method.into(),
        },
        headers: Arc::from([]),
    }
}

fn cancel(id: u64) -> Outgoing {
    let mut outgoing = notification("notifications/cancelled");
    outgoing.kind = OutgoingKind::Cancel { id };
    outgoing
}

fn answer(id: u64) -> Outgoing {
    Outgoing {
        frame: json!({"jsonrpc": "2.0", "id": id, "result": {}})
            .to_string()
            .into(),
        kind: OutgoingKind::Answer,
        headers: Arc::from([]),
    }
}
