//! The fixture server on its own: the requirements for the gateway have to be possible.

use crate::{fixture::Listening, suite::Suite};

fn passes(revisions: &str, requirements: &str) {
    let Some(suite) = Suite::find() else { return };
    let server = Listening::start(revisions);
    let failures = suite.require(&server.url, requirements);
    assert!(failures.is_empty(), "{failures:#?}");
}

#[test]
fn old_server_passes_the_old_requirements() {
    passes("legacy", "2025-11-25");
}

#[test]
fn new_server_passes_the_new_requirements() {
    passes("2026-07-28", "2026-07-28");
}

#[test]
fn dual_server_passes_the_old_requirements() {
    passes("both", "2025-11-25");
}

#[test]
fn dual_server_passes_the_new_requirements() {
    passes("both", "2026-07-28");
}
