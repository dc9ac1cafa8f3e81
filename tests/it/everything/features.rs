//! The features of the server.

use std::{collections::HashMap, time::Duration};

use serde_json::{Value, json};
use switchboard_client::{
    CallError, Client, Era, Error, Raw, Revision,
    model::{CompletionRef, Content, LogLevel, Root},
};

use super::Peer;
use crate::support::{ROOT, Record, text};

pub(super) async fn offers(Peer { client, .. }: &Peer) {
    let session = client.ready().await.expect("it connects");
    assert_eq!(session.revision, Revision::V2025_11_25);
    assert_eq!(client.era(), Some(Era::Legacy));
    assert_eq!(
        client
            .request("ping", None)
            .await
            .expect("an answer")
            .as_str(),
        "{}"
    );
    offers_tools(client).await;
    offers_prompts_and_resources(client).await;
}

async fn offers_tools(client: &Client) {
    let tools = client.tools().all().await.expect("it lists tools");
    let sum = tools
        .iter()
        .find(|tool| tool.name == "get-sum")
        .expect("a tool");
    assert_eq!(
        sum.annotations
            .as_ref()
            .expect("annotations")
            .read_only_hint,
        Some(true)
    );
    let echo = client
        .call_tool("echo", json!({"message": "häß\u{1F980}\n"}))
        .await;
    assert_eq!(echo.expect("an answer").text(), "Echo: häß\u{1F980}\n");
    let weather = client.call_tool("get-structured-content", json!({"location": "New York"}));
    let weather = weather.await.expect("an answer");
    let structured = weather
        .structured_content
        .as_ref()
        .expect("it is structured");
    assert_eq!(structured.read::<Value>().expect("JSON")["temperature"], 33);
    let image = client
        .call_tool("get-tiny-image", json!({}))
        .await
        .expect("an answer");
    let is_png = |content: &Content| matches!(content, Content::Image { mime_type, .. } if mime_type == "image/png");
    assert!(image.content.iter().any(is_png), "{image:?}");
    let links = client
        .call_tool("get-resource-links", json!({"count": 3}))
        .await;
    let links = links.expect("an answer").into_inner().content;
    let is_link = |content: &&Content| matches!(content, Content::ResourceLink { .. });
    assert_eq!(links.iter().filter(is_link).count(), 3, "{links:?}");
    let reference = client.call_tool("get-resource-reference", json!({"resourceType": "Blob"}));
    let reference = reference.await.expect("an answer");
    let is_blob = |content: &Content| matches!(content, Content::Resource { resource } if resource.blob.is_some());
    assert!(reference.content.iter().any(is_blob), "{reference:?}");
    let wrong = client
        .call_tool("get-sum", json!({"a": "one"}))
        .await
        .expect("an answer");
    assert!(wrong.is_error, "{wrong:?}");
    let unknown = client
        .call_tool("no-such-tool", json!({}))
        .await
        .expect("an answer");
    assert!(
        unknown.is_error && unknown.text().contains("no-such-tool"),
        "{unknown:?}"
    );
}

async fn offers_prompts_and_resources(client: &Client) {
    let prompts = client.prompts().all().await.expect("it lists prompts");
    let prompt = prompts.iter().find(|prompt| prompt.name == "args-prompt");
    assert_eq!(prompt.expect("a prompt").arguments.len(), 2);
    let prompt = client
        .get_prompt("args-prompt", json!({"city": "Oslo"}))
        .await;
    let message = &prompt.expect("an answer").messages[0];
    assert_eq!(message.content.as_text(), Some("What's weather in Oslo?"));
    let unknown = client.get_prompt("no-such-prompt", json!({})).await;
    assert!(matches!(unknown, Err(Error::Server(_))), "{unknown:?}");

    let resources = client.resources().all().await.expect("it lists resources");
    assert!(!resources.is_empty());
    let templates = client
        .resource_templates()
        .all()
        .await
        .expect("it lists templates");
    assert!(
        templates
            .iter()
            .any(|template| template.uri_template.starts_with("demo://"))
    );
    let uri = "demo://resource/dynamic/text/1";
    let contents = client
        .read_resource(uri)
        .await
        .expect("an answer")
        .into_inner()
        .contents;
    assert_eq!(contents[0].uri, uri);
    assert!(contents[0].text.is_some());

    let of = CompletionRef::Prompt {
        name: "completable-prompt".to_owned(),
    };
    let ways = client
        .complete(&of, "department", "E", &HashMap::new())
        .await;
    assert_eq!(ways.expect("an answer").completion.values, ["Engineering"]);
    let context = HashMap::from([("department".to_owned(), "Sales".to_owned())]);
    let ways = client
        .complete(&of, "name", "", &context)
        .await
        .expect("an answer");
    assert_eq!(ways.completion.values, ["David", "Eve", "Frank"]);
}

