//! A server built with rmcp, of both eras, with a little of everything.

// Sampling, roots and logging are deprecated in the protocol and in the SDK.
#![expect(
    deprecated,
    reason = "a client has to deal with them as long as servers have them"
)]

use std::{
    borrow::Cow,
    sync::{Arc, Mutex},
};

use rmcp::{
    ErrorData, Peer, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, CompleteRequestParams,
        CompleteResult, CompletionInfo, ContentBlock, DiscoverResult, GetPromptRequestParams,
        GetPromptResponse, GetPromptResult, InitializeResult, InputRequest, InputRequiredResult,
        ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
        LoggingMessageNotificationParam, PaginatedRequestParams, ProgressNotificationParam, Prompt,
        PromptArgument, PromptMessage, ProtocolVersion, ReadResourceRequestParams,
        ReadResourceResponse, ReadResourceResult, Resource, ResourceContents, ResourceTemplate,
        ResourceUpdatedNotificationParam, Role, ServerRequest, SetLevelRequestParams,
        SubscribeRequestParams, SubscriptionFilter, Tool, UnsubscribeRequestParams,
    },
    service::{RequestContext, SubscriptionContext, SubscriptionSink},
};
use serde_json::{Value, json};

use crate::support::Record;

/// The server. Clones share their state, so that each request can have one.
#[derive(Clone)]
pub(crate) struct Fixture {
    shared: Arc<Shared>,
    versions: &'static [ProtocolVersion],
}

#[derive(Default)]
struct Shared {
    tools: Mutex<Vec<Tool>>,
    level: Mutex<Option<String>>,
    subscribers: Mutex<Vec<(String, Peer<RoleServer>)>>,
    listeners: Mutex<Vec<SubscriptionSink>>,
    seen: Record<String>,
}

/// Items per page of a list.
const PAGE: usize = 2;

impl Fixture {
    /// A server that speaks no newer revision than this.
    pub(crate) fn new(newest: &ProtocolVersion) -> Self {
        let names = [
            "add", "fail", "count", "sleep", "log", "ask", "sample", "roots", "touch", "learn",
        ];
        let shared = Shared {
            tools: Mutex::new(names.into_iter().map(tool).collect()),
            ..Shared::default()
        };
        Self {
            shared: Arc::new(shared),
            versions: ProtocolVersion::known_up_to(newest),
        }
    }

    /// Events that the server saw: probes, subscriptions, starts and ends of sleeps.
    pub(crate) fn seen(&self) -> &Record<String> {
        &self.shared.seen
    }

    async fn count(&self, to: u32, context: &RequestContext<RoleServer>) {
        let Some(token) = context.meta.get_progress_token() else {
            return;
        };
        for step in 1..=to {
            let progress = ProgressNotificationParam::new(token.clone(), f64::from(step));
            let progress = progress.with_total(f64::from(to));
            let _ = context.peer.notify_progress(progress).await;
        }
    }

    async fn sleep(&self, context: &RequestContext<RoleServer>) {
        self.seen().push("sleep began".to_owned());
        context.ct.cancelled().await;
        self.seen().push("sleep was cancelled".to_owned());
    }

    async fn log(&self, message: &str, context: &RequestContext<RoleServer>) {
        let asked_for = match context.meta.log_level() {
            Some(level) => Some(json!(level).to_string()),
            None => self.shared.level.lock().expect("sound").clone(),
        };
        if asked_for.is_some() {
            let message = json!({"level": "info", "logger": "rmcp", "data": message});
            let message: LoggingMessageNotificationParam = read(message);
            let _ = context.peer.notify_logging_message(message).await;
        }
    }

    async fn touch(&self, uri: &str) {
        let subscribers = self.shared.subscribers.lock().expect("sound").clone();
        for (_, peer) in subscribers
            .iter()
            .filter(|(subscribed, _)| subscribed == uri)
        {
            let update = ResourceUpdatedNotificationParam::new(uri);
            let _ = peer.notify_resource_updated(update).await;
        }
        let listeners = self.shared.listeners.lock().expect("sound").clone();
        for sink in listeners {
            let _ = sink.notify_resource_updated(uri).await;
        }
    }

    async fn learn(&self, name: &str, context: &RequestContext<RoleServer>) {
        self.shared.tools.lock().expect("sound").push(tool(name));
        let listeners = self.shared.listeners.lock().expect("sound").clone();
        for sink in listeners {
            let _ = sink.notify_tool_list_changed().await;
        }
        if !is_modern(context) {
            let _ = context.peer.notify_tool_list_changed().await;
        }
    }
}

