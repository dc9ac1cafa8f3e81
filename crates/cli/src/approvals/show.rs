//! `switchboard approvals show`: everything that a decision depends on, warnings first.

use std::{collections::HashSet, fmt::Write as _, io};

use clap::Args;
use jiff::Timestamp;
use switchboard_approvals::form::{self, Field, Form, Mode};
use switchboard_config::Home;
use switchboard_rest::{approvals::Approval, trust::Start};
use switchboard_terminal::{
    error::Error,
    print,
    visible::{folded, pretty, visible, visible_line},
};
use switchboard_wire::Raw;

use super::{list, words};
use crate::{
    link::Link,
    times::local,
    trust::{self, Asked, Definitions},
};

/// Show a request with its content and its outcome.
///
/// Shows who asks and why, the warnings and the content. Invisible characters are spelled out, as ⟨U+200B⟩
/// in text and \u200b in JSON. Long parts are truncated unless --full is given.
#[derive(Debug, Args)]
pub(super) struct Show {
    /// Request ID (a prefix is enough)
    id: String,
    /// Do not truncate
    #[arg(long)]
    full: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The limits of one part of the request without `--full`.
const LINES: usize = 60;
const CHARS: usize = 6_000;
/// The most options of a choice that are listed.
const OPTIONS: usize = 30;

pub(super) fn run(home: &Home, args: &Show) -> Result<(), Error> {
    let link = Link::need(home)?;
    let id = super::find(&link, &args.id)?;
    if args.json {
        return print::json_raw(&super::ask(&link, &id)?);
    }
    let approval: Approval = super::ask(&link, &id)?;
    print::data(&Sight::of(&link, &approval, args.full).text)?;
    if approval.waits() {
        print::hint(&list::ways(&approval));
    }
    Ok(())
}

/// A request as the user sees it.
pub(super) struct Sight {
    pub(super) text: String,
    /// Reasons why a decision must not be based on it: parts that are not shown.
    unread: Vec<String>,
}

impl Sight {
    /// Renders the whole request. The definitions of a trust request are read from the gateway.
    pub(super) fn of(link: &Link, approval: &Approval, full: bool) -> Self {
        let asked = match &*approval.kind {
            "trust" if approval.waits() => asked(&words::request(approval)),
            _ => Vec::new(),
        };
        if asked.is_empty() {
            let mut sight = Self::new(approval, full, None);
            let is_shown =
                approval.kind != "trust" || start_of(&words::request(approval)).is_some();
            if approval.waits() && !is_shown {
                sight.unread.push("the request cannot be read".to_owned());
            }
            return sight;
        }
        match Definitions::read(link, &approval.server, &asked) {
            Ok(definitions) => Self::new(approval, full, Some(definitions)),
            Err(failure) => {
                let mut sight = Self::new(approval, full, None);
                let why = format!("cannot read the held definitions: {}", failure.message());
                // Writing to a string cannot fail.
                let _ = writeln!(sight.text, "\n{}", visible_line(&why));
                sight.unread.push(why);
                sight
            }
        }
    }

    fn new(approval: &Approval, full: bool, definitions: Option<Definitions>) -> Self {
        let mut page = Page {
            text: String::new(),
            full,
            cut: false,
        };
        let (definitions, unread) = match definitions {
            Some(all) => (Some(all.text), all.unread),
            None => (None, Vec::new()),
        };
        page.whole(approval, definitions.as_deref());
        Self {
            text: page.text,
            unread,
        }
    }

    /// Fails if a part that the decision depends on is not shown.
    pub(super) fn check(&self, approval: &Approval) -> Result<(), Error> {
        let Some(first) = self.unread.first() else {
            return Ok(());
        };
        let server = print::shell_word(&approval.server);
        let message = format!("nothing was approved: {}", visible_line(first));
        Err(Error::new(message).hint(format!(
            "`switchboard trust show {server}` shows the definitions that are held now"
        )))
    }
}

struct Page {
    text: String,
    full: bool,
    cut: bool,
}

impl Page {
    fn whole(&mut self, approval: &Approval, definitions: Option<&str>) {
        self.head(approval);
        match &*approval.kind {
            "sampling" => self.sampling(&words::request(approval)),
            "elicitation" => self.form(&Form::read(&words::request(approval))),
            "tool_call" | "prompt" => self.call(approval),
            "trust" => self.trust(&words::request(approval), definitions),
            _ => self.part("request", &pretty(&words::request(approval))),
        }
        if let Some(draft) = &approval.draft {
            self.part("model's answer", &message(draft));
        }
        self.end(approval);
        if self.cut {
            // Writing to a string cannot fail.
            let _ = writeln!(
                self.text,
                "\ntruncated: `switchboard approvals show {} --full` shows everything",
                print::shell_word(&approval.id)
            );
        }
    }

