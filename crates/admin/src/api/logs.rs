//! The standard error of a server: the last lines, and on request the following ones.

use std::{io, sync::Arc, time::Duration};

use axum::{
    Json,
    extract::State,
    response::{IntoResponse, Response},
};
use hyper::StatusCode;
use switchboard_base::log_marks::is_of;
use switchboard_inbound::problem::Problem;
use switchboard_rest::servers::{Logs, LogsQuery};
use tokio::{
    task::spawn_blocking,
    time::{MissedTickBehavior, interval},
};

use super::{
    ask::{Asked, Named, number},
    servers::no_instance,
    sse::{self, Gone, Sender},
    tail::{self, Follower},
};
use crate::admin::Admin;

/// The number of lines, if the query does not set it.
const LINES: usize = 200;
/// The most lines in a response.
const LINES_MAX: usize = 5_000;
/// The interval at which a log is polled while it is followed.
const LOOK_EVERY: Duration = Duration::from_millis(500);

pub(super) async fn show(
    State(admin): State<Arc<Admin>>,
    Named(upstream): Named,
    Asked(LogsQuery {
        lines,
        instance,
        follow,
    }): Asked<LogsQuery>,
) -> Result<Response, Problem> {
    let wanted = number("lines", lines)?.unwrap_or(LINES).min(LINES_MAX);
    let number = number::<u64>("instance", instance)?;
    let is_wanted = move |line: &String| number.is_none_or(|number| is_of(line, number));
    let path = admin.core.home.log_of(&upstream.name);
    let shown = path.clone();
    let log = Arc::clone(&admin.core.deps().logs);
    let read = spawn_blocking(move || {
        // Includes everything that the server has written so far.
        log.flush();
        let all = if number.is_none() { wanted } else { LINES_MAX };
        let (mut lines, follower) = tail::last(&path, all)?;
        lines.retain(is_wanted);
        lines.drain(..lines.len().saturating_sub(wanted));
        Ok((lines, follower))
    });
    let (lines, follower) = settle(read.await).map_err(|error| {
        let detail = format!("cannot read {}: {error}", shown.display());
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, detail)
            .hint("check the owner and the permissions of the file")
    })?;
    let is_known = |number| {
        upstream
            .own_instances()
            .iter()
            .any(|(known, _)| *known == number)
    };
    if let Some(number) = number.filter(|number| lines.is_empty() && !is_known(*number)) {
        return Err(no_instance(&upstream.name, number));
    }
    if follow != Some(true) {
        return Ok(Json(Logs { lines }).into_response());
    }
    let (sender, response) = sse::stream();
    let name = Arc::clone(&upstream.name);
    tokio::spawn(async move {
        tokio::select! {
            _ = tell(&admin, &name, lines, follower, (&is_wanted, &sender)) => {}
            () = admin.core.lifecycle.stopped() => {}
            () = sender.closed() => {}
        }
    });
    Ok(response)
}

/// Sends these lines and then everything that is appended to the log, as long as the server exists.
async fn tell(
    admin: &Admin,
    name: &str,
    mut lines: Vec<String>,
    mut follower: Follower,
    (is_wanted, sender): (&(dyn Fn(&String) -> bool + Sync), &Sender),
) -> Result<(), Gone> {
    let mut look = interval(LOOK_EVERY);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        for line in lines.iter().filter(|line| is_wanted(line)) {
            sender.line("line", line).await?;
        }
        if lines.is_empty() {
            look.tick().await;
        }
        if admin.core.upstream(name).is_none() {
            return Ok(());
        }
        let read = spawn_blocking(move || {
            let more = follower.more();
            more.map(|lines| (lines, follower))
        });
        (lines, follower) = match settle(read.await) {
            Ok(more) => more,
            Err(error) => {
                tracing::warn!(%error, server = %name, "Cannot follow the log of a server.");
                return Ok(());
            }
        };
    }
}

/// Converts a failed task into an I/O error.
fn settle<T>(read: Result<io::Result<T>, tokio::task::JoinError>) -> io::Result<T> {
    read.unwrap_or_else(|error| Err(io::Error::other(error)))
}
