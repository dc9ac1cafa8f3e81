//! Servers built with rmcp, the Rust SDK, which run in this process: over pipes and over Streamable HTTP.

mod server;
mod serving;

use std::collections::HashMap;

use rmcp::model::ProtocolVersion;
use serde_json::{Value, json};
use switchboard_client::{
    CallError, Client, Era, Error, Revision,
    http::Http,
    model::{CompletionRef, LogLevel},
    stdio::Stdio,
    transport::Connect,
};

use crate::support::{Host, ROOT, Record, text};
use server::Fixture;
use serving::{OnPort, OverPipes};

/// A connection to a separate server.
struct Peer {
    client: Client,
    host: Host,
    fixture: Fixture,
    revision: Revision,
}

use Revision::{V2025_11_25 as OLD, V2026_07_28 as NEW};

#[derive(Clone, Copy)]
enum Way {
    Pipes,
    Http,
    /// Without sessions, and with plain JSON where possible.
    PlainHttp,
}

impl Peer {
    async fn over(way: Way, revision: Revision) -> Self {
        let fixture = newest();
        let server = match way {
            Way::Pipes => {
                let pipes = Stdio::new(OverPipes::new(&fixture));
                return Self::connect(fixture, revision, pipes);
            }
            Way::Http => OnPort::listen(&fixture).await,
            Way::PlainHttp => OnPort::listen_plainly(&fixture).await,
        };
        let http = Http::new(&server.url()).expect("a good address");
        Self::connect(fixture, revision, http)
    }

    fn connect(fixture: Fixture, revision: Revision, connect: impl Connect) -> Self {
        let host = Host::default();
        let client = host.client(revision).connect(connect);
        Self {
            client,
            host,
            fixture,
            revision,
        }
    }
}

fn newest() -> Fixture {
    Fixture::new(&ProtocolVersion::V_2026_07_28)
}

macro_rules! peers {
    ($($name:ident: $way:ident, $revision:ident, [$($test:ident),*];)*) => { $(
        mod $name { $(
            #[tokio::test]
            async fn $test() {
                let peer = super::Peer::over(super::Way::$way, super::$revision).await;
                super::$test(&peer).await;
                peer.client.stop().await;
            }
        )* }
    )* };
}

peers! {
    pipes_old: Pipes, OLD, [offers, works, cancels, asks_back, tells];
    pipes_new: Pipes, NEW, [offers, works, cancels, asks_back, tells];
    http_old: Http, OLD, [offers, works, cancels, asks_back, tells];
    http_new: Http, NEW, [offers, works, cancels, asks_back, tells];
    // Without sessions the server cannot ask, and cannot match a cancellation to its request.
    plain_http_old: PlainHttp, OLD, [offers, works];
    plain_http_new: PlainHttp, NEW, [offers, works, cancels, asks_back, tells];
}

async fn offers(
    Peer {
        client, revision, ..
    }: &Peer,
) {
    let session = client.ready().await.expect("it connects");
    assert_eq!(session.revision, *revision);
    assert_eq!(session.instructions.as_deref(), Some("A fixture."));

    // Two per page.
    let tools = client.tools().all().await.expect("it lists tools");
    let names: Vec<_> = tools.iter().map(|tool| &*tool.name).collect();
    assert_eq!((names.len(), names[0], names[9]), (10, "add", "learn"));
    let sum = client
        .call_tool("add", json!({"a": 2, "b": 40}))
        .await
        .expect("an answer");
    let structured = sum.structured_content.as_ref().expect("it is structured");
    assert_eq!(
        structured.read::<Value>().expect("JSON"),
        json!({"sum": 42})
    );
    let failed = client
        .call_tool("fail", json!({"message": "on purpose"}))
        .await;
    let failed = failed.expect("an answer");
    assert!(
        failed.is_error && failed.text() == "on purpose",
        "{failed:?}"
    );
    let unknown = client.call_tool("no-such-tool", json!({})).await;
    assert!(
        matches!(&unknown, Err(Error::Server(error)) if error.code == -32602),
        "{unknown:?}"
    );

    let prompts = client.prompts().all().await.expect("it lists prompts");
    assert!(prompts[0].arguments[0].required);
    let prompt = client
        .get_prompt("greet", json!({"name": "Ann"}))
        .await
        .expect("an answer");
    assert_eq!(
        prompt.messages[0].content.as_text(),
        Some("Say hello to \"Ann\".")
    );
    let of = CompletionRef::Prompt {
        name: "greet".to_owned(),
    };
    let ways = client
        .complete(&of, "name", "An", &HashMap::new())
        .await
        .expect("an answer");
    assert_eq!(ways.completion.values, ["Ann", "Anton"]);

    let resources = client.resources().all().await.expect("it lists resources");
    assert_eq!(resources[0].uri, "fixture://about");
    let templates = client
        .resource_templates()
        .all()
        .await
        .expect("it lists templates");
    assert_eq!(templates[0].uri_template, "fixture://{name}");
    let read = client
        .read_resource("fixture://about")
        .await
        .expect("an answer");
    assert_eq!(read.contents[0].text.as_deref(), Some("a fixture"));
    let unknown = client.read_resource("nowhere://at/all").await;
    assert!(matches!(unknown, Err(Error::Server(_))), "{unknown:?}");
}