    fn line(&mut self, name: &str, value: &str) {
        if !value.is_empty() {
            // Writing to a string cannot fail.
            let _ = writeln!(self.text, "{name:<10}  {value}");
        }
    }

    /// Adds lines under a heading, truncated unless the user asked for the full text.
    fn part(&mut self, heading: &str, said: &str) {
        let _ = writeln!(self.text, "\n{heading}");
        let mut left = if self.full { usize::MAX } else { CHARS };
        let said = folded(said);
        for (n, line) in said.split('\n').enumerate() {
            if left == 0 || (!self.full && n == LINES) {
                self.cut = true;
                self.text.push_str("  …\n");
                return;
            }
            let most = left.min(line.chars().count());
            let shown: String = line.chars().take(left).collect();
            let more = if shown.len() < line.len() { "…" } else { "" };
            self.cut |= !more.is_empty();
            // An empty line counts, too.
            left = left.saturating_sub(most.max(1));
            let _ = writeln!(self.text, "  {shown}{more}");
        }
    }

    fn head(&mut self, approval: &Approval) {
        let now = Timestamp::now();
        let what = match &*approval.kind {
            "sampling" => "(sampling)",
            "elicitation" => "(question)",
            "tool_call" => "(tool call)",
            "resource" => "(resource)",
            "prompt" => "(prompt)",
            "trust" if start_of(&words::request(approval)).is_some() => "(server start)",
            "trust" => "(held tools)",
            _ => "(request)",
        };
        let _ = writeln!(
            self.text,
            "{}: {} {what}: {}",
            visible_line(&approval.id),
            words::place(approval),
            words::status(approval)
        );
        for warning in words::warnings(approval) {
            let _ = writeln!(self.text, "{}", print::danger(&io::stdout(), 0, &warning));
        }
        self.line("server", &words::server(approval));
        self.line("client", &words::client(approval));
        let asked = format!(
            "{}, {} ago",
            local(&approval.created_at),
            words::age(approval, now)
        );
        self.line("created", &asked);
        if let Some(at) = &approval.escalated_at {
            self.line("escalated", &format!("at {}", local(at)));
        }
        if let (true, Some(at)) = (approval.is_open(), &approval.expires_at) {
            let until = format!("{}, {} left", local(at), words::left(approval, now));
            self.line("expires", &until);
        }
        if let Some(rule) = &approval.rule {
            self.line("rule", &visible_line(rule));
        }
    }

    fn call(&mut self, approval: &Approval) {
        match words::arguments(approval) {
            Some(arguments) => self.part("arguments", &pretty(&arguments)),
            None => self.part("arguments", "none"),
        }
        if let Some(hints) = words::request(approval).member("annotations") {
            self.part("tool annotations", &pretty(&hints));
        }
    }

    fn sampling(&mut self, request: &Raw) {
        // If two members have the same name, readers differ on which one counts.
        if !has_distinct_members(request) {
            return self.part("request", &pretty(request));
        }
        if let Some(text) = request
            .member("systemPrompt")
            .and_then(|text| text.to_text())
        {
            self.part("system prompt", &visible(&text));
        }
        let messages = request.member("messages").and_then(|all| all.elements());
        for said in messages.unwrap_or_default() {
            let role = said.member("role").and_then(|role| role.to_text());
            let role = visible_line(role.as_deref().unwrap_or("unknown"));
            self.part(&format!("message from {role}"), &message(&said));
        }
        let rest = request.without(&["systemPrompt", "messages", "_meta"]);
        if rest.members().is_some_and(|rest| !rest.is_empty()) {
            self.part("settings", &pretty(&rest));
        }
    }

