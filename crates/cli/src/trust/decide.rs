//! `switchboard trust approve` and `reject`. Only what was shown is approved: each decision carries the
//! fingerprint of the definition that was printed, and the gateway refuses it for any other.

use clap::Args;
use serde_json::json;
use switchboard_catalog::escape;
use switchboard_config::Home;
use switchboard_rest::trust::{HeldTool, ServerTrust, ToolTrust};
use switchboard_terminal::{
    error::Error,
    print::{self, shell_word},
};

use super::{Target, list, show, start, words};
use crate::{agree::APPROVE, link::Link, words::count};

/// The most definitions that one request approves.
const AT_ONCE: usize = 500;

/// Approve a held tool, or all held tools of a server.
///
/// Shows each definition and asks first. If a tool changes in the meantime, the new definition is not
/// approved. Without a tool, approves all held tools of the server except rejected ones. For a server that
/// was added over HTTP, shows the command line, asks, and starts the server.
#[derive(Debug, Args)]
pub(super) struct Approve {
    /// Tool or server
    #[arg(value_name = "SERVER[:TOOL]")]
    name: String,
    /// Fingerprint of the definition to approve, even if it is too large to be shown
    #[arg(long, value_name = "HEX", conflicts_with = "all")]
    fingerprint: Option<String>,
    /// Also replace a lost record of approvals (a server without a tool already means all held tools)
    #[arg(long)]
    all: bool,
    /// Do not ask for confirmation
    #[arg(long, short)]
    yes: bool,
}

/// Reject a held tool.
///
/// The tool stays held, and you are not asked again until it changes.
#[derive(Debug, Args)]
pub(super) struct Reject {
    /// Tool to reject
    #[arg(value_name = "SERVER:TOOL")]
    name: String,
}

pub(super) fn approve(home: &Home, args: &Approve) -> Result<(), Error> {
    let link = Link::need(home)?;
    match Target::find(&link, &args.name)? {
        Target {
            server,
            tool: Some(tool),
        } if !args.all => approve_one(&link, server, tool, args),
        Target { tool: None, .. } if args.fingerprint.is_some() => Err(Error::usage(
            "--fingerprint applies to a tool, not to a server",
        )),
        Target { server, tool: None } => approve_many(&link, server, args),
        Target { server, .. } => Err(Error::usage("--all applies to a server, not to a tool")
            .hint(format!(
                "run `switchboard trust approve {} --all`",
                shell_word(server)
            ))),
    }
}

pub(super) fn reject(home: &Home, args: &Reject) -> Result<(), Error> {
    let no_tool = || {
        let name = shell_word(&args.name);
        Error::usage("the name of the tool is missing").hint(format!(
            "write it as {name}:TOOL; `switchboard trust list {name}` shows the held tools"
        ))
    };
    if !args.name.contains(':') {
        return Err(no_tool());
    }
    let link = Link::need(home)?;
    let Target { server, tool } = Target::find(&link, &args.name)?;
    let tool = tool.ok_or_else(no_tool)?;
    let body = json!({ "tool": tool });
    link.post(
        &format!("/api/v1/trust/{}/reject", escape(server)),
        Some(&body),
    )?;
    print::say(&format!(
        "rejected `{}`: it stays held until it changes",
        args.name
    ));
    Ok(())
}

fn approve_one(link: &Link, server: &str, tool: &str, args: &Approve) -> Result<(), Error> {
    let name = &args.name;
    let shown: ToolTrust = super::ask_tool(link, server, tool)?;
    let Some(held) = shown.held else {
        print::say(&format!("`{name}` is already approved"));
        return Ok(());
    };
    print::data(&show::to_decide(&held))?;
    check_shown(&held, args.fingerprint.as_deref())?;
    APPROVE.agree(args.yes, &format!("Approve {}?", print::one_line(name)))?;
    link.post(&address(server), Some(&words::seen(&held)))?;
    print::say(&format!("approved `{name}`"));
    more(&super::ask_one(link, server)?);
    Ok(())
}

