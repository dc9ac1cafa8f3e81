//! The fixture server behind the gateway.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use switchboard_test_support::Home;

use crate::{
    bounds::{self, Bound},
    fixture::{self, Listening},
    suite::{Failures, Suite},
};

const OLD: &str = "2025-11-25";
const NEW: &str = "2026-07-28";

/// The number of runs of scenarios that may depend on the order of messages.
const TIMES: usize = 5;

/// Runs the suite through a gateway with this server, and compares the failures with the known limits.
fn passes_through(server: &Value, requirements: &str, bounds: &[Bound]) {
    let Some(suite) = Suite::find() else { return };
    let home = Home::new(json!({}));
    home.set_config(json!({
        "auth": { "mcp": "none" },
        "mcpServers": { "fixture": server },
    }));
    let gateway = home.serve();
    let suite = suite.with_token(&gateway.token());
    let url = format!("http://{}/mcp/s/fixture", gateway.address);
    compare(&suite.require(&url, requirements), bounds);
    let in_order: &[&str] = if requirements == OLD {
        &["tools-call-with-progress", "tools-call-with-logging"]
    } else {
        &["tools-call-with-progress"]
    };
    for scenario in in_order {
        for time in 0..TIMES {
            let failures = suite.scenario(&url, requirements, scenario);
            assert!(
                failures.is_empty(),
                "{scenario}, time {time}: {failures:#?}"
            );
        }
    }
    gateway.stop();
}

/// Checks that exactly the known checks fail.
#[track_caller]
fn compare(failures: &Failures, bounds: &[Bound]) {
    let named: BTreeSet<&str> = bounds.iter().map(|bound| bound.check).collect();
    let unnamed: Vec<_> = failures
        .iter()
        .filter(|(check, _)| !named.contains(&***check))
        .collect();
    let passed = bounds
        .iter()
        .filter(|bound| !failures.contains_key(bound.check));
    let passed: Vec<&Bound> = passed.collect();
    assert!(
        unnamed.is_empty() && passed.is_empty(),
        "fails: {unnamed:#?}\nis named as impossible, but passes: {passed:#?}"
    );
}

fn piped(revisions: &str, requirements: &str, bounds: &[Bound]) {
    passes_through(&fixture::piped(revisions), requirements, bounds);
}

fn over_http(revisions: &str, requirements: &str, bounds: &[Bound]) {
    let server = Listening::start(revisions);
    passes_through(&json!({ "url": server.url }), requirements, bounds);
}

#[test]
fn old_clients_of_an_old_server_on_pipes() {
    piped("legacy", OLD, &[]);
}

#[test]
fn old_clients_of_an_old_server_over_http() {
    over_http("legacy", OLD, &[]);
}

#[test]
fn new_clients_of_a_new_server_on_pipes() {
    piped(NEW, NEW, &[]);
}

#[test]
fn new_clients_of_a_new_server_over_http() {
    over_http(NEW, NEW, &[]);
}

#[test]
fn old_clients_of_a_new_server_on_pipes() {
    piped(NEW, OLD, &[]);
}

#[test]
fn old_clients_of_a_new_server_over_http() {
    over_http(NEW, OLD, &[]);
}

#[test]
fn new_clients_of_an_old_server_on_pipes() {
    piped("legacy", NEW, bounds::NEW_TO_OLD);
}

#[test]
fn new_clients_of_an_old_server_over_http() {
    over_http("legacy", NEW, bounds::NEW_TO_OLD);
}

#[test]
fn old_clients_of_a_dual_server_on_pipes() {
    piped("both", OLD, &[]);
}

#[test]
fn old_clients_of_a_dual_server_over_http() {
    over_http("both", OLD, &[]);
}

#[test]
fn new_clients_of_a_dual_server_on_pipes() {
    piped("both", NEW, &[]);
}

#[test]
fn new_clients_of_a_dual_server_over_http() {
    over_http("both", NEW, &[]);
}
