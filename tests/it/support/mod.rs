//! Helpers that the tests share.

mod host;
mod processes;
mod record;
mod servers;
mod tools;

use switchboard_client::Raw;

pub(crate) use host::{Host, ROOT};
pub(crate) use processes::{Marked, wait_gone};
pub(crate) use record::Record;
pub(crate) use servers::{Program, Server};
pub(crate) use switchboard_test_support::{PATIENCE, Tools, until_async as until};
pub(crate) use tools::{npm, python};

/// A string in the parameters of a notification; empty if it is missing.
pub(crate) fn text(params: &Raw, name: &str) -> String {
    let value = params.member(name).and_then(|value| value.to_text());
    value.unwrap_or_default()
}
