//! The revision without a handshake, 2026-07-28.

use std::{future, sync::Arc};

use serde_json::{Map, Value, json};
use tokio::sync::oneshot;

use crate::{
    call::{Asks, Call, Retry, State, Stop},
    feed::{Feed, held},
    legacy::{tool_list, uri},
    offers,
    options::Revision,
    rpc::{self, Answer, Fault, Message, UNSUPPORTED_VERSION},
    seal,
    tasks::{self, Task},
    tools::{self, Tasks},
    world::{Listener, World},
};

const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CLIENT: &str = "io.modelcontextprotocol/clientInfo";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// Whether a message is of this era, by its looks.
pub(crate) fn speaks(message: &Message) -> bool {
    let params = message.params();
    let meta = &params["_meta"];
    let marked = [VERSION, CAPABILITIES]
        .iter()
        .any(|key| meta.get(key).is_some());
    marked || message.method.as_deref() == Some("server/discover")
}

/// The version that a message names.
pub(crate) fn version(message: &Message) -> Option<String> {
    let params = message.params();
    params["_meta"][VERSION].as_str().map(str::to_owned)
}

/// Checks what every request carries.
pub(crate) fn check_meta(message: &Message) -> Result<(), Fault> {
    let params = message.params();
    let meta = &params["_meta"];
    if !meta[VERSION].is_string() {
        return Err(Fault::invalid(format!("_meta has no {VERSION}")));
    }
    if !meta[CAPABILITIES].is_object() {
        return Err(Fault::invalid(format!("_meta has no {CAPABILITIES}")));
    }
    Ok(())
}

/// What is said to a version that is not spoken here.
pub(crate) fn unsupported(world: &World, requested: &str) -> Fault {
    let supported = world.options.names();
    Fault::new(
        UNSUPPORTED_VERSION,
        format!("Unsupported protocol version: {requested}"),
    )
    .with(json!({ "supported": supported, "requested": requested }))
}

/// Does what a request wants, and answers on the feed, unless it is cancelled first.
pub(crate) async fn handle(
    world: Arc<World>,
    message: Message,
    feed: Arc<Feed>,
    cancelled: oneshot::Receiver<()>,
) {
    let (Some(method), Some(id)) = (&message.method, &message.id) else {
        return;
    };
    world.count(method);
    let answer = tokio::select! {
        // What has begun is seen to have begun before it is cancelled.
        biased;
        answer = respond(&world, &message, method, id, &feed) => answer,
        _ = cancelled => return,
    };
    let answer = answer.map(|mut answer| {
        let members = &mut answer.members;
        members
            .entry("resultType")
            .or_insert_with(|| json!("complete"));
        let meta = members.entry("_meta").or_insert_with(|| json!({}));
        meta["io.modelcontextprotocol/serverInfo"] = World::info();
        answer
    });
    feed.push(rpc::response(id, &answer));
}

async fn respond(
    world: &Arc<World>,
    message: &Message,
    method: &str,
    id: &Value,
    feed: &Arc<Feed>,
) -> Result<Answer, Fault> {
    let params = message.params();
    if method == "initialize" && !speaks(message) {
        let wanted = params["protocolVersion"].as_str().unwrap_or_default();
        return Err(unsupported(world, wanted));
    }
    check_meta(message)?;
    let meta = &params["_meta"];
    let wanted = meta[VERSION].as_str().unwrap_or_default();
    if wanted != Revision::MODERN.name() {
        return Err(unsupported(world, wanted));
    }
    let revision = Revision::MODERN;
    Ok(match method {
        "server/discover" => cached(world, discover(world)),
        "tools/list" => cached(world, tool_list(world, revision, &params)?),
        "prompts/list" => cached(world, offers::prompts(world, revision)),
        "resources/list" => cached(world, offers::resources()),
        "resources/templates/list" => cached(world, offers::templates()),
        "resources/read" => cached(world, offers::read(&uri(&params)?, revision)?),
        "completion/complete" => offers::complete(&params)?.into(),
        "tools/call" => call_tool(call(world, message, method, feed, &params)?).await?,
        "prompts/get" => {
            let call = call(world, message, method, feed, &params)?;
            ended(offers::prompt(&call).await, |text| {
                Err(Fault::new(-32603, text))
            })?
        }
        "subscriptions/listen" => listen(world, id, feed, &params).await,
        "tasks/get" | "tasks/update" | "tasks/cancel" => task(world, method, &params).await?,
        unknown => return Err(Fault::no_method(unknown)),
    })
}

fn discover(world: &World) -> Value {
    json!({
        "supportedVersions": world.options.names(),
        "capabilities": {
            "tools": { "listChanged": true },
            "prompts": { "listChanged": true },
            "resources": { "subscribe": true, "listChanged": true },
            "logging": {},
            "completions": {},
            "extensions": { tasks::EXTENSION: {} },
        },
        "instructions": "A server for tests",
    })
}

/// With the hints for caches.
fn cached(world: &World, mut result: Value) -> Answer {
    let ttl = u64::try_from(world.options.ttl.as_millis()).unwrap_or(u64::MAX);
    result["ttlMs"] = json!(ttl);
    result["cacheScope"] = json!(world.options.scope);
    result.into()
}

