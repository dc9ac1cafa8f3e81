//! The features that are tested in every pair of revisions: one small function each.

mod changes;
mod content;
mod exceptions;
mod modern;
mod offers;
mod opening;
mod questions;
mod reports;
mod transport;

pub(crate) use changes::{UPDATED, WATCHED, listen, lists_together};
pub(crate) use exceptions::cannot;
pub(crate) use reports::{counted, logged_number};

use crate::client::{Client, Reason};

/// A feature that a client can use.
pub(crate) struct Feature {
    pub(crate) name: &'static str,
    pub(crate) run: fn(&mut Client) -> Result<(), Reason>,
}

const fn feature(name: &'static str, run: fn(&mut Client) -> Result<(), Reason>) -> Feature {
    Feature { name, run }
}

/// The feature that all clients of a server test together.
pub(crate) const LIST_CHANGES: &str = "list changes";

/// All features, in the order of the table.
pub(crate) const ALL: &[Feature] = &[
    feature("handshake", opening::handshake),
    feature("identity", opening::identity),
    feature("ping", opening::ping),
    feature("tool list", offers::tools),
    feature("prompts", offers::prompts),
    feature("resources", offers::resources),
    feature("resource templates", offers::templates),
    feature("completion", offers::completion),
    feature("unknown tool", offers::unknown_tool),
    feature("unknown resource", offers::unknown_resource),
    feature("text", content::text),
    feature("image", content::image),
    feature("audio", content::audio),
    feature("embedded resource", content::embedded_resource),
    feature("resource link", content::resource_link),
    feature("structured content", content::structured),
    feature("structured content of any type", content::structured_any),
    feature("tool error", content::tool_error),
    feature("progress", reports::progress),
    feature("log messages", reports::logging),
    feature("log level", reports::log_level),
    feature("progress and log messages in order", reports::both),
    feature("cancellation", reports::cancellation),
    feature("elicitation by form", questions::form),
    feature("elicitation by URL", questions::url),
    feature("elicitation before a call", questions::url_required),
    feature("several questions, several rounds", questions::rounds),
    feature("sampling", questions::sampling),
    feature("roots", questions::roots),
    feature("a client that cannot be asked", questions::mute),
    feature(LIST_CHANGES, changes::lists),
    feature("resource updates", changes::resources),
    feature("tasks", changes::tasks),
    feature("batches, taken or refused", transport::batches),
    feature("sessions", transport::sessions),
    feature("resumption", transport::resumption),
    feature("event ids and priming", transport::priming),
    feature("refusal of removed methods", modern::removed_methods),
    feature("refusal of headers that contradict", modern::contradictions),
    feature("unknown revisions", modern::unknown_revision),
    feature("cache hints", modern::cache_hints),
];
