//! `switchboard stop`: stops the running gateway, and waits until it and its servers are gone.

use std::{
    io::{self, IsTerminal, Write as _},
    thread,
    time::{Duration, Instant},
};

use clap::Args;
use switchboard_config::{Config, Home, Shutdown};
use switchboard_host::runtime::Lock;
use switchboard_rest::status::Status;
use switchboard_terminal::{error::Error, print};

use crate::link::{Link, no_gateway};

/// Time beyond the gateway's own shutdown timeout.
const GRACE: Duration = Duration::from_secs(5);
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Stop the gateway.
///
/// Calls in flight fail with an error; then the gateway stops all servers and their processes.
/// Clients that run `switchboard stdio` start another gateway when they need one.
#[derive(Debug, Args)]
pub struct Stop {}

/// Runs the command.
pub fn run(home: &Home) -> Result<(), Error> {
    let link = Link::find(home)?.ok_or_else(|| no_gateway(home))?;
    let before: Status = link.get("/api/v1/status")?;
    link.post("/api/v1/shutdown", None)?;
    // If the file cannot be read, the default applies.
    let shutdown =
        Config::load(home.config_file()).map_or_else(|_| Shutdown::default(), |c| c.shutdown);
    let patience = shutdown.total_timeout + GRACE;
    let started = Instant::now();
    let mut progress = Progress::new(started);
    while !is_gone(home, &before)? {
        if started.elapsed() > patience {
            progress.clear();
            let (pid, seconds) = (before.pid, patience.as_secs());
            let error = Error::new(format!(
                "the gateway (process {pid}) did not stop within {seconds} s"
            ));
            // Another version may not report its process ID; `kill -9 0` would kill the user's own processes.
            return Err(match pid {
                0 => error,
                _ => error.hint(format!("`kill -9 {pid}` ends it; its servers end with it")),
            });
        }
        progress.show();
        thread::sleep(LOOK_AGAIN);
    }
    progress.clear();
    print::say(&format!("stopped the gateway (process {})", before.pid));
    Ok(())
}

/// Tests if the gateway is gone: none responds and no process holds the lock, or another one responds.
fn is_gone(home: &Home, before: &Status) -> Result<bool, Error> {
    if let Some(link) = Link::find(home)? {
        // The gateway may be stopping and close the connection.
        let now: Result<Status, _> = link.get("/api/v1/status");
        return Ok(
            now.is_ok_and(|now| now.pid != before.pid || now.started_at != before.started_at)
        );
    }
    Ok(!Lock::is_held(home))
}

/// A line with the elapsed time, for a user at a terminal.
struct Progress {
    started: Instant,
    shown: Option<u64>,
}

impl Progress {
    fn new(started: Instant) -> Self {
        Self {
            started,
            shown: None,
        }
    }

    fn show(&mut self) {
        let seconds = self.started.elapsed().as_secs();
        if seconds == 0 || self.shown == Some(seconds) || !io::stderr().is_terminal() {
            return;
        }
        self.shown = Some(seconds);
        let mut to = io::stderr();
        // It does no harm if the line is not printed.
        let _ = write!(to, "\rstopping… {seconds} s").and_then(|()| to.flush());
    }

    fn clear(&mut self) {
        if self.shown.take().is_some() {
            let _ = write!(io::stderr(), "\r\u{1b}[K");
        }
    }
}
