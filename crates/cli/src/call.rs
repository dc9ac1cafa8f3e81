//! `switchboard call`: calls one tool.

use std::{
    io::{self, Read as _},
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::{Duration, Instant},
};

use clap::Args;
use jiff::Timestamp;
use serde::{Deserialize, de::IgnoredAny};
use switchboard_base::health::UNREADABLE;
use switchboard_config::Home;
use switchboard_rest::{
    approvals::{Approval, Approvals},
    tools::CallTool,
};
use switchboard_schema::Checker;
use switchboard_terminal::visible::pretty;
use switchboard_terminal::{error::Error, print};
use switchboard_wire::Raw;

use super::{describe, progress::Progress};
use crate::link::{Link, told_problem};

/// The longest arguments, in bytes.
const ARGUMENTS_BYTES: u64 = 16 * 1024 * 1024;

/// Call a tool.
///
/// Arguments are checked against the tool's schema before anything is sent. The result is printed as text. If
/// the tool reports an error, the exit code is 1. If the server is starting, the command waits for up to a
/// minute.
#[derive(Debug, Args)]
pub struct Call {
    /// Tool, as shown by `switchboard tools`
    #[arg(value_name = "SERVER:TOOL")]
    tool: String,
    /// Arguments as KEY=VALUE, or KEY:=JSON for a JSON value; or one JSON object; `-` reads the object from
    /// standard input
    #[arg(value_name = "ARGUMENT")]
    arguments: Vec<String>,
    /// Print the whole result as the tool sent it
    #[arg(long)]
    json: bool,
}

/// The parts of a result that are shown, as the tool spelled them.
struct Outcome {
    content: Vec<Raw>,
    structured: Option<Raw>,
    is_error: bool,
}

impl Outcome {
    fn read(result: &Raw) -> Self {
        let content = result.member("content").and_then(|all| all.elements());
        let is = |name: &str, word: &str| {
            result
                .member(name)
                .is_some_and(|value| value.as_str() == word)
        };
        Self {
            content: content.unwrap_or_default(),
            structured: result
                .member("structuredContent")
                .filter(|_| !is("structuredContent", "null")),
            is_error: is("isError", "true"),
        }
    }
}

/// Time to wait for a server that is starting: the first start may download it.
const PATIENCE: Duration = Duration::from_mins(1);
/// Time after which the command checks if a call waits for an approver.
pub(super) const LONG: Duration = Duration::from_secs(2);
const LOOK_AGAIN: Duration = Duration::from_millis(250);

/// Repeats `ask` until the server is ready, cannot start, or the time is up.
pub(super) fn patiently<T>(mut ask: impl FnMut() -> Result<T, Error>) -> Result<T, Error> {
    let until = Instant::now() + PATIENCE;
    let mut told = false;
    loop {
        match ask() {
            Err(failure)
                if is_starting(&failure)
                    // A list that cannot be read takes a while to recover, and may never do.
                    && !failure.message().contains(UNREADABLE)
                    && Instant::now() < until =>
            {
                if !told {
                    print::say("the server is starting; waiting for it");
                    told = true;
                }
                thread::sleep(LOOK_AGAIN);
            }
            done => return done,
        }
    }
}

fn is_starting(failure: &Error) -> bool {
    failure.message().starts_with("initializing")
}

/// Makes the call, shows its progress, and returns the result.
fn hear(link: &Link, body: &str) -> Result<String, Error> {
    let mut events = link.post_and_hear("/api/v1/tools/call", body)?;
    let mut progress = Progress::new();
    while let Some(event) = events.next()? {
        let text = String::from_utf8_lossy(&event.data).into_owned();
        match event.event.as_deref() {
            Some("progress") => {
                if let Some(said) = words(&text) {
                    progress.show(&said);
                }
            }
            Some("result") => return Ok(text),
            Some("problem") => return Err(told_problem(text)),
            _ => {}
        }
    }
    Err(Error::unreachable("lost the connection to the gateway")
        .hint("check with `switchboard status` that it is running; the call may have completed"))
}

