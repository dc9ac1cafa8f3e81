//! Tools that ask the client.

use std::sync::atomic::Ordering;

use serde_json::{Value, json};

use super::text;
use crate::{
    call::{Asks, Call, Input, State, Stop},
    rpc::{Answer, Fault},
    world::World,
};

pub(super) async fn run(call: &Call) -> Option<Result<Answer, Stop>> {
    Some(match &*call.name {
        "test_sampling" => sampling(call).await,
        "test_sampling_echo" => sampling_echo(call).await,
        "test_elicitation" => elicitation(call).await,
        "test_elicitation_sep1034_defaults" => defaults(call).await,
        "test_elicitation_sep1330_enums" => choices(call).await,
        "test_streaming_elicitation" => streaming(call).await,
        "test_roots" => roots(call).await,
        "test_url_elicitation" => url(call).await,
        "test_url_required" => url_required(call).await,
        "test_url_then_form" => url_then_form(call).await,
        "test_input_required_result_elicitation" => name(call).await,
        "test_input_required_result_sampling" => capital(call).await,
        "test_input_required_result_list_roots" => list_roots(call).await,
        "test_input_required_result_request_state" => confirm(call, "state-ok").await,
        "test_input_required_result_tampered_state" => confirm(call, "untampered").await,
        "test_input_required_result_multiple_inputs" => three_at_once(call).await,
        "test_input_required_result_multi_round" => one_by_one(call).await,
        "test_input_required_result_capabilities" => by_capability(call).await,
        _ => return None,
    })
}

fn word(call: &Call, name: &str) -> String {
    call.arguments[name].as_str().unwrap_or_default().to_owned()
}

fn said(answer: &Value) -> &str {
    let content = &answer["content"];
    // Since 2025-11-25 the content may be several blocks.
    let block = content.get(0).unwrap_or(content);
    block["text"].as_str().unwrap_or_default()
}

async fn sampling(call: &Call) -> Result<Answer, Stop> {
    let prompt = word(call, "prompt");
    let answer = call.ask(Input::sample("completion", &prompt, 100)).await?;
    Ok(text(format!("LLM response: {}", said(&answer))))
}

/// Returns the whole answer of the client.
async fn sampling_echo(call: &Call) -> Result<Answer, Stop> {
    let prompt = call.arguments.to_string();
    let answer = call.ask(Input::sample("completion", &prompt, 100)).await?;
    Ok(text(answer.to_string()))
}

async fn elicitation(call: &Call) -> Result<Answer, Stop> {
    let message = word(call, "message");
    let fields = json!({
        "username": { "type": "string", "description": "User's response" },
        "email": { "type": "string", "description": "User's email address" }
    });
    let answer = call.ask(Input::elicit("user", &message, &fields)).await?;
    let (action, content) = (&answer["action"], &answer["content"]);
    Ok(text(format!(
        "User response: action={}, content={content}",
        action.as_str().unwrap_or_default()
    )))
}

fn completed(answer: &Value) -> Answer {
    let action = answer["action"].as_str().unwrap_or_default();
    text(format!(
        "Elicitation completed: action={action}, content={}",
        answer["content"]
    ))
}

async fn defaults(call: &Call) -> Result<Answer, Stop> {
    let schema = json!({
        "type": "object",
        "properties": {
            "name": { "type": "string", "description": "User name", "default": "John Doe" },
            "age": { "type": "integer", "description": "User age", "default": 30 },
            "score": { "type": "number", "description": "User score", "default": 95.5 },
            "status": {
                "type": "string",
                "description": "User status",
                "enum": ["active", "inactive", "pending"],
                "default": "active"
            },
            "verified": { "type": "boolean", "description": "Verified?", "default": true }
        },
        "required": []
    });
    let input = Input::form("user", "Please review and update the form fields", &schema);
    Ok(completed(&call.ask(input).await?))
}

async fn choices(call: &Call) -> Result<Answer, Stop> {
    let titled = |what: &str| {
        json!([
            { "const": "value1", "title": format!("First {what}") },
            { "const": "value2", "title": format!("Second {what}") },
            { "const": "value3", "title": format!("Third {what}") }
        ])
    };
    let options = json!(["option1", "option2", "option3"]);
    let schema = json!({
        "type": "object",
        "properties": {
            "untitledSingle": { "type": "string", "enum": options },
            "titledSingle": { "type": "string", "oneOf": titled("Option") },
            "legacyEnum": {
                "type": "string",
                "enum": ["opt1", "opt2", "opt3"],
                "enumNames": ["Option One", "Option Two", "Option Three"]
            },
            "untitledMulti": { "type": "array", "items": { "type": "string", "enum": options } },
            "titledMulti": { "type": "array", "items": { "anyOf": titled("Choice") } }
        },
        "required": []
    });
    let input = Input::form("choices", "Please select options", &schema);
    Ok(completed(&call.ask(input).await?))
}

/// Asks when the stream has begun already.
async fn streaming(call: &Call) -> Result<Answer, Stop> {
    call.progress(1, 2);
    let fields = json!({ "ok": { "type": "boolean" } });
    let answer = call.ask(Input::elicit("go_on", "Go on?", &fields)).await?;
    call.progress(2, 2);
    Ok(completed(&answer))
}

