//! Earlier faults of the gateway, each shown by its effect on clients and servers.

mod asking;
mod hearing;
mod load;

use serde_json::{Value, json};
use switchboard_test_support::{Home, Serve};

use crate::{
    client::{Client, Reason, Sent, Setup, call_of, with_progress},
    revision::{
        Revision::{self, Jul2026, Nov2025},
        Side, Way,
    },
    rig::{NAME, Upstream, home_with, through},
};

const OLDER: Side = side(Nov2025, Way::Http);
const OLDER_PIPE: Side = side(Nov2025, Way::Pipe);
const MODERN: Side = side(Jul2026, Way::Http);
const MODERN_PIPE: Side = side(Jul2026, Way::Pipe);

const fn side(revision: Revision, way: Way) -> Side {
    Side { revision, way }
}

/// Runs `act` with a gateway of these settings in front of a server.
#[track_caller]
fn with_gateway(server: Side, config: Value, act: impl FnOnce(&Serve<'_>) -> Result<(), Reason>) {
    let upstream = Upstream::start(server, &[]);
    in_front(server, &home_with(&upstream, config), act);
}

/// Runs `act` with the gateway of a home.
#[track_caller]
fn in_front(server: Side, home: &Home, act: impl FnOnce(&Serve<'_>) -> Result<(), Reason>) {
    let serve = home.serve();
    serve.until_known(NAME);
    let judged = act(&serve);
    judged.unwrap_or_else(|reason| panic!("in front of {server}: {reason}"));
    serve.stop();
}

/// A client with all capabilities.
fn open(serve: &Serve<'_>, server: Side, client: Side) -> Result<Client, Reason> {
    Client::open(&through(serve), server, Setup::able(client))
}

/// Starts a call that stays at the server until it is cancelled, and waits for its first progress.
fn at_work(client: &mut Client) -> Result<Sent, Reason> {
    let from = client.now();
    let call = with_progress(call_of("test_wait_cancel", json!({})), &json!("own"));
    let sent = client.send("tools/call", call)?;
    client.until_told(from, "notifications/progress")?;
    Ok(sent)
}
