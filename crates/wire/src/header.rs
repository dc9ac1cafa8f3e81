//! The HTTP headers of revision 2026-07-28: their names, their value encoding, and the
//! `Mcp-Param-*` headers that a tool's `inputSchema` asks for.
//!
//! A header repeats a part of the body, so that a load balancer can route without parsing JSON.
//! This module converts names and arguments to header text and back. It sends nothing, and no
//! decision is based on a header: policy reads the body.

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap},
    fmt,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Map, Value, value::RawValue};

/// The protocol revision of the request; on every request after the handshake since 2025-06-18.
pub const PROTOCOL_VERSION: &str = "mcp-protocol-version";
/// The JSON-RPC method, on every request of 2026-07-28.
pub const METHOD: &str = "mcp-method";
/// The tool, prompt or resource that a request is about. The value is [encoded](encode_value).
pub const NAME: &str = "mcp-name";
/// The session, in the revisions before 2026-07-28.
pub const SESSION_ID: &str = "mcp-session-id";
/// The prefix of the headers that carry tool arguments. Their values are [encoded](encode_value).
pub const PARAM_PREFIX: &str = "mcp-param-";
/// The event after which to resume a broken stream, in the revisions before 2026-07-28.
pub const LAST_EVENT_ID: &str = "last-event-id";

const SENTINEL_START: &str = "=?base64?";
const SENTINEL_END: &str = "?=";

/// The schema keyword that names the header of a parameter.
const KEYWORD: &str = "x-mcp-header";
/// The largest schema that is searched for annotations, because a parsed schema takes many times
/// the memory of its text.
const MAX_SCHEMA_BYTES: usize = 1024 * 1024;
/// The deepest nesting of a schema, counted in JSON values.
const MAX_SCHEMA_DEPTH: usize = 64;
/// The most headers of one tool. Servers commonly accept no more than 100 headers in total.
const MAX_HEADERS: usize = 64;
/// The longest annotated name, far below the length that servers allow for a header line.
const MAX_NAME_BYTES: usize = 128;
/// The largest integer that every JSON parser represents exactly, 2^53 - 1.
const MAX_INTEGER: f64 = 9_007_199_254_740_991.0;

/// Encodes any text as a header value.
///
/// Printable ASCII is kept. All other text is wrapped as `=?base64?…?=`: text that HTTP would
/// reject, text that it would trim, and text that looks wrapped already. A tab is wrapped too,
/// although a header may contain one between other characters: peers disagree on that, and all of
/// them unwrap.
///
/// ```
/// use switchboard_wire::header::encode_value;
///
/// assert_eq!(encode_value("us west 1"), "us west 1");
/// assert_eq!(encode_value("Hello, 世界"), "=?base64?SGVsbG8sIOS4lueVjA==?=");
/// ```
pub fn encode_value(value: &str) -> Cow<'_, str> {
    let wraps = |byte: u8| !matches!(byte, b' '..=b'~');
    let trimmed = value.starts_with(' ') || value.ends_with(' ');
    let ambiguous = value.starts_with(SENTINEL_START) && value.ends_with(SENTINEL_END);
    if !trimmed && !ambiguous && !value.bytes().any(wraps) {
        return Cow::Borrowed(value);
    }
    let encoded = STANDARD.encode(value);
    Cow::Owned(format!("{SENTINEL_START}{encoded}{SENTINEL_END}"))
}

/// The reason why a header value cannot be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HeaderValueError {
    /// A control or non-ASCII character outside the wrapping.
    #[error("header value contains a character that must be sent as base64")]
    Character,
    /// Wrong alphabet, padding or length inside the wrapping.
    #[error("header value is marked as base64 but is not")]
    Base64,
    /// The wrapping holds bytes that are not UTF-8.
    #[error("header value is base64, but not of UTF-8 text")]
    Utf8,
}

