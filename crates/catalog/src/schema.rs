//! Schemas that every client can compile.
//!
//! The official TypeScript SDK compiles the output schema of each tool when it lists the tools, and
//! loses the whole list to one schema that its compiler rejects. So a merged view shows such a
//! schema only if it is certain to compile: it contains JSON Schema keywords with values that fit
//! them, and refers only to its own definitions.

use serde_json::{Map, Value};
use switchboard_wire::Raw;

const TYPES: [&str; 7] = [
    "object", "array", "string", "number", "integer", "boolean", "null",
];

const DIALECTS: [&str; 3] = [
    "http://json-schema.org/draft-07/schema",
    "https://json-schema.org/draft/2019-09/schema",
    "https://json-schema.org/draft/2020-12/schema",
];

const FORMATS: [&str; 20] = [
    "binary",
    "byte",
    "date",
    "date-time",
    "double",
    "duration",
    "email",
    "float",
    "hostname",
    "int32",
    "int64",
    "ipv4",
    "ipv6",
    "json-pointer",
    "password",
    "regex",
    "time",
    "uri",
    "uri-reference",
    "uuid",
];

/// Tests if every client can compile this schema.
pub(crate) fn is_sure(schema: &Raw) -> bool {
    match schema.read::<Value>() {
        Ok(Value::Object(root)) => is_sure_object(&root, &root),
        // Too deep, or not a schema.
        _ => false,
    }
}

fn is_sure_schema(schema: &Value, root: &Map<String, Value>) -> bool {
    match schema {
        Value::Bool(_) => true,
        Value::Object(members) => is_sure_object(members, root),
        _ => false,
    }
}

fn is_sure_object(members: &Map<String, Value>, root: &Map<String, Value>) -> bool {
    let schemas = |value: &Value| {
        let schemas = value.as_array();
        schemas.is_some_and(|all| !all.is_empty() && all.iter().all(|it| is_sure_schema(it, root)))
    };
    let named = |value: &Value, is_name: fn(&str) -> bool| {
        let named = value.as_object();
        named.is_some_and(|all| {
            all.iter()
                .all(|(name, it)| is_name(name) && is_sure_schema(it, root))
        })
    };
    members.iter().all(|(keyword, value)| match &**keyword {
        "title" | "description" | "$comment" | "default" | "examples" | "const" => true,
        "deprecated" | "readOnly" | "writeOnly" | "uniqueItems" => value.is_boolean(),
        "type" => is_type(value),
        "enum" => value.as_array().is_some_and(|all| !all.is_empty()),
        "required" => {
            let names = value.as_array();
            names.is_some_and(|names| names.iter().all(Value::is_string))
        }
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => value.is_number(),
        "multipleOf" => value.as_f64().is_some_and(|value| value > 0.0),
        "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties" => {
            value.is_u64()
        }
        "pattern" => value.as_str().is_some_and(is_plain_pattern),
        "format" => value.as_str().is_some_and(|it| FORMATS.contains(&it)),
        "properties" => named(value, is_plain_key),
        "patternProperties" => named(value, is_plain_pattern),
        "$defs" | "definitions" => named(value, is_plain_name),
        "items"
        | "additionalProperties"
        | "propertyNames"
        | "contains"
        | "not"
        | "if"
        | "then"
        | "else" => is_sure_schema(value, root),
        "allOf" | "anyOf" | "oneOf" => schemas(value),
        "$ref" => value.as_str().is_some_and(|it| is_own(it, root)),
        "$schema" => {
            let dialect = value.as_str().map(|it| it.trim_end_matches('#'));
            dialect.is_some_and(|it| DIALECTS.contains(&it))
        }
        other => other.starts_with("x-"),
    })
}

