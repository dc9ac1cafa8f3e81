//! The headers of a message.

use std::borrow::Cow;

use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use serde::Deserialize;
use serde_json::value::RawValue;
use switchboard_wire::{Era, Revision, header, method};

use super::super::{Outgoing, OutgoingKind};

pub(in crate::transport) const JSON: &str = "application/json";
pub(in crate::transport) const EVENTS: &str = "text/event-stream";

/// The parts of the body that the headers of a 2026-07-28 request repeat.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::transport) struct Modern {
    version: String,
    name: Option<String>,
}

impl Modern {
    /// Reads them from the message; `None` if the message is of an older revision.
    pub(super) fn read(outgoing: &Outgoing) -> Option<Self> {
        #[derive(Deserialize)]
        struct Message<'a> {
            #[serde(borrow)]
            params: Option<&'a RawValue>,
        }
        #[derive(Deserialize)]
        struct Params<'a> {
            #[serde(borrow, rename = "_meta")]
            meta: Option<&'a RawValue>,
            #[serde(borrow)]
            name: Option<&'a RawValue>,
            #[serde(borrow)]
            uri: Option<&'a RawValue>,
            #[serde(borrow, rename = "taskId")]
            task_id: Option<&'a RawValue>,
        }
        #[derive(Deserialize)]
        struct Meta<'a> {
            #[serde(borrow, rename = "io.modelcontextprotocol/protocolVersion")]
            version: Option<&'a RawValue>,
        }
        let OutgoingKind::Request { method, .. } = &outgoing.kind else {
            return None;
        };
        let Message { params } = serde_json::from_slice(&outgoing.frame).ok()?;
        let params: Params<'_> = object(params?)?;
        let Meta { version } = object(params.meta?)?;
        let name = match &**method {
            method::TOOLS_CALL | method::PROMPTS_GET => params.name,
            method::RESOURCES_READ => params.uri,
            method if method.starts_with("tasks/") => params.task_id,
            _ => None,
        };
        Some(Self {
            version: text(version?)?,
            name: name.and_then(text),
        })
    }
}

/// Reads an object. serde alone would also accept an array.
fn object<'a, T: Deserialize<'a>>(raw: &'a RawValue) -> Option<T> {
    let text = raw.get();
    text.starts_with('{')
        .then(|| serde_json::from_str(text).ok())?
}

fn text(raw: &RawValue) -> Option<String> {
    serde_json::from_str(raw.get()).ok()
}

/// The headers that every message to this server has at present.
#[derive(Debug, Clone, Default)]
pub(in crate::transport) struct Standing {
    /// The session, once the server has opened one.
    pub(in crate::transport) session: Option<HeaderValue>,
    /// The revision, once it is negotiated.
    pub(in crate::transport) revision: Option<Revision>,
}

impl Standing {
    /// Returns the headers of a message. The error is a description for the user.
    pub(in crate::transport) fn headers(
        &self,
        outgoing: &Outgoing,
        modern: Option<&Modern>,
    ) -> Result<HeaderMap, String> {
        let mut headers = HeaderMap::new();
        for (name, value) in &*outgoing.headers {
            let key = HeaderName::from_bytes(name.as_bytes()).map_err(|_| unfit(name))?;
            insert(&mut headers, key, value)?;
        }
        headers.insert(
            ACCEPT,
            HeaderValue::from_static("application/json, text/event-stream"),
        );
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
        let method = match &outgoing.kind {
            OutgoingKind::Request { method, .. } | OutgoingKind::Notification { method } => {
                Some(method)
            }
            OutgoingKind::Cancel { .. } | OutgoingKind::Answer => None,
        };
        if let Some(modern) = modern {
            let name = modern.name.as_deref().map(header::encode_value);
            set(
                &mut headers,
                header::PROTOCOL_VERSION,
                Some(Cow::Borrowed(&modern.version)),
            )?;
            set(&mut headers, header::METHOD, method.cloned())?;
            set(&mut headers, header::NAME, name)?;
        } else if method.is_none_or(|method| method != method::INITIALIZE) {
            self.add_to(&mut headers);
            if self
                .revision
                .is_some_and(|revision| revision.era() == Era::Modern)
            {
                set(&mut headers, header::METHOD, method.cloned())?;
            }
        }
        Ok(headers)
    }

    /// Adds the headers that requests without a message have, too.
    pub(super) fn add_to(&self, headers: &mut HeaderMap) {
        if let Some(session) = &self.session {
            headers.insert(header::SESSION_ID, session.clone());
        }
        if let Some(revision) = self
            .revision
            .filter(|revision| revision.facts().version_header)
        {
            headers.insert(
                header::PROTOCOL_VERSION,
                HeaderValue::from_static(revision.as_str()),
            );
        }
    }
}

fn set(
    headers: &mut HeaderMap,
    name: &'static str,
    value: Option<Cow<'_, str>>,
) -> Result<(), String> {
    value.map_or(Ok(()), |value| {
        insert(headers, HeaderName::from_static(name), &value)
    })
}