/// Decodes a header value, as a server must before it compares the value with the body.
///
/// White space around the value is not part of it (RFC 9110 section 5.5). The markers count only in
/// lower case and only as a pair; any other value is literal.
///
/// ```
/// use switchboard_wire::header::decode_value;
///
/// assert_eq!(decode_value("=?base64?IHBhZGRlZCA=?=")?, " padded ");
/// assert_eq!(decode_value("=?base64?SGVsbG8=")?, "=?base64?SGVsbG8=");
/// assert!(decode_value("=?base64?SGVsbG8?=").is_err(), "padding is not optional");
/// # Ok::<(), switchboard_wire::header::HeaderValueError>(())
/// ```
pub fn decode_value(value: &str) -> Result<Cow<'_, str>, HeaderValueError> {
    let value = value.trim_matches([' ', '\t']);
    let wrapped = value
        .strip_prefix(SENTINEL_START)
        .and_then(|rest| rest.strip_suffix(SENTINEL_END));
    let Some(encoded) = wrapped else {
        return if value
            .bytes()
            .all(|byte| matches!(byte, b'\t' | b' '..=b'~'))
        {
            Ok(Cow::Borrowed(value))
        } else {
            Err(HeaderValueError::Character)
        };
    };
    let bytes = STANDARD
        .decode(encoded)
        .map_err(|_| HeaderValueError::Base64)?;
    let text = String::from_utf8(bytes).map_err(|_| HeaderValueError::Utf8)?;
    Ok(Cow::Owned(text))
}

/// The types of parameters that may be sent as headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParamKind {
    /// Sent as it is.
    String,
    /// Sent in decimal. Beyond 2^53 - 1 parsers round differently, and the header and the body
    /// would differ.
    Integer,
    /// Sent as `true` or `false`.
    Boolean,
}

impl fmt::Display for ParamKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::String => "a string",
            Self::Integer => "an integer within 2^53 - 1",
            Self::Boolean => "a boolean",
        })
    }
}

/// The reason why a tool's `inputSchema` breaks the rules for `x-mcp-header`.
///
/// A client that speaks HTTP must then leave the tool out of its list; the message is the reason to
/// log.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ParamHeaderError {
    /// The schema is not JSON, or is nested deeper than the JSON parser allows.
    #[error("input schema is not valid JSON")]
    NotJson(#[source] serde_json::Error),
    /// The schema is too large to search.
    #[error("input schema over the limit of {MAX_SCHEMA_BYTES} bytes")]
    TooLarge,
    /// The schema is nested too deeply to search.
    #[error("input schema nests deeper than {MAX_SCHEMA_DEPTH} levels at {pointer:?}")]
    TooDeep {
        /// The place, as a JSON pointer.
        pointer: String,
    },
    /// The tool defines more headers than a request can carry.
    #[error("more than {MAX_HEADERS} parameters have x-mcp-header")]
    TooMany,
    /// One annotation is invalid.
    #[error("x-mcp-header at {pointer:?} is {fault}")]
    Annotation {
        /// The annotation, as a JSON pointer.
        pointer: String,
        /// The fault of the annotation.
        fault: AnnotationFault,
    },
}

/// The fault of one `x-mcp-header` annotation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AnnotationFault {
    /// The value cannot be part of a header name.
    #[error("not a string of 1 to {MAX_NAME_BYTES} characters that a header name may contain")]
    Name,
    /// Header names ignore letter case, so two of them would be the same header.
    #[error("the same header as {other:?}")]
    Duplicate {
        /// The earlier annotation, as a JSON pointer.
        other: String,
    },
    /// The parameter's own `type` is not one of [`ParamKind`], or is a list of types.
    #[error("on a parameter whose type is not string, integer or boolean")]
    Type,
    /// The annotation is on the arguments object as a whole, which is not a parameter.
    #[error("on the root of the schema, not on a property")]
    Root,
    /// The presence and place of the value depend on more than a chain of property names.
    #[error("under {0:?}, not reached through \"properties\" alone")]
    Unreachable(String),
}

/// The reason why the arguments of a call cannot be rendered as headers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParamValueError {
    /// The arguments are neither absent nor an object.
    #[error("arguments are not a JSON object")]
    NotAnObject,
    /// The argument does not have the type that the schema declares.
    #[error("argument {parameter:?} is not {expected}")]
    Unfit {
        /// The parameter, nested names joined with dots.
        parameter: String,
        /// The type that it must have.
        expected: ParamKind,
    },
}

