//! Translation between revisions: converts a message for a peer that speaks another one.
//!
//! Messages that both sides spell the same way are not parsed. Bytes that need no change are kept
//! verbatim.

use std::time::Duration;

use switchboard_base::{
    caller::{Guest, asks_for_url, with_person},
    error::{Error, cut},
};
use switchboard_catalog::{Kind, Page};
use switchboard_client::{ErrorObject, Raw, Revision};
use switchboard_wire::{Era, Name, RawError, code, is_alike, meta, method};

/// Members of `_meta` that describe a request of 2026-07-28. An older server has no use for them.
const MODERN_META: [&str; 4] = [
    meta::PROTOCOL_VERSION,
    meta::CLIENT_CAPABILITIES,
    meta::CLIENT_INFO,
    meta::LOG_LEVEL,
];

/// The parameters of a client's request, for a server of this era. `person`: a person answers what
/// the client cannot answer itself.
pub(crate) fn request(
    params: Option<Raw>,
    guest: &Guest,
    upstream: Era,
    person: bool,
) -> Option<Raw> {
    match (guest, upstream) {
        (Guest::Legacy { .. }, Era::Legacy) => params,
        (Guest::Modern, Era::Modern) => {
            let wider = person.then(|| guest.capabilities(params.as_ref()));
            let wider = wider.and_then(|said| with_person(&said));
            let stamped = wider.and_then(|wider| {
                meta::stamp(params.as_ref(), &[(meta::CLIENT_CAPABILITIES, wider)]).ok()
            });
            stamped.or(params)
        }
        (Guest::Modern, Era::Legacy) => params.map(|params| unsaid(&params)),
        (Guest::Legacy { about, level }, Era::Modern) => {
            let capabilities = about.capabilities.clone();
            let wider = person.then(|| with_person(&capabilities)).flatten();
            let mut members = vec![(meta::CLIENT_CAPABILITIES, wider.unwrap_or(capabilities))];
            members.extend(about.info.clone().map(|info| (meta::CLIENT_INFO, info)));
            members.extend(level.map(|level| (meta::LOG_LEVEL, Raw::string(level.as_str()))));
            let stamped = meta::stamp(params.as_ref(), &members).ok();
            // Only a value that is not an object cannot be stamped, and the connection rejects it.
            stamped.or(params).map(|params| params.without(&["task"]))
        }
    }
}

/// A request of 2026-07-28 without the members that describe it.
fn unsaid(params: &Raw) -> Raw {
    let params = params.without(&["inputResponses", "requestState"]);
    match params.member(meta::META) {
        None => params,
        Some(said) => {
            let rest = said.without(&MODERN_META);
            if rest.as_str() == "{}" {
                params.without(&[meta::META])
            } else {
                params.with_member(meta::META, &rest).unwrap_or(params)
            }
        }
    }
}

/// The result of a server, for a client of another revision. `info` is the server info for a client
/// of 2026-07-28.
pub(crate) fn result(
    result: Raw,
    of: &str,
    upstream: Revision,
    client: Revision,
    info: impl FnOnce() -> Raw,
) -> Raw {
    static STRUCTURED_CONTENT: Name = Name::new("structuredContent");
    let result = match (upstream.era(), client.era()) {
        (Era::Modern, Era::Legacy) => without_modern(result),
        (Era::Legacy, Era::Modern) => {
            let result = without_rounds(result);
            let result = match of {
                method::RESOURCES_READ => with_cache_hints(result),
                _ => result,
            };
            modern(result, info)
        }
        (Era::Legacy, Era::Legacy) | (Era::Modern, Era::Modern) => result,
    };
    let any = |revision: Revision| revision.facts().any_structured_content;
    if any(upstream) && !any(client) && result.may_name(&STRUCTURED_CONTENT) {
        without_odd_structure(result)
    } else {
        result
    }
}

/// The members that 2026-07-28 adds to results of every kind.
const MODERN_RESULT: [&str; 3] = ["resultType", "ttlMs", "cacheScope"];

