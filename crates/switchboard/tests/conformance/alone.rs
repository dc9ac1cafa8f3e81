//! The fixture server by itself: what is asked of the gateway has to be possible.

use crate::{fixture::Listening, suite::Suite};

fn passes(revisions: &str, requirements: &str) {
    let Some(suite) = Suite::find() else { return };
    let server = Listening::start(revisions);
    let failures = suite.require(&server.url, requirements);
    assert!(failures.is_empty(), "{failures:#?}");
}

#[test]
fn a_server_of_the_old_revisions_passes_the_old_requirements() {
    passes("legacy", "2025-11-25");
}

#[test]
fn a_server_of_the_new_revision_passes_the_new_requirements() {
    passes("2026-07-28", "2026-07-28");
}

#[test]
fn a_server_of_all_revisions_passes_the_old_requirements() {
    passes("both", "2025-11-25");
}

#[test]
fn a_server_of_all_revisions_passes_the_new_requirements() {
    passes("both", "2026-07-28");
}
