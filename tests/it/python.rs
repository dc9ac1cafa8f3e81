//! Servers built with the two Python SDKs, `mcp` and `fastmcp`, over every transport and in both eras.

use serde_json::{Value, json};
use switchboard_client::{
    CallError, Client, Error, Raw, Revision, http::Http, model::LogLevel, sse::Sse,
};

use crate::support::{Host, Marked, ROOT, Record, Server, Tools, python, text, until, wait_gone};

/// A connection to a separate server.
struct Peer {
    client: Client,
    host: Host,
    revision: Revision,
    said: Record<String>,
    mark: Marked,
    server: Option<Server>,
}

#[derive(Clone, Copy)]
enum Way {
    Stdio,
    Http,
    Sse,
}

/// The servers' output, up to the port, when they listen.
const READY: &str = "Uvicorn running on http://127.0.0.1:";

use Revision::{V2025_11_25 as OLD, V2026_07_28 as NEW};

impl Peer {
    /// Starts the server and connects; `None` if such tests are skipped.
    async fn connect(script: &str, way: Way, revision: Revision) -> Option<Self> {
        let program = python(&Tools::peers()?, script);
        let (said, mark) = (program.said.clone(), program.mark.clone());
        let host = Host::default();
        let builder = host.client(revision);
        let (client, server) = match way {
            Way::Stdio => (builder.connect(program.arg("stdio").stdio()), None),
            Way::Http => {
                let server = program.arg("http").listen(READY).await;
                let http = Http::new(&server.url("/mcp")).expect("a good address");
                (builder.connect(http), Some(server))
            }
            Way::Sse => {
                let server = program.arg("sse").listen(READY).await;
                let sse = Sse::new(&server.url("/sse")).expect("a good address");
                (builder.connect(sse), Some(server))
            }
        };
        Some(Self {
            client,
            host,
            revision,
            said,
            mark,
            server,
        })
    }

    /// Kills the server over HTTP, and starts it again on the same port.
    async fn restart(&mut self, tools: &Tools) {
        let mut server = self.server.take().expect("it is on a port");
        server.kill().await;
        let program = python(tools, "mcp_server.py")
            .arg("http")
            .arg(server.port.to_string());
        self.server = Some(program.listen(READY).await);
    }
}

macro_rules! peers {
    ($($name:ident: $script:literal, $way:ident, $revision:ident, [$($test:ident),*];)*) => { $(
        mod $name { $(
            #[tokio::test]
            async fn $test() {
                let peer = super::Peer::connect($script, super::Way::$way, super::$revision);
                let Some(peer) = peer.await else { return };
                super::$test(&peer).await;
                peer.client.stop().await;
            }
        )* }
    )* };
}

// Starting a server takes far longer than testing it, so each test covers several features.
peers! {
    mcp_stdio_old: "mcp_server.py", Stdio, OLD, [offers, works, talks, learns, stops];
    mcp_stdio_new: "mcp_server.py", Stdio, NEW, [offers, works, talks, updates, stops];
    mcp_http_old: "mcp_server.py", Http, OLD, [offers, works, talks, learns];
    mcp_http_new: "mcp_server.py", Http, NEW, [offers, works, talks, updates];
    mcp_sse: "mcp_server.py", Sse, OLD, [offers, works, talks, learns];
    fastmcp_stdio_old: "fastmcp_server.py", Stdio, OLD, [offers, works, talks, stops];
    fastmcp_stdio_new: "fastmcp_server.py", Stdio, NEW, [offers, works, talks, stops];
    fastmcp_http_old: "fastmcp_server.py", Http, OLD, [offers, works, talks];
    fastmcp_http_new: "fastmcp_server.py", Http, NEW, [offers, works, talks];
    fastmcp_sse: "fastmcp_server.py", Sse, OLD, [offers, works, talks];
}