/// Removes the members that only 2026-07-28 has. That includes the server info, which can be long:
/// some contain images.
fn without_modern(result: Raw) -> Raw {
    static NAMES: [Name; 3] = [
        Name::new(MODERN_RESULT[0]),
        Name::new(MODERN_RESULT[1]),
        Name::new(MODERN_RESULT[2]),
    ];
    let result = if NAMES.iter().any(|name| result.may_name(name)) {
        result.without(&MODERN_RESULT)
    } else {
        result
    };
    without_info(result)
}

static SERVER_INFO: Name = Name::new(meta::SERVER_INFO);

/// Removes the server info from `_meta`.
fn without_info(result: Raw) -> Raw {
    if !result.may_name(&SERVER_INFO) {
        return result;
    }
    let Some(said) = result.member(meta::META) else {
        return result;
    };
    let rest = said.without(&[meta::SERVER_INFO]);
    if rest.as_str() == "{}" {
        result.without(&[meta::META])
    } else {
        result.with_member(meta::META, &rest).unwrap_or(result)
    }
}

/// Replaces the server info of a result by the gateway's, if there is one. Views of all servers
/// have one name, and images in the servers' info would count towards an agent's budget.
pub(crate) fn as_own(result: Raw) -> Raw {
    if !result.may_name(&SERVER_INFO) {
        return result;
    }
    let said = result.member(meta::META).filter(Raw::is_object);
    if said.is_none_or(|said| said.member(meta::SERVER_INFO).is_none()) {
        return result;
    }
    meta::stamp(Some(&result), &[(meta::SERVER_INFO, own_info())]).unwrap_or(result)
}

fn without_type(result: Raw) -> Raw {
    static RESULT_TYPE: Name = Name::new("resultType");
    if !result.may_name(&RESULT_TYPE) {
        return result;
    }
    result.without(&["resultType"])
}

/// Removes the members of 2026-07-28 that ask for input: an older server asks with requests, which
/// are judged on their way.
fn without_rounds(result: Raw) -> Raw {
    static INPUT_REQUESTS: Name = Name::any_case("inputRequests");
    static REQUEST_STATE: Name = Name::any_case("requestState");
    let result = without_type(result);
    if !result.may_name(&INPUT_REQUESTS) && !result.may_name(&REQUEST_STATE) {
        return result;
    }
    let result = without_questions(&result);
    // The `result` of a task is the result of a call.
    match result.member("result").filter(names_questions) {
        Some(inner) => {
            let inner = without_questions(&inner);
            let bare = without_alike(&result, &["result"]);
            bare.with_member("result", &inner).unwrap_or(bare)
        }
        None => result,
    }
}

/// The members of a result that ask for input.
const QUESTIONS: [&str; 3] = ["resultType", "inputRequests", "requestState"];

/// Tests if a result contains questions, in any spelling that some reader accepts.
pub(crate) fn names_questions(result: &Raw) -> bool {
    let members = result.members().unwrap_or_default();
    members
        .iter()
        .any(|(name, _)| is_alike(name, QUESTIONS[1]) || is_alike(name, QUESTIONS[2]))
}

/// Removes the questions and the type of a result.
pub(crate) fn without_questions(result: &Raw) -> Raw {
    without_alike(result, &QUESTIONS)
}

/// Removes the members that have these names to a reader that ignores letter case.
fn without_alike(object: &Raw, names: &[&str]) -> Raw {
    let Some(members) = object.members() else {
        return object.clone();
    };
    let is_alike = |name: &str| names.iter().any(|alike| is_alike(name, alike));
    if !members.iter().any(|(name, _)| is_alike(name)) {
        return object.clone();
    }
    let kept = members.iter().filter(|(name, _)| !is_alike(name));
    Raw::object(kept.map(|(name, value)| (&**name, value.clone())))
}

/// Adds the caching hints that 2026-07-28 requires, if the server gave none: do not cache.
pub(crate) fn with_cache_hints(result: Raw) -> Raw {
    let hints = [
        ("ttlMs", Raw::number(0)),
        ("cacheScope", Raw::string("private")),
    ];
    hints.into_iter().fold(result, |result, (name, value)| {
        if result.member(name).is_some() {
            return result;
        }
        result.with_member(name, &value).unwrap_or(result)
    })
}

