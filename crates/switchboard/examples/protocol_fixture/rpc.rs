//! JSON-RPC: what comes in, and what goes out as text.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize, Serializer, ser::SerializeMap};
use serde_json::{Map, Value, json, value::RawValue};

pub(crate) const INVALID_REQUEST: i64 = -32600;
pub(crate) const METHOD_NOT_FOUND: i64 = -32601;
pub(crate) const INVALID_PARAMS: i64 = -32602;
pub(crate) const HEADER_MISMATCH: i64 = -32020;
pub(crate) const MISSING_CAPABILITY: i64 = -32021;
pub(crate) const UNSUPPORTED_VERSION: i64 = -32022;

/// A request, a notification or a response.
#[derive(Deserialize)]
pub(crate) struct Message {
    #[serde(default)]
    pub(crate) id: Option<Value>,
    #[serde(default)]
    pub(crate) method: Option<String>,
    #[serde(default)]
    params: Option<Box<RawValue>>,
    #[serde(default)]
    pub(crate) result: Option<Value>,
    #[serde(default)]
    pub(crate) error: Option<Value>,
}

impl Message {
    /// The members of `params`. One that no `Value` can hold is left out, and costs no other.
    pub(crate) fn params(&self) -> Value {
        let params = self.params.as_deref().map_or("{}", RawValue::get);
        let params: BTreeMap<String, Box<RawValue>> =
            serde_json::from_str(params).unwrap_or_default();
        let parsed = |(name, value): (String, Box<RawValue>)| {
            Some((name, serde_json::from_str(value.get()).ok()?))
        };
        Value::Object(params.into_iter().filter_map(parsed).collect())
    }

    /// `params.arguments` byte for byte.
    pub(crate) fn arguments(&self) -> Option<Box<RawValue>> {
        #[derive(Deserialize)]
        struct Arguments {
            #[serde(default)]
            arguments: Option<Box<RawValue>>,
        }
        let params = self.params.as_deref()?;
        let params: Arguments = serde_json::from_str(params.get()).ok()?;
        params.arguments
    }
}

/// One message, or several at once.
pub(crate) struct Incoming {
    pub(crate) messages: Vec<Message>,
    pub(crate) batch: bool,
}

impl Incoming {
    pub(crate) fn parse(text: &[u8]) -> Result<Self, Fault> {
        let batch = text.trim_ascii_start().first() == Some(&b'[');
        let messages = if batch {
            serde_json::from_slice(text)
        } else {
            serde_json::from_slice(text).map(|message| vec![message])
        };
        let messages =
            messages.map_err(|error| Fault::new(-32700, format!("not JSON: {error}")))?;
        Ok(Self { messages, batch })
    }
}

/// An error as JSON-RPC has it.
#[derive(Debug, Serialize)]
pub(crate) struct Fault {
    pub(crate) code: i64,
    pub(crate) message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Value>,
}

impl Fault {
    pub(crate) fn new(code: i64, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            data: None,
        }
    }

    pub(crate) fn with(self, data: Value) -> Self {
        Self {
            data: Some(data),
            ..self
        }
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(INVALID_PARAMS, message)
    }

    pub(crate) fn no_method(method: &str) -> Self {
        Self::new(METHOD_NOT_FOUND, format!("Method not found: {method}"))
    }

    pub(crate) fn lacking(capabilities: &Value) -> Self {
        Self::new(
            MISSING_CAPABILITY,
            "The client did not declare a capability that this needs",
        )
        .with(json!({ "requiredCapabilities": capabilities }))
    }
}

/// A result. One member of it may be text that is not to be touched.
#[derive(Clone)]
pub(crate) struct Answer {
    pub(crate) members: Map<String, Value>,
    pub(crate) raw: Option<(&'static str, Box<RawValue>)>,
}

impl From<Value> for Answer {
    fn from(value: Value) -> Self {
        let members = match value {
            Value::Object(members) => members,
            _ => Map::new(),
        };
        Self { members, raw: None }
    }
}

impl Serialize for Answer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (name, value) in &self.members {
            map.serialize_entry(name, value)?;
        }
        if let Some((name, value)) = &self.raw {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

pub(crate) fn response(id: &Value, result: &Result<Answer, Fault>) -> String {
    #[derive(Serialize)]
    struct Response<'a> {
        jsonrpc: &'static str,
        id: &'a Value,
        #[serde(skip_serializing_if = "Option::is_none")]
        result: Option<&'a Answer>,
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<&'a Fault>,
    }
    let response = Response {
        jsonrpc: "2.0",
        id,
        result: result.as_ref().ok(),
        error: result.as_ref().err(),
    };
    serde_json::to_string(&response).unwrap_or_default()
}

pub(crate) fn notification(method: &str, params: &Value) -> String {
    json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string()
}

pub(crate) fn request(id: u64, method: &str, params: &Value) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
}
