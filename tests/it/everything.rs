//! server-everything from npm: the reference server on the TypeScript SDK, over every transport that
//! it has. It speaks the revisions up to 2025-11-25, and every feature of them.

use std::{collections::HashMap, time::Duration};

use serde_json::{Value, json};
use switchboard_client::{
    CallError, Client, Era, Error, Raw, Revision,
    http::Http,
    model::{CompletionRef, Content, LogLevel, Root},
    sse::Sse,
};

use crate::support::{Host, ROOT, Record, Server, Tools, wait_gone};

/// A connection to a server of its own.
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
    /// Over HTTP+SSE, known to be that.
    Sse,
    /// Over HTTP+SSE, by way of finding that out.
    Fallback,
}

impl Peer {
    /// Starts the server and connects; `None` if such tests are to be left out.
    async fn connect(way: Way) -> Option<Self> {
        let tools = Tools::find()?;
        let host = Host::default();
        let builder = host.client(Revision::LATEST);
        let server = start(&tools, way, None).await;
        let url = |path: &str| server.as_ref().expect("it is on a port").url(path);
        let client = match way {
            Way::Stdio => builder.connect(tools.npm("server-everything").arg("stdio").stdio()),
            Way::Http => builder.connect(Http::new(&url("/mcp")).expect("a good address")),
            Way::Sse => builder.connect(Sse::new(&url("/sse")).expect("a good address")),
            Way::Fallback => builder.connect(Http::new(&url("/sse")).expect("a good address")),
        };
        Some(Self { client, host, way, server })
    }