/// Adds the members that 2026-07-28 requires on every result. `info` is the server info, used
/// unless the result has one.
pub(crate) fn modern(result: Raw, info: impl FnOnce() -> Raw) -> Raw {
    let result = match result.member("resultType") {
        Some(_) => Ok(result),
        None => result.with_member("resultType", &Raw::string("complete")),
    };
    let stamped = result.and_then(|result| {
        let own = result.member(meta::META).filter(Raw::is_object);
        if own.is_some_and(|own| own.member(meta::SERVER_INFO).is_some()) {
            return Ok(result);
        }
        meta::stamp(Some(&result), &[(meta::SERVER_INFO, info())])
    });
    // Only a value that is not an object cannot be stamped, and no known method has such a result.
    stamped.unwrap_or_else(|_| Raw::object([("resultType", Raw::string("complete"))]))
}

/// The gateway's own server info.
pub(crate) fn own_info() -> Raw {
    Raw::object([
        ("name", Raw::string("switchboard")),
        ("title", Raw::string("Switchboard")),
        ("version", Raw::string(env!("CARGO_PKG_VERSION"))),
    ])
}

/// A result of the gateway itself, for a client of this era.
pub(crate) fn own_result(client: Era, result: Raw) -> Raw {
    match client {
        Era::Legacy => result,
        Era::Modern => modern(result, own_info),
    }
}

/// Tests if a result is a task, in the spelling of the client's era.
pub(crate) fn is_task(result: &Raw, era: Era) -> Result<bool, RawError> {
    static TASK: Name = Name::new("task");
    if !result.may_name(&TASK) {
        return Ok(false);
    }
    Ok(match era {
        Era::Legacy => result.member("task").is_some_and(|task| task.is_object()),
        Era::Modern => {
            let kind = result.distinct_member(&["resultType"])?;
            kind.and_then(|kind| kind.to_text()).as_deref() == Some("task")
        }
    })
}

/// Replaces content that the client's revision does not have by text. The addresses in the result
/// have to be the client's already.
pub(crate) fn content(result: Raw, client: Revision) -> Raw {
    static RESOURCE_LINK: Name = Name::new("resource_link");
    static AUDIO: Name = Name::new("audio");
    let facts = client.facts();
    let links = !facts.resource_links && result.may_name(&RESOURCE_LINK);
    let audio = !facts.audio && result.may_name(&AUDIO);
    if !links && !audio {
        return result;
    }
    let Some(content) = result.member("content").and_then(|list| list.elements()) else {
        return result;
    };
    let content = content
        .into_iter()
        .map(|block| in_words(block, links, audio));
    result
        .with_member("content", &Raw::array(content))
        .unwrap_or(result)
}

/// Removes structured content that is not an object, which older revisions do not have. It becomes
/// text, unless there is content already.
fn without_odd_structure(result: Raw) -> Raw {
    let Some(odd) = result
        .member("structuredContent")
        .filter(|it| !it.is_object())
    else {
        return result;
    };
    let result = result.without(&["structuredContent"]);
    let content = result.member("content").and_then(|list| list.elements());
    if content.is_some_and(|content| !content.is_empty()) {
        return result;
    }
    let content = Raw::array([text(odd.as_str())]);
    result.with_member("content", &content).unwrap_or(result)
}

fn in_words(block: Raw, links: bool, audio: bool) -> Raw {
    let member = |name: &str| block.member(name).and_then(|it| it.to_text());
    match member("type").as_deref() {
        Some("resource_link") if links => {
            let title = member("title").or_else(|| member("name"));
            let uri = member("uri").unwrap_or_default();
            match title {
                Some(title) => text(&format!("{title}: {uri}")),
                None => text(&uri),
            }
        }
        Some("audio") if audio => {
            let kind = member("mimeType").unwrap_or_else(|| "unknown type".to_owned());
            let bytes = block.member("data").map_or(0, |data| data.as_bytes().len()) * 3 / 4;
            text(&format!(
                "[audio, {kind}, about {bytes} bytes: this protocol revision cannot carry it]"
            ))
        }
        _ => block,
    }
}

