//! server-filesystem and server-memory from npm: small servers like those in everyday use.

use serde_json::{Value, json};
use switchboard_client::{CallError, Client, Error, ErrorKind, Revision, State, model::Root};

use crate::support::{Host, PATIENCE, Tools, npm, wait_gone};

#[tokio::test]
async fn filesystem_server_works_within_the_roots() {
    let Some(tools) = Tools::peers() else { return };
    let [given, root, other] = [(); 3].map(|()| tempfile::tempdir().expect("a directory"));
    let file = root.path().join("note.txt");
    let file = file.to_str().expect("a path in UTF-8");
    let program = npm(&tools, "server-filesystem").arg(given.path());
    let uri = |dir: &tempfile::TempDir| format!("file://{}", dir.path().display());
    let client = Client::builder("switchboard-tests", "1.0")
        .roots([Root::new(uri(&root))])
        .connect(program.stdio());

    // Roots replace the directories of the command line, once the server has requested them.
    client.ready().await.expect("it connects");
    program
        .said
        .wait_line("Updated allowed directories from MCP roots: 1")
        .await;
    let write = client.call_tool("write_file", json!({"path": file, "content": "one\ntwo\n"}));
    assert!(!write.await.expect("an answer").is_error);
    let read = client
        .call_tool("read_text_file", json!({"path": file, "head": 1}))
        .await;
    assert_eq!(read.expect("an answer").text(), "one");
    let outside = given.path().join("note.txt");
    let outside = client
        .call_tool("read_text_file", json!({"path": outside}))
        .await;
    let outside = outside.expect("an answer");
    assert!(
        outside.is_error && outside.text().contains("denied"),
        "{outside:?}"
    );

    client
        .set_roots([&root, &other].map(|dir| Root::new(uri(dir))))
        .await
        .expect("ours");
    program
        .said
        .wait_line("Updated allowed directories from MCP roots: 2")
        .await;
    let allowed = client
        .call_tool("list_allowed_directories", json!({}))
        .await;
    let allowed = allowed.expect("an answer").text();
    assert!(
        allowed.contains(other.path().to_str().expect("a path in UTF-8")),
        "{allowed}"
    );
    client.stop().await;
}

#[tokio::test]
async fn memory_server_sends_updates_after_a_restart() {
    let Some(tools) = Tools::peers() else { return };
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("memory.jsonl");
    let program = npm(&tools, "server-memory").env("MEMORY_FILE_PATH", &file);
    let host = Host::default();
    let client = host.client(Revision::LATEST).connect(program.stdio());
    let graph = "memory://knowledge-graph";
    let entity = |name: &str| json!({"entities": [{"name": name, "entityType": "person", "observations": []}]});

    client
        .call_tool("create_entities", entity("Ann"))
        .await
        .expect("an answer");
    client
        .subscribe(graph)
        .await
        .expect("it can be subscribed to");
    client
        .call_tool("create_entities", entity("Ben"))
        .await
        .expect("an answer");
    host.told("notifications/resources/updated").await;
    assert_eq!(host.news.len(), 1, "nobody was subscribed before");

    let before = program.mark.processes();
    program.mark.kill();
    // A call does not wait for the old process, and may be lost with it; the next one is not.
    let mut state = client.watch_state();
    let is_lost = |state: &State| !matches!(state, State::Ready(_));
    tokio::time::timeout(PATIENCE, state.wait_for(is_lost))
        .await
        .expect("in time")
        .expect("alive");
    client
        .call_tool("create_entities", entity("Eve"))
        .await
        .expect("an answer");
    host.told_from(1, "notifications/resources/updated", |_| true)
        .await;
    let read = client
        .read_resource(graph)
        .await
        .expect("an answer")
        .into_inner();
    let text = read.contents[0].text.clone().expect("text");
    let entities: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(
        entities["entities"].as_array().map(Vec::len),
        Some(3),
        "{text}"
    );

    client
        .unsubscribe(graph)
        .await
        .expect("it can be taken back");
    let told = host.news.len();
    client
        .call_tool("create_entities", entity("Max"))
        .await
        .expect("an answer");
    client.read_resource(graph).await.expect("an answer");
    assert_eq!(host.news.len(), told, "still told");
    let after = program.mark.processes();
    client.stop().await;
    wait_gone(&[before, after].concat()).await;
}

#[tokio::test]
async fn failed_start_has_the_servers_message() {
    let Some(tools) = Tools::peers() else { return };
    // With a missing directory it starts, and exits during the handshake.
    let program = npm(&tools, "server-filesystem").arg("/no/such/directory");
    let client = Host::default()
        .client(Revision::LATEST)
        .connect(program.stdio());
    let mut state = client.watch_state();
    let is_waiting = |state: &State| matches!(state, State::Backoff { .. });
    let waiting = tokio::time::timeout(PATIENCE, state.wait_for(is_waiting)).await;
    // A copy: a borrow would keep the state from changing.
    let waiting = waiting.expect("in time").expect("alive").clone();
    let State::Backoff { reason, wrote, .. } = waiting else {
        unreachable!("that was waited for");
    };
    assert!(!reason.contains("/no/such/directory"), "{reason}");
    let wrote = wrote.expect("the server wrote to standard error");
    assert!(wrote.contains("/no/such/directory"), "{wrote}");
    let call = client.call_tool("read_file", json!({})).fail_fast().await;
    let error = call.expect_err("it is not ready");
    assert!(
        matches!(error, Error::Call(CallError::NotReady { .. })),
        "{error:?}"
    );
    assert_eq!(error.kind(), ErrorKind::State);

    client.stop().await;
    let error = client
        .call_tool("read_file", json!({}))
        .await
        .expect_err("it is stopped");
    assert_eq!(error.kind(), ErrorKind::Shutdown);
}

#[tokio::test]
async fn server_exits_with_its_last_client() {
    let Some(tools) = Tools::peers() else { return };
    let dir = tempfile::tempdir().expect("a directory");
    let program =
        npm(&tools, "server-memory").env("MEMORY_FILE_PATH", dir.path().join("memory.jsonl"));
    let client = Client::connect(program.stdio());
    let other = client.clone();
    drop(client);
    other
        .call_tool("read_graph", json!({}))
        .await
        .expect("an answer");
    let processes = program.mark.processes();
    assert_eq!(processes.len(), 1);
    drop(other);
    wait_gone(&processes).await;
}
