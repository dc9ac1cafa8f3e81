//! `--all`: connects every client that is installed.

use switchboard_client_configs::{self as client_configs, Client, state};
use switchboard_terminal::{error::Error, print};

use super::{Change, Task};
use crate::agree::CHANGE;

pub(super) fn connect(task: &Task<'_>) -> Result<(), Error> {
    let mut failures = Failures::default();
    let mut changes = Vec::new();
    let mut is_any = false;
    for client in Client::ALL {
        match prepare(task, client) {
            Ok(Prepared::Absent) => continue,
            Ok(Prepared::Done) => {}
            Ok(Prepared::Change(change)) => changes.push(*change),
            Err(error) => failures.report("connect", client, &error),
        }
        is_any = true;
    }
    if !is_any {
        print::say("no client is installed here");
        print::hint(
            "`switchboard connect` lists the clients and the files where they are expected",
        );
    }
    if task.args.dry_run || changes.is_empty() {
        changes.iter().for_each(Change::advise);
        return failures.result();
    }
    let question = match &*changes {
        [change] => format!("Change {}?", change.plan.file.display()),
        several => format!("Change {} files?", several.len()),
    };
    CHANGE.agree(task.args.yes, &question)?;
    let mut changed = Vec::new();
    for change in &mut changes {
        let client = change.plan.client;
        match change.carry_out(task) {
            Ok(()) => {
                change.warn(task);
                changed.push(client.title());
            }
            Err(error) => failures.report("connect", client, &error),
        }
    }
    changes.iter().for_each(Change::advise);
    if !changed.is_empty() {
        if changes.iter().any(|change| change.http.is_some()) {
            print::hint("keep the gateway running with `switchboard serve`");
        }
        print::hint(&format!(
            "restart {} to use the gateway; to revert the changes, run `switchboard connect --all --undo`",
            changed.join(", ")
        ));
    }
    failures.result()
}

enum Prepared {
    /// The client is not installed.
    Absent,
    /// There is nothing to change.
    Done,
    Change(Box<Change>),
}

/// Prepares the change of one client, and shows it.
fn prepare(task: &Task<'_>, client: Client) -> Result<Prepared, Error> {
    let state = state(client, task.dirs, task.gateway)?;
    if !state.is_installed {
        return Ok(Prepared::Absent);
    }
    if let Some(connection) = state.connection
        && !task.args.moves
    {
        let is_other = connection.token().is_none() && !connection.has_place_of(task.gateway);
        let which = if is_other { " to another gateway" } else { "" };
        print::say(&format!("{} is connected{which} already", client.title()));
        return Ok(Prepared::Done);
    }
    if task.args.http && !client.connects_over_http() {
        let error = client_configs::Error::NoHttp { client };
        print::warn(&format!("skipped {}: {error}", client.title()));
        return Ok(Prepared::Done);
    }
    let change = Change::prepare(task, client)?;
    change.show()?;
    if change.plan.changed {
        return Ok(Prepared::Change(Box::new(change)));
    }
    change.advise();
    Ok(Prepared::Done)
}

/// The clients that failed. They are reported at once, and the others continue.
#[derive(Default)]
pub(super) struct Failures(u64);

impl Failures {
    pub(super) fn report(&mut self, doing: &str, client: Client, error: &Error) {
        self.0 += 1;
        let message = format!("cannot {doing} {}: {error}", client.title());
        let failure = Error::new(message);
        print::complain(&match error.advice() {
            Some(advice) => failure.hint(advice),
            None => failure,
        });
    }

    /// Fails if a client failed.
    pub(super) fn result(self) -> Result<(), Error> {
        match self.0 {
            0 => Ok(()),
            _ => Err(Error::reported()),
        }
    }
}
