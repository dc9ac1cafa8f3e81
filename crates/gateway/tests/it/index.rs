//! The search index and its models, from the start of the gateway to its end.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use switchboard_test_support::{FOREVER_MS, PATIENCE};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpListener,
};

use crate::{
    api_rig::Rig,
    mcp_rig::{LEGACY, MODERN, Pipe, names_of, search, text_of, until},
    stage_rig::{Stage, many_tools, tool},
};

fn part<'a>(status: &'a Value, name: &str) -> &'a Value {
    let mut parts = status["parts"].as_array().unwrap().iter();
    parts.find(|part| part["name"] == name).unwrap()
}

#[tokio::test]
async fn first_search_waits_for_the_index() {
    let stage = Stage::new(&many_tools(500));
    let config = json!({
        "waitTimeoutMs": 60_000,
        "mcpServers": { "s": stage.entry() },
    });
    let rig = Rig::configured(config).await;
    rig.until_tools("s", 500).await;
    for revision in [LEGACY, MODERN] {
        let rig = Rig::configured(json!({ "mcpServers": {} })).await;
        // Only the gateway's own tools can be found yet, and that is an answer.
        let mut pipe = Pipe::open_as(&rig, search(), revision).await;
        let found = pipe
            .call("retrieve_tools", json!({ "query": "paint" }))
            .await;
        assert_eq!(found.get("isError"), None, "{found}");
        rig.stop().await;
    }
    let rig = rig.restarted(|_| {}).await;
    let status = rig.get("/api/v1/status").await.json();
    assert_eq!(part(&status, "search")["state"], "ready", "{status}");
    // Hundreds of tools from the snapshot, and no search before.
    let mut pipe = Pipe::open(&rig, search()).await;
    let found = pipe.retrieve("number123").await;
    assert_eq!(found[0], "s:tool_123", "{found:?}");
    rig.stop().await;
}

#[tokio::test]
async fn slow_index_is_reported_and_becomes_ready_later() {
    let stage = Stage::new(&many_tools(2_000));
    let config = json!({ "waitTimeoutMs": 1, "mcpServers": { "s": stage.entry() } });
    let rig = Rig::configured(config).await;
    rig.until_tools("s", 2_000).await;
    let mut pipe = Pipe::open_as(&rig, search(), MODERN).await;
    let asked = json!({ "query": "number1234" });
    let first = pipe.call("retrieve_tools", asked.clone()).await;
    assert_eq!(first["isError"], true, "{first}");
    assert!(text_of(&first).contains("not ready yet"), "{first}");
    assert_eq!(first["structuredContent"]["part"], "search", "{first}");
    assert!(
        first["structuredContent"]["retryAfterMs"].is_u64(),
        "{first}"
    );
    let pipe = tokio::sync::Mutex::new(&mut pipe);
    let is_ready = async || {
        let found = pipe
            .lock()
            .await
            .call("retrieve_tools", asked.clone())
            .await;
        found["isError"] != true && names_of(&found)[0] == "s:tool_1234"
    };
    until("the index is ready", is_ready).await;
    rig.stop().await;
}

#[tokio::test]
async fn searches_are_answered_while_tools_are_indexed() {
    let few = Stage::new(&[tool("paint", "Paints a wall.")]);
    let many = Stage::new(&[tool("say", "Says it.")]);
    let rig = Rig::with(json!({ "few": few.entry(), "many": many.entry() })).await;
    rig.until_tools("few", 1).await;
    rig.until_tools("many", 1).await;
    let mut pipe = Pipe::open(&rig, search()).await;
    assert_eq!(pipe.retrieve("paint a wall").await[0], "few:paint");
    many.change_tools(&many_tools(5_000)).await;
    let mut answered = 0;
    until("the new tools are found", async || {
        assert_eq!(pipe.retrieve("paint a wall").await[0], "few:paint");
        let found = pipe.retrieve("number4321").await;
        answered += 1;
        found.first().is_some_and(|best| best == "many:tool_4321")
    })
    .await;
    assert!(answered > 1, "it was all there at once: nothing was tested");
    rig.stop().await;
}

