//! `switchboard call`: one tool, from the command line.

use std::{
    borrow::Cow,
    io::{self, Read as _},
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::{Duration, Instant},
};

use clap::Args;
use serde::Serialize;
use serde_json::{Value, value::RawValue};
use switchboard_config::Home;
use switchboard_wire::Raw;

use super::visible::pretty;
use crate::{failure::Failure, link::Link, print};

/// The longest arguments.
const ARGUMENTS_BYTES: u64 = 16 * 1024 * 1024;

/// Call a tool.
///
/// What it answers is printed as text. If the tool reports an error, the exit code is 1. A server that
/// is starting is waited for, up to a minute.
#[derive(Debug, Args)]
pub(crate) struct Call {
    /// The tool, as `switchboard tools` shows it
    #[arg(value_name = "NAME:TOOL")]
    tool: String,
    /// Its arguments, a JSON object; `-` reads them from standard input
    #[arg(value_name = "JSON", default_value = "{}")]
    arguments: String,
    /// Print the whole result as the tool gave it
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Asked<'a> {
    name: &'a str,
    /// As it was given: numbers keep all their digits.
    arguments: &'a RawValue,
}

/// The parts of a result that are shown, each as the tool spelled it.
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

/// How long a person waits for a server that is starting: the first start of one may fetch it first.
const PATIENCE: Duration = Duration::from_mins(1);
/// After so long it is said what a call may be waiting for.
pub(super) const LONG: Duration = Duration::from_secs(2);
const LOOK_AGAIN: Duration = Duration::from_millis(250);

/// Asks until the server is up, or cannot be.
fn ask(link: &Link, body: &str) -> Result<String, Failure> {
    let until = Instant::now() + PATIENCE;
    let mut told = false;
    loop {
        match link.post_and_wait("/api/v1/tools/call", body) {
            Err(failure)
                if failure.message().starts_with("initializing")
                    // That takes a while, and may never be.
                    && !failure.message().contains("its list cannot be read")
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

/// A call that takes long may wait for whoever made it.
fn tell_who_waits(home: &Home, done: &mpsc::Receiver<()>) {
    if matches!(done.recv_timeout(LONG), Err(RecvTimeoutError::Timeout)) {
        tell_if_asked(home);
    }
}

/// Says that a person is asked, if one is.
pub(super) fn tell_if_asked(home: &Home) {
    let status: Option<Value> = Link::need(home)
        .and_then(|link| link.get("/api/v1/status"))
        .ok();
    if status.is_some_and(|status| status["approvals"].as_u64() > Some(0)) {
        print::say(
            "a person is asked before this goes on; `switchboard approvals` shows what waits",
        );
    }
}

pub(crate) fn run(home: &Home, args: &Call) -> Result<(), Failure> {
    let arguments = arguments(&args.arguments)?;
    let wrong = |error| {
        Failure::usage(format!("the arguments are not JSON: {error}"))
            .hint(r#"give an object such as '{"path": "/tmp"}'"#)
    };
    let arguments: &RawValue = serde_json::from_str(&arguments).map_err(wrong)?;
    if !arguments.get().starts_with('{') {
        return Err(Failure::usage("the arguments are not a JSON object")
            .hint(r#"give an object such as '{"path": "/tmp"}'"#));
    }
    let asked = Asked {
        name: &args.tool,
        arguments,
    };
    let body = serde_json::to_string(&asked).map_err(wrong)?;
    let link = Link::need(home)?;
    let (done, waiting) = mpsc::channel();
    let result = thread::scope(|scope| {
        scope.spawn(move || tell_who_waits(home, &waiting));
        let result = ask(&link, &body);
        drop(done);
        result
    })?;
    let outcome = Raw::parse(result.clone())
        .map_err(|error| Failure::new(format!("the tool's result is not understood: {error}")))?;
    let outcome = Outcome::read(&outcome);
    if args.json {
        print::json_text(&result)?;
    } else {
        print::text(&plain(&outcome))?;
    }
    if outcome.is_error {
        return Err(Failure::new(format!("{} reports an error", args.tool)));
    }
    Ok(())
}

fn arguments(given: &str) -> Result<Cow<'_, str>, Failure> {
    if given != "-" {
        return Ok(given.into());
    }
    let mut text = String::new();
    io::stdin()
        .take(ARGUMENTS_BYTES)
        .read_to_string(&mut text)
        .map_err(|error| Failure::usage(format!("cannot read standard input: {error}")))?;
    Ok(text.trim().to_owned().into())
}

/// The result for a person: its text, and what else there is by kind and size.
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
    use serde_json::json;

    use super::*;

    #[test]
    fn a_result_reads_as_text() {
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
    fn results_of_any_spelling_are_read() {
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
