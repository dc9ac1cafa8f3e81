//! `switchboard activity`: recent calls through the gateway, with the errors of failed ones.

use std::fmt::Write as _;

use clap::Args;
use switchboard_catalog::escape;
use switchboard_config::Home;
use switchboard_rest::activity::{Activity, Call};
use switchboard_terminal::visible::visible_line;
use switchboard_terminal::{
    error::Error,
    print::{self, Cell, Colour, Table},
};
use switchboard_wire::{Raw, method};

use super::{
    times::{local, took},
    trust::Target,
};
use crate::link::Link;

/// List recent calls and the errors of failed ones.
///
/// Shows the client, the duration (without waits for approval) and the error of each call. Errors are
/// redacted, and truncated if they are long.
#[derive(Debug, Args)]
pub struct ActivityArgs {
    /// Only calls to this server or tool
    #[arg(value_name = "SERVER[:TOOL]")]
    target: Option<String>,
    /// Only calls that failed or timed out
    #[arg(long)]
    failed: bool,
    /// Only calls with this text in their server, tool, client or error
    #[arg(long, value_name = "TEXT")]
    search: Option<String>,
    /// Number of calls to show
    #[arg(long, alias = "lines", short = 'n', value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

fn what(call: &Call) -> String {
    match &*call.method {
        method::TOOLS_CALL => format!("{}:{}", call.server, call.name),
        method => [method, &call.server, &call.name].join(" "),
    }
}

/// The text and the colour of an outcome.
fn outcome(call: &Call) -> (String, Option<Colour>) {
    let colour = match &*call.outcome {
        "ok" => Some(Colour::Green),
        "cancelled" => Some(Colour::Dim),
        "timeout" => Some(Colour::Yellow),
        _ => Some(Colour::Red),
    };
    (call.outcome.replace('_', " "), colour)
}

/// Runs the command.
pub fn run(home: &Home, args: &ActivityArgs) -> Result<(), Error> {
    let link = Link::need(home)?;
    let target = args.target.as_deref();
    let target = target.map(|name| Target::find(&link, name)).transpose()?;
    let answer: Raw = link.get(&address(args, target.as_ref()))?;
    if args.json {
        return print::json_raw(&answer);
    }
    let Activity { activity } = answer
        .read_owned()
        .map_err(|error| Error::new(format!("cannot parse the gateway's response: {error}")))?;
    if activity.is_empty() {
        // A removed server may still have calls, so the name is checked only if there are none.
        if let Some(target) = &target {
            let _: Raw = link.get(&format!("/api/v1/servers/{}", escape(target.server)))?;
        }
        let is_narrowed = args.target.is_some() || args.failed || args.search.is_some();
        print::say(if is_narrowed {
            "no calls match"
        } else {
            "there are no calls yet"
        });
        return Ok(());
    }
    table(&activity).print()
}

fn address(args: &ActivityArgs, target: Option<&Target<'_>>) -> String {
    let mut address = format!("/api/v1/activity?limit={}", args.limit);
    let mut only = |name, value: &str| {
        // Writing to a string cannot fail.
        let _ = write!(address, "&{name}={}", escape(value));
    };
    if let Some(Target { server, tool }) = target {
        only("server", server);
        if let Some(tool) = tool {
            only("name", tool);
        }
    }
    if args.failed {
        only("outcome", "tool_error,error,timeout");
    }
    if let Some(text) = &args.search {
        only("text", text);
    }
    address
}

/// The client, and its principal if that is not the owner.
fn client(call: &Call) -> String {
    match &*call.principal {
        "" | "owner" => call.client.clone(),
        principal => format!("{} ({principal})", call.client),
    }
}

/// Lists the newest call last, next to the shell prompt.
fn table(calls: &[Call]) -> Table {
    let heading = ["TIME", "CLIENT", "CALL", "DURATION", "OUTCOME"];
    let mut table = Table::new(&heading).cut_path(2);
    for call in calls.iter().rev() {
        let (outcome, colour) = outcome(call);
        table.row([
            local(&call.at).into(),
            visible_line(&client(call)).into(),
            visible_line(&what(call)).into(),
            took(call.duration_ms - call.waited_ms).into(),
            Cell::coloured(&outcome, colour),
        ]);
        if call.waited_ms > 0.0 {
            table.note(&format!("waited {} for an approver", took(call.waited_ms)));
        }
        if let Some(error) = &call.error {
            table.note(&visible_line(error));
        }
    }
    table
}