#[tokio::test]
async fn search_during_shutdown_is_answered() {
    let stage = Stage::new(&[tool("paint", "Paints a wall.")]);
    // A server that ignores the request to exit delays the end of the gateway.
    let stubborn = json!({
        "command": "sh",
        "args": ["-c", "trap '' TERM; while :; do sleep 1; done"],
        "start": "eager",
        "closeTimeoutMs": 1_000,
        "termTimeoutMs": 1_000,
    });
    let rig = Rig::with(json!({ "s": stage.entry(), "stubborn": stubborn })).await;
    rig.until_tools("s", 1).await;
    rig.until("/api/v1/servers/stubborn", |server| {
        server["state"] == "starting"
    })
    .await;
    assert_eq!(
        Pipe::open(&rig, search()).await.retrieve("paint").await[0],
        "s:paint"
    );
    let gateway = std::sync::Arc::clone(&rig.gateway);
    let stopping = tokio::spawn(async move { gateway.stop().await });
    rig.gateway.stopped().await;
    let body = json!({
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": { "name": "retrieve_tools", "arguments": { "query": "paint a wall" } },
    });
    let mut answers = 0;
    // Over the socket, whose user can watch the gateway stop.
    while let Some(answer) = rig
        .try_ask_socket("POST", "/mcp/search", &body.to_string())
        .await
    {
        answers += 1;
        let answer = answer.json();
        match answer.get("error") {
            Some(error) => {
                let message = error["message"].as_str().unwrap();
                assert!(message.contains("stopping"), "{answer}");
            }
            None => assert_eq!(names_of(&answer["result"])[0], "s:paint", "{answer}"),
        }
    }
    assert!(answers > 0);
    stopping.await.unwrap();
}

#[tokio::test]
async fn waiting_search_ends_with_the_gateway() {
    let stage = Stage::new(&many_tools(5_000));
    let config = json!({ "waitTimeoutMs": FOREVER_MS, "mcpServers": { "s": stage.entry() } });
    let rig = Rig::configured(config).await;
    rig.until_tools("s", 5_000).await;
    let question = rig.get("/api/v1/search?q=number77");
    let stop = async {
        // The search has arrived once the index is being built, or has been.
        let begun = |status: &Value| part(status, "search")["note"].is_null();
        rig.until("/api/v1/status", begun).await;
        rig.gateway.stop().await;
    };
    let both = async { tokio::join!(question, stop) };
    let (answer, ()) = tokio::time::timeout(PATIENCE, both).await.unwrap();
    // Any of these is an answer: results, "stopping", or the end.
    if answer.status != 200 {
        let detail = answer.problem(503);
        assert!(detail.contains("stopping"), "{detail}");
    }
}

#[tokio::test]
async fn embeddings_can_be_changed_at_run_time() {
    let stage = Stage::new(&[
        tool("paint", "Paints a wall."),
        tool("cook", "Cooks a meal."),
    ]);
    let config = |embeddings: &str| json!({ "search": { "embeddings": embeddings }, "mcpServers": { "s": stage.entry() } });
    let rig = Rig::configured(config("auto")).await;
    rig.until_tools("s", 2).await;
    let mut pipe = Pipe::open(&rig, search()).await;
    for (embeddings, by_meaning) in [
        ("auto", true),
        ("off", false),
        ("built-in", true),
        ("off", false),
        ("auto", true),
    ] {
        rig.reconfigure(&config(embeddings)).await;
        assert_eq!(
            pipe.retrieve("paint a wall").await[0],
            "s:paint",
            "{embeddings}"
        );
        let found = rig.get("/api/v1/search?q=paint+a+wall").await.json();
        assert_eq!(found["byMeaning"], by_meaning, "{embeddings}");
        assert_eq!(found["tools"][0]["name"], "s:paint", "{embeddings}");
        let status = rig.get("/api/v1/status").await.json();
        let part = part(&status, "embeddings");
        assert_eq!(part["state"], "ready", "{embeddings}: {part}");
        let with = if by_meaning {
            "built-in vectors"
        } else {
            "keywords only"
        };
        assert!(
            part["note"].as_str().unwrap().contains(with),
            "{embeddings}: {part}"
        );
    }
    rig.stop().await;
}

/// Waits until the models report this problem, while searches keep working.
async fn assert_says(embeddings: &str, said: &str) {
    let stage = Stage::new(&[tool("paint", "Paints a wall.")]);
    let config = json!({
        "search": { "embeddings": embeddings },
        "mcpServers": { "s": stage.entry() },
    });
    let rig = Rig::configured(config).await;
    rig.until_tools("s", 1).await;
    let mut pipe = Pipe::open(&rig, search()).await;
    assert_eq!(pipe.retrieve("paint a wall").await[0], "s:paint");
    let status = rig
        .until("/api/v1/status", |status| {
            part(status, "embeddings")["state"] == "error"
        })
        .await;
    let part = part(&status, "embeddings");
    let message = part["message"].as_str().unwrap();
    assert!(message.contains(said), "{message}");
    assert!(
        part["note"].as_str().unwrap().contains("built-in"),
        "{part}"
    );
    assert_eq!(pipe.retrieve("paint a wall").await[0], "s:paint");
    // It does not make the whole gateway unready.
    rig.until("/readyz", |readiness| readiness["ready"] == true)
        .await;
    rig.stop().await;
}