/// The arguments of a tool that are sent as `Mcp-Param-*` headers.
///
/// Parsed once from the tool's definition, then used for every call.
///
/// ```
/// use switchboard_wire::header::ParamHeaders;
///
/// let headers = ParamHeaders::from_schema(
///     r#"{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}"#,
/// )?;
/// let rendered = headers.render(Some(r#"{"region":"us-west1","query":"SELECT 1"}"#))?;
/// assert_eq!(rendered, [("Mcp-Param-Region".to_owned(), "us-west1".to_owned())]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ParamHeaders {
    properties: Vec<Property>,
}

/// A property that has a header, or contains one that does.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Property {
    name: String,
    header: Option<Header>,
    properties: Vec<Property>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Header {
    name: String,
    kind: ParamKind,
}

impl ParamHeaders {
    /// Reads the annotations of an `inputSchema`, given as JSON text.
    ///
    /// Most tools have none, and their schemas are not parsed: the limits on size and depth only
    /// affect a tool that uses the feature, or one whose text might spell the keyword with escapes.
    pub fn from_schema(schema: &str) -> Result<Self, ParamHeaderError> {
        let holds = |needle: &str| memchr::memmem::find(schema.as_bytes(), needle.as_bytes());
        if holds(KEYWORD).is_none() && holds("\\u").is_none() {
            return Ok(Self::default());
        }
        if schema.len() > MAX_SCHEMA_BYTES {
            return Err(ParamHeaderError::TooLarge);
        }
        let schema: Value = serde_json::from_str(schema).map_err(ParamHeaderError::NotJson)?;
        let (_, properties) = Walk::default().schema(&schema, Place::Root, 0)?;
        Ok(Self { properties })
    }

    /// Returns `true` if no argument is sent as a header, so that calls need not be rendered.
    pub fn is_empty(&self) -> bool {
        self.properties.is_empty()
    }

    /// Renders the headers of one call from its arguments, given as JSON text. Returns names and
    /// encoded values.
    ///
    /// An argument that is absent or null has no header. Of two arguments with the same name the
    /// last one counts, as it does for the server's JSON parser.
    pub fn render(
        &self,
        arguments: Option<&str>,
    ) -> Result<Vec<(String, String)>, ParamValueError> {
        let mut out = Vec::new();
        let arguments = arguments.map_or("null", str::trim_ascii);
        if !self.is_empty() && arguments != "null" {
            if !arguments.starts_with('{') {
                return Err(ParamValueError::NotAnObject);
            }
            render_object(&self.properties, arguments, &mut Vec::new(), &mut out)?;
        }
        Ok(out)
    }

    /// Returns the name of the first header that disagrees with the arguments of a call. `header`
    /// looks up the headers of the request. Servers must reject a request with such a header.
    ///
    /// Arguments of the wrong type are left to the tool to reject.
    pub fn disagreement<'h>(
        &self,
        arguments: Option<&str>,
        header: impl Fn(&str) -> Option<&'h str>,
    ) -> Option<String> {
        let expected = self.render(arguments).ok()?;
        let mut names = Vec::new();
        collect_names(&self.properties, &mut names);
        let disagrees = |name: &&str| {
            let expected = expected.iter().find(|(known, _)| known == name);
            match (expected, header(name)) {
                (None, None) => false,
                (Some((_, expected)), Some(said)) => !same_value(expected, said),
                (Some(_), None) | (None, Some(_)) => true,
            }
        };
        names.into_iter().find(disagrees).map(str::to_owned)
    }
}

fn collect_names<'a>(properties: &'a [Property], names: &mut Vec<&'a str>) {
    for property in properties {
        names.extend(property.header.as_ref().map(|header| &*header.name));
        collect_names(&property.properties, names);
    }
}

/// Returns `true` if two values have the same meaning, regardless of their encoding. Integers are
/// compared as numbers.
fn same_value(one: &str, other: &str) -> bool {
    let (Ok(one), Ok(other)) = (decode_value(one), decode_value(other)) else {
        return false;
    };
    let number = |text: &str| text.parse::<i64>().ok();
    one == other || number(&one).is_some_and(|one| Some(one) == number(&other))
}