    /// Stops, which a server on a port must take notice of.
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

/// Starts the server on a port, unless it is to be a child of the client.
async fn start(tools: &Tools, way: Way, port: Option<u16>) -> Option<Server> {
    let program = tools.npm("server-everything");
    match way {
        Way::Stdio => None,
        Way::Http => {
            let program = program.arg("streamableHttp");
            Some(program.listen_on(port, "Streamable HTTP Server listening").await)
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
                super::$test(&peer).await;
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

async fn offers(Peer { client, .. }: &Peer) {
    let session = client.ready().await.expect("it connects");
    assert_eq!(session.revision, Revision::V2025_11_25);
    assert_eq!(client.era(), Some(Era::Legacy));
    assert_eq!(client.request("ping", None).await.expect("an answer").as_str(), "{}");

    let tools = client.tools().all().await.expect("it lists tools");
    let sum = tools.iter().find(|tool| tool.name == "get-sum").expect("a tool");
    assert_eq!(sum.annotations.as_ref().expect("annotations").read_only_hint, Some(true));
    let echo = client.call_tool("echo", json!({"message": "häß\u{1F980}\n"})).await;
    assert_eq!(echo.expect("an answer").text(), "Echo: häß\u{1F980}\n");
    let weather = client.call_tool("get-structured-content", json!({"location": "New York"}));
    let weather = weather.await.expect("an answer");
    let structured = weather.structured_content.as_ref().expect("it is structured");
    assert_eq!(structured.read::<Value>().expect("JSON")["temperature"], 33);
    let image = client.call_tool("get-tiny-image", json!({})).await.expect("an answer");
    let is_png = |content: &Content| {
        matches!(content, Content::Image { mime_type, .. } if mime_type == "image/png")
    };
    assert!(image.content.iter().any(is_png), "{image:?}");
    let links = client.call_tool("get-resource-links", json!({"count": 3})).await;
    let links = links.expect("an answer").into_inner().content;
    let is_link = |content: &&Content| matches!(content, Content::ResourceLink { .. });
    assert_eq!(links.iter().filter(is_link).count(), 3, "{links:?}");
    let reference = client.call_tool("get-resource-reference", json!({"resourceType": "Blob"}));
    let reference = reference.await.expect("an answer");
    let is_blob = |content: &Content| {
        matches!(content, Content::Resource { resource } if resource.blob.is_some())
    };
    assert!(reference.content.iter().any(is_blob), "{reference:?}");
    let wrong = client.call_tool("get-sum", json!({"a": "one"})).await.expect("an answer");
    assert!(wrong.is_error, "{wrong:?}");
    let unknown = client.call_tool("no-such-tool", json!({})).await.expect("an answer");
    assert!(unknown.is_error && unknown.text().contains("no-such-tool"), "{unknown:?}");

    let prompts = client.prompts().all().await.expect("it lists prompts");
    let prompt = prompts.iter().find(|prompt| prompt.name == "args-prompt");
    assert_eq!(prompt.expect("a prompt").arguments.len(), 2);
    let prompt = client.get_prompt("args-prompt", json!({"city": "Oslo"})).await;
    let message = &prompt.expect("an answer").messages[0];
    assert_eq!(message.content.as_text(), Some("What's weather in Oslo?"));
    let unknown = client.get_prompt("no-such-prompt", json!({})).await;
    assert!(matches!(unknown, Err(Error::Server(_))), "{unknown:?}");

    let resources = client.resources().all().await.expect("it lists resources");
    assert!(!resources.is_empty());
    let templates = client.resource_templates().all().await.expect("it lists templates");
    assert!(templates.iter().any(|template| template.uri_template.starts_with("demo://")));
    let uri = "demo://resource/dynamic/text/1";
    let contents = client.read_resource(uri).await.expect("an answer").into_inner().contents;
    assert_eq!(contents[0].uri, uri);
    assert!(contents[0].text.is_some());

    let of = CompletionRef::Prompt { name: "completable-prompt".to_owned() };
    let ways = client.complete(&of, "department", "E", &HashMap::new()).await;
    assert_eq!(ways.expect("an answer").completion.values, ["Engineering"]);
    let context = HashMap::from([("department".to_owned(), "Sales".to_owned())]);
    let ways = client.complete(&of, "name", "", &context).await.expect("an answer");
    assert_eq!(ways.completion.values, ["David", "Eve", "Frank"]);
}

async fn works(Peer { client, .. }: &Peer) {
    let reported = Record::default();
    let steps = reported.clone();
    let arguments = json!({"duration": 0.3, "steps": 3});
    let call = client
        .call_tool("trigger-long-running-operation", arguments)
        .on_progress(move |progress| steps.push((progress.progress, progress.total)));
    let result = call.await.expect("an answer");
    assert!(result.text().contains("completed"), "{result:?}");
    let third = Some(3.0);
    assert_eq!(reported.all(), [(1.0, third), (2.0, third), (3.0, third)]);

    // Once cancelled, it goes on with its reports and never answers.
    let reported = Record::default();
    let steps = reported.clone();
    let arguments = json!({"duration": 60, "steps": 600});
    let call = client
        .call_tool("trigger-long-running-operation", arguments.clone())
        .on_progress(move |progress| steps.push(progress.progress))
        .start();
    let canceller = call.canceller();
    let call = tokio::spawn(call);
    reported.wait("progress", |_| Some(())).await;
    canceller.cancel("enough");
    let ended = call.await.expect("no panic");
    assert!(matches!(ended, Err(Error::Call(CallError::Cancelled))), "{ended:?}");

    let reported = Record::default();
    let steps = reported.clone();
    let call = client
        .call_tool("trigger-long-running-operation", arguments)
        .on_progress(move |progress| steps.push(progress.progress))
        .start();
    let call = tokio::spawn(call);
    reported.wait("progress", |_| Some(())).await;
    // Aborting the task drops the call.
    call.abort();

    let echo = client.call_tool("echo", json!({"message": "still there"})).await;
    assert_eq!(echo.expect("an answer").text(), "Echo: still there");
    let late = client
        .call_tool("trigger-long-running-operation", json!({"duration": 60, "steps": 1}))
        .timeout(Duration::from_millis(200))
        .await;
    assert!(matches!(late, Err(Error::Call(CallError::Timeout { .. }))), "{late:?}");
}

async fn asks_back(Peer { client, host, .. }: &Peer) {
    let arguments = json!({"prompt": "What is up?", "maxTokens": 10});
    let sampled = client.call_tool("trigger-sampling-request", arguments).await;
    let sampled = sampled.expect("an answer").text();
    assert!(sampled.contains("What is up?") && sampled.contains("echo-model"), "{sampled}");

    let form = client.call_tool("trigger-elicitation-request", json!({})).await;
    let form = form.expect("an answer").text();
    assert!(form.contains("Ann") && form.contains("It was a dark and stormy night."), "{form}");
    let address = json!({"url": "https://example.com/", "message": "Please look", "errorPath": false});
    let visit = client.call_tool("trigger-url-elicitation", address).await;
    let visit = visit.expect("an answer").text();
    assert!(visit.contains("User completed"), "{visit}");
    assert_eq!(host.questions.len(), 3);

    let roots = client.call_tool("get-roots-list", json!({})).await.expect("an answer").text();
    assert!(roots.contains(ROOT), "{roots}");
    let skipped = host.news.len();
    let changed = [Root::new("file:///a"), Root::new("file:///b")];
    client.set_roots(changed).await.expect("roots are ours to change");
    let is_about_two = |params: &_| data(params).contains("Roots updated: 2");
    host.told_from(skipped, "notifications/message", is_about_two).await;
    let roots = client.call_tool("get-roots-list", json!({})).await.expect("an answer").text();
    assert!(roots.contains("file:///b") && !roots.contains(ROOT), "{roots}");
}

async fn tells(Peer { client, host, .. }: &Peer) {
    let uri = "demo://resource/dynamic/text/1";
    client.subscribe(uri).await.expect("it can be subscribed to");
    // The server confirms that in its log, at the level of information, which is on.
    let is_confirmation = |params: &_| data(params).contains("Received Subscribe");
    host.told_from(0, "notifications/message", is_confirmation).await;
    client.call_tool("toggle-subscriber-updates", json!({})).await.expect("an answer");
    let is_update = |params: &Raw| {
        params.member("uri").and_then(|uri| uri.to_text()).as_deref() == Some(uri)
    };
    host.told_from(0, "notifications/resources/updated", is_update).await;

    client.set_log_level(LogLevel::Emergency).await.expect("it has levels");
    let skipped = host.news.len();
    client.unsubscribe(uri).await.expect("it can be taken back");
    client.set_log_level(LogLevel::Debug).await.expect("it has levels");
    client.call_tool("toggle-simulated-logging", json!({})).await.expect("an answer");
    let is_simulated = |params: &_| data(params).contains("level");
    host.told_from(skipped, "notifications/message", is_simulated).await;
    let quiet = !host.news.all().iter().skip(skipped).any(|news| {
        news.params.as_ref().is_some_and(|params| data(params).contains("Received Unsubscribe"))
    });
    assert!(quiet, "it told of something below the level");
}

/// What a log message says.
fn data(params: &Raw) -> String {
    params.member("data").map(|data| data.as_str().to_owned()).unwrap_or_default()
}

#[tokio::test]
async fn a_killed_child_is_started_again_and_subscribed_to_again() {
    let Some(tools) = Tools::find() else { return };
    let program = tools.npm("server-everything");
    let host = Host::default();
    let client = host.client(Revision::LATEST).connect(program.stdio());
    let uri = "demo://resource/dynamic/text/1";
    client.subscribe(uri).await.expect("it can be subscribed to");
    client.set_log_level(LogLevel::Info).await.expect("it has levels");
    let first = program.mark.processes();

    let arguments = json!({"duration": 60, "steps": 600});
    let (sender, mut under_way) = tokio::sync::mpsc::unbounded_channel();
    let call = client
        .call_tool("trigger-long-running-operation", arguments)
        .on_progress(move |_| sender.send(()).expect("it is waited for"))
        .start();
    let call = tokio::spawn(call);
    under_way.recv().await.expect("progress");
    let skipped = host.news.len();
    program.mark.kill();
    let lost = call.await.expect("no panic");
    assert!(matches!(lost, Err(Error::Call(CallError::ConnectionLost { .. }))), "{lost:?}");

    // The new server confirms the subscription that it was given without our doing.
    let is_confirmation = |params: &_| data(params).contains("Received Subscribe");
    host.told_from(skipped, "notifications/message", is_confirmation).await;
    client.call_tool("toggle-subscriber-updates", json!({})).await.expect("an answer");
    host.told_from(skipped, "notifications/resources/updated", |_| true).await;
    let second = program.mark.processes();
    assert_ne!(first, second);
    assert_eq!(second.len(), 1);

    client.stop().await;
    wait_gone(&[first, second].concat()).await;
}

#[tokio::test]
async fn a_restarted_server_over_http_is_subscribed_to_again() {
    is_subscribed_to_again(Way::Http).await;
}

#[tokio::test]
async fn a_restarted_server_over_sse_is_subscribed_to_again() {
    is_subscribed_to_again(Way::Sse).await;
}

async fn is_subscribed_to_again(way: Way) {
    let Some(mut peer) = Peer::connect(way).await else { return };
    peer.client.subscribe("demo://resource/dynamic/text/1").await.expect("it can be");
    let mut server = peer.server.take().expect("it is on a port");
    let before = peer.host.news.len();
    server.kill().await;
    let tools = Tools::find().expect("it was found before");
    peer.server = start(&tools, way, Some(server.port)).await;
    // Nobody calls: the client has to find out by itself.
    let is_confirmation = |params: &_| data(params).contains("Received Subscribe");
    peer.host.told_from(before, "notifications/message", is_confirmation).await;
    peer.client.call_tool("toggle-subscriber-updates", json!({})).await.expect("an answer");
    peer.host.told_from(before, "notifications/resources/updated", |_| true).await;
    peer.stop().await;
}
