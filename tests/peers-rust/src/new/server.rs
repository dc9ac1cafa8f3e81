//! The server.

// Sampling, roots and logging are deprecated in the protocol and in the SDK.
#![expect(deprecated, reason = "they are here as long as others have them")]

use std::sync::Arc;

use axum::Router;
use rmcp::{
    ErrorData, Peer as Connection, RoleServer, ServerHandler, ServiceExt,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, GetPromptRequestParams,
        GetPromptResponse, GetPromptResult, InitializeResult, InputRequiredResult,
        ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
        PaginatedRequestParams, ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse,
        ReadResourceResult, SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter,
        UnsubscribeRequestParams,
    },
    service::{NotificationContext, RequestContext, SubscriptionContext, SubscriptionSink},
    transport::streamable_http_server::{
        StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
    },
};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::peer::{Caller, Listener, NoAnswer, Outcome, Peer, read, result};

/// The server as one client, or one request, sees it.
#[derive(Clone, Default)]
struct New {
    peer: Arc<Peer<Subscriber>>,
}

/// A subscriber of a resource; of the list of tools if there is none.
#[derive(Clone)]
enum Subscriber {
    Session(Connection<RoleServer>, Option<String>),
    Stream(SubscriptionSink, SubscriptionFilter),
}

impl Listener for Subscriber {
    async fn tell(&self, notification: Value) {
        // A client that has disconnected gets no notification.
        match self {
            Self::Session(connection, _) => {
                let _ = connection.send_notification(read(notification)).await;
            }
            Self::Stream(sink, _) => {
                let _ = match notification["params"]["uri"].as_str() {
                    Some(uri) => sink.notify_resource_updated(uri).await,
                    None => sink.notify_tool_list_changed().await,
                };
            }
        }
    }

    fn hears(&self, uri: Option<&str>) -> bool {
        match (self, uri) {
            (Self::Session(_, known), uri) => known.as_deref() == uri,
            (Self::Stream(_, filter), None) => filter.tools_list_changed == Some(true),
            (Self::Stream(_, filter), Some(uri)) => {
                let mut uris = filter.resource_subscriptions.iter().flatten();
                uris.any(|known| known == uri)
            }
        }
    }
}

/// A call and its context.
struct Call {
    context: RequestContext<RoleServer>,
    answer: Option<Value>,
}

impl Call {
    fn is_modern(&self) -> bool {
        self.context.protocol_version() >= Some(ProtocolVersion::V_2026_07_28)
    }
}

impl Caller for Call {
    async fn ask(&self, question: Value) -> Result<Value, NoAnswer> {
        if self.is_modern() {
            return self.answer.clone().ok_or(NoAnswer::Later(question));
        }
        let answer = self.context.peer.send_request(read(question)).await;
        let answer = answer.map_err(|error| NoAnswer::Never(error.to_string()))?;
        Ok(json!(answer))
    }

    async fn tell(&self, notification: Value) {
        let _ = self
            .context
            .peer
            .send_notification(read(notification))
            .await;
    }

    async fn withdrawn(&self) {
        self.context.ct.cancelled().await;
    }

    fn token(&self) -> Option<Value> {
        self.context
            .meta
            .get_progress_token()
            .map(|token| json!(token))
    }

    fn wants_logs(&self) -> bool {
        !self.is_modern() || self.context.meta.log_level().is_some()
    }
}

type Context = RequestContext<RoleServer>;

impl ServerHandler for New {
    fn get_info(&self) -> InitializeResult {
        read(Peer::<Subscriber>::info())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(complete(self.peer.tools()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: Context,
    ) -> Result<CallToolResponse, ErrorData> {
        let answers = request.input_responses.as_ref();
        let answer = answers.and_then(|answers| answers.get("question"));
        let answer = answer.map(|answer| json!(answer));
        let outcome = self
            .peer
            .call(&json!(request), &Call { context, answer })
            .await;
        let done: CallToolResult = match outcome {
            Outcome::Text(text) => complete(result(&text, false)),
            Outcome::Failure(text) => complete(result(&text, true)),
            Outcome::Question(question) => {
                let questions = [("question".to_owned(), read(question))].into();
                let state = Some("what it was about".to_owned());
                return Ok(InputRequiredResult::new(Some(questions), state).into());
            }
        };
        Ok(done.into())
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(complete(Peer::<Subscriber>::prompts()))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: Context,
    ) -> Result<GetPromptResponse, ErrorData> {
        let prompt: GetPromptResult = complete(Peer::<Subscriber>::prompt(&json!(request)));
        Ok(prompt.into())
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(complete(Peer::<Subscriber>::resources()))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(complete(Peer::<Subscriber>::templates()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: Context,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let contents = self.peer.read(&request.uri);
        let contents = contents.ok_or(ErrorData::resource_not_found("no such resource", None))?;
        let contents: ReadResourceResult = complete(contents);
        Ok(contents.into())
    }

    async fn set_level(&self, _: SetLevelRequestParams, _: Context) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: Context,
    ) -> Result<(), ErrorData> {
        self.peer
            .listen(Subscriber::Session(context.peer, Some(request.uri)));
        Ok(())
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _: Context,
    ) -> Result<(), ErrorData> {
        let is_it = |listener: &Subscriber| matches!(listener, Subscriber::Session(_, Some(uri)) if *uri == request.uri);
        self.peer.forget(is_it);
        Ok(())
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        self.peer.listen(Subscriber::Session(context.peer, None));
    }

    // The SDK acknowledges the filter that this returns, and only then calls `listen`.
    fn accepted_subscription_filter(
        &self,
        wanted: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        self.peer.expect_one();
        Some(wanted.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let filter = context.accepted().clone();
        self.peer
            .listen_as_expected(Subscriber::Stream(context.sink().clone(), filter));
        context.cancelled().await;
        Ok(())
    }
}

/// A result with the members that the newest revision requires; the SDK removes them for the older ones.
fn complete<T: serde::de::DeserializeOwned>(mut result: Value) -> T {
    result["resultType"] = "complete".into();
    result["ttlMs"] = 0.into();
    result["cacheScope"] = "private".into();
    read(result)
}

pub async fn stdio() -> Result<(), String> {
    let running = New::default().serve(rmcp::transport::stdio()).await;
    let running = running.map_err(|error| error.to_string())?;
    running.waiting().await.map_err(|error| error.to_string())?;
    Ok(())
}

pub async fn http() -> Result<(), String> {
    let new = New::default();
    let config = StreamableHttpServerConfig::default();
    let sessions = Arc::new(LocalSessionManager::default());
    let service = StreamableHttpService::new(move || Ok(new.clone()), sessions, config);
    listen(Router::new().route_service("/mcp", service)).await
}

/// Serves on a free port, and prints it.
pub async fn listen(app: Router) -> Result<(), String> {
    let listener = TcpListener::bind("127.0.0.1:0")
        .await
        .map_err(|error| error.to_string())?;
    let address = listener.local_addr().map_err(|error| error.to_string())?;
    eprintln!("listening on http://{address}");
    axum::serve(listener, app)
        .await
        .map_err(|error| error.to_string())
}
