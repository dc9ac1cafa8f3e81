//! What the tests share.

mod host;
mod processes;
mod record;
mod servers;
mod tools;

use std::time::Duration;

pub(crate) use host::{Host, ROOT};
pub(crate) use processes::{Marked, wait_gone};
pub(crate) use record::Record;
pub(crate) use servers::{Program, Server};
pub(crate) use tools::{Tools, workspace};

/// How long anything may take that ought to happen at once, on a machine that is busy.
pub(crate) const SOON: Duration = Duration::from_secs(15);
