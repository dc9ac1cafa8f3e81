//! Servers on rmcp, the Rust SDK, in this process: over pipes and over streamable HTTP.

mod server;
mod serving;

use std::collections::HashMap;

use rmcp::model::ProtocolVersion;
use serde_json::{Value, json};
use switchboard_client::{
    CallError, Client, Error, Revision, State,
    http::Http,
    model::{CompletionRef, LogLevel},
    stdio::Stdio,
};

use crate::support::{Host, ROOT, Record, SOON};
use server::Fixture;
use serving::{OnPort, OverPipes};

/// A connection to a server of its own.
struct Peer {
    client: Client,
    host: Host,
    fixture: Fixture,
    revision: Revision,
}

use Revision::{V2025_11_25 as OLD, V2026_07_28 as NEW};

impl Peer {
    async fn over_pipes(revision: Revision) -> Self {
        let fixture = Fixture::new(&ProtocolVersion::V_2026_07_28);
        let host = Host::default();
        let pipes = Stdio::new(OverPipes::new(&fixture));
        let client = host.client(revision).connect(pipes);
        Self { client, host, fixture, revision }
    }

    async fn over_http(revision: Revision) -> Self {
        let fixture = Fixture::new(&ProtocolVersion::V_2026_07_28);
        let host = Host::default();
        let server = OnPort::listen(&fixture).await;
        let http = Http::new(&server.url()).expect("a good address");
        let client = host.client(revision).connect(http);
        Self { client, host, fixture, revision }
    }
}

macro_rules! peers {
    ($($name:ident: $connect:ident, $revision:ident;)*) => { $(
        mod $name {
            use super::Peer;

            #[tokio::test]
            async fn offers() {
                super::offers(&Peer::$connect(super::$revision).await).await;
            }

            #[tokio::test]
            async fn works() {
                super::works(&Peer::$connect(super::$revision).await).await;
            }

            #[tokio::test]
            async fn asks_back() {
                super::asks_back(&Peer::$connect(super::$revision).await).await;
            }

            #[tokio::test]
            async fn tells() {
                super::tells(&Peer::$connect(super::$revision).await).await;
            }
        }
    )* };
}

peers! {
    pipes_old: over_pipes, OLD;
    pipes_new: over_pipes, NEW;
    http_old: over_http, OLD;
    http_new: over_http, NEW;
}

async fn offers(Peer { client, revision, .. }: &Peer) {
    let session = client.ready().await.expect("it connects");
    assert_eq!(session.revision, *revision);
    assert_eq!(session.instructions.as_deref(), Some("A fixture."));

    // Two to a page.
    let tools = client.tools().all().await.expect("it lists tools");
    let names: Vec<_> = tools.iter().map(|tool| &*tool.name).collect();
    assert_eq!((names.len(), names[0], names[9]), (10, "add", "learn"));
    let sum = client.call_tool("add", json!({"a": 2, "b": 40})).await.expect("an answer");
    let structured = sum.structured_content.as_ref().expect("it is structured");
    assert_eq!(structured.read::<Value>().expect("JSON"), json!({"sum": 42}));
    let failed = client.call_tool("fail", json!({"message": "on purpose"})).await;
    let failed = failed.expect("an answer");
    assert!(failed.is_error && failed.text() == "on purpose", "{failed:?}");
    let unknown = client.call_tool("no-such-tool", json!({})).await;
    assert!(matches!(&unknown, Err(Error::Server(error)) if error.code == -32602), "{unknown:?}");

    let prompts = client.prompts().all().await.expect("it lists prompts");
    assert!(prompts[0].arguments[0].required);
    let prompt = client.get_prompt("greet", json!({"name": "Ann"})).await.expect("an answer");
    assert_eq!(prompt.messages[0].content.as_text(), Some("Say hello to \"Ann\"."));
    let of = CompletionRef::Prompt { name: "greet".to_owned() };
    let ways = client.complete(&of, "name", "An", &HashMap::new()).await.expect("an answer");
    assert_eq!(ways.completion.values, ["Ann", "Anton"]);

    let resources = client.resources().all().await.expect("it lists resources");
    assert_eq!(resources[0].uri, "fixture://about");
    let templates = client.resource_templates().all().await.expect("it lists templates");
    assert_eq!(templates[0].uri_template, "fixture://{name}");
    let read = client.read_resource("fixture://about").await.expect("an answer");
    assert_eq!(read.contents[0].text.as_deref(), Some("a fixture"));
    let unknown = client.read_resource("nowhere://at/all").await;
    assert!(matches!(unknown, Err(Error::Server(_))), "{unknown:?}");
}