fn render_object<'a>(
    properties: &'a [Property],
    object: &str,
    path: &mut Vec<&'a str>,
    out: &mut Vec<(String, String)>,
) -> Result<(), ParamValueError> {
    let members: HashMap<String, &RawValue> =
        serde_json::from_str(object).map_err(|_| ParamValueError::NotAnObject)?;
    for property in properties {
        let Some(value) = members.get(&property.name).map(|value| value.get()) else {
            continue;
        };
        path.push(&property.name);
        if let Some(header) = &property.header
            && value != "null"
        {
            let rendered = render_value(header.kind, value);
            let rendered = rendered.ok_or_else(|| ParamValueError::Unfit {
                parameter: path.join("."),
                expected: header.kind,
            })?;
            out.push((header.name.clone(), rendered));
        }
        if value.starts_with('{') && !property.properties.is_empty() {
            render_object(&property.properties, value, path, out)?;
        }
        path.pop();
    }
    Ok(())
}

/// Renders the header value of an argument, given as JSON text; `None` if it is not of that kind.
fn render_value(kind: ParamKind, value: &str) -> Option<String> {
    match kind {
        ParamKind::String => {
            let text: String = serde_json::from_str(value).ok()?;
            Some(encode_value(&text).into_owned())
        }
        ParamKind::Integer => integer(value),
        ParamKind::Boolean => matches!(value, "true" | "false").then(|| value.to_owned()),
    }
}

/// Returns the decimal form of an integer, which JSON can spell in many ways: `42`, `42.0` and
/// `4.2e1` are equal.
fn integer(text: &str) -> Option<String> {
    // Doubles are exact up to the limit, and no number beyond the limit rounds to one within it.
    let number: f64 = text.parse().ok()?;
    let fits = number.fract() == 0.0 && number.abs() <= MAX_INTEGER;
    // Adding zero removes the sign of a negative zero.
    fits.then(|| (number + 0.0).to_string())
}

/// The path from the root of a schema to one of its parts.
#[derive(Clone, Copy)]
enum Place<'a> {
    Root,
    /// Reached through a chain of `properties`.
    Property,
    /// Reached through this keyword, and possibly others.
    Under(&'a str),
}

/// The search through one schema.
#[derive(Default)]
struct Walk {
    /// The current part, as a JSON pointer.
    pointer: String,
    /// The annotations found so far, by header name in lower case.
    taken: BTreeMap<String, String>,
}

type Found = (Option<Header>, Vec<Property>);

impl Walk {
    /// Searches one schema, or any value that may contain schemas.
    fn schema(
        &mut self,
        schema: &Value,
        place: Place<'_>,
        depth: usize,
    ) -> Result<Found, ParamHeaderError> {
        let (mut header, mut properties) = (None, Vec::new());
        if depth > MAX_SCHEMA_DEPTH && (schema.is_array() || schema.is_object()) {
            let pointer = self.pointer.clone();
            return Err(ParamHeaderError::TooDeep { pointer });
        }
        if let Value::Array(schemas) = schema {
            let place = match place {
                Place::Under(_) => place,
                Place::Root | Place::Property => Place::Under("[]"),
            };
            for (index, schema) in schemas.iter().enumerate() {
                let index = index.to_string();
                self.enter(&index, |walk| walk.schema(schema, place, depth + 1))?;
            }
        }
        let Value::Object(keywords) = schema else {
            return Ok((header, properties));
        };
        if let Some(annotation) = keywords.get(KEYWORD) {
            header = Some(self.enter(KEYWORD, |walk| walk.header(annotation, keywords, place))?);
        }
        for (keyword, value) in keywords {
            let under = Place::Under(keyword);
            self.enter(keyword, |walk| {
                match (keyword.as_str(), value) {
                    // The values of these keywords are data, even if they look like schemas.
                    (KEYWORD | "const" | "default" | "enum" | "example" | "examples", _) => {}
                    // The keys of these objects are names, not keywords.
                    ("properties", Value::Object(schemas)) => {
                        let place = match place {
                            Place::Root | Place::Property => Place::Property,
                            Place::Under(_) => place,
                        };
                        properties = walk.named(schemas, place, depth + 1)?;
                    }
                    (
                        "patternProperties" | "dependentSchemas" | "dependencies" | "$defs"
                        | "definitions",
                        Value::Object(schemas),
                    ) => drop(walk.named(schemas, under, depth + 1)?),
                    // Any other keyword, known or not: its value is a schema, a list of schemas, or
                    // neither.
                    _ => drop(walk.schema(value, under, depth + 1)?),
                }
                Ok(())
            })?;
        }
        Ok((header, properties))
    }

