//! The revisions with a handshake, 2024-11-05 to 2025-11-25.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::{
    call::{Asks, Call, Stop, severity},
    feed::{Feed, held},
    offers,
    options::Revision,
    rpc::{self, Answer, Fault, INVALID_REQUEST, Message},
    session::{Client, Session},
    tasks::Task,
    tools::{self, Tasks},
    world::World,
};

/// Whether a request may take long, so that others must not wait for it.
pub(crate) fn takes_long(method: &str) -> bool {
    matches!(
        method,
        "tools/call" | "prompts/get" | "tasks/result" | "tasks/cancel"
    )
}

/// Does what a message wants, and answers on the feed. A call that is cancelled is not answered.
///
/// What is returned is the work itself; that it runs is noted before, so that a cancellation that
/// comes right behind it finds it.
pub(crate) fn handle(
    world: Arc<World>,
    session: Arc<Session>,
    message: Message,
    feed: Arc<Feed>,
) -> impl Future<Output = ()> + Send + 'static {
    let is_request = message.method.is_some();
    let id = message.id.clone().filter(|_| is_request);
    let running = id.map(|id| (session.running(&id), id));
    async move {
        let Some(method) = &message.method else {
            return session.answered(message);
        };
        world.count(method);
        let Some((cancelled, id)) = running else {
            if method == "notifications/cancelled" {
                session.done(&message.params()["requestId"]);
            }
            return;
        };
        let answer = tokio::select! {
            // What has begun is seen to have begun before it is cancelled.
            biased;
            answer = respond(&world, &session, &message, method, &feed) => answer,
            _ = cancelled => return,
        };
        session.done(&id);
        feed.push(rpc::response(&id, &answer));
    }
}

async fn respond(
    world: &Arc<World>,
    session: &Arc<Session>,
    message: &Message,
    method: &str,
    feed: &Arc<Feed>,
) -> Result<Answer, Fault> {
    let params = message.params();
    if method == "initialize" {
        return initialize(world, session, &params);
    }
    if method == "ping" {
        return Ok(json!({}).into());
    }
    let client = held(&session.client).clone();
    let Some(client) = client else {
        return Err(match method {
            "server/discover" => Fault::no_method(method),
            _ => Fault::new(INVALID_REQUEST, "initialize comes first"),
        });
    };
    let revision = client.revision;
    let call = || call(world, session, &client, message, feed, &params);
    Ok(match method {
        "tools/list" => tool_list(world, revision, &params)?.into(),
        "tools/call" => call_tool(call(), &params).await?,
        "prompts/list" => offers::prompts(world, revision).into(),
        "prompts/get" => match offers::prompt(&call()).await {
            Ok(answer) => answer,
            Err(Stop::Failed(text)) => return Err(Fault::new(-32603, text)),
            Err(other) => other.into_result()?,
        },
        "resources/list" => offers::resources().into(),
        "resources/templates/list" => offers::templates().into(),
        "resources/read" => offers::read(&uri(&params)?, revision)?.into(),
        "resources/subscribe" => {
            held(&session.subscriptions).insert(uri(&params)?);
            json!({}).into()
        }
        "resources/unsubscribe" => {
            held(&session.subscriptions).remove(&uri(&params)?);
            json!({}).into()
        }
        "completion/complete" => offers::complete(&params)?.into(),
        "logging/setLevel" => {
            let level = params["level"]
                .as_str()
                .filter(|level| severity(level).is_some());
            let level = level.ok_or_else(|| Fault::invalid("Unknown log level"))?;
            *held(&session.log_level) = Some(level.to_owned());
            json!({}).into()
        }
        "tasks/get" | "tasks/result" | "tasks/cancel" | "tasks/list"
            if revision == Revision::V2025_11_25 =>
        {
            core_task(world, method, &params).await?
        }
        unknown => return Err(Fault::no_method(unknown)),
    })
}

