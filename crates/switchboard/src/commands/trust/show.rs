//! `switchboard trust show`: one tool with everything that a decision about it needs, or all that are held
//! of a server.

use std::{fmt::Write as _, io};

use clap::Args;
use serde_json::Value;
use switchboard_config::Home;
use switchboard_wire::Raw;

use super::{
    Target,
    definition::readable,
    shapes::{Approved, Finding, Held, Shown},
};
use crate::{
    failure::Failure,
    link::Link,
    print::{self, Colour},
};

/// Show a tool: what changed since it was approved, what is suspicious, what it says.
///
/// Lines that went are marked with -, new ones with +, and the words that changed in them [-so-] and
/// {+so+}. Characters that nobody sees are written as ⟨U+200B⟩. Without a tool, shows all that are
/// held back of the server, or what it would start if that waits for you.
#[derive(Debug, Args)]
pub(super) struct Show {
    /// The tool, or the server
    #[arg(value_name = "NAME[:TOOL]")]
    name: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(home: &Home, args: &Show) -> Result<(), Failure> {
    let link = Link::need(home)?;
    let Target { server, tool } = Target::find(&link, &args.name)?;
    let Some(tool) = tool else {
        return all(&link, server, args);
    };
    if args.json {
        let shown: Value = super::ask_tool(&link, server, tool)?;
        return print::json(&shown);
    }
    let shown: Shown = super::ask_tool(&link, server, tool)?;
    match (&shown.held, &shown.approved) {
        (Some(held), _) => {
            whole(held)?;
            advise(held);
            Ok(())
        }
        (None, Some(tool)) => approved(tool),
        (None, None) => Err(Failure::new(format!("`{}` was never seen", args.name))),
    }
}

/// All that is held back of a server.
fn all(link: &Link, server: &str, args: &Show) -> Result<(), Failure> {
    if args.json {
        let mut answer: Value = super::ask(link, Some(server))?;
        return print::json(&answer["servers"][0].take());
    }
    let trust = super::ask_one(link, server)?;
    if let Some(start) = &trust.start {
        print::data(&start.page(server))?;
        super::start::advise(server);
        return Ok(());
    }
    for (n, held) in trust.held.iter().enumerate() {
        if n > 0 {
            print::data("\n")?;
        }
        if held.omitted {
            title(held)?;
            findings(&held.findings)?;
            let word = held.word();
            let hint = format!("  left out: `switchboard trust show {word}` shows it\n");
            heading("what it says")?;
            print::data(&hint)?;
        } else {
            whole(held)?;
        }
    }
    let mut pending = trust.pending();
    match (pending.next(), pending.next()) {
        (None, _) if trust.held.is_empty() => {
            print::say(&format!("nothing of `{server}` is held back"));
        }
        (None, _) => {}
        (Some(one), None) => advise(one),
        (Some(one), Some(_)) => {
            let (tool, all) = (one.word(), print::shell_word(server));
            print::hint(&format!(
                "`switchboard trust approve {tool}` or `switchboard trust reject {tool}` decides about \
                 one, `switchboard trust approve {all}` approves all that are not rejected"
            ));
        }
    }
    Ok(())
}

/// What a person needs to decide about a tool that is held back: what changed, or all that it says if
/// that is new.
pub(super) fn to_decide(held: &Held) -> Result<(), Failure> {
    changes(held)?;
    match held.diff {
        Some(_) => Ok(()),
        None => definition(held.definition.as_ref()),
    }
}

fn whole(held: &Held) -> Result<(), Failure> {
    changes(held)?;
    definition(held.definition.as_ref())
}

/// Why it is held, what changed in it and what is suspicious.
fn changes(held: &Held) -> Result<(), Failure> {
    title(held)?;
    if let Some(diff) = &held.diff {
        heading("what changed")?;
        print::changes(diff)?;
    } else if held.why == "changed" {
        heading("what changed")?;
        print::data("  the definition is too large for that to be kept\n")?;
    }
    findings(&held.findings)
}

fn title(held: &Held) -> Result<(), Failure> {
    let title = format!("{} is held back: {}", held.title(), held.reason());
    print::data(&format!("{title}\nsince        {}\n", held.since()))?;
    print::data(&format!("fingerprint  {}\n", held.fingerprint))
}

fn approved(tool: &Approved) -> Result<(), Failure> {
    let (name, since) = (print::one_line(&tool.name), tool.since());
    print::data(&format!("{name} is approved\nsince        {since}\n"))?;
    print::data(&format!("fingerprint  {}\n", tool.fingerprint))?;
    findings(&tool.findings)?;
    definition(tool.definition.as_ref())
}

fn findings(findings: &[Finding]) -> Result<(), Failure> {
    if findings.is_empty() {
        return Ok(());
    }
    heading("what is suspicious")?;
    let mut text = String::new();
    for finding in findings {
        let (word, colour) = match finding.severity.as_str() {
            "hidden" => ("hidden", Colour::Red),
            "danger" => ("danger", Colour::Red),
            "warn" => ("warning", Colour::Yellow),
            _ => ("note", Colour::Cyan),
        };
        let word = print::paint(&io::stdout(), colour, word);
        let excerpt = print::one_line(&finding.excerpt);
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {word}: {}\n      {excerpt}", finding.sentence());
    }
    print::data(&text)
}

fn definition(definition: Option<&Raw>) -> Result<(), Failure> {
    heading("what it says")?;
    match definition {
        Some(definition) => print::data(&readable(definition)),
        None => print::data("  it is too large to be kept; only its fingerprint is\n"),
    }
}

fn heading(text: &str) -> Result<(), Failure> {
    print::data(&format!("\n{text}\n"))
}

fn advise(held: &Held) {
    let word = held.word();
    print::hint(&if held.why == "rejected" {
        format!(
            "it stays away until it changes; `switchboard trust approve {word}` lets it in all the same"
        )
    } else {
        format!("`switchboard trust approve {word}` or `switchboard trust reject {word}`")
    });
}
