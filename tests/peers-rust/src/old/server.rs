//! The server.

use std::sync::Arc;

use old_rmcp::{
    ErrorData, Peer as Connection, RoleServer, Service, ServiceExt,
    model::{ClientNotification, ClientRequest, InitializeResult, ServerResult},
    service::{NotificationContext, RequestContext},
    transport::{
        SseServer,
        streamable_http_server::{
            StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
        },
    },
};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::peer::{Caller, Listener, NoAnswer, Outcome, Peer, read, result};

/// The server as one client sees it.
#[derive(Clone, Default)]
struct Old {
    peer: Arc<Peer<Subscriber>>,
}

#[derive(Clone)]
struct Subscriber {
    connection: Connection<RoleServer>,
    /// A resource; `None` for the list of tools.
    uri: Option<String>,
}

impl Listener for Subscriber {
    async fn tell(&self, notification: Value) {
        // A client that has disconnected gets no notification.
        let _ = self.connection.send_notification(read(notification)).await;
    }

    fn hears(&self, uri: Option<&str>) -> bool {
        self.uri.as_deref() == uri
    }
}

impl Caller for RequestContext<RoleServer> {
    async fn ask(&self, question: Value) -> Result<Value, NoAnswer> {
        let answer = self.peer.send_request(read(question)).await;
        let answer = answer.map_err(|error| NoAnswer::Never(error.to_string()))?;
        Ok(json!(answer))
    }

    async fn tell(&self, notification: Value) {
        let _ = self.peer.send_notification(read(notification)).await;
    }

    async fn withdrawn(&self) {
        self.ct.cancelled().await;
    }

    fn token(&self) -> Option<Value> {
        self.meta.get_progress_token().map(|token| json!(token))
    }

    fn wants_logs(&self) -> bool {
        true
    }
}

impl Service<RoleServer> for Old {
    async fn handle_request(
        &self,
        request: ClientRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<ServerResult, ErrorData> {
        let request = json!(request);
        let params = &request["params"];
        let uri = params["uri"].as_str().unwrap_or_default();
        let answer = match request["method"].as_str().unwrap_or_default() {
            "initialize" => {
                context.peer.set_peer_info(read(params.clone()));
                json!(self.get_info())
            }
            "tools/list" => self.peer.tools(),
            "tools/call" => match self.peer.call(params, &context).await {
                Outcome::Text(text) => result(&text, false),
                Outcome::Failure(text) => result(&text, true),
                Outcome::Question(_) => json!({}),
            },
            "prompts/list" => Peer::<Subscriber>::prompts(),
            "prompts/get" => Peer::<Subscriber>::prompt(params),
            "resources/list" => Peer::<Subscriber>::resources(),
            "resources/templates/list" => Peer::<Subscriber>::templates(),
            "resources/read" => match self.peer.read(uri) {
                Some(contents) => contents,
                None => return Err(ErrorData::resource_not_found("no such resource", None)),
            },
            "resources/subscribe" => {
                self.peer.listen(Subscriber {
                    connection: context.peer,
                    uri: Some(uri.to_owned()),
                });
                json!({})
            }
            "resources/unsubscribe" => {
                self.peer
                    .forget(|listener| listener.uri.as_deref() == Some(uri));
                json!({})
            }
            "ping" | "logging/setLevel" => json!({}),
            method => {
                return Err(ErrorData::invalid_request(
                    format!("not here: {method}"),
                    None,
                ));
            }
        };
        Ok(read(answer))
    }

    async fn handle_notification(
        &self,
        notification: ClientNotification,
        context: NotificationContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if matches!(notification, ClientNotification::InitializedNotification(_)) {
            self.peer.listen(Subscriber {
                connection: context.peer,
                uri: None,
            });
        }
        Ok(())
    }

    fn get_info(&self) -> InitializeResult {
        read(Peer::<Subscriber>::info())
    }
}

pub async fn stdio() -> Result<(), String> {
    let streams = old_rmcp::transport::stdio();
    let running = Old::default().serve(streams).await;
    let running = running.map_err(|error| error.to_string())?;
    running.waiting().await.map_err(|error| error.to_string())?;
    Ok(())
}

pub async fn http() -> Result<(), String> {
    let old = Old::default();
    let config = StreamableHttpServerConfig::default();
    let sessions = Arc::new(LocalSessionManager::default());
    let service = StreamableHttpService::new(move || Ok(old.clone()), sessions, config);
    let app = axum::Router::new().route_service("/mcp", service);
    crate::new::server::listen(app).await
}

pub async fn sse() -> Result<(), String> {
    // The SDK opens the listener itself, but does not report its port.
    let free = TcpListener::bind("127.0.0.1:0")
        .await
        .map_err(|error| error.to_string())?;
    let address = free.local_addr().map_err(|error| error.to_string())?;
    drop(free);
    let server = SseServer::serve(address)
        .await
        .map_err(|error| error.to_string())?;
    let old = Old::default();
    let ended = server.with_service_directly(move || old.clone());
    eprintln!("listening on http://{address}");
    ended.cancelled().await;
    Ok(())
}