fn initialize(world: &World, session: &Session, params: &Value) -> Result<Answer, Fault> {
    let wanted = params["protocolVersion"].as_str();
    let wanted = wanted.ok_or_else(|| Fault::invalid("initialize needs a protocolVersion"))?;
    let spoken = |revision: &Revision| {
        *revision < Revision::MODERN && world.options.revisions.contains(revision)
    };
    let revision = Revision::parse(wanted).filter(spoken);
    let Some(revision) = revision.or(world.options.newest_legacy()) else {
        return Err(Fault::new(
            INVALID_REQUEST,
            "No revision with a handshake is spoken here",
        ));
    };
    *held(&session.client) = Some(Client {
        revision,
        info: params["clientInfo"].clone(),
        capabilities: params["capabilities"].clone(),
    });
    let mut capabilities = json!({
        "tools": { "listChanged": true },
        "prompts": { "listChanged": true },
        "resources": { "subscribe": true, "listChanged": true },
        "logging": {},
    });
    if revision >= Revision::V2025_03_26 {
        capabilities["completions"] = json!({});
    }
    if revision == Revision::V2025_11_25 {
        let requests = json!({ "tools": { "call": {} } });
        capabilities["tasks"] = json!({ "list": {}, "cancel": {}, "requests": requests });
    }
    Ok(json!({
        "protocolVersion": revision.name(),
        "capabilities": capabilities,
        "serverInfo": World::info(),
        "instructions": "A server for tests",
    })
    .into())
}

fn call(
    world: &Arc<World>,
    session: &Arc<Session>,
    client: &Client,
    message: &Message,
    feed: &Arc<Feed>,
    params: &Value,
) -> Call {
    Call {
        world: world.clone(),
        revision: client.revision,
        client_info: client.info.clone(),
        capabilities: client.capabilities.clone(),
        log_level: held(&session.log_level).clone(),
        progress_token: params["_meta"].get("progressToken").cloned(),
        feed: feed.clone(),
        name: params["name"].as_str().unwrap_or_default().to_owned(),
        arguments: params
            .get("arguments")
            .cloned()
            .unwrap_or_else(|| json!({})),
        raw_arguments: message.arguments(),
        asks: Asks::Session(session.clone()),
    }
}

async fn call_tool(call: Call, params: &Value) -> Result<Answer, Fault> {
    let tools = tools::listed(&call.world, call.revision);
    let tool = tools.iter().find(|tool| tool.name == call.name);
    let tool = tool.ok_or_else(|| Fault::invalid(format!("Unknown tool: {}", call.name)))?;
    let has_tasks = call.revision == Revision::V2025_11_25;
    if has_tasks && tool.tasks == Tasks::CoreOnly {
        if params["task"].is_null() {
            return Err(Fault::no_method("tools/call of this tool without a task"));
        }
        let task = Task::start(call, serde_json::Map::new());
        return Ok(json!({ "task": task.core() }).into());
    }
    tools::run(&call).await.or_else(Stop::into_result)
}

async fn core_task(world: &World, method: &str, params: &Value) -> Result<Answer, Fault> {
    if method == "tasks/list" {
        let tasks: Vec<Value> = held(&world.tasks)
            .values()
            .map(|task| task.core())
            .collect();
        return Ok(json!({ "tasks": tasks }).into());
    }
    let id = params["taskId"].as_str().unwrap_or_default();
    let task = held(&world.tasks).get(id).cloned();
    let task = task.ok_or_else(|| Fault::invalid(format!("Unknown task: {id}")))?;
    match method {
        "tasks/cancel" => {
            task.cancel().await;
            Ok(task.core().into())
        }
        "tasks/result" => {
            task.ended().await;
            let result = task.result();
            let mut answer = result.ok_or_else(|| Fault::invalid("The task was cancelled"))??;
            let related = json!({ "io.modelcontextprotocol/related-task": { "taskId": id } });
            answer.members.insert("_meta".to_owned(), related);
            Ok(answer)
        }
        _ => Ok(task.core().into()),
    }
}

/// A page of the tools, or all of them.
pub(crate) fn tool_list(world: &World, revision: Revision, params: &Value) -> Result<Value, Fault> {
    const PAGE: usize = 10;
    let tools = tools::listed(world, revision);
    let tools: Vec<Value> = tools.iter().map(|tool| tool.json(revision)).collect();
    let start = match params.get("cursor") {
        None | Some(Value::Null) => 0,
        Some(cursor) => {
            let start = cursor
                .as_str()
                .and_then(|cursor| cursor.strip_prefix("from-"));
            let start = start.and_then(|start| start.parse().ok());
            let start = start.filter(|start| world.options.paged && *start < tools.len());
            start.ok_or_else(|| Fault::invalid("Unknown cursor"))?
        }
    };
    if !world.options.paged {
        return Ok(json!({ "tools": tools }));
    }
    let end = tools.len().min(start + PAGE);
    let mut page = json!({ "tools": tools[start..end] });
    if end < tools.len() {
        page["nextCursor"] = json!(format!("from-{end}"));
    }
    Ok(page)
}

pub(crate) fn uri(params: &Value) -> Result<String, Fault> {
    let uri = params["uri"].as_str().map(str::to_owned);
    uri.ok_or_else(|| Fault::invalid("A uri is missing"))
}