fn text(text: &str) -> Raw {
    Raw::object([("type", Raw::string("text")), ("text", Raw::string(text))])
}

/// The time for which a client of 2026-07-28 may cache a list, if its server does not say.
pub(crate) const LIST_TTL: Duration = Duration::from_secs(5);

/// The parts of a list that are not in its page.
pub(crate) struct Listing<'a> {
    pub(crate) kind: Kind,
    /// Keeps the task support of tools, for a view of one server.
    pub(crate) with_tasks: bool,
    /// The time for which the list may be cached, and `true` if by every client.
    pub(crate) hints: Option<(Duration, bool)>,
    /// The server info for a client of 2026-07-28.
    pub(crate) info: &'a dyn Fn() -> Raw,
}

/// One page of a list, for a client of this era.
pub(crate) fn list(page: Page<'_>, client: Era, listing: &Listing<'_>) -> Raw {
    if client == Era::Legacy {
        let list = page.encoded(&[]);
        return match listing.kind {
            Kind::Tool => readable(list, listing.with_tasks),
            _ => list,
        };
    }
    let info = Raw::object([(meta::SERVER_INFO, (listing.info)())]);
    let (ttl, public) = listing.hints.unwrap_or((LIST_TTL, false));
    let scope = if public { "public" } else { "private" };
    page.encoded(&[
        ("ttlMs", Raw::number(coarse_millis(ttl))),
        ("cacheScope", Raw::string(scope)),
        ("resultType", Raw::string("complete")),
        (meta::META, info),
    ])
}

/// Rounded milliseconds, so that equal pages are encoded once.
pub(crate) fn coarse_millis(time: Duration) -> u64 {
    let millis = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    if millis > 1_000 {
        millis / 1_000 * 1_000
    } else {
        millis / 100 * 100
    }
}

/// A list of tools that older clients can read.
fn readable(list: Raw, with_tasks: bool) -> Raw {
    static OUTPUT_SCHEMA: Name = Name::new("outputSchema");
    static TASK_SUPPORT: Name = Name::new("taskSupport");
    if !list.may_name(&OUTPUT_SCHEMA) && (with_tasks || !list.may_name(&TASK_SUPPORT)) {
        return list;
    }
    let Some(tools) = list.member("tools").and_then(|tools| tools.elements()) else {
        return list;
    };
    let readable: Vec<Raw> = tools
        .iter()
        .map(|it| tool(it.clone(), with_tasks))
        .collect();
    if readable == tools {
        return list;
    }
    list.with_member("tools", &Raw::array(readable))
        .unwrap_or(list)
}

/// A tool that an older client can read: an output schema describes an object, or is removed. A
/// view without tasks has no tools that require one, because the gateway creates the task itself.
pub(crate) fn tool(tool: Raw, with_tasks: bool) -> Raw {
    let tool = if with_tasks {
        tool
    } else {
        tool.without(&["execution"])
    };
    let odd = tool.member("outputSchema").is_some_and(|schema| {
        let kind = schema.member("type").and_then(|kind| kind.to_text());
        kind.as_deref() != Some("object")
    });
    if odd {
        tool.without(&["outputSchema"])
    } else {
        tool
    }
}

/// The response to a failed request, for a client of this era. A failed call is a result where a
/// model is to read it.
pub(crate) fn failure(
    failure: Error,
    is_call: bool,
    client: Era,
    info: impl FnOnce() -> Raw,
) -> Result<Raw, ErrorObject> {
    match client {
        Era::Legacy if is_call && matches!(failure, Error::Input { .. }) => {
            failure.into_tool_result()
        }
        Era::Modern if is_call => Ok(modern(failure.into_tool_result()?, info)),
        Era::Legacy | Era::Modern => Err(failure.into_error(client)),
    }
}

/// The error for a tool that does not exist, or that the caller must not know of.
pub(crate) fn no_tool(name: &str) -> Error {
    Error::invalid_params(format!("there is no tool `{}`", cut(name)))
}