fn is_type(value: &Value) -> bool {
    let is_one = |value: &Value| value.as_str().is_some_and(|it| TYPES.contains(&it));
    match value {
        Value::Array(all) => {
            // A longer list contains a duplicate.
            let is_short = (1..=TYPES.len()).contains(&all.len());
            let mut before = all.iter().enumerate();
            is_short && before.all(|(at, it)| is_one(it) && !all[..at].contains(it))
        }
        one => is_one(one),
    }
}

/// Tests if this refers to a definition in the same schema.
fn is_own(reference: &str, root: &Map<String, Value>) -> bool {
    let Some(path) = reference.strip_prefix("#/") else {
        return reference == "#";
    };
    let Some((place @ ("$defs" | "definitions"), name)) = path.split_once('/') else {
        return false;
    };
    let definitions = root.get(place).and_then(Value::as_object);
    is_plain_name(name) && definitions.is_some_and(|all| all.contains_key(name))
}

fn is_plain_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    !name.is_empty() && name.bytes().all(is_plain) && is_plain_key(name)
}

/// Tests if a compiler in JavaScript can use this as the name of a member. Objects have these three
/// by default.
fn is_plain_key(name: &str) -> bool {
    !matches!(name, "__proto__" | "constructor" | "prototype")
}

/// Tests if this is a regular expression in every dialect: plain characters, classes of letters and
/// digits, groups, alternatives, and repetition.
fn is_plain_pattern(pattern: &str) -> bool {
    let mut rest = pattern;
    let mut groups = 0_usize;
    // `true` if the preceding element can be repeated.
    let mut repeats = false;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        repeats = match c {
            '\\' => {
                let Some(after) = rest.strip_prefix(['d', 'D', 'w', 'W', 's', 'S', '.', '/'])
                else {
                    return false;
                };
                rest = after;
                true
            }
            '[' => {
                let Some((class, after)) = rest.split_once(']') else {
                    return false;
                };
                rest = after;
                if !is_plain_class(class.strip_prefix('^').unwrap_or(class)) {
                    return false;
                }
                true
            }
            '(' => {
                rest = rest.strip_prefix("?:").unwrap_or(rest);
                groups += 1;
                false
            }
            ')' if groups > 0 => {
                groups -= 1;
                true
            }
            '*' | '+' | '?' if repeats => false,
            '{' if repeats => {
                let Some((count, after)) = rest.split_once('}') else {
                    return false;
                };
                rest = after;
                if !is_count(count) {
                    return false;
                }
                false
            }
            '|' | '^' | '$' => false,
            '.' | '_' | '-' | ':' | '/' | '@' | ',' | ';' | '=' | ' ' | '#' | '%' | '&' | '!'
            | '~' => true,
            c if c.is_ascii_alphanumeric() => true,
            _ => return false,
        };
    }
    groups == 0
}

/// Tests if this consists of letters, digits and ranges of them, `_`, `.` and spaces.
fn is_plain_class(class: &str) -> bool {
    let mut rest = class.as_bytes();
    let is_plain = |c: u8| c.is_ascii_alphanumeric() || b"_. ".contains(&c);
    while let [first, after @ ..] = rest {
        rest = match after {
            [b'-', last, after @ ..] => {
                let ranges = [b'a'..=b'z', b'A'..=b'Z', b'0'..=b'9'];
                let mut ranges = ranges.iter();
                if first > last || !ranges.any(|it| it.contains(first) && it.contains(last)) {
                    return false;
                }
                after
            }
            after if is_plain(*first) => after,
            _ => return false,
        };
    }
    !class.is_empty()
}

/// Tests if this is a repetition count, or a minimum and a maximum.
fn is_count(count: &str) -> bool {
    let number = |text: &str| text.parse::<u16>().ok().filter(|_| !text.starts_with('+'));
    match count.split_once(',') {
        None => number(count).is_some(),
        Some((least, "")) => number(least).is_some(),
        Some((least, most)) => {
            let (least, most) = (number(least), number(most));
            least.is_some() && least <= most
        }
    }
}
