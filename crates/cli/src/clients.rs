//! `switchboard clients`: the clients that are connected to the gateway.

use clap::Args;
use switchboard_config::Home;
use switchboard_rest::status::{self, Client};
use switchboard_terminal::{
    error::Error,
    print::{self, Table},
    visible::visible_line,
};
use switchboard_wire::Raw;

use super::{
    list::short_path,
    times::{ago, local},
    words::count,
};
use crate::link::Link;

/// List the connected clients and their views
#[derive(Debug, Args)]
pub struct Clients {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(home: &Home, args: &Clients) -> Result<(), Error> {
    let link = Link::need(home)?;
    let answer: Raw = link.get("/api/v1/clients")?;
    if args.json {
        return print::json_raw(&answer);
    }
    let status::Clients {
        clients,
        others,
        silent,
    } = answer
        .read_owned()
        .map_err(|error| Error::new(format!("cannot parse the gateway's response: {error}")))?;
    if !clients.is_empty() {
        table(&clients).print()?;
    }
    match (clients.len(), others) {
        (0, 0) => print::say("there are no connected clients"),
        (_, 0) => {}
        (0, others) => {
            let clients = count(others, "unnamed client is", "unnamed clients are");
            print::say(&format!("{clients} connected"));
        }
        (_, others) => print::say(&format!("and {others} more")),
    }
    if silent > 0 {
        let clients = count(silent, "client has", "clients have");
        print::say(&format!(
            "{clients} sent nothing for a while and may have disconnected"
        ));
    }
    Ok(())
}

/// The most clients in [`views`].
const VIEWS: usize = 10;

/// Prints the views of the oldest clients, and the reason for each.
pub(super) fn views(link: &Link) -> Result<(), Error> {
    let status::Clients { clients, .. } = link.get("/api/v1/clients")?;
    if clients.is_empty() {
        return Ok(());
    }
    let mut table = Table::new(&["CLIENT", "VIEW", "REASON"]);
    for client in clients.iter().take(VIEWS) {
        table.row([
            visible_line(&name(client)),
            visible_line(&view(client)),
            visible_line(&client.why),
        ]);
    }
    print::data("\n")?;
    table.print()?;
    if let Some(more) = clients.len().checked_sub(VIEWS).filter(|more| *more > 0) {
        print::say(&format!(
            "and {more} more; `switchboard clients` lists them"
        ));
    }
    Ok(())
}

/// The view of its address, and the presentation that results.
fn view(client: &Client) -> String {
    match client.view.as_str() {
        view if view.is_empty() || client.shows == view => client.shows.to_string(),
        view => format!("{view}: {}", client.shows),
    }
}

/// The name, and the principal if that is not the owner.
fn name(client: &Client) -> String {
    match &*client.principal {
        "" | "owner" => client.name.clone(),
        principal => format!("{} ({principal})", client.name),
    }
}

fn table(clients: &[Client]) -> Table {
    let heading = [
        "CLIENT",
        "AGE",
        "TRANSPORT",
        "VIEW",
        "IN FLIGHT",
        "REVISION",
        "DIRECTORY",
    ];
    let mut table = Table::new(&heading).cut_path(6);
    for client in clients {
        let since = match ago(&client.connected_at) {
            Some(ago) => ago,
            None => local(&client.connected_at),
        };
        let folder = client.folder.as_deref().unwrap_or_default();
        table.row([
            visible_line(&name(client)),
            since,
            client.transport.to_string(),
            visible_line(&view(client)),
            client.in_flight.to_string(),
            client.revision.clone(),
            short_path(&visible_line(folder)),
        ]);
        if !client.why.is_empty() {
            table.note(&visible_line(&client.why));
        }
    }
    table
}