async fn offers(
    Peer {
        client, revision, ..
    }: &Peer,
) {
    let session = client.ready().await.expect("it connects");
    assert_eq!(session.revision, *revision);
    assert_eq!(session.instructions.as_deref(), Some("A peer for tests."));

    let tools = client.tools().all().await.expect("it lists tools");
    let add = tools
        .iter()
        .find(|tool| tool.name == "add")
        .expect("a tool");
    assert_eq!(add.description.as_deref(), Some("Adds two numbers."));
    assert!(add.output_schema.is_some());
    let sum = client
        .call_tool("add", json!({"a": 2, "b": 40}))
        .await
        .expect("an answer");
    assert_eq!(sum.text(), "42");
    let structured = sum.structured_content.as_ref().expect("it is structured");
    assert_eq!(
        structured.read::<Value>().expect("JSON"),
        json!({"result": 42})
    );
    let failed = client
        .call_tool("fail", json!({"message": "on purpose"}))
        .await;
    let failed = failed.expect("an answer");
    assert!(
        failed.is_error && failed.text().contains("on purpose"),
        "{failed:?}"
    );
    let unknown = client.call_tool("no-such-tool", json!({})).await;
    let unknown = match unknown {
        Ok(result) if result.is_error => result.text(),
        Err(Error::Server(error)) => error.message.clone(),
        other => panic!("not an error: {other:?}"),
    };
    assert!(unknown.contains("no-such-tool"), "{unknown}");

    let prompts = client.prompts().all().await.expect("it lists prompts");
    assert_eq!(prompts[0].arguments[0].name, "name");
    assert!(prompts[0].arguments[0].required);
    let prompt = client
        .get_prompt("greet", json!({"name": "Ann"}))
        .await
        .expect("an answer");
    assert_eq!(
        prompt.messages[0].content.as_text(),
        Some("Say hello to Ann.")
    );
    let incomplete = client.get_prompt("greet", json!({})).await;
    assert!(
        matches!(incomplete, Err(Error::Server(_))),
        "{incomplete:?}"
    );

    let resources = client.resources().all().await.expect("it lists resources");
    assert_eq!(resources[0].uri, "peer://about");
    let templates = client
        .resource_templates()
        .all()
        .await
        .expect("it lists templates");
    assert_eq!(templates[0].uri_template, "note://{name}");
    let read = client
        .read_resource("note://greeting")
        .await
        .expect("an answer");
    assert_eq!(read.contents[0].text.as_deref(), Some("hello"));
    let unknown = client.read_resource("nowhere://at/all").await;
    assert!(matches!(unknown, Err(Error::Server(_))), "{unknown:?}");
}

async fn works(Peer { client, said, .. }: &Peer) {
    let reported = Record::default();
    let steps = reported.clone();
    let call = client.call_tool("count", json!({"to": 20}));
    let call = call.on_progress(move |progress| steps.push(progress));
    assert_eq!(call.await.expect("an answer").text(), "counted to 20");
    let reported = reported.all();
    assert!(
        reported
            .iter()
            .map(|step| step.progress)
            .eq((1..=20).map(f64::from)),
        "{reported:?}"
    );
    assert_eq!(reported[6].total, Some(20.0));
    assert_eq!(reported[6].message.as_deref(), Some("step 7"));

    let call = client
        .call_tool("sleep", json!({"seconds": 60}))
        .cancellable();
    let canceller = call.canceller();
    let call = tokio::spawn(call);
    said.wait_line("sleep began").await;
    canceller.cancel("enough");
    let ended = call.await.expect("no panic");
    assert!(
        matches!(ended, Err(Error::Call(CallError::Cancelled))),
        "{ended:?}"
    );
    said.wait_line("sleep was cancelled").await;

    let seen = said.len();
    let is = |words: &'static str| move |line: &String| line.contains(words).then_some(());
    let call = tokio::spawn(
        client
            .call_tool("sleep", json!({"seconds": 60}))
            .into_future(),
    );
    said.wait_from(seen, "the second sleep", is("sleep began"))
        .await;
    // Aborting the task drops the call.
    call.abort();
    said.wait_from(seen, "its end", is("sleep was cancelled"))
        .await;

    // Every caller gets its own answer.
    let calls: Vec<_> = (0..50)
        .map(|a| {
            let call = client.call_tool("add", json!({"a": a, "b": 1000}));
            (a + 1000, tokio::spawn(call.into_future()))
        })
        .collect();
    for (sum, call) in calls {
        let result = call.await.expect("no panic").expect("an answer");
        assert_eq!(result.text(), sum.to_string());
    }
}

async fn talks(peer: &Peer) {
    asks_back(peer).await;
    logs(peer).await;
}

async fn asks_back(Peer { client, host, .. }: &Peer) {
    let asked = client
        .call_tool("ask", json!({"question": "Who are you?"}))
        .await;
    assert_eq!(asked.expect("an answer").text(), "accept: Ann");
    let sampled = client.call_tool("sample", json!({"prompt": "hi"})).await;
    assert_eq!(
        sampled.expect("an answer").text(),
        "echo-model: You said: hi"
    );
    assert_eq!(host.questions.all(), ["Who are you?", "hi"]);

    let tools = client.tools().all().await.expect("it lists tools");
    if tools.iter().any(|tool| tool.name == "roots") {
        let roots = client
            .call_tool("roots", json!({}))
            .await
            .expect("an answer");
        assert_eq!(roots.text(), ROOT);
    }
}

async fn logs(
    Peer {
        client,
        host,
        revision,
        ..
    }: &Peer,
) {
    let set = client.set_log_level(LogLevel::Warning).await;
    let has_levels = match set {
        Ok(()) => true,
        // `mcp` has no levels in the older revisions, and sends everything.
        Err(Error::Server(error)) if error.code == -32601 && *revision == OLD => false,
        Err(other) => panic!("{other:?}"),
    };
    for (level, message) in [("info", "a whisper"), ("error", "a cry")] {
        let arguments = json!({"message": message, "level": level});
        client.call_tool("log", arguments).await.expect("an answer");
    }
    let says = |words: &'static str| {
        move |params: &Raw| {
            params
                .member("data")
                .is_some_and(|data| data.as_str().contains(words))
        }
    };
    let cry = host
        .told_from(0, "notifications/message", says("a cry"))
        .await;
    assert_eq!(text(&cry, "level"), "error");
    // They arrive in order.
    let whispered = host
        .news
        .all()
        .iter()
        .any(|news| news.params.as_ref().is_some_and(says("a whisper")));
    assert_eq!(whispered, !has_levels);
}

