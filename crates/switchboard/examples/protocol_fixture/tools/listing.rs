//! The list of tools, of which each revision sees what it can use.

use std::sync::atomic::Ordering;

use serde_json::{Value, json};

use crate::{options::Revision, world::World};

use Revision::{V2025_03_26, V2025_06_18, V2025_11_25, V2026_07_28};

pub(crate) struct Tool {
    pub(crate) name: &'static str,
    description: &'static str,
    input: Value,
    output: Option<Value>,
    since: Revision,
    pub(crate) tasks: Tasks,
}

/// Whether a call runs as a task.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tasks {
    Never,
    /// As a task for those who know of the extension.
    Extension,
    /// The same, and nobody else can call it.
    ExtensionOnly,
    /// As a task for those who know of the extension; in 2025-11-25 in no other way.
    CoreOnly,
}

impl Tool {
    fn new(name: &'static str, description: &'static str) -> Self {
        Self {
            name,
            description,
            input: json!({ "type": "object", "properties": {} }),
            output: None,
            since: Revision::V2024_11_05,
            tasks: Tasks::Never,
        }
    }

    fn takes(self, properties: &Value, required: &[&str]) -> Self {
        let mut input = json!({ "type": "object", "properties": properties });
        if !required.is_empty() {
            input["required"] = json!(required);
        }
        Self { input, ..self }
    }

    fn with_schema(self, input: Value) -> Self {
        Self { input, ..self }
    }

    fn returns(self, output: Value) -> Self {
        let output = Some(output);
        Self { output, ..self }
    }

    fn since(self, since: Revision) -> Self {
        Self { since, ..self }
    }

    fn tasks(self, tasks: Tasks) -> Self {
        Self { tasks, ..self }
    }

    pub(crate) fn json(&self, revision: Revision) -> Value {
        let mut tool = json!({
            "name": self.name,
            "description": self.description,
            "inputSchema": self.input,
        });
        if let (Some(output), true) = (&self.output, revision >= V2025_06_18) {
            tool["outputSchema"] = output.clone();
        }
        if self.tasks == Tasks::CoreOnly && revision == V2025_11_25 {
            tool["execution"] = json!({ "taskSupport": "required" });
        }
        tool
    }

    /// The arguments that go into headers as well: the name of the argument, and of the header.
    pub(crate) fn headers(&self) -> Vec<(&str, String)> {
        let properties = self.input["properties"].as_object();
        let header = |schema: &Value| Some(schema["x-mcp-header"].as_str()?.to_owned());
        let named = properties.into_iter().flatten();
        let named = named.filter_map(|(name, schema)| Some((&**name, header(schema)?)));
        named.collect()
    }
}

/// The tools that a client of this revision sees, always in the same order.
pub(crate) fn listed(world: &World, revision: Revision) -> Vec<Tool> {
    let mut tools = all(revision);
    if world.extra_tool.load(Ordering::SeqCst) {
        tools.push(Tool::new(
            "test_comes_and_goes",
            "Is there after every second change",
        ));
    }
    tools.retain(|tool| tool.since <= revision);
    tools
}

fn all(revision: Revision) -> Vec<Tool> {
    let mut tools = of_the_suite();
    tools.extend(with_input());
    tools.extend(with_tasks());
    tools.extend(our_own(revision));
    tools
}

fn of_the_suite() -> Vec<Tool> {
    let header = json!({ "value": { "type": "string", "x-mcp-header": "Test-Value" } });
    let prompt = json!({ "prompt": { "type": "string", "description": "What to ask the model" } });
    let message = json!({ "message": { "type": "string", "description": "What to ask the user" } });
    vec![
        Tool::new("test_simple_text", "Returns a simple text"),
        Tool::new("test_image_content", "Returns an image"),
        Tool::new("test_audio_content", "Returns a sound").since(V2025_03_26),
        Tool::new("test_embedded_resource", "Returns an embedded resource"),
        Tool::new(
            "test_multiple_content_types",
            "Returns a text, an image and a resource",
        ),
        Tool::new("test_tool_with_logging", "Logs three times while it runs"),
        Tool::new(
            "test_tool_with_progress",
            "Reports progress three times while it runs",
        ),
        Tool::new("test_error_handling", "Always fails"),
        Tool::new("test_reconnection", "Closes the stream before it answers"),
        Tool::new("test_sampling", "Asks the model of the client").takes(&prompt, &["prompt"]),
        Tool::new("test_elicitation", "Asks the user")
            .takes(&message, &["message"])
            .since(V2025_06_18),
        Tool::new("test_elicitation_sep1034_defaults", "Asks with defaults").since(V2025_06_18),
        Tool::new("test_elicitation_sep1330_enums", "Asks with choices").since(V2025_06_18),
        Tool::new(
            "json_schema_2020_12_tool",
            "Tool with JSON Schema 2020-12 features",
        )
        .with_schema(full_schema()),
        Tool::new(
            "test_custom_header",
            "Has an argument that is in a header as well",
        )
        .takes(&header, &[]),
        Tool::new("test_missing_capability", "Needs the sampling capability"),
        Tool::new("test_streaming_elicitation", "Asks the user after progress").since(V2025_06_18),
        Tool::new("test_logging_tool", "Logs at every level"),
        Tool::new("test_trigger_tool_change", "Changes the list of tools"),
        Tool::new("test_trigger_prompt_change", "Changes the list of prompts"),
    ]
}

