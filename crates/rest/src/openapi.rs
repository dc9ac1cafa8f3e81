//! Generates `openapi.json`.

mod routes;

use std::{borrow::Cow, collections::BTreeMap};

use schemars::{
    JsonSchema, Schema, SchemaGenerator,
    generate::{Contract, SchemaSettings},
    json_schema,
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use self::routes::{Access, Content, Route};
use crate::{
    OPENAPI, Problem, events,
    words::{ApprovalStatus, Arguments, Scope},
};

/// An object with any members.
pub(crate) struct Object;

impl JsonSchema for Object {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Object".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "object" })
    }
}

/// The statuses by which requests can be filtered.
pub(crate) struct StatusFilter;

impl JsonSchema for StatusFilter {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "StatusFilter".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let statuses = [&["open", "closed"], ApprovalStatus::ALL].concat();
        json_schema!({ "type": "string", "enum": statuses })
    }
}

/// The scope of a decision to remember.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[expect(dead_code, reason = "only its schema is used")]
pub(crate) struct NewRemember {
    /// The clients that it applies to.
    scope: Scope,
    /// The arguments that it applies to; any, if omitted.
    arguments: Option<Arguments>,
    /// The time after which it expires; never, if omitted.
    #[schemars(range(min = 1))]
    expires_in_seconds: Option<u64>,
}

/// The schema of a type, as a reference if it has a name.
type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

fn schema_of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

fn generator(contract: Contract) -> SchemaGenerator {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.contract = contract;
    });
    settings.into_generator()
}

struct Document {
    /// The types that the gateway writes.
    written: SchemaGenerator,
    /// The types that the gateway reads.
    read: SchemaGenerator,
}

fn generate() -> Value {
    let mut document = Document {
        written: generator(Contract::Serialize),
        read: generator(Contract::Deserialize),
    };
    for event in [
        schema_of::<events::Event<Object>>,
        schema_of::<events::ApprovalEvent>,
        schema_of::<events::ServerEvent>,
        schema_of::<events::InstanceEvent>,
        schema_of::<events::CallsEvent>,
        schema_of::<events::ConfigEvent>,
        schema_of::<events::QuestionEvent>,
        schema_of::<events::TrustEvent>,
        schema_of::<events::LaggedEvent>,
        schema_of::<Problem>,
    ] {
        event(&mut document.written);
    }
    let mut paths = Map::new();
    for route in routes::all() {
        let item = paths.entry(route.path).or_insert_with(|| json!({}));
        if let Some(parameter) = path_parameter(route.path) {
            item["parameters"] = json!([parameter]);
        }
        item[route.verb] = document.operation(&route);
    }
    let mut schemas = document.written.take_definitions(false);
    schemas.values_mut().for_each(|schema| tidy(schema, true));
    for (name, mut schema) in document.read.take_definitions(false) {
        tidy(&mut schema, false);
        let known = schemas.insert(name.clone(), schema.clone());
        assert!(
            known.is_none_or(|known| known == schema),
            "{name} is written and read in different ways"
        );
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Switchboard",
            "version": "1",
            "summary": "A gateway through which AI agents use MCP servers.",
            "description": "Over TCP, every request except those for health and sign-in carries the token from `run/token` in the gateway's home, or the token of a console session. Over the gateway's socket, none does. Errors are RFC 9457 problems.",
            "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
        },
        "servers": [{ "url": "http://127.0.0.1:7777" }],
        "security": [{ "token": [] }],
        "paths": paths,
        "components": {
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
            "headers": {
                "RetryAfter": {
                    "description": "The number of seconds after which the same request may succeed.",
                    "schema": { "type": "integer" },
                },
            },
            "responses": routes::SHARED
                .iter()
                .map(|(name, description)| ((*name).to_owned(), problem(description)))
                .collect::<Map<_, _>>(),
            "schemas": schemas,
        },
    })
}

fn path_parameter(path: &str) -> Option<Value> {
    let (name, description) = match path.split(['{', '}']).nth(1)? {
        "name" => ("name", "The name of the server."),
        id if path.contains("/rules/") => (id, "The ID of the rule."),
        id => (id, "The ID of the request."),
    };
    Some(json!({
        "name": name,
        "in": "path",
        "required": true,
        "description": description,
        "schema": { "type": "string" },
    }))
}

fn problem(description: &str) -> Value {
    let schema = json!({ "$ref": "#/components/schemas/Problem" });
    let content = json!({ "application/problem+json": { "schema": schema } });
    json!({ "description": description, "content": content })
}

