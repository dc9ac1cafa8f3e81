//! Exposed URIs: `switchboard://{server}/{the server's own URI}`, and `ui://{server}/{its own URI}`
//! for the pages of apps, which hosts recognise by their scheme.
//!
//! The prefix is added to URIs and to templates alike, so that an exposed template expands to an
//! exposed URI, and stripping the prefix restores the original. Inside results, the prefix is
//! inserted before each URI; all other bytes stay unchanged.

use std::borrow::Cow;

use switchboard_text::percent;
use switchboard_wire::{Name, Raw, is_alike};

const SCHEME: &str = "switchboard://";
/// The scheme of the pages of apps.
const UI: &str = "ui://";

/// The URI or template of a server in the direct view.
///
/// ```
/// use switchboard_catalog::expose_uri;
///
/// assert_eq!(expose_uri("my files", "file:///a"), "switchboard://my%20files/file:///a");
/// assert_eq!(expose_uri("clock", "ui://app.html"), "ui://clock/ui://app.html");
/// ```
pub fn expose_uri(server: &str, uri: &str) -> String {
    let mut exposed = prefix(server, uri);
    exposed.push_str(uri);
    exposed
}

/// A result of `resources/read` for the direct view: the URIs of its contents are exposed.
pub fn expose_read_result(server: &str, result: &Raw) -> Raw {
    let contents = members(result, "contents").flat_map(|contents| each(&contents));
    let uris = contents.flat_map(|resource| members(&resource, "uri").collect::<Vec<_>>());
    insert(server, result, uris)
}

/// A result of `tools/call` or `prompts/get`, or a sampling request, for the direct view: the URIs
/// of linked and embedded resources are exposed. A result without any is returned as the same
/// `Raw`, at the cost of one search for a word.
pub fn expose_content(server: &str, result: &Raw) -> Raw {
    static RESOURCE: Name = Name::prefix("resource");
    if !result.may_name(&RESOURCE) {
        return result.clone();
    }
    let messages = members(result, "messages").flat_map(|messages| each(&messages));
    let holders = messages.chain([result.clone()]);
    let blocks = holders.flat_map(|holder| blocks(&holder, NESTED));
    insert(server, result, blocks.flat_map(|block| uris(&block)))
}

/// The depth to which nested lists and nested results are searched.
const NESTED: usize = 8;

/// The content blocks of a holder, including those of nested tool results.
fn blocks(holder: &Raw, depth: usize) -> Vec<Raw> {
    let content = members(holder, "content").flat_map(|content| each(&content));
    let mut blocks: Vec<Raw> = content.collect();
    if depth > 0 {
        let inner = blocks.iter().filter(|block| is_of(block, "tool_result"));
        let inner: Vec<Raw> = inner
            .flat_map(|block| self::blocks(block, depth - 1))
            .collect();
        blocks.extend(inner);
    }
    blocks
}

/// The parameters of `notifications/resources/updated` for the direct view: their URI is exposed.
pub fn expose_updated(server: &str, params: &Raw) -> Raw {
    insert(server, params, members(params, "uri"))
}

/// The server's name and its own URI.
pub(crate) fn split(exposed: &str) -> Option<(Cow<'_, str>, &str)> {
    let (server, uri) = if let Some(rest) = exposed.strip_prefix(SCHEME) {
        rest.split_once('/')?
    } else {
        let parts = exposed.strip_prefix(UI)?.split_once('/')?;
        Some(parts).filter(|(_, uri)| is_page(uri))?
    };
    Some((percent::decode(server)?, uri))
}

/// The addresses of pages in the definition of a tool, verbatim.
pub(crate) fn pages(tool: &Raw) -> Vec<Raw> {
    static NESTED_NAME: Name = Name::new("resourceUri");
    static FLAT_NAME: Name = Name::new("ui/resourceUri");
    if !tool.may_name(&NESTED_NAME) && !tool.may_name(&FLAT_NAME) {
        return Vec::new();
    }
    let mut pages = Vec::new();
    for meta in members(tool, "_meta") {
        pages.extend(members(&meta, FLAT_NAME.as_str()));
        for ui in members(&meta, "ui") {
            pages.extend(members(&ui, NESTED_NAME.as_str()));
        }
    }
    pages.retain(|page| page.as_str().starts_with('"'));
    pages
}