fn insert(headers: &mut HeaderMap, name: HeaderName, value: &str) -> Result<(), String> {
    let value = HeaderValue::from_str(value).map_err(|_| unfit(name.as_str()))?;
    headers.insert(name, value);
    Ok(())
}

fn unfit(name: &str) -> String {
    format!("the header {name:?} has characters that cannot be sent")
}

#[cfg(test)]
mod tests {
    use super::*;
    use switchboard_wire::meta;

    const MODERN: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}"#;

    fn request(method: &'static str, params: &str) -> Outgoing {
        Outgoing {
            frame: format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#)
                .into(),
            kind: OutgoingKind::Request {
                id: 1,
                method: method.into(),
            },
            headers: [].into(),
        }
    }

    fn notification() -> Outgoing {
        Outgoing {
            frame: "{}".into(),
            kind: OutgoingKind::Notification { method: "n".into() },
            headers: [].into(),
        }
    }

    fn legacy(revision: Revision) -> Standing {
        Standing {
            session: Some(HeaderValue::from_static("s1")),
            revision: Some(revision),
        }
    }

    /// The headers that not every message has, sorted.
    fn special(standing: &Standing, outgoing: &Outgoing) -> String {
        let mut headers = standing
            .headers(outgoing, Modern::read(outgoing).as_ref())
            .unwrap();
        assert_eq!(
            headers.remove(ACCEPT).unwrap(),
            "application/json, text/event-stream"
        );
        assert_eq!(headers.remove(CONTENT_TYPE).unwrap(), "application/json");
        let mut lines: Vec<String> = headers
            .iter()
            .map(|(name, value)| format!("{name}={}", value.to_str().unwrap()))
            .collect();
        lines.sort();
        lines.join(" ")
    }

    #[test]
    fn modern_request_repeats_its_body_in_headers() {
        for (method, params, name) in [
            ("tools/call", r#""name":"add""#, " mcp-name=add"),
            ("prompts/get", r#""name":"a b""#, " mcp-name=a b"),
            (
                "resources/read",
                r#""uri":"file:///ü""#,
                " mcp-name==?base64?ZmlsZTovLy/DvA==?=",
            ),
            ("tasks/get", r#""taskId":"t1""#, " mcp-name=t1"),
            ("tools/call", r#""name":7"#, ""),
            ("tools/list", r#""name":"add""#, ""),
        ] {
            let call = request(method, &format!("{{{params},{MODERN}}}"));
            let expected = format!("mcp-method={method}{name} mcp-protocol-version=2026-07-28");
            assert_eq!(special(&Standing::default(), &call), expected);
            // A session from an older revision is not sent with it.
            assert_eq!(special(&legacy(Revision::V2025_11_25), &call), expected);
        }
    }

    #[test]
    fn only_meta_makes_a_request_modern() {
        for params in [
            "[]",
            "null",
            "{}",
            r#"{"_meta":null}"#,
            r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":7}}"#,
            r#"{"arguments":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#,
        ] {
            assert_eq!(
                Modern::read(&request("tools/call", params)),
                None,
                "{params}"
            );
        }
    }

    #[test]
    fn older_request_names_its_session_and_revision() {
        let call = request("tools/call", r#"{"name":"add"}"#);
        for (revision, expected) in [
            (Revision::V2024_11_05, "mcp-session-id=s1"),
            (Revision::V2025_03_26, "mcp-session-id=s1"),
            (
                Revision::V2025_06_18,
                "mcp-protocol-version=2025-06-18 mcp-session-id=s1",
            ),
            (
                Revision::V2025_11_25,
                "mcp-protocol-version=2025-11-25 mcp-session-id=s1",
            ),
        ] {
            assert_eq!(special(&legacy(revision), &call), expected);
            assert_eq!(special(&legacy(revision), &notification()), expected);
            assert_eq!(special(&legacy(revision), &request("initialize", "{}")), "");
        }
        assert_eq!(special(&Standing::default(), &call), "");
    }

    #[test]
    fn modern_notification_names_revision_and_method() {
        let standing = Standing {
            session: None,
            revision: Some(Revision::V2026_07_28),
        };
        let expected = "mcp-method=n mcp-protocol-version=2026-07-28";
        assert_eq!(special(&standing, &notification()), expected);
    }

    #[test]
    fn headers_of_the_caller_cannot_replace_ours() {
        let with = |name: &str, value: &str| {
            let mut call = request("tools/call", &format!(r#"{{"name":"add",{MODERN}}}"#));
            call.headers = [(name.to_owned(), value.to_owned())].into();
            call
        };
        let standing = Standing::default();
        assert!(
            special(&standing, &with("Mcp-Param-Region", "eu")).contains("mcp-param-region=eu")
        );
        assert!(special(&standing, &with("Mcp-Name", "sub")).contains("mcp-name=add"));
        for bad in [with("a b", "x"), with("x", "a\r\nb: c")] {
            let error = standing.headers(&bad, None).unwrap_err();
            assert!(
                error.ends_with("has characters that cannot be sent"),
                "{error}"
            );
        }
    }

    #[test]
    fn meta_key_is_the_one_of_the_wire() {
        assert!(MODERN.contains(meta::PROTOCOL_VERSION));
    }
}