async fn works(Peer { client, .. }: &Peer) {
    let reported = Record::default();
    let steps = reported.clone();
    let call = client.call_tool("count", json!({"to": 500}));
    let call = call.on_progress(move |progress| steps.push(progress.progress));
    assert_eq!(call.await.expect("an answer").text(), "counted");
    assert!(
        reported.all().into_iter().eq((1..=500).map(f64::from)),
        "{:?}",
        reported.all()
    );

    // Every caller gets its own answer.
    let calls: Vec<_> = (0..200)
        .map(|a| {
            let call = client.call_tool("add", json!({"a": a, "b": 1000}));
            (a + 1000, tokio::spawn(call.into_future()))
        })
        .collect();
    for (sum, call) in calls {
        let result = call.await.expect("no panic").expect("an answer");
        let structured = result
            .structured_content
            .as_ref()
            .expect("it is structured");
        assert_eq!(
            structured.read::<Value>().expect("JSON"),
            json!({"sum": sum})
        );
    }
}

async fn cancels(
    Peer {
        client, fixture, ..
    }: &Peer,
) {
    let seen = fixture.seen();
    let call = client.call_tool("sleep", json!({})).cancellable();
    let canceller = call.canceller();
    let call = tokio::spawn(call);
    seen.wait_line("sleep began").await;
    canceller.cancel("enough");
    let ended = call.await.expect("no panic");
    assert!(
        matches!(ended, Err(Error::Call(CallError::Cancelled))),
        "{ended:?}"
    );
    seen.wait_line("sleep was cancelled").await;

    let before = seen.len();
    let is = |words: &'static str| move |line: &String| line.contains(words).then_some(());
    let call = tokio::spawn(client.call_tool("sleep", json!({})).into_future());
    seen.wait_from(before, "the second sleep", is("sleep began"))
        .await;
    // Aborting the task drops the call.
    call.abort();
    seen.wait_from(before, "its end", is("sleep was cancelled"))
        .await;
}

async fn asks_back(Peer { client, host, .. }: &Peer) {
    for (tool, answer) in [("ask", "Ann"), ("sample", "You said: hi"), ("roots", ROOT)] {
        let said = client
            .call_tool(tool, json!({}))
            .await
            .expect("an answer")
            .text();
        assert!(said.contains(answer), "{said}");
    }
    assert_eq!(host.questions.all(), ["Who are you?", "hi"]);
}

async fn tells(Peer { client, host, .. }: &Peer) {
    client
        .set_log_level(LogLevel::Info)
        .await
        .expect("it has levels");
    client
        .call_tool("log", json!({"message": "a word"}))
        .await
        .expect("an answer");
    let message = host.told("notifications/message").await;
    assert_eq!(text(&message, "data"), "a word");

    client
        .subscribe("fixture://about")
        .await
        .expect("it can be subscribed to");
    client
        .call_tool("touch", json!({"uri": "fixture://other"}))
        .await
        .expect("an answer");
    client
        .call_tool("touch", json!({"uri": "fixture://about"}))
        .await
        .expect("an answer");
    let update = host.told("notifications/resources/updated").await;
    assert_eq!(text(&update, "uri"), "fixture://about");

    client
        .call_tool("learn", json!({"name": "juggle"}))
        .await
        .expect("an answer");
    host.told("notifications/tools/list_changed").await;
    let tools = client.tools().all().await.expect("it lists tools");
    assert_eq!(tools.last().expect("a tool").name, "juggle");
}

/// Each revision with the newest of the other side.
#[tokio::test]
async fn every_revision_can_be_negotiated() {
    for revision in Revision::ALL {
        let known = ProtocolVersion::KNOWN_VERSIONS.iter();
        let same = known
            .clone()
            .find(|version| version.as_str() == revision.as_str());
        let old = Fixture::new(same.expect("both sides know the same"));
        let (new_client, old_client) = (Revision::LATEST, revision);
        for (fixture, newest) in [(&old, new_client), (&newest(), old_client)] {
            settles_on(revision, newest, Stdio::new(OverPipes::new(fixture))).await;
            // That revision has another HTTP transport, which the SDK does not support.
            if revision != Revision::V2024_11_05 {
                let server = OnPort::listen(fixture).await;
                let http = Http::new(&server.url()).expect("a good address");
                settles_on(revision, newest, http).await;
            }
        }
    }
}

