//! The list of clients.

use std::path::Path;

use serde::Serialize;
use switchboard_client_configs::{Client, Reach, State, state};
use switchboard_terminal::{
    error::Error,
    print::{self, Cell, Colour, Table},
    visible::visible_line,
};
use switchboard_tokens::Tokens;

use super::Task;
use crate::{list::short_path, token};

#[derive(Serialize)]
struct Clients {
    clients: Vec<Row>,
}

#[derive(Default, Serialize)]
struct Row {
    client: &'static str,
    title: &'static str,
    state: &'static str,
    /// The name of the gateway's entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    transport: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    profile: Option<String>,
    /// The number of its own servers, if its file can be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    servers: Option<usize>,
    file: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// Lists all clients, how they are connected and the number of their own servers.
pub(super) fn run(task: &Task<'_>) -> Result<(), Error> {
    // The list does not depend on the tokens, except for their profiles.
    let tokens = token::read(task.home).ok();
    let row = |client| row(task, client, tokens.as_ref());
    let clients: Vec<_> = Client::ALL.into_iter().map(row).collect();
    if task.args.json {
        return print::json(&Clients { clients });
    }
    let heading = ["CLIENT", "STATE", "OWN SERVERS", "FILE"];
    let mut table = Table::new(&heading).cut_path(3);
    for row in clients {
        let colour = match row.state {
            CONNECTED => Some(Colour::Green),
            DISABLED => Some(Colour::Yellow),
            UNREADABLE => Some(Colour::Red),
            NOT_FOUND => Some(Colour::Dim),
            _ => None,
        };
        let transport = row.transport.map(str::to_owned);
        let profile = row.profile.map(|profile| format!("profile {profile}"));
        let how: Vec<_> = transport.into_iter().chain(profile).collect();
        let state = match &*how {
            [] => row.state.to_owned(),
            how => format!("{} ({})", row.state, visible_line(&how.join(", "))),
        };
        let servers = row.servers.map(|servers| servers.to_string());
        table.row([
            row.client.to_owned().into(),
            Cell::coloured(&state, colour),
            servers.unwrap_or_else(|| "–".to_owned()).into(),
            short_path(&row.file).into(),
        ]);
        if let Some(error) = row.error {
            table.note(&visible_line(&error));
        }
    }
    table.print()?;
    print::hint(
        "add the gateway to a client with `switchboard connect CLIENT`; with --move, the client's own servers that \
         the gateway has are removed",
    );
    Ok(())
}

const CONNECTED: &str = "connected";
const DISABLED: &str = "disabled";
const NOT_CONNECTED: &str = "not connected";
const NOT_FOUND: &str = "not found";
const UNREADABLE: &str = "unreadable";

fn row(task: &Task<'_>, client: Client, tokens: Option<&Tokens>) -> Row {
    let row = Row {
        client: client.name(),
        title: client.title(),
        ..Row::default()
    };
    let text = |file: &Path| file.display().to_string();
    match state(client, task.dirs, task.gateway) {
        Ok(state) => filled(row, state, tokens),
        Err(error) => {
            let files = client.config_files(task.dirs);
            Row {
                state: UNREADABLE,
                file: files.first().map_or_else(String::new, |file| text(file)),
                error: Some(Error::from(error).message().to_owned()),
                ..row
            }
        }
    }
}

fn filled(row: Row, state: State, tokens: Option<&Tokens>) -> Row {
    let row = Row {
        file: state.file.display().to_string(),
        ..row
    };
    let Some(connection) = state.connection else {
        let (state, servers) = if state.is_installed {
            (NOT_CONNECTED, Some(state.servers))
        } else {
            (NOT_FOUND, None)
        };
        return Row {
            state,
            servers,
            ..row
        };
    };
    let token = tokens
        .zip(connection.token())
        .and_then(|(all, token)| token::find(all, token));
    let held_to = token.and_then(|token| token.profile.clone());
    Row {
        state: if connection.is_enabled {
            CONNECTED
        } else {
            DISABLED
        },
        transport: Some(match connection.reach {
            Reach::Stdio(_) => "stdio",
            Reach::Http(_) => "http",
        }),
        profile: held_to.or_else(|| connection.profile().map(str::to_owned)),
        servers: Some(state.servers),
        name: Some(connection.name),
        ..row
    }
}