fn call(
    world: &Arc<World>,
    message: &Message,
    method: &str,
    feed: &Arc<Feed>,
    params: &Value,
) -> Result<Call, Fault> {
    let meta = &params["_meta"];
    let name = params["name"].as_str();
    let name = name.ok_or_else(|| Fault::invalid("A name is missing"))?;
    let arguments = params
        .get("arguments")
        .cloned()
        .unwrap_or_else(|| json!({}));
    let digest = seal::digest(method, name, &arguments);
    let responses = match params.get("inputResponses") {
        None => Map::new(),
        Some(Value::Object(responses)) => responses.clone(),
        Some(_) => return Err(Fault::invalid("inputResponses is not an object")),
    };
    let state = match params.get("requestState") {
        None => None,
        Some(state) => {
            let opened = state
                .as_str()
                .and_then(|state| seal::open(&world.key, &digest, state));
            let false_state = || Fault::invalid("requestState is not one of this server");
            Some(opened.ok_or_else(false_state)?)
        }
    };
    Ok(Call {
        world: world.clone(),
        revision: Revision::MODERN,
        client_info: meta[CLIENT].clone(),
        capabilities: meta[CAPABILITIES].clone(),
        log_level: meta[LOG_LEVEL].as_str().map(str::to_owned),
        progress_token: meta.get("progressToken").cloned(),
        feed: feed.clone(),
        name: name.to_owned(),
        arguments,
        raw_arguments: message.arguments(),
        asks: Asks::Retry(Retry {
            responses,
            state,
            digest,
        }),
    })
}

async fn call_tool(call: Call) -> Result<Answer, Fault> {
    let tools = tools::listed(&call.world, call.revision);
    let tool = tools.iter().find(|tool| tool.name == call.name);
    let tool = tool.ok_or_else(|| Fault::invalid(format!("Unknown tool: {}", call.name)))?;
    let knows_tasks = call.capabilities["extensions"][tasks::EXTENSION].is_object();
    match tool.tasks {
        Tasks::ExtensionOnly if !knows_tasks => return Err(lacking_tasks()),
        Tasks::Extension | Tasks::ExtensionOnly | Tasks::CoreOnly if knows_tasks => {
            let questions = tools::first_questions(&call.name);
            let keys: Vec<&str> = questions.iter().map(|input| input.key).collect();
            let answers = match call.ask_all(questions, State::None).await {
                Ok(answers) => answers,
                Err(stop) => return ended(Err(stop), |text| Ok(crate::call::failed(&text))),
            };
            let known = keys.into_iter().map(str::to_owned).zip(answers).collect();
            let mut created = Task::start(call, known).extended();
            created["resultType"] = json!("task");
            return Ok(created.into());
        }
        _ => {}
    }
    ended(tools::run(&call).await, |text| {
        Ok(crate::call::failed(&text))
    })
}

/// The end of a call, which may be a question.
fn ended(
    result: Result<Answer, Stop>,
    failed: impl FnOnce(String) -> Result<Answer, Fault>,
) -> Result<Answer, Fault> {
    match result {
        Ok(answer) => Ok(answer),
        Err(Stop::Fault(fault)) => Err(fault),
        Err(Stop::Failed(text)) => failed(text),
        Err(Stop::Input { requests, state }) => {
            let mut result = json!({ "resultType": "input_required", "inputRequests": requests });
            if let Some(state) = state {
                result["requestState"] = json!(state);
            }
            Ok(result.into())
        }
    }
}

fn lacking_tasks() -> Fault {
    Fault::lacking(&json!({ "extensions": { tasks::EXTENSION: {} } }))
}

async fn task(world: &World, method: &str, params: &Value) -> Result<Answer, Fault> {
    let capabilities = &params["_meta"][CAPABILITIES];
    if !capabilities["extensions"][tasks::EXTENSION].is_object() {
        return Err(lacking_tasks());
    }
    let id = params["taskId"].as_str().unwrap_or_default();
    let task = held(&world.tasks).get(id).cloned();
    let task = task.ok_or_else(|| Fault::invalid(format!("Unknown task: {id}")))?;
    match method {
        "tasks/get" => return Ok(task.detailed().into()),
        "tasks/update" => task.answer(&params["inputResponses"]),
        _ => task.cancel().await,
    }
    Ok(json!({}).into())
}

/// Tells the client of changes until it has heard enough.
async fn listen(world: &Arc<World>, id: &Value, feed: &Arc<Feed>, params: &Value) -> Answer {
    /// Whoever stops listening is forgotten.
    struct Listening(Arc<World>, Arc<Listener>);
    impl Drop for Listening {
        fn drop(&mut self) {
            self.0.unlisten(&self.1);
        }
    }
    let honoured = [
        "toolsListChanged",
        "promptsListChanged",
        "resourcesListChanged",
        "resourceSubscriptions",
    ];
    let mut wanted = params["notifications"].clone();
    if let Some(wanted) = wanted.as_object_mut() {
        wanted.retain(|kind, _| honoured.contains(&&**kind));
    }
    let listener = Arc::new(Listener {
        id: id.clone(),
        wanted: wanted.clone(),
        feed: feed.clone(),
    });
    let meta = json!({ SUBSCRIPTION: id });
    let said = json!({ "notifications": wanted, "_meta": meta });
    feed.push(rpc::notification(
        "notifications/subscriptions/acknowledged",
        &said,
    ));
    world.listen(&listener);
    let _listening = Listening(world.clone(), listener);
    future::pending::<()>().await;
    json!({ "_meta": meta }).into()
}
