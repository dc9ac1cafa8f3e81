//! `switchboard approvals respond`: answers in place of the model, or declines a question.

use std::io::{self, Read as _};

use clap::Args;
use switchboard_config::Home;
use switchboard_rest::approvals::Approval;
use switchboard_terminal::error::Error;
use switchboard_wire::Raw;

use super::{
    decide::{over, told},
    words,
};
use crate::link::Link;

/// The longest answer, in bytes.
const TEXT_BYTES: u64 = 1024 * 1024;

/// Answer in place of the model, or decline a question.
///
/// To answer a question, use `switchboard approvals approve`.
#[derive(Debug, Args)]
pub(super) struct Respond {
    /// Request ID (a prefix is enough)
    id: String,
    /// Answer in place of the model; `-` reads it from standard input
    #[arg(required_unless_present_any = ["decline", "cancel"], conflicts_with_all = ["decline", "cancel"])]
    text: Option<String>,
    /// Decline the question
    #[arg(long, conflicts_with = "cancel")]
    decline: bool,
    /// Cancel the question: neither answer nor decline it
    #[arg(long)]
    cancel: bool,
}

pub(super) fn run(home: &Home, args: &Respond) -> Result<(), Error> {
    let link = Link::need(home)?;
    let id = super::find(&link, &args.id)?;
    if args.decline || args.cancel {
        return decline(&link, &id, args.cancel);
    }
    let approval: Approval = super::ask(&link, &id)?;
    if !approval.waits() {
        return Err(over(&approval));
    }
    if approval.kind != "sampling" {
        let kind = words::described(&approval);
        let message = format!("`{id}` is {kind}, not a sampling request");
        return Err(Error::usage(message).hint(format!(
            "decide it with `switchboard approvals approve {id}` or `switchboard approvals reject {id}`"
        )));
    }
    let text = match args.text.as_deref().unwrap_or_default() {
        "-" => from_input()?,
        text => text.to_owned(),
    };
    if text.trim().is_empty() {
        return Err(Error::usage("the answer is empty"));
    }
    let members = vec![("text", Raw::string(&text))];
    told(&super::send(&link, &id, "respond", members)?);
    Ok(())
}

/// Declines or cancels a question.
pub(super) fn decline(link: &Link, id: &str, cancel: bool) -> Result<(), Error> {
    let action = if cancel { "cancel" } else { "decline" };
    let members = vec![("action", Raw::string(action))];
    told(&super::send(link, id, "respond", members)?);
    Ok(())
}

fn from_input() -> Result<String, Error> {
    let mut text = String::new();
    io::stdin()
        .take(TEXT_BYTES + 1)
        .read_to_string(&mut text)
        .map_err(|error| Error::usage(format!("cannot read standard input: {error}")))?;
    if text.len() as u64 > TEXT_BYTES {
        return Err(Error::usage("the answer is longer than 1 MiB"));
    }
    Ok(text)
}
