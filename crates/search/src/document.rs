//! What is said of a tool, field by field.

use serde::Deserialize;
use serde_json::Value;
use switchboard_wire::Raw;

use crate::words;

/// Where a word stands in a tool's definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Field {
    /// The tool's name.
    Name,
    /// The server's name.
    Server,
    /// The tool's title.
    Title,
    /// The description.
    Description,
    /// The name of a parameter.
    Parameter,
    /// What is said of a parameter: its description and the values it can have.
    ParameterText,
}

impl Field {
    pub(crate) const ALL: [Self; 6] = [
        Self::Name,
        Self::Server,
        Self::Title,
        Self::Description,
        Self::Parameter,
        Self::ParameterText,
    ];

    /// What it is called in an explanation.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Server => "server",
            Self::Title => "title",
            Self::Description => "description",
            Self::Parameter => "parameter",
            Self::ParameterText => "parameter text",
        }
    }
}

/// How deep into a schema parameters are looked for, and how many.
const DEPTH: usize = 4;
const PARAMETERS: usize = 256;
/// Of one text so much is read.
const TEXT_BYTES: usize = 16 * 1024;
/// What a tool is for is said at the beginning; what comes later is detail that blurs it.
const SENTENCE_BYTES: usize = 1_024;

/// The text of a tool, by field.
#[derive(Debug, Default)]
pub(crate) struct Document {
    pub(crate) texts: Vec<(Field, String)>,
    pub(crate) read_only: bool,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Definition {
    title: Value,
    description: Value,
    input_schema: Value,
    annotations: Value,
}

impl Document {
    /// Reads a definition. What is not there, or is not what it should be, is left out.
    pub(crate) fn read(server: &str, name: &str, definition: &Raw) -> Self {
        let Definition {
            title,
            description,
            input_schema,
            annotations,
        } = definition.read_owned().unwrap_or_default();
        let mut texts = vec![
            (Field::Name, name.to_owned()),
            (Field::Server, server.to_owned()),
        ];
        let mut put = |field: Field, text: &Value| {
            if let Some(text) = text.as_str() {
                let text = &text[..text.floor_char_boundary(TEXT_BYTES)];
                texts.push((field, text.to_owned()));
            }
        };
        put(Field::Title, &title);
        if title.is_null() {
            put(Field::Title, &annotations["title"]);
        }
        put(Field::Description, &description);
        let mut left = PARAMETERS;
        parameters(&input_schema, DEPTH, &mut left, &mut put);
        Self {
            texts,
            read_only: annotations["readOnlyHint"] == Value::Bool(true),
        }
    }
}

/// What is embedded of a tool: its name as words, and what is said of it.
pub(crate) fn sentences(name: &str, definition: &Raw) -> (String, String) {
    let Definition {
        title, description, ..
    } = definition.read_owned().unwrap_or_default();
    let words: Vec<String> = words::spelled(name).collect();
    let said = [title, description];
    let said: Vec<&str> = said.iter().filter_map(Value::as_str).collect();
    let mut said = said.join(". ");
    said.truncate(said.floor_char_boundary(SENTENCE_BYTES));
    (words.join(" "), said)
}

fn parameters(schema: &Value, depth: usize, left: &mut usize, put: &mut impl FnMut(Field, &Value)) {
    if depth == 0 {
        return;
    }
    if let Some(properties) = schema["properties"].as_object() {
        for (name, property) in properties {
            if *left == 0 {
                return;
            }
            *left -= 1;
            put(Field::Parameter, &Value::from(name.as_str()));
            put(Field::ParameterText, &property["description"]);
            if let Some(values) = property["enum"].as_array() {
                values
                    .iter()
                    .take(PARAMETERS)
                    .for_each(|value| put(Field::ParameterText, value));
            }
            parameters(property, depth - 1, left, put);
        }
    }
    parameters_of_items(schema, depth, left, put);
}

fn parameters_of_items(
    schema: &Value,
    depth: usize,
    left: &mut usize,
    put: &mut impl FnMut(Field, &Value),
) {
    if schema["items"].is_object() {
        parameters(&schema["items"], depth - 1, left, put);
    }
    for several in ["anyOf", "oneOf", "allOf"] {
        for one in schema[several].as_array().into_iter().flatten() {
            parameters(one, depth - 1, left, put);
        }
    }
}
