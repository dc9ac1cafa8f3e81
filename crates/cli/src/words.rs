//! Servers and numbers in words.

use switchboard_rest::servers::{FailedList, Instance, Server};
use switchboard_terminal::print::Colour;

use super::times::local;

/// The failure of a list.
pub(super) fn failed_list(failed: &FailedList) -> String {
    format!("{} failed: {}", failed.list, failed.reason)
}

/// The reasons for the state of a server, and advice, one per line.
pub(super) fn notes(server: &Server) -> Vec<String> {
    let health = &server.health;
    let mut notes: Vec<_> = health.reason.iter().cloned().collect();
    notes.extend(server.failed_lists.iter().map(failed_list));
    if let Some((first, others)) = server.problems.split_first() {
        notes.push(first.clone());
        if !others.is_empty() {
            let more = count(others.len() as u64, "more problem", "more problems");
            notes.push(format!("{more}: `switchboard doctor` lists all"));
        }
    }
    notes.extend(match (&health.action, &health.next_try) {
        (Some(action), Some(next)) => Some(format!("{action} (next attempt at {})", local(next))),
        (Some(action), None) => Some(action.clone()),
        (None, next) => next
            .as_deref()
            .map(|next| format!("next attempt at {}", local(next))),
    });
    notes
}

/// The reasons and advice in one line.
pub(super) fn note(server: &Server) -> String {
    notes(server).join("; ")
}

/// Tests if a server does not work, and may need the user's attention.
pub(super) fn needs_user(server: &Server) -> bool {
    let health = &server.health;
    is_down(server)
        || !server.failed_lists.is_empty()
        || (health.state == "starting" && health.reason.is_some())
}

/// Tests if a server failed, or waits for the user.
pub(super) fn is_down(server: &Server) -> bool {
    matches!(
        &*server.health.state,
        "parked" | "retrying" | "needs sign-in"
    )
}

/// The callers of an instance.
pub(super) fn callers(instance: &Instance) -> String {
    match (&instance.client, &instance.project) {
        (Some(client), Some(project)) => format!("{client} in {project}"),
        (Some(client), None) => client.clone(),
        (None, project) => format!("in {}", project.as_deref().unwrap_or_default()),
    }
}

/// The colour of a server's state.
pub(super) fn colour(server: &Server) -> Option<Colour> {
    colour_of(&server.health.state)
}

/// The colour of a state.
pub(super) fn colour_of(state: &str) -> Option<Colour> {
    match state {
        "ready" => Some(Colour::Green),
        "parked" => Some(Colour::Red),
        "retrying" | "needs sign-in" => Some(Colour::Yellow),
        "starting" | "stopping" => Some(Colour::Cyan),
        "disabled" => Some(Colour::Dim),
        _ => None,
    }
}

/// The hint to review one thing or several with a command.
pub(super) fn review(many: u64, command: &str) -> String {
    let them = if many == 1 { "it" } else { "them" };
    format!("review {them} with `{command}`")
}

/// A number with its noun.
pub(super) fn count(many: u64, one: &str, more: &str) -> String {
    let what = if many == 1 { one } else { more };
    format!("{many} {what}")
}
