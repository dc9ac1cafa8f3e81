//! The client.

use old_reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use old_rmcp::{
    ErrorData, RoleClient, Service, ServiceExt,
    model::{ClientInfo, ClientResult, ServerNotification, ServerRequest},
    service::{NotificationContext, PeerRequestOptions, RequestContext, RunningService},
    transport::{
        SseClientTransport, StreamableHttpClientTransport, TokioChildProcess,
        sse_client::SseClientConfig, streamable_http_client::StreamableHttpClientTransportConfig,
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

    fn get_info(&self) -> ClientInfo {
        read(info("rust-old"))
    }
}

pub struct Old(RunningService<RoleClient, User>);

pub async fn connect(tour: &Value, heard: Heard) -> Result<Old, String> {
    let user = User(heard);
    let token = tour["token"].as_str().unwrap_or_default();
    let running = if let Some(url) = tour["url"].as_str() {
        let config = StreamableHttpClientTransportConfig::with_uri(url).auth_header(token);
        let client = old_reqwest::Client::new();
        user.serve(StreamableHttpClientTransport::with_client(client, config))
            .await
    } else if let Some(url) = tour["sse"].as_str() {
        let bearer =
            HeaderValue::from_str(&format!("Bearer {token}")).map_err(|error| error.to_string())?;
        let headers = HeaderMap::from_iter([(AUTHORIZATION, bearer)]);
        let client = old_reqwest::Client::builder()
            .default_headers(headers)
            .build();
        let client = client.map_err(|error| error.to_string())?;
        let config = SseClientConfig {
            sse_endpoint: url.into(),
            ..SseClientConfig::default()
        };
        let transport = SseClientTransport::start_with_client(client, config).await;
        user.serve(transport.map_err(|error| error.to_string())?)
            .await
    } else {
        let mut words = tour["command"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str);
        let mut command = Command::new(words.next().unwrap_or_default());
        command.args(words);
        let process = TokioChildProcess::new(command).map_err(|error| error.to_string())?;
        user.serve(process).await
    };
    running.map(Old).map_err(|error| error.to_string())
}

impl Client for Old {
    fn revision(&self) -> String {
        let version = self.0.peer_info().map(|info| json!(info.protocol_version));
        let version = version.as_ref().and_then(Value::as_str);
        version.unwrap_or_default().to_owned()
    }

    async fn request(&self, method: &str, params: Value) -> Result<Value, String> {
        let request = read(json!({ "method": method, "params": params }));
        let answer = self.0.send_request(request).await;
        answer
            .map(|answer| json!(answer))
            .map_err(|error| error.to_string())
    }

    async fn withdraw(&self, call: Value, heard: &Heard) -> Result<(), String> {
        let request = read(json!({ "method": "tools/call", "params": call }));
        let options = PeerRequestOptions::no_options();
        let handle = self.0.send_cancellable_request(request, options).await;
        let handle = handle.map_err(|error| error.to_string())?;
        heard.wait("notifications/progress", 1).await;
        handle.cancel(None).await.map_err(|error| error.to_string())
    }

    async fn listen(&mut self, uri: Option<&str>, _: &Heard) -> Result<(), String> {
        let Some(uri) = uri else { return Ok(()) };
        self.request("resources/subscribe", json!({ "uri": uri }))
            .await?;
        Ok(())
    }

    async fn close(self) -> Result<(), String> {
        self.0.cancel().await.map_err(|error| error.to_string())?;
        Ok(())
    }
}
