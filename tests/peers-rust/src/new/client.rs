//! The client.

use rmcp::{
    ClientServiceExt, ErrorData, RoleClient, Service,
    model::{
        ClientConfig, ClientResult, ProtocolVersion, ServerNotification, ServerRequest,
        SubscriptionFilter,
    },
    service::{
        ClientLifecycleMode, NotificationContext, PeerRequestOptions, RequestContext,
        RunningService,
    },
    transport::{
        StreamableHttpClientTransport, TokioChildProcess,
        streamable_http_client::StreamableHttpClientTransportConfig,
    },
};
use serde_json::{Value, json};
use tokio::process::Command;

use crate::{
    peer::read,
    tour::{Client, Heard, answer, info},
};

struct User(Heard);

impl Service<RoleClient> for User {
    async fn handle_request(
        &self,
        request: ServerRequest,
        _: RequestContext<RoleClient>,
    ) -> Result<ClientResult, ErrorData> {
        Ok(read(answer(&json!(request))))
    }

    async fn handle_notification(
        &self,
        notification: ServerNotification,
        _: NotificationContext<RoleClient>,
    ) -> Result<(), ErrorData> {
        self.0.push(json!(notification));
        Ok(())
    }

    fn get_info(&self) -> ClientConfig {
        let mut info = info("rust-new");
        info["protocolVersion"] = json!("2025-11-25");
        read(info)
    }
}

pub struct New {
    running: RunningService<RoleClient, User>,
    modern: bool,
}

pub async fn connect(tour: &Value, heard: Heard) -> Result<New, String> {
    let user = User(heard);
    let modern = tour["modern"] == true;
    let lifecycle = if modern {
        ClientLifecycleMode::Discover {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        }
    } else {
        ClientLifecycleMode::Initialize
    };
    let running = if let Some(url) = tour["url"].as_str() {
        let token = tour["token"].as_str().unwrap_or_default();
        let config = StreamableHttpClientTransportConfig::with_uri(url).auth_header(token);
        let transport = StreamableHttpClientTransport::with_client(reqwest::Client::new(), config);
        user.serve_with_lifecycle(transport, lifecycle).await
    } else {
        let mut words = tour["command"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str);
        let mut command = Command::new(words.next().unwrap_or_default());
        command.args(words);
        let process = TokioChildProcess::new(command).map_err(|error| error.to_string())?;
        user.serve_with_lifecycle(process, lifecycle).await
    };
    let running = running.map_err(|error| error.to_string())?;
    Ok(New { running, modern })
}

impl Client for New {
    fn revision(&self) -> String {
        if self.modern {
            return "2026-07-28".to_owned();
        }
        let version = self
            .running
            .peer_info()
            .map(|info| json!(info.protocol_version));
        let version = version.as_ref().and_then(Value::as_str);
        version.unwrap_or_default().to_owned()
    }

    async fn request(&self, method: &str, params: Value) -> Result<Value, String> {
        // Requests in which the server may ask use the methods that answer questions.
        let answer = match method {
            "tools/call" => self
                .running
                .call_tool(read(params))
                .await
                .map(|answer| json!(answer)),
            "prompts/get" => self
                .running
                .get_prompt(read(params))
                .await
                .map(|answer| json!(answer)),
            "resources/read" => self
                .running
                .read_resource(read(params))
                .await
                .map(|answer| json!(answer)),
            _ => {
                let request = read(json!({ "method": method, "params": params }));
                self.running
                    .send_request(request)
                    .await
                    .map(|answer| json!(answer))
            }
        };
        answer.map_err(|error| error.to_string())
    }

    async fn withdraw(&self, call: Value, heard: &Heard) -> Result<(), String> {
        let request = read(json!({ "method": "tools/call", "params": call }));
        let options = PeerRequestOptions::no_options();
        let handle = self
            .running
            .send_cancellable_request(request, options)
            .await;
        let handle = handle.map_err(|error| error.to_string())?;
        heard.wait("notifications/progress", 1).await;
        handle.cancel(None).await.map_err(|error| error.to_string())
    }

    async fn listen(&mut self, uri: Option<&str>, heard: &Heard) -> Result<(), String> {
        if self.modern {
            let filter: SubscriptionFilter = match uri {
                Some(uri) => read(json!({ "resourceSubscriptions": [uri] })),
                None => read(json!({ "toolsListChanged": true })),
            };
            let subscription = self.running.listen(filter).await;
            let mut subscription = subscription.map_err(|error| error.to_string())?;
            let heard = heard.clone();
            tokio::spawn(async move {
                while let Ok(Some(notification)) = subscription.next().await {
                    heard.push(json!(notification));
                }
            });
        } else if let Some(uri) = uri {
            self.request("resources/subscribe", json!({ "uri": uri }))
                .await?;
        }
        Ok(())
    }

    async fn close(self) -> Result<(), String> {
        self.running
            .cancel()
            .await
            .map_err(|error| error.to_string())?;
        Ok(())
    }
}