impl Document {
    fn operation(&mut self, route: &Route) -> Value {
        let mut operation = json!({ "operationId": route.id, "summary": route.summary });
        if let Some(description) = route.description {
            operation["description"] = description.into();
        }
        match route.access {
            Access::Token => {}
            Access::Open => operation["security"] = json!([]),
            Access::Either => operation["security"] = json!([{}, { "token": [] }]),
        }
        let mut parameters = route.query.map_or_else(Vec::new, |query| self.query(query));
        if route.path.ends_with("/events") {
            parameters.push(json!({
                "name": "Last-Event-ID",
                "in": "header",
                "description": "The ID of the last event that the client has seen.",
                "schema": { "type": "string" },
            }));
        }
        if !parameters.is_empty() {
            operation["parameters"] = parameters.into();
        }
        if let Some((body, required)) = route.body {
            let content = json!({ "application/json": { "schema": body(&mut self.read) } });
            operation["requestBody"] = json!({ "required": required, "content": content });
        }
        let mut responses: BTreeMap<String, Value> = BTreeMap::new();
        for (status, description, contents) in &route.answers {
            let contents = contents.iter();
            let contents = contents.map(|content| self.content(content));
            let mut answer = json!({ "description": description });
            let contents: Map<String, Value> = contents.collect();
            if !contents.is_empty() {
                answer["content"] = contents.into();
            }
            if *status == 201 {
                let schema = json!({ "type": "string" });
                let location =
                    json!({ "description": "The address of the server.", "schema": schema });
                answer["headers"] = json!({ "Location": location });
            }
            responses.insert(status.to_string(), answer);
        }
        for (status, error) in route.errors() {
            let answer = match error.strip_prefix('#') {
                Some(shared) => json!({ "$ref": format!("#/components/responses/{shared}") }),
                None => problem(error),
            };
            responses.entry(status.to_string()).or_insert(answer);
        }
        if route.retries {
            for status in ["429", "503"] {
                let header = json!({ "$ref": "#/components/headers/RetryAfter" });
                responses.entry(status.to_owned()).and_modify(|answer| {
                    answer["headers"] = json!({ "Retry-After": header });
                });
            }
        }
        operation["responses"] = json!(responses);
        operation
    }

    fn content(&mut self, content: &Content) -> (String, Value) {
        let (kind, schema) = match content {
            Content::Json(schema) => ("application/json", schema(&mut self.written).to_value()),
            Content::Events => ("text/event-stream", json!({ "type": "string" })),
            Content::Text(schema) => ("text/plain", serde_json::from_str(schema).unwrap()),
        };
        (kind.to_owned(), json!({ "schema": schema }))
    }

    /// The parameters of a query: the properties of its type.
    fn query(&mut self, query: SchemaOf) -> Vec<Value> {
        let name = query(&mut self.read).to_value();
        let name = name["$ref"].as_str().unwrap().rsplit('/').next().unwrap();
        let mut schema = self.read.definitions_mut().remove(name).unwrap();
        tidy(&mut schema, false);
        let required = schema["required"].as_array().cloned().unwrap_or_default();
        let properties = schema["properties"].as_object().cloned().unwrap();
        let parameters = properties.into_iter().map(|(name, mut schema)| {
            let description = schema.as_object_mut().unwrap().remove("description");
            let mut parameter = json!({
                "name": name,
                "in": "query",
                "description": description,
                "schema": schema,
            });
            if required.contains(&Value::from(&*name)) {
                parameter["required"] = true.into();
            }
            if schema["type"] == "array" {
                parameter["style"] = "form".into();
                parameter["explode"] = false.into();
            }
            parameter
        });
        parameters.collect()
    }
}

/// Removes artefacts of the generator: formats of numbers, `null` for members that are omitted instead, and
/// in answers the defaults that clients use for missing members.
fn tidy(schema: &mut Value, is_written: bool) {
    match schema {
        Value::Array(all) => all.iter_mut().for_each(|one| tidy(one, is_written)),
        Value::Object(members) => {
            let required = members.get("required").cloned().unwrap_or_default();
            if let Some(Value::Object(properties)) = members.get_mut("properties") {
                for (name, property) in properties.iter_mut() {
                    let names = required.as_array().into_iter().flatten();
                    let is_required = names.into_iter().any(|known| known == name.as_str());
                    if !is_required {
                        without_null(property);
                    }
                    if let Some(property) = property.as_object_mut()
                        && (is_written || property.get("default") == Some(&Value::Null))
                    {
                        property.remove("default");
                    }
                    tidy(property, is_written);
                }
            }
            if members
                .get("format")
                .is_some_and(|format| format != "date-time")
            {
                members.remove("format");
            }
            if let Some(Value::String(text)) = members.get_mut("description") {
                *text = text.replace('\n', " ");
            }
            for (name, member) in members.iter_mut() {
                if name != "properties" {
                    tidy(member, is_written);
                }
            }
        }
        _ => {}
    }
}

fn without_null(schema: &mut Value) {
    let Some(members) = schema.as_object_mut() else {
        return;
    };
    if let Some(Value::Array(kinds)) = members.get_mut("type") {
        kinds.retain(|kind| kind != "null");
        if let [kind] = kinds.as_slice() {
            let kind = kind.clone();
            members.insert("type".to_owned(), kind);
        }
    }
    if let Some(Value::Array(kinds)) = members.get_mut("enum") {
        kinds.retain(|kind| !kind.is_null());
    }
    if let Some(Value::Array(mut kinds)) = members.remove("anyOf") {
        kinds.retain(|kind| kind["type"] != "null");
        match kinds.as_slice() {
            [Value::Object(one)] => members.extend(one.clone()),
            _ => drop(members.insert("anyOf".to_owned(), kinds.into())),
        }
    }
}

#[test]
fn description_is_up_to_date() {
    let generated = generate();
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/openapi.json");
        std::fs::write(path, format!("{generated:#}\n")).unwrap();
        return;
    }
    let kept: Value = serde_json::from_str(OPENAPI).unwrap();
    let is_same = kept == generated;
    assert!(
        is_same,
        "UPDATE_SNAPSHOTS=1 cargo nextest run -p switchboard-rest regenerates it"
    );
}