async fn learns(Peer { client, host, .. }: &Peer) {
    let names = async || {
        let tools = client.tools().all().await.expect("it lists tools");
        tools
            .iter()
            .map(|tool| tool.name.clone())
            .collect::<Vec<_>>()
    };
    assert!(!names().await.contains(&"juggle".to_owned()));
    client
        .call_tool("learn", json!({"name": "juggle"}))
        .await
        .expect("an answer");
    host.told("notifications/tools/list_changed").await;
    assert!(names().await.contains(&"juggle".to_owned()));
    let juggled = client.call_tool("juggle", json!({})).await;
    assert_eq!(juggled.expect("an answer").text(), "juggle");
}

async fn updates(peer: &Peer) {
    let Peer { client, host, .. } = peer;
    let set = async |text: &str| {
        let arguments = json!({"name": "greeting", "text": text});
        client
            .call_tool("set_note", arguments)
            .await
            .expect("an answer");
    };
    set("unheard").await;
    client
        .subscribe("note://greeting")
        .await
        .expect("it can be subscribed to");
    set("hallo").await;
    let told = host.told("notifications/resources/updated").await;
    assert_eq!(text(&told, "uri"), "note://greeting");
    let read = client
        .read_resource("note://greeting")
        .await
        .expect("an answer");
    assert_eq!(read.contents[0].text.as_deref(), Some("hallo"));

    // A second one makes a new stream, which covers both.
    client
        .subscribe("note://other")
        .await
        .expect("it can be subscribed to");
    let seen = host.news.len();
    set("bonjour").await;
    host.told_from(seen, "notifications/resources/updated", |_| true)
        .await;
    client
        .unsubscribe("note://greeting")
        .await
        .expect("it can be taken back");
    let seen = host.news.len();
    set("hola").await;
    let other = json!({"name": "other", "text": "x"});
    client
        .call_tool("set_note", other)
        .await
        .expect("an answer");
    let next = host
        .told_from(seen, "notifications/resources/updated", |_| true)
        .await;
    assert_eq!(text(&next, "uri"), "note://other");
    // The same stream reports changes of the list of tools.
    learns(peer).await;
}

async fn stops(
    Peer {
        client, said, mark, ..
    }: &Peer,
) {
    let call = tokio::spawn(
        client
            .call_tool("sleep", json!({"seconds": 60}))
            .into_future(),
    );
    said.wait_line("sleep began").await;
    let processes = mark.processes();
    assert!(!processes.is_empty());
    client.stop().await;
    let ended = call.await.expect("no panic");
    assert!(
        matches!(ended, Err(Error::Call(CallError::Shutdown { .. }))),
        "{ended:?}"
    );
    wait_gone(&processes).await;
}

#[tokio::test]
async fn subscription_survives_a_killed_child() {
    let Some(peer) = Peer::connect("mcp_server.py", Way::Stdio, NEW).await else {
        return;
    };
    peer.client
        .subscribe("note://greeting")
        .await
        .expect("it can be subscribed to");
    peer.mark.kill();
    is_listened_to_again(&peer).await;
    peer.client.stop().await;
}

#[tokio::test]
async fn subscription_survives_a_restart_over_http() {
    let Some(tools) = Tools::peers() else { return };
    let Some(mut peer) = Peer::connect("mcp_server.py", Way::Http, NEW).await else {
        return;
    };
    peer.client
        .subscribe("note://greeting")
        .await
        .expect("it can be subscribed to");
    peer.restart(&tools).await;
    is_listened_to_again(&peer).await;
    peer.client.stop().await;
}

/// Changes a note until an update arrives. Calls on the old connection may be lost until the new one is
/// ready.
async fn is_listened_to_again(Peer { client, host, .. }: &Peer) {
    until("an update", async || {
        let arguments = json!({"name": "greeting", "text": "hallo"});
        let changed = client.call_tool("set_note", arguments).await;
        if let Err(error) = changed {
            assert!(error.is_retryable(), "{error:?}");
        }
        (host.news.len() > 0).then_some(())
    })
    .await;
    host.told("notifications/resources/updated").await;
}

#[tokio::test]
async fn restarted_server_over_http_gets_new_session() {
    let Some(tools) = Tools::peers() else { return };
    let Some(mut peer) = Peer::connect("mcp_server.py", Way::Http, OLD).await else {
        return;
    };
    peer.client.ready().await.expect("it connects");
    peer.restart(&tools).await;
    until("an answer", async || {
        let sum = peer.client.call_tool("add", json!({"a": 1, "b": 2})).await;
        if let Err(error) = &sum {
            assert!(error.is_retryable(), "{error:?}");
        }
        sum.ok()
    })
    .await;
    peer.client.stop().await;
}
