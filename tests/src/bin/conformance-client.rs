//! The client side of the official conformance suite: performs the client's part of each scenario.
//!
//! The suite starts it with the address of its server as the last argument, the scenario in
//! `MCP_CONFORMANCE_SCENARIO` and parameters of the scenario in `MCP_CONFORMANCE_CONTEXT`, then checks the
//! messages that it received.

use std::{env, error::Error, process::ExitCode, time::Duration};

use serde_json::{Map, Value, json};
use switchboard_client::{
    Client, ClientBuilder, Lossless,
    auth::{ConfiguredClient, Grant, IdentityProvider, InMemory, OAuth, Opened, Settings},
    http::{Http, tls},
    model::{ElicitationAnswer, SamplingResult, Tool},
};
use tokio::time::timeout;

type Outcome = Result<(), Box<dyn Error>>;

/// Time limit of a scenario. The suite allows 30 seconds.
const LIMIT: Duration = Duration::from_secs(25);

#[tokio::main(flavor = "current_thread")]
#[expect(
    clippy::print_stderr,
    reason = "the suite shows it when a scenario fails"
)]
async fn main() -> ExitCode {
    match timeout(LIMIT, run()).await {
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(error)) => {
            eprintln!("failed: {error}");
            ExitCode::FAILURE
        }
        Err(_) => {
            eprintln!("failed: not done after {LIMIT:?}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Outcome {
    let url = env::args().next_back().ok_or("no address given")?;
    let scenario = env::var("MCP_CONFORMANCE_SCENARIO")?;
    if scenario.starts_with("auth/") {
        return sign_in_and_call(&scenario, &url).await;
    }
    let builder = answering(&scenario);
    let client = builder.connect(Http::new(&url)?);
    let outcome = play(&scenario, &client).await;
    client.stop().await;
    outcome
}

/// A client that answers the questions of the scenario's server.
fn answering(scenario: &str) -> ClientBuilder {
    let builder = Client::builder("switchboard-conformance", env!("CARGO_PKG_VERSION"))
        // The suite runs all scenarios at once, and must not be mistaken for an old server because it is
        // slow.
        .handshake_timeout(LIMIT)
        .probe_timeout(LIMIT);
    match scenario {
        "elicitation-sep1034-client-defaults" => builder.on_elicitation(|question| async move {
            Ok(ElicitationAnswer::accept(question.defaults()))
        }),
        "sep-2322-client-request-state" => builder.on_elicitation(|_| async {
            let answer = Map::from_iter([("confirmed".to_owned(), json!(true))]);
            Ok(ElicitationAnswer::accept(answer))
        }),
        // This scenario checks the capabilities that a client declares.
        "request-metadata" => builder
            .roots([])
            .on_sampling(|_| async { Ok(SamplingResult::text("none", "")) })
            .on_elicitation(|_| async { Ok(ElicitationAnswer::decline()) }),
        _ => builder,
    }
}

async fn play(scenario: &str, client: &Client) -> Outcome {
    let tools = client.tools().all().await?;
    match scenario {
        "initialize" | "request-metadata" | "json-schema-ref-no-deref" => {}
        "tools_call" => call(client, "add_numbers", &json!({"a": 5, "b": 3})).await?,
        "elicitation-sep1034-client-defaults" => {
            call(client, "test_client_elicitation_defaults", &json!({})).await?;
        }
        "sse-retry" => call(client, "test_reconnection", &json!({})).await?,
        "sep-2322-client-request-state" => {
            for case in ["echo_state", "no_state", "unrelated", "no_result_type"] {
                call(client, &format!("test_mrtr_{case}"), &json!({})).await?;
            }
        }
        "http-standard-headers" => every_kind_of_request(client).await?,
        "http-custom-headers" => {
            for wanted in context()?["toolCalls"].as_array().ok_or("no calls given")? {
                let name = wanted["name"].as_str().ok_or("a call without a name")?;
                call(client, name, &wanted["arguments"]).await?;
            }
        }
        "http-invalid-tool-headers" => {
            let is_valid = |tool: &Lossless<Tool>| tool.name == "valid_tool";
            if !tools.iter().any(is_valid) {
                return Err("the valid tool was left out".into());
            }
            for tool in &tools {
                call(client, &tool.name, &json!({"region": "us-east1"})).await?;
            }
        }
        "json-schema-2020-12-preservation" => echo_schema(client, &tools).await?,
        other => return Err(format!("this client does not play `{other}`").into()),
    }
    Ok(())
}

/// The sign-ins that a client starts by itself before it gives up.
const SIGN_INS: u32 = 6;

/// Uses a server that requires a sign-in, with a user who consents to everything.
async fn sign_in_and_call(scenario: &str, url: &str) -> Outcome {
    let oauth = OAuth::start(url, settings(scenario)?, InMemory::default())?;
    let mut sign_ins = 0;
    loop {
        let client = answering(scenario).connect(Http::new(url)?.oauth(&oauth)?);
        let outcome = use_tools(&client).await;
        client.stop().await;
        if outcome.is_ok() || sign_ins == SIGN_INS {
            return outcome;
        }
        sign_ins += 1;
        if let Some(opened) = oauth.sign_in().await? {
            consent(opened).await?;
        }
    }
}

/// The client's registration, which some scenarios prescribe.
fn settings(scenario: &str) -> Result<Settings, Box<dyn Error>> {
    let mut settings = Settings::new("switchboard-conformance");
    settings.client_document =
        Some("https://conformance-test.local/client-metadata.json".to_owned());
    if env::var_os("MCP_CONFORMANCE_CONTEXT").is_none() {
        return Ok(settings);
    }
    let context = context()?;
    let text = |name: &str| context[name].as_str().map(str::to_owned);
    settings.client = text("client_id").map(|id| ConfiguredClient {
        secret: text("client_secret").map(Into::into),
        private_key: text("private_key_pem").map(Into::into),
        issuer: text("issuer"),
        ..ConfiguredClient::new(id)
    });
    if scenario.starts_with("auth/client-credentials") {
        settings.grant = Grant::ClientCredentials;
    }
    // The suite deletes nothing, and starts one client for each scenario.
    if let Some(assertion) = text("valid_jwt").or_else(|| text("idp_id_token")) {
        let file = env::temp_dir().join(format!("sb-assertion-{}", std::process::id()));
        std::fs::write(&file, assertion)?;
        settings.grant = Grant::JwtBearer;
        settings.assertion_file = Some(file);
        settings.identity_provider = text("idp_token_endpoint").map(|token_url| IdentityProvider {
            token_url,
            client_id: text("idp_client_id").unwrap_or_default(),
            client_secret: None,
        });
    }
    Ok(settings)
}

/// Plays the browser of a user who consents.
async fn consent(mut opened: Opened) -> Outcome {
    let browser = reqwest::Client::builder().tls_backend_preconfigured(tls(false)?);
    browser.build()?.get(opened.url()).send().await?;
    opened.finish().await?;
    Ok(())
}

async fn use_tools(client: &Client) -> Outcome {
    for tool in client.tools().all().await? {
        call(client, &tool.name, &json!({})).await?;
    }
    Ok(())
}

async fn every_kind_of_request(client: &Client) -> Outcome {
    call(client, "test_headers", &json!({})).await?;
    call(client, "my-hyphenated-tool", &json!({})).await?;
    client.resources().all().await?;
    for uri in [
        "file:///path/to/file%20name.txt",
        "https://example.com/resource?id=123",
    ] {
        client.read_resource(uri).await?;
    }
    client.prompts().all().await?;
    client.get_prompt("test_prompt", json!({})).await?;
    Ok(())
}

/// Sends the schema of a tool back, which the client must not have changed.
async fn echo_schema(client: &Client, tools: &[Lossless<Tool>]) -> Outcome {
    let tool = tools
        .iter()
        .find(|tool| tool.name == "json_schema_2020_12_tool");
    let schema = &tool
        .ok_or("the tool with the schema is not there")?
        .input_schema;
    let arguments = switchboard_client::Raw::object([("schema", schema.clone())]);
    client.call_tool("json_schema_echo", arguments).await?;
    Ok(())
}

/// Calls a tool. The suite checks the result.
async fn call(client: &Client, name: &str, arguments: &Value) -> Outcome {
    client.call_tool(name, arguments).await?;
    Ok(())
}

fn context() -> Result<Value, Box<dyn Error>> {
    Ok(serde_json::from_str(&env::var("MCP_CONFORMANCE_CONTEXT")?)?)
}
