//! `switchboard approvals list`: pending requests, one line each.

use std::fmt::Write as _;

use clap::{Args, builder::PossibleValuesParser};
use jiff::Timestamp;
use switchboard_approvals::Kind;
use switchboard_catalog::escape;
use switchboard_config::Home;
use switchboard_rest::approvals::{Approval, Approvals};
use switchboard_terminal::{
    error::Error,
    print::{self, Table},
};

use super::words;
use crate::link::Link;

/// List pending requests
#[derive(Debug, Args)]
pub(super) struct List {
    /// Include closed requests
    #[arg(long, conflicts_with = "status")]
    all: bool,
    /// Only requests with this status: open, closed, or one such as rejected
    #[arg(long)]
    status: Option<String>,
    /// Only requests of this kind
    #[arg(long, value_parser = PossibleValuesParser::new(Kind::ALL.map(Kind::as_str)))]
    kind: Option<String>,
    /// Only requests that concern this server
    #[arg(long, value_name = "NAME")]
    server: Option<String>,
    /// Number of requests to show, newest first
    #[arg(
        long,
        alias = "lines",
        short = 'n',
        value_name = "N",
        default_value_t = 100
    )]
    limit: usize,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl List {
    pub(super) fn waiting(json: bool) -> Self {
        Self {
            all: false,
            status: None,
            kind: None,
            server: None,
            limit: 100,
            json,
        }
    }

    fn address(&self) -> String {
        let mut address = format!("/api/v1/approvals?limit={}", self.limit);
        let status = match (&self.status, self.all) {
            (Some(status), _) => Some(status.as_str()),
            (None, true) => None,
            (None, false) => Some("pending"),
        };
        for (name, value) in [
            ("status", status),
            ("kind", self.kind.as_deref()),
            ("server", self.server.as_deref()),
        ] {
            if let Some(value) = value {
                // Writing to a string cannot fail.
                let _ = write!(address, "&{name}={}", escape(value));
            }
        }
        address
    }
}

pub(super) fn run(home: &Home, args: &List) -> Result<(), Error> {
    let link = Link::need(home)?;
    if args.json {
        return print::json_raw(&link.get(&args.address())?);
    }
    let Approvals { approvals } = link.get(&args.address())?;
    let is_queue = !args.all && args.status.is_none();
    if approvals.is_empty() {
        let is_filtered = args.status.is_some() || args.kind.is_some() || args.server.is_some();
        if is_filtered {
            print::say("no requests match");
        } else if args.all {
            print::say("there are no requests");
        } else {
            print::say("there are no pending requests");
            print::hint("wait for new ones with `switchboard approvals watch`");
        }
        return Ok(());
    }
    table(&approvals, !is_queue).print()?;
    if let Some(first) = approvals.iter().find(|approval| approval.waits()) {
        advise(first);
    }
    Ok(())
}

fn table(approvals: &[Approval], with_status: bool) -> Table {
    let now = Timestamp::now();
    let mut table = if with_status {
        Table::new(&["ID", "AGE", "STATUS", "KIND", "TARGET", "CLIENT"])
    } else {
        Table::new(&["ID", "AGE", "LEFT", "KIND", "TARGET", "CLIENT"])
    };
    table = table.cut_path(4);
    for approval in approvals {
        table.row([
            approval.id.clone(),
            words::age(approval, now),
            if with_status {
                words::status(approval)
            } else {
                words::left(approval, now)
            },
            words::kind(approval),
            words::place(approval),
            words::client(approval),
        ]);
        table.note(&words::summary(approval));
        if approval.waits() {
            for warning in words::warnings(approval) {
                table.note(&format!("warning: {warning}"));
            }
        }
    }
    table
}

/// Prints a hint about the next step.
pub(super) fn advise(approval: &Approval) {
    let id = print::shell_word(&approval.id);
    print::hint(&format!(
        "`switchboard approvals show {id}` shows the whole request; {}",
        ways(approval)
    ));
}

/// The commands that answer a request.
pub(super) fn ways(approval: &Approval) -> String {
    let id = print::shell_word(&approval.id);
    let one = |what: &str| format!("`switchboard approvals {what}`");
    match &*approval.kind {
        "elicitation" => format!(
            "{} answers it, {} declines it",
            one(&format!("approve {id}")),
            one(&format!("respond {id} --decline"))
        ),
        "sampling" if !approval.is_review() => format!(
            "{} sends it to the model, {} answers in place of the model, {} rejects it",
            one(&format!("approve {id}")),
            one(&format!("respond {id} TEXT")),
            one(&format!("reject {id}"))
        ),
        _ => format!(
            "{} approves it, {} rejects it",
            one(&format!("approve {id}")),
            one(&format!("reject {id}"))
        ),
    }
}