pub(super) async fn works(Peer { client, .. }: &Peer) {
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

    // After a cancellation it continues to report progress, and never answers.
    let reported = Record::default();
    let steps = reported.clone();
    let arguments = json!({"duration": 60, "steps": 600});
    let call = client
        .call_tool("trigger-long-running-operation", arguments.clone())
        .on_progress(move |progress| steps.push(progress.progress))
        .cancellable();
    let canceller = call.canceller();
    let call = tokio::spawn(call);
    reported.wait("progress", |_| Some(())).await;
    canceller.cancel("enough");
    let ended = call.await.expect("no panic");
    assert!(
        matches!(ended, Err(Error::Call(CallError::Cancelled))),
        "{ended:?}"
    );

    let reported = Record::default();
    let steps = reported.clone();
    let call = client
        .call_tool("trigger-long-running-operation", arguments)
        .on_progress(move |progress| steps.push(progress.progress))
        .cancellable();
    let call = tokio::spawn(call);
    reported.wait("progress", |_| Some(())).await;
    // Aborting the task drops the call.
    call.abort();

    let echo = client
        .call_tool("echo", json!({"message": "still there"}))
        .await;
    assert_eq!(echo.expect("an answer").text(), "Echo: still there");
    let late = client
        .call_tool(
            "trigger-long-running-operation",
            json!({"duration": 60, "steps": 1}),
        )
        .timeout(Duration::from_millis(200))
        .await;
    assert!(
        matches!(late, Err(Error::Call(CallError::Timeout { .. }))),
        "{late:?}"
    );
}

pub(super) async fn asks_back(Peer { client, host, .. }: &Peer) {
    let arguments = json!({"prompt": "What is up?", "maxTokens": 10});
    let sampled = client
        .call_tool("trigger-sampling-request", arguments)
        .await;
    let sampled = sampled.expect("an answer").text();
    assert!(
        sampled.contains("What is up?") && sampled.contains("echo-model"),
        "{sampled}"
    );

    let form = client
        .call_tool("trigger-elicitation-request", json!({}))
        .await;
    let form = form.expect("an answer").text();
    assert!(
        form.contains("Ann") && form.contains("It was a dark and stormy night."),
        "{form}"
    );
    let address =
        json!({"url": "https://example.com/", "message": "Please look", "errorPath": false});
    let visit = client.call_tool("trigger-url-elicitation", address).await;
    let visit = visit.expect("an answer").text();
    assert!(visit.contains("User completed"), "{visit}");
    assert_eq!(host.questions.len(), 3);

    let roots = client
        .call_tool("get-roots-list", json!({}))
        .await
        .expect("an answer")
        .text();
    assert!(roots.contains(ROOT), "{roots}");
    let skipped = host.news.len();
    let changed = [Root::new("file:///a"), Root::new("file:///b")];
    client
        .set_roots(changed)
        .await
        .expect("roots are ours to change");
    let is_about_two = |params: &_| text(params, "data").contains("Roots updated: 2");
    host.told_from(skipped, "notifications/message", is_about_two)
        .await;
    let roots = client
        .call_tool("get-roots-list", json!({}))
        .await
        .expect("an answer")
        .text();
    assert!(
        roots.contains("file:///b") && !roots.contains(ROOT),
        "{roots}"
    );
}

pub(super) async fn tells(Peer { client, host, .. }: &Peer) {
    let uri = "demo://resource/dynamic/text/1";
    client
        .subscribe(uri)
        .await
        .expect("it can be subscribed to");
    // The server confirms that in its log, at the level `info`, which is enabled.
    let is_confirmation = |params: &_| text(params, "data").contains("Received Subscribe");
    host.told_from(0, "notifications/message", is_confirmation)
        .await;
    client
        .call_tool("toggle-subscriber-updates", json!({}))
        .await
        .expect("an answer");
    let is_update = |params: &Raw| {
        params
            .member("uri")
            .and_then(|uri| uri.to_text())
            .as_deref()
            == Some(uri)
    };
    host.told_from(0, "notifications/resources/updated", is_update)
        .await;

    client
        .set_log_level(LogLevel::Emergency)
        .await
        .expect("it has levels");
    let skipped = host.news.len();
    client.unsubscribe(uri).await.expect("it can be taken back");
    client
        .set_log_level(LogLevel::Debug)
        .await
        .expect("it has levels");
    client
        .call_tool("toggle-simulated-logging", json!({}))
        .await
        .expect("an answer");
    let is_simulated = |params: &_| text(params, "data").contains("level");
    host.told_from(skipped, "notifications/message", is_simulated)
        .await;
    let quiet = !host.news.all().iter().skip(skipped).any(|news| {
        news.params
            .as_ref()
            .is_some_and(|params| text(params, "data").contains("Received Unsubscribe"))
    });
    assert!(quiet, "it told of something below the level");
}