/// The error for a resource that does not exist.
pub(crate) fn no_resource(client: Era, uri: &str) -> ErrorObject {
    let code = match client {
        Era::Legacy => code::RESOURCE_NOT_FOUND,
        Era::Modern => code::INVALID_PARAMS,
    };
    let message = format!("there is no resource `{}`", cut(uri));
    ErrorObject::new(code, message).with_data(Raw::object([("uri", Raw::string(uri))]))
}

/// The error of a server, for a client of this era.
pub(crate) fn error(error: ErrorObject, of: &str, client: Era) -> ErrorObject {
    let coded = |code: i64| {
        let new = ErrorObject::new(code, error.message.clone());
        match error.data.clone() {
            Some(data) => new.with_data(data),
            None => new,
        }
    };
    match (client, error.code) {
        (Era::Modern, code::RESOURCE_NOT_FOUND) => coded(code::INVALID_PARAMS),
        (Era::Legacy, code::INVALID_PARAMS)
            if of == method::RESOURCES_READ
                && error
                    .data
                    .as_ref()
                    .is_some_and(|data| data.member("uri").is_some()) =>
        {
            coded(code::RESOURCE_NOT_FOUND)
        }
        // Codes that older revisions do not have become an error of the parameters or an internal
        // error.
        (Era::Legacy, code::MISSING_CLIENT_CAPABILITY) => coded(code::INVALID_PARAMS),
        (Era::Legacy, code::HEADER_MISMATCH | code::UNSUPPORTED_PROTOCOL_VERSION) => {
            coded(code::INTERNAL)
        }
        _ => error,
    }
}

/// The parameters of a question from a server of 2026-07-28, for an older client.
pub(crate) fn question_for_legacy(asked: &str, params: Option<Raw>) -> Option<Raw> {
    if asked != method::ELICITATION || !asks_for_url(params.as_ref()) {
        return params;
    }
    // 2025-11-25, the only older revision with URLs, has an ID to report their completion.
    let params = params?;
    if params.member("elicitationId").is_some() {
        return Some(params);
    }
    let name = switchboard_base::random::secret().unwrap_or_else(|| "elicitation".to_owned());
    let named = params.with_member("elicitationId", &Raw::string(&name));
    Some(named.unwrap_or(params))
}

