//! `switchboard status`: how the running gateway is.

use clap::Args;
use serde::Deserialize;
use serde_json::Value;
use switchboard_config::Home;

use super::{list, shapes::Status};
use crate::{failure::Failure, link::Link, print};

/// Show how the gateway is: since when it runs, where, and what of it needs attention.
#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(home: &Home, args: &StatusArgs) -> Result<(), Failure> {
    let status: Value = Link::need(home)?.get("/api/v1/status")?;
    if args.json {
        return print::json(&status);
    }
    let status = Status::deserialize(&status).map_err(|error| {
        Failure::new(format!("the gateway's status is not understood: {error}"))
    })?;
    print::data(&summary(&status))?;
    for part in &status.parts {
        // Servers have a line of their own below.
        if part.name.starts_with("server:") {
            continue;
        }
        let words = [part.message.as_deref(), part.note.as_deref()];
        let words: Vec<_> = words.into_iter().flatten().collect();
        if !words.is_empty() || part.state == "error" {
            print::warn(&format!(
                "{} ({}): {}",
                part.name,
                part.state,
                words.join("; ")
            ));
        }
    }
    if let Some(problem) = &status.config_problem {
        print::warn(&format!(
            "the configuration was changed and cannot be applied; the one before stays\n{problem}"
        ));
    }
    if status.servers.is_empty() {
        return Ok(());
    }
    print::data("\n")?;
    list::table(&status.servers).print()
}

fn summary(status: &Status) -> String {
    let listen = match &status.listen {
        Some(address) => format!("http://{address}/mcp"),
        None => "its socket only".to_owned(),
    };
    let sum = |of: fn(&super::shapes::Server) -> u64| status.servers.iter().map(of).sum::<u64>();
    format!(
        "Switchboard {}, {} since {} (process {})\n\
         listening on  {listen}\n\
         clients       {}\n\
         tools         {}\n\
         calls         {} ({} failed, {} under way)\n",
        status.version,
        status.state,
        status.started_at,
        status.pid,
        status.clients,
        status.tools,
        sum(|server| server.calls),
        sum(|server| server.errors),
        sum(|server| server.in_flight),
    )
}
