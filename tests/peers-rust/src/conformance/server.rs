//! The handler, and the ways to serve it.

#![expect(
    deprecated,
    reason = "the suite has scenarios for logging and subscriptions"
)]

use std::{
    borrow::Cow,
    collections::BTreeMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use axum::Router;
use rmcp::{
    ErrorData, RoleServer, ServerHandler, ServiceExt,
    model::{
        CacheScope, CallToolRequestParams, CallToolResponse, CompleteRequestParams, CompleteResult,
        CompletionInfo, ContentBlock, GetPromptRequestParams, GetPromptResponse, GetPromptResult,
        Implementation, InitializeResult, ListPromptsResult, ListResourceTemplatesResult,
        ListResourcesResult, ListToolsResult, PaginatedRequestParams, Prompt, PromptArgument,
        PromptMessage, ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse,
        ReadResourceResult, RequestStateCodec, Resource, ResourceContents, ResourceTemplate, Role,
        ServerCapabilities, SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter,
        Tool, UnsubscribeRequestParams,
    },
    service::{RequestContext, SubscriptionContext, SubscriptionSink},
    transport::streamable_http_server::{
        StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
    },
};
use serde_json::json;

use super::{inputs, tools};

pub(super) type Context = RequestContext<RoleServer>;

/// The revisions that the server speaks.
#[derive(Clone, Copy)]
enum Eras {
    /// All of them.
    Both,
    /// The handshake revisions.
    Old,
    /// 2026-07-28.
    New,
}

#[derive(Clone)]
struct Conformance {
    eras: Eras,
    states: RequestStateCodec,
    listeners: Arc<Mutex<BTreeMap<u64, SubscriptionSink>>>,
    next_listener: Arc<AtomicU64>,
}

impl Conformance {
    fn new(eras: Eras) -> Self {
        Self {
            eras,
            states: RequestStateCodec::new_unchecked("a key for tests, of 32 bytes and more"),
            listeners: Arc::default(),
            next_listener: Arc::default(),
        }
    }

    fn listeners(&self) -> Vec<SubscriptionSink> {
        let listeners = self.listeners.lock();
        let listeners = listeners.unwrap_or_else(PoisonError::into_inner);
        listeners.values().cloned().collect()
    }
}

impl ServerHandler for Conformance {
    fn get_info(&self) -> InitializeResult {
        let capabilities = ServerCapabilities::builder()
            .enable_completions()
            .enable_logging()
            .enable_prompts()
            .enable_prompts_list_changed()
            .enable_resources()
            .enable_resources_list_changed()
            .enable_resources_subscribe()
            .enable_tools()
            .enable_tool_list_changed()
            .build();
        InitializeResult::new(capabilities)
            .with_server_info(Implementation::new("rust-conformance", "1.0.0"))
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(match self.eras {
            Eras::Both => ProtocolVersion::KNOWN_VERSIONS,
            Eras::Old => ProtocolVersion::known_up_to(&ProtocolVersion::LATEST_WITH_INITIALIZE),
            Eras::New => &[ProtocolVersion::V_2026_07_28],
        })
    }

    // The transport calls this to find the headers that a tool requires.
    fn get_tool(&self, name: &str) -> Option<Tool> {
        tools::all().into_iter().find(|tool| tool.name == name)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(tools::all())
            .with_ttl_ms(1000)
            .with_cache_scope(CacheScope::Public))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: Context,
    ) -> Result<CallToolResponse, ErrorData> {
        match &*request.name {
            "test_trigger_tool_change" => {
                for listener in self.listeners() {
                    // A client that has disconnected gets no notification.
                    let _ = listener.notify_tool_list_changed().await;
                }
                Ok(tools::text("told").into())
            }
            "test_trigger_prompt_change" => {
                for listener in self.listeners() {
                    let _ = listener.notify_prompt_list_changed().await;
                }
                Ok(tools::text("told").into())
            }
            name if inputs::TOOLS.contains(&name) => inputs::call(&request, &context, &self.states),
            _ => Ok(tools::call(&request, &context).await?.into()),
        }
    }

    fn accepted_subscription_filter(
        &self,
        wanted: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        Some(wanted.supported_by(&self.get_info().capabilities))
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let key = self.next_listener.fetch_add(1, Ordering::Relaxed);
        let locked = || {
            self.listeners
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
        };
        locked().insert(key, context.sink().clone());
        context.cancelled().await;
        locked().remove(&key);
        Ok(())
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListResourcesResult, ErrorData> {
        let plain =
            |uri: &str| Resource::new(uri, uri.replace("test://", "")).with_mime_type("text/plain");
        let resources = vec![
            plain("test://static-text"),
            plain("test://static-binary").with_mime_type("image/png"),
            plain("test://watched-resource"),
        ];
        Ok(ListResourcesResult::with_all_items(resources)
            .with_ttl_ms(1000)
            .with_cache_scope(CacheScope::Public))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let template = ResourceTemplate::new("test://template/{id}/data", "template")
            .with_mime_type("application/json");
        Ok(ListResourceTemplatesResult::with_all_items(vec![template])
            .with_ttl_ms(1000)
            .with_cache_scope(CacheScope::Public))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: Context,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let uri = &*request.uri;
        let id = uri.strip_prefix("test://template/");
        let id = id.and_then(|rest| rest.strip_suffix("/data"));
        let contents = match (uri, id) {
            ("test://static-text" | "test://watched-resource", _) => {
                ResourceContents::text("This is the content of the static text resource.", uri)
            }
            ("test://static-binary", _) => {
                ResourceContents::blob(tools::PNG, uri).with_mime_type("image/png")
            }
            (_, Some(id)) => {
                let data = format!("Data for ID: {id}");
                let data = json!({ "id": id, "templateTest": true, "data": data });
                ResourceContents::text(data.to_string(), uri).with_mime_type("application/json")
            }
            (_, None) => {
                let data = Some(json!({ "uri": uri }));
                return Err(ErrorData::resource_not_found("no such resource", data));
            }
        };
        let result = ReadResourceResult::new(vec![contents]);
        Ok(result
            .with_ttl_ms(1000)
            .with_cache_scope(CacheScope::Public)
            .into())
    }

    async fn subscribe(&self, _: SubscribeRequestParams, _: Context) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn unsubscribe(&self, _: UnsubscribeRequestParams, _: Context) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn set_level(&self, _: SetLevelRequestParams, _: Context) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn complete(
        &self,
        _: CompleteRequestParams,
        _: Context,
    ) -> Result<CompleteResult, ErrorData> {
        let values = CompletionInfo::new(vec!["one".to_owned()]);
        let values = values.map_err(|error| ErrorData::internal_error(error, None))?;
        Ok(CompleteResult::new(values))
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListPromptsResult, ErrorData> {
        let prompt = |name: &str, arguments: &[&str]| {
            let arguments = arguments.iter();
            let arguments =
                arguments.map(|argument| PromptArgument::new(*argument).with_required(true));
            Prompt::new(name, Some(name), Some(arguments.collect()))
        };
        let prompts = vec![
            prompt("test_simple_prompt", &[]),
            prompt("test_prompt_with_arguments", &["arg1", "arg2"]),
            prompt("test_prompt_with_embedded_resource", &["resourceUri"]),
            prompt("test_prompt_with_image", &[]),
            prompt(inputs::PROMPT, &[]),
        ];
        Ok(ListPromptsResult::with_all_items(prompts)
            .with_ttl_ms(1000)
            .with_cache_scope(CacheScope::Public))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: Context,
    ) -> Result<GetPromptResponse, ErrorData> {
        let argument = |name: &str| {
            let value = request.arguments.as_ref().and_then(|all| all.get(name));
            value.and_then(|value| value.as_str()).unwrap_or_default()
        };
        let content = match &*request.name {
            inputs::PROMPT => return Ok(inputs::prompt(&request)),
            "test_simple_prompt" => ContentBlock::text("This is a simple prompt for testing."),
            "test_prompt_with_arguments" => ContentBlock::text(format!(
                "Prompt with arguments: arg1='{}', arg2='{}'",
                argument("arg1"),
                argument("arg2")
            )),
            "test_prompt_with_embedded_resource" => {
                let text = "Embedded resource content for testing.";
                ContentBlock::embedded_text(argument("resourceUri"), text)
            }
            "test_prompt_with_image" => ContentBlock::image(tools::PNG, "image/png"),
            name => {
                return Err(ErrorData::invalid_params(format!("no prompt {name}"), None));
            }
        };
        let message = PromptMessage::new(Role::User, content);
        Ok(GetPromptResult::new(vec![message]).into())
    }
}

pub async fn serve(eras: &str, transport: &str) -> Result<(), String> {
    let server = Conformance::new(match eras {
        "both" => Eras::Both,
        "old" => Eras::Old,
        "new" => Eras::New,
        _ => return Err(format!("not both, old or new: {eras}")),
    });
    if transport == "stdio" {
        let running = server.serve(rmcp::transport::stdio()).await;
        let running = running.map_err(|error| error.to_string())?;
        running.waiting().await.map_err(|error| error.to_string())?;
        return Ok(());
    }
    let config = StreamableHttpServerConfig::default();
    let sessions = Arc::new(LocalSessionManager::default());
    let service = StreamableHttpService::new(move || Ok(server.clone()), sessions, config);
    crate::new::server::listen(Router::new().route_service("/mcp", service)).await
}
