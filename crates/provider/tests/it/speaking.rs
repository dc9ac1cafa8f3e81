//! The requests that are sent, and the results of their responses.

use std::time::Duration;

use serde_json::{Value, json};
use switchboard_provider::{Kind, Prices, Provider, Settings, Usage};
use switchboard_wire::Raw;

use super::{
    KEY, ask, hello, provider, raw,
    server::{Reply, Server},
    settings, value,
};

fn chat(message: &Value) -> Reply {
    Reply::Json(
        200,
        json!({
            "model": "small-2026",
            "choices": [{"message": message, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 1000, "completion_tokens": 500},
        }),
    )
}

#[tokio::test]
async fn chat_completions() {
    let server = Server::start([chat(&json!({"role": "assistant", "content": "Hi!"}))]).await;
    let provider = Provider::new(Settings {
        prices: Some(Prices {
            input: 2.0,
            output: 8.0,
        }),
        max_tokens: Some(20),
        ..settings(Kind::OpenAi, &server)
    });
    let generated = ask(&provider.unwrap(), &hello()).await.unwrap();
    assert_eq!(
        value(&generated.result),
        json!({"role": "assistant", "content": {"type": "text", "text": "Hi!"}, "model": "small-2026", "stopReason": "endTurn"})
    );
    let usage = generated.usage;
    assert_eq!(
        (usage.input_tokens, usage.output_tokens),
        (Some(1000), Some(500))
    );
    assert_eq!(usage.cost, Some(0.006));
    let seen = &server.seen()[0];
    assert_eq!(seen.path(), "/v1/chat/completions");
    assert_eq!(
        seen.header("authorization").unwrap(),
        format!("Bearer {KEY}")
    );
    assert_eq!(
        seen.body,
        json!({"model": "small", "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 20})
    );
}

#[tokio::test]
async fn anthropic_message_becomes_a_result() {
    let answer = json!({
        "model": "claude-x", "stop_reason": "stop_sequence",
        "content": [{"type": "text", "text": "Hi!"}], "usage": {"input_tokens": 3, "output_tokens": 4},
    });
    let server = Server::start([Reply::Json(200, answer)]).await;
    let provider = provider(Kind::Anthropic, &server);
    let generated = provider
        .generate(&raw(&hello()), Some("large"))
        .await
        .unwrap();
    assert_eq!(
        value(&generated.result),
        json!({"role": "assistant", "content": {"type": "text", "text": "Hi!"}, "model": "claude-x", "stopReason": "stopSequence"})
    );
    assert_eq!(
        (generated.usage.input_tokens, generated.usage.cost),
        (Some(3), None)
    );
    let seen = &server.seen()[0];
    assert_eq!(seen.path(), "/v1/messages");
    assert_eq!(seen.header("x-api-key"), Some(KEY));
    assert_eq!(seen.header("anthropic-version"), Some("2023-06-01"));
    assert_eq!(seen.header("authorization"), None);
    assert_eq!(seen.body["model"], "large");
    assert_eq!(seen.body["max_tokens"], 50);
}

#[tokio::test]
async fn images_are_sent_and_tool_calls_returned() {
    let message = json!({"content": "Let me see.", "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "crop", "arguments": "{\"w\":1}"}},
    ]});
    let server = Server::start([chat(&message)]).await;
    let params = json!({
        "messages": [{"role": "user", "content": [{"type": "image", "data": "aGk=", "mimeType": "image/png"}]}],
        "maxTokens": 5,
        "tools": [{"name": "crop", "inputSchema": {"type": "object"}}],
        "toolChoice": {"mode": "auto"},
    });
    let generated = ask(&provider(Kind::OpenAi, &server), &params)
        .await
        .unwrap();
    let result = value(&generated.result);
    assert_eq!(result["stopReason"], "toolUse");
    assert_eq!(
        result["content"],
        json!([{"type": "text", "text": "Let me see."}, {"type": "tool_use", "id": "c1", "name": "crop", "input": {"w": 1}}])
    );
    let body = &server.seen()[0].body;
    assert_eq!(
        body["messages"][0]["content"][0]["image_url"]["url"],
        "data:image/png;base64,aGk="
    );
    assert_eq!(body["tool_choice"], "auto");
}

#[tokio::test]
async fn tool_result_is_sent_to_anthropic() {
    let answer = json!({"content": [{"type": "tool_use", "id": "c2", "name": "add", "input": {"n": 2}}], "stop_reason": "tool_use"});
    let server = Server::start([Reply::Json(200, answer)]).await;
    let params = json!({
        "messages": [
            {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "add", "input": {"n": 1}}]},
            {"role": "user", "content": [{"type": "tool_result", "toolUseId": "c1", "content": [{"type": "text", "text": "1"}]}]},
        ],
        "maxTokens": 5,
        "tools": [{"name": "add"}],
    });
    let generated = ask(&provider(Kind::Anthropic, &server), &params)
        .await
        .unwrap();
    assert_eq!(
        value(&generated.result)["content"]["input"],
        json!({"n": 2})
    );
    assert_eq!(
        server.seen()[0].body["messages"][1]["content"][0],
        json!({"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "1"}]})
    );
}

#[tokio::test]
async fn invalid_request_is_not_sent() {
    let server = Server::start([Reply::HangUp]).await;
    let provider = provider(Kind::Anthropic, &server);
    let params = json!({"messages": [{"role": "user", "content": {"type": "audio", "data": "aGk=", "mimeType": "audio/wav"}}]});
    assert_eq!(ask(&provider, &params).await.unwrap_err().kind(), "request");
    let unknown = provider
        .generate(&raw(&hello()), Some("huge"))
        .await
        .unwrap_err();
    let hint = unknown.hint().unwrap();
    assert!(hint.contains("choose one of: small, large"), "{hint}");
    assert!(server.seen().is_empty());
}

#[test]
fn hint_selects_the_model() {
    let provider = Provider::new(Settings {
        models: vec!["claude-sonnet-4-5".to_owned(), "m".to_owned()],
        ..Settings::new(Kind::OpenAi, "m")
    });
    let provider = provider.unwrap();
    assert_eq!(provider.models(), ["m", "claude-sonnet-4-5"]);
    let params = raw(&json!({"modelPreferences": {"hints": [{"name": "claude-3-5-sonnet"}]}}));
    assert_eq!(provider.choose(&params, None).unwrap(), "claude-sonnet-4-5");
    assert_eq!(provider.choose(&params, Some("m")).unwrap(), "m");
}

#[test]
fn usage_is_serialized_in_camel_case() {
    let usage = Usage {
        model: "m".to_owned(),
        input_tokens: Some(1),
        output_tokens: None,
        cost: Some(0.5),
        took: Duration::from_micros(1_234_567),
    };
    assert_eq!(
        serde_json::to_value(usage).unwrap(),
        json!({"model": "m", "inputTokens": 1, "cost": 0.5, "seconds": 1.235})
    );
}

#[test]
fn token_limit_and_cost_are_known_beforehand() {
    let provider = Provider::new(Settings {
        max_tokens: Some(100),
        prices: Some(Prices {
            input: 2.0,
            output: 10.0,
        }),
        ..Settings::new(Kind::OpenAi, "m")
    })
    .unwrap();
    for (params, output, cost) in [
        (r#"{"maxTokens":50}"#, 50, 0.0025),
        (r#"{"maxTokens":500}"#, 100, 0.003),
        ("{}", 100, 0.003),
    ] {
        let (most, price) = provider.most(&Raw::parse(params).unwrap(), 1_000);
        assert_eq!(most, output, "{params}");
        assert!((price.unwrap() - cost).abs() < 1e-9, "{params}: {price:?}");
    }
}
