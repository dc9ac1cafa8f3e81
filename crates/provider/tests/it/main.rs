//! Providers against a server that listens on a real socket.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test may fail"
)]

mod hostile;
mod server;
mod speaking;
mod trouble;

use std::time::Duration;

use serde_json::{Value, json};
use server::Server;
use switchboard_provider::{Generated, Kind, Provider, ProviderError, Settings};
use switchboard_wire::Raw;

const KEY: &str = "sk-s3cret-0123456789";

fn settings(kind: Kind, server: &Server) -> Settings {
    Settings {
        base_url: Some(server.address()),
        api_key: Some(KEY.to_owned()),
        models: vec!["large".to_owned()],
        timeout: Duration::from_secs(30),
        ..Settings::new(kind, "small")
    }
}

fn provider(kind: Kind, server: &Server) -> Provider {
    Provider::new(settings(kind, server)).unwrap()
}

fn raw(value: &Value) -> Raw {
    Raw::parse(value.to_string()).unwrap()
}

fn hello() -> Value {
    json!({"messages": [{"role": "user", "content": {"type": "text", "text": "Hello"}}], "maxTokens": 50})
}

async fn ask(provider: &Provider, params: &Value) -> Result<Generated, ProviderError> {
    provider.generate(&raw(params), None).await
}

fn value(raw: &Raw) -> Value {
    raw.read().unwrap()
}
