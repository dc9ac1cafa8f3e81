//! Every response and every request gives a result or an error.

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use switchboard_provider::{Kind, Provider};
use switchboard_wire::Raw;
use tokio::runtime::Runtime;

use super::{
    provider, raw,
    server::{Reply, Server},
};

/// Arbitrary JSON, made mostly of the keys of both APIs so that it passes more than the first check.
fn json() -> impl Strategy<Value = Value> {
    let word = prop::sample::select(vec![
        "choices",
        "message",
        "content",
        "text",
        "type",
        "tool_calls",
        "function",
        "name",
        "arguments",
        "id",
        "input",
        "tool_use",
        "refusal",
        "finish_reason",
        "stop_reason",
        "stop",
        "usage",
        "prompt_tokens",
        "error",
        "model",
        "role",
        "user",
        "messages",
        "image",
        "data",
        "mimeType",
        "tool_result",
        "toolUseId",
        "{}",
        "",
        "\u{0}",
        "modelPreferences",
        "hints",
        "maxTokens",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        word.clone().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 48, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((word.clone(), inner), 0..6).prop_map(|members| {
                let members = members
                    .into_iter()
                    .map(|(name, value)| (name.to_owned(), value));
                Value::Object(members.collect::<Map<_, _>>())
            }),
        ]
    })
}

/// A response that is nearly valid.
fn answer() -> impl Strategy<Value = Value> {
    prop_oneof![
        json(),
        json().prop_map(|message| json!({"choices": [{"message": message}]})),
        json().prop_map(|content| json!({"choices": [{"message": {"content": content}}]})),
        json().prop_map(|call| json!({"choices": [{"message": {"tool_calls": [call]}}]})),
        json().prop_map(|block| json!({"content": [block]})),
        json().prop_map(|usage| json!({"content": [], "usage": usage, "model": usage})),
    ]
}

fn put(runtime: &Runtime, kind: Kind, reply: Reply, params: &Raw) -> Option<Value> {
    runtime.block_on(async {
        let server = Server::start([reply]).await;
        let provider = provider(kind, &server);
        let generated = provider.generate(params, None).await.ok()?;
        Some(generated.result.read().unwrap())
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn any_answer_gives_result_or_error(body in answer(), is_openai: bool) {
        let runtime = Runtime::new().unwrap();
        let kind = if is_openai { Kind::OpenAi } else { Kind::Anthropic };
        let params = json!({
            "messages": [{"role": "user", "content": {"type": "text", "text": "Hi"}}],
            "maxTokens": 5,
            "tools": [{"name": "a"}],
        });
        if let Some(result) = put(&runtime, kind, Reply::Json(200, body), &raw(&params)) {
            prop_assert_eq!(&result["role"], "assistant");
            prop_assert!(result["content"].is_object() || result["content"].is_array());
            prop_assert!(result["model"].is_string());
        }
    }
}

proptest! {
    #[test]
    fn any_request_gives_an_error_without_answer(params in prop_oneof![
        json(),
        json().prop_map(|content| json!({"messages": [{"role": "user", "content": content}]})),
        json().prop_map(|result| json!({"messages": [{"role": "user", "content": {"type": "tool_result", "toolUseId": "1", "content": [result]}}]})),
        json().prop_map(|rest| json!({"messages": [{"role": "user", "content": []}], "tools": [rest], "toolChoice": rest, "modelPreferences": rest})),
    ], is_openai: bool) {
        let kind = if is_openai { Kind::OpenAi } else { Kind::Anthropic };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let server = Server::start([Reply::HangUp]).await;
            let provider: Provider = provider(kind, &server);
            assert!(provider.generate(&raw(&params), None).await.is_err());
        });
    }
}

#[test]
fn malformed_json_is_an_error() {
    let runtime = Runtime::new().unwrap();
    let params = raw(&super::hello());
    for body in [
        "",
        "null",
        "[",
        "\u{feff}{}",
        "data: {}\n\n",
        &"[".repeat(100_000),
        &format!("{}{}", "[".repeat(100_000), "]".repeat(100_000)),
    ] {
        for kind in [Kind::OpenAi, Kind::Anthropic] {
            let reply = Reply::Text(200, "application/json", body.to_owned());
            assert!(put(&runtime, kind, reply, &params).is_none(), "{body:.50}");
        }
    }
    // The input of a call, nested deeply.
    let deep = format!(
        r#"{{"content":[{{"type":"tool_use","id":"1","name":"a","input":{{"a":{}{}}}}}]}}"#,
        "[".repeat(50_000),
        "]".repeat(50_000)
    );
    let params =
        raw(&json!({"messages": [{"role": "user", "content": []}], "tools": [{"name": "a"}]}));
    assert!(
        put(
            &runtime,
            Kind::Anthropic,
            Reply::Text(200, "application/json", deep),
            &params
        )
        .is_none()
    );
}