/// The progress of a tool in words: `3 of 10: copying`.
fn words(said: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Said {
        progress: f64,
        total: Option<f64>,
        message: Option<String>,
    }
    let said: Said = serde_json::from_str(said).ok()?;
    let message = said.message.filter(|message| !message.is_empty());
    let words = match (said.total, message) {
        (Some(total), Some(message)) => format!("{} of {total}: {message}", said.progress),
        (Some(total), None) => format!("{} of {total}", said.progress),
        // Without a total, the number says nothing beside a message.
        (None, Some(message)) => message,
        (None, None) => said.progress.to_string(),
    };
    Some(print::one_line(&words))
}

/// Reports that a long call waits for an approver, who may be the user who made it.
fn tell_who_waits(home: &Home, tool: &str, began: Timestamp, done: &mpsc::Receiver<()>) {
    if matches!(done.recv_timeout(LONG), Err(RecvTimeoutError::Timeout)) {
        tell_if_asked(home, |request| is_about(request, tool), began);
    }
}

/// Tests if a request is about a tool of the memory server.
#[cfg(feature = "memory")]
pub(super) fn is_of_memory(request: &Approval) -> bool {
    request.server == switchboard_config::Memory::NAME
}

fn is_about(request: &Approval, tool: &str) -> bool {
    let own = request.tool.as_deref().unwrap_or_default();
    tool.strip_prefix(request.server.as_str())
        .and_then(|rest| rest.strip_prefix(':'))
        == Some(own)
}

/// Tests if a request was made at this time or later, to the millisecond.
fn is_since(request: &Approval, time: Timestamp) -> bool {
    let created = request.created_at.parse::<Timestamp>();
    created.is_ok_and(|created| created.as_millisecond() >= time.as_millisecond())
}

/// Reports a pending request that was made since then and that `is_it` selects.
pub(super) fn tell_if_asked(home: &Home, is_it: impl Fn(&Approval) -> bool, since: Timestamp) {
    let asked = Link::need(home).and_then(|link| link.get("/api/v1/approvals?status=pending"));
    let Ok(Approvals { approvals }) = asked else {
        return;
    };
    let mut approvals = approvals.iter();
    if let Some(request) = approvals.find(|request| is_it(request) && is_since(request, since)) {
        let id = print::shell_word(&request.id);
        print::say("waiting for an approver");
        let decide = match &*request.kind {
            "sampling" | "elicitation" => "respond",
            _ => "approve",
        };
        print::hint(&format!(
            "see `switchboard approvals show {id}`, then run `switchboard approvals {decide} {id}` or `switchboard approvals reject {id}`"
        ));
    }
}

/// Runs the command.
pub fn run(home: &Home, args: &Call) -> Result<(), Error> {
    let given = Given::read(&args.arguments)?;
    let link = Link::need(home)?;
    let arguments = fit(&link, &args.tool, &given)?;
    let asked = CallTool {
        name: args.tool.clone(),
        // The arguments as they were given, so that numbers keep all their digits.
        arguments: Some(arguments),
        project: describe::project(),
        page: false,
        progress: true,
    };
    let body = serde_json::to_string(&asked)
        .map_err(|error| Error::new(format!("cannot write the arguments as JSON: {error}")))?;
    let (done, waiting) = mpsc::channel();
    let began = Timestamp::now();
    let result = thread::scope(|scope| {
        scope.spawn(move || tell_who_waits(home, &args.tool, began, &waiting));
        let result = patiently(|| hear(&link, &body));
        drop(done);
        result
    })?;
    let outcome = Raw::parse(result.clone())
        .map_err(|error| Error::new(format!("cannot parse the tool's result: {error}")))?;
    let outcome = Outcome::read(&outcome);
    if args.json {
        print::json_text(&result)?;
    } else {
        print::text(&plain(&outcome))?;
    }
    if outcome.is_error {
        return Err(Error::new(format!("`{}` reported an error", args.tool)));
    }
    Ok(())
}

/// The arguments from the command line.
#[derive(Debug, PartialEq, Eq)]
enum Given {
    /// A JSON object, sent as it was spelled.
    Object(Raw),
    /// Pairs, whose values get their types from the tool's schema.
    Pairs(Raw),
}

