//! `switchboard approvals`: pending requests and the answers to them.
//!
//! The text of servers and clients is hostile until the user has read it: invisible characters are spelled
//! out, and it is never printed as anything but text.

mod answer;
mod decide;
mod edit;
mod fill;
mod keys;
mod list;
mod rules;
mod show;
mod stream;
mod watch;
mod words;

use clap::{Args, Subcommand};
use serde::de::DeserializeOwned;
use switchboard_catalog::escape;
use switchboard_config::Home;
use switchboard_rest::approvals as rest;
use switchboard_terminal::visible::visible_line;
use switchboard_terminal::{error::Error, print};
use switchboard_wire::Raw;

use crate::link::Link;

/// Review pending requests and answer them.
///
/// Servers may ask for a model's answer or ask you a question, and rules may require your approval before a
/// tool is called. The caller waits until you answer, here or in the console, or until the deadline.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Approvals {
    #[command(subcommand)]
    what: Option<What>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum What {
    #[command(after_long_help = "\
Examples:
  switchboard approvals list
  switchboard approvals list --all --kind tool_call
  switchboard approvals list --status rejected --server files --json")]
    List(list::List),
    #[command(after_long_help = "\
Examples:
  switchboard approvals show k7f3q2mz
  switchboard approvals show k7 --full")]
    Show(show::Show),
    #[command(after_long_help = "\
Examples:
  switchboard approvals approve k7                            show it and ask for confirmation
  switchboard approvals approve k7 --yes --remember session
  switchboard approvals approve k7 --remember always --exact --for 30d
  switchboard approvals approve k7 --arguments '{\"path\": \"/tmp/a\"}' --yes
  switchboard approvals approve k7 --edit                     edit it in $VISUAL or $EDITOR
  switchboard approvals approve q3 --field name=Ada --field age=36")]
    Approve(decide::Approve),
    #[command(after_long_help = "\
Examples:
  switchboard approvals reject k7
  switchboard approvals reject k7 'not in this directory' --remember project")]
    Reject(decide::Reject),
    #[command(after_long_help = "\
Examples:
  switchboard approvals respond s4 'Forty-two.'
  switchboard approvals respond s4 - < answer.txt
  switchboard approvals respond q3 --decline")]
    Respond(answer::Respond),
    #[command(after_long_help = "\
Examples:
  switchboard approvals watch
  switchboard approvals watch --json | jq .kind")]
    Watch(watch::Watch),
    #[command(after_long_help = "\
Examples:
  switchboard approvals rules
  switchboard approvals rules --json")]
    Rules(rules::List),
    #[command(after_long_help = "\
Example:
  switchboard approvals forget r3k9")]
    Forget(rules::Forget),
    #[command(after_long_help = "\
Examples:
  switchboard approvals test 'ask files:delete_*'
  switchboard approvals test 'deny shell:*' --json")]
    Test(rules::Test),
}

/// Runs the command.
pub fn run(home: &Home, args: &Approvals) -> Result<(), Error> {
    match &args.what {
        None => list::run(home, &list::List::waiting(args.json)),
        Some(What::List(args)) => list::run(home, args),
        Some(What::Show(args)) => show::run(home, args),
        Some(What::Approve(args)) => decide::approve(home, args),
        Some(What::Reject(args)) => decide::reject(home, args),
        Some(What::Respond(args)) => answer::run(home, args),
        Some(What::Watch(args)) => watch::run(home, args),
        Some(What::Rules(args)) => rules::list(home, args),
        Some(What::Forget(args)) => rules::forget(home, args),
        Some(What::Test(args)) => rules::test(home, args),
    }
}

/// Characters in a request ID.
const ID_CHARS: usize = 8;
/// The most requests that are searched for an ID prefix.
const LOOKED_AT: usize = 1_000;

/// Resolves an ID prefix to a whole ID: that of an open request, or else of any.
fn find(link: &Link, given: &str) -> Result<String, Error> {
    let given = given.to_ascii_lowercase();
    if given.chars().count() >= ID_CHARS {
        return Ok(given);
    }
    let mut found = Vec::new();
    for status in ["&status=open", ""] {
        let address = format!("/api/v1/approvals?limit={LOOKED_AT}{status}");
        let rest::Approvals { approvals } = link.get(&address)?;
        found = approvals;
        found.retain(|one| !given.is_empty() && one.id.starts_with(&given));
        if !found.is_empty() {
            break;
        }
    }
    match found.as_slice() {
        [] => Err(
            Error::new(format!("there is no request `{}`", visible_line(&given)))
                .hint("check the ID; `switchboard approvals list --all` lists all requests"),
        ),
        [one] => Ok(one.id.clone()),
        many => Err(ambiguous(&given, many)),
    }
}

fn ambiguous(given: &str, many: &[rest::Approval]) -> Error {
    const SHOWN: usize = 10;
    let mut list: Vec<String> = many
        .iter()
        .take(SHOWN)
        .map(|one| {
            format!(
                "  {}  {}  {}",
                one.id,
                words::place(one),
                words::summary(one)
            )
        })
        .collect();
    if many.len() > SHOWN {
        list.push(format!("  and {} more", many.len() - SHOWN));
    }
    let message = format!(
        "the IDs of {} requests begin with {given:?}:\n{}",
        many.len(),
        list.join("\n")
    );
    Error::new(message).hint("use more characters of the ID")
}

/// Fetches one request in full.
fn ask<T: DeserializeOwned>(link: &Link, id: &str) -> Result<T, Error> {
    link.get(&format!("/api/v1/approvals/{}", escape(id)))
}

/// Sends a decision and returns the updated request.
fn send(
    link: &Link,
    id: &str,
    action: &str,
    members: Vec<(&str, Raw)>,
) -> Result<rest::Approval, Error> {
    let body = Raw::object(members);
    // Text from an editor has line breaks; between JSON tokens a space is equivalent.
    let body = body.as_str().replace(['\r', '\n'], " ");
    let address = format!("/api/v1/approvals/{}/{action}", escape(id));
    link.send(&address, &body).map_err(|failure| {
        let id = print::shell_word(id);
        failure.hint(format!("`switchboard approvals show {id}` shows its state"))
    })
}