async fn works(Peer { client, fixture, .. }: &Peer) {
    let reported = Record::default();
    let steps = reported.clone();
    let call = client.call_tool("count", json!({"to": 500}));
    let call = call.on_progress(move |progress| steps.push(progress.progress));
    assert_eq!(call.await.expect("an answer").text(), "counted");
    assert!(reported.all().into_iter().eq((1..=500).map(f64::from)), "{:?}", reported.all());

    let seen = fixture.seen();
    let call = client.call_tool("sleep", json!({})).start();
    let canceller = call.canceller();
    let call = tokio::spawn(call);
    seen.wait_line("sleep began").await;
    canceller.cancel("enough");
    let ended = call.await.expect("no panic");
    assert!(matches!(ended, Err(Error::Call(CallError::Cancelled))), "{ended:?}");
    seen.wait_line("sleep was cancelled").await;

    let before = seen.len();
    let is = |words: &'static str| move |line: &String| line.contains(words).then_some(());
    let call = tokio::spawn(client.call_tool("sleep", json!({})).start());
    seen.wait_from(before, "the second sleep", is("sleep began")).await;
    // Aborting the task drops the call.
    call.abort();
    seen.wait_from(before, "its end", is("sleep was cancelled")).await;
}

async fn asks_back(Peer { client, host, .. }: &Peer) {
    for (tool, answer) in [("ask", "Ann"), ("sample", "You said: hi"), ("roots", ROOT)] {
        let said = client.call_tool(tool, json!({})).await.expect("an answer").text();
        assert!(said.contains(answer), "{said}");
    }
    assert_eq!(host.questions.all(), ["Who are you?", "hi"]);
}

async fn tells(Peer { client, host, .. }: &Peer) {
    client.set_log_level(LogLevel::Info).await.expect("it has levels");
    client.call_tool("log", json!({"message": "a word"})).await.expect("an answer");
    let message = host.told("notifications/message").await;
    assert_eq!(message.member("data").and_then(|data| data.to_text()).as_deref(), Some("a word"));

    client.subscribe("fixture://about").await.expect("it can be subscribed to");
    client.call_tool("touch", json!({"uri": "fixture://other"})).await.expect("an answer");
    client.call_tool("touch", json!({"uri": "fixture://about"})).await.expect("an answer");
    let update = host.told("notifications/resources/updated").await;
    assert_eq!(update.member("uri").and_then(|uri| uri.to_text()).as_deref(), Some("fixture://about"));

    client.call_tool("learn", json!({"name": "juggle"})).await.expect("an answer");
    host.told("notifications/tools/list_changed").await;
    let tools = client.tools().all().await.expect("it lists tools");
    assert_eq!(tools.last().expect("a tool").name, "juggle");
    client.stop().await;
}

#[tokio::test]
async fn every_revision_can_be_settled_on() {
    for revision in Revision::ALL {
        let newest = ProtocolVersion::KNOWN_VERSIONS
            .iter()
            .find(|version| version.as_str() == revision.as_str());
        let newest = newest.expect("both sides know the same");
        let old_server = OverPipes::new(&Fixture::new(newest));
        let new_client = Client::connect(Stdio::new(old_server));
        assert_eq!(new_client.ready().await.expect("it connects").revision, revision);
        assert_eq!(new_client.tools().all().await.expect("it lists tools").len(), 10);

        let new_server = OverPipes::new(&Fixture::new(&ProtocolVersion::V_2026_07_28));
        let old_client = Host::default().client(revision).connect(Stdio::new(new_server));
        assert_eq!(old_client.ready().await.expect("it connects").revision, revision);
        assert_eq!(old_client.tools().all().await.expect("it lists tools").len(), 10);
    }
}

#[tokio::test]
async fn a_subscription_outlives_the_server() {
    for revision in [OLD, NEW] {
        let fixture = Fixture::new(&ProtocolVersion::V_2026_07_28);
        let pipes = OverPipes::new(&fixture);
        let server = pipes.clone();
        let host = Host::default();
        let client = host.client(revision).connect(Stdio::new(pipes));
        client.subscribe("fixture://about").await.expect("it can be subscribed to");

        let before = fixture.seen().len();
        let mut state = client.watch_state();
        state.mark_unchanged();
        server.kill();
        let again = |line: &String| line.contains("subscribed").then_some(());
        fixture.seen().wait_from(before, "a second subscription", again).await;
        let is_ready = |state: &State| matches!(state, State::Ready(_));
        let ready = tokio::time::timeout(SOON, state.wait_for(is_ready)).await;
        drop(ready.expect("in time").expect("alive"));
        client.call_tool("touch", json!({"uri": "fixture://about"})).await.expect("an answer");
        host.told("notifications/resources/updated").await;
        client.stop().await;
    }
}