impl Given {
    fn read(words: &[String]) -> Result<Self, Error> {
        match words {
            [] => Ok(Self::Object(Raw::empty_object())),
            [word] if word == "-" => object(&standard_input()?).map(Self::Object),
            [word] if word.trim_start().starts_with(['{', '[']) => object(word).map(Self::Object),
            words => pairs(words).map(Self::Pairs),
        }
    }
}

fn object(text: &str) -> Result<Raw, Error> {
    let object = Raw::parse(text.trim().to_owned()).map_err(|_| {
        let place = serde_json::from_str::<IgnoredAny>(text).err();
        let place =
            place.map(|error| format!(" (line {}, column {})", error.line(), error.column()));
        let place = place.unwrap_or_default();
        Error::usage(format!("the arguments are not valid JSON{place}")).hint(EXAMPLE)
    })?;
    if object.is_object() {
        Ok(object)
    } else {
        Err(Error::usage("the arguments are not a JSON object").hint(EXAMPLE))
    }
}

const EXAMPLE: &str = r#"pass them as path=/tmp, or as an object such as '{"path": "/tmp"}'"#;

fn pairs(words: &[String]) -> Result<Raw, Error> {
    let mut members: Vec<(&str, Raw)> = Vec::new();
    for word in words {
        let wrong = |what: &str| Error::usage(format!("`{word}` {what}")).hint(EXAMPLE);
        let (key, value) = word
            .split_once('=')
            .ok_or_else(|| wrong("is not KEY=VALUE"))?;
        let (key, value) = match key.strip_suffix(':') {
            Some(key) => {
                let value = Raw::parse(value.to_owned());
                (
                    key,
                    value.map_err(|error| wrong(&format!("has an invalid JSON value: {error}")))?,
                )
            }
            None => (key, Raw::string(value)),
        };
        if key.is_empty() {
            return Err(wrong("has no key"));
        }
        if members.iter().any(|(known, _)| *known == key) {
            return Err(Error::usage(format!("`{key}` is given twice"))
                .hint("pass a list as KEY:='[1, 2]'"));
        }
        members.push((key, value));
    }
    Ok(Raw::object(members))
}

fn standard_input() -> Result<String, Error> {
    let mut text = String::new();
    io::stdin()
        .take(ARGUMENTS_BYTES)
        .read_to_string(&mut text)
        .map_err(|error| Error::usage(format!("cannot read standard input: {error}")))?;
    Ok(text)
}

/// The arguments in the types that the tool accepts; a JSON object is sent as it was spelled. While the
/// server is still starting, the schema is not known and the gateway checks them.
fn fit(link: &Link, name: &str, given: &Given) -> Result<Raw, Error> {
    let (Given::Object(arguments) | Given::Pairs(arguments)) = given;
    let tool = match describe::find(link, name) {
        Err(failure) if is_starting(&failure) => return Ok(arguments.clone()),
        tool => tool?,
    };
    let schema = describe::schema(&tool);
    let checker = schema.and_then(|schema| Checker::compile(&schema).ok());
    let Some(checker) = checker else {
        return Ok(arguments.clone());
    };
    let fitting = match given {
        Given::Object(object) => checker.check(object).map(|()| object.clone()),
        Given::Pairs(pairs) => checker.fit(pairs).map(|fit| {
            // The tool may accept the argument under another name.
            if let Some(doubts) = fit.doubts {
                print::warn(&format!("the arguments may be invalid: {doubts}"));
            }
            fit.arguments
        }),
    };
    fitting.map_err(|wrong| {
        let wrong = wrong.to_string().replace('\n', "\n  ");
        let shape = describe::shape(&tool).replace('\n', "\n  ");
        let message =
            format!("the arguments of `{name}` are invalid, so it was not called\n  {wrong}");
        Error::usage(message).hint(format!("expected arguments\n  {shape}"))
    })
}