fn with_input() -> Vec<Tool> {
    let asks = |name, description| Tool::new(name, description).since(V2025_06_18);
    vec![
        asks("test_input_required_result_elicitation", "Asks for a name"),
        Tool::new("test_input_required_result_sampling", "Asks for a capital"),
        Tool::new(
            "test_input_required_result_list_roots",
            "Asks for the roots",
        ),
        asks(
            "test_input_required_result_request_state",
            "Asks, and checks its state",
        ),
        asks(
            "test_input_required_result_multiple_inputs",
            "Asks three things at once",
        ),
        asks(
            "test_input_required_result_multi_round",
            "Asks one thing after the other",
        ),
        asks(
            "test_input_required_result_tampered_state",
            "Asks, and refuses a false state",
        ),
        Tool::new(
            "test_input_required_result_capabilities",
            "Asks what the client can answer",
        ),
        Tool::new("test_roots", "Returns the roots of the client"),
        Tool::new(
            "test_sampling_echo",
            "Returns what the model of the client says",
        ),
        asks("test_url_elicitation", "Asks the user to open a page").since(V2025_11_25),
        asks("test_url_required", "Needs a page to be visited first").since(V2025_11_25),
        asks(
            "test_url_then_form",
            "Needs a page to be visited, and then asks the user",
        )
        .since(V2025_11_25),
    ]
}

fn with_tasks() -> Vec<Tool> {
    let name = json!({ "name": { "type": "string" } });
    let slow = json!({ "seconds": { "type": "number" }, "label": { "type": "string" } });
    let filename = json!({ "filename": { "type": "string" } });
    vec![
        Tool::new("greet", "Greets at once").takes(&name, &[]),
        Tool::new("slow_compute", "Takes its time")
            .takes(&slow, &[])
            .tasks(Tasks::Extension),
        Tool::new("failing_job", "Fails after a while").tasks(Tasks::ExtensionOnly),
        Tool::new("protocol_error_job", "Ends with an error of the protocol")
            .tasks(Tasks::Extension),
        Tool::new("confirm_delete", "Asks before it goes on")
            .takes(&filename, &[])
            .since(V2025_06_18)
            .tasks(Tasks::Extension),
        Tool::new("multi_input", "Asks two things at once")
            .since(V2025_06_18)
            .tasks(Tasks::Extension),
        Tool::new("test_tool_with_task", "Asks, and then becomes a task")
            .since(V2025_06_18)
            .tasks(Tasks::ExtensionOnly),
        Tool::new("test_task_required", "Runs as a task")
            .since(V2025_11_25)
            .tasks(Tasks::CoreOnly),
    ]
}

fn our_own(revision: Revision) -> Vec<Tool> {
    let burst = json!({ "count": { "type": "integer", "minimum": 0 } });
    let large = json!({ "kilobytes": { "type": "integer", "minimum": 0 } });
    let anything = json!({ "type": "object", "additionalProperties": true });
    let any = if revision == V2026_07_28 {
        json!({ "type": "array", "items": { "type": "integer" } })
    } else {
        json!({ "type": "object", "properties": { "numbers": { "type": "array" } } })
    };
    vec![
        Tool::new("test_echo", "Returns its arguments as they came").with_schema(anything),
        Tool::new("test_resource_link", "Returns a link to a resource").since(V2025_06_18),
        Tool::new("test_structured_any", "Returns structured content").returns(any),
        Tool::new("test_progress_burst", "Reports progress many times").takes(&burst, &[]),
        Tool::new("test_log_burst", "Logs many times").takes(&burst, &[]),
        Tool::new("test_both_burst", "Reports progress and logs in turn").takes(&burst, &[]),
        Tool::new("test_wait_cancel", "Waits until it is cancelled"),
        Tool::new(
            "test_cancelled_count",
            "Returns how many waits were cancelled",
        ),
        Tool::new(
            "test_update_watched",
            "Says that the watched resource has changed",
        ),
        Tool::new(
            "test_session_info",
            "Returns what the server knows of the client",
        ),
        Tool::new(
            "test_method_counts",
            "Returns how often each method was called",
        ),
        Tool::new("test_large", "Returns a long text").takes(&large, &[]),
        Tool::new("test_crash", "Ends the server at once"),
    ]
}

fn full_schema() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": { "street": { "type": "string" }, "city": { "type": "string" } }
            }
        },
        "properties": {
            "name": { "type": "string" },
            "address": { "$ref": "#/$defs/address" },
            "contactMethod": { "type": "string", "enum": ["phone", "email"] },
            "phone": { "type": "string" },
            "email": { "type": "string" }
        },
        "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
        "if": { "properties": { "contactMethod": { "const": "phone" } }, "required": ["contactMethod"] },
        "then": { "required": ["phone"] },
        "else": { "required": ["email"] },
        "additionalProperties": false
    })
}
