//! What the tests share.

mod host;
mod processes;
mod record;
mod servers;
mod tools;

use std::time::Duration;

use switchboard_client::Raw;
use tokio::time::{sleep, timeout};

pub(crate) use host::{Host, ROOT};
pub(crate) use processes::{Marked, wait_gone};
pub(crate) use record::Record;
pub(crate) use servers::{Program, Server};
pub(crate) use tools::{Tools, workspace};

/// How long anything may take that ought to happen at once, on a machine that is busy.
pub(crate) const SOON: Duration = Duration::from_secs(30);

/// A string in the parameters of a notification; empty if it is not there.
pub(crate) fn text(params: &Raw, name: &str) -> String {
    let value = params.member(name).and_then(|value| value.to_text());
    value.unwrap_or_default()
}

/// Tries until it works, for what nobody tells of when it is done.
pub(crate) async fn until<T>(what: &str, mut attempt: impl AsyncFnMut() -> Option<T>) -> T {
    let trying = async {
        loop {
            if let Some(done) = attempt().await {
                return done;
            }
            sleep(Duration::from_millis(20)).await;
        }
    };
    let done = timeout(SOON, trying).await;
    done.unwrap_or_else(|_| panic!("{what} did not happen"))
}