    fn form(&mut self, form: &Form) {
        self.part("message", &visible(&form.message));
        match &form.mode {
            Mode::Form { fields } => {
                for field in fields {
                    let name = visible_line(&field.name);
                    self.part(&format!("field {name}"), &about(field));
                }
            }
            Mode::Raw { why } => {
                let why = visible_line(why);
                self.part("answer as JSON", &why);
            }
            Mode::Url(address) => {
                let said = format!(
                    "{}\nhost  {}\nSwitchboard does not open it: check the host, and open it yourself if you trust it",
                    visible_line(&address.url),
                    visible_line(&address.host)
                );
                self.part("address to open", &said);
            }
            Mode::Refused { why } => self.part("can only be declined", &visible_line(why)),
        }
    }

    /// Adds the definitions as they are held now, or as the request describes them.
    fn trust(&mut self, request: &Raw, definitions: Option<&str>) {
        if let Some(start) = start_of(request) {
            self.part("command to start", trust::start_lines(&start).trim_end());
        }
        if let Some(definitions) = definitions {
            self.text.push_str(definitions);
            return;
        }
        let tools = request.member("tools").and_then(|tools| tools.elements());
        for tool in tools.unwrap_or_default() {
            let text = |name: &str| tool.member(name).and_then(|text| text.to_text());
            let name = visible_line(&text("name").unwrap_or_default());
            let mut said = format!(
                "reason       {}\nfingerprint  {}",
                visible_line(&text("why").unwrap_or_default()),
                visible_line(&text("fingerprint").unwrap_or_default())
            );
            if let Some(diff) = text("diff") {
                let _ = write!(said, "\n{}", visible(diff.trim_end()));
            }
            let truncated = tool.member("truncated");
            if truncated.is_some_and(|cut| cut.as_str() == "true") {
                said.push_str("\nthe request does not contain the whole change");
            }
            self.part(&format!("tool {name}"), &said);
        }
        if let Some(instructions) = request.member("instructions") {
            let said = match instructions.to_text() {
                Some(text) => visible(&text),
                None => pretty(&instructions),
            };
            self.part("instructions", &said);
        }
    }