#[tokio::test]
async fn invalid_model_is_reported_and_searches_continue() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    assert_says(path, path).await;
    let missing = folder.path().join("nothing");
    let missing = missing.to_str().unwrap();
    assert_says(missing, missing).await;
    let file = folder.path().join("file");
    std::fs::write(&file, "no folder").unwrap();
    assert_says(file.to_str().unwrap(), "file").await;
    for name in ["config.json", "tokenizer.json", "model.safetensors"] {
        std::fs::write(folder.path().join(name), "{}").unwrap();
    }
    assert_says(path, path).await;
}

/// Serves the files of a directory, or nothing, until the test ends. Returns the address.
async fn serve_files(folder: Option<PathBuf>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}/a/model", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let mut stream = BufReader::new(stream);
            let mut asked = String::new();
            stream.read_line(&mut asked).await.unwrap();
            let mut line = String::new();
            while line != "\r\n" {
                line.clear();
                if stream.read_line(&mut line).await.unwrap() == 0 {
                    break;
                }
            }
            let name = asked.split(' ').nth(1).unwrap().strip_prefix("/a/model/");
            let file = name
                .zip(folder.as_deref())
                .and_then(|(name, folder)| std::fs::read(Path::new(folder).join(name)).ok());
            let status = if file.is_some() {
                "200 OK"
            } else {
                "404 Not Found"
            };
            let file = file.unwrap_or_default();
            let length = file.len();
            let head = format!(
                "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
            );
            let _ = stream.write_all(head.as_bytes()).await;
            let _ = stream.write_all(&file).await;
            let _ = stream.read_to_end(&mut Vec::new()).await;
        }
    });
    address
}

#[tokio::test]
async fn unavailable_model_is_reported_and_searches_continue() {
    let address = serve_files(None).await;
    assert_says(&address, "404").await;
    // No server listens there.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}/model", listener.local_addr().unwrap());
    drop(listener);
    assert_says(&address, &address).await;
    // Files that are not a model.
    let folder = tempfile::tempdir().unwrap();
    for name in ["config.json", "tokenizer.json", "model.safetensors"] {
        std::fs::write(folder.path().join(name), "{}").unwrap();
    }
    let address = serve_files(Some(folder.path().to_owned())).await;
    assert_says(&address, "").await;
}

#[tokio::test]
async fn model_is_fetched_in_the_background() {
    let Some(model) = switchboard_test_support::tools::model() else {
        return;
    };
    let address = serve_files(Some(model)).await;
    let stage = Stage::new(&[
        tool("paint", "Paints a wall."),
        tool("cook", "Cooks a meal."),
    ]);
    let config = json!({
        "search": { "embeddings": address },
        "mcpServers": { "s": stage.entry() },
    });
    let rig = Rig::configured(config).await;
    rig.until_tools("s", 2).await;
    let mut pipe = Pipe::open(&rig, search()).await;
    // Searches do not wait for it.
    assert_eq!(pipe.retrieve("paint a wall").await[0], "s:paint");
    let used = |status: &Value| {
        let part = part(status, "embeddings");
        part["state"] == "ready" && !part["note"].as_str().unwrap().contains("built-in")
    };
    // Ninety million bytes, hashed by a program that is not optimised.
    let is_used = async |rig: &Rig| used(&rig.get("/api/v1/status").await.json());
    until("the model is used", || is_used(&rig)).await;
    assert_eq!(pipe.retrieve("prepare some food").await[0], "s:cook");
    let found = rig.get("/api/v1/search?q=prepare+some+food").await.json();
    assert_eq!(found["byMeaning"], true);
    // It is available after a restart, regardless of the server.
    let rig = rig.restarted(|_| {}).await;
    let mut pipe = Pipe::open(&rig, search()).await;
    pipe.retrieve("prepare some food").await;
    until("the model is used again", || is_used(&rig)).await;
    rig.stop().await;
}

#[tokio::test]
async fn other_model_is_tried_at_once_after_failure() {
    let stage = Stage::new(&[tool("paint", "Paints a wall.")]);
    let config = |embeddings: &str| json!({ "search": { "embeddings": embeddings }, "mcpServers": { "s": stage.entry() } });
    let address = serve_files(None).await;
    let rig = Rig::configured(config(&address)).await;
    rig.until_tools("s", 1).await;
    let mut pipe = Pipe::open(&rig, search()).await;
    assert_eq!(pipe.retrieve("paint a wall").await[0], "s:paint");
    let says = |status: &Value, said: &str| {
        let message = &part(status, "embeddings")["message"];
        message
            .as_str()
            .is_some_and(|message| message.contains(said))
    };
    rig.until("/api/v1/status", |status| says(status, "404"))
        .await;
    let folder = tempfile::tempdir().unwrap();
    let name = folder.path().to_str().unwrap();
    rig.reconfigure(&config(name)).await;
    // The next attempt to fetch the other one is a minute away.
    rig.until("/api/v1/status", |status| says(status, name))
        .await;
    rig.stop().await;
}