async fn settles_on(revision: Revision, newest: Revision, connect: impl Connect) {
    let client = Host::default().client(newest).connect(connect);
    assert_eq!(
        client.ready().await.expect("it connects").revision,
        revision
    );
    assert_eq!(client.era(), Some(revision.era()));
    assert_eq!(
        client.tools().all().await.expect("it lists tools").len(),
        10
    );
    client.stop().await;
}

#[tokio::test]
async fn server_known_to_be_old_is_not_probed() {
    // The server is in fact new; `known_era` overrides that.
    for (era, revision, probes) in [(None, NEW, 1), (Some(Era::Legacy), OLD, 0)] {
        let fixture = newest();
        let builder = Host::default().client(NEW);
        let builder = match era {
            Some(era) => builder.known_era(era),
            None => builder,
        };
        let client = builder.connect(Stdio::new(OverPipes::new(&fixture)));
        assert_eq!(
            client.ready().await.expect("it connects").revision,
            revision
        );
        assert_eq!(fixture.seen().len(), probes);
        client.stop().await;
    }
}

#[tokio::test]
async fn unanswered_question_ends_the_call() {
    for tool in ["ask", "sample", "roots"] {
        let connect = |revision| {
            let pipes = OverPipes::new(&newest());
            let builder = Client::builder("switchboard-tests", "1.0");
            builder.newest_revision(revision).connect(Stdio::new(pipes))
        };
        // The server sends the request, and reports the refusal.
        let told = connect(OLD)
            .call_tool(tool, json!({}))
            .await
            .expect("an answer");
        assert!(
            told.is_error && told.text().contains("does not support"),
            "{told:?}"
        );
        // The question is the result, and the client refuses it.
        let refused = connect(NEW).call_tool(tool, json!({})).await;
        assert!(
            matches!(refused, Err(Error::InputRefused { .. })),
            "{refused:?}"
        );
    }
}

#[tokio::test]
async fn subscription_outlives_the_server() {
    for revision in [OLD, NEW] {
        let pipes = OverPipes::new(&newest());
        let peer = Peer::connect(pipes.fixture().clone(), revision, Stdio::new(pipes.clone()));
        outlives(&peer, async || pipes.kill()).await;
        peer.client.stop().await;
    }
}

#[tokio::test]
async fn subscription_outlives_the_session() {
    let fixture = newest();
    let server = OnPort::listen(&fixture).await;
    let http = Http::new(&server.url()).expect("a good address");
    let peer = Peer::connect(fixture, OLD, http);
    outlives(&peer, async || server.forget().await).await;
    peer.client.stop().await;
}

/// Also if it is requested before the connection is ready: a second request would miss changes in between.
#[tokio::test]
async fn subscription_is_requested_once() {
    let uris: Vec<_> = (10..30).map(|name| format!("fixture://{name}")).collect();
    for revision in [OLD, NEW] {
        let peer = Peer::over(Way::Pipes, revision).await;
        let mut expected = Vec::new();
        for (at, uri) in uris.iter().enumerate() {
            let subscribed = peer.client.subscribe(uri).await;
            subscribed.expect("it can be subscribed to");
            // A new stream repeats the subscriptions of the one before.
            let from = if revision == NEW { 0 } else { at };
            expected.extend(&uris[from..=at]);
        }
        let seen = peer.fixture.seen().all();
        let asked = seen
            .iter()
            .filter_map(|line| line.strip_prefix("subscribed to "));
        assert!(asked.eq(expected), "{revision:?}: {seen:#?}");
        peer.client.stop().await;
    }
}

/// Subscribes, lets `harm` happen, and checks that the subscription is repeated automatically.
async fn outlives(
    Peer {
        client,
        host,
        fixture,
        ..
    }: &Peer,
    harm: impl AsyncFnOnce(),
) {
    client
        .subscribe("fixture://about")
        .await
        .expect("it can be subscribed to");
    let before = fixture.seen().len();
    harm().await;
    let again = |line: &String| line.contains("subscribed").then_some(());
    fixture
        .seen()
        .wait_from(before, "a second subscription", again)
        .await;
    client
        .call_tool("touch", json!({"uri": "fixture://about"}))
        .await
        .expect("an answer");
    host.told("notifications/resources/updated").await;
}
