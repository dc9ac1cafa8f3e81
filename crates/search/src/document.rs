//! The searchable text of a tool, by field.

use serde::Deserialize;
use serde_json::Value;
use switchboard_wire::Raw;

use crate::words;

/// The field of a tool's definition that contains a word.
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
    /// The description of a parameter and its possible values.
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

    /// The name of the field in an explanation.
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

/// The depth to which schemas are searched for parameters, and the most parameters.
const DEPTH: usize = 4;
const PARAMETERS: usize = 256;
/// The most bytes of one text that are read.
const TEXT_BYTES: usize = 16 * 1024;
/// The most bytes of a text that are embedded. The purpose of a tool is at the beginning; later
/// details only blur the vector.
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
    /// Reads a definition. Members that are missing or of the wrong type are left out.
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

/// The two texts of a tool that are embedded: its name in words, and its title and description.
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
