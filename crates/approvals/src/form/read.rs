//! Parsing of questions.

use switchboard_wire::Raw;

use super::field::{Choice, Field, Format, Kind};
use super::{Address, FIELDS, Form, Mode, OPTIONS, SHOWN_BYTES};

pub(super) fn form(params: &Raw) -> Form {
    let text = |name: &str| params.member(name).and_then(|value| value.to_text());
    let schema = params.member("requestedSchema");
    let mode = match text("mode").as_deref() {
        Some("url") => match Address::read(&text("url").unwrap_or_default()) {
            Ok(address) => Mode::Url(address),
            Err(why) => Mode::Refused { why },
        },
        Some("form") | None => match &schema {
            Some(schema) => match fields(schema) {
                Ok(fields) => Mode::Form { fields },
                Err(why) => Mode::Raw { why },
            },
            None => Mode::Raw {
                why: "the server sent no schema".to_owned(),
            },
        },
        Some(other) => Mode::Refused {
            why: format!("the server asks in an unknown mode: {:?}", shown(other)),
        },
    };
    Form {
        message: shown(&text("message").unwrap_or_default()),
        schema: schema.filter(|_| !matches!(mode, Mode::Url(_))),
        mode,
    }
}

/// Cuts a text to the length that is shown.
fn shown(text: &str) -> String {
    text[..text.floor_char_boundary(SHOWN_BYTES)].to_owned()
}

fn fields(schema: &Raw) -> Result<Vec<Field>, String> {
    if schema
        .member("type")
        .and_then(|kind| kind.to_text())
        .as_deref()
        != Some("object")
    {
        return Err("its schema is not of type `object`".to_owned());
    }
    let properties = match schema.member("properties") {
        Some(properties) => properties
            .members()
            .ok_or("its `properties` are not an object")?,
        None => Vec::new(),
    };
    if properties.len() > FIELDS {
        return Err(format!(
            "it has {} fields, but at most {FIELDS} are supported",
            properties.len()
        ));
    }
    let required: Vec<String> = match schema.member("required") {
        Some(required) => required
            .read_owned()
            .map_err(|_| "its `required` is not a list of names")?,
        None => Vec::new(),
    };
    if let Some(missing) = required
        .iter()
        .find(|name| properties.iter().all(|(known, _)| known != *name))
    {
        return Err(format!(
            "it requires the field `{}` but does not define it",
            shown(missing)
        ));
    }
    let mut fields: Vec<Field> = Vec::with_capacity(properties.len());
    for (name, property) in properties {
        if name.len() > SHOWN_BYTES {
            return Err("a field name is too long".to_owned());
        }
        if fields.iter().any(|field| field.name == name) {
            return Err(format!("the field `{name}` is defined twice"));
        }
        let kind = kind(&property).map_err(|why| format!("the field `{name}` {why}"))?;
        let text = |key: &str| property.member(key)?.to_text().map(|text| shown(&text));
        let mut field = Field {
            title: text("title"),
            description: text("description"),
            required: required.contains(&name),
            default: None,
            kind,
            name,
        };
        // A default that does not fit is ignored: the user would get an error for a value that they did not
        // write.
        field.default = property
            .member("default")
            .filter(|value| field.problem(value).is_none());
        fields.push(field);
    }
    Ok(fields)
}

fn kind(property: &Raw) -> Result<Kind, String> {
    let text = |key: &str| property.member(key).and_then(|value| value.to_text());
    let count = |key: &str| {
        property
            .member(key)
            .and_then(|value| value.read::<u64>().ok())
    };
    let number = |key: &str| {
        property
            .member(key)
            .and_then(|value| value.read::<f64>().ok())
    };
    let Some(name) = text("type") else {
        return Err("has no type".to_owned());
    };
    Ok(match name.as_str() {
        "boolean" => Kind::Flag,
        "number" | "integer" => Kind::Number {
            integer: name == "integer",
            min: number("minimum"),
            max: number("maximum"),
        },
        "string" => match options(property, "oneOf")? {
            Some(options) => Kind::Choice { options },
            None => Kind::Text {
                format: text("format").map(|format| match format.as_str() {
                    "email" => Format::Email,
                    "uri" => Format::Uri,
                    "date" => Format::Date,
                    "date-time" => Format::DateTime,
                    other => Format::Other(shown(other)),
                }),
                min: count("minLength"),
                max: count("maxLength"),
                pattern: text("pattern"),
            },
        },
        "array" => {
            let items = property
                .member("items")
                .ok_or("is a list without `items`")?;
            let options = match options(&items, "anyOf")? {
                Some(options) => Some(options),
                None => options_of(&items, "oneOf")?,
            };
            Kind::Choices {
                options: options.ok_or("is a list without options")?,
                min: count("minItems"),
                max: count("maxItems"),
            }
        }
        other => {
            return Err(format!(
                "has the type `{}`, which forms do not support",
                shown(other)
            ));
        }
    })
}

/// The options of a choice: a plain list, perhaps with a list of titles, or a list of objects.
fn options(schema: &Raw, titled: &str) -> Result<Option<Vec<Choice>>, String> {
    let Some(values) = schema.member("enum") else {
        return options_of(schema, titled);
    };
    let values: Vec<String> = values
        .read_owned()
        .map_err(|_| "has options that are not strings")?;
    let titles = schema
        .member("enumNames")
        .and_then(|names| names.read_owned::<Vec<String>>().ok());
    let titles = titles.filter(|titles| titles.len() == values.len());
    let choices = values.into_iter().enumerate().map(|(n, value)| {
        let title = titles.as_ref().and_then(|titles| titles.get(n));
        (title.unwrap_or(&value).clone(), value)
    });
    bounded(
        choices
            .map(|(title, value)| Choice { value, title })
            .collect(),
    )
}

fn options_of(schema: &Raw, titled: &str) -> Result<Option<Vec<Choice>>, String> {
    let Some(options) = schema.member(titled).and_then(|options| options.elements()) else {
        return Ok(None);
    };
    let choice = |option: &Raw| {
        let value = option.member("const")?.to_text()?;
        let title = option.member("title").and_then(|title| title.to_text());
        Some(Choice {
            title: title.unwrap_or_else(|| value.clone()),
            value,
        })
    };
    let choices: Option<Vec<Choice>> = options.iter().map(choice).collect();
    bounded(choices.ok_or("has options without a value")?)
}

fn bounded(choices: Vec<Choice>) -> Result<Option<Vec<Choice>>, String> {
    let long =
        |choice: &Choice| choice.value.len() > SHOWN_BYTES || choice.title.len() > SHOWN_BYTES;
    if choices.is_empty() || choices.len() > OPTIONS || choices.iter().any(long) {
        return Err("has no options, too many options, or options that are too long".to_owned());
    }
    Ok(Some(choices))
}
