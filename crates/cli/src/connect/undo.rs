//! `--undo`: reverts the last change of a client.

use switchboard_client_configs::{
    self as client_configs, Client, Connection, Which, plan_disconnect, state, undo,
};
use switchboard_terminal::{error::Error, print};

use super::{Change, Task, all::Failures, http};
use crate::{agree::CHANGE, backups};

/// Reverts the last change of one client, or else removes the gateway's entry.
pub(super) fn one(task: &Task<'_>, client: Client) -> Result<(), Error> {
    if last(task, client)? {
        print::say(&format!("restart {}", client.title()));
        return Ok(());
    }
    // The user may have added the entry by hand.
    let token = token(task, client);
    let plan = plan_disconnect(client, task.dirs, task.gateway)?;
    if !plan.changed {
        return Err(Error::new(format!(
            "there is nothing to undo: {} has no entry `{}`",
            plan.file.display(),
            task.args.name
        ))
        .hint("if the entry has another name, pass it with --name"));
    }
    let mut change = Change {
        plan,
        http: None,
        moving: None,
    };
    change.show()?;
    let question = format!("Change {}?", change.plan.file.display());
    CHANGE.agree(task.args.yes, &question)?;
    change.carry_out(task)?;
    http::revoke(task.home, token.as_deref(), &change.plan.file)?;
    print::say(&format!("restart {}", client.title()));
    Ok(())
}

/// Reverts the last change of each client.
pub(super) fn all(task: &Task<'_>) -> Result<(), Error> {
    let mut failures = Failures::default();
    let (mut undone, mut is_any) = (Vec::new(), false);
    for client in Client::ALL {
        match last(task, client) {
            Ok(false) => continue,
            Ok(true) => undone.push(client.title()),
            Err(error) => failures.report("undo the change of", client, &error),
        }
        is_any = true;
    }
    if !is_any {
        return Err(Error::new("there is nothing to undo"));
    }
    if !undone.is_empty() {
        print::say(&format!("restart {}", undone.join(", ")));
    }
    failures.result()
}

/// Reverts the last change of a client. Returns `false` if there is none.
fn last(task: &Task<'_>, client: Client) -> Result<bool, Error> {
    let token = token(task, client);
    let undone = match undo(Which::Client(client), &backups::folder(task.home)) {
        Ok(undone) => undone,
        Err(client_configs::Error::NothingToUndo { .. }) => return Ok(false),
        Err(error) => return Err(error.into()),
    };
    print::say(&undone.how.message(&undone.file));
    http::revoke(task.home, token.as_deref(), &undone.file)?;
    http::revoke_id(task.home, undone.token.as_deref(), &undone.file)?;
    if plan_disconnect(client, task.dirs, task.gateway).is_ok_and(|plan| plan.changed) {
        print::warn(&format!(
            "{} still has the gateway, as before the last change; to remove it, run the command again",
            client.title()
        ));
    }
    Ok(true)
}

/// The token of a client, if it connects over HTTP.
fn token(task: &Task<'_>, client: Client) -> Option<String> {
    let state = state(client, task.dirs, task.gateway).ok()?;
    let token = state.connection.as_ref().and_then(Connection::token);
    token.map(str::to_owned)
}
