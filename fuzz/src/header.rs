//! Header values, and the headers that a tool's schema requires.

use std::collections::BTreeSet;

use serde_json::Value;
use switchboard_wire::header::{ParamHeaders, ParamValueError, decode_value, encode_value};

use crate::json::{self, Kind, Node};

const PREFIX: &str = "Mcp-Param-";
const KEYWORD: &str = "x-mcp-header";
/// 2^53 - 1.
const MAX_INTEGER: f64 = 9_007_199_254_740_991.0;

/// Any text survives a round trip through a header. Any header value is either decoded or rejected. A schema
/// has a header for every parameter that a chain of `properties` leads to, and no others.
pub fn header(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    check_value(&text);
    if let Ok(decoded) = decode_value(&text) {
        check_value(&decoded);
    }
    // The schema, a line feed, the arguments of a call.
    let (schema, arguments) = match text.split_once('\n') {
        Some((schema, arguments)) => (schema, Some(arguments)),
        None => (&*text, None),
    };
    check_schema(schema, arguments);
}

fn check_value(value: &str) {
    let encoded = encode_value(value);
    assert!(encoded.bytes().all(|byte| matches!(byte, b' '..=b'~')));
    assert_eq!(encoded.trim(), encoded);
    assert_eq!(decode_value(&encoded).as_deref(), Ok(value));
    assert_eq!(
        decode_value(&format!(" \t{encoded}\t ")).as_deref(),
        Ok(value)
    );
}

fn check_schema(schema: &str, arguments: Option<&str>) {
    let Ok(headers) = ParamHeaders::from_schema(schema) else {
        return;
    };
    let mut expected = Vec::new();
    if let Ok(schema) = serde_json::from_str(schema) {
        collect(&schema, &mut Vec::new(), &mut expected);
    }
    assert_eq!(headers.is_empty(), expected.is_empty());
    let names: BTreeSet<String> = expected.iter().map(|p| p.name.to_lowercase()).collect();
    assert_eq!(names.len(), expected.len(), "two parameters share a header");

    let rendered = headers.render(arguments);
    assert_eq!(headers.render(None), Ok(Vec::new()));
    let Ok(arguments) = json::parse(arguments.unwrap_or("null")) else {
        return;
    };
    let fits = |parameter: &Parameter| parameter.fits(&arguments);
    if expected.is_empty() || arguments.is_null() {
        assert_eq!(rendered, Ok(Vec::new()));
    } else if !matches!(arguments.kind, Kind::Object(_)) {
        assert_eq!(rendered, Err(ParamValueError::NotAnObject));
    } else if let Ok(mut rendered) = rendered {
        assert!(expected.iter().all(fits));
        let mut expected: Vec<_> = expected
            .iter()
            .filter_map(|parameter| parameter.render(&arguments))
            .collect();
        expected.sort();
        rendered.sort();
        assert_eq!(rendered, expected);
    } else {
        assert!(!expected.iter().all(fits), "{rendered:?}");
    }
}

/// A parameter that is sent as a header.
struct Parameter {
    path: Vec<String>,
    name: String,
    kind: String,
}

fn collect(schema: &Value, path: &mut Vec<String>, found: &mut Vec<Parameter>) {
    let Some(Value::Object(properties)) = schema.get("properties") else {
        return;
    };
    for (name, property) in properties {
        path.push(name.clone());
        if let (Some(Value::String(header)), Some(Value::String(kind))) =
            (property.get(KEYWORD), property.get("type"))
        {
            found.push(Parameter {
                path: path.clone(),
                name: format!("{PREFIX}{header}"),
                kind: kind.clone(),
            });
        }
        collect(property, path, found);
        path.pop();
    }
}

impl Parameter {
    /// The argument, the last one if the name is repeated; `None` if it is absent or null.
    fn argument<'n, 'a>(&self, arguments: &'n Node<'a>) -> Option<&'n Node<'a>> {
        let argument = self
            .path
            .iter()
            .try_fold(arguments, |node, name| node.all(name).pop());
        argument.filter(|argument| !argument.is_null())
    }

    /// Tests if every object on the path has member names that are valid Unicode.
    fn is_readable(&self, arguments: &Node<'_>) -> bool {
        let mut object = arguments;
        for name in &self.path {
            if object.has_unreadable_name() {
                return false;
            }
            match object.all(name).pop() {
                Some(node) => object = node,
                None => break,
            }
        }
        true
    }

    fn render(&self, arguments: &Node<'_>) -> Option<(String, String)> {
        let argument = self.argument(arguments)?;
        let value = match &argument.kind {
            Kind::String {
                text: Some(text), ..
            } => encode_value(text).into_owned(),
            Kind::Number => integer(argument.text)?,
            _ => argument.text.to_owned(),
        };
        Some((self.name.clone(), value))
    }

    fn fits(&self, arguments: &Node<'_>) -> bool {
        if !self.is_readable(arguments) {
            return false;
        }
        let Some(argument) = self.argument(arguments) else {
            return true;
        };
        match self.kind.as_str() {
            "string" => argument.as_text().is_some(),
            "integer" => matches!(argument.kind, Kind::Number) && integer(argument.text).is_some(),
            _ => matches!(argument.kind, Kind::Bool(_)),
        }
    }
}

/// A number in decimal notation, if it is an integer within the limit.
fn integer(text: &str) -> Option<String> {
    let number: f64 = text.parse().ok()?;
    let fits = number.fract() == 0.0 && (-MAX_INTEGER..=MAX_INTEGER).contains(&number);
    #[allow(clippy::cast_possible_truncation)] // An integer within the limit.
    fits.then(|| (number as i64).to_string())
}
