//! server-everything from npm: the reference server, built with the TypeScript SDK, over all its transports.
//! It speaks the revisions up to 2025-11-25, with all their features.

mod features;

use serde_json::json;
use switchboard_client::{
    CallError, Client, Error, Raw, Revision, http::Http, model::LogLevel, sse::Sse,
};

use crate::support::{Host, Server, Tools, npm, text, wait_gone};

/// A connection to a separate server.
struct Peer {
    client: Client,
    host: Host,
    way: Way,
    server: Option<Server>,
}

#[derive(Clone, Copy)]
enum Way {
    Stdio,
    Http,
    /// Over HTTP+SSE, known in advance.
    Sse,
    /// Over HTTP+SSE, detected.
    Fallback,
}

impl Peer {
    /// Starts the server and connects; `None` if such tests are skipped.
    async fn connect(way: Way) -> Option<Self> {
        let tools = Tools::peers()?;
        let host = Host::default();
        let builder = host.client(Revision::LATEST);
        let server = start(&tools, way, None).await;
        let url = |path: &str| server.as_ref().expect("it is on a port").url(path);
        let client = match way {
            Way::Stdio => builder.connect(npm(&tools, "server-everything").arg("stdio").stdio()),
            Way::Http => builder.connect(Http::new(&url("/mcp")).expect("a good address")),
            Way::Sse => builder.connect(Sse::new(&url("/sse")).expect("a good address")),
            Way::Fallback => builder.connect(Http::new(&url("/sse")).expect("a good address")),
        };
        Some(Self {
            client,
            host,
            way,
            server,
        })
    }

    /// Stops, which a server on a port must notice.
    async fn stop(self) {
        self.client.stop().await;
        let Some(server) = self.server else { return };
        let notice = match self.way {
            Way::Http => "Received session termination request",
            _ => "Client Disconnected",
        };
        server.said.wait_line(notice).await;
    }
}

/// Starts the server on a port, unless it is a child of the client.
async fn start(tools: &Tools, way: Way, port: Option<u16>) -> Option<Server> {
    let program = npm(tools, "server-everything");
    match way {
        Way::Stdio => None,
        Way::Http => {
            let program = program.arg("streamableHttp");
            Some(
                program
                    .listen_on(port, "Streamable HTTP Server listening")
                    .await,
            )
        }
        Way::Sse | Way::Fallback => {
            Some(program.arg("sse").listen_on(port, "running on port").await)
        }
    }
}

macro_rules! peers {
    ($($name:ident: $way:ident, [$($test:ident),*];)*) => { $(
        mod $name { $(
            #[tokio::test]
            async fn $test() {
                let Some(peer) = super::Peer::connect(super::Way::$way).await else { return };
                super::features::$test(&peer).await;
                peer.stop().await;
            }
        )* }
    )* };
}

peers! {
    stdio: Stdio, [offers, works, asks_back, tells];
    http: Http, [offers, works, asks_back, tells];
    sse: Sse, [offers, works, asks_back, tells];
    fallback: Fallback, [offers, asks_back];
}

#[tokio::test]
async fn killed_child_is_restarted_with_its_subscriptions() {
    let Some(tools) = Tools::peers() else { return };
    let program = npm(&tools, "server-everything");
    let host = Host::default();
    let client = host.client(Revision::LATEST).connect(program.stdio());
    let uri = "demo://resource/dynamic/text/1";
    client
        .subscribe(uri)
        .await
        .expect("it can be subscribed to");
    client
        .set_log_level(LogLevel::Info)
        .await
        .expect("it has levels");
    let first = program.mark.processes();

    let arguments = json!({"duration": 60, "steps": 600});
    let (sender, mut under_way) = tokio::sync::mpsc::unbounded_channel();
    let call = client
        .call_tool("trigger-long-running-operation", arguments)
        .on_progress(move |_| sender.send(()).expect("it is waited for"))
        .cancellable();
    let call = tokio::spawn(call);
    under_way.recv().await.expect("progress");
    let skipped = host.news.len();
    program.mark.kill();
    let lost = call.await.expect("no panic");
    assert!(
        matches!(lost, Err(Error::Call(CallError::ConnectionLost { .. }))),
        "{lost:?}"
    );

    // The new server confirms the subscription, which the client repeated by itself.
    let is_confirmation = |params: &_| text(params, "data").contains("Received Subscribe");
    host.told_from(skipped, "notifications/message", is_confirmation)
        .await;
    client
        .call_tool("toggle-subscriber-updates", json!({}))
        .await
        .expect("an answer");
    host.told_from(skipped, "notifications/resources/updated", |_| true)
        .await;
    let second = program.mark.processes();
    assert_ne!(first, second);
    assert_eq!(second.len(), 1);

    client.stop().await;
    wait_gone(&[first, second].concat()).await;
}

#[tokio::test]
async fn subscriptions_survive_a_restart_over_http() {
    is_subscribed_to_again(Way::Http).await;
}

#[tokio::test]
async fn subscriptions_survive_a_restart_over_sse() {
    is_subscribed_to_again(Way::Sse).await;
}

async fn is_subscribed_to_again(way: Way) {
    let Some(mut peer) = Peer::connect(way).await else {
        return;
    };
    peer.client
        .subscribe("demo://resource/dynamic/text/1")
        .await
        .expect("it can be");
    // The server confirms that in its log, with the name of the session.
    let is_confirmation = |params: &Raw| text(params, "data").contains("Received Subscribe");
    let first = peer
        .host
        .told_from(0, "notifications/message", is_confirmation)
        .await;
    let mut server = peer.server.take().expect("it is on a port");
    server.kill().await;
    let tools = Tools::peers().expect("it was found before");
    peer.server = start(&tools, way, Some(server.port)).await;
    // There are no calls: the client has to notice by itself.
    let is_another =
        |params: &Raw| is_confirmation(params) && text(params, "data") != text(&first, "data");
    peer.host
        .told_from(0, "notifications/message", is_another)
        .await;
    let before = peer.host.news.len();
    peer.client
        .call_tool("toggle-subscriber-updates", json!({}))
        .await
        .expect("an answer");
    peer.host
        .told_from(before, "notifications/resources/updated", |_| true)
        .await;
    peer.stop().await;
}