/// The result as text; other content is described by kind and size.
fn plain(outcome: &Outcome) -> String {
    let mut text = String::new();
    for block in &outcome.content {
        text.push_str(&plain_block(block));
        if !text.ends_with('\n') {
            text.push('\n');
        }
    }
    if outcome.content.is_empty()
        && let Some(structured) = &outcome.structured
    {
        text = pretty(structured);
        text.push('\n');
    }
    text
}

fn plain_block(block: &Raw) -> String {
    let of = |value: &Raw, name: &str| value.member(name).and_then(|text| text.to_text());
    let field = |name: &str| of(block, name);
    let resource = |name: &str| of(&block.member("resource")?, name);
    match (field("type").as_deref(), resource("text")) {
        (Some("text"), _) => field("text").unwrap_or_default(),
        (Some("resource"), Some(text)) => text,
        (Some(kind), _) => {
            let media = field("mimeType").or_else(|| resource("mimeType"));
            let place = field("uri").or_else(|| resource("uri"));
            let bytes = field("data").or_else(|| resource("blob"));
            let bytes = bytes.map(|data| format!("{} bytes", data.len() / 4 * 3));
            let about: Vec<_> = [media, place, bytes].into_iter().flatten().collect();
            format!("[{kind} {}]", about.join(", "))
        }
        (None, _) => block.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn arguments_are_pairs_or_an_object() {
        let read = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
            let given = Given::read(&words).map_err(|failure| failure.message().to_owned());
            given.map(|given| match given {
                Given::Object(raw) => format!("object {raw}"),
                Given::Pairs(raw) => format!("pairs {raw}"),
            })
        };
        for (words, expected) in [
            (&[][..], Ok("object {}")),
            (&[r#"{"a": 1e400}"#], Ok(r#"object {"a": 1e400}"#)),
            (&["a=1", "b=x=y"], Ok(r#"pairs {"a":"1","b":"x=y"}"#)),
            (&["a:=[1, 2]"], Ok(r#"pairs {"a":[1, 2]}"#)),
            (&["a="], Ok(r#"pairs {"a":""}"#)),
            (&["[1]"], Err("the arguments are not a JSON object")),
            (&["a"], Err("`a` is not KEY=VALUE")),
            (&["=b"], Err("`=b` has no key")),
            (&["a=1", "a=2"], Err("`a` is given twice")),
        ] {
            let expected = expected.map(str::to_owned).map_err(str::to_owned);
            assert_eq!(read(words), expected, "{words:?}");
        }
        assert!(
            read(&["a:=x"])
                .unwrap_err()
                .contains("an invalid JSON value")
        );
    }

    #[test]
    fn result_is_printed_as_text() {
        let outcome = |value: Value| Outcome::read(&Raw::from_value(&value).unwrap());
        for (result, expected) in [
            (json!({}), ""),
            (
                json!({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b\n"}]}),
                "a\nb\n",
            ),
            (
                json!({"content": [{"type": "image", "mimeType": "image/png", "data": "AAAA"}]}),
                "[image image/png, 3 bytes]\n",
            ),
            (
                json!({"content": [{"type": "resource", "resource": {"uri": "a:b", "text": "t"}}]}),
                "t\n",
            ),
            (json!({"structuredContent": {"n": 1}}), "{\n  \"n\": 1\n}\n"),
        ] {
            assert_eq!(plain(&outcome(result)), expected);
        }
    }

    #[test]
    fn results_of_any_spelling_are_parsed() {
        let deep = format!("{}1{}", "[".repeat(200), "]".repeat(200));
        for (result, expected) in [
            (
                r#"{"content":[{"type":"text","text":"a\ud800b","n":1e400}],"x":{"x":1,"x":2}}"#,
                "a\u{fffd}b\n",
            ),
            (
                &format!(
                    r#"{{"content":[{{"type":"text","text":"a"}}],"structuredContent":{deep}}}"#
                ),
                "a\n",
            ),
            (r#"{"structuredContent":[1e400]}"#, "[\n  1e400\n]\n"),
        ] {
            let result = Raw::parse(result.to_owned()).unwrap();
            assert_eq!(plain(&Outcome::read(&result)), expected);
        }
    }
}
