//! The tools and the prompt of 2026-07-28 that return `InputRequiredResult`; the suite prescribes their keys.

#![expect(deprecated, reason = "the suite has scenarios for sampling and roots")]

use rmcp::{
    ErrorData,
    model::{
        CallToolRequestParams, CallToolResponse, ClientCapabilities, ContentBlock,
        GetPromptRequestParams, GetPromptResponse, GetPromptResult, InputRequests,
        InputRequiredResult, InputResponses, PromptMessage, RequestStateCodec, Role,
    },
};
use serde_json::{Value, json};

use super::{server::Context, tools::text};
use crate::peer::read;

pub(super) const PROMPT: &str = "test_input_required_result_prompt";

pub(super) const TOOLS: [&str; 9] = [
    "test_input_required_result_capabilities",
    "test_input_required_result_elicitation",
    "test_input_required_result_list_roots",
    "test_input_required_result_multi_round",
    "test_input_required_result_multiple_inputs",
    "test_input_required_result_request_state",
    "test_input_required_result_sampling",
    "test_input_required_result_tampered_state",
    "test_missing_capability",
];

pub(super) fn call(
    request: &CallToolRequestParams,
    context: &Context,
    states: &RequestStateCodec,
) -> Result<CallToolResponse, ErrorData> {
    let answers = request.input_responses.as_ref();
    let answer = |key: &str| answer(answers, key);
    let state: Value = match request.request_state.as_deref() {
        Some(sealed) => states
            .open_json(sealed)
            .map_err(|error| ErrorData::invalid_params(error.to_string(), None))?,
        None => Value::Null,
    };
    let with_state = |requests: Value, state: Value| -> Result<CallToolResponse, ErrorData> {
        let sealed = states.seal_json(&state);
        let sealed = sealed.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        Ok(InputRequiredResult::new(Some(read(requests)), Some(sealed)).into())
    };
    let name = || form("What is your name?", "name", "string");
    let roots = || json!({ "method": "roots/list" });
    let response = match &*request.name {
        "test_input_required_result_elicitation" => match answer("user_name") {
            Some(answer) => text(format!("Hello, {}!", answer["content"]["name"])).into(),
            None => required(json!({ "user_name": name() })),
        },
        "test_input_required_result_sampling" => match answer("capital_question") {
            Some(answer) => text(format!("Sampling response: {}", answer["content"])).into(),
            None => {
                required(json!({ "capital_question": sampling("What is the capital of France?") }))
            }
        },
        "test_input_required_result_list_roots" => match answer("client_roots") {
            Some(answer) => text(answer["roots"].to_string()).into(),
            None => required(json!({ "client_roots": roots() })),
        },
        "test_input_required_result_request_state"
        | "test_input_required_result_tampered_state" => {
            if state.is_null() || answer("confirm").is_none() {
                let confirm = form("Please confirm", "ok", "boolean");
                return with_state(json!({ "confirm": confirm }), json!("confirm"));
            }
            text("state-ok").into()
        }
        "test_input_required_result_multiple_inputs" => {
            let keys = ["user_name", "greeting", "client_roots"];
            if state.is_null() || keys.iter().any(|key| answer(key).is_none()) {
                let greeting = sampling("Generate a greeting");
                let all =
                    json!({ "user_name": name(), "greeting": greeting, "client_roots": roots() });
                return with_state(all, json!("multiple"));
            }
            text("all inputs received").into()
        }
        "test_input_required_result_multi_round" => match state["round"].as_u64() {
            None => {
                let step = form("Step 1: What is your name?", "name", "string");
                return with_state(json!({ "step1": step }), json!({ "round": 1 }));
            }
            Some(1) => {
                let step = form("Step 2: Which colour?", "color", "string");
                return with_state(json!({ "step2": step }), json!({ "round": 2 }));
            }
            Some(_) => text("both rounds are over").into(),
        },
        "test_input_required_result_capabilities" => {
            let declared = context.client_capabilities().unwrap_or_default();
            let mut requests = json!({});
            if declared.elicitation.is_some() {
                requests["user_name"] = name();
            }
            if declared.sampling.is_some() {
                requests["greeting"] = sampling("Generate a greeting");
            }
            if declared.roots.is_some() {
                requests["client_roots"] = roots();
            }
            if answers.is_some() || requests == json!({}) {
                text("done").into()
            } else {
                required(requests)
            }
        }
        "test_missing_capability" => {
            let declared = context.client_capabilities().unwrap_or_default();
            if declared.sampling.is_none() {
                let sampling = ClientCapabilities::builder().enable_sampling().build();
                return Err(ErrorData::missing_required_client_capability(sampling));
            }
            text("the client can sample").into()
        }
        name => return Err(ErrorData::invalid_params(format!("no tool {name}"), None)),
    };
    Ok(response)
}

pub(super) fn prompt(request: &GetPromptRequestParams) -> GetPromptResponse {
    match answer(request.input_responses.as_ref(), "user_context") {
        Some(answer) => {
            let context = format!(
                "Use the following context: {}",
                answer["content"]["context"]
            );
            let message = PromptMessage::new(Role::User, ContentBlock::text(context));
            GetPromptResult::new(vec![message]).into()
        }
        None => {
            let context = form("Which context?", "context", "string");
            let requests: InputRequests = read(json!({ "user_context": context }));
            InputRequiredResult::from_input_requests(requests).into()
        }
    }
}

/// The answer with this key, if it is valid: a client may send anything.
fn answer<'a>(answers: Option<&'a InputResponses>, key: &str) -> Option<&'a Value> {
    answers?.get(key).filter(|answer| answer.is_object())
}

fn required(requests: Value) -> CallToolResponse {
    let requests: InputRequests = read(requests);
    InputRequiredResult::from_input_requests(requests).into()
}

fn form(message: &str, member: &str, kind: &str) -> Value {
    let properties = json!({ member: { "type": kind } });
    let schema = json!({ "type": "object", "properties": properties, "required": [member] });
    let params = json!({ "mode": "form", "message": message, "requestedSchema": schema });
    json!({ "method": "elicitation/create", "params": params })
}

fn sampling(prompt: &str) -> Value {
    let content = json!({ "type": "text", "text": prompt });
    let messages = json!([{ "role": "user", "content": content }]);
    json!({ "method": "sampling/createMessage", "params": { "messages": messages, "maxTokens": 100 } })
}