    /// Adds the outcome.
    fn end(&mut self, approval: &Approval) {
        if let Some(decision) = &approval.decision {
            let mut said = words::decision(decision);
            if let Some(remember) = &decision.remember {
                // Serializing plain data cannot fail.
                let remember = serde_json::to_string(remember).unwrap_or_default();
                let _ = write!(said, "\nremembered: {}", visible_line(&remember));
            }
            self.part("decision", &said);
            if let Some(edits) = &decision.edits {
                self.part("edits", &pretty(edits));
            }
        }
        if let Some(result) = &approval.result {
            let said = match &*approval.kind {
                "sampling" => message(result),
                _ => pretty(result),
            };
            self.part("answer", &said);
        }
        if let Some(error) = &approval.error {
            self.part("error sent to the caller", &visible(error));
        }
        if let Some(usage) = &approval.usage {
            let tokens = |many: Option<u64>| many.map_or("?".to_owned(), |many| many.to_string());
            let mut said = format!(
                "{}: {} tokens in, {} out, {:.1} s",
                visible_line(&usage.model),
                tokens(usage.input_tokens),
                tokens(usage.output_tokens),
                usage.seconds
            );
            if let Some(cost) = usage.cost {
                let _ = write!(said, ", cost {cost}");
            }
            self.part("model", &said);
        }
        if let Some(at) = &approval.delivered_at {
            self.part("delivered", &local(at));
        }
    }
}

/// Tests if the members of an object have distinct names, also to readers that ignore case.
fn has_distinct_members(value: &Raw) -> bool {
    let members = value.members().unwrap_or_default();
    let mut seen = HashSet::new();
    members
        .iter()
        .all(|(name, _)| seen.insert(name.to_lowercase().to_uppercase()))
}

/// The text of a message; other content is described by kind and size.
fn message(said: &Raw) -> String {
    let content = said.member("content");
    let Some(content) = content.filter(|_| has_distinct_members(said)) else {
        return pretty(said);
    };
    let blocks = content.elements().unwrap_or_else(|| vec![content]);
    let blocks: Vec<String> = blocks.iter().map(block).collect();
    blocks.join("\n")
}

fn block(block: &Raw) -> String {
    let text = |name: &str| block.member(name).and_then(|text| text.to_text());
    match text("type")
        .filter(|_| has_distinct_members(block))
        .as_deref()
    {
        Some("text") => visible(&text("text").unwrap_or_default()),
        Some(kind @ ("image" | "audio")) => {
            let bytes = text("data").unwrap_or_default().len() / 4 * 3;
            let media = visible_line(&text("mimeType").unwrap_or_default());
            format!("[{kind} {media}, {bytes} bytes]")
        }
        _ => pretty(block),
    }
}

/// The description of a field and the values that it accepts.
pub(super) fn about(field: &Field) -> String {
    let mut said = String::new();
    for text in [&field.title, &field.description].into_iter().flatten() {
        said.push_str(&visible(text));
        said.push('\n');
    }
    said.push_str(&takes(field));
    said.push_str(if field.required {
        ", required"
    } else {
        ", optional"
    });
    if let Some(default) = &field.default {
        let _ = write!(said, "\ndefault: {}", pretty(default));
    }
    if let form::Kind::Choice { options } | form::Kind::Choices { options, .. } = &field.kind {
        for option in options.iter().take(OPTIONS) {
            let value = visible_line(&option.value);
            let _ = write!(said, "\n  {value}");
            if option.title != option.value {
                let _ = write!(said, "  {}", visible_line(&option.title));
            }
        }
        if options.len() > OPTIONS {
            let _ = write!(said, "\n  and {} more", options.len() - OPTIONS);
        }
    }
    said
}

fn takes(field: &Field) -> String {
    fn bounds<T: std::fmt::Display>(min: Option<T>, max: Option<T>) -> String {
        match (min, max) {
            (Some(min), Some(max)) => format!(", {min} to {max}"),
            (Some(min), None) => format!(", at least {min}"),
            (None, Some(max)) => format!(", at most {max}"),
            (None, None) => String::new(),
        }
    }
    match &field.kind {
        form::Kind::Text {
            format,
            min,
            max,
            pattern,
        } => {
            let mut said = match format {
                Some(form::Format::Email) => "an email address".to_owned(),
                Some(form::Format::Uri) => "a URI".to_owned(),
                Some(form::Format::Date) => "a date, such as 2026-12-31".to_owned(),
                Some(form::Format::DateTime) => {
                    "a date and time, such as 2026-12-31T23:59:59Z".to_owned()
                }
                Some(form::Format::Other(other)) => format!("text ({})", visible_line(other)),
                None => "text".to_owned(),
            };
            let bounds = bounds(*min, *max);
            if !bounds.is_empty() {
                said.push_str(&bounds);
                said.push_str(" characters");
            }
            if let Some(pattern) = pattern {
                let _ = write!(said, ", matching {}", visible_line(pattern));
            }
            said
        }
        form::Kind::Number { integer, min, max } => {
            let what = if *integer {
                "a whole number"
            } else {
                "a number"
            };
            format!("{what}{}", bounds(*min, *max))
        }
        form::Kind::Flag => "yes or no".to_owned(),
        form::Kind::Choice { .. } => "one of these".to_owned(),
        form::Kind::Choices { min, max, .. } => {
            format!("some of these, separated by commas{}", bounds(*min, *max))
        }
    }
}

/// The definitions that a trust request is about.
fn asked(request: &Raw) -> Vec<Asked> {
    let tools = request.member("tools").and_then(|tools| tools.elements());
    let tools = tools.unwrap_or_default().into_iter();
    // A definition that cannot be parsed has no fingerprint, so it counts as not shown.
    tools
        .map(|tool| tool.read_owned().unwrap_or_default())
        .collect()
}

/// The server start that a trust request is about, if any.
fn start_of(request: &Raw) -> Option<Start> {
    request.member("start")?.read_owned().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(approval: &str) -> String {
        let approval: Approval = serde_json::from_str(approval).unwrap();
        Sight::new(&approval, false, None).text
    }

    #[test]
    fn held_tools_are_shown_with_their_changes() {
        let text = shown(
            r#"{"id":"aaaaaaaa","kind":"trust","status":"pending","server":"sky","summary":"s",
                "createdAt":"2026-07-28T12:00:00Z","warnings":["hidden\u200b"],"request":{"tools":[
                {"name":"add\u202e","fingerprint":"f00","why":"changed","diff":"description\n  - One\u001b[2J.\n  + Two.\n"}],
                "instructions":"Do\u200b this."}}"#,
        );
        for part in [
            "aaaaaaaa: sky (held tools): pending\nwarning: hidden⟨U+200B⟩\n",
            "\ntool add⟨U+202E⟩\n  reason       changed\n  fingerprint  f00\n",
            "  description\n    - One⟨U+001B⟩[2J.\n    + Two.\n",
            "\ninstructions\n  Do⟨U+200B⟩ this.\n",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn start_is_shown_with_its_settings() {
        let text = shown(
            r#"{"id":"aaaaaaaa","kind":"trust","status":"pending","server":"sky","summary":"s",
                "createdAt":"2026-07-28T12:00:00Z","request":{"tools":[],"start":
                {"program":"sh -c 'a b'","fingerprint":"f00","settings":{"env":{"NODE_OPTIONS":"-r ./x.js"}}}}}"#,
        );
        for part in [
            "aaaaaaaa: sky (server start): pending\n",
            "\ncommand to start\n  program      sh -c 'a b'\n  fingerprint  f00\n",
            "  env          NODE_OPTIONS='-r ./x.js'\n",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn duplicate_members_are_all_shown() {
        let ask = |kind: &str, rest: &str| {
            shown(&format!(
                r#"{{"id":"aaaaaaaa","kind":"{kind}","status":"pending","server":"sky","summary":"s",
                    "createdAt":"2026-07-28T12:00:00Z",{rest}}}"#
            ))
        };
        let long = "x".repeat(5_000);
        for (kind, rest) in [
            (
                "tool_call",
                format!(r#""argumentsText":"{{\"a\":\"one\",\"a\":\"two\",\"A\":\"{long}three\"}}""#),
            ),
            (
                "sampling",
                r#""request":{"systemPrompt":"one","systemPrompt":"two","SystemPrompt":"three"}"#.to_owned(),
            ),
            (
                "sampling",
                r#""request":{"messages":[{"role":"user","content":{"type":"text","text":"one","text":"two","Text":"three"}}]}"#
                    .to_owned(),
            ),
            (
                "sampling",
                r#""request":{"messages":[{"role":"user","content":{"type":"text","text":"one"},"content":"two","Content":"three"}]}"#
                    .to_owned(),
            ),
        ] {
            let text = ask(kind, &rest);
            for part in ["one", "two", "three"] {
                assert!(text.contains(part), "{part}: {text}");
            }
        }
    }

    #[test]
    fn malformed_requests_are_still_shown() {
        for request in [
            "null",
            "[]",
            r#"{"messages":{"role":1},"tools":7,"message":[],"arguments":"x"}"#,
            r#"{"messages":[1,{"role":"\u001b","content":[{"type":"text"},{"type":"image"},{}]}]}"#,
            r#"{"tools":[null,{"name":3}],"requestedSchema":5}"#,
            r#"{"start":{"program":"\u001b","fingerprint":"\u0007","settings":{"\u202e":["\u001b"]}}}"#,
        ] {
            for kind in [
                "sampling",
                "elicitation",
                "tool_call",
                "resource",
                "prompt",
                "trust",
                "else",
            ] {
                let text = shown(&format!(
                    r#"{{"id":"a","kind":"{kind}","status":"odd\u001b","server":"\u202e","summary":"",
                        "createdAt":"never","request":{request},"argumentsText":"no JSON","draft":{request},
                        "result":{request},"usage":{{"model":"\u0007","seconds":1e300}}}}"#
                ));
                assert!(!text.contains(['\u{1b}', '\u{202e}', '\u{7}']), "{text:?}");
            }
        }
    }
}