/// The parameters of a question from an older server, for a client of 2026-07-28.
pub(crate) fn question_for_modern(asked: &str, params: Option<Raw>) -> Option<Raw> {
    match params {
        Some(params) if asked == method::ELICITATION => {
            Some(params.without(&["elicitationId", "task"]))
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use switchboard_base::caller::About;
    use switchboard_client::model::LogLevel;

    use super::*;

    fn raw(json: &'static str) -> Raw {
        Raw::parse(json).unwrap()
    }

    fn legacy(level: Option<LogLevel>) -> Guest {
        let params = raw(r#"{"capabilities":{"sampling":{}},"clientInfo":{"name":"c"}}"#);
        let about = About::read(Some(&params), Revision::V2025_06_18);
        Guest::Legacy {
            about: Arc::new(about),
            level,
        }
    }

    #[test]
    fn escaped_members_are_translated() {
        let older = |json| {
            let client = Revision::V2025_06_18;
            let of = method::TOOLS_CALL;
            result(raw(json), of, Revision::LATEST, client, own_info).to_string()
        };
        assert_eq!(older(r#"{"result\u0054ype":"complete"}"#), "{}");
        assert_eq!(
            older(r#"{"content":[{}],"structured\u0043ontent":[1]}"#),
            r#"{"content":[{}]}"#
        );
        let audio = raw(r#"{"content":[{"type":"aud\u0069o","data":"","mimeType":"audio/wav"}]}"#);
        let content = content(audio, Revision::V2024_11_05).to_string();
        assert!(content.contains(r#""type":"text""#), "{content}");
    }

    #[test]
    fn modern_envelope_is_removed_for_older_server() {
        let params = raw(
            r#"{"name":"t","arguments":{"n":1.0},"requestState":"s","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"traceparent":"x","progressToken":7}}"#,
        );
        let sent = request(Some(params), &Guest::Modern, Era::Legacy, true).unwrap();
        assert_eq!(
            sent.as_str(),
            r#"{"name":"t","arguments":{"n":1.0},"_meta":{"traceparent":"x","progressToken":7}}"#
        );
        let bare =
            raw(r#"{"name":"t","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}"#);
        let sent = request(Some(bare), &Guest::Modern, Era::Legacy, true).unwrap();
        assert_eq!(sent.as_str(), r#"{"name":"t"}"#);
    }

    #[test]
    fn older_request_gets_modern_envelope() {
        let sent = request(
            Some(raw(r#"{"name":"t","task":{}}"#)),
            &legacy(Some(LogLevel::Error)),
            Era::Modern,
            false,
        );
        assert_eq!(
            sent.unwrap().as_str(),
            r#"{"name":"t","_meta":{"io.modelcontextprotocol/clientCapabilities":{"sampling":{}},"io.modelcontextprotocol/clientInfo":{"name":"c"},"io.modelcontextprotocol/logLevel":"error"}}"#
        );
    }

    #[test]
    fn capabilities_include_what_a_person_answers() {
        let said = |guest: &Guest, params: &'static str| {
            let sent = request(Some(raw(params)), guest, Era::Modern, true).unwrap();
            let said = sent.member(meta::META).unwrap();
            said.member(meta::CLIENT_CAPABILITIES).unwrap().to_string()
        };
        assert_eq!(
            said(&legacy(None), "{}"),
            r#"{"sampling":{},"elicitation":{"form":{},"url":{}}}"#
        );
        let modern = r#"{"_meta":{"io.modelcontextprotocol/clientCapabilities":{"roots":{},"elicitation":{"form":{}}}}}"#;
        assert_eq!(
            said(&Guest::Modern, modern),
            r#"{"roots":{},"elicitation":{"form":{},"url":{}},"sampling":{}}"#
        );
    }

    #[test]
    fn same_revision_forwards_identical_bytes() {
        let params = raw(r#"{ "name":"t", "_meta":{"x":1} }"#);
        let sent = request(Some(params.clone()), &legacy(None), Era::Legacy, true).unwrap();
        assert_eq!(sent.as_bytes().as_ptr(), params.as_bytes().as_ptr());
        let sent = request(Some(params.clone()), &Guest::Modern, Era::Modern, false).unwrap();
        assert_eq!(sent.as_bytes().as_ptr(), params.as_bytes().as_ptr());
        let same = result(
            params.clone(),
            method::TOOLS_CALL,
            Revision::LATEST,
            Revision::LATEST,
            own_info,
        );
        assert_eq!(same.as_bytes().as_ptr(), params.as_bytes().as_ptr());
    }

    #[test]
    fn results_are_translated_between_eras() {
        let newer = raw(r#"{"content":[],"resultType":"complete","x":1.0}"#);
        let seen = result(
            newer,
            method::TOOLS_CALL,
            Revision::LATEST,
            Revision::LATEST_LEGACY,
            own_info,
        );
        assert_eq!(seen.as_str(), r#"{"content":[],"x":1.0}"#);
        let older = raw(r#"{"contents":[],"x":1.0}"#);
        let seen = result(
            older,
            method::RESOURCES_READ,
            Revision::LATEST_LEGACY,
            Revision::LATEST,
            own_info,
        );
        assert!(seen.as_str().starts_with(
            r#"{"contents":[],"x":1.0,"ttlMs":0,"cacheScope":"private","resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":"#
        ), "{seen}");
    }

    #[test]
    fn modern_members_are_removed_for_older_clients() {
        let older = |json| {
            let of = method::RESOURCES_READ;
            let newer = raw(json);
            result(
                newer,
                of,
                Revision::LATEST,
                Revision::LATEST_LEGACY,
                own_info,
            )
            .to_string()
        };
        assert_eq!(
            older(
                r#"{"contents":[],"ttlMs":5,"cacheScope":"public","resultType":"complete","_meta":{"io.modelcontextprotocol\/serverInfo":{"name":"s"}}}"#
            ),
            r#"{"contents":[]}"#
        );
        assert_eq!(
            older(
                r#"{"contents":[],"_meta":{"a":1.0,"io.modelcontextprotocol/serverInfo":{"name":"s"}}}"#
            ),
            r#"{"contents":[],"_meta":{"a":1.0}}"#
        );
        let same = r#"{"contents":[{"ttl":1}],"_meta":{"a":1.0}}"#;
        assert_eq!(older(same), same);
    }

    #[test]
    fn unsupported_content_becomes_text_for_older_clients() {
        let rich = raw(
            r#"{"content":[{"type":"text","text":"a"},{"type":"resource_link","uri":"x:y","name":"n"},{"type":"audio","data":"AAAA","mimeType":"audio/wav"}]}"#,
        );
        let of = |client| content(rich.clone(), client);
        assert_eq!(of(Revision::V2025_06_18), rich);
        let march = of(Revision::V2025_03_26);
        assert!(march.as_str().contains(r#""text":"n: x:y""#), "{march}");
        assert!(march.as_str().contains(r#""type":"audio""#), "{march}");
        let first = of(Revision::V2024_11_05);
        assert!(first.as_str().contains("audio/wav"), "{first}");
        assert!(!first.as_str().contains(r#""type":"audio""#), "{first}");
    }

    #[test]
    fn structured_content_is_an_object_to_older_clients() {
        let of = |json| {
            result(
                raw(json),
                method::TOOLS_CALL,
                Revision::LATEST,
                Revision::LATEST_LEGACY,
                own_info,
            )
            .to_string()
        };
        assert_eq!(
            of(r#"{"content":[{"type":"text","text":"a"}],"structuredContent":[1]}"#),
            r#"{"content":[{"type":"text","text":"a"}]}"#
        );
        assert_eq!(
            of(r#"{"content":[],"structuredContent":[1]}"#),
            r#"{"content":[{"type":"text","text":"[1]"}]}"#
        );
        let object = r#"{"content":[],"structuredContent":{"a":1}}"#;
        assert_eq!(of(object), object);
    }

    #[test]
    fn error_codes_are_translated_for_the_client() {
        let not_found = |code| {
            ErrorObject::new(code, "no").with_data(Raw::object([("uri", Raw::string("x:y"))]))
        };
        let read = method::RESOURCES_READ;
        assert_eq!(error(not_found(-32002), read, Era::Modern).code, -32602);
        assert_eq!(error(not_found(-32602), read, Era::Legacy).code, -32002);
        assert_eq!(
            error(not_found(-32602), method::TOOLS_CALL, Era::Legacy).code,
            -32602
        );
        for code in [-32020, -32021, -32022] {
            let told = error(ErrorObject::new(code, "no"), read, Era::Legacy).code;
            assert!([-32602, -32603].contains(&told), "{told}");
            let same = error(ErrorObject::new(code, "no"), read, Era::Modern).code;
            assert_eq!(same, code);
        }
    }

    #[test]
    fn escaped_output_schema_is_removed_for_older_clients() {
        let list = raw(
            r#"{"tools":[{"name":"a","output\u0053chema":{"type":"array"}},{"name":"b","\u0065xecution":{"task\u0053upport":"required"}}]}"#,
        );
        assert_eq!(
            readable(list, false).as_str(),
            r#"{"tools":[{"name":"a"},{"name":"b"}]}"#
        );
    }

    #[test]
    fn escaped_kind_marks_a_task() {
        let is_task = |json: &'static str, era| is_task(&Raw::parse(json).unwrap(), era);
        let legacy = r#"{"\u0074ask":{"taskId":"t"}}"#;
        let modern = r#"{"resultType":"t\u0061sk","taskId":"t"}"#;
        // A server may use the name `task` for anything.
        assert!(!is_task(r#"{"task":"build","error":"boom"}"#, Era::Legacy).unwrap());
        assert!(is_task(legacy, Era::Legacy).unwrap());
        assert!(is_task(modern, Era::Modern).unwrap());
        assert!(!is_task(r#"{"content":[]}"#, Era::Legacy).unwrap());
        let unclear = r#"{"resultType":"task","resulttype":"complete"}"#;
        assert!(is_task(unclear, Era::Modern).is_err());
    }
}