    fn named(
        &mut self,
        schemas: &Map<String, Value>,
        place: Place<'_>,
        depth: usize,
    ) -> Result<Vec<Property>, ParamHeaderError> {
        let mut found = Vec::new();
        for (name, schema) in schemas {
            let (header, properties) =
                self.enter(name, |walk| walk.schema(schema, place, depth + 1))?;
            if header.is_some() || !properties.is_empty() {
                found.push(Property {
                    name: name.clone(),
                    header,
                    properties,
                });
            }
        }
        Ok(found)
    }

    /// Checks one annotation among the `keywords` beside it.
    fn header(
        &mut self,
        annotation: &Value,
        keywords: &Map<String, Value>,
        place: Place<'_>,
    ) -> Result<Header, ParamHeaderError> {
        let fault = match (place, annotation.as_str(), kind(keywords)) {
            (Place::Root, ..) => AnnotationFault::Root,
            (Place::Under(keyword), ..) => AnnotationFault::Unreachable(keyword.to_owned()),
            (Place::Property, Some(name), Some(kind)) if is_name(name) => {
                let key = name.to_ascii_lowercase();
                match self.taken.insert(key, self.pointer.clone()) {
                    Some(other) => AnnotationFault::Duplicate { other },
                    None if self.taken.len() > MAX_HEADERS => {
                        return Err(ParamHeaderError::TooMany);
                    }
                    None => {
                        let name = format!("Mcp-Param-{name}");
                        return Ok(Header { name, kind });
                    }
                }
            }
            (Place::Property, Some(name), None) if is_name(name) => AnnotationFault::Type,
            (Place::Property, ..) => AnnotationFault::Name,
        };
        let pointer = self.pointer.clone();
        Err(ParamHeaderError::Annotation { pointer, fault })
    }

    /// Runs `work` one step further down the schema.
    fn enter<T>(&mut self, step: &str, work: impl FnOnce(&mut Self) -> T) -> T {
        let length = self.pointer.len();
        self.pointer.push('/');
        self.pointer
            .push_str(&step.replace('~', "~0").replace('/', "~1"));
        let result = work(self);
        self.pointer.truncate(length);
        result
    }
}

/// Returns `true` if the name is an RFC 9110 token of a length that servers accept.
fn is_name(name: &str) -> bool {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    (1..=MAX_NAME_BYTES).contains(&name.len()) && name.bytes().all(is_token)
}