async fn roots(call: &Call) -> Result<Answer, Stop> {
    let answer = call.ask(Input::roots("roots")).await?;
    Ok(text(answer["roots"].to_string()))
}

const PAGE: &str = "https://example.com/authorize";

async fn url(call: &Call) -> Result<Answer, Stop> {
    let answer = call
        .ask(Input::url("page", "Please open this page", PAGE))
        .await?;
    Ok(text(answer["action"].as_str().unwrap_or_default()))
}

/// In a session the page is demanded by an error, and visited when the call comes again.
async fn url_required(call: &Call) -> Result<Answer, Stop> {
    let Asks::Session(session) = &call.asks else {
        let input = Input::url("page", "Please authorize first", PAGE);
        let answer = call.ask(input).await?;
        return Ok(text(format!("visited: {}", answer["action"])));
    };
    if !call.capabilities["elicitation"]["url"].is_object() {
        return Err(Stop::Failed("The client cannot open pages".to_owned()));
    }
    if session.url_given.fetch_xor(true, Ordering::SeqCst) {
        return Ok(text("visited: \"accept\""));
    }
    Err(page_first())
}

/// The error of 2025-11-25 that demands a visit to the page.
fn page_first() -> Stop {
    let mut elicitation = Input::url("page", "Please authorize first", PAGE).params;
    elicitation["elicitationId"] = json!(World::random());
    let data = json!({ "elicitations": [elicitation] });
    Fault::new(-32042, "This needs a page to be visited")
        .with(data)
        .into()
}

/// A page has to be visited first, and then a form is to be filled in.
async fn url_then_form(call: &Call) -> Result<Answer, Stop> {
    if let Asks::Session(session) = &call.asks {
        if !session.url_given.fetch_xor(true, Ordering::SeqCst) {
            return Err(page_first());
        }
    } else {
        let page = Input::url("page", "Please authorize first", PAGE);
        call.ask_all(vec![page], State::Needed).await?;
    }
    let fields = json!({ "sure": { "type": "boolean" } });
    let form = Input::elicit("sure", "Delete everything?", &fields);
    let answers = call.ask_all(vec![form], State::Needed).await?;
    Ok(completed(&answers[0]))
}

async fn name(call: &Call) -> Result<Answer, Stop> {
    let fields = json!({ "name": { "type": "string" } });
    let input = Input::elicit("user_name", "What is your name?", &fields);
    let answer = call.ask(input).await?;
    let name = answer["content"]["name"].as_str().unwrap_or("stranger");
    Ok(text(format!("Hello, {name}!")))
}

async fn capital(call: &Call) -> Result<Answer, Stop> {
    let question = "What is the capital of France?";
    let input = Input::sample("capital_question", question, 100);
    Ok(text(said(&call.ask(input).await?)))
}

async fn list_roots(call: &Call) -> Result<Answer, Stop> {
    let answer = call.ask(Input::roots("client_roots")).await?;
    Ok(text(format!("Roots: {}", answer["roots"])))
}

async fn confirm(call: &Call, end: &str) -> Result<Answer, Stop> {
    let fields = json!({ "ok": { "type": "boolean" } });
    let input = Input::elicit("confirm", "Please confirm", &fields);
    call.ask_all(vec![input], State::Needed).await?;
    Ok(text(end))
}

async fn three_at_once(call: &Call) -> Result<Answer, Stop> {
    let fields = json!({ "name": { "type": "string" } });
    let inputs = vec![
        Input::elicit("user_name", "What is your name?", &fields),
        Input::sample("greeting", "Generate a greeting", 50),
        Input::roots("client_roots"),
    ];
    let answers = call.ask_all(inputs, State::Needed).await?;
    Ok(text(json!(answers).to_string()))
}

async fn one_by_one(call: &Call) -> Result<Answer, Stop> {
    let fields = json!({ "name": { "type": "string" } });
    let input = Input::elicit("step1", "Step 1: What is your name?", &fields);
    let first = call.ask_all(vec![input], State::Needed).await?;
    let fields = json!({ "color": { "type": "string" } });
    let input = Input::elicit("step2", "Step 2: What is your favorite color?", &fields);
    let second = call.ask_all(vec![input], State::Needed).await?;
    let (name, color) = (&first[0]["content"]["name"], &second[0]["content"]["color"]);
    Ok(text(format!("{name} likes {color}")))
}

/// Asks for everything that the client says it can answer, and takes what it gets.
async fn by_capability(call: &Call) -> Result<Answer, Stop> {
    let mut inputs = Vec::new();
    if call.declared("elicitation") {
        let fields = json!({ "name": { "type": "string" } });
        inputs.push(Input::elicit("user_name", "What is your name?", &fields));
    }
    if call.declared("sampling") {
        inputs.push(Input::sample("greeting", "Generate a greeting", 50));
    }
    let answers = call.ask_any(inputs).await?;
    Ok(text(json!(answers).to_string()))
}
