//! `switchboard trust show`: one tool with everything that a decision about it needs, or all held tools of a
//! server.

use std::{fmt::Write as _, io};

use clap::Args;
use switchboard_config::Home;
use switchboard_rest::trust::{ApprovedTool, Finding, HeldTool, ToolTrust};
use switchboard_terminal::{
    error::Error,
    print::{self, Colour},
    visible::folded,
};
use switchboard_wire::Raw;

use super::{Target, definition::readable, start, words};
use crate::{link::Link, times::local_millis};

/// Show a tool, its changes since approval, and its findings.
///
/// Removed lines are marked with -, new ones with +, and changed words within lines as [-old-] and {+new+}.
/// Invisible characters are written as ⟨U+200B⟩. Without a tool, shows all held tools of the server, or its
/// command line if the start needs your approval.
#[derive(Debug, Args)]
pub(super) struct Show {
    /// Tool or server
    #[arg(value_name = "SERVER[:TOOL]")]
    name: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(home: &Home, args: &Show) -> Result<(), Error> {
    let link = Link::need(home)?;
    let Target { server, tool } = Target::find(&link, &args.name)?;
    let Some(tool) = tool else {
        return all(&link, server, args);
    };
    if args.json {
        return print::json_raw(&super::ask_tool(&link, server, tool)?);
    }
    let shown: ToolTrust = super::ask_tool(&link, server, tool)?;
    match (&shown.held, &shown.approved) {
        (Some(held), _) => {
            print::data(&whole(held))?;
            advise(held);
            Ok(())
        }
        (None, Some(tool)) => print::data(&approved(tool)),
        (None, None) => Err(
            Error::new(format!("there is no definition `{}`", args.name))
                .hint("`switchboard trust list` lists the held definitions"),
        ),
    }
}

/// Shows everything that is held of a server.
fn all(link: &Link, server: &str, args: &Show) -> Result<(), Error> {
    if args.json {
        let answer: Raw = super::ask(link, Some(server))?;
        let servers = answer.member("servers").and_then(|all| all.elements());
        let first = servers.and_then(|all| all.into_iter().next());
        return print::json_raw(&first.ok_or_else(|| super::gone(server))?);
    }
    let trust = super::ask_one(link, server)?;
    if let Some(start) = &trust.start {
        print::data(&start::page(start, server))?;
        start::advise(server);
        return Ok(());
    }
    for (n, held) in trust.held.iter().enumerate() {
        if n > 0 {
            print::data("\n")?;
        }
        if held.omitted {
            let (title, findings) = (title(held), findings(&held.findings));
            let word = words::word(held);
            print::data(&format!(
                "{title}{findings}{WHAT_IT_SAYS}  omitted: `switchboard trust show {word}` shows it\n"
            ))?;
        } else {
            print::data(&whole(held))?;
        }
    }
    let mut pending = trust.pending();
    match (pending.next(), pending.next()) {
        (None, _) if trust.held.is_empty() => {
            print::say(&format!("`{server}` has no held definitions"));
        }
        (None, _) => {}
        (Some(one), None) => advise(one),
        (Some(one), Some(_)) => {
            let (tool, all) = (words::word(one), print::shell_word(server));
            print::hint(&format!(
                "run `switchboard trust approve {tool}` or `switchboard trust reject {tool}` to decide on \
                 one, or `switchboard trust approve {all}` to approve all that are not rejected"
            ));
        }
    }
    Ok(())
}

/// Everything that a decision about a held definition needs: its changes, or its full text if it is new or
/// the changes are incomplete.
pub(super) fn to_decide(held: &HeldTool) -> String {
    if !held.changes.is_empty() && !held.changes.iter().any(words::is_cut) {
        return changes(held);
    }
    whole(held)
}

const WHAT_CHANGED: &str = "\nchanges\n";
const WHAT_IT_SAYS: &str = "\ndefinition\n";

fn whole(held: &HeldTool) -> String {
    changes(held) + &definition(held.definition.as_ref())
}

/// The reason why it is held, its changes and its findings.
fn changes(held: &HeldTool) -> String {
    let mut text = title(held);
    if let Some(diff) = held.diff.as_ref().filter(|diff| !diff.is_empty()) {
        text.push_str(WHAT_CHANGED);
        text.push_str(&print::changes(&folded(diff)));
    } else if held.diff.is_none() && held.why == "changed" {
        text.push_str(WHAT_CHANGED);
        text.push_str("  the definition is too large to store its changes\n");
    }
    text + &findings(&held.findings)
}

fn title(held: &HeldTool) -> String {
    let (title, reason) = (words::title(held), words::reason(held));
    let (since, fingerprint) = (local_millis(held.since_ms), &held.fingerprint);
    format!("{title} is held: {reason}\nsince        {since}\nfingerprint  {fingerprint}\n")
}

fn approved(tool: &ApprovedTool) -> String {
    let (name, since) = (print::one_line(&tool.name), local_millis(tool.at_ms));
    format!(
        "{name} is approved\nsince        {since}\nfingerprint  {}\n{}{}",
        tool.fingerprint,
        findings(&tool.findings),
        definition(tool.definition.as_ref())
    )
}

fn findings(findings: &[Finding]) -> String {
    if findings.is_empty() {
        return String::new();
    }
    let mut text = "\nfindings\n".to_owned();
    for finding in findings {
        let (word, colour) = match &*finding.severity {
            "hidden" => ("hidden:", Colour::Red),
            "danger" => ("danger:", Colour::Red),
            "warn" => ("warning:", Colour::Yellow),
            _ => ("note:", Colour::Cyan),
        };
        let out = io::stdout();
        let sentence = print::indented(&out, 2, colour, word, &words::finding(finding));
        let excerpt = format!("      {}", print::one_line(&finding.excerpt));
        let excerpt = print::fitted(&out, &excerpt, 0, 0);
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{sentence}\n{excerpt}");
    }
    text
}

fn definition(definition: Option<&Raw>) -> String {
    let says = match definition {
        Some(definition) => folded(&readable(definition)),
        None => "  too large to be stored; only its fingerprint is known\n".to_owned(),
    };
    format!("{WHAT_IT_SAYS}{says}")
}

fn advise(held: &HeldTool) {
    let word = words::word(held);
    print::hint(&if held.why == "rejected" {
        format!(
            "it stays held until it changes; to show it anyway, run `switchboard trust approve {word}`"
        )
    } else {
        format!("run `switchboard trust approve {word}` or `switchboard trust reject {word}`")
    });
}