fn approve_many(link: &Link, server: &str, args: &Approve) -> Result<(), Error> {
    let trust = super::ask_one(link, server)?;
    if let Some(start) = &trust.start {
        print::data(&start::page(start, server))?;
        APPROVE.agree(args.yes, &format!("Start {server}?"))?;
        let body = json!({ "start": start.fingerprint });
        link.post(&address(server), Some(&body))?;
        print::say(&format!("approved the start of `{server}`"));
        return Ok(());
    }
    let mut pending: Vec<HeldTool> = trust
        .held
        .into_iter()
        .filter(HeldTool::is_pending)
        .collect();
    let begins_anew = args.all && trust.note.is_some();
    if pending.is_empty() && !begins_anew {
        print::say(&format!("`{server}` has no held definitions"));
        return Ok(());
    }
    let tools = count(pending.len() as u64, "definition", "definitions");
    if !pending.is_empty() {
        list::held(pending.iter()).print()?;
        for held in &mut pending {
            super::read_omitted(link, server, held)?;
            if !args.yes {
                print::data(&format!("\n{}", show::to_decide(held)))?;
            }
        }
    }
    APPROVE.agree(args.yes, &format!("Approve {tools} of {server}?"))?;
    let mut seen = Vec::new();
    let mut failed = false;
    for held in &pending {
        match check_shown(held, None) {
            Ok(()) => seen.push(held),
            // The other definitions can still be approved.
            Err(failure) => {
                print::complain(&failure);
                failed = true;
            }
        }
    }
    for some in seen.chunks(AT_ONCE) {
        let tools = some.iter().map(|held| words::seen(held));
        let body = json!({ "tools": tools.collect::<Vec<_>>() });
        link.post(&address(server), Some(&body))?;
    }
    let now = super::ask_one(link, server)?;
    let (changed, done): (Vec<&HeldTool>, Vec<&HeldTool>) = seen
        .into_iter()
        .partition(|seen| now.held.iter().any(|held| held.tool == seen.tool));
    if !done.is_empty() {
        let tools = count(done.len() as u64, "definition", "definitions");
        print::say(&format!("approved {tools} of `{server}`"));
    }
    for held in changed {
        let name = &held.name;
        let failure = Error::new(format!(
            "`{name}` is not approved: it has changed since you reviewed it"
        ));
        let hint = format!("`switchboard trust show {}` shows it", words::word(held));
        print::complain(&failure.hint(hint));
        failed = true;
    }
    if failed {
        return Err(Error::reported());
    }
    // This request approves everything that is held, so it is sent only if nothing is.
    if begins_anew && now.pending().next().is_none() {
        link.post(&address(server), Some(&json!({})))?;
        print::say(&format!("started a new record of approvals for `{server}`"));
    }
    more(&now);
    Ok(())
}

/// Fails for a definition that cannot be shown, unless the user gave its fingerprint.
fn check_shown(held: &HeldTool, fingerprint: Option<&str>) -> Result<(), Error> {
    let name = &held.name;
    match fingerprint {
        Some(given) if given != held.fingerprint => Err(Error::new(format!(
            "`{name}` is not approved: it has a different fingerprint"
        ))
        .hint(format!(
            "`switchboard trust show {}` shows it",
            words::word(held)
        ))),
        None if held.definition.is_none() => Err(Error::new(format!(
            "`{name}` is not approved: its definition is too large to be stored and shown"
        ))
        .hint(format!(
            "read it at its source, then approve it with `switchboard trust approve {} --fingerprint {}`",
            words::word(held),
            shell_word(&held.fingerprint)
        ))),
        _ => Ok(()),
    }
}

/// The path that approves exactly the given definitions.
fn address(server: &str) -> String {
    format!("/api/v1/trust/{}/approve", escape(server))
}

/// Prints a hint if more definitions are held.
fn more(trust: &ServerTrust) {
    let pending = trust.pending().count() as u64;
    if pending > 0 {
        let name = &trust.name;
        print::hint(&format!(
            "`{name}` has {}: `switchboard trust list {}` shows which",
            count(pending, "more held definition", "more held definitions"),
            shell_word(name)
        ));
    }
}