/// Returns the type of a parameter. A list of types is rejected too, even `["string", "null"]`, as
/// in the official SDKs.
fn kind(keywords: &Map<String, Value>) -> Option<ParamKind> {
    match keywords.get("type")?.as_str()? {
        "string" => Some(ParamKind::String),
        "integer" => Some(ParamKind::Integer),
        "boolean" => Some(ParamKind::Boolean),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn on(property: &Value) -> Value {
        json!({"type": "object", "properties": {"p": property}})
    }

    fn read(schema: &Value) -> Result<ParamHeaders, ParamHeaderError> {
        ParamHeaders::from_schema(&schema.to_string())
    }

    fn fault(schema: &Value) -> (String, AnnotationFault) {
        match read(schema) {
            Err(ParamHeaderError::Annotation { pointer, fault }) => (pointer, fault),
            other => panic!("{schema} gives {other:?}"),
        }
    }

    fn render(schema: &Value, arguments: &str) -> Result<Vec<(String, String)>, ParamValueError> {
        read(schema).unwrap().render(Some(arguments))
    }

    fn render_one(kind: &str, value: &str) -> Result<String, ParamValueError> {
        let schema = on(&json!({"type": kind, "x-mcp-header": "P"}));
        let mut headers = render(&schema, &format!(r#"{{"p":{value}}}"#))?;
        assert_eq!((headers.len(), &*headers[0].0), (1, "Mcp-Param-P"));
        Ok(headers.remove(0).1)
    }

    #[test]
    fn headers_must_agree_with_the_arguments() {
        let headers = ParamHeaders::from_schema(
            r#"{"type":"object","properties":{"r":{"type":"string","x-mcp-header":"Region"},"n":{"type":"integer","x-mcp-header":"Count"}}}"#,
        )
        .unwrap();
        let check = |arguments: &str, said: &[(&str, &'static str)]| {
            let header = |name: &str| {
                let found = said
                    .iter()
                    .find(|(known, _)| name.eq_ignore_ascii_case(known));
                found.map(|(_, value)| *value)
            };
            headers.disagreement(Some(arguments), header)
        };
        let (region, count) = ("mcp-param-region", "mcp-param-count");
        assert_eq!(
            check(r#"{"r":"eu","n":7}"#, &[(region, "eu"), (count, "07")]),
            None
        );
        assert_eq!(check(r#"{"r":"eu"}"#, &[(region, "=?base64?ZXU=?=")]), None);
        assert_eq!(check("{}", &[]), None);
        for (arguments, said, at_fault) in [
            (r#"{"r":"eu"}"#, &[(region, "us")][..], "Mcp-Param-Region"),
            (r#"{"r":"eu"}"#, &[], "Mcp-Param-Region"),
            ("{}", &[(region, "eu")], "Mcp-Param-Region"),
            (r#"{"n":7}"#, &[(count, "8")], "Mcp-Param-Count"),
        ] {
            assert_eq!(
                check(arguments, said).as_deref(),
                Some(at_fault),
                "{arguments}"
            );
        }
    }

    #[test]
    fn specification_and_conformance_values_are_encoded() {
        for (value, encoded) in [
            ("us-west1", "us-west1"),
            ("us west 1", "us west 1"),
            ("", ""),
            ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
            (" padded ", "=?base64?IHBhZGRlZCA=?="),
            ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
            ("line1\r\nline2", "=?base64?bGluZTENCmxpbmUy?="),
            ("\tindented", "=?base64?CWluZGVudGVk?="),
            ("a\tb", "=?base64?YQli?="),
            ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
            ("=?base64?=", "=?base64?PT9iYXNlNjQ/PQ==?="),
            ("=?BASE64?YQ==?=", "=?BASE64?YQ==?="),
        ] {
            assert_eq!(encode_value(value), encoded);
            assert_eq!(decode_value(encoded).unwrap(), value);
        }
    }

    #[test]
    fn decoding_is_strict_only_between_both_markers() {
        use HeaderValueError::{Base64, Character, Utf8};
        for (value, decoded) in [
            ("  tool\t", Ok("tool")),
            ("a\tb", Ok("a\tb")),
            ("SGVsbG8=", Ok("SGVsbG8=")),
            ("=?base64?SGVsbG8=", Ok("=?base64?SGVsbG8=")),
            ("=?base64?=", Ok("=?base64?=")),
            ("=?base64??=", Ok("")),
            ("=?base64?SGVsbG8?=", Err(Base64)),
            ("=?base64?SGVs!!!bG8=?=", Err(Base64)),
            ("=?base64?YR==?=", Err(Base64)),
            ("=?base64?_w==?=", Err(Base64)),
            ("=?base64?/w==?=", Err(Utf8)),
            ("caf\u{e9}", Err(Character)),
            ("a\0b", Err(Character)),
        ] {
            let got = decode_value(value);
            assert_eq!(got.as_deref().map_err(|error| *error), decoded, "{value:?}");
        }
    }

    #[test]
    fn names_and_types_are_checked() {
        let check = |kind: Value, name: Value, expected: AnnotationFault| {
            let schema = on(&json!({"type": kind, "x-mcp-header": name}));
            let pointer = "/properties/p/x-mcp-header".to_owned();
            assert_eq!(fault(&schema), (pointer, expected));
        };
        let long = "a".repeat(MAX_NAME_BYTES + 1);
        for name in ["", "My Region", "A:B", "Région", "A\t1", "A\r\nB: c", &long] {
            check(json!("string"), json!(name), AnnotationFault::Name);
        }
        check(json!("string"), json!(7), AnnotationFault::Name);
        for kind in ["object", "array", "null", "number", "String"] {
            check(json!(kind), json!("P"), AnnotationFault::Type);
        }
        check(json!(["string", "null"]), json!("P"), AnnotationFault::Type);
        check(Value::Null, json!("P"), AnnotationFault::Type);
        let twice = json!({"properties": {
            "a": {"type": "string", "x-mcp-header": "MyField"},
            "b": {"properties": {"c": {"type": "string", "x-mcp-header": "myfield"}}},
        }});
        assert_eq!(
            read(&twice).unwrap_err().to_string(),
            r#"x-mcp-header at "/properties/b/properties/c/x-mcp-header" is the same header as "/properties/a/x-mcp-header""#
        );
    }

    #[test]
    fn annotation_must_be_on_a_chain_of_properties() {
        let marked = json!({"type": "string", "x-mcp-header": "P"});
        let root = ("/x-mcp-header".to_owned(), AnnotationFault::Root);
        assert_eq!(fault(&marked), root);
        let check = |schema: &Value, keyword: &str, pointer: String| {
            let fault = fault(&on(schema));
            let expected = AnnotationFault::Unreachable(keyword.to_owned());
            assert_eq!(
                fault,
                (format!("/properties/p/{pointer}/x-mcp-header"), expected)
            );
        };
        let one = "items contains additionalProperties propertyNames not if then else x-vendor";
        for key in one.split(' ') {
            check(&json!({key: marked}), key, key.to_owned());
            check(
                &json!({key: on(&marked)}),
                key,
                format!("{key}/properties/p"),
            );
        }
        for key in ["oneOf", "anyOf", "allOf", "prefixItems", "items"] {
            check(&json!({key: [{}, marked]}), key, format!("{key}/1"));
        }
        for key in "$defs definitions patternProperties dependentSchemas".split(' ') {
            check(
                &json!({key: {"a/b~": marked}}),
                key,
                format!("{key}/a~1b~0"),
            );
        }
    }

    #[test]
    fn property_names_and_data_are_not_annotations() {
        let lookalike = json!({"x-mcp-header": 7});
        for schema in [
            json!({"properties": {"x-mcp-header": {"type": "number"}}}),
            json!({"$defs": {"x-mcp-header": {}}, "items": {"properties": {"x-mcp-header": {}}}}),
            on(&json!({"const": lookalike, "default": lookalike})),
            on(&json!({"enum": [lookalike], "examples": [lookalike]})),
            json!({"description": "x-mcp-header", "required": ["x-mcp-header"]}),
            json!(true),
        ] {
            assert!(read(&schema).unwrap().is_empty(), "{schema}");
        }
        let named = json!({"properties": {
            "x-mcp-header": {"type": "string", "x-mcp-header": "A"},
            "enum": {"type": "string", "x-mcp-header": "B"},
        }});
        let headers = render(&named, r#"{"x-mcp-header":"a","enum":"b"}"#).unwrap();
        assert_eq!(headers.len(), 2);
    }

    #[test]
    fn schemas_are_bounded_and_escapes_are_checked() {
        let escaped = r#"{"\u0078-mcp-header":"P"}"#;
        assert!(ParamHeaders::from_schema(escaped).is_err());
        let is_too = |schema: &Value, what: &str| {
            assert!(format!("{:?}", read(schema).unwrap_err()).starts_with(what));
        };
        let many = |count: usize| {
            let leaf = |n: usize| json!({"type": "string", "x-mcp-header": format!("p{n}")});
            let all: Map<_, _> = (0..count).map(|n| (format!("p{n}"), leaf(n))).collect();
            json!({"properties": all})
        };
        assert!(read(&many(MAX_HEADERS)).is_ok());
        is_too(&many(MAX_HEADERS + 1), "TooMany");
        let nested = |levels: usize| {
            let leaf = json!({"type": "string", "x-mcp-header": "P"});
            (0..levels).fold(leaf, |schema, _| on(&schema))
        };
        assert!(read(&nested(MAX_SCHEMA_DEPTH / 2)).is_ok());
        is_too(&nested(MAX_SCHEMA_DEPTH / 2 + 1), "TooDeep");
        is_too(&nested(100), "NotJson");
        let large = "a".repeat(MAX_SCHEMA_BYTES);
        is_too(&json!(["x-mcp-header", large]), "TooLarge");
        assert!(read(&json!(["no annotation", large])).unwrap().is_empty());
    }

    #[test]
    fn present_arguments_become_headers() {
        let schema = json!({"properties": {
            "a": {"properties": {"b": {"type": "integer", "x-mcp-header": "B"}}},
            "s": {"type": "string", "x-mcp-header": "S"},
        }});
        for (arguments, expected) in [
            (
                r#" {"a":{"b":1,"x":1e999},"s":"é","y":"\ud800"} "#,
                "B=1 S==?base64?w6k=?=",
            ),
            (r#"{"a":{"b":null},"s":null}"#, ""),
            (r#"{"a":7,"s":"1","s":"2"}"#, "S=2"),
            (r#"{"b":1,"a":{}}"#, ""),
            ("null", ""),
        ] {
            let headers = render(&schema, arguments).unwrap();
            let short = |(name, value): &(String, String)| format!("{}={value}", &name[10..]);
            let headers: Vec<String> = headers.iter().map(short).collect();
            assert_eq!(headers.join(" "), expected);
        }
        assert_eq!(read(&schema).unwrap().render(None), Ok(vec![]));
        assert_eq!(render(&schema, "[]"), Err(ParamValueError::NotAnObject));
        assert_eq!(render(&schema, "{"), Err(ParamValueError::NotAnObject));
        let error = render(&schema, r#"{"a":{"b":"1"}}"#)
            .unwrap_err()
            .to_string();
        assert_eq!(error, r#"argument "a.b" is not an integer within 2^53 - 1"#);
    }

    #[test]
    fn integers_and_booleans_have_one_spelling() {
        for (value, rendered) in [
            ("42", "42"),
            ("-7", "-7"),
            ("-0", "0"),
            ("-0.0", "0"),
            ("42.0", "42"),
            ("4.2e1", "42"),
            ("9007199254740991", "9007199254740991"),
            ("-9007199254740991", "-9007199254740991"),
        ] {
            assert_eq!(render_one("integer", value).as_deref(), Ok(rendered));
        }
        assert_eq!(render_one("boolean", "false").as_deref(), Ok("false"));
        let beyond = "9007199254740992 -9007199254740992 99999999999999999999 1e30 -1e400";
        let refused = [
            ("integer", "1.5 true [] \"1\""),
            ("integer", beyond),
            ("boolean", "1 \"true\""),
            ("string", r#"1 {} "\ud800""#),
        ];
        for (kind, values) in refused {
            for value in values.split(' ') {
                let error = render_one(kind, value).unwrap_err();
                assert!(matches!(error, ParamValueError::Unfit { .. }), "{value}");
            }
        }
    }

    proptest! {
        #[test]
        fn any_text_survives_a_header(value in prop_oneof![any::<String>(), "[ -~\t]{0,20}"]) {
            let encoded = encode_value(&value);
            prop_assert!(encoded.bytes().all(|byte| matches!(byte, b' '..=b'~')));
            prop_assert_eq!(encoded.trim(), &*encoded);
            prop_assert_eq!(decode_value(&encoded).unwrap(), &*value);
            let argument = serde_json::to_string(&value).unwrap();
            prop_assert_eq!(render_one("string", &argument).unwrap(), &*encoded);
        }

        #[test]
        fn any_header_value_is_read_or_refused(value in "(=\\?base64\\?)?\\PC{0,12}(\\?=)?") {
            if let Ok(decoded) = decode_value(&value) {
                let encoded = encode_value(&decoded);
                prop_assert_eq!(&decode_value(&encoded).unwrap(), &decoded);
            }
        }
    }
}