/// Tests if a URI is the address of a page.
fn is_page(uri: &str) -> bool {
    uri.starts_with(UI)
}

/// The URIs in a content block. Readers differ in which of two members with one name they take, so
/// each counts.
fn uris(block: &Raw) -> Vec<Raw> {
    let mut uris = Vec::new();
    if is_of(block, "resource_link") {
        uris.extend(members(block, "uri"));
    }
    if is_of(block, "resource") {
        let resources = members(block, "resource");
        uris.extend(resources.flat_map(|resource| members(&resource, "uri").collect::<Vec<_>>()));
    }
    uris
}

/// Tests if a content block may be of this type.
fn is_of(block: &Raw, wanted: &str) -> bool {
    members(block, "type").any(|kind| kind.to_text().is_some_and(|kind| kind == wanted))
}

/// All members with this name, in any spelling that some reader accepts.
fn members(of: &Raw, name: &str) -> impl Iterator<Item = Raw> {
    let members = of.members().unwrap_or_default().into_iter();
    members.filter_map(move |(key, value)| is_alike(&key, name).then_some(value))
}

/// The elements of a list and of the lists in it. Any other value is its own only element.
fn each(list: &Raw) -> Vec<Raw> {
    let mut all = vec![list.clone()];
    for _ in 0..NESTED {
        if !all.iter().any(is_list) {
            break;
        }
        let flatter = all.into_iter().flat_map(|one| {
            let elements = is_list(&one).then(|| one.elements()).flatten();
            elements.unwrap_or_else(|| vec![one])
        });
        all = flatter.collect();
    }
    all
}

fn is_list(value: &Raw) -> bool {
    value.as_bytes().first() == Some(&b'[')
}

/// Inserts the prefix before these strings, which are slices of `whole`.
fn insert(server: &str, whole: &Raw, uris: impl Iterator<Item = Raw>) -> Raw {
    let text = whole.as_bytes();
    let mut places: Vec<(usize, String)> = uris
        .filter(|uri| uri.as_str().starts_with('"'))
        .map(|uri| insertion(server, whole, &uri))
        .collect();
    if places.is_empty() {
        return whole.clone();
    }
    places.sort_unstable();
    places.dedup();
    let longer: usize = places.iter().map(|(_, prefix)| prefix.len()).sum();
    let mut out = Vec::with_capacity(text.len() + longer);
    let mut done = 0;
    for (place, prefix) in places {
        out.extend_from_slice(&text[done..place]);
        // The prefix contains no characters that JSON would escape.
        out.extend_from_slice(prefix.as_bytes());
        done = place;
    }
    out.extend_from_slice(&text[done..]);
    // Strings in valid JSON were made longer, so the default is never used.
    Raw::parse(out).unwrap_or_else(|_| whole.clone())
}

/// The position after the opening quote of a URI, which is a slice of `whole`, and the prefix to
/// insert there.
pub(crate) fn insertion(server: &str, whole: &Raw, uri: &Raw) -> (usize, String) {
    let place = uri.as_bytes().as_ptr() as usize - whole.as_bytes().as_ptr() as usize + 1;
    (place, prefix(server, &uri.to_text().unwrap_or_default()))
}

/// The prefix of this URI.
fn prefix(server: &str, uri: &str) -> String {
    let scheme = if is_page(uri) { UI } else { SCHEME };
    format!("{scheme}{}/", escape(server))
}

/// Escapes a name for use as one segment of an address.
///
/// ```
/// assert_eq!(switchboard_catalog::escape("My server/1"), "My%20server%2F1");
/// ```
pub fn escape(name: &str) -> String {
    percent::encode(name, b"-._~")
}