/// The client's answer to a question; otherwise the result that asks it, or that reports a failure.
async fn ask(
    question: Value,
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<Value, CallToolResponse> {
    if !is_modern(context) {
        let question: ServerRequest = read(question);
        return match context.peer.send_request(question).await {
            Ok(answer) => Ok(json!(answer)),
            Err(error) => {
                let said = ContentBlock::text(error.to_string());
                Err(CallToolResult::error(vec![said]).into())
            }
        };
    }
    let answer = request
        .input_responses
        .as_ref()
        .and_then(|answers| answers.get("the question"));
    if let Some(answer) = answer {
        assert_eq!(request.request_state.as_deref(), Some("what it was about"));
        return Ok(answer.clone());
    }
    let question: InputRequest = read(question);
    let questions = [("the question".to_owned(), question)].into();
    let state = "what it was about".to_owned();
    Err(InputRequiredResult::new(Some(questions), Some(state)).into())
}

impl ServerHandler for Fixture {
    fn get_info(&self) -> InitializeResult {
        let capabilities = json!({
            "tools": {"listChanged": true}, "prompts": {}, "completions": {}, "logging": {},
            "resources": {"subscribe": true},
        });
        InitializeResult::new(read(capabilities)).with_instructions("A fixture.")
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        self.versions.into()
    }

    async fn discover(&self, _: RequestContext<RoleServer>) -> Result<DiscoverResult, ErrorData> {
        self.seen().push("discovered".to_owned());
        let versions = self.versions.to_vec();
        Ok(DiscoverResult::from_server_info(versions, self.get_info()))
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let from = request
            .and_then(|request| request.cursor?.parse().ok())
            .unwrap_or(0);
        let tools = self.shared.tools.lock().expect("sound");
        let next = from + PAGE;
        Ok(ListToolsResult {
            tools: tools.iter().skip(from).take(PAGE).cloned().collect(),
            next_cursor: (next < tools.len()).then(|| next.to_string()),
            ..ListToolsResult::default()
        })
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = json!(request.arguments);
        let text = |name: &str| arguments[name].as_str().unwrap_or_default().to_owned();
        let said = match &*request.name {
            "add" => {
                let sum = arguments["a"]
                    .as_i64()
                    .zip(arguments["b"].as_i64())
                    .map(|(a, b)| a + b);
                return Ok(CallToolResult::structured(json!({"sum": sum})).into());
            }
            "fail" => {
                let said = ContentBlock::text(text("message"));
                return Ok(CallToolResult::error(vec![said]).into());
            }
            "count" => {
                self.count(read(arguments["to"].clone()), &context).await;
                "counted".to_owned()
            }
            "sleep" => {
                self.sleep(&context).await;
                "awake".to_owned()
            }
            "log" => {
                self.log(&text("message"), &context).await;
                "logged".to_owned()
            }
            "touch" => {
                self.touch(&text("uri")).await;
                "touched".to_owned()
            }
            "learn" => {
                self.learn(&text("name"), &context).await;
                "learnt".to_owned()
            }
            question @ ("ask" | "sample" | "roots") => {
                match ask(question_of(question), &request, &context).await {
                    Ok(answer) => answer.to_string(),
                    Err(asking) => return Ok(asking),
                }
            }
            unknown => {
                return Err(ErrorData::invalid_params(
                    format!("Unknown tool: {unknown}"),
                    None,
                ));
            }
        };
        Ok(CallToolResult::success(vec![ContentBlock::text(said)]).into())
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let argument = PromptArgument::new("name").with_required(true);
        let prompt = Prompt::new("greet", Some("Greets someone."), Some(vec![argument]));
        Ok(ListPromptsResult {
            prompts: vec![prompt],
            ..ListPromptsResult::default()
        })
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let name = json!(request.arguments)["name"].clone();
        let message = PromptMessage::new_text(Role::User, format!("Say hello to {name}."));
        Ok(GetPromptResult::new(vec![message]).into())
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let values = ["Ann", "Anton", "Ben"].into_iter().map(str::to_owned);
        let values = values
            .filter(|name| name.starts_with(&request.argument.value))
            .collect();
        Ok(CompleteResult::new(
            CompletionInfo::new(values).expect("a few"),
        ))
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let resources = vec![Resource::new("fixture://about", "about")];
        Ok(ListResourcesResult {
            resources,
            ..ListResourcesResult::default()
        })
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let resource_templates = vec![ResourceTemplate::new("fixture://{name}", "any")];
        Ok(ListResourceTemplatesResult {
            resource_templates,
            ..ListResourceTemplatesResult::default()
        })
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        if !request.uri.starts_with("fixture://") {
            return Err(ErrorData::resource_not_found("no such resource", None));
        }
        let contents = ResourceContents::text("a fixture", request.uri);
        Ok(ReadResourceResult::new(vec![contents]).into())
    }

    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let level = json!(request.level).to_string();
        *self.shared.level.lock().expect("sound") = Some(level);
        Ok(())
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.seen().push(format!("subscribed to {}", request.uri));
        self.shared
            .subscribers
            .lock()
            .expect("sound")
            .push((request.uri, context.peer));
        Ok(())
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let mut subscribers = self.shared.subscribers.lock().expect("sound");
        subscribers.retain(|(uri, _)| *uri != request.uri);
        Ok(())
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        for uri in requested.resource_subscriptions.iter().flatten() {
            self.seen().push(format!("subscribed to {uri}"));
        }
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        self.shared
            .listeners
            .lock()
            .expect("sound")
            .push(context.sink().clone());
        context.cancelled().await;
        Ok(())
    }
}

fn tool(name: &str) -> Tool {
    read(json!({"name": name, "inputSchema": {"type": "object"}}))
}

fn question_of(tool: &str) -> Value {
    match tool {
        "ask" => json!({"method": "elicitation/create", "params": {
            "mode": "form",
            "message": "Who are you?",
            "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}},
        }}),
        "sample" => json!({"method": "sampling/createMessage", "params": {
            "messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}],
            "maxTokens": 100,
        }}),
        _ => json!({"method": "roots/list"}),
    }
}

fn is_modern(context: &RequestContext<RoleServer>) -> bool {
    context.protocol_version() >= Some(ProtocolVersion::V_2026_07_28)
}

fn read<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("it is spelled well")
}
