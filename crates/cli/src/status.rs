//! `switchboard status`: the state of the running gateway.

use std::io;

use clap::Args;
use switchboard_config::Home;
use switchboard_rest::{
    servers::Server,
    status::{Part, Status},
};
use switchboard_terminal::{
    error::Error,
    print::{self, Colour},
};
use switchboard_wire::Raw;

use super::{
    clients, list,
    times::{ago, local},
    words::{self, count},
};
use crate::link::Link;

/// Show the state of the gateway and its servers, and pending work
#[derive(Debug, Args)]
pub struct StatusArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(home: &Home, args: &StatusArgs) -> Result<(), Error> {
    let link = Link::need(home)?;
    let status: Raw = link.get("/api/v1/status")?;
    if args.json {
        return print::json_raw(&status);
    }
    let status: Status = status
        .read_owned()
        .map_err(|error| Error::new(format!("cannot parse the gateway's response: {error}")))?;
    print::data(&attention(&status))?;
    print::data(&summary(&status))?;
    clients::views(&link)?;
    if !status.servers.is_empty() {
        print::data("\n")?;
        list::table(&status.servers, false).print()?;
    }
    list::mention_held(&link, &status)
}

/// Reports that the gateway runs with an earlier configuration than the one in the file.
pub(super) fn mention_kept_configuration(link: &Link) -> Result<(), Error> {
    let status: Status = link.get("/api/v1/status")?;
    if let Some(problem) = &status.config_problem {
        print::warn(&kept_previous(problem));
    }
    Ok(())
}

fn kept_previous(problem: &str) -> String {
    format!(
        "the gateway keeps the previous configuration, because the new one is invalid:\n{problem}"
    )
}

/// The problems that need the user's attention.
fn attention(status: &Status) -> String {
    let mut all = Vec::new();
    if let Some(problem) = &status.config_problem {
        all.push(kept_previous(problem));
    }
    for part in &status.parts {
        // Servers follow below, and the state of the search is in the summary.
        if part.name.starts_with("server:") || is_told(part) {
            continue;
        }
        let words = [part.message.as_deref(), part.note.as_deref()];
        let words: Vec<_> = words.into_iter().flatten().collect();
        if !words.is_empty() || part.state == "error" {
            let (name, state) = (&part.name, &part.state);
            all.push(format!("{name} ({state}): {}", words.join("; ")));
        }
    }
    for server in status.servers.iter().filter(|one| words::needs_user(one)) {
        let (name, state) = (&server.name, &server.health.state);
        all.push(format!("`{name}` is {state}: {}", first(server)));
    }
    if status.approvals > 0 {
        let waiting = count(status.approvals, "request is", "requests are");
        let review = words::review(status.approvals, "switchboard approvals");
        all.push(format!("{waiting} pending; {review}"));
    }
    if all.is_empty() {
        return String::new();
    }
    let out = io::stdout();
    let mut all: Vec<_> = all.iter().map(|one| print::warning(&out, one)).collect();
    if status.servers.iter().any(words::needs_user) {
        let hint = "`switchboard list` shows the full reasons and what to do";
        all.push(print::indented(&out, 0, Colour::Cyan, "hint:", hint));
    }
    all.join("\n") + "\n\n"
}

/// The beginning of a reason: with many servers, there must be room for the others.
fn first(server: &Server) -> String {
    const CHARS: usize = 240;
    let note = words::notes(server).into_iter().next().unwrap_or_default();
    match note.char_indices().nth(CHARS) {
        Some((at, _)) => format!("{}…", note[..at].trim_end()),
        None => note,
    }
}

/// Tests if the summary covers this part: the way tools are found is not a warning.
fn is_told(part: &Part) -> bool {
    is_of_search(part) && part.state != "error"
}

fn is_of_search(part: &Part) -> bool {
    matches!(part.name.as_str(), "search" | "embeddings")
}

/// The state of the tool search.
fn search(status: &Status) -> &str {
    let mut told = status.parts.iter().filter(|part| is_of_search(part));
    let note = told.find_map(|part| match &*part.state {
        "initializing" => Some("starting"),
        _ => part.note.as_deref(),
    });
    note.unwrap_or("not working")
}

fn summary(status: &Status) -> String {
    let listen = match &status.listen {
        Some(address) => format!("http://{address}/mcp"),
        None => "the socket only".to_owned(),
    };
    let held = match status.held {
        0 => String::new(),
        held => format!(" ({held} more held)"),
    };
    let sum = |of: fn(&Server) -> u64| status.servers.iter().map(of).sum::<u64>();
    format!(
        "Switchboard {}, {} since {} ({}), process {}\n\
         listening on  {listen}\n\
         clients       {}\n\
         tools         {}{held}\n\
         search        {}\n\
         calls         {} ({} failed, {} in flight)\n",
        status.version,
        status.state,
        local(&status.started_at),
        ago(&status.started_at).unwrap_or_default(),
        status.pid,
        status.clients,
        status.tools,
        print::one_line(search(status)),
        sum(|server| server.calls),
        sum(|server| server.errors),
        sum(|server| server.in_flight),
    )
}
