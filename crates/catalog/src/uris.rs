//! Exposed URIs: `switchboard://{server}/{the server's own URI}`.
//!
//! The prefix goes in front of URIs and of templates alike, so that what an exposed template expands
//! to is an exposed URI, and the way back is to strip the prefix. Inside results, the prefix is put in
//! where a URI begins; every other byte stays.

use std::{borrow::Cow, fmt::Write, sync::LazyLock};

use memchr::memmem::Finder;
use serde::Deserialize;
use serde_json::value::RawValue;
use switchboard_wire::{Raw, percent};

const SCHEME: &str = "switchboard://";

/// The URI (or template) of a server, as the direct view shows it.
///
/// ```
/// use switchboard_catalog::expose_uri;
///
/// assert_eq!(expose_uri("my files", "file:///a"), "switchboard://my%20files/file:///a");
/// ```
pub fn expose_uri(server: &str, uri: &str) -> String {
    let mut exposed = prefix(server);
    exposed.push_str(uri);
    exposed
}

/// A result of `resources/read` for the direct view: the URI of each of its contents is exposed.
pub fn expose_read_result(server: &str, result: &Raw) -> Raw {
    #[derive(Deserialize)]
    struct ReadResult<'a> {
        #[serde(borrow)]
        contents: Vec<Resource<'a>>,
    }
    // What has not the shape that the protocol gives it is handed on as it is.
    let Ok(ReadResult { contents }) = result.read() else {
        return result.clone();
    };
    let uris = contents.iter().filter_map(|resource| resource.uri);
    insert(server, result, uris)
}

/// A result of `tools/call` or `prompts/get` for the direct view: the URIs of linked and embedded
/// resources are exposed. A result without any is the same `Raw`, and cost one search for a word.
pub fn expose_content(server: &str, result: &Raw) -> Raw {
    static HAS_RESOURCE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"resource"));
    if HAS_RESOURCE.find(result.as_bytes()).is_none() {
        return result.clone();
    }
    let mut uris = Vec::new();
    let Ok(Holder { content, messages }) = result.read() else {
        return result.clone();
    };
    collect(content, &mut uris);
    if let Some(messages) = messages
        && let Ok(messages) = serde_json::from_str::<Vec<Holder<'_>>>(messages.get())
    {
        for message in messages {
            collect(message.content, &mut uris);
        }
    }
    insert(server, result, uris.into_iter())
}

/// The parameters of `notifications/resources/updated` for the direct view: their URI is exposed.
pub fn expose_updated(server: &str, params: &Raw) -> Raw {
    match params.read() {
        Ok(Resource { uri }) => insert(server, params, uri.into_iter()),
        Err(_) => params.clone(),
    }
}

/// The server's name and its own URI.
pub(crate) fn split(exposed: &str) -> Option<(Cow<'_, str>, &str)> {
    let (server, uri) = exposed.strip_prefix(SCHEME)?.split_once('/')?;
    Some((percent::decode(server)?, uri))
}

/// What may have content: a tool's result, or a message of a prompt; or else messages.
#[derive(Deserialize)]
struct Holder<'a> {
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
    #[serde(borrow, default)]
    messages: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Content<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Option<&'a RawValue>,
    #[serde(borrow, default)]
    uri: Option<&'a RawValue>,
    #[serde(borrow, default)]
    resource: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Resource<'a> {
    #[serde(borrow, default)]
    uri: Option<&'a RawValue>,
}

/// The URIs in content, which is one block or a list of them.
fn collect<'a>(content: Option<&'a RawValue>, uris: &mut Vec<&'a RawValue>) {
    let Some(text) = content.map(RawValue::get) else {
        return;
    };
    let blocks = if text.starts_with('[') {
        serde_json::from_str(text)
    } else {
        serde_json::from_str(text).map(|block| vec![block])
    };
    for block in blocks.unwrap_or_default() {
        let Content {
            kind,
            uri,
            resource,
        } = block;
        match kind.map(RawValue::get) {
            Some("\"resource_link\"") => uris.extend(uri),
            Some("\"resource\"") => uris.extend(resource.and_then(|resource| {
                let resource: Resource<'_> = serde_json::from_str(resource.get()).ok()?;
                resource.uri
            })),
            _ => {}
        }
    }
}

/// Puts the prefix in front of these strings, which are slices of `whole`.
fn insert<'a>(server: &str, whole: &'a Raw, uris: impl Iterator<Item = &'a RawValue>) -> Raw {
    let text = whole.as_bytes();
    // Where each begins, behind its quote.
    let mut places: Vec<usize> = uris
        .map(RawValue::get)
        .filter(|uri| uri.starts_with('"'))
        .map(|uri| uri.as_ptr() as usize - text.as_ptr() as usize + 1)
        .collect();
    if places.is_empty() {
        return whole.clone();
    }
    places.sort_unstable();
    let prefix = prefix(server);
    let mut out = Vec::with_capacity(text.len() + places.len() * prefix.len());
    let mut done = 0;
    for place in places {
        out.extend_from_slice(&text[done..place]);
        // The prefix has no character that JSON would escape.
        out.extend_from_slice(prefix.as_bytes());
        done = place;
    }
    out.extend_from_slice(&text[done..]);
    // Strings in valid JSON were made longer, so the default is never taken.
    Raw::parse(out).unwrap_or_else(|_| whole.clone())
}

fn prefix(server: &str) -> String {
    format!("{SCHEME}{}/", escape(server))
}

/// A name as one part of an address.
///
/// ```
/// assert_eq!(switchboard_catalog::escape("My server/1"), "My%20server%2F1");
/// ```
pub fn escape(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            out.push(char::from(byte));
        } else {
            // Writing to a string has no way to fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}
